/* A chart, described once: what is drawn, on which axes, against which limits, in words. Renderers
 * turn the description into a picture and decide nothing about its content:
 *
 *     chart_text.h     characters, 80 columns, needs nothing
 *     chart_svg.h      SVG, written here: inside a page, or a file of its own
 *     chart_gnuplot.h  a script and its data, for PNG, PDF, SVG
 *
 *     struct vp_chart *chart = vp_chart_new(arena, "breakdown", title, subtitle);
 *     struct vp_chart_series *line = vp_chart_add(chart, VP_CHART_LINE, "fp8");
 *     vp_chart_point(chart, line, 32768, 40.0);
 *     vp_chart_limit(chart, true, 191.98, "MI300X");
 *     vp_chart_text(&out, chart, 80, 0);
 *
 * Values are doubles in the unit of their axis (GiB where it is about bytes): a drawing rounds
 * anyway, and 2^53 bytes are exact. Everything lives in the arena of the chart; texts are kept as
 * they are given, not copied. What comes from outside (names) is made harmless by the renderers.
 * The same chart gives the same bytes. No figures are computed here. */
#ifndef VP_REPORTS_CHART_H
#define VP_REPORTS_CHART_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/base/text.h"

enum vp_chart_kind {
    VP_CHART_LINE,   /* y over x; a y that is NaN is a gap */
    VP_CHART_STAIRS, /* a line that holds y from x to the next point's x */
    VP_CHART_POINTS, /* markers, with a word beside each that has one */
    VP_CHART_BARS,   /* a piece of bar on the axis of names, on the pieces of the series before */
    VP_CHART_AREA,   /* stairs, filled down to the areas before; all areas have the same x's */
    VP_CHART_BAND,   /* between y and z */
    VP_CHART_LIMIT,  /* what must not be passed: at each bar, or a line over x */
    VP_CHART_CELLS   /* heat map on two axes of names: z is the shade (0 to 1), the word is in it */
};

/* The look of a series: a colour of a palette that colour-blind people can tell apart, and beside
 * it a hatching, a dash and a marker, which print without colour. 0 to 15 are looks for series;
 * the others are for what stands behind them. */
enum { VP_LOOKS = 16, VP_LOOK_GREY = 16, VP_LOOK_INK = 17, VP_LOOK_BY_ORDER = -1 };

struct vp_chart_point {
    double x, y, z;   /* on an axis of names: the index of the name */
    const char *word; /* NULL: none */
};

struct vp_chart_series {
    enum vp_chart_kind kind;
    const char *label; /* in the legend; NULL: not there */
    int look;          /* BY_ORDER unless set */
    char letter;       /* in text; 0: one is chosen */
    struct vp_chart_point *point;
    uint32_t count, capacity;
};

struct vp_chart_axis {
    const char *label, *unit; /* "context", "tokens"; unit NULL: none */
    int base;                 /* 0: linear; 2: doublings; 10: tenfold steps */
    bool tokens;              /* ticks at multiples of 1024, told as 8K */
    const char *const *names; /* of 0, 1, 2, ... in place of numbers; NULL: numbers */
    uint32_t name_count;
    bool from_zero;  /* 0 is shown, whatever the values */
    double at_least; /* and so is this; 0: no wish */
    bool bare;       /* no numbers at the ticks: the order alone counts */
};

/* A line over the whole chart, with words. */
struct vp_chart_rule {
    bool level; /* at a y; else upright, at an x */
    double at;
    const char *label; /* NULL: none */
    bool faint;        /* a division and no limit */
};

struct vp_chart {
    struct vp_arena *arena;
    const char *name; /* "breakdown": for files and anchors */
    const char *title;
    const char *subtitle; /* the assumptions in one line; NULL: none */
    const char *note;     /* below: what the reader should see in it; NULL: none */
    struct vp_chart_axis x, y;
    struct vp_chart_series *series;
    uint32_t series_count, series_capacity;
    struct vp_chart_rule *rule;
    uint32_t rule_count, rule_capacity;
};

struct vp_chart *vp_chart_new(struct vp_arena *arena, const char *name, const char *title,
                              const char *subtitle);
/* Valid until the next vp_chart_add. */
struct vp_chart_series *vp_chart_add(struct vp_chart *chart, enum vp_chart_kind kind,
                                     const char *label);
/* Returns the point, for its word and z. */
struct vp_chart_point *vp_chart_point(struct vp_chart *chart, struct vp_chart_series *series,
                                      double x, double y);
void vp_chart_limit(struct vp_chart *chart, bool level, double at, const char *label);
/* A division of the picture: "a later step". */
void vp_chart_divide(struct vp_chart *chart, bool level, double at, const char *label);

static inline double vp_chart_gib(uint64_t bytes) { return (double)bytes / (1024.0 * 1024 * 1024); }

/* ---- for renderers ---- */

enum { VP_CHART_TICKS = 16 };

/* What an axis shows; texts are in the arena of the chart. */
struct vp_scale {
    double low, high; /* low < high, both > 0 with a base */
    int base;
    uint32_t ticks; /* none where the axis has names */
    double tick[VP_CHART_TICKS];
    const char *text[VP_CHART_TICKS];
};

/* most: ticks that there is room for. */
struct vp_scale vp_chart_scale_x(const struct vp_chart *chart, uint32_t most);
struct vp_scale vp_chart_scale_y(const struct vp_chart *chart, uint32_t most);
/* Where a value stands between the ends: 0 to 1, beyond for what is not shown. */
double vp_scale_at(const struct vp_scale *scale, double value);

int vp_chart_look(const struct vp_chart *chart, uint32_t series);
char vp_chart_letter(const struct vp_chart *chart, uint32_t series);
/* What bars and areas are stacked on: the sum of the series of that kind before it, at the same
 * name or x. */
double vp_chart_base(const struct vp_chart *chart, uint32_t series, uint32_t point);
/* The point is one: x and y are numbers. */
bool vp_chart_shows(const struct vp_chart_point *point);
/* Bars lie where the y axis has the names. */
bool vp_chart_lies(const struct vp_chart *chart);
bool vp_chart_has(const struct vp_chart *chart, enum vp_chart_kind kind);
/* "context (tokens)" */
const char *vp_chart_axis_title(struct vp_arena *arena, const struct vp_chart_axis *axis);
/* A value as a reader wants it: four digits that count, no exponent where it can be helped. */
const char *vp_chart_number(struct vp_arena *arena, double value);

/* Where the word of a marker goes: beside it, above or below, where it meets no other word and no
 * side of the frame. Words that find no place are left out; the table of the figures has them. */
struct vp_chart_word {
    const struct vp_chart_point *point;
    bool left;
    int line; /* -1: just above, 1: just below, -2, 2: a line further */
};
/* cells, lines: how many letters and lines the frame has room for. Returns how many there are. */
uint32_t vp_chart_words(const struct vp_chart *chart, struct vp_chart_word **out,
                        const struct vp_scale *x, const struct vp_scale *y, double cells,
                        double lines);

/* The figures, as a table: a row per x where all series share them, else a row per point. */
struct vp_chart_table {
    uint32_t columns, rows;
    const char **head; /* [columns] */
    const char **cell; /* [rows * columns]; "" where there is nothing */
    bool *words;       /* [columns]: texts, and not numbers */
};
struct vp_chart_table vp_chart_table(const struct vp_chart *chart);

#endif
