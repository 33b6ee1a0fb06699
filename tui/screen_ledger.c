/* The ledger: every row of bytes, sortable, searchable; Enter explains one. Where there is room the
 * explanation of the row under the cursor stands below. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "planner/base/units.h"
#include "reports/report.h"
#include "reports/words.h"
#include "tui/ui.h"

/* Orders are numbered from 1; 0 is that of the ledger. */
enum column { COMPONENT, OWNER, WHEN, DEVICE, BYTES, SHARE, SURE, FORMULA, COLUMNS };

static const struct vp_column COLUMN[COLUMNS] = {[COMPONENT] = {"component", 15, false},
                                                 [OWNER] = {"of what", 21, false},
                                                 [WHEN] = {"when", 12, false},
                                                 [DEVICE] = {"device", 6, false},
                                                 [BYTES] = {"GiB", 8, true},
                                                 [SHARE] = {"share", 6, true},
                                                 [SURE] = {"sure", 8, false},
                                                 [FORMULA] = {"formula", 7, false}};
enum { GAP = 1, MARGIN = 2 /* cursor, scroll bar */, EXPLAIN = 10, HIGH = 30 };

/* Those that are shown: the device where there are several, then the share where there is room. */
struct columns {
    enum column id[COLUMNS];
    struct vp_column column[COLUMNS];
    size_t count;
};

static struct columns columns_of(const struct vp_result *plan, int width) {
    struct columns out = {.count = 0};
    int all = MARGIN, most = 30;
    for (int c = 0; c < COLUMNS; c++)
        all += COLUMN[c].width + GAP;
    bool device = plan->device_count > 1;
    all -= device ? 0 : COLUMN[DEVICE].width + GAP;
    bool share = all <= width;
    all -= share ? 0 : COLUMN[SHARE].width + GAP;
    for (int c = 0; c < COLUMNS; c++) {
        if ((c == DEVICE && !device) || (c == SHARE && !share))
            continue;
        out.id[out.count] = (enum column)c;
        out.column[out.count] = COLUMN[c];
        if (c == OWNER && width > all) /* what is beyond goes to the words */
            out.column[out.count].width += width - all > most ? most : width - all;
        out.count++;
    }
    return out;
}

/* ---- rows in their order ---- */

struct rows {
    uint32_t *index;
    uint32_t count;
};

/* qsort has no context: what is compared goes along. */
struct keyed {
    const struct vp_result *plan;
    const struct vp_row *row;
    uint32_t index;
    int order;
    bool reverse;
};

static int by_text(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : ""); }

static int compare(const struct vp_row *a, const struct vp_row *b, int order) {
    switch ((enum column)(order - 1)) {
    case COMPONENT:
        return (a->component > b->component) - (a->component < b->component);
    case OWNER:
        return by_text(a->owner, b->owner);
    case WHEN:
        return a->from != b->from ? a->from - b->from : a->to - b->to;
    case DEVICE:
        return (a->device > b->device) - (a->device < b->device);
    case BYTES:
    case SHARE: /* the largest first */
        return (a->bytes.likely < b->bytes.likely) - (a->bytes.likely > b->bytes.likely);
    case SURE: /* the least sure first */
        return (a->confidence < b->confidence) - (a->confidence > b->confidence);
    case FORMULA:
        return by_text(vp_formula_id(a->formula), vp_formula_id(b->formula));
    case COLUMNS:
        break;
    }
    return 0;
}

static int by_key(const void *x, const void *y) {
    const struct keyed *a = x, *b = y;
    int order = compare(a->row, b->row, a->order);
    if (order == 0) /* the ledger's own order */
        return (a->index > b->index) - (a->index < b->index);
    return a->reverse ? -order : order;
}

static struct rows sorted(struct vp_ui *ui) {
    const struct vp_result *plan = vp_session_plan(ui->session);
    const struct vp_ui_screen_state *here = &ui->at[VP_SCREEN_LEDGER];
    uint32_t count = plan->ledger.count;
    struct keyed *all = VP_NEW_ARRAY(&ui->frame, count + 1, struct keyed);
    struct rows out = {VP_NEW_ARRAY(&ui->frame, count + 1, uint32_t), count};

    for (uint32_t i = 0; i < count; i++)
        all[i] = (struct keyed){plan, &plan->ledger.rows[i], i, here->order, here->option != 0};
    if (here->order > 0)
        qsort(all, count, sizeof *all, by_key);
    for (uint32_t i = 0; i < count; i++)
        out.index[i] = all[here->order == 0 && here->option ? count - 1 - i : i].index;
    return out;
}

/* ---- drawing ---- */

static const char *owner_text(struct vp_arena *arena, const struct vp_row *row) {
    const char *owner = row->owner ? row->owner : "all";
    return row->layers ? vp_arena_printf(arena, "%s x%" PRIu32, owner, row->layers) : owner;
}

/* "all" of all the time; the phase, or the first of several: "backward+" */
static const char *when_text(struct vp_arena *arena, const struct vp_row *row) {
    if ((row->from == VP_STEP_LOAD && row->to == VP_STEP_SERVE) ||
        (row->from == VP_STEP_FORWARD && row->to == VP_STEP_OPTIMIZER))
        return "all";
    const char *from = vp_step_name((enum vp_step)row->from);
    return row->from == row->to ? from : vp_arena_printf(arena, "%s+", from);
}

