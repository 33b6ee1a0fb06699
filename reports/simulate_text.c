/* A serving day for people. */
#include <inttypes.h>
#include <math.h>

#include "planner/base/sum.h"
#include "planner/base/units.h"
#include "reports/latency_text.h"
#include "reports/layout.h"
#include "reports/sections.h"
#include "reports/simulate_report.h"
#include "reports/words.h"

enum { LABEL = 16, CELL = 10 };

static const char *const KIND_WORDS[VP_SEEN_KINDS] = {"first token", "  of it queued", "per token",
                                                      "whole request"};

static void fact(const struct vp_page *page, const char *label, const char *text) {
    if (!text)
        return;
    vp_page_left(page, label, LABEL);
    vp_page_wrap(page, LABEL, LABEL, text);
}

/* ---- the head ---- */

static enum vp_style style_of(enum vp_promise promise) {
    return promise == VP_PROMISE_KEPT     ? VP_STYLE_GOOD
           : promise == VP_PROMISE_BROKEN ? VP_STYLE_BAD
           : promise == VP_PROMISE_NONE   ? VP_STYLE_STRONG
                                          : VP_STYLE_WARN;
}

static void head(const struct vp_page *page, const struct vp_simulated *seen) {
    static const char *const WORDS[] = {"SIMULATED", "KEPT", "AT RISK", "OPEN", "BROKEN"};
    struct vp_arena *arena = page->out->arena;

    const char *word = WORDS[seen->promise];

    vp_page_styled(page, style_of(seen->promise), word);
    vp_page_spaces(page, 2);
    vp_page_wrap(page, vp_text_cells(word) + 2, 2, vp_simulate_answer(arena, seen));
    fact(page, "with", vp_simulate_setup(arena, seen));
    fact(page, "limited by", vp_simulate_limit(arena, seen));
    fact(page, "left out", vp_simulate_left_out(arena, seen));
    vp_buf_add(page->out, "\n");
}

/* ---- tables ---- */

static void promises(const struct vp_page *page, const struct vp_simulated *seen) {
    static const char *const HEADS[] = {"promised", "seen", "at best", "at worst", "margin"};
    struct vp_arena *arena = page->out->arena;

    if (seen->limits == 0)
        return;
    vp_page_left(page, "Promise", LABEL);
    for (int i = 0; i < 5; i++)
        vp_page_right(page, HEADS[i], CELL);
    vp_buf_add(page->out, "\n");
    for (uint32_t i = 0; i < seen->limits; i++) {
        const struct vp_promised *p = &seen->limit[i];
        bool bound = seen->basis <= VP_BASIS_BOUND;
        vp_page_left(page, p->limit->name, LABEL);
        vp_page_right(page, vp_simulate_ms(arena, p->limit->ms), CELL);
        vp_page_right(page, vp_simulate_ms(arena, p->seen.likely), CELL);
        vp_page_right(page, vp_simulate_ms(arena, p->seen.low), CELL);
        vp_page_right(page, bound ? "?" : vp_simulate_ms(arena, p->seen.high), CELL);
        vp_page_right(
            page, isinf(p->margin) ? "-" : vp_arena_printf(arena, "%.0f%%", p->margin * 100), CELL);
        vp_page_spaces(page, 2);
        vp_page_wrap(page, LABEL + 5 * CELL + 2, 2, vp_promise_name(p->state));
    }
    vp_buf_add(page->out, "\n");
}

static void latency_rows(const struct vp_page *page,
                         const struct vp_seen seen[VP_SEEN_KINDS][VP_SEEN_FIGURES]) {
    struct vp_arena *arena = page->out->arena;

    for (int k = 0; k < VP_SEEN_KINDS; k++) {
        vp_page_left(page, KIND_WORDS[k], LABEL);
        for (int f = 0; f < VP_SEEN_FIGURES; f++)
            vp_page_right(page, vp_simulate_ms(arena, seen[k][f].likely), CELL);
        vp_buf_add(page->out, "\n");
    }
}

static void latencies(const struct vp_page *page, const struct vp_simulated *seen) {
    struct vp_arena *arena = page->out->arena;
    double chance = seen->seen[VP_SEEN_TTFT][VP_SEEN_P99].chance;

    vp_page_left(page, "Latency", LABEL);
    for (int f = 0; f < VP_SEEN_FIGURES; f++)
        vp_page_right(page, vp_seen_figure_name((enum vp_seen_figure)f), CELL);
    vp_buf_add(page->out, "\n");
    latency_rows(page, seen->seen);
    if (chance > 0)
        vp_page_printf(page, 0, 2, "(first token p99: +- %s over seeds, 95%%)",
                       vp_simulate_ms(arena, chance));
    vp_buf_add(page->out, "\n");
    for (uint32_t c = 0; c < seen->classes; c++) {
        vp_page_printf(page, 0, 2, "%s (%.0f%% of requests)", seen->class[c].name,
                       seen->class[c].share * 100);
        latency_rows(page, seen->class[c].seen);
        vp_buf_add(page->out, "\n");
    }
}

