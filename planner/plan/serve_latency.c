#include "planner/plan/serve_latency.h"

#include <math.h>

#include "planner/base/text.h"
#include "planner/latency/engine_constants.h"
#include "planner/memory/stage.h"

/* ---- the load ---- */

/* Groups of ranks with sequences of their own. */
static double data_ranks(const struct vp_scenario *s) {
    bool within = s->engine.kind == VP_ENGINE_SGLANG;
    return (double)(vp_max(s->parallel.data, 1) *
                    (within ? vp_max(s->parallel.attention_data, 1) : 1));
}

/* Sequences of so many tokens that a rank's cache holds; all of them where nothing is known. */
static double sequences_held(const struct vp_result *result, double tokens) {
    const struct vp_kv_report *kv = &result->kv;

    if (!kv->known || kv->tokens == 0 || result->scenario->engine.kind == VP_ENGINE_TRANSFORMERS)
        return INFINITY;
    return fmax(floor((double)kv->tokens / fmax(tokens, 1)), 1);
}

void vp_serve_load_of(struct vp_serve_load *out, const struct vp_result *result) {
    const struct vp_scenario *s = result->scenario;
    const struct vp_serve *serve = &s->serve;
    double context = (double)serve->context;
    double prompt = (double)serve->prompt_tokens, output = (double)serve->output_tokens;

    if (!(prompt > 0) && !(output > 0)) /* neither is said: halves, as good as any */
        prompt = output = context / 2;
    *out = (struct vp_serve_load){.scenario = s, .layout = vp_stage_layout(s)};
    out->output = fmax(output > 0 ? output : context - prompt, 1);
    out->prompt = fmax(prompt > 0 ? prompt : context - output, 1);
    out->data = data_ranks(s);
    out->requests = fmax((double)serve->concurrency, 1);
    out->budget = fmax((double)s->engine.max_batched_tokens, 1);
    out->batch = serve->arrival && vp_text_eq(serve->arrival, "batch");
    out->mixed = s->engine.kind == VP_ENGINE_VLLM && s->engine.chunked_prefill;
    out->running = fmax(out->requests / out->data, 1);
    out->running = fmin(out->running, sequences_held(result, out->prompt + out->output / 2));
    if (s->engine.kind == VP_ENGINE_VLLM)
        out->running = fmin(out->running, fmax((double)s->engine.max_num_seqs, 1));
}

/* ---- estimates ---- */

static struct vp_estimate estimate(double likely, double spread, enum vp_basis basis) {
    return (struct vp_estimate){basis, likely / spread, likely, likely * spread};
}

/* A rate lies the other way round: what takes at least so long yields at most so much. */
static struct vp_estimate at_least(double value) {
    return (struct vp_estimate){VP_BASIS_BOUND, value, 0, 0};
}
static struct vp_estimate at_most(double value) {
    return (struct vp_estimate){VP_BASIS_BOUND, 0, 0, value};
}

struct part {
    struct vp_latency *out;
    double spread;
    enum vp_basis basis;
};

static void add_part(struct part *p, const char *name, double us) {
    struct vp_latency *out = p->out;

    if (us > 0 && out->parts < VP_TIME_PARTS)
        out->part[out->parts++] =
            (struct vp_time_part){name, {us / p->spread, us, us * p->spread, p->basis}};
}

static void set_parts(struct vp_latency *out, const struct vp_pass *pass,
                      const struct vp_serving_fit *fit, double spread, enum vp_basis basis) {
    struct part p = {out, spread, basis};
    double scale = fit->kernel_scale;

    add_part(&p, "linear layers", pass->linear.likely * scale);
    add_part(&p, "experts", pass->experts.likely * scale);
    add_part(&p, "attention", pass->attention.likely * scale);
    add_part(&p, "norms and activations", pass->other.likely * scale);
    add_part(&p, "communication", pass->exchange.likely * scale);
    add_part(&p, "between kernels",
             pass->layers * fit->layer_us + pass->expert_layers * fit->expert_layer_us);
    add_part(&p, "sequences", pass->sequences * fit->sequence_us);
    add_part(&p, "host", pass->passes * fit->step_us);
}

/* Output tokens per second of everything: requests finish every first + rest microseconds. */
static double output_rate(const struct vp_serve_load *load, double first_us, double tpot_us) {
    double one = first_us + (load->output - 1) * tpot_us;
    double copies = (double)vp_max(load->scenario->serve.replicas, 1);
    return load->running * load->data * load->output * copies / one * 1e6;
}

