#include "api/simulate.h"

#include <inttypes.h>
#include <math.h>

#include "api/simulate_parts.h"
#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/import/trace_reader.h"

/* ---- the plans ---- */

static enum vp_status plan_variant(struct vp_ctx *ctx, const struct vp_result **out,
                                   const struct vp_variants *variants,
                                   const struct vp_setting *changes, size_t count, bool bare) {
    struct vp_result *plan = VP_NEW(ctx->arena, struct vp_result);
    const struct vp_scenario *scenario = NULL;
    enum vp_status status = vp_variants_make(variants, ctx, &scenario, changes, count);

    *out = plan;
    if (status != VP_OK)
        return status;
    if (!bare)
        return vp_plan_run(ctx, plan, scenario);
    if (vp_plan_evaluate(ctx->arena, plan, scenario))
        return VP_OK;
    vp_diag_add(ctx->diags, VP_D_OVERFLOW, NULL, "a size exceeds 64 bits");
    return VP_ERR_INPUT;
}

/* A copy of one kind with another tensor width: its devices are then so many, too. */
static enum vp_status plan_side(struct vp_ctx *ctx, const struct vp_result **out,
                                const struct vp_variants *variants,
                                const struct vp_setting *changes, size_t count,
                                const struct vp_scenario *s, uint64_t tensor, bool bare) {
    struct vp_setting *all = VP_NEW_ARRAY(ctx->arena, count + 2, struct vp_setting);
    uint64_t devices = tensor * vp_max(s->parallel.pipeline, 1) * vp_max(s->parallel.data, 1);

    for (size_t i = 0; i < count; i++)
        all[i] = changes[i];
    all[count] = (struct vp_setting){
        "parallel.tensor", vp_arena_printf(ctx->arena, "%" PRIu64, tensor), "serve.disaggregated"};
    all[count + 1] = (struct vp_setting){
        "hardware.count", vp_arena_printf(ctx->arena, "%" PRIu64, devices), "serve.disaggregated"};
    return plan_variant(ctx, out, variants, all, tensor > 0 ? count + 2 : count, bare);
}

static enum vp_status plan_copies(struct vp_ctx *ctx, struct vp_simulation *out,
                                  const struct vp_variants *variants,
                                  const struct vp_setting *changes, size_t count, bool bare) {
    enum vp_status status = plan_variant(ctx, &out->plan, variants, changes, count, bare);

    if (status != VP_OK)
        return status;
    const struct vp_scenario *s = out->scenario = out->plan->scenario;
    const struct vp_disaggregation *d = &s->traffic.disaggregation;
    if (!d->on)
        return VP_OK;
    status = plan_side(ctx, &out->prefill, variants, changes, count, s, d->prefill_tensor, bare);
    if (status == VP_OK && d->decode_tensor > 0)
        status = plan_side(ctx, &out->plan, variants, changes, count, s, d->decode_tensor, bare);
    return status;
}

/* What does not start serves nothing. */
static enum vp_status check_plan(struct vp_ctx *ctx, const struct vp_result *plan) {
    bool starts = plan->verdict != VP_DOES_NOT_FIT || plan->reason == VP_REASON_CONCURRENCY ||
                  plan->reason == VP_REASON_ADMISSION || plan->reason == VP_REASON_BUDGET;

    if (starts)
        return VP_OK;
    vp_diag_add(ctx->diags, VP_D_NOT_SERVED, NULL, "it does not fit, so it serves nothing: %s",
                plan->reason_text ? plan->reason_text : "");
    vp_diag_hint(ctx->diags, "`vramplan fit` says what to change");
    return VP_ERR_INPUT;
}

/* ---- the traffic ---- */

static bool is_random(const struct vp_lengths *l) { return l->kind != VP_LENGTH_FIXED; }

