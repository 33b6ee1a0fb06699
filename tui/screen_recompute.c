/* Recomputation: the best plans as time against memory, and beside them the settings that have a
 * name, each planned as a whole step. Enter takes one. */
#include <inttypes.h>

#include "planner/base/sum.h"
#include "planner/base/units.h"
#include "reports/charts.h"
#include "reports/recompute_emit.h"
#include "reports/words.h"
#include "tui/chart_view.h"
#include "tui/ui.h"

enum column { NAME, SAVED, PEAK, SPARE, REDO, STEP, EXTRA, FITS, COLUMNS };
static const struct vp_column COLUMN[COLUMNS] = {
    [NAME] = {"recompute", 12, false},    [SAVED] = {"saved GiB", 9, true},
    [PEAK] = {"needs GiB", 9, true},      [SPARE] = {"to spare", 8, true},
    [REDO] = {"layers redone", 13, true}, [STEP] = {"step ms", 9, true},
    [EXTRA] = {"extra", 7, true},         [FITS] = {"", 2, false}};
enum { GAP = 1, MOST = 2 * VP_RECOMPUTE_WAYS, MAP = 2 /* lines of the layer map */ };

struct ways {
    struct vp_recompute_way item[MOST];
    int count;
    const struct vp_placements *placements; /* NULL: not there yet */
};

static struct ways ways_of(struct vp_ui *ui) {
    const struct vp_recompute_way *named;
    struct ways w = {.placements = vp_session_placements(ui->session)};
    uint32_t count = vp_session_ways(ui->session, &named);
    for (uint32_t i = 0; i < count; i++)
        w.item[w.count++] = named[i];
    for (uint32_t i = 0; w.placements && i < w.placements->ways; i++)
        w.item[w.count++] = w.placements->way[i];
    return w;
}

static bool is_present(struct vp_ui *ui, const struct vp_recompute_way *way) {
    const char *now = vp_session_plan(ui->session)->scenario->train.recompute_name;
    return vp_text_eq(now ? now : "none", way->value);
}

static const struct vp_training_stage *stage_of(const struct vp_result *plan) {
    return &plan->training.stage[plan->training.worst];
}

/* ---- the layers ---- */

static char layer_mark(const struct vp_train_layer *layer) {
    if (layer->recomputed)
        return layer->segment == layer->layer ? 'R' : 'r';
    return layer->rebuilt_bytes > 0 ? 'p' : 'k';
}

/* Of the worst stage; of more layers than there is room for every n-th. */
static void draw_layers(struct vp_ui *ui, struct vp_view view, const struct ways *w) {
    const struct vp_result *plan = w->count ? w->item[vp_ui_row(ui, 0, w->count)].plan : NULL;
    if (!plan || view.width < 1)
        return;
    const struct vp_train_stage *s = &stage_of(plan)->numbers;
    uint32_t room = (uint32_t)view.width;
    uint32_t per = (uint32_t)vp_ceil_div(s->layers, (uint64_t)room * MAP);
    for (uint32_t i = 0, at = 0; i < s->layers; i += per, at++) {
        char mark[2] = {layer_mark(&s->layer[i]), '\0'};
        vp_view_text(view, (int)(at % room), (int)(at / room),
                     *mark == 'k' ? VP_LOOK_GOOD : VP_LOOK_WARN, mark);
    }
}

/* ---- the table ---- */

static double step_ms(const struct vp_result *plan) {
    const struct vp_estimate *e = &plan->latency.step_ms;
    return e->basis == VP_BASIS_NONE ? 0 : e->basis == VP_BASIS_BOUND ? e->low : e->likely;
}

/* Of the step without recomputation, which is the first row. */
static const char *extra_text(struct vp_arena *arena, const struct ways *w,
                              const struct vp_result *plan) {
    double base = w->count > 0 && w->item[0].plan ? step_ms(w->item[0].plan) : 0;
    double now = step_ms(plan);
    return base > 0 && now > 0 ? vp_arena_printf(arena, "%+.1f%%", 100 * (now - base) / base)
                               : NULL;
}

