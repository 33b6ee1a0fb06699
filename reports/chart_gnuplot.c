#include "reports/chart_gnuplot.h"

#include <math.h>
#include <string.h>

#include "reports/shell_words.h"

enum { TEXT_CELLS = 150, NAMES_LEVEL = 90, FEW_NAMES = 3 };

static const struct {
    const char *colour;
    int pattern, dash;
} LOOKS[] = {
#define X(light, dark, hatch, pattern, dash, dashes) {light, pattern, dash},
#include "reports/chart_looks.def"
#undef X
};

/* Text in gnuplot's single quotes, harmless and on one line. */
static const char *word(struct vp_buf *out, const char *text) {
    return vp_gnuplot_word(out->arena, vp_text_clean(out->arena, text, true));
}

/* ---- data ---- */

static void number(struct vp_buf *out, double value) {
    if (!isfinite(value))
        vp_buf_add(out, " NaN");
    else
        vp_buf_printf(out, " %.12g", value);
}

static void numbers(struct vp_buf *out, const double *value, int count) {
    for (int i = 0; i < count; i++)
        number(out, value[i]);
    vp_buf_add(out, "\n");
}

/* The middle and the four sides of a box of half a width. */
static void box(struct vp_buf *out, double x, double y, double x0, double x1, double y0,
                double y1) {
    const double row[] = {x, y, x0, x1, y0, y1};
    numbers(out, row, 6);
}

static void bar_row(struct vp_buf *out, const struct vp_chart *chart, uint32_t s, uint32_t i) {
    const double HALF = 0.35;
    const struct vp_chart_point *p = &chart->series[s].point[i];
    double base = vp_chart_base(chart, s, i);
    if (vp_chart_lies(chart))
        box(out, base + p->x / 2, p->y, base, base + p->x, p->y - HALF, p->y + HALF);
    else
        box(out, p->x, base + p->y / 2, p->x - HALF, p->x + HALF, base, base + p->y);
}

/* A stroke across a bar. */
static void stroke_row(struct vp_buf *out, const struct vp_chart *chart,
                       const struct vp_chart_point *p) {
    const double HALF = 0.45;
    if (vp_chart_lies(chart))
        numbers(out, (const double[]){p->x, p->y - HALF, 0, 2 * HALF}, 4);
    else
        numbers(out, (const double[]){p->x - HALF, p->y, 2 * HALF, 0}, 4);
}

static void point_rows(struct vp_buf *out, const struct vp_chart *chart, uint32_t s, uint32_t i) {
    const double HALF = 0.5;
    const struct vp_chart_series *series = &chart->series[s];
    const struct vp_chart_point *p = &series->point[i];
    double base;
    switch (series->kind) {
    case VP_CHART_LINE:
    case VP_CHART_STAIRS:
    case VP_CHART_POINTS: /* words are labels of the script */
        numbers(out, (const double[]){p->x, p->y}, 2);
        break;
    case VP_CHART_BARS:
        bar_row(out, chart, s, i);
        break;
    case VP_CHART_AREA: /* level until the next one */
        base = vp_chart_base(chart, s, i);
        numbers(out, (const double[]){p->x, base, base + p->y}, 3);
        if (i + 1 < series->count)
            numbers(out, (const double[]){p[1].x, base, base + p->y}, 3);
        break;
    case VP_CHART_BAND:
        numbers(out, (const double[]){p->x, p->y, p->z}, 3);
        break;
    case VP_CHART_LIMIT:
        if (vp_chart_has(chart, VP_CHART_BARS))
            stroke_row(out, chart, p);
        else
            numbers(out, (const double[]){p->x, p->y}, 2);
        break;
    case VP_CHART_CELLS:
        number(out, p->z);
        box(out, p->x, p->y, p->x - HALF, p->x + HALF, p->y - HALF, p->y + HALF);
        break;
    }
}

static const char *columns_of(const struct vp_chart *chart, const struct vp_chart_series *series) {
    switch (series->kind) {
    case VP_CHART_BARS:
        return "x y x-low x-high y-low y-high";
    case VP_CHART_AREA:
        return "x from to";
    case VP_CHART_BAND:
        return "x low high";
    case VP_CHART_LIMIT:
        return vp_chart_has(chart, VP_CHART_BARS) ? "x y dx dy" : "x y";
    case VP_CHART_CELLS:
        return "shade x y x-low x-high y-low y-high";
    case VP_CHART_LINE:
    case VP_CHART_STAIRS:
    case VP_CHART_POINTS:
        break;
    }
    return "x y";
}

