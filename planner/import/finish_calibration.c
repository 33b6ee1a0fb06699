/* Which calibration a scenario is planned with. One that was read is kept for the whole run. */
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
