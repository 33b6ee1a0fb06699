/* Small changes that make a plan fit, each evaluated as a whole plan. */
#ifndef VP_PLAN_SUGGEST_H
#define VP_PLAN_SUGGEST_H

#include "planner/plan/result.h"

/* Fills result->suggestions when the verdict is not "fits". Only changes that fit for sure are
 * listed, the one with the most headroom lost last. */
void vp_suggest(struct vp_ctx *ctx, struct vp_result *result);

#endif
