/* What the card allows at so many operations per byte, and what runs below it. */
#include <math.h>
#include <string.h>

#include "reports/charts.h"
#include "reports/words.h"

/* The fastest units that the card has, and those of 16 bit. */
static uint32_t roofs(const struct vp_roofline *r, enum vp_rate out[2]) {
    enum vp_rate best = VP_RATE_BF16;
    for (int i = 0; i < VP_RATES; i++)
        if (i != VP_RATE_FP8_BLOCK && i != VP_RATE_INT8 && r->peak_tflops[i] > r->peak_tflops[best])
            best = (enum vp_rate)i;
    out[0] = VP_RATE_BF16;
    out[1] = best;
    return best == VP_RATE_BF16 ? 1 : 2;
}

/* Of all points and knees, with room on both sides. */
static void span(const struct vp_roofline *r, double peak, double *low, double *high) {
    *low = 0.5;
    *high = 4 * peak * 1e3 / r->peak_gbs;
    for (uint32_t i = 0; i < r->count; i++) {
        double at = r->point[i].flops / r->point[i].bytes;
        *low = fmin(*low, at / 1.5);
        *high = fmax(*high, at * 1.5);
    }
}

static void add_roof(struct vp_chart *chart, const struct vp_roofline *r, enum vp_rate rate,
                     double low, double high, int look) {
    double peak = r->peak_tflops[rate], knee = peak * 1e3 / r->peak_gbs;
    struct vp_chart_series *roof =
        vp_chart_add(chart, VP_CHART_LINE,
                     vp_arena_printf(chart->arena, "%s: %.0f TFLOP/s", vp_rate_name(rate), peak));
    roof->look = look;
    roof->letter = look == (int)VP_LOOK_INK ? '=' : '-';
    vp_chart_point(chart, roof, low, low * r->peak_gbs / 1e3);
    vp_chart_point(chart, roof, knee, peak);
    vp_chart_point(chart, roof, high, peak);
}

static const char *kind_label(enum vp_roof_kind kind) {
    static const char *const LABELS[] = {"decode, this plan", "prefill, this plan",
                                         "forward pass, this plan", "matrix products, measured"};
    return LABELS[kind];
}

/* Of one place in the picture. */
static bool near(const struct vp_chart_point *a, const struct vp_chart_point *b) {
    const double FACTOR = 1.5;
    return fabs(log(a->x / b->x)) < log(FACTOR) && fabs(log(a->y / b->y)) < log(FACTOR);
}

/* The name behind the dot, where the names so far have the same before it: "experts.gate, up". */
static const char *tail(const char *words, const char *name) {
    const char *last = words, *dot = strrchr(name, '.');
    for (const char *at = words; (at = strstr(at, ", ")); at += 2)
        if (strchr(at, '.'))
            last = at + 2;
    bool same = dot && strncmp(last, name, (size_t)(dot - name) + 1) == 0;
    return same ? dot + 1 : name;
}

