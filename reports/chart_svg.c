#include "reports/chart_svg.h"

#include <math.h>
#include <string.h>

#include "reports/layout.h"
#include "reports/markup.h"

/* All in pixels of a picture 860 wide, which scales with the page. A letter is taken for 0.6 of
 * its height, which is wider than most fonts have it. */
enum {
    WIDTH = 860,
    RIGHT = 24,
    TITLE = 17,
    SMALL = 12,
    LINE = 17,
    PLOT = 330,
    MARKERS_LEAST = 3,
    MARKERS_MOST = 40
};
static const double LETTER = 0.6;

static const struct {
    const char *light, *dark, *hatch, *dash;
} LOOKS[] = {
#define X(light, dark, hatch, pattern, dash, dashes) {light, dark, hatch, dashes},
#include "reports/chart_looks.def"
#undef X
};
enum { LOOK_COUNT = sizeof LOOKS / sizeof LOOKS[0] };

struct picture {
    struct vp_buf *out;
    const struct vp_chart *chart;
    const char *id;
    struct vp_scale x, y;
    double left, top, across, down; /* the plot */
    double height;
};

/* ---- style ---- */

static void colours(struct vp_buf *out, bool dark) {
    for (int i = 0; i < (int)LOOK_COUNT; i++)
        vp_buf_printf(out, "--c%d:%s;", i, dark ? LOOKS[i].dark : LOOKS[i].light);
    vp_buf_add(out, dark ? "--ink:#e8e8e8;--dim:#b0b0b0;--grid:#3c3c3c;--paper:#161616"
                         : "--ink:#1c1c1c;--dim:#555;--grid:#d8d8d8;--paper:#fff");
}

void vp_chart_svg_style(struct vp_buf *out) {
    vp_buf_add(out, ".chart{");
    colours(out, false);
    vp_buf_add(out, "}\n@media screen and (prefers-color-scheme:dark){.chart{");
    colours(out, true);
    vp_buf_add(out,
               "}}\n.chart{max-width:100%;height:auto;font-family:system-ui,sans-serif;"
               "print-color-adjust:exact;-webkit-print-color-adjust:exact}\n"
               ".chart text{fill:var(--ink);font-size:12px}\n"
               ".chart .title{font-size:17px;font-weight:600}\n"
               ".chart .dim{fill:var(--dim)}\n.chart .paper{fill:var(--paper)}\n"
               ".chart .grid{stroke:var(--grid);stroke-width:1}\n"
               ".chart .frame{stroke:var(--dim);stroke-width:1;fill:none}\n"
               ".chart .limit{stroke:var(--ink);stroke-width:2;stroke-dasharray:7 4;fill:none}\n"
               ".chart .stroke{stroke:var(--ink);stroke-width:4;fill:none}\n"
               ".chart .back{stroke:var(--dim);stroke-dasharray:3 2}\n"
               ".chart .divide{stroke:var(--dim);stroke-width:1;stroke-dasharray:2 4}\n"
               ".chart .piece{stroke:var(--paper);stroke-width:1}\n"
               ".chart .hatch{stroke:var(--paper);stroke-width:1.6;fill:none;opacity:.75}\n"
               ".chart .halo{stroke:var(--paper);stroke-width:3;paint-order:stroke}\n"
               ".chart .inside{font-weight:600;text-anchor:middle}\n"
               ".chart .onlight{fill:#111}\n.chart .ondark{fill:#fff}\n");
    for (int i = 0; i < (int)LOOK_COUNT; i++)
        vp_buf_printf(out,
                      ".chart .f%d{fill:var(--c%d)}\n.chart .s%d{stroke:var(--c%d);stroke-width:2;"
                      "fill:none;stroke-dasharray:%s}\n",
                      i, i, i, i, LOOKS[i].dash);
}

/* ---- parts ---- */

