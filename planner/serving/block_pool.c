#include "planner/serving/block_pool.h"

#include <assert.h>
#include <string.h>

/* Blocks [first, first + count) that nobody uses, in the order in which they were given back. A
 * chain's are evicted from the end: whoever holds a block holds all before it, so later ones were
 * given back no later. */
struct vp_block_run {
    struct vp_block_run *older, *newer;
    struct vp_block_run *above, *below; /* in its chain, by index */
    struct vp_chain *chain;             /* NULL with seq NULL: nobody will ask for them */
    struct vp_cache_seq *seq;
    uint32_t first;
    uint64_t count;
};

struct vp_chain {
    uint64_t id;
    struct vp_chain *next;        /* in its bucket, or free */
    struct vp_cache_seq *holders; /* sequences */
    uint32_t held, cached;        /* blocks from the start: in use, in use or in the cache */
    struct vp_block_run *lowest;  /* of [held, cached) */
    uint32_t host_from, host_to;  /* blocks that host memory has */
    struct vp_chain *host_older, *host_newer;
};

struct vp_block_pool {
    struct vp_arena *arena;
    struct vp_cache_settings settings;
    uint64_t block_units;  /* of a prefix block: its pages in the groups that keep everything */
    uint64_t held, unused; /* units in use, in the cache without use */
    struct vp_block_run *oldest, *newest, *free_runs;
    struct vp_chain **bucket, *free_chains;
    uint64_t buckets, chains;
    uint64_t host_used; /* blocks */
    struct vp_chain *host_oldest, *host_newest;
    bool caching, shrinks;
};

/* ---- settings ---- */

/* A page of the pool's own kind; in the cuts without pages a token is one. */
static struct vp_page_group group_of(const struct vp_kv_plan *plan, const struct vp_kv_type *type) {
    bool paged = plan->cut == VP_KV_PAGED;
    struct vp_page_group group = {.kind = VP_PAGES_FULL,
                                  .block = paged ? (uint32_t)type->block : 1};

    group.units = paged ? type->groups : type->layers * (type->token_bytes + type->state_bytes);
    switch (type->kind) {
    case VP_KV_FULL:
    case VP_KV_LATENT:
    case VP_KV_CONDENSED:
        group.block *= (uint32_t)(paged ? plan->context_ranks : 1);
        break;
    case VP_KV_WINDOW:
        group.kind = VP_PAGES_WINDOW;
        group.window = (uint32_t)type->window;
        break;
    case VP_KV_CHUNK:
        group.kind = VP_PAGES_CHUNK;
        group.window = (uint32_t)type->window;
        break;
    case VP_KV_STATE:
    case VP_KV_CROSS:
        group.kind = VP_PAGES_FIXED;
        group.pages = (uint32_t)vp_kv_pages(plan, type, 1);
        break;
    }
    return group;
}

/* The pool counted in whole condensed blocks (cut BYTES with a unit of many bytes), in bytes. */
void vp_cache_settings_of(struct vp_cache_settings *out, const struct vp_kv_plan *plan,
                          uint64_t units) {
    memset(out, 0, sizeof *out);
    out->units = units;
    out->block_tokens = (uint32_t)vp_max(plan->block_size, 1);
    if (plan->cut == VP_KV_TOKENS) { /* token slots; window layers and states have their own */
        out->group[out->groups++] = (struct vp_page_group){
            .kind = VP_PAGES_FULL, .block = out->block_tokens, .units = out->block_tokens};
        return;
    }
    if (plan->cut == VP_KV_BYTES)
        out->units *= vp_max(plan->unit_bytes, 1);
    for (uint32_t t = 0; t < plan->types && out->groups < VP_PAGE_GROUPS; t++) {
        struct vp_page_group group = group_of(plan, &plan->type[t]);
        if (group.units == 0)
            continue;
        out->group[out->groups++] = group;
        if (group.kind == VP_PAGES_FULL && group.block > out->block_tokens)
            out->block_tokens = group.block;
    }
}

/* ---- pages ---- */

