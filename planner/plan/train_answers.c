#include "planner/plan/train_answers.h"

#include <stdlib.h>

#include "planner/base/units.h"
#include "planner/ops/train_layout.h"
#include "planner/plan/budget_values.h"
#include "planner/plan/plan.h"

/* ---- when it takes most, in words ---- */

static const char *cause_text(struct vp_ctx *ctx, const struct vp_train_moment *m) {
    switch (m->cause) {
    case VP_CAUSE_LAYERS:
        return vp_arena_printf(ctx->arena, "forward of block %u, with all tapes", m->layer);
    case VP_CAUSE_LOSS:
        return "loss, behind the last forward pass";
    case VP_CAUSE_HEAD:
        return "backward of the head";
    case VP_CAUSE_REBUILT:
        return vp_arena_printf(ctx->arena, "backward of block %u, while its tape is rebuilt",
                               m->layer);
    case VP_CAUSE_BACKWARD:
        return vp_arena_printf(ctx->arena, "backward of block %u", m->layer);
    case VP_CAUSE_GRADIENTS:
        return "end of the backward pass, with all gradients";
    case VP_CAUSE_EMBEDDING:
        return "backward of the embedding, with all gradients";
    case VP_CAUSE_STEP:
        break;
    }
    return "optimizer's step";
}

static void set_causes(struct vp_ctx *ctx, struct vp_training_report *report) {
    for (uint32_t i = 0; i < report->stages; i++) {
        struct vp_training_stage *stage = &report->stage[i];
        for (int k = 0; k < VP_TRAIN_MOMENTS; k++) {
            stage->candidate[k].cause = cause_text(ctx, &stage->numbers.moment[k]);
            if (stage->candidate[k].step == stage->peak.step)
                stage->peak.cause = stage->candidate[k].cause;
        }
    }
}

/* ---- why ---- */

static const char *gib(struct vp_ctx *ctx, uint64_t bytes) {
    return vp_format_gib(ctx->arena, bytes, 2);
}

static const char *peak_text(struct vp_ctx *ctx, const struct vp_result *out) {
    const struct vp_training_stage *stage = &out->training.stage[out->worst];
    const struct vp_device *device = &out->devices[out->worst];
    const char *where =
        out->training.stages > 1 ? vp_arena_printf(ctx->arena, "stage %u ", out->worst) : "";

    return vp_arena_printf(ctx->arena,
                           "%s%s out of memory at the %s: %s GiB allocated, %s GiB with what the "
                           "allocator cannot use and the process's context, of %s GiB",
                           where, out->verdict == VP_AT_RISK ? "may run" : "runs",
                           stage->peak.cause, gib(ctx, stage->allocated_peak.likely),
                           gib(ctx, device->need.likely), gib(ctx, device->usable_bytes));
}

static const char *reason_text(struct vp_ctx *ctx, const struct vp_result *out) {
    const struct vp_device *last = &out->devices[out->device_count - 1];

    switch (out->reason) {
    case VP_REASON_PEAK:
        return peak_text(ctx, out);
    case VP_REASON_HOST:
        return vp_arena_printf(ctx->arena,
                               "host memory of %s GiB does not hold what is offloaded to it: %s to "
                               "%s GiB",
                               gib(ctx, last->capacity_bytes), gib(ctx, last->need.low),
                               gib(ctx, last->need.high));
    case VP_REASON_BUDGET:
        return vp_budget_reason(ctx->arena, out);
    default:
        return "";
    }
}

/* ---- the rule of thumb ---- */

static struct vp_sum share(enum vp_dtype dtype, uint64_t elements, uint64_t ranks) {
    struct vp_sum bytes = vp_dtype_bytes(dtype, vp_sum(elements));
    return (struct vp_sum){bytes.v / ranks, bytes.overflow};
}

/* Parameters x bytes of parameter, gradient, master and two states, each by the ranks that divide
 * it (ZeRO paper), + 34 bytes x tokens x hidden x layers (Korthikanti et al. 2022, without scores)
 * by the tensor-parallel ones: a pipeline stage has as many micro batches in flight as there are
 * stages. With full recomputation the layers' inputs instead. */
