/* --plot FILE, for every command that draws: which endings there are, who draws them.
 *
 *     .png .pdf   gnuplot, from FILE's script (.gp) and data (.dat), which stay beside it
 *     .svg        the same; without gnuplot the program draws it itself
 *     .txt        characters, written to the file
 *     -           characters, shown behind the result
 *
 * Without gnuplot script and data stay, the chart is shown as characters, and a picture that was
 * not drawn is VP_D_NO_GNUPLOT (exit 4). */
#ifndef VP_CLI_PLOT_H
#define VP_CLI_PLOT_H

#include "cli/args.h"
#include "reports/chart.h"

/* False: the file's name says no known form; a diagnostic says so. True without --plot. */
bool vp_plot_check(struct vp_ctx *ctx, const struct vp_args *args);
/* Call it when the result is written. machine: the result on standard output is for a program, so
 * that characters go to standard error. */
enum vp_status vp_plot_draw(struct vp_ctx *ctx, const struct vp_args *args,
                            const struct vp_chart *chart, bool machine);

#endif
