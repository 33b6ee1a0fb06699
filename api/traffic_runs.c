#include "api/traffic_runs.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static const double SHARES[VP_SEEN_FIGURES] = {0, 0.50, 0.90, 0.95, 0.99, 1};

/* ---- an early end ---- */

/* Requests that were slower than a limit allows. */
struct count_watch {
    const struct vp_slo *slo;
    double warmup_us;
    uint64_t warmup_requests;
    uint64_t slow[VP_SLO_LIMITS];
    double most; /* requests that can come at all */
};

static double latency_us(enum vp_slo_what what, const struct vp_request_record *r) {
    switch (what) {
    case VP_SLO_TTFT:
        return r->first_us - r->arrival_us;
    case VP_SLO_TPOT:
        return r->output > 1 ? (r->last_us - r->first_us) / (r->output - 1) : 0;
    case VP_SLO_E2E:
        return r->last_us - r->arrival_us;
    case VP_SLO_STEP:
        break;
    }
    return 0;
}

static void count_slow(void *state, const struct vp_request_record *r) {
    struct count_watch *w = state;

    if (r->arrival_us < w->warmup_us || r->number < w->warmup_requests)
        return;
    for (uint32_t i = 0; i < w->slo->count; i++)
        w->slow[i] += latency_us(w->slo->limit[i].what, r) > w->slo->limit[i].ms * 1e3;
}

/* With n requests in all, the quantile of a share p lies at rank p (n - 1): it is above the limit
 * when more than n - floor(p (n - 1)) - 1 of them are, and n is not above `most`. */
static bool is_broken(void *state, double now_us, uint64_t ended) {
    const struct count_watch *w = state;

    (void)now_us;
    (void)ended;
    for (uint32_t i = 0; i < w->slo->count; i++) {
        double share = w->slo->limit[i].share;
        double allowed = w->most - floor(share * (w->most - 1)) - 1;
        if (share > 0 && (double)w->slow[i] > allowed)
            return true;
    }
    return false;
}

/* More requests than this never come; 0: not known. */
static double most_requests(const struct vp_runs_ask *ask) {
    const double sure = 8; /* deviations of a Poisson count: once in 10^15 */
    const struct vp_trace *trace = ask->traffic.trace;
    double scale = ask->traffic.rate_scale, mean;

    if (ask->traffic.traffic->arrival.kind == VP_ARRIVAL_TRACE && scale <= 1)
        return (double)trace->rows;
    if (ask->traffic.traffic->arrival.kind == VP_ARRIVAL_TRACE)
        mean = (double)trace->rows * scale;
    else if (ask->loop == VP_LOOP_OPEN && ask->traffic.traffic->arrival.kind != VP_ARRIVAL_GAMMA)
        mean = vp_traffic_rate(&ask->traffic, ask->duration_s) * ask->duration_s;
    else
        return 0;
    return ceil(mean + sure * sqrt(mean) + sure);
}

/* ---- figures of one run ---- */

/* Requests with at least two tokens: the others have no time between tokens. */
static struct vp_sim_samples with_gaps(struct vp_arena *arena, const struct vp_sim_samples *s) {
    struct vp_sim_samples out = {.tpot_us = VP_NEW_ARRAY(arena, s->count, float),
                                 .class_id = VP_NEW_ARRAY(arena, s->count, uint8_t)};

    for (uint64_t i = 0; i < s->count; i++) {
        if (s->output[i] < 2)
            continue;
        out.tpot_us[out.count] = s->tpot_us[i];
        out.class_id[out.count++] = s->class_id[i];
    }
    return out;
}

static void quantiles_ms(double out[VP_SEEN_FIGURES], struct vp_arena *arena,
                         const struct vp_sim_samples *samples, const float *values, int class_id) {
    vp_sim_quantiles(out, arena, samples, values, class_id, SHARES, VP_SEEN_FIGURES);
    out[VP_SEEN_MEAN] = vp_sim_mean(samples, values, class_id);
    for (int f = 0; f < VP_SEEN_FIGURES; f++)
        out[f] /= 1e3;
}

static void figures_of(double out[VP_SEEN_KINDS][VP_SEEN_FIGURES], struct vp_arena *arena,
                       const struct vp_sim_samples *all, const struct vp_sim_samples *gaps,
                       int class_id) {
    quantiles_ms(out[VP_SEEN_TTFT], arena, all, all->ttft_us, class_id);
    quantiles_ms(out[VP_SEEN_QUEUE], arena, all, all->queue_us, class_id);
    quantiles_ms(out[VP_SEEN_E2E], arena, all, all->e2e_us, class_id);
    quantiles_ms(out[VP_SEEN_TPOT], arena, gaps, gaps->tpot_us, class_id);
}

static const float *values_of(enum vp_slo_what what, const struct vp_sim_samples *all,
                              const struct vp_sim_samples *gaps) {
    return what == VP_SLO_TTFT ? all->ttft_us : what == VP_SLO_TPOT ? gaps->tpot_us : all->e2e_us;
}

