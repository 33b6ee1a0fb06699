/* Bytes that are known exactly (three equal numbers) or as an honest interval. */
#ifndef VP_BASE_AMOUNT_H
#define VP_BASE_AMOUNT_H

#include <stdint.h>

#include "planner/base/sum.h"

struct vp_amount {
    uint64_t low, likely, high; /* bytes, low <= likely <= high */
};

static inline struct vp_amount vp_exactly(uint64_t bytes) {
    return (struct vp_amount){bytes, bytes, bytes};
}

/* The caller has checked that the sums do not overflow. */
static inline struct vp_amount vp_amount_add(struct vp_amount a, struct vp_amount b) {
    return (struct vp_amount){a.low + b.low, a.likely + b.likely, a.high + b.high};
}

/* What is left of a when b is taken from it: the least when most is taken. 0 when nothing is. */
static inline struct vp_amount vp_amount_above(struct vp_amount a, struct vp_amount b) {
    return (struct vp_amount){vp_above(a.low, b.high), vp_above(a.likely, b.likely),
                              vp_above(a.high, b.low)};
}

/* A share of an amount in parts per billion, rounded down. */
static inline struct vp_amount vp_amount_share(struct vp_amount a, uint64_t ppb) {
    const uint64_t billion = 1000000000;
    return (struct vp_amount){vp_mul_div(a.low, ppb, billion), vp_mul_div(a.likely, ppb, billion),
                              vp_mul_div(a.high, ppb, billion)};
}

#endif
