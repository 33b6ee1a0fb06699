#include "planner/plan/gate.h"

#include <inttypes.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/plan/gate_parts.h"

/* ---- texts ---- */

const char *vp_check_state_name(enum vp_check_state state) {
    static const char *const NAMES[] = {"pass", "new",          "removed", "waived",
                                        "warn", "inconclusive", "fail",    "invalid"};
    return NAMES[state];
}

static uint64_t magnitude(int64_t value) {
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

const char *vp_check_show(struct vp_arena *arena, enum vp_check_unit unit, int64_t value) {
    const char *sign = value < 0 ? "-" : "";
    uint64_t n = magnitude(value);
    switch (unit) {
    case VP_UNIT_NONE:
        return "";
    case VP_UNIT_BYTES:
        return vp_arena_printf(arena, "%s%s", sign, vp_format_bytes(arena, n));
    case VP_UNIT_TOKENS:
        return vp_arena_printf(arena, "%s%s %s", sign, vp_format_count(arena, n),
                               n == 1 ? "token" : "tokens");
    case VP_UNIT_SEQUENCES:
        return vp_arena_printf(arena, "%s%s %s", sign, vp_format_count(arena, n),
                               n == 1 ? "sequence" : "sequences");
    case VP_UNIT_COUNT:
        return vp_arena_printf(arena, "%s%s", sign, vp_format_count(arena, n));
    case VP_UNIT_MILLI:
        return vp_arena_printf(arena, "%s%" PRIu64 ".%03" PRIu64, sign, n / 1000, n % 1000);
    case VP_UNIT_SHARE:
        return vp_arena_printf(arena, "%s%" PRIu64 ".%04" PRIu64, sign, n / 1000000000,
                               n % 1000000000 / 100000);
    }
    return "";
}

/* "150.00 GiB", "150.00 GiB to 165.00 GiB", "2,160 to 2,246 sequences" */
static const char *show_range(struct vp_arena *arena, const struct vp_check *check) {
    bool words = check->unit == VP_UNIT_TOKENS || check->unit == VP_UNIT_SEQUENCES;
    const char *low = vp_check_show(arena, check->unit, check->value.low);
    const char *high = vp_check_show(arena, check->unit, check->value.high);
    if (vp_text_eq(low, high))
        return low;
    if (words)
        low = vp_check_show(arena, VP_UNIT_COUNT, check->value.low);
    return vp_arena_printf(arena, "%s to %s", low, high);
}

/* What a check is about, as the beginning of its sentence. */
static const char *subject(struct vp_arena *arena, const struct vp_check *check) {
    static const char *const BOUNDS[] = {
        [VP_BOUND_MEMORY] = "need of one GPU",   [VP_BOUND_HEADROOM] = "headroom of one GPU",
        [VP_BOUND_HOST] = "host memory",         [VP_BOUND_CONTEXT] = "longest context",
        [VP_BOUND_CONCURRENCY] = "fit at once:",
    };
    return check->kind == VP_CHECK_BOUND
               ? BOUNDS[check->bound]
               : vp_arena_printf(arena, "%s on one GPU", vp_component_name(check->component));
}

/* ---- limits ---- */

static enum vp_check_state at_risk_state(const struct vp_gating *g, const struct vp_check *check) {
    switch (g->at_risk) {
    case VP_AT_RISK_FAIL:
        return VP_CHECK_FAIL;
    case VP_AT_RISK_WARN:
        return VP_CHECK_WARN;
    case VP_AT_RISK_LIKELY:
        return (check->upper ? check->value.likely <= check->limit
                             : check->value.likely >= check->limit)
                   ? VP_CHECK_PASS
                   : VP_CHECK_FAIL;
    case VP_AT_RISK_INCONCLUSIVE:
        break;
    }
    return VP_CHECK_INCONCLUSIVE;
}

static enum vp_check_state against(const struct vp_gating *g, const struct vp_check *check,
                                   enum vp_kept kept) {
    return kept == VP_KEPT       ? VP_CHECK_PASS
           : kept == VP_EXCEEDED ? VP_CHECK_FAIL
                                 : at_risk_state(g, check);
}

static void describe_limit(const struct vp_gating *g, struct vp_check *check, enum vp_kept kept) {
    struct vp_arena *arena = g->ctx->arena;
    const char *range = show_range(arena, check), *about = subject(arena, check);
    const char *limit = vp_check_show(arena, check->unit, check->limit);
    const char *most = check->upper ? "at most" : "at least";
    int64_t nearest = check->upper ? check->value.low : check->value.high;
    if (kept == VP_KEPT) {
        check->message = vp_arena_printf(arena, "%s %s, %s %s", about, range, most, limit);
        check->id = VP_DIAG_COUNT;
    } else if (kept == VP_KEPT_MAYBE) {
        check->message =
            vp_arena_printf(arena, "%s %s: the limit of %s lies inside", about, range, limit);
        check->hint = "budget.at_risk says what that amounts to: inconclusive, fail, warn, likely";
        check->id = VP_D_GATE_AT_RISK;
    } else {
        uint64_t by = magnitude(nearest - check->limit);
        check->message = vp_arena_printf(arena, "%s %s, %s %s the limit of %s", about, range,
                                         vp_check_show(arena, check->unit, (int64_t)by),
                                         check->upper ? "above" : "below", limit);
        check->id = VP_D_GATE_LIMIT;
    }
}

static void check_limit(struct vp_gating *g, struct vp_check *check, const struct vp_limit *limit) {
    check->value_known = check->limit_known = true;
    check->limit = (int64_t)limit->value;
    check->pos = limit->pos;
    enum vp_kept kept = vp_budget_keeps(check->value, check->limit, check->upper);
    describe_limit(g, check, kept);
    check->state = against(g, check, kept);
    vp_gate_waive(g, check);
}

static void check_bound(struct vp_gating *g, enum vp_bound bound) {
    static const enum vp_check_unit UNITS[] = {
        [VP_BOUND_CONTEXT] = VP_UNIT_TOKENS, [VP_BOUND_CONCURRENCY] = VP_UNIT_SEQUENCES};
    const struct vp_gate_question *q = g->question;
    struct vp_check *check = vp_gate_new(g, VP_CHECK_BOUND, vp_bound_name(bound));
    check->bound = bound;
    check->unit = bound >= VP_BOUND_CONTEXT ? UNITS[bound] : VP_UNIT_BYTES;
    check->upper = vp_bound_is_upper(bound);
    check->value = vp_budget_bound(q->head, bound);
    check->base_known = q->base;
    if (q->base)
        check->base = vp_budget_bound(q->base, bound);
    check_limit(g, check, &q->budget->bound[bound]);
}

static void check_component(struct vp_gating *g, enum vp_component component) {
    const struct vp_gate_question *q = g->question;
    struct vp_check *check =
        vp_gate_new(g, VP_CHECK_COMPONENT,
                    vp_arena_printf(g->ctx->arena, "components.%s", vp_component_name(component)));
    check->component = component;
    check->unit = VP_UNIT_BYTES;
    check->upper = true;
    check->value = vp_budget_component(q->head, component);
    check->base_known = q->base;
    if (q->base)
        check->base = vp_budget_component(q->base, component);
    check_limit(g, check, &q->budget->component[component]);
}

/* ---- the plan's own verdict ---- */

static void check_fits(struct vp_gating *g) {
    const struct vp_result *head = g->question->head;
    struct vp_check *check = vp_gate_new(g, VP_CHECK_FITS, "fits");
    check->id = VP_DIAG_COUNT;
    check->message = "fits its devices";
    if (head->verdict == VP_FITS)
        return;
    bool sure = head->verdict == VP_DOES_NOT_FIT;
    check->message = vp_arena_printf(g->ctx->arena, "%s: %s", vp_verdict_name(head->verdict),
                                     head->reason_text && *head->reason_text ? head->reason_text
                                                                             : "see vramplan plan");
    check->id = sure ? VP_D_GATE_NO_FIT : VP_D_GATE_AT_RISK;
    check->value = (struct vp_quantity){head->headroom_bytes, head->headroom_bytes,
                                        head->headroom_bytes}; /* for at_risk: likely */
    check->state = sure ? VP_CHECK_FAIL : at_risk_state(g, check);
    check->hint = "vramplan fit says what to change";
}

/* ---- growth ---- */

/* Why there is nothing to compare with. */
static void without_base(struct vp_gating *g, struct vp_check *check) {
    const struct vp_gate_question *q = g->question;
    if (q->have_base && !q->in_base) {
        check->state = VP_CHECK_NEW;
        check->message = "new: there is no base to grow from";
        check->id = VP_DIAG_COUNT;
        return;
    }
    check->state = VP_CHECK_INCONCLUSIVE;
    check->id = q->have_base ? VP_D_GATE_BASE_FAULT : VP_D_GATE_NO_BASE;
    check->message = q->have_base
                         ? "the base cannot be planned, so there is nothing to compare with"
                         : "there is no base to compare with";
    check->hint = q->have_base ? NULL : "--base REF, or --base-dir DIR";
}

/* "+0.5 %" of the base, to a hundredth. */
static const char *show_percent(struct vp_arena *arena, int64_t grown, int64_t base) {
    if (base <= 0)
        return "";
    uint64_t hundredths = vp_mul_div(magnitude(grown), 10000, (uint64_t)base);
    return vp_arena_printf(arena, " (%s%" PRIu64 ".%02" PRIu64 " %%)", grown < 0 ? "-" : "+",
                           hundredths / 100, hundredths % 100);
}

/* Both must be exceeded, so the larger of the two is what is allowed. */
static int64_t allowed_growth(const struct vp_growth_limit *limit, int64_t base) {
    const uint64_t billion = 1000000000;
    uint64_t share = vp_mul_div((uint64_t)base, limit->percent_ppb, billion);
    return (int64_t)vp_min(vp_max(share, limit->min_bytes), INT64_MAX);
}

static void check_growth(struct vp_gating *g, struct vp_check *check, const char *about,
                         const struct vp_growth_limit *limit, struct vp_quantity now,
                         struct vp_quantity then) {
    struct vp_arena *arena = g->ctx->arena;
    check->unit = VP_UNIT_BYTES;
    check->upper = true;
    check->pos = limit->pos;
    if (!g->question->base) {
        without_base(g, check);
        return;
    }
    int64_t grown = now.likely - then.likely;
    check->value_known = check->limit_known = check->base_known = true;
    check->value = (struct vp_quantity){grown, grown, grown};
    check->base = then;
    check->limit = allowed_growth(limit, then.likely);
    check->state = grown <= check->limit ? VP_CHECK_PASS : VP_CHECK_FAIL;
    check->id = check->state == VP_CHECK_PASS ? VP_DIAG_COUNT : VP_D_GATE_GROWTH;
    check->message = vp_arena_printf(
        arena, "%s %s -> %s, %s%s%s; allowed +%s", about,
        vp_check_show(arena, VP_UNIT_BYTES, then.likely),
        vp_check_show(arena, VP_UNIT_BYTES, now.likely), grown < 0 ? "" : "+",
        vp_check_show(arena, VP_UNIT_BYTES, grown), show_percent(arena, grown, then.likely),
        vp_check_show(arena, VP_UNIT_BYTES, check->limit));
    vp_gate_waive(g, check);
}

static void check_total_growth(struct vp_gating *g) {
    const struct vp_gate_question *q = g->question;
    struct vp_quantity none = {0};
    struct vp_check *check = vp_gate_new(g, VP_CHECK_GROWTH, "growth");
    check_growth(g, check, "need of one GPU", &q->budget->growth,
                 vp_budget_bound(q->head, VP_BOUND_MEMORY),
                 q->base ? vp_budget_bound(q->base, VP_BOUND_MEMORY) : none);
}

static void check_component_growth(struct vp_gating *g, enum vp_component component) {
    const struct vp_gate_question *q = g->question;
    struct vp_quantity none = {0};
    const char *name = vp_component_name(component);
    struct vp_check *check = vp_gate_new(g, VP_CHECK_COMPONENT_GROWTH,
                                         vp_arena_printf(g->ctx->arena, "growth.%s", name));
    check->component = component;
    check_growth(g, check, name, &q->budget->component_growth[component],
                 vp_budget_component(q->head, component),
                 q->base ? vp_budget_component(q->base, component) : none);
}

/* ---- the whole ---- */

/* warn_only names a check, or all of a kind by what stands before the point. */
static bool is_warn_only(const struct vp_budget *budget, const char *name) {
    for (uint32_t i = 0; i < budget->warn_only_count; i++) {
        const char *word = budget->warn_only[i];
        size_t n = strlen(word);
        if (strncmp(word, name, n) == 0 && (name[n] == '\0' || name[n] == '.'))
            return true;
    }
    return false;
}

struct vp_check *vp_gate_new(struct vp_gating *g, enum vp_check_kind kind, const char *name) {
    if (g->count == g->capacity) {
        uint32_t capacity = g->capacity ? 2 * g->capacity : 16;
        struct vp_check *checks = VP_NEW_ARRAY(g->ctx->arena, capacity, struct vp_check);
        if (g->count)
            memcpy(checks, g->checks, g->count * sizeof *checks);
        g->checks = checks;
        g->capacity = capacity;
    }
    struct vp_check *check = &g->checks[g->count++];
    *check = (struct vp_check){.kind = kind,
                               .component = VP_COMPONENT_COUNT,
                               .name = name,
                               .id = VP_DIAG_COUNT,
                               .message = ""};
    return check;
}

void vp_gate_check(struct vp_ctx *ctx, struct vp_check **out, uint32_t *count,
                   const struct vp_gate_question *question) {
    const struct vp_budget *budget = question->budget;
    struct vp_gating g = {.ctx = ctx,
                          .question = question,
                          .at_risk = question->at_risk ? *question->at_risk : budget->at_risk};
    g.waiver_used = VP_NEW_ARRAY(ctx->arena, budget->waiver_count, bool);
    if (question->have_base && !question->in_base) {
        struct vp_check *check = vp_gate_new(&g, VP_CHECK_SCENARIO, "scenario");
        check->state = VP_CHECK_NEW;
        check->id = VP_D_GATE_NEW;
        check->message = "new: it is not in the base";
    }
    check_fits(&g);
    for (enum vp_bound b = 0; b < VP_BOUND_COUNT; b++)
        if (budget->bound[b].given)
            check_bound(&g, b);
    for (enum vp_component c = 0; c < VP_COMPONENT_COUNT; c++)
        if (budget->component[c].given)
            check_component(&g, c);
    if (budget->growth.given)
        check_total_growth(&g);
    for (enum vp_component c = 0; c < VP_COMPONENT_COUNT; c++)
        if (budget->component_growth[c].given)
            check_component_growth(&g, c);
    vp_gate_measured(&g);
    vp_gate_unused_waivers(&g);
    for (uint32_t i = 0; i < g.count; i++)
        if (g.checks[i].state > VP_CHECK_WARN && is_warn_only(budget, g.checks[i].name))
            g.checks[i].state = VP_CHECK_WARN;
    *out = g.checks;
    *count = g.count;
}

void vp_gate_sum(struct vp_gate *gate) {
    memset(gate->checks, 0, sizeof gate->checks);
    memset(gate->scenarios_of, 0, sizeof gate->scenarios_of);
    gate->worst = VP_CHECK_PASS;
    for (uint32_t i = 0; i < gate->scenario_count; i++) {
        struct vp_gate_scenario *s = &gate->scenarios[i];
        s->worst = VP_CHECK_PASS;
        for (uint32_t c = 0; c < s->check_count; c++) {
            gate->checks[s->checks[c].state]++;
            if (s->checks[c].state > s->worst)
                s->worst = s->checks[c].state;
        }
        gate->scenarios_of[s->worst]++;
        if (s->worst > gate->worst)
            gate->worst = s->worst;
    }
}
