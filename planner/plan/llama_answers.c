#include "planner/plan/llama_answers.h"

void vp_llama_answers(struct vp_ctx *ctx, struct vp_result *out) {
    (void)ctx;
    (void)out;
}
