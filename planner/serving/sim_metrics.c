#include "planner/serving/sim_metrics.h"

#include <math.h>
#include <string.h>

void vp_metrics_init(struct vp_sim_metrics *m, struct vp_arena *arena, struct vp_sim_result *out,
                     uint32_t bins, uint32_t engines) {
    enum { DEFAULT_BINS = 120 };

    *m = (struct vp_sim_metrics){.arena = arena, .out = out, .engines = engines};
    m->bins = bins > 0 ? bins + bins % 2 : DEFAULT_BINS;
    m->counted_from_us = INFINITY;
    out->bin = VP_NEW_ARRAY(arena, m->bins, struct vp_sim_bin);
    out->bin_us = 1e6; /* doubles as needed */
    out->replicas = engines;
}

/* ---- bins ---- */

enum { BIN_SUMS = sizeof(struct vp_sim_bin) / sizeof(double) }; /* a bin is doubles alone */

static void merge_bins(struct vp_sim_metrics *m) {
    struct vp_sim_bin *bin = m->out->bin;

    for (uint32_t i = 0; i < m->bins; i++) {
        double sums[BIN_SUMS], others[BIN_SUMS];
        if (i < m->bins / 2) {
            memcpy(sums, &bin[2 * i], sizeof sums);
            memcpy(others, &bin[2 * i + 1], sizeof others);
            for (int s = 0; s < BIN_SUMS; s++)
                sums[s] += others[s];
            memcpy(&bin[i], sums, sizeof sums);
        } else {
            memset(&bin[i], 0, sizeof bin[i]);
        }
    }
    m->out->bin_us *= 2;
}

static struct vp_sim_bin *bin_at(struct vp_sim_metrics *m, double us) {
    while (us >= m->out->bin_us * m->bins)
        merge_bins(m);
    return &m->out->bin[(uint32_t)(us / m->out->bin_us)];
}

/* The part of a span that lies in its first bin, and where that ends. */
static struct vp_sim_bin *next_part(struct vp_sim_metrics *m, double *from, double to,
                                    double *part) {
    double width, end;
    struct vp_sim_bin *bin;

    bin_at(m, to); /* widens them first, so that they stay as they are */
    bin = bin_at(m, *from);
    width = m->out->bin_us;
    end = fmin(to, ((double)(bin - m->out->bin) + 1) * width);
    if (end <= *from) /* rounding: at least the rest of it moves on */
        end = to;
    *part = end - *from;
    *from = end;
    return bin;
}

void vp_metrics_level(struct vp_sim_metrics *m, double now_us, int64_t running, int64_t waiting) {
    struct vp_sim_result *out = m->out;

    for (double from = m->level_us, part; from < now_us;) {
        struct vp_sim_bin *bin = next_part(m, &from, now_us, &part);
        bin->running += part * (double)m->running;
        bin->waiting += part * (double)m->waiting;
    }
    m->level_us = fmax(m->level_us, now_us);
    m->running = (uint64_t)((int64_t)m->running + running);
    m->waiting = (uint64_t)((int64_t)m->waiting + waiting);
    out->running_peak = m->running > out->running_peak ? m->running : out->running_peak;
    out->waiting_peak = m->waiting > out->waiting_peak ? m->waiting : out->waiting_peak;
}

void vp_metrics_span(struct vp_sim_metrics *m, double from_us, double to_us,
                     const double share[VP_LIMIT_COUNT], double cache_share) {
    double counted = to_us - fmax(from_us, m->counted_from_us);
    double busy = 1 - share[VP_LIMIT_IDLE];

    for (double from = from_us, part; from < to_us;) {
        struct vp_sim_bin *bin = next_part(m, &from, to_us, &part);
        bin->cache_share += part * cache_share;
        bin->busy_share += part * busy;
        for (int l = 0; l < VP_LIMIT_COUNT; l++)
            bin->limit_share[l] += part * share[l];
    }
    if (counted > 0) {
        m->cache += counted * cache_share;
        m->busy += counted * busy;
        for (int l = 0; l < VP_LIMIT_COUNT; l++)
            m->limit[l] += counted * share[l];
    }
}

