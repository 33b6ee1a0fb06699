/* diff: two inputs, paired by name -> which setting moved which bytes. */
#include <string.h>

#include "api/diff.h"
#include "cli/args.h"
#include "cli/output.h"
#include "planner/base/memo.h"
#include "planner/plan/plan.h"
#include "reports/diff_report.h"

/* One input: its trees, and their plans. */
struct input {
    const char *name;
    struct vp_ctx ctx; /* with a memo and diagnostics of its own */
    struct vp_found found;
    struct vp_scenarios scenarios;
    const struct vp_result **results; /* parallel to scenarios.each; NULL: no plan */
    enum vp_status status;
};

static void plan_each(struct input *in) {
    in->results =
        VP_NEW_ARRAY(in->ctx.arena, in->scenarios.each_count + 1, const struct vp_result *);
    for (size_t i = 0; i < in->scenarios.each_count; i++) {
        const struct vp_scenario *scenario = in->scenarios.each[i].scenario;
        struct vp_result *result = VP_NEW(in->ctx.arena, struct vp_result);
        enum vp_status status = scenario ? vp_plan_run(&in->ctx, result, scenario) : VP_OK;
        if (scenario && status == VP_OK)
            in->results[i] = result;
        else if (status > in->status)
            in->status = status;
    }
}

static void read_input(const struct vp_ctx *ctx, struct input *out, const char *name,
                       const struct vp_args *args) {
    *out = (struct input){.name = name, .ctx = *ctx};
    out->ctx.memo = vp_memo_new();
    out->ctx.diags = VP_NEW(ctx->arena, struct vp_diags);
    out->ctx.diags->arena = ctx->arena;
    vp_input_find(&out->ctx, &out->found, name);
    out->status = vp_input_finish(&out->ctx, &out->scenarios, &out->found, args->settings,
                                  args->setting_count);
    plan_each(out);
}

static struct vp_diff_side side_of(struct input *in, size_t at, const struct vp_args *args) {
    return (struct vp_diff_side){.ctx = &in->ctx,
                                 .root = in->found.items[at].root,
                                 .base = in->found.base,
                                 .settings = args->settings,
                                 .setting_count = args->setting_count,
                                 .result = in->results[at]};
}

static size_t find_name(const struct input *in, const char *name) {
    size_t at = 0;

    while (at < in->scenarios.each_count && !vp_text_eq(in->scenarios.each[at].name, name))
        at++;
    return at;
}

/* Of one scenario each, whatever they are called; else those of one name, then those that are on
 * one side only. Returns how many pairs are compared. */
static size_t pair_up(struct vp_ctx *ctx, struct vp_diff_report *report, struct input *old,
                      struct input *new, const struct vp_args *args) {
    size_t a = old->scenarios.each_count, b = new->scenarios.each_count, pairs = 0;
    struct vp_compared *items = VP_NEW_ARRAY(ctx->arena, a + b + 1, struct vp_compared);

    report->item = items;
    for (size_t i = 0; i < b; i++) {
        struct vp_compared *c = &items[report->count++];
        const char *name = new->scenarios.each[i].name;
        size_t at = a == 1 && b == 1 ? 0 : find_name(old, name);
        *c = (struct vp_compared){.name = name, .in_after = true, .after = new->results[i]};
        if (at == a)
            continue;
        struct vp_difference *difference = VP_NEW(ctx->arena, struct vp_difference);
        struct vp_diff_side before = side_of(old, at, args), after = side_of(new, i, args);
        c->in_before = true;
        c->before = old->results[at];
        vp_diff_make(ctx, difference, &before, &after);
        c->difference = difference;
        pairs++;
    }
    for (size_t i = 0; i < a; i++) {
        const char *name = old->scenarios.each[i].name;
        if (!(a == 1 && b == 1) && find_name(new, name) == b)
            items[report->count++] =
                (struct vp_compared){.name = name, .in_before = true, .before = old->results[i]};
    }
    return pairs;
}

static void render(struct vp_buf *out, const struct vp_diff_report *report,
                   const struct vp_args *args) {
    struct vp_report_options options = vp_output_options(args);
    struct vp_json json = vp_json_begin(out);

    switch (args->format) {
    case VP_FORMAT_JSON:
        vp_diff_json(&json, report);
        vp_buf_add(out, "\n");
        break;
    case VP_FORMAT_CSV:
        vp_diff_csv(out, report);
        break;
    case VP_FORMAT_MARKDOWN:
        vp_diff_markdown(out, report);
        break;
    case VP_FORMAT_TEXT:
        vp_diff_text(out, report, &options);
        break;
    }
}

int vp_cmd_diff(struct vp_ctx *ctx, const struct vp_args *args) {
    struct vp_diff_report report = {.before = args->operands[0], .after = args->operands[1]};
    struct vp_buf out = {.arena = ctx->arena};
    struct vp_diags *diags = VP_NEW(ctx->arena, struct vp_diags);
    struct input old, new;
    enum vp_exit code = VP_EXIT_YES;

    read_input(ctx, &old, report.before, args);
    read_input(ctx, &new, report.after, args);
    bool readable = old.scenarios.each_count > 0 && new.scenarios.each_count > 0;
    size_t pairs = readable ? pair_up(ctx, &report, &old, &new, args) : 0;
    diags->arena = ctx->arena;
    vp_diags_merge(diags, old.ctx.diags);
    vp_diags_merge(diags, new.ctx.diags);
    report.diags = diags;
    vp_output_diagnostics(ctx, diags, args->value[VP_OPTION_VERBOSE] ? VP_INFO : VP_ERROR, args);
    if (old.status != VP_OK || new.status != VP_OK)
        code = vp_exit_of_both(vp_exit_of_status(old.status), vp_exit_of_status(new.status));
    else if (pairs == 0)
        code = VP_EXIT_INCONCLUSIVE; /* nothing to compare */
    if (readable || args->format == VP_FORMAT_JSON) {
        render(&out, &report, args);
        enum vp_status status = vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT]);
        code = vp_exit_of_both(code, vp_exit_of_status(status));
    }
    vp_memo_free(old.ctx.memo);
    vp_memo_free(new.ctx.memo);
    return (int)code;
}
