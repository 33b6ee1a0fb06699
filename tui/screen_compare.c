/* Plans side by side: the present one and up to four that were pinned. The best of a row is marked
 * with a star, what does not fit with an exclamation mark; below, how two of them differ. */
#include <inttypes.h>
#include <string.h>

#include "planner/base/sum.h"
#include "planner/base/units.h"
#include "reports/words.h"
#include "tui/ui.h"

enum { PLANS = VP_PINS + 1, ROWS = 40, LABEL = 17, WATERFALL = 6 };

/* Column 0 is the present plan, 1 to 4 the pins A to D. */
struct plans {
    const struct vp_result *plan[PLANS];
    const char *label[PLANS];
    char letter[PLANS];
    uint32_t slot[PLANS]; /* of the pin */
    int count;
};

static struct plans plans_of(struct vp_ui *ui) {
    struct plans p = {.count = 1};
    p.plan[0] = vp_session_plan(ui->session);
    p.label[0] = "this plan";
    p.letter[0] = '.';
    for (uint32_t slot = 0; slot < VP_PINS; slot++) {
        const struct vp_pin *pin = vp_session_pin(ui->session, slot);
        if (!pin)
            continue;
        p.plan[p.count] = pin->plan;
        p.label[p.count] = pin->label;
        p.letter[p.count] = (char)('A' + (int)slot);
        p.slot[p.count++] = slot;
    }
    return p;
}

static int column_of(struct vp_ui *ui, const struct plans *p) {
    int column = vp_ui_here(ui)->column;
    return column < 0 ? 0 : column >= p->count ? p->count - 1 : column;
}

/* What the chosen column is compared with; the first other one at the beginning. */
static int against_of(struct vp_ui *ui, const struct plans *p) {
    int against = vp_ui_here(ui)->option, column = column_of(ui, p);
    if (against >= p->count || against == column)
        against = column > 0 ? 0 : p->count - 1;
    return against;
}

/* ---- figures ---- */

/* better: -1 the smallest is best, 1 the largest, 0 there is no best. */
struct line {
    const char *label;
    const char *text[PLANS];
    double value[PLANS];
    bool known[PLANS];
    int better;
    enum vp_tui_style style;
};

struct table {
    struct vp_arena *arena;
    const struct plans *plans;
    struct line line[ROWS];
    int count;
};

static struct line *add(struct table *t, const char *label, int better) {
    static struct line beyond; /* never shown */
    struct line *line = t->count < ROWS ? &t->line[t->count++] : &beyond;
    *line = (struct line){.label = label, .better = better, .style = VP_LOOK_PLAIN};
    return line;
}

static void set(struct line *line, int i, double value, const char *text) {
    line->text[i] = text;
    line->value[i] = value;
    line->known[i] = true;
}

static const struct vp_device *worst(const struct vp_result *plan) {
    return &plan->devices[plan->worst];
}

static void set_count(struct table *t, struct line *line, int i, uint64_t n) {
    if (n > 0)
        set(line, i, (double)n, vp_format_count(t->arena, n));
}

/* "128K" */
static const char *tokens_text(struct vp_arena *arena, uint64_t n) {
    return n >= 1024 && n % 1024 == 0 ? vp_arena_printf(arena, "%" PRIu64 "K", n / 1024)
                                      : vp_format_u64(arena, n);
}

static void add_setup(struct table *t) {
    struct line *gpus = add(t, "GPUs", -1), *gpu = add(t, "GPU", 0),
                *layout = add(t, "tensor x pp x dp", 0);
    struct line *formats = add(t, "weights / cache", 0), *length = add(t, "tokens x seq.", 0);
    for (int i = 0; i < t->plans->count; i++) {
        const struct vp_scenario *s = t->plans->plan[i]->scenario;
        const struct vp_parallel *p = &s->parallel;
        set(gpus, i, (double)s->hardware.count, vp_format_count(t->arena, s->hardware.count));
        set(gpu, i, 0, s->hardware.gpu.id);
        set(layout, i, 0,
            vp_arena_printf(t->arena, "%" PRIu64 " x %" PRIu64 " x %" PRIu64, p->tensor,
                            p->pipeline, p->data));
        set(formats, i, 0,
            s->training ? vp_words_weights(s)
                        : vp_arena_printf(t->arena, "%s/%s", vp_words_weights(s),
                                          vp_dtype_name(s->precision.kv_cache)));
        set(length, i, 0,
            vp_arena_printf(
                t->arena, "%s x %" PRIu64,
                tokens_text(t->arena, s->training ? s->train.sequence : s->serve.context),
                s->training ? s->train.micro_batch : s->serve.concurrency));
    }
}

