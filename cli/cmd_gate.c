/* gate: budgets and growth of scenario files, against a base -> checks, one exit code. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/gate_explain.h"
#include "api/gate_init.h"
#include "api/gate_self_test.h"
#include "api/gate_update.h"
#include "cli/args.h"
#include "cli/gate_base.h"
#include "cli/gate_output.h"
#include "cli/output.h"

static const char DEFAULT_FILE[] = "vramplan.budget.yaml";

struct work {
    struct vp_ctx *ctx;
    const struct vp_args *args;
    struct vp_gate_input *inputs;
    size_t input_count;
    const char *date;
    enum vp_at_risk at_risk;
    struct vp_gate_base base;
    struct vp_gate_run *run;
};

/* In UTC, so that machines of one team agree. */
static const char *today(struct vp_ctx *ctx) {
    char text[sizeof "2026-11-30"];
    time_t now = time(NULL);
    struct tm day;
    if (!gmtime_r(&now, &day) || !strftime(text, sizeof text, "%Y-%m-%d", &day))
        return "9999-12-31"; /* a clock that cannot be read lets no waiver pass */
    return vp_arena_text(ctx->arena, text, strlen(text));
}

static enum vp_status check_options(struct work *w) {
    const struct vp_args *args = w->args;
    uint32_t day;
    w->date = args->value[VP_OPTION_DATE] ? args->value[VP_OPTION_DATE] : today(w->ctx);
    if (!vp_parse_day(&day, w->date)) {
        vp_diag_add(w->ctx->diags, VP_D_BAD_OPTION, NULL,
                    "--date wants a day as 2026-11-30, not '%s'", w->date);
        return VP_ERR_INPUT;
    }
    if (!args->value[VP_OPTION_INIT] + !args->value[VP_OPTION_SELF_TEST] +
            !args->value[VP_OPTION_UPDATE] <
        2) {
        vp_diag_add(w->ctx->diags, VP_D_BAD_OPTION, NULL,
                    "--init, --self-test and --update exclude each other");
        return VP_ERR_INPUT;
    }
    if (args->value[VP_OPTION_REASON] && !args->value[VP_OPTION_UPDATE]) {
        vp_diag_add(w->ctx->diags, VP_D_BAD_OPTION, NULL, "--reason belongs to --update");
        return VP_ERR_INPUT;
    }
    if (args->value[VP_OPTION_AT_RISK])
        vp_at_risk_parse(&w->at_risk, args->value[VP_OPTION_AT_RISK]);
    return VP_OK;
}

static void take_inputs(struct work *w) {
    size_t count = w->args->operand_count;
    w->input_count = count ? count : 1;
    w->inputs = VP_NEW_ARRAY(w->ctx->arena, w->input_count, struct vp_gate_input);
    for (size_t i = 0; i < w->input_count; i++)
        w->inputs[i].head = count ? w->args->operands[i] : DEFAULT_FILE;
}

/* Without a word on the command line the user may not know which file is meant. */
static enum vp_status check_default(struct work *w) {
    if (w->args->operand_count > 0 || vp_io_kind(w->ctx, DEFAULT_FILE) != VP_FILE_NONE)
        return VP_OK;
    vp_diag_add(w->ctx->diags, VP_D_FILE_MISSING, NULL, "there is no %s here", DEFAULT_FILE);
    vp_diag_hint(w->ctx->diags,
                 "vramplan gate FILE..., or vramplan gate --init INPUT... makes one");
    return VP_ERR_INPUT;
}

static void check_all(struct work *w) {
    struct vp_gate_options options = {.inputs = w->inputs,
                                      .input_count = w->input_count,
                                      .base_io = w->base.io,
                                      .base_label = w->base.label,
                                      .base_commit = w->base.commit,
                                      .date = w->date,
                                      .date_given = w->args->value[VP_OPTION_DATE],
                                      .only = w->args->value[VP_OPTION_GATE_ONLY],
                                      .at_risk =
                                          w->args->value[VP_OPTION_AT_RISK] ? &w->at_risk : NULL,
                                      .settings = w->args->settings,
                                      .setting_count = w->args->setting_count};
    vp_gate_open(w->ctx, &w->run, &options);
}

/* Errors of scenarios that have no plan, to standard error: each once. */
static void tell_invalid(struct work *w) {
    for (uint32_t i = 0; i < w->run->gate.scenario_count; i++) {
        const struct vp_gate_scenario *s = &w->run->gate.scenarios[i];
        if (s->worst == VP_CHECK_INVALID)
            vp_diags_merge(w->ctx->diags, s->head_diags);
    }
}

