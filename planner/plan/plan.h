/* Facade: a finished scenario -> its answer. */
#ifndef VP_PLAN_PLAN_H
#define VP_PLAN_PLAN_H

#include "planner/plan/result.h"

/* The bytes and the verdict only: no texts, no inverse answers, no names of devices, no counts of
 * parameters. This is the core that sweeps and searches call; it allocates from `arena` (rewind it
 * between calls) and cannot fail except by overflow, which it reports as false. */
bool vp_plan_evaluate(struct vp_arena *arena, struct vp_result *out,
                      const struct vp_scenario *scenario);
/* How long its steps take, into out->latency; what searches call when they rank by time. */
void vp_plan_latency(struct vp_arena *arena, struct vp_result *out);
/* Everything but suggestions: evaluation, prices, maxima, first-order rule, assumptions, notes.
 * What is asked at every key. */
enum vp_status vp_plan_answer(struct vp_ctx *ctx, struct vp_result *out,
                              const struct vp_scenario *scenario);
/* The same and suggestions, which take several evaluations more. */
enum vp_status vp_plan_run(struct vp_ctx *ctx, struct vp_result *out,
                           const struct vp_scenario *scenario);

#endif
