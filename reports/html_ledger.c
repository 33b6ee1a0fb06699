/* Every row of the ledger, and the formulas that it was made with. */
#include <inttypes.h>

#include "planner/base/units.h"
#include "reports/html_page.h"
#include "reports/html_report.h"
#include "reports/markup.h"
#include "reports/words.h"

static const char *anchor(struct vp_arena *arena, const char *prefix, enum vp_formula formula) {
    return vp_arena_printf(arena, "%s-%s", prefix, vp_markup_id(arena, vp_formula_id(formula)));
}

static const char *inputs_of(struct vp_arena *arena, const struct vp_row *row) {
    struct vp_buf out = {.arena = arena};
    for (uint8_t i = 0; i < row->inputs && i < VP_ROW_INPUTS; i++)
        vp_buf_printf(&out, "%s%s %s", i ? ", " : "", row->input[i].name,
                      vp_format_count(arena, row->input[i].value));
    return vp_buf_text(&out);
}

static const char *lifetime(struct vp_arena *arena, const struct vp_row *row) {
    const char *from = vp_step_name((enum vp_step)row->from);
    if (row->from == row->to)
        return from;
    return vp_arena_printf(arena, "%s to %s", from, vp_step_name((enum vp_step)row->to));
}

static const char *owner_of(struct vp_arena *arena, const struct vp_row *row) {
    const char *owner = row->owner ? row->owner : "all";
    if (!row->layers)
        return owner;
    return vp_arena_printf(arena, "%s, %s", owner,
                           vp_words_plural(arena, row->layers, "layer", "layers"));
}

static void row(struct vp_buf *out, const struct vp_row *row, const char *prefix) {
    struct vp_arena *arena = out->arena;
    vp_html_row_begin(out, NULL);
    vp_html_head_cell(out, vp_words_component(arena, row->component), NULL);
    vp_html_cell(out, owner_of(arena, row));
    vp_html_bytes(out, row->bytes.likely);
    vp_html_number(out, vp_format_count(arena, row->bytes.likely));
    vp_html_interval(out, row->bytes);
    vp_html_cell(out, vp_confidence_name(row->confidence));
    vp_html_link(out, vp_formula_id(row->formula),
                 vp_arena_printf(arena, "#%s", anchor(arena, prefix, row->formula)));
    vp_html_cell(out, inputs_of(arena, row));
    vp_html_cell(out, lifetime(arena, row));
    vp_html_row_end(out);
}

static void device(struct vp_buf *out, const struct vp_result *result, uint32_t index,
                   const char *prefix) {
    static const char *const HEADS[] = {"component",       "of",       "#GiB",    "#bytes",
                                        "#low..high, GiB", "how sure", "formula", "numbers put in",
                                        "there at"};
    vp_html_table_begin(out,
                        vp_arena_printf(out->arena,
                                        "Ledger of %s: its rows add up to the components",
                                        result->devices[index].id),
                        HEADS, sizeof HEADS / sizeof HEADS[0]);
    for (int c = 0; c < VP_COMPONENT_COUNT; c++)
        for (uint32_t i = 0; i < result->ledger.count; i++) {
            const struct vp_row *r = &result->ledger.rows[i];
            if (r->device == index && r->component == (enum vp_component)c)
                row(out, r, prefix);
        }
    vp_html_table_end(out);
}

static void formulas(struct vp_buf *out, const struct vp_html_plan *plan, const char *prefix) {
    const struct vp_result *result = plan->result;
    bool used[VP_FORMULA_COUNT] = {false};
    for (uint32_t i = 0; i < result->ledger.count; i++)
        used[result->ledger.rows[i].formula] = true;
    vp_html_section(out, plan, "Formulas");
    vp_buf_add(out, "<dl>\n");
    for (int f = 0; f < VP_FORMULA_COUNT; f++) {
        enum vp_formula formula = (enum vp_formula)f;
        if (!used[f])
            continue;
        vp_buf_printf(out, "<dt id=\"%s\">%s <span class=\"soft\">(%s)</span></dt>\n",
                      anchor(out->arena, prefix, formula),
                      vp_markup_text(out->arena, vp_formula_id(formula)),
                      vp_confidence_name(vp_formula_kind(formula)));
        vp_buf_printf(out, "<dd><code>%s</code><br>from: %s<br>leaves out: %s</dd>\n",
                      vp_markup_text(out->arena, vp_formula_expression(formula)),
                      vp_markup_text(out->arena, vp_formula_source(formula)),
                      vp_markup_text(out->arena, vp_formula_leaves_out(formula)));
    }
    vp_buf_add(out, "</dl>\n");
}

void vp_html_ledger(struct vp_buf *out, const struct vp_html_plan *plan, const char *prefix) {
    vp_html_section(out, plan, "Ledger");
    for (uint32_t i = 0; i < plan->result->device_count; i++)
        device(out, plan->result, i, prefix);
    formulas(out, plan, prefix);
}
