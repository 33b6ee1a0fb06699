#include "probe/method.h"

#include <string.h>

#include "planner/base/quantile.h"

/* At least 20 timed repeats and 200 ms; a batch of half a millisecond makes the cost of the two
 * marks around it small. */
const struct vp_method vp_method_full = {.least_repeats = 20,
                                         .most_repeats = 200,
                                         .least_us = 200e3,
                                         .most_us = 3e6,
                                         .few_repeats = 5,
                                         .warm_us = 250e3,
                                         .batch_us = 500};
const struct vp_method vp_method_quick = {.least_repeats = 7,
                                          .most_repeats = 50,
                                          .least_us = 20e3,
                                          .most_us = 300e3,
                                          .few_repeats = 3,
                                          .warm_us = 30e3,
                                          .batch_us = 300};

enum { WARM_ROUNDS = 5, MOST_BATCH = 10000 };

static const double NOISY = 1.3, DRIFTING = 0.05, OUTLIER = 1.5;
/* Two warm-up batches in a row that agree this well: clocks are stable. */
static const double STABLE = 0.02;

static enum vp_dev_status time_batch(struct vp_dev *device, double *us, vp_method_task run,
                                     void *task, uint64_t *round, uint64_t batch) {
    enum vp_dev_status status = device->backend->start(device);
    for (uint64_t i = 0; status == VP_DEV_OK && i < batch; i++)
        status = run(task, (*round)++);
    if (status == VP_DEV_OK)
        status = device->backend->stop(device, us);
    *us /= (double)batch;
    return status;
}

/* Runs until two batches agree or the time is over; *us is the last batch's time per round. */
static enum vp_dev_status warm_up(struct vp_dev *device, double *us, const struct vp_method *method,
                                  vp_method_task run, void *task, uint64_t *round) {
    double spent = 0, before = 0;
    uint64_t batch = 1;

    for (unsigned n = 0;; n++) {
        enum vp_dev_status status = time_batch(device, us, run, task, round, batch);
        if (status != VP_DEV_OK)
            return status;
        spent += *us * (double)batch;
        bool stable =
            n >= WARM_ROUNDS && *us <= before * (1 + STABLE) && before <= *us * (1 + STABLE);
        if (stable || spent >= method->warm_us || n >= MOST_BATCH)
            return VP_DEV_OK;
        before = *us;
        if (*us * (double)batch < method->batch_us && batch < MOST_BATCH)
            batch *= 2;
    }
}

enum vp_dev_status vp_method_measure(struct vp_dev *device, struct vp_timing *out,
                                     const struct vp_method *method, vp_method_task run,
                                     void *task) {
    double us[VP_METHOD_REPEATS], total = 0, once = 0;
    uint64_t round = 0, batch = 1;
    uint32_t n = 0;
    enum vp_dev_status status = warm_up(device, &once, method, run, task, &round);

    if (status != VP_DEV_OK)
        return status;
    if (once < method->batch_us)
        batch = once > method->batch_us / MOST_BATCH ? (uint64_t)(method->batch_us / once) + 1
                                                     : MOST_BATCH;
    while (n < method->most_repeats && n < VP_METHOD_REPEATS) {
        bool enough = n >= method->least_repeats && total >= method->least_us;
        bool too_long = n >= method->few_repeats && total >= method->most_us;
        if (enough || too_long)
            break;
        status = time_batch(device, &us[n], run, task, &round, batch);
        if (status != VP_DEV_OK)
            return status;
        total += us[n++] * (double)batch;
    }
    vp_method_summarise(out, us, n);
    out->batch = (uint32_t)batch;
    return VP_DEV_OK;
}

static double median_of(const double *us, uint32_t count) {
    double sorted[VP_METHOD_REPEATS];
    memcpy(sorted, us, count * sizeof *us);
    vp_reals_sort(sorted, count);
    return vp_quantile_between(sorted, count, 0.5);
}

void vp_method_summarise(struct vp_timing *out, const double *us, uint32_t count) {
    double sorted[VP_METHOD_REPEATS];
    uint32_t third;

    count = count < VP_METHOD_REPEATS ? count : VP_METHOD_REPEATS;
    third = count / 3;
    memcpy(sorted, us, count * sizeof *us);
    vp_reals_sort(sorted, count);
    *out = (struct vp_timing){.median = vp_quantile_between(sorted, count, 0.5),
                              .p10 = vp_quantile_between(sorted, count, 0.1),
                              .p90 = vp_quantile_between(sorted, count, 0.9),
                              .least = sorted[0],
                              .most = sorted[count - 1],
                              .repeats = count,
                              .batch = 1};
    for (uint32_t i = 0; i < count; i++)
        out->outliers += us[i] > OUTLIER * out->median;
    out->noisy = out->p90 > NOISY * out->p10;
    if (third > 0 && out->median > 0) {
        out->drift = median_of(us + count - third, third) / median_of(us, third) - 1;
        out->drifting = out->drift > DRIFTING || out->drift < -DRIFTING;
    }
}

/* splitmix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014. */
uint64_t vp_noise_bits(struct vp_noise *random) {
    uint64_t z = random->state += 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
}

float vp_noise_normal(struct vp_noise *random) {
    uint32_t sum = 0;
    for (unsigned i = 0; i < 3; i++) {
        uint64_t bits = vp_noise_bits(random);
        for (unsigned j = 0; j < 4; j++)
            sum += (uint32_t)(bits >> 16 * j & 0xffff);
    }
    return (float)sum / 65536.0F - 6.0F + 6.0F / 65536.0F;
}
