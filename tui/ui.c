#include "tui/ui.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "reports/layout.h"

const struct vp_screen_info vp_screens[VP_SCREEN_COUNT] = {
#define X(name, stem, text, panes, meaning)                                                        \
    [VP_SCREEN_##name] = {text,                                                                    \
                          meaning,                                                                 \
                          panes,                                                                   \
                          vp_screen_##stem##_draw,                                                 \
                          vp_screen_##stem##_act,                                                  \
                          vp_screen_##stem##_rows,                                                 \
                          vp_screen_##stem##_row_text},
#include "tui/screens.def"
#undef X
};

void vp_ui_open(struct vp_ui *ui, struct vp_session *session, int width, int height, bool utf8) {
    *ui = (struct vp_ui){.session = session, .width = width, .height = height, .utf8 = utf8};
    vp_ui_tell(ui);
}

void vp_ui_close(struct vp_ui *ui) {
    vp_arena_free(&ui->frame);
    vp_arena_free(&ui->over);
}

bool vp_ui_fits(const struct vp_ui *ui) {
    return ui->width >= VP_UI_MIN_WIDTH && ui->height >= VP_UI_MIN_HEIGHT;
}

/* An answer may have been laid over the scenario. */
static bool worked(struct vp_ui *ui, bool (*work)(struct vp_session *session)) {
    uint64_t serial = vp_session_serial(ui->session);
    bool done = work(ui->session);
    if (serial != vp_session_serial(ui->session))
        vp_ui_tell(ui);
    return done;
}

bool vp_ui_work(struct vp_ui *ui) { return worked(ui, vp_session_work); }
bool vp_ui_poll(struct vp_ui *ui) { return worked(ui, vp_session_poll); }

/* ---- for screens ---- */

struct vp_ui_screen_state *vp_ui_here(struct vp_ui *ui) {
    return &ui->at[ui->screen];
}

static int clamp(int value, int low, int high) {
    return value > high ? (high > low ? high : low) : value < low ? low : value;
}

int vp_ui_row(struct vp_ui *ui, int pane, int rows) {
    struct vp_place *place = &vp_ui_here(ui)->place[pane];
    place->row = clamp(place->row, 0, rows - 1);
    return place->row;
}

static int scrolled(struct vp_place *place, int rows, int seen) {
    seen = seen > 0 ? seen : 1;
    if (place->first > place->row)
        place->first = place->row;
    if (place->first < place->row - seen + 1)
        place->first = place->row - seen + 1;
    place->first = clamp(place->first, 0, rows - seen);
    return place->first;
}

int vp_ui_scroll(struct vp_ui *ui, int pane, int rows, int seen) {
    vp_ui_row(ui, pane, rows);
    return scrolled(&vp_ui_here(ui)->place[pane], rows, seen);
}

static void add_hit(struct vp_ui *ui, struct vp_view view, struct vp_hit hit) {
    if (ui->hits == sizeof ui->hit / sizeof ui->hit[0] || hit.y < 0 || hit.y >= view.height)
        return;
    hit.x += view.x;
    hit.y += view.y;
    ui->hit[ui->hits++] = hit;
}

void vp_ui_hit_row(struct vp_ui *ui, struct vp_view view, int x, int y, int width, int pane,
                   int row) {
    add_hit(ui, view, (struct vp_hit){.x = x, .y = y, .width = width, .pane = pane, .row = row});
}

void vp_ui_hit_action(struct vp_ui *ui, struct vp_view view, int x, int y, int width,
                      enum vp_action action) {
    add_hit(ui, view, (struct vp_hit){.x = x, .y = y, .width = width, .action = action});
}

void vp_ui_say(struct vp_ui *ui, enum vp_tui_style style, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(ui->status, sizeof ui->status, format, list);
    va_end(list);
    ui->status_style = style;
}

/* The first fault, else what was done. */
void vp_ui_tell(struct vp_ui *ui) {
    const struct vp_session_message *message;
    uint32_t count = vp_session_messages(ui->session, &message);
    const struct vp_session_message *told = count ? message : NULL;
    for (uint32_t i = 1; i < count; i++)
        if (message[i].severity > told->severity)
            told = &message[i];
    if (!told)
        return;
    const char *hint = told->hint ? told->hint : "";
    vp_ui_say(ui, vp_theme_severity(told->severity), "%s%s%s%s", told->text, *hint ? " (" : "",
              hint, *hint ? ")" : "");
}

static void enter(struct vp_ui *ui, enum vp_ui_mode mode, const char *title) {
    ui->mode = mode;
    snprintf(ui->title, sizeof ui->title, "%s", title);
    ui->choice = NULL;
    ui->choices = 0;
    ui->menu = ui->page = (struct vp_place){0};
    ui->entered = NULL;
    ui->chosen = NULL;
}

void vp_ui_ask(struct vp_ui *ui, const char *label, const char *initial,
               const struct vp_ui_choice *choice, int choices,
               void (*entered)(struct vp_ui *ui, const char *text)) {
    enter(ui, VP_UI_ENTRY, label);
    vp_entry_set(&ui->entry, initial);
    ui->choice = choice;
    ui->choices = choices;
    ui->menu.row = -1;
    ui->entered = entered;
}

void vp_ui_menu(struct vp_ui *ui, const char *title, const struct vp_ui_choice *choice, int choices,
                void (*chosen)(struct vp_ui *ui, int index)) {
    enter(ui, VP_UI_MENU, title);
    ui->choice = choice;
    ui->choices = choices;
    ui->chosen = chosen;
    while (ui->menu.row + 1 < choices && choice[ui->menu.row].off)
        ui->menu.row++;
}

void vp_ui_show(struct vp_ui *ui, const char *title, const char *text) {
    enter(ui, VP_UI_TEXT, title);
    vp_arena_rewind(&ui->over, (struct vp_arena_mark){0});
    ui->text = vp_arena_printf(&ui->over, "%s", text);
}

/* ---- searching ---- */

/* ASCII letters in either case. */
static bool holds(const char *text, const char *word) {
    for (; *text; text++) {
        size_t i = 0;
        for (; word[i]; i++) {
            char a = text[i], b = word[i];
            a = (char)(a >= 'A' && a <= 'Z' ? a + 32 : a);
            b = (char)(b >= 'A' && b <= 'Z' ? b + 32 : b);
            if (a != b)
                break;
        }
        if (!word[i])
            return true;
    }
    return !*word;
}

bool vp_ui_matches(const struct vp_ui *ui, int choice) {
    const struct vp_ui_choice *c = &ui->choice[choice];
    return holds(c->value, ui->entry.text);
}

/* The next row that holds what is searched for, in a direction, around the end; false: none. */
static bool find(struct vp_ui *ui, int from, int by) {
    const struct vp_screen_info *screen = &vp_screens[ui->screen];
    struct vp_ui_screen_state *here = vp_ui_here(ui);
    int rows = screen->rows(ui);
    for (int i = 0; i < rows; i++) {
        int row = ((from + by * i) % rows + rows) % rows;
        struct vp_arena_mark mark = vp_arena_mark(&ui->frame);
        const char *text = screen->row_text(ui, row);
        bool found = text && holds(text, ui->search);
        vp_arena_rewind(&ui->frame, mark);
        if (!found)
            continue;
        here->place[here->pane].row = row;
        return true;
    }
    return false;
}

static void search_typed(struct vp_ui *ui, const char *text) {
    memcpy(ui->search, text, strlen(text) + 1);
    if (*text && !find(ui, ui->search_from, 1))
        vp_ui_say(ui, VP_LOOK_WARN, "nothing in this list holds '%s'", text);
}

static void search_again(struct vp_ui *ui, int by) {
    struct vp_ui_screen_state *here = vp_ui_here(ui);
    if (!*ui->search)
        vp_ui_say(ui, VP_LOOK_WARN, "nothing was searched for: / searches");
    else if (!find(ui, here->place[here->pane].row + by, by))
        vp_ui_say(ui, VP_LOOK_WARN, "nothing in this list holds '%s'", ui->search);
}

static void begin_search(struct vp_ui *ui) {
    struct vp_ui_screen_state *here = vp_ui_here(ui);
    vp_ui_ask(ui, "search", NULL, NULL, 0, search_typed);
    ui->search_from = here->place[here->pane].row;
}

/* ---- actions ---- */

static void move(struct vp_ui *ui, int by) {
    struct vp_ui_screen_state *here = vp_ui_here(ui);
    int rows = vp_screens[ui->screen].rows(ui);
    here->place[here->pane].row = clamp(here->place[here->pane].row + by, 0, rows - 1);
}

static void next_pane(struct vp_ui *ui, int by) {
    struct vp_ui_screen_state *here = vp_ui_here(ui);
    int panes = vp_screens[ui->screen].panes;
    here->pane = (here->pane + by + panes) % panes;
}

static bool move_act(struct vp_ui *ui, enum vp_action action) {
    enum { ALL = 1 << 24 };
    int page = ui->height > 16 ? ui->height - 12 : 4;
    switch (action) {
    case VP_ACT_UP:
        move(ui, -1);
        return true;
    case VP_ACT_DOWN:
        move(ui, 1);
        return true;
    case VP_ACT_PAGE_UP:
        move(ui, -page);
        return true;
    case VP_ACT_PAGE_DOWN:
        move(ui, page);
        return true;
    case VP_ACT_HOME:
        move(ui, -ALL);
        return true;
    case VP_ACT_END:
        move(ui, ALL);
        return true;
    case VP_ACT_NEXT_PANE:
        next_pane(ui, 1);
        return true;
    case VP_ACT_LAST_PANE:
        next_pane(ui, -1);
        return true;
    default:
        return false;
    }
}

static void next_theme(struct vp_ui *ui) {
    if (ui->colour_off) {
        vp_ui_say(ui, VP_LOOK_PLAIN, "no colours: NO_COLOR, --color or the terminal forbids them");
        return;
    }
    ui->theme = (ui->theme + 1) % VP_THEME_COUNT;
    vp_ui_say(ui, VP_LOOK_PLAIN, "theme: %s", vp_theme_text(ui->theme));
}

static bool view_act(struct vp_ui *ui, enum vp_action action) {
    switch (action) {
    case VP_ACT_HELP:
        enter(ui, VP_UI_HELP, "keys");
        return true;
    case VP_ACT_PERCENT:
        ui->percent = !ui->percent;
        return true;
    case VP_ACT_THEME:
        next_theme(ui);
        return true;
    case VP_ACT_GLYPHS:
        ui->utf8 = !ui->utf8;
        vp_ui_say(ui, VP_LOOK_PLAIN, "drawn with %s", ui->utf8 ? "lines" : "ASCII");
        return true;
    case VP_ACT_MOUSE:
        ui->mouse = !ui->mouse;
        vp_ui_say(ui, VP_LOOK_PLAIN, "mouse %s", ui->mouse ? "on" : "off: the terminal's own");
        return true;
    case VP_ACT_REDRAW:
        ui->redraw = true;
        return true;
    case VP_ACT_SUSPEND:
        ui->suspend = true;
        return true;
    default:
        return false;
    }
}

static void ask_quit(struct vp_ui *ui) {
    if (!vp_session_unsaved(ui->session) || ui->quit_asked) {
        ui->quit = true;
        return;
    }
    ui->quit_asked = true;
    vp_ui_say(ui, VP_LOOK_WARN, "changes are not written: q again quits, w writes the scenario");
}

static bool session_act(struct vp_ui *ui, enum vp_action action) {
    switch (action) {
    case VP_ACT_UNDO:
        vp_session_undo(ui->session);
        break;
    case VP_ACT_REDO:
        vp_session_redo(ui->session);
        break;
    case VP_ACT_RESET_ALL:
        vp_session_reset_all(ui->session);
        break;
    case VP_ACT_PIN:
        vp_session_pin_toggle(ui->session);
        break;
    default:
        return false;
    }
    vp_ui_tell(ui);
    return true;
}

static bool common_act(struct vp_ui *ui, enum vp_action action) {
    if (action >= VP_ACT_SCREEN_1 && action < VP_ACT_SCREEN_1 + VP_SCREEN_COUNT) {
        ui->screen = (enum vp_screen)(action - VP_ACT_SCREEN_1);
        return true;
    }
    switch (action) {
    case VP_ACT_SEARCH:
        begin_search(ui);
        return true;
    case VP_ACT_NEXT:
        search_again(ui, 1);
        return true;
    case VP_ACT_PREVIOUS:
        search_again(ui, -1);
        return true;
    case VP_ACT_QUIT:
        ask_quit(ui);
        return true;
    case VP_ACT_QUIT_NOW:
        ui->quit = true;
        return true;
    default:
        return move_act(ui, action) || view_act(ui, action) || session_act(ui, action) ||
               vp_ui_ask_act(ui, action);
    }
}

/* The screen is asked first: it may give a key another meaning in one of its panes. */
void vp_ui_act(struct vp_ui *ui, enum vp_action action) {
    bool asked = ui->quit_asked;
    ui->quit_asked = asked && action == VP_ACT_QUIT;
    if (action == VP_ACT_NONE || vp_screens[ui->screen].act(ui, action) || common_act(ui, action))
        return;
    vp_ui_say(ui, VP_LOOK_DIM, "nothing to do for this key here");
}

/* ---- the mouse ---- */

static const struct vp_hit *hit_at(const struct vp_ui *ui, struct vp_key key) {
    for (int i = 0; i < ui->hits; i++) {
        const struct vp_hit *hit = &ui->hit[i];
        if (key.y == hit->y && key.x >= hit->x && key.x < hit->x + hit->width)
            return hit;
    }
    return NULL;
}

/* Over a setting it steps it, elsewhere it scrolls. */
static void wheel(struct vp_ui *ui, struct vp_key key) {
    bool up = key.code == VP_KEY_WHEEL_UP;
    const struct vp_hit *hit = hit_at(ui, key);
    struct vp_ui_screen_state *here = vp_ui_here(ui);
    if (hit && !hit->action) {
        here->pane = hit->pane;
        here->place[hit->pane].row = hit->row;
        if (vp_screens[ui->screen].act(ui, up ? VP_ACT_MORE : VP_ACT_LESS))
            return;
    }
    move(ui, up ? -1 : 1);
}

static void click(struct vp_ui *ui, struct vp_key key) {
    const struct vp_hit *hit = hit_at(ui, key);
    struct vp_ui_screen_state *here = vp_ui_here(ui);
    if (!hit)
        return;
    if (hit->action) {
        vp_ui_act(ui, hit->action);
        return;
    }
    bool again = here->pane == hit->pane && here->place[hit->pane].row == hit->row;
    here->pane = hit->pane;
    here->place[hit->pane].row = hit->row;
    if (again)
        vp_ui_act(ui, VP_ACT_ENTER);
}

/* ---- keys in each mode ---- */

static void key_normal(struct vp_ui *ui, struct vp_key key) {
    if (key.code == VP_KEY_CLICK)
        click(ui, key);
    else if (key.code == VP_KEY_WHEEL_UP || key.code == VP_KEY_WHEEL_DOWN)
        wheel(ui, key);
    else if (!ui->pasting && key.code != VP_KEY_ESC) {
        enum vp_action action = vp_key_action(ui->screen, key.code);
        if (action == VP_ACT_NONE)
            vp_ui_say(ui, VP_LOOK_DIM, "no such key here; ? lists them");
        vp_ui_act(ui, action);
    }
}

static int next_choice(const struct vp_ui *ui, int row, int by) {
    for (int i = row + by; i >= 0 && i < ui->choices; i += by)
        if (vp_ui_matches(ui, i))
            return i;
    return row;
}

static void close_over(struct vp_ui *ui) { ui->mode = VP_UI_NORMAL; }

/* Enter: the choice that was walked to, else the line as typed. */
static void finish_entry(struct vp_ui *ui) {
    void (*entered)(struct vp_ui *, const char *) = ui->entered;
    char text[VP_ENTRY_BYTES];
    bool picked = ui->menu.row >= 0 && ui->menu.row < ui->choices;
    snprintf(text, sizeof text, "%s", picked ? ui->choice[ui->menu.row].value : ui->entry.text);
    close_over(ui);
    entered(ui, text);
}

/* The choice that was walked to, or the first that matches, becomes the line. */
static void complete(struct vp_ui *ui) {
    int row = ui->menu.row >= 0 ? ui->menu.row : next_choice(ui, -1, 1);
    if (row < 0 || row >= ui->choices)
        return;
    vp_entry_set(&ui->entry, ui->choice[row].value);
    ui->menu.row = -1;
}

static void key_entry(struct vp_ui *ui, struct vp_key key) {
    bool searching = ui->entered == search_typed;
    if (key.code == VP_KEY_ESC || key.code == VP_KEY_CTRL('c')) {
        if (searching)
            vp_ui_here(ui)->place[vp_ui_here(ui)->pane].row = ui->search_from;
        close_over(ui);
    } else if (key.code == VP_KEY_ENTER) {
        if (!ui->pasting)
            finish_entry(ui);
    } else if (key.code == VP_KEY_TAB) {
        complete(ui);
    } else if (key.code == VP_KEY_DOWN) {
        ui->menu.row = next_choice(ui, ui->menu.row, 1);
    } else if (key.code == VP_KEY_UP) {
        int row = next_choice(ui, ui->menu.row, -1);
        ui->menu.row = row == ui->menu.row ? -1 : row;
    } else if (vp_entry_key(&ui->entry, key.code)) {
        ui->menu.row = -1;
        if (searching) { /* found while it is typed */
            memcpy(ui->search, ui->entry.text, ui->entry.size + 1);
            if (!*ui->search || !find(ui, ui->search_from, 1))
                vp_ui_here(ui)->place[vp_ui_here(ui)->pane].row = ui->search_from;
        }
    }
}

static void key_menu(struct vp_ui *ui, struct vp_key key) {
    enum vp_action action = vp_key_action(ui->screen, key.code);
    uint32_t digit = key.code - '1';
    if (key.code == VP_KEY_ENTER || (key.code <= '9' && digit < (uint32_t)ui->choices)) {
        int index = key.code == VP_KEY_ENTER ? ui->menu.row : (int)digit;
        if (index >= ui->choices || ui->choice[index].off)
            return;
        void (*chosen)(struct vp_ui *, int) = ui->chosen;
        close_over(ui);
        chosen(ui, index);
    } else if (action == VP_ACT_UP || action == VP_ACT_DOWN || key.code == VP_KEY_WHEEL_UP ||
               key.code == VP_KEY_WHEEL_DOWN) {
        int by = action == VP_ACT_DOWN || key.code == VP_KEY_WHEEL_DOWN ? 1 : -1;
        ui->menu.row = clamp(ui->menu.row + by, 0, ui->choices - 1);
    } else if (action == VP_ACT_HOME || action == VP_ACT_END) {
        ui->menu.row = action == VP_ACT_HOME ? 0 : ui->choices - 1;
    } else if (key.code == VP_KEY_ESC || action == VP_ACT_QUIT || action == VP_ACT_QUIT_NOW) {
        close_over(ui);
    }
}

/* Help and texts: scrolled, and closed by anything that asks for something else. */
static void key_page(struct vp_ui *ui, struct vp_key key) {
    enum vp_action action = vp_key_action(ui->screen, key.code);
    int page = ui->height > 10 ? ui->height - 8 : 2;
    int by = action == VP_ACT_UP || key.code == VP_KEY_WHEEL_UP       ? -1
             : action == VP_ACT_DOWN || key.code == VP_KEY_WHEEL_DOWN ? 1
             : action == VP_ACT_PAGE_UP                               ? -page
             : action == VP_ACT_PAGE_DOWN || action == VP_ACT_PIN     ? page
                                                                      : 0;
    if (by != 0)
        ui->page.row = clamp(ui->page.row + by, 0, 1 << 20);
    else if (action == VP_ACT_HOME)
        ui->page.row = 0;
    else if (action == VP_ACT_COPY && ui->mode == VP_UI_TEXT)
        ui->copy = true;
    else if (key.code == VP_KEY_ESC || key.code == VP_KEY_ENTER || action == VP_ACT_HELP ||
             action == VP_ACT_QUIT || action == VP_ACT_QUIT_NOW || key.code == VP_KEY_CLICK)
        close_over(ui);
    else if (action >= VP_ACT_SCREEN_1 && action < VP_ACT_SCREEN_1 + VP_SCREEN_COUNT) {
        close_over(ui);
        vp_ui_act(ui, action);
    }
}

/* Too small: it waits, and what was begun is kept. */
static void key_small(struct vp_ui *ui, struct vp_key key) {
    if (key.code == 'q' || key.code == VP_KEY_CTRL('c'))
        ui->quit = true;
    else if (key.code == VP_KEY_CTRL('z'))
        ui->suspend = true;
}

void vp_ui_key(struct vp_ui *ui, struct vp_key key) {
    vp_arena_rewind(&ui->frame, (struct vp_arena_mark){0});
    if (key.code == VP_KEY_RESIZE) {
        ui->width = key.x;
        ui->height = key.y;
        return;
    }
    if (key.code == VP_KEY_PASTE_BEGIN || key.code == VP_KEY_PASTE_END) {
        ui->pasting = key.code == VP_KEY_PASTE_BEGIN;
        if (ui->pasting && ui->mode == VP_UI_NORMAL)
            vp_ui_say(ui, VP_LOOK_WARN,
                      "pasted text is taken where a line is typed: after Enter, : or /");
        return;
    }
    if (key.code == VP_KEY_ESC)
        ui->pasting = false; /* where the end of it was lost */
    if (!vp_ui_fits(ui)) {
        key_small(ui, key);
        return;
    }
    if (!ui->pasting)
        ui->status[0] = '\0';
    switch (ui->mode) {
    case VP_UI_NORMAL:
        key_normal(ui, key);
        break;
    case VP_UI_ENTRY:
        key_entry(ui, key);
        break;
    case VP_UI_MENU:
        key_menu(ui, key);
        break;
    case VP_UI_HELP:
    case VP_UI_TEXT:
        key_page(ui, key);
        break;
    }
}
