/* Promises about latency, as limits: "ttft_p99" within "2 s". Read from `serve.slo` and `--slo`
 * alike; what they are held against stands in api/slo.h (estimates) and api/simulate.h (traffic).
 */
#ifndef VP_MODEL_SLO_LIMITS_H
#define VP_MODEL_SLO_LIMITS_H

#include <stdint.h>

/* Time to the first token; mean time between the later ones of a request; from sending a request to
 * its last token; one optimizer step (training). */
enum vp_slo_what { VP_SLO_TTFT, VP_SLO_TPOT, VP_SLO_E2E, VP_SLO_STEP };
enum { VP_SLO_WHATS = 4 };

struct vp_slo_limit {
    enum vp_slo_what what;
    const char *name, *text; /* "ttft_p99", "2s" */
    double ms;
    double share; /* 0.99; 0: the mean */
};

enum { VP_SLO_LIMITS = 8 };

struct vp_slo {
    struct vp_slo_limit limit[VP_SLO_LIMITS];
    uint32_t count;
};

enum vp_slo_fault { VP_SLO_FINE, VP_SLO_BAD_NAME, VP_SLO_BAD_TIME };

/* name: ttft, tpot, e2e or step, alone (the mean) or with _mean, _p50, _p90, _p95, _p99.
 * text: a time above 0 with a unit (us, ms, s, min). Both are kept, not copied. */
enum vp_slo_fault vp_slo_limit_parse(struct vp_slo_limit *out, const char *name, const char *text);
/* "ttft, tpot, e2e or step, alone or with _mean, _p50, _p90, _p95 or _p99" */
const char *vp_slo_names(void);

#endif
