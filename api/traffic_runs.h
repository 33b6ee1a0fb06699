/* Simulations of one set-up under one traffic: over seeds, and at the ends of what is not known
 * exactly, side by side in threads. Each leaves a handful of figures; its memory is given back. The
 * figures and their order do not depend on the number of threads. */
#ifndef VP_API_TRAFFIC_RUNS_H
#define VP_API_TRAFFIC_RUNS_H

#include "api/serving_settings.h"
#include "planner/plan/simulated.h"
#include "planner/serving/traffic.h"

struct vp_runs_ask {
    const struct vp_serving *serving;
    struct vp_traffic_settings traffic; /* its seed is set here */
    enum vp_loop loop;
    double duration_s, warmup_s;
    uint64_t warmup_requests, request_limit;
    uint64_t concurrency; /* closed loop: of everything */
    uint32_t seeds;       /* first_seed, first_seed + 1, ... */
    uint64_t first_seed;
    bool ends; /* at the fast and the slow end as well; else at the likely one alone */
    enum vp_serving_end end; /* without ends: this one */
    const struct vp_slo *slo;
    /* A run ends as soon as it is certain that a promise is broken: so many requests were too slow
     * that no later ones can make up for them. Other figures are then those up to there. */
    bool stop_when_broken;
    uint32_t bins; /* of the first run's time series; 0: 120 */
    unsigned threads;
    /* After every run, by one thread at a time; NULL: none. */
    void (*progress)(void *state, uint32_t done, uint32_t all);
    void *progress_state;
};

struct vp_run {
    enum vp_serving_end end;
    uint64_t seed;
    bool stopped;   /* a promise is broken for certain */
    bool exhausted; /* a closed loop whose requests are refused */
    uint64_t samples, cut;
    double figure[VP_SEEN_KINDS][VP_SEEN_FIGURES]; /* ms */
    double (*class_figure)[VP_SEEN_KINDS][VP_SEEN_FIGURES];
    uint64_t *class_samples;
    /* What each limit is held against, ms: requests that were refused count as endlessly late. */
    double limit[VP_SLO_LIMITS];
    double requests_per_s, prompt_tokens_per_s, output_tokens_per_s, goodput_per_s, good_share;
    struct vp_sim_totals totals; /* after the warm-up */
    double limit_share[VP_LIMIT_COUNT];
    double busy_share, cache_share, cache_peak_share, end_s;
    uint64_t running_peak, waiting_peak;
    struct vp_sim_bin *bin; /* the first run's only */
    uint32_t bins;
    double bin_s;
};

struct vp_runs {
    struct vp_run *item; /* by end, then by seed */
    uint32_t count;
    uint32_t seeds; /* of each end */
};

/* In the arena; VP_ERR_ENV: there was no memory for one of them. */
enum vp_status vp_runs_make(struct vp_arena *arena, struct vp_runs *out,
                            const struct vp_runs_ask *ask);
/* The i-th seed's run at an end; NULL: there is none. */
const struct vp_run *vp_runs_at(const struct vp_runs *runs, enum vp_serving_end end, uint32_t seed);
/* What the i-th limit is held against at one end: its mean over seeds, and what chance leaves open
 * either way. */
struct vp_seen vp_runs_limit(const struct vp_runs *runs, enum vp_serving_end end, uint32_t limit);

#endif
