#include "cli/sweep_plot.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "reports/words.h"

enum { LOW, LIKELY, HIGH, USABLE, VALUES };
enum { WORDS_MOST = 12 };
static const char *const COLUMNS[VALUES] = {"need_low_bytes", "need_likely_bytes",
                                            "need_high_bytes", "usable_bytes"};
static const double GIB = 1024.0 * 1024 * 1024;

/* ---- preparing ---- */

static bool refuse(struct vp_ctx *ctx, const char *message, const char *hint) {
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "%s", message);
    if (hint)
        vp_diag_hint(ctx->diags, "%s", hint);
    return false;
}

static bool is_numeric(const struct vp_axis *axis) {
    for (size_t i = 0; i < axis->count; i++)
        if (isnan(vp_grid_number(axis->values[i * axis->path_count])))
            return false;
    return axis->count > 1;
}

static bool prepare_lines(struct vp_ctx *ctx, struct vp_sweep_plot *out) {
    const struct vp_grid *grid = out->grid;
    out->axis = grid->axis_count;
    for (size_t a = grid->axis_count; a-- > 0 && out->axis == grid->axis_count;) {
        if (is_numeric(&grid->axes[a]))
            out->axis = a;
        else
            out->inner *= grid->axes[a].count;
    }
    if (out->axis == grid->axis_count)
        return refuse(ctx, "--plot needs a field that varies over numbers",
                      "--chart heat draws two fields of any kind against each other");
    uint64_t series = grid->total / grid->axes[out->axis].count;
    if (series > VP_SWEEP_PLOT_SERIES) {
        refuse(ctx,
               vp_arena_printf(ctx->arena, "--plot would draw %" PRIu64 " lines of %zu points",
                               series, grid->axes[out->axis].count),
               vp_arena_printf(ctx->arena,
                               "at most %d lines and %d points in all: vary less, or --chart heat",
                               (int)VP_SWEEP_PLOT_SERIES, (int)VP_SWEEP_PLOT_ROWS));
        return false;
    }
    out->series = (size_t)series;
    return true;
}

static bool prepare_heat(struct vp_ctx *ctx, struct vp_sweep_plot *out) {
    const struct vp_grid *grid = out->grid;
    size_t found = 0;
    for (size_t a = grid->axis_count; a-- > 0;) {
        if (grid->axes[a].count < 2)
            continue;
        if (grid->axes[a].count > VP_SWEEP_PLOT_CELLS)
            return refuse(ctx,
                          vp_arena_printf(ctx->arena, "--chart heat has room for %d values of %s",
                                          (int)VP_SWEEP_PLOT_CELLS, grid->axes[a].paths[0]),
                          NULL);
        if (found == 0)
            out->axis = a;
        else
            out->other = a;
        found++;
    }
    return found == 2 || refuse(ctx, "--chart heat draws two fields that vary", NULL);
}

static bool find_picture(struct vp_ctx *ctx, struct vp_sweep_plot *out,
                         const struct vp_args *args) {
    const char *name = args->value[VP_OPTION_CHART];
    bool pareto = args->value[VP_OPTION_PARETO];
    out->picture = pareto ? VP_SWEEP_PARETO : VP_SWEEP_LINES;
    if (!name)
        return true;
    if (!vp_text_eq(name, "lines") && !vp_text_eq(name, "heat") && !vp_text_eq(name, "pareto"))
        return refuse(ctx, vp_arena_printf(ctx->arena, "'sweep' has no --chart %s", name),
                      "lines, heat or pareto");
    if (vp_text_eq(name, "pareto") != pareto)
        return refuse(ctx,
                      pareto ? "--pareto is drawn as --chart pareto"
                             : "--chart pareto goes with --pareto",
                      NULL);
    if (vp_text_eq(name, "heat"))
        out->picture = VP_SWEEP_HEAT;
    return true;
}

