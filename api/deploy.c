#include "api/deploy.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/levers.h"
#include "api/sweep.h"
#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/import/trace_reader.h"

const char *vp_deploy_state_name(enum vp_deploy_state state) {
    static const char *const NAMES[] = {"kept",   "likely",  "broken", "beaten",
                                        "no-fit", "refused", "open"};
    return NAMES[state];
}

/* ---- the shapes ---- */

enum { SHAPE_ROOM = 8192, SETTING_ROOM = 32 };

static const struct {
    enum vp_engine_kind engine;
    const char *path, *value;
} SETTINGS[] = {
#define X(engine, path, value) {VP_ENGINE_##engine, path, value},
#include "api/deploy_settings.def"
#undef X
};
enum { SETTING_COUNT = sizeof SETTINGS / sizeof *SETTINGS };

struct search {
    struct vp_search *of;
    const struct vp_deploy_ask *ask;
    struct vp_trace trace; /* read once; rows 0: none */
    struct vp_deployment *shape;
    uint32_t shapes;
    _Atomic uint64_t simulated;
};

static void add_shape(struct search *s, const char *gpu, uint64_t each,
                      const struct vp_lever_value *layout, int setting) {
    struct vp_arena *arena = s->of->ctx->arena;
    struct vp_deployment *d = &s->shape[s->shapes];

    if (s->shapes == SHAPE_ROOM || layout->sets + 2 > SETTING_ROOM)
        return;
    *d = (struct vp_deployment){.row = s->shapes++, .layout = layout->to, .settings = ""};
    d->state = VP_DEPLOY_BEATEN; /* until it is looked at */
    d->each = each;
    d->gpu = gpu ? gpu : s->of->base->hardware.gpu.id;
    d->set = VP_NEW_ARRAY(arena, layout->sets + 2, struct vp_setting);
    if (gpu)
        d->set[d->sets++] = (struct vp_setting){"hardware.gpu", gpu, "--gpu"};
    for (uint32_t i = 0; i < layout->sets; i++)
        d->set[d->sets++] = layout->set[i];
    if (setting < 0)
        return;
    d->set[d->sets++] = (struct vp_setting){SETTINGS[setting].path, SETTINGS[setting].value, "fit"};
    d->settings = vp_arena_printf(arena, "%s %s", strrchr(SETTINGS[setting].path, '.') + 1,
                                  SETTINGS[setting].value);
}

/* A setting that the user has not said, and that says something else than the engine's default
 * does on the scenario's own card. */
static bool is_tried(const struct vp_scenario *s, int setting) {
    enum vp_field field = vp_field_find_for(s->engine.kind, SETTINGS[setting].path);

    return SETTINGS[setting].engine == s->engine.kind && field < VP_FIELD_COUNT &&
           !vp_scenario_is_given(s, field);
}

/* Data-parallel ranks of a model without experts are copies: those are counted anyway. */
static bool is_copies(const struct vp_scenario *s, const struct vp_lever_value *layout) {
    for (uint32_t i = 0; i < layout->sets; i++)
        if (vp_text_eq(layout->set[i].path, "parallel.data") &&
            !vp_text_eq(layout->set[i].value, "1"))
            return !vp_model_has_experts(s->model);
    return false;
}

/* The scenario's own settings first, of these the smallest copies: what they find spares the
 * others. */
static void list_shapes(struct search *s) {
    const struct vp_scenario *base = s->of->base;
    struct vp_arena *arena = s->of->ctx->arena;

    s->shape = VP_NEW_ARRAY(arena, SHAPE_ROOM, struct vp_deployment);
    for (int k = -1; k < SETTING_COUNT; k++)
        for (uint64_t n = 1; n <= VP_DEPLOY_MOST_GPUS && (k < 0 || is_tried(base, k));
             n += n < 8 ? 1 : 8) {
            struct vp_layouts layouts = vp_layouts_of(arena, base, n, true);
            for (size_t g = 0; g < s->ask->gpu_count; g++)
                for (uint32_t l = 0; l < layouts.count; l++)
                    if (!is_copies(base, &layouts.item[l]))
                        add_shape(s, s->ask->gpus[g], n, &layouts.item[l], k);
        }
}

