/* checkpoint: where a chain of stages should recompute its activations. */
#include <inttypes.h>

#include "cli/args.h"
#include "cli/output.h"
#include "planner/base/units.h"
#include "planner/import/chain_reader.h"
#include "planner/recompute/judge.h"
#include "planner/recompute/recompute.h"

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
    if (args->budget && !vp_parse_size(&out->budget_bytes, args->budget)) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--budget is a size, not '%s'",
                    args->budget);
        vp_diag_hint(ctx->diags, "such as 12GiB, 800 MB or a number of bytes");
    }
    if (args->inflight && (!vp_parse_u64(&out->inflight, args->inflight) || out->inflight == 0 ||
                           out->inflight > VP_CHAIN_MAX_INFLIGHT)) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                    "--inflight is a number from 1 to %d, not '%s'", VP_CHAIN_MAX_INFLIGHT,
                    args->inflight);
        out->inflight = 1;
    }
    out->class = out->inflight > 1 ? VP_PLACE_PIPELINE : VP_PLACE_JOINT;
    if (args->class)
        out->class = class_named(args->class);
    if (out->inflight > 1 && out->class != VP_PLACE_PIPELINE) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                    "--inflight %s goes with class pp, not with class %s", args->inflight,
                    args->class);
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
    if (!args->chain) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "'checkpoint' needs --chain FILE");
        return VP_ERR_INPUT;
    }
    if (args->operand_count)
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "with --chain there is no other input: '%s'",
                    args->operands[0]);
    enum vp_status status = vp_chain_read(ctx, &file, args->chain, out->inflight);
    if (status != VP_OK)
        return status;
    out->chain = file.chain;
    out->name = file.name;
    return ctx->diags->errors == errors ? VP_OK : VP_ERR_INPUT;
}

static void json_op(struct vp_json *json, const struct vp_chain_op *op) {
    vp_json_list_inline(json);
    vp_json_text(json, vp_chain_op_name(op->kind));
    if (op->kind != VP_OP_LOSS)
        vp_json_u64(json, op->stage);
    if (op->kind == VP_OP_SAVE)
        vp_json_u64(json, op->option);
    vp_json_end(json, ']');
}

static void json_item(struct vp_json *json, const struct vp_plan_item *item) {
    vp_json_list_inline(json);
    vp_json_text(json, item->recompute ? "C" : "K");
    vp_json_u64(json, item->first);
    vp_json_u64(json, item->recompute ? item->last : item->option);
    vp_json_end(json, ']');
}

int vp_cmd_checkpoint(struct vp_ctx *ctx, const struct vp_args *args) {
    struct problem problem;
    enum vp_status status = read_problem(ctx, &problem, args);
    if (status != VP_OK)
        return vp_output_failure(ctx, args, status);
    struct vp_recompute_answer a;
    vp_recompute_solve(ctx->arena, &a, &problem.chain, problem.class, problem.budget_bytes,
                       problem.inflight);
    struct vp_buf out = {.arena = ctx->arena};
    struct vp_json json = vp_json_begin(&out);
    vp_json_map(&json);
    vp_json_key(&json, "class");
    vp_json_text(&json, vp_recompute_class_name(problem.class));
    vp_json_key(&json, "feasible");
    vp_json_bool(&json, a.feasible);
    if (a.feasible) {
        vp_json_key(&json, "time");
        vp_json_u64(&json, a.time);
        vp_json_key(&json, "peak_bytes");
        vp_json_u64(&json, a.peak_bytes);
        vp_json_key(&json, "optimal");
        vp_json_bool(&json, a.optimal);
        vp_json_key(&json, "gap");
        vp_json_real(&json, (double)a.gap_ppb * 1e-9);
        vp_json_key(&json, "labels");
        vp_json_u64(&json, a.labels);
        vp_json_key(&json, "plan");
        vp_json_list_inline(&json);
        for (uint32_t i = 0; i < a.plan.count; i++)
            json_item(&json, &a.plan.items[i]);
        vp_json_end(&json, ']');
        vp_json_key(&json, "schedule");
        vp_json_list_inline(&json);
        for (size_t i = 0; i < a.schedule.count; i++)
            json_op(&json, &a.schedule.ops[i]);
        vp_json_end(&json, ']');
    }
    vp_json_end(&json, '}');
    vp_buf_add(&out, "\n");
    status = vp_output_write(ctx, &out, args->output);
    return (int)vp_exit_of_both(a.feasible ? VP_EXIT_YES : VP_EXIT_NO, vp_exit_of_status(status));
}
