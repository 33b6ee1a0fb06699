/* Limits that a change raises together with what they limit: told, not held against it. */
#include "planner/plan/gate.h"

static void note_limit(struct vp_ctx *ctx, const char *scenario, const char *name,
                       const struct vp_limit *now, const struct vp_limit *then, bool upper,
                       enum vp_check_unit unit) {
    bool looser = upper ? now->value > then->value : now->value < then->value;
    if (!then->given || (now->given && !looser))
        return;
    if (!now->given)
        vp_diag_add(ctx->diags, VP_D_GATE_LOOSER, NULL,
                    "%s: this change takes %s out of the budget", scenario, name);
    else
        vp_diag_add(ctx->diags, VP_D_GATE_LOOSER, &now->pos,
                    "%s: this change %s the budget's %s from %s to %s", scenario,
                    upper ? "raises" : "lowers", name,
                    vp_check_show(ctx->arena, unit, (int64_t)then->value),
                    vp_check_show(ctx->arena, unit, (int64_t)now->value));
}

static void note_growth(struct vp_ctx *ctx, const char *scenario, const char *name,
                        const struct vp_growth_limit *now, const struct vp_growth_limit *then) {
    bool looser = now->percent_ppb > then->percent_ppb || now->min_bytes > then->min_bytes;
    if (!then->given || (now->given && !looser))
        return;
    if (!now->given)
        vp_diag_add(ctx->diags, VP_D_GATE_LOOSER, NULL,
                    "%s: this change takes %s out of the budget", scenario, name);
    else
        vp_diag_add(ctx->diags, VP_D_GATE_LOOSER, &now->pos,
                    "%s: this change raises what the budget's %s allows", scenario, name);
}

void vp_gate_loosened(struct vp_ctx *ctx, const char *scenario, const struct vp_budget *head,
                      const struct vp_budget *base) {
    static const enum vp_check_unit UNITS[] = {[VP_BOUND_MEMORY] = VP_UNIT_BYTES,
                                               [VP_BOUND_HEADROOM] = VP_UNIT_BYTES,
                                               [VP_BOUND_HOST] = VP_UNIT_BYTES,
                                               [VP_BOUND_CONTEXT] = VP_UNIT_TOKENS,
                                               [VP_BOUND_CONCURRENCY] = VP_UNIT_SEQUENCES};
    for (enum vp_bound b = 0; b < VP_BOUND_COUNT; b++)
        note_limit(ctx, scenario, vp_bound_name(b), &head->bound[b], &base->bound[b],
                   vp_bound_is_upper(b), UNITS[b]);
    for (enum vp_component c = 0; c < VP_COMPONENT_COUNT; c++)
        note_limit(ctx, scenario,
                   vp_arena_printf(ctx->arena, "components.%s", vp_component_name(c)),
                   &head->component[c], &base->component[c], true, VP_UNIT_BYTES);
    note_growth(ctx, scenario, "growth", &head->growth, &base->growth);
    for (enum vp_component c = 0; c < VP_COMPONENT_COUNT; c++)
        note_growth(ctx, scenario, vp_arena_printf(ctx->arena, "growth.%s", vp_component_name(c)),
                    &head->component_growth[c], &base->component_growth[c]);
}