/* ---- one shape ---- */

struct worker {
    struct search *search;
    struct vp_arena arena;
    struct vp_ctx ctx;
    struct vp_diags diags;
};

/* What a run of all seeds says of the promise. */
struct judged {
    bool kept;
    uint32_t tightest;
    double margin, ms[VP_SLO_LIMITS], output_tokens_per_s;
};

static void judge(struct judged *out, const struct vp_simulation *sim, const struct vp_runs *runs,
                  enum vp_serving_end end) {
    const struct vp_slo *slo = &sim->slo;

    uint64_t counted = 0, refused = 0;

    for (uint32_t i = 0; i < runs->seeds; i++) {
        const struct vp_run *run = &vp_runs_at(runs, end, 0)[i];
        counted += run->samples;
        refused += run->totals.refused_length + run->totals.refused_pool + run->totals.dropped;
    }
    *out = (struct judged){.kept = counted + refused > 0, .margin = INFINITY};
    for (uint32_t i = 0; i < slo->count; i++) {
        struct vp_seen seen = vp_runs_limit(runs, end, i);
        double margin = 1 - seen.likely / slo->limit[i].ms;
        out->kept &= seen.high <= slo->limit[i].ms;
        out->ms[i] = seen.likely;
        if (!(margin < out->margin))
            continue;
        out->margin = margin;
        out->tightest = i;
    }
    for (uint32_t i = 0; i < runs->seeds; i++)
        out->output_tokens_per_s +=
            vp_runs_at(runs, end, 0)[i].output_tokens_per_s / (double)runs->seeds;
}

static enum vp_status simulate(struct worker *w, struct judged *out, struct vp_simulation *sim,
                               uint64_t copies, enum vp_serving_end end) {
    struct vp_arena_mark mark = vp_arena_mark(&w->arena);
    struct vp_runs_ask ask = sim->runs;
    struct vp_runs runs;

    sim->serving.replicas = copies;
    ask.serving = &sim->serving;
    ask.slo = &sim->slo;
    if (ask.traffic.trace)
        ask.traffic.trace = &w->search->trace;
    ask.ends = false;
    ask.end = end;
    ask.stop_when_broken = true;
    ask.threads = 1;
    ask.progress = NULL;
    enum vp_status status = vp_runs_make(&w->arena, &runs, &ask);
    atomic_fetch_add(&w->search->simulated, 1);
    if (status == VP_OK)
        judge(out, sim, &runs, end);
    vp_arena_rewind(&w->arena, mark);
    return status;
}

/* The tightest promise is that of the slow end, where that was asked. */
static void note(struct vp_deployment *d, const struct vp_slo *slo, const struct judged *likely,
                 const struct judged *slow) {
    uint32_t t = d->tightest = slow ? slow->tightest : likely->tightest;

    d->tightest_ms = likely->ms[t];
    d->margin = 1 - likely->ms[t] / slo->limit[t].ms;
    d->tightest_slow_ms = slow ? slow->ms[t] : 0;
    d->output_tokens_per_s = likely->output_tokens_per_s;
}

/* Copies from the least on, one by one, until one is kept for sure; at most `most` of them. What is
 * kept at the slow end is kept at the likely one, so that behind the first number that is likely
 * only the slow end is asked. */
