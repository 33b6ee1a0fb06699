/* One row of a table of served requests (api/fit_serving.h lists the columns), as the settings of a
 * scenario and what was measured. Nothing is planned here. */
#ifndef VP_API_SERVED_ROWS_H
#define VP_API_SERVED_ROWS_H

#include "api/fit_serving.h"
#include "planner/import/input.h"

enum { VP_SERVED_SETTINGS = 16 };

struct vp_served_row {
    const char *model;                 /* a profile's id */
    const char *weights;               /* format of the linear weights, as the row says */
    const char *gpu;                   /* a profile's id */
    const char *engine;                /* "vllm" */
    const char *version;               /* NULL: not said */
    double tpot_us, ttft_us, total_us; /* 0: not measured */
    struct vp_setting setting[VP_SERVED_SETTINGS];
    size_t settings;
};

/* *skip says whether the row can be used at all; out is filled when it can. gpu: the only card that
 * is wanted, by its profile's id; NULL: any. */
enum vp_status vp_served_row_read(struct vp_ctx *ctx, struct vp_served_row *out,
                                  enum vp_served_skip *skip, const struct vp_csv *table,
                                  uint32_t row, const char *gpu);

#endif
