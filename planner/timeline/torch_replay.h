/* The peaks of a PyTorch step: its events (torch_step.h) through the caching allocator. */
#ifndef VP_TIMELINE_TORCH_REPLAY_H
#define VP_TIMELINE_TORCH_REPLAY_H

#include "planner/timeline/allocator.h"
#include "planner/timeline/torch_step.h"

/* What was allocated at the worst instant of a phase. */
struct vp_torch_instant {
    uint64_t bytes;
    uint32_t layer; /* at work; VP_NO_LAYER: none */
    uint64_t component[VP_COMPONENT_COUNT];
};

struct vp_torch_peaks {
    struct vp_torch_instant phase[VP_TRAIN_MOMENTS]; /* of the second step, VP_STEP_FORWARD first */
    uint64_t allocated_peak;                         /* of the second step */
    uint64_t first_step_peak;
    uint64_t reserved_peak;
    bool out_of_memory; /* some request had no room */
};

/* False: a size exceeds 64 bits. */
bool vp_torch_replay(struct vp_arena *arena, struct vp_torch_peaks *out,
                     const struct vp_scenario *scenario, const struct vp_train_stage *stage,
                     const struct vp_allocator_settings *settings);

#endif
