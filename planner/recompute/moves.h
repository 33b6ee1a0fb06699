/* The moves of a single-level plan: from position p a plan keeps stage p with some option, or makes
 * stages p..q one segment that is recomputed. What a move needs depends on what came before only
 * through the bytes S that the plan stores before p, so a plan is a path over positions:
 *
 *   S + need <= budget at every move, S grows by `stored`, the extra times add up.
 *
 * Seen from the end, with R = the bytes that the rest of the plan needs beyond S:
 *
 *   R = max(need, stored + R of the position after the move).
 *
 * Under pipelining each further microbatch in flight holds what its plan stores: the peak is
 * R + (inflight - 1) * T, T = all that is stored. Internal to planner/recompute. */
#ifndef VP_RECOMPUTE_MOVES_H
#define VP_RECOMPUTE_MOVES_H

#include "planner/recompute/chain.h"

#define VP_MOVE_SEGMENT UINT32_MAX
#define VP_MOVES_UNREACHED UINT64_MAX
/* No budget: above every sum of a chain that vp_chain_overflow lets pass. */
#define VP_MOVES_NO_BUDGET ((uint64_t)1 << 60)

struct vp_move {
    uint64_t stored, need; /* bytes */
    uint64_t time;         /* beyond that of a plan that keeps every tape */
    uint32_t next;         /* position after it */
    uint32_t option;       /* VP_MOVE_SEGMENT: a segment */
};

struct vp_moves {
    uint32_t n;
    uint64_t others; /* microbatches in flight besides the one that runs */
    uint64_t budget;
    uint64_t most_time;    /* beyond base_time, of any plan */
    uint64_t base_time;    /* of a plan that keeps every tape */
    struct vp_move *items; /* those from position p: [first[p], first[p + 1]) */
    uint32_t *first;       /* n + 1 */
    uint64_t *least;       /* n + 1: the fewest bytes that any moves to p store, or UNREACHED */
};

/* Moves that no plan within the budget can make are left out. */
void vp_moves_make(struct vp_arena *arena, struct vp_moves *out, const struct vp_chain *chain,
                   uint64_t budget, uint64_t inflight, bool segments, bool options);
/* Whether bytes (R, T) of the moves from p on leave room for any moves before. */
static inline bool vp_moves_fit(const struct vp_moves *m, uint32_t p, uint64_t need,
                                uint64_t stored) {
    return m->least[p] != VP_MOVES_UNREACHED &&
           need + m->least[p] + m->others * (stored + m->least[p]) <= m->budget;
}

#endif
