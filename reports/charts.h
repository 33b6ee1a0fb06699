/* The charts that the program has, as folds over what was computed: each maker picks figures of a
 * result, and computes none. One small file each, chart_NAME.c. NULL: there is nothing to draw. */
#ifndef VP_REPORTS_CHARTS_H
#define VP_REPORTS_CHARTS_H

#include "planner/plan/recompute_report.h"
#include "planner/plan/roofline.h"
#include "planner/plan/train_timeline.h"
#include "reports/chart.h"

/* The charts of one plan, in the order of a report. */
enum vp_plan_chart {
    VP_PLAN_BREAKDOWN,
    VP_PLAN_KV,
    VP_PLAN_TIMELINE,
    VP_PLAN_FRONTIER,
    VP_PLAN_ROOFLINE,
    VP_PLAN_CALIBRATION,
    VP_PLAN_CHARTS
};

/* The assumptions in one line: model, set-up, devices. */
const char *vp_chart_assumptions(struct vp_arena *arena, const struct vp_result *result);

/* What each device holds at its peak, stacked, against what it has and what may be used. */
struct vp_chart *vp_chart_breakdown(struct vp_arena *arena, const struct vp_result *result);
/* The worst device of each of several plans; names: of the plans. */
struct vp_chart *vp_chart_breakdowns(struct vp_arena *arena, const struct vp_result *const *results,
                                     const char *const *names, uint32_t count);
/* Two steps of training, event by event; where there are very many, the largest instant stands for
 * its neighbours. */
struct vp_chart *vp_chart_timeline(struct vp_arena *arena, const struct vp_timeline *timeline);
/* Memory of the tightest stage against extra time: the best plans as stairs, what people set by
 * hand as points. */
struct vp_chart *vp_chart_frontier(struct vp_arena *arena, const struct vp_recompute_report *report,
                                   const struct vp_frontier *frontier);
/* Operations per byte against operations per second: the card's roof, the scenario's operators,
 * measured products. */
struct vp_chart *vp_chart_roofline(struct vp_arena *arena, const struct vp_roofline *roofline,
                                   const struct vp_result *result);
/* Matrix products: the time that the calibration's form says against the measured one. */
struct vp_chart *vp_chart_calibration(struct vp_arena *arena, const struct vp_result *result);

/* The KV cache by its format. */
struct vp_kv_line {
    const char *format; /* "fp8" */
    bool now;           /* that of the scenario */
    uint32_t count;
    uint64_t *context; /* tokens per sequence */
    uint64_t *bytes;   /* on the fullest device, all sequences */
    uint64_t most;     /* tokens per sequence that fit; 0: none */
};
struct vp_kv_lines {
    struct vp_kv_line *line;
    uint32_t count;
    uint64_t room_bytes; /* what is left for the cache beside everything else */
};
struct vp_chart *vp_chart_kv(struct vp_arena *arena, const struct vp_kv_lines *lines,
                             const struct vp_result *result);

#endif
