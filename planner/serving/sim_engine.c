/* One replica: its queue, its running sequences, its iterations. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "planner/serving/sim_parts.h"

static const struct vp_scheduler *const SCHEDULERS[] = {
    [VP_SCHED_VLLM_V1] = &VP_SCHEDULER_VLLM_V1, [VP_SCHED_VLLM_V0] = &VP_SCHEDULER_VLLM_V0,
    [VP_SCHED_SGLANG] = &VP_SCHEDULER_SGLANG,   [VP_SCHED_LLAMA] = &VP_SCHEDULER_LLAMA,
    [VP_SCHED_STATIC] = &VP_SCHEDULER_STATIC,
};

void vp_engine_init(struct vp_sim_engine *engine, struct vp_sim *sim, uint32_t index,
                    const struct vp_pool_settings *settings) {
    enum { NO_LIMIT = 16384 }; /* sequences; more than any engine schedules */
    const struct vp_scheduler_settings *s = &settings->scheduler;
    struct vp_cache_settings cache = settings->cache;

    engine->sim = sim;
    engine->index = index;
    engine->settings = settings;
    engine->scheduler = SCHEDULERS[s->kind];
    engine->room = s->max_running > 0 ? s->max_running : NO_LIMIT;
    engine->running = VP_NEW_ARRAY(sim->arena, engine->room, struct vp_sim_seq *);
    engine->swapped = VP_NEW_ARRAY(sim->arena, engine->room, struct vp_sim_seq *);
    engine->spare = VP_NEW_ARRAY(sim->arena, engine->room, struct vp_sim_seq *);
    engine->waiting.by_priority = s->by_priority;
    /* vLLM V1 never gives out the first block: what lies behind a window points at it */
    if (s->kind == VP_SCHED_VLLM_V1 && cache.units > 0)
        cache.units--;
    engine->pool = vp_pool_new(sim->arena, &cache);
    engine->keep_units = (uint64_t)(s->watermark * (double)cache.units);
    engine->end_us = engine->wake_us = INFINITY;
    engine->new_token_ratio = s->new_token_ratio;
    if (s->kind == VP_SCHED_LLAMA)
        engine->slot = VP_NEW_ARRAY(sim->arena, engine->room, struct vp_sim_slot);
    if (s->adapters > 0 && s->kind != VP_SCHED_LLAMA && s->kind != VP_SCHED_STATIC)
        engine->adapter = VP_NEW_ARRAY(sim->arena, s->adapters, uint32_t);
    engine->least_us =
        settings->clock.iteration_us(settings->clock.state, &(struct vp_iteration){.decodes = 1});
    vp_random_seed(&engine->random, sim->settings->seed, 1000 + index);
}

bool vp_engine_refuses(const struct vp_sim_engine *engine, const struct vp_sim_seq *seq,
                       bool *too_long) {
    const struct vp_scheduler_settings *s = &engine->settings->scheduler;
    bool whole = !s->chunked && (s->kind == VP_SCHED_VLLM_V0 || s->kind == VP_SCHED_VLLM_V1);
    uint64_t total = (uint64_t)seq->prompt + (engine->prefill_only ? 1 : seq->output);
    uint64_t size = vp_pool_size(engine->pool), most = total + s->draft_tokens, chunk = most;

    /* what is never cut has to fit a step, also when it is computed again */
    *too_long = (s->max_model_len > 0 && total > s->max_model_len) ||
                (whole && s->token_budget > 0 && total > s->token_budget);
    if (*too_long || most > UINT32_MAX)
        return true;
    if (s->kind == VP_SCHED_VLLM_V0)
        size -= vp_min(size, engine->keep_units);
    if (s->kind == VP_SCHED_LLAMA && s->max_model_len == 0)
        size /= engine->room;
    /* windows: the most that one iteration adds, where pages are not taken all at once */
    if (s->token_budget > 0 && !whole &&
        (s->kind == VP_SCHED_VLLM_V1 || s->kind == VP_SCHED_SGLANG))
        chunk = vp_min(s->token_budget, most);
    return vp_pool_most_units(engine->pool, chunk, most) > size;
}

/* ---- sequences ---- */

uint32_t vp_seq_known(const struct vp_sim_seq *seq) { return seq->prompt + seq->made; }

bool vp_seq_decodes(const struct vp_sim_seq *seq) {
    return seq->made > 0 && seq->computed + 1 >= vp_seq_known(seq);
}

