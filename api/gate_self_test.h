/* Proves that a gate sees regressions: plants some in copies of the plans that a run of the gate
 * has made, checks these against the plans as they are, and tells which checks turned. */
#ifndef VP_API_GATE_SELF_TEST_H
#define VP_API_GATE_SELF_TEST_H

#include "api/gate_run.h"

struct vp_planted {
    const char *scenario;
    const char *what; /* "kv_cache +1.00 GiB", "serve.context 32768 -> 65536" */
    bool seen;
    const char *by; /* the checks that turned: "growth, components.kv_cache"; "" none */
};

/* Per scenario with a plan: every component that it has, larger by 1 GiB or by 1 % of the need,
 * whichever is more; the context (or the length of training sequences) doubled. A change that
 * cannot be planned any more counts as seen: it ends with 2. Returns how many there are. */
size_t vp_gate_self_test(struct vp_ctx *ctx, struct vp_planted **out,
                         const struct vp_gate_run *run);

#endif
