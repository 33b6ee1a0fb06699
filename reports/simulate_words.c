/* What the renderers of a serving day say in the same words. */
#include <inttypes.h>
#include <math.h>

#include "planner/base/sum.h"
#include "planner/base/units.h"
#include "reports/simulate_report.h"
#include "reports/words.h"

/* Three digits that count. */
static const char *digits(struct vp_arena *arena, double v) {
    if (!isfinite(v))
        return "endless";
    if (v >= 1e6)
        return vp_format_count(arena, (uint64_t)(v + 0.5));
    return vp_arena_printf(arena, "%.*f", v >= 99.95 || !(v > 0) ? 0 : v >= 9.995 ? 1 : 2, v);
}

const char *vp_simulate_ms(struct vp_arena *arena, double ms) {
    const double second = 999.5, ten_minutes = 600e3;

    if (!isfinite(ms))
        return "endless";
    if (ms < second)
        return vp_arena_printf(arena, "%s ms", digits(arena, ms));
    if (ms < ten_minutes)
        return vp_arena_printf(arena, "%s s", digits(arena, ms / 1e3));
    return vp_arena_printf(arena, "%s min", digits(arena, ms / 60e3));
}

static const char *seconds(struct vp_arena *arena, double s) {
    return vp_simulate_ms(arena, s * 1e3);
}

/* ---- the answer ---- */

const char *vp_simulate_setup(struct vp_arena *arena, const struct vp_simulated *seen) {
    const struct vp_scenario *s = seen->scenario;
    uint64_t each = seen->plan->scenario->hardware.count;
    const char *gpu = s->hardware.gpu.name ? s->hardware.gpu.name : s->hardware.gpu.id;

    if (seen->prefill)
        return vp_arena_printf(arena,
                               "%" PRIu64 " x %s: %" PRIu64 " prefill x %" PRIu64 " GPUs, %" PRIu64
                               " decode x %" PRIu64,
                               seen->gpus, gpu, seen->prefill_replicas,
                               seen->prefill->scenario->hardware.count, seen->replicas, each);
    if (seen->replicas > 1)
        return vp_arena_printf(arena, "%" PRIu64 " x %s: %" PRIu64 " replicas of %" PRIu64,
                               seen->gpus, gpu, seen->replicas, each);
    return vp_arena_printf(arena, "%" PRIu64 " x %s: one replica", seen->gpus, gpu);
}

/* "34% to spare", "7.5% too much", "92 times as long as promised" */
static const char *margin(struct vp_arena *arena, const struct vp_promised *p) {
    const double several = -1; /* twice the limit */
    double percent = fabs(p->margin) * 100;

    if (p->margin < several)
        return vp_arena_printf(arena, "%.*f times as long", p->margin > -9 ? 1 : 0, 1 - p->margin);
    return vp_arena_printf(arena, "%.*f%% %s", percent < 9.95 ? 1 : 0, percent,
                           p->margin >= 0 ? "to spare" : "too much");
}

/* "ttft_p99 is 1.32 s of 2 s, 34% to spare" */
static const char *against(struct vp_arena *arena, const struct vp_promised *p, bool least) {
    if (isinf(p->seen.likely))
        return vp_arena_printf(arena, "%s is endless: too many requests are refused",
                               p->limit->name);
    return vp_arena_printf(arena, "%s is %s%s of %s, %s", p->limit->name, least ? "at least " : "",
                           vp_simulate_ms(arena, p->seen.likely),
                           vp_simulate_ms(arena, p->limit->ms), margin(arena, p));
}

const char *vp_simulate_answer(struct vp_arena *arena, const struct vp_simulated *seen) {
    const struct vp_promised *tightest = &seen->limit[seen->tightest];
    const char *figure =
        seen->limits ? against(arena, tightest, seen->promise == VP_PROMISE_OPEN) : "";

    switch (seen->promise) {
    case VP_PROMISE_NONE:
        break;
    case VP_PROMISE_KEPT:
        return vp_arena_printf(arena, "the promise is kept: %s, even at the slow end (%s)", figure,
                               vp_simulate_ms(arena, tightest->seen.high));
    case VP_PROMISE_AT_RISK:
        return vp_arena_printf(arena,
                               "the promise is likely %s, but not for sure: %s, between %s "
                               "and %s",
                               tightest->margin >= 0 ? "kept" : "broken", figure,
                               vp_simulate_ms(arena, tightest->seen.low),
                               vp_simulate_ms(arena, tightest->seen.high));
    case VP_PROMISE_OPEN:
        return vp_arena_printf(arena,
                               "whether the promise is kept cannot be told: %s; only the "
                               "least that iterations take is known",
                               figure);
    case VP_PROMISE_BROKEN:
        return vp_arena_printf(arena, "the promise is broken: %s, even at the fast end (%s)",
                               figure, vp_simulate_ms(arena, tightest->seen.low));
    }
    return vp_arena_printf(arena,
                           "nothing is promised (serve.slo, --slo): first token %s at p99, "
                           "%s per token at p95",
                           vp_simulate_ms(arena, seen->seen[VP_SEEN_TTFT][VP_SEEN_P99].likely),
                           vp_simulate_ms(arena, seen->seen[VP_SEEN_TPOT][VP_SEEN_P95].likely));
}