static void add_words(struct table *t) {
    bool trains = t->plans->plan[0]->scenario->training;
    struct line *engine = add(t, "engine", 0), *redo = trains ? add(t, "recompute", 0) : NULL;
    for (int i = 0; i < t->plans->count; i++) {
        const struct vp_scenario *s = t->plans->plan[i]->scenario;
        set(engine, i, 0,
            vp_arena_printf(t->arena, "%s %s", s->engine.name,
                            s->engine.version_text ? s->engine.version_text : ""));
        if (trains)
            set(redo, i, 0, s->train.recompute_name ? s->train.recompute_name : "none");
    }
}

static bool any_has(const struct plans *p, enum vp_component c) {
    bool has = false;
    for (int i = 0; i < p->count; i++)
        has |= worst(p->plan[i])->present[c];
    return has;
}

static void add_bytes(struct table *t) {
    static const char *const VERDICTS[] = {
        [VP_FITS] = "fits", [VP_AT_RISK] = "at risk", [VP_DOES_NOT_FIT] = "no"};
    struct line *verdict = add(t, "fits", 0);
    for (int i = 0; i < t->plans->count; i++)
        set(verdict, i, 0, VERDICTS[t->plans->plan[i]->verdict]);
    for (int c = 0; c < VP_COMPONENT_COUNT; c++) {
        if (!any_has(t->plans, (enum vp_component)c))
            continue;
        struct line *line = add(t, vp_words_component(t->arena, (enum vp_component)c), -1);
        line->style = vp_theme_component((enum vp_component)c);
        for (int i = 0; i < t->plans->count; i++) {
            uint64_t bytes = worst(t->plans->plan[i])->component[c].likely;
            set(line, i, (double)bytes, vp_format_gib(t->arena, bytes, 2));
        }
    }
    struct line *need = add(t, "needed", -1), *room = add(t, "to spare", 1);
    need->style = room->style = VP_LOOK_STRONG;
    for (int i = 0; i < t->plans->count; i++) {
        const struct vp_result *plan = t->plans->plan[i];
        set(need, i, (double)worst(plan)->need.likely,
            vp_format_gib(t->arena, worst(plan)->need.likely, 2));
        set(room, i, (double)plan->headroom_bytes,
            vp_words_signed_gib(t->arena, plan->headroom_bytes));
    }
}

static void set_time(struct table *t, struct line *line, int i, const struct vp_estimate *e) {
    if (e->basis == VP_BASIS_NONE)
        return;
    bool bound = e->basis == VP_BASIS_BOUND;
    double ms = bound ? e->low : e->likely;
    set(line, i, ms,
        vp_arena_printf(t->arena, ms < 100 ? "%s%.1f" : "%s%.0f", bound ? ">=" : "", ms));
}

static void add_answers(struct table *t) {
    bool serves = !t->plans->plan[0]->scenario->training;
    struct line *context = serves ? add(t, "longest context", 1) : NULL;
    struct line *sequences = serves ? add(t, "most sequences", 1) : NULL;
    struct line *time = add(t, serves ? "ms per token" : "ms per step", -1);
    struct line *first = serves ? add(t, "ms to the first", -1) : NULL;
    struct line *rate = serves ? add(t, "tokens/s", 1) : NULL;
    for (int i = 0; i < t->plans->count; i++) {
        const struct vp_result *plan = t->plans->plan[i];
        const struct vp_latency *l = &plan->latency;
        set_time(t, time, i, serves ? &l->tpot_ms : &l->step_ms);
        if (!serves)
            continue;
        set_count(t, context, i, plan->prices.max_context);
        set_count(t, sequences, i, plan->prices.max_concurrency);
        set_time(t, first, i, &l->ttft_ms);
        set_time(t, rate, i, &l->decode_tokens_per_s);
    }
}

static struct table *table_of(struct vp_ui *ui, const struct plans *p) {
    struct table *t = VP_NEW(&ui->frame, struct table);
    t->arena = &ui->frame;
    t->plans = p;
    add_setup(t);
    add_bytes(t);
    add_answers(t);
    add_words(t);
    return t;
}

/* The best of a row, where they differ. */
static bool is_best(const struct table *t, const struct line *line, int i) {
    bool differs = false;
    if (line->better == 0 || !line->known[i])
        return false;
    for (int k = 0; k < t->plans->count; k++) {
        if (!line->known[k])
            continue;
        if (line->better * (line->value[k] - line->value[i]) > 0)
            return false;
        differs |= line->value[k] < line->value[i] || line->value[k] > line->value[i];
    }
    return differs;
}