static void set_first_order(struct vp_result *out) {
    const struct vp_scenario *scenario = out->scenario;
    const struct vp_train *train = &scenario->train;
    const struct vp_model *model = scenario->model;
    struct vp_first_order *rule = &out->first_order;
    struct vp_train_shards shards = vp_train_shards_of(scenario, false);
    uint64_t tensor = vp_max(scenario->parallel.tensor, 1);
    uint64_t a_token = train->recompute.kind == VP_RECOMPUTE_FULL ? 2 : 34;
    uint64_t trained = out->params_trainable;
    struct vp_sum all = share(train->parameters, out->params_total, shards.parameters);
    struct vp_sum tape =
        vp_sum_mul(vp_sum_mul(vp_sum(vp_tape_tokens(scenario)), model->hidden), model->layer_count);

    all = vp_sum_plus(all, share(train->gradients, trained, shards.gradients));
    all = vp_sum_plus(all, vp_sum_mul(share(train->optimizer_states, trained, shards.states), 2));
    if (train->master != VP_DTYPE_UNSET)
        all = vp_sum_plus(all, share(train->master, trained, shards.states));
    tape = vp_sum_mul(tape, a_token);
    struct vp_sum total = vp_sum_plus(all, tape);
    if (total.overflow || total.v > INT64_MAX)
        return;
    rule->weights_bytes = all.v / tensor / vp_max(scenario->parallel.pipeline, 1);
    rule->activation_bytes = tape.v / tensor;
    rule->total_bytes = rule->weights_bytes + rule->activation_bytes;
    rule->misses_bytes = (int64_t)out->devices[out->worst].need.likely - (int64_t)rule->total_bytes;
}

/* ---- what the usual levers would save ---- */

enum { MOST = 10 };

/* What is to become less: the need of the worst card, or of the host where that is what is
 * exceeded. */
static uint64_t need_of(const struct vp_result *plan, bool host) {
    const struct vp_device *last = &plan->devices[plan->device_count - 1];

    if (host)
        return last->host ? last->need.likely : 0;
    return plan->devices[plan->worst].need.likely;
}

static void consider(struct vp_ctx *ctx, struct vp_result *result,
                     const struct vp_scenario *candidate, struct vp_suggestion suggestion) {
    struct vp_result *plan = VP_NEW(ctx->arena, struct vp_result);
    bool host = result->reason == VP_REASON_HOST;
    uint64_t now = need_of(result, host);

    if (result->suggestion_count == MOST || !vp_plan_evaluate(ctx->arena, plan, candidate))
        return;
    suggestion.need_bytes = plan->devices[plan->worst].need.likely;
    suggestion.headroom_bytes = plan->headroom_bytes;
    if (need_of(plan, host) > now - now / 100) /* saves less than a hundredth */
        return;
    result->suggestions[result->suggestion_count++] = suggestion;
}

static void try_recompute(struct vp_ctx *ctx, struct vp_result *result) {
    struct vp_scenario candidate = *result->scenario;

    if (candidate.train.recompute.kind == VP_RECOMPUTE_FULL)
        return;
    candidate.train.recompute = (struct vp_recompute){.kind = VP_RECOMPUTE_FULL};
    consider(ctx, result, &candidate,
             (struct vp_suggestion){.change = "recompute every layer",
                                    .from = result->scenario->train.recompute_name,
                                    .to = "full",
                                    .quality = "none",
                                    .speed = "one more forward pass, 20 to 40 % of the time",
                                    .money = "none",
                                    .patch_field = "train.recompute",
                                    .patch_value = "full"});
}

static void try_loss(struct vp_ctx *ctx, struct vp_result *result) {
    struct vp_scenario candidate = *result->scenario;

    if (candidate.train.ops.loss == VP_LOSS_FUSED_LINEAR || !candidate.model->lm_head)
        return;
    candidate.train.ops.loss = VP_LOSS_FUSED_LINEAR;
    consider(ctx, result, &candidate,
             (struct vp_suggestion){.change = "fused linear cross entropy",
                                    .from = result->scenario->train.loss_name,
                                    .to = "fused_linear",
                                    .quality = "none",
                                    .speed = "none",
                                    .money = "none",
                                    .patch_field = "train.ops.cross_entropy",
                                    .patch_value = "fused_linear"});
}

static void try_attention(struct vp_ctx *ctx, struct vp_result *result) {
    struct vp_scenario candidate = *result->scenario;

    if (candidate.train.ops.attention != VP_IMPL_EAGER)
        return;
    candidate.train.ops.attention = VP_IMPL_FLASH;
    consider(ctx, result, &candidate,
             (struct vp_suggestion){.change = "fused attention",
                                    .from = "eager",
                                    .to = "flash",
                                    .quality = "none",
                                    .speed = "faster",
                                    .money = "none",
                                    .patch_field = "train.ops.attention",
                                    .patch_value = "flash"});
}

static void try_optimizer(struct vp_ctx *ctx, struct vp_result *result) {
    struct vp_scenario candidate = *result->scenario;
    bool torch = candidate.engine.kind == VP_ENGINE_PYTORCH ||
                 candidate.engine.kind == VP_ENGINE_TRANSFORMERS;

    if (!torch || candidate.train.optimizer != VP_OPTIMIZER_ADAMW)
        return;
    candidate.train.optimizer = VP_OPTIMIZER_ADAMW_8BIT;
    consider(ctx, result, &candidate,
             (struct vp_suggestion){.change = "optimizer states in 8 bit",
                                    .from = result->scenario->train.optimizer_name,
                                    .to = "adamw_8bit",
                                    .quality = "small, task-dependent",
                                    .speed = "none",
                                    .money = "none",
                                    .patch_field = "train.optimizer",
                                    .patch_value = "adamw_8bit"});
}

