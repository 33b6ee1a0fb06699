#include "planner/latency/kernel_class.h"

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
            (!CLASSES[i].family || (gpu->family && vp_text_eq(gpu->family, CLASSES[i].family)) ||
             (gpu->arch && vp_text_eq(gpu->arch, CLASSES[i].family))))
            return &CLASSES[i];
    return &CLASSES[n - 1];
}

static struct vp_time of_class(const struct class_row *row, double us) {
    return (struct vp_time){us / row->spread, us, us * row->spread, VP_BASIS_CLASS};
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

double vp_class_tflops(const struct vp_gpu *gpu, enum vp_rate rate) {
    return rate_tflops(gpu, class_of(gpu), rate);
}

struct vp_time vp_class_gemm(const struct vp_gpu *gpu, const struct vp_gemm_shape *gemm) {
    const struct class_row *row = class_of(gpu);
    double tflops = rate_tflops(gpu, row, gemm->rate);
    double batch = fmax(gemm->batch, 1), bytes = gemm->stored_bytes;

    if (!(tflops > 0) || !(gpu->bandwidth_gbs > 0))
        return (struct vp_time){0};
    if (!(bytes > 0))
        bytes = batch * gemm->n * gemm->k * vp_rate_bytes(gemm->rate);
    bytes += batch * gemm->m * (gemm->k * vp_rate_bytes(gemm->rate) + gemm->n * 2);
    double compute = 2 * batch * gemm->m * gemm->n * gemm->k / (tflops * 1e6);
    double memory = bytes / (gpu->bandwidth_gbs * row->memory * 1e3);
    return of_class(row, row->launch_us + fmax(compute, memory));
}

/* Tokens that each fresh one attends to, on average. */
static double attended(const struct vp_attention_shape *a) {
    double seen = a->bidirectional ? a->past + a->fresh : a->past + (a->fresh + 1) / 2;
    return a->window > 0 ? fmin(seen, a->window) : seen;
}

struct vp_time vp_class_attention(const struct vp_gpu *gpu, const struct vp_attention_shape *a) {
    const struct class_row *row = class_of(gpu);
    double tflops = rate_tflops(gpu, row, VP_RATE_BF16) * 0.8;
    double width = a->kv == VP_KV_8 ? 1 : 2;
    double cached =
        a->window > 0 ? fmin(a->past + a->fresh, a->window + a->fresh) : a->past + a->fresh;

    if (!(tflops > 0) || !(gpu->bandwidth_gbs > 0))
        return (struct vp_time){0};
    double flops = 2 * a->batch * a->fresh * attended(a) * a->heads * (a->head_dim + a->v_head_dim);
    double vectors = a->latent ? a->head_dim : a->kv_heads * (a->head_dim + a->v_head_dim);
    double bytes = a->batch * (cached * vectors * width + 4 * a->fresh * a->heads * a->head_dim);
    return of_class(row, row->launch_us + fmax(flops / (tflops * 1e6),
                                               bytes / (gpu->bandwidth_gbs * row->memory * 1e3)));
}

struct vp_time vp_class_stream(const struct vp_gpu *gpu, bool graphs, double bytes) {
    const struct class_row *row = class_of(gpu);
    if (!(gpu->bandwidth_gbs > 0))
        return (struct vp_time){0};
    double us = bytes / (gpu->bandwidth_gbs * row->memory * 1e3);
    return of_class(row, (graphs ? row->launch_us / 2 : row->launch_us) + us);
}

struct vp_time vp_class_launch(const struct vp_gpu *gpu) {
    const struct class_row *row = class_of(gpu);
    return of_class(row, row->launch_us);
}

static const double PCIE_GBS = 20; /* per direction, where no link is known */

struct vp_time vp_class_host_copy(const struct vp_gpu *gpu, double bytes) {
    const struct class_row *row = class_of(gpu);
    return of_class(row, row->launch_us + bytes / (PCIE_GBS * 1e3));
}
