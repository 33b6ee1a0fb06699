/* One training step over time: what a pipeline stage allocates at every instant of two steps, of
 * what, and what the caching allocator reserves for it. For reports, exports and screens; the peaks
 * of a plan are found without it. */
#ifndef VP_PLAN_TRAIN_TIMELINE_H
#define VP_PLAN_TRAIN_TIMELINE_H

#include "planner/plan/result.h"
#include "planner/timeline/walk.h"

struct vp_timeline {
    const struct vp_result *result; /* the plan */
    uint32_t index;                 /* of the stage */
    const struct vp_train_stage *stage;
    struct vp_allocator_settings settings; /* of the allocator */
    const struct vp_walk *walk;            /* with its spans */
};

/* Of stage `index` of a training plan. The walk lives in the arena. Where the step does not fit, it
 * is told as if there were no limit: walk->out_of_memory is then false and the device's total
 * stands in `settings`. False: a size exceeds 64 bits. */
bool vp_timeline_make(struct vp_arena *arena, struct vp_timeline *out,
                      const struct vp_result *result, uint32_t index);
/* What is at work, in words: "backward of block 31, while its tape is rebuilt". */
const char *vp_timeline_cause(struct vp_arena *arena, const struct vp_walk_instant *instant);

#endif
