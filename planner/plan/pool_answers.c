#include "planner/plan/pool_answers.h"

#include <string.h>

#include "planner/base/units.h"
#include "planner/memory/kv_cache.h"
#include "planner/memory/weights.h"
#include "planner/plan/budget_values.h"
#include "planner/plan/generate.h"

static struct vp_kv_plan kv_of(const struct vp_scenario *scenario, uint32_t device) {
    struct vp_stage stage =
        vp_stage_split(scenario->model->layer_count, (uint32_t)scenario->parallel.pipeline, device);
    struct vp_kv_plan kv;

    vp_kv_plan_make(&kv, scenario, &stage);
    return kv;
}

/* ---- what more would cost ---- */

static uint64_t times(uint64_t a, uint64_t b) {
    struct vp_sum product = vp_sum_mul(vp_sum(a), b);
    return product.overflow ? UINT64_MAX : product.v;
}

void vp_pool_prices(struct vp_ctx *ctx, struct vp_result *out) {
    const struct vp_scenario *scenario = out->scenario;
    struct vp_kv_plan kv = kv_of(scenario, out->worst);
    uint64_t context = scenario->serve.context, sequences = vp_rank_sequences(scenario);
    uint64_t blocks = out->report.num_gpu_blocks.likely;
    uint64_t now = vp_kv_units(&kv, context);
    uint64_t limit = scenario->model->max_position;

    if (scenario->engine.kind == VP_ENGINE_TRANSFORMERS) {
        vp_generate_prices(ctx->arena, out);
        return;
    }
    if (kv.types == 0)
        return;
    out->prices.per_1k_context =
        (vp_kv_units(&kv, context + 1024) - now) * sequences * kv.unit_bytes;
    out->prices.per_sequence = now * kv.unit_bytes;
    if (now > 0)
        out->prices.max_concurrency = times(blocks / now, vp_sequence_ranks(scenario));
    if (limit == 0)
        limit = UINT64_C(1) << 32;
    out->prices.max_context = vp_kv_longest(&kv, blocks, sequences, limit);
    out->prices.context_capped =
        scenario->model->max_position > 0 && out->prices.max_context == limit;
}

void vp_pool_first_order(struct vp_result *out) {
    const struct vp_scenario *scenario = out->scenario;
    const struct vp_model *model = scenario->model;
    struct vp_first_order *rule = &out->first_order;
    uint64_t ranks = scenario->parallel.tensor * scenario->parallel.pipeline;
    uint64_t copies = vp_max(scenario->parallel.data, 1);
    struct vp_sum tokens = vp_sum_mul(vp_sum(scenario->serve.context),
                                      vp_ceil_div(scenario->serve.concurrency, copies));
    struct vp_sum weights = model->checkpoint.known ? vp_sum(model->checkpoint.total_bytes)
                                                    : vp_weights_unsharded(model);
    uint64_t element = vp_dtype_bytes(scenario->precision.compute, vp_sum(1)).v;
    struct vp_sum kv = vp_sum(0);

    for (uint32_t i = 0; i < model->block_count; i++) {
        const struct vp_attention *a = &model->blocks[i].attention;
        if (a->kind != VP_ATTENTION_GQA && a->kind != VP_ATTENTION_MLA)
            continue;
        uint64_t width = a->kind == VP_ATTENTION_MLA ? a->kv_lora_rank + a->qk_rope_head_dim
                                                     : a->kv_heads * (a->head_dim + a->v_head_dim);
        struct vp_sum bytes = vp_sum_mul(vp_sum_mul(tokens, width), model->blocks[i].count);
        kv = vp_sum_plus(kv, vp_dtype_bytes(scenario->precision.kv_cache, bytes));
    }
    struct vp_sum activation = vp_sum_mul(vp_sum_mul(tokens, model->hidden), element);
    struct vp_sum all = vp_sum_plus(vp_sum_plus(weights, kv), activation);
    if (all.overflow || all.v > INT64_MAX)
        return; /* the rule has no answer: a cache of windows or states may still have one */
    rule->weights_bytes = weights.v / ranks;
    rule->kv_bytes = kv.v / ranks;
    rule->activation_bytes = activation.v / ranks;
    rule->total_bytes = rule->weights_bytes + rule->kv_bytes + rule->activation_bytes;
    rule->misses_bytes = (int64_t)out->devices[out->worst].need.likely - (int64_t)rule->total_bytes;
}

/* ---- why ---- */

static const char *gib(struct vp_ctx *ctx, uint64_t bytes) {
    return vp_format_gib(ctx->arena, bytes, 2);
}

static const char *milli(struct vp_ctx *ctx, uint64_t value) {
    return vp_arena_printf(ctx->arena, "%llu.%02llu", (unsigned long long)(value / 1000),
                           (unsigned long long)(value % 1000 / 10));
}

/* What the engine calls a setting: "context_length". */
static const char *setting(const struct vp_scenario *scenario, enum vp_field field) {
    const char *label = vp_field_label(scenario->engine.kind, field), *dot = strrchr(label, '.');
    return dot ? dot + 1 : label;
}

static const char *admission_text(struct vp_ctx *ctx, const struct vp_result *out) {
    const struct vp_scenario *scenario = out->scenario;
    struct vp_kv_plan kv = kv_of(scenario, out->worst);
    uint64_t bytes = vp_kv_units(&kv, scenario->engine.max_model_len) * kv.unit_bytes;

    return vp_arena_printf(ctx->arena,
                           "one sequence of %s %s needs %s GiB of cache, %s GiB are left for it; "
                           "longest that fits: %s tokens",
                           setting(scenario, VP_F_MAX_MODEL_LEN),
                           vp_format_count(ctx->arena, scenario->engine.max_model_len),
                           gib(ctx, bytes), gib(ctx, out->report.available_kv.likely),
                           vp_format_count(ctx->arena, out->kv.max_context));
}