/* A run that could not even begin. */
static int refuse(struct work *w, enum vp_status status) {
    vp_gate_base_close();
    return vp_output_failure(w->ctx, w->args, status);
}

static int run_checks(struct work *w) {
    enum vp_status status = check_default(w);
    if (status == VP_OK)
        status = vp_gate_base_find(w->ctx, &w->base, w->args, w->inputs, w->input_count);
    if (status != VP_OK)
        return refuse(w, status);
    check_all(w);
    w->run->gate.folder = vp_gate_base_here(w->ctx);
    vp_gate_explain(w->ctx, w->run);
    tell_invalid(w);
    enum vp_exit code = vp_gate_exit(w->run);
    status = vp_gate_output(w->ctx, w->args, &w->run->gate, (int)code);
    vp_gate_close(w->run);
    vp_gate_base_close();
    return (int)vp_exit_of_both(code, vp_exit_of_status(status));
}

/* ---- --init ---- */

static int run_init(struct work *w) {
    const struct vp_args *args = w->args;
    const char *written = args->value[VP_OPTION_OUTPUT];
    const char *path = written && !vp_text_eq(written, "-") ? written : NULL;
    struct vp_buf out = {.arena = w->ctx->arena};
    enum vp_exit verdicts = VP_EXIT_YES;
    enum vp_status status = VP_OK;
    if (args->operand_count == 0) {
        vp_diag_add(w->ctx->diags, VP_D_BAD_OPTION, NULL, "--init wants the inputs to budget for");
        vp_diag_hint(w->ctx->diags, "vramplan gate --init config.json --gpu mi300x -o %s",
                     DEFAULT_FILE);
        status = VP_ERR_INPUT;
    }
    if (status == VP_OK)
        status =
            vp_gate_init(w->ctx, &out, &verdicts, args->operands, args->operand_count,
                         args->settings, args->setting_count, path,
                         vp_gate_base_possible(w->ctx, path ? vp_io_dirname(w->ctx, path) : NULL));
    if (status != VP_OK)
        return refuse(w, status);
    if (verdicts != VP_EXIT_YES)
        vp_diag_add(w->ctx->diags, VP_D_GATE_AT_RISK, NULL,
                    "not every scenario fits as it is: the gate will not pass");
    status = vp_output_write(w->ctx, &out, path);
    return (int)vp_exit_of_both(verdicts, vp_exit_of_status(status));
}

/* ---- --self-test ---- */

static void render_planted(struct vp_buf *out, const struct vp_planted *planted, size_t count,
                           size_t blind) {
    const char *scenario = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct vp_planted *p = &planted[i];
        if (!vp_text_eq(scenario, p->scenario))
            vp_buf_printf(out, "%s%s\n", i ? "\n" : "", p->scenario);
        scenario = p->scenario;
        vp_buf_printf(out, "  %-34s %s%s\n", p->what, p->seen ? "seen by " : "NOT SEEN", p->by);
    }
    vp_buf_printf(out, "\n%zu planted, %zu seen, %zu not seen\n", count, count - blind, blind);
}

static void render_planted_json(struct vp_buf *out, const struct vp_planted *planted,
                                size_t count) {
    struct vp_json json = vp_json_begin(out);
    vp_json_map(&json);
    vp_json_key_text(&json, "schema", "vramplan.gate-self-test/1");
    vp_json_key(&json, "planted");
    vp_json_list(&json);
    for (size_t i = 0; i < count; i++) {
        vp_json_map(&json);
        vp_json_key_text(&json, "scenario", planted[i].scenario);
        vp_json_key_text(&json, "change", planted[i].what);
        vp_json_key(&json, "seen");
        vp_json_bool(&json, planted[i].seen);
        vp_json_key_text(&json, "by", planted[i].by);
        vp_json_end(&json, '}');
    }
    vp_json_end(&json, ']');
    vp_json_end(&json, '}');
    vp_buf_add(out, "\n");
}

static size_t count_blind(const struct vp_planted *planted, size_t count) {
    size_t blind = 0;
    for (size_t i = 0; i < count; i++)
        blind += !planted[i].seen;
    return blind;
}

