/* Speculative decoding: what the draft's weights take, and which layers it adds to the cache. The
 * draft runs on the last pipeline stage. */
#ifndef VP_MEMORY_DRAFT_H
#define VP_MEMORY_DRAFT_H

#include "planner/memory/ledger.h"
#include "planner/memory/stage.h"

/* Rows of component DRAFT; none without a draft, or on another stage than the last. */
void vp_draft_add(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                  const struct vp_stage *stage, uint32_t device);
/* The i-th kind of layer that the draft adds to the cache pool; false beyond the last. */
bool vp_draft_layers(const struct vp_block **out, uint64_t *count,
                     const struct vp_scenario *scenario, uint32_t i);
/* How the draft's layers are divided. */
struct vp_layout vp_draft_layout(const struct vp_scenario *scenario);
/* Layers that run for a proposal. */
uint64_t vp_draft_depth(const struct vp_scenario *scenario);

#endif