static bool is_drawn(const struct vp_simulation *sim, const struct vp_simulate_ask *ask) {
    const struct vp_traffic *t = &sim->scenario->traffic;
    bool trace = t->arrival.kind == VP_ARRIVAL_TRACE;
    bool process =
        !trace && t->arrival.kind != VP_ARRIVAL_CLOSED && t->arrival.kind != VP_ARRIVAL_BATCH;

    if (trace)
        return floor(ask->rate_scale) < ask->rate_scale || ask->rate_scale > 1 ||
               sim->serving.serve.scheduler.draft_tokens > 0;
    return process || t->classes > 1 || is_random(&t->prompt) || is_random(&t->output) ||
           t->prefix.groups > 1 || sim->serving.serve.scheduler.draft_tokens > 0;
}

/* Lengths are what a simulation is about: no default stands for them. */
static enum vp_status check_lengths(struct vp_ctx *ctx, const struct vp_scenario *s) {
    const struct vp_traffic *t = &s->traffic;

    if (t->arrival.kind == VP_ARRIVAL_TRACE || t->classes > 0)
        return VP_OK;
    if (t->prompt.mean > 0 && t->output.mean > 0)
        return VP_OK;
    vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, NULL,
                "how long requests are is not said: %s%s%s missing",
                t->prompt.mean > 0 ? "" : "serve.prompt_tokens",
                t->prompt.mean > 0 || t->output.mean > 0 ? "" : " and ",
                t->output.mean > 0 ? " is" : "serve.output_tokens");
    vp_diag_hint(ctx->diags,
                 "serve: {prompt_tokens: 1200, output_tokens: {lognormal: [250, 1.0]}}, "
                 "or --trace FILE");
    return VP_ERR_INPUT;
}

static enum vp_status read_trace(struct vp_ctx *ctx, struct vp_simulation *out,
                                 const struct vp_simulate_ask *ask, const struct vp_trace *trace) {
    const struct vp_traffic *t = &out->scenario->traffic;
    enum vp_status status = VP_OK;

    if (t->arrival.kind != VP_ARRIVAL_TRACE)
        return VP_OK;
    if (trace)
        out->trace = *trace;
    else
        status = vp_trace_read(ctx, &out->trace, t->trace_path, ask->duration_s / ask->time_scale);
    if (status == VP_OK && !trace && out->trace.dropped > 0) {
        struct vp_pos pos = {t->trace_path, out->trace.dropped_line, 0};
        vp_diag_add(ctx->diags, VP_D_TRACE_DROPPED, &pos,
                    "%" PRIu64 " requests have no prompt or no output, and are left out; this is "
                    "the first",
                    out->trace.dropped);
    }
    return status;
}

static void set_times(struct vp_simulation *out, const struct vp_simulate_ask *ask) {
    enum { TEN_MINUTES = 600 };
    const struct vp_arrival *a = &out->scenario->traffic.arrival;
    struct vp_runs_ask *runs = &out->runs;

    runs->duration_s = ask->duration_s;
    if (!(runs->duration_s > 0) && a->kind == VP_ARRIVAL_RAMP)
        runs->duration_s = a->point[a->points - 1].at_s * ask->time_scale;
    if (!(runs->duration_s > 0) && a->kind != VP_ARRIVAL_TRACE && a->kind != VP_ARRIVAL_BATCH)
        runs->duration_s = TEN_MINUTES;
    bool settles = a->kind != VP_ARRIVAL_TRACE && a->kind != VP_ARRIVAL_BATCH;
    runs->warmup_s = ask->warmup_s >= 0 ? ask->warmup_s : settles ? runs->duration_s / 10 : 0;
    runs->loop = a->kind == VP_ARRIVAL_CLOSED  ? VP_LOOP_CLOSED
                 : a->kind == VP_ARRIVAL_BATCH ? VP_LOOP_BATCH
                                               : VP_LOOP_OPEN;
    runs->concurrency =
        vp_max(out->scenario->serve.concurrency, 1) * (out->prefill ? 1 : out->serving.replicas);
    if (runs->loop == VP_LOOP_CLOSED && ask->warmup_s < 0)
        runs->warmup_requests = runs->concurrency;
    if (runs->loop == VP_LOOP_BATCH)
        runs->duration_s = 0;
}