uint64_t vp_page_count(const struct vp_page_group *group, uint32_t computed, uint32_t total) {
    uint64_t behind = 0;

    switch (group->kind) {
    case VP_PAGES_FIXED:
        return group->pages;
    case VP_PAGES_FULL:
        break;
    case VP_PAGES_WINDOW: /* the next token looks at the last window - 1 and itself */
        behind = computed >= group->window ? computed - group->window + 1 : 0;
        break;
    case VP_PAGES_CHUNK:
        behind = computed / group->window * group->window;
        break;
    }
    return vp_ceil_div(total, group->block) - behind / group->block;
}

uint64_t vp_pool_units(const struct vp_block_pool *pool, uint32_t computed, uint32_t total) {
    uint64_t units = 0;

    for (uint32_t g = 0; g < pool->settings.groups; g++)
        units += vp_page_count(&pool->settings.group[g], computed, total) *
                 pool->settings.group[g].units;
    return units;
}

uint64_t vp_pool_most_units(const struct vp_block_pool *pool, uint64_t chunk, uint64_t total) {
    uint64_t units = 0;

    for (uint32_t g = 0; g < pool->settings.groups; g++) {
        const struct vp_page_group *group = &pool->settings.group[g];
        uint64_t most = group->pages;
        if (group->kind != VP_PAGES_FIXED)
            most = vp_ceil_div(total, group->block);
        if (group->kind == VP_PAGES_WINDOW || group->kind == VP_PAGES_CHUNK) /* inside a page */
            most = vp_min(most, vp_ceil_div(group->window + chunk, group->block) + 1);
        units += most * group->units;
    }
    return units;
}

uint64_t vp_pool_size(const struct vp_block_pool *pool) { return pool->settings.units; }
uint64_t vp_pool_held(const struct vp_block_pool *pool) { return pool->held; }
uint64_t vp_pool_available(const struct vp_block_pool *pool) {
    return pool->settings.units - pool->held;
}
uint64_t vp_pool_blank(const struct vp_block_pool *pool) {
    return pool->settings.units - pool->held - pool->unused;
}
bool vp_pool_shrinks(const struct vp_block_pool *pool) { return pool->shrinks; }

struct vp_block_pool *vp_pool_new(struct vp_arena *arena,
                                  const struct vp_cache_settings *settings) {
    struct vp_block_pool *pool = VP_NEW(arena, struct vp_block_pool);

    pool->arena = arena;
    pool->settings = *settings;
    for (uint32_t g = 0; g < settings->groups; g++) {
        const struct vp_page_group *group = &settings->group[g];
        if (group->kind == VP_PAGES_FULL)
            pool->block_units += group->units * (settings->block_tokens / group->block);
        else if (group->kind != VP_PAGES_FIXED)
            pool->shrinks = true;
    }
    pool->caching = settings->prefix_caching && pool->block_units > 0;
    pool->buckets = 64;
    pool->bucket = VP_NEW_ARRAY(arena, pool->buckets, struct vp_chain *);
    return pool;
}

/* ---- chains ---- */

static uint64_t bucket_of(const struct vp_block_pool *pool, uint64_t id) {
    return (id * 0x9e3779b97f4a7c15u >> 20) & (pool->buckets - 1); /* 2^64 over the golden ratio */
}

static struct vp_chain *find_chain(const struct vp_block_pool *pool, uint64_t id) {
    struct vp_chain *chain = pool->bucket[bucket_of(pool, id)];

    while (chain && chain->id != id)
        chain = chain->next;
    return chain;
}

static void more_buckets(struct vp_block_pool *pool) {
    struct vp_chain **old = pool->bucket;
    uint64_t count = pool->buckets;

    pool->buckets *= 4;
    pool->bucket = VP_NEW_ARRAY(pool->arena, pool->buckets, struct vp_chain *);
    for (uint64_t b = 0; b < count; b++)
        for (struct vp_chain *chain = old[b], *next; chain; chain = next) {
            struct vp_chain **slot = &pool->bucket[bucket_of(pool, chain->id)];
            next = chain->next;
            chain->next = *slot;
            *slot = chain;
        }
}