static enum vp_status count_copies(struct worker *w, struct vp_deployment *d,
                                   struct vp_simulation *sim, uint64_t most) {
    bool bound = vp_serving_basis(&sim->serving) <= VP_BASIS_BOUND;
    enum vp_status status = VP_OK;

    for (uint64_t n = d->least_copies; n <= most && status == VP_OK; n++) {
        struct judged likely = {.kept = true}, slow = {.kept = false};
        if (d->likely_copies == 0)
            status = simulate(w, &likely, sim, n, VP_SERVING_LIKELY);
        if (status != VP_OK || !likely.kept)
            continue;
        bool first = d->likely_copies == 0;
        if (!bound)
            status = simulate(w, &slow, sim, n, VP_SERVING_SLOW);
        if (status == VP_OK && !first && slow.kept)
            status = simulate(w, &likely, sim, n, VP_SERVING_LIKELY);
        if (status != VP_OK || (!first && !slow.kept))
            continue;
        if (first)
            d->likely_copies = n;
        d->copies = n;
        d->state = bound ? VP_DEPLOY_OPEN : slow.kept ? VP_DEPLOY_KEPT : VP_DEPLOY_LIKELY;
        note(d, &sim->slo, &likely, slow.kept ? &slow : NULL);
        if (bound || slow.kept)
            break;
    }
    return status;
}

static const char *last_error(const struct worker *w) {
    for (uint32_t i = w->diags.count; i-- > 0;)
        if (vp_diag_severity(w->diags.items[i].id) == VP_ERROR)
            return w->diags.items[i].message;
    return "refused";
}

/* Within `limit` GPUs; what is kept of it beyond the worker's memory is put into `text` (room for
 * TEXT bytes), because the context's arena is not this thread's. */
enum { TEXT = 160 };

static enum vp_status evaluate(struct worker *w, struct vp_deployment *d, char *text,
                               uint64_t limit) {
    const struct vp_deploy_ask *ask = w->search->ask;
    struct vp_simulate_ask simulate_ask = ask->simulate;
    struct vp_simulation sim;
    struct vp_load load;

    if (d->each > limit) /* one copy is too many already */
        return VP_OK;
    w->diags.count = w->diags.errors = w->diags.dropped = 0;
    simulate_ask.bare = true;
    enum vp_status status =
        vp_simulation_make(&w->ctx, &sim, w->search->of->variants, d->set, d->sets, &simulate_ask,
                           w->search->trace.rows ? &w->search->trace : NULL);
    if (status == VP_ERR_ENV)
        return status;
    if (status != VP_OK) {
        bool fits_not = false;
        for (uint32_t i = 0; i < w->diags.count; i++)
            fits_not |= w->diags.items[i].id == VP_D_NOT_SERVED;
        d->state = fits_not ? VP_DEPLOY_NO_FIT : VP_DEPLOY_REFUSED;
        snprintf(text, TEXT, "%s", last_error(w));
        d->why = text;
        return VP_OK;
    }
    const struct vp_scenario *s = sim.scenario;
    d->each = s->hardware.count;
    d->tensor = s->parallel.tensor;
    d->pipeline = s->parallel.pipeline;
    d->data = s->parallel.data;
    d->expert = s->parallel.expert;
    d->state = VP_DEPLOY_BROKEN;
    vp_load_of(&load, &w->arena, &sim);
    d->least_copies = ask->plain ? 1 : vp_deploy_least_copies(&load, &sim.serving.serve);
    if (d->least_copies == UINT64_MAX) {
        snprintf(text, TEXT, "a request by itself is too slow");
        d->why = text;
        return VP_OK;
    }
    if (limit < VP_DEPLOY_MOST_GPUS && d->least_copies * d->each > limit) {
        d->state = VP_DEPLOY_BEATEN;
        return VP_OK;
    }
    return count_copies(w, d, &sim, limit / d->each);
}

static double price_of(const struct search *s, const struct vp_deployment *d) {
    const struct vp_prices_given *prices = &s->of->prices;
    double each =
        vp_text_eq(d->gpu, s->of->base->hardware.gpu.id) ? s->of->base->hardware.price_per_hour : 0;

    for (size_t i = 0; i < prices->count; i++)
        if (!prices->gpu[i] || vp_name_eq(prices->gpu[i], d->gpu))
            each = prices->price[i];
    return each;
}