/* An iteration does not end before the card's memory has been read. */
static struct vp_estimate not_below(struct vp_estimate e, const struct vp_pass *pass) {
    double kernels = pass->linear.likely + pass->experts.likely + pass->attention.likely;
    e.low = fmin(fmax(e.low, kernels * VP_LEAST_KERNEL_SCALE / 1e3), e.likely);
    return e;
}

static void from_constants(struct vp_latency *out, const struct vp_serve_terms *terms,
                           const struct vp_serve_load *load,
                           const struct vp_engine_constants *constants) {
    const struct vp_serving_fit *fit = constants->fit;
    enum vp_basis basis = constants->basis;
    double copies = (double)vp_max(load->scenario->serve.replicas, 1);
    double step = vp_pass_us(&terms->decode, fit), tpot = vp_tpot_us(terms, fit);
    double first = vp_ttft_us(terms, load, fit);
    double waiting = vp_waiting_us(terms, load, fit);
    double spread = vp_engine_spread(constants, fit->tpot_spread, &terms->decode);
    double ttft_spread = vp_engine_spread(constants, fit->ttft_spread, &terms->first);

    out->step_ms = not_below(estimate(step / 1e3, spread, basis), &terms->decode);
    out->tpot_ms = not_below(estimate(tpot / 1e3, spread, basis), &terms->decode);
    out->ttft_ms = estimate((first + waiting) / 1e3, ttft_spread, basis);
    out->decode_tokens_per_s = estimate(output_rate(load, first, tpot), spread, basis);
    out->prefill_tokens_per_s =
        estimate(load->prompt * copies * 1e6 / vp_pass_us(&terms->alone, fit), spread, basis);
    set_parts(out, &terms->decode, fit, spread, basis);
}

/* What kernels take at the least that any of their class takes, and nothing beside them. */
static double least_us(const struct vp_pass *pass) {
    return pass->linear.low + pass->experts.low + pass->attention.low + pass->other.low +
           pass->exchange.low;
}

static void from_kernels(struct vp_latency *out, const struct vp_serve_terms *terms,
                         const struct vp_serve_load *load) {
    double copies = (double)vp_max(load->scenario->serve.replicas, 1);
    double step = least_us(&terms->decode), first = least_us(&terms->first);

    if (!(step > 0))
        return;
    out->step_ms = out->tpot_ms = at_least(step / 1e3);
    out->ttft_ms = at_least(first / 1e3);
    out->decode_tokens_per_s = at_most(output_rate(load, first, step));
    out->prefill_tokens_per_s = at_most(load->prompt * copies * 1e6 / least_us(&terms->alone));
}

/* Drafted tokens are checked in one pass; how many are kept is not known, so a step yields between
 * one token and all of them. */
static void bound_by_draft(struct vp_latency *out, uint64_t tokens) {
    double most = (double)tokens + 1;

    out->tpot_ms = at_least(out->tpot_ms.low / most);
    out->decode_tokens_per_s = at_most(out->decode_tokens_per_s.high * most);
}

void vp_serve_latency(struct vp_arena *arena, struct vp_result *result) {
    const struct vp_scenario *s = result->scenario;
    struct vp_latency *out = &result->latency;
    struct vp_engine_constants constants;
    struct vp_serve_terms terms;
    struct vp_serve_load load;

    *out = (struct vp_latency){0};
    if (s->model->encoder_only || s->hardware.count == 0) {
        out->why = s->model->encoder_only ? "the model generates nothing"
                                          : "times on the processor are not modelled";
        return;
    }
    vp_serve_load_of(&load, result);
    vp_serve_terms(&terms, &load);
    if (terms.decode.linear.basis == VP_BASIS_NONE) {
        out->why = "the card's rates are not known";
        return;
    }
    vp_engine_constants_of(arena, &constants, s);
    out->why = constants.why;
    if (constants.fit) {
        from_constants(out, &terms, &load, &constants);
    } else {
        from_kernels(out, &terms, &load);
        out->beyond_probe = s->engine.kind == VP_ENGINE_TRANSFORMERS;
    }
    if (s->serve.prompt_tokens == 0 && s->serve.output_tokens == 0)
        out->why =
            vp_arena_printf(arena, "%s; prompts of %.0f tokens and as many of output assumed",
                            out->why, load.prompt);
    if (s->draft.method != VP_DRAFT_NONE && s->draft.tokens > 0) {
        bound_by_draft(out, s->draft.tokens);
        out->why = "how many drafted tokens are accepted is not known";
        out->beyond_probe = true;
    }
}
