/* Which constants an engine has on a scenario's card (struct vp_serving_fit): those fitted to rows
 * of that card, else those of its class, else none, so that times are bounds. Estimates of a steady
 * state (planner/plan/serve_latency.h) and simulated iterations (planner/serving/step_time.h) both
 * ask here. */
#ifndef VP_LATENCY_ENGINE_CONSTANTS_H
#define VP_LATENCY_ENGINE_CONSTANTS_H

#include "planner/base/arena.h"
#include "planner/latency/serve_sum.h"

struct vp_engine_constants {
    const struct vp_serving_fit *fit; /* NULL: none, kernels alone are known */
    enum vp_basis basis;              /* CALIBRATED, CLASS; BOUND without constants */
    const char *why;                  /* "vLLM 0.19 on this card (points.csv)" */
};
void vp_engine_constants_of(struct vp_arena *arena, struct vp_engine_constants *out,
                            const struct vp_scenario *scenario);

/* How far a time lies from its likely value in nine cases of ten, either way: the spread of the
 * constants; where the class answers, widened by what is not known of the kernels of `pass`. */
double vp_engine_spread(const struct vp_engine_constants *constants, double spread,
                        const struct vp_pass *pass);

/* Number of the generation of a release of an engine (planner/latency/serving_generations.def), by
 * the engine's name; the last one where no release is said. */
int vp_serving_generation(const char *engine, const struct vp_version *version);
/* Its first release and that of the next one; NULL: there is no bound. */
void vp_serving_generation_span(const char *engine, int generation, const char **from,
                                const char **until);

#endif
