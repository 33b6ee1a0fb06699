/* SGLang: prompts first, in batches of their own of at most chunked_prefill_size (a longer one is
 * cut, one at a time) and max_prefill_tokens. A request is admitted when its prompt, all of its
 * output and a share (new_token_ratio) of what the running ones may still write fit; the share
 * falls with every decode step. Where a decode step finds no room, those with the least output are
 * retracted to the end of the queue until 20 steps fit, and the share is estimated anew. After a
 * request did not fit none is tried until one has ended.
 *
 * Sources: sglang/srt/managers/schedule_policy.py (PrefillAdder), schedule_batch.py
 * (retract_decode), scheduler.py, environ.py (ratio 0.7, its floor 0.14 of that, 600 steps, 20,
 * 4096), 2024 to 2026. How much a request may write is taken to be what it writes. Left out:
 * longest-prefix-first order (the queue is first come first served), mixed chunks, overlapped
 * scheduling (one step late), pools of their own for windows and states. */
#include <math.h>
#include <stdlib.h>

#include "planner/serving/sim_parts.h"

enum {
    MAX_NEW_TOKENS = 4096, /* of one request, for the estimate */
    RETRACT_STEPS = 20
};

static uint32_t may_write(const struct vp_sim_seq *seq) {
    return (uint32_t)vp_min(seq->output - seq->made, MAX_NEW_TOKENS);
}

struct prefill {
    double total;         /* tokens of the pool that are left, */
    int64_t input, chunk; /* of the batch's limits */
    uint32_t page, added;
};

static double pool_tokens(const struct vp_sim_engine *engine) {
    const struct vp_cache_settings *cache = &engine->settings->cache;
    uint64_t units = 0; /* of one block */

    for (uint32_t g = 0; g < cache->groups; g++)
        if (cache->group[g].kind == VP_PAGES_FULL)
            units += cache->group[g].units * (cache->block_tokens / cache->group[g].block);
    if (units == 0)
        return INFINITY;
    return (double)vp_pool_available(engine->pool) / (double)units * cache->block_tokens;
}

static void charge(struct prefill *p, uint32_t tokens, uint32_t later) {
    double paged = (double)(vp_ceil_div(tokens, p->page) * p->page);

    p->total -= paged + later;
    p->input -= (int64_t)paged;
    p->chunk -= (int64_t)paged;
    p->added++;
}

/* The rest of the prompt that was cut last, if there is one. */
static void continue_prompt(struct vp_sim_engine *engine, struct prefill *p) {
    for (uint32_t i = 0; i < engine->running_count; i++) {
        struct vp_sim_seq *seq = engine->running[i];
        uint32_t left = vp_seq_known(seq) - seq->computed, tokens = left;
        if (vp_seq_decodes(seq))
            continue;
        if (tokens > p->chunk)
            tokens = (uint32_t)p->chunk;
        if (!vp_pool_grow(engine->pool, &seq->cache, seq->computed, seq->computed + tokens))
            continue; /* decoding goes on until something ends */
        vp_engine_add(engine, seq, tokens);
        charge(p, tokens, tokens < left ? 0 : may_write(seq));
    }
}

/* false: no more. */
static bool admit(struct vp_sim_engine *engine, struct prefill *p) {
    struct vp_sim_seq *seq = vp_wait_peek(&engine->waiting);
    bool linked = seq->loaded > 0;
    uint64_t id = linked ? 0 : seq->prefix_id;
    uint32_t computed, known = vp_seq_known(seq), tokens;
    struct vp_cache_hit hit = vp_engine_look_up(engine, seq, &computed);
    bool alone = engine->running_count == 0, whole = true;

    tokens = known - computed;
    if (!alone && (double)tokens + may_write(seq) + p->page >= p->total) {
        engine->blocked = engine->full = VP_BLOCKED_MEMORY;
        return false;
    }
    if (p->added > 0 && (int64_t)tokens >= p->input) {
        engine->blocked = VP_BLOCKED_TOKENS;
        return false;
    }
    if ((int64_t)tokens > p->chunk) {
        whole = false;
        tokens = (uint32_t)(p->chunk / p->page * p->page);
        if (tokens == 0) {
            engine->blocked = VP_BLOCKED_TOKENS;
            return false;
        }
    }
    if (!vp_pool_admit(engine->pool, &seq->cache, id, &hit, computed, computed + tokens, 0)) {
        engine->blocked = VP_BLOCKED_MEMORY;
        engine->full = alone ? VP_BLOCKED_NOT : VP_BLOCKED_MEMORY;
        return false;
    }
    vp_engine_admit(engine, seq, computed, &hit);
    if (linked) { /* it decodes with the others once its cache is there */
        vp_engine_waits(engine, seq);
        return true;
    }
    engine->extra_us += seq->ready_us - engine->now_us; /* the batch waits for the copy */
    seq->ready_us = engine->now_us;
    vp_engine_add(engine, seq, tokens);
    charge(p, tokens, whole ? may_write(seq) : 0);
    return whole && p->chunk > 0;
}

