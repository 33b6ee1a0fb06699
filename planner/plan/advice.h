/* What an expert would add to a plan: the mistakes that users make most often, where a scenario
 * shows one. Notes only, with figures and what to do: nothing of the result changes, the verdict
 * least of all. Runs last in vp_plan_run. It evaluates variants of the scenario, so it never
 * belongs into vp_plan_evaluate. */
#ifndef VP_PLAN_ADVICE_H
#define VP_PLAN_ADVICE_H

#include "planner/plan/result.h"

/* Adds diagnostics to ctx->diags, in the order of the table of checks. */
void vp_advice_add(struct vp_ctx *ctx, const struct vp_result *result);

#endif
