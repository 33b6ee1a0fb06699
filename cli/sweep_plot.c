#include "cli/sweep_plot.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/gnuplot.h"
#include "cli/output.h"
#include "planner/base/text.h"
#include "reports/shell_words.h"

enum { VALUES = 4 };
static const char *const COLUMNS[VALUES] = {"need_low_bytes", "need_likely_bytes",
                                            "need_high_bytes", "usable_bytes"};
static const double GIB = 1024.0 * 1024 * 1024;

/* ---- preparing ---- */

static bool refuse(struct vp_ctx *ctx, const char *message) {
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "%s", message);
    return false;
}

static bool is_numeric(const struct vp_axis *axis) {
    for (size_t i = 0; i < axis->count; i++)
        if (isnan(vp_grid_number(axis->values[i * axis->path_count])))
            return false;
    return axis->count > 1;
}

bool vp_sweep_plot_prepare(struct vp_ctx *ctx, struct vp_sweep_plot *out,
                           const struct vp_grid *grid, struct vp_objectives *objectives,
                           const char *image) {
    *out = (struct vp_sweep_plot){
        .image = image, .grid = grid, .axis = grid->axis_count, .inner = 1, .series = 0};
    if (!vp_text_ends(image, ".png") && !vp_text_ends(image, ".svg"))
        return refuse(
            ctx, vp_arena_printf(ctx->arena, "--plot draws .png or .svg files, not '%s'", image));
    for (size_t a = grid->axis_count; a-- > 0 && out->axis == grid->axis_count;) {
        if (is_numeric(&grid->axes[a]))
            out->axis = a;
        else
            out->inner *= grid->axes[a].count;
    }
    if (out->axis == grid->axis_count)
        return refuse(ctx, "--plot needs a field that varies over numbers");
    uint64_t series = grid->total / grid->axes[out->axis].count;
    if (series > VP_SWEEP_PLOT_SERIES || grid->total > VP_SWEEP_PLOT_ROWS) {
        refuse(ctx, vp_arena_printf(ctx->arena, "--plot would draw %" PRIu64 " lines of %zu points",
                                    series, grid->axes[out->axis].count));
        vp_diag_hint(ctx->diags, "at most %d lines and %d points in all: vary less",
                     (int)VP_SWEEP_PLOT_SERIES, (int)VP_SWEEP_PLOT_ROWS);
        return false;
    }
    out->series = (size_t)series;
    out->values = VP_NEW_ARRAY(ctx->arena, (size_t)grid->total * VALUES, double);
    for (size_t i = 0; i < (size_t)grid->total * VALUES; i++)
        out->values[i] = (double)NAN;
    for (objectives->count = 0; objectives->count < VALUES; objectives->count++)
        objectives->item[objectives->count].column = COLUMNS[objectives->count];
    return true;
}

void vp_sweep_plot_add(struct vp_sweep_plot *plot, const struct vp_sweep_point *points, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (points[i].evaluated)
            memcpy(&plot->values[points[i].row * VALUES], points[i].value,
                   VALUES * sizeof *plot->values);
}

/* ---- writing ---- */

/* The combination with the k-th value of the axis on a line. */
static uint64_t row_of(const struct vp_sweep_plot *plot, size_t line, size_t k) {
    uint64_t count = plot->grid->axes[plot->axis].count;
    return line / plot->inner * plot->inner * count + k * plot->inner + line % plot->inner;
}

/* "tensor 8, weights fp8" */
static const char *title_of(struct vp_arena *arena, const struct vp_sweep_plot *plot, size_t line) {
    struct vp_setting settings[VP_GRID_FIELDS];
    struct vp_buf out = {.arena = arena};
    vp_grid_settings(plot->grid, settings, row_of(plot, line, 0));
    size_t field = 0;
    for (size_t a = 0; a < plot->grid->axis_count; a++)
        for (size_t i = 0; i < plot->grid->axes[a].path_count; i++, field++) {
            const char *dot = strrchr(settings[field].path, '.');
            if (a != plot->axis)
                vp_buf_printf(&out, "%s%s %s", out.size ? ", " : "",
                              dot ? dot + 1 : settings[field].path, settings[field].value);
        }
    return out.size ? vp_buf_text(&out) : "need";
}

