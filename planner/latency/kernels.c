#include "planner/latency/kernels.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/latency/anchors.h"
#include "planner/latency/kernel_class.h"

const char *vp_basis_name(enum vp_basis basis) {
    static const char *const NAMES[] = {"none", "bound", "class", "calibrated"};
    return NAMES[basis];
}

/* ---- sums ---- */

static const double NEGLIGIBLE = 0.01; /* share of a sum whose basis does not matter */

static enum vp_basis joined(struct vp_time a, struct vp_time b) {
    double sum = a.likely + b.likely;
    if (a.likely <= NEGLIGIBLE * sum)
        return b.basis;
    if (b.likely <= NEGLIGIBLE * sum)
        return a.basis;
    return a.basis < b.basis ? a.basis : b.basis;
}

struct vp_time vp_time_add(struct vp_time a, struct vp_time b) {
    return (struct vp_time){a.low + b.low, a.likely + b.likely, a.high + b.high, joined(a, b)};
}

struct vp_time vp_time_scale(struct vp_time a, double factor) {
    return (struct vp_time){a.low * factor, a.likely * factor, a.high * factor, a.basis};
}

struct vp_time vp_time_max(struct vp_time a, struct vp_time b) {
    return (struct vp_time){fmax(a.low, b.low), fmax(a.likely, b.likely), fmax(a.high, b.high),
                            a.likely >= b.likely ? a.basis : b.basis};
}

/* ---- what a scenario runs on ---- */

/* Kernels of 8 bit have changed by these factors between releases of one engine on one card
 * (docs/CALIBRATION.md); those of 16 bit by a few per cent. */
static const double OTHER_RELEASE_LOW = 0.5, OTHER_RELEASE_HIGH = 1.3;

/* Whether "vLLM 0.19.0" is something else than what the scenario runs. What was measured without an
 * engine is no other release. */
static bool is_other_release(const struct vp_engine *engine, const char *release) {
    struct vp_version measured;
    const char *space = release ? strchr(release, ' ') : NULL;
    if (!space || !engine->name)
        return false;
    if (strlen(engine->name) != (size_t)(space - release))
        return true;
    for (const char *a = release, *b = engine->name; a < space; a++, b++)
        if ((*a | 0x20) != (*b | 0x20)) /* "vLLM" is "vllm" */
            return true;
    if (!vp_version_parse(&measured, space + 1) || measured.kind != engine->version.kind)
        return false;
    return measured.part[0] != engine->version.part[0] ||
           measured.part[1] != engine->version.part[1];
}

struct vp_kernels vp_kernels_of(const struct vp_scenario *scenario) {
    const struct vp_hardware *hardware = &scenario->hardware;
    uint64_t nodes = hardware->nodes > 0 ? hardware->nodes : 1;
    const struct vp_calibration *calibration = scenario->measured_gpu;
    struct vp_kernels kernels = {.gpu = &hardware->gpu,
                                 .calibration = calibration,
                                 .intranode_gbs = hardware->intranode_gbs,
                                 .internode_gbs = hardware->internode_gbs,
                                 .host_gbs = hardware->host_link_gbs,
                                 .node_devices = hardware->count / nodes,
                                 .graphs = !scenario->engine.enforce_eager};
    for (int i = 0; calibration && i < VP_RATES; i++)
        kernels.other_release[i] =
            calibration->gemm[i].known &&
            is_other_release(&scenario->engine, calibration->gemm[i].source.release);
    return kernels;
}

/* ---- intervals ---- */

static const double LEAST_SPREAD = 1.05; /* repeats of one release differ by that much */
static const double BORROWED = 1.25;     /* a form fitted to other rows than those asked for */
static const double FEW_SAY_LITTLE = 3;  /* a spread of n rows may be (1 + 3 / n) times as large */
static const double PER_DOUBLING = 0.15; /* of a size beyond the measured ones */

