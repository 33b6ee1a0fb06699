/* A planned scenario -> what the simulation of its serving takes: copies of the engine, their
 * scheduler and cache as the plan has them, the times of their iterations. Which setting of an
 * engine becomes what: docs/SIMULATE.md. */
#ifndef VP_API_SERVING_SETTINGS_H
#define VP_API_SERVING_SETTINGS_H

#include "planner/plan/result.h"
#include "planner/serving/simulator.h"
#include "planner/serving/step_time.h"

/* The figures that are not exact at their best, at their likely, at their worst: iterations, delays
 * and blocks of the cache. */
enum vp_serving_end { VP_SERVING_FAST, VP_SERVING_LIKELY, VP_SERVING_SLOW };
enum { VP_SERVING_ENDS = 3 };

/* One copy of the set-up, which is planned. */
struct vp_serving_copy {
    const struct vp_result *plan;
    struct vp_step_time time;
    struct vp_cache_settings cache;
    struct vp_scheduler_settings scheduler;
    uint64_t engines; /* that do not meet: each a replica of the simulation */
    uint64_t gpus;
};

struct vp_serving {
    struct vp_serving_copy serve;   /* whole requests; disaggregated: answers */
    struct vp_serving_copy prefill; /* disaggregated: prompts; plan NULL: not */
    struct vp_sim_settings sim;     /* without clocks; loop, duration and seed are the traffic's */
    uint64_t replicas, prefill_replicas;
    uint64_t gpus; /* of everything */
};

/* plan: of the scenario; prefill: of the copies that read prompts, NULL without
 * serve.disaggregated. False: it is not simulated, and a diagnostic says why. What the result
 * points to lives in the arena of the context. */
bool vp_serving_make(struct vp_ctx *ctx, struct vp_serving *out, const struct vp_result *plan,
                     const struct vp_result *prefill);
/* The settings at one end, with clocks of their own in *times; two of them, [0] of serve. */
struct vp_sim_settings vp_serving_at(const struct vp_serving *serving, enum vp_serving_end end,
                                     struct vp_step_time times[2]);
/* The weaker of both kinds of copies. */
enum vp_basis vp_serving_basis(const struct vp_serving *serving);

#endif
