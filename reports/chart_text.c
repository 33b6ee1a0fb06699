#include "reports/chart_text.h"

#include <math.h>
#include <string.h>

#include "reports/layout.h"

enum { LABEL_MOST = 24, HEIGHT = 20, AXIS_LINES = 2, LEAST_WIDTH = 24, LEAST_HEIGHT = 5 };
static const char LIMITS[] = "=-~";

struct grid {
    const struct vp_chart *chart;
    struct vp_scale x, y;
    int width, height;
    int left, across, down; /* of the plot: its first column, its columns and lines */
    char *glyph;
    int8_t *look;
};

/* ---- cells ---- */

static bool inside(const struct grid *g, int column, int line) {
    return column >= 0 && column < g->across && line >= 0 && line < g->down;
}

static char *cell(const struct grid *g, int column, int line) {
    return &g->glyph[line * g->width + g->left + column];
}

/* line, column: of the plot, from its upper left corner. */
static void put(struct grid *g, int column, int line, char glyph, int look) {
    if (!inside(g, column, line))
        return;
    *cell(g, column, line) = glyph;
    g->look[line * g->width + g->left + column] = (int8_t)look;
}

static void put_if_blank(struct grid *g, int column, int line, char glyph, int look) {
    if (inside(g, column, line) && *cell(g, column, line) == ' ')
        put(g, column, line, glyph, look);
}

/* ASCII text anywhere in the grid, cut at its right end. */
static void write(struct grid *g, int column, int line, const char *text) {
    for (; *text && column < g->width; text++, column++)
        if (column >= 0 && line >= 0 && line < g->height)
            g->glyph[line * g->width + column] = *text;
}

static int column_at(const struct grid *g, double x) {
    double at = vp_scale_at(&g->x, x);
    if (!(at > -0.01 && at < 1.01))
        return -1;
    return g->chart->x.names ? (int)floor(at * g->across) : (int)lround(at * (g->across - 1));
}

/* Names run from the top down, numbers upwards. */
static int line_at(const struct grid *g, double y) {
    double at = vp_scale_at(&g->y, y);
    if (!(at > -0.01 && at < 1.01))
        return -1;
    return g->chart->y.names ? (int)floor(at * g->down)
                             : g->down - 1 - (int)lround(at * (g->down - 1));
}

/* The value in the middle of a plot's line. */
static double value_on(const struct grid *g, int line) {
    double at = (g->down - 1 - line) / (double)(g->down - 1);
    return g->y.base ? g->y.low * pow(g->y.high / g->y.low, at)
                     : g->y.low + at * (g->y.high - g->y.low);
}

/* ---- frame ---- */

static const char *plain(const struct grid *g, const char *text, int cells) {
    struct vp_buf out = {.arena = g->chart->arena};
    struct vp_page page = {.out = &out};
    return vp_page_shorten(&page, text, cells);
}

/* At most a third of the width. */
static int y_label_width(const struct vp_chart *chart, const struct vp_scale *y, int width) {
    int widest = 0, most = width / 3 < LABEL_MOST ? width / 3 : LABEL_MOST;
    for (uint32_t i = 0; i < (chart->y.names ? chart->y.name_count : y->ticks); i++) {
        const char *text = chart->y.names ? chart->y.names[i] : y->text[i];
        int cells = vp_text_cells(vp_text_clean(chart->arena, text, false));
        widest = cells > widest ? cells : widest;
    }
    return widest > most ? most : widest;
}

/* The lines (or columns) of one name's bar. */
static void slot_of(int size, uint32_t names, double index, int *from, int *to) {
    double slot = size / (double)names;
    *from = (int)(index * slot);
    *to = (int)((index + 1) * slot) - 1;
    if (*to - *from >= 1)
        --*to; /* a gap between bars */
    if (*to - *from >= 4)
        ++*from;
}