static double text_width(const struct picture *p, const char *text, double size) {
    return vp_text_cells(vp_text_clean(p->out->arena, text, true)) * size * LETTER;
}

static void text_at(struct picture *p, double x, double y, const char *class, const char *anchor,
                    const char *text) {
    vp_buf_printf(p->out, "<text x=\"%.1f\" y=\"%.1f\"", x, y);
    if (class)
        vp_buf_printf(p->out, " class=\"%s\"", class);
    if (anchor)
        vp_buf_printf(p->out, " text-anchor=\"%s\"", anchor);
    vp_buf_add(p->out, ">");
    vp_markup_add(p->out, text);
    vp_buf_add(p->out, "</text>\n");
}

static void line_at(struct picture *p, const char *class, double x0, double y0, double x1,
                    double y1) {
    vp_buf_printf(p->out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                  class, x0, y0, x1, y1);
}

static double clamp(double v) { return v > 1.02 ? 1.02 : v >= -0.02 ? v : -0.02; }

static double across(const struct picture *p, double x) {
    return p->left + p->across * clamp(vp_scale_at(&p->x, x));
}

/* Names run from the top down, numbers upwards. */
static double down(const struct picture *p, double y) {
    double at = clamp(vp_scale_at(&p->y, y));
    return p->top + p->down * (p->chart->y.names ? at : 1 - at);
}

/* Text over several lines; returns the y under the last. measure: nothing is written. */
static double paragraph(struct picture *p, const char *text, double y, int size, const char *class,
                        bool measure) {
    struct vp_buf lines = {.arena = p->out->arena};
    struct vp_page page = {
        .out = &lines, .width = (int)((WIDTH - RIGHT) / (size * LETTER)), .utf8 = true};
    vp_page_wrap(&page, 0, 0, text);
    for (const char *line = vp_buf_text(&lines); *line;) {
        size_t n = strcspn(line, "\n");
        y += size + 5;
        if (!measure)
            text_at(p, 10, y, class, NULL, vp_arena_text(p->out->arena, line, n));
        line += n + (line[n] == '\n');
    }
    return y;
}

/* ---- hatchings ---- */

static const char *hatch_path(const char *hatch) {
    static const struct {
        const char *name, *path;
    } PATHS[] = {{"up", "M0 8L8 0M-2 2L2 -2M6 10L10 6"},
                 {"down", "M0 0L8 8M-2 6L2 10M6 -2L10 2"},
                 {"cross", "M0 0L8 8M0 8L8 0"},
                 {"dots", "M2 2h1M6 6h1"},
                 {"level", "M0 4H8"},
                 {"tall", "M4 0V8"},
                 {"dense", "M0 8L8 0M0 4L4 0M4 8L8 4"}};
    for (size_t i = 0; i < sizeof PATHS / sizeof PATHS[0]; i++)
        if (vp_text_eq(hatch, PATHS[i].name))
            return PATHS[i].path;
    return "";
}

static bool is_filled(const struct vp_chart_series *series) {
    return series->kind == VP_CHART_BARS || series->kind == VP_CHART_AREA;
}

static void patterns(struct picture *p) {
    bool made[LOOK_COUNT] = {false};
    vp_buf_add(p->out, "<defs>\n");
    for (uint32_t s = 0; s < p->chart->series_count; s++) {
        int look = vp_chart_look(p->chart, s);
        if (!is_filled(&p->chart->series[s]) || made[look])
            continue;
        made[look] = true;
        vp_buf_printf(p->out,
                      "<pattern id=\"%s-p%d\" width=\"8\" height=\"8\" "
                      "patternUnits=\"userSpaceOnUse\"><rect class=\"f%d\" width=\"8\" "
                      "height=\"8\"/><path class=\"hatch\" d=\"%s\"/></pattern>\n",
                      p->id, look, look, hatch_path(LOOKS[look].hatch));
    }
    vp_buf_add(p->out, "</defs>\n");
}

/* ---- legend ---- */

