/* The cache of one replica while it serves: pages that sequences take and give back, prefixes that
 * stay behind in least-recently-used order, copies in host memory. Counts pages; what a page costs
 * in bytes is the plan's business.
 *
 * A sequence's pages follow from its tokens, group by group: full attention keeps all of them, a
 * window frees what lies behind it, states are a fixed number of pages. Prefixes are kept as runs
 * of blocks, not block by block, so that a pool of a million one-token pages is as cheap as one of
 * a thousand blocks. Sources: vLLM v1/core/block_pool.py and single_type_kv_cache_manager.py,
 * SGLang mem_cache/radix_cache.py.
 *
 * Left out: hash collisions; in hybrids the pages of windows and states that a prefix hit needs
 * beside the full ones are taken anew, and counted as there. */
#ifndef VP_SERVING_BLOCK_POOL_H
#define VP_SERVING_BLOCK_POOL_H

#include <stdbool.h>

#include "planner/base/arena.h"
#include "planner/memory/kv_cache.h"

enum vp_page_kind {
    VP_PAGES_FULL,   /* ceil(tokens / block) */
    VP_PAGES_WINDOW, /* of these, the ones that reach into the last `window` tokens */
    VP_PAGES_CHUNK,  /* of these, the ones of the running chunk of `window` tokens */
    VP_PAGES_FIXED   /* `pages`, however long the sequence is */
};

struct vp_page_group {
    enum vp_page_kind kind;
    uint32_t block, window, pages;
    uint64_t units; /* of the pool that one page takes: groups of this kind, or bytes */
};

enum { VP_PAGE_GROUPS = 8 };

struct vp_cache_settings {
    uint64_t units;        /* of the pool */
    uint32_t block_tokens; /* prefix hits are whole blocks of so many tokens */
    struct vp_page_group group[VP_PAGE_GROUPS];
    uint32_t groups;
    bool prefix_caching;
    uint64_t host_blocks; /* evicted blocks that host memory keeps; 0: no such tier */
    double host_block_us; /* to copy one of them back */
};

/* The pool of a plan: its layer types as page groups, `units` as the plan counts them (blocks,
 * token slots, bytes). Prefix caching and the host's part are left for the caller. */
void vp_cache_settings_of(struct vp_cache_settings *out, const struct vp_kv_plan *plan,
                          uint64_t units);

/* ---- at work ---- */

struct vp_block_pool;
struct vp_chain;     /* the prefix of one id: blocks in use or in the cache */
struct vp_block_run; /* blocks in the cache that nobody uses */

/* What a sequence holds. Zeroed, it holds nothing. */
struct vp_cache_seq {
    struct vp_chain *chain;           /* its prefix; NULL: it shares nothing */
    struct vp_cache_seq *next, *last; /* others that hold blocks of it */
    uint32_t shared_blocks;           /* of the prefix, from its start */
    uint64_t own_units;
    struct vp_block_run *leftover; /* own blocks that stayed in the cache when it was preempted */
};

/* What the cache has of a prompt, from its start. */
struct vp_cache_hit {
    uint32_t shared_blocks, leftover_blocks, host_blocks;
    uint32_t tokens; /* all of them */
};

struct vp_block_pool *vp_pool_new(struct vp_arena *arena, const struct vp_cache_settings *settings);
uint64_t vp_pool_size(const struct vp_block_pool *pool);      /* units */
uint64_t vp_pool_held(const struct vp_block_pool *pool);      /* by sequences, shared ones once */
uint64_t vp_pool_available(const struct vp_block_pool *pool); /* free, or in the cache unused */
uint64_t vp_pool_blank(const struct vp_block_pool *pool);     /* free: nothing has to leave */
/* Pages of one group. */
uint64_t vp_page_count(const struct vp_page_group *group, uint32_t computed, uint32_t total);
/* Units of a sequence of `total` tokens of which `computed` are in the cache before the iteration
 * that adds the rest. */
uint64_t vp_pool_units(const struct vp_block_pool *pool, uint32_t computed, uint32_t total);
/* The most of them at any time, when at most `chunk` tokens are added at once. */
uint64_t vp_pool_most_units(const struct vp_block_pool *pool, uint64_t chunk, uint64_t total);
/* Windows give pages back while a sequence grows. */
bool vp_pool_shrinks(const struct vp_block_pool *pool);

/* At most `limit` tokens, whole blocks. prefix_id 0: only what the sequence left itself. */
struct vp_cache_hit vp_pool_look_up(struct vp_block_pool *pool, const struct vp_cache_seq *seq,
                                    uint64_t prefix_id, uint32_t shared_tokens, uint32_t limit);
/* Takes the hit and pages up to `total` tokens, if `keep` units are still available then; else
 * nothing changes. Of these tokens `computed` are there: the hit's, or loaded from elsewhere. */
bool vp_pool_admit(struct vp_block_pool *pool, struct vp_cache_seq *seq, uint64_t prefix_id,
                   const struct vp_cache_hit *hit, uint32_t computed, uint32_t total,
                   uint64_t keep);
/* Whether that would succeed. */
bool vp_pool_fits(const struct vp_block_pool *pool, const struct vp_cache_hit *hit,
                  uint64_t prefix_id, uint32_t computed, uint32_t total, uint64_t keep);
bool vp_pool_grow(struct vp_block_pool *pool, struct vp_cache_seq *seq, uint32_t computed,
                  uint32_t total);
/* Others may use the prefix as far as it is computed. */
void vp_pool_publish(struct vp_block_pool *pool, struct vp_cache_seq *seq, uint32_t computed,
                     uint32_t shared_tokens);

/* What one holds, another one holds from now on. */
void vp_pool_move(struct vp_cache_seq *to, struct vp_cache_seq *from);

enum vp_cache_keep {
    VP_KEEP_NOTHING, /* swapped out */
    VP_KEEP_OWN,     /* preempted: the sequence may find its blocks again */
    VP_KEEP_NEXT     /* ended: what follows the shared prefix continues it for the next of its id */
};
/* Gives everything back, full blocks to the cache. */
void vp_pool_release(struct vp_block_pool *pool, struct vp_cache_seq *seq, uint32_t computed,
                     enum vp_cache_keep keep);
/* A preempted sequence is gone for good: nobody will look for its leftover. */
void vp_pool_forget(struct vp_cache_seq *seq);

/* The books: held <= size, held + unused <= size, runs and chains add up. own_units: of all
 * sequences that hold something. */
bool vp_pool_is_sound(const struct vp_block_pool *pool, uint64_t own_units);

#endif