/* "11 of 80", "parts of 80" */
static const char *redone(struct vp_arena *arena, const struct vp_train_stage *s) {
    uint32_t whole = 0, parts = 0;
    for (uint32_t i = 0; i < s->layers; i++) {
        whole += s->layer[i].recomputed;
        parts += !s->layer[i].recomputed && s->layer[i].rebuilt_bytes > 0;
    }
    if (parts == 0)
        return vp_arena_printf(arena, "%" PRIu32 " of %" PRIu32, whole, s->layers);
    if (whole == 0)
        return vp_arena_printf(arena, "parts of %" PRIu32, parts);
    return vp_arena_printf(arena, "%" PRIu32 " + %" PRIu32 " parts", whole, parts);
}

static void draw_way(struct vp_ui *ui, struct vp_view view, int y, const struct ways *w, int i) {
    const struct vp_recompute_way *way = &w->item[i];
    const struct vp_result *plan = way->plan;
    struct vp_arena *frame = &ui->frame;
    const char *text[COLUMNS] = {[NAME] = way->name};
    enum vp_tui_style style = VP_LOOK_PLAIN;
    vp_view_text(view, 0, y, VP_LOOK_KEY, is_present(ui, way) ? ">" : " ");
    if (!plan) {
        vp_view_left(view, 1, y, COLUMN[NAME].width, VP_LOOK_DIM, way->name);
        vp_view_left(view, 2 + COLUMN[NAME].width, y, view.width - 2 - COLUMN[NAME].width,
                     VP_LOOK_DIM, way->refused ? way->refused : "refused");
        return;
    }
    const struct vp_training_stage *s = stage_of(plan);
    text[SAVED] = vp_format_gib(frame, s->numbers.saved_bytes, 2);
    text[PEAK] = vp_format_gib(frame, plan->devices[plan->worst].need.likely, 2);
    text[SPARE] = vp_words_signed_gib(frame, plan->headroom_bytes);
    text[REDO] = redone(frame, &s->numbers);
    if (step_ms(plan) > 0)
        text[STEP] = vp_arena_printf(frame, "%.0f", step_ms(plan));
    text[EXTRA] = extra_text(frame, w, plan);
    text[FITS] = plan->verdict == VP_FITS ? "" : plan->verdict == VP_AT_RISK ? "?" : "!";
    if (plan->verdict != VP_FITS)
        style = vp_theme_verdict(plan->verdict);
    vp_view_row(view, 1, y, style, COLUMN, COLUMNS, GAP, text);
}

static void draw_table(struct vp_ui *ui, struct vp_view view, const struct ways *w) {
    struct vp_view in =
        vp_view_box(view, VP_LOOK_KEY, "what can be set", "! does not fit   ? may not   > now",
                    "Enter take it   k kept  p in part  R r run again, R begins a piece");
    vp_view_head(in, 1, 0, COLUMN, COLUMNS, GAP);
    struct vp_view list = vp_view_part(in, 0, 1, in.width, in.height - 1 - MAP);
    int first = vp_ui_scroll(ui, 0, w->count, list.height), at = vp_ui_row(ui, 0, w->count);
    if (w->count == 0)
        vp_view_text(list, 1, 0, VP_LOOK_DIM, "planning each of them ...");
    for (int y = 0; y < list.height && first + y < w->count; y++) {
        draw_way(ui, list, y, w, first + y);
        vp_ui_hit_row(ui, list, 0, y, list.width, 0, first + y);
        if (first + y == at)
            vp_view_mark(list, 0, y, list.width - 1);
    }
    if (!w->placements && w->count > 0 && w->count < list.height)
        vp_view_text(list, 1, w->count, VP_LOOK_DIM,
                     vp_session_has(ui->session, VP_TASK_PLACEMENTS)
                         ? "the best plan was not found"
                         : "searching for the best plan ...");
    vp_view_scrollbar(list, first, w->count);
    draw_layers(ui, vp_view_part(in, 1, in.height - MAP, in.width - 2, MAP), w);
}

