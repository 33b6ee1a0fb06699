/* What a run of the gate found (planner/plan/gate.h), in the forms that people and CI systems read.
 * Pure: the same run gives the same bytes. */
#ifndef VP_REPORTS_GATE_REPORT_H
#define VP_REPORTS_GATE_REPORT_H

#include "planner/plan/gate.h"
#include "reports/report.h"

/* For people, 80 columns. exit_code: told in the last line. */
void vp_gate_text(struct vp_buf *out, const struct vp_gate *gate, int exit_code,
                  const struct vp_report_options *options);
/* One object, schema "vramplan.gate/1". */
void vp_gate_json(struct vp_json *json, const struct vp_gate *gate, int exit_code);
/* JUnit XML: a suite per scenario, a case per check. */
void vp_gate_junit(struct vp_buf *out, const struct vp_gate *gate);
/* SARIF 2.1.0: a result per check that says something. */
void vp_gate_sarif(struct vp_json *json, const struct vp_gate *gate);
/* GitLab's Code Quality report: a list of the same findings. */
void vp_gate_gitlab(struct vp_json *json, const struct vp_gate *gate);
/* For a comment on a pull request, and GitHub's step summary. At most VP_GATE_MARKDOWN_MOST bytes:
 * the worst scenarios come first, and what is left out is counted. The first line is a comment that
 * is not shown, so that a script finds the one to replace. */
enum { VP_GATE_MARKDOWN_MOST = 65000 }; /* GitHub takes 65,536 characters */
void vp_gate_markdown(struct vp_buf *out, const struct vp_gate *gate);
/* GitHub's workflow commands (::error file=...): the worst first, at most VP_GATE_ANNOTATIONS
 * lines, because GitHub drops the others silently. */
enum { VP_GATE_ANNOTATIONS = 10 };
void vp_gate_annotations(struct vp_buf *out, const struct vp_gate *gate);
/* OpenMetrics text: bytes by scenario and component (GitLab's metrics report, Prometheus). */
void vp_gate_metrics(struct vp_buf *out, const struct vp_gate *gate);

#endif
