/* What is kept in host memory: weights of layers that the device reads through the link, and a
 * second KV cache. The host is a device of the ledger of its own, behind those of the stages. */
#ifndef VP_MEMORY_OFFLOAD_H
#define VP_MEMORY_OFFLOAD_H

#include "planner/memory/ledger.h"
#include "planner/memory/stage.h"

/* Whether anything is. */
bool vp_offload_any(const struct vp_scenario *scenario);
/* Takes the offloaded bytes out of the rows since `first`, layers only: embedding, head, tables and
 * encoders stay. Returns the bytes that went to the host, of one rank. */
struct vp_amount vp_offload_weights(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                                    const struct vp_stage *stage, uint32_t first);
/* The host's rows: what the ranks of one machine keep there. moved: of one rank of each stage. */
void vp_offload_host(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                     const struct vp_amount *moved, uint32_t stages, uint32_t device);

#endif
