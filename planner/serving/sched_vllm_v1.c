/* vLLM V1: one budget of tokens per step, first for those that run (one token, or the next part of
 * a prompt), then for those that wait. When a running sequence finds no page, the one admitted
 * last (by priority: the least important) is preempted and computed again later.
 *
 * Sources: vllm/v1/core/sched/scheduler.py and v1/core/kv_cache_manager.py (main, 2026);
 * watermark: pull request 44594, June 2026, 0 by default; whole prompts at admission:
 * scheduler_reserve_full_isl, pull request 37307, March 2026. */
#include "planner/serving/sim_parts.h"

static uint32_t limited(const struct vp_scheduler_settings *s, uint32_t tokens) {
    return s->long_prefill_tokens > 0 && tokens > s->long_prefill_tokens ? s->long_prefill_tokens
                                                                         : tokens;
}

/* ---- those that run ---- */

static uint32_t victim(const struct vp_sim_engine *engine) {
    uint32_t worst = engine->running_count - 1;

    if (engine->waiting.by_priority)
        for (uint32_t i = 0; i < engine->running_count; i++)
            if (vp_wait_before(engine->running[worst], engine->running[i]))
                worst = i;
    return worst;
}

/* Pages for the next tokens of running[*at]; false: it had to go itself. */
static bool make_room(struct vp_sim_engine *engine, uint32_t *at, uint32_t tokens,
                      uint32_t *budget) {
    struct vp_sim_seq *seq = engine->running[*at];

    while (!vp_pool_grow(engine->pool, &seq->cache, seq->computed, seq->computed + tokens)) {
        uint32_t index = victim(engine);
        struct vp_sim_seq *gone = vp_engine_remove(engine, index);
        if (index < *at) { /* it was in this step already */
            *budget += gone->chunk;
            (*at)--;
        }
        vp_engine_preempt(engine, gone);
        if (gone == seq)
            return false;
    }
    return true;
}

static void schedule_running(struct vp_sim_engine *engine, uint32_t *budget) {
    const struct vp_scheduler_settings *s = &engine->settings->scheduler;

    for (uint32_t i = 0; i<engine->running_count && * budget> 0; i++) {
        struct vp_sim_seq *seq = engine->running[i];
        uint32_t tokens = vp_seq_known(seq) - seq->computed;
        if (vp_engine_waits(engine, seq))
            continue;
        if (vp_seq_decodes(seq))
            tokens += s->draft_tokens;
        tokens = (uint32_t)vp_min(limited(s, tokens), *budget);
        if (!make_room(engine, &i, tokens, budget))
            return;
        vp_engine_add(engine, seq, tokens);
        *budget -= tokens;
    }
}

/* ---- those that wait ---- */

/* false: it waits on. */
static bool admit(struct vp_sim_engine *engine, struct vp_sim_seq *seq, uint32_t *budget) {
    const struct vp_scheduler_settings *s = &engine->settings->scheduler;
    uint64_t keep = engine->running_count > 0 ? engine->keep_units : 0;
    uint64_t id = seq->loaded > 0 ? 0 : seq->prefix_id;
    uint32_t known = vp_seq_known(seq), computed, tokens;
    struct vp_cache_hit hit = vp_engine_look_up(engine, seq, &computed);
    uint64_t last;

    tokens = limited(s, known - computed);
    if (!s->chunked && tokens > *budget) {
        engine->blocked = VP_BLOCKED_TOKENS;
        return false;
    }
    tokens = (uint32_t)vp_min(tokens, *budget);
    engine->blocked = VP_BLOCKED_MEMORY;
    /* by its last step: what lies behind windows is free by then */
    last = vp_min(s->token_budget > 0 ? s->token_budget : UINT32_MAX, known - computed);
    if (s->whole_prompt_fits &&
        !vp_pool_fits(engine->pool, &hit, id, known - (uint32_t)last, known, keep))
        return false;
    if (!vp_pool_admit(engine->pool, &seq->cache, id, &hit, computed, computed + tokens, keep))
        return false;
    engine->blocked = VP_BLOCKED_NOT;
    vp_engine_admit(engine, seq, computed, &hit);
    if (vp_engine_waits(engine, seq))
        return true;
    vp_engine_add(engine, seq, tokens);
    *budget -= tokens;
    return true;
}

static void schedule_waiting(struct vp_sim_engine *engine, uint32_t *budget) {
    uint32_t skipped = 0;

    while (engine->waiting.count > 0 && *budget > 0) {
        struct vp_sim_seq *seq = vp_wait_peek(&engine->waiting);
        if (engine->running_count == engine->room) {
            engine->blocked = VP_BLOCKED_SLOTS;
            break;
        }
        if (!vp_engine_adapter(engine, seq) && skipped < engine->room) {
            engine->spare[skipped++] = vp_wait_pop(&engine->waiting);
            continue;
        }
        if (!vp_engine_adapter(engine, seq) || !admit(engine, seq, budget))
            break;
    }
    if (engine->waiting.count > 0 && engine->blocked == VP_BLOCKED_NOT)
        engine->blocked = VP_BLOCKED_TOKENS;
    if (skipped > 0 && engine->blocked == VP_BLOCKED_NOT)
        engine->blocked = VP_BLOCKED_SLOTS; /* of adapters */
    while (skipped > 0)
        vp_wait_push_front(&engine->waiting, engine->sim->arena, engine->spare[--skipped]);
}

static void plan(struct vp_sim_engine *engine) {
    const struct vp_scheduler_settings *s = &engine->settings->scheduler;
    uint32_t budget = s->token_budget > 0 ? s->token_budget : UINT32_MAX;

    schedule_running(engine, &budget);
    if (!engine->preempted)
        schedule_waiting(engine, &budget);
    else if (engine->waiting.count > 0)
        engine->blocked = VP_BLOCKED_MEMORY;
    engine->steady = engine->waiting.count == 0 || engine->blocked == VP_BLOCKED_SLOTS ||
                     (engine->blocked == VP_BLOCKED_MEMORY && !engine->preempted &&
                      !vp_pool_shrinks(engine->pool));
}

static bool hears(const struct vp_sim_engine *engine) {
    return engine->waiting.count == 0 || (engine->running_count < engine->room &&
                                          (engine->waiting.by_priority || engine->adapter));
}

const struct vp_scheduler VP_SCHEDULER_VLLM_V1 = {
    .plan = plan, .hears = hears, .publishes_early = true};
