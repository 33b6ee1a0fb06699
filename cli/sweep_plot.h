/* A sweep as a chart:
 *
 *   lines   the need against one field, the last one that varies over numbers: a line and a band
 *           from low to high for each combination of the other fields, and what may be used
 *   heat    two fields against each other: the need in each cell, shaded by its share of what may
 *           be used
 *   pareto  the first two objectives of --pareto that vary, against each other: what nothing
 *           beats, and what is beaten
 */
#ifndef VP_CLI_SWEEP_PLOT_H
#define VP_CLI_SWEEP_PLOT_H

#include "api/sweep.h"
#include "cli/args.h"
#include "reports/chart.h"

enum { VP_SWEEP_PLOT_SERIES = 16, VP_SWEEP_PLOT_ROWS = 100000, VP_SWEEP_PLOT_CELLS = 24 };
enum vp_sweep_picture { VP_SWEEP_LINES, VP_SWEEP_HEAT, VP_SWEEP_PARETO };

struct vp_sweep_row_seen {
    bool evaluated;
    enum vp_verdict verdict;
    double value[VP_OBJECTIVES]; /* low, likely, high, usable; of a front: the objectives; NaN: not
                                    known */
};

struct vp_sweep_plot {
    bool wanted;
    enum vp_sweep_picture picture;
    const struct vp_grid *grid;
    const struct vp_objectives *objectives;
    size_t axis;    /* lines: along x; heat: along x */
    size_t other;   /* heat: along y */
    uint64_t inner; /* combinations for one value of the axis: those of the fields after it */
    size_t series;
    struct vp_sweep_row_seen *row;
};

/* False: it cannot be drawn; a diagnostic says why. objectives: those of --pareto, else they are
 * set to the values that the rows are to have. */
bool vp_sweep_plot_prepare(struct vp_ctx *ctx, struct vp_sweep_plot *out,
                           const struct vp_grid *grid, struct vp_objectives *objectives,
                           const struct vp_args *args);
void vp_sweep_plot_add(struct vp_sweep_plot *plot, const struct vp_sweep_point *points, size_t n);
/* front: of a Pareto picture. NULL: none of the combinations can be planned. */
struct vp_chart *vp_sweep_plot_chart(struct vp_arena *arena, const struct vp_sweep_plot *plot,
                                     const struct vp_scenario *base, const struct vp_front *front);

#endif
