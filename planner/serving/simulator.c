#include "planner/serving/simulator.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "planner/serving/sim_parts.h"

/* Events in total order: by time; at one time arrivals, then deliveries, then engines by number.
 * An arrival is an event of its own in an open loop only. */

/* ---- requests under way ---- */

static struct vp_sim_seq *new_seq(struct vp_sim *sim) {
    enum { AT_ONCE = 256 };

    if (!sim->free_seqs) {
        struct vp_sim_seq *some = VP_NEW_ARRAY(sim->arena, AT_ONCE, struct vp_sim_seq);
        for (int i = 0; i < AT_ONCE; i++) {
            some[i].next = sim->free_seqs;
            sim->free_seqs = &some[i];
        }
    }
    struct vp_sim_seq *seq = sim->free_seqs;
    sim->free_seqs = seq->next;
    *seq = (struct vp_sim_seq){0};
    return seq;
}

static void free_seq(struct vp_sim *sim, struct vp_sim_seq *seq) {
    seq->next = sim->free_seqs;
    sim->free_seqs = seq;
}

static void both(struct vp_sim *sim, const struct vp_sim_seq *seq, size_t member, uint64_t add) {
    struct vp_sim_result *out = sim->metrics.out;
    struct vp_sim_totals *totals[2] = {&out->all, seq->counted ? &out->counted : NULL};

    for (int i = 0; i < 2; i++)
        if (totals[i])
            *(uint64_t *)((char *)totals[i] + member) += add;
}
#define COUNT(sim, seq, member, add) both((sim), (seq), offsetof(struct vp_sim_totals, member), add)

/* ---- deliveries: a heap ---- */

static bool sooner(const struct vp_delivery *a, const struct vp_delivery *b) {
    return a->at_us < b->at_us || (a->at_us <= b->at_us && a->number < b->number);
}

static void push_delivery(struct vp_sim *sim, struct vp_delivery d) {
    uint32_t i = sim->deliveries++;

    if (i == sim->delivery_room) {
        struct vp_delivery *wider;
        sim->delivery_room = sim->delivery_room > 0 ? 2 * sim->delivery_room : 64;
        wider = VP_NEW_ARRAY(sim->arena, sim->delivery_room, struct vp_delivery);
        if (i > 0)
            memcpy(wider, sim->delivery, i * sizeof *wider);
        sim->delivery = wider;
    }
    d.number = sim->delivery_number++;
    for (; i > 0 && sooner(&d, &sim->delivery[(i - 1) / 2]); i = (i - 1) / 2)
        sim->delivery[i] = sim->delivery[(i - 1) / 2];
    sim->delivery[i] = d;
}

static struct vp_delivery pop_delivery(struct vp_sim *sim) {
    struct vp_delivery first = sim->delivery[0], moved = sim->delivery[--sim->deliveries];
    uint32_t i = 0, child;

    for (; (child = 2 * i + 1) < sim->deliveries; i = child) {
        if (child + 1 < sim->deliveries && sooner(&sim->delivery[child + 1], &sim->delivery[child]))
            child++;
        if (!sooner(&sim->delivery[child], &moved))
            break;
        sim->delivery[i] = sim->delivery[child];
    }
    sim->delivery[i] = moved;
    return first;
}

/* ---- routing ---- */

static struct vp_sim_engine *least(struct vp_sim *sim, uint32_t first, uint32_t count,
                                   bool tokens) {
    struct vp_sim_engine *best = &sim->engine[first];
    uint64_t load = UINT64_MAX;

    for (uint32_t i = 0; i < count; i++) {
        struct vp_sim_engine *engine = &sim->engine[first + i];
        uint64_t its = tokens ? vp_engine_tokens(engine, sim->now_us) : engine->live_requests;
        if (its < load) {
            load = its;
            best = engine;
        }
    }
    return best;
}

static struct vp_sim_engine *route(struct vp_sim *sim, const struct vp_sim_seq *seq, bool prefill) {
    uint32_t first = prefill || sim->prefill_engines == 0 ? 0 : sim->prefill_engines;
    uint32_t count = prefill ? sim->prefill_engines : sim->engines - sim->prefill_engines;
    uint32_t *next = prefill ? &sim->next_prefill : &sim->next_serve;
    struct vp_random hash;

