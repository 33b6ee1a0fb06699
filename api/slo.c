#include "api/slo.h"

#include <string.h>

#include "planner/base/text.h"

static bool read_limit(struct vp_ctx *ctx, struct vp_slo *out, const char *item, size_t column) {
    size_t n = strcspn(item, "=<"), skipped = n + 1;
    struct vp_slo_limit limit;

    if (out->count == VP_SLO_LIMITS) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--slo takes %d limits", VP_SLO_LIMITS);
        return false;
    }
    if (item[n] == '<' && item[n + 1] == '=')
        skipped++;
    const char *text = item[n] ? item + skipped : "";
    enum vp_slo_fault fault = vp_slo_limit_parse(&limit, vp_arena_text(ctx->arena, item, n), text);
    if (fault == VP_SLO_BAD_NAME || !item[n]) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                    "--slo, column %zu: '%s' is no limit of a latency", column, item);
        vp_diag_hint(ctx->diags, "such as ttft_p99=2s,tpot_p95=50ms; or step=20s in training");
        return false;
    }
    if (fault == VP_SLO_BAD_TIME) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                    "--slo, column %zu: '%s' is no time above 0 with a unit", column + skipped,
                    text);
        vp_diag_hint(ctx->diags, "units are us, ms, s and min");
        return false;
    }
    out->limit[out->count++] = limit;
    return true;
}

enum vp_status vp_slo_read(struct vp_ctx *ctx, struct vp_slo *out, const char *text) {
    bool ok = true;

    *out = (struct vp_slo){0};
    for (const char *at = text; at && ok;) {
        size_t n = strcspn(at, ",");
        ok = read_limit(ctx, out, vp_arena_text(ctx->arena, at, n), (size_t)(at - text) + 1);
        at = at[n] ? at + n + 1 : NULL;
    }
    return ok ? VP_OK : VP_ERR_INPUT;
}

/* The first token and the others, one after the other. */
static struct vp_estimate whole_request(const struct vp_result *plan) {
    const struct vp_estimate *ttft = &plan->latency.ttft_ms, *tpot = &plan->latency.tpot_ms;
    double others = plan->scenario->serve.output_tokens > 0
                        ? (double)plan->scenario->serve.output_tokens - 1
                        : 0;
    enum vp_basis basis = ttft->basis < tpot->basis ? ttft->basis : tpot->basis;

    if (basis == VP_BASIS_NONE || plan->scenario->serve.output_tokens == 0)
        return (struct vp_estimate){.basis = VP_BASIS_NONE};
    return (struct vp_estimate){basis, ttft->low + others * tpot->low,
                                basis == VP_BASIS_BOUND ? 0 : ttft->likely + others * tpot->likely,
                                basis == VP_BASIS_BOUND ? 0 : ttft->high + others * tpot->high};
}

void vp_slo_times(struct vp_trial *out, const struct vp_result *plan) {
    out->ttft = plan->latency.ttft_ms;
    out->tpot = plan->latency.tpot_ms;
    out->step = plan->latency.step_ms;
    out->e2e = whole_request(plan);
}

static const struct vp_estimate *estimate_of(const struct vp_slo_limit *limit,
                                             const struct vp_trial *t) {
    const struct vp_estimate *of[] = {&t->ttft, &t->tpot, &t->e2e, &t->step};

    return of[limit->what];
}

static enum vp_slo_state state_of(const struct vp_slo_limit *limit, const struct vp_trial *t) {
    const struct vp_estimate *e = estimate_of(limit, t);

    if (e->basis == VP_BASIS_NONE)
        return VP_SLO_OPEN;
    if (e->low > limit->ms)
        return VP_SLO_BROKEN;
    if (e->basis == VP_BASIS_BOUND)
        return VP_SLO_OPEN;
    return e->likely <= limit->ms ? VP_SLO_LIKELY : VP_SLO_UNLIKELY;
}

enum vp_slo_state vp_slo_check(const struct vp_slo *slo, const struct vp_trial *trial) {
    enum vp_slo_state worst = VP_SLO_NONE;

    for (uint32_t i = 0; i < slo->count; i++) {
        enum vp_slo_state state = state_of(&slo->limit[i], trial);
        worst = state > worst ? state : worst;
    }
    return worst;
}

const char *vp_slo_text(struct vp_arena *arena, const struct vp_slo *slo,
                        const struct vp_trial *trial) {
    for (uint32_t i = 0; i < slo->count; i++) {
        const struct vp_slo_limit *limit = &slo->limit[i];
        const struct vp_estimate *e = estimate_of(limit, trial);
        enum vp_slo_state state = state_of(limit, trial);
        double ms = state == VP_SLO_BROKEN ? e->low : e->likely;
        if (state < VP_SLO_UNLIKELY)
            continue;
        return vp_arena_printf(arena, "%s=%s is promised, and the mean is %s %.*f ms (%s)",
                               limit->name, limit->text,
                               state == VP_SLO_BROKEN ? "at least" : "likely", ms < 20 ? 1 : 0, ms,
                               vp_basis_name(e->basis));
    }
    return NULL;
}

void vp_slo_note(struct vp_ctx *ctx, const struct vp_result *plan) {
    const struct vp_scenario *s = plan->scenario;
    struct vp_trial trial = {.made = true};

    vp_slo_times(&trial, plan);
    for (uint32_t i = 0; i < s->slo.count; i++) {
        const struct vp_slo_limit *limit = &s->slo.limit[i];
        const struct vp_estimate *e = estimate_of(limit, &trial);
        enum vp_slo_state state = state_of(limit, &trial);
        bool late = state >= VP_SLO_UNLIKELY, bound = e->basis == VP_BASIS_BOUND;
        if (e->basis == VP_BASIS_NONE)
            continue;
        vp_diag_add(ctx->diags, late ? VP_D_SLO_LATE : VP_D_SLO_KEPT, &s->source[VP_F_SLO].pos,
                    "%s=%s is promised: the mean is %s%.*f ms (%s)%s", limit->name, limit->text,
                    bound ? "at least " : "", e->low < 20 ? 1 : 0, bound ? e->low : e->likely,
                    vp_basis_name(e->basis),
                    late               ? ""
                    : limit->share > 0 ? ", which proves no percentile"
                                       : "");
        if (limit->share > 0)
            vp_diag_hint(ctx->diags, "`vramplan simulate` has percentiles under traffic");
    }
}
