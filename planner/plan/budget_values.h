/* What a plan comes to in the terms of a budget: worst rank, and as an interval where the figure is
 * one. The verdict of `plan` and the gate hold limits against these. */
#ifndef VP_PLAN_BUDGET_VALUES_H
#define VP_PLAN_BUDGET_VALUES_H

#include "planner/plan/result.h"

/* Signed, because headroom may be below zero. */
struct vp_quantity {
    int64_t low, likely, high;
};

/* Bytes, tokens or sequences. Memory: the largest need of a GPU; headroom: of the GPU with the
 * least; host memory: 0 when nothing is kept there. */
struct vp_quantity vp_budget_bound(const struct vp_result *result, enum vp_bound bound);
/* The largest share of a component that a GPU has at its peak; the host does not count. */
struct vp_quantity vp_budget_component(const struct vp_result *result, enum vp_component component);

enum vp_kept { VP_KEPT, VP_KEPT_MAYBE, VP_EXCEEDED };
/* The whole interval keeps the limit, a part of it, nothing. upper: at most, else at least. */
enum vp_kept vp_budget_keeps(struct vp_quantity value, int64_t limit, bool upper);
/* One sentence: which limits of the scenario's own budget are not kept. */
const char *vp_budget_reason(struct vp_arena *arena, const struct vp_result *result);

#endif
