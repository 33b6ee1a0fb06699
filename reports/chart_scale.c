/* What the axes of a chart show: from where to where, with which ticks. */
#include <inttypes.h>
#include <math.h>

#include "planner/base/units.h"
#include "reports/chart.h"

/* ---- numbers ---- */

/* "32K" for 32768; anything else as it is. */
static const char *token_text(struct vp_arena *arena, double value) {
    const double K = 1024, M = K * K;
    if (value >= M && fmod(value, M) == 0)
        return vp_arena_printf(arena, "%.0fM", value / M);
    if (value >= K && fmod(value, K) == 0)
        return vp_arena_printf(arena, "%.0fK", value / K);
    return vp_chart_number(arena, value);
}

static const char *fixed(struct vp_arena *arena, double value, int decimals) {
    const double MOST = 9e15; /* integers of a double */
    if (decimals <= 0 && fabs(value) >= 10000 && fabs(value) < MOST)
        return vp_arena_printf(arena, "%s%s", value < 0 ? "-" : "",
                               vp_format_count(arena, (uint64_t)llround(fabs(value))));
    if (fabs(value) >= MOST)
        return vp_arena_printf(arena, "%.3g", value);
    return vp_arena_printf(arena, "%.*f", decimals > 0 ? decimals : 0, value);
}

const char *vp_chart_number(struct vp_arena *arena, double value) {
    if (!isfinite(value))
        return "";
    if (value == 0)
        return "0";
    int digits = (int)floor(log10(fabs(value))); /* before the point, less one */
    if (digits < -6)
        return vp_arena_printf(arena, "%.3g", value);
    if (value == floor(value))
        return fixed(arena, value, 0);
    return fixed(arena, value, 3 - digits);
}

/* ---- extent ---- */

struct extent {
    double low, high;
    bool any;
};

static void include(struct extent *extent, double value, int base) {
    if (!isfinite(value) || (base && value <= 0))
        return;
    if (!extent->any || value < extent->low)
        extent->low = value;
    if (!extent->any || value > extent->high)
        extent->high = value;
    extent->any = true;
}

static void include_series(struct extent *extent, const struct vp_chart *chart, uint32_t index,
                           bool upright, int base) {
    const struct vp_chart_series *series = &chart->series[index];
    bool stacked = series->kind == VP_CHART_AREA || series->kind == VP_CHART_BARS;
    bool along = upright != vp_chart_lies(chart); /* the axis on which pieces are stacked */
    for (uint32_t i = 0; i < series->count; i++) {
        const struct vp_chart_point *point = &series->point[i];
        double value = upright ? point->y : point->x;
        include(extent, stacked && along ? value + vp_chart_base(chart, index, i) : value, base);
        if (series->kind == VP_CHART_BAND && upright)
            include(extent, point->z, base);
        if (stacked && along)
            include(extent, 0, base);
    }
}

static struct extent extent_of(const struct vp_chart *chart, const struct vp_chart_axis *axis,
                               bool upright) {
    struct extent extent = {0};
    for (uint32_t s = 0; s < chart->series_count; s++)
        include_series(&extent, chart, s, upright, axis->base);
    for (uint32_t i = 0; i < chart->rule_count; i++)
        if (chart->rule[i].level == upright)
            include(&extent, chart->rule[i].at, axis->base);
    if (axis->from_zero)
        include(&extent, 0, axis->base);
    if (axis->at_least > 0)
        include(&extent, axis->at_least, axis->base);
    if (!extent.any)
        extent = (struct extent){1, 2, true};
    return extent;
}

/* ---- ticks ---- */

/* 1, 2 or 5 times a power of ten; with tokens powers of two from 1024 on. */
static double nice_step(double span, uint32_t most, bool tokens) {
    double least = span / (most > 1 ? most : 1);
    if (tokens && least > 512)
        return exp2(ceil(log2(least) - 1e-9));
    double ten = pow(10, floor(log10(least)));
    for (int i = 0; i < 3; i++) {
        static const double TIMES[] = {1, 2, 5};
        if (TIMES[i] * ten >= least * (1 - 1e-9))
            return TIMES[i] * ten;
    }
    return 10 * ten;
}

static void add_tick(struct vp_scale *scale, double at, const char *text) {
    if (scale->ticks == VP_CHART_TICKS)
        return;
    scale->tick[scale->ticks] = at;
    scale->text[scale->ticks++] = text;
}