void vp_engine_add(struct vp_sim_engine *engine, struct vp_sim_seq *seq, uint32_t chunk) {
    seq->chunk = chunk;
    if (engine->scheduler->publishes_early && !vp_seq_decodes(seq))
        vp_pool_publish(engine->pool, &seq->cache, seq->computed + chunk, seq->shared_prefix);
}

struct vp_cache_hit vp_engine_look_up(struct vp_sim_engine *engine, const struct vp_sim_seq *seq,
                                      uint32_t *computed) {
    struct vp_cache_hit hit = {0};

    *computed = seq->loaded;
    if (seq->loaded > 0)
        return hit;
    /* the last token is computed in any case: its logits are wanted */
    hit = vp_pool_look_up(engine->pool, &seq->cache, seq->prefix_id, seq->shared_prefix,
                          vp_seq_known(seq) - 1);
    *computed = hit.tokens;
    return hit;
}

struct vp_sim_totals *vp_engine_counted(struct vp_sim_engine *engine) {
    struct vp_sim_metrics *m = &engine->sim->metrics;
    return engine->now_us >= m->counted_from_us ? &m->out->counted : NULL;
}

static void add_hits(struct vp_sim_totals *totals, const struct vp_sim_seq *seq,
                     uint32_t host_tokens) {
    if (!totals || seq->loaded > 0)
        return;
    totals->host_hit_tokens += host_tokens;
    if (seq->preemptions == 0)
        totals->hit_tokens += seq->hit;
}

void vp_engine_admit(struct vp_sim_engine *engine, struct vp_sim_seq *seq, uint32_t computed,
                     const struct vp_cache_hit *hit) {
    struct vp_sim_metrics *m = &engine->sim->metrics;
    uint32_t block = engine->settings->cache.block_tokens;
    struct vp_sim_seq *first = vp_wait_pop(&engine->waiting);

    assert(first == seq);
    (void)first;
    engine->running[engine->running_count++] = seq;
    vp_metrics_level(m, engine->now_us, 1, -1);
    if (!seq->admitted)
        seq->admitted_us = engine->now_us;
    seq->admitted = true;
    seq->computed = computed;
    if (seq->preemptions == 0 && seq->loaded == 0) {
        seq->hit = computed;
        if (computed > 0)
            vp_metrics_count(m, engine->now_us, VP_COUNT_HIT, computed);
    }
    add_hits(&m->out->all, seq, hit->host_blocks * block);
    add_hits(vp_engine_counted(engine), seq, hit->host_blocks * block);
    seq->loaded = 0;
    seq->ready_us = engine->now_us;
    if (hit->host_blocks > 0) {
        seq->ready_us = fmax(engine->now_us, engine->host_free_us) +
                        hit->host_blocks * engine->settings->cache.host_block_us;
        engine->host_free_us = seq->ready_us;
    }
    if (seq->sent)
        vp_sim_fetch(engine->sim, seq, engine->now_us);
    vp_engine_use_adapter(engine, seq);
}

bool vp_engine_waits(struct vp_sim_engine *engine, const struct vp_sim_seq *seq) {
    if (seq->ready_us <= engine->now_us)
        return false;
    engine->wake_us = fmin(engine->wake_us, seq->ready_us);
    return true;
}

struct vp_sim_seq *vp_engine_remove(struct vp_sim_engine *engine, uint32_t index) {
    struct vp_sim_seq *seq = engine->running[index];

    memmove(&engine->running[index], &engine->running[index + 1],
            (engine->running_count - index - 1) * sizeof *engine->running);
    engine->running_count--;
    return seq;
}

void vp_engine_preempt(struct vp_sim_engine *engine, struct vp_sim_seq *seq) {
    struct vp_sim_metrics *m = &engine->sim->metrics;

    seq->lost = (uint32_t)vp_max(seq->lost, seq->computed);
    vp_pool_release(engine->pool, &seq->cache, seq->computed,
                    engine->settings->scheduler.kind == VP_SCHED_SGLANG ? VP_KEEP_NOTHING
                                                                        : VP_KEEP_OWN);
    seq->computed = seq->chunk = 0;
    seq->preemptions++;
    engine->preempted = true;
    m->out->all.preemptions++;
    if (vp_engine_counted(engine))
        vp_engine_counted(engine)->preemptions++;
    vp_metrics_count(m, engine->now_us, VP_COUNT_PREEMPTION, 1);
    vp_metrics_level(m, engine->now_us, -1, 1);
    if (engine->settings->scheduler.kind == VP_SCHED_SGLANG) /* retracted: to the end */
        vp_wait_push(&engine->waiting, engine->sim->arena, seq);
    else
        vp_wait_push_front(&engine->waiting, engine->sim->arena, seq);
}

