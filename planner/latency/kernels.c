#include "planner/latency/kernels.h"

#include <math.h>
#include <stddef.h>

#include "planner/base/text.h"

struct class_row {
    const char *vendor, *family;
    double memory, bits16, bits8, launch_us, spread;
};

static const struct class_row CLASSES[] = {
#define X(name, vendor, family, memory, bits16, bits8, launch_us, spread, source)                  \
    {vendor, family, memory, bits16, bits8, launch_us, spread},
#include "planner/latency/classes.def"
#undef X
};

static const struct class_row *class_of(const struct vp_gpu *gpu) {
    size_t n = sizeof CLASSES / sizeof *CLASSES;

    for (size_t i = 0; i < n; i++)
        if (gpu->vendor && vp_text_eq(gpu->vendor, CLASSES[i].vendor) &&
            (!CLASSES[i].family || (gpu->family && vp_text_eq(gpu->family, CLASSES[i].family))))
            return &CLASSES[i];
    return &CLASSES[n - 1];
}

const char *vp_basis_name(enum vp_basis basis) {
    static const char *const NAMES[] = {"none", "bound", "class", "calibrated"};
    return NAMES[basis];
}

const char *vp_rate_name(enum vp_rate rate) {
    static const char *const NAMES[] = {"bf16", "fp16", "fp32", "fp8", "fp8_block", "int8", "fp4"};
    return NAMES[rate];
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

/* ---- by class ---- */

static struct vp_time of_class(const struct class_row *row, double us) {
    return (struct vp_time){us / row->spread, us, us * row->spread, VP_BASIS_CLASS};
}

struct vp_kernels vp_kernels_of(const struct vp_scenario *scenario) {
    const struct vp_hardware *hardware = &scenario->hardware;
    uint64_t nodes = hardware->nodes > 0 ? hardware->nodes : 1;

    return (struct vp_kernels){.gpu = &hardware->gpu,
                               .calibration = scenario->measured_gpu,
                               .intranode_gbs = hardware->intranode_gbs,
                               .internode_gbs = hardware->internode_gbs,
                               .node_devices = hardware->count / nodes,
                               .graphs = !scenario->engine.enforce_eager};
}

/* FLOP/s in tera; what a card has no units for runs in 16 bit. */
static double rate_tflops(const struct vp_gpu *gpu, const struct class_row *row,
                          enum vp_rate rate) {
    double half = gpu->tflops_bf16 > 0 ? gpu->tflops_bf16 : gpu->tflops_fp16;

    switch (rate) {
    case VP_RATE_FP32:
        return gpu->tflops_fp32 > 0 ? gpu->tflops_fp32 * row->bits16 : half * row->bits16 / 8;
    case VP_RATE_FP8:
    case VP_RATE_FP8_BLOCK:
        return gpu->tflops_fp8 > 0 ? gpu->tflops_fp8 * row->bits8 : half * row->bits16;
    case VP_RATE_INT8:
        return gpu->tflops_int8 > 0 ? gpu->tflops_int8 * row->bits8 : half * row->bits16;
    case VP_RATE_FP4:
        return gpu->tflops_fp4 > 0   ? gpu->tflops_fp4 * row->bits8
               : gpu->tflops_fp8 > 0 ? gpu->tflops_fp8 * row->bits8
                                     : half * row->bits16;
    default:
        return half * row->bits16;
    }
}

static double element_bytes(enum vp_rate rate) {
    static const double BYTES[VP_RATES] = {2, 2, 4, 1, 1, 1, 0.5};
    return BYTES[rate];
}

struct vp_time vp_gemm_time(const struct vp_kernels *kernels, const struct vp_gemm_shape *gemm) {
    const struct class_row *row = class_of(kernels->gpu);
    double tflops = rate_tflops(kernels->gpu, row, gemm->rate);
    double batch = fmax(gemm->batch, 1), bytes = gemm->stored_bytes;

    if (!(tflops > 0) || !(kernels->gpu->bandwidth_gbs > 0))
        return (struct vp_time){0};
    if (!(bytes > 0))
        bytes = batch * gemm->n * gemm->k * element_bytes(gemm->rate);
    bytes += batch * gemm->m * (gemm->k * element_bytes(gemm->rate) + gemm->n * 2);
    double compute = 2 * batch * gemm->m * gemm->n * gemm->k / (tflops * 1e6);
    double memory = bytes / (kernels->gpu->bandwidth_gbs * row->memory * 1e3);
    return of_class(row, row->launch_us + fmax(compute, memory));
}

/* Tokens that each fresh one attends to, on average. */
static double attended(const struct vp_attention_shape *a) {
    double seen = a->bidirectional ? a->past + a->fresh : a->past + (a->fresh + 1) / 2;
    return a->window > 0 ? fmin(seen, a->window) : seen;
}

struct vp_time vp_attention_time(const struct vp_kernels *kernels,
                                 const struct vp_attention_shape *a) {
    const struct class_row *row = class_of(kernels->gpu);
    double tflops = rate_tflops(kernels->gpu, row, VP_RATE_BF16) * 0.8;
    double width = a->kv == VP_KV_8 ? 1 : 2;
    double cached =
        a->window > 0 ? fmin(a->past + a->fresh, a->window + a->fresh) : a->past + a->fresh;

    if (!(tflops > 0) || !(kernels->gpu->bandwidth_gbs > 0))
        return (struct vp_time){0};
    double flops = 2 * a->batch * a->fresh * attended(a) * a->heads * (a->head_dim + a->v_head_dim);
    double vectors = a->latent ? a->head_dim : a->kv_heads * (a->head_dim + a->v_head_dim);
    double bytes = a->batch * (cached * vectors * width + 4 * a->fresh * a->heads * a->head_dim);
    return of_class(row, row->launch_us +
                             fmax(flops / (tflops * 1e6),
                                  bytes / (kernels->gpu->bandwidth_gbs * row->memory * 1e3)));
}

struct vp_time vp_stream_time(const struct vp_kernels *kernels, double bytes_read,
                              double bytes_written) {
    const struct class_row *row = class_of(kernels->gpu);

    if (!(kernels->gpu->bandwidth_gbs > 0))
        return (struct vp_time){0};
    double us = (bytes_read + bytes_written) / (kernels->gpu->bandwidth_gbs * row->memory * 1e3);
    return of_class(row, (kernels->graphs ? row->launch_us / 2 : row->launch_us) + us);
}

struct vp_time vp_launch_time(const struct vp_kernels *kernels) {
    const struct class_row *row = class_of(kernels->gpu);
    return of_class(row, row->launch_us);
}

/* ---- links ---- */

static const double LINK_SHARE = 0.65; /* of all links' rate, by a collective of many bytes */
static const double NODE_START_US = 8; /* of a collective inside a node, captured */
static const double NET_START_US = 25; /* across nodes */
static const double PCIE_GBS = 20;     /* per direction, where no link is known */
static const double NET_GBS = 25;      /* per direction and device, where no network is known */
static const double COLLECTIVE_SPREAD = 1.8;

static struct vp_time moved(const struct vp_kernels *kernels, double ranks, double bytes) {
    bool across = kernels->node_devices > 0 && ranks > (double)kernels->node_devices;
    double node = kernels->intranode_gbs > 0   ? kernels->intranode_gbs
                  : kernels->gpu->link_gbs > 0 ? kernels->gpu->link_gbs
                                               : PCIE_GBS;
    double net = kernels->internode_gbs > 0 ? kernels->internode_gbs : NET_GBS;
    double us = (across ? NET_START_US : NODE_START_US) +
                bytes / ((across ? fmin(net, node) : node) * LINK_SHARE * 1e3);

    if (ranks <= 1)
        return (struct vp_time){.basis = VP_BASIS_CALIBRATED};
    return (struct vp_time){us / COLLECTIVE_SPREAD, us, us * COLLECTIVE_SPREAD, VP_BASIS_CLASS};
}

struct vp_time vp_all_reduce_time(const struct vp_kernels *kernels, double ranks, double bytes) {
    return moved(kernels, ranks, 2 * (ranks - 1) / fmax(ranks, 1) * bytes);
}

struct vp_time vp_all_gather_time(const struct vp_kernels *kernels, double ranks, double bytes) {
    return moved(kernels, ranks, (ranks - 1) / fmax(ranks, 1) * bytes);
}

struct vp_time vp_all_to_all_time(const struct vp_kernels *kernels, double ranks, double bytes) {
    return moved(kernels, ranks, (ranks - 1) / fmax(ranks, 1) * bytes);
}

struct vp_time vp_send_time(const struct vp_kernels *kernels, bool across_nodes, double bytes) {
    return moved(kernels, across_nodes ? (double)kernels->node_devices + 1 : 2, bytes);
}

struct vp_time vp_host_copy_time(const struct vp_kernels *kernels, double bytes) {
    const struct class_row *row = class_of(kernels->gpu);
    return of_class(row, row->launch_us + bytes / (PCIE_GBS * 1e3));
}
