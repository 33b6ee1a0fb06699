#include "reports/latency_json.h"

#include <math.h>

/* Six digits that count: last bits depend on the machine's mathematics. */
static double rounded(double v) {
    if (!(v > 0) || !isfinite(v))
        return v;
    double digits = 5 - floor(log10(v)); /* a power of ten and its inverse: one of them is exact */
    return digits >= 0 ? round(v * pow(10, digits)) / pow(10, digits)
                       : round(v / pow(10, -digits)) * pow(10, -digits);
}

static void real_or_null(struct vp_json *json, const char *key, double v, bool known) {
    vp_json_key(json, key);
    if (known)
        vp_json_real(json, rounded(v));
    else
        vp_json_null(json);
}

static void estimate(struct vp_json *json, const char *key, const struct vp_estimate *e,
                     bool is_rate) {
    bool bound = e->basis == VP_BASIS_BOUND;

    if (e->basis == VP_BASIS_NONE)
        return;
    vp_json_key(json, key);
    vp_json_map_inline(json);
    real_or_null(json, "low", e->low, !bound || !is_rate);
    real_or_null(json, "likely", e->likely, !bound);
    real_or_null(json, "high", e->high, !bound || is_rate);
    vp_json_key_text(json, "basis", vp_basis_name(e->basis));
    vp_json_end(json, '}');
}

static void parts(struct vp_json *json, const struct vp_latency *latency) {
    vp_json_key(json, "step_parts_ms");
    vp_json_list(json);
    for (uint32_t i = 0; i < latency->parts; i++) {
        const struct vp_time_part *part = &latency->part[i];
        vp_json_map_inline(json);
        vp_json_key_text(json, "part", part->name);
        real_or_null(json, "low", part->time.low / 1e3, true);
        real_or_null(json, "likely", part->time.likely / 1e3, true);
        real_or_null(json, "high", part->time.high / 1e3, true);
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

void vp_latency_json(struct vp_json *json, const struct vp_latency *latency) {
    vp_json_key(json, "latency");
    vp_json_map(json);
    estimate(json, "ttft_ms", &latency->ttft_ms, false);
    estimate(json, "tpot_ms", &latency->tpot_ms, false);
    estimate(json, "step_ms", &latency->step_ms, false);
    estimate(json, "prefill_tokens_per_s", &latency->prefill_tokens_per_s, true);
    estimate(json, "decode_tokens_per_s", &latency->decode_tokens_per_s, true);
    if (latency->parts > 0)
        parts(json, latency);
    if (latency->why) {
        vp_json_key_text(json, "why", latency->why);
    }
    vp_json_end(json, '}');
}