/* The line of a name: in the middle of its bar. */
static int name_line(const struct grid *g, uint32_t index) {
    int from, to;
    slot_of(g->down, g->chart->y.name_count, index, &from, &to);
    return vp_chart_has(g->chart, VP_CHART_BARS) ? (from + to) / 2 : line_at(g, index);
}

static void y_labels(struct grid *g) {
    const struct vp_chart_axis *axis = &g->chart->y;
    int room = g->left - 2;
    for (int line = 0; line < g->down; line++)
        write(g, g->left - 1, line, "|");
    for (uint32_t i = 0; i < (axis->names ? axis->name_count : g->y.ticks); i++) {
        const char *text = plain(g, axis->names ? axis->names[i] : g->y.text[i], room);
        int line = axis->names ? name_line(g, i) : line_at(g, g->y.tick[i]);
        if (line < 0)
            continue;
        write(g, axis->names ? 0 : room - (int)strlen(text), line, text);
        if (!axis->names)
            write(g, g->left - 1, line, "+");
    }
}

static void x_labels(struct grid *g) {
    const struct vp_chart_axis *axis = &g->chart->x;
    int free_from = 0, slot = axis->names ? g->across / (int)axis->name_count : g->across;
    for (int column = 0; column < g->across; column++)
        write(g, g->left + column, g->down, "-");
    write(g, g->left - 1, g->down, "+");
    for (uint32_t i = 0; i < (axis->names ? axis->name_count : g->x.ticks); i++) {
        const char *text =
            plain(g, axis->names ? axis->names[i] : g->x.text[i], slot > 3 ? slot - 1 : 3);
        int column = column_at(g, axis->names ? i : g->x.tick[i]), size = (int)strlen(text);
        int from = g->left + column - size / 2;
        if (from + size > g->width)
            from = g->width - size;
        if (column < 0)
            continue;
        write(g, g->left + column, g->down, "+");
        if (from < free_from)
            continue;
        write(g, from, g->down + 1, text);
        free_from = from + size + 1;
    }
}

/* ---- series ---- */

static void draw_line(struct grid *g, uint32_t s, bool stairs) {
    const struct vp_chart_series *series = &g->chart->series[s];
    char letter = series->kind == VP_CHART_LIMIT ? '-' : vp_chart_letter(g->chart, s);
    int look = vp_chart_look(g->chart, s);
    for (uint32_t i = 0; i < series->count; i++) {
        const struct vp_chart_point *a = &series->point[i], *b = a + 1;
        if (!vp_chart_shows(a))
            continue;
        int from = column_at(g, a->x), line = line_at(g, a->y);
        if (from < 0 || line < 0)
            continue;
        put(g, from, line, letter, look);
        if (i + 1 == series->count || !vp_chart_shows(b))
            continue;
        int to = column_at(g, b->x), end = line_at(g, b->y);
        for (int column = from + 1; column < to; column++) {
            double way = stairs ? 0 : (column - from) / (double)(to - from);
            put_if_blank(g, column, line + (int)lround(way * (end - line)), letter, look);
        }
    }
}

static void draw_points(struct grid *g, uint32_t s) {
    const struct vp_chart_series *series = &g->chart->series[s];
    for (uint32_t i = 0; i < series->count; i++) {
        const struct vp_chart_point *point = &series->point[i];
        int column = column_at(g, point->x), line = line_at(g, point->y);
        if (column < 0 || line < 0)
            continue;
        put(g, column, line, vp_chart_letter(g->chart, s), vp_chart_look(g->chart, s));
        if (!point->word)
            continue;
        const char *word = plain(g, point->word, g->across - 2);
        int size = (int)strlen(word), from = column + 2;
        if (from + size > g->across)
            from = column - 1 - size;
        bool free = from >= 0;
        for (int k = 0; k < size && free; k++)
            free = *cell(g, from + k, line) == ' ';
        for (int k = 0; k < size && free; k++)
            put(g, from + k, line, word[k], -1);
    }
}

