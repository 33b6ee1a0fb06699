/* How fast it is, for people: the estimates of struct vp_latency with their intervals, where they
 * come from and what would make them better. Nothing where nothing is known. */
#ifndef VP_REPORTS_LATENCY_TEXT_H
#define VP_REPORTS_LATENCY_TEXT_H

#include "reports/layout.h"
#include "reports/report.h"

void vp_latency_section(const struct vp_page *page, const struct vp_result *result);
/* The figures alone: "first token", "7430 ms", "3720 ms to 14.9 s"; how many there are. */
struct vp_latency_line {
    const char *label, *likely, *interval;
};
enum { VP_LATENCY_LINES = 5 };
uint32_t vp_latency_lines(struct vp_arena *arena, struct vp_latency_line out[VP_LATENCY_LINES],
                          const struct vp_result *result);
/* "calibrated: ...", "by class of card: ...": where they come from; why there are none; NULL. */
const char *vp_latency_basis(struct vp_arena *arena, const struct vp_result *result);
/* As a Markdown table. */
void vp_latency_markdown(struct vp_buf *out, const struct vp_result *result);

#endif
