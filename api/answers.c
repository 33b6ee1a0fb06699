#include "api/answers.h"

#include "api/slo.h"
#include "reports/report.h"

enum vp_exit vp_exit_of_both(enum vp_exit a, enum vp_exit b) {
    static const int RANK[] = {[VP_EXIT_YES] = 0,
                               [VP_EXIT_INCONCLUSIVE] = 1,
                               [VP_EXIT_NO] = 2,
                               [VP_EXIT_INPUT] = 3,
                               [VP_EXIT_ENV] = 4};
    return RANK[a] >= RANK[b] ? a : b;
}

enum vp_exit vp_exit_of_status(enum vp_status status) {
    switch (status) {
    case VP_OK:
        return VP_EXIT_YES;
    case VP_ERR_INPUT:
        return VP_EXIT_INPUT;
    case VP_ERR_ENV:
        break;
    }
    return VP_EXIT_ENV;
}

enum vp_exit vp_exit_of_verdict(enum vp_verdict verdict) {
    switch (verdict) {
    case VP_FITS:
        return VP_EXIT_YES;
    case VP_AT_RISK:
        return VP_EXIT_INCONCLUSIVE;
    case VP_DOES_NOT_FIT:
        break;
    }
    return VP_EXIT_NO;
}

static void add_answer(struct vp_ctx *ctx, struct vp_answers *answers, struct vp_answer answer) {
    if (answers->count == answers->capacity) {
        size_t capacity = answers->capacity ? 2 * answers->capacity : 8;
        struct vp_answer *items = VP_NEW_ARRAY(ctx->arena, capacity, struct vp_answer);
        for (size_t i = 0; i < answers->count; i++)
            items[i] = answers->items[i];
        answers->items = items;
        answers->capacity = capacity;
    }
    answers->items[answers->count++] = answer;
}

static enum vp_exit exit_of(const struct vp_answer *answer) {
    if (answer->status != VP_OK || !answer->result)
        return vp_exit_of_status(answer->status);
    return vp_exit_of_verdict(answer->result->verdict);
}

/* Diagnostics of an input belong to each of its scenarios; those of a plan to that scenario only.
 */
static void plan_scenario(const struct vp_ctx *outer, struct vp_answers *answers, const char *input,
                          const struct vp_scenario_read_result *read,
                          const struct vp_diags *of_input) {
    struct vp_ctx ctx = *outer;
    struct vp_answer answer = {.input = input, .scenario = read->name, .status = read->status};
    ctx.diags = VP_NEW(ctx.arena, struct vp_diags);
    ctx.diags->arena = ctx.arena;
    vp_diags_merge(ctx.diags, of_input);
    vp_diags_merge(ctx.diags, read->diags);
    answer.diags = ctx.diags;
    if (read->scenario) {
        answer.result = VP_NEW(ctx.arena, struct vp_result);
        answer.status = vp_plan_run(&ctx, answer.result, read->scenario);
        if (answer.status == VP_OK)
            vp_slo_note(&ctx, answer.result);
    }
    if (answer.status != VP_OK)
        answer.result = NULL;
    else
        answer.result->diags = ctx.diags;
    add_answer(&ctx, answers, answer);
}

void vp_answers_add(const struct vp_ctx *outer, struct vp_answers *answers, const char *input,
                    const struct vp_setting *settings, size_t setting_count) {
    struct vp_ctx ctx = *outer;
    struct vp_scenarios scenarios = {0};
    ctx.diags = VP_NEW(ctx.arena, struct vp_diags);
    ctx.diags->arena = ctx.arena;
    enum vp_status status = vp_input_read(&ctx, &scenarios, input, settings, setting_count);
    if (scenarios.each_count == 0 || scenarios.shared->errors > 0) {
        add_answer(&ctx, answers,
                   (struct vp_answer){.diags = ctx.diags, .input = input, .status = status});
        return;
    }
    for (size_t i = 0; i < scenarios.each_count; i++)
        plan_scenario(&ctx, answers, input, &scenarios.each[i], scenarios.shared);
}

enum vp_status vp_answers_one(struct vp_ctx *ctx, const struct vp_result **out, const char *command,
                              const char *input, const struct vp_setting *settings,
                              size_t setting_count) {
    struct vp_answers answers = {0};
    vp_answers_add(ctx, &answers, input, settings, setting_count);
    for (size_t i = 0; i < answers.count; i++)
        vp_diags_merge(ctx->diags, answers.items[i].diags);
    for (size_t i = 0; i < answers.count; i++)
        if (!answers.items[i].result)
            return answers.items[i].status;
    if (answers.count != 1) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "'%s' wants one scenario, '%s' has %zu",
                    command, input, answers.count);
        vp_diag_hint(ctx->diags, "FILE#NAME chooses one");
        return VP_ERR_INPUT;
    }
    *out = answers.items[0].result;
    return VP_OK;
}

void vp_answers_json(struct vp_buf *out, const struct vp_answers *answers) {
    struct vp_json json = vp_json_begin(out);
    bool list = answers->count != 1;
    if (list)
        vp_json_list(&json);
    for (size_t i = 0; i < answers->count; i++) {
        const struct vp_answer *answer = &answers->items[i];
        if (answer->result)
            vp_report_json(&json, answer->result);
        else
            vp_answers_json_error(&json, "vramplan.result/1", answer->input, answer->scenario,
                                  answer->diags);
    }
    if (list)
        vp_json_end(&json, ']');
    vp_buf_add(out, "\n");
}

bool vp_answers_have_result(const struct vp_answers *answers) {
    for (size_t i = 0; i < answers->count; i++)
        if (answers->items[i].result)
            return true;
    return false;
}

enum vp_exit vp_answers_exit(const struct vp_answers *answers) {
    enum vp_exit code = VP_EXIT_YES;
    for (size_t i = 0; i < answers->count; i++)
        code = vp_exit_of_both(code, exit_of(&answers->items[i]));
    return code;
}

void vp_answers_json_error(struct vp_json *json, const char *schema, const char *input,
                           const char *scenario, const struct vp_diags *diags) {
    vp_json_map(json);
    vp_json_key_text(json, "schema", schema);
    vp_json_key_text(json, "input", input);
    vp_json_key_text(json, "scenario", scenario);
    vp_json_key(json, "verdict");
    vp_json_null(json);
    vp_json_key(json, "diagnostics");
    vp_report_json_diagnostics(json, diags);
    vp_json_end(json, '}');
}
