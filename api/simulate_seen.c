/* Simulated days -> what a report says of them: percentiles, promises, what limited it, the day
 * over time. */
#include <math.h>
#include <string.h>

#include "api/simulate_parts.h"
#include "planner/base/sum.h"
#include "planner/plan/plan.h"

/* ---- over seeds ---- */

/* The 0.975 quantile of Student's t; beyond the table it is that of the normal distribution and a
 * little more (Abramowitz and Stegun 26.7.5, two terms). */
static double student(uint32_t freedom) {
    static const double T[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                               2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                               2.131,  2.120, 2.110, 2.101, 2.093, 2.086};
    const double z = 1.959964;

    if (freedom <= sizeof T / sizeof *T)
        return T[freedom - 1];
    return z + (z * z * z + z) / (4.0 * freedom);
}

struct spread {
    double mean, chance;
};

/* Where in a run a figure stands: a double at this offset, or of a class. */
struct place {
    size_t offset;
    int class; /* -1: of all */
    enum vp_seen_kind kind;
    enum vp_seen_figure figure;
};

static double value_at(const struct vp_run *run, const struct place *place) {
    if (place->class >= 0)
        return run->class_figure[place->class][place->kind][place->figure];
    return *(const double *)(const void *)((const char *)run + place->offset);
}

static struct spread over_seeds(const struct vp_runs *runs, enum vp_serving_end end,
                                const struct place *place) {
    const struct vp_run *run = vp_runs_at(runs, end, 0);
    struct spread out = {0, 0};
    double squares = 0, n = runs->seeds;

    for (uint32_t i = 0; i < runs->seeds; i++)
        out.mean += value_at(&run[i], place) / n;
    for (uint32_t i = 0; i < runs->seeds; i++) {
        double d = value_at(&run[i], place) - out.mean;
        squares += d * d;
    }
    if (runs->seeds > 1 && isfinite(squares))
        out.chance = student(runs->seeds - 1) * sqrt(squares / (n - 1) / n);
    return out;
}

static struct vp_seen seen_at(const struct vp_runs *runs, const struct place *place) {
    enum vp_serving_end first = runs->item[0].end;
    struct spread likely = over_seeds(runs, first, place), fast = likely, slow = likely;

    if (runs->count > runs->seeds) {
        fast = over_seeds(runs, VP_SERVING_FAST, place);
        slow = over_seeds(runs, VP_SERVING_SLOW, place);
    }
    /* of a rate the slow end is the low one */
    double low =
        fmin(fmin(fast.mean - fast.chance, slow.mean - slow.chance), likely.mean - likely.chance);
    double high =
        fmax(fmax(fast.mean + fast.chance, slow.mean + slow.chance), likely.mean + likely.chance);
    return (struct vp_seen){likely.mean, likely.chance, fmax(low, 0), high};
}

#define SEEN(runs, member)                                                                         \
    seen_at((runs),                                                                                \
            &(struct place){offsetof(struct vp_run, member), -1, VP_SEEN_TTFT, VP_SEEN_MEAN})

static struct vp_seen seen_latency(const struct vp_runs *runs, int class, enum vp_seen_kind kind,
                                   enum vp_seen_figure figure) {
    struct place place = {.class = class, .kind = kind, .figure = figure};

    place.offset = offsetof(struct vp_run, figure) +
                   ((size_t)kind * VP_SEEN_FIGURES + (size_t)figure) * sizeof(double);
    return seen_at(runs, &place);
}

struct vp_seen vp_runs_limit(const struct vp_runs *runs, enum vp_serving_end end, uint32_t limit) {
    struct place place = {.class = -1};

    place.offset = offsetof(struct vp_run, limit) + limit * sizeof(double);
    struct spread s = over_seeds(runs, end, &place);
    return (struct vp_seen){s.mean, s.chance, fmax(s.mean - s.chance, 0), s.mean + s.chance};
}

/* ---- promises ---- */

