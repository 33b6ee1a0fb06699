#include "api/slo.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"

static const char *const WHAT[] = {"ttft", "tpot", "step"};
enum { WHATS = sizeof WHAT / sizeof *WHAT };

/* "tpot_p95" -> which latency; -1: none of them. */
static int what_of(const char *name) {
    static const char *const ENDS[] = {"", "_mean", "_p50", "_p90", "_p95", "_p99"};

    for (int w = 0; w < WHATS; w++)
        for (size_t e = 0; e < sizeof ENDS / sizeof *ENDS; e++) {
            size_t n = strlen(WHAT[w]);
            if (strncmp(name, WHAT[w], n) == 0 && strcmp(name + n, ENDS[e]) == 0)
                return w;
        }
    return -1;
}

static bool read_ms(struct vp_arena *arena, double *out, const char *text) {
    static const struct {
        const char *unit;
        double ms;
    } UNITS[] = {{"us", 0.001}, {"ms", 1}, {"min", 60000}, {"s", 1000}};
    size_t n = strlen(text);

    for (size_t u = 0; u < sizeof UNITS / sizeof *UNITS; u++) {
        size_t m = strlen(UNITS[u].unit);
        if (n <= m || strcmp(text + n - m, UNITS[u].unit) != 0)
            continue;
        n -= m;
        while (n > 0 && text[n - 1] == ' ')
            n--;
        if (!vp_parse_real(out, vp_arena_text(arena, text, n)) || !(*out > 0))
            return false;
        *out *= UNITS[u].ms;
        return true;
    }
    return false;
}

static bool read_limit(struct vp_ctx *ctx, struct vp_slo *out, const char *item, size_t column) {
    const char *equals = strchr(item, '=');
    struct vp_slo_limit *limit = &out->limit[out->count];
    const char *name = equals ? vp_arena_text(ctx->arena, item, (size_t)(equals - item)) : item;
    int what = what_of(name);

    if (out->count == VP_SLO_LIMITS) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--slo takes %d limits", VP_SLO_LIMITS);
        return false;
    }
    if (!equals || what < 0) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                    "--slo, column %zu: '%s' is no limit of a latency", column, item);
        vp_diag_hint(ctx->diags, "such as ttft_p99=2s,tpot_p95=50ms; or step=20s in training");
        return false;
    }
    if (!read_ms(ctx->arena, &limit->ms, equals + 1)) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                    "--slo, column %zu: '%s' is no time above 0 with a unit",
                    column + (size_t)(equals - item) + 1, equals + 1);
        vp_diag_hint(ctx->diags, "units are us, ms, s and min");
        return false;
    }
    limit->what = (enum vp_slo_what)what;
    limit->name = name;
    limit->text = equals + 1;
    out->count++;
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

static const struct vp_estimate *estimate_of(const struct vp_slo_limit *limit,
                                             const struct vp_trial *t) {
    const struct vp_estimate *of[] = {&t->ttft, &t->tpot, &t->step};

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
