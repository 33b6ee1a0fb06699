#include "reports/calibration_yaml.h"

#include <inttypes.h>
#include <math.h>

#include "planner/base/json_writer.h"
#include "planner/base/units.h"

static void real(struct vp_buf *out, double v) { vp_buf_add(out, vp_format_real(out->arena, v)); }

/* A text in double quotes reads the same in YAML and JSON. */
static void text(struct vp_buf *out, const char *indent, const char *key, const char *value) {
    if (!value || !*value)
        return;
    vp_buf_printf(out, "%s%s: ", indent, key);
    struct vp_json json = vp_json_begin(out);
    vp_json_text(&json, value);
    vp_buf_add(out, "\n");
}

static void number(struct vp_buf *out, const char *indent, const char *key, double value) {
    if (!(value > 0))
        return;
    vp_buf_printf(out, "%s%s: ", indent, key);
    real(out, value);
    vp_buf_add(out, "\n");
}

static void source(struct vp_buf *out, const char *indent, const struct vp_fit_source *from) {
    text(out, indent, "release", from->release);
    text(out, indent, "origin", from->origin);
}

/* ---- kernels ---- */

static void shape(struct vp_buf *out, const char *key, enum vp_form form,
                  const struct vp_shape *shape) {
    vp_buf_printf(out, "    %s: [", key);
    for (uint32_t i = 0; i < vp_shape_sizes(form); i++) {
        vp_buf_add(out, i ? ", " : "");
        real(out, shape->size[i]);
    }
    vp_buf_add(out, "]\n");
}

static void range_p90(struct vp_buf *out, enum vp_form form, const double *p90) {
    vp_buf_add(out, "    range_p90: [");
    for (uint32_t r = 0; r < VP_FORM_RANGES && vp_form_range_name(form, r); r++) {
        vp_buf_add(out, r ? ", " : "");
        real(out, p90[r]);
    }
    vp_buf_add(out, "] #");
    for (uint32_t r = 0; r < VP_FORM_RANGES && vp_form_range_name(form, r); r++)
        vp_buf_printf(out, "%s %s", r ? "," : "", vp_form_range_name(form, r));
    vp_buf_add(out, "\n");
}

static void constants(struct vp_buf *out, enum vp_form form, const double *constant) {
    const char *lead = "{";
    uint32_t n = 0;
    vp_buf_add(out, "    constants: ");
    for (int c = 0; c < VP_FORM_CONSTANT_COUNT; c++) {
        if (vp_constants[c].form != form || !(constant[c] > 0))
            continue;
        vp_buf_printf(out, "%s%s: ", lead, vp_constants[c].name);
        real(out, constant[c]);
        lead = ++n % 4 == 0 ? ",\n      " : ", ";
    }
    vp_buf_add(out, "}\n");
}

static void anchors(struct vp_buf *out, enum vp_form form, const struct vp_form_fit *fit) {
    if (!fit->anchor_count)
        return;
    number(out, "    ", "reach", fit->reach);
    vp_buf_add(out, "    # ");
    for (uint32_t i = 0; i < vp_shape_sizes(form); i++)
        vp_buf_printf(out, "%s ", vp_shape_size_name(form, i));
    vp_buf_add(out, "and 1000 ln(measured / form)\n    anchors: |\n");
    for (uint32_t a = 0; a < fit->anchor_count; a++) {
        vp_buf_add(out, "      ");
        for (uint32_t i = 0; i < vp_shape_sizes(form); i++)
            vp_buf_printf(out, "%.0f ", exp2((double)fit->anchors[a].at[i]));
        /* + 0: no "-0" */
        vp_buf_printf(out, "%.0f\n", round((double)fit->anchors[a].log_ratio * 1000) + 0.0);
    }
}

static bool any(const struct vp_form_fit *fits, int count) {
    for (int i = 0; i < count; i++)
        if (fits[i].known)
            return true;
    return false;
}

static void fit(struct vp_buf *out, const char *name, enum vp_form form,
                const struct vp_form_fit *fit) {
    if (!fit->known)
        return;
    vp_buf_printf(out, "  %s:\n", name);
    source(out, "    ", &fit->source);
    if (fit->quality.rows) {
        vp_buf_printf(out, "    rows: %" PRIu32 "\n", fit->quality.rows);
        number(out, "    ", "median", fit->quality.median);
        number(out, "    ", "p90", fit->quality.p90);
        range_p90(out, form, fit->range_p90);
    }
    shape(out, "least", form, &fit->least);
    shape(out, "most", form, &fit->most);
    constants(out, form, fit->constant);
    anchors(out, form, fit);
}

