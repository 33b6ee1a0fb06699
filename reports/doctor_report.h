/* What messages about memory mean, as text, Markdown, CSV or JSON ("vramplan.doctor/1"). */
#ifndef VP_REPORTS_DOCTOR_REPORT_H
#define VP_REPORTS_DOCTOR_REPORT_H

#include "planner/base/diag.h"
#include "planner/plan/doctor.h"
#include "reports/layout.h"

void vp_doctor_report_text(const struct vp_page *page, const struct vp_run_log *log,
                           const struct vp_diagnosis *diagnosis);
void vp_doctor_report_markdown(struct vp_buf *out, const struct vp_run_log *log,
                               const struct vp_diagnosis *diagnosis);
void vp_doctor_report_csv(struct vp_buf *out, const struct vp_diagnosis *diagnosis);
void vp_doctor_report_json(struct vp_buf *out, const struct vp_run_log *log,
                           const struct vp_diagnosis *diagnosis, const struct vp_diags *diags);

#endif
