/* fit: what to change so that it fits. llama.cpp and ollama are searched
 * (planner/plan/fit_llama.h); of other engines the plan's own suggestions and limits are shown. */
#include "api/answers.h"
#include "cli/args.h"
#include "cli/output.h"
#include "planner/plan/fit_llama.h"
#include "reports/fit_report.h"

/* ---- the question ---- */

static enum vp_fit_goal goal_of(const struct vp_args *args) {
    if (!args->value[VP_OPTION_MAXIMIZE])
        return VP_FIT_BALANCED;
    if (vp_text_eq(args->value[VP_OPTION_MAXIMIZE], "context"))
        return VP_FIT_CONTEXT;
    return vp_text_eq(args->value[VP_OPTION_MAXIMIZE], "layers") ? VP_FIT_LAYERS : VP_FIT_SLOTS;
}

static void check_format(struct vp_ctx *ctx, const struct vp_args *args) {
    if (args->format == VP_FORMAT_CSV || args->format == VP_FORMAT_MARKDOWN)
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "'fit' has --format text and json only");
}

/* What is to be driven as far as it goes must not be given. */
static void check_goal(struct vp_ctx *ctx, const struct vp_args *args,
                       const struct vp_scenario *scenario) {
    bool searched = vp_engine_is_llama(scenario->engine.kind);

    if (!args->value[VP_OPTION_MAXIMIZE])
        return;
    if (!searched) {
        vp_diag_add(ctx->diags, VP_D_UNMODELLED, NULL,
                    "--maximize searches for llama.cpp and ollama, not for %s",
                    scenario->engine.name);
        vp_diag_hint(ctx->diags, "without it: what the plan suggests, and how far it goes");
        return;
    }
    struct vp_fit_fixed fixed = vp_fit_llama_fixed(scenario);
    enum vp_fit_goal goal = goal_of(args);
    if ((goal == VP_FIT_CONTEXT && fixed.context) || (goal == VP_FIT_LAYERS && fixed.layers) ||
        (goal == VP_FIT_SLOTS && (fixed.slots || fixed.total)))
        vp_diag_add(ctx->diags, VP_D_CONTRADICTION, NULL,
                    "--maximize %s, but the scenario says how much that is",
                    args->value[VP_OPTION_MAXIMIZE]);
}

/* ---- the command ---- */

struct found {
    const struct vp_answer *answer;
    struct vp_fit_llama *fit; /* NULL: an engine that is not searched */
};

static enum vp_exit exit_of(const struct found *found) {
    static const enum vp_exit CODES[] = {[VP_FITS] = VP_EXIT_YES,
                                         [VP_AT_RISK] = VP_EXIT_INCONCLUSIVE,
                                         [VP_DOES_NOT_FIT] = VP_EXIT_NO};
    return CODES[found->fit ? vp_fit_verdict(found->fit) : found->answer->result->verdict];
}

static void show_diagnostics(struct vp_ctx *ctx, const struct vp_answers *answers,
                             const struct vp_args *args) {
    struct vp_diags *all = VP_NEW(ctx->arena, struct vp_diags); /* each told once */

    all->arena = ctx->arena;
    for (size_t i = 0; i < answers->count; i++)
        vp_diags_merge(all, answers->items[i].diags);
    vp_output_diagnostics(ctx, all, args->value[VP_OPTION_VERBOSE] ? VP_INFO : VP_ERROR, args);
}

static void render(struct vp_buf *out, const struct vp_args *args, const struct found *found,
                   size_t count) {
    struct vp_report_options options = {.colour = vp_output_colour(args),
                                        .utf8 = vp_output_utf8(args),
                                        .width = vp_output_width(args),
                                        .verbose = args->value[VP_OPTION_VERBOSE],
                                        .heading = count > 1};
    struct vp_json json = vp_json_begin(out);

    if (args->format == VP_FORMAT_JSON && count != 1)
        vp_json_list(&json);
    for (size_t i = 0; i < count; i++) {
        const struct vp_answer *answer = found[i].answer;
        if (args->format == VP_FORMAT_JSON && answer->result)
            vp_fit_json(&json, answer->result, found[i].fit);
        else if (args->format == VP_FORMAT_JSON)
            vp_answers_json_error(&json, "vramplan.fit/1", answer->input, answer->scenario,
                                  answer->diags);
        else if (answer->result)
            vp_fit_text(out, answer->result, found[i].fit, &options);
        if (args->format == VP_FORMAT_TEXT && answer->result && i + 1 < count)
            vp_buf_add(out, "\n");
    }
    if (args->format == VP_FORMAT_JSON && count != 1)
        vp_json_end(&json, ']');
    if (args->format == VP_FORMAT_JSON)
        vp_buf_add(out, "\n");
}

/* False: the sizes of a model exceed 64 bits, which its plan would have said before. */
static bool find(struct vp_ctx *ctx, struct found *out, const struct vp_answer *answer,
                 enum vp_fit_goal goal) {
    out->answer = answer;
    out->fit = NULL;
    if (!answer->result || !answer->result->llama)
        return true;
    out->fit = VP_NEW(ctx->arena, struct vp_fit_llama);
    return vp_fit_llama_find(ctx->arena, out->fit, answer->result->scenario, goal);
}

int vp_cmd_fit(struct vp_ctx *ctx, const struct vp_args *args) {
    uint32_t errors = ctx->diags->errors;
    struct vp_answers answers = {0};
    struct vp_buf out = {.arena = ctx->arena};
    enum vp_exit code = VP_EXIT_YES;

    check_format(ctx, args);
    vp_answers_add(ctx, &answers, args->operands[0], args->settings, args->setting_count);
    for (size_t i = 0; i < answers.count; i++)
        if (answers.items[i].result)
            check_goal(ctx, args, answers.items[i].result->scenario);
    if (ctx->diags->errors > errors)
        return vp_output_failure(ctx, args, VP_ERR_INPUT);
    struct found *found = VP_NEW_ARRAY(ctx->arena, answers.count, struct found);
    for (size_t i = 0; i < answers.count; i++) {
        bool ok = find(ctx, &found[i], &answers.items[i], goal_of(args));
        enum vp_status status = ok ? answers.items[i].status : VP_ERR_INPUT;
        code = vp_exit_of_both(code, answers.items[i].result && ok ? exit_of(&found[i])
                                                                   : vp_exit_of_status(status));
    }
    show_diagnostics(ctx, &answers, args);
    if (!vp_answers_have_result(&answers) && args->format != VP_FORMAT_JSON)
        return (int)code;
    render(&out, args, found, answers.count);
    return (int)vp_exit_of_both(
        code, vp_exit_of_status(vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT])));
}
