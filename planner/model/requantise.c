#include "planner/model/requantise.h"

#include <stdio.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/model/scheme_format.h"

static bool is_plain(const struct vp_scheme *scheme) {
    return scheme->scale == VP_SCALE_NONE && vp_dtype_is_plain(scheme->data);
}

static const struct vp_scheme *scheme_of(const struct vp_model *model, uint32_t block, int role) {
    return &model->schemes[model->blocks[block].scheme[role]];
}

bool vp_model_is_quantised(const struct vp_model *model) {
    for (uint32_t b = 0; b < model->block_count; b++)
        for (int role = 0; role < VP_ROLE_COUNT; role++)
            if (!is_plain(scheme_of(model, b, role)))
                return true;
    return false;
}

bool vp_model_has_fp8(const struct vp_model *model) {
    for (uint32_t b = 0; b < model->block_count; b++)
        for (int role = 0; role < VP_ROLE_COUNT; role++)
            if (scheme_of(model, b, role)->data == VP_DTYPE_FP8)
                return true;
    return false;
}

/* precision.keep as it is when nobody gave it: what engines leave in 16 bit. */
static bool is_default_keep(const struct vp_precision *precision) {
    for (int i = 0; i < VP_KEEP_COUNT; i++) {
        bool usual = i == VP_CLASS_EMBEDDING || i == VP_CLASS_LM_HEAD || i == VP_CLASS_NORM ||
                     i == VP_CLASS_ROUTER;
        if (precision->keep[i] != usual)
            return false;
    }
    return true;
}

/* llama.cpp's quantizer leaves vectors and routers alone, and the embedding and the head only when
 * told to. */
static bool is_kept(const struct vp_precision *precision, enum vp_class class_, bool ggml) {
    if (!ggml)
        return precision->keep[class_];
    return class_ == VP_CLASS_ROUTER || class_ == VP_CLASS_NORM ||
           (precision->keep[class_] && !is_default_keep(precision));
}

/* Norms, convolutions and encoders stay as they are whatever precision.keep says: they are not
 * Linear modules, and no engine quantises them while loading. */
static bool is_repointed(const struct vp_precision *precision, enum vp_class class_, bool ggml) {
    bool on_demand =
        class_ == VP_CLASS_EMBEDDING || class_ == VP_CLASS_LM_HEAD || class_ == VP_CLASS_ROUTER;
    return (vp_class_quantised(class_) || on_demand) && !is_kept(precision, class_, ggml);
}

struct change {
    struct vp_scheme scheme;
    uint32_t index; /* in the model's list */
    bool plain, changed, ggml;
    const struct vp_precision *precision;
};

/* Group sizes, blocks and zero points of the checkpoint beat the format's usual ones. */
static bool is_same_format(const struct vp_scheme *stored, const struct change *change) {
    uint64_t group = change->precision->group_size;
    return stored->data == change->scheme.data && (!group || stored->group == group);
}

static void repoint(struct change *change, const struct vp_model *model, uint8_t *scheme,
                    enum vp_class class_) {
    const struct vp_scheme *now = &model->schemes[*scheme];
    if (!change->plain && !is_repointed(change->precision, class_, change->ggml))
        return;
    if (is_same_format(now, change) || *scheme == change->index)
        return;
    *scheme = (uint8_t)change->index;
    change->changed = true;
}

/* Everything that the checkpoint quantises has that format already: what it left in 16 bit stays
 * there. */
static bool is_stored_so(const struct vp_model *model, const struct change *change) {
    bool some = false;
    for (uint32_t b = 0; b < model->block_count; b++) {
        for (int role = 0; role < VP_ROLE_COUNT; role++) {
            const struct vp_scheme *scheme = scheme_of(model, b, role);
            if (is_plain(scheme))
                continue;
            if (!is_same_format(scheme, change))
                return false;
            some = true;
        }
    }
    return some;
}

/* "Q4_K_M" and its like are what llama-quantize calls a file whose tensors differ. */
static bool is_mix(const char *name) {
    static const char *const MIXES[] = {"q2_k_s", "q3_k_s", "q3_k_m", "q3_k_l",
                                        "q4_k_s", "q4_k_m", "q5_k_s", "q5_k_m"};
    for (size_t i = 0; i < sizeof MIXES / sizeof *MIXES; i++)
        if (vp_name_eq(name, MIXES[i]))
            return true;
    return false;
}

static enum vp_status unknown_format(struct vp_ctx *ctx, const struct vp_scenario *scenario) {
    static const char *const NAMES[] = {"checkpoint", "fp32", "bf16", "fp16",  "fp8",
                                        "int8",       "int4", "nf4",  "mxfp4", "nvfp4"};
    size_t count = sizeof NAMES / sizeof *NAMES;
    struct vp_buf all = {.arena = ctx->arena};
    for (size_t i = 0; i < count; i++)
        vp_buf_printf(&all, "%s%s", i ? ", " : "", NAMES[i]);
    vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &scenario->source[VP_F_WEIGHTS].pos,
                "precision.weights: \"%.100s\" is no weight format of %s",
                scenario->precision.weights, scenario->engine.name);
    if (is_mix(scenario->precision.weights))
        vp_diag_hint(ctx->diags, "a mix of types: name the GGUF file, or one type (%.*s)", 4,
                     scenario->precision.weights);
    else
        vp_diag_hint(ctx->diags, "known are %s and ggml's types (q8_0, q4_k, iq4_xs, ...)",
                     vp_buf_text(&all));
    return VP_ERR_INPUT;
}

