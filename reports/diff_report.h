/* `vramplan diff`: two inputs side by side, for people and for programs. */
#ifndef VP_REPORTS_DIFF_REPORT_H
#define VP_REPORTS_DIFF_REPORT_H

#include "planner/plan/difference.h"
#include "reports/report.h"

/* A comparison of two inputs. */
struct vp_diff_report {
    const char *before, *after; /* as the user named them */
    const struct vp_compared *item;
    size_t count;
    const struct vp_diags *diags; /* of both */
};

void vp_diff_text(struct vp_buf *out, const struct vp_diff_report *report,
                  const struct vp_report_options *options);
void vp_diff_markdown(struct vp_buf *out, const struct vp_diff_report *report);
/* One line per step and component that it moved; a step that moved nothing has one line. */
void vp_diff_csv(struct vp_buf *out, const struct vp_diff_report *report);
/* One object, schema "vramplan.diff/1". */
void vp_diff_json(struct vp_json *json, const struct vp_diff_report *report);

#endif
