/* timeline: one training step over time, as text, table, trace and drawing. */
#include <inttypes.h>

#include "api/answers.h"
#include "cli/args.h"
#include "cli/output.h"
#include "cli/plot.h"
#include "planner/base/text.h"
#include "planner/base/units.h"
#include "reports/charts.h"
#include "reports/timeline_report.h"

/* ---- the question ---- */

static void check_options(struct vp_ctx *ctx, const struct vp_args *args) {
    vp_plot_check(ctx, args);
    if (args->format == VP_FORMAT_MARKDOWN)
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                    "'timeline' has no --format markdown; text, json and csv");
}

/* The stage asked for; else the one with the least room. */
static bool find_stage(struct vp_ctx *ctx, uint32_t *out, const struct vp_args *args,
                       const struct vp_result *result) {
    uint64_t stage;

    *out = result->training.worst;
    if (!args->value[VP_OPTION_STAGE])
        return true;
    if (vp_parse_u64(&stage, args->value[VP_OPTION_STAGE]) && stage < result->training.stages) {
        *out = (uint32_t)stage;
        return true;
    }
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                "--stage is a pipeline stage from 0 to %" PRIu32 ", not '%s'",
                result->training.stages - 1, args->value[VP_OPTION_STAGE]);
    return false;
}

/* A plan of exactly one scenario, which trains. Its diagnostics become the run's. */
static enum vp_status plan(struct vp_ctx *ctx, const struct vp_result **out,
                           const struct vp_args *args) {
    enum vp_status status = vp_answers_one(ctx, out, "timeline", args->operands[0], args->settings,
                                           args->setting_count);
    if (status != VP_OK)
        return status;
    if ((*out)->training.stage)
        return VP_OK;
    vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, NULL, "'%s' has nothing to train, so no step",
                args->operands[0]);
    vp_diag_hint(ctx->diags, "a `train:` block in the scenario says what is trained");
    return VP_ERR_INPUT;
}

/* ---- files ---- */

/* All files that can be written are, whatever happens to the others. */
static enum vp_exit write_files(struct vp_ctx *ctx, const struct vp_args *args,
                                const struct vp_timeline *timeline) {
    enum vp_exit code = VP_EXIT_YES;

    if (args->value[VP_OPTION_CSV]) {
        struct vp_buf csv = {.arena = ctx->arena};
        vp_timeline_csv(&csv, timeline);
        code = vp_exit_of_both(
            code, vp_exit_of_status(vp_output_write(ctx, &csv, args->value[VP_OPTION_CSV])));
    }
    if (args->value[VP_OPTION_CHROME_TRACE]) {
        struct vp_buf trace = {.arena = ctx->arena};
        vp_timeline_trace(&trace, timeline);
        code = vp_exit_of_both(code, vp_exit_of_status(vp_output_write(
                                         ctx, &trace, args->value[VP_OPTION_CHROME_TRACE])));
    }
    return code;
}

/* ---- the command ---- */

static void render(struct vp_buf *out, const struct vp_args *args,
                   const struct vp_timeline *timeline) {
    struct vp_report_options options = vp_output_options(args);
    struct vp_json json = vp_json_begin(out);

    switch (args->format) {
    case VP_FORMAT_JSON:
        vp_timeline_json(&json, timeline);
        vp_buf_add(out, "\n");
        break;
    case VP_FORMAT_CSV:
        vp_timeline_csv(out, timeline);
        break;
    case VP_FORMAT_MARKDOWN: /* refused before */
    case VP_FORMAT_TEXT:
        vp_timeline_text(out, timeline, &options);
        break;
    }
}

int vp_cmd_timeline(struct vp_ctx *ctx, const struct vp_args *args) {
    uint32_t errors = ctx->diags->errors, stage;
    const struct vp_result *result = NULL;
    struct vp_timeline timeline;
    struct vp_buf out = {.arena = ctx->arena};

    check_options(ctx, args);
    enum vp_status status = plan(ctx, &result, args);
    if (status == VP_OK && (!find_stage(ctx, &stage, args, result) || ctx->diags->errors > errors))
        status = VP_ERR_INPUT;
    if (status != VP_OK)
        return vp_output_failure(ctx, args, status);
    if (!vp_timeline_make(ctx->arena, &timeline, result, stage)) {
        vp_diag_add(ctx->diags, VP_D_OVERFLOW, NULL, "the step of stage %" PRIu32 " is too large",
                    stage);
        return vp_output_failure(ctx, args, VP_ERR_INPUT);
    }
    enum vp_exit code = write_files(ctx, args, &timeline);
    render(&out, args, &timeline);
    code = vp_exit_of_both(
        code, vp_exit_of_status(vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT])));
    if (args->value[VP_OPTION_PLOT])
        code = vp_exit_of_both(code, vp_exit_of_status(vp_plot_draw(
                                         ctx, args, vp_chart_timeline(ctx->arena, &timeline),
                                         args->format != VP_FORMAT_TEXT)));
    return (int)code;
}
