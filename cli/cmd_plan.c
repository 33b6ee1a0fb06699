/* plan and explain: inputs -> results -> one document in the format asked for. */
#include "api/answers.h"
#include "cli/args.h"
#include "cli/emit.h"
#include "cli/output.h"
#include "cli/plan_charts.h"
#include "cli/plot.h"
#include "reports/report.h"

/* ---- rendering ---- */

static void render_csv(struct vp_buf *out, const struct vp_answers *answers) {
    vp_report_csv_header(out);
    for (size_t i = 0; i < answers->count; i++)
        if (answers->items[i].result)
            vp_report_csv_row(out, answers->items[i].result);
}

static void render_text(struct vp_buf *out, const struct vp_answers *answers,
                        const struct vp_args *args, bool explain) {
    struct vp_report_options options = vp_output_options(args);
    bool first = true;

    options.heading = answers->count > 1;
    for (size_t i = 0; i < answers->count; i++) {
        if (!answers->items[i].result)
            continue;
        if (!first)
            vp_buf_add(out, "\n");
        first = false;
        if (explain)
            vp_report_explain(out, answers->items[i].result, &options);
        else
            vp_report_text(out, answers->items[i].result, &options);
    }
}

static void render_markdown(struct vp_buf *out, const struct vp_answers *answers) {
    bool first = true;
    for (size_t i = 0; i < answers->count; i++) {
        if (!answers->items[i].result)
            continue;
        if (!first)
            vp_buf_add(out, "\n");
        first = false;
        vp_report_markdown(out, answers->items[i].result);
    }
}

static void render(struct vp_buf *out, const struct vp_answers *answers, const struct vp_args *args,
                   bool explain) {
    switch (args->format) {
    case VP_FORMAT_JSON:
        vp_answers_json(out, answers);
        break;
    case VP_FORMAT_CSV:
        render_csv(out, answers);
        break;
    case VP_FORMAT_MARKDOWN:
        render_markdown(out, answers);
        break;
    case VP_FORMAT_TEXT:
        render_text(out, answers, args, explain);
        break;
    }
}

/* ---- the command ---- */

/* Errors always. The result of every format but CSV holds the others; -v shows them here too. */
static void show_diagnostics(struct vp_ctx *ctx, const struct vp_answers *answers,
                             const struct vp_args *args) {
    enum vp_severity least = args->value[VP_OPTION_VERBOSE]  ? VP_INFO
                             : args->format == VP_FORMAT_CSV ? VP_WARNING
                                                             : VP_ERROR;
    struct vp_diags *all = VP_NEW(ctx->arena, struct vp_diags); /* each told once */
    all->arena = ctx->arena;
    for (size_t i = 0; i < answers->count; i++)
        vp_diags_merge(all, answers->items[i].diags);
    vp_output_diagnostics(ctx, all, least, args);
}

/* The drawing of the answers, behind them. */
static enum vp_exit plot(struct vp_ctx *ctx, const struct vp_args *args,
                         const struct vp_answers *answers) {
    const struct vp_chart *chart = vp_plan_chart_asked(ctx, answers, args);
    return vp_exit_of_status(chart ? vp_plot_draw(ctx, args, chart, args->format != VP_FORMAT_TEXT)
                                   : VP_ERR_INPUT);
}

static int run(struct vp_ctx *ctx, const struct vp_args *args, bool explain) {
    struct vp_answers answers = {0};
    struct vp_buf out = {.arena = ctx->arena};
    if (!vp_plan_chart_check(ctx, args))
        return vp_output_failure(ctx, args, VP_ERR_INPUT);
    for (size_t i = 0; i < args->operand_count; i++)
        vp_answers_add(ctx, &answers, args->operands[i], args->settings, args->setting_count);
    enum vp_exit code = vp_answers_exit(&answers);
    show_diagnostics(ctx, &answers, args);
    if (!vp_answers_have_result(&answers) && args->format != VP_FORMAT_JSON)
        return (int)code; /* nothing to write: a file of an earlier run stays */
    render(&out, &answers, args, explain);
    enum vp_status status = vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT]);
    code = vp_exit_of_both(code, vp_exit_of_status(status));
    if (args->value[VP_OPTION_PLOT] && vp_answers_have_result(&answers))
        code = vp_exit_of_both(code, plot(ctx, args, &answers));
    return (int)code;
}

/* Only the verdict is wanted: notes of the plan are not shown. */
static enum vp_exit verdict_of(struct vp_ctx *ctx, const struct vp_scenario *scenario) {
    struct vp_ctx quiet = *ctx;
    struct vp_result *result = VP_NEW(ctx->arena, struct vp_result);
    quiet.diags = VP_NEW(ctx->arena, struct vp_diags);
    quiet.diags->arena = ctx->arena;
    enum vp_status status = vp_plan_run(&quiet, result, scenario);
    if (status == VP_OK)
        return vp_exit_of_verdict(result->verdict);
    vp_diags_merge(ctx->diags, quiet.diags);
    return vp_exit_of_status(status);
}

/* --emit: the set-up itself in place of the report; the exit code is still the verdict's. */
static int run_emit(struct vp_ctx *ctx, const struct vp_args *args) {
    struct vp_variants *variants = NULL;
    struct vp_buf out = {.arena = ctx->arena};
    if (args->operand_count > 1) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--emit takes one input");
        return vp_output_failure(ctx, args, VP_ERR_INPUT);
    }
    enum vp_status status =
        vp_variants_open(ctx, &variants, args->operands[0], args->settings, args->setting_count);
    if (status == VP_OK)
        status = vp_emit(ctx, &out, args->value[VP_OPTION_EMIT], variants, NULL, 0,
                         vp_variants_base(variants));
    int code;
    if (status == VP_OK) {
        vp_output_own_diagnostics(ctx, VP_INFO, args);
        enum vp_exit verdict = verdict_of(ctx, vp_variants_base(variants));
        status = vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT]);
        code = (int)vp_exit_of_both(verdict, vp_exit_of_status(status));
    } else {
        code = vp_output_failure(ctx, args, status);
    }
    vp_variants_close(variants);
    return code;
}

int vp_cmd_plan(struct vp_ctx *ctx, const struct vp_args *args) {
    if (args->value[VP_OPTION_EMIT])
        return run_emit(ctx, args);
    return run(ctx, args, args->value[VP_OPTION_EXPLAIN]);
}

int vp_cmd_explain(struct vp_ctx *ctx, const struct vp_args *args) { return run(ctx, args, true); }
