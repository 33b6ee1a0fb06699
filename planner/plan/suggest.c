#include "planner/plan/suggest.h"

#include <string.h>

#include "planner/base/units.h"
#include "planner/model/requantise.h"
#include "planner/plan/generate.h"
#include "planner/plan/plan.h"

enum { MOST = 8 };

/* A copy of the scenario whose model can be changed without touching the original. */
static struct vp_scenario copy_of(struct vp_ctx *ctx, const struct vp_scenario *scenario) {
    struct vp_scenario copy = *scenario;

    copy.model = vp_model_copy(ctx->arena, scenario->model);
    return copy;
}

/* Evaluates a candidate and keeps it when it fits. */
static struct vp_suggestion *consider(struct vp_ctx *ctx, struct vp_result *result,
                                      const struct vp_scenario *candidate, const char *change) {
    struct vp_result *plan = VP_NEW(ctx->arena, struct vp_result);

    if (result->suggestion_count == MOST || !vp_plan_evaluate(ctx->arena, plan, candidate) ||
        plan->verdict != VP_FITS)
        return NULL;
    struct vp_suggestion *s = &result->suggestions[result->suggestion_count++];
    s->change = change;
    s->need_bytes = plan->devices[plan->worst].need.likely;
    s->headroom_bytes = plan->headroom_bytes;
    s->quality = s->speed = s->money = "none";
    return s;
}

static void set_patch(struct vp_suggestion *s, const char *field, const char *from,
                      const char *to) {
    if (!s)
        return;
    s->patch_field = field;
    s->from = from;
    s->to = s->patch_value = to;
}

static void try_weights(struct vp_ctx *ctx, struct vp_result *result, const char *format,
                        const char *quality) {
    const struct vp_scenario *scenario = result->scenario;
    struct vp_scenario candidate = copy_of(ctx, scenario);
    bool fp8_units = scenario->hardware.gpu.fp8;
    bool fp8 = strcmp(format, "fp8") == 0;

    candidate.precision.weights = format;
    if (vp_model_requantise(ctx, &candidate) != VP_OK)
        return;
    struct vp_suggestion *s =
        consider(ctx, result, &candidate, vp_arena_printf(ctx->arena, "weights in %s", format));
    set_patch(s, "precision.weights", scenario->precision.weights, format);
    if (!s)
        return;
    s->quality = quality;
    if (fp8 && !fp8_units)
        s->speed = "no FP8 units: BF16 rate at best";
}

/* transformers before 5 loads in fp32 unless it is told to do as the model's description says. */
static void try_sixteen_bit(struct vp_ctx *ctx, struct vp_result *result) {
    const struct vp_scenario *scenario = result->scenario;
    struct vp_scenario candidate = copy_of(ctx, scenario);
    bool chosen = vp_scenario_is_given(scenario, VP_F_COMPUTE);
    enum vp_dtype model = scenario->model->dtype;

    if (!scenario->engine.rules.loads_fp32 || chosen ||
        scenario->precision.compute != VP_DTYPE_FP32 || model == VP_DTYPE_FP32)
        return;
    candidate.precision.compute = model;
    if (!vp_scenario_is_given(scenario, VP_F_KV_DTYPE))
        candidate.precision.kv_cache = model;
    vp_model_load_plain_as(candidate.model, model);
    struct vp_suggestion *s = consider(ctx, result, &candidate, "torch_dtype=\"auto\"");
    set_patch(s, "precision.compute", vp_dtype_name(VP_DTYPE_FP32), vp_dtype_name(model));
}

static void try_kv(struct vp_ctx *ctx, struct vp_result *result) {
    const struct vp_scenario *scenario = result->scenario;
    struct vp_scenario candidate = *scenario;
    const char *from = vp_dtype_name(scenario->precision.kv_cache);

    if (vp_dtype_bytes(scenario->precision.kv_cache, vp_sum(2)).v <= 2)
        return;
    candidate.precision.kv_cache = VP_DTYPE_FP8;
    struct vp_suggestion *s = consider(ctx, result, &candidate, "KV cache in fp8");
    set_patch(s, "precision.kv_cache", from, "fp8");
    if (s)
        s->quality = "small, model-dependent";
}

/* Whether the engine can share a block over so many tensor-parallel ranks: import/finish_layout.c
 * refuses what this does. */
