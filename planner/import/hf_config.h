/* Hugging Face config.json keys -> struct vp_model, by the family table (families.def). A family
 * that is not in the table is refused with a `blocks:` skeleton to fill in. */
#ifndef VP_IMPORT_HF_CONFIG_H
#define VP_IMPORT_HF_CONFIG_H

#include "planner/doc/node.h"
#include "planner/model/model.h"

/* hf_quant: hf_quant_config.json of the same folder, or NULL. */
enum vp_status vp_hf_read(struct vp_ctx *ctx, struct vp_model *out, const struct vp_node *config,
                          const struct vp_node *hf_quant);

#endif
