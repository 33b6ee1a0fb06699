/* A serving day for other programs: CSV, Markdown, Chrome's trace format. */
#include <inttypes.h>
#include <math.h>

#include "planner/base/units.h"
#include "reports/simulate_report.h"
#include "reports/words.h"

/* ---- CSV ---- */

static void cell(struct vp_buf *out, double v) {
    vp_buf_add(out, ",");
    vp_report_csv_number(out, v);
}

static void row(struct vp_buf *out, const char *quantity, const char *class, const char *figure,
                const struct vp_seen *seen, bool bound) {
    vp_report_csv_cell(out, quantity);
    vp_buf_add(out, ",");
    vp_report_csv_cell(out, class);
    vp_buf_printf(out, ",%s", figure);
    cell(out, seen->low);
    cell(out, seen->likely);
    if (bound)
        vp_buf_add(out, ",");
    else
        cell(out, seen->high);
    cell(out, seen->chance);
    vp_buf_add(out, "\n");
}

static void rows(struct vp_buf *out, const char *class,
                 const struct vp_seen seen[VP_SEEN_KINDS][VP_SEEN_FIGURES], bool bound) {
    for (int k = 0; k < VP_SEEN_KINDS; k++)
        for (int f = 0; f < VP_SEEN_FIGURES; f++)
            row(out, vp_arena_printf(out->arena, "%s_ms", vp_seen_kind_name((enum vp_seen_kind)k)),
                class, vp_seen_figure_name((enum vp_seen_figure)f), &seen[k][f], bound);
}

void vp_simulate_csv(struct vp_buf *out, const struct vp_simulated *seen) {
    bool bound = seen->basis <= VP_BASIS_BOUND;

    vp_buf_add(out, "quantity,class,figure,low,likely,high,chance\n");
    rows(out, "", seen->seen, bound);
    for (uint32_t c = 0; c < seen->classes; c++)
        rows(out, seen->class[c].name, seen->class[c].seen, bound);
    row(out, "requests_per_s", "", "mean", &seen->requests_per_s, false);
    row(out, "goodput_per_s", "", "mean", &seen->goodput_per_s, false);
    row(out, "good_share", "", "mean", &seen->good_share, false);
    row(out, "prompt_tokens_per_s", "", "mean", &seen->prompt_tokens_per_s, false);
    row(out, "output_tokens_per_s", "", "mean", &seen->output_tokens_per_s, false);
}

void vp_simulate_series_csv(struct vp_buf *out, const struct vp_simulated *seen) {
    vp_buf_add(out, "start_s,arrivals,finished,running,waiting,cache_share,busy_share,"
                    "prompt_tokens,output_tokens,preemptions,recomputed_tokens,hit_tokens,"
                    "idle,decode,prefill,memory,slots\n");
    for (uint32_t i = 0; i < seen->bins; i++) {
        const struct vp_sim_bin *b = &seen->bin[i];
        const double values[] = {b->arrivals,          b->finished,      b->running,
                                 b->waiting,           b->cache_share,   b->busy_share,
                                 b->prompt_tokens,     b->output_tokens, b->preemptions,
                                 b->recomputed_tokens, b->hit_tokens};
        vp_buf_add(out, vp_format_real(out->arena, round(b->start_us) / 1e6));
        for (size_t v = 0; v < sizeof values / sizeof *values; v++)
            cell(out, values[v]);
        for (int l = 0; l < VP_LIMIT_COUNT; l++)
            cell(out, b->limit_share[l]);
        vp_buf_add(out, "\n");
    }
}

/* ---- Markdown ---- */

static void latency_table(struct vp_buf *out, const struct vp_simulated *seen) {
    static const char *const WORDS[VP_SEEN_KINDS] = {"first token", "queued", "per token",
                                                     "whole request"};

    vp_buf_add(out, "\n| latency | mean | p50 | p90 | p95 | p99 | max |\n"
                    "|---|---|---|---|---|---|---|\n");
    for (int k = 0; k < VP_SEEN_KINDS; k++) {
        vp_buf_printf(out, "| %s |", WORDS[k]);
        for (int f = 0; f < VP_SEEN_FIGURES; f++)
            vp_buf_printf(out, " %s |", vp_simulate_ms(out->arena, seen->seen[k][f].likely));
        vp_buf_add(out, "\n");
    }
}

