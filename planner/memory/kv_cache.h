/* KV cache and recurrent states of one rank of one pipeline stage: layer types, and how an engine
 * cuts its pool. Pure arithmetic.
 *
 *   paged   vLLM: blocks; unlike types form groups of equal size that share the pool
 *   tokens  SGLang: token slots over all layers; window layers and states have pools of their own
 *   bytes   transformers: every sequence holds what it needs
 *
 * Sources: vLLM v1/core/kv_cache_utils.py, v1/kv_cache_interface.py,
 * model_executor/models/config.py (block alignment of hybrids); checked against start-up logs to
 * the block. */
#ifndef VP_MEMORY_KV_CACHE_H
#define VP_MEMORY_KV_CACHE_H

#include "planner/memory/ledger.h"
#include "planner/memory/stage.h"

enum vp_kv_cut { VP_KV_PAGED, VP_KV_TOKENS, VP_KV_BYTES };
enum vp_kv_kind {
    VP_KV_FULL,
    VP_KV_LATENT,
    VP_KV_WINDOW,
    VP_KV_CHUNK,
    VP_KV_STATE,
    VP_KV_CROSS,    /* an encoder's keys and values: one length for all sequences */
    VP_KV_CONDENSED /* one entry for several tokens; token_bytes is a token's part, rounded up */
};

struct vp_kv_type {
    enum vp_kv_kind kind;
    uint64_t layers;       /* on this stage */
    uint64_t model_layers; /* on all stages */
    uint64_t window;       /* tokens of a window, a chunk or an encoder's output */
    uint64_t token_bytes;  /* one layer and token, per rank */
    uint64_t state_bytes;  /* one layer and sequence, per rank, unpadded */
    uint64_t block;        /* tokens per page of this type */
    uint64_t groups;       /* groups this type is split into */
    uint64_t padding;      /* layers added to fill the last group */
};

enum { VP_KV_TYPES = 8 };

struct vp_kv_plan {
    enum vp_kv_cut cut;
    struct vp_kv_type type[VP_KV_TYPES];
    uint32_t types;
    bool too_many_types;
    bool overflow;
    uint64_t block_size;     /* what the engine prints */
    uint64_t group_layers;   /* layers per group on this stage */
    uint64_t groups;         /* over all types */
    uint64_t page_bytes;     /* one page of one layer */
    uint64_t unit_bytes;     /* what the pool is cut into: a block over the layers of a group, a
                                token over all layers, a byte */
    bool separate_state;     /* states come out of a pool of their own */
    uint64_t token_bytes;    /* growing part over all layers of the stage, per rank */
    uint64_t state_bytes;    /* all recurrent layers of the stage, one sequence, per rank */
    uint64_t batched_tokens; /* a window keeps these beside itself while they are computed */
    uint64_t state_pages;    /* per sequence and state group */
    uint64_t context_ranks;  /* ranks that share one sequence's tokens */
};

void vp_kv_plan_make(struct vp_kv_plan *out, const struct vp_scenario *scenario,
                     const struct vp_stage *stage);
/* Pages of one type (one group) for a sequence of `tokens`; in the other cuts the tokens kept. */
uint64_t vp_kv_pages(const struct vp_kv_plan *plan, const struct vp_kv_type *type, uint64_t tokens);
/* Units of the pool for a sequence of `tokens`. Never falls with the length. */
uint64_t vp_kv_units(const struct vp_kv_plan *plan, uint64_t tokens);
/* Longest sequence whose units times `sequences` fit in `units`; at most `limit` tokens; 0: none.
 */
uint64_t vp_kv_longest(const struct vp_kv_plan *plan, uint64_t units, uint64_t sequences,
                       uint64_t limit);
/* Adds the rows for `sequences` of `tokens` (components KV_CACHE and RECURRENT_STATE). */
void vp_kv_add(struct vp_ledger *ledger, const struct vp_kv_plan *plan, uint64_t sequences,
               uint64_t tokens, uint32_t device);
const char *vp_kv_kind_name(enum vp_kv_kind kind);

#endif
