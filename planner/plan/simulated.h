/* What a simulated serving day came to: plain values, filled by api/simulate.h, shown by reports/.
 * Times in milliseconds unless the name says otherwise. Lives in the arena of the one who asked. */
#ifndef VP_PLAN_SIMULATED_H
#define VP_PLAN_SIMULATED_H

#include "planner/model/trace.h"
#include "planner/plan/result.h"
#include "planner/serving/simulator.h"

/* A figure over all seeds. low and high: with iterations as fast and as slow, and caches as large
 * and as small, as they may be in nine cases of ten (what the basis leaves open), each further out
 * by what chance leaves open at that end. */
struct vp_seen {
    double likely; /* mean over seeds */
    double chance; /* half of its 95 % interval over seeds; 0: one seed */
    double low, high;
};

enum vp_seen_kind { VP_SEEN_TTFT, VP_SEEN_QUEUE, VP_SEEN_TPOT, VP_SEEN_E2E, VP_SEEN_KINDS };
enum vp_seen_figure {
    VP_SEEN_MEAN,
    VP_SEEN_P50,
    VP_SEEN_P90,
    VP_SEEN_P95,
    VP_SEEN_P99,
    VP_SEEN_MOST,
    VP_SEEN_FIGURES
};

/* How a promise stands to what was seen. */
enum vp_promise {
    VP_PROMISE_NONE,    /* nothing was promised */
    VP_PROMISE_KEPT,    /* even at the slow end */
    VP_PROMISE_AT_RISK, /* the interval holds the limit */
    VP_PROMISE_OPEN,    /* only the least that it takes is known, and that is within the limit */
    VP_PROMISE_BROKEN   /* even at the fast end */
};

struct vp_promised {
    const struct vp_slo_limit *limit;
    struct vp_seen seen;
    enum vp_promise state;
    double margin; /* share of the limit that is left at the likely figure; below 0: it is beyond */
};

/* What stands in the way of more requests, or of the promise. */
enum vp_bottleneck {
    VP_BOTTLENECK_NONE, /* the set-up is idle most of the time */
    VP_BOTTLENECK_MEMORY,
    VP_BOTTLENECK_SLOTS,
    VP_BOTTLENECK_PREFILL,
    VP_BOTTLENECK_DECODE,
    VP_BOTTLENECK_REFUSED /* requests that it does not take at all */
};
const char *vp_bottleneck_name(enum vp_bottleneck bottleneck); /* "kv-memory" */

/* What the plan's formulas say to the same mean traffic. */
struct vp_analytic {
    bool known;
    bool overloaded;  /* the rate is above what the set-up can do at all */
    double in_flight; /* requests, by Little's law */
    double ttft_ms, tpot_ms, e2e_ms;
    double most_requests_per_s; /* that the set-up could do */
    enum vp_basis basis;
};

struct vp_seen_class {
    const char *name;
    double share; /* of the requests that count */
    struct vp_seen seen[VP_SEEN_KINDS][VP_SEEN_FIGURES];
};

/* Drafted tokens pay from this acceptance on, with so many sequences at once of the day's mean
 * context. INFINITY: not even if all of them are right. */
struct vp_break_even {
    uint64_t sequences;
    double acceptance;
};
enum { VP_BREAK_EVENS = 6 }; /* 1, 4, 16, ..., 1024 */

struct vp_simulated {
    const struct vp_scenario *scenario;
    const struct vp_result *plan, *prefill; /* of one copy; prefill NULL: not disaggregated */
    const struct vp_diags *diags;
    uint64_t gpus, replicas, prefill_replicas;
    double price_per_hour;                 /* of all GPUs; 0: not known */
    double cost_per_million_output_tokens; /* 0: not known */
    enum vp_basis basis;
    const char *basis_why;
    double spread; /* of iterations, nine cases in ten */

    /* traffic */
    const char *arrival; /* as it was asked for */
    const struct vp_trace *trace;
    double rate_scale, time_scale;
    double duration_s, warmup_s;         /* 0: as long as the trace; none */
    double rate_per_s;                   /* asked for, on average; 0: closed loop or batch */
    double prompt_tokens, output_tokens; /* means */
    uint64_t cut;                        /* answers that the engine ends at its longest sequence */
    uint32_t seeds;
    uint64_t first_seed;
    bool no_chance; /* nothing is drawn: further seeds would give the same */

    /* the answer */
    enum vp_promise promise;
    struct vp_promised limit[VP_SLO_LIMITS];
    uint32_t limits;
    uint32_t tightest; /* of the limits: the one with the least margin */
    enum vp_bottleneck bottleneck;
    double peak_s;       /* when most requests wait */
    double peak_waiting; /* so many */
    bool peaked;         /* waiting is a matter of the peak: elsewhere hardly anybody waits */

    struct vp_seen seen[VP_SEEN_KINDS][VP_SEEN_FIGURES];
    struct vp_seen requests_per_s, prompt_tokens_per_s, output_tokens_per_s;
    struct vp_seen goodput_per_s, good_share; /* requests that keep every limit */
    struct vp_seen_class *class;
    uint32_t classes;
    struct vp_analytic analytic;

    /* of all seeds, likely figures */
    struct vp_sim_totals totals;
    double limit_share[VP_LIMIT_COUNT];
    struct vp_break_even break_even[VP_BREAK_EVENS];
    uint32_t break_evens; /* 0: no drafts */
    double busy_share, cache_share, cache_peak_share;
    uint64_t running_peak, waiting_peak;
    /* over time, of the first seed */
    struct vp_sim_bin *bin;
    uint32_t bins;
    double bin_s, end_s;
};

const char *vp_promise_name(enum vp_promise promise);  /* "kept", "at-risk", "open", "broken" */
const char *vp_seen_kind_name(enum vp_seen_kind kind); /* "ttft" */
const char *vp_seen_figure_name(enum vp_seen_figure figure); /* "p99" */

#endif
