#include "tui/theme.h"

#include <string.h>

#include "planner/base/text.h"

#define HAS(attributes, letter) (strchr(attributes, letter) != NULL)

static struct vp_look look_of(enum vp_tui_colour colour, const char *attributes) {
    return (struct vp_look){.colour = colour,
                            .bold = HAS(attributes, 'b'),
                            .dim = HAS(attributes, 'd'),
                            .underline = HAS(attributes, 'u'),
                            .reverse = HAS(attributes, 'r')};
}

static const struct {
    enum vp_tui_colour dark, light;
    const char *coloured, *mono;
} LOOKS[VP_LOOK_COUNT] = {
#define X(name, dark, light, coloured, mono)                                                       \
    [VP_LOOK_##name] = {VP_COLOUR_##dark, VP_COLOUR_##light, coloured, mono},
#include "tui/theme.def"
#undef X
};

static const char *const NAMES[VP_THEME_COUNT] = {"dark", "light", "mono"};

struct vp_look vp_theme_look(enum vp_theme_name theme, enum vp_tui_style style) {
    switch (theme) {
    case VP_THEME_DARK:
        return look_of(LOOKS[style].dark, LOOKS[style].coloured);
    case VP_THEME_LIGHT:
        return look_of(LOOKS[style].light, LOOKS[style].coloured);
    default:
        return look_of(VP_COLOUR_DEFAULT, LOOKS[style].mono);
    }
}

const char *vp_theme_text(enum vp_theme_name theme) { return NAMES[theme]; }

enum vp_theme_name vp_theme_find(const char *name) {
    enum vp_theme_name theme = 0;
    while (theme < VP_THEME_COUNT && !vp_text_eq(name, NAMES[theme]))
        theme++;
    return theme;
}

enum vp_tui_style vp_theme_component(enum vp_component component) {
    switch (component) {
    case VP_C_WEIGHTS:
    case VP_C_ADAPTERS:
    case VP_C_DRAFT:
    case VP_C_VISION:
        return VP_LOOK_WEIGHTS;
    case VP_C_KV_CACHE:
    case VP_C_RECURRENT_STATE:
        return VP_LOOK_CACHE;
    case VP_C_ACTIVATIONS:
    case VP_C_LOGITS:
    case VP_C_WORKSPACE:
        return VP_LOOK_WORK;
    case VP_C_GRADIENTS:
    case VP_C_OPTIMIZER:
    case VP_C_MASTER_WEIGHTS:
        return VP_LOOK_TRAINING;
    default:
        return VP_LOOK_ENGINE;
    }
}

enum vp_tui_style vp_theme_verdict(enum vp_verdict verdict) {
    return verdict == VP_FITS ? VP_LOOK_GOOD : verdict == VP_AT_RISK ? VP_LOOK_WARN : VP_LOOK_BAD;
}

enum vp_tui_style vp_theme_severity(enum vp_severity severity) {
    return severity == VP_ERROR     ? VP_LOOK_BAD
           : severity == VP_WARNING ? VP_LOOK_WARN
                                    : VP_LOOK_PLAIN;
}
