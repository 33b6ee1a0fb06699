/* The figures of a chart as a table. */
#include <math.h>

#include "reports/chart.h"

/* Where the series say their values: bars that lie have them on x. */
static double place_of(const struct vp_chart *chart, const struct vp_chart_point *point) {
    return vp_chart_lies(chart) ? point->y : point->x;
}

static double value_of(const struct vp_chart *chart, const struct vp_chart_point *point) {
    return vp_chart_lies(chart) ? point->x : point->y;
}

static const char *number_on(const struct vp_chart *chart, const struct vp_chart_axis *axis,
                             double value) {
    if (axis->names)
        return value >= 0 && value < axis->name_count ? axis->names[(uint32_t)value] : "";
    if (isfinite(value) && vp_text_eq(axis->unit, "GiB")) /* a column of one kind */
        return vp_arena_printf(chart->arena, "%.3f", value);
    return isfinite(value) ? vp_chart_number(chart->arena, value) : "";
}

static const char *label_of(const struct vp_chart_series *series) {
    return series->label ? series->label : "";
}

/* Whether each place has at most one point of every series, and the places are few: then a row is a
 * place. Points with words and cells are told one by one. */
static bool is_wide(const struct vp_chart *chart) {
    const struct vp_chart_series *first = chart->series;
    if (vp_chart_has(chart, VP_CHART_BARS))
        return true;
    if (vp_chart_has(chart, VP_CHART_POINTS) || vp_chart_has(chart, VP_CHART_CELLS))
        return false;
    for (uint32_t s = 1; s < chart->series_count; s++) {
        if (chart->series[s].count != first->count)
            return false;
        for (uint32_t i = 0; i < first->count; i++)
            if (chart->series[s].point[i].x != first->point[i].x)
                return false;
    }
    return true;
}

static struct vp_chart_table make(struct vp_arena *arena, uint32_t columns, uint32_t rows) {
    struct vp_chart_table table = {.columns = columns, .rows = rows};
    table.head = VP_NEW_ARRAY(arena, columns, const char *);
    table.words = VP_NEW_ARRAY(arena, columns, bool);
    table.cell = VP_NEW_ARRAY(arena, (size_t)columns * rows, const char *);
    for (size_t i = 0; i < (size_t)columns * rows; i++)
        table.cell[i] = "";
    return table;
}

static uint32_t places(const struct vp_chart *chart) {
    const struct vp_chart_axis *axis = vp_chart_lies(chart) ? &chart->y : &chart->x;
    if (axis->names)
        return axis->name_count;
    return chart->series_count ? chart->series[0].count : 0;
}

static struct vp_chart_table wide(const struct vp_chart *chart) {
    const struct vp_chart_axis *across = vp_chart_lies(chart) ? &chart->y : &chart->x;
    const struct vp_chart_axis *along = vp_chart_lies(chart) ? &chart->x : &chart->y;
    uint32_t columns = 1, at = 1, rows = places(chart);
    for (uint32_t s = 0; s < chart->series_count; s++)
        columns += chart->series[s].kind == VP_CHART_BAND ? 2 : 1;
    struct vp_chart_table table = make(chart->arena, columns, rows);
    table.head[0] = vp_chart_axis_title(chart->arena, across);
    table.words[0] = across->names != NULL;
    for (uint32_t r = 0; r < rows; r++)
        table.cell[r * columns] = number_on(
            chart, across, across->names ? r : place_of(chart, &chart->series[0].point[r]));
    for (uint32_t s = 0; s < chart->series_count; s++) {
        const struct vp_chart_series *series = &chart->series[s];
        bool band = series->kind == VP_CHART_BAND;
        const char *unit = along->unit ? vp_arena_printf(chart->arena, ", %s", along->unit) : "";
        table.head[at] =
            vp_arena_printf(chart->arena, "%s%s%s", label_of(series), band ? ", low" : "", unit);
        if (band)
            table.head[at + 1] =
                vp_arena_printf(chart->arena, "%s, high%s", label_of(series), unit);
        for (uint32_t i = 0; i < series->count; i++) {
            const struct vp_chart_point *point = &series->point[i];
            uint32_t row = across->names ? (uint32_t)place_of(chart, point) : i;
            if (row >= rows)
                continue;
            table.cell[row * columns + at] = number_on(chart, along, value_of(chart, point));
            if (band)
                table.cell[row * columns + at + 1] = number_on(chart, along, point->z);
        }
        at += band ? 2 : 1;
    }
    return table;
}

static struct vp_chart_table narrow(const struct vp_chart *chart) {
    enum { SERIES, X, Y, WORDS, COLUMNS };
    uint32_t rows = 0, row = 0;
    for (uint32_t s = 0; s < chart->series_count; s++)
        rows += chart->series[s].count;
    struct vp_chart_table table = make(chart->arena, COLUMNS, rows);
    table.head[SERIES] = "what";
    table.head[X] = vp_chart_axis_title(chart->arena, &chart->x);
    table.head[Y] = vp_chart_axis_title(chart->arena, &chart->y);
    table.head[WORDS] = "note";
    table.words[SERIES] = table.words[WORDS] = true;
    table.words[X] = chart->x.names != NULL;
    table.words[Y] = chart->y.names != NULL;
    for (uint32_t s = 0; s < chart->series_count; s++)
        for (uint32_t i = 0; i < chart->series[s].count; i++, row++) {
            const struct vp_chart_point *point = &chart->series[s].point[i];
            const char **cell = &table.cell[(size_t)row * COLUMNS];
            cell[SERIES] = label_of(&chart->series[s]);
            cell[X] = number_on(chart, &chart->x, point->x);
            cell[Y] = number_on(chart, &chart->y, point->y);
            if (point->word)
                cell[WORDS] = point->word;
        }
    return table;
}

struct vp_chart_table vp_chart_table(const struct vp_chart *chart) {
    return is_wide(chart) ? wide(chart) : narrow(chart);
}
