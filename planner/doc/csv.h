/* CSV text -> a table with the line of every row. One header line; commas; fields may stand in
 * double quotes ("" is one quote), also over several lines; CR LF, a byte order mark and blank
 * lines are accepted. What the columns mean is read elsewhere. */
#ifndef VP_DOC_CSV_H
#define VP_DOC_CSV_H

#include "planner/base/ctx.h"
#include "planner/base/io.h"

/* Caps; a cap hit is VP_D_CAP and names the cap. */
enum { VP_CSV_MAX_BYTES = 64 * 1024 * 1024, VP_CSV_MAX_COLUMNS = 256, VP_CSV_MAX_ROWS = 1000000 };

struct vp_csv {
    const char *name; /* for positions */
    uint32_t columns, rows;
    const char **column; /* the header */
    const char **cells;  /* rows x columns */
    uint32_t *lines;     /* of each row */
};

/* Rows with too few or too many fields are reported and left out; the status is then not VP_OK. */
enum vp_status vp_csv_parse(struct vp_ctx *ctx, struct vp_csv *out, struct vp_bytes text,
                            const char *name);
/* path "-": standard input. */
enum vp_status vp_csv_read(struct vp_ctx *ctx, struct vp_csv *out, const char *path);
/* -1: there is no such column. */
int vp_csv_column(const struct vp_csv *csv, const char *name);
static inline const char *vp_csv_cell(const struct vp_csv *csv, uint32_t row, int column) {
    return csv->cells[(size_t)row * csv->columns + (size_t)column];
}

#endif
