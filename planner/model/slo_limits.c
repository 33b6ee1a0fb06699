#include "planner/model/slo_limits.h"

#include <string.h>

#include "planner/base/units.h"

static const char *const WHAT[VP_SLO_WHATS] = {"ttft", "tpot", "e2e", "step"};

static const struct {
    const char *name;
    double share;
} ENDS[] = {{"", 0}, {"_mean", 0}, {"_p50", 0.50}, {"_p90", 0.90}, {"_p95", 0.95}, {"_p99", 0.99}};
enum { END_COUNT = sizeof ENDS / sizeof *ENDS };

const char *vp_slo_names(void) {
    return "ttft, tpot, e2e or step, alone or with _mean, _p50, _p90, _p95 or _p99";
}

static bool read_name(struct vp_slo_limit *out, const char *name) {
    for (int w = 0; w < VP_SLO_WHATS; w++)
        for (int e = 0; e < END_COUNT; e++) {
            size_t n = strlen(WHAT[w]);
            if (strncmp(name, WHAT[w], n) != 0 || strcmp(name + n, ENDS[e].name) != 0)
                continue;
            out->what = (enum vp_slo_what)w;
            out->share = ENDS[e].share;
            return true;
        }
    return false;
}

enum vp_slo_fault vp_slo_limit_parse(struct vp_slo_limit *out, const char *name, const char *text) {
    double seconds;

    *out = (struct vp_slo_limit){.name = name, .text = text};
    if (!read_name(out, name))
        return VP_SLO_BAD_NAME;
    if (!vp_parse_duration(&seconds, text) || !(seconds > 0))
        return VP_SLO_BAD_TIME;
    out->ms = seconds * 1000;
    return VP_SLO_FINE;
}