/* "12.3/s (10.1 to 14.2)" */
static const char *rate(struct vp_arena *arena, const struct vp_seen *seen) {
    int decimals = seen->likely < 10 ? 2 : seen->likely < 1000 ? 1 : 0;

    if (!(seen->high > seen->low))
        return vp_arena_printf(arena, "%.*f/s", decimals, seen->likely);
    return vp_arena_printf(arena, "%.*f/s (%.*f to %.*f)", decimals, seen->likely, decimals,
                           seen->low, decimals, seen->high);
}

static const char *percent(struct vp_arena *arena, double share) {
    double p = share * 100;
    return vp_arena_printf(arena, "%.*f%%", p > 0 && p < 10 ? 1 : 0, p);
}

static void throughput(const struct vp_page *page, const struct vp_simulated *seen) {
    struct vp_arena *arena = page->out->arena;

    vp_page_title(page, "Throughput");
    fact(page, "  requests", rate(arena, &seen->requests_per_s));
    if (seen->limits > 0)
        fact(page, "  goodput",
             vp_arena_printf(arena, "%s, %s of all requests keep every limit",
                             rate(arena, &seen->goodput_per_s),
                             percent(arena, seen->good_share.likely)));
    fact(page, "  prompt tokens", rate(arena, &seen->prompt_tokens_per_s));
    fact(page, "  output tokens", rate(arena, &seen->output_tokens_per_s));
    if (seen->cost_per_million_output_tokens > 0)
        fact(page, "  cost",
             vp_arena_printf(arena, "%.2f per hour, %.3g per million output tokens",
                             seen->price_per_hour, seen->cost_per_million_output_tokens));
    vp_buf_add(page->out, "\n");
}

/* "1: 21%, 4: 35%, 16: never" */
static const char *break_evens(struct vp_arena *arena, const struct vp_simulated *seen) {
    struct vp_buf text = {.arena = arena};

    for (uint32_t i = 0; i < seen->break_evens; i++) {
        const struct vp_break_even *even = &seen->break_even[i];
        vp_buf_printf(&text, "%s%" PRIu64 ": %s", i ? ", " : "", even->sequences,
                      isfinite(even->acceptance) ? percent(arena, even->acceptance) : "never");
    }
    return vp_arena_printf(arena, "from an acceptance of, by sequences at once: %s",
                           vp_buf_text(&text));
}

static void cache(const struct vp_page *page, const struct vp_simulated *seen) {
    const struct vp_sim_totals *t = &seen->totals;
    struct vp_arena *arena = page->out->arena;
    double prompt = (double)t->prompt_tokens;

    vp_page_title(page, "Cache and time");
    fact(page, "  KV cache",
         vp_arena_printf(arena, "%s full on average, %s at its peak",
                         percent(arena, seen->cache_share),
                         percent(arena, seen->cache_peak_share)));
    fact(page, "  preemptions",
         t->preemptions == 0
             ? "none"
             : vp_arena_printf(
                   arena, "%s, which made %s tokens be computed again (%s)",
                   vp_format_count(arena, t->preemptions),
                   vp_format_count(arena, t->recomputed_tokens),
                   percent(arena, t->computed_tokens > 0
                                      ? (double)t->recomputed_tokens / (double)t->computed_tokens
                                      : 0)));
    if (t->hit_tokens > 0)
        fact(page, "  prefix hits",
             vp_arena_printf(arena, "%s of prompt tokens, %s",
                             percent(arena, prompt > 0 ? (double)t->hit_tokens / prompt : 0),
                             vp_format_count(arena, t->hit_tokens)));
    if (t->drafted_tokens > 0)
        fact(page, "  drafts",
             vp_arena_printf(arena, "%s of %s tokens accepted",
                             vp_format_count(arena, t->accepted_tokens),
                             vp_format_count(arena, t->drafted_tokens)));
    if (seen->break_evens > 0)
        fact(page, "  drafts pay", break_evens(arena, seen));
    fact(page, "  at once",
         vp_arena_printf(arena, "%s ran at most, %" PRIu64 " waited at most",
                         vp_words_plural(arena, seen->running_peak, "sequence", "sequences"),
                         seen->waiting_peak));
    fact(page, "  time",
         vp_arena_printf(arena, "%s idle, %s decode, %s prompts, %s short of KV, %s short of slots",
                         percent(arena, seen->limit_share[VP_LIMIT_IDLE]),
                         percent(arena, seen->limit_share[VP_LIMIT_DECODE]),
                         percent(arena, seen->limit_share[VP_LIMIT_PREFILL]),
                         percent(arena, seen->limit_share[VP_LIMIT_MEMORY]),
                         percent(arena, seen->limit_share[VP_LIMIT_SLOTS])));
    vp_buf_add(page->out, "\n");
}