static struct vp_chain *get_chain(struct vp_block_pool *pool, uint64_t id) {
    struct vp_chain *chain = find_chain(pool, id), **slot;

    if (chain)
        return chain;
    if (pool->chains >= 2 * pool->buckets)
        more_buckets(pool);
    chain = pool->free_chains;
    if (chain)
        pool->free_chains = chain->next;
    else
        chain = VP_NEW(pool->arena, struct vp_chain);
    slot = &pool->bucket[bucket_of(pool, id)];
    *chain = (struct vp_chain){.id = id, .next = *slot};
    *slot = chain;
    pool->chains++;
    return chain;
}

static void drop_if_empty(struct vp_block_pool *pool, struct vp_chain *chain) {
    struct vp_chain **slot = &pool->bucket[bucket_of(pool, chain->id)];

    if (chain->holders || chain->cached > 0 || chain->host_to > 0)
        return;
    while (*slot != chain)
        slot = &(*slot)->next;
    *slot = chain->next;
    chain->next = pool->free_chains;
    pool->free_chains = chain;
    pool->chains--;
}

static void join(struct vp_chain *chain, struct vp_cache_seq *seq) {
    seq->chain = chain;
    seq->last = NULL;
    seq->next = chain->holders;
    if (chain->holders)
        chain->holders->last = seq;
    chain->holders = seq;
}

static void leave(struct vp_chain *chain, struct vp_cache_seq *seq) {
    if (seq->last)
        seq->last->next = seq->next;
    else
        chain->holders = seq->next;
    if (seq->next)
        seq->next->last = seq->last;
    seq->next = seq->last = NULL;
}

/* ---- host memory ---- */

static void host_unlink(struct vp_block_pool *pool, struct vp_chain *chain) {
    *(chain->host_older ? &chain->host_older->host_newer : &pool->host_oldest) = chain->host_newer;
    *(chain->host_newer ? &chain->host_newer->host_older : &pool->host_newest) = chain->host_older;
    chain->host_older = chain->host_newer = NULL;
}

static void host_link(struct vp_block_pool *pool, struct vp_chain *chain) {
    chain->host_older = pool->host_newest;
    *(pool->host_newest ? &pool->host_newest->host_newer : &pool->host_oldest) = chain;
    pool->host_newest = chain;
}

static void host_shorten(struct vp_block_pool *pool, struct vp_chain *chain, uint32_t by) {
    chain->host_to -= by;
    pool->host_used -= by;
    if (chain->host_to > chain->host_from)
        return;
    host_unlink(pool, chain);
    chain->host_from = chain->host_to = 0;
}

/* A block is copied before it is lost; where it does not join the copies that are there, it
 * replaces them. The chains that were used longest ago make room. */
static void host_store(struct vp_block_pool *pool, struct vp_chain *chain, uint32_t block) {
    uint64_t room = pool->settings.host_blocks;

    if (room == 0)
        return;
    if (chain->host_to > 0 && (block > chain->host_to || block + 1 < chain->host_from))
        host_shorten(pool, chain, chain->host_to - chain->host_from);
    if (chain->host_to == 0) {
        chain->host_from = chain->host_to = block;
    } else {
        host_unlink(pool, chain);
        pool->host_used -= chain->host_to - chain->host_from;
    }
    chain->host_from = (uint32_t)vp_min(chain->host_from, block);
    chain->host_to = (uint32_t)vp_max(chain->host_to, block + 1);
    pool->host_used += chain->host_to - chain->host_from;
    host_link(pool, chain);
    while (pool->host_used > room) {
        struct vp_chain *oldest = pool->host_oldest;
        assert(oldest);
        uint64_t there = oldest->host_to - oldest->host_from;
        host_shorten(pool, oldest, (uint32_t)vp_min(there, pool->host_used - room));
        if (oldest != chain)
            drop_if_empty(pool, oldest);
    }
}

