/* report: plans as documents. Several forms may be written in one run; all show the same results.
 */
#include <string.h>

#include "api/answers.h"
#include "api/plan_command.h"
#include "cli/args.h"
#include "cli/output.h"
#include "cli/plan_charts.h"
#include "reports/html_report.h"
#include "reports/markdown_text.h"
#include "reports/overview.h"
#include "reports/report.h"
#include "reports/words.h"

enum form { FORM_HTML, FORM_MARKDOWN, FORM_CSV, FORM_JSON, FORM_TEXT };

struct job {
    struct vp_ctx *ctx;
    const struct vp_args *args;
    struct vp_answers answers;
    struct vp_html_plan *plan; /* one for each answer */
};

/* ---- what each plan is called, and how it is made again ---- */

static const char *name_of(const struct vp_answer *answer) {
    const char *name = answer->scenario;
    if (answer->result && !(name && *name))
        name = vp_words_model(answer->result->scenario);
    return name && *name ? name : answer->input;
}

static bool shares_input(const struct vp_answers *answers, size_t index) {
    for (size_t i = 0; i < answers->count; i++)
        if (i != index && vp_text_eq(answers->items[i].input, answers->items[index].input))
            return true;
    return false;
}

/* "FILE#name" where a file holds several; what was typed elsewhere. */
static const char *input_of(struct vp_ctx *ctx, const struct vp_answers *answers, size_t index) {
    const struct vp_answer *answer = &answers->items[index];
    if (!answer->scenario || strchr(answer->input, '#') || !shares_input(answers, index))
        return answer->input;
    return vp_arena_printf(ctx->arena, "%s#%s", answer->input, answer->scenario);
}

static void name_plans(struct job *job) {
    const struct vp_args *args = job->args;
    job->plan = VP_NEW_ARRAY(job->ctx->arena, job->answers.count, struct vp_html_plan);
    for (size_t i = 0; i < job->answers.count; i++) {
        const struct vp_answer *answer = &job->answers.items[i];
        job->plan[i] = (struct vp_html_plan){
            .name = name_of(answer),
            .result = answer->result,
            .diags = answer->diags,
            .command = vp_plan_command(job->ctx->arena, input_of(job->ctx, &job->answers, i),
                                       args->settings, args->setting_count)};
    }
}

/* ---- forms ---- */

static void draw_charts(struct job *job) {
    for (size_t i = 0; i < job->answers.count; i++)
        for (enum vp_plan_chart c = 0; job->plan[i].result && c < VP_PLAN_CHARTS; c++) {
            const char *why;
            job->plan[i].chart[c] =
                vp_plan_chart(job->ctx, c, job->plan[i].result,
                              input_of(job->ctx, &job->answers, i), job->args, &why);
        }
}

static void html(struct vp_buf *out, struct job *job) {
    struct vp_html_report report = {
        .plan = job->plan, .count = (uint32_t)job->answers.count, .version = VP_VERSION};
    draw_charts(job);
    if (report.count > 1)
        report.overview = vp_plan_chart_of_all(job->ctx, &job->answers);
    vp_report_html(out, &report);
}

static void markdown_overview(struct vp_buf *out, const struct job *job) {
    const char *cell[VP_OVERVIEW_COLUMNS];
    for (int c = 0; c < VP_OVERVIEW_COLUMNS; c++)
        vp_buf_printf(out, "| %s ", vp_overview_heads[c] + (vp_overview_heads[c][0] == '#'));
    vp_buf_add(out, "|\n");
    for (int c = 0; c < VP_OVERVIEW_COLUMNS; c++)
        vp_buf_add(out, vp_overview_heads[c][0] == '#' ? "|---:" : "|---");
    vp_buf_add(out, "|\n");
    for (size_t i = 0; i < job->answers.count; i++) {
        vp_overview_row(out->arena, cell, job->plan[i].name, job->plan[i].result);
        for (int c = 0; c < VP_OVERVIEW_COLUMNS; c++)
            vp_buf_printf(out, "| %s ", vp_markdown_text(out->arena, cell[c]));
        vp_buf_add(out, "|\n");
    }
    vp_buf_add(out, "\n");
}

