/* How a training framework divides tensors and tokens over ranks. */
#ifndef VP_OPS_TRAIN_LAYOUT_H
#define VP_OPS_TRAIN_LAYOUT_H

#include "planner/model/scenario.h"
#include "planner/ops/ops.h"

/* Dense matrices, heads and the padded vocabulary over the tensor-parallel ranks; with expert
 * parallelism whole experts over those ranks, the width of each over the tensor-parallel ones or as
 * many as are set apart for that (Megatron). */
struct vp_layout vp_train_layout(const struct vp_scenario *scenario);
/* Ranks that hold the same dense weights: data-parallel ones, and those that share a sequence. At
 * least 1. */
uint64_t vp_train_copies(const struct vp_scenario *scenario);
/* Ranks that hold the same expert weights. At least 1. */
uint64_t vp_train_expert_copies(const struct vp_scenario *scenario);
/* Micro batches of one optimizer step on a rank. At least 1. */
uint64_t vp_train_micro_batches(const struct vp_scenario *scenario);

#endif
