/* What the multi-level solver leaves behind, for the checker. Internal to planner/recompute. */
#ifndef VP_RECOMPUTE_MULTILEVEL_H
#define VP_RECOMPUTE_MULTILEVEL_H

#include "planner/recompute/intervals.h"

struct vp_step {
    uint64_t bytes, time; /* extra time from so many bytes on */
    uint64_t low;         /* nothing within so many bytes takes less; time, when exact */
    uint32_t choice;      /* an option to keep the first stage with, or SPLIT + stages before it */
};

enum { VP_STEP_SPLIT = VP_CHAIN_MAX_OPTIONS };

struct vp_steps {
    struct vp_step *items; /* rising bytes, falling time, low that never rises */
    uint32_t count;
};

struct vp_multilevel {
    struct vp_intervals intervals;
    struct vp_steps *lists;         /* by id */
    uint64_t most_bytes, most_time; /* steps beyond were left out */
    bool options;
};

/* certificate_multilevel.c: whether nothing within the budget takes less time than bound. */
bool vp_multilevel_check(struct vp_arena *scratch, const struct vp_chain *chain,
                         const struct vp_multilevel *proof, uint64_t budget_bytes, uint64_t bound);

#endif
