/* A lower bound on the time of every plan within a budget, and on what any plan that begins or ends
 * in some way can still reach: a price per byte for each position, falling along the chain.
 *
 * With prices L[0] >= L[1] >= ... >= L[n] = 0 and R as in moves.h, every move from p to q obeys
 *
 *   L[p] * R[p] >= L[q] * (stored + R[q]) + (L[p] - L[q]) * need,
 *
 * because R[p] is at least each of the two. Added up over a plan, with R[0] + others * T <= budget:
 *
 *   time >= sum over its moves of (time + (L[q] + others * L[0]) * stored + (L[p] - L[q]) * need)
 *           - L[0] * budget
 *        >= shortest path with those lengths - L[0] * budget.
 *
 * Any prices give a true bound; good ones are found by a subgradient search in floating point, and
 * the bound is then evaluated in integers. Internal to planner/recompute. */
#ifndef VP_RECOMPUTE_DUAL_H
#define VP_RECOMPUTE_DUAL_H

#include "planner/recompute/moves.h"

typedef __int128 vp_wide; /* times scaled by 2^shift */

struct vp_dual {
    uint64_t *price; /* n + 1, times per byte, scaled by 2^shift */
    unsigned shift;
    vp_wide *before;  /* n + 1: shortest path from the begin to p */
    vp_wide *after;   /* n + 1: from p to the end */
    vp_wide *through; /* by move: shortest path from the begin to the end that takes it */
    uint64_t bound;   /* extra time that no plan is below */
};

/* Prices for the budget of the moves, which some plan keeps. */
void vp_dual_make(struct vp_arena *arena, struct vp_dual *out, const struct vp_moves *moves);
/* Shortest paths and the bound from the prices. */
void vp_dual_evaluate(struct vp_dual *dual, const struct vp_moves *moves);

static inline vp_wide vp_dual_length(const struct vp_dual *d, const struct vp_moves *m, uint32_t p,
                                     const struct vp_move *e) {
    vp_wide length = (vp_wide)e->time << d->shift;
    length += (vp_wide)d->price[e->next] * (vp_wide)e->stored;
    length += (vp_wide)d->price[0] * (vp_wide)(m->others * e->stored);
    return length + (vp_wide)(d->price[p] - d->price[e->next]) * (vp_wide)e->need;
}

#endif
