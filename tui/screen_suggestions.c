/* Changes that help: those that make it fit, as `fit` finds them, or where it fits already what
 * small changes would save. Enter applies one, u takes it back. */
#include <inttypes.h>

#include "planner/base/units.h"
#include "reports/changes_report.h"
#include "reports/words.h"
#include "tui/ui.h"

enum { NEED = 8, SPARE = 8, GPUS = 5, GAP = 1, DETAIL = 8, MOST_TEXT = 1000 };

/* A row: a proposal of the search, or a suggestion of the plan. */
struct row {
    const struct vp_proposal *proposal;
    const struct vp_suggestion *suggestion;
};

struct rows {
    const struct vp_outcome *outcome; /* NULL: none yet, or a scenario without a search */
    const struct vp_result *plan;     /* with its suggestions; NULL: not yet */
    struct row *row;
    int count;
};

static struct rows rows_of(struct vp_ui *ui) {
    struct rows r = {0};
    r.outcome = vp_session_suggestions(ui->session, &r.plan);
    uint32_t proposals = r.outcome ? r.outcome->count : 0;
    uint32_t suggestions = r.plan && proposals == 0 ? r.plan->suggestion_count : 0;
    const struct vp_proposal *nearest =
        r.outcome && proposals == 0 && suggestions == 0 ? r.outcome->nearest : NULL;

    r.row = VP_NEW_ARRAY(&ui->frame, proposals + suggestions + 1, struct row);
    for (uint32_t i = 0; i < proposals; i++)
        r.row[r.count++].proposal = &r.outcome->item[i];
    for (uint32_t i = 0; i < suggestions; i++)
        r.row[r.count++].suggestion = &r.plan->suggestions[i];
    if (nearest)
        r.row[r.count++].proposal = nearest;
    return r;
}

/* ---- words ---- */

static const char *change_text(struct vp_arena *arena, const struct row *row) {
    const struct vp_suggestion *s = row->suggestion;
    struct vp_buf out = {.arena = arena};
    if (s)
        return s->from && s->to ? vp_arena_printf(arena, "%s: %s -> %s", s->change, s->from, s->to)
                                : s->change;
    for (uint32_t i = 0; i < row->proposal->changes; i++) {
        const struct vp_change *c = &row->proposal->change[i];
        vp_buf_printf(&out, "%s%s: %s -> %s", i ? " + " : "", c->lever, c->from, c->to);
    }
    return vp_buf_text(&out);
}

/* The same in a row of the list: as much of it as has room in whole words. */
static const char *brief_text(struct vp_arena *arena, const struct row *row, int cells) {
    const char *full = change_text(arena, row);
    struct vp_buf to = {.arena = arena}, names = {.arena = arena};
    if (row->suggestion || vp_cells_of(full) <= cells)
        return row->suggestion ? row->suggestion->change : full;
    for (uint32_t i = 0; i < row->proposal->changes; i++) {
        const struct vp_change *c = &row->proposal->change[i];
        vp_buf_printf(&to, "%s%s: %s", i ? " + " : "", c->lever, c->to);
        vp_buf_printf(&names, "%s%s", i ? " + " : "", c->lever);
    }
    return vp_cells_of(vp_buf_text(&to)) <= cells ? vp_buf_text(&to) : vp_buf_text(&names);
}

static void add_cost(struct vp_buf *out, const char *name, const char *text) {
    if (text && !vp_text_eq(text, "none"))
        vp_buf_printf(out, "%s%s: %s", out->size ? "; " : "", name, text);
}

static const char *costs(struct vp_arena *arena, const struct row *row) {
    struct vp_buf out = {.arena = arena};
    if (row->suggestion) {
        add_cost(&out, "quality", row->suggestion->quality);
        add_cost(&out, "speed", row->suggestion->speed);
        add_cost(&out, "money", row->suggestion->money);
    }
    for (uint32_t i = 0; row->proposal && i < row->proposal->changes; i++) {
        const struct vp_change *c = &row->proposal->change[i];
        add_cost(&out, "quality", c->risk.format ? vp_words_risk(arena, &c->risk) : c->quality);
        add_cost(&out, "speed", c->speed);
        add_cost(&out, "money", c->money);
    }
    return out.size ? vp_buf_text(&out) : "costs nothing that is known";
}

