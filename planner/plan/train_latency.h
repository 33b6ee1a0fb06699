/* How long one optimizer step of a training scenario takes: all micro batches through the slowest
 * pipeline stage, what is recomputed, what ranks say to each other and nothing hides, the
 * pipeline's bubble, the reduction of gradients, the optimizer. Joins the stages of planner/memory
 * (which layers, what is recomputed, what is whole) with the times of planner/latency.
 *
 * The schedule is 1F1B, or interleaved: the slowest stage works all the time, and the others' share
 * of one micro batch is waited for once, divided by the chunks per stage.
 *
 * Left out: stragglers, data loading, checkpoints, imbalance between data-parallel ranks, overlap
 * of the bubble with the optimizer. */
#ifndef VP_PLAN_TRAIN_LATENCY_H
#define VP_PLAN_TRAIN_LATENCY_H

#include "planner/plan/result.h"

/* Fills result->latency from result->scenario and result->training. */
void vp_train_latency(struct vp_arena *arena, struct vp_result *result);

#endif
