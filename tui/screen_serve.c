/* The main screen, for serving and for training: left the settings, right the memory of each device
 * as stacked bars, below (or at the right, where there is room) what follows from them: how far it
 * goes, how fast it is, what breaks first, the command that prints the same. */
#include <inttypes.h>
#include <string.h>

#include "planner/base/units.h"
#include "reports/layout.h"
#include "reports/report.h"
#include "reports/words.h"
#include "tui/serve_answers.h"

enum { PANE_KNOBS, PANE_MEMORY };
enum { KNOBS_WIDTH = 36, LABEL = 14 };

/* ---- settings ---- */

static uint32_t knobs_of(struct vp_ui *ui, const struct vp_knob **out) {
    return vp_session_knobs(ui->session, out);
}

static const struct vp_knob *knob_here(struct vp_ui *ui) {
    const struct vp_knob *knob;
    uint32_t count = knobs_of(ui, &knob);
    return count ? &knob[vp_ui_row(ui, PANE_KNOBS, (int)count)] : NULL;
}

static enum vp_tui_style knob_style(const struct vp_knob *knob) {
    return knob->changed                    ? VP_LOOK_WARN
           : knob->origin >= VP_ORIGIN_FILE ? VP_LOOK_VALUE
                                            : VP_LOOK_PLAIN;
}

static void draw_knob(struct vp_ui *ui, struct vp_view view, int y, const struct vp_knob *knob,
                      bool here, bool focus) {
    const char *value =
        *knob->unit ? vp_arena_printf(&ui->frame, "%s %s", knob->shown, knob->unit) : knob->shown;
    vp_view_text(view, 0, y, VP_LOOK_KEY, here ? ">" : " ");
    vp_view_left(view, 1, y, LABEL, knob->changed ? VP_LOOK_WARN : VP_LOOK_LABEL, knob->label);
    vp_view_text(view, 1 + LABEL, y, VP_LOOK_WARN, knob->changed ? "*" : " ");
    vp_view_right(view, 1 + LABEL + 1, y, view.width - LABEL - 2, knob_style(knob), value);
    if (here && focus)
        vp_view_mark(view, 0, y, view.width);
}

static void draw_knobs(struct vp_ui *ui, struct vp_view view) {
    const struct vp_knob *knob;
    int count = (int)knobs_of(ui, &knob);
    bool focus = vp_ui_here(ui)->pane == PANE_KNOBS;
    const char *note =
        vp_session_changes(ui->session, &(const struct vp_setting *){0}) ? "* changed" : NULL;
    struct vp_view in = vp_view_box(view, focus ? VP_LOOK_KEY : VP_LOOK_EDGE, "settings", note,
                                    "-+ step  Enter type  [] choose");
    int first = vp_ui_scroll(ui, PANE_KNOBS, count, in.height);
    int row = vp_ui_row(ui, PANE_KNOBS, count);
    for (int y = 0; y < in.height && first + y < count; y++) {
        int i = first + y;
        draw_knob(ui, vp_view_part(in, 0, 0, in.width - 1, in.height), y, &knob[i], i == row,
                  focus);
        vp_ui_hit_row(ui, in, 0, y, in.width, PANE_KNOBS, i);
    }
    vp_view_scrollbar(in, first, count);
}

/* ---- memory ---- */

/* Rows of the pane: the devices, where there are several, then the components of the one chosen. */
struct memory_rows {
    int devices;
    uint32_t shown; /* whose components are listed */
    enum vp_component component[VP_COMPONENT_COUNT];
    int components;
};

static struct memory_rows memory_rows(struct vp_ui *ui) {
    const struct vp_result *plan = vp_session_plan(ui->session);
    struct vp_ui_screen_state *here = vp_ui_here(ui);
    struct memory_rows rows = {.devices = plan->device_count > 1 ? (int)plan->device_count : 0};
    int row = here->place[PANE_MEMORY].row;
    if (here->pane == PANE_MEMORY && row < rows.devices)
        here->option = row + 1; /* the cursor on a device chooses it */
    rows.shown =
        here->option > 0 && here->option <= rows.devices ? (uint32_t)here->option - 1 : plan->worst;
    for (int c = 0; c < VP_COMPONENT_COUNT; c++)
        if (plan->devices[rows.shown].present[c])
            rows.component[rows.components++] = (enum vp_component)c;
    return rows;
}