/* ---- runs of decode iterations ---- */

static double elapsed(const struct vp_decode_run *run, uint64_t count) {
    double n = (double)count;
    return n * run->first_us + run->growth_us * (n * (n - 1) / 2);
}

/* The fewest iterations that take so long. */
static uint64_t iterations_until(const struct vp_decode_run *run, double us, uint64_t most) {
    double half = run->growth_us / 2, linear = run->first_us - half, n;
    uint64_t count;

    if (us <= 0)
        return 1;
    n = us / run->first_us;
    if (half > 0) /* half n^2 + linear n = us, the form that does not cancel */
        n = 2 * us / (linear + sqrt(linear * linear + 4 * half * us));
    count = n < (double)most ? (uint64_t)ceil(n) : most;
    count = vp_max(count, 1);
    while (count > 1 && elapsed(run, count - 1) >= us)
        count--;
    while (count < most && elapsed(run, count) < us)
        count++;
    return count;
}

static void cut_run(struct vp_sim_engine *engine, double now_us) {
    engine->iterations =
        iterations_until(&engine->run, now_us - engine->start_us, engine->iterations);
    engine->end_us = engine->start_us + elapsed(&engine->run, engine->iterations);
}

/* Pages that a sequence takes beyond the first of `count` iterations, at most. What is behind a
 * window is given back, so it never has more than the window and one. */
static uint64_t more_pages(const struct vp_page_group *group, uint32_t at, uint64_t count) {
    uint64_t more, most, now;

    if (group->kind == VP_PAGES_FIXED)
        return 0;
    more = vp_ceil_div(at + count, group->block) - vp_ceil_div(at + 1, group->block);
    if (group->kind == VP_PAGES_FULL || more == 0)
        return more;
    most = vp_ceil_div(group->window, group->block) + 1;
    now = vp_page_count(group, at, at + 1);
    return vp_min(more, most > now ? most - now : 0);
}

/* Units that those in the batch take beyond the first of `count` iterations, at most. */
static uint64_t growth(const struct vp_sim_engine *engine, uint64_t count) {
    const struct vp_cache_settings *cache = &engine->settings->cache;
    uint64_t units = 0;

    for (uint32_t i = 0; i < engine->running_count; i++)
        for (uint32_t g = 0; g < cache->groups; g++)
            units += cache->group[g].units *
                     more_pages(&cache->group[g], engine->running[i]->computed, count);
    return units;
}

/* The same without looking at each of them. */
static uint64_t growth_bound(const struct vp_sim_engine *engine, uint64_t count) {
    const struct vp_cache_settings *cache = &engine->settings->cache;
    uint64_t units = 0;

    for (uint32_t g = 0; g < cache->groups; g++)
        if (cache->group[g].kind != VP_PAGES_FIXED)
            units += cache->group[g].units * (count / cache->group[g].block + 1);
    return units * engine->running_count;
}

static uint64_t run_length(const struct vp_sim_engine *engine) {
    bool whole = engine->scheduler->whole_batches;
    uint64_t most = whole ? 1 : UINT64_MAX, least = 1, room;

    /* pages that windows take and give back step by step push blocks out of the cache that they
     * would not as a whole */
    room = vp_pool_shrinks(engine->pool) ? vp_pool_blank(engine->pool)
                                         : vp_pool_available(engine->pool);
    for (uint32_t i = 0; i < engine->running_count; i++) {
        const struct vp_sim_seq *seq = engine->running[i];
        uint64_t left = seq->output - seq->made;
        most = whole ? vp_max(most, left) : vp_min(most, left);
    }
    most = vp_min(most, engine->run.iterations);
    if (whole || most <= 1 || growth_bound(engine, most) <= room || growth(engine, most) <= room)
        return most;
    while (most - least > 1) { /* least fits (its pages are taken), most does not */
        uint64_t middle = least + (most - least) / 2;
        *(growth(engine, middle) <= room ? &least : &most) = middle;
    }
    return least;
}

/* ---- an iteration begins ---- */

