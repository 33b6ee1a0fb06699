/* Renderers of a simulated serving day. Like all reports: no figures are computed, nothing is
 * printed, the same result gives the same bytes. */
#ifndef VP_REPORTS_SIMULATE_REPORT_H
#define VP_REPORTS_SIMULATE_REPORT_H

#include "planner/plan/simulated.h"
#include "reports/chart.h"
#include "reports/report.h"

/* For people, 80 columns: the answer, the promise, latencies, throughput, the cache over time, the
 * plan's formulas beside it, what was assumed. */
void vp_simulate_text(struct vp_buf *out, const struct vp_simulated *seen,
                      const struct vp_report_options *options);
void vp_simulate_markdown(struct vp_buf *out, const struct vp_simulated *seen);
/* One object, schema "vramplan.simulate/1". */
void vp_simulate_json(struct vp_json *json, const struct vp_simulated *seen);
/* Figures as rows: quantity,class,figure,likely,low,high,chance. */
void vp_simulate_csv(struct vp_buf *out, const struct vp_simulated *seen);
/* The time series as rows, one per stretch of time. */
void vp_simulate_series_csv(struct vp_buf *out, const struct vp_simulated *seen);

/* The series as pictures. */
enum vp_simulate_chart { VP_SIMULATE_REQUESTS, VP_SIMULATE_CACHE, VP_SIMULATE_TOKENS };
enum { VP_SIMULATE_CHARTS = 3 };
const char *vp_simulate_chart_name(enum vp_simulate_chart which); /* "cache" */
struct vp_chart *vp_simulate_chart(struct vp_arena *arena, const struct vp_simulated *seen,
                                   enum vp_simulate_chart which);

/* Iterations of a window as a trace that Perfetto opens: a row per replica. */
void vp_simulate_chrome(struct vp_buf *out, const struct vp_iteration_record *records,
                        uint64_t count);

/* ---- words that the renderers share ---- */

/* "843 ms", "1.32 s", "12.4 min" */
const char *vp_simulate_ms(struct vp_arena *arena, double ms);
/* The answer in one sentence, and what it rests on. */
const char *vp_simulate_answer(struct vp_arena *arena, const struct vp_simulated *seen);
/* What limits it, in one sentence. */
const char *vp_simulate_limit(struct vp_arena *arena, const struct vp_simulated *seen);
/* The traffic: "poisson:4/s for 600 s, 1200 prompt and 250 output tokens on average, 5 seeds". */
const char *vp_simulate_traffic(struct vp_arena *arena, const struct vp_simulated *seen);
/* "2 x MI300X: 2 copies of 1" */
const char *vp_simulate_setup(struct vp_arena *arena, const struct vp_simulated *seen);
/* The formulas beside the simulation; NULL: they say nothing. */
const char *vp_simulate_analytic(struct vp_arena *arena, const struct vp_simulated *seen);
/* Requests that were refused, dropped, cut, and what was left under way; NULL: none. */
const char *vp_simulate_left_out(struct vp_arena *arena, const struct vp_simulated *seen);
/* Where the times come from: "calibrated: ...". */
const char *vp_simulate_basis(struct vp_arena *arena, const struct vp_simulated *seen);

#endif
