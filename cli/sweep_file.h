/* Where the rows of a sweep go as they are made. Under -o FILE they grow in FILE.part, which
 * becomes FILE when the sweep is at its end, so FILE holds a whole sweep or what it held before. A
 * FILE.part that is left by a run that was cut off is gone on with after its last whole row. */
#ifndef VP_CLI_SWEEP_FILE_H
#define VP_CLI_SWEEP_FILE_H

#include "planner/base/text.h"
#include "planner/base/ctx.h"

struct vp_sweep_file {
    int fd;
    const char *path; /* for messages */
    const char *part; /* what is renamed to `path`; NULL: written in place */
    uint64_t next;    /* the combination to begin with */
    bool kept;        /* rows of a run before are there */
};

/* What the rows of a sweep look like. */
struct vp_sweep_rows {
    bool text;          /* a table for people: always begun anew */
    const char *header; /* with its line break; "": none */
    const char *id;     /* what the last column says */
    uint64_t first, last;
};

/* path: NULL or "-" is standard output. A FILE.part of another sweep is refused, unless anew. */
enum vp_status vp_sweep_file_open(struct vp_ctx *ctx, struct vp_sweep_file *out, const char *path,
                                  const struct vp_sweep_rows *rows, bool anew);
enum vp_status vp_sweep_file_put(struct vp_ctx *ctx, struct vp_sweep_file *file, const char *data,
                                 size_t n);
/* The sweep is at its end. */
enum vp_status vp_sweep_file_finish(struct vp_ctx *ctx, struct vp_sweep_file *file);
/* It is not: what was written stays as FILE.part. */
void vp_sweep_file_leave(struct vp_sweep_file *file);

#endif
