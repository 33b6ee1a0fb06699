/* An engine's constants from served requests: non-negative least squares on relative errors, first
 * of the constants of a pass (times between tokens, end-to-end times), then of what a first token
 * takes beside its passes. Robust: a row that is far off pulls with constant force. Deterministic.
 *
 * What is believed before (the constants of the engine's class) decides where rows say nothing:
 * layers and steps cannot be told apart when all models have as many layers. */
#ifndef VP_LATENCY_SERVE_FIT_H
#define VP_LATENCY_SERVE_FIT_H

#include "planner/latency/serve_sum.h"

/* One configuration that was measured; 0: not measured. Microseconds. */
struct vp_served {
    struct vp_serve_terms terms;
    struct vp_serve_load load;
    double tpot_us, ttft_us;
    double total_us; /* end to end: the first token and all others */
    uint32_t group;  /* rows that are left out together when the fit judges itself: one model in one
                        format on one card */
    bool outlier;    /* out: off by more than a factor of two */
};

struct vp_serve_fit_rows {
    struct vp_served *row;
    uint32_t count;
    uint32_t groups;
};

enum { VP_SERVE_FIT_LEAST_ROWS = 6, VP_SERVE_FIT_SCALE_ROWS = 3 };

/* prior: the class's constants, NULL: none. With fewer rows than LEAST_ROWS only one factor on the
 * class's constants of a pass is found; false: not even that, too few rows. Fills the constants,
 * tpot and ttft (errors on the rows themselves) and the spreads (of rows whose group was left out,
 * nine in ten).
 */
bool vp_serve_fit(struct vp_arena *arena, struct vp_serving_fit *out,
                  const struct vp_serve_fit_rows *rows, const struct vp_serving_fit *prior);

#endif
