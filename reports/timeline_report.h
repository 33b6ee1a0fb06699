/* Renderers of one training step over time: for people, as JSON, and as tables of every instant.
 * Time is told in events (storages that come and go), not in seconds. Like report.h: pure
 * functions, the same timeline gives the same bytes. */
#ifndef VP_REPORTS_TIMELINE_REPORT_H
#define VP_REPORTS_TIMELINE_REPORT_H

#include "planner/base/json_writer.h"
#include "planner/plan/train_timeline.h"
#include "reports/report.h"

/* The step in a few lines, its phases, what is there at the peak. Never wider than the page. */
void vp_timeline_text(struct vp_buf *out, const struct vp_timeline *timeline,
                      const struct vp_report_options *options);
/* Phases, peaks, allocator (schema "vramplan.timeline/1") as the next value of the writer. */
void vp_timeline_json(struct vp_json *json, const struct vp_timeline *timeline);

/* One row per span (see walk.h): its events, phase, cause, layer, micro batch, bytes by component
 * at its largest instant, what of it is kept for the backward pass, what is reserved then. */
void vp_timeline_csv(struct vp_buf *out, const struct vp_timeline *timeline);
/* Chrome's trace format, which Perfetto opens: phases and layers as bars, components and reserved
 * memory as counters. One event is told as a microsecond. */
void vp_timeline_trace(struct vp_buf *out, const struct vp_timeline *timeline);

/* Components that are there at some instant, in their order; returns how many. */
uint32_t vp_timeline_components(const struct vp_timeline *timeline,
                                enum vp_component out[VP_COMPONENT_COUNT]);

#endif
