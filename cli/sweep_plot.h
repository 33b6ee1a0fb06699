/* The need of a sweep against one of its fields, drawn by gnuplot: a line and a band from low to
 * high for each combination of the other fields, and what may be used, dashed. The field is the
 * last one that varies over numbers. Script and data stay beside the image. */
#ifndef VP_CLI_SWEEP_PLOT_H
#define VP_CLI_SWEEP_PLOT_H

#include "api/sweep.h"

enum { VP_SWEEP_PLOT_SERIES = 16, VP_SWEEP_PLOT_ROWS = 100000 };

struct vp_sweep_plot {
    const char *image;
    const struct vp_grid *grid;
    size_t axis;
    uint64_t inner; /* combinations for one value of the axis: those of the fields after it */
    size_t series;
    double *values; /* four for each row: low, likely, high, usable; NaN: refused */
};

/* False: it cannot be drawn; a diagnostic says why. objectives: which values the rows are to have.
 */
bool vp_sweep_plot_prepare(struct vp_ctx *ctx, struct vp_sweep_plot *out,
                           const struct vp_grid *grid, struct vp_objectives *objectives,
                           const char *image);
void vp_sweep_plot_add(struct vp_sweep_plot *plot, const struct vp_sweep_point *points, size_t n);
enum vp_status vp_sweep_plot_draw(struct vp_ctx *ctx, const struct vp_sweep_plot *plot);

#endif
