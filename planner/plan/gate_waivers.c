/* Waivers: which failing checks they cover, until when, and which are not needed. */
#include "planner/base/text.h"
#include "planner/plan/gate_parts.h"

static bool is_expired(const struct vp_gating *g, const struct vp_waiver *w) {
    return w->expires < g->question->today;
}

/* Whether the check passes with the waiver's amount in place of its limit. A check that is only
 * told (at_risk: warn) is no reason to look for a waiver, so that the policy does not matter here.
 */
static bool allows(const struct vp_gating *g, const struct vp_waiver *w,
                   const struct vp_check *check) {
    enum vp_kept kept = vp_budget_keeps(check->value, (int64_t)w->amount, check->upper);
    bool likely = check->upper ? check->value.likely <= (int64_t)w->amount
                               : check->value.likely >= (int64_t)w->amount;
    return kept == VP_KEPT || (kept == VP_KEPT_MAYBE && g->at_risk == VP_AT_RISK_LIKELY && likely);
}

static const struct vp_waiver *find(const struct vp_gating *g, const struct vp_check *check,
                                    bool expired) {
    const struct vp_budget *budget = g->question->budget;
    for (uint32_t i = 0; i < budget->waiver_count; i++) {
        const struct vp_waiver *w = &budget->waivers[i];
        if (vp_text_eq(w->check, check->name) && is_expired(g, w) == expired &&
            allows(g, w, check)) {
            g->waiver_used[i] = true;
            return w;
        }
    }
    return NULL;
}

/* The growth of components that waivers allow is allowed to their sum as well. */
static int64_t allowed_by_components(struct vp_gating *g, bool expired_too,
                                     const struct vp_waiver **first) {
    const struct vp_gate_question *q = g->question;
    int64_t sum = 0;
    for (uint32_t i = 0; i < q->budget->waiver_count; i++) {
        const struct vp_waiver *w = &q->budget->waivers[i];
        if (!vp_text_starts(w->check, "growth.") || (is_expired(g, w) && !expired_too))
            continue;
        enum vp_component c = vp_component_find(w->check + sizeof "growth." - 1);
        int64_t grown =
            vp_budget_component(q->head, c).likely - vp_budget_component(q->base, c).likely;
        int64_t most = (int64_t)w->amount;
        if (grown <= 0)
            continue;
        sum += grown < most ? grown : most;
        g->waiver_used[i] = true;
        if (!*first || (is_expired(g, w) && !is_expired(g, *first)))
            *first = w; /* the one to tell of */
    }
    return sum;
}

static const struct vp_waiver *find_component_waivers(struct vp_gating *g,
                                                      const struct vp_check *check, bool expired) {
    const struct vp_waiver *first = NULL;
    if (check->kind != VP_CHECK_GROWTH)
        return NULL;
    int64_t more = allowed_by_components(g, expired, &first);
    return first && check->value.likely <= check->limit + more ? first : NULL;
}

static void tell(struct vp_gating *g, struct vp_check *check, const struct vp_waiver *w,
                 bool expired) {
    check->waiver = w;
    check->state = expired ? VP_CHECK_INCONCLUSIVE : VP_CHECK_WAIVED;
    check->id = expired ? VP_D_GATE_EXPIRED : VP_D_GATE_WAIVED;
    check->message = vp_arena_printf(g->ctx->arena, "%s; %s %s: %s", check->message,
                                     expired ? "the waiver expired on" : "waived until",
                                     w->expires_text, w->reason);
    check->hint = expired ? "renew the waiver, raise the limit, or take the growth back" : NULL;
}

/* A waiver of the check that does not reach: the reader would look for why it did not help. */
static void tell_short(struct vp_gating *g, struct vp_check *check) {
    static const char *const WORDS[] = {"growth by", "up to", "down to"};
    const struct vp_budget *budget = g->question->budget;
    for (uint32_t i = 0; i < budget->waiver_count; i++) {
        const struct vp_waiver *w = &budget->waivers[i];
        if (!vp_text_eq(w->check, check->name))
            continue;
        g->waiver_used[i] = true;
        check->waiver = w;
        check->message = vp_arena_printf(
            g->ctx->arena, "%s; the waiver allows %s %s only", check->message, WORDS[w->kind],
            vp_check_show(g->ctx->arena, check->unit, (int64_t)w->amount));
        return;
    }
}

void vp_gate_waive(struct vp_gating *g, struct vp_check *check) {
    if (check->state != VP_CHECK_FAIL && check->state != VP_CHECK_INCONCLUSIVE)
        return;
    for (int expired = 0; expired < 2; expired++) {
        const struct vp_waiver *w = find(g, check, expired);
        if (!w)
            w = find_component_waivers(g, check, expired);
        if (w) {
            tell(g, check, w, expired);
            return;
        }
    }
    tell_short(g, check);
}

void vp_gate_unused_waivers(struct vp_gating *g) {
    const struct vp_budget *budget = g->question->budget;
    for (uint32_t i = 0; i < budget->waiver_count; i++) {
        const struct vp_waiver *w = &budget->waivers[i];
        if (g->waiver_used[i])
            continue;
        vp_diag_add(g->ctx->diags, VP_D_GATE_UNUSED, &w->pos,
                    "%s: nothing needs the waiver of %s%s%s", g->question->scenario, w->check,
                    is_expired(g, w) ? ", which expired on " : "",
                    is_expired(g, w) ? w->expires_text : "");
        vp_diag_hint(g->ctx->diags, "take it out");
    }
}