/* Doublings of all sizes by which a shape lies outside of what was measured. */
static double beyond(const struct vp_form_fit *fit, const struct vp_form_case *c) {
    double sum = 0;
    for (uint32_t i = 0; i < vp_shape_sizes(c->form); i++) {
        double size = c->shape.size[i];
        if (size > fit->most.size[i])
            sum += log2(size / fit->most.size[i]);
        else if (size < fit->least.size[i])
            sum += log2(fit->least.size[i] / size);
    }
    return sum;
}

/* A form goes this many doublings beyond what it was fitted to; one of a few rows, whose constants
 * say little about other shapes, hardly any. Further away the class says more. */
static const double REACH = 6, REACH_OF_FEW = 0.5;
enum { FEW_SAMPLES = 30 };

static bool reaches(const struct vp_form_fit *fit, const struct vp_form_case *c) {
    return beyond(fit, c) <= (fit->quality.rows < FEW_SAMPLES ? REACH_OF_FEW : REACH);
}

/* widened: a further factor of doubt. */
static struct vp_time of_fit(const struct vp_form_fit *fit, const struct vp_form_case *c, double us,
                             double widened) {
    double p90 = fit->range_p90[vp_form_range(c->form, &c->shape)];
    p90 *= 1 + FEW_SAY_LITTLE / fmax(fit->quality.rows, 1);
    double spread = fmax(LEAST_SPREAD, 1 + p90) * widened;
    spread *= 1 + PER_DOUBLING * beyond(fit, c);
    return (struct vp_time){us / spread, us, us * spread, VP_BASIS_CALIBRATED};
}

struct vp_time vp_fitted_time(const struct vp_form_fit *fit, const struct vp_form_case *c) {
    return of_fit(fit, c, vp_fitted_us(fit, c), 1);
}

/* ---- matrix products ---- */

/* The measured products that say most about a rate: its own, those of the same width, 16 bit. */
static const struct vp_form_fit *nearest_fit(enum vp_rate *out, const struct vp_kernels *kernels,
                                             enum vp_rate rate) {
    static const enum vp_rate NEXT[VP_RATES][4] = {
        [VP_RATE_BF16] = {VP_RATE_BF16, VP_RATE_FP16, VP_RATE_FP8, VP_RATE_INT8},
        [VP_RATE_FP16] = {VP_RATE_FP16, VP_RATE_BF16, VP_RATE_FP8, VP_RATE_INT8},
        [VP_RATE_FP32] = {VP_RATE_FP32, VP_RATE_BF16, VP_RATE_FP16, VP_RATE_FP16},
        [VP_RATE_FP8] = {VP_RATE_FP8, VP_RATE_INT8, VP_RATE_FP8_BLOCK, VP_RATE_BF16},
        [VP_RATE_FP8_BLOCK] = {VP_RATE_FP8_BLOCK, VP_RATE_FP8, VP_RATE_BF16, VP_RATE_BF16},
        [VP_RATE_INT8] = {VP_RATE_INT8, VP_RATE_FP8, VP_RATE_BF16, VP_RATE_FP16},
        [VP_RATE_FP4] = {VP_RATE_FP4, VP_RATE_FP8, VP_RATE_FP8_BLOCK, VP_RATE_BF16},
    };
    for (size_t i = 0; i < sizeof NEXT[0] / sizeof NEXT[0][0]; i++) {
        const struct vp_form_fit *fit = &kernels->calibration->gemm[NEXT[rate][i]];
        *out = NEXT[rate][i];
        if (fit->known)
            return fit;
    }
    return NULL;
}

/* A form of another rate with the compute rate that the class gives for this one. */
static struct vp_time borrowed_gemm(const struct vp_kernels *kernels, const struct vp_form_fit *fit,
                                    struct vp_form_case *c, enum vp_rate rate, enum vp_rate from) {
    struct vp_form_fit scaled = *fit;
    double ratio = vp_class_tflops(kernels->gpu, rate) / vp_class_tflops(kernels->gpu, from);
    if (ratio > 0 && isfinite(ratio))
        scaled.constant[VP_C_GEMM_TFLOPS] *= ratio;
    if (vp_rate_bytes(rate) >= 2)
        scaled.constant[VP_C_GEMM_QUANTISE] = scaled.constant[VP_C_GEMM_QUANTISE_FAR] = 0;
    struct vp_time t = of_fit(fit, c, vp_form_us(c, scaled.constant), BORROWED);
    if (ratio < 0.99 || ratio > 1.01) /* else float16 for bfloat16, or int8 for fp8 */
        t.basis = VP_BASIS_CLASS;
    return t;
}

