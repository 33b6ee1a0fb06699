/* Activation peak of a serving engine's profile run: the largest of the network's run, the
 * sampler's and a multimodal encoder's, as fitted on start-up logs (F-A-01 to F-A-04). An interval,
 * never exact, but for what the encoder's run leaves (F-V-01). */
#ifndef VP_MEMORY_ACTIVATION_H
#define VP_MEMORY_ACTIVATION_H

#include "planner/memory/encoder.h"
#include "planner/memory/ledger.h"
#include "planner/memory/stage.h"

struct vp_activation {
    uint64_t sampler_bytes;        /* logits and their copies, not divided by tensor parallelism */
    uint64_t layer_bytes;          /* tokens through the widest block */
    uint64_t workspace_bytes;      /* routed experts */
    uint64_t encoder_bytes;        /* what an encoder of unknown sizes leaves */
    uint64_t speculation_bytes;    /* of the rejection sampler's run, on top */
    uint64_t tokens;               /* of the network's run */
    struct vp_encoder_run encoder; /* what one of known sizes does; what it leaves is in `total` */
    struct vp_amount total;
    bool sampler_wins; /* over the network's run */
    bool encoder_wins; /* over both */
    bool overflow;
};

/* last: the stage holds the head and the sampler. */
void vp_activation_make(struct vp_activation *out, const struct vp_scenario *scenario, bool last);
void vp_activation_add(struct vp_ledger *ledger, const struct vp_activation *activation,
                       const struct vp_scenario *scenario, uint32_t device);

#endif
