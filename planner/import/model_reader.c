#include "planner/import/model_reader.h"

#include <string.h>

#include "planner/base/memo.h"
#include "planner/base/text.h"
#include "planner/import/blocks.h"
#include "planner/import/checkpoint.h"
#include "planner/import/description.h"
#include "planner/import/gguf_reader.h"
#include "planner/import/hf_config.h"
#include "planner/import/profile.h"
#include "planner/model/requantise.h"

/* ---- tensors ---- */

/* The tensors of several files as one table. */
static void join(struct vp_ctx *ctx, struct vp_tensors *out, const struct vp_tensors *parts,
                 size_t count) {
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += parts[i].count;
    out->items = VP_NEW_ARRAY(ctx->arena, n, struct vp_tensor);
    for (size_t i = 0; i < count; i++) {
        if (parts[i].count)
            memcpy(out->items + out->count, parts[i].items,
                   parts[i].count * sizeof *parts[i].items);
        out->count += parts[i].count;
        out->total_bytes += parts[i].total_bytes; /* each within its file's length */
        out->header_only |= parts[i].header_only;
    }
}

static enum vp_status read_tensors(struct vp_ctx *ctx, struct vp_tensors *out,
                                   const struct vp_description *d) {
    if (d->index) {
        enum vp_status status = vp_safetensors_read_index(ctx, out, d->index);
        out->source = d->tensor_source;
        return status;
    }
    struct vp_tensors *parts = VP_NEW_ARRAY(ctx->arena, d->file_count, struct vp_tensors);
    *out = (struct vp_tensors){.source = d->tensor_source};
    for (size_t i = 0; i < d->file_count; i++) {
        enum vp_status status = vp_safetensors_read(ctx, &parts[i], d->files[i]);
        if (status != VP_OK)
            return status;
    }
    join(ctx, out, parts, d->file_count);
    return VP_OK;
}

static enum vp_status attach_tensors(struct vp_ctx *ctx, struct vp_model *model,
                                     const struct vp_description *d, bool complete) {
    struct vp_tensors tensors;
    if (!d->index && d->file_count == 0)
        return VP_OK;
    enum vp_status status = read_tensors(ctx, &tensors, d); /* its faults are told in any case */
    if (status != VP_OK || !complete)
        return status;
    if (tensors.header_only) {
        struct vp_pos pos = {.file = tensors.source};
        vp_diag_add(ctx->diags, VP_D_HEADER_ONLY, &pos,
                    "%s holds headers only; the tensors' data is not there", tensors.source);
    }
    /* Computing the bytes is not this layer's: the comparison is made by the plan. */
    return vp_checkpoint_attach(ctx, model, &tensors, 0);
}

/* ---- the name ---- */

/* Whether a word stands in the name between separators: "fp8" in "Qwen3-8B-FP8", not in "fp80". */
static bool has_word(const char *name, const char *word) {
    size_t n = strlen(word);
    for (const char *p = name; *p; p++) {
        size_t i = 0;
        while (i < n && (p[i] | 0x20) == word[i])
            i++;
        bool starts = p == name || strchr("-_./ ", p[-1]);
        if (i == n && starts && (!p[n] || strchr("-_./ ", p[n])))
            return true;
    }
    return false;
}

static void check_name(struct vp_ctx *ctx, const struct vp_model *model, const char *name) {
    static const char *const WORDS[] = {"fp8",  "fp4",   "nvfp4", "mxfp4", "awq",  "gptq", "int8",
                                        "int4", "w4a16", "w8a8",  "w8a16", "4bit", "8bit", "bnb"};
    if (!name || vp_model_is_quantised(model))
        return;
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
        if (!has_word(name, WORDS[i]))
            continue;
        vp_diag_add(ctx->diags, VP_D_NAME_SAYS_QUANT, &model->pos,
                    "the name %s says %s, but its description has no quantization_config", name,
                    WORDS[i]);
        vp_diag_hint(ctx->diags, "its weights count as %s; say precision.weights if that is wrong",
                     vp_dtype_name(model->dtype));
        return;
    }
}