static void set_runs(struct vp_simulation *out, const struct vp_simulate_ask *ask) {
    enum { SEEDS = 5 };
    struct vp_runs_ask *runs = &out->runs;

    *runs = (struct vp_runs_ask){.serving = &out->serving,
                                 .seeds = ask->seeds,
                                 .first_seed = ask->first_seed,
                                 .ends = vp_serving_basis(&out->serving) > VP_BASIS_BOUND,
                                 .end = VP_SERVING_LIKELY,
                                 .slo = &out->slo,
                                 .bins = ask->bins,
                                 .threads = ask->threads,
                                 .progress = ask->progress,
                                 .progress_state = ask->progress_state};
    set_times(out, ask);
    runs->traffic =
        (struct vp_traffic_settings){.traffic = &out->scenario->traffic,
                                     .trace = out->trace.rows ? &out->trace : NULL,
                                     .rate_scale = ask->rate_scale,
                                     .time_scale = ask->time_scale,
                                     .batch = runs->concurrency,
                                     .longest = out->serving.serve.scheduler.max_model_len};
    out->drawn = is_drawn(out, ask);
    if (runs->seeds == 0)
        runs->seeds = out->drawn ? SEEDS : 1;
}

/* As many as a trace may have. */
static enum vp_status check_count(struct vp_ctx *ctx, const struct vp_runs_ask *runs) {
    double count = runs->loop == VP_LOOP_OPEN && !runs->traffic.trace
                       ? vp_traffic_rate(&runs->traffic, runs->duration_s) * runs->duration_s
                       : 0;
    if (!(count > VP_TRACE_MAX_ROWS))
        return VP_OK;
    vp_diag_add(ctx->diags, VP_D_CAP, NULL, "about %.3g requests would come, the cap is %d", count,
                (int)VP_TRACE_MAX_ROWS);
    vp_diag_hint(ctx->diags, "a shorter --duration, or fewer arrivals");
    return VP_ERR_INPUT;
}

/* A step is no latency of a request. */
static enum vp_status check_slo(struct vp_ctx *ctx, const struct vp_slo *slo) {
    for (uint32_t i = 0; i < slo->count; i++)
        if (slo->limit[i].what == VP_SLO_STEP) {
            vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                        "%s=%s is of a training step, not of requests", slo->limit[i].name,
                        slo->limit[i].text);
            return VP_ERR_INPUT;
        }
    return VP_OK;
}

enum vp_status vp_simulation_make(struct vp_ctx *ctx, struct vp_simulation *out,
                                  const struct vp_variants *variants,
                                  const struct vp_setting *changes, size_t change_count,
                                  const struct vp_simulate_ask *ask, const struct vp_trace *trace) {
    *out = (struct vp_simulation){.scenario = NULL};
    enum vp_status status = plan_copies(ctx, out, variants, changes, change_count, ask->bare);
    if (status != VP_OK)
        return status;
    out->slo = ask->slo ? *ask->slo : out->scenario->slo;
    status = check_plan(ctx, out->plan);
    if (status == VP_OK && out->prefill)
        status = check_plan(ctx, out->prefill);
    if (status == VP_OK && !vp_serving_make(ctx, &out->serving, out->plan, out->prefill))
        status = VP_ERR_INPUT;
    if (status == VP_OK)
        status = check_slo(ctx, &out->slo);
    if (status == VP_OK)
        status = check_lengths(ctx, out->scenario);
    if (status == VP_OK)
        status = read_trace(ctx, out, ask, trace);
    if (status == VP_OK) {
        set_runs(out, ask);
        status = check_count(ctx, &out->runs);
    }
    return status;
}

/* ---- the run ---- */

static void say_traffic(struct vp_simulated *out, const struct vp_simulation *sim) {
    const struct vp_runs_ask *runs = &sim->runs;

    out->arrival = sim->scenario->serve.arrival;
    out->trace = sim->trace.rows ? &sim->trace : NULL;
    out->rate_scale = runs->traffic.rate_scale;
    out->time_scale = runs->traffic.time_scale;
    out->duration_s = runs->duration_s;
    out->warmup_s = runs->warmup_s;
    out->rate_per_s =
        runs->loop == VP_LOOP_OPEN ? vp_traffic_rate(&runs->traffic, runs->duration_s) : 0;
    vp_traffic_means(&runs->traffic, &out->prompt_tokens, &out->output_tokens);
    out->seeds = runs->seeds;
    out->first_seed = runs->first_seed;
    out->no_chance = !sim->drawn;
}

