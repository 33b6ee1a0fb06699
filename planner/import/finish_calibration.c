/* Which calibration a scenario is planned with. One that was read is kept for the whole run. */
#include <inttypes.h>

#include "planner/base/memo.h"
#include "planner/base/text.h"
#include "planner/import/calibration_reader.h"
#include "planner/import/finish_parts.h"

static enum vp_status read_named(struct vp_ctx *ctx, const void **out, const void *from) {
    struct vp_calibration *calibration = VP_NEW(ctx->arena, struct vp_calibration);
    *out = calibration;
    return vp_calibration_read(ctx, calibration, from);
}

static enum vp_status read_shipped(struct vp_ctx *ctx, const void **out, const void *from) {
    struct vp_calibration *calibration = NULL;
    enum vp_status status = vp_calibration_find(ctx, &calibration, from);
    *out = calibration;
    return status;
}

static enum vp_status check_gpu(struct vp_ctx *ctx, const struct vp_scenario *s) {
    const struct vp_pos *pos = &s->source[VP_F_CALIBRATION].pos;
    const char *gpu = s->hardware.gpu.id, *measured = s->measured_gpu->gpu;
    if (vp_text_eq(gpu, measured))
        return VP_OK;
    vp_diag_add(ctx->diags, VP_D_CONTRADICTION, pos,
                "the calibration %s is of %s, the scenario plans for %s", s->calibration, measured,
                gpu);
    vp_diag_hint(ctx->diags, "without it the profile of the card is used, where there is one");
    return VP_ERR_INPUT;
}

static void at_least(struct vp_amount *amount, uint64_t least) {
    amount->low = vp_max(amount->low, least);
    amount->likely = vp_max(amount->likely, least);
    amount->high = vp_max(amount->high, least);
}

/* Not used: vLLM's figure, which begins behind the context; llama.cpp's, which may run on Vulkan;
 * blas, graph and communicator, which depend on what a framework asks of these libraries. */
void vp_finish_measured_memory(struct vp_ctx *ctx, struct vp_scenario *s) {
    uint64_t context = s->measured_gpu ? s->measured_gpu->memory.context_bytes : 0;
    struct vp_rules *rules = &s->engine.rules;
    bool served = s->engine.kind == VP_ENGINE_SGLANG || s->engine.kind == VP_ENGINE_TRANSFORMERS;

    if (!context || (!s->training && !served))
        return;
    if (s->training)
        at_least(&rules->train.context, context);
    else {
        at_least(&rules->non_torch, context);
        at_least(&rules->non_torch_group, context);
    }
    rules->overhead_source =
        vp_arena_printf(ctx->arena, "%s; at least the context of %" PRIu64 " MiB that %s measured",
                        rules->overhead_source, context >> 20,
                        s->calibration_path ? s->calibration_path : "the card's calibration");
}

enum vp_status vp_finish_calibration(struct vp_ctx *ctx, struct vp_scenario *s) {
    const struct vp_gpu *gpu = &s->hardware.gpu;
    const char *path = s->calibration_path;
    const void *found = NULL;
    s->measured_gpu = NULL;
    if (!path && gpu->parts > 1) /* of a whole card; a partition has rates of its own */
        return VP_OK;
    const char *key = vp_arena_printf(ctx->arena, "calibration %s %s", path ? "of" : "for",
                                      path ? path : gpu->id);
    enum vp_status status = path ? vp_memo_get(ctx, &found, key, read_named, path)
                                 : vp_memo_get(ctx, &found, key, read_shipped, gpu->id);
    if (status != VP_OK)
        return status;
    s->measured_gpu = found;
    return path ? check_gpu(ctx, s) : VP_OK;
}