void vp_chart_gnuplot_data(struct vp_buf *out, const struct vp_chart *chart) {
    struct vp_arena *arena = out->arena;
    vp_buf_printf(out, "# %s\n# x: %s\n# y: %s\n", vp_text_clean(arena, chart->title, true),
                  vp_chart_axis_title(arena, &chart->x), vp_chart_axis_title(arena, &chart->y));
    for (uint32_t s = 0; s < chart->series_count; s++) {
        const struct vp_chart_series *series = &chart->series[s];
        vp_buf_printf(out, "%s# %s: %s\n", s ? "\n\n" : "",
                      vp_text_clean(arena, series->label ? series->label : "", true),
                      columns_of(chart, series));
        for (uint32_t i = 0; i < series->count; i++)
            point_rows(out, chart, s, i);
        if (series->count == 0)
            vp_buf_add(out, "NaN NaN NaN NaN NaN NaN NaN\n"); /* so that the index is there */
    }
}

/* ---- frame ---- */

static void axis_ticks(struct vp_buf *out, char name, const struct vp_chart_axis *axis,
                       const struct vp_scale *scale) {
    size_t letters = 0;
    for (uint32_t i = 0; i < axis->name_count; i++)
        letters += strlen(axis->names[i]) + 2;
    vp_buf_printf(out, "set %ctics %s(", name,
                  name == 'x' && letters > NAMES_LEVEL ? "rotate by -20 " : "");
    for (uint32_t i = 0; i < (axis->names ? axis->name_count : scale->ticks); i++) {
        vp_buf_add(out, i ? ", " : "");
        vp_buf_add(out, word(out, axis->names ? axis->names[i] : scale->text[i]));
        vp_buf_printf(out, " %.12g", axis->names ? i : scale->tick[i]);
    }
    vp_buf_add(out, ")\n");
    if (axis->base)
        vp_buf_printf(out, "set logscale %c %d\n", name, axis->base);
    double low = scale->low, high = scale->high;
    if (axis->base) { /* gnuplot loses ticks at the very ends */
        low /= 1 + 1e-9;
        high *= 1 + 1e-9;
    }
    if (axis->names && name == 'y') { /* names run from the top down; a few make no thick bars */
        double room = axis->name_count < FEW_NAMES ? (FEW_NAMES - axis->name_count) / 2.0 : 0;
        vp_buf_printf(out, "set yrange [%.12g:%.12g]\n", high + room, low - room);
    } else {
        vp_buf_printf(out, "set %crange [%.12g:%.12g]\n", name, low, high);
    }
    vp_buf_printf(out, "set %clabel ", name);
    vp_buf_add(out, word(out, vp_chart_axis_title(out->arena, axis)));
    vp_buf_add(out, "\n");
}

/* Texts over and under the picture, broken where they are long. Returns the lines. */
static int text_lines(struct vp_buf *out, const char *text, double y, const char *font) {
    struct vp_buf lines = {.arena = out->arena};
    struct vp_page page = {.out = &lines, .width = TEXT_CELLS, .utf8 = true};
    int n = 0;
    vp_page_wrap(&page, 0, 0, text);
    for (const char *line = vp_buf_text(&lines); *line; n++) {
        size_t size = strcspn(line, "\n");
        vp_buf_add(out, "set label ");
        vp_buf_add(out, word(out, vp_arena_text(out->arena, line, size)));
        vp_buf_printf(out, " at screen 0.02, screen %.3f left font '%s'\n", y - 0.03 * n, font);
        line += size + (line[size] == '\n');
    }
    return n;
}

static void rules(struct vp_buf *out, const struct vp_chart *chart) {
    for (uint32_t i = 0; i < chart->rule_count; i++) {
        const struct vp_chart_rule *rule = &chart->rule[i];
        const char *style = rule->faint ? "dashtype 3 linewidth 1 linecolor rgb '#707070'"
                                        : "dashtype 2 linewidth 2.5 linecolor rgb '#202020'";
        if (rule->level)
            vp_buf_printf(out, "set arrow from graph 0, first %.12g to graph 1, first %.12g",
                          rule->at, rule->at);
        else
            vp_buf_printf(out, "set arrow from first %.12g, graph 0 to first %.12g, graph 1",
                          rule->at, rule->at);
        vp_buf_printf(out, " nohead front %s\n", style);
        if (!rule->label)
            continue;
        vp_buf_add(out, "set label ");
        vp_buf_add(out, word(out, rule->label));
        if (rule->level)
            vp_buf_printf(out, " at graph 0.01, first %.12g offset 0, character 0.6 left front\n",
                          rule->at);
        else
            vp_buf_printf(out,
                          " at first %.12g, graph 0.98 offset character -1.3, 0 right rotate by "
                          "90 front font ',9'\n",
                          rule->at);
    }
}