static const char *stroke_class(const struct vp_chart_series *series) {
    return series->look == (int)VP_LOOK_GREY ? "stroke back" : "stroke";
}

/* A shape that differs from look to look. */
static void marker(struct picture *p, int look, double x, double y) {
    static const char *const SHAPES[] = {"m-4 -4h8v8h-8z", "m0 -5l5 9h-10z", "m0 5l5 -9h-10z",
                                         "m0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z"};
    if (look % 5 == 0)
        vp_buf_printf(p->out, "<circle class=\"f%d piece\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"/>\n",
                      look, x, y);
    else
        vp_buf_printf(p->out, "<path class=\"f%d piece\" d=\"M%.1f %.1f%s\"/>\n", look, x, y,
                      SHAPES[look % 5 - 1]);
}

static void swatch(struct picture *p, uint32_t s, double x, double y) {
    const struct vp_chart_series *series = &p->chart->series[s];
    int look = vp_chart_look(p->chart, s);
    switch (series->kind) {
    case VP_CHART_BARS:
    case VP_CHART_AREA:
        vp_buf_printf(p->out,
                      "<rect x=\"%.1f\" y=\"%.1f\" width=\"22\" height=\"11\" "
                      "fill=\"url(#%s-p%d)\"/>\n",
                      x, y - 10, p->id, look);
        break;
    case VP_CHART_BAND:
        vp_buf_printf(p->out,
                      "<rect class=\"f%d\" opacity=\".3\" x=\"%.1f\" y=\"%.1f\" width=\"22\" "
                      "height=\"11\"/>\n",
                      look, x, y - 10);
        break;
    case VP_CHART_LIMIT:
        if (vp_chart_has(p->chart, VP_CHART_BARS))
            line_at(p, stroke_class(series), x + 11, y - 11, x + 11, y + 2);
        else
            line_at(p, "limit", x, y - 4, x + 22, y - 4);
        break;
    case VP_CHART_POINTS:
        marker(p, look, x + 11, y - 4);
        break;
    case VP_CHART_LINE:
    case VP_CHART_STAIRS:
        vp_buf_printf(p->out, "<path class=\"s%d\" d=\"M%.1f %.1fh22\"/>\n", look, x, y - 4);
        break;
    case VP_CHART_CELLS:
        break;
    }
}

/* Returns the y under it. */
static double legend(struct picture *p, double y, bool measure) {
    double x = 10;
    bool any = false;
    for (uint32_t s = 0; s < p->chart->series_count; s++) {
        const struct vp_chart_series *series = &p->chart->series[s];
        if (!series->label)
            continue;
        double wide = 28 + text_width(p, series->label, SMALL) + 14;
        if (!any)
            y += LINE;
        if (any && x + wide > WIDTH - RIGHT) {
            x = 10;
            y += LINE;
        }
        any = true;
        if (!measure) {
            swatch(p, s, x, y);
            text_at(p, x + (series->kind == VP_CHART_CELLS ? 0 : 28), y, NULL, NULL, series->label);
        }
        x += wide;
    }
    return y;
}

/* ---- frame ---- */

static double left_room(struct picture *p) {
    const struct vp_chart_axis *axis = &p->chart->y;
    double widest = 0;
    for (uint32_t i = 0; i < (axis->names ? axis->name_count : p->y.ticks); i++)
        widest = fmax(widest, text_width(p, axis->names ? axis->names[i] : p->y.text[i], SMALL));
    return fmin(widest, 200) + 22 + (axis->names && !axis->label ? 0 : 18);
}

static bool x_names_slant(const struct picture *p) {
    const struct vp_chart_axis *axis = &p->chart->x;
    double widest = 0;
    for (uint32_t i = 0; i < axis->name_count; i++)
        widest = fmax(widest, text_width(p, axis->names[i], SMALL));
    return axis->names && widest > p->across / axis->name_count - 6;
}

