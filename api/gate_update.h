/* Limits of budget files raised to what today's plans come to, in the files' own text: comments,
 * order and everything else stay. Growth has no limit to raise; a waiver is for that. */
#ifndef VP_API_GATE_UPDATE_H
#define VP_API_GATE_UPDATE_H

#include "api/gate_run.h"
#include "planner/base/text.h"

/* One limit that was moved. */
struct vp_moved_limit {
    const char *file, *check;
    uint32_t line;
    const char *from, *to; /* as written */
};

/* A file with its new text. */
struct vp_updated_file {
    const char *path;
    struct vp_buf text;
};

struct vp_gate_update {
    struct vp_moved_limit *moved;
    size_t moved_count;
    struct vp_updated_file *files;
    size_t file_count;
    size_t left; /* checks that fail and have no limit to raise */
};

/* Limits that are exceeded, or lie inside a figure's interval, become the nearest that are kept: an
 * upper one the high figure, rounded up to a tenth of a GiB (a MiB below 1 GiB), a lower one the
 * low figure. Of one place that several scenarios share (defaults), what suits all of them. note:
 * added as a comment to every changed line that has none. Nothing is written. */
enum vp_status vp_gate_update(struct vp_ctx *ctx, struct vp_gate_update *out,
                              const struct vp_gate_run *run, const char *note);

#endif
