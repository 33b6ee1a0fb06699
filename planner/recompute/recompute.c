#include "planner/recompute/recompute.h"

#include <assert.h>
#include <stdlib.h>

#include "planner/base/sum.h"
#include "planner/recompute/judge.h"

static const struct {
    const char *name, *meaning;
} CLASSES[VP_PLACE_CLASSES] = {
    [VP_PLACE_EQUAL] = {"a", "equal segments"},
    [VP_PLACE_SEGMENTS] = {"b", "segments of any length"},
    [VP_PLACE_OPTIONS] = {"d", "one tape option per stage"},
    [VP_PLACE_JOINT] = {"e", "segments and tape options"},
    [VP_PLACE_MULTILEVEL] = {"c0", "segments inside segments"},
    [VP_PLACE_MULTILEVEL_OPTIONS] = {"c", "segments inside segments and tape options"},
    [VP_PLACE_PIPELINE] = {"pp", "segments and tape options of a pipeline stage"},
};

const char *vp_recompute_class_name(enum vp_recompute_class class) { return CLASSES[class].name; }

const char *vp_recompute_class_meaning(enum vp_recompute_class class) {
    return CLASSES[class].meaning;
}

/* What the judge says is the answer; a solver that says something else is wrong. */
static void judge(struct vp_arena *arena, struct vp_recompute_answer *out,
                  const struct vp_chain *chain, uint64_t budget_bytes, uint64_t inflight) {
    struct vp_judgement j;
    uint64_t others = 0;
    if (out->plan.count) {
        vp_plan_schedule(arena, &out->schedule, chain, &out->plan);
        others = (inflight - 1) * vp_plan_stored(chain, &out->plan);
    }
    vp_judge(arena, &j, chain, &out->schedule);
    assert(!j.fault);
    assert(j.time == out->time);
    assert(j.peak_bytes + others <= budget_bytes);
    out->peak_bytes = j.peak_bytes + others;
    uint64_t gap = out->time - out->bound;
    out->gap_ppb = out->bound ? vp_ceil_div(vp_mul_div(gap, 1000000000, 1), out->bound) : 0;
    out->optimal = gap == 0;
}

void vp_recompute_solve(struct vp_arena *arena, struct vp_recompute_answer *out,
                        const struct vp_chain *chain, enum vp_recompute_class class,
                        uint64_t budget_bytes, uint64_t inflight) {
    assert(inflight == 1 || class == VP_PLACE_PIPELINE);
    switch (class) {
    case VP_PLACE_EQUAL:
        vp_recompute_equal(arena, out, chain, budget_bytes);
        break;
    case VP_PLACE_MULTILEVEL:
    case VP_PLACE_MULTILEVEL_OPTIONS:
        vp_recompute_multilevel(arena, out, chain, class == VP_PLACE_MULTILEVEL_OPTIONS,
                                budget_bytes);
        break;
    default:
        vp_recompute_single(arena, out, chain, class, budget_bytes, inflight);
        break;
    }
    if (out->feasible)
        judge(arena, out, chain, budget_bytes, inflight);
}

/* ---- frontiers ---- */

static int by_peak(const void *a, const void *b) {
    const struct vp_frontier_point *x = a, *y = b;
    if (x->peak_bytes != y->peak_bytes)
        return x->peak_bytes < y->peak_bytes ? -1 : 1;
    return (x->time > y->time) - (x->time < y->time);
}

void vp_frontier_close(struct vp_frontier *out, struct vp_frontier_point *points, uint32_t count) {
    uint64_t low = UINT64_MAX;
    if (count)
        qsort(points, count, sizeof *points, by_peak);
    out->points = points;
    out->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct vp_frontier_point *last = &points[out->count - 1];
        low = vp_min(low, points[i].bound);
        if (out->count && points[i].time >= last->time)
            continue;
        points[out->count] = points[i];
        points[out->count++].bound = low;
    }
}

void vp_recompute_frontier(struct vp_arena *arena, struct vp_frontier *out,
                           const struct vp_chain *chain, enum vp_recompute_class class,
                           uint64_t inflight) {
    switch (class) {
    case VP_PLACE_EQUAL:
        vp_recompute_equal_frontier(arena, out, chain);
        break;
    case VP_PLACE_MULTILEVEL:
    case VP_PLACE_MULTILEVEL_OPTIONS:
        vp_recompute_multilevel_frontier(arena, out, chain, class == VP_PLACE_MULTILEVEL_OPTIONS);
        break;
    default:
        vp_recompute_single_frontier(arena, out, chain, class, inflight);
        break;
    }
}
