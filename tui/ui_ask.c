/* What every screen can be asked: to solve, to write, to show the command, to take a command. */
#include <stdio.h>

#include "tui/ui.h"
#include "tui/ui_command.h"

/* ---- solving ---- */

static void solve_chosen(struct vp_ui *ui, int index) {
    vp_session_solve(ui->session, (enum vp_solve)index);
    vp_ui_tell(ui);
}

static void ask_solve(struct vp_ui *ui) {
    static const char *const WORDS[VP_SOLVE_COUNT] = {
        [VP_SOLVE_CONTEXT] = "the longest context at these sequences",
        [VP_SOLVE_CONCURRENCY] = "the most sequences at this context",
        [VP_SOLVE_BATCH] = "the largest micro batch",
        [VP_SOLVE_SEQUENCE] = "the longest training sequence",
        [VP_SOLVE_GPUS] = "the fewest GPUs, in every layout"};
    for (int i = 0; i < VP_SOLVE_COUNT; i++) {
        bool can = vp_session_can_solve(ui->session, (enum vp_solve)i);
        ui->own[i] = (struct vp_ui_choice){.value = vp_solve_name((enum vp_solve)i),
                                           .note = can ? WORDS[i] : "not of this scenario",
                                           .off = !can};
    }
    vp_ui_menu(ui, "solve for", ui->own, VP_SOLVE_COUNT, solve_chosen);
}

/* ---- files ---- */

/* The first thing that went wrong, in the frame's arena. */
static const char *fault_of(struct vp_ui *ui) {
    const char *fault = ui->ctx->diags->count ? ui->ctx->diags->items[0].message : "it failed";
    fault = vp_arena_printf(&ui->frame, "%s", fault);
    ui->ctx->diags->count = ui->ctx->diags->errors = 0;
    return fault;
}

static void write_form(struct vp_ui *ui, enum vp_export form, const char *path) {
    struct vp_buf out = {.arena = &ui->frame};
    const char *fault = NULL;
    if (!ui->write) {
        vp_ui_say(ui, VP_LOOK_BAD, "no file can be written from here");
        return;
    }
    if (vp_session_render(ui->session, &out, form, path) != VP_OK) {
        vp_ui_tell(ui);
        return;
    }
    if (ui->write(ui->ctx, &out, path) != VP_OK)
        fault = fault_of(ui);
    vp_session_exported(ui->session, path, fault);
    vp_ui_tell(ui);
}

static void path_entered(struct vp_ui *ui, const char *path);

static void ask_path(struct vp_ui *ui, const char *path) {
    const char *name = vp_export_name(ui->form);
    vp_ui_ask(ui, vp_arena_printf(&ui->frame, "write %s to", name), path, NULL, 0, path_entered);
}

/* A file that is there is written over only when its name is entered a second time. */
static void path_entered(struct vp_ui *ui, const char *path) {
    bool again = vp_text_eq(path, ui->overwrite);
    ui->overwrite[0] = '\0';
    if (!*path)
        return;
    if (!again && ui->ctx && vp_io_kind(ui->ctx, path) != VP_FILE_NONE) {
        vp_ui_say(ui, VP_LOOK_WARN, "%s is there already: Enter writes over it, Esc does not",
                  path);
        snprintf(ui->overwrite, sizeof ui->overwrite, "%s", path);
        ask_path(ui, path);
        return;
    }
    write_form(ui, ui->form, path);
}

void vp_ui_write_to(struct vp_ui *ui, enum vp_export form, const char *path) {
    ui->form = form;
    ui->overwrite[0] = '\0';
    if (path)
        path_entered(ui, path);
    else
        ask_path(ui, vp_session_export_path(ui->session, form));
}

static void export_chosen(struct vp_ui *ui, int index) {
    vp_ui_write_to(ui, (enum vp_export)index, NULL);
}

static void ask_export(struct vp_ui *ui) {
    static const char *const WORDS[VP_EXPORT_COUNT] = {
        [VP_EXPORT_YAML] = "the scenario, for vramplan plan",
        [VP_EXPORT_JSON] = "the result, for programs",
        [VP_EXPORT_MARKDOWN] = "for a wiki or a pull request",
        [VP_EXPORT_HTML] = "a page with charts, in one file",
        [VP_EXPORT_TEXT] = "what vramplan plan prints",
        [VP_EXPORT_CSV] = "one line, for a spreadsheet"};
    for (int i = 0; i < VP_EXPORT_COUNT; i++)
        ui->own[i] =
            (struct vp_ui_choice){.value = vp_export_name((enum vp_export)i), .note = WORDS[i]};
    vp_ui_menu(ui, "export as", ui->own, VP_EXPORT_COUNT, export_chosen);
}

/* ---- out ---- */

static void show_command(struct vp_ui *ui) {
    vp_ui_show(ui, "the same plan, as a command", vp_session_command(ui->session));
    ui->copy = true;
}

bool vp_ui_ask_act(struct vp_ui *ui, enum vp_action action) {
    switch (action) {
    case VP_ACT_SOLVE:
        ask_solve(ui);
        return true;
    case VP_ACT_EXPORT:
        ask_export(ui);
        return true;
    case VP_ACT_WRITE:
        vp_ui_write_to(ui, VP_EXPORT_YAML, NULL);
        return true;
    case VP_ACT_COPY:
        show_command(ui);
        return true;
    case VP_ACT_COMMAND:
        vp_ui_ask_command(ui);
        return true;
    default:
        return false;
    }
}
