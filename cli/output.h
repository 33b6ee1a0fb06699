/* The result of a run goes out here, all of it at the end: to standard output, or to a file that
 * holds either everything or what it held before. */
#ifndef VP_CLI_OUTPUT_H
#define VP_CLI_OUTPUT_H

#include "api/answers.h"
#include "cli/args.h"
#include "planner/base/json_writer.h"
#include "planner/base/text.h"
#include "reports/layout.h"
#include "reports/report.h"

/* Before anything else is opened: a closed standard stream must not become a file that is written
 * to, and a reader that went away must show as a failed write. False: the environment failed. */
bool vp_output_prepare(void);

/* path: NULL or "-" is standard output. A failure is a VP_D_IO diagnostic and VP_ERR_ENV. A regular
 * file is replaced by renaming a temporary file beside it; anything else (a pipe, a device) is
 * written in place. */
enum vp_status vp_output_write(struct vp_ctx *ctx, const struct vp_buf *text, const char *path);

/* What a link names: it is replaced, not the link. NULL and errno on failure, such as a file that
 * is not there yet. */
const char *vp_output_follow(struct vp_ctx *ctx, const char *path);
/* All of the bytes, to an open file; 0, or an errno. For results that are too long to be kept. */
int vp_output_put(int fd, const char *data, size_t n);

/* How the result is to look: coloured, with characters beyond ASCII, how wide (0: not on a terminal
 * that says so). A result that does not go to a terminal does not depend on the locale. */
bool vp_output_colour(const struct vp_args *args);
bool vp_output_utf8(const struct vp_args *args);
int vp_output_width(const struct vp_args *args);
/* A page that looks so. */
struct vp_page vp_output_page(const struct vp_args *args, struct vp_buf *out);
/* The same for a renderer, with --verbose; no heading. */
struct vp_report_options vp_output_options(const struct vp_args *args);

/* Diagnostics that are at least that severe, to standard error. Trouble there
 * cannot be told anywhere. */
void vp_output_diagnostics(struct vp_ctx *ctx, const struct vp_diags *diags, enum vp_severity least,
                           const struct vp_args *args);

/* The same of the context's own, which then are gone: main shows what a command leaves. */
void vp_output_own_diagnostics(struct vp_ctx *ctx, enum vp_severity least,
                               const struct vp_args *args);

/* A command ends without a result: that object as the whole output where JSON was asked for.
 * Returns the exit code. */
int vp_output_failure(struct vp_ctx *ctx, const struct vp_args *args, enum vp_status status);

#endif
