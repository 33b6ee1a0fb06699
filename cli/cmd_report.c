#include "cli/args.h"
#include "cli/output.h"

int vp_cmd_report(struct vp_ctx *ctx, const struct vp_args *args) {
    (void)args;
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "'report' is being built");
    return (int)VP_EXIT_INPUT;
}