/* The table of a file may be shared by many variants of a scenario. */
static struct vp_gguf_table *own_table(struct vp_ctx *ctx, const struct vp_gguf_table *table) {
    struct vp_gguf_table *own = VP_NEW(ctx->arena, struct vp_gguf_table);
    *own = *table;
    own->tensor = VP_NEW_ARRAY(ctx->arena, table->count, struct vp_gguf_tensor);
    if (table->count > 0)
        memcpy(own->tensor, table->tensor, table->count * sizeof *own->tensor);
    return own;
}

/* The file's tensors as the quantizer would store them instead. */
static bool retype(struct vp_gguf_table *table, const struct change *change) {
    bool ok = true;
    for (uint32_t i = 0; i < table->count; i++) {
        struct vp_gguf_tensor *t = &table->tensor[i];
        bool kept =
            (t->kind == VP_GGUF_EMBEDDING &&
             is_kept(change->precision, VP_CLASS_EMBEDDING, change->ggml)) ||
            (t->kind == VP_GGUF_HEAD && is_kept(change->precision, VP_CLASS_LM_HEAD, change->ggml));
        if (t->place == VP_GGUF_EXTRA || t->kind == VP_GGUF_VECTOR || kept)
            continue;
        t->type = vp_gguf_stored_type(t, change->scheme.data);
        ok &= vp_gguf_measure(t);
    }
    return ok && vp_gguf_total(table);
}

enum vp_status vp_model_requantise(struct vp_ctx *ctx, struct vp_scenario *scenario) {
    const struct vp_precision *precision = &scenario->precision;
    struct vp_model *model = scenario->model;
    struct change change = {.precision = precision};
    enum vp_dtype dtype = vp_dtype_parse(precision->weights);
    model->stored_quantised = vp_model_is_quantised(model);
    /* "bfloat16" and "fp8_e4m3" are bf16 and fp8 */
    const char *name = vp_dtype_is_plain(dtype) || dtype == VP_DTYPE_FP8 ? vp_dtype_name(dtype)
                                                                         : precision->weights;
    if (!vp_scheme_format(&change.scheme, name, precision->group_size, precision->double_quant))
        return unknown_format(ctx, scenario);
    change.plain = is_plain(&change.scheme);
    change.ggml = vp_dtype_is_ggml(dtype) || (vp_engine_is_llama(scenario->engine.kind) &&
                                              (dtype == VP_DTYPE_MXFP4 || dtype == VP_DTYPE_NVFP4));
    if (!change.plain && is_stored_so(model, &change))
        return VP_OK;
    change.index = vp_model_scheme(model, &change.scheme);
    if (change.index >= VP_MAX_SCHEMES) {
        vp_diag_add(ctx->diags, VP_D_CAP, &scenario->source[VP_F_WEIGHTS].pos,
                    "the model has more weight formats than the cap of %d", VP_MAX_SCHEMES);
        return VP_ERR_INPUT;
    }
    for (uint32_t b = 0; b < model->block_count; b++)
        for (int role = 0; role < VP_ROLE_COUNT; role++)
            repoint(&change, model, &model->blocks[b].scheme[role],
                    vp_role_class((enum vp_role)role));
    repoint(&change, model, &model->embedding_scheme, VP_CLASS_EMBEDDING);
    repoint(&change, model, &model->head_scheme, VP_CLASS_LM_HEAD);
    for (uint32_t i = 0; i < model->extra_count; i++) {
        struct vp_extra *extra = &model->extras[i];
        repoint(&change, model, &extra->scheme, extra->class_);
        for (int role = 0; extra->layer && role < VP_ROLE_COUNT; role++)
            repoint(&change, model, &extra->layer->scheme[role], vp_role_class((enum vp_role)role));
    }
    if (change.changed)
        model->checkpoint.known = false; /* the sum of the stored tensors no longer holds */
    if (model->gguf)
        model->gguf = own_table(ctx, model->gguf);
    if (model->gguf && !retype(model->gguf, &change)) {
        vp_diag_add(ctx->diags, VP_D_OVERFLOW, &scenario->source[VP_F_WEIGHTS].pos,
                    "the tensors' sizes add up to over 64 bits");
        return VP_ERR_INPUT;
    }
    return VP_OK;
}

void vp_model_load_plain_as(struct vp_model *model, enum vp_dtype compute) {
    struct vp_sum one = vp_sum(1);
    for (uint32_t i = 0; i < model->scheme_count; i++) {
        struct vp_scheme *scheme = &model->schemes[i];
        if (!is_plain(scheme) || scheme->data == compute)
            continue;
        if (vp_dtype_bytes(scheme->data, one).v != vp_dtype_bytes(compute, one).v)
            model->checkpoint.known = false;
        scheme->data = compute;
        snprintf(scheme->name, sizeof scheme->name, "%s", vp_dtype_name(compute));
    }
}