void vp_metrics_tokens(struct vp_sim_metrics *m, double from_us, double to_us, double prompt,
                       double recomputed, double output) {
    double span = to_us - from_us;

    for (double from = from_us, part; from < to_us;) {
        struct vp_sim_bin *bin = next_part(m, &from, to_us, &part);
        bin->prompt_tokens += prompt * part / span;
        bin->recomputed_tokens += recomputed * part / span;
        bin->output_tokens += output * part / span;
    }
}

void vp_metrics_count(struct vp_sim_metrics *m, double now_us, enum vp_sim_count what,
                      double amount) {
    struct vp_sim_bin *bin = bin_at(m, now_us);

    switch (what) {
    case VP_COUNT_ARRIVAL:
        bin->arrivals += amount;
        break;
    case VP_COUNT_FINISHED:
        bin->finished += amount;
        break;
    case VP_COUNT_PREEMPTION:
        bin->preemptions += amount;
        break;
    case VP_COUNT_HIT:
        bin->hit_tokens += amount;
        break;
    }
}

/* ---- samples ---- */

static void *wider(struct vp_sim_metrics *m, const void *old, size_t size) {
    void *new = vp_arena_array(m->arena, m->room, size);

    if (m->out->samples.count > 0)
        memcpy(new, old, m->out->samples.count * size);
    return new;
}

static void more_samples(struct vp_sim_metrics *m) {
    struct vp_sim_samples *s = &m->out->samples;

    m->room = m->room > 0 ? 2 * m->room : 4096;
    s->ttft_us = wider(m, s->ttft_us, sizeof *s->ttft_us);
    s->queue_us = wider(m, s->queue_us, sizeof *s->queue_us);
    s->tpot_us = wider(m, s->tpot_us, sizeof *s->tpot_us);
    s->longest_gap_us = wider(m, s->longest_gap_us, sizeof *s->longest_gap_us);
    s->e2e_us = wider(m, s->e2e_us, sizeof *s->e2e_us);
    s->output = wider(m, s->output, sizeof *s->output);
    s->class_id = wider(m, s->class_id, sizeof *s->class_id);
}

void vp_metrics_sample(struct vp_sim_metrics *m, const struct vp_request_record *record,
                       double queued_us) {
    struct vp_sim_samples *s = &m->out->samples;
    uint64_t i = s->count;

    if (i == m->room)
        more_samples(m);
    s->ttft_us[i] = (float)(record->first_us - record->arrival_us);
    s->queue_us[i] = (float)(record->admitted_us - queued_us);
    s->tpot_us[i] =
        record->output > 1
            ? (float)((record->last_us - record->first_us) / (double)(record->output - 1))
            : 0;
    s->longest_gap_us[i] = (float)record->longest_gap_us;
    s->e2e_us[i] = (float)(record->last_us - record->arrival_us);
    s->output[i] = record->output;
    s->class_id[i] = record->class_id < 255 ? (uint8_t)record->class_id : 255;
    s->count++;
}

/* ---- the end ---- */

void vp_metrics_finish(struct vp_sim_metrics *m, double end_us) {
    struct vp_sim_result *out = m->out;
    double width = out->bin_us, counted = end_us - fmin(m->counted_from_us, end_us);
    double all = counted * (double)m->engines;

    vp_metrics_level(m, end_us, 0, 0);
    out->end_us = end_us;
    out->counted_from_us = fmin(m->counted_from_us, end_us);
    out->counted_us = counted;
    for (uint32_t i = 0; i < m->bins && (double)i * width < end_us; i++) {
        struct vp_sim_bin *bin = &out->bin[i];
        double span = fmin(width, end_us - (double)i * width);
        double engines = span * (double)m->engines;
        bin->start_us = (double)i * width;
        bin->running /= span;
        bin->waiting /= span;
        bin->cache_share /= engines;
        bin->busy_share /= engines;
        for (int l = 0; l < VP_LIMIT_COUNT; l++)
            bin->limit_share[l] /= engines;
        out->bins = i + 1;
    }
    if (!(all > 0))
        return;
    out->busy_share = m->busy / all;
    out->cache_share = m->cache / all;
    for (int l = 0; l < VP_LIMIT_COUNT; l++)
        out->limit_share[l] = m->limit[l] / all;
}
