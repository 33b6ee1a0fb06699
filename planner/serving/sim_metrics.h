/* What a simulation keeps of what happened: samples per request, integrals over time in bins whose
 * width doubles when they run out, totals of the whole run and of what counts (after the warm-up).
 * A request counts by its arrival, everything else by its time. */
#ifndef VP_SERVING_SIM_METRICS_H
#define VP_SERVING_SIM_METRICS_H

#include "planner/serving/simulator.h"

struct vp_sim_metrics {
    struct vp_arena *arena;
    struct vp_sim_result *out;
    uint32_t bins; /* room */
    uint64_t room; /* of the samples */
    uint32_t engines;
    double counted_from_us; /* INFINITY: not yet */
    double level_us;        /* until when running and waiting are in the bins */
    uint64_t running, waiting;
    double busy, cache, limit[VP_LIMIT_COUNT]; /* integrals over what counts */
};

void vp_metrics_init(struct vp_sim_metrics *m, struct vp_arena *arena, struct vp_sim_result *out,
                     uint32_t bins, uint32_t engines);
/* Sequences that run and wait change at this time. */
void vp_metrics_level(struct vp_sim_metrics *m, double now_us, int64_t running, int64_t waiting);
/* One engine from here to there: its time's shares by limit, and the share of its cache that is
 * held on average. */
void vp_metrics_span(struct vp_sim_metrics *m, double from_us, double to_us,
                     const double share[VP_LIMIT_COUNT], double cache_share);
/* Tokens of an iteration or a run of them. */
void vp_metrics_tokens(struct vp_sim_metrics *m, double from_us, double to_us, double prompt,
                       double recomputed, double output);
enum vp_sim_count { VP_COUNT_ARRIVAL, VP_COUNT_FINISHED, VP_COUNT_PREEMPTION, VP_COUNT_HIT };
void vp_metrics_count(struct vp_sim_metrics *m, double now_us, enum vp_sim_count what,
                      double amount);
void vp_metrics_sample(struct vp_sim_metrics *m, const struct vp_request_record *record,
                       double queued_us);
/* Means of the bins and of the whole. */
void vp_metrics_finish(struct vp_sim_metrics *m, double end_us);

#endif
