/* Which few of many shapes to measure, so that the others can be predicted. */
#ifndef VP_LATENCY_CHOOSE_SHAPES_H
#define VP_LATENCY_CHOOSE_SHAPES_H

#include "planner/base/arena.h"
#include "planner/model/samples.h"

/* Indices of `wanted` of the samples, ascending, into out; how many there are (fewer when there are
 * fewer samples). Only shapes are looked at, not times. */
uint32_t vp_choose_shapes(struct vp_arena *arena, uint32_t *out,
                          const struct vp_kernel_samples *samples, uint32_t wanted);

#endif