static size_t segments_of(struct vp_segment out[VP_COMPONENT_COUNT],
                          const struct vp_device *device) {
    size_t count = 0;
    for (int c = 0; c < VP_COMPONENT_COUNT; c++)
        if (device->present[c] && device->component[c].likely)
            out[count++] = (struct vp_segment){device->component[c].likely,
                                               vp_component_letter((enum vp_component)c),
                                               vp_theme_component((enum vp_component)c)};
    return count;
}

static void draw_bar(struct vp_view view, int x, int y, int width, const struct vp_device *device) {
    struct vp_segment segment[VP_COMPONENT_COUNT];
    size_t count = segments_of(segment, device);
    vp_view_bar(view, x, y, width, segment, count, device->capacity_bytes, device->usable_bytes);
}

static const char *gib(struct vp_arena *arena, uint64_t bytes) {
    return vp_format_gib(arena, bytes, 1);
}

/* "gpu0-3" of several ranks that carry the same. */
static const char *device_name(struct vp_arena *arena, const struct vp_device *device) {
    if (device->host || device->ranks <= 1)
        return device->id;
    return vp_arena_printf(arena, "%s-%u", device->id,
                           (unsigned)(device->first_rank + device->ranks - 1));
}

static void draw_device(struct vp_ui *ui, struct vp_view view, int y,
                        const struct vp_device *device, bool worst) {
    enum { NAME = 9, FIGURES = 13 };
    int bar = view.width - NAME - FIGURES - 1;
    bool bounded = device->usable_bytes > 0; /* what the host has may not be known */
    bool over = bounded && device->need.likely > device->usable_bytes;
    vp_view_left(view, 0, y, NAME - 1, worst ? VP_LOOK_STRONG : VP_LOOK_LABEL,
                 device_name(&ui->frame, device));
    draw_bar(view, NAME, y, bar, device);
    vp_view_right(view, NAME + bar, y, FIGURES, over ? VP_LOOK_BAD : VP_LOOK_PLAIN,
                  vp_arena_printf(&ui->frame, "%s/%s%s", gib(&ui->frame, device->need.likely),
                                  bounded ? gib(&ui->frame, device->usable_bytes) : "?",
                                  over ? "!" : " "));
}

/* "exact", "1.8..2.1", "measured" */
static const char *certainty(struct vp_arena *arena, struct vp_amount amount,
                             enum vp_confidence confidence) {
    return vp_words_is_exact(amount) ? vp_confidence_name(confidence)
                                     : vp_words_interval(arena, amount, 1);
}

static uint64_t whole_of(struct vp_ui *ui, const struct vp_device *device) {
    return ui->percent ? device->usable_bytes : device->capacity_bytes;
}

/* "35.3%"; from ten times the whole on without a decimal, so that columns stay apart. */
static const char *share(struct vp_arena *arena, uint64_t part, uint64_t whole) {
    return whole && part / 10 >= whole
               ? vp_arena_printf(arena, "%" PRIu64 "%%", part / (whole / 100 ? whole / 100 : 1))
               : vp_words_share(arena, part, whole);
}

static void draw_component(struct vp_ui *ui, struct vp_view view, int y,
                           const struct vp_device *device, enum vp_component component) {
    enum { NAME = 15, GIB = 7, SHARE = 7 };
    struct vp_amount amount = device->component[component];
    char letter[2] = {vp_component_letter(component), '\0'};
    vp_view_text(view, 0, y, vp_theme_component(component), letter);
    vp_view_left(view, 2, y, NAME, VP_LOOK_LABEL, vp_words_component(&ui->frame, component));
    vp_view_right(view, 2 + NAME, y, GIB - 1, VP_LOOK_STRONG, gib(&ui->frame, amount.likely));
    vp_view_right(view, 2 + NAME + GIB - 1, y, SHARE, VP_LOOK_PLAIN,
                  share(&ui->frame, amount.likely, whole_of(ui, device)));
    vp_view_left(view, 3 + NAME + GIB + SHARE - 1, y, view.width - 3 - NAME - GIB - SHARE + 1,
                 VP_LOOK_DIM, certainty(&ui->frame, amount, device->confidence[component]));
}