static enum vp_promise promise_of(const struct vp_seen *seen, double limit_ms,
                                  enum vp_basis basis) {
    if (seen->low > limit_ms)
        return VP_PROMISE_BROKEN;
    if (basis <= VP_BASIS_BOUND)
        return VP_PROMISE_OPEN;
    return seen->high <= limit_ms ? VP_PROMISE_KEPT : VP_PROMISE_AT_RISK;
}

static void hold(struct vp_simulated *out, const struct vp_simulation *sim,
                 const struct vp_runs *runs) {
    for (uint32_t i = 0; i < sim->slo.count; i++) {
        struct place place = {.class = -1};
        struct vp_promised *p = &out->limit[i];
        place.offset = offsetof(struct vp_run, limit) + i * sizeof(double);
        p->limit = &sim->slo.limit[i];
        p->seen = seen_at(runs, &place);
        p->state = promise_of(&p->seen, p->limit->ms, out->basis);
        p->margin = 1 - p->seen.likely / p->limit->ms;
        if (p->state > out->promise)
            out->promise = p->state;
        if (p->margin < out->limit[out->tightest].margin)
            out->tightest = i;
        out->limits++;
    }
}

/* ---- what limits it ---- */

/* The fullest stretch of time, and whether hardly anybody waits elsewhere. */
static void find_peak(struct vp_simulated *out) {
    const double much = 4, some = 1; /* times the mean; requests */
    double sum = 0;

    for (uint32_t i = 0; i < out->bins; i++) {
        sum += out->bin[i].waiting;
        if (!(out->bin[i].waiting > out->peak_waiting))
            continue;
        out->peak_waiting = out->bin[i].waiting;
        out->peak_s = out->bin[i].start_us / 1e6;
    }
    out->peaked =
        out->bins > 1 && out->peak_waiting > some && out->peak_waiting > much * sum / out->bins;
}

/* Shares of time by what stood in the way, weighted by who waited. */
static enum vp_bottleneck of_waiting(const struct vp_simulated *out) {
    static const enum vp_bottleneck BY_LIMIT[VP_LIMIT_COUNT] = {
        VP_BOTTLENECK_NONE, VP_BOTTLENECK_DECODE, VP_BOTTLENECK_PREFILL, VP_BOTTLENECK_MEMORY,
        VP_BOTTLENECK_SLOTS};
    double sum[VP_LIMIT_COUNT] = {0};
    int worst = VP_LIMIT_IDLE;

    for (uint32_t i = 0; i < out->bins; i++)
        for (int l = VP_LIMIT_DECODE; l < VP_LIMIT_COUNT; l++)
            sum[l] += out->bin[i].limit_share[l] * out->bin[i].waiting;
    for (int l = VP_LIMIT_DECODE; l < VP_LIMIT_COUNT; l++)
        if (sum[l] > sum[worst])
            worst = l;
    return BY_LIMIT[worst];
}

/* Far from what the formulas say it could do. */
static bool is_idle(const struct vp_simulated *out) {
    const double far = 0.5, busy = 0.5;
    const struct vp_analytic *a = &out->analytic;

    if (out->promise > VP_PROMISE_KEPT)
        return false;
    return out->busy_share < busy ||
           (a->known && out->rate_per_s > 0 && out->rate_per_s < far * a->most_requests_per_s);
}

void vp_simulated_limit(struct vp_simulated *out) {
    const double long_wait = 0.5;
    double queue = out->seen[VP_SEEN_QUEUE][VP_SEEN_P99].likely;
    double first = out->seen[VP_SEEN_TTFT][VP_SEEN_P99].likely;
    double prefill = out->limit_share[VP_LIMIT_PREFILL], decode = out->limit_share[VP_LIMIT_DECODE];
    uint64_t refused = out->totals.refused_length + out->totals.refused_pool;
    bool tpot = out->limits > 0 && out->limit[out->tightest].limit->what == VP_SLO_TPOT;
    bool ttft = out->limits > 0 && out->limit[out->tightest].limit->what == VP_SLO_TTFT;

    find_peak(out);
    if (refused > 0 && out->limits > 0 && isinf(out->limit[out->tightest].seen.likely))
        out->bottleneck = VP_BOTTLENECK_REFUSED;
    else if (is_idle(out))
        out->bottleneck = VP_BOTTLENECK_NONE;
    else if (!tpot && queue > long_wait * first && of_waiting(out) != VP_BOTTLENECK_NONE)
        out->bottleneck = of_waiting(out);
    else if (ttft || prefill > decode)
        out->bottleneck = VP_BOTTLENECK_PREFILL;
    else
        out->bottleneck = VP_BOTTLENECK_DECODE;
}

