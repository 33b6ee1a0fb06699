/* Bytes that are known exactly (three equal numbers) or as an honest interval. */
#ifndef VP_BASE_AMOUNT_H
#define VP_BASE_AMOUNT_H

#include <stdint.h>

struct vp_amount {
    uint64_t low, likely, high; /* bytes, low <= likely <= high */
};

static inline struct vp_amount vp_exactly(uint64_t bytes)
{
    return (struct vp_amount){bytes, bytes, bytes};
}

/* The caller has checked that the sums do not overflow. */
static inline struct vp_amount vp_amount_add(struct vp_amount a, struct vp_amount b)
{
    return (struct vp_amount){a.low + b.low, a.likely + b.likely, a.high + b.high};
}

#endif
