/* A log beside a plan: what the engine printed, what the plan of the same scenario predicts, which
 * settings agree, what a run like this says of the engine's overheads. */
#ifndef VP_API_LOG_COMPARE_H
#define VP_API_LOG_COMPARE_H

#include "api/answers.h"
#include "planner/import/engine_refit.h"
#include "planner/import/log_measured.h"
#include "planner/plan/figures.h"

struct vp_log_row {
    const struct vp_log_figure *logged; /* never NULL */
    const struct vp_figure *predicted;  /* NULL: the plan has no such figure */
    bool inside;                        /* the predicted interval holds it, as printed */
};

enum vp_log_setting_use {
    VP_LOG_SETTING_AGREES,
    VP_LOG_SETTING_FILLED,  /* the scenario did not say it: the log's value was used */
    VP_LOG_SETTING_DIFFERS, /* the scenario says something else, which was used */
    VP_LOG_SETTING_LEFT     /* computed from others, or of no use here */
};

struct vp_log_checked {
    struct vp_log_setting setting;
    const char *ours; /* the scenario's value; NULL: none */
    enum vp_log_setting_use use;
};

struct vp_log_comparison {
    const struct vp_run_log *log;
    enum vp_engine_kind engine;
    bool engine_known;
    struct vp_log_figure *figure;
    size_t figures;
    struct vp_log_checked *checked; /* none without a scenario */
    size_t checked_count;
    const struct vp_result *result; /* NULL: without a scenario */
    struct vp_log_row *row;         /* one per figure */
    struct vp_refit refit;          /* what could be said to a profile */
};

/* The figures alone. */
void vp_log_compare_none(struct vp_ctx *ctx, struct vp_log_comparison *out,
                         const struct vp_run_log *log);
/* Plans the scenario with what the log says and the scenario does not. Settings that disagree are
 * VP_D_LOG_DISAGREES; a log of another engine is VP_ERR_INPUT. */
enum vp_status vp_log_compare(struct vp_ctx *ctx, struct vp_log_comparison *out,
                              const struct vp_run_log *log, const char *scenario,
                              const struct vp_setting *settings, size_t setting_count);
/* predicted / logged - 1 in 1/1000000; false: logged is 0 or nothing is predicted. */
bool vp_log_row_deviation(int64_t *out_millionths, const struct vp_log_row *row);

#endif
