/* The least time of an operator: its FLOPs at the card's dense rate or its bytes at the card's
 * bandwidth, whichever takes longer. A bound, not an estimate: kernels reach half to nine tenths of
 * either, the same for all operators only roughly. Used where times are compared with each other
 * (what to recompute) until a calibration knows better. */
#ifndef VP_LATENCY_ROOFLINE_H
#define VP_LATENCY_ROOFLINE_H

#include "planner/model/scenario.h"
#include "planner/ops/ops.h"

/* What an operator works on: one pass over `tokens` tokens of sequences of `sequence` tokens, on
 * one of `ranks` that divide it. */
struct vp_roofline_load {
    uint64_t tokens, sequence;
    uint64_t ranks;
    uint64_t element_bytes; /* of activations and weights */
    uint64_t window;        /* tokens that attention looks back at most; 0: all */
    bool bidirectional;
};

/* Nanoseconds of the forward pass, rounded up; 0 when the card's rates are not known. Both rates
 * are the profile's: dense FLOPs in 16 bit, bytes of device memory. */
uint64_t vp_roofline_ns(const struct vp_gpu *gpu, const struct vp_op *op,
                        const struct vp_roofline_load *load);
bool vp_roofline_known(const struct vp_gpu *gpu);

#endif
