/* What more would cost under transformers `generate`. All prompts are one batch, so activations
 * grow with sequences and lengths as the cache does, and how far a card goes is found by
 * evaluation. */
#ifndef VP_PLAN_GENERATE_H
#define VP_PLAN_GENERATE_H

#include "planner/plan/result.h"

/* The same set-up with another workload; what generate derives from it follows. */
struct vp_scenario vp_generate_variant(const struct vp_scenario *scenario, uint64_t context,
                                       uint64_t sequences);
/* Fills result->prices and the maxima of result->kv. Uses the arena, and gives back what it took.
 */
void vp_generate_prices(struct vp_arena *arena, struct vp_result *result);

#endif
