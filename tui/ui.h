/* The state of the terminal interface above the session (tui_session.h): which screen, where its
 * cursors stand, what is being typed. Two steps: a key changes the state (ui.c), the state is drawn
 * (ui_draw.c). Nothing here knows a terminal or a clock; that is curses.c, a key script or a test.
 *
 * What the screens share in behaviour is here: moving, searching, undo, pins, solving, typing
 * commands (ui_ask.c). */
#ifndef VP_TUI_UI_H
#define VP_TUI_UI_H

#include "tui/entry.h"
#include "tui/screens.h"
#include "tui/tui_session.h"

enum {
    VP_UI_MIN_WIDTH = 80,
    VP_UI_MIN_HEIGHT = 24,
    VP_UI_PANES = 3,
    VP_UI_LINE = 512,
    VP_UI_OWN = 64
};
enum { VP_UI_WIDE = 120, VP_UI_HIGH = 40 }; /* from here on: a third pane, the pins below */

enum vp_ui_mode {
    VP_UI_NORMAL,
    VP_UI_ENTRY, /* a line is typed: a value, a search, a command, a file's name */
    VP_UI_MENU,  /* one of several is chosen */
    VP_UI_HELP,  /* the keys of the screen lie over it */
    VP_UI_TEXT   /* a text lies over the screen: a command in full, an explanation */
};

/* A cursor in a list, and the first row of it that is seen. */
struct vp_place {
    int row, first;
};

struct vp_ui_screen_state {
    int pane; /* in focus */
    struct vp_place place[VP_UI_PANES];
    int column, order, option; /* free for the screen's own use */
};

/* Something to choose from, in menus and below a line that is typed. */
struct vp_ui_choice {
    const char *value;
    const char *note; /* beside it: what it means, why it cannot be; NULL */
    bool off;         /* cannot be chosen */
};

/* Something that a click reaches; of the frame that was drawn last. */
struct vp_hit {
    int x, y, width;
    enum vp_action action; /* VP_ACT_NONE: puts the cursor of `pane` on `row` */
    int pane, row;
};

struct vp_ui {
    struct vp_session *session;
    struct vp_arena frame; /* rewound before each key and each frame */
    int width, height;
    enum vp_theme_name theme;
    bool colour_off; /* NO_COLOR: the themes are not walked */
    bool utf8, mouse, percent;
    enum vp_screen screen;
    struct vp_ui_screen_state at[VP_SCREEN_COUNT];

    enum vp_ui_mode mode;
    char title[80]; /* of what lies over the screen; in front of the line that is typed */
    /* ENTRY, MENU */
    struct vp_entry entry;
    const struct vp_ui_choice *choice; /* must last until it is closed */
    int choices;
    struct vp_place menu; /* row -1 in ENTRY: none of them, the line as typed */
    void (*entered)(struct vp_ui *ui, const char *text);
    void (*chosen)(struct vp_ui *ui, int index);
    struct vp_ui_choice own[VP_UI_OWN]; /* room for choices that nobody else keeps */
    enum vp_knob_id asked;              /* whose value is typed */
    enum vp_export form;                /* what is written */
    char overwrite[VP_ENTRY_BYTES];     /* a file that is there, and may be written over */
    /* TEXT, HELP */
    struct vp_arena over; /* of the text */
    const char *text;
    struct vp_place page;

    char search[VP_ENTRY_BYTES];
    int search_from;         /* where the cursor stood */
    char status[VP_UI_LINE]; /* what the last key led to; "" none */
    enum vp_tui_style status_style;
    bool pasting, quit, quit_asked; /* quit: the program is to end */
    bool redraw, suspend, copy;     /* asked of the terminal, which puts them back */
    /* Writes a file, all of it or nothing; faults are diagnostics of the context. NULL: it cannot.
     */
    enum vp_status (*write)(struct vp_ctx *ctx, const struct vp_buf *text, const char *path);
    struct vp_ctx *ctx; /* of that */

    struct vp_hit hit[256];
    int hits;
};

/* All fields are zero but those set here; the caller may set theme, mouse, colour_off, write, ctx.
 */
void vp_ui_open(struct vp_ui *ui, struct vp_session *session, int width, int height, bool utf8);
void vp_ui_close(struct vp_ui *ui);
/* One key, click or change of size. */
void vp_ui_key(struct vp_ui *ui, struct vp_key key);
/* As if the key of an action were pressed on this screen. */
void vp_ui_act(struct vp_ui *ui, enum vp_action action);
/* The whole screen, in the frame's arena: valid until the next key or frame. Scrolls lists so that
 * their cursors are seen, and notes what a click would reach. */
struct vp_cells *vp_ui_draw(struct vp_ui *ui);
/* Computes one thing that the screen showed as pending; false: there was none. For scripts. */
bool vp_ui_work(struct vp_ui *ui);
/* The same beside the keys, in a thread (vp_session_poll); true: there is something new to show. */
bool vp_ui_poll(struct vp_ui *ui);
/* As many columns and lines as are needed; below, the interface waits. */
bool vp_ui_fits(const struct vp_ui *ui);

/* ---- for screens ---- */

struct vp_ui_screen_state *vp_ui_here(struct vp_ui *ui); /* of the screen that is shown */
/* The cursor's row in a pane, within [0, rows); 0 where there are none. */
int vp_ui_row(struct vp_ui *ui, int pane, int rows);
/* Scrolls a pane of `rows` rows of which `seen` fit, so that its cursor is among them; returns the
 * first that is seen. */
int vp_ui_scroll(struct vp_ui *ui, int pane, int rows, int seen);
/* A click into that line of the view puts the cursor of the pane onto the row, or does an action.
 */
void vp_ui_hit_row(struct vp_ui *ui, struct vp_view view, int x, int y, int width, int pane,
                   int row);
void vp_ui_hit_action(struct vp_ui *ui, struct vp_view view, int x, int y, int width,
                      enum vp_action action);
/* The line at the bottom, until the next key. */
void vp_ui_say(struct vp_ui *ui, enum vp_tui_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Says what the session has to say of what was last asked of it. */
void vp_ui_tell(struct vp_ui *ui);
/* Has a line typed, which begins as `initial` (NULL: empty); `entered` is called with it, not when
 * Esc is pressed. The choices that match what is typed are shown, and can be picked. */
void vp_ui_ask(struct vp_ui *ui, const char *label, const char *initial,
               const struct vp_ui_choice *choice, int choices,
               void (*entered)(struct vp_ui *ui, const char *text));
/* Has one of several chosen. */
void vp_ui_menu(struct vp_ui *ui, const char *title, const struct vp_ui_choice *choice, int choices,
                void (*chosen)(struct vp_ui *ui, int index));
/* Lays a copy of a text over the screen: lines of it are shown as they are, long ones are broken.
 */
void vp_ui_show(struct vp_ui *ui, const char *title, const char *text);

/* ---- between ui.c, ui_draw.c and ui_ask.c ---- */

/* Whether a choice matches the line that is typed; all do while that is empty. */
bool vp_ui_matches(const struct vp_ui *ui, int choice);
/* Has the plan written to a file; path NULL: it is asked for. */
void vp_ui_write_to(struct vp_ui *ui, enum vp_export form, const char *path);
/* A blank rectangle in the middle of the screen. */
struct vp_view vp_ui_over(struct vp_view all, int width, int height);
void vp_ui_draw_help(struct vp_ui *ui, struct vp_view all); /* screen_help.c */
/* Actions that ask something or lead out. False: not one of these. */
bool vp_ui_ask_act(struct vp_ui *ui, enum vp_action action);

#endif
