#include "reports/html_report.h"

#include <inttypes.h>

#include "planner/base/diag.h"
#include "planner/base/units.h"
#include "reports/html_page.h"
#include "reports/markup.h"
#include "reports/overview.h"
#include "reports/report.h"
#include "reports/words.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

void vp_html_section(struct vp_buf *out, const struct vp_html_plan *plan, const char *text) {
    vp_html_heading(out, plan->level, NULL, text);
}

void vp_html_plan_chart(struct vp_buf *out, const struct vp_html_plan *plan,
                        enum vp_plan_chart which, const char *prefix) {
    if (plan->chart[which])
        vp_html_chart(out, plan->chart[which],
                      vp_arena_printf(out->arena, "%s-%s", prefix, plan->chart[which]->name));
}

/* ---- the head of a plan ---- */

static void verdict(struct vp_buf *out, const struct vp_result *result) {
    struct vp_arena *arena = out->arena;
    const char *weights = vp_words_weights_alone(arena, result);
    vp_buf_printf(out, "<p class=\"verdict\"><span class=\"%s\">%s</span>: %s</p>\n",
                  vp_verdict_name(result->verdict), vp_words_verdict(result->verdict),
                  vp_markup_text(arena, vp_words_need(arena, result)));
    vp_html_paragraph(out, NULL, vp_chart_assumptions(arena, result));
    if (result->verdict != VP_FITS && result->reason_text && *result->reason_text)
        vp_html_paragraph(out, NULL, result->reason_text);
    if (weights)
        vp_html_paragraph(out, NULL, weights);
}

/* ---- the end of a plan ---- */

static const char *costs(struct vp_arena *arena, const struct vp_suggestion *s) {
    const struct {
        const char *name, *text;
    } COSTS[] = {{"quality", s->quality}, {"speed", s->speed}, {"money", s->money}};
    struct vp_buf out = {.arena = arena};
    for (size_t i = 0; i < COUNT(COSTS); i++)
        if (COSTS[i].text && *COSTS[i].text)
            vp_buf_printf(&out, "%s%s: %s", out.size ? "; " : "", COSTS[i].name, COSTS[i].text);
    return vp_buf_text(&out);
}

static const char *patch(struct vp_arena *arena, const struct vp_suggestion *s) {
    if (!s->patch_field)
        return "";
    return vp_arena_printf(
        arena, "--set %s=%s%s", s->patch_field, s->patch_value ? s->patch_value : "",
        s->patch_count ? vp_arena_printf(arena, " --set hardware.count=%" PRIu64, s->patch_count)
                       : "");
}

static void suggestions(struct vp_buf *out, const struct vp_html_plan *plan) {
    const struct vp_result *result = plan->result;
    static const char *const HEADS[] = {"change", "from",          "to",          "#needs, GiB",
                                        "#spare", "what it costs", "as an option"};
    if (result->suggestion_count == 0)
        return;
    vp_html_section(out, plan, "Suggestions");
    vp_html_table_begin(out, "Changes, each on its own; GiB of the fullest device", HEADS,
                        COUNT(HEADS));
    for (uint32_t i = 0; i < result->suggestion_count; i++) {
        const struct vp_suggestion *s = &result->suggestions[i];
        vp_html_row_begin(out, NULL);
        vp_html_head_cell(out, s->change, NULL);
        vp_html_cell(out, s->from);
        vp_html_cell(out, s->to);
        vp_html_bytes(out, s->need_bytes);
        vp_html_signed_bytes(out, s->headroom_bytes);
        vp_html_cell(out, costs(out->arena, s));
        vp_html_cell(out, patch(out->arena, s));
        vp_html_row_end(out);
    }
    vp_html_table_end(out);
}

static void assumptions(struct vp_buf *out, const struct vp_html_plan *plan) {
    const struct vp_result *result = plan->result;
    static const char *const HEADS[] = {"field", "value", "from", "why"};
    if (result->assumption_count == 0)
        return;
    vp_html_section(out, plan, "Assumed, not said");
    vp_html_table_begin(out, "Every value that the scenario does not give", HEADS, COUNT(HEADS));
    for (uint32_t i = 0; i < result->assumption_count; i++) {
        const struct vp_assumption *a = &result->assumptions[i];
        vp_html_row_begin(out, NULL);
        vp_html_head_cell(out, a->field, NULL);
        vp_html_cell(out, a->value);
        vp_html_cell(out, vp_origin_name(a->origin));
        vp_html_cell(out, a->why);
        vp_html_row_end(out);
    }
    vp_html_table_end(out);
}

