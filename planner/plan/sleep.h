/* vLLM's sleep mode, as a note: what a sleeping engine gives back and what stays on the card. */
#ifndef VP_PLAN_SLEEP_H
#define VP_PLAN_SLEEP_H

#include "planner/plan/result.h"

/* VP_D_SLEEP_MODE when the engine was started with it; nothing else changes. */
void vp_sleep_note(struct vp_ctx *ctx, const struct vp_result *result);

#endif
