/* transformers `generate`: no pool and no policy. The cache grows with the sequences; what the card
 * has, less what others hold, is there for it. */
#include "planner/memory/engine_stage.h"

void vp_transformers_pool(struct vp_engine_stage *stage, const struct vp_scenario *scenario) {
    const struct vp_hardware *hardware = &scenario->hardware;
    struct vp_amount taken = vp_amount_add(vp_amount_add(stage->weights, stage->activation),
                                           vp_amount_add(stage->non_torch, stage->graphs));
    struct vp_amount total = {hardware->memory.low, hardware->memory_bytes, hardware->memory.high};
    struct vp_amount room = vp_amount_above(total, vp_exactly(hardware->reserved_bytes));

    stage->requested_bytes = stage->usable_bytes = room.likely;
    stage->graphs_in_budget = true;
    stage->available = vp_amount_above(room, taken);
    stage->available_negative = room.high <= taken.low;
    stage->reserved_bytes = 0; /* nothing ahead of need */
}