static void kernels(struct vp_buf *out, const struct vp_calibration *c) {
    if (any(c->gemm, VP_RATES))
        vp_buf_add(out, "gemm:\n");
    for (int i = 0; i < VP_RATES; i++)
        fit(out, vp_rate_name((enum vp_rate)i), VP_FORM_GEMM, &c->gemm[i]);
    if (any(c->prefill, VP_KV_WIDTHS))
        vp_buf_add(out, "prefill_attention:\n");
    for (int i = 0; i < VP_KV_WIDTHS; i++)
        fit(out, vp_kv_name((enum vp_kv_width)i), VP_FORM_PREFILL, &c->prefill[i]);
    if (any(c->decode, VP_KV_WIDTHS))
        vp_buf_add(out, "decode_attention:\n");
    for (int i = 0; i < VP_KV_WIDTHS; i++)
        fit(out, vp_kv_name((enum vp_kv_width)i), VP_FORM_DECODE, &c->decode[i]);
}

/* ---- the rest ---- */

static void reduces(struct vp_buf *out, const struct vp_calibration *c) {
    enum { ON_A_LINE = 5 };
    if (c->reduce_count)
        vp_buf_add(out, "allreduce:\n");
    for (uint32_t i = 0; i < c->reduce_count; i++) {
        const struct vp_reduce_fit *r = &c->reduces[i];
        vp_buf_printf(out, "  - gpus: %" PRIu64 "\n    graph: %s\n", r->gpus,
                      r->graph ? "true" : "false");
        source(out, "    ", &r->source);
        vp_buf_add(out, "    points: [");
        for (uint32_t p = 0; p < r->count; p++) {
            vp_buf_add(out, p == 0 ? "[" : p % ON_A_LINE == 0 ? ",\n      [" : ", [");
            real(out, r->points[p].bytes);
            vp_buf_add(out, ", ");
            real(out, r->points[p].us);
            vp_buf_add(out, "]");
        }
        vp_buf_add(out, "]\n");
    }
}

static void quality(struct vp_buf *out, const char *name, const struct vp_fit_quality *q) {
    if (!q->rows)
        return;
    vp_buf_printf(out, "    %s_rows: %" PRIu32 "\n", name, q->rows);
    number(out, "    ", vp_arena_printf(out->arena, "%s_median", name), q->median);
    number(out, "    ", vp_arena_printf(out->arena, "%s_p90", name), q->p90);
}

static void serving(struct vp_buf *out, const struct vp_calibration *c) {
    if (c->serving_count)
        vp_buf_add(out, "serving:\n");
    for (uint32_t i = 0; i < c->serving_count; i++) {
        const struct vp_serving_fit *s = &c->serving[i];
        text(out, "  - ", "engine", s->engine);
        source(out, "    ", &s->source);
#define X(member, what) number(out, "    ", #member, s->member);
#include "planner/model/serving_constants.def"
#undef X
        quality(out, "tpot", &s->tpot);
        quality(out, "ttft", &s->ttft);
    }
}

static void figures(struct vp_buf *out, const struct vp_calibration *c) {
    const struct {
        const char *key;
        double value;
    } BANDWIDTH[] = {{"read_gbs", c->read_gbs},
                     {"copy_gbs", c->copy_gbs},
                     {"host_to_device_gbs", c->host_to_device_gbs},
                     {"device_to_host_gbs", c->device_to_host_gbs}};
    bool begun = false;
    for (size_t i = 0; i < sizeof BANDWIDTH / sizeof *BANDWIDTH; i++) {
        if (BANDWIDTH[i].value > 0 && !begun)
            vp_buf_add(out, "bandwidth:\n");
        begun |= BANDWIDTH[i].value > 0;
        number(out, "  ", BANDWIDTH[i].key, BANDWIDTH[i].value);
    }
    number(out, "", "launch_us", c->launch_us);
    begun = false;
#define X(member, name, what)                                                                      \
    if (c->memory.member) {                                                                        \
        vp_buf_printf(out, "%s  %s: %" PRIu64 "\n", begun ? "" : "memory:\n", #member,             \
                      c->memory.member);                                                           \
        begun = true;                                                                              \
    }
#include "planner/model/memory_constants.def"
#undef X
}

void vp_calibration_yaml(struct vp_buf *out, const struct vp_calibration *c) {
    vp_buf_add(out, "vramplan_calibration: 1\n");
    text(out, "", "gpu", c->gpu);
    text(out, "", "made", c->made);
    number(out, "", "units", c->units);
    number(out, "", "cache_bytes", c->cache_bytes);
    figures(out, c);
    kernels(out, c);
    reduces(out, c);
    serving(out, c);
}
