/* Reads the log of a run (start-up, out-of-memory text, tables of devices) ->
 * planner/model/run_log.h. Streams: memory does not grow with the file. Colours, time stamps and
 * prefixes of ranks do not matter; a line that says nothing known is skipped. Several ranks: the
 * worst one, with the range. Several start-ups in one file: the last complete one. */
#ifndef VP_IMPORT_LOG_READER_H
#define VP_IMPORT_LOG_READER_H

#include "planner/base/ctx.h"
#include "planner/model/run_log.h"

enum { VP_LOG_MAX_LINE = 64 * 1024 }; /* bytes of a line that are looked at */

/* path "-": standard input. A file that cannot be read is a diagnostic; one without any known line
 * is VP_OK with out->matched 0. *out lives in the context's arena. */
enum vp_status vp_log_read(struct vp_ctx *ctx, struct vp_run_log **out, const char *path);

#endif
