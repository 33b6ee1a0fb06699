#include "planner/import/gguf_tensors.h"

#include <string.h>

#include "planner/base/text.h"

static const char *const FACTS[VP_GGUF_FACT_COUNT] = {
#define X(name, text) [VP_GGUF_FACT_##name] = text,
    VP_GGUF_FACTS
#undef X
};

/* Norms of the model's width that a block may have, under all their names. */
static const char *const NORMS[] = {
    "attn_norm",       "attn_norm_2",       "post_attention_norm", "ffn_norm",
    "post_ffw_norm",   "attn_output_norm",  "post_ffw_norm_1",     "pre_ffw_norm_2",
    "post_ffw_norm_2", "layer_output_norm", "post_norm",
};

static const struct {
    const char *stem;
    uint8_t length;
    enum vp_role role;
} ROLES[] = {
#define X(stem, kind, role) {stem, sizeof stem - 1, VP_ROLE_##role},
#include "planner/model/gguf_names.def"
#undef X
};

uint32_t vp_gguf_tensors_blocks(const struct vp_gguf *file) {
    uint32_t blocks = 0;
    for (uint32_t i = 0; i < file->tensor_count; i++) {
        struct vp_gguf_tensor t = {.name = file->tensors[i].name, .dims = 1};
        vp_gguf_classify(&t, UINT32_MAX);
        if (t.place == VP_GGUF_BLOCK && (uint32_t)t.layer >= blocks)
            blocks = (uint32_t)t.layer + 1;
    }
    return blocks;
}

/* ---- facts ---- */

static void note_block(struct vp_gguf_layer *layer, const struct vp_gguf_tensor *t,
                       uint64_t hidden) {
    size_t n;
    const char *stem = vp_gguf_stem(&n, t->name);
    if (!stem)
        return;
    layer->elements += t->elements; /* the table's sum was checked */
    for (int i = 0; i < VP_GGUF_FACT_COUNT; i++)
        if (strcmp(stem, FACTS[i]) == 0)
            layer->fact[i] = t;
    if (t->elements != hidden || vp_text_ends(t->name, ".bias"))
        return;
    for (size_t i = 0; i < sizeof NORMS / sizeof *NORMS; i++)
        layer->norms += strlen(NORMS[i]) == n && memcmp(stem, NORMS[i], n) == 0;
}

