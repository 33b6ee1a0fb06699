/* Limits that a change raises together with what they limit: told, not held against it. */
#include "planner/plan/gate.h"

/* A limit that was there is gone or looser: what this change does to it, in words; looser NULL: it
 * holds as before. */
static void note(struct vp_ctx *ctx, const char *scenario, const char *name,
                 const struct vp_pos *now, const char *looser) {
    if (!now)
        vp_diag_add(ctx->diags, VP_D_GATE_LOOSER, NULL,
                    "%s: this change takes %s out of the budget", scenario, name);
    else if (looser)
        vp_diag_add(ctx->diags, VP_D_GATE_LOOSER, now, "%s: this change %s", scenario, looser);
}

static void note_limit(struct vp_ctx *ctx, const char *scenario, const char *name,
                       const struct vp_limit *now, const struct vp_limit *then, bool upper,
                       enum vp_check_unit unit) {
    const char *looser = NULL;

    if (!then->given)
        return;
    if (upper ? now->value > then->value : now->value < then->value)
        looser = vp_arena_printf(ctx->arena, "%s the budget's %s from %s to %s",
                                 upper ? "raises" : "lowers", name,
                                 vp_check_show(ctx->arena, unit, (int64_t)then->value),
                                 vp_check_show(ctx->arena, unit, (int64_t)now->value));
    note(ctx, scenario, name, now->given ? &now->pos : NULL, looser);
}

static void note_growth(struct vp_ctx *ctx, const char *scenario, const char *name,
                        const struct vp_growth_limit *now, const struct vp_growth_limit *then) {
    const char *looser = NULL;

    if (!then->given)
        return;
    if (now->percent_ppb > then->percent_ppb || now->min_bytes > then->min_bytes)
        looser = vp_arena_printf(ctx->arena, "raises what the budget's %s allows", name);
    note(ctx, scenario, name, now->given ? &now->pos : NULL, looser);
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
