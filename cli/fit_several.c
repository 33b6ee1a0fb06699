#include "cli/fit_several.h"

#include "cli/output.h"

int vp_fit_rank(struct vp_ctx *ctx, const struct vp_fit_question_asked *question) {
    vp_diag_add(ctx->diags, VP_D_UNMODELLED, NULL, "not built yet");
    return vp_output_failure(ctx, question->args, VP_ERR_INPUT);
}

int vp_fit_pack(struct vp_ctx *ctx, const struct vp_fit_question_asked *question) {
    vp_diag_add(ctx->diags, VP_D_UNMODELLED, NULL, "not built yet");
    return vp_output_failure(ctx, question->args, VP_ERR_INPUT);
}
