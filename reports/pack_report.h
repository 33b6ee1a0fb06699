/* Several programs on one node (planner/plan/packing.h): for people and for programs
 * (vramplan.fit/1, question "pack"). */
#ifndef VP_REPORTS_PACK_REPORT_H
#define VP_REPORTS_PACK_REPORT_H

#include "planner/plan/packing.h"
#include "reports/report.h"

void vp_pack_text(struct vp_buf *out, const struct vp_pack *pack,
                  const struct vp_report_options *options);
void vp_pack_json(struct vp_json *json, const struct vp_pack *pack, const struct vp_diags *diags);

#endif