/* true: everybody who runs decodes. */
static bool compose(struct vp_sim_engine *engine) {
    struct vp_iteration *it = &engine->iteration;
    bool all = true;

    *it = (struct vp_iteration){0};
    for (uint32_t i = 0; i < engine->running_count; i++) {
        const struct vp_sim_seq *seq = engine->running[i];
        double n = seq->chunk, past = seq->computed;
        if (seq->chunk == 0) {
            all = false;
        } else if (vp_seq_decodes(seq)) {
            it->decodes++;
            it->decode_context += past;
        } else {
            it->prompts++;
            it->prompt_tokens += n;
            it->prompt_past += past;
            it->prompt_pairs += n * (past + (n + 1) / 2);
            it->completed += seq->computed + seq->chunk >= vp_seq_known(seq);
        }
    }
    it->drafts = it->decodes > 0 ? engine->settings->scheduler.draft_tokens : 0;
    return all && it->prompts == 0 && it->drafts == 0;
}

static double cache_share(const struct vp_sim_engine *engine) {
    uint64_t size = vp_pool_size(engine->pool);
    return size > 0 ? (double)vp_pool_held(engine->pool) / (double)size : 0;
}

static const double IDLE[VP_LIMIT_COUNT] = {[VP_LIMIT_IDLE] = 1};

static void begin(struct vp_sim_engine *engine, double now_us) {
    const struct vp_clock *clock = &engine->settings->clock;
    const struct vp_sim_settings *settings = engine->sim->settings;
    bool decodes;

    engine->iterations = 0;
    engine->extra_us = 0;
    do { /* a plan that only preempts takes no time: the next one has its room */
        engine->blocked = VP_BLOCKED_NOT;
        engine->wake_us = INFINITY;
        engine->preempted = engine->steady = false;
        engine->scheduler->plan(engine);
        decodes = compose(engine);
    } while (engine->preempted && engine->iteration.decodes + engine->iteration.prompts == 0);
    if (engine->iteration.decodes + engine->iteration.prompts == 0) {
        engine->end_us = engine->wake_us;
        return;
    }
    if (engine->idle_us < now_us)
        vp_metrics_span(&engine->sim->metrics, engine->idle_us, now_us, IDLE, cache_share(engine));
    engine->start_us = now_us;
    engine->iterations = 1;
    engine->held_before = vp_pool_held(engine->pool);
    if (decodes && engine->steady && engine->extra_us <= 0 && clock->decode_run &&
        !settings->step_by_step) {
        clock->decode_run(clock->state, &engine->iteration, &engine->run);
        engine->iterations = run_length(engine);
    } else {
        engine->run = (struct vp_decode_run){
            .first_us = clock->iteration_us(clock->state, &engine->iteration), .iterations = 1};
    }
    engine->run.first_us += engine->extra_us;
    engine->end_us = now_us + elapsed(&engine->run, engine->iterations);
    if (settings->horizon_us > 0 && engine->end_us > settings->horizon_us)
        cut_run(engine, settings->horizon_us);
}

/* ---- an iteration ends ---- */

/* Tokens that a sequence gets: one per iteration, or what of the draft is accepted and one. */
static uint32_t tokens_of(struct vp_sim_engine *engine, const struct vp_sim_seq *seq) {
    const struct vp_scheduler_settings *s = &engine->settings->scheduler;
    uint64_t tokens = engine->iterations;

    if (engine->iteration.drafts > 0) {
        struct vp_sim_totals *all = &engine->sim->metrics.out->all;
        uint32_t accepted = 0;
        while (accepted < s->draft_tokens && vp_random_unit(&engine->random) < s->acceptance)
            accepted++;
        all->drafted_tokens += s->draft_tokens;
        all->accepted_tokens += accepted;
        if (vp_engine_counted(engine)) {
            vp_engine_counted(engine)->drafted_tokens += s->draft_tokens;
            vp_engine_counted(engine)->accepted_tokens += accepted;
        }
        tokens = accepted + 1;
    }
    return (uint32_t)vp_min(tokens, seq->output - seq->made);
}

static uint32_t decode(struct vp_sim_engine *engine, struct vp_sim_seq *seq, double now_us) {
    const struct vp_decode_run *run = &engine->run;
    uint32_t tokens = tokens_of(engine, seq);
    uint64_t count = engine->iterations;

    seq->longest_gap_us =
        fmax(seq->longest_gap_us, engine->start_us + run->first_us - seq->last_us);
    if (count > 1)
        seq->longest_gap_us =
            fmax(seq->longest_gap_us, run->first_us + run->growth_us * (double)(count - 1));
    seq->made += tokens;
    seq->computed += engine->scheduler->whole_batches ? (uint32_t)count : tokens;
    seq->last_us = now_us;
    if (count > 1 && !engine->scheduler->whole_batches) {
        bool grown = vp_pool_grow(engine->pool, &seq->cache, seq->computed - 1, seq->computed);
        assert(grown); /* run_length has seen to it */
        (void)grown;
    }
    return tokens;
}