/* ---- runs ---- */

static void unlink_run(struct vp_block_pool *pool, struct vp_block_run *run) {
    *(run->older ? &run->older->newer : &pool->oldest) = run->newer;
    *(run->newer ? &run->newer->older : &pool->newest) = run->older;
    if (run->chain) {
        *(run->below ? &run->below->above : &run->chain->lowest) = run->above;
        if (run->above)
            run->above->below = run->below;
    }
    if (run->seq)
        run->seq->leftover = NULL;
    run->newer = pool->free_runs;
    pool->free_runs = run;
}

/* The newest. Of a chain: below all others of it, or above them (its continuation). */
static struct vp_block_run *add_run(struct vp_block_pool *pool, uint32_t first, uint64_t count) {
    struct vp_block_run *run = pool->free_runs;

    if (run)
        pool->free_runs = run->newer;
    else
        run = VP_NEW(pool->arena, struct vp_block_run);
    *run = (struct vp_block_run){.first = first, .count = count, .older = pool->newest};
    *(pool->newest ? &pool->newest->newer : &pool->oldest) = run;
    pool->newest = run;
    pool->unused += count * pool->block_units;
    return run;
}

static void add_chain_run(struct vp_block_pool *pool, struct vp_chain *chain, uint32_t first,
                          uint64_t count) {
    struct vp_block_run *run = add_run(pool, first, count);

    run->chain = chain;
    run->above = chain->lowest;
    if (chain->lowest)
        chain->lowest->below = run;
    chain->lowest = run;
}

/* Nobody will ask for these blocks; they only wait for their turn. */
static void add_ballast(struct vp_block_pool *pool, uint64_t count) {
    if (pool->newest && !pool->newest->chain && !pool->newest->seq) {
        pool->newest->count += count;
        pool->unused += count * pool->block_units;
    } else {
        add_run(pool, 0, count);
    }
}

/* Unused blocks of a chain from `held` on come into use. */
static void use_blocks(struct vp_block_pool *pool, struct vp_chain *chain, uint32_t count) {
    uint64_t units = count * pool->block_units;

    chain->held += count;
    pool->unused -= units;
    pool->held += units;
    while (count > 0) {
        struct vp_block_run *run = chain->lowest;
        assert(run);
        uint32_t taken = (uint32_t)vp_min(run->count, count);
        run->first += taken;
        run->count -= taken;
        count -= taken;
        if (run->count == 0)
            unlink_run(pool, run);
    }
}

/* What a chain has unused behind its used blocks is given up. */
static void cut_chain(struct vp_chain *chain) {
    for (struct vp_block_run *run = chain->lowest, *above; run; run = above) {
        above = run->above;
        run->chain = NULL;
        run->above = run->below = NULL;
    }
    chain->lowest = NULL;
    chain->cached = chain->held;
}

/* Takes so many units that are available; blocks unused for longest go first. */
static void take(struct vp_block_pool *pool, uint64_t units) {
    uint64_t plain = vp_pool_blank(pool);

    pool->held += units;
    if (units <= plain)
        return;
    for (uint64_t blocks = vp_ceil_div(units - plain, pool->block_units); blocks > 0;) {
        struct vp_block_run *run = pool->oldest;
        uint64_t gone = vp_min(run->count, blocks);
        struct vp_chain *chain = run->chain;
        run->count -= gone;
        blocks -= gone;
        pool->unused -= gone * pool->block_units;
        if (chain) {
            assert(run->first + run->count + gone == chain->cached);
            for (uint64_t i = 0; i < gone; i++)
                host_store(pool, chain, --chain->cached);
        }
        if (run->count == 0)
            unlink_run(pool, run);
        if (chain)
            drop_if_empty(pool, chain);
    }
}

/* ---- what sequences do ---- */

