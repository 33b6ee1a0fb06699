/* plan and explain: inputs -> results -> one document in the format asked for. */
#include "cli/args.h"
#include "cli/output.h"
#include "cli/places.h"
#include "planner/plan/plan.h"
#include "reports/report.h"

/* One scenario that was planned, or something that has no result: an input that cannot be read, a
 * scenario whose sizes overflow. */
struct answer {
    struct vp_result *result; /* NULL: none */
    const struct vp_diags *diags;
    const char *input;
    const char *scenario; /* its name, NULL when it is not known */
    uint32_t own;         /* diagnostics before this one were shown with an earlier scenario */
    enum vp_status status;
};

struct answers {
    struct answer *items;
    size_t count, capacity;
};

static void add_answer(struct vp_ctx *ctx, struct answers *answers, struct answer answer) {
    if (answers->count == answers->capacity) {
        size_t capacity = answers->capacity ? 2 * answers->capacity : 8;
        struct answer *items = VP_NEW_ARRAY(ctx->arena, capacity, struct answer);
        for (size_t i = 0; i < answers->count; i++)
            items[i] = answers->items[i];
        answers->items = items;
        answers->capacity = capacity;
    }
    answers->items[answers->count++] = answer;
}

static enum vp_exit exit_of(const struct answer *answer) {
    if (answer->status != VP_OK || !answer->result)
        return vp_exit_of_status(answer->status);
    switch (answer->result->verdict) {
    case VP_FITS:
        return VP_EXIT_YES;
    case VP_AT_RISK:
        return VP_EXIT_INCONCLUSIVE;
    case VP_DOES_NOT_FIT:
        break;
    }
    return VP_EXIT_NO;
}

/* ---- planning ---- */

/* Diagnostics of an input belong to each of its scenarios; those of a plan to that scenario only.
 */
static void plan_scenario(const struct vp_ctx *outer, struct answers *answers, const char *input,
                          const struct vp_scenario *scenario, bool first) {
    struct vp_ctx ctx = *outer;
    ctx.diags = VP_NEW(ctx.arena, struct vp_diags);
    *ctx.diags = *outer->diags;
    struct answer answer = {.result = VP_NEW(ctx.arena, struct vp_result),
                            .diags = ctx.diags,
                            .input = input,
                            .scenario = scenario->name,
                            .own = first ? 0 : outer->diags->count};
    answer.status = vp_plan_run(&ctx, answer.result, scenario);
    if (answer.status != VP_OK)
        answer.result = NULL;
    else
        answer.result->diags = ctx.diags;
    add_answer(&ctx, answers, answer);
}

static void plan_input(const struct vp_ctx *outer, struct answers *answers, const char *input,
                       const struct vp_args *args) {
    struct vp_ctx ctx = *outer;
    struct vp_scenarios scenarios = {0};
    ctx.diags = VP_NEW(ctx.arena, struct vp_diags);
    ctx.diags->arena = ctx.arena;
    enum vp_status status =
        vp_input_read(&ctx, &scenarios, input, args->settings, args->setting_count);
    if (status != VP_OK)
        add_answer(&ctx, answers,
                   (struct answer){.diags = ctx.diags, .input = input, .status = status});
    for (size_t i = 0; status == VP_OK && i < scenarios.count; i++)
        plan_scenario(&ctx, answers, input, scenarios.items[i], i == 0);
}

/* ---- rendering ---- */

static void render_json(struct vp_buf *out, const struct answers *answers) {
    struct vp_json json = vp_json_begin(out);
    bool list = answers->count != 1;
    if (list)
        vp_json_list(&json);
    for (size_t i = 0; i < answers->count; i++) {
        const struct answer *answer = &answers->items[i];
        if (answer->result)
            vp_report_json(&json, answer->result);
        else
            vp_output_json_error(&json, "vramplan.result/1", answer->input, answer->scenario,
                                 answer->diags);
    }
    if (list)
        vp_json_end(&json, ']');
    vp_buf_add(out, "\n");
}

static void render_csv(struct vp_buf *out, const struct answers *answers) {
    vp_report_csv_header(out);
    for (size_t i = 0; i < answers->count; i++)
        if (answers->items[i].result)
            vp_report_csv_row(out, answers->items[i].result);
}

static void render_text(struct vp_buf *out, const struct answers *answers,
                        const struct vp_args *args, bool explain) {
    struct vp_report_options options = {.colour = vp_output_colour(args),
                                        .utf8 = vp_output_utf8(args),
                                        .width = vp_output_width(args),
                                        .verbose = args->verbose,
                                        .heading = answers->count > 1};
    bool first = true;
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

static void render_markdown(struct vp_buf *out, const struct answers *answers) {
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

static void render(struct vp_buf *out, const struct answers *answers, const struct vp_args *args,
                   bool explain) {
    switch (args->format) {
    case VP_FORMAT_JSON:
        render_json(out, answers);
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
static void show_diagnostics(struct vp_ctx *ctx, const struct answers *answers,
                             const struct vp_args *args) {
    enum vp_severity least = args->verbose                   ? VP_INFO
                             : args->format == VP_FORMAT_CSV ? VP_WARNING
                                                             : VP_ERROR;
    for (size_t i = 0; i < answers->count; i++)
        vp_output_diagnostics(ctx, answers->items[i].diags, answers->items[i].own, least, args);
}

static bool has_result(const struct answers *answers) {
    for (size_t i = 0; i < answers->count; i++)
        if (answers->items[i].result)
            return true;
    return false;
}

static int run(struct vp_ctx *ctx, const struct vp_args *args, bool explain) {
    struct answers answers = {0};
    struct vp_buf out = {.arena = ctx->arena};
    enum vp_exit code = VP_EXIT_YES;
    for (size_t i = 0; i < args->operand_count; i++)
        plan_input(ctx, &answers, args->operands[i], args);
    for (size_t i = 0; i < answers.count; i++)
        code = vp_exit_of_both(code, exit_of(&answers.items[i]));
    show_diagnostics(ctx, &answers, args);
    if (!has_result(&answers) && args->format != VP_FORMAT_JSON)
        return (int)code; /* nothing to write: a file of an earlier run stays */
    render(&out, &answers, args, explain);
    enum vp_status status = vp_output_write(ctx, &out, args->output);
    return (int)vp_exit_of_both(code, vp_exit_of_status(status));
}

int vp_cmd_plan(struct vp_ctx *ctx, const struct vp_args *args) {
    return run(ctx, args, args->explain);
}

int vp_cmd_explain(struct vp_ctx *ctx, const struct vp_args *args) { return run(ctx, args, true); }