static void point_words(struct vp_buf *out, const struct vp_chart *chart) {
    enum { CELLS = 100, LINES = 26 }; /* of the frame, about */
    struct vp_scale x = vp_chart_scale_x(chart, 12), y = vp_chart_scale_y(chart, 10);
    struct vp_chart_word *words;
    uint32_t n = vp_chart_words(chart, &words, &x, &y, CELLS, LINES);
    for (uint32_t i = 0; i < n; i++) {
        vp_buf_add(out, "set label ");
        vp_buf_add(out, word(out, words[i].point->word));
        vp_buf_printf(out,
                      " at first %.12g, first %.12g %s offset character %d, character %.1f front\n",
                      words[i].point->x, words[i].point->y, words[i].left ? "right" : "left",
                      words[i].left ? -1 : 1, (words[i].line > 0 ? 0.5 : -0.5) - words[i].line);
    }
}

static void cell_words(struct vp_buf *out, const struct vp_chart *chart) {
    for (uint32_t s = 0; s < chart->series_count; s++) {
        const struct vp_chart_series *series = &chart->series[s];
        for (uint32_t i = 0; series->kind == VP_CHART_CELLS && i < series->count; i++) {
            const struct vp_chart_point *p = &series->point[i];
            if (!p->word || !vp_chart_shows(p))
                continue;
            vp_buf_add(out, "set label ");
            vp_buf_add(out, word(out, p->word));
            vp_buf_printf(out, " at first %.12g, first %.12g center front%s\n", p->x, p->y,
                          p->z > 0.6 ? " textcolor rgb 'white'" : "");
        }
    }
}

/* Letters in pieces of bars that have room for them. */
static void bar_letters(struct vp_buf *out, const struct vp_chart *chart) {
    const double ROOM = 0.025; /* of the axis */
    bool lies = vp_chart_lies(chart);
    struct vp_scale scale = lies ? vp_chart_scale_x(chart, 12) : vp_chart_scale_y(chart, 10);
    for (uint32_t s = 0; s < chart->series_count; s++) {
        const struct vp_chart_series *series = &chart->series[s];
        for (uint32_t i = 0; i < series->count; i++) {
            const struct vp_chart_point *p = &series->point[i];
            double value = lies ? p->x : p->y, middle = vp_chart_base(chart, s, i) + value / 2;
            if (series->kind != VP_CHART_BARS || !series->letter || !vp_chart_shows(p) ||
                value < ROOM * (scale.high - scale.low))
                continue;
            vp_buf_printf(out, "set label '%c' at first %.12g, first %.12g center front boxed\n",
                          series->letter, lies ? middle : p->x, lies ? p->y : middle);
        }
    }
}

/* ---- plot ---- */

static void plot_word(struct vp_buf *out, const char *data, uint32_t s, const char *before) {
    vp_buf_printf(out, "%s \\\n  ", before);
    vp_buf_add(out, word(out, data));
    vp_buf_printf(out, " index %u ", s);
}

static void title(struct vp_buf *out, const char *label) {
    vp_buf_add(out, label ? " title " : " notitle");
    if (label)
        vp_buf_add(out, word(out, label));
}

/* A filled shape: tinted, and hatched over it. */
static void plot_filled(struct vp_buf *out, const struct vp_chart *chart, uint32_t s,
                        const char *data, const char *how, const char *before) {
    int look = vp_chart_look(chart, s);
    plot_word(out, data, s, before);
    vp_buf_printf(out, "%s fillstyle transparent solid 0.45 noborder linecolor rgb '%s' notitle",
                  how, LOOKS[look].colour);
    plot_word(out, data, s, ",");
    vp_buf_printf(out,
                  "%s fillstyle transparent pattern %d border rgb '#202020' linecolor rgb '%s'",
                  how, LOOKS[look].pattern, LOOKS[look].colour);
    title(out, chart->series[s].label);
}

