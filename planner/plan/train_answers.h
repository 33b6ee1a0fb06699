/* A training step: first-order rule, reason, notes; and what each usual lever would save
 * (recomputation, fused loss, 8-bit optimizer, ZeRO stage, sequence parallelism, micro batch). */
#ifndef VP_PLAN_TRAIN_ANSWERS_H
#define VP_PLAN_TRAIN_ANSWERS_H

#include "planner/plan/result.h"

void vp_train_answers(struct vp_ctx *ctx, struct vp_result *out);
void vp_train_suggest(struct vp_ctx *ctx, struct vp_result *out);

#endif