/* What is left, and what the engine makes of it. */
static void draw_rest(struct vp_ui *ui, struct vp_view view, int y,
                      const struct vp_device *device) {
    int64_t room = vp_words_headroom(device);
    if (device->usable_bytes == 0)
        return;
    int x = vp_view_text(view, 2, y, VP_LOOK_LABEL, room < 0 ? "short" : "free");
    x = vp_view_printf(view, x + 1, y, room < 0 ? VP_LOOK_BAD : VP_LOOK_GOOD, "%s",
                       gib(&ui->frame, room < 0 ? 0 - (uint64_t)room : (uint64_t)room));
    const struct vp_result *plan = vp_session_plan(ui->session);
    if (plan->kv.known && vp_words_has_policy(plan->scenario) && !device->host)
        vp_view_printf(view, x + 2, y, VP_LOOK_DIM, "pool %s = %s tok",
                       gib(&ui->frame, plan->report.available_kv.likely),
                       vp_format_count(&ui->frame, plan->kv.tokens));
    else if (plan->scenario->training)
        vp_view_printf(view, x + 2, y, VP_LOOK_DIM, "peak at %s", vp_step_name(device->peak_step));
}

static void draw_memory(struct vp_ui *ui, struct vp_view view) {
    const struct vp_result *plan = vp_session_plan(ui->session);
    struct memory_rows rows = memory_rows(ui);
    const struct vp_device *device = &plan->devices[rows.shown];
    bool focus = vp_ui_here(ui)->pane == PANE_MEMORY;
    int count = rows.devices + rows.components;
    const char *title = plan->device_count > 1 ? vp_arena_printf(&ui->frame, "memory of %s, GiB",
                                                                 device_name(&ui->frame, device))
                                               : "memory, GiB";
    struct vp_view in =
        vp_view_box(view, focus ? VP_LOOK_KEY : VP_LOOK_EDGE, title,
                    ui->percent ? "% of usable" : "% of the card", "Tab, Enter: explain a row");
    vp_view_printf(in, 0, 0, VP_LOOK_PLAIN, "%s needed, %s usable, %s in all",
                   gib(&ui->frame, device->need.likely), gib(&ui->frame, device->usable_bytes),
                   gib(&ui->frame, device->capacity_bytes));
    draw_bar(in, 0, 1, in.width, device);
    struct vp_view list = vp_view_part(in, 0, 2, in.width, in.height - 3);
    int first = vp_ui_scroll(ui, PANE_MEMORY, count, list.height);
    int row = vp_ui_row(ui, PANE_MEMORY, count);
    for (int y = 0; y < list.height && first + y < count; y++) {
        int i = first + y;
        struct vp_view line = vp_view_part(list, 0, y, list.width - 1, 1);
        if (i < rows.devices)
            draw_device(ui, line, 0, &plan->devices[i], (uint32_t)i == plan->worst);
        else
            draw_component(ui, line, 0, device, rows.component[i - rows.devices]);
        vp_ui_hit_row(ui, list, 0, y, list.width, PANE_MEMORY, i);
        if (i == row && focus)
            vp_view_mark(list, 0, y, list.width);
    }
    vp_view_scrollbar(list, first, count);
    draw_rest(ui, in, in.height - 1, device);
}

