#include "cli/gate_output.h"

#include <stdlib.h>
#include <unistd.h>

#include "cli/output.h"
#include "reports/gate_report.h"

struct writing {
    struct vp_ctx *ctx;
    const struct vp_args *args;
    const struct vp_gate *gate;
    int exit_code;
};

enum form {
    FORM_TEXT,
    FORM_JSON,
    FORM_JUNIT,
    FORM_SARIF,
    FORM_GITLAB,
    FORM_MARKDOWN,
    FORM_METRICS
};

static void render_json(const struct writing *w, struct vp_buf *out, enum form form) {
    struct vp_json json = vp_json_begin(out);
    if (form == FORM_JSON)
        vp_gate_json(&json, w->gate, w->exit_code);
    else if (form == FORM_SARIF)
        vp_gate_sarif(&json, w->gate);
    else
        vp_gate_gitlab(&json, w->gate);
    vp_buf_add(out, "\n");
}

static void render(const struct writing *w, struct vp_buf *out, enum form form) {
    struct vp_report_options options = vp_output_options(w->args);

    switch (form) {
    case FORM_TEXT:
        vp_gate_text(out, w->gate, w->exit_code, &options);
        break;
    case FORM_JSON:
    case FORM_SARIF:
    case FORM_GITLAB:
        render_json(w, out, form);
        break;
    case FORM_JUNIT:
        vp_gate_junit(out, w->gate);
        break;
    case FORM_MARKDOWN:
        vp_gate_markdown(out, w->gate);
        break;
    case FORM_METRICS:
        vp_gate_metrics(out, w->gate);
        break;
    }
}

static enum vp_status write_form(const struct writing *w, enum form form, const char *path) {
    struct vp_buf out = {.arena = w->ctx->arena};
    render(w, &out, form);
    return vp_output_write(w->ctx, &out, path);
}

/* GitHub's runner reads workflow commands from both streams; the result keeps its own. */
static void annotate(const struct writing *w) {
    const char *asked = w->args->value[VP_OPTION_ANNOTATIONS], *actions = getenv("GITHUB_ACTIONS");
    struct vp_buf out = {.arena = w->ctx->arena};
    if (asked ? !vp_text_eq(asked, "github") : !vp_text_eq(actions, "true"))
        return;
    vp_gate_annotations(&out, w->gate);
    (void)vp_output_put(STDERR_FILENO, vp_buf_text(&out), out.size);
}

enum vp_status vp_gate_output(struct vp_ctx *ctx, const struct vp_args *args,
                              const struct vp_gate *gate, int exit_code) {
    static const struct {
        enum vp_option option;
        enum form form;
    } FILES[] = {{VP_OPTION_GATE_JSON, FORM_JSON},
                 {VP_OPTION_JUNIT, FORM_JUNIT},
                 {VP_OPTION_SARIF, FORM_SARIF},
                 {VP_OPTION_GITLAB, FORM_GITLAB},
                 {VP_OPTION_GATE_MARKDOWN, FORM_MARKDOWN},
                 {VP_OPTION_METRICS, FORM_METRICS}};
    static const char *const NAMES[] = {"text", "json", "junit", "sarif", "gitlab", "markdown"};
    struct writing w = {ctx, args, gate, exit_code};
    const char *format = args->value[VP_OPTION_GATE_FORMAT];
    enum form form = FORM_TEXT;
    while (format && !vp_text_eq(format, NAMES[form]))
        form++;
    enum vp_status status = write_form(&w, form, args->value[VP_OPTION_OUTPUT]);
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        const char *path = args->value[FILES[i].option];
        enum vp_status one = path ? write_form(&w, FILES[i].form, path) : VP_OK;
        status = one > status ? one : status;
    }
    annotate(&w);
    return status;
}