/* With r refused among n + r requests, which all come behind the n, rank p (n + r - 1) is looked
 * for. Of a mean: more than one refused request in a hundred breaks it. */
static double against_limit(struct vp_arena *arena, const struct vp_slo_limit *limit,
                            const struct vp_sim_samples *all, const struct vp_sim_samples *gaps,
                            double refused) {
    const double many = 0.01;
    const struct vp_sim_samples *samples = limit->what == VP_SLO_TPOT ? gaps : all;
    const float *values = values_of(limit->what, all, gaps);
    double n = (double)samples->count, share, us;

    if (!(limit->share > 0))
        return refused > many * (n + refused) ? INFINITY : vp_sim_mean(samples, values, -1) / 1e3;
    if (!(n > 0))
        return refused > 0 ? INFINITY : 0;
    share = n > 1 ? limit->share * (n + refused - 1) / (n - 1) : limit->share;
    if (share > 1)
        return INFINITY;
    vp_sim_quantiles(&us, arena, samples, values, -1, &share, 1);
    return us / 1e3;
}

static double strictest_us(const struct vp_slo *slo, enum vp_slo_what what) {
    double least = 0;

    for (uint32_t i = 0; i < slo->count; i++)
        if (slo->limit[i].what == what && (!(least > 0) || slo->limit[i].ms < least))
            least = slo->limit[i].ms;
    return least * 1e3;
}

static void set_rates(struct vp_run *out, const struct vp_sim_result *r, const struct vp_slo *slo) {
    const struct vp_sim_promise promise = {.ttft_us = strictest_us(slo, VP_SLO_TTFT),
                                           .tpot_us = strictest_us(slo, VP_SLO_TPOT),
                                           .e2e_us = strictest_us(slo, VP_SLO_E2E)};
    struct vp_sim_rates rates;
    double good = (double)vp_sim_good(&r->samples, &promise, -1);
    double asked = (double)(r->samples.count + r->counted.refused_length + r->counted.refused_pool +
                            r->counted.unfinished);

    vp_sim_rates(&rates, r);
    out->good_share = asked > 0 ? good / asked : 0;
    out->requests_per_s = rates.finished;
    out->output_tokens_per_s = rates.output_tokens;
    out->goodput_per_s = rates.finished * out->good_share;
    if (r->counted.finished > 0) /* whether computed or found */
        out->prompt_tokens_per_s =
            rates.finished * (double)r->counted.prompt_tokens / (double)r->counted.finished;
}

static void take(struct vp_run *out, struct vp_arena *arena, const struct vp_sim_result *r,
                 const struct vp_runs_ask *ask, uint32_t classes) {
    struct vp_sim_samples gaps = with_gaps(arena, &r->samples);
    double refused = (double)(r->counted.refused_length + r->counted.refused_pool);

    out->samples = r->samples.count;
    out->stopped = r->stopped;
    out->exhausted = r->exhausted;
    figures_of(out->figure, arena, &r->samples, &gaps, -1);
    for (uint32_t c = 0; classes > 1 && c < classes; c++) {
        figures_of(out->class_figure[c], arena, &r->samples, &gaps, (int)c);
        for (uint64_t i = 0; i < r->samples.count; i++)
            out->class_samples[c] += r->samples.class_id[i] == c;
    }
    for (uint32_t i = 0; i < ask->slo->count; i++) /* what was left undone would be later still */
        out->limit[i] =
            r->stopped ? INFINITY
                       : against_limit(arena, &ask->slo->limit[i], &r->samples, &gaps, refused);
    set_rates(out, r, ask->slo);
    out->totals = r->counted;
    memcpy(out->limit_share, r->limit_share, sizeof out->limit_share);
    out->busy_share = r->busy_share;
    out->cache_share = r->cache_share;
    out->cache_peak_share = r->cache_peak_share;
    out->running_peak = r->running_peak;
    out->waiting_peak = r->waiting_peak;
    out->end_s = r->end_us / 1e6;
    if (!out->bin) /* room was made for the first run's */
        return;
    out->bins = r->bins < out->bins ? r->bins : out->bins;
    out->bin_s = r->bin_us / 1e6;
    memcpy(out->bin, r->bin, out->bins * sizeof *out->bin);
}

/* ---- one run ---- */

