/* vLLM's accounting of one device: what it asks for, what the profile run leaves for the KV cache,
 * how many blocks that is, and whether it would start (F-VLLM rules, by version).
 *
 *   requested = total x gpu_memory_utilization
 *   torch-peak   (2023)        cache = requested - weights - activation peak
 *   v0, v1-used, v1            cache = requested - weights - non-torch - activation peak
 *   v1-graphs    (0.21 on)     the same, minus the graph estimate
 * Before v1-graphs the captured graphs come on top of what was requested. v1-used also counts what
 * other processes hold. Source: vLLM worker.py and gpu_worker.py of those versions. */
#ifndef VP_MEMORY_VLLM_H
#define VP_MEMORY_VLLM_H

#include "planner/memory/activation.h"
#include "planner/memory/kv_cache.h"

struct vp_vllm_stage {
    struct vp_kv_plan kv;
    struct vp_amount weights, activation, non_torch, graphs; /* as the log prints them */
    struct vp_amount available;   /* bytes for the cache; 0 when nothing is left */
    bool available_negative;      /* even at the low end nothing is left */
    bool pinned;                  /* available was measured or given in bytes */
    struct vp_amount blocks;
    uint64_t requested_bytes;
    bool graphs_in_budget;
};

/* Fills the report of one stage and adds its rows (weights, activations, non-torch, graphs, need of
 * the workload's KV cache) to the ledger. */
void vp_vllm_stage_make(struct vp_vllm_stage *out, struct vp_ledger *ledger,
                        const struct vp_scenario *scenario, const struct vp_stage *stage,
                        uint32_t device);

#endif