/* Operators whose points lie on each other share their words: "gate, up". */
static void join_words(struct vp_chart *chart, struct vp_chart_series *series) {
    for (uint32_t i = 0; i < series->count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (series->point[k].word && near(&series->point[k], &series->point[i])) {
                series->point[k].word =
                    vp_arena_printf(chart->arena, "%s, %s", series->point[k].word,
                                    tail(series->point[k].word, series->point[i].word));
                series->point[i].word = NULL;
                break;
            }
}

/* "down" of "down_proj" */
static const char *short_name(struct vp_arena *arena, const char *name) {
    static const char END[] = "_proj";
    return vp_text_ends(name, END) ? vp_arena_text(arena, name, strlen(name) - (sizeof END - 1))
                                   : name;
}

static void add_points(struct vp_chart *chart, const struct vp_roofline *r,
                       enum vp_roof_kind kind) {
    static const int LOOKS[] = {1, 0, 2, VP_LOOK_GREY};
    struct vp_chart_series *series = NULL;
    for (uint32_t i = 0; i < r->count; i++) {
        const struct vp_roof_point *p = &r->point[i];
        if (p->kind != kind)
            continue;
        if (!series) {
            series = vp_chart_add(chart, VP_CHART_POINTS, kind_label(kind));
            series->look = LOOKS[kind];
            series->letter = "dpfm"[kind];
        }
        struct vp_chart_point *point =
            vp_chart_point(chart, series, p->flops / p->bytes, p->flops / p->time.likely / 1e6);
        if (kind != VP_ROOF_MEASURED)
            point->word = short_name(chart->arena, p->name);
    }
    if (series)
        join_words(chart, series);
}

struct vp_chart *vp_chart_roofline(struct vp_arena *arena, const struct vp_roofline *roofline,
                                   const struct vp_result *result) {
    static const int LOOKS[] = {VP_LOOK_INK, 5};
    enum vp_rate rate[2];
    double low, high;
    uint32_t count = roofs(roofline, rate);
    struct vp_chart *chart = vp_chart_new(
        arena, "roofline", vp_arena_printf(arena, "Roofline of %s", roofline->gpu->name),
        vp_chart_assumptions(arena, result));
    chart->x = (struct vp_chart_axis){
        .label = "operations per byte moved", .unit = "FLOP/byte", .base = 10};
    chart->y = (struct vp_chart_axis){.label = "speed", .unit = "TFLOP/s", .base = 10};
    span(roofline, roofline->peak_tflops[rate[count - 1]], &low, &high);
    for (uint32_t i = 0; i < count; i++)
        add_roof(chart, roofline, rate[i], low, high, LOOKS[i]);
    for (int kind = VP_ROOF_MEASURED; kind >= VP_ROOF_DECODE; kind--)
        add_points(chart, roofline, (enum vp_roof_kind)kind);
    chart->note = vp_arena_printf(
        arena,
        "Slope: %.0f GB/s, and level: peak rates, by the data sheet. Operators of the commonest "
        "layer, on one rank; their times: %s. Bytes are the least that must move.",
        roofline->peak_gbs,
        roofline->basis == VP_BASIS_CALIBRATED ? "by the card's calibration"
                                               : "by the card's class, not measured");
    return chart;
}

struct vp_chart *vp_chart_calibration(struct vp_arena *arena, const struct vp_result *result) {
    const struct vp_calibration *calibration = result->scenario->measured_gpu;
    uint32_t count;
    struct vp_measured_product *p = vp_measured_products(arena, calibration, &count);
    if (count == 0)
        return NULL;
    struct vp_chart *chart =
        vp_chart_new(arena, "calibration",
                     vp_arena_printf(arena, "Matrix products of %s: predicted against measured",
                                     calibration->gpu),
                     vp_arena_printf(arena, "%s", calibration->made ? calibration->made : ""));
    double low = INFINITY, high = 0;
    chart->x = (struct vp_chart_axis){.label = "measured", .unit = "microseconds", .base = 10};
    chart->y =
        (struct vp_chart_axis){.label = "by the form alone", .unit = "microseconds", .base = 10};
    for (int r = 0; r < VP_RATES; r++) {
        struct vp_chart_series *series = NULL;
        for (uint32_t i = 0; i < count; i++) {
            if ((int)p[i].rate != r)
                continue;
            if (!series) {
                series = vp_chart_add(chart, VP_CHART_POINTS, vp_rate_name((enum vp_rate)r));
                series->look = r;
            }
            vp_chart_point(chart, series, p[i].measured_us, p[i].form_us);
            low = fmin(low, p[i].measured_us);
            high = fmax(high, p[i].measured_us);
        }
    }
    struct vp_chart_series *equal = vp_chart_add(chart, VP_CHART_LINE, "equal");
    equal->look = VP_LOOK_INK;
    equal->letter = '-';
    vp_chart_point(chart, equal, low, low);
    vp_chart_point(chart, equal, high, high);
    chart->note = "The shapes that the calibration keeps; between them a plan corrects the form by "
                  "its distance from the measured ones.";
    return chart;
}
