#include "cli/plan_charts.h"

#include "api/kv_curve.h"
#include "cli/plot.h"

static const char *const NAMES[] = {"breakdown", "kv",       "timeline",
                                    "frontier",  "roofline", "calibration"};

/* VP_PLAN_CHARTS: there is none of that name. */
static enum vp_plan_chart named(const char *name) {
    enum vp_plan_chart chart = VP_PLAN_BREAKDOWN;
    while (chart < VP_PLAN_CHARTS && !vp_text_eq(name, NAMES[chart]))
        chart++;
    return chart;
}

/* ---- one each ---- */

/* The scenario is read again by its name: a file may hold several. */
static struct vp_chart *kv(struct vp_ctx *ctx, const struct vp_result *result, const char *input,
                           const struct vp_args *args, const char **why) {
    struct vp_variants *variants = NULL;
    struct vp_kv_lines lines = {0};
    struct vp_ctx own = *ctx;
    struct vp_chart *chart = NULL;
    own.diags = VP_NEW(ctx->arena, struct vp_diags);
    own.diags->arena = ctx->arena;
    if (result->training.stage) {
        *why = "nothing is served, so there is no KV cache";
        return NULL;
    }
    *why = "its variants cannot be made of standard input, which is read: name a file";
    if (vp_text_eq(input, "-"))
        return NULL;
    if (vp_variants_open(&own, &variants, input, args->settings, args->setting_count) == VP_OK) {
        vp_kv_curve(&own, &lines, variants, result);
        chart = vp_chart_kv(ctx->arena, &lines, result);
    }
    vp_variants_close(variants);
    *why = "its KV cache has no formats to compare";
    return chart;
}

static struct vp_chart *timeline(struct vp_ctx *ctx, const struct vp_result *result,
                                 const char **why) {
    struct vp_timeline *timeline = VP_NEW(ctx->arena, struct vp_timeline);
    *why = "nothing is trained, so there is no step";
    if (!result->training.stage)
        return NULL;
    *why = "its step is too large to be told";
    if (!vp_timeline_make(ctx->arena, timeline, result, result->training.worst))
        return NULL;
    return vp_chart_timeline(ctx->arena, timeline);
}

static struct vp_chart *frontier(struct vp_ctx *ctx, const struct vp_result *result,
                                 const char **why) {
    struct vp_recompute_report *report = VP_NEW(ctx->arena, struct vp_recompute_report);
    struct vp_frontier points;
    *why = vp_recompute_of_scenario(ctx->arena, report, result->scenario, 0, VP_FRAMEWORK_COUNT);
    if (*why)
        return NULL;
    const struct vp_train_chain *chain = &report->problem.stage[report->stage].chain;
    vp_recompute_frontier(ctx->arena, &points, &chain->chain,
                          chain->in_flight > 1 ? VP_PLACE_PIPELINE : VP_PLACE_JOINT,
                          chain->in_flight);
    *why = "its frontier was not found";
    return vp_chart_frontier(ctx->arena, report, &points);
}

static struct vp_chart *roofline(struct vp_ctx *ctx, const struct vp_result *result,
                                 const char **why) {
    struct vp_roofline *of = VP_NEW(ctx->arena, struct vp_roofline);
    *why = "the rates of its card are not known";
    if (!vp_roofline_of(ctx->arena, of, result))
        return NULL;
    return vp_chart_roofline(ctx->arena, of, result);
}

struct vp_chart *vp_plan_chart(struct vp_ctx *ctx, enum vp_plan_chart chart,
                               const struct vp_result *result, const char *input,
                               const struct vp_args *args, const char **why) {
    switch (chart) {
    case VP_PLAN_BREAKDOWN:
        return vp_chart_breakdown(ctx->arena, result);
    case VP_PLAN_KV:
        return kv(ctx, result, input, args, why);
    case VP_PLAN_TIMELINE:
        return timeline(ctx, result, why);
    case VP_PLAN_FRONTIER:
        return frontier(ctx, result, why);
    case VP_PLAN_ROOFLINE:
        return roofline(ctx, result, why);
    case VP_PLAN_CALIBRATION:
        *why = "no calibration of its card holds measured matrix products";
        return vp_chart_calibration(ctx->arena, result);
    case VP_PLAN_CHARTS:
        break;
    }
    return NULL;
}

/* ---- --chart ---- */

struct vp_chart *vp_plan_chart_of_all(struct vp_ctx *ctx, const struct vp_answers *answers) {
    const struct vp_result **results =
        VP_NEW_ARRAY(ctx->arena, answers->count, const struct vp_result *);
    const char **names = VP_NEW_ARRAY(ctx->arena, answers->count, const char *);
    uint32_t count = 0;
    for (size_t i = 0; i < answers->count; i++)
        if (answers->items[i].result) {
            const char *name = answers->items[i].scenario;
            names[count] = name && *name ? name : answers->items[i].input;
            results[count++] = answers->items[i].result;
        }
    return vp_chart_breakdowns(ctx->arena, results, names, count);
}

bool vp_plan_chart_check(struct vp_ctx *ctx, const struct vp_args *args) {
    const char *name = args->value[VP_OPTION_CHART];
    if (name && !args->value[VP_OPTION_PLOT]) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--chart goes with --plot");
        vp_diag_hint(ctx->diags, "--plot - shows it here");
        return false;
    }
    if (!name || named(name) != VP_PLAN_CHARTS)
        return vp_plot_check(ctx, args);
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "'plan' has no --chart %s", name);
    vp_diag_hint(ctx->diags, "breakdown, kv, timeline, frontier, roofline or calibration");
    return false;
}

struct vp_chart *vp_plan_chart_asked(struct vp_ctx *ctx, const struct vp_answers *answers,
                                     const struct vp_args *args) {
    const char *name = args->value[VP_OPTION_CHART], *why = NULL;
    enum vp_plan_chart chart = name ? named(name) : VP_PLAN_BREAKDOWN;
    if (answers->count > 1 && chart == VP_PLAN_BREAKDOWN)
        return vp_plan_chart_of_all(ctx, answers);
    if (answers->count > 1) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--chart %s draws one scenario", name);
        vp_diag_hint(ctx->diags, "FILE#name picks one of a file");
        return NULL;
    }
    struct vp_chart *made =
        vp_plan_chart(ctx, chart, answers->items[0].result, answers->items[0].input, args, &why);
    if (!made)
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--chart %s: %s", NAMES[chart], why);
    return made;
}
