#include "planner/plan/evaluate_parts.h"

bool vp_evaluate_train(struct vp_arena *arena, struct vp_result *out) {
    (void)arena;
    (void)out;
    return false;
}
