#include "planner/model/component.h"

#include "planner/base/text.h"

static const struct {
    const char *name;
    char letter;
    const char *meaning;
} components[] = {
#define X(name, text, letter, meaning) {text, letter, meaning},
#include "planner/model/components.def"
#undef X
};

const char *vp_component_name(enum vp_component component) { return components[component].name; }

char vp_component_letter(enum vp_component component) { return components[component].letter; }

const char *vp_component_meaning(enum vp_component component) {
    return components[component].meaning;
}

enum vp_component vp_component_find(const char *name) {
    enum vp_component c = 0;
    while (c < VP_COMPONENT_COUNT && !vp_text_eq(components[c].name, name))
        c++;
    return c;
}