static const char *free_text(struct vp_ctx *ctx, const struct vp_result *out) {
    const struct vp_hardware *hardware = &out->scenario->hardware;
    const struct vp_engine *engine = &out->scenario->engine;
    uint64_t taken = vp_min(hardware->reserved_bytes, hardware->memory_bytes);

    if (engine->blocks_override > 0 || engine->kv_cache_bytes > 0)
        return vp_arena_printf(
            ctx->arena,
            "%s takes more than there is: beside weights (%s GiB) and overheads "
            "it has to fit in the %s GiB that are free",
            engine->blocks_override > 0 ? "num_gpu_blocks_override" : "kv_cache_memory_bytes",
            gib(ctx, out->report.weights.likely), gib(ctx, hardware->memory_bytes - taken));
    return vp_arena_printf(ctx->arena,
                           "%s: %s GiB are free, gpu_memory_utilization asks for %s GiB; others "
                           "hold %s GiB",
                           engine->rules.budget >= VP_VLLM_V1_USED
                               ? "vLLM refuses to start"
                               : "vLLM of this version does not look at free memory and runs out",
                           gib(ctx, hardware->memory_bytes - taken),
                           gib(ctx, out->report.requested_bytes), gib(ctx, taken));
}

static const char *concurrency_text(struct vp_ctx *ctx, const struct vp_result *out) {
    const struct vp_serve *serve = &out->scenario->serve;
    const char *sequences = vp_format_count(ctx->arena, serve->concurrency);
    const char *context = vp_format_count(ctx->arena, serve->context);
    if (out->scenario->engine.kind == VP_ENGINE_TRANSFORMERS)
        return vp_arena_printf(ctx->arena,
                               "generate %s run out of memory: there is room for %s of %s "
                               "sequences of %s tokens",
                               out->verdict == VP_AT_RISK ? "may" : "would",
                               vp_format_count(ctx->arena, out->prices.max_concurrency), sequences,
                               context);
    uint64_t ranks = vp_sequence_ranks(out->scenario);
    return vp_arena_printf(ctx->arena,
                           "the engine starts, but its cache%s %s of %s sequences of %s tokens "
                           "at once; the others wait",
                           ranks > 1 ? "s hold" : " holds",
                           milli(ctx, times(out->kv.max_concurrency_milli, ranks)), sequences,
                           context);
}

const char *vp_pool_reason(struct vp_ctx *ctx, const struct vp_result *out) {
    const struct vp_scenario *scenario = out->scenario;
    const struct vp_device *device = &out->devices[out->worst];

    switch (out->reason) {
    case VP_REASON_NONE:
    case VP_REASON_BUFFERS: /* llama_answers.c, train_answers.c */
    case VP_REASON_REFUSED:
    case VP_REASON_PEAK:
        return "";
    case VP_REASON_NO_FREE_MEMORY:
        return free_text(ctx, out);
    case VP_REASON_WEIGHTS:
        return vp_arena_printf(
            ctx->arena, "weights (%s GiB) and overheads leave nothing of %s GiB for the cache",
            gib(ctx, out->report.weights.likely), gib(ctx, out->report.requested_bytes));
    case VP_REASON_ADMISSION:
        return admission_text(ctx, out);
    case VP_REASON_CONCURRENCY:
        return concurrency_text(ctx, out);
    case VP_REASON_GRAPHS:
        return vp_arena_printf(ctx->arena,
                               "graphs (%s GiB) come on top of the %s GiB that vLLM asks for and "
                               "may exceed the card's %s GiB",
                               gib(ctx, out->report.graph.likely),
                               gib(ctx, out->report.requested_bytes),
                               gib(ctx, device->capacity_bytes));
    case VP_REASON_TRANSIENTS:
        return vp_arena_printf(
            ctx->arena,
            "the static share leaves %s GiB for forward passes (%s GiB) and graphs "
            "(%s GiB); a smaller chunked_prefill_size or mem_fraction_static helps",
            gib(ctx, vp_above(device->capacity_bytes, out->report.requested_bytes)),
            gib(ctx, out->report.activation_peak.likely), gib(ctx, out->report.graph.likely));
    case VP_REASON_STATE_SLOTS:
        if (scenario->engine.kind == VP_ENGINE_SGLANG)
            return vp_arena_printf(ctx->arena,
                                   "the pool of recurrent states may not hold %s sequences at "
                                   "once; mamba_full_memory_ratio enlarges it",
                                   vp_format_count(ctx->arena, scenario->serve.concurrency));
        return vp_arena_printf(ctx->arena,
                               "max_num_seqs %s exceeds the pool's %s state pages; vLLM refuses "
                               "that when it captures graphs",
                               vp_format_count(ctx->arena, scenario->engine.max_num_seqs),
                               vp_format_count(ctx->arena, out->report.num_gpu_blocks.likely));
    case VP_REASON_HOST: {
        const struct vp_device *host = &out->devices[out->device_count - 1];
        return vp_arena_printf(ctx->arena,
                               "host memory of %s GiB does not hold what is offloaded to it: %s to "
                               "%s GiB",
                               gib(ctx, host->capacity_bytes), gib(ctx, host->need.low),
                               gib(ctx, host->need.high));
    }
    case VP_REASON_BUDGET:
        return vp_budget_reason(ctx->arena, out);
    }
    return "";
}
