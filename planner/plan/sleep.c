#include "planner/plan/sleep.h"

#include "planner/base/units.h"

/* What was loaded: weights, adapter slots, the draft, an encoder's tensors. Two allocator tags
 * exist, "weights" and "kv_cache"; all else is outside of them (vLLM device_allocator/cumem.py). */
static bool is_loaded(const struct vp_row *row) {
    return row->from == VP_STEP_LOAD &&
           (row->component == VP_C_WEIGHTS || row->component == VP_C_ADAPTERS ||
            row->component == VP_C_DRAFT || row->component == VP_C_VISION);
}

static const char *gib(struct vp_ctx *ctx, uint64_t bytes) {
    return vp_format_gib(ctx->arena, bytes, 2);
}

bool vp_sleep_asleep(struct vp_asleep *out, const struct vp_result *result) {
    const struct vp_scenario *scenario = result->scenario;
    const struct vp_engine_report *report = &result->report;

    *out = (struct vp_asleep){.cache_bytes = report->available_kv.likely};
    if (!scenario->engine.sleep_mode || scenario->engine.kind != VP_ENGINE_VLLM)
        return false;
    for (uint32_t i = 0; i < result->ledger.count; i++)
        if (result->ledger.rows[i].device == result->worst && is_loaded(&result->ledger.rows[i]))
            out->loaded_bytes += result->ledger.rows[i].bytes.likely;
    /* torch's allocator may keep what the profile run made it reserve */
    out->stays = vp_amount_add(report->non_torch, report->graph);
    out->stays.high += report->activation_peak.likely;
    return true;
}

void vp_sleep_note(struct vp_ctx *ctx, const struct vp_result *result) {
    const struct vp_scenario *scenario = result->scenario;
    uint64_t ranks = scenario->parallel.tensor * scenario->parallel.data;
    struct vp_asleep asleep;

    if (!vp_sleep_asleep(&asleep, result))
        return;
    const struct vp_amount *stays = &asleep.stays;
    vp_diag_add(ctx->diags, VP_D_SLEEP_MODE, &scenario->source[VP_F_SLEEP_MODE].pos,
                "asleep, each card gives back %s GiB of weights and its cache of %s GiB; %s GiB "
                "stay on it (%s to %s): context, captured graphs, what the allocator keeps",
                gib(ctx, asleep.loaded_bytes), gib(ctx, asleep.cache_bytes),
                gib(ctx, stays->likely), gib(ctx, stays->low), gib(ctx, stays->high));
    vp_diag_hint(ctx->diags,
                 "level 1 keeps the weights in host memory, %s GiB for %s; level 2 drops them",
                 gib(ctx, asleep.loaded_bytes * ranks),
                 vp_arena_printf(ctx->arena, "%llu rank%s of a stage", (unsigned long long)ranks,
                                 ranks == 1 ? "" : "s"));
}
