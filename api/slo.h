/* Promises about latency, by --slo or the scenario's serve.slo, held against estimates. Against
 * traffic: api/simulate.h. */
#ifndef VP_API_SLO_H
#define VP_API_SLO_H

#include "planner/base/ctx.h"
#include "planner/model/slo_limits.h"
#include "planner/plan/changes.h"

/* "ttft_p99=2s,tpot_p95<50ms" (= and < mean the same): limits as in slo_limits.h. Faults are
 * VP_D_BAD_OPTION with the column. text NULL: none. */
enum vp_status vp_slo_read(struct vp_ctx *ctx, struct vp_slo *out, const char *text);
/* The first limit that is not kept, with the figure that says so; NULL: there is none. */
const char *vp_slo_text(struct vp_arena *arena, const struct vp_slo *slo,
                        const struct vp_trial *trial);
/* The times of a plan that limits are held against. */
void vp_slo_times(struct vp_trial *out, const struct vp_result *plan);
/* What the plan says of the scenario's own promises: notes, warnings where one is likely broken. */
void vp_slo_note(struct vp_ctx *ctx, const struct vp_result *plan);
/* The worst state of all limits. */
enum vp_slo_state vp_slo_check(const struct vp_slo *slo, const struct vp_trial *trial);

#endif
