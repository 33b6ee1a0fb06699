#include "planner/import/gguf_reader.h"

#include <stdio.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/import/gguf_parts.h"

static const struct vp_gguf_arch ARCHS[] = {
#define X(name, traits, extra, period, window, mixer)                                              \
    {name, traits, extra, period, window, VP_GM_##mixer},
#include "planner/import/gguf_archs.def"
#undef X
};

enum { ARCH_COUNT = sizeof ARCHS / sizeof *ARCHS };

static const struct vp_gguf_arch *find_arch(const char *name) {
    for (int i = 0; i < ARCH_COUNT; i++)
        if (strcmp(ARCHS[i].name, name) == 0)
            return &ARCHS[i];
    return NULL;
}

/* ---- the whole model ---- */

static uint64_t vocabulary(struct vp_gguf_source *s) {
    const struct vp_gguf_tensor *embedding = s->has_table ? s->facts.embedding : NULL;
    uint64_t tokens = vp_gguf_key_count(&s->k, "tokenizer.ggml.tokens");
    if (embedding)
        return embedding->ne[1];
    if (vp_gguf_key(&s->k, "vocab_size"))
        return vp_gguf_key_size(&s->k, "vocab_size");
    if (tokens == 0)
        vp_gguf_key_size(&s->k, "vocab_size"); /* says that it is missing */
    return tokens;
}

static void read_ends(struct vp_gguf_source *s, int tied) {
    enum { MOST_SEGMENTS = 65536 };
    struct vp_model *model = s->model;
    uint64_t segments = 0;
    unsigned traits = s->arch->traits, extra = s->arch->extra;
    bool encoder = traits & VP_T_ENCODER, head = !encoder || (extra & VP_G_HAS_HEAD);
    model->vocab = vocabulary(s);
    model->max_position = vp_gguf_key_or(&s->k, "context_length", 0);
    model->embedding = true;
    model->lm_head = head;
    model->encoder_only = encoder && !head;
    model->tied = head && (tied >= 0 ? tied == 1 : (traits & VP_T_TIED) != 0);
    model->head_bias = head && (traits & VP_T_HEAD_BIAS);
    model->final_norm = !(extra & VP_G_NO_FINAL_NORM);
    model->final_norm_kind = traits & VP_T_LAYER_NORM   ? VP_NORM_LAYER
                             : traits & VP_T_PLAIN_NORM ? VP_NORM_PLAIN
                                                        : VP_NORM_RMS;
    model->embedding_norm = extra & VP_G_EMBEDDING_NORM;
    model->learned_positions = extra & VP_G_POSITIONS ? model->max_position : 0;
    vp_node_u64(&segments, vp_node_get(s->k.map, "tokenizer.ggml.token_type_count"));
    model->token_types = encoder ? vp_min(segments, MOST_SEGMENTS) : 0;
    model->rotary_positions = 0; /* llama.cpp keeps no tables */
    model->dtype = VP_DTYPE_FP16;
}

static void read_end_tensors(struct vp_gguf_source *s) {
    struct vp_model *model = s->model;
    const struct vp_gguf_facts *facts = &s->facts;
    bool last = s->arch->extra & VP_G_EMBEDDING_NORM_LAST;
    model->embedding = facts->embedding != NULL;
    model->tied = model->lm_head && !facts->output;
    model->head_bias = facts->output_bias != NULL;
    model->final_norm = facts->output_norm || (last && facts->embedding_norm);
    model->embedding_norm = facts->embedding_norm && !last;
    model->learned_positions = facts->positions ? facts->positions->ne[1] : 0;
    model->token_types = facts->token_types ? facts->token_types->ne[1] : 0;
}

/* Matrices of a model without a tensor table are f16 until precision.weights says otherwise. */
static void plain_schemes(struct vp_gguf_source *s, struct vp_block *layers) {
    struct vp_scheme vectors = {.name = "fp32", .data = VP_DTYPE_FP32};
    struct vp_scheme matrices = {.name = "fp16", .data = VP_DTYPE_FP16};
    vp_model_scheme(s->model, &vectors);
    uint8_t index = (uint8_t)vp_model_scheme(s->model, &matrices);
    for (uint32_t i = 0; i < s->k.layers; i++)
        for (int role = 0; role < VP_ROLE_COUNT; role++)
            if (vp_class_quantised(vp_role_class((enum vp_role)role)))
                layers[i].scheme[role] = index;
    s->model->embedding_scheme = s->model->head_scheme = index;
}

/* ---- an architecture that is not known ---- */

/* Its tensors' bytes by place; what it caches is not known. */
static enum vp_status unknown(struct vp_gguf_source *s) {
    struct vp_model *model = s->model;
    struct vp_ctx *ctx = s->k.ctx;
    struct vp_block *layers = VP_NEW_ARRAY(ctx->arena, s->k.layers, struct vp_block);
    model->embedding = s->facts.embedding != NULL;
    model->vocab = model->embedding ? s->facts.embedding->ne[1] : 0;
    model->max_position = vp_gguf_key_or(&s->k, "context_length", 0);
    model->lm_head = model->embedding;
    model->tied = model->lm_head && !s->facts.output;
    model->final_norm = s->facts.output_norm != NULL;
    model->dtype = VP_DTYPE_FP16;
    for (uint32_t i = 0; i < s->k.layers; i++) {
        struct vp_attention *a = &layers[i].attention;
        a->kind = VP_ATTENTION_LINEAR;
        a->linear = VP_LINEAR_GIVEN;
        a->parameters = s->facts.layer[i].elements;
        a->conv_kernel = 1;
    }
    model->cache_unknown = vp_arena_printf(
        ctx->arena, "general.architecture %.60s has no importer, so that its cache is not known",
        s->k.arch);
    enum vp_status status = vp_gguf_tensors_schemes(ctx, model, &s->facts, layers);
    if (status == VP_OK && !s->k.failed)
        vp_model_fold(ctx, model, layers, s->k.layers);
    return s->k.failed ? VP_ERR_INPUT : status;
}

static enum vp_status refuse(struct vp_gguf_source *s, const struct vp_node *node) {
    const char *names[ARCH_COUNT];
    struct vp_diags *diags = s->k.ctx->diags;
    for (int i = 0; i < ARCH_COUNT; i++)
        names[i] = ARCHS[i].name;
    const char *near = vp_text_nearest(s->k.arch, names, ARCH_COUNT);
    vp_diag_add(diags, VP_D_FAMILY_UNKNOWN, &node->pos,
                s->arch ? "the keys of general.architecture %.60s do not tell its tensors"
                        : "general.architecture %.60s has no importer, and nothing is guessed",
                s->k.arch);
    if (near && !s->arch)
        vp_diag_hint(diags, "did you mean %s?", near);
    else
        vp_diag_hint(diags, "name the GGUF file itself: its tensor table gives the weights");
    return VP_ERR_INPUT;
}

/* ---- reading ---- */

static const char *architecture(struct vp_gguf_source *s) {
    const struct vp_node *node = vp_node_get(s->k.map, "general.architecture");
    const char *name = vp_node_text(node);
    if (name && *name)
        return name;
    vp_diag_add(s->k.ctx->diags, VP_D_MODEL_FIELD, node ? &node->pos : &s->k.map->pos,
                "general.architecture is missing in the GGUF metadata");
    return NULL;
}

/* Projectors of images and adapters are GGUF files as well. */
static bool is_model(struct vp_gguf_source *s) {
    const struct vp_node *type = vp_node_get(s->k.map, "general.type");
    const char *text = type ? vp_node_text(type) : NULL;
    bool projector = strcmp(s->k.arch, "clip") == 0 || vp_text_eq(text, "mmproj");
    if (!projector && !vp_text_eq(text, "adapter"))
        return true;
    vp_diag_add(s->k.ctx->diags, VP_D_MODEL_FIELD, &s->k.map->pos,
                projector ? "general.architecture: a projector of images (mmproj), not a model"
                          : "general.type: an adapter (LoRA), not a model");
    vp_diag_hint(s->k.ctx->diags, "name the GGUF file of the language model");
    return false;
}

/* Blocks that run and those of token prediction behind them. */
static bool count_layers(struct vp_gguf_source *s, const struct vp_gguf *file) {
    struct vp_gguf_keys *k = &s->k;
    bool derived = !s->arch && file && !vp_gguf_key(k, "block_count");
    uint64_t all = derived ? vp_gguf_tensors_blocks(file) : vp_gguf_key_size(k, "block_count");
    uint64_t nextn = vp_gguf_key_or(k, "nextn_predict_layers", 0);
    const struct vp_node *node = vp_gguf_key(k, "block_count");
    if (k->failed)
        return false;
    if (all == 0 || all > VP_MAX_LAYERS)
        vp_gguf_key_fault(k, node, "block_count", ": %llu layers; it must be 1 to %d",
                          (unsigned long long)all, VP_MAX_LAYERS);
    else if (nextn >= all)
        vp_gguf_key_fault(k, node, "nextn_predict_layers", " is not below block_count");
    k->all_layers = (uint32_t)all;
    k->layers = (uint32_t)(all - nextn);
    return !k->failed;
}

static enum vp_status read_layers(struct vp_gguf_source *s) {
    struct vp_ctx *ctx = s->k.ctx;
    struct vp_block *layers = VP_NEW_ARRAY(ctx->arena, s->k.layers, struct vp_block);
    enum vp_status status = VP_OK;
    for (uint32_t i = 0; i < s->k.layers && !s->k.failed; i++) {
        if (s->has_table && s->facts.layer[i].elements == 0)
            vp_gguf_key_fault(&s->k, vp_gguf_key(&s->k, "block_count"), "block_count",
                              ": the file has no tensors of block %u", i);
        else
            vp_gguf_fill_layer(s, &layers[i], i);
    }
    if (s->k.failed)
        return VP_ERR_INPUT;
    if (s->has_table)
        status = vp_gguf_tensors_schemes(ctx, s->model, &s->facts, layers);
    else
        plain_schemes(s, layers);
    if (status == VP_OK)
        vp_model_fold(ctx, s->model, layers, s->k.layers);
    return status;
}

static enum vp_status read_known(struct vp_gguf_source *s, int tied) {
    read_ends(s, tied);
    if (s->has_table)
        read_end_tensors(s);
    return s->k.failed ? VP_ERR_INPUT : read_layers(s);
}

enum vp_status vp_gguf_model(struct vp_ctx *ctx, struct vp_model *out, const struct vp_node *map,
                             const struct vp_gguf *file, int tied) {
    struct vp_gguf_source s = {.k = {.ctx = ctx, .map = map}, .model = out};
    enum vp_status status = VP_OK;
    if (map->kind != VP_NODE_MAP) {
        vp_diag_add(ctx->diags, VP_D_MODEL_FIELD, &map->pos,
                    "gguf: must be a map of GGUF metadata keys, not %s",
                    vp_node_kind_name(map->kind));
        return VP_ERR_INPUT;
    }
    out->pos = map->pos;
    out->gguf_keys = true;
    s.k.counts = file ? file->counts : NULL;
    s.k.arch = architecture(&s);
    if (!s.k.arch)
        return VP_ERR_INPUT;
    out->model_type = s.k.arch;
    if (!is_model(&s))
        return VP_ERR_INPUT;
    s.arch = find_arch(s.k.arch);
    s.has_table = file && file->tensor_count > 0;
    if (!s.has_table && (!s.arch || (s.arch->extra & VP_G_TABLE)))
        return refuse(&s, map);
    if (!count_layers(&s, file))
        return VP_ERR_INPUT;
    out->hidden = vp_gguf_key_size(&s.k, "embedding_length");
    if (s.k.failed)
        return VP_ERR_INPUT;
    if (s.has_table)
        status = vp_gguf_tensors_attach(ctx, out, &s.facts, file, s.k.arch, s.k.layers);
    if (status != VP_OK)
        return status;
    return s.arch ? read_known(&s, tied) : unknown(&s);
}
