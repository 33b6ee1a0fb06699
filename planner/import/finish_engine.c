/* Precision, version and lengths, by engine. */
#include "planner/import/finish_parts.h"

#include <inttypes.h>
#include <string.h>

#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/import/engine_args.h"
#include "planner/import/engine_profile.h"
#include "planner/model/requantise.h"

/* ---- precision ---- */

static uint64_t width_of(enum vp_dtype dtype) { return vp_dtype_bytes(dtype, vp_sum(1)).v; }

/* transformers before 5 has fp32 weights unless torch_dtype says something, if only "auto". */
static bool loads_fp32(const struct vp_scenario *s) {
    return s->engine.rules.loads_fp32 && !vp_scenario_is_given(s, VP_F_COMPUTE) &&
           vp_name_eq(s->precision.weights, "checkpoint") && !vp_model_is_quantised(s->model);
}

/* The compute type that follows when none is named, and why. */
static const char *derive_compute(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_precision *p = &s->precision;
    enum vp_dtype weights = vp_dtype_parse(p->weights); /* "checkpoint" is none */
    enum vp_dtype model = s->model->dtype;
    const char *engine = s->engine.name;
    bool server = s->engine.kind != VP_ENGINE_TRANSFORMERS;
    p->compute = model;
    if (vp_dtype_is_plain(weights)) {
        p->compute = weights;
        return vp_arena_printf(ctx->arena, "%s computes in the type of unquantised weights",
                               engine);
    }
    if (loads_fp32(s)) {
        p->compute = VP_DTYPE_FP32;
        return "this version loads in fp32 unless torch_dtype says otherwise";
    }
    if (server && model == VP_DTYPE_FP32) {
        p->compute = VP_DTYPE_BF16;
        return vp_arena_printf(
            ctx->arena, "%s loads fp32 models in 16 bit unless dtype says otherwise", engine);
    }
    if (!vp_dtype_is_plain(model)) {
        p->compute = VP_DTYPE_BF16;
        return "the model's description names no type to compute in";
    }
    return "the type that the model's description names";
}

static void resolve_compute(struct vp_ctx *ctx, struct vp_scenario *s) {
    const struct vp_precision *p = &s->precision;
    enum vp_dtype weights = vp_dtype_parse(p->weights);
    if (p->compute == VP_DTYPE_UNSET) {
        vp_finish_note(s, VP_F_COMPUTE, VP_ORIGIN_DERIVED, derive_compute(ctx, s));
        return;
    }
    /* The type is given, so the weights take it too; half of them cannot stay 32 bit wide. */
    if (!vp_dtype_is_plain(weights) || width_of(weights) == width_of(p->compute))
        return;
    vp_diag_add(ctx->diags, VP_D_CONTRADICTION, &s->source[VP_F_WEIGHTS].pos,
                "precision.weights is %s, but the compute type is %s", p->weights,
                vp_dtype_name(p->compute));
    vp_diag_hint(ctx->diags, "%s has one type for both (dtype)", s->engine.name);
}

