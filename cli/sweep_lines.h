/* Reading back what `sweep` wrote, line by line, so that files of any length can be gone on with
 * and merged: CSV or JSON lines as in docs/FORMATS.md. */
#ifndef VP_CLI_SWEEP_LINES_H
#define VP_CLI_SWEEP_LINES_H

#include "planner/base/ctx.h"

struct vp_sweep_lines {
    struct vp_ctx *ctx;
    const char *path;
    int fd;
    char *data; /* what was read and not given out yet, and the line that was */
    size_t capacity, begin, end;
    uint64_t line;  /* number of the line given out last */
    uint64_t bytes; /* up to its end */
    bool cut;       /* the file ends within a line, which is not given out */
    bool failed;
    bool json;
    const char *header; /* of CSV, with its line break; NULL: JSON, or an empty file */
};

/* What a line says of itself. */
struct vp_sweep_mark {
    const char *line; /* valid until the next one is read */
    size_t size;      /* with the line break */
    uint64_t row;
    const char *id; /* of the sweep, id_size bytes */
    size_t id_size;
    uint64_t shard, shards; /* 0: the sweep is whole */
};

/* Opens and reads the header. A file that is no sweep's is a VP_D_SYNTAX diagnostic. */
enum vp_status vp_sweep_lines_open(struct vp_ctx *ctx, struct vp_sweep_lines *out,
                                   const char *path);
/* False: the end, or a fault (lines->failed, and a diagnostic). */
bool vp_sweep_lines_next(struct vp_sweep_lines *lines, struct vp_sweep_mark *out);
void vp_sweep_lines_close(struct vp_sweep_lines *lines);

/* Names of the columns that a line has, in the context's arena. */
size_t vp_sweep_line_columns(struct vp_ctx *ctx, const struct vp_sweep_lines *lines,
                             const struct vp_sweep_mark *mark, const char ***out);
/* Values of columns in a line, as texts; "" where it has none. */
void vp_sweep_line_values(struct vp_ctx *ctx, const struct vp_sweep_lines *lines,
                          const struct vp_sweep_mark *mark, const char *const *columns,
                          const char **out, size_t count);

#endif
