#include "cli/probe_verify.h"

#include <math.h>

#include "cli/probe_samples.h"
#include "planner/base/quantile.h"
#include "planner/base/text.h"
#include "planner/latency/op_time.h"

/* The sum of its operators, each by itself, as the probe launches them. Not known (basis NONE) when
 * one of them is outside of what was measured. */
static struct vp_time predict(const struct vp_kernels *kernels, const struct vp_plain_layer *layer,
                              uint64_t tokens) {
    static const enum vp_rate RATE = VP_RATE_BF16;
    const struct vp_op_load load = {.tokens = (double)tokens,
                                    .sequences = 1,
                                    .fresh = (double)tokens,
                                    .kv = VP_KV_16,
                                    .rate = &RATE};
    struct vp_model model;
    struct vp_block block;
    struct vp_ops ops;
    struct vp_op_place place = {
        .kernels = kernels, .model = &model, .block = &block, .layout = {1, 1, 1, 1, 1, 1}};

    vp_plain_layer(&model, &block, layer);
    vp_ops_block(&ops, &model, &block);
    struct vp_time sum = {.basis = VP_BASIS_CALIBRATED};
    for (uint32_t i = 0; i < ops.count; i++) {
        struct vp_time t = vp_op_time(&place, &ops.item[i], &load);
        if (t.basis == VP_BASIS_NONE)
            return (struct vp_time){0};
        sum = vp_time_add(sum, t);
    }
    return sum;
}

static uint64_t whole(const struct vp_csv *csv, uint32_t row, const char *column) {
    return (uint64_t)fmax(vp_probe_number(csv, row, column), 1);
}

void vp_probe_verify(struct vp_arena *arena, struct vp_verification *out, const struct vp_gpu *gpu,
                     const struct vp_calibration *calibration, const struct vp_csv *blocks) {
    const struct vp_kernels kernels = {.gpu = gpu, .calibration = calibration};
    uint32_t within = 0;

    *out = (struct vp_verification){.rows = VP_NEW_ARRAY(arena, blocks->rows, struct vp_verified)};
    double *errors = VP_NEW_ARRAY(arena, blocks->rows, double);
    for (uint32_t i = 0; i < blocks->rows; i++) {
        struct vp_verified *v = &out->rows[out->count++];
        v->layer = (struct vp_plain_layer){.hidden = whole(blocks, i, "hidden_size"),
                                           .intermediate = whole(blocks, i, "intermediate_size"),
                                           .heads = whole(blocks, i, "heads"),
                                           .kv_heads = whole(blocks, i, "kv_heads"),
                                           .head_dim = whole(blocks, i, "head_dim")};
        v->tokens = whole(blocks, i, "tokens");
        v->measured_us = vp_probe_number(blocks, i, "latency_us");
        v->noisy = vp_text_eq(vp_probe_text(blocks, i, "noisy"), "1");
        v->predicted = predict(&kernels, &v->layer, v->tokens);
        if (v->noisy || !(v->measured_us > 0) || v->predicted.basis == VP_BASIS_NONE)
            continue;
        v->error = fabs(v->predicted.likely / v->measured_us - 1);
        errors[out->good++] = v->error;
        within += v->measured_us >= v->predicted.low && v->measured_us <= v->predicted.high;
    }
    if (out->good) {
        vp_reals_sort(errors, out->good);
        out->median = vp_quantile_between(errors, out->good, 0.5);
        out->within = (double)within / out->good;
    }
}