struct ended_sums {
    double prompt, recomputed, output;
};

/* A part of a prompt; with its end comes a token. */
static void prefill(struct vp_sim_engine *engine, struct vp_sim_seq *seq, double now_us,
                    struct ended_sums *sums) {
    uint32_t end = seq->computed + seq->chunk;

    sums->prompt += seq->chunk;
    if (seq->computed < seq->lost)
        sums->recomputed += (double)(vp_min(end, seq->lost) - seq->computed);
    seq->computed = end;
    if (!engine->scheduler->publishes_early)
        vp_pool_publish(engine->pool, &seq->cache, end, seq->shared_prefix);
    if (end < vp_seq_known(seq))
        return;
    if (seq->made++ == 0)
        seq->first_us = now_us;
    else
        seq->longest_gap_us = fmax(seq->longest_gap_us, now_us - seq->last_us);
    seq->last_us = now_us;
    sums->output++;
}

/* What the time of an iteration went into, by its clock: prompts, decoding, and the part that any
 * iteration takes. That part is what more room would share among more requests: where some wait, it
 * is put down to what they wait for. */
static void time_shares(double out[VP_LIMIT_COUNT], struct vp_sim_engine *engine, double us) {
    static const enum vp_sim_limit FOR[] = {
        [VP_BLOCKED_TOKENS] = VP_LIMIT_PREFILL,
        [VP_BLOCKED_MEMORY] = VP_LIMIT_MEMORY,
        [VP_BLOCKED_SLOTS] = VP_LIMIT_SLOTS,
    };
    const struct vp_clock *clock = &engine->settings->clock;
    struct vp_iteration decodes = engine->iteration;
    double decoding = us, least;

    decodes.prompts = decodes.completed = 0;
    decodes.prompt_tokens = decodes.prompt_past = decodes.prompt_pairs = 0;
    if (engine->iteration.prompts > 0)
        decoding = decodes.decodes > 0 ? clock->iteration_us(clock->state, &decodes) : 0;
    decoding = fmin(decoding, us);
    least = engine->blocked == VP_BLOCKED_NOT ? 0 : fmin(engine->least_us, us);
    out[VP_LIMIT_DECODE] = fmax(decoding - least, 0) / us;
    out[VP_LIMIT_PREFILL] = (us - fmax(decoding, least)) / us;
    if (engine->blocked != VP_BLOCKED_NOT)
        out[FOR[engine->blocked]] += least / us;
}

static void report(struct vp_sim_engine *engine, const struct ended_sums *sums, double now_us) {
    struct vp_sim_metrics *m = &engine->sim->metrics;
    struct vp_sim_totals *totals[2] = {&m->out->all, vp_engine_counted(engine)};
    const struct vp_sim_watch *watch = &engine->sim->settings->watch;
    uint64_t held = vp_pool_held(engine->pool), size = vp_pool_size(engine->pool);
    double cache = size > 0 ? (double)(engine->held_before + held) / (2 * (double)size) : 0;
    double share[VP_LIMIT_COUNT] = {0}, span = now_us - engine->start_us;

    time_shares(share, engine, span / (double)engine->iterations);
    vp_metrics_span(m, engine->start_us, now_us, share, cache);
    vp_metrics_tokens(m, engine->start_us, now_us, sums->prompt, sums->recomputed, sums->output);
    m->out->cache_peak_share = fmax(m->out->cache_peak_share, cache_share(engine));
    for (int i = 0; i < 2; i++)
        if (totals[i]) {
            totals[i]->computed_tokens += (uint64_t)sums->prompt;
            totals[i]->recomputed_tokens += (uint64_t)sums->recomputed;
            totals[i]->iterations += engine->iterations;
        }
    if (watch->iteration)
        watch->iteration(watch->state,
                         &(struct vp_iteration_record){.replica = engine->index,
                                                       .iterations = engine->iterations,
                                                       .start_us = engine->start_us,
                                                       .end_us = now_us,
                                                       .first = engine->iteration,
                                                       .running = engine->running_count,
                                                       .waiting = engine->waiting.count,
                                                       .units_held = held});
}

