/* A plan, or several, as one HTML file that needs nothing beside it: pictures are in it as SVG, the
 * style is in it, no script, no request. First the verdict and what was assumed, last how to make
 * it again. All figures are those of the results; nothing is computed here. */
#ifndef VP_REPORTS_HTML_REPORT_H
#define VP_REPORTS_HTML_REPORT_H

#include "reports/charts.h"

struct vp_html_plan {
    const char *name;               /* of the scenario, or what was given */
    const struct vp_result *result; /* NULL: it could not be planned; diags say why */
    const struct vp_diags *diags;
    const struct vp_chart *chart[VP_PLAN_CHARTS]; /* NULL: none of the kind */
    const char *command;                          /* that prints the plan again */
    int level; /* of its sections' headings; set by vp_report_html */
};

struct vp_html_report {
    struct vp_html_plan *plan;
    uint32_t count;
    const struct vp_chart *overview; /* of several plans; NULL: one */
    const char *version;             /* of the program */
};

void vp_report_html(struct vp_buf *out, struct vp_html_report *report);

/* ---- its parts ---- */

/* The heading of a section of a plan. */
void vp_html_section(struct vp_buf *out, const struct vp_html_plan *plan, const char *text);
/* One of its charts with the figures; nothing where there is none. prefix: begins ids ("p1"). */
void vp_html_plan_chart(struct vp_buf *out, const struct vp_html_plan *plan,
                        enum vp_plan_chart which, const char *prefix);

/* html_memory.c: components, devices, KV cache, prices. */
void vp_html_memory(struct vp_buf *out, const struct vp_html_plan *plan, const char *prefix);
/* html_ledger.c: every row with its formula, and the formulas. */
void vp_html_ledger(struct vp_buf *out, const struct vp_html_plan *plan, const char *prefix);
/* html_times.c: speed, the calibration behind it, training, the placement of llama.cpp. */
void vp_html_times(struct vp_buf *out, const struct vp_html_plan *plan, const char *prefix);

#endif