/* Weights in fewer bits than they are multiplied in, which were not measured: other kernels. */
static bool is_packed(const struct vp_form_case *c, enum vp_rate rate) {
    return c->weight_bytes < 0.75 * vp_rate_bytes(rate);
}

struct vp_time vp_gemm_time(const struct vp_kernels *kernels, const struct vp_gemm_shape *gemm) {
    const struct vp_calibration *calibration = kernels->calibration;
    double together = fmax(gemm->batch, 1);
    enum vp_rate from = gemm->rate;
    const struct vp_form_fit *fit = calibration ? nearest_fit(&from, kernels, gemm->rate) : NULL;
    if (!fit)
        return vp_class_gemm(kernels->gpu, gemm);
    struct vp_form_case c = {
        .form = VP_FORM_GEMM,
        .shape = {{fmax(gemm->m, 1), fmax(gemm->n, 1), fmax(gemm->k, 1)}},
        .units = calibration->units,
        .cache_bytes = calibration->cache_bytes,
        .fine = vp_form_is_fine(calibration),
        .weight_bytes = vp_rate_bytes(gemm->rate),
        .together = together,
    };
    if (gemm->stored_bytes > 0)
        c.weight_bytes = gemm->stored_bytes / (together * c.shape.size[1] * c.shape.size[2]);
    if (!reaches(fit, &c))
        return vp_class_gemm(kernels->gpu, gemm);
    struct vp_form_fit apart = *fit;
    if (kernels->casts_apart) {
        apart.constant[VP_C_GEMM_QUANTISE] = apart.constant[VP_C_GEMM_QUANTISE_FAR] = 0;
        fit = &apart;
    }
    struct vp_time t;
    if (from != gemm->rate)
        t = borrowed_gemm(kernels, fit, &c, gemm->rate, from);
    else if (together > 1)
        t = of_fit(fit, &c, vp_form_us(&c, fit->constant), BORROWED);
    else
        t = of_fit(fit, &c, vp_fitted_us(fit, &c), is_packed(&c, gemm->rate) ? BORROWED : 1);
    if (kernels->other_release[from] && vp_rate_bytes(from) < 2) {
        t.low *= OTHER_RELEASE_LOW;
        t.high *= OTHER_RELEASE_HIGH;
    }
    return t;
}

/* ---- attention ---- */

/* Query rows of one KV head that decode kernels still lay side by side. */
static const double FEW_ROWS = 16;

static bool is_decode(const struct vp_attention_shape *a) {
    return a->past > 0 && a->fresh <= FEW_ROWS;
}

/* One vector per token for all heads is read once: keys and values of half its size each. */
static struct vp_form_case attention_case(const struct vp_calibration *calibration,
                                          const struct vp_attention_shape *a) {
    bool decode = is_decode(a);
    double cached = a->window > 0 && decode ? fmin(a->past, a->window) : a->past;
    double width = a->kv == VP_KV_8 ? 1 : 2, size = (a->head_dim + a->v_head_dim) / 2;
    double kv_heads = a->latent ? 1 : fmax(a->kv_heads, 1);
    return (struct vp_form_case){
        .form = decode ? VP_FORM_DECODE : VP_FORM_PREFILL,
        .shape = {{a->batch, decode ? cached : a->fresh, a->heads, kv_heads, size}},
        .units = calibration->units,
        .cache_bytes = calibration->cache_bytes,
        .fine = vp_form_is_fine(calibration),
        .weight_bytes = a->latent ? width * a->head_dim / (2 * size) : width,
        .rows = a->heads / kv_heads * a->fresh,
        .past = decode ? 0 : a->past,
        .window = decode ? 0 : a->window,
        .bidirectional = a->bidirectional,
    };
}