/* The recurrent state's type as an argument, whatever the config says. */
static void set_state_dtype(struct vp_scenario *s) {
    bool sglang = s->engine.kind == VP_ENGINE_SGLANG;
    const char *text =
        vp_engine_arg(&s->engine, sglang ? "mamba_ssm_dtype" : "mamba_ssm_cache_dtype");
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
    if (!vp_scenario_is_given(s, VP_F_WEIGHTS)) {
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

enum vp_status vp_finish_version(struct vp_ctx *ctx, struct vp_engine_profile *profile,
                                 struct vp_scenario *s) {
    struct vp_engine *engine = &s->engine;
    if (!vp_scenario_is_given(s, VP_F_VERSION)) {
        enum vp_status status = vp_engine_newest(ctx, &engine->version_text, profile, engine->name);
        if (status != VP_OK)
            return status;
        vp_finish_note(s, VP_F_VERSION, VP_ORIGIN_DEFAULT,
                       "the newest version whose accounting is known");
    }
    if (vp_version_parse(&engine->version, engine->version_text))
        return VP_OK;
    vp_diag_add(ctx->diags, VP_D_VERSION_UNKNOWN, &s->source[VP_F_VERSION].pos,
                "engine.version \"%.100s\" cannot be read", engine->version_text);
    const char *newest;
    if (vp_engine_newest(ctx, &newest, profile, engine->name) == VP_OK)
        vp_diag_hint(ctx->diags, "write it as the log prints it, for example %s", newest);
    return VP_ERR_INPUT;
}

/* ---- lengths ---- */

/* Prompt and answer of `generate`, where both are given. */
static bool is_prompt_and_output(const struct vp_scenario *s) {
    return s->engine.kind == VP_ENGINE_TRANSFORMERS &&
           vp_scenario_is_given(s, VP_F_PROMPT_TOKENS) &&
           vp_scenario_is_given(s, VP_F_OUTPUT_TOKENS) &&
           s->serve.output_tokens <= UINT64_MAX - s->serve.prompt_tokens;
}

/* generate has no limit of its own: sequences are as long as the workload's. */
static void resolve_generate_length(struct vp_scenario *s) {
    enum { USUAL = 8192 };
    uint64_t model = s->model->max_position, *context = &s->serve.context;
    bool short_model = model > 0 && model <= USUAL;
    if (is_prompt_and_output(s))
        vp_finish_number(s, VP_F_CONTEXT, context, s->serve.prompt_tokens + s->serve.output_tokens,
                         VP_ORIGIN_DERIVED, "prompt_tokens + output_tokens");
    else if (vp_scenario_is_given(s, VP_F_MAX_MODEL_LEN))
        vp_finish_number(s, VP_F_CONTEXT, context, s->engine.max_model_len, VP_ORIGIN_DERIVED,
                         vp_field_label(s->engine.kind, VP_F_MAX_MODEL_LEN));
    else
        vp_finish_number(s, VP_F_CONTEXT, context, short_model ? model : USUAL, VP_ORIGIN_DEFAULT,
                         short_model ? "the model's own limit" : "an assumed workload");
    vp_finish_number(s, VP_F_MAX_MODEL_LEN, &s->engine.max_model_len, *context, VP_ORIGIN_DERIVED,
                     "serve.context");
}

static void resolve_max_model_len(struct vp_ctx *ctx, struct vp_scenario *s) {
    uint64_t *length = &s->engine.max_model_len, model = s->model->max_position;
    const char *engine = s->engine.name;
    if (vp_scenario_is_given(s, VP_F_CONTEXT)) {
        const char *why = "serve.context";
        if (model > 0)
            why = vp_arena_printf(ctx->arena,
                                  "serve.context; %s alone would take the model's %" PRIu64,
                                  s->engine.kind == VP_ENGINE_VLLM ? "vllm serve" : engine, model);
        vp_finish_number(s, VP_F_MAX_MODEL_LEN, length, s->serve.context, VP_ORIGIN_DERIVED, why);
    } else if (model > 0) {
        vp_finish_number(
            s, VP_F_MAX_MODEL_LEN, length, model, VP_ORIGIN_DEFAULT,
            vp_arena_printf(ctx->arena, "the model's own limit, as %s takes it", engine));
    } else if (!vp_scenario_is_given(s, VP_F_MAX_MODEL_LEN)) {
        vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, &s->model->pos,
                    "serve.context is missing, and the model's description names no limit");
        vp_diag_hint(ctx->diags, "--context 8192, or serve: {context: 8192}");
    }
}

static void resolve_context(struct vp_ctx *ctx, struct vp_scenario *s) {
    enum { USUAL = 8192 };
    uint64_t *context = &s->serve.context, limit = s->engine.max_model_len;
    if (vp_scenario_is_given(s, VP_F_MAX_MODEL_LEN))
        vp_finish_number(s, VP_F_CONTEXT, context, limit, VP_ORIGIN_DERIVED,
                         vp_field_label(s->engine.kind, VP_F_MAX_MODEL_LEN));
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
    const char *path = vp_field_label(s->engine.kind, field);
    const char *key = source->origin == VP_ORIGIN_FLAG && source->key ? source->key : path;
    if (!source->pos.line)
        return key;
    return vp_arena_printf(ctx->arena, "%s (line %" PRIu32 ")", key, source->pos.line);
}

/* What the engine does with sequences beyond the model's limit, and what would extend it. */
static void hint_beyond(struct vp_ctx *ctx, enum vp_engine_kind engine, uint64_t length,
                        uint64_t model) {
    static const char *const DOES[VP_ENGINE_KINDS] = {
        [VP_ENGINE_VLLM] = "vllm refuses this unless VLLM_ALLOW_LONG_MAX_MODEL_LEN is set, or",
        [VP_ENGINE_SGLANG] =
            "sglang refuses this unless SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN is set, or",
        [VP_ENGINE_TRANSFORMERS] = "transformers goes on, with worse answers unless",
    };
    uint64_t tenths = vp_ceil_div(vp_sum_mul(vp_sum(length), 10).v, model);
    vp_diag_hint(ctx->diags,
                 "%s the config scales its RoPE by %" PRIu64 ".%" PRIu64
                 " or more: rope_scaling {rope_type: yarn, factor: %" PRIu64 ".%" PRIu64
                 ", original_max_position_embeddings: %" PRIu64 "}",
                 DOES[engine], tenths / 10, tenths % 10, tenths / 10, tenths % 10, model);
}

void vp_finish_lengths(struct vp_ctx *ctx, struct vp_scenario *s) {
    if (s->engine.kind == VP_ENGINE_TRANSFORMERS)
        resolve_generate_length(s);
    else
        resolve_max_model_len(ctx, s);
    if (s->engine.max_model_len == 0)
        return;
    if (s->engine.kind != VP_ENGINE_TRANSFORMERS)
        resolve_context(ctx, s);
    uint64_t context = s->serve.context, limit = s->engine.max_model_len;
    uint64_t model = s->model->max_position;
    if (context > limit) {
        const char *name = vp_field_label(s->engine.kind, VP_F_MAX_MODEL_LEN);
        vp_diag_add(ctx->diags, VP_D_CONTRADICTION, &s->source[VP_F_CONTEXT].pos,
                    "%s is %" PRIu64 ", but %s admits %" PRIu64 " at most",
                    show_length(ctx, s, VP_F_CONTEXT), context,
                    show_length(ctx, s, VP_F_MAX_MODEL_LEN), limit);
        vp_diag_hint(ctx->diags, "raise %s or lower the context", strrchr(name, '.') + 1);
    }
    if (model > 0 && vp_max(context, limit) > model) {
        enum vp_field field = context > model ? VP_F_CONTEXT : VP_F_MAX_MODEL_LEN;
        vp_diag_add(ctx->diags, VP_D_CONTEXT_BEYOND, &s->source[field].pos,
                    "%s is %" PRIu64 ", the model was trained for %" PRIu64,
                    show_length(ctx, s, field), vp_max(context, limit), model);
        hint_beyond(ctx, s->engine.kind, vp_max(context, limit), model);
    }
}