static void explain_here(struct vp_ui *ui) {
    const struct vp_result *plan = vp_session_plan(ui->session);
    struct memory_rows rows = memory_rows(ui);
    int row = vp_ui_row(ui, PANE_MEMORY, rows.devices + rows.components);
    struct vp_buf text = {.arena = &ui->frame};
    struct vp_report_options options = {.utf8 = ui->utf8, .width = VP_PAGE_MAX};
    if (row < rows.devices || rows.components == 0)
        return;
    enum vp_component component = rows.component[row - rows.devices];
    vp_report_explain_component(&text, plan, rows.shown, component, &options);
    const char *lines = vp_buf_text(&text);
    vp_ui_show(ui, vp_words_component(&ui->frame, component), lines + strspn(lines, "\n"));
}

/* ---- pins ---- */

static void draw_pin(struct vp_ui *ui, struct vp_view view, int y, const char *name,
                     const char *label, const struct vp_result *plan) {
    static const struct vp_column COLUMNS[] = {
        {NULL, 4, false}, {NULL, 30, false}, {NULL, 4, true},  {NULL, 13, false},
        {NULL, 7, true},  {NULL, 7, true},   {NULL, 16, true}, {NULL, 12, true}};
    struct vp_arena *frame = &ui->frame;
    const char *text[] = {
        name,
        label,
        vp_format_u64(frame, plan->scenario->hardware.count),
        vp_words_verdict(plan->verdict),
        gib(frame, plan->devices[plan->worst].need.likely),
        vp_arena_printf(frame, "%s%s", plan->headroom_bytes < 0 ? "-" : "",
                        gib(frame, plan->headroom_bytes < 0 ? 0 - (uint64_t)plan->headroom_bytes
                                                            : (uint64_t)plan->headroom_bytes)),
        plan->prices.max_context ? vp_format_count(frame, plan->prices.max_context) : "-",
        plan->prices.max_concurrency ? vp_format_count(frame, plan->prices.max_concurrency) : "-"};
    vp_view_row(view, 0, y, VP_LOOK_PLAIN, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0], 1, text);
}

static void draw_pins(struct vp_ui *ui, struct vp_view view) {
    static const struct vp_column HEAD[] = {{"", 4, false},
                                            {"plan", 30, false},
                                            {"GPUs", 4, true},
                                            {"verdict", 13, false},
                                            {"needs", 7, true},
                                            {"spare", 7, true},
                                            {"longest context", 16, true},
                                            {"most seq", 12, true}};
    struct vp_view in = vp_view_box(view, VP_LOOK_EDGE, "pinned plans, GiB of the worst card", NULL,
                                    "Space pins this one, 4 compares");
    int y = 1;
    vp_view_head(in, 0, 0, HEAD, sizeof HEAD / sizeof HEAD[0], 1);
    for (uint32_t slot = 0; slot < VP_PINS; slot++) {
        const struct vp_pin *pin = vp_session_pin(ui->session, slot);
        char name[2] = {(char)('A' + (int)slot), '\0'};
        if (pin)
            draw_pin(ui, in, y++, name, pin->label, pin->plan);
    }
    draw_pin(ui, in, y, "this", vp_words_model(vp_session_plan(ui->session)->scenario),
             vp_session_plan(ui->session));
}

/* ---- the screen ---- */

void vp_screen_serve_draw(struct vp_ui *ui, struct vp_view view) {
    enum { ANSWERS = 9, TRAIL = 3, PINS = VP_PINS + 4 };
    bool wide = ui->width >= VP_UI_WIDE;
    int pins = ui->height >= VP_UI_HIGH ? PINS : 0, below = wide ? TRAIL : ANSWERS;
    int top = view.height - pins - below;
    int left = wide ? KNOBS_WIDTH + (view.width - VP_UI_WIDE) / 8 : KNOBS_WIDTH;
    int middle = wide ? (view.width - left) / 2 : view.width - left;
    struct vp_view low = vp_view_part(view, 1, top + pins, view.width - 2, below);
    draw_knobs(ui, vp_view_part(view, 0, 0, left, top));
    draw_memory(ui, vp_view_part(view, left, 0, middle, top));
    if (pins)
        draw_pins(ui, vp_view_part(view, 0, top, view.width, pins));
    if (wide) {
        vp_serve_answers_beside(
            ui, vp_view_part(view, left + middle, 0, view.width - left - middle, top));
        vp_serve_trail(ui, low, 0);
    } else {
        vp_serve_answers_below(ui, low);
    }
}