static void draw_band(struct grid *g, uint32_t s) {
    const struct vp_chart_series *series = &g->chart->series[s];
    for (uint32_t i = 0; i < series->count; i++) {
        const struct vp_chart_point *a = &series->point[i], *b = i + 1 < series->count ? a + 1 : a;
        int from = column_at(g, a->x), to = column_at(g, b->x);
        if (!vp_chart_shows(a) || !vp_chart_shows(b) || from < 0)
            continue;
        for (int column = from; column <= to; column++) {
            double way = to > from ? (column - from) / (double)(to - from) : 0;
            int top = line_at(g, a->z + way * (b->z - a->z)),
                bottom = line_at(g, a->y + way * (b->y - a->y));
            for (int line = top; line >= 0 && line <= bottom; line++)
                put_if_blank(g, column, line, ':', vp_chart_look(g->chart, s));
        }
    }
}

/* Of all points that a column stands for the one where the areas are highest: a peak is not lost
 * between columns. */
static void draw_areas(struct grid *g) {
    const struct vp_chart *chart = g->chart;
    uint32_t first = 0, last = 0;
    for (uint32_t s = chart->series_count; s-- > 0;)
        if (chart->series[s].kind == VP_CHART_AREA) {
            first = s;
            last = last ? last : s;
        }
    uint32_t count = chart->series[first].count;
    double *most = VP_NEW_ARRAY(chart->arena, (size_t)g->across, double);
    uint32_t *which = VP_NEW_ARRAY(chart->arena, (size_t)g->across, uint32_t);
    for (uint32_t i = 0; i < count; i++) {
        const struct vp_chart_point *point = &chart->series[last].point[i];
        double total = point->y + vp_chart_base(chart, last, i);
        int from = column_at(g, point->x), to = i + 1 < count ? column_at(g, point[1].x) : from;
        for (int column = from; column >= 0 && column <= to && column < g->across; column++)
            if (total > most[column]) {
                most[column] = total;
                which[column] = i;
            }
    }
    for (int column = 0; column < g->across; column++)
        for (uint32_t s = first; most[column] > 0 && s <= last; s++) {
            if (chart->series[s].kind != VP_CHART_AREA)
                continue;
            double low = vp_chart_base(chart, s, which[column]),
                   high = low + chart->series[s].point[which[column]].y;
            for (int line = 0; line < g->down; line++) {
                double v = value_on(g, line);
                if (v >= low && v < high)
                    put(g, column, line, vp_chart_letter(chart, s), vp_chart_look(chart, s));
            }
        }
}

static void fill(struct grid *g, bool lies, int from, int to, double low, double high, char letter,
                 int look) {
    int begin = lies ? column_at(g, low) : line_at(g, low),
        end = lies ? column_at(g, high) : line_at(g, high);
    for (int k = from; k <= to; k++)
        for (int at = begin; lies ? at < end : at > end; at += lies ? 1 : -1)
            put(g, lies ? at : k, lies ? k : at, letter, look);
}

static void draw_bars(struct grid *g, uint32_t s) {
    const struct vp_chart_series *series = &g->chart->series[s];
    bool lies = vp_chart_lies(g->chart);
    for (uint32_t i = 0; i < series->count; i++) {
        const struct vp_chart_point *p = &series->point[i];
        double base = vp_chart_base(g->chart, s, i), value = lies ? p->x : p->y;
        int from, to;
        slot_of(lies ? g->down : g->across, lies ? g->chart->y.name_count : g->chart->x.name_count,
                lies ? p->y : p->x, &from, &to);
        fill(g, lies, from, to, base, base + value, vp_chart_letter(g->chart, s),
             vp_chart_look(g->chart, s));
    }
}

