/* One pipeline stage under a serving engine: what its start-up log says of a rank, what its cache
 * pool holds, and the ledger rows behind it. The engines differ in how the pool is found; that is
 * in vllm.c, sglang.c and transformers.c, one function each. */
#ifndef VP_MEMORY_ENGINE_STAGE_H
#define VP_MEMORY_ENGINE_STAGE_H

#include "planner/memory/activation.h"
#include "planner/memory/kv_cache.h"

struct vp_engine_stage {
    struct vp_kv_plan kv;
    struct vp_amount weights, activation, non_torch, graphs; /* as the log prints them */
    struct vp_amount adapters;  /* SGLang: beside the weights; vLLM's load line holds them */
    struct vp_amount moved;     /* of the layers' weights into host memory */
    struct vp_amount available; /* bytes for the cache; 0 when nothing is left */
    bool available_negative;    /* even at the low end nothing is left */
    bool pinned;                /* available was measured or given in bytes */
    struct vp_amount units;     /* the pool in the plan's units: blocks, tokens or bytes */
    uint64_t requested_bytes;   /* what the engine's policy sets aside */
    uint64_t reserved_bytes;    /* what it will have taken when it runs */
    uint64_t usable_bytes;      /* what the need is held against */
    bool graphs_in_budget;
};

/* Fills a stage and adds its rows (weights, activations, non-torch, graphs, need of the workload's
 * cache) to the ledger. */
void vp_engine_stage_make(struct vp_engine_stage *out, struct vp_ledger *ledger,
                          const struct vp_scenario *scenario, const struct vp_stage *stage,
                          uint32_t device);

/* The engines: from weights, activation, non_torch and graphs to available, requested_bytes,
 * reserved_bytes, usable_bytes. */
void vp_vllm_pool(struct vp_engine_stage *stage, const struct vp_scenario *scenario);
void vp_sglang_pool(struct vp_engine_stage *stage, const struct vp_scenario *scenario);
void vp_transformers_pool(struct vp_engine_stage *stage, const struct vp_scenario *scenario);

#endif