/* ---- the whole ---- */

/* `tie_word_embeddings` beside `gguf:` says what the keys do not: 1, 0 or -1 for nothing. */
static int said_tied(const struct vp_node *config) {
    bool tied;
    return vp_node_bool(&tied, vp_node_get(config, "tie_word_embeddings")) ? tied : -1;
}

static void warn_header_only(struct vp_ctx *ctx, const struct vp_gguf *file) {
    struct vp_pos pos = {.file = file->source};
    if (file->header_only)
        vp_diag_add(ctx->diags, VP_D_HEADER_ONLY, &pos,
                    "the file ends after its header; sizes are taken from the header");
}

static enum vp_status build(struct vp_ctx *ctx, struct vp_model *model,
                            const struct vp_description *d) {
    const struct vp_node *gguf = vp_node_get(d->config, "gguf");
    if (d->gguf)
        warn_header_only(ctx, d->gguf);
    if (gguf)
        return vp_gguf_model(ctx, model, gguf, d->gguf, said_tied(d->config));
    if (vp_node_get(d->config, "blocks"))
        return vp_blocks_read(ctx, model, d->config);
    return vp_hf_read(ctx, model, d->config, d->hf_quant);
}

static enum vp_status read_model(struct vp_ctx *ctx, struct vp_model **out,
                                 const struct vp_node *node, const char *base) {
    struct vp_description d;
    *out = NULL;
    enum vp_status status = vp_description_find(ctx, &d, node, base);
    if (status != VP_OK)
        return status;
    struct vp_model *model = VP_NEW(ctx->arena, struct vp_model);
    status = build(ctx, model, &d);
    vp_node_bool(&model->gradient_checkpointing, vp_node_get(d.config, "gradient_checkpointing"));
    if (!model->pos.line)
        model->pos = d.config->pos;
    if (d.name)
        model->name = d.name;
    if (!model->name)
        model->name = model->model_type ? model->model_type : "model";
    if (status == VP_OK)
        status = vp_model_validate(ctx, model);
    enum vp_status tensors = attach_tensors(ctx, model, &d, status == VP_OK);
    if (tensors == VP_ERR_ENV || status == VP_OK)
        status = tensors;
    if (status != VP_OK)
        return status;
    check_name(ctx, model, model->name);
    *out = model;
    return VP_OK;
}

struct wanted {
    const struct vp_node *node;
    const char *base;
};

static enum vp_status make(struct vp_ctx *ctx, const void **out, const void *from) {
    const struct wanted *wanted = from;
    struct vp_model *model;
    enum vp_status status = read_model(ctx, &model, vp_node_clone(ctx, wanted->node), wanted->base);
    *out = model;
    return status;
}

enum vp_status vp_model_read(struct vp_ctx *ctx, struct vp_model **out, const struct vp_node *node,
                             const char *base) {
    struct wanted wanted = {node, base};
    const void *found;
    const char *key = ctx->memo ? vp_description_key(ctx, "model", node, base) : NULL;
    if (!key)
        return read_model(ctx, out, node, base);
    enum vp_status status = vp_memo_get(ctx, &found, key, make, &wanted);
    *out = status == VP_OK ? vp_model_copy(ctx->arena, found) : NULL;
    return status;
}

enum vp_status vp_model_description(struct vp_ctx *ctx, struct vp_node **out, const char **source,
                                    const struct vp_node *node, const char *base) {
    struct vp_description d;
    enum vp_status status = vp_description_find(ctx, &d, node, base);
    *out = d.config;
    *source = d.source;
    return status;
}

enum vp_status vp_model_profiles(struct vp_ctx *ctx, char ***names, size_t *count) {
    return vp_profile_names(ctx, names, count, &VP_PROFILE_MODEL);
}
