/* llama.cpp: reason, prices, notes; and suggestions (fewer slots, smaller batches, cache types,
 * experts on the host, other cards). */
#ifndef VP_PLAN_LLAMA_ANSWERS_H
#define VP_PLAN_LLAMA_ANSWERS_H

#include "planner/plan/result.h"

void vp_llama_answers(struct vp_ctx *ctx, struct vp_result *out);
void vp_llama_suggest(struct vp_ctx *ctx, struct vp_result *out);

#endif
