/* What a screen is: four functions over the state of the interface. Adding one: a row in
 * screens.def, the functions in tui/screen_STEM.c, rows of keys.def for actions of its own.
 *
 * draw: shows itself in the view. May keep figures in ui->frame, an arena that is rewound before
 * each frame, and must be quick: what takes more than a few ms is computed by vp_session_work
 * between keys, and until it is there the screen says so. It scrolls its lists by vp_ui_scroll and
 * tells by vp_ui_hit where a click means a row. act: acts on a key that keys.def binds on this
 * screen; false: not mine. Moving the cursor, changing panes and screens, searching, undo and so on
 * are not asked of screens. rows: how many rows the cursor of the pane in focus can stand on.
 * row_text: what a search looks at in such a row, NULL: nothing. */
#ifndef VP_TUI_SCREENS_H
#define VP_TUI_SCREENS_H

#include "tui/cells.h"
#include "tui/keys.h"

struct vp_ui;

struct vp_screen_info {
    const char *name, *meaning;
    int panes;
    void (*draw)(struct vp_ui *ui, struct vp_view view);
    bool (*act)(struct vp_ui *ui, enum vp_action action);
    int (*rows)(struct vp_ui *ui);
    const char *(*row_text)(struct vp_ui *ui, int row);
};

extern const struct vp_screen_info vp_screens[VP_SCREEN_COUNT];

#define X(name, stem, text, panes, meaning)                                                        \
    void vp_screen_##stem##_draw(struct vp_ui *ui, struct vp_view view);                           \
    bool vp_screen_##stem##_act(struct vp_ui *ui, enum vp_action action);                          \
    int vp_screen_##stem##_rows(struct vp_ui *ui);                                                 \
    const char *vp_screen_##stem##_row_text(struct vp_ui *ui, int row);
#include "tui/screens.def"
#undef X

#endif
