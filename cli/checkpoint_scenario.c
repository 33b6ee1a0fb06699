#include "cli/checkpoint_scenario.h"

#include <inttypes.h>

#include "cli/output.h"
#include "cli/plot.h"
#include "cli/scenario_report.h"
#include "planner/base/units.h"
#include "reports/charts.h"
#include "reports/recompute_emit.h"

/* ---- the question ---- */

struct question {
    const struct vp_scenario *scenario;
    uint64_t budget_bytes;         /* 0: the device's */
    enum vp_framework emit;        /* VP_FRAMEWORK_COUNT: a report */
    enum vp_recompute_class class; /* CLASSES: the one of the best plans */
};

static void read_options(struct vp_ctx *ctx, struct question *out, const struct vp_args *args) {
    *out = (struct question){.emit = VP_FRAMEWORK_COUNT, .class = VP_PLACE_CLASSES};
    if (args->value[VP_OPTION_BUDGET] &&
        (!vp_parse_size(&out->budget_bytes, args->value[VP_OPTION_BUDGET]) || !out->budget_bytes)) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--budget is a size, not '%s'",
                    args->value[VP_OPTION_BUDGET]);
        vp_diag_hint(ctx->diags, "such as \"24 GiB\": what a device has for all of the process");
    }
    if (args->value[VP_OPTION_EMIT])
        out->emit = vp_framework_find(args->value[VP_OPTION_EMIT]);
    if (args->value[VP_OPTION_EMIT] && out->emit == VP_FRAMEWORK_COUNT) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "'checkpoint' has no plan for %s",
                    args->value[VP_OPTION_EMIT]);
        vp_diag_hint(ctx->diags, "pytorch, hf, torchtune, megatron, primus, deepspeed or vramplan");
    }
    if (args->value[VP_OPTION_INFLIGHT])
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                    "--inflight goes with --chain; of a scenario it follows from the schedule");
    vp_plot_check(ctx, args);
    for (enum vp_recompute_class c = 0; args->value[VP_OPTION_CLASS] && c < VP_PLACE_CLASSES; c++)
        if (vp_text_eq(args->value[VP_OPTION_CLASS], vp_recompute_class_name(c)))
            out->class = c;
    if (args->value[VP_OPTION_CLASS] && !args->value[VP_OPTION_FRONTIER] &&
        !args->value[VP_OPTION_PLOT])
        vp_diag_add(
            ctx->diags, VP_D_BAD_OPTION, NULL,
            "--class of a scenario goes with --frontier or --plot: the report has them all");
}

/* Exactly one scenario. Its diagnostics become the run's. */
static enum vp_status read_scenario(struct vp_ctx *ctx, struct question *out,
                                    const struct vp_args *args) {
    const struct vp_result *result;
    if (args->operand_count != 1) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "'checkpoint' wants one scenario");
        return VP_ERR_INPUT;
    }
    enum vp_status status = vp_answers_one(ctx, &result, "checkpoint", args->operands[0],
                                           args->settings, args->setting_count);
    if (status != VP_OK)
        return status;
    out->scenario = result->scenario;
    return VP_OK;
}

/* ---- files ---- */

/* Time against memory of the stage with the least room, for all budgets. */
static void find_frontier(struct vp_ctx *ctx, struct vp_frontier *out, const struct question *q,
                          const struct vp_recompute_report *report) {
    const struct vp_train_chain *chain = &report->problem.stage[report->stage].chain;
    bool several = chain->in_flight > 1;
    enum vp_recompute_class class = several ? VP_PLACE_PIPELINE : VP_PLACE_JOINT;
    if (q->class != VP_PLACE_CLASSES)
        class = q->class;
    *out = (struct vp_frontier){0};
    if (several && class != VP_PLACE_PIPELINE) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                    "stage %" PRIu32 " has %" PRIu64
                    " micro batches in flight: that goes with class pp, not with class %s",
                    report->stage, chain->in_flight, vp_recompute_class_name(class));
        return;
    }
    vp_recompute_frontier(ctx->arena, out, &chain->chain, class, chain->in_flight);
    if (out->cap)
        vp_diag_add(ctx->diags, VP_D_PLACEMENT_CAP, NULL, "the frontier of class %s %s: cap on %s",
                    vp_recompute_class_name(class), out->count ? "is not exact" : "was not found",
                    out->cap);
}

