/* A chart of reports/chart.h drawn into a view, in the colours of the theme. */
#ifndef VP_TUI_CHART_VIEW_H
#define VP_TUI_CHART_VIEW_H

#include "reports/chart.h"
#include "tui/cells.h"

/* components: looks are those of memory components (vp_chart_timeline); else of series by order. */
void vp_view_chart(struct vp_view view, struct vp_arena *arena, const struct vp_chart *chart,
                   bool components);

#endif
