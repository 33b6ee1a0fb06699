#include "planner/import/engine_profile_parts.h"

void vp_rules_read_train(struct vp_situation *s, struct vp_train_rules *out) {
    (void)s;
    (void)out;
}