/* ---- keys ---- */

static void value_typed(struct vp_ui *ui, const char *text) {
    if (!*text)
        return;
    vp_session_type(ui->session, ui->asked, text);
    vp_ui_tell(ui);
}

static const char *note_of(const struct vp_knob_choice *choice) {
    if (choice->refused || choice->present)
        return choice->refused ? choice->refused : "now";
    return vp_text_eq(choice->shown, choice->value) ? NULL : choice->shown;
}

static void ask_value(struct vp_ui *ui, const struct vp_knob *knob) {
    const struct vp_knob_choice *choice;
    uint32_t count = vp_session_choices(ui->session, knob->id, &choice);
    int own = 0;
    for (uint32_t i = 0; i < count && own < VP_UI_OWN; i++)
        ui->own[own++] = (struct vp_ui_choice){
            .value = choice[i].value, .note = note_of(&choice[i]), .off = choice[i].refused};
    ui->asked = knob->id;
    vp_ui_ask(ui, vp_arena_printf(&ui->frame, "%s (now %s)", knob->label, knob->shown), NULL,
              ui->own, own, value_typed);
}

static void turn(struct vp_ui *ui, enum vp_action action) {
    const struct vp_knob *knob = knob_here(ui);
    if (!knob)
        return;
    switch (action) {
    case VP_ACT_LESS:
    case VP_ACT_MORE:
        vp_session_step(ui->session, knob->id, action == VP_ACT_MORE ? 1 : -1);
        break;
    case VP_ACT_MUCH_LESS:
    case VP_ACT_MUCH_MORE:
        vp_session_step(ui->session, knob->id, action == VP_ACT_MUCH_MORE ? 10 : -10);
        break;
    case VP_ACT_LAST_CHOICE:
    case VP_ACT_NEXT_CHOICE:
        vp_session_choose(ui->session, knob->id, action == VP_ACT_NEXT_CHOICE ? 1 : -1);
        break;
    default:
        vp_session_reset_knob(ui->session, knob->id);
        break;
    }
    vp_ui_tell(ui);
}

bool vp_screen_serve_act(struct vp_ui *ui, enum vp_action action) {
    bool knobs = vp_ui_here(ui)->pane == PANE_KNOBS;
    switch (action) {
    case VP_ACT_LESS:
    case VP_ACT_MORE:
    case VP_ACT_MUCH_LESS:
    case VP_ACT_MUCH_MORE:
    case VP_ACT_LAST_CHOICE:
    case VP_ACT_NEXT_CHOICE:
    case VP_ACT_RESET:
        if (knobs)
            turn(ui, action);
        return knobs;
    case VP_ACT_ENTER:
        if (!knobs)
            explain_here(ui);
        else if (knob_here(ui))
            ask_value(ui, knob_here(ui));
        return true;
    default:
        return false;
    }
}

int vp_screen_serve_rows(struct vp_ui *ui) {
    const struct vp_knob *knob;
    if (vp_ui_here(ui)->pane == PANE_KNOBS)
        return (int)knobs_of(ui, &knob);
    struct memory_rows rows = memory_rows(ui);
    return rows.devices + rows.components;
}

const char *vp_screen_serve_row_text(struct vp_ui *ui, int row) {
    const struct vp_knob *knob;
    if (vp_ui_here(ui)->pane == PANE_KNOBS) {
        uint32_t count = knobs_of(ui, &knob);
        return row < (int)count
                   ? vp_arena_printf(&ui->frame, "%s %s", knob[row].label, knob[row].shown)
                   : NULL;
    }
    struct memory_rows rows = memory_rows(ui);
    if (row < rows.devices)
        return vp_session_plan(ui->session)->devices[row].id;
    return row < rows.devices + rows.components
               ? vp_words_component(&ui->frame, rows.component[row - rows.devices])
               : NULL;
}
