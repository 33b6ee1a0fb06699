#include "planner/plan/budget_values.h"

#include "planner/base/text.h"
#include "planner/base/units.h"

static struct vp_quantity larger(struct vp_quantity a, struct vp_amount b) {
    return (struct vp_quantity){(int64_t)vp_max((uint64_t)a.low, b.low),
                                (int64_t)vp_max((uint64_t)a.likely, b.likely),
                                (int64_t)vp_max((uint64_t)a.high, b.high)};
}

static struct vp_quantity need(const struct vp_result *result, bool host) {
    struct vp_quantity most = {0};
    for (uint32_t i = 0; i < result->device_count; i++)
        if (result->devices[i].host == host)
            most = larger(most, result->devices[i].need);
    return most;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static struct vp_quantity headroom(const struct vp_result *result) {
    struct vp_quantity most = {INT64_MAX, INT64_MAX, INT64_MAX};
    for (uint32_t i = 0; i < result->device_count; i++) {
        const struct vp_device *d = &result->devices[i];
        int64_t usable = (int64_t)d->usable_bytes;
        if (d->host)
            continue;
        most.low = least(most.low, usable - (int64_t)d->need.high);
        most.likely = least(most.likely, usable - (int64_t)d->need.likely);
        most.high = least(most.high, usable - (int64_t)d->need.low);
    }
    return most;
}

/* The engine's own interval where the plan's number is its middle. */
static struct vp_quantity context(const struct vp_result *result) {
    const struct vp_amount *a = &result->report.estimated_max_model_len;
    uint64_t v = result->kv.max_context;
    if (v != a->likely)
        return (struct vp_quantity){(int64_t)v, (int64_t)v, (int64_t)v};
    return (struct vp_quantity){(int64_t)a->low, (int64_t)v, (int64_t)a->high};
}

/* Of all data-parallel ranks; as uncertain as the number of cache blocks. */
static struct vp_quantity concurrency(const struct vp_result *result) {
    const struct vp_amount *blocks = &result->report.num_gpu_blocks;
    uint64_t ranks = vp_sequence_ranks(result->scenario);
    uint64_t milli = vp_min(result->kv.max_concurrency_milli, (uint64_t)INT64_MAX / 1000);
    uint64_t likely = vp_mul_div(milli, ranks, 1000);
    struct vp_quantity all = {(int64_t)likely, (int64_t)likely, (int64_t)likely};
    if (vp_scenario_accounting(result->scenario) != VP_ACCOUNT_POOL || blocks->likely == 0)
        return all;
    all.low = (int64_t)(vp_mul_div(milli, blocks->low, blocks->likely) / 1000 * ranks);
    all.likely = (int64_t)(milli / 1000 * ranks);
    all.high = (int64_t)(vp_mul_div(milli, blocks->high, blocks->likely) / 1000 * ranks);
    return all;
}

struct vp_quantity vp_budget_bound(const struct vp_result *result, enum vp_bound bound) {
    switch (bound) {
    case VP_BOUND_MEMORY:
        return need(result, false);
    case VP_BOUND_HEADROOM:
        return headroom(result);
    case VP_BOUND_HOST:
        return need(result, true);
    case VP_BOUND_CONTEXT:
        return context(result);
    case VP_BOUND_CONCURRENCY:
        return concurrency(result);
    case VP_BOUND_COUNT:
        break;
    }
    return (struct vp_quantity){0};
}

struct vp_quantity vp_budget_component(const struct vp_result *result,
                                       enum vp_component component) {
    struct vp_quantity most = {0};
    for (uint32_t i = 0; i < result->device_count; i++)
        if (!result->devices[i].host)
            most = larger(most, result->devices[i].component[component]);
    return most;
}

enum vp_kept vp_budget_keeps(struct vp_quantity value, int64_t limit, bool upper) {
    if (upper)
        return value.high <= limit ? VP_KEPT : value.low <= limit ? VP_KEPT_MAYBE : VP_EXCEEDED;
    return value.low >= limit ? VP_KEPT : value.high >= limit ? VP_KEPT_MAYBE : VP_EXCEEDED;
}

static const char *show(struct vp_arena *arena, int64_t value, bool bytes) {
    uint64_t n = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    return vp_arena_printf(arena, "%s%s", value < 0 ? "-" : "",
                           bytes ? vp_format_bytes(arena, n) : vp_format_count(arena, n));
}

/* ", memory 18.02 GiB (at most 18.00 GiB)" where the limit is given and not surely kept. */
static void add_limit(struct vp_buf *out, const char *name, const struct vp_limit *limit,
                      struct vp_quantity value, bool upper, bool bytes) {
    struct vp_arena *arena = out->arena;
    if (!limit->given || vp_budget_keeps(value, (int64_t)limit->value, upper) == VP_KEPT)
        return;
    const char *low = show(arena, value.low, bytes), *high = show(arena, value.high, bytes);
    bool exact = vp_text_eq(low, high);
    vp_buf_printf(out, "%s%s %s%s%s (at %s %s)", out->size ? ", " : "", name, low,
                  exact ? "" : " to ", exact ? "" : high, upper ? "most" : "least",
                  show(arena, (int64_t)limit->value, bytes));
}

const char *vp_budget_reason(struct vp_arena *arena, const struct vp_result *result) {
    const struct vp_budget *budget = &result->scenario->budget;
    struct vp_buf out = {.arena = arena};
    for (enum vp_bound b = 0; b < VP_BOUND_COUNT; b++)
        add_limit(&out, vp_bound_name(b), &budget->bound[b], vp_budget_bound(result, b),
                  vp_bound_is_upper(b), b < VP_BOUND_CONTEXT);
    for (enum vp_component c = 0; c < VP_COMPONENT_COUNT; c++)
        add_limit(&out, vp_component_name(c), &budget->component[c], vp_budget_component(result, c),
                  true, true);
    return vp_arena_printf(arena, "the scenario's own budget %s exceeded: %s",
                           result->verdict == VP_AT_RISK ? "may be" : "is", vp_buf_text(&out));
}