static void linear_ticks(struct vp_arena *arena, struct vp_scale *scale,
                         const struct vp_chart_axis *axis, double step) {
    int decimals = (int)ceil(-log10(step) - 1e-9);
    double first = ceil(scale->low / step - 1e-9) + 0.0; /* no -0 */
    for (double n = first; n * step <= scale->high + 1e-9 * step; n++)
        add_tick(scale, n * step,
                 axis->tokens ? token_text(arena, n * step) : fixed(arena, n * step, decimals));
}

/* Every step of the base, or every second one, ... until they have room; with few of them also 2
 * and 5 times a power of ten. */
static void power_ticks(struct vp_arena *arena, struct vp_scale *scale,
                        const struct vp_chart_axis *axis, uint32_t most) {
    double unit = log(axis->base);
    int first = (int)ceil(log(scale->low) / unit - 1e-9),
        last = (int)floor(log(scale->high) / unit + 1e-9);
    int every = (last - first) / (int)(most > 1 ? most : 1) + 1;
    bool between = axis->base == 10 && (uint32_t)(last - first + 1) * 3 <= most;
    for (int n = first - 1; n <= last; n += between ? 1 : every) {
        static const double TIMES[] = {1, 2, 5};
        for (int i = 0; i < (between ? 3 : 1); i++) {
            double at = TIMES[i] * pow(axis->base, n);
            if (at >= scale->low * (1 - 1e-9) && at <= scale->high * (1 + 1e-9))
                add_tick(scale, at,
                         axis->tokens ? token_text(arena, at)
                         : at < 1     ? vp_arena_printf(arena, "%.4g", at)
                                      : vp_chart_number(arena, at));
        }
        if (n < first && !between)
            n = first - every;
    }
}

/* ---- scale ---- */

/* The ends of a value axis are ticks, so that nothing touches the frame. */
static void widen_to_steps(struct vp_scale *scale, double step) {
    scale->low = floor(scale->low / step + 1e-9) * step;
    scale->high = ceil(scale->high / step - 1e-9) * step;
}

static void widen_log(struct vp_scale *scale) {
    double room = pow(scale->high / scale->low, 0.04);
    scale->low /= room;
    scale->high *= room;
}

static struct vp_scale scale_of(const struct vp_chart *chart, const struct vp_chart_axis *axis,
                                bool upright, uint32_t most) {
    struct extent extent = extent_of(chart, axis, upright);
    struct vp_scale scale = {.low = extent.low, .high = extent.high, .base = axis->base};
    bool points = vp_chart_has(chart, VP_CHART_POINTS) && !vp_chart_has(chart, VP_CHART_AREA);
    if (axis->names) {
        scale = (struct vp_scale){.low = -0.5, .high = (double)axis->name_count - 0.5};
        return scale;
    }
    most = most < 2 ? 2 : most > VP_CHART_TICKS - 2 ? VP_CHART_TICKS - 2 : most;
    if (scale.low == scale.high) { /* one value: it stands in the middle */
        double room = axis->base ? 0 : scale.low == 0 ? 1 : fabs(scale.low) / 2;
        scale.low = axis->base ? scale.low / 2 : scale.low - room;
        scale.high = axis->base ? scale.high * 2 : scale.high + room;
    }
    if (axis->base) {
        if (upright || points)
            widen_log(&scale);
        power_ticks(chart->arena, &scale, axis, most);
        return scale;
    }
    double step = nice_step(scale.high - scale.low, most, axis->tokens);
    if (upright != vp_chart_lies(chart) || points)
        widen_to_steps(&scale, step);
    if (!axis->bare)
        linear_ticks(chart->arena, &scale, axis, step);
    return scale;
}

struct vp_scale vp_chart_scale_x(const struct vp_chart *chart, uint32_t most) {
    return scale_of(chart, &chart->x, false, most);
}

struct vp_scale vp_chart_scale_y(const struct vp_chart *chart, uint32_t most) {
    return scale_of(chart, &chart->y, true, most);
}

double vp_scale_at(const struct vp_scale *scale, double value) {
    if (!scale->base)
        return (value - scale->low) / (scale->high - scale->low);
    if (value <= 0)
        return -1;
    return log(value / scale->low) / log(scale->high / scale->low);
}
