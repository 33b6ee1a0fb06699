#include "planner/import/finish_parts.h"

#include <inttypes.h>

#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/import/engine_args.h"
#include "planner/import/engine_profile.h"
#include "planner/model/requantise.h"

/* ---- precision ---- */

static bool is_plain(enum vp_dtype dtype) {
    return dtype == VP_DTYPE_BF16 || dtype == VP_DTYPE_FP16 || dtype == VP_DTYPE_FP32;
}

static uint64_t width_of(enum vp_dtype dtype) { return vp_dtype_bytes(dtype, vp_sum(1)).v; }

static void resolve_compute(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_precision *p = &s->precision;
    enum vp_dtype weights = vp_dtype_parse(p->weights); /* "checkpoint" is none */
    enum vp_dtype model = s->model->dtype;
    if (p->compute != VP_DTYPE_UNSET) {
        /* The type is given, so the weights take it too; half of them cannot stay 32 bit wide. */
        if (is_plain(weights) && width_of(weights) != width_of(p->compute)) {
            vp_diag_add(ctx->diags, VP_D_CONTRADICTION, &s->source[VP_F_WEIGHTS].pos,
                        "precision.weights is %s, but the compute type is %s", p->weights,
                        vp_dtype_name(p->compute));
            vp_diag_hint(ctx->diags, "vllm has one type for both (dtype)");
        }
        return;
    }
    p->compute = model;
    const char *why = "the type that the model's description names";
    if (is_plain(weights)) {
        p->compute = weights;
        why = "vllm computes in the type of unquantised weights";
    } else if (model == VP_DTYPE_FP32) {
        p->compute = VP_DTYPE_BF16;
        why = "vllm loads fp32 models in 16 bit unless dtype says otherwise";
    } else if (!is_plain(model)) {
        p->compute = VP_DTYPE_BF16;
        why = "the model's description names no type to compute in";
    }
    vp_finish_note(s, VP_F_COMPUTE, VP_ORIGIN_DERIVED, why);
}

/* mamba_ssm_cache_dtype: the recurrent state's type, whatever the config says. */
static void set_state_dtype(struct vp_scenario *s) {
    const char *text = vp_engine_arg(&s->engine, "mamba_ssm_cache_dtype");
    enum vp_dtype dtype = text ? vp_dtype_parse(text) : VP_DTYPE_UNSET;
    for (uint32_t i = 0; dtype != VP_DTYPE_UNSET && i < s->model->block_count; i++) {
        struct vp_block *block = &s->model->blocks[i];
        if (block->attention.kind == VP_ATTENTION_LINEAR)
            block->attention.state_dtype = dtype;
        if (block->second.kind == VP_ATTENTION_LINEAR)
            block->second.state_dtype = dtype;
    }
}

enum vp_status vp_finish_precision(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_precision *p = &s->precision;
    enum vp_status status = VP_OK;
    if (!vp_finish_is_given(s, VP_F_WEIGHTS)) {
        p->weights = "checkpoint";
        vp_finish_note(s, VP_F_WEIGHTS, VP_ORIGIN_DEFAULT, "as stored in the checkpoint");
    }
    resolve_compute(ctx, s);
    if (p->kv_cache == VP_DTYPE_UNSET) {
        p->kv_cache = p->compute;
        vp_finish_note(s, VP_F_KV_DTYPE, VP_ORIGIN_DERIVED, "auto: the compute type");
    }
    if (!vp_name_eq(p->weights, "checkpoint"))
        status = vp_model_requantise(ctx, s);
    vp_model_load_plain_as(s->model, p->compute);
    set_state_dtype(s);
    return status;
}

/* ---- version ---- */

enum vp_status vp_finish_version(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_engine *engine = &s->engine;
    if (!vp_finish_is_given(s, VP_F_VERSION)) {
        enum vp_status status = vp_engine_newest(ctx, &engine->version_text, engine->name);
        if (status != VP_OK)
            return status;
        vp_finish_note(s, VP_F_VERSION, VP_ORIGIN_DEFAULT,
                       "the newest version whose accounting is known");
    }
    if (vp_version_parse(&engine->version, engine->version_text))
        return VP_OK;
    vp_diag_add(ctx->diags, VP_D_VERSION_UNKNOWN, &s->source[VP_F_VERSION].pos,
                "engine.version \"%.100s\" cannot be read", engine->version_text);
    vp_diag_hint(ctx->diags, "write it as the log prints it: 0.19, 0.13.0rc2.dev112+g763963aa7");
    return VP_ERR_INPUT;
}

