/* Activation peak of a serving engine's profile run: the larger of the network's run and the
 * sampler's, as fitted on start-up logs (F-A-01 to F-A-03). An interval, never exact. */
#ifndef VP_MEMORY_ACTIVATION_H
#define VP_MEMORY_ACTIVATION_H

#include "planner/memory/ledger.h"
#include "planner/memory/stage.h"

struct vp_activation {
    uint64_t sampler_bytes;   /* logits and their copies, not divided by tensor parallelism */
    uint64_t layer_bytes;     /* tokens through the widest block */
    uint64_t workspace_bytes; /* routed experts */
    uint64_t encoder_bytes;   /* outputs of a multimodal encoder's profile run */
    uint64_t tokens;          /* of the network's run */
    struct vp_amount total;
    bool sampler_wins;
    bool overflow;
};

/* last: the stage holds the head and the sampler. */
void vp_activation_make(struct vp_activation *out, const struct vp_scenario *scenario, bool last);
void vp_activation_add(struct vp_ledger *ledger, const struct vp_activation *activation,
                       const struct vp_scenario *scenario, uint32_t device);

#endif