/* ---- all of them ---- */

/* What is known of a GPU when a round begins: shapes of one round do not see each other's answers,
 * so that these do not depend on the number of threads. */
enum { ROUND = 4 };

struct crew {
    struct search *search;
    struct vp_deployment **item; /* of the round */
    char (*text)[TEXT];
    uint64_t *limit;
    uint32_t count;
    _Atomic uint32_t next;
    _Atomic int failed;
};

struct thread {
    struct crew *crew;
    struct worker worker;
    pthread_t id;
    bool started;
};

static void *work(void *argument) {
    struct thread *t = argument;
    struct worker *w = &t->worker;
    jmp_buf no_memory;

    if (setjmp(no_memory)) {
        atomic_store(&t->crew->failed, (int)VP_ERR_ENV);
        return NULL;
    }
    w->arena.oom = &no_memory;
    while (atomic_load(&t->crew->failed) == VP_OK) {
        uint32_t i = atomic_fetch_add(&t->crew->next, 1);
        if (i >= t->crew->count)
            break;
        struct vp_arena_mark mark = vp_arena_mark(&w->arena);
        enum vp_status status = evaluate(w, t->crew->item[i], t->crew->text[i], t->crew->limit[i]);
        vp_arena_rewind(&w->arena, mark);
        if (status != VP_OK)
            atomic_store(&t->crew->failed, (int)status);
    }
    return NULL;
}

static enum vp_status run_round(struct crew *crew, struct thread *threads, unsigned count) {
    atomic_store(&crew->next, 0);
    for (unsigned i = 1; i < count && i < crew->count; i++)
        threads[i].started = pthread_create(&threads[i].id, NULL, work, &threads[i]) == 0;
    work(&threads[0]);
    for (unsigned i = 1; i < count; i++) {
        if (threads[i].started)
            pthread_join(threads[i].id, NULL);
        threads[i].started = false;
    }
    return (enum vp_status)atomic_load(&crew->failed);
}

/* GPUs that a shape may take at most: as many as the smallest deployment of its GPU that is kept.
 */
static uint64_t limit_of(const struct vp_deployments *out, const struct vp_deploy_ask *ask,
                         const struct vp_deployment *d) {
    uint64_t limit = VP_DEPLOY_MOST_GPUS;

    for (uint32_t i = 0; i < out->count && !ask->every; i++)
        if (out->item[i].state == VP_DEPLOY_KEPT && vp_text_eq(out->item[i].gpu, d->gpu))
            limit = vp_min(limit, out->item[i].gpus - 1);
    return limit;
}

static void finish(struct search *s, struct vp_deployments *out, struct vp_deployment *d,
                   uint64_t limit) {
    double price = price_of(s, d);

    if (d->why)
        d->why = vp_arena_printf(s->of->ctx->arena, "%s", d->why);
    if (d->state == VP_DEPLOY_BROKEN && limit < VP_DEPLOY_MOST_GPUS && !d->why)
        d->state = VP_DEPLOY_BEATEN;
    d->gpus = d->copies * d->each;
    if (d->copies > 0 && d->each > 0 && price > 0) {
        d->price_per_hour = price * (double)d->gpus;
        if (d->output_tokens_per_s > 0)
            d->cost_per_million = d->price_per_hour / 3600 / d->output_tokens_per_s * 1e6;
    }
    if (d->each > 0)
        out->left_alone += VP_DEPLOY_MOST_GPUS / d->each;
}

static enum vp_status run_all(struct search *s, struct vp_deployments *out) {
    enum { MOST_THREADS = 64 };
    struct vp_arena *arena = s->of->ctx->arena;
    struct vp_deployment *item[ROUND];
    char text[ROUND][TEXT];
    uint64_t limit[ROUND];
    struct crew crew = {.search = s, .item = item, .text = text, .limit = limit};
    unsigned threads = s->ask->simulate.threads;
    enum vp_status status = VP_OK;

