/* help: the overview, one command's options; --man and --completion for packaging,
 * --formulas and --diagnostics for the reference pages. */
#include "cli/args.h"
#include "cli/help.h"
#include "cli/output.h"

static enum vp_status add_topic(struct vp_ctx *ctx, struct vp_buf *out, const char *topic) {
    enum vp_command command = vp_command_find(topic);
    if (command != VP_COMMAND_COUNT && vp_commands[command].run) {
        vp_help_command(out, command);
        return VP_OK;
    }
    if (command != VP_COMMAND_COUNT) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "'%s' is not in this version", topic);
        return VP_ERR_INPUT;
    }
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "no command '%s'", topic);
    enum vp_command nearest = vp_command_nearest(topic);
    if (nearest != VP_COMMAND_COUNT)
        vp_diag_hint(ctx->diags, "did you mean '%s'?", vp_commands[nearest].name);
    return VP_ERR_INPUT;
}

int vp_cmd_help(struct vp_ctx *ctx, const struct vp_args *args) {
    struct vp_buf out = {.arena = ctx->arena};
    enum vp_status status = VP_OK;
    if (args->value[VP_OPTION_MAN])
        vp_help_man(&out);
    else if (args->value[VP_OPTION_COMPLETION])
        vp_help_completion(&out);
    else if (args->value[VP_OPTION_FORMULAS])
        vp_help_formulas(&out);
    else if (args->value[VP_OPTION_DIAGNOSTICS])
        vp_help_diagnostics(&out);
    else if (args->operand_count)
        status = add_topic(ctx, &out, args->operands[0]);
    else
        vp_help_overview(&out);
    if (status == VP_OK)
        status = vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT]);
    return (int)vp_exit_of_status(status);
}
