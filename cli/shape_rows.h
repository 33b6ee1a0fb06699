/* Rows of kernel shapes as CSV: those of a table, or of the probe's own set, that a probe should
 * measure so that the others can be predicted (planner/latency/choose_shapes.h). */
#ifndef VP_CLI_SHAPE_ROWS_H
#define VP_CLI_SHAPE_ROWS_H

#include "planner/base/ctx.h"
#include "planner/base/text.h"
#include "planner/model/samples.h"
#include "planner/model/scenario.h"

/* `wanted` rows of each kind, type and group of GPUs, whole and in the order of their files, which
 * must have the same columns. */
enum vp_status vp_shape_rows_chosen(struct vp_ctx *ctx, struct vp_buf *out,
                                    const struct vp_samples *samples, uint32_t wanted);
/* Matrix products (columns dtype, m, n, k) of the set in planner/model/probe_shapes.def, for the
 * types that a card has units for; gpu NULL: 16 bit. All of them when there are fewer. */
enum vp_status vp_shape_rows_free(struct vp_ctx *ctx, struct vp_buf *out, const struct vp_gpu *gpu,
                                  uint32_t wanted);

#endif
