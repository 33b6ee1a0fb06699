/* A serving day as JSON; docs/FORMATS.md names the keys. */
#include "reports/simulate_report.h"

static void seen_of(struct vp_json *json, const char *key, const struct vp_seen *seen, bool bound) {
    vp_json_key(json, key);
    vp_json_map_inline(json);
    vp_report_json_number(json, "low", seen->low);
    vp_report_json_number(json, "likely", seen->likely);
    if (bound)
        vp_json_key_text(json, "high", NULL);
    else
        vp_report_json_number(json, "high", seen->high);
    vp_report_json_number(json, "chance", seen->chance);
    vp_json_end(json, '}');
}

static void latencies(struct vp_json *json,
                      const struct vp_seen seen[VP_SEEN_KINDS][VP_SEEN_FIGURES], bool bound) {
    for (int k = 0; k < VP_SEEN_KINDS; k++) {
        static const char *const KEYS[VP_SEEN_KINDS] = {"ttft_ms", "queue_ms", "tpot_ms", "e2e_ms"};
        vp_json_key(json, KEYS[k]);
        vp_json_map(json);
        for (int f = 0; f < VP_SEEN_FIGURES; f++)
            seen_of(json, vp_seen_figure_name((enum vp_seen_figure)f), &seen[k][f], bound);
        vp_json_end(json, '}');
    }
}