/* ---- the whole ---- */

static void add_totals(struct vp_sim_totals *out, const struct vp_sim_totals *more) {
    uint64_t *sum = (uint64_t *)(void *)out;
    const uint64_t *one = (const uint64_t *)(const void *)more;

    _Static_assert(sizeof *out % sizeof *sum == 0, "totals are counts");
    for (size_t i = 0; i < sizeof *out / sizeof *sum; i++)
        sum[i] += one[i];
}

/* Of all seeds at the likely figures; the series are the first seed's. */
static void add_up(struct vp_simulated *out, const struct vp_runs *runs) {
    double n = runs->seeds;

    for (uint32_t i = 0; i < runs->seeds; i++) {
        const struct vp_run *run = &runs->item[i];
        add_totals(&out->totals, &run->totals);
        out->cut += run->cut;
        for (int l = 0; l < VP_LIMIT_COUNT; l++)
            out->limit_share[l] += run->limit_share[l] / n;
        out->busy_share += run->busy_share / n;
        out->cache_share += run->cache_share / n;
        out->cache_peak_share = fmax(out->cache_peak_share, run->cache_peak_share);
        out->running_peak = vp_max(out->running_peak, run->running_peak);
        out->waiting_peak = vp_max(out->waiting_peak, run->waiting_peak);
    }
    out->bin = runs->item[0].bin;
    out->bins = runs->item[0].bins;
    out->bin_s = runs->item[0].bin_s;
    out->end_s = runs->item[0].end_s;
}

static void fill_classes(struct vp_arena *arena, struct vp_simulated *out,
                         const struct vp_simulation *sim, const struct vp_runs *runs) {
    const struct vp_traffic *t = &sim->scenario->traffic;
    double all = 0;

    if (t->classes < 2 || out->trace)
        return;
    out->classes = t->classes;
    out->class = VP_NEW_ARRAY(arena, t->classes, struct vp_seen_class);
    for (uint32_t i = 0; i < runs->seeds; i++)
        all += (double)runs->item[i].samples;
    for (uint32_t c = 0; c < t->classes; c++) {
        struct vp_seen_class *class = &out->class[c];
        class->name = t->class[c].name;
        for (uint32_t i = 0; i < runs->seeds && all > 0; i++)
            class->share += (double)runs->item[i].class_samples[c] / all;
        for (int k = 0; k < VP_SEEN_KINDS; k++)
            for (int f = 0; f < VP_SEEN_FIGURES; f++)
                class->seen[k][f] =
                    seen_latency(runs, (int)c, (enum vp_seen_kind)k, (enum vp_seen_figure)f);
    }
}

void vp_simulated_fill(struct vp_arena *arena, struct vp_simulated *out,
                       const struct vp_simulation *sim, const struct vp_runs *runs) {
    for (int k = 0; k < VP_SEEN_KINDS; k++)
        for (int f = 0; f < VP_SEEN_FIGURES; f++)
            out->seen[k][f] = seen_latency(runs, -1, (enum vp_seen_kind)k, (enum vp_seen_figure)f);
    out->requests_per_s = SEEN(runs, requests_per_s);
    out->prompt_tokens_per_s = SEEN(runs, prompt_tokens_per_s);
    out->output_tokens_per_s = SEEN(runs, output_tokens_per_s);
    out->goodput_per_s = SEEN(runs, goodput_per_s);
    out->good_share = SEEN(runs, good_share);
    add_up(out, runs);
    fill_classes(arena, out, sim, runs);
    hold(out, sim, runs);
    if (out->price_per_hour > 0 && out->output_tokens_per_s.likely > 0)
        out->cost_per_million_output_tokens =
            out->price_per_hour / 3600 / out->output_tokens_per_s.likely * 1e6;
}

