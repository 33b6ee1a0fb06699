/* What bytes are for: the names that results, budgets and differences share. */
#ifndef VP_MODEL_COMPONENT_H
#define VP_MODEL_COMPONENT_H

enum vp_component {
#define X(name, text, letter, meaning) VP_C_##name,
#include "planner/model/components.def"
#undef X
    VP_COMPONENT_COUNT
};

const char *vp_component_name(enum vp_component component); /* "kv_cache" */
char vp_component_letter(enum vp_component component);
const char *vp_component_meaning(enum vp_component component);
/* VP_COMPONENT_COUNT when there is none. */
enum vp_component vp_component_find(const char *name);

#endif
