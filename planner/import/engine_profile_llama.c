#include "planner/import/engine_profile_parts.h"

void vp_rules_read_llama(struct vp_situation *s, struct vp_llama_rules *out) {
    (void)s;
    (void)out;
}
