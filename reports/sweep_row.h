/* One combination of a sweep as one line: of a CSV table, a JSON object (JSON lines), or a table
 * for people, which has few columns. Columns: `row`, the fields that vary, what came out of it
 * (docs/FORMATS.md), `sweep`. Numbers are those of the worst device. What is not known is an empty
 * cell, and a key that is left out. A line has no line break within it. */
#ifndef VP_REPORTS_SWEEP_ROW_H
#define VP_REPORTS_SWEEP_ROW_H

#include "planner/base/diag.h"
#include "planner/base/text.h"
#include "planner/plan/result.h"

enum vp_sweep_style { VP_SWEEP_CSV, VP_SWEEP_JSON, VP_SWEEP_TEXT };

struct vp_sweep_form {
    enum vp_sweep_style style;
    bool latency;        /* with the columns of times */
    const char **fields; /* that vary */
    size_t field_count;
    const size_t *widths; /* of the fields' columns; for people only */
    const char *sweep;    /* what the last column says: which sweep the row is of */
};

struct vp_sweep_line {
    uint64_t row;
    const char *const *values;      /* of the fields */
    const struct vp_result *result; /* evaluated; NULL: refused */
    const struct vp_diag *refusal;  /* why; NULL: sizes beyond 64 bits */
};

/* The header line of the table with its line break; nothing for JSON. */
void vp_sweep_head(struct vp_buf *out, const struct vp_sweep_form *form);
void vp_sweep_row(struct vp_buf *out, const struct vp_sweep_form *form,
                  const struct vp_sweep_line *line);
/* The number in a column of results, such as need_likely_bytes; NaN: not known there. False: there
 * is no such column of numbers. */
bool vp_sweep_value(double *out, const char *column, const struct vp_result *result, bool latency);
/* Names of the columns of results that hold numbers. */
size_t vp_sweep_columns(struct vp_arena *arena, const char ***out, bool latency);

#endif
