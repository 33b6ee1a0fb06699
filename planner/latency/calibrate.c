#include "planner/latency/calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/base/quantile.h"
#include "planner/base/text.h"
#include "planner/latency/anchors.h"
#include "planner/latency/kernels.h"

struct vp_form_fit *vp_calibration_fit(struct vp_calibration *calibration, enum vp_form form,
                                       int variant) {
    switch (form) {
    case VP_FORM_GEMM:
        return &calibration->gemm[variant];
    case VP_FORM_PREFILL:
        return &calibration->prefill[variant];
    default:
        return &calibration->decode[variant];
    }
}

/* ---- all-reduces ---- */

static int by_group(const void *a, const void *b) {
    const struct vp_reduce_sample *x = a, *y = b;
    if (x->gpus != y->gpus)
        return x->gpus < y->gpus ? -1 : 1;
    if (x->graph != y->graph)
        return x->graph ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* A group's sizes, each once: the mean of its logarithms where it was measured several times. */
static void add_points(struct vp_reduce_fit *fit, const struct vp_reduce_sample *samples,
                       uint32_t count) {
    for (uint32_t i = 0, n; i < count; i += n) {
        double sum = 0;
        for (n = 0; i + n < count && samples[i + n].bytes <= samples[i].bytes; n++)
            sum += log(samples[i + n].us);
        fit->points[fit->count++] =
            (struct vp_reduce_point){samples[i].bytes, vp_fit_rounded(exp(sum / n))};
    }
}

static bool same_group(const struct vp_reduce_sample *a, const struct vp_reduce_sample *b) {
    return a->gpus == b->gpus && a->graph == b->graph;
}

static void fit_reduces(struct vp_arena *arena, struct vp_calibration *out,
                        const struct vp_samples *samples, const struct vp_fit_source *source) {
    uint32_t count = samples->reduce_count;
    struct vp_reduce_sample *sorted = VP_NEW_ARRAY(arena, count, struct vp_reduce_sample);
    if (count == 0)
        return;
    memcpy(sorted, samples->reduces, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_group);
    out->reduces = VP_NEW_ARRAY(arena, count, struct vp_reduce_fit);
    out->reduce_count = 0;
    for (uint32_t i = 0, n; i < count; i += n) {
        for (n = 1; i + n < count && same_group(&sorted[i], &sorted[i + n]);)
            n++;
        struct vp_reduce_fit *fit = &out->reduces[out->reduce_count++];
        *fit = (struct vp_reduce_fit){.gpus = sorted[i].gpus,
                                      .graph = sorted[i].graph,
                                      .points = VP_NEW_ARRAY(arena, n, struct vp_reduce_point),
                                      .source = *source};
        add_points(fit, &sorted[i], n);
    }
}

/* ---- figures ---- */

/* The median of the figures of these names; 0: there are none. */
static double figure(struct vp_arena *arena, const struct vp_samples *samples,
                     const char *const *names, size_t count) {
    double *values = VP_NEW_ARRAY(arena, samples->figure_count, double);
    uint32_t n = 0;
    for (uint32_t i = 0; i < samples->figure_count; i++)
        for (size_t k = 0; k < count; k++)
            if (vp_text_eq(samples->figures[i].name, names[k]))
                values[n++] = samples->figures[i].value;
    return n ? vp_quantile(values, n, 0.5) : 0;
}

static void fit_figures(struct vp_arena *arena, struct vp_calibration *out,
                        const struct vp_samples *samples) {
    static const char *const COPIES[] = {"copy", "mul", "add", "triad"};
    static const char *const READS[] = {"read"}, *const DOTS[] = {"dot"};
    static const char *const LAUNCH[] = {"launch"}, *const TO[] = {"host_to_device"},
                             *const FROM[] = {"device_to_host"};
    const struct {
        double *member;
        const char *const *names;
        size_t count;
    } FIGURES[] = {{&out->copy_gbs, COPIES, 4},       {&out->read_gbs, DOTS, 1},
                   {&out->read_gbs, READS, 1},        {&out->launch_us, LAUNCH, 1},
                   {&out->host_to_device_gbs, TO, 1}, {&out->device_to_host_gbs, FROM, 1}};
    for (size_t i = 0; i < sizeof FIGURES / sizeof *FIGURES; i++) {
        double value = figure(arena, samples, FIGURES[i].names, FIGURES[i].count);
        if (value > 0)
            *FIGURES[i].member = value;
    }
    for (uint32_t i = 0; i < samples->figure_count; i++) {
        const struct vp_figure_sample *f = &samples->figures[i];
#define X(member_, text, what)                                                                     \
    if (vp_text_eq(f->name, text))                                                                 \
        out->memory.member_ = (uint64_t)f->value;
#include "planner/model/memory_constants.def"
#undef X
    }
}

/* ---- all ---- */

void vp_calibrate(struct vp_arena *arena, struct vp_calibration *out,
                  struct vp_calibrate_report *report, const struct vp_gpu *gpu,
                  const struct vp_samples *samples, const struct vp_fit_source *source) {
    static const double UNITS = 100, MIB = 1048576; /* where a profile says nothing */
    out->gpu = gpu->id;
    out->units = gpu->compute_units ? (double)gpu->compute_units : UNITS;
    out->cache_bytes = gpu->cache_mib * MIB;
    *report = (struct vp_calibrate_report){
        .items = VP_NEW_ARRAY(arena, samples->kernel_count, struct vp_calibrated)};
    for (uint32_t i = 0; i < samples->kernel_count; i++) {
        const struct vp_kernel_samples *kind = &samples->kernels[i];
        struct vp_form_fit *fit = vp_calibration_fit(out, kind->form, kind->variant);
        struct vp_calibrated *item = &report->items[report->count++];
        *item = (struct vp_calibrated){kind->form, kind->variant, kind->dtype, fit, {0}};
        vp_fit_form(arena, fit, out, gpu, kind, &item->outliers);
        fit->source = *source;
    }
    fit_reduces(arena, out, samples, source);
    fit_figures(arena, out, samples);
}

/* ---- against samples ---- */

struct judged {
    uint32_t range;
    double error;
    bool within;
};

/* range VP_FORM_RANGES: all. */
static void sum_up(struct vp_arena *arena, struct vp_check_range *out, const struct judged *rows,
                   uint32_t count, uint32_t range) {
    double *errors = VP_NEW_ARRAY(arena, count, double);
    uint32_t n = 0, within = 0;
    for (uint32_t i = 0; i < count; i++)
        if (range == VP_FORM_RANGES || rows[i].range == range) {
            errors[n++] = rows[i].error;
            within += rows[i].within;
        }
    out->rows = n;
    if (n == 0)
        return;
    out->median = vp_quantile(errors, n, 0.5);
    out->p90 = vp_quantile(errors, n, 0.9);
    out->within = (double)within / n;
}

void vp_calibration_check(struct vp_arena *arena, struct vp_check *out,
                          const struct vp_calibration *calibration,
                          const struct vp_kernel_samples *samples) {
    struct vp_calibration copy = *calibration;
    const struct vp_form_fit *fit = vp_calibration_fit(&copy, samples->form, samples->variant);
    struct judged *rows = VP_NEW_ARRAY(arena, samples->count, struct judged);
    *out = (struct vp_check){.form = samples->form,
                             .dtype = samples->dtype,
                             .known = fit->known,
                             .ranges = 1,
                             .range[0].name = "all"};
    for (uint32_t i = 0; i < samples->count && fit->known; i++) {
        const struct vp_kernel_sample *sample = &samples->items[i];
        struct vp_form_case c = vp_fit_case(calibration, samples, sample);
        struct vp_time t = vp_fitted_time(fit, &c);
        rows[i] = (struct judged){vp_form_range(samples->form, &sample->shape),
                                  fabs(t.likely / sample->us - 1),
                                  sample->us >= t.low && sample->us <= t.high};
    }
    sum_up(arena, &out->range[0], rows, samples->count, VP_FORM_RANGES);
    for (uint32_t r = 0; r < VP_FORM_RANGES && vp_form_range_name(samples->form, r); r++) {
        struct vp_check_range *range = &out->range[out->ranges++];
        range->name = vp_form_range_name(samples->form, r);
        sum_up(arena, range, rows, samples->count, r);
    }
}

void vp_calibration_check_reduce(struct vp_arena *arena, struct vp_check *out,
                                 const struct vp_calibration *calibration,
                                 const struct vp_samples *samples) {
    struct judged *rows = VP_NEW_ARRAY(arena, samples->reduce_count, struct judged);
    struct vp_gpu gpu = {.id = calibration->gpu};
    uint32_t n = 0;
    *out = (struct vp_check){.reduce = true, .dtype = "all", .ranges = 1, .range[0].name = "all"};
    for (uint32_t i = 0; i < samples->reduce_count; i++) {
        const struct vp_reduce_sample *sample = &samples->reduces[i];
        struct vp_kernels kernels = {
            .gpu = &gpu, .calibration = calibration, .graphs = sample->graph};
        struct vp_time t = vp_all_reduce_time(&kernels, (double)sample->gpus, sample->bytes);
        if (t.basis != VP_BASIS_CALIBRATED)
            continue;
        rows[n++] = (struct judged){0, fabs(t.likely / sample->us - 1),
                                    sample->us >= t.low && sample->us <= t.high};
    }
    out->known = n > 0 && n == samples->reduce_count;
    sum_up(arena, &out->range[0], rows, n, VP_FORM_RANGES);
}