/* ---- the chart ---- */

/* Which figure is which setting, in the order of vp_chart_frontier. */
static const char *points_text(struct vp_arena *arena, const struct vp_recompute_report *report) {
    static const char *const SHORT[VP_POLICY_COUNT] = {[VP_POLICY_NONE] = "none",
                                                       [VP_POLICY_EVERY] = "each",
                                                       [VP_POLICY_SQRT] = "sqrt",
                                                       [VP_POLICY_UNIFORM] = "uniform",
                                                       [VP_POLICY_SEQUENTIAL] = "sequential",
                                                       [VP_POLICY_BLOCK] = "first m",
                                                       [VP_POLICY_ONE_OPTION] = "one part"};
    struct vp_buf out = {.arena = arena};
    int number = 0;
    for (uint32_t i = 0; i < report->policies.count; i++) {
        const struct vp_policy *row = &report->policies.items[i];
        if (row->known && row->class == VP_PLACE_CLASSES)
            vp_buf_printf(&out, "%s%d %s", number ? "  " : "", number + 1,
                          SHORT[row->kind] ? SHORT[row->kind] : row->meaning),
                number++;
    }
    return vp_buf_text(&out);
}

static void draw_chart(struct vp_ui *ui, struct vp_view view, const struct ways *w) {
    struct vp_view in =
        vp_view_box(view, VP_LOOK_EDGE, "extra time, %, against GiB of the device", "b best plans",
                    w->placements ? points_text(&ui->frame, w->placements->report) : NULL);
    const char *wait = vp_session_has(ui->session, VP_TASK_PLACEMENTS)
                           ? "there is nothing to place"
                           : "searching for the best plans of all budgets ...";
    struct vp_chart *chart = w->placements ? vp_chart_frontier(&ui->frame, w->placements->report,
                                                               &w->placements->frontier)
                                           : NULL;
    if (chart)
        vp_view_chart(in, &ui->frame, chart, false);
    else
        vp_view_text(in, 1, 0, VP_LOOK_DIM, wait);
}

void vp_screen_recompute_draw(struct vp_ui *ui, struct vp_view view) {
    if (!vp_session_plan(ui->session)->training.stage) {
        vp_view_wrap(
            view, 2, 2, view.width - 4, 4, VP_LOOK_DIM,
            "This scenario serves a model: nothing is kept for a backward pass, so there is "
            "nothing to recompute.");
        return;
    }
    struct ways w = ways_of(ui);
    enum { TABLE = VP_RECOMPUTE_WAYS + 3 + MAP };
    int chart = view.height - TABLE;
    draw_chart(ui, vp_view_part(view, 0, 0, view.width, chart), &w);
    draw_table(ui, vp_view_part(view, 0, chart, view.width, TABLE), &w);
}

/* ---- keys ---- */

bool vp_screen_recompute_act(struct vp_ui *ui, enum vp_action action) {
    struct ways w = ways_of(ui);
    if (action != VP_ACT_ENTER || w.count == 0)
        return false;
    const struct vp_setting set = {"train.recompute", w.item[vp_ui_row(ui, 0, w.count)].value,
                                   "train.recompute"};
    vp_session_change(ui->session, &set, 1, "recompute");
    vp_ui_tell(ui);
    return true;
}

int vp_screen_recompute_rows(struct vp_ui *ui) {
    return vp_session_plan(ui->session)->training.stage ? ways_of(ui).count : 0;
}

const char *vp_screen_recompute_row_text(struct vp_ui *ui, int row) {
    struct ways w = ways_of(ui);
    return row >= 0 && row < w.count ? w.item[row].name : NULL;
}