    if (count == 1)
        return &sim->engine[first];
    switch (sim->settings->routing) {
    case VP_ROUTE_ROUND_ROBIN:
        *next = *next + 1 < count ? *next + 1 : 0;
        return &sim->engine[first + *next];
    case VP_ROUTE_LEAST_REQUESTS:
        return least(sim, first, count, false);
    case VP_ROUTE_LEAST_TOKENS:
        return least(sim, first, count, true);
    case VP_ROUTE_PREFIX:
        if (seq->prefix_id == 0)
            return least(sim, first, count, true);
        vp_random_seed(&hash, seq->prefix_id, 0);
        return &sim->engine[first + (uint32_t)vp_random_below(&hash, count)];
    }
    return &sim->engine[first];
}

/* ---- arrivals ---- */

/* The next request of the stream that still arrives. */
static bool next_request(struct vp_sim *sim, double now_us) {
    const struct vp_sim_settings *s = sim->settings;

    sim->has_pending = !sim->exhausted &&
                       (s->request_limit == 0 || sim->arrived < s->request_limit) &&
                       sim->requests->next(sim->requests->state, &sim->pending);
    if (!sim->has_pending)
        return false;
    if (s->loop != VP_LOOP_OPEN)
        sim->pending.arrival_us = now_us;
    if (s->duration_us > 0 && sim->pending.arrival_us > s->duration_us)
        sim->has_pending = false;
    return sim->has_pending;
}

static bool counts(struct vp_sim *sim, const struct vp_sim_seq *seq) {
    const struct vp_sim_settings *s = sim->settings;
    bool counted = seq->number >= s->warmup_requests && seq->arrival_us >= s->warmup_us;

    if (counted && isinf(sim->metrics.counted_from_us))
        sim->metrics.counted_from_us = s->warmup_requests > 0 ? seq->arrival_us : s->warmup_us;
    return counted;
}

static void to_engine(struct vp_sim *sim, struct vp_sim_engine *engine, struct vp_sim_seq *seq,
                      double delay_us) {
    engine->live_requests++;
    engine->live_tokens += seq->prompt + seq->made;
    if (delay_us > 0)
        push_delivery(
            sim, (struct vp_delivery){.at_us = sim->now_us + delay_us, .seq = seq, .to = engine});
    else
        vp_engine_queue(engine, seq, sim->now_us);
}

static bool refused(struct vp_sim *sim, const struct vp_sim_seq *seq) {
    bool too_long, by_length = false, by_pool = false;
    /* replicas of a pool are alike */
    const struct vp_sim_engine *which[2] = {&sim->engine[sim->engines - 1],
                                            sim->prefill_engines > 0 ? &sim->engine[0] : NULL};

    for (int i = 0; i < 2; i++)
        if (which[i] && vp_engine_refuses(which[i], seq, &too_long)) {
            by_length |= too_long;
            by_pool |= !too_long;
        }
    if (by_length)
        COUNT(sim, seq, refused_length, 1);
    else if (by_pool)
        COUNT(sim, seq, refused_pool, 1);
    return by_length || by_pool;
}

/* false: it was refused. */
static bool arrive(struct vp_sim *sim, const struct vp_request *request) {
    struct vp_sim_seq *seq = new_seq(sim);
    struct vp_sim_engine *engine;
    const struct vp_clock *clock;

    seq->number = sim->arrived++;
    seq->arrival_us = sim->now_us;
    seq->prompt = request->prompt > 0 ? request->prompt : 1;
    seq->output = request->output > 0 ? request->output : 1;
    seq->prefix_id = request->prefix_id;
    seq->shared_prefix = (uint32_t)vp_min(request->shared_prefix_tokens, seq->prompt);
    seq->class_id = request->class_id;
    seq->priority = request->priority;
    seq->counted = counts(sim, seq);
    COUNT(sim, seq, arrived, 1);
    sim->metrics.out->last_arrival_us = sim->now_us;
    vp_metrics_count(&sim->metrics, sim->now_us, VP_COUNT_ARRIVAL, 1);
    if (refused(sim, seq)) {
        free_seq(sim, seq);
        return false;
    }
    engine = route(sim, seq, sim->prefill_engines > 0);
    clock = &engine->settings->clock;
    to_engine(sim, engine, seq,
              clock->front_us
                  ? clock->front_us(clock->state, seq->prompt, (uint32_t)engine->live_requests + 1)
                  : 0);
    return true;
}

/* Closed loop: the next one that is not refused. So many refused in a row, at one instant, are
 * taken to say that none of this stream would be served: the loop ends, where it would turn for
 * ever. */
enum { MOST_REFUSED = 10000 };