static void draw_bar_limit(struct grid *g, uint32_t s) {
    const struct vp_chart_series *series = &g->chart->series[s];
    bool lies = vp_chart_lies(g->chart);
    for (uint32_t i = 0; i < series->count; i++) {
        const struct vp_chart_point *p = &series->point[i];
        int from, to, at = lies ? column_at(g, p->x) : line_at(g, p->y);
        slot_of(lies ? g->down : g->across, lies ? g->chart->y.name_count : g->chart->x.name_count,
                lies ? p->y : p->x, &from, &to);
        for (int k = from; k <= to; k++)
            put(g, lies ? at : k, lies ? k : at, lies ? vp_chart_letter(g->chart, s) : '-', -1);
    }
}

static void draw_cells(struct grid *g, uint32_t s) {
    const struct vp_chart_series *series = &g->chart->series[s];
    int slot = g->across / (int)g->chart->x.name_count;
    for (uint32_t i = 0; i < series->count; i++) {
        const struct vp_chart_point *p = &series->point[i];
        const char *word = plain(g, p->word ? p->word : "", slot > 1 ? slot - 1 : 1);
        int size = (int)strlen(word), from = column_at(g, p->x) - size / 2;
        for (int k = 0; k < size; k++)
            put(g, from + k, line_at(g, p->y), word[k], vp_chart_look(g->chart, s));
    }
}

/* ---- rules ---- */

static char limit_glyph(const struct vp_chart *chart, uint32_t rule) {
    uint32_t nth = 0;
    for (uint32_t i = 0; i < rule; i++)
        nth += !chart->rule[i].faint;
    return chart->rule[rule].faint ? ':' : LIMITS[nth % (sizeof LIMITS - 1)];
}

static void draw_rule(struct grid *g, uint32_t index) {
    const struct vp_chart_rule *rule = &g->chart->rule[index];
    char glyph = limit_glyph(g->chart, index);
    int at = rule->level ? line_at(g, rule->at) : column_at(g, rule->at);
    for (int k = 0; at >= 0 && k < (rule->level ? g->across : g->down); k++)
        if (rule->faint)
            put_if_blank(g, rule->level ? k : at, rule->level ? at : k, glyph, -1);
        else
            put(g, rule->level ? k : at, rule->level ? at : k, glyph, -1);
}

/* ---- the whole ---- */

static void draw_series(struct grid *g) {
    const struct vp_chart *chart = g->chart;
    bool bars = vp_chart_has(chart, VP_CHART_BARS);
    if (vp_chart_has(chart, VP_CHART_AREA))
        draw_areas(g);
    for (uint32_t i = 0; i < chart->rule_count; i++)
        draw_rule(g, i);
    for (uint32_t s = 0; s < chart->series_count; s++)
        switch (chart->series[s].kind) {
        case VP_CHART_AREA:
            break;
        case VP_CHART_BARS:
            draw_bars(g, s);
            break;
        case VP_CHART_LIMIT:
            if (bars)
                draw_bar_limit(g, s);
            else
                draw_line(g, s, false);
            break;
        case VP_CHART_LINE:
        case VP_CHART_STAIRS:
            draw_line(g, s, chart->series[s].kind == VP_CHART_STAIRS);
            break;
        case VP_CHART_CELLS:
            draw_cells(g, s);
            break;
        case VP_CHART_POINTS:
        case VP_CHART_BAND:
            break;
        }
    for (uint32_t s = 0; s < chart->series_count; s++) /* marks over lines, bands under them */
        if (chart->series[s].kind == VP_CHART_POINTS)
            draw_points(g, s);
        else if (chart->series[s].kind == VP_CHART_BAND)
            draw_band(g, s);
}

