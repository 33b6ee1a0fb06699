/* The roofline of a plan's card: what its memory and its units allow at a given number of
 * operations per byte, and where the scenario's operators and measured products stand below it.
 *
 * Points of the scenario are the matrix products and attentions of the layer kind that the model
 * has most of, at the times that the plan takes for them; measured ones are the shapes that a
 * calibration keeps (its form and how far the shape was off it). Bytes are those that must move at
 * least (planner/latency/op_time.h): what a cache spares puts a point above the slope. */
#ifndef VP_PLAN_ROOFLINE_H
#define VP_PLAN_ROOFLINE_H

#include "planner/latency/op_time.h"
#include "planner/plan/result.h"

enum vp_roof_kind { VP_ROOF_DECODE, VP_ROOF_PREFILL, VP_ROOF_FORWARD, VP_ROOF_MEASURED };

struct vp_roof_point {
    enum vp_roof_kind kind;
    const char *name;    /* "down_proj"; of a measured product its shape, "8192 x 8192 x 8192" */
    enum vp_rate rate;   /* MEASURED */
    double flops, bytes; /* of one operator on one rank */
    struct vp_time time; /* MEASURED: likely alone */
};

struct vp_roofline {
    const struct vp_gpu *gpu;
    double peak_gbs;              /* by the data sheet */
    double peak_tflops[VP_RATES]; /* 0: no such units, or not known */
    struct vp_roof_point *point;
    uint32_t count;
    enum vp_basis basis; /* of the scenario's times, the weakest */
};

/* Into the arena. False: the card's rates are not known, or there is no card. */
bool vp_roofline_of(struct vp_arena *arena, struct vp_roofline *out,
                    const struct vp_result *result);

/* ---- a calibration beside its measurements ---- */

/* A measured product: what the form alone says, what was measured. */
struct vp_measured_product {
    enum vp_rate rate;
    double m, n, k;
    double form_us, measured_us;
};
/* Of all rates that were measured, the shapes that the calibration keeps. */
struct vp_measured_product *vp_measured_products(struct vp_arena *arena,
                                                 const struct vp_calibration *calibration,
                                                 uint32_t *count);

#endif
