/* llama-server: a fixed number of slots that share the context. A request takes the
 * free slot whose last contents begin as its prompt does (for at least a tenth of it), else the
 * one used longest ago; what is alike stays in the slot's cache. An iteration has a token of every
 * generating slot and, up to n_batch in all, prompts in the order of the slots.
 *
 * Sources: ggml-org/llama.cpp tools/server/server-context.cpp (update_slots, get_available_slot;
 * slot-prompt-similarity 0.10), 2025 to 2026. Left out: context shift (a request that does not fit
 * its slot is refused), prompt caches in host memory. Where max_model_len is longer than a slot's
 * share the cache is a unified one: when it is full the server fails what it has begun. */
#include "planner/serving/sim_parts.h"

static const double LEAST_ALIKE = 0.1;

static uint32_t alike(const struct vp_sim_slot *slot, const struct vp_sim_seq *seq) {
    if (seq->prefix_id == 0 || slot->prefix_id != seq->prefix_id)
        return 0;
    /* the last token is computed in any case */
    return (uint32_t)vp_min(vp_min(slot->tokens, seq->shared_prefix), seq->prompt - 1);
}

static struct vp_sim_slot *choose(struct vp_sim_engine *engine, const struct vp_sim_seq *seq) {
    struct vp_sim_slot *best = NULL, *oldest = NULL;
    uint32_t most = 0;

    for (uint32_t i = 0; i < engine->room; i++) {
        struct vp_sim_slot *slot = &engine->slot[i];
        uint32_t same = alike(slot, seq);
        if (slot->seq)
            continue;
        if (same > most && same > LEAST_ALIKE * seq->prompt) {
            most = same;
            best = slot;
        }
        if (!oldest || slot->used_us < oldest->used_us)
            oldest = slot;
    }
    return best ? best : oldest;
}

static void assign(struct vp_sim_engine *engine) {
    const struct vp_cache_hit none = {0};

    while (engine->waiting.count > 0) {
        struct vp_sim_seq *seq = vp_wait_peek(&engine->waiting);
        struct vp_sim_slot *slot = choose(engine, seq);
        uint32_t same;
        if (!slot) {
            engine->blocked = VP_BLOCKED_SLOTS;
            return;
        }
        same = alike(slot, seq);
        if (!vp_pool_admit(engine->pool, &seq->cache, 0, &none, same, vp_seq_known(seq), 0)) {
            engine->blocked = VP_BLOCKED_MEMORY;
            return;
        }
        *slot = (struct vp_sim_slot){
            .seq = seq, .prefix_id = seq->prefix_id, .used_us = engine->now_us};
        vp_engine_admit(engine, seq, same, &none);
    }
}

/* Slots whose request has ended keep its tokens. */
static void clear(struct vp_sim_engine *engine) {
    for (uint32_t i = 0; i < engine->room; i++) {
        struct vp_sim_slot *slot = &engine->slot[i];
        bool runs = false;
        for (uint32_t r = 0; r < engine->running_count && slot->seq && !runs; r++)
            runs = engine->running[r] == slot->seq;
        if (!slot->seq || runs)
            continue;
        slot->seq = NULL;
        slot->used_us = engine->now_us;
    }
}

/* Tokens of the slots that generate, or parts of prompts. */
static uint32_t add_slots(struct vp_sim_engine *engine, bool prompts, uint32_t *budget) {
    uint32_t draft = prompts ? 0 : engine->settings->scheduler.draft_tokens, added = 0;

    for (uint32_t i = 0; i<engine->room && * budget> 0; i++) {
        struct vp_sim_slot *slot = &engine->slot[i];
        struct vp_sim_seq *seq = slot->seq;
        uint32_t tokens;
        if (!seq || vp_seq_decodes(seq) == prompts)
            continue;
        tokens = (uint32_t)vp_min(vp_seq_known(seq) - seq->computed + draft, *budget);
        if (!vp_pool_grow(engine->pool, &seq->cache, seq->computed, vp_seq_known(seq) + draft))
            continue;
        slot->tokens = vp_seq_known(seq);
        vp_engine_add(engine, seq, tokens);
        *budget -= tokens;
        added++;
    }
    return added;
}

/* The shared cache is full and nobody gets on: the server fails all that it has begun. */
static void fail_all(struct vp_sim_engine *engine) {
    uint32_t count = engine->running_count;

    for (uint32_t i = 0; i < engine->room; i++)
        engine->slot[i] = (struct vp_sim_slot){.used_us = engine->now_us};
    engine->running_count = 0;
    vp_metrics_level(&engine->sim->metrics, engine->now_us, -(int64_t)count, 0);
    for (uint32_t i = 0; i < count; i++)
        vp_sim_drop(engine->sim, engine, engine->running[i]);
}

static void plan(struct vp_sim_engine *engine) {
    const struct vp_scheduler_settings *s = &engine->settings->scheduler;
    uint32_t budget = s->token_budget > 0 ? s->token_budget : UINT32_MAX;

    clear(engine);
    assign(engine);
    while (add_slots(engine, false, &budget) + add_slots(engine, true, &budget) == 0 &&
           engine->running_count > 0) {
        fail_all(engine);
        engine->blocked = VP_BLOCKED_NOT;
        assign(engine);
    }
    engine->steady = engine->waiting.count == 0 || engine->blocked == VP_BLOCKED_SLOTS;
}

static bool hears(const struct vp_sim_engine *engine) {
    return engine->waiting.count == 0 || engine->running_count < engine->room;
}

/* What a run has written. */
static void decoded(struct vp_sim_engine *engine, uint64_t iterations) {
    (void)iterations;
    for (uint32_t i = 0; i < engine->room; i++)
        if (engine->slot[i].seq)
            engine->slot[i].tokens = vp_seq_known(engine->slot[i].seq);
}

const struct vp_scheduler VP_SCHEDULER_LLAMA = {.plan = plan, .hears = hears, .decoded = decoded};
