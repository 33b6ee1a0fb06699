/* vLLM V0 (up to 0.8 by default): prompts first, in steps of their own, whole; only when none can
 * be admitted do the running sequences get their next token. With chunked prefill one budget, the
 * running ones first. The newest running sequence is preempted where a page is missing, to be
 * computed again or, with swap, to go to host memory; while any is there nobody is admitted. A
 * share of the pool (0.01) stays free at admission.
 *
 * Sources: vllm/core/scheduler.py and core/block_manager.py of v0.6 to v0.8. Left out: the delay
 * factor, priority's preemption of running sequences for waiting ones. */
#include "planner/serving/sim_parts.h"

static double copy_us(const struct vp_sim_engine *engine, uint64_t units) {
    const struct vp_cache_settings *cache = &engine->settings->cache;
    uint64_t block = 0;

    for (uint32_t g = 0; g < cache->groups; g++)
        block += cache->group[g].units;
    return block > 0 ? cache->host_block_us * (double)units / (double)block : 0;
}

/* ---- those that wait ---- */

static bool admit(struct vp_sim_engine *engine, struct vp_sim_seq *seq, uint32_t *budget) {
    const struct vp_scheduler_settings *s = &engine->settings->scheduler;
    bool linked = seq->loaded > 0;
    uint64_t id = linked ? 0 : seq->prefix_id;
    uint32_t known = vp_seq_known(seq), computed, tokens;
    struct vp_cache_hit hit = vp_engine_look_up(engine, seq, &computed);

    tokens = known - computed;
    if (!s->chunked && tokens > *budget) {
        engine->blocked = VP_BLOCKED_TOKENS;
        return false;
    }
    tokens = (uint32_t)vp_min(tokens, *budget);
    /* the whole prompt gets its pages at once, chunked or not */
    if (!vp_pool_admit(engine->pool, &seq->cache, id, &hit, computed, known, engine->keep_units)) {
        engine->blocked = VP_BLOCKED_MEMORY;
        return false;
    }
    vp_engine_admit(engine, seq, computed, &hit);
    if (linked) { /* it decodes with the others once its cache is there */
        if (!vp_engine_waits(engine, seq) && s->chunked) {
            vp_engine_add(engine, seq, tokens);
            *budget -= tokens;
        }
        return true;
    }
    if (seq->ready_us > engine->now_us) /* the step waits for the copy */
        engine->extra_us += seq->ready_us - engine->now_us;
    seq->ready_us = engine->now_us;
    vp_engine_add(engine, seq, tokens);
    *budget -= tokens;
    return true;
}

/* true: there are prompts to compute. */
static bool admit_waiting(struct vp_sim_engine *engine, uint32_t *budget) {
    uint32_t skipped = 0, admitted = 0;

    while (engine->waiting.count > 0 && *budget > 0) {
        struct vp_sim_seq *seq = vp_wait_peek(&engine->waiting);
        if (engine->running_count == engine->room) {
            engine->blocked = VP_BLOCKED_SLOTS;
            break;
        }
        if (!vp_engine_adapter(engine, seq)) {
            if (skipped == engine->room)
                break;
            engine->spare[skipped++] = vp_wait_pop(&engine->waiting);
        } else if (admit(engine, seq, budget)) {
            admitted += seq->chunk > 0;
        } else {
            break;
        }
    }
    if (engine->waiting.count > 0 && engine->blocked == VP_BLOCKED_NOT)
        engine->blocked = VP_BLOCKED_TOKENS;
    if (skipped > 0 && engine->blocked == VP_BLOCKED_NOT)
        engine->blocked = VP_BLOCKED_SLOTS;
    while (skipped > 0)
        vp_wait_push_front(&engine->waiting, engine->sim->arena, engine->spare[--skipped]);
    return admitted > 0;
}

/* ---- those that run ---- */

static void preempt_last(struct vp_sim_engine *engine) {
    struct vp_sim_seq *seq = vp_engine_remove(engine, engine->running_count - 1);
    struct vp_sim_metrics *m = &engine->sim->metrics;
    uint64_t units = seq->cache.own_units;

    if (!engine->settings->scheduler.swap || engine->swapped_count == engine->room) {
        vp_engine_preempt(engine, seq);
        return;
    }
    vp_pool_release(engine->pool, &seq->cache, seq->computed, VP_KEEP_NOTHING);
    seq->chunk = 0;
    seq->preemptions++;
    engine->preempted = true;
    engine->extra_us += copy_us(engine, units);
    engine->swapped[engine->swapped_count++] = seq;
    m->out->all.swaps++;
    if (vp_engine_counted(engine))
        vp_engine_counted(engine)->swaps++;
    vp_metrics_level(m, engine->now_us, -1, 1);
}