static enum vp_exit write_frontier(struct vp_ctx *ctx, const struct vp_frontier *frontier,
                                   const char *path) {
    struct vp_buf csv = {.arena = ctx->arena};
    vp_placement_frontier(&csv, frontier);
    return vp_exit_of_status(vp_output_write(ctx, &csv, path));
}

/* A frontier that was not found is told by its cap, and there is nothing to draw. */
static enum vp_exit draw(struct vp_ctx *ctx, const struct vp_args *args,
                         const struct vp_recompute_report *report,
                         const struct vp_frontier *frontier) {
    const struct vp_chart *chart = vp_chart_frontier(ctx->arena, report, frontier);
    if (!chart)
        return VP_EXIT_INCONCLUSIVE;
    return vp_exit_of_status(vp_plot_draw(ctx, args, chart, args->format != VP_FORMAT_TEXT));
}

/* ---- the answer ---- */

static void render(struct vp_buf *out, const struct vp_recompute_report *report,
                   enum vp_format format) {
    if (format == VP_FORMAT_JSON)
        vp_scenario_placement_json(out, report);
    else
        vp_scenario_placement_table(out, report,
                                    format == VP_FORMAT_CSV        ? VP_PLACEMENT_CSV
                                    : format == VP_FORMAT_MARKDOWN ? VP_PLACEMENT_MARKDOWN
                                                                   : VP_PLACEMENT_TEXT);
}

static enum vp_status solve(struct vp_ctx *ctx, struct vp_recompute_report *out,
                            const struct question *q, const struct vp_args *args) {
    bool all = q->emit == VP_FRAMEWORK_COUNT || args->value[VP_OPTION_PLOT];
    const char *fault = vp_recompute_of_scenario(ctx->arena, out, q->scenario, q->budget_bytes,
                                                 all ? VP_FRAMEWORK_COUNT : q->emit);
    if (fault) {
        vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, NULL, "'%s': %s", args->operands[0], fault);
        vp_diag_hint(ctx->diags, "a `train:` block in the scenario says what is trained");
        return VP_ERR_INPUT;
    }
    if (q->emit == VP_FRAMEWORK_COUNT || !out->framework[q->emit].refused)
        return VP_OK;
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--emit %s: %s", args->value[VP_OPTION_EMIT],
                out->framework[q->emit].refused);
    return VP_ERR_INPUT;
}

int vp_checkpoint_scenario(struct vp_ctx *ctx, const struct vp_args *args) {
    uint32_t errors = ctx->diags->errors;
    struct vp_recompute_report *report = VP_NEW(ctx->arena, struct vp_recompute_report);
    struct vp_buf out = {.arena = ctx->arena};
    struct question q;
    read_options(ctx, &q, args);
    enum vp_status status = read_scenario(ctx, &q, args);
    if (status == VP_OK && ctx->diags->errors > errors)
        status = VP_ERR_INPUT;
    if (status == VP_OK)
        status = solve(ctx, report, &q, args);
    if (status != VP_OK)
        return vp_output_failure(ctx, args, status);
    struct vp_frontier frontier = {0};
    enum vp_exit code = VP_EXIT_YES;
    if (args->value[VP_OPTION_FRONTIER] || args->value[VP_OPTION_PLOT])
        find_frontier(ctx, &frontier, &q, report);
    bool found = ctx->diags->errors == errors;
    if (!found)
        code = VP_EXIT_INPUT;
    if (found && args->value[VP_OPTION_FRONTIER])
        code = write_frontier(ctx, &frontier, args->value[VP_OPTION_FRONTIER]);
    const struct vp_framework_plan *best = &report->framework[VP_FRAMEWORK_PYTORCH];
    const struct vp_framework_plan *told = best;
    if (q.emit == VP_FRAMEWORK_COUNT) {
        render(&out, report, args->format);
    } else {
        told = &report->framework[q.emit];
        vp_recompute_emit(&out, &report->problem, told, best);
    }
    code = vp_exit_of_both(code, vp_exit_of_verdict(told->verdict));
    code = vp_exit_of_both(
        code, vp_exit_of_status(vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT])));
    if (found && args->value[VP_OPTION_PLOT])
        code = vp_exit_of_both(code, draw(ctx, args, report, &frontier));
    return (int)code;
}