struct vp_cache_hit vp_pool_look_up(struct vp_block_pool *pool, const struct vp_cache_seq *seq,
                                    uint64_t prefix_id, uint32_t shared_tokens, uint32_t limit) {
    uint32_t block = pool->settings.block_tokens, most = limit / block;
    struct vp_chain *chain = pool->caching && prefix_id ? find_chain(pool, prefix_id) : NULL;
    struct vp_cache_hit hit = {0};
    uint32_t there = 0;

    if (chain) {
        uint32_t asked = (uint32_t)vp_min(most, shared_tokens / block);
        hit.shared_blocks = (uint32_t)vp_min(asked, chain->cached);
        there = hit.shared_blocks;
        if (chain->host_from <= there && there < chain->host_to)
            hit.host_blocks = (uint32_t)vp_min(asked, chain->host_to) - there;
        there += hit.host_blocks;
    }
    if (seq->leftover && hit.host_blocks == 0 && seq->leftover->first == there && most > there)
        hit.leftover_blocks = (uint32_t)vp_min(seq->leftover->count, most - there);
    hit.tokens = (there + hit.leftover_blocks) * block;
    return hit;
}

/* Units of the chain that come into use by the hit, and those of the sequence's own. */
static uint64_t newly_used(const struct vp_block_pool *pool, const struct vp_chain *chain,
                           const struct vp_cache_hit *hit) {
    if (!chain || hit->shared_blocks <= chain->held)
        return 0;
    return (hit->shared_blocks - chain->held) * pool->block_units;
}

static uint64_t own_units(const struct vp_block_pool *pool, uint32_t shared_blocks,
                          uint32_t computed, uint32_t total) {
    return vp_pool_units(pool, computed, total) - shared_blocks * pool->block_units;
}

bool vp_pool_fits(const struct vp_block_pool *pool, const struct vp_cache_hit *hit,
                  uint64_t prefix_id, uint32_t computed, uint32_t total, uint64_t keep) {
    const struct vp_chain *chain = pool->caching && prefix_id ? find_chain(pool, prefix_id) : NULL;
    uint64_t needed =
        newly_used(pool, chain, hit) + own_units(pool, hit->shared_blocks, computed, total) + keep;
    return needed <= vp_pool_available(pool);
}

bool vp_pool_admit(struct vp_block_pool *pool, struct vp_cache_seq *seq, uint64_t prefix_id,
                   const struct vp_cache_hit *hit, uint32_t computed, uint32_t total,
                   uint64_t keep) {
    if (!vp_pool_fits(pool, hit, prefix_id, computed, total, keep))
        return false;
    if (pool->caching && prefix_id) {
        struct vp_chain *chain = get_chain(pool, prefix_id);
        join(chain, seq);
        if (hit->shared_blocks > chain->held)
            use_blocks(pool, chain, hit->shared_blocks - chain->held);
        seq->shared_blocks = hit->shared_blocks;
        if (hit->host_blocks > 0) {
            host_unlink(pool, chain);
            host_link(pool, chain);
        }
    }
    if (seq->leftover) { /* its blocks are free for the moment, then its own again */
        pool->unused -= seq->leftover->count * pool->block_units;
        unlink_run(pool, seq->leftover);
    }
    seq->own_units = own_units(pool, seq->shared_blocks, computed, total);
    take(pool, seq->own_units);
    return true;
}

bool vp_pool_grow(struct vp_block_pool *pool, struct vp_cache_seq *seq, uint32_t computed,
                  uint32_t total) {
    uint64_t wanted = own_units(pool, seq->shared_blocks, computed, total);

    if (wanted > seq->own_units) {
        if (wanted - seq->own_units > vp_pool_available(pool))
            return false;
        take(pool, wanted - seq->own_units);
    } else {
        pool->held -= seq->own_units - wanted;
    }
    seq->own_units = wanted;
    return true;
}

void vp_pool_publish(struct vp_block_pool *pool, struct vp_cache_seq *seq, uint32_t computed,
                     uint32_t shared_tokens) {
    struct vp_chain *chain = seq->chain;
    uint32_t full;

    if (!chain || seq->shared_blocks != chain->cached)
        return; /* another one was first: these stay copies of its own */
    full = (uint32_t)(vp_min(computed, shared_tokens) / pool->settings.block_tokens);
    if (full <= chain->cached)
        return;
    seq->own_units -= (full - chain->cached) * pool->block_units;
    seq->shared_blocks = chain->held = chain->cached = full;
}