static void diagnostics(struct vp_buf *out, const struct vp_html_plan *plan,
                        const struct vp_diags *diags) {
    static const char *const HEADS[] = {"id", "kind", "where", "message", "what to do"};
    if (!diags || diags->count == 0)
        return;
    vp_html_section(out, plan, "Diagnostics");
    vp_html_table_begin(out, "What the planner found in the input", HEADS, COUNT(HEADS));
    for (uint32_t i = 0; i < diags->count; i++) {
        const struct vp_diag *diag = &diags->items[i];
        vp_html_row_begin(out, NULL);
        vp_html_head_cell(out, vp_diag_code(diag->id), NULL);
        vp_html_cell(out, vp_severity_name(vp_diag_severity(diag->id)));
        vp_html_cell(out, vp_words_position(out->arena, &diag->pos));
        vp_html_cell(out, diag->message);
        vp_html_cell(out, diag->hint);
        vp_html_row_end(out);
    }
    vp_html_table_end(out);
}

static void say_profile(struct vp_buf *out, const char *what, const char *name) {
    if (name && *name)
        vp_buf_printf(out, "<li>%s: %s</li>\n", what, vp_markup_text(out->arena, name));
}

static void reproduction(struct vp_buf *out, const struct vp_html_plan *plan, const char *version) {
    const struct vp_scenario *s = plan->result->scenario;
    vp_html_section(out, plan, "How to make it again");
    vp_buf_printf(out, "<pre>%s</pre>\n<ul>\n", vp_markup_text(out->arena, plan->command));
    vp_buf_printf(out, "<li>vramplan %s</li>\n", vp_markup_text(out->arena, version));
    say_profile(out, "profile of the GPU", s->hardware.count ? s->hardware.gpu.id : NULL);
    say_profile(out, "rules of the engine",
                vp_arena_printf(out->arena, "%s %s", s->engine.name,
                                s->engine.version_text ? s->engine.version_text : ""));
    if (s->calibration)
        say_profile(out, "calibration", s->calibration);
    else if (s->measured_gpu)
        say_profile(out, "calibration",
                    vp_arena_printf(out->arena, "the one shipped for %s", s->measured_gpu->gpu));
    vp_buf_add(out, "</ul>\n");
}

/* ---- plans ---- */

static void plan_section(struct vp_buf *out, const struct vp_html_report *report, uint32_t index) {
    const struct vp_html_plan *plan = &report->plan[index];
    const char *prefix = vp_arena_printf(out->arena, "p%" PRIu32, index + 1);
    vp_buf_add(out, "<section>\n");
    vp_html_heading(out, report->count > 1 ? 2 : 1, prefix, plan->name);
    if (!plan->result) {
        vp_buf_add(out, "<p class=\"verdict\"><span class=\"does-not-fit\">NOT PLANNED</span>: the "
                        "input has faults</p>\n");
        diagnostics(out, plan, plan->diags);
        vp_buf_add(out, "</section>\n");
        return;
    }
    verdict(out, plan->result);
    vp_html_memory(out, plan, prefix);
    vp_html_times(out, plan, prefix);
    suggestions(out, plan);
    assumptions(out, plan);
    diagnostics(out, plan, plan->result->diags);
    vp_html_ledger(out, plan, prefix);
    reproduction(out, plan, report->version);
    vp_buf_add(out, "</section>\n");
}

static void overview(struct vp_buf *out, const struct vp_html_report *report) {
    const char *cell[VP_OVERVIEW_COLUMNS];
    vp_html_heading(out, 1, NULL, "Memory plans");
    vp_html_table_begin(out, "All plans; figures of the fullest device of each", vp_overview_heads,
                        VP_OVERVIEW_COLUMNS);
    for (uint32_t i = 0; i < report->count; i++) {
        const struct vp_html_plan *plan = &report->plan[i];
        vp_overview_row(out->arena, cell, plan->name, plan->result);
        vp_html_row_begin(out, NULL);
        vp_html_head_cell(out, cell[0], vp_arena_printf(out->arena, "#p%" PRIu32, i + 1));
        for (int c = 1; c < VP_OVERVIEW_COLUMNS; c++)
            if (vp_overview_heads[c][0] == '#')
                vp_html_number(out, cell[c]);
            else
                vp_html_cell(out, cell[c]);
        vp_html_row_end(out);
    }
    vp_html_table_end(out);
    if (report->overview)
        vp_html_chart(out, report->overview, "all-breakdown");
}

void vp_report_html(struct vp_buf *out, struct vp_html_report *report) {
    vp_html_begin(out, report->count == 1
                           ? vp_arena_printf(out->arena, "%s: memory plan", report->plan[0].name)
                           : "Memory plans");
    if (report->count > 1)
        overview(out, report);
    for (uint32_t i = 0; i < report->count; i++) {
        report->plan[i].level = report->count > 1 ? 3 : 2; /* below the plan's name */
        plan_section(out, report, i);
    }
    vp_html_end(out);
}