static void note_end(struct vp_gguf_facts *facts, const struct vp_gguf_tensor *t) {
    const struct {
        const char *name;
        const struct vp_gguf_tensor **to;
    } ends[] = {
        {"token_embd.weight", &facts->embedding},
        {"output.weight", &facts->output},
        {"output.bias", &facts->output_bias},
        {"output_norm.weight", &facts->output_norm},
        {"position_embd.weight", &facts->positions},
        {"token_types.weight", &facts->token_types},
        {"token_embd_norm.weight", &facts->embedding_norm},
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (strcmp(t->name, ends[i].name) == 0)
            *ends[i].to = t;
}

/* Neighbours are mostly of one type: its name is not looked up again. */
static void fill(struct vp_gguf_tensor *t, const struct vp_gguf_entry *entry,
                 const struct vp_gguf_entry *last, uint32_t layers) {
    bool same = last && last->type == entry->type;
    *t = (struct vp_gguf_tensor){
        .name = entry->name,
        .type = same ? t[-1].type : vp_dtype_parse(entry->type->name),
        .dims = entry->dims,
        .elements = entry->elements,
        .bytes = entry->bytes,
        .offset = entry->offset,
        .part = entry->part,
    };
    memcpy(t->ne, entry->ne, sizeof t->ne);
    vp_gguf_classify(t, layers);
}

enum vp_status vp_gguf_tensors_attach(struct vp_ctx *ctx, struct vp_model *model,
                                      struct vp_gguf_facts *out, const struct vp_gguf *file,
                                      const char *arch, uint32_t layers) {
    struct vp_gguf_table *table = VP_NEW(ctx->arena, struct vp_gguf_table);
    table->header_only = file->header_only;
    table->source = file->source;
    table->architecture = arch;
    table->alignment = file->alignment;
    table->parts = file->parts;
    table->tensor = VP_NEW_ARRAY(ctx->arena, file->tensor_count, struct vp_gguf_tensor);
    table->count = file->tensor_count;
    for (uint32_t i = 0; i < file->tensor_count; i++)
        fill(&table->tensor[i], &file->tensors[i], i ? &file->tensors[i - 1] : NULL, layers);
    if (!vp_gguf_total(table)) {
        struct vp_pos pos = {.file = file->source};
        vp_diag_add(ctx->diags, VP_D_OVERFLOW, &pos, "the tensors' sizes add up to over 64 bits");
        return VP_ERR_INPUT;
    }
    *out = (struct vp_gguf_facts){.layers = layers};
    out->layer = VP_NEW_ARRAY(ctx->arena, layers, struct vp_gguf_layer);
    for (uint32_t i = 0; i < table->count; i++)
        note_end(out, &table->tensor[i]);
    for (uint32_t i = 0; i < table->count; i++) {
        const struct vp_gguf_tensor *t = &table->tensor[i];
        if (t->place == VP_GGUF_BLOCK && (uint32_t)t->layer < layers)
            note_block(&out->layer[t->layer], t, model->hidden);
    }
    model->gguf = table;
    return VP_OK;
}

/* ---- schemes ---- */

static bool index_scheme(struct vp_model *model, uint8_t *out, enum vp_dtype type) {
    struct vp_scheme scheme = {.data = type};
    strncpy(scheme.name, vp_dtype_name(type), sizeof scheme.name - 1);
    uint32_t index = vp_model_scheme(model, &scheme);
    *out = (uint8_t)index;
    return index < VP_MAX_SCHEMES;
}

static bool set_block(struct vp_model *model, struct vp_block *block,
                      const struct vp_gguf_tensor *t) {
    size_t n;
    const char *stem = vp_gguf_stem(&n, t->name);
    if (!stem || vp_text_ends(t->name, ".bias"))
        return true;
    for (size_t i = 0; i < sizeof ROLES / sizeof *ROLES; i++)
        if (ROLES[i].length == n && memcmp(ROLES[i].stem, stem, n) == 0)
            return index_scheme(model, &block->scheme[ROLES[i].role], t->type);
    return true;
}

/* Fused forms stand for the roles that they hold. */
static void spread(struct vp_block *block, const struct vp_gguf_layer *facts) {
    uint8_t *scheme = block->scheme;
    if (!facts->fact[VP_GGUF_FACT_ATTN_V])
        scheme[VP_ROLE_K] = scheme[VP_ROLE_V] = scheme[VP_ROLE_Q];
    if (!facts->fact[VP_GGUF_FACT_FFN_GATE])
        scheme[VP_ROLE_GATE] = scheme[VP_ROLE_UP];
    if (facts->fact[VP_GGUF_FACT_EXPERT_GATE_UP])
        scheme[VP_ROLE_EXPERT_UP] = scheme[VP_ROLE_EXPERT_GATE];
}

enum vp_status vp_gguf_tensors_schemes(struct vp_ctx *ctx, struct vp_model *model,
                                       const struct vp_gguf_facts *facts, struct vp_block *blocks) {
    const struct vp_gguf_table *table = model->gguf;
    uint8_t plain;
    bool room = index_scheme(model, &plain, VP_DTYPE_FP32); /* 0: vectors, what has no matrix */
    for (uint32_t i = 0; i < table->count && room; i++) {
        const struct vp_gguf_tensor *t = &table->tensor[i];
        if (t->place == VP_GGUF_BLOCK && (uint32_t)t->layer < facts->layers)
            room = set_block(model, &blocks[t->layer], t);
    }
    for (uint32_t i = 0; i < facts->layers; i++)
        spread(&blocks[i], &facts->layer[i]);
    if (facts->embedding)
        room = room && index_scheme(model, &model->embedding_scheme, facts->embedding->type);
    if (facts->output)
        room = room && index_scheme(model, &model->head_scheme, facts->output->type);
    else
        model->head_scheme = model->embedding_scheme;
    if (room)
        return VP_OK;
    vp_diag_add(ctx->diags, VP_D_CAP, &model->pos,
                "the file stores its tensors in more ways than the cap of %d", VP_MAX_SCHEMES);
    return VP_ERR_INPUT;
}
