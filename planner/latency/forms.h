/* The forms of kernel times: constants and a shape -> microseconds. What they say, their units and
 * what they leave out: docs/CALIBRATION.md, ids T-GEMM, T-PREFILL, T-DECODE. Constants are those of
 * planner/model/calibration.def. */
#ifndef VP_LATENCY_FORMS_H
#define VP_LATENCY_FORMS_H

#include "planner/model/calibration.h"

/* What a form takes beside its constants. */
struct vp_form_case {
    enum vp_form form;
    struct vp_shape shape;
    double units;       /* compute units */
    double cache_bytes; /* last-level cache; 0: nothing stays in it */
    double copies;      /* of the operands that are cycled through; 0: they never stay in the cache,
                           as in a model of many layers */
    double weight_bytes; /* of one element of a weight, or of a cached key or value */
    bool fine;           /* a processor: no tiles, every row and column counts for itself */
    /* Beyond what is measured; 0 and false as in samples. */
    double together; /* gemm: so many products of that shape side by side; 0: one */
    double rows;     /* decode: query rows of a KV head; 0: heads / kv_heads */
    double past,
        window;         /* prefill: tokens before the fresh ones; what a query looks back at most */
    bool bidirectional; /* prefill: every token sees all fresh ones */
};

/* Whether the calibration is of a processor (hardware.count: 0), whose vectors take any size. */
bool vp_form_is_fine(const struct vp_calibration *calibration);

/* T-GEMM: one matrix product [m, k] x [k, n]. T-PREFILL: causal attention over fresh tokens.
 * T-DECODE: one fresh token for each sequence. */
double vp_form_us(const struct vp_form_case *c, const double *constant);

#endif
