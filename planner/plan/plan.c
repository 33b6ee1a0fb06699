#include "planner/plan/plan.h"

#include <stdio.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/memory/weights.h"
#include "planner/plan/advice.h"
#include "planner/plan/llama_answers.h"
#include "planner/plan/llama_latency.h"
#include "planner/plan/pool_answers.h"
#include "planner/plan/serve_latency.h"
#include "planner/plan/sleep.h"
#include "planner/plan/suggest.h"
#include "planner/plan/train_answers.h"
#include "planner/plan/train_latency.h"
#include "planner/plan/train_peaks.h"

/* ---- what was not said ---- */

/* Defaults that a training step does not ask for: the workload of a server. */
static bool is_of_other_mode(const struct vp_scenario *scenario, enum vp_field field) {
    return scenario->training && vp_text_starts(vp_field_info(field)->path, "serve.");
}

static void set_assumptions(struct vp_ctx *ctx, struct vp_result *out) {
    const struct vp_scenario *scenario = out->scenario;

    out->assumptions = VP_NEW_ARRAY(ctx->arena, VP_FIELD_COUNT + 2, struct vp_assumption);
    for (int f = 0; f < VP_FIELD_COUNT; f++) {
        const struct vp_source *source = &scenario->source[f];
        if (source->origin != VP_ORIGIN_DEFAULT && source->origin != VP_ORIGIN_DERIVED &&
            source->origin != VP_ORIGIN_PROFILE)
            continue;
        if (is_of_other_mode(scenario, (enum vp_field)f))
            continue;
        out->assumptions[out->assumption_count++] =
            (struct vp_assumption){vp_field_label(scenario->engine.kind, (enum vp_field)f),
                                   vp_field_value(ctx->arena, scenario, (enum vp_field)f),
                                   source->why ? source->why : "", source->origin};
    }
    out->assumptions[out->assumption_count++] =
        (struct vp_assumption){"engine overheads", scenario->engine.rules.overhead_class,
                               vp_arena_printf(ctx->arena, "class interval, not calibrated (%s)",
                                               scenario->engine.rules.overhead_source),
                               VP_ORIGIN_PROFILE};
}

/* A checkpoint's tensors against the shapes of its config: beyond 0.1 % something is not what it
 * seems (another quantisation, tied weights stored twice, a part that is not known). */
static void check_checkpoint(struct vp_ctx *ctx, const struct vp_scenario *scenario) {
    const struct vp_checkpoint *table = &scenario->model->checkpoint;
    struct vp_pos pos = {.file = table->source};
    uint64_t loaded = table->total_bytes - table->skipped_bytes;

    if (!table->known)
        return;
    struct vp_sum computed = vp_weights_unsharded(scenario->model);
    if (computed.overflow)
        return;
    uint64_t apart = loaded > computed.v ? loaded - computed.v : computed.v - loaded;
    if (apart <= loaded / 1000)
        return;
    vp_diag_add(ctx->diags, VP_D_WEIGHTS_DISAGREE, &pos,
                "the checkpoint's tensors take %s bytes, the sizes in its config.json say %s",
                vp_format_count(ctx->arena, loaded), vp_format_count(ctx->arena, computed.v));
    vp_diag_hint(ctx->diags, "the tensors are believed; check that both belong to one model");
}

static void set_names(struct vp_result *out) {
    for (uint32_t i = 0; i < out->device_count; i++) {
        struct vp_device *device = &out->devices[i];
        if (device->host)
            snprintf(device->id, sizeof device->id, "host");
        else
            snprintf(device->id, sizeof device->id, "gpu%u", device->first_rank);
    }
}

void vp_plan_latency(struct vp_arena *arena, struct vp_result *out) {
    switch (vp_scenario_accounting(out->scenario)) {
    case VP_ACCOUNT_POOL:
        vp_serve_latency(arena, out);
        break;
    case VP_ACCOUNT_LLAMA:
        vp_llama_latency(out);
        break;
    case VP_ACCOUNT_TRAIN:
        vp_train_latency(arena, out);
        break;
    }
}

static enum vp_status answer(struct vp_ctx *ctx, struct vp_result *out,
                             const struct vp_scenario *scenario, bool suggest) {
    struct vp_params params = vp_ops_params(scenario->model);

    if (!vp_plan_evaluate(ctx->arena, out, scenario) || params.overflow) {
        vp_diag_add(ctx->diags, VP_D_OVERFLOW, &scenario->model->pos,
                    "a size of this model or workload exceeds 64 bits, or it has more kinds of "
                    "cache than the planner holds");
        return VP_ERR_INPUT;
    }
    out->params_total = params.total;
    out->params_active = params.active;
    out->diags = ctx->diags;
    set_names(out);
    check_checkpoint(ctx, scenario);
    set_assumptions(ctx, out);
    vp_plan_latency(ctx->arena, out);
    switch (vp_scenario_accounting(scenario)) {
    case VP_ACCOUNT_POOL:
        vp_pool_prices(ctx, out);
        vp_pool_first_order(out);
        out->reason_text = vp_pool_reason(ctx, out);
        vp_sleep_note(ctx, out);
        if (suggest)
            vp_suggest(ctx, out);
        vp_advice_add(ctx, out);
        break;
    case VP_ACCOUNT_LLAMA:
        vp_llama_answers(ctx, out);
        if (suggest)
            vp_llama_suggest(ctx, out);
        break;
    case VP_ACCOUNT_TRAIN:
        vp_train_check_allocator(ctx, scenario);
        vp_train_answers(ctx, out);
        if (suggest)
            vp_train_suggest(ctx, out);
        break;
    }
    return VP_OK;
}

enum vp_status vp_plan_answer(struct vp_ctx *ctx, struct vp_result *out,
                              const struct vp_scenario *scenario) {
    return answer(ctx, out, scenario, false);
}

enum vp_status vp_plan_run(struct vp_ctx *ctx, struct vp_result *out,
                           const struct vp_scenario *scenario) {
    return answer(ctx, out, scenario, true);
}
