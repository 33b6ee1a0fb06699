/* A second opinion on an answer, in code of its own that is short enough to read: it shares neither
 * the moves, nor the bounds, nor the lists' order with the solver.
 *
 * Single-level classes: the answer carries prices and, for each position, labels (need, stored,
 * low). The bound holds when, from the last position to the first, everything that a stage or a
 * segment in front of a label gives is above the budget, or above the limit by the prices, or not
 * better than some label of its position. Multi-level classes carry no such proof; their plan, peak
 * and time are checked, and the bound is not. */
#ifndef VP_RECOMPUTE_CERTIFICATE_H
#define VP_RECOMPUTE_CERTIFICATE_H

#include "planner/recompute/recompute.h"

struct vp_certificate {
    bool plan;         /* the schedule is valid; its time and peak are the answer's; it fits */
    bool bound;        /* no plan of the class within the budget takes less than the bound */
    const char *fault; /* NULL, or what is wrong with one of the two */
};

void vp_certificate_check(struct vp_arena *scratch, struct vp_certificate *out,
                          const struct vp_chain *chain, enum vp_recompute_class class,
                          uint64_t budget_bytes, uint64_t inflight,
                          const struct vp_recompute_answer *answer);

#endif
