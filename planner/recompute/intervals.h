/* Which parts of a chain are the same problem. Stages i..l, with x[i] outside, are given by what
 * each stage is; a stack of few kinds has few different parts, and each is solved once. Internal to
 * planner/recompute. */
#ifndef VP_RECOMPUTE_INTERVALS_H
#define VP_RECOMPUTE_INTERVALS_H

#include "planner/recompute/chain.h"

struct vp_interval {
    uint32_t first, last; /* the first place where it occurs */
};

struct vp_intervals {
    uint32_t n;
    uint32_t *id;              /* of stages i..l: vp_interval_id */
    struct vp_interval *items; /* by id, shorter ones first */
    uint32_t count;
    uint64_t splits; /* all ways to split each of them in two */
};

void vp_intervals_make(struct vp_arena *arena, struct vp_intervals *out,
                       const struct vp_chain *chain, bool options);

static inline uint32_t vp_interval_id(const struct vp_intervals *in, uint32_t i, uint32_t l) {
    return in->id[(size_t)i * in->n + l];
}

#endif