static void x_axis(struct picture *p) {
    const struct vp_chart_axis *axis = &p->chart->x;
    bool slant = x_names_slant(p);
    double bottom = p->top + p->down;
    for (uint32_t i = 0; i < (axis->names ? axis->name_count : p->x.ticks); i++) {
        double x = across(p, axis->names ? i : p->x.tick[i]);
        if (!axis->names)
            line_at(p, "grid", x, p->top, x, bottom);
        if (slant) {
            vp_buf_printf(p->out,
                          "<text transform=\"translate(%.1f %.1f) rotate(-25)\" "
                          "text-anchor=\"end\">",
                          x + 4, bottom + 14);
            vp_markup_add(p->out, axis->names[i]);
            vp_buf_add(p->out, "</text>\n");
        } else {
            text_at(p, x, bottom + 17, NULL, "middle", axis->names ? axis->names[i] : p->x.text[i]);
        }
    }
    text_at(p, p->left + p->across / 2, bottom + (slant ? 78 : 36), "dim", "middle",
            vp_chart_axis_title(p->out->arena, axis));
}

static void y_axis(struct picture *p) {
    const struct vp_chart_axis *axis = &p->chart->y;
    struct vp_buf unused = {.arena = p->out->arena};
    struct vp_page page = {.out = &unused, .utf8 = true};
    for (uint32_t i = 0; i < (axis->names ? axis->name_count : p->y.ticks); i++) {
        double y = down(p, axis->names ? i : p->y.tick[i]);
        const char *text = axis->names ? axis->names[i] : p->y.text[i];
        if (!axis->names)
            line_at(p, "grid", p->left, y, p->left + p->across, y);
        text_at(p, p->left - 8, y + 4, NULL, "end",
                vp_page_shorten(&page, text, (int)(200 / (SMALL * LETTER))));
    }
    const char *title = vp_chart_axis_title(p->out->arena, axis);
    if (!*title)
        return;
    vp_buf_printf(p->out,
                  "<text class=\"dim\" transform=\"translate(18 %.1f) rotate(-90)\" "
                  "text-anchor=\"middle\">",
                  p->top + p->down / 2);
    vp_markup_add(p->out, title);
    vp_buf_add(p->out, "</text>\n");
}

/* ---- series ---- */

static void draw_line(struct picture *p, uint32_t s) {
    const struct vp_chart_series *series = &p->chart->series[s];
    bool on = false, stairs = series->kind == VP_CHART_STAIRS;
    double before = 0;
    if (series->kind == VP_CHART_LIMIT)
        vp_buf_add(p->out, "<path class=\"limit\" d=\"");
    else
        vp_buf_printf(p->out, "<path class=\"s%d\" d=\"", vp_chart_look(p->chart, s));
    for (uint32_t i = 0; i < series->count; i++) {
        const struct vp_chart_point *point = &series->point[i];
        if (!vp_chart_shows(point)) {
            on = false;
            continue;
        }
        double x = across(p, point->x), y = down(p, point->y);
        if (on && stairs)
            vp_buf_printf(p->out, "L%.1f %.1f", x, before);
        vp_buf_printf(p->out, "%c%.1f %.1f", on ? 'L' : 'M', x, y);
        before = y;
        on = true;
    }
    vp_buf_add(p->out, "\"/>\n");
}

static void draw_points(struct picture *p, uint32_t s) {
    const struct vp_chart_series *series = &p->chart->series[s];
    for (uint32_t i = 0; i < series->count; i++) {
        const struct vp_chart_point *point = &series->point[i];
        if (!vp_chart_shows(point))
            continue;
        double x = across(p, point->x), y = down(p, point->y);
        marker(p, vp_chart_look(p->chart, s), x, y);
    }
}

