/* The training side of the JSON result: engine report, intervals and the `training` map. */
#ifndef VP_REPORTS_TRAIN_JSON_H
#define VP_REPORTS_TRAIN_JSON_H

#include "planner/base/json_writer.h"
#include "planner/plan/result.h"

/* "engine_report" and "intervals" of the worst stage. */
void vp_train_json_report(struct vp_json *json, const struct vp_result *result);
/* "training": stages, peak, candidates. */
void vp_train_json_training(struct vp_json *json, const struct vp_result *result);

#endif
