/* checkpoint: where a chain of stages should recompute its activations. */

#include "cli/args.h"
#include "cli/checkpoint_scenario.h"
#include "cli/placement_report.h"
#include "cli/output.h"
#include "planner/base/units.h"
#include "planner/import/chain_reader.h"

/* What is to be solved, wherever the chain came from. */
struct problem {
    struct vp_chain chain;
    const char *name;
    enum vp_recompute_class class;
    uint64_t budget_bytes, inflight;
};

/* ---- the question ---- */

static enum vp_recompute_class class_named(const char *name) {
    enum vp_recompute_class class = 0;
    while (class + 1 < VP_PLACE_CLASSES && !vp_text_eq(name, vp_recompute_class_name(class)))
        class ++;
    return class;
}

static void read_options(struct vp_ctx *ctx, struct problem *out, const struct vp_args *args) {
    out->inflight = 1;
    out->budget_bytes = UINT64_MAX;
    if (args->value[VP_OPTION_BUDGET] &&
        !vp_parse_size(&out->budget_bytes, args->value[VP_OPTION_BUDGET])) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--budget is a size, not '%s'",
                    args->value[VP_OPTION_BUDGET]);
        vp_diag_hint(ctx->diags, "such as 12GiB, 800 MB or a number of bytes");
    }
    if (!args->value[VP_OPTION_BUDGET] && !args->value[VP_OPTION_FRONTIER]) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "'checkpoint' needs --budget SIZE");
        vp_diag_hint(ctx->diags, "or --frontier FILE, for all budgets at once");
    }
    if (args->value[VP_OPTION_INFLIGHT] &&
        (!vp_parse_u64(&out->inflight, args->value[VP_OPTION_INFLIGHT]) || out->inflight == 0 ||
         out->inflight > VP_CHAIN_MAX_INFLIGHT)) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                    "--inflight is a number from 1 to %d, not '%s'", VP_CHAIN_MAX_INFLIGHT,
                    args->value[VP_OPTION_INFLIGHT]);
        out->inflight = 1;
    }
    out->class = out->inflight > 1 ? VP_PLACE_PIPELINE : VP_PLACE_JOINT;
    if (args->value[VP_OPTION_CLASS])
        out->class = class_named(args->value[VP_OPTION_CLASS]);
    if (out->inflight > 1 && out->class != VP_PLACE_PIPELINE) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                    "--inflight %s goes with class pp, not with class %s",
                    args->value[VP_OPTION_INFLIGHT], args->value[VP_OPTION_CLASS]);
        vp_diag_hint(ctx->diags, "the other classes are for one microbatch at a time");
    }
}

/* The chain comes from --chain. */
static enum vp_status read_problem(struct vp_ctx *ctx, struct problem *out,
                                   const struct vp_args *args) {
    uint32_t errors = ctx->diags->errors;
    struct vp_chain_file file;
    *out = (struct problem){0};
    read_options(ctx, out, args);
    if (!args->value[VP_OPTION_CHAIN]) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                    "'checkpoint' needs a scenario or --chain FILE");
        return VP_ERR_INPUT;
    }
    if (args->operand_count)
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "with --chain there is no other input: '%s'",
                    args->operands[0]);
    if (args->value[VP_OPTION_EMIT] || args->value[VP_OPTION_PLOT] || args->setting_count)
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "%s goes with a scenario, not with --chain",
                    args->value[VP_OPTION_EMIT]   ? "--emit"
                    : args->value[VP_OPTION_PLOT] ? "--plot"
                                                  : args->settings[0].key);
    enum vp_status status = vp_chain_read(ctx, &file, args->value[VP_OPTION_CHAIN], out->inflight);
    if (status != VP_OK)
        return status;
    out->chain = file.chain;
    out->name = file.name;
    return ctx->diags->errors == errors ? VP_OK : VP_ERR_INPUT;
}

/* ---- the answer ---- */

static enum vp_status write_frontier(struct vp_ctx *ctx, const struct problem *p,
                                     const char *path) {
    struct vp_frontier frontier;
    struct vp_buf out = {.arena = ctx->arena};
    vp_recompute_frontier(ctx->arena, &frontier, &p->chain, p->class, p->inflight);
    if (frontier.cap)
        vp_diag_add(ctx->diags, VP_D_PLACEMENT_CAP, NULL, "the frontier of class %s %s: cap on %s",
                    vp_recompute_class_name(p->class),
                    frontier.count ? "is not exact" : "was not found", frontier.cap);
    vp_placement_frontier(&out, &frontier);
    return vp_output_write(ctx, &out, path);
}

static void render(struct vp_buf *out, const struct problem *p, const struct vp_placement *c,
                   enum vp_format format) {
    if (format == VP_FORMAT_JSON) {
        vp_placement_json(out, c);
        return;
    }
    struct vp_policies *policies = VP_NEW(out->arena, struct vp_policies);
    vp_policies_find(out->arena, policies, &p->chain, p->budget_bytes, p->inflight);
    vp_placement_table(out, c, policies,
                       format == VP_FORMAT_CSV        ? VP_PLACEMENT_CSV
                       : format == VP_FORMAT_MARKDOWN ? VP_PLACEMENT_MARKDOWN
                                                      : VP_PLACEMENT_TEXT);
}

/* A class that was not solved at all is neither yes nor no: the cap is told. */
static enum vp_exit solve(struct vp_ctx *ctx, const struct problem *p, struct vp_placement *out) {
    struct vp_recompute_answer *a = &out->answer;
    *out = (struct vp_placement){.chain = &p->chain,
                                 .name = p->name,
                                 .class = p->class,
                                 .budget_bytes = p->budget_bytes,
                                 .inflight = p->inflight};
    vp_recompute_solve(ctx->arena, a, &p->chain, p->class, p->budget_bytes, p->inflight);
    if (a->feasible)
        vp_certificate_check(ctx->arena, &out->certificate, &p->chain, p->class, p->budget_bytes,
                             p->inflight, a);
    if (a->cap)
        vp_diag_add(ctx->diags, VP_D_PLACEMENT_CAP, NULL, "class %s is %s: cap on %s",
                    vp_recompute_class_name(p->class),
                    a->feasible ? "not solved exactly" : "not solved", a->cap);
    if (a->feasible)
        return VP_EXIT_YES;
    return a->cap ? VP_EXIT_INCONCLUSIVE : VP_EXIT_NO;
}

int vp_cmd_checkpoint(struct vp_ctx *ctx, const struct vp_args *args) {
    struct problem problem;
    struct vp_placement placement;
    struct vp_buf out = {.arena = ctx->arena};
    enum vp_exit code = VP_EXIT_YES;
    if (!args->value[VP_OPTION_CHAIN] && args->operand_count)
        return vp_checkpoint_scenario(ctx, args);
    enum vp_status status = read_problem(ctx, &problem, args);
    if (status != VP_OK)
        return vp_output_failure(ctx, args, status);
    if (args->value[VP_OPTION_FRONTIER])
        status = write_frontier(ctx, &problem, args->value[VP_OPTION_FRONTIER]);
    if (args->value[VP_OPTION_BUDGET]) {
        code = solve(ctx, &problem, &placement);
        render(&out, &problem, &placement, args->format);
        enum vp_status written = vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT]);
        status = status == VP_OK ? written : status;
    }
    return (int)vp_exit_of_both(code, vp_exit_of_status(status));
}