/* "0:02:20": hours, minutes, seconds */
static const char *clock_time(struct vp_arena *arena, double s) {
    uint64_t whole = (uint64_t)(s + 0.5);
    return vp_arena_printf(arena, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, whole / 3600,
                           whole / 60 % 60, whole % 60);
}

/* Stretches of time put together; the last one may be cut short by the end. */
static struct vp_sim_bin together(const struct vp_simulated *seen, uint32_t first, uint32_t count,
                                  double *span_s) {
    struct vp_sim_bin sum = {.start_us = seen->bin[first].start_us};
    double end = fmin((first + count) * seen->bin_s, seen->end_s);

    for (uint32_t i = first; i < first + count; i++) {
        const struct vp_sim_bin *bin = &seen->bin[i];
        sum.arrivals += bin->arrivals;
        sum.running += bin->running / count;
        sum.waiting += bin->waiting / count;
        sum.cache_share += bin->cache_share / count;
        sum.preemptions += bin->preemptions;
        sum.recomputed_tokens += bin->recomputed_tokens;
        sum.hit_tokens += bin->hit_tokens;
    }
    *span_s = end - first * seen->bin_s;
    return sum;
}

static void series(const struct vp_page *page, const struct vp_simulated *seen) {
    static const char *const HEADS[] = {"come/s",   "running", "waiting",    "cache",
                                        "preempt.", "again",   "prefix hits"};
    enum { ROWS = 12, COLUMN = 9, LAST = 13 };
    struct vp_arena *arena = page->out->arena;
    uint32_t each = (seen->bins + ROWS - 1) / ROWS;

    if (seen->bins < 2)
        return;
    vp_page_left(page, "Over time", COLUMN);
    for (int i = 0; i < 7; i++)
        vp_page_right(page, HEADS[i], i < 6 ? COLUMN : LAST);
    vp_buf_add(page->out, "\n");
    for (uint32_t i = 0; i < seen->bins; i += each) {
        double span;
        struct vp_sim_bin sum =
            together(seen, i, each < seen->bins - i ? each : seen->bins - i, &span);
        const double value[] = {span > 0 ? sum.arrivals / span : 0, sum.running, sum.waiting};
        vp_page_right(page, clock_time(arena, sum.start_us / 1e6), COLUMN);
        for (int v = 0; v < 3; v++)
            vp_page_right(page, vp_arena_printf(arena, "%.*f", value[v] < 10 ? 1 : 0, value[v]),
                          COLUMN);
        vp_page_right(page, percent(arena, sum.cache_share), COLUMN);
        vp_page_right(page, vp_arena_printf(arena, "%.0f", sum.preemptions), COLUMN);
        vp_page_right(page, vp_arena_printf(arena, "%.0f", sum.recomputed_tokens), COLUMN);
        vp_page_right(page, vp_arena_printf(arena, "%.0f", sum.hit_tokens), LAST);
        vp_buf_add(page->out, "\n");
    }
    vp_buf_add(page->out, "\n");
}

static void rests_on(const struct vp_page *page, const struct vp_simulated *seen) {
    struct vp_arena *arena = page->out->arena;

    vp_page_title(page, "What it rests on");
    fact(page, "  traffic", vp_simulate_traffic(arena, seen));
    fact(page, "  times", vp_simulate_basis(arena, seen));
    fact(page, "  formulas say", vp_simulate_analytic(arena, seen));
    fact(page, "  set-up", vp_words_setup(arena, seen->plan));
    if (seen->no_chance && seen->seeds > 1)
        fact(page, "  seeds", "nothing is left to chance: all seeds give the same");
}

void vp_simulate_text(struct vp_buf *out, const struct vp_simulated *seen,
                      const struct vp_report_options *options) {
    struct vp_page page = vp_section_page(out, options);

    head(&page, seen);
    promises(&page, seen);
    latencies(&page, seen);
    throughput(&page, seen);
    cache(&page, seen);
    series(&page, seen);
    rests_on(&page, seen);
}
