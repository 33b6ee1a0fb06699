/* What stands around the stack: embedding, final norm, head and loss. */
#include "planner/ops/tape_parts.h"

void vp_tape_first(struct vp_tape *out, const struct vp_scenario *scenario) {
    struct vp_tape_maker maker;

    vp_maker_start(&maker, out, scenario, NULL);
}

void vp_tape_last(struct vp_head_tape *out, const struct vp_scenario *scenario) {
    struct vp_tape_maker maker;

    vp_maker_start(&maker, &out->tape, scenario, NULL);
    out->logits_bytes = out->logits_peak_bytes = 0;
}