static void plot_series(struct vp_buf *out, const struct vp_chart *chart, uint32_t s,
                        const char *data, const char *before) {
    const struct vp_chart_series *series = &chart->series[s];
    int look = vp_chart_look(chart, s);
    const char *colour = LOOKS[look].colour;
    bool bars = vp_chart_has(chart, VP_CHART_BARS);
    switch (series->kind) {
    case VP_CHART_BARS:
        plot_filled(out, chart, s, data, "using 1:2:3:4:5:6 with boxxyerror", before);
        return;
    case VP_CHART_AREA:
        plot_filled(out, chart, s, data, "using 1:2:3 with filledcurves", before);
        return;
    case VP_CHART_BAND:
        plot_word(out, data, s, before);
        vp_buf_printf(out,
                      "using 1:2:3 with filledcurves fillstyle transparent solid 0.2 noborder "
                      "linecolor rgb '%s'",
                      colour);
        break;
    case VP_CHART_LIMIT:
        plot_word(out, data, s, before);
        vp_buf_printf(out,
                      bars ? "using 1:2:3:4 with vectors nohead linewidth 4 linecolor rgb '%s'"
                           : "using 1:2 with lines dashtype 2 linewidth 2.5 linecolor rgb '%s'",
                      series->look == (int)VP_LOOK_BY_ORDER ? "#202020" : colour);
        break;
    case VP_CHART_LINE:
    case VP_CHART_STAIRS:
        plot_word(out, data, s, before);
        vp_buf_printf(out, "using 1:2 with %s dashtype %d linewidth 2 linecolor rgb '%s'",
                      series->kind == VP_CHART_STAIRS ? "steps" : "lines", LOOKS[look].dash,
                      colour);
        break;
    case VP_CHART_POINTS:
        plot_word(out, data, s, before);
        vp_buf_printf(
            out,
            "using 1:2 with points pointtype %d pointsize 1.4 linewidth 1.5 linecolor rgb "
            "'%s'",
            4 + look % 10, colour);
        break;
    case VP_CHART_CELLS:
        plot_word(out, data, s, before);
        vp_buf_add(out, "using 2:3:4:5:6:7:1 with boxxyerror fillstyle solid border rgb '#ffffff' "
                        "linecolor palette");
        break;
    }
    title(out, series->label);
}

static const char *terminal_name(enum vp_gnuplot_terminal terminal) {
    switch (terminal) {
    case VP_GNUPLOT_SVG:
        return "svg size 1200,700 dynamic noenhanced font 'sans-serif,14' background rgb 'white'";
    case VP_GNUPLOT_PDF:
        return "pdfcairo size 29.7cm,17.3cm noenhanced font 'sans,11'";
    case VP_GNUPLOT_PNG:
        break;
    }
    return "pngcairo size 1200,700 noenhanced font 'sans,11'";
}

void vp_chart_gnuplot_script(struct vp_buf *out, const struct vp_chart *chart, const char *data,
                             const char *image, enum vp_gnuplot_terminal terminal) {
    struct vp_scale x = vp_chart_scale_x(chart, 12), y = vp_chart_scale_y(chart, 10);
    vp_buf_printf(out, "set encoding utf8\nset terminal %s\nset output ", terminal_name(terminal));
    vp_buf_add(out, vp_gnuplot_word(out->arena, image));
    vp_buf_add(out, "\n");
    double top = 0.96;
    top -= 0.04 * text_lines(out, chart->title, top, ",15");
    if (chart->subtitle)
        top -= 0.03 * text_lines(out, chart->subtitle, top, ",10");
    vp_buf_printf(out, "set tmargin at screen %.3f\n", top - 0.02);
    if (chart->note) {
        text_lines(out, chart->note, 0.05, ",10");
        vp_buf_add(out, "set bmargin at screen 0.20\n");
    }
    axis_ticks(out, 'x', &chart->x, &x);
    axis_ticks(out, 'y', &chart->y, &y);
    vp_buf_add(
        out,
        "set key outside right top\nset grid linetype 1 linewidth 0.5 linecolor rgb '#d0d0d0'\n"
        "set datafile missing '?'\n");
    if (vp_chart_has(chart, VP_CHART_CELLS))
        vp_buf_add(out, "set palette defined (0 '#f7f4e3', 0.5 '#7fb2c8', 1 '#123a63')\n"
                        "set cbrange [0:1]\nunset colorbox\nunset grid\n");
    rules(out, chart);
    point_words(out, chart);
    cell_words(out, chart);
    if (vp_chart_has(chart, VP_CHART_BARS)) {
        vp_buf_add(out, "set style textbox opaque noborder margins 0.6, 0.4\n");
        bar_letters(out, chart);
    }
    vp_buf_add(out, "plot");
    for (uint32_t s = 0; s < chart->series_count; s++)
        plot_series(out, chart, s, data, s ? "," : "");
    vp_buf_add(out, "\n");
}
