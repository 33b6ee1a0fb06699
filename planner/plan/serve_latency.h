/* How fast a planned server is: the steady state of serve.concurrency requests, of which the cache
 * holds as many as the plan says, in the terms of planner/latency/serve_time.h. */
#ifndef VP_PLAN_SERVE_LATENCY_H
#define VP_PLAN_SERVE_LATENCY_H

#include "planner/latency/serve_time.h"
#include "planner/plan/result.h"

/* Number of the generation of a release of an engine (planner/latency/serving_generations.def), by
 * the engine's name; the last one where no release is said. */
int vp_serving_generation(const char *engine, const struct vp_version *version);
/* Its first release and that of the next one; NULL: there is no bound. */
void vp_serving_generation_span(const char *engine, int generation, const char **from,
                                const char **until);

/* The load of an evaluated serving plan. */
void vp_serve_load_of(struct vp_serve_load *out, const struct vp_result *result);
/* Into result->latency. */
void vp_serve_latency(struct vp_arena *arena, struct vp_result *result);

#endif
