/* Measured transformer blocks against what a calibration predicts of them. */
#ifndef VP_CLI_PROBE_VERIFY_H
#define VP_CLI_PROBE_VERIFY_H

#include "planner/doc/csv.h"
#include "planner/latency/kernels.h"
#include "planner/model/plain_layer.h"

struct vp_verified {
    struct vp_plain_layer layer;
    uint64_t tokens;
    double measured_us;
    struct vp_time predicted; /* basis NONE: the calibration does not reach so far: not counted */
    double error;             /* |predicted / measured - 1| */
    bool noisy;               /* measured badly: not counted */
};
struct vp_verification {
    struct vp_verified *rows;
    uint32_t count, good; /* all; those that are counted */
    double median;        /* of the errors; meaningless when good is 0 */
    double within;        /* share inside the intervals */
};
/* blocks: the probe's table of them. */
void vp_probe_verify(struct vp_arena *arena, struct vp_verification *out, const struct vp_gpu *gpu,
                     const struct vp_calibration *calibration, const struct vp_csv *blocks);

#endif
