/* How one figure is measured: warm up until times are stable, repeat, take the median, say how
 * trustworthy it is. Knows nothing of what is measured.
 *
 * A task is a function that queues one round of work on the device; `round` counts up, so that the
 * task can go through copies of its data that no cache holds together. Rounds shorter than what a
 * clock resolves are timed in batches; every time is that of one round. */
#ifndef VP_PROBE_METHOD_H
#define VP_PROBE_METHOD_H

#include "probe/gpu.h"

struct vp_method {
    uint32_t least_repeats; /* timed batches at least */
    uint32_t most_repeats;  /* at most VP_METHOD_REPEATS */
    double least_us;        /* measured for at least that long, */
    double most_us;         /* and no longer, once there are `few_repeats` */
    uint32_t few_repeats;
    double warm_us;  /* warm-up lasts at most that long */
    double batch_us; /* a batch is at least that long */
};

enum { VP_METHOD_REPEATS = 400 };

extern const struct vp_method vp_method_full, vp_method_quick;

/* Times of one round, microseconds. */
struct vp_timing {
    double median, p10, p90, least, most;
    uint32_t repeats;  /* timed batches */
    uint32_t batch;    /* rounds in one */
    uint32_t outliers; /* beyond 1.5 times the median */
    double drift;      /* median of the last third over that of the first, minus one */
    bool noisy;        /* p90 / p10 above 1.3: no figure to build on */
    bool drifting;     /* drift beyond 5 %: the clock was not stable */
};

typedef enum vp_dev_status (*vp_method_task)(void *task, uint64_t round);

enum vp_dev_status vp_method_measure(struct vp_dev *device, struct vp_timing *out,
                                     const struct vp_method *method, vp_method_task run,
                                     void *task);

/* The figures of `count` times; at least one. Sorts nothing of the caller's. */
void vp_method_summarise(struct vp_timing *out, const double *us, uint32_t count);

/* Normally distributed numbers (mean 0, deviation 1), the same for the same seed on every machine:
 * the sum of twelve uniform numbers minus six, which has no tails beyond 6 and needs no libm. */
struct vp_noise {
    uint64_t state;
};
uint64_t vp_noise_bits(struct vp_noise *random);
float vp_noise_normal(struct vp_noise *random);

#endif
