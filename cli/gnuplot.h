/* Runs gnuplot, a program of its own, on a script that was written before. */
#ifndef VP_CLI_GNUPLOT_H
#define VP_CLI_GNUPLOT_H

#include "planner/base/ctx.h"

/* Waits for it. What it says goes to standard error. A gnuplot that is missing or fails is a
 * VP_D_NO_GNUPLOT diagnostic, which names the script, and VP_ERR_ENV. */
enum vp_status vp_gnuplot_run(struct vp_ctx *ctx, const char *script);

/* A drawing's file beside the image (.png or .svg): "a/b.png" -> "a/b.gp". */
const char *vp_gnuplot_beside(struct vp_ctx *ctx, const char *image, const char *ending);
bool vp_gnuplot_is_svg(const char *image);

#endif
