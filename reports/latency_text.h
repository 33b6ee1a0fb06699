/* How fast it is, for people: the estimates of struct vp_latency with their intervals, where they
 * come from and what would make them better. Nothing where nothing is known. */
#ifndef VP_REPORTS_LATENCY_TEXT_H
#define VP_REPORTS_LATENCY_TEXT_H

#include "reports/layout.h"
#include "reports/report.h"

void vp_latency_section(const struct vp_page *page, const struct vp_result *result);
/* As a Markdown table. */
void vp_latency_markdown(struct vp_buf *out, const struct vp_result *result);

#endif
