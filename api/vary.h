/* The combinations of a sweep: which fields vary over which values.
 *
 *   FIELD=a,b,c            a list
 *   FIELD=8k..256k*2       a geometric range: 8k, 16k, ... as long as it is at most 256k
 *   FIELD=0.8..0.95+0.05   an arithmetic range; numbers, token counts, sizes ("16 GiB")
 *   FIELD,FIELD=1:2,3:4    fields that vary together
 *
 * Lists and ranges may be mixed ("1,2,4..64*2"). A value that holds a comma, a colon or two dots
 * stands in double quotes; commas within brackets and braces divide nothing. Several axes are
 * multiplied, the last one varies fastest. */
#ifndef VP_API_VARY_H
#define VP_API_VARY_H

#include "planner/import/input.h"

/* Fields that vary together. */
struct vp_axis {
    const char **paths;
    size_t path_count;
    const char **values; /* count x path_count */
    size_t count;
    /* for messages about a value: as it was given, and where it stands there */
    const char *option, *text;
    uint32_t *columns; /* of each row, from 1; those of a range share one */
};

struct vp_grid {
    struct vp_axis *axes;
    size_t axis_count;
    size_t field_count; /* over all axes */
    uint64_t total;     /* combinations */
};

enum { VP_AXIS_VALUES = 1000000, VP_GRID_FIELDS = 32 };
#define VP_GRID_TOTAL UINT64_C(1000000000)

/* option: what messages call it ("--vary"). Every fault is a VP_D_BAD_OPTION diagnostic with its
 * place in the text. Whether the fields exist is not checked here. */
enum vp_status vp_grid_read(struct vp_ctx *ctx, struct vp_grid *out, const char *option,
                            const char *const *texts, size_t count);
/* The settings of a combination, in the order of the axes: field_count of them. The texts are the
 * grid's. */
void vp_grid_settings(const struct vp_grid *grid, struct vp_setting *out, uint64_t index);
/* The path of the i-th field. */
const char *vp_grid_path(const struct vp_grid *grid, size_t field);
/* A value as a number: 8, 0.85, 8k, 16 GiB; NaN for all else. */
double vp_grid_number(const char *value);
/* Where a row of values stands, for a message. */
struct vp_pos vp_axis_pos(struct vp_arena *arena, const struct vp_axis *axis, size_t row);

#endif
