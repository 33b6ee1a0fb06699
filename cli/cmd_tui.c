/* tui: the what-if interface on the terminal, or one screen of it as text (--dump). */
#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/args.h"
#include "cli/output.h"
#include "tui/curses.h"

enum { SCRIPT_BYTES = 1 << 20 };

struct plan_of_run {
    int width, height;
    bool dump;
    struct vp_key_script script;
};

static bool on_terminal(void) {
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term &&
           !vp_text_eq(term, "dumb");
}

static void refuse_terminal(struct vp_ctx *ctx, const struct vp_args *args) {
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                "the interface needs a terminal on standard input and output, and TERM not 'dumb'");
    vp_diag_hint(ctx->diags, "vramplan plan %s prints the answer; --dump prints the screen",
                 args->operand_count ? args->operands[0] : "INPUT");
}

static enum vp_status read_script(struct vp_ctx *ctx, struct plan_of_run *out, const char *path) {
    struct vp_bytes bytes;
    enum vp_status status = vp_io_read(ctx, &bytes, path, SCRIPT_BYTES);
    if (status != VP_OK)
        return status;
    return vp_keys_parse(ctx, &out->script, path, bytes.data);
}

static enum vp_status read_options(struct vp_ctx *ctx, struct plan_of_run *out,
                                   const struct vp_args *args) {
    const char *size = args->value[VP_OPTION_TUI_SIZE], *keys = args->value[VP_OPTION_TUI_KEYS];
    enum vp_status status = VP_OK;
    *out = (struct plan_of_run){
        .width = VP_UI_MIN_WIDTH, .height = VP_UI_MIN_HEIGHT, .dump = args->value[VP_OPTION_DUMP]};
    if (args->value[VP_OPTION_FORMAT]) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "the interface has no --format");
        vp_diag_hint(ctx->diags,
                     "vramplan plan prints in every format; in the interface, e exports");
        status = VP_ERR_INPUT;
    }
    if (size && !vp_parse_pair(size, 'x', &out->width, &out->height)) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--size is COLUMNSxLINES, not '%s'", size);
        vp_diag_hint(ctx->diags, "--size 120x40");
        status = VP_ERR_INPUT;
    }
    if (!out->dump && !on_terminal()) {
        refuse_terminal(ctx, args);
        status = VP_ERR_INPUT;
    }
    if (keys && status == VP_OK)
        status = read_script(ctx, out, keys);
    return status;
}

/* What takes longer is waited for after each key, so that the screen does not depend on the clock.
 */
static void press(struct vp_ui *ui, const struct vp_key_script *script) {
    for (size_t i = 0; i < script->count && !ui->quit; i++) {
        vp_ui_key(ui, script->key[i]);
        vp_ui_draw(ui);
        while (vp_ui_work(ui))
            ;
    }
}

static enum vp_status dump(struct vp_ctx *ctx, struct vp_ui *ui, const struct vp_args *args) {
    struct vp_buf out = {.arena = ctx->arena};
    do /* a screen may ask for more once it has the first */
        vp_ui_draw(ui);
    while (vp_ui_work(ui));
    vp_cells_print(&out, vp_ui_draw(ui), vp_output_colour(args), ui->theme);
    return vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT]);
}

/* The terminal is put back before anybody says that there is no memory. */
static enum vp_status show(struct vp_ctx *ctx, struct vp_ui *ui) {
    jmp_buf here, *outer = ctx->arena->oom;
    if (setjmp(here)) {
        vp_curses_close();
        ctx->arena->oom = outer;
        longjmp(*outer, 1);
    }
    ctx->arena->oom = ui->frame.oom = ui->over.oom = &here;
    enum vp_status status = vp_curses_run(ctx, ui);
    ctx->arena->oom = outer;
    return status;
}

static enum vp_status run(struct vp_ctx *ctx, struct vp_session *session,
                          const struct vp_args *args, const struct plan_of_run *plan) {
    struct vp_ui *ui = VP_NEW(ctx->arena, struct vp_ui);
    const char *theme = args->value[VP_OPTION_THEME];
    vp_ui_open(ui, session, plan->width, plan->height,
               vp_output_utf8(args) && !args->value[VP_OPTION_ASCII]);
    ui->frame.oom = ui->over.oom = ctx->arena->oom;
    ui->mouse = !args->value[VP_OPTION_NO_MOUSE];
    ui->write = vp_output_write;
    ui->ctx = ctx;
    ui->colour_off = !vp_output_colour(args);
    ui->theme = ui->colour_off ? VP_THEME_MONO : theme ? vp_theme_find(theme) : VP_THEME_DARK;
    press(ui, &plan->script);
    enum vp_status status = plan->dump ? dump(ctx, ui, args) : show(ctx, ui);
    vp_ui_close(ui);
    return status;
}

int vp_cmd_tui(struct vp_ctx *ctx, const struct vp_args *args) {
    struct plan_of_run plan;
    struct vp_session *session = NULL;
    enum vp_status status = read_options(ctx, &plan, args);
    if (status == VP_OK)
        status =
            vp_session_open(ctx, &session, args->operands[0], args->settings, args->setting_count);
    if (status == VP_OK)
        status = run(ctx, session, args, &plan);
    vp_session_close(session);
    return (int)vp_exit_of_status(status);
}
