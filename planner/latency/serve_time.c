#include "planner/latency/latency.h"

void vp_latency_serve(struct vp_arena *arena, struct vp_latency *out,
                      const struct vp_scenario *scenario) {
    (void)arena;
    (void)scenario;
    *out = (struct vp_latency){0};
}

void vp_latency_llama(struct vp_arena *arena, struct vp_latency *out,
                      const struct vp_scenario *scenario) {
    (void)arena;
    (void)scenario;
    *out = (struct vp_latency){0};
}
