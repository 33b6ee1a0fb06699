/* The frame around every screen: the line at the top, the tabs, what is said and typed at the
 * bottom, and what lies over it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "planner/base/units.h"
#include "reports/words.h"
#include "tui/ui.h"

/* ---- top and bottom ---- */

/* "22.2 GiB to spare", "61.4 GiB short" */
static const char *room_text(struct vp_arena *arena, int64_t headroom_bytes) {
    uint64_t bytes = headroom_bytes < 0 ? 0 - (uint64_t)headroom_bytes : (uint64_t)headroom_bytes;
    return vp_arena_printf(arena, "%s GiB %s", vp_format_gib(arena, bytes, 1),
                           headroom_bytes < 0 ? "short" : "to spare");
}

static const char *knob_shown(struct vp_ui *ui, enum vp_knob_id id) {
    const struct vp_knob *knob;
    uint32_t count = vp_session_knobs(ui->session, &knob);
    for (uint32_t i = 0; i < count; i++)
        if (knob[i].id == id)
            return knob[i].shown;
    return NULL;
}

/* The model, the cards, and the engine where there is room for it. */
static const char *title_text(struct vp_ui *ui, int room) {
    const struct vp_scenario *scenario = vp_session_plan(ui->session)->scenario;
    const char *gpu = knob_shown(ui, VP_KNOB_GPU), *engine = knob_shown(ui, VP_KNOB_ENGINE);
    const char *plain =
        vp_arena_printf(&ui->frame, "vramplan  %s on %" PRIu64 " %s%s", vp_words_model(scenario),
                        scenario->hardware.count, gpu ? "x " : "devices", gpu ? gpu : "");
    const char *full = vp_arena_printf(&ui->frame, "%s, %s", plain, engine ? engine : "");
    return engine && vp_cells_of(full) <= room ? full : plain;
}

static void draw_title(struct vp_ui *ui, struct vp_view all) {
    const struct vp_result *plan = vp_session_plan(ui->session);
    const char *verdict = vp_arena_printf(&ui->frame, "%s  %s ", vp_words_verdict(plan->verdict),
                                          room_text(&ui->frame, plan->headroom_bytes));
    int room = all.width - vp_cells_of(verdict) - 2;
    vp_view_fill(all, 0, 0, all.width, VP_LOOK_TITLE, ' ');
    vp_view_left(all, 1, 0, room, VP_LOOK_TITLE, title_text(ui, room));
    vp_view_right(all, room + 2, 0, all.width - room - 2, VP_LOOK_TITLE, verdict);
}

static void draw_tabs(struct vp_ui *ui, struct vp_view all) {
    static const char KEYS[] = "? help  q quit";
    int x = 0, right = all.width - (int)sizeof KEYS + 1;
    for (int i = 0; i < VP_SCREEN_COUNT; i++) {
        bool here = (int)ui->screen == i;
        int from = x;
        x = vp_view_printf(all, x, 1, here ? VP_LOOK_TAB : VP_LOOK_KEY, " %d", i + 1);
        x = vp_view_printf(all, x, 1, here ? VP_LOOK_TAB : VP_LOOK_PLAIN, " %s ",
                           vp_screens[i].name);
        vp_ui_hit_action(ui, all, from, 1, x - from, VP_ACT_SCREEN_1 + (enum vp_action)i);
    }
    vp_view_text(all, right, 1, VP_LOOK_DIM, KEYS);
    vp_ui_hit_action(ui, all, right, 1, 6, VP_ACT_HELP);
    vp_ui_hit_action(ui, all, right + 8, 1, 6, VP_ACT_QUIT);
}

/* "Space pin", as many as there is room for. */
static void draw_hints(struct vp_ui *ui, struct vp_view all) {
    size_t count;
    const struct vp_binding *row = vp_bindings(&count);
    int x = 1, y = all.height - 1;
    for (size_t i = 0; i < count; i++) {
        char key[16];
        if (!row[i].keys || !*row[i].hint || !(row[i].screens >> ui->screen & 1))
            continue;
        snprintf(key, sizeof key, "%.*s", (int)strcspn(row[i].keys, " "), row[i].keys);
        if (vp_key_action(ui->screen, vp_key_find(key)) != row[i].action)
            continue; /* the screen has another use for it */
        int cells = vp_cells_of(key) + 1 + vp_cells_of(row[i].hint);
        if (x + cells > all.width)
            break;
        vp_ui_hit_action(ui, all, x, y, cells, row[i].action);
        x = vp_view_text(all, x, y, VP_LOOK_KEY, key);
        x = vp_view_text(all, x + 1, y, VP_LOOK_DIM, row[i].hint) + 2;
    }
}

