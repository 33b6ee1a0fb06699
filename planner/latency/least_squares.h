/* Robust non-linear least squares of positive constants: minimises over log(constant)
 *
 *   sum over rows of weight x rho((log(model) - log(measured)) / scale)
 *     + sum over constants of ((log(constant) - log(start)) / spread)^2
 *
 * with rho soft-L1, 2 (sqrt(1 + z^2) - 1): beyond `scale` an outlier pulls with constant force. The
 * second sum says what is believed before anything is measured; it decides where rows say nothing.
 * Levenberg-Marquardt with re-weighting and numeric derivatives, from one start, without any
 * randomness: same input, same result. n is small: tens of constants, thousands of rows. */
#ifndef VP_LATENCY_LEAST_SQUARES_H
#define VP_LATENCY_LEAST_SQUARES_H

#include <stdint.h>

#include "planner/base/arena.h"

enum { VP_LSQ_MAX_UNKNOWNS = 16 };

struct vp_lsq_unknown {
    double start, least, most; /* all above 0; the result stays within least and most */
    double spread;             /* of log(constant) around log(start); 0: nothing is believed */
};

struct vp_lsq {
    const struct vp_lsq_unknown *unknown;
    uint32_t unknowns;
    const double *log_measured; /* rows of them */
    uint32_t rows;
    double scale;
    uint32_t steps; /* at most */
    /* log(model) of every row for these constants into out. */
    void (*model)(double *out, const void *data, const double *constants);
    const void *data;
};

/* Constants into out; the value of the sum that they reach. Scratch memory comes from the arena. */
double vp_lsq_solve(struct vp_arena *arena, double *out, const struct vp_lsq *problem);

#endif
