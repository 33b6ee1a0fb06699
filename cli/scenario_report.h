/* How the answer of `checkpoint` for a scenario looks: what frameworks can be told, what people set
 * by hand and the best plans of each class, as text, Markdown, CSV and JSON. */
#ifndef VP_CLI_SCENARIO_REPORT_H
#define VP_CLI_SCENARIO_REPORT_H

#include "cli/placement_report.h"
#include "planner/plan/recompute_report.h"

/* CSV: the table of frameworks. */
void vp_scenario_placement_table(struct vp_buf *out, const struct vp_recompute_report *report,
                                 enum vp_placement_form form);
/* The whole document, schema "vramplan.checkpoint/1", with the key "scenario". */
void vp_scenario_placement_json(struct vp_buf *out, const struct vp_recompute_report *report);

#endif
