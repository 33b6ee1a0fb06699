/* --slo: promises about latency, read from text and held against estimates. */
#ifndef VP_API_SLO_H
#define VP_API_SLO_H

#include "planner/base/ctx.h"
#include "planner/plan/changes.h"

enum vp_slo_what { VP_SLO_TTFT, VP_SLO_TPOT, VP_SLO_STEP };

struct vp_slo_limit {
    enum vp_slo_what what;
    const char *name, *text; /* "ttft_p99", "2s" */
    double ms;
};

enum { VP_SLO_LIMITS = 8 };

struct vp_slo {
    struct vp_slo_limit limit[VP_SLO_LIMITS];
    uint32_t count;
};

/* "ttft_p99=2s,tpot_p95=50ms": ttft, tpot or step, alone or with _mean, _p50, _p90, _p95, _p99;
 * us, ms, s or min. Faults are VP_D_BAD_OPTION with the column. text NULL: none. */
enum vp_status vp_slo_read(struct vp_ctx *ctx, struct vp_slo *out, const char *text);
/* The first limit that is not kept, with the figure that says so; NULL: there is none. */
const char *vp_slo_text(struct vp_arena *arena, const struct vp_slo *slo,
                        const struct vp_trial *trial);
/* The worst state of all limits. */
enum vp_slo_state vp_slo_check(const struct vp_slo *slo, const struct vp_trial *trial);

#endif