struct vp_time vp_attention_time(const struct vp_kernels *kernels,
                                 const struct vp_attention_shape *a) {
    const struct vp_calibration *calibration = kernels->calibration;
    if (!calibration || !(a->batch > 0) || !(a->fresh > 0) || !(a->heads > 0))
        return vp_class_attention(kernels->gpu, a);
    const struct vp_form_fit *fits = is_decode(a) ? calibration->decode : calibration->prefill;
    const struct vp_form_fit *fit = &fits[a->kv];
    bool own = fit->known && !a->latent;
    if (!fit->known)
        fit = &fits[a->kv == VP_KV_8 ? VP_KV_16 : VP_KV_8];
    if (!fit->known)
        return vp_class_attention(kernels->gpu, a);
    struct vp_form_case c = attention_case(calibration, a);
    bool as_measured = own && !a->bidirectional && c.past == 0 && c.window == 0;
    if (as_measured && (c.form == VP_FORM_PREFILL || a->fresh == 1))
        return vp_fitted_time(fit, &c);
    struct vp_time t = of_fit(fit, &c, vp_form_us(&c, fit->constant), BORROWED);
    if (a->latent) /* other kernels, which nobody measured */
        t.basis = VP_BASIS_CLASS;
    return t;
}

/* ---- streams ---- */

/* What kernels that stream reach of the measured rate of copies: fused norms and activations lie
 * between 75 and 100 % of it, by size. */
static const double STREAM_SPREAD = 1.25;

/* GB/s of device memory; 0: nothing of the kind was measured. */
static double measured_gbs(const struct vp_calibration *calibration) {
    if (!calibration)
        return 0;
    if (calibration->copy_gbs > 0 || calibration->read_gbs > 0)
        return calibration->copy_gbs > 0 ? calibration->copy_gbs : calibration->read_gbs;
    for (int i = 0; i < VP_RATES; i++)
        if (calibration->gemm[i].known)
            return calibration->gemm[i].constant[VP_C_GEMM_MEMORY];
    return 0;
}

struct vp_time vp_stream_time(const struct vp_kernels *kernels, double bytes_read,
                              double bytes_written) {
    double gbs = measured_gbs(kernels->calibration);
    if (!(gbs > 0))
        return vp_class_stream(kernels->gpu, kernels->graphs, bytes_read + bytes_written);
    double launch = vp_launch_time(kernels).likely;
    double us =
        (kernels->graphs ? launch / 2 : launch) + (bytes_read + bytes_written) / (gbs * 1e3);
    return (struct vp_time){us / STREAM_SPREAD, us, us * STREAM_SPREAD, VP_BASIS_CALIBRATED};
}

struct vp_time vp_launch_time(const struct vp_kernels *kernels) {
    const struct vp_calibration *calibration = kernels->calibration;
    if (!calibration || !(calibration->launch_us > 0))
        return vp_class_launch(kernels->gpu);
    double us = calibration->launch_us;
    return (struct vp_time){us / STREAM_SPREAD, us, us * STREAM_SPREAD, VP_BASIS_CALIBRATED};
}

struct vp_time vp_host_copy_time(const struct vp_kernels *kernels, double bytes) {
    const struct vp_calibration *calibration = kernels->calibration;
    if (kernels->host_gbs > 0) {
        double said = vp_launch_time(kernels).likely + bytes / (kernels->host_gbs * 1e3);
        return (struct vp_time){said / STREAM_SPREAD, said, said * STREAM_SPREAD, VP_BASIS_CLASS};
    }
    if (!calibration || !(calibration->host_to_device_gbs > 0))
        return vp_class_host_copy(kernels->gpu, bytes);
    double gbs = calibration->host_to_device_gbs;
    if (calibration->device_to_host_gbs > 0 && calibration->device_to_host_gbs < gbs)
        gbs = calibration->device_to_host_gbs;
    double us = vp_launch_time(kernels).likely + bytes / (gbs * 1e3);
    return (struct vp_time){us / STREAM_SPREAD, us, us * STREAM_SPREAD, VP_BASIS_CALIBRATED};
}
