/* Several plans in one table, for every form of report. */
#ifndef VP_REPORTS_OVERVIEW_H
#define VP_REPORTS_OVERVIEW_H

#include "planner/plan/result.h"

enum vp_overview_column {
    VP_OVERVIEW_NAME,
    VP_OVERVIEW_VERDICT,
    VP_OVERVIEW_DEVICES,
    VP_OVERVIEW_NEED,
    VP_OVERVIEW_USABLE,
    VP_OVERVIEW_SPARE,
    VP_OVERVIEW_CONTEXT,
    VP_OVERVIEW_CONCURRENCY,
    VP_OVERVIEW_COLUMNS
};

/* "plan", "verdict", ... One that begins with '#' is of numbers. */
extern const char *const vp_overview_heads[VP_OVERVIEW_COLUMNS];
/* Texts, unescaped. result NULL: it could not be planned. */
void vp_overview_row(struct vp_arena *arena, const char *out[VP_OVERVIEW_COLUMNS], const char *name,
                     const struct vp_result *result);

#endif
