/* Results -> quantiles, means, requests that kept their promises, the busiest minute. */
#include <stdlib.h>
#include <string.h>

#include "planner/serving/simulator.h"

static bool of_class(const struct vp_sim_samples *samples, uint64_t i, int class_id) {
    return class_id < 0 || samples->class_id[i] == class_id;
}

/* Non-negative floats are ordered as their bits are. Least significant digit first. */
static void sort_floats(struct vp_arena *arena, float *values, uint64_t count) {
    enum { DIGIT = 11, DIGITS = 1 << DIGIT };
    uint32_t *from = VP_NEW_ARRAY(arena, count, uint32_t);
    uint32_t *to = VP_NEW_ARRAY(arena, count, uint32_t);

    if (count > 0)
        memcpy(from, values, count * sizeof *values);
    for (int shift = 0; shift < 32; shift += DIGIT) {
        uint64_t at[DIGITS] = {0}, sum = 0;
        for (uint64_t i = 0; i < count; i++)
            at[from[i] >> shift & (DIGITS - 1)]++;
        for (int d = 0; d < DIGITS; d++) {
            uint64_t here = at[d];
            at[d] = sum;
            sum += here;
        }
        for (uint64_t i = 0; i < count; i++)
            to[at[from[i] >> shift & (DIGITS - 1)]++] = from[i];
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    if (count > 0)
        memcpy(values, from, count * sizeof *values);
}

void vp_sim_quantiles(double *out, struct vp_arena *arena, const struct vp_sim_samples *samples,
                      const float *values, int class_id, const double *shares, uint32_t count) {
    struct vp_arena_mark mark = vp_arena_mark(arena);
    float *sorted = VP_NEW_ARRAY(arena, samples->count, float);
    uint64_t n = 0;

    for (uint64_t i = 0; i < samples->count; i++)
        if (of_class(samples, i, class_id))
            sorted[n++] = values[i] > 0 ? values[i] : 0; /* no negative zero */
    sort_floats(arena, sorted, n);
    for (uint32_t q = 0; q < count; q++) {
        double at = shares[q] * (double)(n > 0 ? n - 1 : 0);
        uint64_t below = (uint64_t)at, above = below + 1 < n ? below + 1 : below;
        out[q] = n == 0 ? 0
                        : (double)sorted[below] + (at - (double)below) * ((double)sorted[above] -
                                                                          (double)sorted[below]);
    }
    vp_arena_rewind(arena, mark);
}

double vp_sim_mean(const struct vp_sim_samples *samples, const float *values, int class_id) {
    double sum = 0;
    uint64_t n = 0;

    for (uint64_t i = 0; i < samples->count; i++) {
        if (!of_class(samples, i, class_id))
            continue;
        sum += (double)values[i];
        n++;
    }
    return n > 0 ? sum / (double)n : 0;
}

static bool within(float value, double limit) { return !(limit > 0) || (double)value <= limit; }

uint64_t vp_sim_good(const struct vp_sim_samples *samples, const struct vp_sim_promise *promise,
                     int class_id) {
    uint64_t n = 0;

    for (uint64_t i = 0; i < samples->count; i++)
        n += of_class(samples, i, class_id) && within(samples->ttft_us[i], promise->ttft_us) &&
             within(samples->tpot_us[i], promise->tpot_us) &&
             within(samples->longest_gap_us[i], promise->longest_gap_us) &&
             within(samples->e2e_us[i], promise->e2e_us);
    return n;
}

/* ---- over time ---- */

void vp_sim_rates(struct vp_sim_rates *out, const struct vp_sim_result *result) {
    const struct vp_sim_totals *counted = &result->counted;
    double us = 0;

    *out = (struct vp_sim_rates){0};
    for (uint32_t i = 0; i < result->bins; i++) {
        const struct vp_sim_bin *bin = &result->bin[i];
        if (bin->start_us < result->counted_from_us ||
            bin->start_us + result->bin_us > result->last_arrival_us)
            continue;
        out->finished += bin->finished;
        out->prompt_tokens += bin->prompt_tokens;
        out->output_tokens += bin->output_tokens;
        us += result->bin_us;
    }
    if (!(us > 0)) {
        us = result->counted_us;
        out->finished = (double)counted->finished;
        out->prompt_tokens = (double)counted->computed_tokens;
        out->output_tokens = (double)counted->output_tokens;
    }
    if (!(us > 0))
        return;
    out->finished *= 1e6 / us;
    out->prompt_tokens *= 1e6 / us;
    out->output_tokens *= 1e6 / us;
}
