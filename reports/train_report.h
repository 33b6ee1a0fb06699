/* What a training plan has of its own in the reports: the setup in words, the peak with its instant
 * and cause, the other candidates, the stages; and its part of the JSON result. */
#ifndef VP_REPORTS_TRAIN_REPORT_H
#define VP_REPORTS_TRAIN_REPORT_H

#include "planner/base/json_writer.h"
#include "planner/plan/result.h"
#include "reports/layout.h"

/* "bf16 parameters, fp32 gradients, adamw (fp32 states, fp32 master), megatron, 4 x 1 x 4096
 * tokens, recompute full" */
const char *vp_train_setup(struct vp_arena *arena, const struct vp_result *result);
/* The instant of the peak and its cause, in one sentence. */
const char *vp_train_peak(struct vp_arena *arena, const struct vp_result *result);
/* Allocated against reserved, candidates, first step, stages. */
void vp_train_section(const struct vp_page *page, const struct vp_result *result);

#endif
