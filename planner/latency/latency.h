/* How long a scenario's steps take: folds over the operator list with the times of kernels.h.
 * Nothing is known exactly here: every figure is an interval with a basis (calibrated: fitted to
 * measurements of this GPU; class: from what cards of its kind reach; bound: only the data sheet's
 * limit, no likely figure). */
#ifndef VP_LATENCY_LATENCY_H
#define VP_LATENCY_LATENCY_H

#include "planner/base/arena.h"
#include "planner/latency/kernels.h"

/* low, likely, high in the unit of the name. With basis BOUND there is no likely figure: of a time
 * only low holds (at least), of a rate only high (at most). NONE: nothing is known. */
struct vp_estimate {
    enum vp_basis basis;
    double low, likely, high;
};

/* Where a step's time goes; what reports show. */
struct vp_time_part {
    const char
        *name; /* "attention", "linear layers", "experts", "all-reduce", "host", "recomputation" */
    struct vp_time time;
};
enum { VP_TIME_PARTS = 16 };

struct vp_latency {
    struct vp_estimate ttft_ms, tpot_ms, step_ms;
    struct vp_estimate prefill_tokens_per_s, decode_tokens_per_s;
    struct vp_time_part part[VP_TIME_PARTS]; /* of step_ms */
    uint32_t parts;
    const char *taken; /* what bounds take for granted, said beside them; NULL: nothing */
    const char *why;   /* of the basis: which calibration, or what is missing; NULL: none */
    bool beyond_probe; /* measuring the card would not tell what is missing */
};

#endif
