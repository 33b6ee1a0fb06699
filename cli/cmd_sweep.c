#include "cli/args.h"
#include "cli/output.h"

int vp_cmd_sweep(struct vp_ctx *ctx, const struct vp_args *args) {
    vp_diag_add(ctx->diags, VP_D_UNMODELLED, NULL, "not built yet");
    return vp_output_failure(ctx, args, VP_ERR_INPUT);
}
