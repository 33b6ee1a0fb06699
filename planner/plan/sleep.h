/* vLLM's sleep mode: what a sleeping engine gives back and what stays on the card. */
#ifndef VP_PLAN_SLEEP_H
#define VP_PLAN_SLEEP_H

#include "planner/plan/result.h"

/* On each card of the worst stage, of an engine that was started with sleep mode. */
struct vp_asleep {
    struct vp_amount stays; /* context, captured graphs, what the allocator keeps */
    uint64_t loaded_bytes;  /* weights: to host memory (level 1) or dropped (level 2) */
    uint64_t cache_bytes;   /* dropped */
};
/* False: the scenario's engine has no sleep mode, or it is off. */
bool vp_sleep_asleep(struct vp_asleep *out, const struct vp_result *result);
/* VP_D_SLEEP_MODE when the engine was started with it; nothing else changes. */
void vp_sleep_note(struct vp_ctx *ctx, const struct vp_result *result);

#endif