/* ---- lengths ---- */

static void resolve_max_model_len(struct vp_ctx *ctx, struct vp_scenario *s) {
    uint64_t *length = &s->engine.max_model_len, model = s->model->max_position;
    if (vp_finish_is_given(s, VP_F_CONTEXT)) {
        const char *why = "serve.context";
        if (model > 0)
            why = vp_arena_printf(ctx->arena,
                                  "serve.context; vllm serve alone would take the model's %" PRIu64,
                                  model);
        vp_finish_number(s, VP_F_MAX_MODEL_LEN, length, s->serve.context, VP_ORIGIN_DERIVED, why);
    } else if (model > 0) {
        vp_finish_number(s, VP_F_MAX_MODEL_LEN, length, model, VP_ORIGIN_DEFAULT,
                         "the model's own limit, as vllm takes it");
    } else if (!vp_finish_is_given(s, VP_F_MAX_MODEL_LEN)) {
        vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, &s->model->pos,
                    "serve.context is missing, and the model's description names no limit");
        vp_diag_hint(ctx->diags, "--context 8192, or serve: {context: 8192}");
    }
}

static void resolve_context(struct vp_ctx *ctx, struct vp_scenario *s) {
    enum { USUAL = 8192 };
    uint64_t *context = &s->serve.context, limit = s->engine.max_model_len;
    if (vp_finish_is_given(s, VP_F_MAX_MODEL_LEN))
        vp_finish_number(s, VP_F_CONTEXT, context, limit, VP_ORIGIN_DERIVED,
                         "engine.args.max_model_len");
    else
        vp_finish_number(s, VP_F_CONTEXT, context, vp_min(limit, USUAL), VP_ORIGIN_DEFAULT,
                         limit < USUAL
                             ? "the longest sequence that the engine admits"
                             : vp_arena_printf(ctx->arena,
                                               "an assumed workload; the engine admits %" PRIu64,
                                               limit));
}

/* How a message names one of the two lengths. */
static const char *show_length(struct vp_ctx *ctx, const struct vp_scenario *s,
                               enum vp_field field) {
    const struct vp_source *source = &s->source[field];
    const char *path = vp_field_info(field)->path;
    const char *key = source->origin == VP_ORIGIN_FLAG && source->key ? source->key : path;
    if (!source->pos.line)
        return key;
    return vp_arena_printf(ctx->arena, "%s (line %" PRIu32 ")", key, source->pos.line);
}

void vp_finish_lengths(struct vp_ctx *ctx, struct vp_scenario *s) {
    resolve_max_model_len(ctx, s);
    if (s->engine.max_model_len == 0)
        return;
    resolve_context(ctx, s);
    uint64_t context = s->serve.context, limit = s->engine.max_model_len;
    uint64_t model = s->model->max_position;
    if (context > limit) {
        vp_diag_add(ctx->diags, VP_D_CONTRADICTION, &s->source[VP_F_CONTEXT].pos,
                    "%s is %" PRIu64 ", but %s admits %" PRIu64 " at most",
                    show_length(ctx, s, VP_F_CONTEXT), context,
                    show_length(ctx, s, VP_F_MAX_MODEL_LEN), limit);
        vp_diag_hint(ctx->diags, "raise max_model_len or lower the context");
    }
    if (model > 0 && vp_max(context, limit) > model) {
        enum vp_field field = context > model ? VP_F_CONTEXT : VP_F_MAX_MODEL_LEN;
        vp_diag_add(ctx->diags, VP_D_CONTEXT_BEYOND, &s->source[field].pos,
                    "%s is %" PRIu64 ", the model was trained for %" PRIu64,
                    show_length(ctx, s, field), vp_max(context, limit), model);
        uint64_t tenths = vp_ceil_div(vp_sum_mul(vp_sum(vp_max(context, limit)), 10).v, model);
        vp_diag_hint(ctx->diags,
                     "vllm refuses this unless VLLM_ALLOW_LONG_MAX_MODEL_LEN is set, or the config "
                     "scales its RoPE by %" PRIu64 ".%" PRIu64 " or more: rope_scaling {rope_type: "
                     "yarn, factor: %" PRIu64 ".%" PRIu64 ", original_max_position_embeddings: "
                     "%" PRIu64 "}",
                     tenths / 10, tenths % 10, tenths / 10, tenths % 10, model);
    }
}

/* ---- engine defaults ---- */