/* The plans as they are stand for the base, so none is looked for. */
static int run_self_test(struct work *w) {
    struct vp_buf out = {.arena = w->ctx->arena};
    struct vp_planted *planted;
    enum vp_status status = check_default(w);
    if (status != VP_OK)
        return refuse(w, status);
    check_all(w);
    size_t count = vp_gate_self_test(w->ctx, &planted, w->run);
    size_t blind = count_blind(planted, count);
    if (w->args->format == VP_FORMAT_JSON)
        render_planted_json(&out, planted, count);
    else
        render_planted(&out, planted, count, blind);
    if (blind > 0) {
        vp_diag_add(w->ctx->diags, VP_D_GATE_BLIND, NULL, "%zu planted %s no check", blind,
                    blind == 1 ? "regression turns" : "regressions turn");
        vp_diag_hint(w->ctx->diags, "budget: {growth: {percent: 0.5, min: 64 MiB}} sees them all");
    }
    tell_invalid(w);
    status = w->run->status;
    enum vp_status written = vp_output_write(w->ctx, &out, w->args->value[VP_OPTION_OUTPUT]);
    vp_gate_close(w->run);
    return (int)vp_exit_of_both(
        blind > 0 ? VP_EXIT_NO : VP_EXIT_YES,
        vp_exit_of_both(vp_exit_of_status(status), vp_exit_of_status(written)));
}

/* ---- --update ---- */

/* Who raises a limit should look at it: not a job that nobody watches. */
static enum vp_status check_update(struct work *w) {
    const char *reason = w->args->value[VP_OPTION_REASON], *ci = getenv("CI");
    if (!reason || strpbrk(reason, "\r\n"))
        vp_diag_add(w->ctx->diags, VP_D_BAD_OPTION, NULL,
                    "--update needs --reason TEXT, on one line");
    else if (ci && *ci && !vp_text_eq(ci, "false"))
        vp_diag_add(w->ctx->diags, VP_D_BAD_OPTION, NULL,
                    "--update does not run in CI (the variable CI is set)");
    else
        return VP_OK;
    return VP_ERR_INPUT;
}

static enum vp_status write_update(struct work *w, const struct vp_gate_update *update) {
    struct vp_buf out = {.arena = w->ctx->arena};
    for (size_t i = 0; i < update->file_count; i++) {
        enum vp_status status =
            vp_output_write(w->ctx, &update->files[i].text, update->files[i].path);
        if (status != VP_OK)
            return status;
    }
    for (size_t i = 0; i < update->moved_count; i++) {
        const struct vp_moved_limit *m = &update->moved[i];
        vp_buf_printf(&out, "%s:%" PRIu32 ": %s %s -> %s\n", m->file, m->line, m->check, m->from,
                      m->to);
    }
    if (update->moved_count == 0)
        vp_buf_add(&out, "no limit to raise\n");
    if (update->left > 0)
        vp_buf_printf(&out, "%zu failing %s no limit to raise: growth needs a waiver\n",
                      update->left, update->left == 1 ? "check has" : "checks have");
    return vp_output_write(w->ctx, &out, NULL);
}

/* Limits only: no base is looked for. */
static int run_update(struct work *w) {
    struct vp_gate_update update = {0};
    enum vp_status status = check_update(w);
    if (status == VP_OK)
        status = check_default(w);
    if (status != VP_OK)
        return refuse(w, status);
    check_all(w);
    tell_invalid(w);
    status = w->run->status;
    if (status == VP_OK)
        status = vp_gate_update(w->ctx, &update, w->run,
                                vp_arena_printf(w->ctx->arena, "raised %s: %s", w->date,
                                                w->args->value[VP_OPTION_REASON]));
    if (status == VP_OK)
        status = write_update(w, &update);
    vp_gate_close(w->run);
    return (int)vp_exit_of_both(vp_exit_of_status(status),
                                update.left > 0 ? VP_EXIT_NO : VP_EXIT_YES);
}

int vp_cmd_gate(struct vp_ctx *ctx, const struct vp_args *args) {
    struct work w = {.ctx = ctx, .args = args};
    enum vp_status status = check_options(&w);
    if (status != VP_OK)
        return vp_output_failure(ctx, args, status);
    take_inputs(&w);
    if (args->value[VP_OPTION_INIT])
        return run_init(&w);
    if (args->value[VP_OPTION_SELF_TEST])
        return run_self_test(&w);
    return args->value[VP_OPTION_UPDATE] ? run_update(&w) : run_checks(&w);
}
