/* What simulate.c and simulate_seen.c share; private to them. */
#ifndef VP_API_SIMULATE_PARTS_H
#define VP_API_SIMULATE_PARTS_H

#include "api/simulate.h"

/* Figures over seeds and ends, promises. */
void vp_simulated_fill(struct vp_arena *arena, struct vp_simulated *out,
                       const struct vp_simulation *simulation, const struct vp_runs *runs);
/* What the plan's formulas say to the same mean traffic. */
void vp_simulated_analyse(struct vp_arena *arena, struct vp_simulated *out,
                          const struct vp_simulation *simulation);
/* What stands in the way, when all else is filled in. */
void vp_simulated_limit(struct vp_simulated *out);

#endif
