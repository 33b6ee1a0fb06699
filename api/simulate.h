/* `simulate`: a scenario and its traffic -> what a serving day came to. Plans the copies, reads the
 * trace, simulates over seeds and at the ends of what is not known exactly, holds what was seen
 * against what is promised.
 *
 * A promise is KEPT when even the slow end is within the limit, BROKEN when even the fast end is
 * beyond it; chance over seeds (95 %) is added to either. Where only the least that iterations take
 * is known (basis bound), it is BROKEN or OPEN, never kept. */
#ifndef VP_API_SIMULATE_H
#define VP_API_SIMULATE_H

#include "api/traffic_runs.h"
#include "api/variants.h"

/* How it is to be simulated; the traffic itself is the scenario's. */
struct vp_simulate_ask {
    const struct vp_slo *slo; /* NULL: the scenario's */
    double duration_s;        /* 0: the whole trace; of a process ten minutes, a ramp to its end */
    double warmup_s;          /* below 0: a tenth of the duration, nothing of a trace */
    uint32_t seeds;           /* 0: five, one where nothing is drawn */
    uint64_t first_seed;
    double rate_scale, time_scale; /* 1: as it is */
    unsigned threads;
    uint32_t bins; /* of the time series; 0: 120 */
    bool bare;     /* plans without their texts: for searches */
    void (*progress)(void *state, uint32_t done, uint32_t all);
    void *progress_state;
};

/* A scenario made ready: planned, its traffic known. */
struct vp_simulation {
    const struct vp_scenario *scenario;
    const struct vp_result *plan, *prefill;
    struct vp_serving serving;
    struct vp_slo slo;
    struct vp_trace trace; /* rows 0: none */
    struct vp_runs_ask runs;
    bool drawn; /* something is left to chance */
};

/* changes: laid over the variants' scenario. trace: one that was read before, NULL: it is read
 * here. Diagnostics are the context's; everything lives in its arena. */
enum vp_status vp_simulation_make(struct vp_ctx *ctx, struct vp_simulation *out,
                                  const struct vp_variants *variants,
                                  const struct vp_setting *changes, size_t change_count,
                                  const struct vp_simulate_ask *ask, const struct vp_trace *trace);
/* Runs it and says what was seen. */
enum vp_status vp_simulation_run(struct vp_ctx *ctx, struct vp_simulated *out,
                                 struct vp_simulation *simulation);

/* The exit status that a promise means. */
enum vp_exit vp_exit_of_promise(enum vp_promise promise);

#endif
