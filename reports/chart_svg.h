/* Charts as SVG, written here: text as text, <title> and <desc>, no script, nothing from outside.
 */
#ifndef VP_REPORTS_CHART_SVG_H
#define VP_REPORTS_CHART_SVG_H

#include "reports/chart.h"

/* An <svg> element for an HTML page that has vp_chart_svg_style in its <style>. id: unique in the
 * page, letters and digits; it begins the ids of what the picture refers to. */
void vp_chart_svg(struct vp_buf *out, const struct vp_chart *chart, const char *id);
/* The classes that the elements use: light, dark (prefers-color-scheme) and print. */
void vp_chart_svg_style(struct vp_buf *out);
/* A file of its own: the element with its style. */
void vp_chart_svg_file(struct vp_buf *out, const struct vp_chart *chart);

#endif