/* ---- beside it: the plan's formulas ---- */

/* The plan's latency of one copy with so many requests of mean length in flight. */
static void latency_at(struct vp_arena *arena, struct vp_latency *out,
                       const struct vp_simulated *seen, double requests) {
    struct vp_scenario scenario = *seen->plan->scenario;
    struct vp_result plan = *seen->plan;

    scenario.serve.concurrency = (uint64_t)fmax(requests, 1);
    scenario.serve.prompt_tokens = (uint64_t)fmax(seen->prompt_tokens + 0.5, 1);
    scenario.serve.output_tokens = (uint64_t)fmax(seen->output_tokens + 0.5, 1);
    scenario.serve.arrival = "closed_loop";
    scenario.serve.replicas = 1;
    plan.scenario = &scenario;
    plan.latency = (struct vp_latency){.parts = 0};
    vp_plan_latency(arena, &plan);
    *out = plan.latency;
}

static double figure_of(const struct vp_estimate *e, bool rate) {
    return e->basis > VP_BASIS_BOUND ? e->likely : rate ? e->high : e->low;
}

static double request_ms(const struct vp_latency *l, double output) {
    return figure_of(&l->ttft_ms, false) + fmax(output - 1, 0) * figure_of(&l->tpot_ms, false);
}

/* Requests in flight = rate x time of one of them, which depends on how many there are: the least
 * number at which both agree. */
static double in_flight(struct vp_arena *arena, struct vp_latency *out,
                        const struct vp_simulated *seen, double rate, double most) {
    enum { ROUNDS = 60 };
    double n = 1;

    for (int i = 0; i < ROUNDS; i++) {
        struct vp_arena_mark mark = vp_arena_mark(arena);
        latency_at(arena, out, seen, n);
        vp_arena_rewind(arena, mark);
        double next = rate * request_ms(out, seen->output_tokens) / 1e3;
        if (fabs(next - n) < 0.01 * n || next > most)
            return next;
        n = (n + fmax(next, 1)) / 2;
    }
    return n;
}

void vp_simulated_analyse(struct vp_arena *arena, struct vp_simulated *out,
                          const struct vp_simulation *sim) {
    const double full = 1e6; /* requests: more than any set-up runs at once */
    struct vp_analytic *a = &out->analytic;
    struct vp_latency latency;
    double copies = (double)vp_max(out->replicas, 1);
    struct vp_arena_mark mark = vp_arena_mark(arena);

    if (out->prefill || !(out->output_tokens > 0) || sim->runs.loop == VP_LOOP_BATCH)
        return;
    latency_at(arena, &latency, out, full);
    vp_arena_rewind(arena, mark);
    if (latency.decode_tokens_per_s.basis == VP_BASIS_NONE)
        return;
    a->known = true;
    a->basis = latency.decode_tokens_per_s.basis;
    a->most_requests_per_s =
        figure_of(&latency.decode_tokens_per_s, true) / out->output_tokens * copies;
    a->overloaded = out->rate_per_s > a->most_requests_per_s;
    if (sim->runs.loop == VP_LOOP_CLOSED) {
        a->in_flight = (double)sim->runs.concurrency;
        latency_at(arena, &latency, out, a->in_flight / copies);
    } else if (!a->overloaded) {
        a->in_flight = copies * in_flight(arena, &latency, out, out->rate_per_s / copies, full);
    }
    vp_arena_rewind(arena, mark);
    if (a->overloaded)
        return;
    a->ttft_ms = figure_of(&latency.ttft_ms, false);
    a->tpot_ms = figure_of(&latency.tpot_ms, false);
    a->e2e_ms = request_ms(&latency, out->output_tokens);
}