static bool has_points(const struct vp_sweep_plot *plot, size_t line) {
    for (size_t k = 0; k < plot->grid->axes[plot->axis].count; k++)
        if (!isnan(plot->values[row_of(plot, line, k) * VALUES]))
            return true;
    return false;
}

/* Lines are blocks, two blank lines apart. */
static void write_data(struct vp_buf *out, const struct vp_sweep_plot *plot) {
    const struct vp_axis *axis = &plot->grid->axes[plot->axis];
    vp_buf_printf(out, "# %s low likely high usable (GiB)\n", axis->paths[0]);
    for (size_t line = 0; line < plot->series; line++) {
        vp_buf_printf(out, "%s# %s\n", line ? "\n\n" : "", title_of(out->arena, plot, line));
        for (size_t k = 0; k < axis->count; k++) {
            const double *v = &plot->values[row_of(plot, line, k) * VALUES];
            double x = vp_grid_number(axis->values[k * axis->path_count]);
            if (isnan(v[0]))
                vp_buf_printf(out, "%.12g ? ? ? ?\n", x);
            else
                vp_buf_printf(out, "%.12g %.6f %.6f %.6f %.6f\n", x, v[0] / GIB, v[1] / GIB,
                              v[2] / GIB, v[3] / GIB);
        }
    }
}

/* Doublings are drawn as equal steps. */
static bool is_wide(const struct vp_axis *axis) {
    double least = INFINITY, most = 0;
    for (size_t k = 0; k < axis->count; k++) {
        double x = vp_grid_number(axis->values[k * axis->path_count]);
        least = fmin(least, x);
        most = fmax(most, x);
    }
    return least > 0 && most >= 16 * least;
}

static void write_script(struct vp_buf *out, const struct vp_sweep_plot *plot, const char *data) {
    const struct vp_axis *axis = &plot->grid->axes[plot->axis];
    vp_buf_printf(out, "set terminal %s size 1200,700\nset output ",
                  vp_text_ends(plot->image, ".svg") ? "svg" : "png");
    vp_buf_add(out, vp_gnuplot_word(out->arena, plot->image));
    vp_buf_printf(out,
                  "\nset title 'what the worst device needs'\nset xlabel '%s' noenhanced\n"
                  "set ylabel 'GiB'\nset key outside right noenhanced\nset yrange [0:*]\n"
                  "set grid\nset datafile missing '?'\n%s",
                  axis->paths[0], is_wide(axis) ? "set logscale x 2\n" : "");
    const char *before = "plot", *usable = "title 'usable'";
    for (size_t i = 0; i < plot->series; i++) {
        if (!has_points(plot, i))
            continue;
        vp_buf_printf(out, "%s \\\n", before);
        vp_buf_add(out, vp_gnuplot_word(out->arena, data));
        vp_buf_printf(out,
                      " index %zu using 1:2:4 with filledcurves fillstyle transparent solid 0.2 "
                      "linetype %zu notitle, \\\n'' index %zu using 1:3 with linespoints linetype "
                      "%zu title ",
                      i, i + 1, i, i + 1);
        vp_buf_add(out, vp_gnuplot_word(out->arena, title_of(out->arena, plot, i)));
        vp_buf_printf(out, ", \\\n'' index %zu using 1:5 with lines dashtype 2 linetype %zu %s", i,
                      i + 1, usable);
        before = ",";
        usable = "notitle";
    }
    vp_buf_add(out, "\n");
}

enum vp_status vp_sweep_plot_draw(struct vp_ctx *ctx, const struct vp_sweep_plot *plot) {
    int stem = (int)(strlen(plot->image) - strlen(".png"));
    const char *script_path = vp_arena_printf(ctx->arena, "%.*s.gp", stem, plot->image);
    const char *data_path = vp_arena_printf(ctx->arena, "%.*s.dat", stem, plot->image);
    struct vp_buf script = {.arena = ctx->arena}, data = {.arena = ctx->arena};
    size_t line = 0;
    while (line < plot->series && !has_points(plot, line))
        line++;
    if (line == plot->series) {
        refuse(ctx, "--plot: none of the combinations can be planned");
        return VP_ERR_INPUT;
    }
    write_data(&data, plot);
    write_script(&script, plot, data_path);
    enum vp_status status = vp_output_write(ctx, &data, data_path);
    if (status == VP_OK)
        status = vp_output_write(ctx, &script, script_path);
    return status == VP_OK ? vp_gnuplot_run(ctx, script_path) : status;
}
