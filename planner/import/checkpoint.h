/* A checkpoint's tensor table -> bytes by layer and division, and the cross-check against what the
 * config says. */
#ifndef VP_IMPORT_CHECKPOINT_H
#define VP_IMPORT_CHECKPOINT_H

#include "planner/doc/safetensors.h"
#include "planner/model/model.h"

/* Fills model->checkpoint. model must be complete. Each tensor is placed by its name: layer index
 * ("...layers.N." / "...h.N." / "...blocks.N."), role by the suffixes of roles.def (weights,
 * scales, zero points, biases, packed forms: ".weight", ".weight_scale", ".weight_scale_inv",
 * ".qweight", ".qzeros", ".scales", ".g_idx", ".weight_packed", "_blocks", "_scales", ".bias"),
 * division by the role; experts by ".experts."; vision and projector tensors go to extra_bytes;
 * layers beyond layer_count (MTP), a stored copy of a tied head and buffers to skipped_bytes; what
 * is not recognised is whole on every rank.
 * Cross-check: the sum of the loaded tensors against the bytes computed from the config
 * (`computed_bytes`); a difference of more than 0.1 % is VP_D_WEIGHTS_DISAGREE with both figures;
 * computed_bytes 0: no comparison. */
enum vp_status vp_checkpoint_attach(struct vp_ctx *ctx, struct vp_model *model,
                                    const struct vp_tensors *tensors, uint64_t computed_bytes);

#endif
