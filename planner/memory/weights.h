/* Weights of the fullest rank of a stage: from the model's shapes and schemes, or, when the
 * checkpoint's tensor table is known, from its tensors. */
#ifndef VP_MEMORY_WEIGHTS_H
#define VP_MEMORY_WEIGHTS_H

#include "planner/memory/ledger.h"
#include "planner/memory/stage.h"

/* Adds the rows of component WEIGHTS, and of component VISION for an encoder's tensors. */
void vp_weights_add(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                    const struct vp_stage *stage, uint32_t device);
/* A row for a tensor group beside the stack, whether `loaded` or not. */
void vp_weights_extra(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                      const struct vp_extra *extra, enum vp_component component, uint32_t device);
/* Bytes of the whole model as its description stores it: no division, no padding, no tables. */
struct vp_sum vp_weights_unsharded(const struct vp_model *model);

#endif
