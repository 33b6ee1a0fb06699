/* LoRA slots: an engine that serves adapters keeps, for every matrix that may have one and for
 * every slot, room for a pair A (rank x inputs) and B (outputs x rank), whether an adapter is
 * loaded or not. A fold over the operator list. */
#ifndef VP_MEMORY_ADAPTERS_H
#define VP_MEMORY_ADAPTERS_H

#include "planner/memory/ledger.h"
#include "planner/memory/stage.h"

/* Rows of component ADAPTERS for one rank of a stage; none unless they are enabled. */
void vp_adapters_add(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                     const struct vp_stage *stage, uint32_t device);

#endif
