#include "planner/memory/stage.h"

struct vp_stage vp_stage_split(uint32_t layers, uint32_t count, uint32_t stage) {
    uint32_t base = layers / count, extra = layers % count;
    struct vp_stage out = {stage, count, 0, 0};

    for (uint32_t i = 0; i <= stage; i++) {
        /* extra layers go to stages count-2, count-3, ...; with one stage none is left over */
        uint32_t from_back = count - 1 - i;
        uint32_t n = base + (from_back >= 1 && from_back <= extra ? 1 : 0);
        if (i < stage)
            out.first_layer += n;
        else
            out.layers = n;
    }
    return out;
}

uint32_t vp_stage_layers(const struct vp_model *model, const struct vp_stage *stage,
                         uint32_t block) {
    uint32_t n = 0;

    if (stage->count == 1)
        return model->blocks[block].count;
    for (uint32_t i = 0; i < stage->layers; i++)
        n += model->layers[stage->first_layer + i] == block;
    return n;
}

struct vp_layout vp_stage_layout(const struct vp_scenario *scenario) {
    enum { VOCAB_PAD = 64 }; /* vLLM vocab_parallel_embedding.py, DEFAULT_VOCAB_PADDING_SIZE */
    uint64_t tensor = scenario->parallel.tensor;
    uint64_t all = vp_expert_ranks(scenario);
    /* SGLang's attention ranks are a part of the tensor ranks; vLLM's data ranks stand beside them
     */
    bool within = scenario->engine.kind == VP_ENGINE_SGLANG;
    uint64_t attention = within ? tensor / vp_max(scenario->parallel.attention_data, 1) : tensor;
    struct vp_layout layout = {.tensor = tensor,
                               .attention = vp_max(attention, 1),
                               .vocab = vp_max(attention, 1),
                               .expert_ranks = 1,
                               .expert_width = tensor,
                               .vocab_pad = VOCAB_PAD};

    if (scenario->engine.kind == VP_ENGINE_TRANSFORMERS)
        layout.vocab_pad = 1;
    if (scenario->parallel.expert > 1) {
        layout.expert_ranks = scenario->parallel.expert;
        layout.expert_width = vp_max(all / scenario->parallel.expert, 1);
    } else if (scenario->engine.expert_parallel) {
        layout.expert_ranks = all;
        layout.expert_width = 1;
    } else {
        layout.expert_width = all; /* without expert parallelism all of them share each expert */
    }
    return layout;
}
