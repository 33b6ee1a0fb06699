#include "cli/plot.h"

#include <string.h>
#include <unistd.h>

#include "cli/gnuplot.h"
#include "cli/output.h"
#include "reports/chart_gnuplot.h"
#include "reports/chart_svg.h"
#include "reports/chart_text.h"
#include "reports/layout.h"

enum form { FORM_PNG, FORM_SVG, FORM_PDF, FORM_TEXT, FORM_SHOWN, FORM_NONE };

static enum form form_of(const char *file) {
    static const char *const ENDINGS[] = {".png", ".svg", ".pdf", ".txt"};
    if (vp_text_eq(file, "-"))
        return FORM_SHOWN;
    for (int i = 0; i < (int)(sizeof ENDINGS / sizeof ENDINGS[0]); i++)
        if (vp_text_ends(file, ENDINGS[i]) && strlen(file) > strlen(ENDINGS[i]))
            return (enum form)i;
    return FORM_NONE;
}

bool vp_plot_check(struct vp_ctx *ctx, const struct vp_args *args) {
    const char *file = args->value[VP_OPTION_PLOT];
    if (!file || form_of(file) != FORM_NONE)
        return true;
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                "--plot draws .png, .svg, .pdf or .txt files, not '%s'", file);
    vp_diag_hint(ctx->diags, "--plot - shows the chart behind the result");
    return false;
}

/* "a/b.png" -> "a/b.gp" */
static const char *beside(struct vp_ctx *ctx, const char *image, const char *ending) {
    return vp_arena_printf(ctx->arena, "%.*s%s", (int)(strrchr(image, '.') - image), image, ending);
}

static enum vp_status show(struct vp_ctx *ctx, const struct vp_args *args,
                           const struct vp_chart *chart, bool machine) {
    struct vp_buf out = {.arena = ctx->arena};
    bool apart = args->value[VP_OPTION_OUTPUT] && !vp_text_eq(args->value[VP_OPTION_OUTPUT], "-");
    if (!apart) /* behind the result */
        vp_buf_add(&out, "\n");
    vp_chart_text(&out, chart, VP_PAGE_WIDTH, 0);
    if (!machine || apart)
        return vp_output_write(ctx, &out, NULL);
    vp_output_put(STDERR_FILENO, out.data, out.size); /* trouble there cannot be told anywhere */
    return VP_OK;
}

static enum vp_status write_text(struct vp_ctx *ctx, const struct vp_chart *chart,
                                 const char *file) {
    struct vp_buf out = {.arena = ctx->arena};
    vp_chart_text(&out, chart, VP_PAGE_WIDTH, 0);
    return vp_output_write(ctx, &out, file);
}

static enum vp_status write_svg(struct vp_ctx *ctx, const struct vp_chart *chart,
                                const char *file) {
    struct vp_buf out = {.arena = ctx->arena};
    vp_chart_svg_file(&out, chart);
    return vp_output_write(ctx, &out, file);
}

enum vp_status vp_plot_draw(struct vp_ctx *ctx, const struct vp_args *args,
                            const struct vp_chart *chart, bool machine) {
    static const enum vp_gnuplot_terminal TERMINALS[] = {
        [FORM_PNG] = VP_GNUPLOT_PNG, [FORM_SVG] = VP_GNUPLOT_SVG, [FORM_PDF] = VP_GNUPLOT_PDF};
    const char *file = args->value[VP_OPTION_PLOT];
    enum form form = form_of(file);
    struct vp_buf script = {.arena = ctx->arena}, data = {.arena = ctx->arena};
    bool missing = false;

    if (form == FORM_SHOWN)
        return show(ctx, args, chart, machine);
    if (form == FORM_TEXT)
        return write_text(ctx, chart, file);
    const char *script_path = beside(ctx, file, ".gp"), *data_path = beside(ctx, file, ".dat");
    vp_chart_gnuplot_data(&data, chart);
    vp_chart_gnuplot_script(&script, chart, data_path, file, TERMINALS[form]);
    enum vp_status status = vp_output_write(ctx, &data, data_path);
    if (status == VP_OK)
        status = vp_output_write(ctx, &script, script_path);
    if (status != VP_OK)
        return status;
    status = vp_gnuplot_run(ctx, script_path, form == FORM_SVG, &missing);
    if (!missing)
        return status;
    enum vp_status shown = show(ctx, args, chart, machine);
    if (form == FORM_SVG)
        status = write_svg(ctx, chart, file);
    return status == VP_OK ? shown : status;
}