    threads = threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : threads;
    struct thread *crowd = VP_NEW_ARRAY(arena, threads, struct thread);
    for (unsigned i = 0; i < threads; i++) {
        struct worker *w = &crowd[i].worker;
        crowd[i].crew = &crew;
        w->search = s;
        w->ctx = *s->of->ctx;
        w->ctx.arena = w->diags.arena = &w->arena;
        w->ctx.diags = &w->diags;
    }
    for (uint32_t from = 0; from < out->count && status == VP_OK; from += crew.count) {
        crew.count = (uint32_t)vp_min(ROUND, out->count - from);
        for (uint32_t i = 0; i < crew.count; i++) {
            item[i] = &out->item[from + i];
            limit[i] = limit_of(out, s->ask, item[i]);
            text[i][0] = '\0';
        }
        status = run_round(&crew, crowd, threads);
        for (uint32_t i = 0; i < crew.count; i++)
            finish(s, out, item[i], limit[i]);
        if (s->ask->progress)
            s->ask->progress(s->ask->progress_state, from + crew.count, out->count);
    }
    for (unsigned i = 0; i < threads; i++)
        vp_arena_free(&crowd[i].worker.arena);
    return status;
}

/* ---- the best ---- */

static bool is_answer(const struct vp_deployment *d) {
    return d->state == VP_DEPLOY_KEPT || d->state == VP_DEPLOY_LIKELY || d->state == VP_DEPLOY_OPEN;
}

