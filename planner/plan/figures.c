#include "planner/plan/figures.h"

#include <string.h>

static size_t put(struct vp_figure out[VP_FIGURES], const struct vp_figure *figures, size_t n) {
    memcpy(out, figures, n * sizeof *figures);
    return n;
}

#define PUT(out, figures) put(out, figures, sizeof(figures) / sizeof *(figures))

static size_t vllm(struct vp_figure out[VP_FIGURES], const struct vp_engine_report *r) {
    const struct vp_figure figures[] = {
        {"weights_gib", NULL, VP_FIGURE_GIB, r->weights},
        {"activation_peak_gib", NULL, VP_FIGURE_GIB, r->activation_peak},
        {"non_torch_gib", NULL, VP_FIGURE_GIB, r->non_torch},
        {"graph_gib", NULL, VP_FIGURE_GIB, r->graph},
        {"available_kv_cache_gib", NULL, VP_FIGURE_GIB, r->available_kv},
        {"num_gpu_blocks", NULL, VP_FIGURE_COUNT, r->num_gpu_blocks},
        {"block_size", NULL, VP_FIGURE_COUNT, vp_exactly(r->block_size)},
        {"kv_cache_tokens", NULL, VP_FIGURE_COUNT, r->kv_cache_tokens},
        {"max_concurrency", NULL, VP_FIGURE_MILLI, r->max_concurrency_milli},
        {"estimated_max_model_len", NULL, VP_FIGURE_COUNT, r->estimated_max_model_len},
    };
    return PUT(out, figures);
}

static size_t sglang(struct vp_figure out[VP_FIGURES], const struct vp_result *result) {
    const struct vp_engine_report *r = &result->report;
    const struct vp_figure figures[] = {
        {"weights_gib", NULL, VP_FIGURE_GIB, r->weights},
        {"kv_gib", NULL, VP_FIGURE_GIB, r->available_kv},
        {"max_total_num_tokens", NULL, VP_FIGURE_COUNT, r->kv_cache_tokens},
        {"mem_fraction_static", NULL, VP_FIGURE_SHARE,
         vp_exactly(result->scenario->engine.utilization_ppb)},
    };
    return PUT(out, figures);
}

static size_t transformers(struct vp_figure out[VP_FIGURES], const struct vp_engine_report *r) {
    const struct vp_figure figures[] = {
        {"weights_gib", NULL, VP_FIGURE_GIB, r->weights},
        {"activation_peak_gib", NULL, VP_FIGURE_GIB, r->activation_peak},
        {"non_torch_gib", NULL, VP_FIGURE_GIB, r->non_torch},
    };
    return PUT(out, figures);
}

static size_t llama(struct vp_figure out[VP_FIGURES], const struct vp_llama_plan *plan) {
    size_t n = 0;
    for (int b = 0; b < VP_LLAMA_BUFFERS; b++)
        for (uint32_t p = 0; p < plan->places; p++)
            if (plan->place[p].has[b])
                out[n++] = (struct vp_figure){vp_llama_buffer_key((enum vp_llama_buffer)b),
                                              plan->place[p].id, VP_FIGURE_MIB,
                                              plan->place[p].buffer[b]};
    out[n++] = (struct vp_figure){"n_ctx", NULL, VP_FIGURE_COUNT, vp_exactly(plan->n_ctx)};
    out[n++] =
        (struct vp_figure){"n_gpu_layers", NULL, VP_FIGURE_COUNT, vp_exactly(plan->gpu_layers)};
    return n;
}

/* Keys in the order of the contract. */
size_t vp_figures_of_stage(struct vp_figure out[VP_FIGURES],
                           const struct vp_training_stage *stage) {
    const struct vp_train_stage *n = &stage->numbers;
    const struct vp_figure figures[] = {
        {"parameter_bytes", NULL, VP_FIGURE_BYTES, vp_exactly(n->parameter_bytes)},
        {"gradient_bytes", NULL, VP_FIGURE_BYTES, vp_exactly(n->gradient_bytes)},
        {"optimizer_bytes", NULL, VP_FIGURE_BYTES, vp_exactly(n->optimizer_bytes)},
        {"master_bytes", NULL, VP_FIGURE_BYTES, vp_exactly(n->master_bytes)},
        {"saved_bytes", NULL, VP_FIGURE_BYTES, vp_exactly(n->saved_bytes)},
        {"saved_peak_bytes", NULL, VP_FIGURE_BYTES, vp_exactly(n->saved_peak_bytes)},
        {"logits_peak_bytes", NULL, VP_FIGURE_BYTES, vp_exactly(n->logits_peak_bytes)},
        {"optimizer_step_temp_bytes", NULL, VP_FIGURE_BYTES, vp_exactly(n->step_temp_bytes)},
        {"recomputed_block_forwards", NULL, VP_FIGURE_COUNT, vp_exactly(n->recomputed_forwards)},
        {"allocated_bytes", NULL, VP_FIGURE_BYTES, stage->allocated},
        {"allocated_peak_bytes", NULL, VP_FIGURE_BYTES, stage->allocated_peak},
        {"reserved_peak_bytes", NULL, VP_FIGURE_BYTES, stage->reserved_peak},
        {"first_step_peak_bytes", NULL, VP_FIGURE_BYTES, vp_exactly(stage->first_step_peak_bytes)},
    };
    return PUT(out, figures);
}

size_t vp_figures_of(struct vp_figure out[VP_FIGURES], const struct vp_result *result) {
    const struct vp_training_report *training = &result->training;
    if (training->stage)
        return vp_figures_of_stage(out, &training->stage[training->worst]);
    if (result->llama)
        return llama(out, result->llama);
    if (result->scenario->engine.kind == VP_ENGINE_VLLM)
        return vllm(out, &result->report);
    if (result->scenario->engine.kind == VP_ENGINE_SGLANG)
        return sglang(out, result);
    return transformers(out, &result->report);
}
