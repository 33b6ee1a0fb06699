/* train.recompute: optimal. Finds for each pipeline stage the fastest plan (segments with tape
 * options) whose step fits the device, by the exact solvers of planner/recompute/ and, because
 * their chain does not know all that a step allocates, by evaluating the step and lowering the
 * budget by what it is short of. */
#ifndef VP_PLAN_OPTIMAL_H
#define VP_PLAN_OPTIMAL_H

#include "planner/plan/result.h"
#include "planner/plan/train_chain.h"
#include "planner/recompute/recompute.h"

/* What a stage leaves for the activations of one micro batch (and of the others in flight): the
 * usable bytes less what is allocated all the time and what is outside of the allocator, by their
 * upper ends. 0 when nothing is left. */
uint64_t vp_optimal_budget(const struct vp_scenario *scenario, const struct vp_train_stage *stage);
/* A copy of the scenario whose recompute setting is the plan; the scenario itself when it asks for
 * anything but `optimal`. Where no plan fits, everything is recomputed layer by layer. */
const struct vp_scenario *vp_optimal_scenario(struct vp_arena *arena,
                                              const struct vp_scenario *scenario);

#endif
