/* What a search over changes found (planner/plan/changes.h), for people and for programs. */
#ifndef VP_REPORTS_CHANGES_REPORT_H
#define VP_REPORTS_CHANGES_REPORT_H

#include "planner/base/json_writer.h"
#include "planner/plan/changes.h"
#include "reports/layout.h"
#include "reports/report.h"

void vp_changes_text(struct vp_buf *out, const struct vp_outcome *found,
                     const struct vp_report_options *options);
/* One object, schema "vramplan.fit/1". */
void vp_changes_json(struct vp_json *json, const struct vp_outcome *found);
/* One proposal of it: the next value of the writer. */
void vp_changes_json_proposal(struct vp_json *json, const struct vp_outcome *found,
                              const struct vp_proposal *proposal);

/* "fits", "may fit", "tensor 2 x ...": words that both and the report of packs use. */
const char *
vp_slo_name(enum vp_slo_state state); /* "likely", "open", "unlikely", "broken"; NULL: none */
/* "-0.7 % accuracy (-0.1..1.5; Neural Magic, NVIDIA)", "not known" */
const char *vp_words_risk(struct vp_arena *arena, const struct vp_risk *risk);
/* "12.3 ms (9.8..15, class)"; "at least 8 ms (bound)"; "not known" */
const char *vp_words_time(struct vp_arena *arena, const struct vp_estimate *time);

#endif
