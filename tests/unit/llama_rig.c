#include "tests/unit/llama_rig.h"

#include <string.h>

static const struct vp_llama_rules NEWEST = {
    .default_slots = 4,
    .default_gpu_layers = 999,
    .cells_multiple = 256,
    .cells_multiple_flash = 256,
    .window_cache = true,
    .latent = true,
    .scratch_counted = true,
    .index_tensors = true,
    .rotated = true,
    .few_outputs = VP_ALWAYS,
    .host_inputs = 2,
    .copies = 4,
    .spread_logits = {1000, 1000, 1000},
    .spread_layers = {1000, 1000, 1000},
    .spread_copies = {1000, 1000, 1000},
};

void rig_begin(struct llama_rig *r, uint64_t hidden, uint64_t vocab) {
    memset(r, 0, sizeof *r);
    fixture_begin(&r->f);
    r->model.hidden = hidden;
    r->model.vocab = vocab;
    r->model.lm_head = vocab > 0;
    r->model.blocks = r->block;
    r->model.layers = r->layer;
    r->model.gguf = &r->table;
    r->table.tensor = r->tensor;
    r->table.parts = 1;
    r->table.made_up = true;
    r->scenario.model = &r->model;
    r->scenario.hardware.count = 1;
    r->scenario.hardware.memory_bytes = UINT64_C(288) << 30;
    r->scenario.engine.kind = VP_ENGINE_LLAMA_CPP;
    r->scenario.engine.rules.llama = NEWEST;
    r->scenario.engine.rules.overhead_class = "none";
    r->scenario.llama = (struct vp_llama){.context = 4096,
                                          .gpu_layers = VP_LLAMA_ALL_LAYERS,
                                          .batch = 2048,
                                          .ubatch = 512,
                                          .slots = 1,
                                          .flash = VP_FLASH_ON,
                                          .type_k = VP_DTYPE_FP16,
                                          .type_v = VP_DTYPE_FP16,
                                          .outputs_max = 2048};
}

void rig_end(struct llama_rig *r) { fixture_end(&r->f); }

void rig_layers(struct llama_rig *r, uint32_t count, struct vp_block kind, struct vp_block other,
                uint32_t period) {
    r->block[0] = kind;
    r->block[1] = other;
    r->model.block_count = period > 0 ? 2 : 1;
    r->model.layer_count = count;
    for (uint32_t i = 0; i < count; i++)
        r->layer[i] = period > 0 && (i + 1) % period == 0;
}

void rig_tensor(struct llama_rig *r, const char *name, enum vp_gguf_kind kind, int32_t layer,
                enum vp_dtype type, uint64_t ne0, uint64_t ne1) {
    struct vp_gguf_tensor *t = &r->tensor[r->table.count++];

    assert_true(r->table.count <= RIG_TENSORS);
    *t = (struct vp_gguf_tensor){.name = name,
                                 .type = type,
                                 .dims = 2,
                                 .ne = {ne0, ne1, 1, 1},
                                 .elements = ne0 * ne1,
                                 .bytes = vp_dtype_bytes(type, vp_sum(ne0)).v * ne1,
                                 .layer = layer,
                                 .place = layer < 0 ? VP_GGUF_INPUT : VP_GGUF_BLOCK,
                                 .kind = kind};
}

void rig_ends(struct llama_rig *r, enum vp_dtype type, bool tied) {
    rig_tensor(r, "token_embd.weight", VP_GGUF_EMBEDDING, -1, type, r->model.hidden,
               r->model.vocab);
    if (tied)
        return;
    rig_tensor(r, "output.weight", VP_GGUF_HEAD, (int32_t)r->model.layer_count, type,
               r->model.hidden, r->model.vocab);
    r->tensor[r->table.count - 1].place = VP_GGUF_OUTPUT;
}

void rig_matrices(struct llama_rig *r, enum vp_dtype type, uint64_t width) {
    for (uint32_t i = 0; i < r->model.layer_count; i++)
        rig_tensor(r, vp_arena_printf(&r->f.arena, "blk.%u.ffn_gate.weight", i), VP_GGUF_FFN,
                   (int32_t)i, type, r->model.hidden, width);
}

struct vp_block rig_gqa(uint64_t heads, uint64_t kv_heads, uint64_t head_dim, uint64_t width) {
    return (struct vp_block){
        .norms = 2,
        .attention = {.kind = VP_ATTENTION_GQA,
                      .heads = heads,
                      .kv_heads = kv_heads,
                      .head_dim = head_dim,
                      .v_head_dim = head_dim},
        .mlp = {.kind = width > 0 ? VP_MLP_GATED : VP_MLP_NONE, .intermediate = width}};
}

/* Llama 3.1 8B in q8_0: 32 layers of 32 / 8 heads of 128. */
void rig_llama8b(struct llama_rig *r) {
    rig_begin(r, 4096, 128256);
    rig_layers(r, 32, rig_gqa(32, 8, 128, 14336), (struct vp_block){.norms = 0}, 0);
    rig_ends(r, VP_DTYPE_Q8_0, false);
    rig_matrices(r, VP_DTYPE_Q8_0, 14336);
}

const struct vp_llama_plan *rig_plan(struct llama_rig *r) {
    r->ledger = (struct vp_ledger){.arena = &r->f.arena};
    vp_llama_make(&r->f.arena, &r->plan, &r->ledger, &r->scenario);
    assert_false(r->plan.overflow);
    return &r->plan;
}

static const struct vp_llama_place *find(const struct llama_rig *r, const char *id) {
    for (uint32_t i = 0; i < r->plan.places; i++)
        if (strcmp(r->plan.place[i].id, id) == 0)
            return &r->plan.place[i];
    return NULL;
}

bool rig_has(const struct llama_rig *r, const char *place, enum vp_llama_buffer buffer) {
    const struct vp_llama_place *p = find(r, place);

    return p && p->has[buffer];
}

uint64_t rig_buffer(const struct llama_rig *r, const char *place, enum vp_llama_buffer buffer) {
    assert_true(rig_has(r, place, buffer));
    return find(r, place)->buffer[buffer].likely;
}

void assert_mib(uint64_t bytes, uint64_t hundredths) {
    uint64_t thousandths = (bytes * 1000 + (1U << 19)) >> 20, wanted = hundredths * 10;

    assert_in_range(thousandths, wanted > 11 ? wanted - 11 : 0, wanted + 11);
}