static void draw_words(struct picture *p) {
    struct vp_chart_word *word;
    uint32_t n = vp_chart_words(p->chart, &word, &p->x, &p->y,
                                (p->across + RIGHT) / (SMALL * LETTER), p->down / (SMALL + 2));
    for (uint32_t i = 0; i < n; i++)
        text_at(p, across(p, word[i].point->x) + (word[i].left ? -9 : 9),
                down(p, word[i].point->y) + (word[i].line > 0 ? 12 + 14 * (word[i].line - 1)
                                                              : -4 + 14 * (word[i].line + 1)),
                "halo", word[i].left ? "end" : NULL, word[i].point->word);
}

static void draw_area(struct picture *p, uint32_t s) {
    const struct vp_chart_series *series = &p->chart->series[s];
    vp_buf_printf(p->out, "<path fill=\"url(#%s-p%d)\" d=\"", p->id, vp_chart_look(p->chart, s));
    for (uint32_t i = 0; i < series->count; i++) {
        double y = down(p, vp_chart_base(p->chart, s, i) + series->point[i].y);
        vp_buf_printf(p->out, "%c%.1f %.1f", i ? 'L' : 'M', across(p, series->point[i].x), y);
        if (i + 1 < series->count)
            vp_buf_printf(p->out, "H%.1f", across(p, series->point[i + 1].x));
    }
    for (uint32_t i = series->count; i-- > 0;) {
        double y = down(p, vp_chart_base(p->chart, s, i));
        if (i + 1 < series->count)
            vp_buf_printf(p->out, "L%.1f %.1f", across(p, series->point[i + 1].x), y);
        vp_buf_printf(p->out, "L%.1f %.1f", across(p, series->point[i].x), y);
    }
    vp_buf_add(p->out, "Z\"/>\n");
}

static void draw_band(struct picture *p, uint32_t s) {
    const struct vp_chart_series *series = &p->chart->series[s];
    for (uint32_t first = 0, end; first < series->count; first = end) {
        end = first + 1;
        if (!vp_chart_shows(&series->point[first]))
            continue;
        while (end < series->count && vp_chart_shows(&series->point[end]))
            end++;
        vp_buf_printf(p->out, "<path class=\"f%d\" opacity=\".25\" d=\"",
                      vp_chart_look(p->chart, s));
        for (uint32_t i = first; i < end; i++)
            vp_buf_printf(p->out, "%c%.1f %.1f", i == first ? 'M' : 'L',
                          across(p, series->point[i].x), down(p, series->point[i].z));
        for (uint32_t i = end; i-- > first;)
            vp_buf_printf(p->out, "L%.1f %.1f", across(p, series->point[i].x),
                          down(p, series->point[i].y));
        vp_buf_add(p->out, "Z\"/>\n");
    }
}

/* Half a bar, in pixels. */
static double half_bar(const struct picture *p) {
    bool lies = vp_chart_lies(p->chart);
    double slot = lies ? p->down / p->chart->y.name_count : p->across / p->chart->x.name_count;
    return fmin(slot * 0.36, 24);
}

static void draw_bars(struct picture *p, uint32_t s) {
    const struct vp_chart_series *series = &p->chart->series[s];
    bool lies = vp_chart_lies(p->chart);
    double half = half_bar(p);
    char letter[2] = {series->letter, '\0'};
    for (uint32_t i = 0; i < series->count; i++) {
        const struct vp_chart_point *point = &series->point[i];
        double base = vp_chart_base(p->chart, s, i), value = lies ? point->x : point->y;
        if (!vp_chart_shows(point) || !isfinite(base))
            continue;
        double middle = lies ? down(p, point->y) : across(p, point->x);
        double from = lies ? across(p, base) : down(p, base + value),
               to = lies ? across(p, base + value) : down(p, base);
        double x = lies ? from : middle - half, y = lies ? middle - half : from;
        double wide = lies ? to - from : 2 * half, high = lies ? 2 * half : to - from;
        vp_buf_printf(p->out,
                      "<rect class=\"piece\" fill=\"url(#%s-p%d)\" x=\"%.1f\" y=\"%.1f\" "
                      "width=\"%.1f\" height=\"%.1f\"><title>",
                      p->id, vp_chart_look(p->chart, s), x, y, wide, high);
        vp_markup_add(p->out, series->label);
        vp_buf_printf(p->out, ": %s", vp_chart_number(p->out->arena, value));
        vp_buf_add(p->out, "</title></rect>\n");
        if (series->letter && wide > 16 && high > 14)
            text_at(p, x + wide / 2, y + high / 2 + 4, "inside halo", NULL, letter);
    }
}

