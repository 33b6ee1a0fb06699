/* What `fit` found as a chart: the fullest device as it is, and with each of the first proposals.
 */
#ifndef VP_CLI_FIT_CHART_H
#define VP_CLI_FIT_CHART_H

#include "cli/fit_found.h"
#include "reports/chart.h"

/* found: answered, and not yet closed. */
struct vp_chart *vp_fit_chart(struct vp_ctx *ctx, struct vp_fit_found *found);

#endif