static void set_flag(struct vp_scenario *s, enum vp_field field, bool *member, bool value,
                     const char *why) {
    if (vp_finish_is_given(s, field))
        return;
    *member = value;
    vp_finish_note(s, field, VP_ORIGIN_DEFAULT, why);
}

static bool has_block(const struct vp_model *model, bool (*is)(const struct vp_attention *)) {
    for (uint32_t i = 0; i < model->block_count; i++)
        if (is(&model->blocks[i].attention) || is(&model->blocks[i].second))
            return true;
    return false;
}

static bool is_linear(const struct vp_attention *a) { return a->kind == VP_ATTENTION_LINEAR; }

static bool is_windowed(const struct vp_attention *a) { return a->window > 0; }

/* Before V1, vLLM turned chunked prefill on by itself only for long text models without sliding
 * windows (0.4 to 0.10, engine/arg_utils.py). */
static void resolve_chunked(struct vp_scenario *s) {
    enum { LONG_TOKENS = 32768 };
    struct vp_engine *e = &s->engine;
    bool early = e->rules.budget <= VP_VLLM_V0 && !e->rules.default_chunked;
    bool long_text = e->max_model_len > LONG_TOKENS && !s->model->multimodal &&
                     !has_block(s->model, is_windowed);
    if (early && long_text)
        set_flag(s, VP_F_CHUNKED_PREFILL, &e->chunked_prefill, true,
                 "this version turns it on above 32768 tokens of max_model_len");
    else
        set_flag(s, VP_F_CHUNKED_PREFILL, &e->chunked_prefill, e->rules.default_chunked,
                 "the default of this version");
}

static void resolve_batch(struct vp_ctx *ctx, struct vp_scenario *s) {
    static const char ON_CARD[] = "the default of vllm serve in this version on this card";
    struct vp_engine *e = &s->engine;
    bool seqs_given = vp_finish_is_given(s, VP_F_MAX_NUM_SEQS);
    uint64_t tokens = e->rules.max_batched_tokens;
    const char *why = ON_CARD;
    if (!e->chunked_prefill && e->max_model_len > tokens) {
        tokens = e->max_model_len;
        why = "max_model_len: without chunked prefill a prompt is one batch";
    }
    vp_finish_number(s, VP_F_BATCHED_TOKENS, &e->max_batched_tokens, tokens, VP_ORIGIN_DEFAULT,
                     why);
    bool fewer = e->max_batched_tokens < e->rules.max_num_seqs;
    vp_finish_number(s, VP_F_MAX_NUM_SEQS, &e->max_num_seqs,
                     fewer ? e->max_batched_tokens : e->rules.max_num_seqs,
                     fewer ? VP_ORIGIN_DERIVED : VP_ORIGIN_DEFAULT,
                     fewer ? "max_num_batched_tokens: each sequence takes one" : ON_CARD);
    if (!vp_finish_is_given(s, VP_F_BATCHED_TOKENS))
        return;
    const struct vp_pos *pos = &s->source[VP_F_BATCHED_TOKENS].pos;
    if (seqs_given && e->max_batched_tokens < e->max_num_seqs)
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, pos,
                    "max_num_batched_tokens %" PRIu64 " is less than max_num_seqs %" PRIu64
                    ": vllm refuses to start",
                    e->max_batched_tokens, e->max_num_seqs);
    if (!e->chunked_prefill && e->max_batched_tokens < e->max_model_len)
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, pos,
                    "max_num_batched_tokens %" PRIu64 " is less than max_model_len %" PRIu64
                    " without chunked prefill: vllm refuses to start",
                    e->max_batched_tokens, e->max_model_len);
}

void vp_finish_engine(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_engine *e = &s->engine;
    bool linear = has_block(s->model, is_linear);
    vp_finish_number(s, VP_F_UTILIZATION, &e->utilization_ppb, e->rules.utilization_ppb,
                     VP_ORIGIN_DEFAULT, "the default of this version");
    vp_finish_number(s, VP_F_BLOCK_SIZE, &e->block_size, e->rules.block_size, VP_ORIGIN_DEFAULT,
                     "the default of this version on this card");
    set_flag(s, VP_F_EAGER, &e->enforce_eager, false, "graphs are captured");
    set_flag(s, VP_F_HYBRID_OFF, &e->hybrid_off, false, "the default of vllm serve");
    set_flag(s, VP_F_PREFIX_CACHING, &e->prefix_caching, e->rules.default_prefix_caching && !linear,
             linear ? "vllm turns it on for models with recurrent layers only when asked to"
                    : "the default of this version");
    resolve_chunked(s);
    resolve_batch(ctx, s);
}
