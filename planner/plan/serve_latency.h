/* How fast a planned server is: the steady state of serve.concurrency requests, of which the cache
 * holds as many as the plan says, in the terms of planner/latency/serve_time.h. */
#ifndef VP_PLAN_SERVE_LATENCY_H
#define VP_PLAN_SERVE_LATENCY_H

#include "planner/latency/serve_time.h"
#include "planner/plan/result.h"

/* The load of an evaluated serving plan. */
void vp_serve_load_of(struct vp_serve_load *out, const struct vp_result *result);
/* Into result->latency. */
void vp_serve_latency(struct vp_arena *arena, struct vp_result *result);

#endif