static bool divides(const struct vp_scenario *scenario, const struct vp_block *block) {
    const struct vp_attention *a = &block->attention;
    const struct vp_moe *moe = &block->moe;
    uint64_t tensor = scenario->parallel.tensor, heads = tensor;
    uint64_t experts = scenario->engine.expert_parallel ? 1 : vp_expert_ranks(scenario);
    if (scenario->engine.kind == VP_ENGINE_SGLANG && scenario->parallel.attention_data > 1)
        heads = vp_max(tensor / scenario->parallel.attention_data, 1);
    bool kv = a->kind != VP_ATTENTION_GQA || a->kv_heads == 0 || a->kv_heads % heads == 0 ||
              heads % a->kv_heads == 0;
    bool linear = a->kind != VP_ATTENTION_LINEAR || a->linear == VP_LINEAR_GIVEN ||
                  (a->value_heads % heads == 0 &&
                   (a->linear != VP_LINEAR_GATED_DELTA || a->key_heads % heads == 0));
    bool width = block->mlp.intermediate % tensor == 0 && moe->intermediate % experts == 0 &&
                 moe->shared_intermediate % tensor == 0;

    return kv && linear && width && a->heads % heads == 0;
}

static void try_ranks(struct vp_ctx *ctx, struct vp_result *result) {
    const struct vp_scenario *scenario = result->scenario;
    struct vp_scenario candidate = *scenario;
    uint64_t tensor = 2 * scenario->parallel.tensor;

    candidate.parallel.tensor = tensor;
    for (uint32_t i = 0; i < scenario->model->block_count; i++)
        if (!divides(&candidate, &scenario->model->blocks[i]))
            return;
    if (candidate.hardware.count < tensor * scenario->parallel.pipeline * scenario->parallel.data)
        candidate.hardware.count = tensor * scenario->parallel.pipeline * scenario->parallel.data;
    bool more = candidate.hardware.count > scenario->hardware.count;
    struct vp_suggestion *s =
        consider(ctx, result, &candidate,
                 vp_arena_printf(ctx->arena, "tensor parallel %llu", (unsigned long long)tensor));
    set_patch(s, "parallel.tensor", vp_format_u64(ctx->arena, scenario->parallel.tensor),
              vp_format_u64(ctx->arena, tensor));
    if (!s)
        return;
    s->money = more ? "twice the GPUs" : "none";
    s->patch_count = more ? candidate.hardware.count : 0;
}

/* A workload that is tried: the same set-up, shorter or with fewer sequences. */
static struct vp_scenario workload(const struct vp_scenario *scenario, uint64_t context,
                                   uint64_t sequences) {
    struct vp_scenario out = *scenario;

    if (scenario->engine.kind == VP_ENGINE_TRANSFORMERS)
        return vp_generate_variant(scenario, context, sequences);
    if (context < scenario->serve.context)
        out.serve.context = out.engine.max_model_len = context;
    out.serve.concurrency = sequences;
    return out;
}

/* The engine refuses the longest sequence it was told to admit, while the workload's own would fit:
 * admit what fits. The low end of the interval is what fits for sure. */
static bool try_admission(struct vp_ctx *ctx, struct vp_result *result) {
    const struct vp_scenario *scenario = result->scenario;
    struct vp_scenario candidate = *scenario;
    uint64_t length = result->report.estimated_max_model_len.low / 256 * 256;
    const char *path = vp_field_path_for(scenario->engine.kind, VP_F_MAX_MODEL_LEN);

    if (result->reason != VP_REASON_ADMISSION || !path || length < scenario->serve.context)
        return false;
    candidate.engine.max_model_len = length;
    struct vp_suggestion *s = consider(ctx, result, &candidate, "admit shorter sequences");
    set_patch(s, path, vp_format_u64(ctx->arena, scenario->engine.max_model_len),
              vp_format_u64(ctx->arena, length));
    return s != NULL;
}

