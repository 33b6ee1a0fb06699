#include "reports/chart.h"

#include <math.h>
#include <string.h>

/* ---- building ---- */

struct vp_chart *vp_chart_new(struct vp_arena *arena, const char *name, const char *title,
                              const char *subtitle) {
    struct vp_chart *chart = VP_NEW(arena, struct vp_chart);
    chart->arena = arena;
    chart->name = name;
    chart->title = title;
    chart->subtitle = subtitle;
    return chart;
}

/* Room for one more of `count` items; what is in it stays. */
static void *grown(struct vp_arena *arena, void *items, uint32_t count, uint32_t *capacity,
                   size_t size) {
    if (count < *capacity)
        return items;
    *capacity = *capacity ? 2 * *capacity : 8;
    void *wider = vp_arena_array(arena, *capacity, size);
    if (count)
        memcpy(wider, items, count * size);
    return wider;
}

struct vp_chart_series *vp_chart_add(struct vp_chart *chart, enum vp_chart_kind kind,
                                     const char *label) {
    chart->series = grown(chart->arena, chart->series, chart->series_count, &chart->series_capacity,
                          sizeof *chart->series);
    struct vp_chart_series *series = &chart->series[chart->series_count++];
    *series = (struct vp_chart_series){.kind = kind, .label = label, .look = (int)VP_LOOK_BY_ORDER};
    return series;
}

struct vp_chart_point *vp_chart_point(struct vp_chart *chart, struct vp_chart_series *series,
                                      double x, double y) {
    series->point =
        grown(chart->arena, series->point, series->count, &series->capacity, sizeof *series->point);
    struct vp_chart_point *point = &series->point[series->count++];
    *point = (struct vp_chart_point){.x = x, .y = y};
    return point;
}

static void add_rule(struct vp_chart *chart, struct vp_chart_rule rule) {
    if (!isfinite(rule.at))
        return;
    chart->rule = grown(chart->arena, chart->rule, chart->rule_count, &chart->rule_capacity,
                        sizeof *chart->rule);
    chart->rule[chart->rule_count++] = rule;
}

void vp_chart_limit(struct vp_chart *chart, bool level, double at, const char *label) {
    add_rule(chart, (struct vp_chart_rule){.level = level, .at = at, .label = label});
}

void vp_chart_divide(struct vp_chart *chart, bool level, double at, const char *label) {
    add_rule(chart,
             (struct vp_chart_rule){.level = level, .at = at, .label = label, .faint = true});
}

/* ---- reading ---- */

int vp_chart_look(const struct vp_chart *chart, uint32_t series) {
    int look = chart->series[series].look;
    return look == (int)VP_LOOK_BY_ORDER ? (int)(series % (uint32_t)VP_LOOKS) : look;
}

char vp_chart_letter(const struct vp_chart *chart, uint32_t series) {
    static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyz";
    const struct vp_chart_series *s = &chart->series[series];
    if (s->letter)
        return s->letter;
    if (s->kind == VP_CHART_LIMIT)
        return '|';
    if (s->kind == VP_CHART_BAND)
        return ':';
    if (s->look == VP_LOOK_GREY)
        return '.';
    uint32_t nth = 0;
    for (uint32_t i = 0; i < series; i++)
        nth += chart->series[i].kind != VP_CHART_LIMIT && chart->series[i].kind != VP_CHART_BAND;
    return LETTERS[nth % (sizeof LETTERS - 1)];
}

bool vp_chart_lies(const struct vp_chart *chart) { return chart->y.names && !chart->x.names; }

bool vp_chart_shows(const struct vp_chart_point *point) {
    return isfinite(point->x) && isfinite(point->y);
}

double vp_chart_base(const struct vp_chart *chart, uint32_t series, uint32_t point) {
    const struct vp_chart_series *top = &chart->series[series];
    bool lies = vp_chart_lies(chart);
    double base = 0;
    for (uint32_t s = 0; s < series; s++) {
        const struct vp_chart_series *below = &chart->series[s];
        if (below->kind != top->kind)
            continue;
        if (top->kind == VP_CHART_AREA) { /* the same x's */
            if (point < below->count && vp_chart_shows(&below->point[point]))
                base += below->point[point].y;
            continue;
        }
        for (uint32_t i = 0; i < below->count; i++) {
            const struct vp_chart_point *a = &below->point[i], *b = &top->point[point];
            if (vp_chart_shows(a) && (lies ? a->y == b->y : a->x == b->x))
                base += lies ? a->x : a->y;
        }
    }
    return base;
}

bool vp_chart_has(const struct vp_chart *chart, enum vp_chart_kind kind) {
    for (uint32_t s = 0; s < chart->series_count; s++)
        if (chart->series[s].kind == kind)
            return true;
    return false;
}

const char *vp_chart_axis_title(struct vp_arena *arena, const struct vp_chart_axis *axis) {
    if (!axis->label || !axis->unit)
        return axis->label ? axis->label : axis->unit ? axis->unit : "";
    return vp_arena_printf(arena, "%s (%s)", axis->label, axis->unit);
}
