/* Figures of a real training run (measured: block) in the place of those computed, and what follows
 * from them. They are those of the worst rank; of a pipeline every stage is taken to be like it. */
#ifndef VP_PLAN_TRAIN_PINS_H
#define VP_PLAN_TRAIN_PINS_H

#include "planner/memory/train_stage.h"

/* Of a stage whose moments are there: parameters, gradients, states, tapes, logits and temporaries;
 * what is allocated between two steps and at the peak. Returns the peak that was computed, by which
 * a reserved peak can be scaled. */
uint64_t vp_train_pin(struct vp_train_stage *stage, const struct vp_scenario *scenario);
/* The reserved peak when it was measured, else scaled by a measured allocated peak. */
struct vp_amount vp_train_pin_reserved(struct vp_amount reserved, uint64_t computed_peak,
                                       const struct vp_scenario *scenario);

#endif
