/* Charts as a script and a data file for gnuplot 5. */
#ifndef VP_REPORTS_CHART_GNUPLOT_H
#define VP_REPORTS_CHART_GNUPLOT_H

#include "reports/chart.h"

enum vp_gnuplot_terminal { VP_GNUPLOT_PNG, VP_GNUPLOT_SVG, VP_GNUPLOT_PDF };

/* A block of columns for each series, two blank lines apart. */
void vp_chart_gnuplot_data(struct vp_buf *out, const struct vp_chart *chart);
/* data, image: paths as gnuplot is to open them. */
void vp_chart_gnuplot_script(struct vp_buf *out, const struct vp_chart *chart, const char *data,
                             const char *image, enum vp_gnuplot_terminal terminal);

#endif
