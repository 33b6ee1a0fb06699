/* Which operators of a layer run again when parts of it are recomputed, and how long that takes. */
#ifndef VP_PLAN_TRAIN_REGIONS_H
#define VP_PLAN_TRAIN_REGIONS_H

#include "planner/latency/train_time.h"

/* Regions (a set of enum vp_selective) that some operator of the block belongs to: in a layer
 * without it, recomputing a region does nothing. */
uint32_t vp_regions_in(const struct vp_model *model, const struct vp_block *block);

/* Not sets of regions: everything; what stands between the outputs that recomputation by operator
 * keeps, those of attention and of every second matrix (torchtitan's default). */
enum { VP_REGION_BY_OPERATOR = INT32_MAX };
#define VP_REGION_ALL UINT32_MAX

/* The forward pass of the operators in these regions. */
struct vp_train_cost vp_regions_cost(const struct vp_train_place *place,
                                     const struct vp_block *block, uint32_t regions);

#endif