/* The line that is typed, scrolled so that its cursor is seen. */
static void draw_entry(struct vp_ui *ui, struct vp_view all) {
    int y = all.height - 2;
    vp_view_fill(all, 0, y, all.width, VP_LOOK_PLAIN, ' ');
    int x = vp_view_printf(all, 1, y, VP_LOOK_STRONG, "%s: ", ui->title);
    char before[VP_ENTRY_BYTES];
    memcpy(before, ui->entry.text, ui->entry.cursor);
    before[ui->entry.cursor] = '\0';
    int cursor = vp_cells_of(before), room = all.width - x - 2;
    struct vp_view line = vp_view_part(all, x, y, all.width - x, 1);
    int shift = cursor > room ? cursor - room : 0;
    vp_view_text(line, -shift, 0, VP_LOOK_PLAIN, ui->entry.text);
    vp_view_mark(line, cursor - shift, 0, 1);
}

/* What was said may take three lines, at the cost of the screen above. */
static void draw_status(struct vp_ui *ui, struct vp_view all) {
    enum { MOST = 3 };
    int width = all.width - 2;
    const char *pending = vp_session_pending(ui->session);
    if (ui->status[0]) {
        int lines = vp_view_wrap(all, 1, 0, width, MOST, VP_LOOK_COUNT, ui->status);
        int typed = ui->mode == VP_UI_ENTRY ? 1 : 0; /* above the line that is typed */
        int top = all.height - 1 - typed - lines;
        for (int i = 0; i < lines; i++)
            vp_view_fill(all, 0, top + i, all.width, VP_LOOK_PLAIN, ' ');
        vp_view_wrap(all, 1, top, width, MOST, ui->status_style, ui->status);
    } else if (pending) {
        vp_view_printf(all, 1, all.height - 2, VP_LOOK_DIM, "computing: %s ...", pending);
    }
}

/* ---- what lies over the screen ---- */

struct vp_view vp_ui_over(struct vp_view all, int width, int height) {
    width = width < all.width - 2 ? width : all.width - 2;
    height = height < all.height - 4 ? height : all.height - 4;
    struct vp_view box = vp_view_part(all, (all.width - width) / 2,
                                      2 + (all.height - 4 - height) / 2, width, height);
    for (int y = 0; y < box.height; y++)
        vp_view_fill(box, 0, y, box.width, VP_LOOK_PLAIN, ' ');
    return box;
}

static int widest_choice(const struct vp_ui *ui) {
    int width = 4;
    for (int i = 0; i < ui->choices; i++) {
        int cells = vp_cells_of(ui->choice[i].value);
        width = cells > width ? cells : width;
    }
    return width < 32 ? width : 32;
}

static void draw_choice(struct vp_view view, int y, const struct vp_ui_choice *choice, bool here,
                        int number, int column) {
    enum vp_tui_style style = choice->off ? VP_LOOK_DIM : VP_LOOK_PLAIN;
    if (number > 0 && number <= 9)
        vp_view_printf(view, 1, y, VP_LOOK_KEY, "%d", number);
    vp_view_left(view, 3, y, column, choice->off ? style : VP_LOOK_STRONG, choice->value);
    vp_view_left(view, 3 + column + 2, y, view.width - column - 6, style, choice->note);
    if (choice->off)
        vp_view_text(view, 1, y, VP_LOOK_DIM, "x");
    if (here)
        vp_view_mark(view, 0, y, view.width);
}

static void draw_menu(struct vp_ui *ui, struct vp_view all) {
    int column = widest_choice(ui), width = 76;
    struct vp_view box = vp_ui_over(all, width, ui->choices + 2);
    struct vp_view in =
        vp_view_box(box, VP_LOOK_EDGE, ui->title, NULL, "Enter chooses, Esc closes");
    int seen = in.height > 0 ? in.height : 1;
    struct vp_place *menu = &ui->menu;
    if (menu->first > menu->row)
        menu->first = menu->row;
    if (menu->first < menu->row - seen + 1)
        menu->first = menu->row - seen + 1;
    for (int y = 0; y < in.height && menu->first + y < ui->choices; y++) {
        int i = menu->first + y;
        draw_choice(in, y, &ui->choice[i], i == menu->row, i + 1, column);
    }
}

