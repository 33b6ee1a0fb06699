/* The core: ledger, devices and verdict of one scenario, by how its memory is accounted for. No
 * texts, no files. */
#include <string.h>

#include "planner/plan/budget_values.h"
#include "planner/plan/evaluate_parts.h"

/* The least sure of a component's rows at a step; of all its rows when it has none there. */
static enum vp_confidence confidence_at(const struct vp_ledger *ledger, uint32_t index,
                                        enum vp_component component, enum vp_step step) {
    enum vp_confidence then = VP_EXACT;
    bool some = false;

    for (uint32_t i = 0; i < ledger->count; i++) {
        const struct vp_row *row = &ledger->rows[i];
        if (row->device != index || row->component != component || row->from > step ||
            row->to < step)
            continue;
        some = true;
        if (row->confidence > then)
            then = row->confidence;
    }
    return some ? then : vp_ledger_confidence(ledger, index, component);
}

void vp_device_fold(struct vp_device *device, const struct vp_ledger *ledger, uint32_t index) {
    device->peak_step = vp_ledger_peak(ledger, index);
    for (uint32_t i = 0; i < ledger->count; i++)
        if (ledger->rows[i].device == index)
            device->present[ledger->rows[i].component] = true;
    for (int c = 0; c < VP_COMPONENT_COUNT; c++) {
        enum vp_component component = (enum vp_component)c;
        if (!device->present[c])
            continue;
        device->component[c] = vp_ledger_component(ledger, index, component, device->peak_step);
        device->confidence[c] = confidence_at(ledger, index, component, device->peak_step);
    }
    device->need = vp_ledger_at(ledger, index, device->peak_step);
}

int64_t vp_device_headroom(const struct vp_device *device) {
    return (int64_t)device->usable_bytes - (int64_t)device->need.likely;
}

int vp_need_over(struct vp_amount need, uint64_t limit) {
    return need.low > limit ? 2 : need.high > limit ? 1 : 0;
}

void vp_verdict_settle(struct vp_result *out, enum vp_reason reason, int shortage) {
    enum vp_verdict verdict = shortage == 0   ? VP_FITS
                              : shortage == 1 ? VP_AT_RISK
                                              : VP_DOES_NOT_FIT;
    if (verdict > out->verdict) {
        out->verdict = verdict;
        out->reason = reason;
    }
}

static void settle_limit(struct vp_result *out, struct vp_quantity value, uint64_t limit,
                         bool upper) {
    vp_verdict_settle(out, VP_REASON_BUDGET, (int)vp_budget_keeps(value, (int64_t)limit, upper));
}

void vp_verdict_budget(struct vp_result *out) {
    const struct vp_budget *budget = &out->scenario->budget;

    for (enum vp_bound b = 0; b < VP_BOUND_COUNT; b++)
        if (budget->bound[b].given)
            settle_limit(out, vp_budget_bound(out, b), budget->bound[b].value,
                         vp_bound_is_upper(b));
    for (enum vp_component c = 0; c < VP_COMPONENT_COUNT; c++)
        if (budget->component[c].given)
            settle_limit(out, vp_budget_component(out, c), budget->component[c].value, true);
}

/* The folds over the ledger add without checks, and headroom is a signed number. */
bool vp_ledger_too_large(const struct vp_ledger *ledger) {
    struct vp_sum all = vp_sum(0);

    for (uint32_t i = 0; i < ledger->count; i++)
        all = vp_sum_add(all, ledger->rows[i].bytes.high);
    return all.overflow || all.v > INT64_MAX;
}

bool vp_plan_evaluate(struct vp_arena *arena, struct vp_result *out,
                      const struct vp_scenario *scenario) {
    bool done = false;

    memset(out, 0, sizeof *out);
    out->scenario = scenario;
    out->mode = scenario->training ? "train" : "serve";
    out->ledger.arena = arena;
    switch (vp_scenario_accounting(scenario)) {
    case VP_ACCOUNT_POOL:
        done = vp_evaluate_pool(arena, out);
        break;
    case VP_ACCOUNT_LLAMA:
        done = vp_evaluate_llama(arena, out);
        break;
    case VP_ACCOUNT_TRAIN:
        done = vp_evaluate_train(arena, out);
        break;
    }
    return done;
}

const char *vp_verdict_name(enum vp_verdict verdict) {
    static const char *const names[] = {"fits", "at-risk", "does-not-fit"};
    return names[verdict];
}