static const char *settings_text(struct vp_arena *arena, const struct row *row) {
    const struct vp_suggestion *s = row->suggestion;
    struct vp_buf out = {.arena = arena};
    if (s && s->patch_field)
        vp_buf_printf(&out, "%s=%s", s->patch_field, s->patch_value);
    if (s && s->patch_count)
        vp_buf_printf(&out, "  hardware.count=%" PRIu64, s->patch_count);
    for (uint32_t i = 0; row->proposal && i < row->proposal->patches; i++)
        vp_buf_printf(&out, "%s%s=%s", i ? "  " : "", row->proposal->patch[i].field,
                      row->proposal->patch[i].value);
    return out.size ? vp_buf_text(&out) : "";
}

/* ---- drawing ---- */

static void draw_row(struct vp_ui *ui, struct vp_view view, int y, int number,
                     const struct row *row) {
    const struct vp_proposal *p = row->proposal;
    struct vp_arena *frame = &ui->frame;
    int64_t room = p ? p->trial.headroom_bytes : row->suggestion->headroom_bytes;
    uint64_t need = p ? p->trial.need.likely : row->suggestion->need_bytes;
    bool fits = p ? vp_trial_fits(&p->trial) : room >= 0;
    int what = view.width - 5 - NEED - SPARE - GPUS - 3 * GAP - 2;
    vp_view_printf(view, 0, y, VP_LOOK_DIM, "%3d", number);
    vp_view_left(view, 5, y, what, VP_LOOK_PLAIN, brief_text(frame, row, what));
    int x = 5 + what + GAP;
    vp_view_right(view, x, y, NEED, VP_LOOK_PLAIN, vp_format_gib(frame, need, 2));
    x += NEED + GAP;
    vp_view_right(
        view, x, y, SPARE + 1, fits ? VP_LOOK_GOOD : VP_LOOK_BAD,
        vp_arena_printf(frame, "%s%s", vp_words_signed_gib(frame, room), fits ? " " : "!"));
    if (p)
        vp_view_right(view, x + SPARE + 1 + GAP, y, GPUS, VP_LOOK_PLAIN,
                      vp_format_u64(frame, p->trial.gpus));
}

static void draw_list(struct vp_ui *ui, struct vp_view in, const struct rows *r) {
    int what = in.width - 1 - 5 - NEED - SPARE - GPUS - 3 * GAP - 2;
    const struct vp_column column[] = {{"", 4, true},
                                       {"change", what, false},
                                       {"needs GiB", NEED + 1, true},
                                       {"to spare", SPARE, true},
                                       {"GPUs", GPUS + 1, true}};
    vp_view_head(in, 0, 0, column, sizeof column / sizeof *column, GAP);
    struct vp_view list = vp_view_part(in, 0, 1, in.width, in.height - 1);
    int first = vp_ui_scroll(ui, 0, r->count, list.height), at = vp_ui_row(ui, 0, r->count);
    for (int y = 0; y < list.height && first + y < r->count; y++) {
        draw_row(ui, vp_view_part(list, 0, 0, list.width - 1, list.height), y, first + y + 1,
                 &r->row[first + y]);
        vp_ui_hit_row(ui, list, 0, y, list.width, 0, first + y);
        if (first + y == at)
            vp_view_mark(list, 0, y, list.width - 1);
    }
    vp_view_scrollbar(list, first, r->count);
}

/* How far it goes as it is. */
static const char *limits_text(struct vp_arena *arena, const struct vp_outcome *o) {
    struct vp_buf out = {.arena = arena};
    if (!o)
        return "";
    if (o->max_micro_batch > 0)
        vp_buf_printf(&out, "micro batches up to %s", vp_format_count(arena, o->max_micro_batch));
    if (o->max_context > 0)
        vp_buf_printf(&out, "a context up to %s%s", vp_format_count(arena, o->max_context),
                      o->context_capped ? " (the model's longest)" : "");
    if (o->max_sequences > 0)
        vp_buf_printf(&out, "%s%s sequences at once", out.size ? ", or up to " : "up to ",
                      vp_format_count(arena, o->max_sequences));
    return out.size ? vp_arena_printf(arena, "For sure: %s. ", vp_buf_text(&out)) : "";
}

