/* Programs side by side on the GPUs of one node: which GPUs each of them gets. Plain numbers: every
 * program has options (so many GPUs, so many bytes on each of them in every phase), all GPUs are
 * equal, and loads add up.
 *
 * Exact: depth first over programs, options and sets of GPUs (GPUs with equal loads count as one
 * kind), with bounds. What is best, in this order: fewest GPUs that several programs are on, fewest
 * GPUs taken over all programs, the least load on the fullest GPU. A cap on the steps ends the
 * search of very large inputs; then `complete` is false.
 *
 * Not here: links between GPUs (any set is as good as another), host memory. */
#ifndef VP_PLAN_PLACING_H
#define VP_PLAN_PLACING_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/base/arena.h"

enum { VP_PLACING_GPUS = 64, VP_PLACING_PHASES = 8, VP_PLACING_PROGRAMS = 64 };

struct vp_placing_option {
    uint32_t width;                    /* GPUs */
    uint64_t bytes[VP_PLACING_PHASES]; /* on each of them */
};

struct vp_placing_program {
    const struct vp_placing_option *option;
    uint32_t options;
};

struct vp_placing {
    bool found, complete;
    uint32_t option[VP_PLACING_PROGRAMS];
    uint64_t gpus[VP_PLACING_PROGRAMS]; /* bit g: GPU g */
    uint64_t load[VP_PLACING_GPUS][VP_PLACING_PHASES];
    uint64_t fullest; /* the largest load */
    uint64_t steps;
};

/* capacity_bytes of each GPU; UINT64_MAX: whatever it takes, and then the least load on the fullest
 * GPU is what is best first. Counts are at most the enum's. */
void vp_placing_find(struct vp_placing *out, const struct vp_placing_program *programs,
                     uint32_t count, uint32_t gpus, uint32_t phases, uint64_t capacity_bytes);

#endif