static void try_lengths(struct vp_ctx *ctx, struct vp_result *result) {
    const struct vp_scenario *scenario = result->scenario;
    const struct vp_serve *serve = &scenario->serve;
    struct vp_scenario candidate;
    uint64_t context = vp_min(result->prices.max_context, serve->context);
    uint64_t sequences = vp_min(result->prices.max_concurrency, serve->concurrency);

    /* the interval may need a little less than the likely figure allows */
    for (int tries = 0; tries < 6 && context >= 256; tries++, context -= context / 8) {
        candidate = workload(scenario, context / 256 * 256, serve->concurrency);
        if (candidate.serve.context >= serve->context)
            continue;
        struct vp_suggestion *s = consider(ctx, result, &candidate, "shorter context");
        set_patch(s, "serve.context", vp_format_u64(ctx->arena, serve->context),
                  vp_format_u64(ctx->arena, candidate.serve.context));
        if (s)
            break;
    }
    for (int tries = 0; tries < 6 && sequences >= 1;
         tries++, sequences -= vp_ceil_div(sequences, 8)) {
        candidate = workload(scenario, serve->context, sequences);
        if (sequences >= serve->concurrency)
            continue;
        struct vp_suggestion *s = consider(ctx, result, &candidate, "fewer sequences at once");
        set_patch(s, "serve.concurrency", vp_format_u64(ctx->arena, serve->concurrency),
                  vp_format_u64(ctx->arena, sequences));
        if (s) {
            s->speed = "requests wait";
            break;
        }
    }
}

/* Fewer sequences per batch. SGLang derives its share from them unless it is given, so that there
 * the change would not be the one evaluated. */
static void try_seqs(struct vp_ctx *ctx, struct vp_result *result) {
    static const char PREFIX[] = "engine.args.";
    const struct vp_scenario *scenario = result->scenario;
    struct vp_scenario candidate = *scenario;
    uint64_t seqs = vp_max(scenario->serve.concurrency, 16);
    const char *path = vp_field_path_for(scenario->engine.kind, VP_F_MAX_NUM_SEQS);
    bool derived = scenario->engine.kind == VP_ENGINE_SGLANG &&
                   !vp_scenario_is_given(scenario, VP_F_UTILIZATION);

    if (!path || derived || seqs >= scenario->engine.max_num_seqs)
        return;
    candidate.engine.max_num_seqs = seqs;
    struct vp_suggestion *s =
        consider(ctx, result, &candidate,
                 vp_arena_printf(ctx->arena, "smaller %s", path + sizeof PREFIX - 1));
    set_patch(s, path, vp_format_u64(ctx->arena, scenario->engine.max_num_seqs),
              vp_format_u64(ctx->arena, seqs));
    if (s)
        s->speed = "none up to that many sequences";
}

/* SGLang: more room beside the static share. */
static void try_share(struct vp_ctx *ctx, struct vp_result *result) {
    enum { STEP = 20000000, TRIES = 12 };
    const struct vp_scenario *scenario = result->scenario;
    struct vp_scenario candidate = *scenario;
    uint64_t share = scenario->engine.utilization_ppb / (STEP / 2) * (STEP / 2);

    if (result->reason != VP_REASON_TRANSIENTS)
        return;
    for (int i = 0; i < TRIES && share > STEP; i++) {
        share -= STEP;
        candidate.engine.utilization_ppb = share;
        struct vp_suggestion *s = consider(ctx, result, &candidate, "smaller static share");
        set_patch(s, vp_field_path_for(scenario->engine.kind, VP_F_UTILIZATION),
                  vp_field_value(ctx->arena, scenario, VP_F_UTILIZATION),
                  vp_field_value(ctx->arena, &candidate, VP_F_UTILIZATION));
        if (s)
            break;
    }
}

void vp_suggest(struct vp_ctx *ctx, struct vp_result *result) {
    const struct vp_precision *precision = &result->scenario->precision;
    bool plain = strcmp(precision->weights, "checkpoint") == 0 ||
                 strcmp(precision->weights, "bf16") == 0 ||
                 strcmp(precision->weights, "fp16") == 0 || strcmp(precision->weights, "fp32") == 0;

    /* it has no 8-bit cache, and its usual 4-bit weights are those of bitsandbytes */
    bool generate = result->scenario->engine.kind == VP_ENGINE_TRANSFORMERS;

    result->suggestions = VP_NEW_ARRAY(ctx->arena, MOST, struct vp_suggestion);
    if (result->verdict == VP_FITS || result->reason == VP_REASON_BUDGET)
        return;
    bool admitted = try_admission(ctx, result);
    try_seqs(ctx, result);
    try_share(ctx, result);
    try_sixteen_bit(ctx, result);
    if (!generate)
        try_kv(ctx, result);
    if (plain && !vp_model_is_quantised(result->scenario->model)) {
        try_weights(ctx, result, "fp8", "small, model-dependent");
        try_weights(ctx, result, generate ? "nf4" : "int4", "noticeable, model-dependent");
    }
    try_ranks(ctx, result);
    if (!admitted) /* else the workload itself is not what is too long */
        try_lengths(ctx, result);
}
