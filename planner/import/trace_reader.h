/* Request traces, CSV with a header line (CONTRACT: "Traces"):
 *
 *   arrival_s | TIMESTAMP         seconds, or a date and time as 2023-11-16 18:15:46.68
 *   prompt_tokens | ContextTokens
 *   output_tokens | GeneratedTokens
 *   prefix_id, shared_prefix_tokens   optional; other columns are ignored
 *
 * Further names that public traces use stand in trace_columns.def. Read piece by piece: of a file
 * of any length no more is kept than the rows that are wanted. */
#ifndef VP_IMPORT_TRACE_READER_H
#define VP_IMPORT_TRACE_READER_H

#include "planner/base/ctx.h"
#include "planner/model/trace.h"

/* Caps; a cap hit is VP_D_CAP and names the cap. */
enum { VP_TRACE_MAX_ROWS = 20000000, VP_TRACE_MAX_LINE = 65536 };

/* path "-": standard input. until_s: rows that arrive so long after the first, or later, are not
 * read; 0: all are. Arrivals that fall, negative figures, figures that are none, missing columns
 * and a file without requests are faults, told with their lines (the first few of a file). Rows of
 * no prompt or no output tokens are dropped and counted. */
enum vp_status vp_trace_read(struct vp_ctx *ctx, struct vp_trace *out, const char *path,
                             double until_s);

#endif
