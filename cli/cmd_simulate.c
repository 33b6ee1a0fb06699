/* simulate: a serving day: traffic, its waiting and latencies, whether a promise is kept. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "api/simulate_window.h"
#include "cli/args.h"
#include "cli/output.h"
#include "cli/plot.h"
#include "cli/progress.h"
#include "cli/simulate_ask.h"
#include "planner/base/units.h"
#include "reports/simulate_report.h"

/* ---- the question ---- */

struct question {
    struct vp_simulate_ask ask;
    struct vp_slo slo;
    bool windowed;
    double from_s, to_s;
    struct vp_progress progress;
};

/* "60s..90s" */
static void read_window(struct vp_ctx *ctx, struct question *q, const char *text) {
    const char *dots = text ? strstr(text, "..") : NULL;

    if (!text)
        return;
    q->windowed = true;
    if (!dots ||
        !vp_parse_seconds(&q->from_s, vp_arena_text(ctx->arena, text, (size_t)(dots - text))) ||
        !vp_parse_seconds(&q->to_s, dots + 2) || !(q->to_s > q->from_s))
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                    "--window is FROM..TO, as 60s..90s, not '%s'", text);
}

static void read_question(struct vp_ctx *ctx, struct question *q, const struct vp_args *args) {
    vp_simulate_ask_read(ctx, &q->ask, &q->slo, args);
    read_window(ctx, q, args->value[VP_OPTION_WINDOW]);
    if (q->windowed && !args->value[VP_OPTION_CHROME_TRACE])
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--window belongs to --chrome-trace");
    vp_plot_check(ctx, args);
}

static void show_progress(void *state, uint32_t done, uint32_t all) {
    struct question *q = state;

    if (done == 1)
        vp_progress_begin(&q->progress, true, 0, all);
    vp_progress_step(&q->progress, done);
}

/* ---- files ---- */

static enum vp_status write_trace(struct vp_ctx *ctx, const struct vp_args *args,
                                  const struct question *q, const struct vp_simulated *seen,
                                  const struct vp_simulation *simulation) {
    const double before = 1, span = 10; /* seconds: what a viewer shows at ease */
    struct vp_buf out = {.arena = ctx->arena};
    double from = q->windowed ? q->from_s : fmax(seen->peak_s - before, 0);
    double to = q->windowed ? q->to_s : from + span;
    struct vp_window window;

    enum vp_status status = vp_simulation_window(ctx, &window, simulation, from, to);
    if (status != VP_OK)
        return status;
    if (window.cut)
        vp_diag_add(ctx->diags, VP_D_TRACE_CUT, NULL,
                    "the window has more than %d iterations: the first ones are written",
                    (int)VP_WINDOW_MOST);
    if (window.count == 0)
        vp_diag_add(ctx->diags, VP_D_TRACE_CUT, NULL,
                    "nothing runs from %gs to %gs of the first day: the window is empty", from, to);
    vp_simulate_chrome(&out, window.item, window.count);
    return vp_output_write(ctx, &out, args->value[VP_OPTION_CHROME_TRACE]);
}

/* "day.svg" -> "day-cache.svg"; the first chart has the name itself. */
static enum vp_status draw(struct vp_ctx *ctx, const struct vp_args *args,
                           const struct vp_simulated *seen) {
    enum vp_status status = VP_OK;

    for (int i = 0; i < VP_SIMULATE_CHARTS; i++) {
        struct vp_args one = *args;
        const char *file = args->value[VP_OPTION_PLOT], *dot = strrchr(file, '.');
        if (i > 0 && dot && strcmp(file, "-") != 0)
            one.value[VP_OPTION_PLOT] =
                vp_arena_printf(ctx->arena, "%.*s-%s%s", (int)(dot - file), file,
                                vp_simulate_chart_name((enum vp_simulate_chart)i), dot);
        enum vp_status drawn =
            vp_plot_draw(ctx, &one, vp_simulate_chart(ctx->arena, seen, (enum vp_simulate_chart)i),
                         args->format != VP_FORMAT_TEXT);
        status = drawn != VP_OK ? drawn : status;
    }
    return status;
}

static enum vp_exit write_files(struct vp_ctx *ctx, const struct vp_args *args,
                                const struct question *q, const struct vp_simulated *seen,
                                const struct vp_simulation *simulation) {
    enum vp_exit code = VP_EXIT_YES;

    if (args->value[VP_OPTION_CSV]) {
        struct vp_buf csv = {.arena = ctx->arena};
        vp_simulate_series_csv(&csv, seen);
        code = vp_exit_of_both(
            code, vp_exit_of_status(vp_output_write(ctx, &csv, args->value[VP_OPTION_CSV])));
    }
    if (args->value[VP_OPTION_CHROME_TRACE])
        code =
            vp_exit_of_both(code, vp_exit_of_status(write_trace(ctx, args, q, seen, simulation)));
    return code;
}

/* ---- the command ---- */

static void render(struct vp_buf *out, const struct vp_args *args,
                   const struct vp_simulated *seen) {
    struct vp_report_options options = vp_output_options(args);
    struct vp_json json = vp_json_begin(out);

    switch (args->format) {
    case VP_FORMAT_JSON:
        vp_simulate_json(&json, seen);
        vp_buf_add(out, "\n");
        break;
    case VP_FORMAT_CSV:
        vp_simulate_csv(out, seen);
        break;
    case VP_FORMAT_MARKDOWN:
        vp_simulate_markdown(out, seen);
        break;
    case VP_FORMAT_TEXT:
        vp_simulate_text(out, seen, &options);
        break;
    }
}

static enum vp_status simulate(struct vp_ctx *ctx, struct question *q, struct vp_variants *variants,
                               struct vp_simulated *seen, struct vp_simulation *simulation) {
    enum vp_status status = vp_simulation_make(ctx, simulation, variants, NULL, 0, &q->ask, NULL);

    if (status == VP_OK)
        status = vp_simulation_run(ctx, seen, simulation);
    vp_progress_end(&q->progress);
    return status;
}

int vp_cmd_simulate(struct vp_ctx *ctx, const struct vp_args *args) {
    struct question q = {.windowed = false};
    struct vp_variants *variants = NULL;
    struct vp_simulated *seen = VP_NEW(ctx->arena, struct vp_simulated);
    struct vp_simulation *simulation = VP_NEW(ctx->arena, struct vp_simulation);
    struct vp_buf out = {.arena = ctx->arena};
    uint32_t errors = ctx->diags->errors;

    read_question(ctx, &q, args);
    enum vp_status status =
        vp_variants_open(ctx, &variants, args->operands[0], args->settings, args->setting_count);
    if (status == VP_OK && ctx->diags->errors > errors)
        status = VP_ERR_INPUT;
    if (isatty(STDERR_FILENO)) {
        q.ask.progress = show_progress;
        q.ask.progress_state = &q;
    }
    if (status == VP_OK)
        status = simulate(ctx, &q, variants, seen, simulation);
    if (status != VP_OK) {
        vp_variants_close(variants);
        return vp_output_failure(ctx, args, status);
    }
    enum vp_exit code = write_files(ctx, args, &q, seen, simulation);
    render(&out, args, seen);
    code = vp_exit_of_both(
        code, vp_exit_of_status(vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT])));
    if (args->value[VP_OPTION_PLOT])
        code = vp_exit_of_both(code, vp_exit_of_status(draw(ctx, args, seen)));
    code = vp_exit_of_both(code, vp_exit_of_promise(seen->promise));
    vp_variants_close(variants);
    return (int)code;
}