static void say_setup(struct vp_simulated *out, const struct vp_simulation *sim) {
    const struct vp_serving *serving = &sim->serving;

    out->scenario = sim->scenario;
    out->plan = sim->plan;
    out->prefill = sim->prefill;
    out->gpus = serving->gpus;
    out->replicas = serving->replicas;
    out->prefill_replicas = serving->prefill_replicas;
    out->price_per_hour = sim->scenario->hardware.price_per_hour * (double)serving->gpus;
    out->basis = vp_serving_basis(serving);
    out->basis_why = serving->serve.time.why;
    out->spread = fmax(serving->serve.time.spread, serving->prefill.time.spread);
}

static void say_drafts(struct vp_simulated *out, const struct vp_simulation *sim) {
    const struct vp_step_time *time = &sim->serving.serve.time;
    double context = out->prompt_tokens + out->output_tokens / 2;
    uint64_t sequences = 1, most = sim->serving.serve.scheduler.max_running;

    if (time->draft_tokens == 0)
        return;
    for (; out->break_evens < VP_BREAK_EVENS && sequences <= vp_max(most, 1); sequences *= 4)
        out->break_even[out->break_evens++] =
            (struct vp_break_even){sequences, vp_step_break_even(time, sequences, context)};
}

/* Of no request at all no promise is kept and no latency is 0. Refused ones break a promise, where
 * there is one. */
static enum vp_status check_seen(struct vp_ctx *ctx, const struct vp_simulated *seen,
                                 bool exhausted) {
    const struct vp_sim_totals *t = &seen->totals;
    uint64_t refused = t->refused_length + t->refused_pool + t->dropped;

    if (t->finished > 0 || (refused > 0 && seen->limits > 0))
        return VP_OK;
    if (refused > 0 || exhausted) {
        vp_diag_add(ctx->diags, VP_D_NOT_SERVED, NULL,
                    "no request is served: all are longer than the engine's longest sequence, or "
                    "than the cache");
        vp_diag_hint(ctx->diags, "serve.context, or shorter requests");
        return VP_ERR_INPUT;
    }
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                "no request comes in the time that counts, so there is nothing to tell");
    vp_diag_hint(ctx->diags, "a longer --duration, a shorter --warmup, or more arrivals");
    return VP_ERR_INPUT;
}

enum vp_status vp_simulation_run(struct vp_ctx *ctx, struct vp_simulated *out,
                                 struct vp_simulation *simulation) {
    struct vp_runs runs;

    *out = (struct vp_simulated){.diags = ctx->diags};
    simulation->runs.serving = &simulation->serving; /* the struct may have been moved */
    simulation->runs.slo = &simulation->slo;
    if (simulation->trace.rows)
        simulation->runs.traffic.trace = &simulation->trace;
    say_setup(out, simulation);
    say_traffic(out, simulation);
    say_drafts(out, simulation);
    enum vp_status status = vp_runs_make(ctx->arena, &runs, &simulation->runs);
    if (status != VP_OK) {
        vp_diag_add(ctx->diags, VP_D_NO_MEMORY, NULL, "the system has no memory left");
        return status;
    }
    vp_simulated_fill(ctx->arena, out, simulation, &runs);
    status = check_seen(ctx, out, runs.item[0].exhausted);
    if (status != VP_OK)
        return status;
    vp_simulated_analyse(ctx->arena, out, simulation);
    vp_simulated_limit(out);
    return VP_OK;
}

enum vp_exit vp_exit_of_promise(enum vp_promise promise) {
    switch (promise) {
    case VP_PROMISE_NONE:
    case VP_PROMISE_KEPT:
        return VP_EXIT_YES;
    case VP_PROMISE_AT_RISK:
    case VP_PROMISE_OPEN:
        return VP_EXIT_INCONCLUSIVE;
    case VP_PROMISE_BROKEN:
        break;
    }
    return VP_EXIT_NO;
}