bool vp_sweep_plot_prepare(struct vp_ctx *ctx, struct vp_sweep_plot *out,
                           const struct vp_grid *grid, struct vp_objectives *objectives,
                           const struct vp_args *args) {
    *out =
        (struct vp_sweep_plot){.wanted = true, .grid = grid, .objectives = objectives, .inner = 1};
    if (!find_picture(ctx, out, args))
        return false;
    if (grid->total > VP_SWEEP_PLOT_ROWS)
        return refuse(ctx,
                      vp_arena_printf(ctx->arena, "--plot draws at most %d combinations",
                                      (int)VP_SWEEP_PLOT_ROWS),
                      NULL);
    if (out->picture == VP_SWEEP_PARETO && objectives->count < 2)
        return refuse(ctx, "--plot of a front needs two objectives", NULL);
    if (out->picture == VP_SWEEP_LINES && !prepare_lines(ctx, out))
        return false;
    if (out->picture == VP_SWEEP_HEAT && !prepare_heat(ctx, out))
        return false;
    out->row = VP_NEW_ARRAY(ctx->arena, (size_t)grid->total, struct vp_sweep_row_seen);
    if (out->picture == VP_SWEEP_PARETO)
        return true;
    for (objectives->count = 0; objectives->count < VALUES; objectives->count++)
        objectives->item[objectives->count].column = COLUMNS[objectives->count];
    return true;
}

void vp_sweep_plot_add(struct vp_sweep_plot *plot, const struct vp_sweep_point *points, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (points[i].evaluated) {
            struct vp_sweep_row_seen *row = &plot->row[points[i].row];
            row->evaluated = true;
            row->verdict = points[i].verdict;
            memcpy(row->value, points[i].value, sizeof row->value);
        }
}

/* ---- words ---- */