/* Below 0: a is better. Kept for sure before likely; then money or GPUs; then the margin. */
static int compare(const struct vp_deployment *a, const struct vp_deployment *b, bool cost) {
    double x = cost ? a->price_per_hour : (double)a->gpus;
    double y = cost ? b->price_per_hour : (double)b->gpus;

    if (a->state != b->state)
        return a->state < b->state ? -1 : 1;
    if ((x > 0) != (y > 0)) /* a price that is not known is no low price */
        return x > 0 ? -1 : 1;
    if (x < y || x > y)
        return x < y ? -1 : 1;
    if (a->margin < b->margin || a->margin > b->margin)
        return a->margin > b->margin ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Of every GPU the smallest deployment. */
static void find_best(struct search *s, struct vp_deployments *out, bool cost) {
    out->best = VP_NEW_ARRAY(s->of->ctx->arena, 2 * s->ask->gpu_count + 1, uint32_t);
    for (size_t g = 0; g < s->ask->gpu_count; g++) {
        const char *gpu = s->ask->gpus[g] ? s->ask->gpus[g] : s->of->base->hardware.gpu.id;
        int64_t best = -1;
        for (uint32_t i = 0; i < out->count; i++)
            if (is_answer(&out->item[i]) && vp_text_eq(out->item[i].gpu, gpu) &&
                (best < 0 || compare(&out->item[i], &out->item[best], false) < 0))
                best = i;
        if (best >= 0)
            out->best[out->best_count++] = (uint32_t)best;
    }
    for (uint32_t i = 1; i < out->best_count; i++) {
        uint32_t moved = out->best[i], k = i;
        for (; k > 0 && compare(&out->item[moved], &out->item[out->best[k - 1]], cost) < 0; k--)
            out->best[k] = out->best[k - 1];
        out->best[k] = moved;
    }
}

/* ---- the question ---- */

static enum vp_status refuse(struct vp_ctx *ctx, enum vp_diag_id id, const char *what,
                             const char *hint) {
    vp_diag_add(ctx->diags, id, NULL, "%s", what);
    if (hint)
        vp_diag_hint(ctx->diags, "%s", hint);
    return VP_ERR_INPUT;
}

static enum vp_status check(const struct search *s, bool cost) {
    const struct vp_scenario *base = s->of->base;
    const struct vp_slo *slo = s->ask->simulate.slo ? s->ask->simulate.slo : &base->slo;
    const struct vp_traffic *t = &base->traffic;
    struct vp_ctx *ctx = s->of->ctx;

    if (base->training)
        return refuse(ctx, VP_D_CONTRADICTION, "a training run serves no requests",
                      "`vramplan fit` without traffic says what it needs");
    if (t->arrival.kind != VP_ARRIVAL_TRACE && t->classes == 0 &&
        !(t->prompt.mean > 0 && t->output.mean > 0))
        return refuse(ctx, VP_D_MISSING_VALUE,
                      "how long requests are is not said: serve.prompt_tokens and "
                      "serve.output_tokens are needed",
                      "serve: {prompt_tokens: 1200, output_tokens: {lognormal: [250, 1.0]}}, "
                      "or --trace FILE");
    if (slo->count == 0)
        return refuse(ctx, VP_D_MISSING_VALUE, "nothing is promised: any set-up would do",
                      "--slo ttft_p99=2s,tpot_p95=50ms, or serve.slo");
    if (t->arrival.kind == VP_ARRIVAL_CLOSED || t->arrival.kind == VP_ARRIVAL_BATCH)
        return refuse(ctx, VP_D_MISSING_VALUE,
                      "requests that wait for each other ask for no number of copies",
                      "--trace FILE, --arrivals poisson:4/s");
    if (cost && s->of->prices.count == 0 && !(base->hardware.price_per_hour > 0))
        return refuse(ctx, VP_D_MISSING_VALUE, "no price is known, so nothing is cheapest",
                      "--price GPU=PRICE,... of one device and hour, or --minimize gpus");
    if (t->disaggregation.on)
        return refuse(ctx, VP_D_UNMODELLED,
                      "the search is over copies that read prompts and write answers",
                      "`simulate` takes serve.disaggregated");
    return VP_OK;
}

static enum vp_status read_trace(struct search *s) {
    const struct vp_traffic *t = &s->of->base->traffic;
    const struct vp_simulate_ask *ask = &s->ask->simulate;

    if (t->arrival.kind != VP_ARRIVAL_TRACE)
        return VP_OK;
    return vp_trace_read(s->of->ctx, &s->trace, t->trace_path, ask->duration_s / ask->time_scale);
}

/* The shapes of a part: neighbours, as sweeps are divided. */
static void take_part(struct search *s, struct vp_deployments *out) {
    uint64_t shards = s->ask->shards ? s->ask->shards : 1;
    uint64_t shard = s->ask->shards ? s->ask->shard : 1;
    uint64_t end = vp_sweep_shard_begin(s->shapes, shard + 1, shards);

    out->item = VP_NEW_ARRAY(s->of->ctx->arena, s->shapes + 1, struct vp_deployment);
    for (uint64_t i = vp_sweep_shard_begin(s->shapes, shard, shards); i < end; i++)
        out->item[out->count++] = s->shape[i];
}

enum vp_status vp_deploy_find(struct vp_search *of, struct vp_deployments *out,
                              const struct vp_deploy_ask *ask, bool cost) {
    struct search s = {.of = of, .ask = ask};

    *out = (struct vp_deployments){.slo = ask->simulate.slo ? *ask->simulate.slo : of->base->slo};
    enum vp_status status = check(&s, cost);
    if (status == VP_OK)
        status = read_trace(&s);
    if (status != VP_OK)
        return status;
    list_shapes(&s);
    take_part(&s, out);
    status = run_all(&s, out);
    if (status != VP_OK) {
        vp_diag_add(of->ctx->diags, VP_D_NO_MEMORY, NULL, "the system has no memory left");
        return status;
    }
    find_best(&s, out, cost);
    out->simulated = atomic_load(&s.simulated);
    out->left_alone -= vp_min(out->left_alone, out->simulated);
    return VP_OK;
}