static void replace(struct vp_sim *sim) {
    for (uint32_t i = 0; i < MOST_REFUSED; i++) {
        if (!next_request(sim, sim->now_us))
            return;
        struct vp_request request = sim->pending;
        sim->has_pending = false;
        if (arrive(sim, &request))
            return;
    }
    sim->exhausted = true;
}

static void start(struct vp_sim *sim) {
    const struct vp_sim_settings *s = sim->settings;

    if (s->loop == VP_LOOP_CLOSED)
        for (uint32_t i = 0; i < s->concurrency; i++)
            replace(sim);
    else if (s->loop == VP_LOOP_BATCH)
        while (next_request(sim, 0))
            arrive(sim, &sim->pending);
    else
        next_request(sim, 0);
}

/* ---- the end of a request ---- */

void vp_sim_end(struct vp_sim *sim, struct vp_sim_engine *engine, struct vp_sim_seq *seq,
                double now_us) {
    const struct vp_sim_watch *watch = &sim->settings->watch;
    struct vp_request_record record = {.number = seq->number,
                                       .replica = engine->index,
                                       .class_id = seq->class_id,
                                       .prompt = seq->prompt,
                                       .output = seq->output,
                                       .prefix_hit = seq->hit,
                                       .preemptions = seq->preemptions,
                                       .arrival_us = seq->arrival_us,
                                       .admitted_us = seq->admitted_us,
                                       .first_us = seq->first_us,
                                       .last_us = now_us,
                                       .longest_gap_us = seq->longest_gap_us};

    vp_pool_forget(&seq->cache);
    vp_pool_release(engine->pool, &seq->cache, seq->computed, VP_KEEP_NEXT);
    engine->live_requests--;
    engine->live_tokens -= seq->prompt + seq->made;
    COUNT(sim, seq, finished, 1);
    COUNT(sim, seq, prompt_tokens, seq->prompt);
    COUNT(sim, seq, output_tokens, seq->output);
    vp_metrics_count(&sim->metrics, now_us, VP_COUNT_FINISHED, 1);
    if (seq->counted)
        vp_metrics_sample(&sim->metrics, &record, seq->queued_us);
    if (watch->request)
        watch->request(watch->state, &record);
    free_seq(sim, seq);
    sim->ended++;
    if (watch->stop && sim->ended % vp_max(watch->stop_every, 1) == 0)
        sim->stopped |= watch->stop(watch->state, now_us, sim->ended);
    if (sim->settings->loop == VP_LOOP_CLOSED && !sim->stopped)
        replace(sim);
}

void vp_sim_drop(struct vp_sim *sim, struct vp_sim_engine *engine, struct vp_sim_seq *seq) {
    vp_pool_release(engine->pool, &seq->cache, seq->computed, VP_KEEP_NOTHING);
    engine->live_requests--;
    engine->live_tokens -= seq->prompt + seq->made;
    COUNT(sim, seq, dropped, 1);
    free_seq(sim, seq);
    if (sim->settings->loop == VP_LOOP_CLOSED)
        replace(sim);
}

void vp_sim_hand_over(struct vp_sim *sim, struct vp_sim_engine *engine, struct vp_sim_seq *seq) {
    struct vp_sim_sent *sent = sim->free_sent;

    if (sent)
        sim->free_sent = sent->next;
    else
        sent = VP_NEW(sim->arena, struct vp_sim_sent);
    *sent = (struct vp_sim_sent){.from = engine, .tokens = seq->computed};
    vp_pool_move(&sent->cache, &seq->cache);
    engine->live_requests--;
    engine->live_tokens -= seq->prompt + seq->made;
    engine->handed_units += sent->cache.own_units;
    seq->sent = sent;
    seq->loaded = seq->computed;
    seq->computed = 0;
    to_engine(sim, route(sim, seq, false), seq, 0);
}

/* Transfers from one replica go one after the other. The first token comes with the cache: engines
 * send it from the replica that decodes. */
void vp_sim_fetch(struct vp_sim *sim, struct vp_sim_seq *seq, double now_us) {
    const struct vp_link_settings *link = &sim->settings->link;
    struct vp_sim_sent *sent = seq->sent;
    double begins = fmax(now_us, sent->from->link_free_us), us = 0;

    if (link->bytes_per_us > 0)
        us = link->bytes_per_token * sent->tokens / link->bytes_per_us;
    sent->from->link_free_us = begins + us;
    seq->ready_us = begins + us + link->latency_us;
    seq->first_us = seq->last_us = seq->ready_us;
    seq->sent = NULL;
    push_delivery(sim, (struct vp_delivery){.at_us = seq->ready_us, .sent = sent});
}

