/* Paged KV cache and recurrent states as vLLM lays them out: layer types, groups that share one
 * pool, pages per sequence. Pure arithmetic on one rank of one pipeline stage.
 *
 * Sources: vLLM v1/core/kv_cache_utils.py, v1/kv_cache_interface.py, model_executor/models/config.py
 * (block alignment of hybrids); checked against start-up logs to the block. */
#ifndef VP_MEMORY_KV_CACHE_H
#define VP_MEMORY_KV_CACHE_H

#include "planner/memory/ledger.h"
#include "planner/memory/stage.h"

enum vp_kv_kind { VP_KV_FULL, VP_KV_LATENT, VP_KV_WINDOW, VP_KV_CHUNK, VP_KV_STATE };

struct vp_kv_type {
    enum vp_kv_kind kind;
    uint64_t layers;       /* on this stage */
    uint64_t model_layers; /* on all stages */
    uint64_t window;       /* tokens of a window or chunk */
    uint64_t token_bytes;  /* one layer and token, per rank */
    uint64_t state_bytes;  /* one layer and sequence, per rank, unpadded */
    uint64_t block;        /* tokens per page of this type */
    uint64_t groups;       /* groups this type is split into */
    uint64_t padding;      /* layers added to fill the last group */
};

enum { VP_KV_TYPES = 8 };

struct vp_kv_plan {
    struct vp_kv_type type[VP_KV_TYPES];
    uint32_t types;
    bool too_many_types;
    bool overflow;
    uint64_t block_size;      /* what the engine prints */
    uint64_t group_layers;    /* layers per group on this stage */
    uint64_t groups;          /* over all types */
    uint64_t page_bytes;      /* one page of one layer */
    uint64_t block_bytes;     /* one block over the layers of a group: what the pool is cut into */
    uint64_t token_bytes;     /* growing part over all layers of the stage, per rank */
    uint64_t state_bytes;     /* all recurrent layers of the stage, one sequence, per rank */
    uint64_t batched_tokens;  /* a window keeps these beside itself while they are computed */
    uint64_t state_pages;     /* per sequence and state group */
    uint64_t context_ranks;   /* ranks that share one sequence's tokens */
};

void vp_kv_plan_make(struct vp_kv_plan *out, const struct vp_scenario *scenario,
                     const struct vp_stage *stage);
/* Pages of one type (one group) for a sequence of `tokens`. */
uint64_t vp_kv_pages(const struct vp_kv_plan *plan, const struct vp_kv_type *type,
                     uint64_t tokens);
/* Blocks of the pool for a sequence of `tokens`, over all groups. */
uint64_t vp_kv_blocks(const struct vp_kv_plan *plan, uint64_t tokens);
/* Longest sequence whose blocks times `sequences` fit in `blocks`; at most `limit` tokens; 0: none. */
uint64_t vp_kv_longest(const struct vp_kv_plan *plan, uint64_t blocks, uint64_t sequences,
                       uint64_t limit);
/* Adds the rows for `sequences` of `tokens` (components KV_CACHE and RECURRENT_STATE). */
void vp_kv_add(struct vp_ledger *ledger, const struct vp_kv_plan *plan, uint64_t sequences,
               uint64_t tokens, uint32_t device);
const char *vp_kv_kind_name(enum vp_kv_kind kind);

#endif