static void promises(struct vp_json *json, const struct vp_simulated *seen, bool bound) {
    vp_json_key(json, "promises");
    vp_json_list(json);
    for (uint32_t i = 0; i < seen->limits; i++) {
        const struct vp_promised *p = &seen->limit[i];
        vp_json_map_inline(json);
        vp_json_key_text(json, "name", p->limit->name);
        vp_report_json_number(json, "limit_ms", p->limit->ms);
        seen_of(json, "seen_ms", &p->seen, bound);
        vp_report_json_number(json, "margin", p->margin);
        vp_json_key_text(json, "state", vp_promise_name(p->state));
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

static void traffic(struct vp_json *json, const struct vp_simulated *seen) {
    vp_json_key(json, "traffic");
    vp_json_map(json);
    vp_json_key_text(json, "arrival", seen->arrival);
    if (seen->trace) {
        vp_json_key_text(json, "trace", seen->trace->path);
        vp_json_key_u64(json, "trace_requests", seen->trace->rows);
        vp_json_key_u64(json, "trace_dropped", seen->trace->dropped);
        vp_report_json_number(json, "trace_span_s", seen->trace->span_s);
    }
    vp_report_json_number(json, "rate_scale", seen->rate_scale);
    vp_report_json_number(json, "time_scale", seen->time_scale);
    vp_report_json_number(json, "duration_s", seen->duration_s);
    vp_report_json_number(json, "warmup_s", seen->warmup_s);
    vp_report_json_number(json, "rate_per_s", seen->rate_per_s);
    vp_report_json_number(json, "prompt_tokens", seen->prompt_tokens);
    vp_report_json_number(json, "output_tokens", seen->output_tokens);
    vp_json_key_u64(json, "seeds", seen->seeds);
    vp_json_key_u64(json, "first_seed", seen->first_seed);
    vp_json_end(json, '}');
}

static void setup(struct vp_json *json, const struct vp_simulated *seen) {
    const struct vp_scenario *s = seen->plan->scenario;

    vp_json_key(json, "setup");
    vp_json_map(json);
    vp_json_key_text(json, "gpu", s->hardware.gpu.id);
    vp_json_key_u64(json, "gpus", seen->gpus);
    vp_json_key_u64(json, "replicas", seen->replicas);
    vp_json_key_u64(json, "gpus_per_replica", s->hardware.count);
    if (seen->prefill) {
        vp_json_key_u64(json, "prefill_replicas", seen->prefill_replicas);
        vp_json_key_u64(json, "gpus_per_prefill_replica", seen->prefill->scenario->hardware.count);
    }
    vp_json_key_text(json, "engine", s->engine.name);
    vp_json_key_text(json, "engine_version", s->engine.version_text);
    vp_json_key_u64(json, "tensor", s->parallel.tensor);
    vp_json_key_u64(json, "pipeline", s->parallel.pipeline);
    vp_json_key_u64(json, "data", s->parallel.data);
    vp_json_key_u64(json, "expert", s->parallel.expert);
    vp_json_key_text(json, "verdict", vp_verdict_name(seen->plan->verdict));
    if (seen->price_per_hour > 0) {
        vp_report_json_number(json, "price_per_hour", seen->price_per_hour);
        vp_report_json_number(json, "cost_per_million_output_tokens",
                              seen->cost_per_million_output_tokens);
    }
    vp_json_end(json, '}');
}

static void totals(struct vp_json *json, const struct vp_simulated *seen) {
    const struct vp_sim_totals *t = &seen->totals;
    const struct {
        const char *key;
        uint64_t value;
    } COUNTS[] = {{"arrived", t->arrived},
                  {"finished", t->finished},
                  {"refused_length", t->refused_length},
                  {"refused_pool", t->refused_pool},
                  {"unfinished", t->unfinished},
                  {"cut", seen->cut},
                  {"prompt_tokens", t->prompt_tokens},
                  {"output_tokens", t->output_tokens},
                  {"computed_tokens", t->computed_tokens},
                  {"recomputed_tokens", t->recomputed_tokens},
                  {"hit_tokens", t->hit_tokens},
                  {"host_hit_tokens", t->host_hit_tokens},
                  {"preemptions", t->preemptions},
                  {"swaps", t->swaps},
                  {"iterations", t->iterations},
                  {"drafted_tokens", t->drafted_tokens},
                  {"accepted_tokens", t->accepted_tokens},
                  {"adapter_loads", t->adapter_loads}};

    vp_json_key(json, "totals");
    vp_json_map(json);
    for (size_t i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++)
        vp_json_key_u64(json, COUNTS[i].key, COUNTS[i].value);
    vp_json_end(json, '}');
}

static void drafts(struct vp_json *json, const struct vp_simulated *seen) {
    if (seen->break_evens == 0)
        return;
    vp_json_key(json, "drafts_pay");
    vp_json_list(json);
    for (uint32_t i = 0; i < seen->break_evens; i++) {
        vp_json_map_inline(json);
        vp_json_key_u64(json, "sequences", seen->break_even[i].sequences);
        vp_json_key(json, "acceptance");
        vp_json_real(json, seen->break_even[i].acceptance); /* never: null */
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

static const char *const LIMIT_KEYS[VP_LIMIT_COUNT] = {"idle", "decode", "prefill", "memory",
                                                       "slots"};

static void over_all(struct vp_json *json, const struct vp_simulated *seen) {
    vp_json_key(json, "time");
    vp_json_map(json);
    vp_report_json_number(json, "busy_share", seen->busy_share);
    vp_report_json_number(json, "cache_share", seen->cache_share);
    vp_report_json_number(json, "cache_peak_share", seen->cache_peak_share);
    vp_json_key_u64(json, "running_peak", seen->running_peak);
    vp_json_key_u64(json, "waiting_peak", seen->waiting_peak);
    vp_report_json_number(json, "peak_s", seen->peak_s);
    vp_report_json_number(json, "peak_waiting", seen->peak_waiting);
    vp_json_key(json, "limit_share");
    vp_json_map_inline(json);
    for (int l = 0; l < VP_LIMIT_COUNT; l++)
        vp_report_json_number(json, LIMIT_KEYS[l], seen->limit_share[l]);
    vp_json_end(json, '}');
    vp_json_end(json, '}');
}

static void series(struct vp_json *json, const struct vp_simulated *seen) {
    vp_json_key(json, "series");
    vp_json_list(json);
    for (uint32_t i = 0; i < seen->bins; i++) {
        const struct vp_sim_bin *b = &seen->bin[i];
        vp_json_map_inline(json);
        vp_report_json_number(json, "start_s", b->start_us / 1e6);
        vp_report_json_number(json, "arrivals", b->arrivals);
        vp_report_json_number(json, "finished", b->finished);
        vp_report_json_number(json, "running", b->running);
        vp_report_json_number(json, "waiting", b->waiting);
        vp_report_json_number(json, "cache_share", b->cache_share);
        vp_report_json_number(json, "busy_share", b->busy_share);
        vp_report_json_number(json, "prompt_tokens", b->prompt_tokens);
        vp_report_json_number(json, "output_tokens", b->output_tokens);
        vp_report_json_number(json, "preemptions", b->preemptions);
        vp_report_json_number(json, "recomputed_tokens", b->recomputed_tokens);
        vp_report_json_number(json, "hit_tokens", b->hit_tokens);
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

static void analytic(struct vp_json *json, const struct vp_simulated *seen) {
    const struct vp_analytic *a = &seen->analytic;

    if (!a->known)
        return;
    vp_json_key(json, "analytic");
    vp_json_map(json);
    vp_json_key_bool(json, "overloaded", a->overloaded);
    if (!a->overloaded) {
        vp_report_json_number(json, "in_flight", a->in_flight);
        vp_report_json_number(json, "ttft_ms", a->ttft_ms);
        vp_report_json_number(json, "tpot_ms", a->tpot_ms);
        vp_report_json_number(json, "e2e_ms", a->e2e_ms);
    }
    vp_report_json_number(json, "most_requests_per_s", a->most_requests_per_s);
    vp_json_key_text(json, "basis", vp_basis_name(a->basis));
    vp_json_end(json, '}');
}

static void classes(struct vp_json *json, const struct vp_simulated *seen, bool bound) {
    if (seen->classes == 0)
        return;
    vp_json_key(json, "classes");
    vp_json_list(json);
    for (uint32_t c = 0; c < seen->classes; c++) {
        vp_json_map(json);
        vp_json_key_text(json, "name", seen->class[c].name);
        vp_report_json_number(json, "share", seen->class[c].share);
        latencies(json, seen->class[c].seen, bound);
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

void vp_simulate_json(struct vp_json *json, const struct vp_simulated *seen) {
    bool bound = seen->basis <= VP_BASIS_BOUND;

    vp_json_map(json);
    vp_json_key_text(json, "schema", "vramplan.simulate/1");
    vp_json_key_text(json, "scenario", seen->scenario->name);
    vp_json_key_text(json, "promise", vp_promise_name(seen->promise));
    vp_json_key_text(json, "limited_by", vp_bottleneck_name(seen->bottleneck));
    vp_json_key_bool(json, "at_the_peak", seen->peaked);
    vp_json_key_text(json, "basis", vp_basis_name(seen->basis));
    vp_json_key_text(json, "basis_why", seen->basis_why);
    vp_report_json_number(json, "spread", seen->spread);
    promises(json, seen, bound);
    setup(json, seen);
    traffic(json, seen);
    vp_json_key(json, "latency");
    vp_json_map(json);
    latencies(json, seen->seen, bound);
    vp_json_end(json, '}');
    classes(json, seen, bound);
    vp_json_key(json, "throughput");
    vp_json_map(json);
    seen_of(json, "requests_per_s", &seen->requests_per_s, false);
    seen_of(json, "goodput_per_s", &seen->goodput_per_s, false);
    seen_of(json, "good_share", &seen->good_share, false);
    seen_of(json, "prompt_tokens_per_s", &seen->prompt_tokens_per_s, false);
    seen_of(json, "output_tokens_per_s", &seen->output_tokens_per_s, false);
    vp_json_end(json, '}');
    totals(json, seen);
    drafts(json, seen);
    over_all(json, seen);
    analytic(json, seen);
    series(json, seen);
    vp_json_key(json, "diagnostics");
    vp_report_json_diagnostics(json, seen->diags);
    vp_json_end(json, '}');
}