static void deliver(struct vp_sim *sim) {
    struct vp_delivery d = pop_delivery(sim);
    struct vp_sim_engine *from;

    if (!d.sent) {
        vp_engine_queue(d.to, d.seq, sim->now_us);
        return;
    }
    from = d.sent->from;
    from->handed_units -= d.sent->cache.own_units;
    vp_pool_release(from->pool, &d.sent->cache, d.sent->tokens, VP_KEEP_NEXT);
    d.sent->next = sim->free_sent;
    sim->free_sent = d.sent;
    if (from->iterations == 0 &&
        from->waiting.count + from->running_count > 0) /* it may have waited for pages */
        from->end_us = fmin(from->end_us, sim->now_us);
}

/* ---- time ---- */

static void make_engines(struct vp_sim *sim) {
    const struct vp_sim_settings *s = sim->settings;
    uint32_t serve = (uint32_t)vp_max(s->serve.replicas, 1);

    sim->prefill_engines = s->disaggregated ? (uint32_t)vp_max(s->prefill.replicas, 1) : 0;
    sim->engines = sim->prefill_engines + serve;
    sim->engine = VP_NEW_ARRAY(sim->arena, sim->engines, struct vp_sim_engine);
    sim->next_serve = serve - 1; /* round robin begins with the first */
    sim->next_prefill = sim->prefill_engines > 0 ? sim->prefill_engines - 1 : 0;
    for (uint32_t i = 0; i < sim->engines; i++) {
        bool prefill = i < sim->prefill_engines;
        sim->engine[i].prefill_only = prefill;
        vp_engine_init(&sim->engine[i], sim, i, prefill ? &s->prefill : &s->serve);
    }
}

enum { ARRIVAL = -2, DELIVERY = -1 };

static double next_event(const struct vp_sim *sim, int64_t *which) {
    double at = INFINITY;

    if (sim->has_pending) {
        at = fmax(sim->pending.arrival_us, sim->now_us);
        *which = ARRIVAL;
    }
    if (sim->deliveries > 0 && sim->delivery[0].at_us < at) {
        at = sim->delivery[0].at_us;
        *which = DELIVERY;
    }
    for (uint32_t i = 0; i < sim->engines; i++)
        if (vp_engine_next_us(&sim->engine[i]) < at) {
            at = vp_engine_next_us(&sim->engine[i]);
            *which = i;
        }
    return at;
}

static void run(struct vp_sim *sim) {
    const struct vp_sim_settings *s = sim->settings;

    while (!sim->stopped) {
        int64_t which = 0;
        double at = next_event(sim, &which);
        if (isinf(at) || (s->horizon_us > 0 && at > s->horizon_us))
            break;
        sim->now_us = at;
        if (which == ARRIVAL) {
            struct vp_request request = sim->pending;
            arrive(sim, &request);
            next_request(sim, at);
        } else if (which == DELIVERY) {
            deliver(sim);
        } else {
            vp_engine_event(&sim->engine[which], at);
        }
    }
}

static void set_unfinished(struct vp_sim_totals *t) {
    t->unfinished = t->arrived - t->finished - t->refused_length - t->refused_pool - t->dropped;
}

void vp_simulate(struct vp_sim_result *out, struct vp_arena *arena,
                 const struct vp_sim_settings *settings, const struct vp_request_stream *requests) {
    const double idle[VP_LIMIT_COUNT] = {[VP_LIMIT_IDLE] = 1};
    struct vp_sim *sim = VP_NEW(arena, struct vp_sim);
    double end;

    *out = (struct vp_sim_result){0};
    sim->settings = settings;
    sim->requests = requests;
    sim->arena = arena;
    make_engines(sim);
    vp_metrics_init(&sim->metrics, arena, out, settings->bins, sim->engines);
    start(sim);
    run(sim);
    end = sim->now_us;
    for (uint32_t i = 0; i < sim->engines; i++)
        if (sim->engine[i].iterations == 0 && sim->engine[i].idle_us < end)
            vp_metrics_span(&sim->metrics, sim->engine[i].idle_us, end, idle, 0);
    out->stopped = sim->stopped;
    out->exhausted = sim->exhausted;
    set_unfinished(&out->all);
    set_unfinished(&out->counted);
    vp_metrics_finish(&sim->metrics, end);
}