/* Choices that match what is typed, above the line. */
static void draw_matches(struct vp_ui *ui, struct vp_view all) {
    int matches = 0, before = 0;
    for (int i = 0; i < ui->choices; i++) {
        before += i < ui->menu.row && vp_ui_matches(ui, i);
        matches += vp_ui_matches(ui, i);
    }
    int most = all.height / 2 - 4, height = matches < most ? matches : most;
    if (matches == 0)
        return;
    struct vp_view box = vp_view_part(all, 0, all.height - 4 - height, all.width, height + 2);
    for (int y = 0; y < box.height; y++)
        vp_view_fill(box, 0, y, box.width, VP_LOOK_PLAIN, ' ');
    struct vp_view in = vp_view_box(box, VP_LOOK_EDGE, ui->title, NULL,
                                    "type, or choose with Up and Down; Tab completes");
    int skip = before >= height ? before - height + 1 : 0, y = 0;
    for (int i = 0; i < ui->choices && y < height; i++)
        if (vp_ui_matches(ui, i) && skip-- <= 0)
            draw_choice(in, y++, &ui->choice[i], i == ui->menu.row, 0, widest_choice(ui));
}

/* The lines of a text from row y on, each broken where it is longer than the view, with the indent
 * it began with; returns how many rows it took. */
static int draw_lines(struct vp_ui *ui, struct vp_view view, int y, const char *text) {
    enum { LINES = 100, INDENT = 2 };
    int from = y;
    while (*text) {
        size_t n = strcspn(text, "\n"), indent = strspn(text, " ");
        const char *line = vp_arena_text(&ui->frame, text, n);
        int left = indent < n ? (int)indent : 0, room = view.width - left;
        int lines = vp_view_wrap(view, left, y, room, 1, VP_LOOK_COUNT, line);
        if (vp_cells_of(line + left) <= room)
            vp_view_text(view, left, y, VP_LOOK_PLAIN, line + left);
        else
            lines = vp_view_wrap(view, left, y, room, LINES, VP_LOOK_PLAIN, line + left);
        y += lines > 0 ? lines : 1;
        text += text[n] ? n + 1 : n;
    }
    return y - from;
}

static void draw_text(struct vp_ui *ui, struct vp_view all) {
    int width = all.width - 4 < 100 ? all.width - 4 : 100;
    struct vp_view measure = vp_view_part(all, 0, 0, width - 4, 0);
    int lines = draw_lines(ui, measure, 0, ui->text);
    struct vp_view box = vp_ui_over(all, width, lines + 2);
    struct vp_view in =
        vp_view_box(box, VP_LOOK_EDGE, ui->title, NULL,
                    lines + 2 > box.height ? "Down scrolls, Esc closes" : "Esc closes");
    int most = lines > in.height ? lines - in.height : 0;
    ui->page.row = ui->page.row < most ? ui->page.row : most;
    draw_lines(ui, vp_view_part(in, 1, 0, in.width - 2, in.height), -ui->page.row, ui->text);
    vp_view_scrollbar(in, ui->page.row, lines);
}

/* ---- the whole ---- */

/* Too small to be drawn: the answer all the same, as far as it goes. */
static void draw_small(struct vp_ui *ui, struct vp_view all) {
    const struct vp_result *plan = vp_session_plan(ui->session);
    const char *verdict = vp_arena_printf(&ui->frame, "%s, %s", vp_words_verdict(plan->verdict),
                                          room_text(&ui->frame, plan->headroom_bytes));
    const char *wait =
        vp_arena_printf(&ui->frame, "needs %dx%d (now %dx%d); waiting, nothing is lost; q quits",
                        VP_UI_MIN_WIDTH, VP_UI_MIN_HEIGHT, ui->width, ui->height);
    int lines =
        vp_view_wrap(all, 0, 0, all.width, all.height, vp_theme_verdict(plan->verdict), verdict);
    vp_view_wrap(all, 0, lines, all.width, all.height - lines, VP_LOOK_PLAIN, wait);
}

struct vp_cells *vp_ui_draw(struct vp_ui *ui) {
    vp_arena_rewind(&ui->frame, (struct vp_arena_mark){0});
    struct vp_cells *cells = vp_cells_make(&ui->frame, ui->width, ui->height, ui->utf8);
    struct vp_view all = vp_view_all(cells);
    ui->hits = 0;
    if (!vp_ui_fits(ui)) {
        draw_small(ui, all);
        return cells;
    }
    draw_title(ui, all);
    draw_tabs(ui, all);
    vp_screens[ui->screen].draw(ui, vp_view_part(all, 0, 2, all.width, all.height - 4));
    draw_hints(ui, all);
    draw_status(ui, all);
    if (ui->mode == VP_UI_ENTRY) {
        draw_entry(ui, all);
        draw_matches(ui, all);
    } else if (ui->mode == VP_UI_MENU) {
        draw_menu(ui, all);
    } else if (ui->mode == VP_UI_HELP) {
        vp_ui_draw_help(ui, all);
    } else if (ui->mode == VP_UI_TEXT) {
        draw_text(ui, all);
    }
    return cells;
}