/* true: there is a batch of prompts. */
static bool prefill_batch(struct vp_sim_engine *engine) {
    const struct vp_scheduler_settings *s = &engine->settings->scheduler;
    struct prefill p = {.total = pool_tokens(engine),
                        .input = s->token_budget > 0 ? s->token_budget : INT64_MAX / 2,
                        .chunk = s->chunk_tokens > 0 ? s->chunk_tokens : INT64_MAX / 2,
                        .page = engine->settings->cache.block_tokens};

    for (uint32_t i = 0; i < engine->running_count; i++)
        if (vp_seq_decodes(engine->running[i]))
            p.total -= may_write(engine->running[i]) * engine->new_token_ratio;
    continue_prompt(engine, &p);
    while (engine->waiting.count > 0 && !engine->full) {
        if (engine->running_count == engine->room ||
            !vp_engine_adapter(engine, vp_wait_peek(&engine->waiting))) {
            engine->blocked = engine->full = VP_BLOCKED_SLOTS;
            break;
        }
        if (p.chunk <= 0 || !admit(engine, &p))
            break;
    }
    if (engine->waiting.count > 0 && engine->blocked == VP_BLOCKED_NOT)
        engine->blocked = engine->full ? engine->full : VP_BLOCKED_TOKENS;
    return p.added > 0;
}

/* ---- decoding ---- */

static int least_output_last(const void *a, const void *b) {
    const struct vp_sim_seq *x = *(struct vp_sim_seq *const *)a,
                            *y = *(struct vp_sim_seq *const *)b;
    if (x->made != y->made)
        return x->made > y->made ? -1 : 1;
    if (x->prompt != y->prompt)
        return x->prompt < y->prompt ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

static void retract(struct vp_sim_engine *engine) {
    uint32_t count = engine->running_count, gone = 0;
    double made = 0, output = 1;

    for (uint32_t i = 0; i < count; i++)
        engine->spare[i] = engine->running[i];
    qsort(engine->spare, count, sizeof(struct vp_sim_seq *), least_output_last);
    while (count - gone > 1 &&
           (gone == 0 || pool_tokens(engine) < (count - gone) * RETRACT_STEPS)) {
        struct vp_sim_seq *seq = engine->spare[count - ++gone];
        uint32_t at = 0;
        while (engine->running[at] != seq)
            at++;
        vp_engine_remove(engine, at);
        vp_engine_preempt(engine, seq);
    }
    for (uint32_t i = 0; i < engine->running_count; i++) {
        made += engine->running[i]->made + RETRACT_STEPS;
        output += engine->running[i]->output;
    }
    engine->new_token_ratio = fmin(made / output, 1);
    engine->full = VP_BLOCKED_NOT;
}

static uint64_t wanted(struct vp_sim_engine *engine) {
    uint32_t tokens = 1 + engine->settings->scheduler.draft_tokens;
    uint64_t units = 0;

    for (uint32_t i = 0; i < engine->running_count; i++) {
        const struct vp_sim_seq *seq = engine->running[i];
        if (vp_seq_decodes(seq) && !vp_engine_waits(engine, seq))
            units += vp_pool_units(engine->pool, seq->computed, seq->computed + tokens) -
                     vp_pool_units(engine->pool, seq->computed, seq->computed);
    }
    return units;
}

static void lower_ratio(struct vp_sim_engine *engine, double steps) {
    const struct vp_scheduler_settings *s = &engine->settings->scheduler;
    engine->new_token_ratio = fmax(engine->new_token_ratio - steps * s->new_token_ratio_decay,
                                   fmin(s->min_new_token_ratio, engine->new_token_ratio));
}

static void decode_batch(struct vp_sim_engine *engine) {
    uint32_t tokens = 1 + engine->settings->scheduler.draft_tokens;

    if (wanted(engine) > vp_pool_available(engine->pool))
        retract(engine);
    else
        lower_ratio(engine, 1);
    for (uint32_t i = 0; i < engine->running_count; i++) {
        struct vp_sim_seq *seq = engine->running[i];
        if (vp_seq_decodes(seq) && !vp_engine_waits(engine, seq) &&
            vp_pool_grow(engine->pool, &seq->cache, seq->computed, seq->computed + tokens))
            vp_engine_add(engine, seq, tokens);
    }
}

static void plan(struct vp_sim_engine *engine) {
    if (engine->running_count == 0) { /* nothing is left to wait for */
        engine->new_token_ratio = engine->settings->scheduler.new_token_ratio;
        engine->full = VP_BLOCKED_NOT;
    }
    if (!prefill_batch(engine))
        decode_batch(engine);
    engine->steady = !engine->preempted && (engine->waiting.count == 0 || engine->full);
}

static bool hears(const struct vp_sim_engine *engine) {
    return engine->waiting.count == 0 || (!engine->full && engine->running_count < engine->room);
}

static void decoded(struct vp_sim_engine *engine, uint64_t iterations) {
    if (!engine->preempted)
        lower_ratio(engine, (double)(iterations - 1));
}

const struct vp_scheduler VP_SCHEDULER_SGLANG = {.plan = plan, .hears = hears, .decoded = decoded};