/* Those that are done leave; the others keep their order. */
static void dismiss(struct vp_sim_engine *engine, double now_us) {
    uint32_t kept = 0, count = engine->running_count;
    bool all_done = true;

    if (engine->scheduler->whole_batches)
        for (uint32_t i = 0; i < count; i++)
            all_done &= engine->running[i]->made == engine->running[i]->output;
    for (uint32_t i = 0; i < count; i++) {
        struct vp_sim_seq *seq = engine->running[i];
        bool done = seq->made == seq->output && all_done;
        if (done || (engine->prefill_only && seq->made > 0)) {
            engine->full = VP_BLOCKED_NOT;
            vp_metrics_level(&engine->sim->metrics, now_us, -1, 0);
            if (done)
                vp_sim_end(engine->sim, engine, seq, now_us);
            else
                vp_sim_hand_over(engine->sim, engine, seq);
        } else {
            engine->running[kept++] = seq;
        }
    }
    engine->running_count = kept;
}

static void finish(struct vp_sim_engine *engine, double now_us) {
    struct ended_sums sums = {0};

    for (uint32_t i = 0; i < engine->running_count; i++) {
        struct vp_sim_seq *seq = engine->running[i];
        if (seq->chunk == 0)
            continue;
        if (vp_seq_decodes(seq)) {
            uint32_t made = decode(engine, seq, now_us);
            sums.output += made;
            engine->live_tokens += made;
        } else {
            uint32_t made = seq->made;
            prefill(engine, seq, now_us, &sums);
            engine->live_tokens += seq->made - made;
        }
        seq->chunk = 0;
    }
    report(engine, &sums, now_us);
    if (engine->scheduler->decoded && engine->iteration.prompts == 0)
        engine->scheduler->decoded(engine, engine->iterations);
    dismiss(engine, now_us);
    engine->idle_us = now_us;
}

static void check(const struct vp_sim_engine *engine) {
    uint64_t own = engine->handed_units;

    for (uint32_t i = 0; i < engine->running_count; i++)
        own += engine->running[i]->cache.own_units;
    for (uint32_t i = 0; i < engine->running_count; i++)
        assert(engine->running[i]->made <= engine->running[i]->output);
    assert(engine->running_count <= engine->room);
    /* it sleeps only when nobody is there, or waits for pages that another replica has not fetched
     */
    assert(engine->at_work || engine->running_count + engine->waiting.count == 0 ||
           engine->handed_units > 0 || !isinf(engine->end_us));
    assert(vp_pool_is_sound(engine->pool, own));
}

void vp_engine_event(struct vp_sim_engine *engine, double now_us) {
    engine->at_work = true;
    engine->now_us = now_us;
    if (engine->iterations > 0)
        finish(engine, now_us);
    engine->iterations = 0;
    if (engine->sim->settings->checked)
        check(engine);
    begin(engine, now_us);
    engine->at_work = false;
    if (engine->sim->settings->checked)
        check(engine);
}

/* ---- seen from outside ---- */

void vp_engine_queue(struct vp_sim_engine *engine, struct vp_sim_seq *seq, double now_us) {
    bool hears = engine->iterations > 1 && engine->scheduler->hears(engine);

    if (!seq->admitted)
        seq->queued_us = now_us;
    vp_wait_push(&engine->waiting, engine->sim->arena, seq);
    vp_metrics_level(&engine->sim->metrics, now_us, 0, 1);
    if (engine->at_work)
        return;
    if (engine->iterations == 0)
        engine->end_us = fmin(engine->end_us, now_us);
    else if (hears)
        cut_run(engine, now_us);
}

double vp_engine_next_us(const struct vp_sim_engine *engine) { return engine->end_us; }

uint64_t vp_engine_tokens(const struct vp_sim_engine *engine, double now_us) {
    uint64_t done = 0, tokens = engine->live_tokens;

    if (engine->at_work || engine->iterations <= 1)
        return tokens;
    /* of a run, those that are over */
    done = iterations_until(&engine->run, now_us - engine->start_us, engine->iterations);
    if (elapsed(&engine->run, done) > now_us - engine->start_us)
        done--;
    if (!engine->scheduler->whole_batches)
        return tokens + done * engine->iteration.decodes;
    for (uint32_t i = 0; i < engine->running_count; i++)
        tokens += vp_min(done, engine->running[i]->output - engine->running[i]->made);
    return tokens;
}