/* ---- drawing ---- */

static int width_of(const struct plans *p, int width) {
    int each = (width - LABEL - 1) / p->count;
    return each > 24 ? 24 : each;
}

static void draw_head(struct vp_ui *ui, struct vp_view view, const struct plans *p, int each) {
    int column = column_of(ui, p), against = against_of(ui, p);
    for (int i = 0; i < p->count; i++) {
        int x = LABEL + i * each;
        const char *mark = i == column ? ">" : i == against && p->count > 1 ? "<" : " ";
        vp_view_right(view, x, 0, each - 1, VP_LOOK_STRONG,
                      i == 0 ? vp_arena_printf(&ui->frame, "%sthis", mark)
                             : vp_arena_printf(&ui->frame, "%s%c", mark, p->letter[i]));
        if (i > 0)
            vp_view_right(view, x, 1, each - 1, VP_LOOK_DIM, p->label[i]);
        if (i == column)
            vp_view_mark(view, x, 0, each);
    }
    vp_view_left(view, 0, 1, LABEL, VP_LOOK_DIM, "GiB, worst device");
}

static void draw_line(struct vp_ui *ui, struct vp_view view, int y, const struct table *t,
                      const struct line *line, int each) {
    vp_view_left(view, 0, y, LABEL, line->style, line->label);
    for (int i = 0; i < t->plans->count; i++) {
        bool fits = t->plans->plan[i]->verdict != VP_DOES_NOT_FIT, best = is_best(t, line, i);
        bool verdict = vp_text_eq(line->label, "fits") || vp_text_eq(line->label, "to spare");
        const char *mark = !fits && verdict ? "!" : best ? "*" : " ";
        enum vp_tui_style style = !fits && verdict ? VP_LOOK_BAD
                                  : best           ? VP_LOOK_GOOD
                                                   : VP_LOOK_PLAIN;
        vp_view_right(
            view, LABEL + i * each, y, each - 1, style,
            vp_arena_printf(&ui->frame, "%s%s", line->text[i] ? line->text[i] : "-", mark));
    }
}

/* "A -> this  weights -33.85  KV cache +80.00  needed +46.20": components that differ. */
static const char *waterfall(struct vp_ui *ui, const struct plans *p) {
    int to = column_of(ui, p), from = against_of(ui, p);
    const struct vp_device *a = worst(p->plan[from]), *b = worst(p->plan[to]);
    struct vp_buf out = {.arena = &ui->frame};
    int differ = 0;
    for (int c = 0; c < VP_COMPONENT_COUNT; c++) {
        int64_t more = vp_words_minus(b->component[c].likely, a->component[c].likely);
        const char *text = vp_words_signed_gib(&ui->frame, more);
        if (more == 0)
            continue;
        vp_buf_printf(&out, "%s%s %s%s", differ++ ? ",  " : "",
                      vp_words_component(&ui->frame, (enum vp_component)c), more > 0 ? "+" : "",
                      text);
    }
    int64_t need = vp_words_minus(b->need.likely, a->need.likely);
    if (!differ)
        vp_buf_add(&out, "no component differs");
    vp_buf_printf(&out, ";  in all %s%s GiB", need > 0 ? "+" : "",
                  vp_words_signed_gib(&ui->frame, need));
    return vp_buf_text(&out);
}

static const char *name_of(struct vp_ui *ui, const struct plans *p, int i) {
    return i == 0 ? "this plan" : vp_arena_printf(&ui->frame, "%c", p->letter[i]);
}

/* What one of them changes, as it would be said. */
static const char *changes_text(struct vp_ui *ui, const struct plans *p, int i) {
    const struct vp_setting *changes;
    size_t count = vp_session_changes(ui->session, &changes);
    struct vp_buf out = {.arena = &ui->frame};
    if (i > 0) {
        const struct vp_pin *pin = vp_session_pin(ui->session, p->slot[i]);
        changes = pin->changes;
        count = pin->change_count;
    }
    for (size_t k = 0; k < count; k++)
        vp_buf_printf(&out, "%s%s=%s", k ? "  " : "", changes[k].path, changes[k].value);
    return count ? vp_buf_text(&out) : "as the input says";
}

