/* The charts of a plan by their names, for --chart and for the report: what they need beyond the
 * result (variants, a timeline, a frontier) is made here. */
#ifndef VP_CLI_PLAN_CHARTS_H
#define VP_CLI_PLAN_CHARTS_H

#include "api/variants.h"
#include "cli/args.h"
#include "reports/charts.h"

/* NULL: the plan has no such chart; *why says it. input: what the result was made of, for
 * variants. */
struct vp_chart *vp_plan_chart(struct vp_ctx *ctx, enum vp_plan_chart chart,
                               const struct vp_result *result, const char *input,
                               const struct vp_args *args, const char **why);
/* False: --plot and --chart do not say what can be drawn; a diagnostic says so. */
bool vp_plan_chart_check(struct vp_ctx *ctx, const struct vp_args *args);
/* A bar for each plan. */
struct vp_chart *vp_plan_chart_of_all(struct vp_ctx *ctx, const struct vp_answers *answers);
/* The chart that --plot and --chart ask for, of all answers; NULL: with a diagnostic. */
struct vp_chart *vp_plan_chart_asked(struct vp_ctx *ctx, const struct vp_answers *answers,
                                     const struct vp_args *args);

#endif
