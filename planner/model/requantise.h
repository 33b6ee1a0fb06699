/* precision.weights and the compute type applied to a finished model: which format each block's
 * tensors are loaded in. */
#ifndef VP_MODEL_REQUANTISE_H
#define VP_MODEL_REQUANTISE_H

#include "planner/model/scenario.h"

/* Some tensor of a layer is stored in a format with scales, or in less than 16 bits. */
bool vp_model_is_quantised(const struct vp_model *model);
/* Some matrix is in FP8. */
bool vp_model_has_fp8(const struct vp_model *model);
/* precision.weights other than "checkpoint": tensor classes that are quantised and not in
 * precision.keep get that format; one of 16 or 32 bit goes everywhere. A checkpoint whose own
 * quantisation is that format stays as it is. Changes scenario->model and forgets the sums of its
 * stored tensors when they no longer hold. An unknown format is VP_D_BAD_VALUE. */
enum vp_status vp_model_requantise(struct vp_ctx *ctx, struct vp_scenario *scenario);
/* vLLM loads what is not quantised in the compute type. */
void vp_model_load_plain_as(struct vp_model *model, enum vp_dtype compute);

#endif