static void draw_bar_limit(struct picture *p, uint32_t s) {
    const struct vp_chart_series *series = &p->chart->series[s];
    bool lies = vp_chart_lies(p->chart);
    double half = half_bar(p) + 6;
    for (uint32_t i = 0; i < series->count; i++) {
        if (!vp_chart_shows(&series->point[i]))
            continue;
        double x = across(p, series->point[i].x), y = down(p, series->point[i].y);
        if (lies)
            line_at(p, stroke_class(series), x, y - half, x, y + half);
        else
            line_at(p, stroke_class(series), x - half, y, x + half, y);
    }
}

/* From light to dark, lightness alone tells. */
static void draw_cells(struct picture *p, uint32_t s) {
    const struct vp_chart_series *series = &p->chart->series[s];
    double wide = p->across / p->chart->x.name_count, high = p->down / p->chart->y.name_count;
    for (uint32_t i = 0; i < series->count; i++) {
        const struct vp_chart_point *point = &series->point[i];
        double x = across(p, point->x), y = down(p, point->y);
        double z = point->z > 1 ? 1 : point->z >= 0 ? point->z : 0;
        if (!vp_chart_shows(point))
            continue;
        vp_buf_printf(p->out,
                      "<rect class=\"piece\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                      "fill=\"rgb(%.0f,%.0f,%.0f)\"/>\n",
                      x - wide / 2, y - high / 2, wide, high, 247 - 229 * z, 244 - 186 * z,
                      227 - 128 * z);
        if (point->word && text_width(p, point->word, SMALL) < wide + 8)
            text_at(p, x, y + 4, z > 0.5 ? "ondark" : "onlight", "middle", point->word);
    }
}

static void draw_series(struct picture *p, uint32_t s) {
    const struct vp_chart_series *series = &p->chart->series[s];
    switch (series->kind) {
    case VP_CHART_BARS:
        draw_bars(p, s);
        break;
    case VP_CHART_AREA:
        draw_area(p, s);
        break;
    case VP_CHART_BAND:
        draw_band(p, s);
        break;
    case VP_CHART_LIMIT:
        if (vp_chart_has(p->chart, VP_CHART_BARS))
            draw_bar_limit(p, s);
        else
            draw_line(p, s);
        break;
    case VP_CHART_LINE:
    case VP_CHART_STAIRS:
        draw_line(p, s);
        if (series->kind == VP_CHART_LINE && series->count > MARKERS_LEAST &&
            series->count <= MARKERS_MOST)
            draw_points(p, s);
        break;
    case VP_CHART_POINTS:
        draw_points(p, s);
        break;
    case VP_CHART_CELLS:
        draw_cells(p, s);
        break;
    }
}

static void draw_rule(struct picture *p, const struct vp_chart_rule *rule) {
    const char *class = rule->faint ? "divide" : "limit";
    double x = across(p, rule->at), y = down(p, rule->at);
    if (rule->level) {
        line_at(p, class, p->left, y, p->left + p->across, y);
        if (rule->label)
            text_at(p, p->left + 6, y - 5, "halo", NULL, rule->label);
        return;
    }
    line_at(p, class, x, p->top, x, p->top + p->down);
    if (!rule->label)
        return;
    vp_buf_printf(p->out,
                  "<text class=\"halo\" transform=\"translate(%.1f %.1f) rotate(-90)\" "
                  "text-anchor=\"end\">",
                  x - 5, p->top + 5);
    vp_markup_add(p->out, rule->label);
    vp_buf_add(p->out, "</text>\n");
}

