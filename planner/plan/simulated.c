#include "planner/plan/simulated.h"

const char *vp_promise_name(enum vp_promise promise) {
    static const char *const NAMES[] = {"none", "kept", "at-risk", "open", "broken"};
    return NAMES[promise];
}

const char *vp_seen_kind_name(enum vp_seen_kind kind) {
    static const char *const NAMES[VP_SEEN_KINDS] = {"ttft", "queue", "tpot", "e2e"};
    return NAMES[kind];
}

const char *vp_seen_figure_name(enum vp_seen_figure figure) {
    static const char *const NAMES[VP_SEEN_FIGURES] = {"mean", "p50", "p90", "p95", "p99", "max"};
    return NAMES[figure];
}

const char *vp_bottleneck_name(enum vp_bottleneck bottleneck) {
    static const char *const NAMES[] = {
        "none", "kv-memory", "sequence-slots", "prefill-compute", "decode-bandwidth", "refused"};
    return NAMES[bottleneck];
}
