/* Parts that the text report and the explanation have in common. */
#ifndef VP_REPORTS_SECTIONS_H
#define VP_REPORTS_SECTIONS_H

#include "reports/layout.h"
#include "reports/report.h"

struct vp_page vp_section_page(struct vp_buf *out, const struct vp_report_options *options);
/* The model and what is assumed of it, without devices. */
void vp_section_setup(const struct vp_page *page, const struct vp_result *result,
                      const struct vp_report_options *options);
/* Assumptions in two lines, the verdict, the reason. */
void vp_section_head(const struct vp_page *page, const struct vp_result *result,
                     const struct vp_report_options *options);
/* One line per device when there are several, the worst marked. */
void vp_section_devices(const struct vp_page *page, const struct vp_result *result);
/* Changes that make it fit, numbered. */
void vp_section_suggestions(const struct vp_page *page, const struct vp_result *result);
/* Diagnostics of the scenario, in the order in which they arose. */
void vp_section_notes(const struct vp_page *page, const struct vp_result *result);

#endif
