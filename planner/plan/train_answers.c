#include "planner/plan/train_answers.h"

void vp_train_answers(struct vp_ctx *ctx, struct vp_result *out) {
    (void)ctx;
    (void)out;
}