const char *vp_simulate_limit(struct vp_arena *arena, const struct vp_simulated *seen) {
    static const char *const WHAT[] = {
        "nothing yet: it could do more",
        "KV memory: requests wait for blocks of the cache",
        "sequence slots: requests wait for one of those that run to end",
        "prefill compute: prompts take most of the time",
        "decode bandwidth: weights and caches are read for every token",
        "requests that the set-up does not take"};
    const char *what = WHAT[seen->bottleneck];

    if (!seen->peaked || seen->bottleneck == VP_BOTTLENECK_NONE)
        return what;
    return vp_arena_printf(arena, "%s; they queue at the peak, %s after the start, with %s waiting",
                           what, seconds(arena, seen->peak_s), digits(arena, seen->peak_waiting));
}

/* ---- what it rests on ---- */

const char *vp_simulate_traffic(struct vp_arena *arena, const struct vp_simulated *seen) {
    struct vp_buf out = {.arena = arena};

    if (seen->trace)
        vp_buf_printf(&out, "%s requests of %s", vp_format_count(arena, seen->trace->rows),
                      seen->trace->path);
    else
        vp_buf_printf(&out, "%s", seen->arrival);
    if (seen->trace || seen->duration_s > 0)
        vp_buf_printf(&out, " over %s",
                      seconds(arena, seen->duration_s > 0
                                         ? seen->duration_s
                                         : seen->trace->span_s * seen->time_scale));
    if (seen->rate_scale < 1 || seen->rate_scale > 1)
        vp_buf_printf(&out, ", rate x %s", vp_format_real(arena, seen->rate_scale));
    if (seen->time_scale < 1 || seen->time_scale > 1)
        vp_buf_printf(&out, ", time x %s", vp_format_real(arena, seen->time_scale));
    if (seen->rate_per_s > 0)
        vp_buf_printf(&out, ", %s/s", digits(arena, seen->rate_per_s));
    vp_buf_printf(&out, "; %s prompt and %s output tokens on average",
                  digits(arena, round(seen->prompt_tokens)),
                  digits(arena, round(seen->output_tokens)));
    if (seen->warmup_s > 0)
        vp_buf_printf(&out, "; the first %s do not count", seconds(arena, seen->warmup_s));
    vp_buf_printf(&out, "; %s", vp_words_plural(arena, seen->seeds, "seed", "seeds"));
    return vp_buf_text(&out);
}

const char *vp_simulate_basis(struct vp_arena *arena, const struct vp_simulated *seen) {
    const char *why = seen->basis_why ? seen->basis_why : "";
    const char *colon = *why ? ": " : "";

    if (seen->basis <= VP_BASIS_BOUND)
        return vp_arena_printf(arena, "bound%s%s; times are the least that they can be", colon,
                               why);
    return vp_arena_printf(arena, "%s%s%s; nine iterations in ten within a factor of %.2f",
                           vp_basis_name(seen->basis), colon, why, seen->spread);
}

const char *vp_simulate_analytic(struct vp_arena *arena, const struct vp_simulated *seen) {
    const struct vp_analytic *a = &seen->analytic;
    const char *least = a->basis <= VP_BASIS_BOUND ? "at most " : "";

    if (!a->known)
        return NULL;
    if (a->overloaded)
        return vp_arena_printf(arena, "%s%s requests/s can be served at all; %s come", least,
                               digits(arena, a->most_requests_per_s),
                               digits(arena, seen->rate_per_s));
    return vp_arena_printf(
        arena, "%s requests in flight, first token %s, %s per token; %s%s requests/s at most",
        digits(arena, a->in_flight), vp_simulate_ms(arena, a->ttft_ms),
        vp_simulate_ms(arena, a->tpot_ms), least, digits(arena, a->most_requests_per_s));
}

static void add_count(struct vp_buf *out, uint64_t n, const char *one, const char *many,
                      const char *why) {
    if (n > 0)
        vp_buf_printf(out, "%s%s %s %s", out->size ? "; " : "", vp_format_count(out->arena, n),
                      n == 1 ? one : many, why);
}

const char *vp_simulate_left_out(struct vp_arena *arena, const struct vp_simulated *seen) {
    static const char REQUEST[] = "request", REQUESTS[] = "requests";
    struct vp_buf out = {.arena = arena};

    add_count(&out, seen->totals.refused_length, REQUEST, REQUESTS,
              "refused: longer than the engine's longest sequence");
    add_count(&out, seen->totals.refused_pool, REQUEST, REQUESTS,
              "refused: longer than the whole cache");
    add_count(&out, seen->cut, "answer", "answers", "cut at the engine's longest sequence");
    add_count(&out, seen->trace ? seen->trace->dropped : 0, "row", "rows",
              "of the trace dropped: no prompt or no output");
    add_count(&out, seen->totals.unfinished, REQUEST, REQUESTS, "under way at the end");
    return out.size ? vp_buf_text(&out) : NULL;
}