static void markdown(struct vp_buf *out, const struct job *job) {
    if (job->answers.count > 1)
        markdown_overview(out, job);
    for (size_t i = 0; i < job->answers.count; i++) {
        const struct vp_html_plan *plan = &job->plan[i];
        if (!plan->result)
            continue;
        vp_report_markdown(out, plan->result);
        vp_buf_printf(out, "\nMade by vramplan " VP_VERSION ":\n\n```sh\n%s\n```\n%s",
                      vp_text_clean(out->arena, plan->command, true),
                      i + 1 < job->answers.count ? "\n" : "");
    }
}

static void csv(struct vp_buf *out, const struct job *job) {
    vp_report_csv_header(out);
    for (size_t i = 0; i < job->answers.count; i++)
        if (job->plan[i].result)
            vp_report_csv_row(out, job->plan[i].result);
}

static void text(struct vp_buf *out, const struct job *job) {
    struct vp_report_options options = vp_output_options(job->args);

    options.heading = job->answers.count > 1;
    for (size_t i = 0, n = 0; i < job->answers.count; i++)
        if (job->plan[i].result) {
            vp_buf_add(out, n++ ? "\n" : "");
            vp_report_text(out, job->plan[i].result, &options);
        }
}

static enum vp_exit write(struct job *job, enum form form, const char *path) {
    struct vp_buf out = {.arena = job->ctx->arena};
    switch (form) {
    case FORM_HTML:
        html(&out, job);
        break;
    case FORM_MARKDOWN:
        markdown(&out, job);
        break;
    case FORM_CSV:
        csv(&out, job);
        break;
    case FORM_JSON:
        vp_answers_json(&out, &job->answers);
        break;
    case FORM_TEXT:
        text(&out, job);
        break;
    }
    return vp_exit_of_status(vp_output_write(job->ctx, &out, path));
}

/* ---- the command ---- */

static const struct {
    enum vp_option option;
    enum form form;
} FILES[] = {
    {VP_OPTION_HTML, FORM_HTML}, {VP_OPTION_MARKDOWN, FORM_MARKDOWN}, {VP_OPTION_CSV, FORM_CSV}};
enum { FILE_COUNT = sizeof FILES / sizeof FILES[0] };

/* Of -o and standard output: as --format says, else as the file's name does. */
static enum form form_of_output(const struct vp_args *args) {
    const char *path = args->value[VP_OPTION_OUTPUT];
    if (args->value[VP_OPTION_FORMAT])
        return args->format == VP_FORMAT_JSON   ? FORM_JSON
               : args->format == VP_FORMAT_CSV  ? FORM_CSV
               : args->format == VP_FORMAT_TEXT ? FORM_TEXT
                                                : FORM_MARKDOWN;
    if (path && (vp_text_ends(path, ".html") || vp_text_ends(path, ".htm")))
        return FORM_HTML;
    if (path && vp_text_ends(path, ".csv"))
        return FORM_CSV;
    return path && vp_text_ends(path, ".json") ? FORM_JSON : FORM_MARKDOWN;
}

static enum vp_exit write_all(struct job *job) {
    const struct vp_args *args = job->args;
    enum vp_exit code = VP_EXIT_YES;
    bool any = false;
    for (int i = 0; i < (int)FILE_COUNT; i++)
        if (args->value[FILES[i].option]) {
            any = true;
            code = vp_exit_of_both(code, write(job, FILES[i].form, args->value[FILES[i].option]));
        }
    if (!any || args->value[VP_OPTION_OUTPUT] || args->value[VP_OPTION_FORMAT])
        code =
            vp_exit_of_both(code, write(job, form_of_output(args), args->value[VP_OPTION_OUTPUT]));
    return code;
}

int vp_cmd_report(struct vp_ctx *ctx, const struct vp_args *args) {
    struct job job = {.ctx = ctx, .args = args};
    struct vp_diags *all = VP_NEW(ctx->arena, struct vp_diags);
    all->arena = ctx->arena;
    for (size_t i = 0; i < args->operand_count; i++)
        vp_answers_add(ctx, &job.answers, args->operands[i], args->settings, args->setting_count);
    for (size_t i = 0; i < job.answers.count; i++)
        vp_diags_merge(all, job.answers.items[i].diags);
    vp_output_diagnostics(ctx, all, args->value[VP_OPTION_VERBOSE] ? VP_INFO : VP_ERROR, args);
    enum vp_exit code = vp_answers_exit(&job.answers);
    if (!vp_answers_have_result(&job.answers) && args->format != VP_FORMAT_JSON)
        return (int)code; /* nothing to write: a file of an earlier run stays */
    name_plans(&job);
    return (int)vp_exit_of_both(code, write_all(&job));
}
