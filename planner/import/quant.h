/* quantization_config (config.json) and hf_quant_config.json -> which module is stored how.
 * Knows: fp8 (per tensor, per channel, block), fbgemm_fp8, compressed-tensors (float, int, pack
 * quantised, mixed groups, nvfp4), gptq, awq, bitsandbytes (int8, nf4, double quant), mxfp4
 * (gpt-oss), modelopt (FP8, NVFP4, mixed), quark. Anything else is refused by name. */
#ifndef VP_IMPORT_QUANT_H
#define VP_IMPORT_QUANT_H

#include "planner/doc/node.h"
#include "planner/model/model.h"

struct vp_quant; /* rules of one checkpoint; lives in the arena */

/* quantization: the map (or NULL: *out = NULL, nothing is quantised). plain: the scheme of what is
 * not quantised (the checkpoint's dtype). */
enum vp_status vp_quant_read(struct vp_ctx *ctx, struct vp_quant **out,
                             const struct vp_node *quantization, const struct vp_node *hf_quant,
                             const struct vp_scheme *plain);
/* Short name for reports: "fp8 block 128x128", "int4 group 128 (gptq)". "" for NULL. */
const char *vp_quant_name(const struct vp_quant *quant);
/* How the module is stored. module: dotted path as transformers names it
 * ("model.layers.3.self_attn.q_proj", "lm_head", "vision_tower..."). Patterns of the checkpoint may
 * carry other prefixes ("language_model.", "model.language_model."): they match too. class_:
 * decides where the rules do not name the module (only Linear modules are quantised: embeddings,
 * norms, convolutions and routers keep the plain type unless a rule says otherwise). NULL for NULL.
 */
const struct vp_scheme *vp_quant_scheme(const struct vp_quant *quant, const char *module,
                                        enum vp_class class_);
/* How a role's tensors of one layer are stored, whatever its family calls them: the first rule that
 * matches any of the role's names decides. layer: from 0; block: what that layer is. */
const struct vp_scheme *vp_quant_role_scheme(const struct vp_quant *quant, uint32_t layer,
                                             const struct vp_block *block, enum vp_role role);

#endif