static void run_one(struct vp_sim_engine *engine, uint32_t i, uint32_t *budget) {
    struct vp_sim_seq *seq = engine->running[i];
    bool decodes = vp_seq_decodes(seq);
    uint32_t tokens = vp_seq_known(seq) - seq->computed;
    uint32_t draft = decodes ? engine->settings->scheduler.draft_tokens : 0;

    tokens = (uint32_t)vp_min(tokens + draft, *budget);
    while (!vp_pool_grow(engine->pool, &seq->cache, seq->computed,
                         decodes ? seq->computed + tokens : vp_seq_known(seq))) {
        bool itself = engine->running[engine->running_count - 1] == seq;
        preempt_last(engine);
        if (itself)
            return;
    }
    vp_engine_add(engine, seq, tokens);
    *budget -= tokens;
}

/* Decoding ones, then the prompts that are under way (chunked prefill alone has them). */
static void schedule_running(struct vp_sim_engine *engine, uint32_t *budget) {
    for (int prompts = 0; prompts < 2; prompts++)
        for (uint32_t i = 0; i<engine->running_count && * budget> 0; i++)
            if (engine->running[i]->chunk == 0 && vp_seq_decodes(engine->running[i]) == !prompts &&
                !vp_engine_waits(engine, engine->running[i]))
                run_one(engine, i, budget);
}

static void swap_in(struct vp_sim_engine *engine, uint32_t *budget) {
    const struct vp_cache_hit none = {0};
    uint32_t done = 0;

    while (done < engine->swapped_count && engine->running_count<engine->room && * budget> 0) {
        struct vp_sim_seq *seq = engine->swapped[done];
        if (!vp_pool_admit(engine->pool, &seq->cache, 0, &none, seq->computed, vp_seq_known(seq),
                           engine->keep_units))
            break;
        engine->extra_us += copy_us(engine, seq->cache.own_units);
        engine->running[engine->running_count++] = seq;
        vp_metrics_level(&engine->sim->metrics, engine->now_us, 1, -1);
        vp_engine_add(engine, seq, (uint32_t)vp_min(vp_seq_known(seq) - seq->computed, *budget));
        *budget -= seq->chunk;
        done++;
    }
    engine->swapped_count -= done;
    for (uint32_t i = 0; i < engine->swapped_count; i++)
        engine->swapped[i] = engine->swapped[i + done];
    if (engine->swapped_count > 0)
        engine->blocked = VP_BLOCKED_MEMORY;
}

static void plan(struct vp_sim_engine *engine) {
    const struct vp_scheduler_settings *s = &engine->settings->scheduler;
    uint32_t budget = s->token_budget > 0 ? s->token_budget : UINT32_MAX;
    bool prompts = false;

    if (!s->chunked) {
        if (engine->swapped_count == 0)
            prompts = admit_waiting(engine, &budget);
        if (!prompts) {
            budget = UINT32_MAX; /* decoding has no budget but max_num_seqs */
            schedule_running(engine, &budget);
            if (!engine->preempted)
                swap_in(engine, &budget);
        }
    } else {
        schedule_running(engine, &budget);
        if (!engine->preempted)
            swap_in(engine, &budget);
        if (!engine->preempted && engine->swapped_count == 0)
            admit_waiting(engine, &budget);
    }
    if (engine->preempted || engine->swapped_count > 0)
        engine->blocked = VP_BLOCKED_MEMORY;
    engine->steady = !engine->preempted && engine->swapped_count == 0 &&
                     (engine->waiting.count == 0 || engine->blocked == VP_BLOCKED_SLOTS ||
                      (engine->blocked == VP_BLOCKED_MEMORY && !vp_pool_shrinks(engine->pool)));
}

static bool hears(const struct vp_sim_engine *engine) {
    return engine->waiting.count == 0 || (engine->running_count < engine->room &&
                                          (engine->waiting.by_priority || engine->adapter));
}

const struct vp_scheduler VP_SCHEDULER_VLLM_V0 = {.plan = plan, .hears = hears};