/* Torch divides everything at once, Megatron the optimizer, DeepSpeed by stages. */
static void try_sharding(struct vp_ctx *ctx, struct vp_result *result) {
    struct vp_scenario candidate = *result->scenario;
    struct vp_parallel *p = &candidate.parallel;
    struct vp_suggestion s = {.quality = "none", .money = "none"};

    if (vp_train_copies(&candidate) == 1 || p->fsdp)
        return;
    if (candidate.engine.kind == VP_ENGINE_DEEPSPEED ||
        (candidate.engine.kind == VP_ENGINE_MEGATRON && p->zero == 0)) {
        if (p->zero == 3)
            return;
        s.change = "divide more over the data-parallel ranks";
        s.from = vp_format_u64(ctx->arena, p->zero++);
        s.to = s.patch_value = vp_format_u64(ctx->arena, p->zero);
        s.patch_field = "parallel.zero";
        s.speed = p->zero == 3 ? "half as much traffic again" : "none";
    } else if (candidate.engine.kind != VP_ENGINE_MEGATRON) {
        p->fsdp = true;
        s.change = "fully sharded data parallelism";
        s.from = "false";
        s.to = s.patch_value = "true";
        s.patch_field = "parallel.fsdp";
        s.speed = "half as much traffic again";
    }
    if (s.patch_field)
        consider(ctx, result, &candidate, s);
}

static void try_sequence(struct vp_ctx *ctx, struct vp_result *result) {
    struct vp_scenario candidate = *result->scenario;

    if (candidate.parallel.tensor == 1 || candidate.parallel.sequence)
        return;
    candidate.parallel.sequence = true;
    consider(ctx, result, &candidate,
             (struct vp_suggestion){.change = "sequence parallelism",
                                    .from = "false",
                                    .to = "true",
                                    .quality = "none",
                                    .speed = "none",
                                    .money = "none",
                                    .patch_field = "parallel.sequence",
                                    .patch_value = "true"});
}

/* The same batch in twice as many passes. A given number of passes would contradict it. */
static void try_micro_batch(struct vp_ctx *ctx, struct vp_result *result) {
    const struct vp_scenario *scenario = result->scenario;
    struct vp_scenario candidate = *scenario;
    uint64_t size = scenario->train.micro_batch;
    bool fixed = vp_scenario_is_given(scenario, VP_F_GLOBAL_BATCH) &&
                 (vp_scenario_is_given(scenario, VP_F_ACCUMULATION) ||
                  vp_scenario_is_given(scenario, VP_F_MICROBATCHES));

    if (size < 2 || size % 2 != 0 || fixed)
        return;
    candidate.train.micro_batch = size / 2;
    if (vp_scenario_is_given(scenario, VP_F_GLOBAL_BATCH)) {
        candidate.train.accumulation *= 2;
        candidate.parallel.microbatches *= 2;
    }
    consider(ctx, result, &candidate,
             (struct vp_suggestion){.change = "half the micro batch",
                                    .from = vp_format_u64(ctx->arena, size),
                                    .to = vp_format_u64(ctx->arena, size / 2),
                                    .quality = "none",
                                    .speed = "smaller matrices",
                                    .money = "none",
                                    .patch_field = "train.micro_batch",
                                    .patch_value = vp_format_u64(ctx->arena, size / 2)});
}

static int by_need(const void *a, const void *b) {
    const struct vp_suggestion *x = a, *y = b;
    return (x->need_bytes > y->need_bytes) - (x->need_bytes < y->need_bytes);
}

void vp_train_answers(struct vp_ctx *ctx, struct vp_result *out) {
    out->params_trainable = vp_train_trainable(out->scenario).v;
    set_causes(ctx, &out->training);
    out->reason_text = reason_text(ctx, out);
    set_first_order(out);
}

void vp_train_suggest(struct vp_ctx *ctx, struct vp_result *out) {
    out->suggestions = VP_NEW_ARRAY(ctx->arena, MOST, struct vp_suggestion);
    try_recompute(ctx, out);
    try_loss(ctx, out);
    try_attention(ctx, out);
    try_optimizer(ctx, out);
    try_sharding(ctx, out);
    try_sequence(ctx, out);
    try_micro_batch(ctx, out);
    qsort(out->suggestions, out->suggestion_count, sizeof *out->suggestions, by_need);
}