/* What stands above the list: how it is, and what the search did. */
static const char *state_text(struct vp_ui *ui, const struct rows *r) {
    const struct vp_result *plan = vp_session_plan(ui->session);
    const struct vp_outcome *o = r->outcome;
    struct vp_buf out = {.arena = &ui->frame};
    vp_buf_printf(&out, "%s. ", vp_words_need(&ui->frame, plan));
    if (!r->plan) {
        vp_buf_add(&out, vp_session_has(ui->session, VP_TASK_SUGGESTIONS)
                             ? "This scenario cannot be searched."
                             : "Searching for changes ...");
    } else if (o && o->count > 0) {
        vp_buf_printf(&out, "%s, out of %s tried",
                      o->needed == 1   ? "One change is enough"
                      : o->needed == 2 ? "Two changes together"
                                       : "Three changes together",
                      vp_format_count(&ui->frame, o->tried));
        if (o->beaten > 0)
            vp_buf_printf(&out, "; %" PRIu32 " more would do, but none is better in anything",
                          o->beaten);
        vp_buf_add(&out, ".");
    } else if (plan->verdict == VP_FITS) {
        vp_buf_printf(&out, "Nothing need change. %s%s", limits_text(&ui->frame, o),
                      r->count ? "What small changes would make of it:" : "");
    } else if (r->count > 0 && r->row[0].suggestion) {
        vp_buf_add(&out, "Small changes that help:");
    } else {
        vp_buf_printf(&out, "No choice of up to three changes makes it fit%s",
                      r->count ? "; the nearest:" : ".");
    }
    return vp_buf_text(&out);
}

static void draw_detail(struct vp_ui *ui, struct vp_view view, const struct rows *r) {
    struct vp_view in = vp_view_box(view, VP_LOOK_EDGE, "what it costs", NULL, NULL);
    in = vp_view_part(in, 1, 0, in.width - 2, in.height);
    if (r->count == 0)
        return;
    const struct row *row = &r->row[vp_ui_row(ui, 0, r->count)];
    const struct vp_proposal *p = row->proposal;
    int y = vp_view_wrap(in, 0, 0, in.width, 2, VP_LOOK_STRONG, change_text(&ui->frame, row));
    y += vp_view_wrap(in, 0, y, in.width, in.height - y - 1, VP_LOOK_PLAIN, costs(&ui->frame, row));
    if (p && y < in.height - 1) {
        const struct vp_estimate *time =
            p->trial.step.basis != VP_BASIS_NONE ? &p->trial.step : &p->trial.tpot;
        bool trains = vp_session_plan(ui->session)->scenario->training;
        y += vp_view_wrap(
            in, 0, y, in.width, 1, VP_LOOK_PLAIN,
            vp_arena_printf(&ui->frame, "%s %s", trains ? "step" : "token",
                            vp_words_time(&ui->frame, trains ? time : &p->trial.tpot)));
    }
    if (y < in.height)
        vp_view_left(in, 0, in.height - 1, in.width, VP_LOOK_DIM, settings_text(&ui->frame, row));
}

void vp_screen_suggestions_draw(struct vp_ui *ui, struct vp_view view) {
    struct rows r = rows_of(ui);
    struct vp_view in =
        vp_view_box(vp_view_part(view, 0, 0, view.width, view.height - DETAIL), VP_LOOK_KEY,
                    "changes that help", "u takes one back", "Enter apply");
    int y = vp_view_wrap(in, 1, 0, in.width - 2, 3, VP_LOOK_PLAIN, state_text(ui, &r));
    if (r.count > 0)
        draw_list(ui, vp_view_part(in, 0, y, in.width, in.height - y), &r);
    else if (r.plan && r.plan->llama)
        vp_view_wrap(in, 1, y + 1, in.width - 2, 3, VP_LOOK_DIM,
                     "llama.cpp's settings have a search of their own: vramplan fit INPUT chooses "
                     "layers, context, cache and batch.");
    draw_detail(ui, vp_view_part(view, 0, view.height - DETAIL, view.width, DETAIL), &r);
}

/* ---- keys ---- */

static void apply(struct vp_ui *ui, const struct row *row) {
    const struct vp_suggestion *s = row->suggestion;
    struct vp_setting set[2];
    size_t count = 0;
    if (row->proposal) {
        vp_session_apply(ui->session, row->proposal);
    } else if (s->patch_field) {
        set[count++] = (struct vp_setting){s->patch_field, s->patch_value, s->patch_field};
        if (s->patch_count)
            set[count++] = (struct vp_setting){
                "hardware.count", vp_format_u64(&ui->frame, s->patch_count), "hardware.count"};
        vp_session_change(ui->session, set, count, s->change);
    }
    vp_ui_tell(ui);
}

bool vp_screen_suggestions_act(struct vp_ui *ui, enum vp_action action) {
    struct rows r = rows_of(ui);
    if (action != VP_ACT_ENTER)
        return false;
    if (r.count > 0)
        apply(ui, &r.row[vp_ui_row(ui, 0, r.count)]);
    return true;
}

int vp_screen_suggestions_rows(struct vp_ui *ui) { return rows_of(ui).count; }

const char *vp_screen_suggestions_row_text(struct vp_ui *ui, int row) {
    struct rows r = rows_of(ui);
    return row >= 0 && row < r.count ? change_text(&ui->frame, &r.row[row]) : NULL;
}