struct vp_chart_grid vp_chart_grid(struct vp_arena *arena, const struct vp_chart *chart, int width,
                                   int height) {
    width = width < LEAST_WIDTH ? LEAST_WIDTH : width;
    height = height < LEAST_HEIGHT ? LEAST_HEIGHT : height;
    size_t n = (size_t)width * (size_t)height;
    struct grid g = {.chart = chart, .width = width, .height = height};
    g.glyph = VP_NEW_ARRAY(arena, n, char);
    g.look = VP_NEW_ARRAY(arena, n, int8_t);
    memset(g.glyph, ' ', n);
    memset(g.look, -1, n);
    g.down = height - AXIS_LINES;
    g.y = vp_chart_scale_y(chart, (uint32_t)g.down / 3 + 1);
    g.left = y_label_width(chart, &g.y, width) + 2;
    g.across = width - g.left - 1; /* a tick's text may stand out on the right */
    g.x = vp_chart_scale_x(chart, (uint32_t)g.across / 9);
    y_labels(&g);
    x_labels(&g);
    draw_series(&g);
    return (struct vp_chart_grid){width, height, g.glyph, g.look};
}

static int suitable_height(const struct vp_chart *chart) {
    int names = (int)chart->y.name_count;
    if (!chart->y.names)
        return HEIGHT;
    return AXIS_LINES + (names <= 8 && vp_chart_has(chart, VP_CHART_BARS) ? 2 * names : names);
}

static void indented(const struct vp_page *page, const char *text) {
    vp_page_spaces(page, 2);
    vp_page_wrap(page, 2, 2, text);
}

static void legend(struct vp_buf *out, const struct vp_chart *chart, int width) {
    struct vp_buf line = {.arena = out->arena};
    struct vp_page page = {.out = out, .width = width};
    for (uint32_t s = 0; s < chart->series_count; s++) {
        const struct vp_chart_series *series = &chart->series[s];
        bool bars = vp_chart_has(chart, VP_CHART_BARS);
        char letter = series->kind == VP_CHART_LIMIT && !(bars && vp_chart_lies(chart))
                          ? '-'
                          : vp_chart_letter(chart, s);
        if (!series->label)
            continue;
        if (series->kind == VP_CHART_CELLS)
            vp_buf_printf(&line, "%s%s", line.size ? "   " : "", series->label);
        else
            vp_buf_printf(&line, "%s%c %s", line.size ? "   " : "", letter, series->label);
    }
    for (uint32_t i = 0; i < chart->rule_count; i++) {
        bool said = !chart->rule[i].label;
        for (uint32_t k = 0; k < i && !said; k++)
            said = vp_text_eq(chart->rule[k].label, chart->rule[i].label);
        if (!said)
            vp_buf_printf(&line, "%s%c %s", line.size ? "   " : "", limit_glyph(chart, i),
                          chart->rule[i].label);
    }
    if (line.size)
        indented(&page, vp_buf_text(&line));
}

void vp_chart_text(struct vp_buf *out, const struct vp_chart *chart, int width, int height) {
    struct vp_page page = {.out = out, .width = width};
    struct vp_chart_grid grid =
        vp_chart_grid(out->arena, chart, width, height > 0 ? height : suitable_height(chart));
    vp_page_wrap(&page, 0, 2, chart->title);
    if (chart->subtitle)
        vp_page_wrap(&page, 0, 2, chart->subtitle);
    if (!chart->y.names)
        vp_page_wrap(&page, 0, 2, vp_chart_axis_title(out->arena, &chart->y));
    for (int line = 0; line < grid.height; line++) {
        int size = grid.width;
        while (size > 0 && grid.glyph[line * grid.width + size - 1] == ' ')
            size--;
        vp_buf_add_n(out, &grid.glyph[line * grid.width], (size_t)size);
        vp_buf_add(out, "\n");
    }
    const char *x = vp_chart_axis_title(out->arena, &chart->x);
    vp_page_spaces(&page, (width - vp_text_cells(x)) / 2);
    vp_page_wrap(&page, (width - vp_text_cells(x)) / 2, 2, x);
    legend(out, chart, width);
    if (chart->note)
        indented(&page, chart->note);
}