void vp_pool_move(struct vp_cache_seq *to, struct vp_cache_seq *from) {
    *to = *from;
    if (to->chain)
        *(to->last ? &to->last->next : &to->chain->holders) = to;
    if (to->next)
        to->next->last = to;
    if (to->leftover)
        to->leftover->seq = to;
    *from = (struct vp_cache_seq){0};
}

/* Own full blocks of a sequence that has given its pages back. */
static void keep_blocks(struct vp_block_pool *pool, struct vp_cache_seq *seq, uint64_t count,
                        enum vp_cache_keep keep) {
    struct vp_chain *chain = seq->chain;

    if (keep == VP_KEEP_OWN) {
        seq->leftover = add_run(pool, seq->shared_blocks, count);
        seq->leftover->seq = seq;
    } else if (keep == VP_KEEP_NEXT && chain && chain->held == seq->shared_blocks) {
        cut_chain(chain);
        add_chain_run(pool, chain, chain->cached, count);
        chain->cached += (uint32_t)count;
    } else {
        add_ballast(pool, count);
    }
}

void vp_pool_release(struct vp_block_pool *pool, struct vp_cache_seq *seq, uint32_t computed,
                     enum vp_cache_keep keep) {
    struct vp_chain *chain = seq->chain;
    uint32_t held = 0;

    pool->held -= seq->own_units;
    if (pool->caching && keep != VP_KEEP_NOTHING) {
        uint64_t full = computed / pool->settings.block_tokens;
        uint64_t own = full > seq->shared_blocks ? full - seq->shared_blocks : 0;
        own = vp_min(own, seq->own_units / pool->block_units);
        if (own > 0)
            keep_blocks(pool, seq, own, keep);
    }
    if (chain) {
        leave(chain, seq);
        for (struct vp_cache_seq *other = chain->holders; other && held < chain->held;
             other = other->next)
            held = (uint32_t)vp_max(held, other->shared_blocks);
        if (held < chain->held) {
            uint64_t count = chain->held - held;
            pool->held -= count * pool->block_units;
            add_chain_run(pool, chain, held, count);
            chain->held = held;
        }
        drop_if_empty(pool, chain);
    }
    seq->chain = NULL;
    seq->shared_blocks = 0;
    seq->own_units = 0;
}

void vp_pool_forget(struct vp_cache_seq *seq) {
    if (seq->leftover)
        seq->leftover->seq = NULL;
    seq->leftover = NULL;
}

/* ---- the books ---- */

static bool chain_is_sound(const struct vp_chain *chain) {
    uint32_t held = 0, at = chain->held;

    for (const struct vp_cache_seq *seq = chain->holders; seq; seq = seq->next)
        held = (uint32_t)vp_max(held, seq->shared_blocks);
    for (const struct vp_block_run *run = chain->lowest; run; run = run->above) {
        if (run->first != at || run->chain != chain || run->count == 0)
            return false;
        at += (uint32_t)run->count;
    }
    return held == chain->held && at == chain->cached;
}

bool vp_pool_is_sound(const struct vp_block_pool *pool, uint64_t own) {
    uint64_t unused = 0, host = 0;

    for (const struct vp_block_run *run = pool->oldest; run; run = run->newer)
        unused += run->count * pool->block_units;
    for (uint64_t b = 0; b < pool->buckets; b++)
        for (const struct vp_chain *chain = pool->bucket[b]; chain; chain = chain->next) {
            own += chain->held * pool->block_units;
            host += chain->host_to - chain->host_from;
            if (!chain_is_sound(chain))
                return false;
        }
    return own == pool->held && unused == pool->unused && host == pool->host_used &&
           host <= pool->settings.host_blocks && pool->held + pool->unused <= pool->settings.units;
}