static void draw_difference(struct vp_ui *ui, struct vp_view view, const struct plans *p) {
    int to = column_of(ui, p), from = against_of(ui, p);
    if (p->count == 1) {
        vp_view_box(view, VP_LOOK_EDGE, "difference", NULL, NULL);
        struct vp_view in = vp_view_part(view, 2, 1, view.width - 4, view.height - 2);
        vp_view_wrap(in, 0, 0, in.width, in.height, VP_LOOK_DIM,
                     "Nothing is pinned. Space pins the plan that is shown, on any screen; change "
                     "something, and pin again: up to four stand here side by side.");
        return;
    }
    struct vp_view in = vp_view_box(
        view, VP_LOOK_EDGE,
        vp_arena_printf(&ui->frame, "%s -> %s, GiB", name_of(ui, p, from), name_of(ui, p, to)),
        NULL, NULL);
    in = vp_view_part(in, 1, 0, in.width - 2, in.height);
    int y = vp_view_wrap(in, 0, 0, in.width, 2, VP_LOOK_PLAIN, waterfall(ui, p));
    vp_view_printf(in, 0, y, VP_LOOK_DIM, "%s: ", name_of(ui, p, to));
    vp_view_left(in, 11, y, in.width - 11, VP_LOOK_DIM, changes_text(ui, p, to));
    vp_view_printf(in, 0, y + 1, VP_LOOK_DIM, "%s: ", name_of(ui, p, from));
    vp_view_left(in, 11, y + 1, in.width - 11, VP_LOOK_DIM, changes_text(ui, p, from));
}

void vp_screen_compare_draw(struct vp_ui *ui, struct vp_view view) {
    struct plans p = plans_of(ui);
    struct table *t = table_of(ui, &p);
    struct vp_view in = vp_view_box(vp_view_part(view, 0, 0, view.width, view.height - WATERFALL),
                                    VP_LOOK_KEY, "plans", "* best of its row   ! does not fit",
                                    "h l column  d compare with it  Enter take  r rename  D drop");
    int each = width_of(&p, in.width - 1);
    draw_head(ui, in, &p, each);
    struct vp_view list = vp_view_part(in, 0, 2, in.width, in.height - 2);
    int first = vp_ui_scroll(ui, 0, t->count, list.height), at = vp_ui_row(ui, 0, t->count);
    for (int y = 0; y < list.height && first + y < t->count; y++) {
        draw_line(ui, list, y, t, &t->line[first + y], each);
        vp_ui_hit_row(ui, list, 0, y, list.width, 0, first + y);
        if (first + y == at)
            vp_view_mark(list, 0, y, LABEL - 1);
    }
    vp_view_scrollbar(list, first, t->count);
    draw_difference(ui, vp_view_part(view, 0, view.height - WATERFALL, view.width, WATERFALL), &p);
}

/* ---- keys ---- */

static void renamed(struct vp_ui *ui, const char *text) {
    struct plans p = plans_of(ui);
    int column = column_of(ui, &p);
    if (column > 0)
        vp_session_pin_rename(ui->session, p.slot[column], text);
}

static bool on_pin(struct vp_ui *ui, const struct plans *p, enum vp_action action) {
    int column = column_of(ui, p);
    if (column == 0) {
        vp_ui_say(ui, VP_LOOK_DIM, "this is the present plan: choose a pin with h and l");
        return true;
    }
    if (action == VP_ACT_ENTER)
        vp_session_pin_recall(ui->session, p->slot[column]);
    else if (action == VP_ACT_DROP)
        vp_session_unpin(ui->session, p->slot[column]);
    else
        vp_ui_ask(ui, "label", p->label[column], NULL, 0, renamed);
    if (action != VP_ACT_RENAME)
        vp_ui_tell(ui);
    return true;
}

bool vp_screen_compare_act(struct vp_ui *ui, enum vp_action action) {
    struct plans p = plans_of(ui);
    struct vp_ui_screen_state *here = vp_ui_here(ui);
    int column = column_of(ui, &p);
    switch (action) {
    case VP_ACT_LEFT:
        here->column = column > 0 ? column - 1 : 0;
        return true;
    case VP_ACT_RIGHT:
        here->column = column + 1 < p.count ? column + 1 : column;
        return true;
    case VP_ACT_AGAINST:
        here->option = column;
        vp_ui_say(ui, VP_LOOK_PLAIN, "compared with %s: choose the other with h and l",
                  name_of(ui, &p, column));
        return true;
    case VP_ACT_ENTER:
    case VP_ACT_DROP:
    case VP_ACT_RENAME:
        return on_pin(ui, &p, action);
    default:
        return false;
    }
}

int vp_screen_compare_rows(struct vp_ui *ui) {
    struct plans p = plans_of(ui);
    return table_of(ui, &p)->count;
}

const char *vp_screen_compare_row_text(struct vp_ui *ui, int row) {
    struct plans p = plans_of(ui);
    struct table *t = table_of(ui, &p);
    return row >= 0 && row < t->count ? t->line[row].label : NULL;
}
