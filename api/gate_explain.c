#include "api/gate_explain.h"

#include "api/diff.h"

static struct vp_diff_side side_of(struct vp_gate_run *run, const struct vp_gate_side *side,
                                   struct vp_ctx *ctx) {
    return (struct vp_diff_side){.ctx = ctx,
                                 .root = side->item->root,
                                 .base = side->input->base,
                                 .settings = run->settings,
                                 .setting_count = run->setting_count,
                                 .result = side->result};
}

void vp_gate_explain(struct vp_ctx *ctx, struct vp_gate_run *run) {
    for (uint32_t i = 0; i < run->gate.scenario_count; i++) {
        if (!run->head[i].item || !run->base[i].item)
            continue;
        struct vp_difference *difference = VP_NEW(ctx->arena, struct vp_difference);
        struct vp_diff_side before = side_of(run, &run->base[i], &run->base_ctx);
        struct vp_diff_side after = side_of(run, &run->head[i], &run->head_ctx);
        vp_diff_make(ctx, difference, &before, &after);
        run->gate.scenarios[i].difference = difference;
    }
}
