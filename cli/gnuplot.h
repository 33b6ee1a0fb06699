/* Runs gnuplot, a program of its own, on a script that was written before. */
#ifndef VP_CLI_GNUPLOT_H
#define VP_CLI_GNUPLOT_H

#include "planner/base/ctx.h"

/* Waits for it. What it says goes to standard error. A gnuplot that is missing or fails is a
 * VP_D_NO_GNUPLOT diagnostic, which names the script, and VP_ERR_ENV. *missing: it was not found;
 * with spare, who calls does without: then that is a note and no error. */
enum vp_status vp_gnuplot_run(struct vp_ctx *ctx, const char *script, bool spare, bool *missing);

#endif