static const char *cell_text(struct vp_ui *ui, const struct vp_row *row, enum column column) {
    const struct vp_device *device = &vp_session_plan(ui->session)->devices[row->device];
    struct vp_arena *frame = &ui->frame;
    switch (column) {
    case COMPONENT:
        return vp_words_component(frame, row->component);
    case OWNER:
        return owner_text(frame, row);
    case WHEN:
        return when_text(frame, row);
    case DEVICE:
        return device->id;
    case BYTES:
        return vp_format_gib(frame, row->bytes.likely, 3);
    case SHARE:
        return vp_words_share(frame, row->bytes.likely, device->usable_bytes);
    case SURE:
        return vp_confidence_name(row->confidence);
    case FORMULA:
        return vp_formula_id(row->formula);
    case COLUMNS:
        break;
    }
    return NULL;
}

static void draw_row(struct vp_ui *ui, struct vp_view view, int y, const struct columns *columns,
                     const struct vp_row *row) {
    const char *text[COLUMNS];
    for (size_t c = 0; c < columns->count; c++)
        text[c] = cell_text(ui, row, columns->id[c]);
    vp_view_row(view, 1, y, VP_LOOK_PLAIN, columns->column, columns->count, GAP, text);
    vp_view_left(view, 1, y, COLUMN[COMPONENT].width, vp_theme_component(row->component), text[0]);
}

static void draw_list(struct vp_ui *ui, struct vp_view view, const struct rows *rows) {
    const struct vp_result *plan = vp_session_plan(ui->session);
    const struct vp_ui_screen_state *here = &ui->at[VP_SCREEN_LEDGER];
    struct columns columns = columns_of(plan, view.width - 2);
    const char *note = vp_arena_printf(
        &ui->frame, "%" PRIu32 " rows, %s%s%s", rows->count, here->order ? "by " : "as they come",
        here->order ? COLUMN[here->order - 1].title : "", here->option ? ", turned round" : "");
    struct vp_view in = vp_view_box(view, VP_LOOK_KEY, "ledger", note,
                                    "s sort  S turn round  / search  Enter explain");
    vp_view_head(in, 1, 0, columns.column, columns.count, GAP);
    struct vp_view list = vp_view_part(in, 0, 1, in.width, in.height - 1);
    int count = (int)rows->count, first = vp_ui_scroll(ui, 0, count, list.height);
    int at = vp_ui_row(ui, 0, count);
    for (int y = 0; y < list.height && first + y < count; y++) {
        draw_row(ui, list, y, &columns, &plan->ledger.rows[rows->index[first + y]]);
        vp_ui_hit_row(ui, list, 0, y, list.width, 0, first + y);
        if (first + y == at)
            vp_view_mark(list, 0, y, list.width - 1);
    }
    vp_view_scrollbar(list, first, count);
}

static const char *explanation(struct vp_ui *ui, const struct rows *rows, int width) {
    const struct vp_result *plan = vp_session_plan(ui->session);
    struct vp_buf text = {.arena = &ui->frame};
    struct vp_report_options options = {.utf8 = ui->utf8, .width = width};
    int at = vp_ui_row(ui, 0, (int)rows->count);
    if (rows->count == 0)
        return NULL;
    vp_report_explain_row(&text, plan, &plan->ledger.rows[rows->index[at]], &options);
    return vp_buf_text(&text);
}

static void draw_lines(struct vp_view view, const char *text) {
    for (int y = 0; text && *text && y < view.height; y++) {
        size_t n = strcspn(text, "\n");
        vp_view_printf(view, 0, y, VP_LOOK_PLAIN, "%.*s", (int)n, text);
        text += n + (text[n] != '\0');
    }
}

void vp_screen_ledger_draw(struct vp_ui *ui, struct vp_view view) {
    struct rows rows = sorted(ui);
    int below = view.height >= HIGH && view.width >= 84 ? EXPLAIN : 0;
    draw_list(ui, vp_view_part(view, 0, 0, view.width, view.height - below), &rows);
    if (!below)
        return;
    struct vp_view in = vp_view_box(vp_view_part(view, 0, view.height - below, view.width, below),
                                    VP_LOOK_EDGE, "this row", NULL, NULL);
    draw_lines(vp_view_part(in, 1, 0, in.width - 2, in.height),
               explanation(ui, &rows, in.width - 2));
}

/* ---- keys ---- */

bool vp_screen_ledger_act(struct vp_ui *ui, enum vp_action action) {
    struct vp_ui_screen_state *here = vp_ui_here(ui);
    struct rows rows = sorted(ui);
    const char *text;
    switch (action) {
    case VP_ACT_SORT:
        here->order = (here->order + 1) % (COLUMNS + 1);
        return true;
    case VP_ACT_REVERSE:
        here->option = !here->option;
        return true;
    case VP_ACT_ENTER:
        text = explanation(ui, &rows, ui->width - 8 < 92 ? ui->width - 8 : 92);
        if (text)
            vp_ui_show(ui, "this row", text);
        return true;
    default:
        return false;
    }
}

int vp_screen_ledger_rows(struct vp_ui *ui) {
    return (int)vp_session_plan(ui->session)->ledger.count;
}

const char *vp_screen_ledger_row_text(struct vp_ui *ui, int row) {
    const struct vp_result *plan = vp_session_plan(ui->session);
    struct rows rows = sorted(ui);
    if (row < 0 || (uint32_t)row >= rows.count)
        return NULL;
    const struct vp_row *r = &plan->ledger.rows[rows.index[row]];
    return vp_arena_printf(&ui->frame, "%s %s %s %s", vp_words_component(&ui->frame, r->component),
                           owner_text(&ui->frame, r), plan->devices[r->device].id,
                           vp_formula_id(r->formula));
}