static void run_one(struct vp_arena *arena, struct vp_run *out, const struct vp_runs_ask *ask) {
    struct vp_traffic_settings traffic = ask->traffic;
    struct vp_step_time times[2];
    struct vp_sim_settings sim = vp_serving_at(ask->serving, out->end, times);
    struct vp_sim_result *result = VP_NEW(arena, struct vp_sim_result);
    struct count_watch watch = {.slo = ask->slo,
                                .warmup_us = ask->warmup_s * 1e6,
                                .warmup_requests = ask->warmup_requests,
                                .most = most_requests(ask)};

    traffic.seed = out->seed;
    sim.loop = ask->loop;
    sim.concurrency = (uint32_t)ask->concurrency;
    sim.seed = out->seed;
    sim.warmup_us = ask->warmup_s * 1e6;
    sim.warmup_requests = ask->warmup_requests;
    sim.duration_us = ask->duration_s * 1e6;
    sim.request_limit = ask->request_limit;
    sim.bins = ask->bins;
    if (ask->stop_when_broken && watch.most > 0 && ask->slo->count > 0)
        sim.watch = (struct vp_sim_watch){
            .state = &watch, .request = count_slow, .stop = is_broken, .stop_every = 64};
    struct vp_traffic_source *source = vp_traffic_open(arena, &traffic);
    struct vp_request_stream stream = vp_traffic_stream(source);
    vp_simulate(result, arena, &sim, &stream);
    take(out, arena, result, ask, sim.classes);
    out->cut = vp_traffic_cut(source);
}

/* ---- all of them ---- */

struct crew {
    const struct vp_runs_ask *ask;
    struct vp_runs *runs;
    pthread_mutex_t lock; /* of progress */
    uint32_t done;
    _Atomic uint32_t next;
    _Atomic int failed; /* enum vp_status */
};

/* Memory that cannot be had ends this thread's part, not the others'. */
static void *work(void *argument) {
    struct crew *crew = argument;
    struct vp_arena arena = {0};
    jmp_buf no_memory;

    if (setjmp(no_memory)) {
        atomic_store(&crew->failed, (int)VP_ERR_ENV);
        vp_arena_free(&arena);
        return NULL;
    }
    arena.oom = &no_memory;
    while (atomic_load(&crew->failed) == VP_OK) {
        uint32_t i = atomic_fetch_add(&crew->next, 1);
        if (i >= crew->runs->count)
            break;
        struct vp_arena_mark mark = vp_arena_mark(&arena);
        run_one(&arena, &crew->runs->item[i], crew->ask);
        vp_arena_rewind(&arena, mark);
        pthread_mutex_lock(&crew->lock);
        crew->done++;
        if (crew->ask->progress)
            crew->ask->progress(crew->ask->progress_state, crew->done, crew->runs->count);
        pthread_mutex_unlock(&crew->lock);
    }
    vp_arena_free(&arena);
    return NULL;
}

static void prepare(struct vp_arena *arena, struct vp_runs *out, const struct vp_runs_ask *ask) {
    static const enum vp_serving_end ENDS[] = {VP_SERVING_LIKELY, VP_SERVING_SLOW, VP_SERVING_FAST};
    uint32_t ends = ask->ends ? VP_SERVING_ENDS : 1, classes = ask->serving->sim.classes;

    out->seeds = ask->seeds;
    out->count = ends * ask->seeds;
    out->item = VP_NEW_ARRAY(arena, out->count, struct vp_run);
    for (uint32_t i = 0; i < out->count; i++) {
        struct vp_run *run = &out->item[i];
        run->end = ask->ends ? ENDS[i / ask->seeds] : ask->end;
        run->seed = ask->first_seed + i % ask->seeds;
        if (classes > 1) {
            run->class_figure = vp_arena_array(arena, classes, sizeof *run->class_figure);
            run->class_samples = VP_NEW_ARRAY(arena, classes, uint64_t);
        }
    }
    out->item[0].bins = (ask->bins ? ask->bins : 120) + 2;
    out->item[0].bin = VP_NEW_ARRAY(arena, out->item[0].bins, struct vp_sim_bin);
}

enum vp_status vp_runs_make(struct vp_arena *arena, struct vp_runs *out,
                            const struct vp_runs_ask *ask) {
    enum { MOST_THREADS = 64 };
    struct crew crew = {.ask = ask, .runs = out};
    pthread_t thread[MOST_THREADS];
    bool started[MOST_THREADS] = {false};

    prepare(arena, out, ask);
    unsigned threads = ask->threads < out->count ? ask->threads : out->count;
    threads = threads < MOST_THREADS ? threads : MOST_THREADS;
    pthread_mutex_init(&crew.lock, NULL);
    for (unsigned i = 1; i < threads; i++)
        started[i] = pthread_create(&thread[i], NULL, work, &crew) == 0;
    work(&crew); /* this thread takes part; others that cannot be started are done without */
    for (unsigned i = 1; i < threads; i++)
        if (started[i])
            pthread_join(thread[i], NULL);
    pthread_mutex_destroy(&crew.lock);
    return (enum vp_status)atomic_load(&crew.failed);
}

const struct vp_run *vp_runs_at(const struct vp_runs *runs, enum vp_serving_end end,
                                uint32_t seed) {
    for (uint32_t i = 0; i < runs->count; i += runs->seeds)
        if (runs->item[i].end == end)
            return &runs->item[i + seed];
    return NULL;
}