static const char *last_word(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

/* "tensor 8, weights fp8": the fields of a combination, one axis left out. */
static const char *settings_of(struct vp_arena *arena, const struct vp_sweep_plot *plot,
                               uint64_t row, size_t without) {
    struct vp_setting settings[VP_GRID_FIELDS];
    struct vp_buf out = {.arena = arena};
    vp_grid_settings(plot->grid, settings, row);
    size_t field = 0;
    for (size_t a = 0; a < plot->grid->axis_count; a++)
        for (size_t i = 0; i < plot->grid->axes[a].path_count; i++, field++)
            if (a != without)
                vp_buf_printf(&out, "%s%s %s", out.size ? ", " : "",
                              last_word(settings[field].path), settings[field].value);
    return out.size ? vp_buf_text(&out) : "need";
}

static bool varies_field(const struct vp_sweep_plot *plot, const char *prefix) {
    for (size_t i = 0; i < plot->grid->field_count; i++)
        if (vp_text_starts(vp_grid_path(plot->grid, i), prefix))
            return true;
    return false;
}

/* "llama-3.1-70b, vLLM 0.19, 1 x AMD Instinct MI300X; varied: serve.context, precision.weights";
 * what varies is not said of the scenario as it is. */
static const char *subtitle(struct vp_arena *arena, const struct vp_sweep_plot *plot,
                            const struct vp_scenario *base) {
    const struct vp_hardware *hardware = &base->hardware;
    bool count = hardware->count > 0 && !varies_field(plot, "hardware.count") &&
                 !varies_field(plot, "parallel.");
    struct vp_buf out = {.arena = arena};
    vp_buf_printf(&out, "%s, %s%s%s", base->model ? vp_words_model(base) : "a model",
                  vp_words_engine(base->engine.name), base->engine.version_text ? " " : "",
                  base->engine.version_text ? base->engine.version_text : "");
    if (hardware->gpu.name && !varies_field(plot, "hardware.gpu"))
        vp_buf_printf(&out, ", %s%s",
                      count ? vp_arena_printf(arena, "%" PRIu64 " x ", hardware->count) : "",
                      hardware->gpu.name);
    vp_buf_add(&out, "; varied: ");
    for (size_t i = 0; i < plot->grid->field_count; i++)
        vp_buf_printf(&out, "%s%s", i ? ", " : "", vp_grid_path(plot->grid, i));
    return vp_buf_text(&out);
}

static bool is_tokens(const char *path) {
    return strstr(path, "context") || strstr(path, "tokens") || strstr(path, "len");
}

/* ---- lines ---- */

/* The combination with the k-th value of the axis on a line. */
static uint64_t row_of(const struct vp_sweep_plot *plot, size_t line, size_t k) {
    uint64_t count = plot->grid->axes[plot->axis].count;
    return line / plot->inner * plot->inner * count + k * plot->inner + line % plot->inner;
}

static double x_of(const struct vp_axis *axis, size_t k) {
    return vp_grid_number(axis->values[k * axis->path_count]);
}

/* Doublings are drawn as equal steps. */
static bool is_wide(const struct vp_axis *axis) {
    double least = INFINITY, most = 0;
    for (size_t k = 0; k < axis->count; k++) {
        least = fmin(least, x_of(axis, k));
        most = fmax(most, x_of(axis, k));
    }
    return least > 0 && most >= 16 * least;
}

static double gib(const struct vp_sweep_row_seen *row, int value) {
    return row->evaluated ? row->value[value] / GIB : (double)NAN;
}

static bool has_points(const struct vp_sweep_plot *plot, size_t line) {
    for (size_t k = 0; k < plot->grid->axes[plot->axis].count; k++)
        if (plot->row[row_of(plot, line, k)].evaluated)
            return true;
    return false;
}

/* A band for the doubt, where there is any; then the line. */
static void add_line(struct vp_chart *chart, const struct vp_sweep_plot *plot, size_t line,
                     int look) {
    const struct vp_axis *axis = &plot->grid->axes[plot->axis];
    struct vp_chart_series *band = vp_chart_add(chart, VP_CHART_BAND, NULL);
    band->look = look;
    for (size_t k = 0; k < axis->count; k++) {
        const struct vp_sweep_row_seen *row = &plot->row[row_of(plot, line, k)];
        vp_chart_point(chart, band, x_of(axis, k), gib(row, LOW))->z = gib(row, HIGH);
    }
    struct vp_chart_series *need = vp_chart_add(
        chart, VP_CHART_LINE, settings_of(chart->arena, plot, row_of(plot, line, 0), plot->axis));
    need->look = look;
    for (size_t k = 0; k < axis->count; k++)
        vp_chart_point(chart, need, x_of(axis, k), gib(&plot->row[row_of(plot, line, k)], LIKELY));
}

static bool same_usable(const struct vp_sweep_plot *plot, size_t a, size_t b) {
    for (size_t k = 0; k < plot->grid->axes[plot->axis].count; k++) {
        const struct vp_sweep_row_seen *x = &plot->row[row_of(plot, a, k)],
                                       *y = &plot->row[row_of(plot, b, k)];
        if (x->evaluated && y->evaluated && x->value[USABLE] != y->value[USABLE])
            return false;
    }
    return true;
}

/* What may be used is drawn once for all lines that have the same. */
static void add_usable(struct vp_chart *chart, const struct vp_sweep_plot *plot, bool *named) {
    const struct vp_axis *axis = &plot->grid->axes[plot->axis];
    for (size_t line = 0; line < plot->series; line++) {
        bool drawn = !has_points(plot, line);
        for (size_t before = 0; before < line && !drawn; before++)
            drawn = has_points(plot, before) && same_usable(plot, before, line);
        if (drawn)
            continue;
        struct vp_chart_series *usable =
            vp_chart_add(chart, VP_CHART_LIMIT, *named ? NULL : "usable");
        *named = true;
        for (size_t k = 0; k < axis->count; k++)
            vp_chart_point(chart, usable, x_of(axis, k),
                           gib(&plot->row[row_of(plot, line, k)], USABLE));
    }
}

static struct vp_chart *draw_lines(struct vp_arena *arena, const struct vp_sweep_plot *plot,
                                   const struct vp_scenario *base) {
    const struct vp_axis *axis = &plot->grid->axes[plot->axis];
    struct vp_chart *chart =
        vp_chart_new(arena, "sweep", "What the fullest device needs", subtitle(arena, plot, base));
    bool named = false;
    int look = 0;
    chart->x = (struct vp_chart_axis){.label = axis->paths[0],
                                      .base = is_wide(axis) ? 2 : 0,
                                      .tokens = is_tokens(axis->paths[0])};
    chart->y = (struct vp_chart_axis){.label = "need", .unit = "GiB", .from_zero = true};
    for (size_t line = 0; line < plot->series; line++)
        if (has_points(plot, line))
            add_line(chart, plot, line, look++);
    if (look == 0)
        return NULL;
    add_usable(chart, plot, &named);
    return chart;
}

/* ---- heat ---- */

static const char **axis_names(struct vp_arena *arena, const struct vp_axis *axis) {
    const char **names = VP_NEW_ARRAY(arena, axis->count, const char *);
    for (size_t k = 0; k < axis->count; k++) {
        struct vp_buf out = {.arena = arena};
        for (size_t i = 0; i < axis->path_count; i++)
            vp_buf_printf(&out, "%s%s", i ? ":" : "", axis->values[k * axis->path_count + i]);
        names[k] = vp_buf_text(&out);
    }
    return names;
}

/* "98.4"; with the verdict where that is not to fit. */
static const char *cell_word(struct vp_arena *arena, const struct vp_sweep_row_seen *row) {
    const char *mark = row->verdict == VP_FITS ? "" : row->verdict == VP_AT_RISK ? " ?" : " !";
    return vp_arena_printf(arena, "%.1f%s", row->value[LIKELY] / GIB, mark);
}

static struct vp_chart *draw_heat(struct vp_arena *arena, const struct vp_sweep_plot *plot,
                                  const struct vp_scenario *base) {
    const struct vp_axis *across = &plot->grid->axes[plot->axis],
                         *down = &plot->grid->axes[plot->other];
    struct vp_chart *chart = vp_chart_new(arena, "heat", "What the fullest device needs, GiB",
                                          subtitle(arena, plot, base));
    chart->x = (struct vp_chart_axis){.label = across->paths[0],
                                      .names = axis_names(arena, across),
                                      .name_count = (uint32_t)across->count};
    chart->y = (struct vp_chart_axis){.label = down->paths[0],
                                      .names = axis_names(arena, down),
                                      .name_count = (uint32_t)down->count};
    struct vp_chart_series *cells = vp_chart_add(chart, VP_CHART_CELLS, NULL);
    chart->note = "Darker: a larger share of what may be used. ! does not fit, ? at risk, blank: "
                  "refused.";
    uint64_t below = 1; /* the other axes have one value each */
    for (size_t a = plot->other + 1; a < plot->grid->axis_count; a++)
        below *= plot->grid->axes[a].count;
    for (size_t y = 0; y < down->count; y++)
        for (size_t x = 0; x < across->count; x++) {
            const struct vp_sweep_row_seen *row = &plot->row[y * below + x];
            if (!row->evaluated)
                continue;
            struct vp_chart_point *cell = vp_chart_point(chart, cells, (double)x, (double)y);
            cell->z = row->value[USABLE] > 0 ? fmin(row->value[LIKELY] / row->value[USABLE], 1) : 1;
            cell->word = cell_word(arena, row);
        }
    return cells->count ? chart : NULL;
}

/* ---- front ---- */

static bool on_front(const struct vp_front *front, const struct vp_sweep_row_seen *row) {
    for (size_t i = 0; row->verdict == VP_FITS && i < front->count; i++)
        if (memcmp(front->points[i].value, row->value, front->objectives->count * sizeof(double)) ==
            0)
            return true;
    return false;
}

static struct vp_chart_axis objective_axis(struct vp_arena *arena,
                                           const struct vp_objectives *objectives, size_t i) {
    const char *column = objectives->item[i].column;
    bool bytes = vp_text_ends(column, "_bytes");
    return (struct vp_chart_axis){.label =
                                      vp_arena_printf(arena, "%s, wanted %s", column,
                                                      objectives->item[i].most ? "large" : "small"),
                                  .unit = bytes ? "GiB" : NULL,
                                  .tokens = is_tokens(column)};
}

static double objective(const struct vp_sweep_plot *plot, const struct vp_sweep_row_seen *row,
                        size_t i) {
    bool bytes = vp_text_ends(plot->objectives->item[i].column, "_bytes");
    return bytes ? row->value[i] / GIB : row->value[i];
}

static bool varies(const struct vp_sweep_plot *plot, size_t objective) { /* where it fits */
    double first = (double)NAN;
    for (uint64_t i = 0; i < plot->grid->total; i++) {
        double v = plot->row[i].value[objective];
        if (!plot->row[i].evaluated || plot->row[i].verdict != VP_FITS || !isfinite(v))
            continue;
        if (isnan(first))
            first = v;
        else if (v != first)
            return true;
    }
    return false;
}

/* False: there are no two that vary. */
static bool choose_objectives(size_t out[2], const struct vp_sweep_plot *plot) {
    size_t n = 0;
    for (size_t i = 0; i < plot->objectives->count && n < 2; i++)
        if (varies(plot, i))
            out[n++] = i;
    return n == 2;
}

static void add_rows(struct vp_chart *chart, struct vp_chart_series *series,
                     const struct vp_sweep_plot *plot, const struct vp_front *front,
                     const size_t drawn[2], bool best) {
    for (uint64_t i = 0; i < plot->grid->total; i++) {
        const struct vp_sweep_row_seen *row = &plot->row[i];
        if (!row->evaluated || row->verdict != VP_FITS || on_front(front, row) != best)
            continue;
        struct vp_chart_point *point = vp_chart_point(chart, series, objective(plot, row, drawn[0]),
                                                      objective(plot, row, drawn[1]));
        if (best && front->count <= WORDS_MOST)
            point->word = settings_of(chart->arena, plot, i, plot->grid->axis_count);
    }
}

/* What was compared and is no axis; what has no place in the picture. */
static const char *front_note(struct vp_arena *arena, const struct vp_sweep_plot *plot,
                              const size_t drawn[2]) {
    struct vp_buf out = {.arena = arena};
    uint64_t left_out = 0;
    for (size_t i = 0; i < plot->objectives->count; i++)
        if (i != drawn[0] && i != drawn[1])
            vp_buf_printf(&out, "%s%s",
                          out.size ? ", " : "Compared as well: ", plot->objectives->item[i].column);
    for (uint64_t i = 0; i < plot->grid->total; i++)
        left_out += !plot->row[i].evaluated || plot->row[i].verdict != VP_FITS;
    if (left_out > 0)
        vp_buf_printf(&out, "%sNot drawn: %" PRIu64 " combinations that do not fit for sure.",
                      out.size ? ". " : "", left_out);
    return vp_buf_text(&out);
}

static struct vp_chart *draw_front(struct vp_arena *arena, const struct vp_sweep_plot *plot,
                                   const struct vp_scenario *base, const struct vp_front *front) {
    struct vp_chart *chart = vp_chart_new(arena, "pareto", "What no other combination beats",
                                          subtitle(arena, plot, base));
    size_t drawn[2];
    if (front->count == 0 || !choose_objectives(drawn, plot))
        return NULL;
    chart->x = objective_axis(arena, plot->objectives, drawn[0]);
    chart->y = objective_axis(arena, plot->objectives, drawn[1]);
    struct vp_chart_series *beaten = vp_chart_add(chart, VP_CHART_POINTS, "fits, but is beaten");
    beaten->look = VP_LOOK_GREY;
    beaten->letter = '.';
    add_rows(chart, beaten, plot, front, drawn, false);
    struct vp_chart_series *best = vp_chart_add(chart, VP_CHART_POINTS, "beaten by none");
    best->look = 0;
    best->letter = 'O';
    add_rows(chart, best, plot, front, drawn, true);
    chart->note = front_note(arena, plot, drawn);
    return chart;
}

struct vp_chart *vp_sweep_plot_chart(struct vp_arena *arena, const struct vp_sweep_plot *plot,
                                     const struct vp_scenario *base, const struct vp_front *front) {
    switch (plot->picture) {
    case VP_SWEEP_LINES:
        return draw_lines(arena, plot, base);
    case VP_SWEEP_HEAT:
        return draw_heat(arena, plot, base);
    case VP_SWEEP_PARETO:
        break;
    }
    return draw_front(arena, plot, base, front);
}
