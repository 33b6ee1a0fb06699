/* What no number of copies, or no smaller number, can do: bounds of a promise from below. */
#include <math.h>
#include <stdlib.h>

#include "api/deploy.h"
#include "planner/base/sum.h"
#include "planner/serving/step_bound.h"

/* ---- the load ---- */

enum { SAMPLE = 20000 };

static int ascending(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static double sum_of(const uint32_t *sorted, uint64_t n) {
    double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += sorted[i];
    return sum;
}

/* The strictest limit of a kind and the share that must keep it; of a mean half of the limit's
 * requests may be beyond twice the limit at most (Markov). */
static void strictest(const struct vp_slo *slo, enum vp_slo_what what, double *seconds,
                      double *share) {
    for (uint32_t i = 0; i < slo->count; i++) {
        const struct vp_slo_limit *l = &slo->limit[i];
        double s = l->share > 0 ? l->ms / 1e3 : l->ms / 1e3 * 2, p = l->share > 0 ? l->share : 0.5;
        if (l->what == what && (!(*share > 0) || s < *seconds)) {
            *seconds = s;
            *share = p;
        }
    }
}

/* Of a trace that is played as it is, everything is known. What is drawn has fewer requests than
 * its rate says by five deviations at most, and lengths that differ from the sample's by less than
 * the slack. Requests before the warm-up may be as late as they like. */
static void set_work(struct vp_load *out, const struct vp_simulation *simulation,
                     const uint32_t *prompt, const uint32_t *output, uint64_t n) {
    const double sure = 5, slack = 0.9, aside = 0.05;
    const struct vp_runs_ask *runs = &simulation->runs;
    const struct vp_arrival *a = &simulation->scenario->traffic.arrival;
    const struct vp_trace *trace = runs->traffic.trace;
    bool scaled = runs->traffic.rate_scale < 1 || runs->traffic.rate_scale > 1;
    bool warm = runs->warmup_s > 0, steady = a->kind == VP_ARRIVAL_POISSON;
    bool exact = trace && !scaled && !warm;
    double mean = trace ? (double)n * runs->traffic.rate_scale
                        : vp_traffic_rate(&runs->traffic, runs->duration_s) * runs->duration_s;
    double both_share = fmax(out->both_share, 0);

    if (warm && steady)
        mean *= 1 - runs->warmup_s / out->span_s;
    out->requests = exact ? mean : fmax(mean - sure * sqrt(mean), 0) * slack;
    if (n == 0 || (!exact && warm && !steady) || a->kind == VP_ARRIVAL_GAMMA)
        return; /* nothing is proven of the work */
    double scale = out->requests / (double)n;
    uint64_t first = (uint64_t)floor(out->first_share * (double)n);
    uint64_t both = (uint64_t)floor(both_share * (double)n);
    uint64_t at = (uint64_t)floor(fmax(out->first_share - (exact ? 0 : aside), 0) * (double)n);
    out->prompt_tokens = sum_of(prompt, first) * scale;
    out->output_tokens = sum_of(output, both) * scale;
    out->longest_output = both > 0 ? output[both - 1] : 0;
    out->prompt_at_share = at > 0 ? prompt[at - 1] : 0;
}

void vp_load_of(struct vp_load *out, struct vp_arena *arena,
                const struct vp_simulation *simulation) {
    const struct vp_runs_ask *runs = &simulation->runs;
    struct vp_arena_mark mark = vp_arena_mark(arena);
    const struct vp_trace *trace = runs->traffic.trace;
    uint64_t room = trace ? trace->rows : SAMPLE, n = 0;
    uint32_t *prompt = VP_NEW_ARRAY(arena, room, uint32_t);
    uint32_t *output = VP_NEW_ARRAY(arena, room, uint32_t);
    struct vp_traffic_settings one = runs->traffic;
    struct vp_request r;

    one.rate_scale = one.time_scale = 1;
    one.seed = runs->first_seed;
    struct vp_request_stream stream = vp_traffic_stream(vp_traffic_open(arena, &one));
    *out = (struct vp_load){.least_context = UINT32_MAX};
    while (n < room && stream.next(stream.state, &r)) {
        prompt[n] = r.prompt > r.shared_prefix_tokens ? r.prompt - r.shared_prefix_tokens : 1;
        output[n] = r.output;
        if (r.prompt < out->least_context)
            out->least_context = r.prompt;
        n++;
    }
    strictest(&simulation->slo, VP_SLO_TTFT, &out->first_s, &out->first_share);
    strictest(&simulation->slo, VP_SLO_TPOT, &out->token_s, &out->token_share);
    qsort(prompt, n, sizeof *prompt, ascending);
    qsort(output, n, sizeof *output, ascending);
    out->span_s = trace ? trace->span_s * runs->traffic.time_scale : runs->duration_s;
    out->both_share = out->first_share + out->token_share - 1;
    set_work(out, simulation, prompt, output, n);
    vp_arena_rewind(arena, mark);
}

/* ---- the set-up ---- */

/* The most tokens of an iteration. */
static uint64_t most_tokens(const struct vp_serving_copy *c) {
    uint64_t most = vp_max(c->scheduler.token_budget, c->scheduler.chunk_tokens);
    return most > 0 ? most : 1U << 20;
}

static uint64_t most_sequences(const struct vp_serving_copy *c) {
    return c->scheduler.max_running > 0 ? c->scheduler.max_running : 1U << 16;
}

/* A request by itself. */
static bool is_hopeless(const struct vp_load *load, const struct vp_serving_copy *c) {
    double first_us = vp_step_least_first_us(&c->time, load->prompt_at_share, most_tokens(c));
    double token_us =
        vp_step_least_token_us(&c->time, load->least_context, c->scheduler.draft_tokens);

    if (load->prompt_at_share > 0 && first_us > load->first_s * 1e6)
        return true;
    return load->token_share > 0 && token_us > load->token_s * 1e6;
}

uint64_t vp_deploy_least_copies(const struct vp_load *load, const struct vp_serving_copy *c) {
    double copies = 1;
    double engines = (double)vp_max(c->engines, 1);

    if (is_hopeless(load, c))
        return UINT64_MAX;
    if (load->prompt_tokens > 0) {
        double work_s =
            load->prompt_tokens * vp_step_least_prompt_us(&c->time, most_tokens(c)) / 1e6;
        copies = fmax(copies, work_s / (load->span_s + load->first_s) / engines);
    }
    if (load->output_tokens > 0) {
        double token_us = vp_step_least_output_us(&c->time, load->least_context, most_sequences(c),
                                                  c->scheduler.draft_tokens);
        double work_s = load->output_tokens * token_us / 1e6;
        double end_s = load->span_s + load->first_s + load->token_s * load->longest_output;
        copies = fmax(copies, work_s / end_s / engines);
    }
    const double rounding = 1e-9;
    return (uint64_t)ceil(copies - rounding);
}
