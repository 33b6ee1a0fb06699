/* What fits, for people and for programs: proposals with their figures and the arguments to paste;
 * where nothing fits, which limit is exceeded by how much and what would have to give way. */
#ifndef VP_REPORTS_FIT_REPORT_H
#define VP_REPORTS_FIT_REPORT_H

#include "planner/base/json_writer.h"
#include "planner/plan/fit_llama.h"
#include "reports/report.h"

/* "balanced", "context", "layers", "slots" */
const char *vp_fit_goal_name(enum vp_fit_goal goal);
enum vp_verdict vp_fit_verdict(const struct vp_fit_llama *fit);

/* fit: NULL for engines without a search, whose plan's own suggestions and limits are shown. */
void vp_fit_text(struct vp_buf *out, const struct vp_result *result, const struct vp_fit_llama *fit,
                 const struct vp_report_options *options);
/* One object, schema "vramplan.fit/1". */
void vp_fit_json(struct vp_json *json, const struct vp_result *result,
                 const struct vp_fit_llama *fit);

#endif
