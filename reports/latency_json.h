/* How long it takes, as JSON (reports/report.h). */
#ifndef VP_REPORTS_LATENCY_JSON_H
#define VP_REPORTS_LATENCY_JSON_H

#include "planner/base/json_writer.h"
#include "planner/plan/result.h"

/* The map of key "latency": estimates that are known, and the parts of a step. Times are rounded to
 * a millionth of their unit, because no figure is better than that. */
void vp_latency_json(struct vp_json *json, const struct vp_latency *latency);

#endif
