/* Checked arithmetic on byte and element counts. An overflow sticks: the value is then
 * meaningless and the caller reports it once, at the end of a computation. User-sized values are
 * multiplied and added only through these. */
#ifndef VP_BASE_SUM_H
#define VP_BASE_SUM_H

#include <stdbool.h>
#include <stdint.h>

struct vp_sum {
    uint64_t v;
    bool overflow;
};

static inline struct vp_sum vp_sum(uint64_t v) { return (struct vp_sum){v, false}; }

static inline struct vp_sum vp_sum_add(struct vp_sum a, uint64_t b) {
    a.overflow |= __builtin_add_overflow(a.v, b, &a.v);
    return a;
}

static inline struct vp_sum vp_sum_mul(struct vp_sum a, uint64_t b) {
    a.overflow |= __builtin_mul_overflow(a.v, b, &a.v);
    return a;
}

static inline struct vp_sum vp_sum_plus(struct vp_sum a, struct vp_sum b) {
    a.overflow |= b.overflow;
    return vp_sum_add(a, b.v);
}

/* ceil(a / b); b > 0 */
static inline uint64_t vp_ceil_div(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

/* a rounded up to a multiple of b; b > 0 */
static inline struct vp_sum vp_sum_round_up(struct vp_sum a, uint64_t b) {
    struct vp_sum r = vp_sum_mul(vp_sum(vp_ceil_div(a.v, b)), b);
    r.overflow |= a.overflow;
    return r;
}

/* a * b / c without losing the high half of the product; c > 0 */
static inline uint64_t vp_mul_div(uint64_t a, uint64_t b, uint64_t c) {
    return (uint64_t)((unsigned __int128)a * b / c);
}

static inline uint64_t vp_min(uint64_t a, uint64_t b) { return a < b ? a : b; }

static inline uint64_t vp_max(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* How far a is above b; 0 when it is not. */
static inline uint64_t vp_above(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

#endif
