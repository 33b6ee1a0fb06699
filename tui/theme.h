/* Styles and what they look like. A style says what a piece of text is, a theme how that is shown.
 */
#ifndef VP_TUI_THEME_H
#define VP_TUI_THEME_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/base/diag.h"
#include "planner/plan/result.h"

/* VP_LOOK_PLAIN and so on; not VP_STYLE_, which are those of reports. */
enum vp_tui_style {
#define X(name, dark, light, coloured, mono) VP_LOOK_##name,
#include "tui/theme.def"
#undef X
    VP_LOOK_COUNT
};

enum vp_theme_name { VP_THEME_DARK, VP_THEME_LIGHT, VP_THEME_MONO, VP_THEME_COUNT };

/* Colours of terminals, as escape sequences and curses number them. */
enum vp_tui_colour {
    VP_COLOUR_DEFAULT = -1,
    VP_COLOUR_BLACK,
    VP_COLOUR_RED,
    VP_COLOUR_GREEN,
    VP_COLOUR_YELLOW,
    VP_COLOUR_BLUE,
    VP_COLOUR_MAGENTA,
    VP_COLOUR_CYAN,
    VP_COLOUR_WHITE
};

struct vp_look {
    enum vp_tui_colour colour;
    bool bold, dim, underline, reverse;
};

struct vp_look vp_theme_look(enum vp_theme_name theme, enum vp_tui_style style);
const char *vp_theme_text(enum vp_theme_name theme); /* "dark", "light", "mono" */
/* VP_THEME_COUNT: no such theme. */
enum vp_theme_name vp_theme_find(const char *name);

enum vp_tui_style vp_theme_component(enum vp_component component);
enum vp_tui_style vp_theme_verdict(enum vp_verdict verdict);
enum vp_tui_style vp_theme_severity(enum vp_severity severity);

#endif