void vp_simulate_markdown(struct vp_buf *out, const struct vp_simulated *seen) {
    struct vp_arena *arena = out->arena;
    const char *left = vp_simulate_left_out(arena, seen);
    const char *analytic = vp_simulate_analytic(arena, seen);

    vp_buf_printf(out, "### Traffic: %s\n\n%s.\n\n", vp_promise_name(seen->promise),
                  vp_simulate_answer(arena, seen));
    vp_buf_printf(out, "- set-up: %s; %s\n", vp_simulate_setup(arena, seen),
                  vp_words_setup(arena, seen->plan));
    vp_buf_printf(out, "- limited by %s\n", vp_simulate_limit(arena, seen));
    vp_buf_printf(out, "- traffic: %s\n- times: %s\n", vp_simulate_traffic(arena, seen),
                  vp_simulate_basis(arena, seen));
    if (left)
        vp_buf_printf(out, "- left out: %s\n", left);
    if (analytic)
        vp_buf_printf(out, "- formulas say: %s\n", analytic);
    if (seen->limits > 0)
        vp_buf_add(out, "\n| promise | limit | seen | at best | at worst | |\n"
                        "|---|---|---|---|---|---|\n");
    for (uint32_t i = 0; i < seen->limits; i++) {
        const struct vp_promised *p = &seen->limit[i];
        bool bound = seen->basis <= VP_BASIS_BOUND;
        vp_buf_printf(out, "| %s | %s | %s | %s | %s | %s |\n", p->limit->name,
                      vp_simulate_ms(arena, p->limit->ms), vp_simulate_ms(arena, p->seen.likely),
                      vp_simulate_ms(arena, p->seen.low),
                      bound ? "?" : vp_simulate_ms(arena, p->seen.high), vp_promise_name(p->state));
    }
    latency_table(out, seen);
    vp_buf_printf(out,
                  "\n%.2f requests/s, %.0f output tokens/s, KV cache %.0f%% full on average "
                  "and %.0f%% at its peak, %" PRIu64 " preemptions.\n",
                  seen->requests_per_s.likely, seen->output_tokens_per_s.likely,
                  seen->cache_share * 100, seen->cache_peak_share * 100, seen->totals.preemptions);
}

/* ---- Chrome's trace format ---- */

static const char *name_of(const struct vp_iteration *it) {
    return it->prompts > 0 && it->decodes > 0 ? "mixed" : it->prompts > 0 ? "prefill" : "decode";
}

static void counter(struct vp_json *json, const struct vp_iteration_record *r) {
    vp_json_map_inline(json);
    vp_json_key_text(json, "name", "sequences");
    vp_json_key_text(json, "ph", "C");
    vp_json_key_real(json, "ts", round(r->end_us * 10) / 10);
    vp_json_key_u64(json, "pid", r->replica);
    vp_json_key(json, "args");
    vp_json_map_inline(json);
    vp_json_key_u64(json, "running", r->running);
    vp_json_key_u64(json, "waiting", r->waiting);
    vp_json_end(json, '}');
    vp_json_end(json, '}');
}

void vp_simulate_chrome(struct vp_buf *out, const struct vp_iteration_record *records,
                        uint64_t count) {
    struct vp_json json = vp_json_begin(out);

    vp_json_map(&json);
    vp_json_key_text(&json, "displayTimeUnit", "ms");
    vp_json_key(&json, "traceEvents");
    vp_json_list(&json);
    for (uint64_t i = 0; i < count; i++) {
        const struct vp_iteration_record *r = &records[i];
        vp_json_map_inline(&json);
        vp_json_key_text(&json, "name", name_of(&r->first));
        vp_json_key_text(&json, "ph", "X");
        vp_json_key_real(&json, "ts", round(r->start_us * 10) / 10);
        vp_json_key_real(&json, "dur", round((r->end_us - r->start_us) * 10) / 10);
        vp_json_key_u64(&json, "pid", r->replica);
        vp_json_key_u64(&json, "tid", 0);
        vp_json_key(&json, "args");
        vp_json_map_inline(&json);
        vp_json_key_u64(&json, "iterations", r->iterations);
        vp_json_key_u64(&json, "decodes", r->first.decodes);
        vp_json_key_u64(&json, "prompts", r->first.prompts);
        vp_json_key_real(&json, "prompt_tokens", r->first.prompt_tokens);
        vp_json_key_real(&json, "decode_context", r->first.decode_context);
        vp_json_key_u64(&json, "units_held", r->units_held);
        vp_json_end(&json, '}');
        vp_json_end(&json, '}');
        counter(&json, r);
    }
    vp_json_end(&json, ']');
    vp_json_end(&json, '}');
    vp_buf_add(out, "\n");
}