/* ---- the whole ---- */

static void arrange(struct picture *p) {
    const struct vp_chart *chart = p->chart;
    p->y = vp_chart_scale_y(chart, 8);
    p->left = left_room(p);
    p->across = WIDTH - p->left - RIGHT;
    p->x = vp_chart_scale_x(chart, 10);
    p->top = paragraph(p, chart->title, 4, TITLE, "title", true);
    if (chart->subtitle)
        p->top = paragraph(p, chart->subtitle, p->top, SMALL, "dim", true);
    p->top = legend(p, p->top + 4, true) + 14;
    p->down = PLOT;
    if (chart->y.names)
        p->down = fmin(fmax(chart->y.name_count * (vp_chart_lies(chart) ? 56 : 34), 70), 900);
    p->height = p->top + p->down + (x_names_slant(p) ? 88 : 46);
    if (chart->note)
        p->height = paragraph(p, chart->note, p->height, SMALL, "dim", true) + 8;
}

static void words(struct picture *p) {
    const struct vp_chart *chart = p->chart;
    double y = paragraph(p, chart->title, 4, TITLE, "title", false);
    if (chart->subtitle)
        y = paragraph(p, chart->subtitle, y, SMALL, "dim", false);
    legend(p, y + 4, false);
    if (chart->note)
        paragraph(p, chart->note, p->top + p->down + (x_names_slant(p) ? 88 : 46), SMALL, "dim",
                  false);
}

static void draw(struct vp_buf *out, const struct vp_chart *chart, const char *id, bool alone) {
    struct picture p = {.out = out, .chart = chart, .id = id};
    arrange(&p);
    vp_buf_printf(out,
                  "<svg class=\"chart\" viewBox=\"0 0 %d %.0f\" width=\"%d\" height=\"%.0f\" "
                  "role=\"img\" aria-labelledby=\"%s-t %s-d\"",
                  WIDTH, p.height, WIDTH, p.height, id, id);
    vp_buf_add(out, alone ? " xmlns=\"http://www.w3.org/2000/svg\">\n<style>\n" : ">\n");
    if (alone) {
        vp_chart_svg_style(out);
        vp_buf_add(out, "</style>\n");
    }
    vp_buf_printf(out, "<title id=\"%s-t\">%s</title>\n", id,
                  vp_markup_text(out->arena, chart->title));
    vp_buf_printf(out, "<desc id=\"%s-d\">%s %s</desc>\n", id,
                  vp_markup_text(out->arena, chart->subtitle),
                  vp_markup_text(out->arena, chart->note));
    patterns(&p);
    vp_buf_printf(out, "<rect class=\"paper\" width=\"%d\" height=\"%.0f\"/>\n", WIDTH, p.height);
    words(&p);
    x_axis(&p);
    y_axis(&p);
    for (uint32_t s = 0; s < chart->series_count; s++)
        if (chart->series[s].kind != VP_CHART_POINTS)
            draw_series(&p, s);
    for (uint32_t i = 0; i < chart->rule_count; i++)
        draw_rule(&p, &chart->rule[i]);
    for (uint32_t s = 0; s < chart->series_count; s++)
        if (chart->series[s].kind == VP_CHART_POINTS)
            draw_series(&p, s);
    draw_words(&p);
    vp_buf_printf(out,
                  "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                  p.left, p.top, p.across, p.down);
    vp_buf_add(out, "</svg>\n");
}

void vp_chart_svg(struct vp_buf *out, const struct vp_chart *chart, const char *id) {
    draw(out, chart, id, false);
}

void vp_chart_svg_file(struct vp_buf *out, const struct vp_chart *chart) {
    vp_buf_add(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    draw(out, chart, "c", true);
}
