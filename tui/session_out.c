/* What leaves a session: the command line, the scenario, reports. */
#include <string.h>

#include "api/answers.h"
#include "api/plan_command.h"
#include "api/scenario_yaml.h"
#include "api/slo.h"
#include "planner/base/text.h"
#include "planner/plan/plan.h"
#include "reports/html_report.h"
#include "reports/report.h"
#include "reports/words.h"
#include "tui/session_parts.h"

/* ---- the command ---- */

size_t vp_session_all(const struct vp_session *session, struct vp_arena *arena,
                      const struct vp_setting **out) {
    const struct vp_setting *changes;
    size_t count = vp_session_changes(session, &changes), total = 0;
    struct vp_setting *all =
        VP_NEW_ARRAY(arena, session->setting_count + count + 1, struct vp_setting);

    for (size_t i = 0; i < session->setting_count; i++) {
        bool replaced = false;
        for (size_t k = 0; k < count; k++)
            replaced |= vp_text_eq(session->settings[i].path, changes[k].path);
        if (!replaced)
            all[total++] = session->settings[i];
    }
    for (size_t k = 0; k < count; k++)
        all[total++] = changes[k];
    *out = all;
    return total;
}

const char *vp_session_command(struct vp_session *session) {
    struct vp_session_details *d = &session->details;
    const struct vp_setting *all;

    if (!d->command) {
        size_t count = vp_session_all(session, &d->arena, &all);
        d->command = vp_plan_command(&d->arena, session->input, all, count);
    }
    return d->command;
}

/* ---- exports ---- */

static const struct {
    const char *name, *ending;
} FORMS[VP_EXPORT_COUNT] = {
    [VP_EXPORT_YAML] = {"yaml", ".yaml"},       [VP_EXPORT_JSON] = {"json", ".json"},
    [VP_EXPORT_MARKDOWN] = {"markdown", ".md"}, [VP_EXPORT_HTML] = {"html", ".html"},
    [VP_EXPORT_TEXT] = {"text", ".txt"},        [VP_EXPORT_CSV] = {"csv", ".csv"}};

const char *vp_export_name(enum vp_export form) { return FORMS[form].name; }

enum vp_export vp_export_of_path(const char *path) {
    enum vp_export form = 0;
    if (vp_text_ends(path, ".yml"))
        return VP_EXPORT_YAML;
    while (form < VP_EXPORT_COUNT && !vp_text_ends(path, FORMS[form].ending))
        form++;
    return form;
}

const char *vp_session_export_path(struct vp_session *session, enum vp_export form) {
    struct vp_arena *arena = &session->details.arena;
    const char *name = vp_session_plan(session)->scenario->name;
    char *stem = vp_arena_text(arena, name ? name : "plan", strlen(name ? name : "plan"));

    for (char *p = stem; *p; p++) /* a name may be anything, such as a hub's "org/model" */
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
              *p == '-' || *p == '_' || (*p == '.' && p > stem)))
            *p = '-';
    return vp_arena_printf(arena, "%s%s", *stem ? stem : "plan", FORMS[form].ending);
}

/* The plan with its suggestions, as the command prints it. */
static const struct vp_result *full_plan(struct vp_session *session, struct vp_ctx *ctx) {
    const struct vp_setting *changes;
    size_t count = vp_session_changes(session, &changes);
    struct vp_result *plan = VP_NEW(ctx->arena, struct vp_result);
    const struct vp_scenario *scenario;

    if (vp_variants_make(session->variants, ctx, &scenario, changes, count) != VP_OK ||
        vp_plan_run(ctx, plan, scenario) != VP_OK)
        return NULL;
    vp_slo_note(ctx, plan);
    return plan;
}

/* With the pictures that need no search. */
static void render_html(struct vp_buf *out, const struct vp_result *plan, const char *command) {
    struct vp_html_plan page = {.name = vp_words_model(plan->scenario),
                                .result = plan,
                                .diags = plan->diags,
                                .command = command};
    struct vp_html_report report = {.plan = &page, .count = 1, .version = VP_VERSION};
    struct vp_timeline timeline;

    if (plan->scenario->name && *plan->scenario->name)
        page.name = plan->scenario->name;
    page.chart[VP_PLAN_BREAKDOWN] = vp_chart_breakdown(out->arena, plan);
    if (plan->training.stage && vp_timeline_make(out->arena, &timeline, plan, plan->training.worst))
        page.chart[VP_PLAN_TIMELINE] = vp_chart_timeline(out->arena, &timeline);
    vp_report_html(out, &report);
}

static void render_report(struct vp_buf *out, const struct vp_result *plan, enum vp_export form,
                          const char *command) {
    struct vp_report_options options = {.utf8 = true};
    struct vp_json json = vp_json_begin(out);

    switch (form) {
    case VP_EXPORT_JSON:
        vp_report_json(&json, plan);
        vp_buf_add(out, "\n");
        break;
    case VP_EXPORT_MARKDOWN:
        vp_report_markdown(out, plan);
        break;
    case VP_EXPORT_TEXT:
        vp_report_text(out, plan, &options);
        break;
    case VP_EXPORT_CSV:
        vp_report_csv_header(out);
        vp_report_csv_row(out, plan);
        break;
    case VP_EXPORT_HTML:
        render_html(out, plan, command);
        break;
    case VP_EXPORT_YAML:
    case VP_EXPORT_COUNT:
        break;
    }
}

enum vp_status vp_session_render(struct vp_session *session, struct vp_buf *out,
                                 enum vp_export form, const char *path) {
    struct vp_diags *diags = VP_NEW(out->arena, struct vp_diags);
    struct vp_ctx ctx = vp_session_ctx(session, out->arena, diags);
    const struct vp_setting *changes;
    size_t count = vp_session_changes(session, &changes);

    if (form == VP_EXPORT_YAML)
        return vp_scenario_yaml(&ctx, out, session->variants, changes, count, path);
    const struct vp_result *plan = full_plan(session, &ctx);
    if (!plan)
        return VP_ERR_INPUT;
    render_report(out, plan, form, vp_session_command(session));
    return VP_OK;
}

void vp_session_exported(struct vp_session *session, const char *path, const char *fault) {
    struct vp_buf text = {.arena = &session->details.arena};

    vp_buf_printf(&text, fault ? "%s was not written: %s" : "written: %s", path, fault);
    if (!fault && vp_export_of_path(path) == VP_EXPORT_YAML)
        session->saved = session->at;
    vp_session_say(session, fault ? VP_ERROR : VP_INFO, vp_buf_text(&text));
}
