/* What more would cost, the rule of thumb, and why it does not fit, for what has a cache pool. */
#ifndef VP_PLAN_POOL_ANSWERS_H
#define VP_PLAN_POOL_ANSWERS_H

#include "planner/plan/result.h"

void vp_pool_prices(struct vp_ctx *ctx, struct vp_result *out);
/* Parameters x bytes + activation bytes x batch x sequence + cache of every layer: what people
 * compute by hand, on one device of the tensor-parallel group. */
void vp_pool_first_order(struct vp_result *out);
/* One sentence with the figures; "" when there is no reason. */
const char *vp_pool_reason(struct vp_ctx *ctx, const struct vp_result *out);

#endif
