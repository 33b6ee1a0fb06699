#include "planner/plan/roofline.h"

#include <math.h>

#include "planner/latency/anchors.h"
#include "planner/memory/stage.h"
#include "planner/ops/train_layout.h"
#include "planner/plan/serve_latency.h"

/* ---- the card ---- */

static void find_peaks(struct vp_roofline *out) {
    const struct vp_gpu *gpu = out->gpu;
    out->peak_gbs = gpu->bandwidth_gbs;
    out->peak_tflops[VP_RATE_BF16] = gpu->tflops_bf16;
    out->peak_tflops[VP_RATE_FP16] = gpu->tflops_fp16;
    out->peak_tflops[VP_RATE_FP32] = gpu->tflops_fp32;
    out->peak_tflops[VP_RATE_FP8] = out->peak_tflops[VP_RATE_FP8_BLOCK] = gpu->tflops_fp8;
    out->peak_tflops[VP_RATE_INT8] = gpu->tflops_int8;
    out->peak_tflops[VP_RATE_FP4] = gpu->tflops_fp4;
}

/* ---- the scenario's operators ---- */

struct maker {
    struct vp_arena *arena;
    struct vp_roofline *out;
    uint32_t capacity;
};

static void add(struct maker *m, struct vp_roof_point point) {
    bool known = point.time.basis != VP_BASIS_NONE && point.flops > 0 && point.bytes > 0;
    if (known && point.time.likely > 0 && m->out->count < m->capacity)
        m->out->point[m->out->count++] = point;
}

static const struct vp_block *commonest(const struct vp_model *model) {
    const struct vp_block *most = NULL;
    for (uint32_t i = 0; i < model->block_count; i++)
        if (!most || model->blocks[i].count > most->count)
            most = &model->blocks[i];
    return most;
}

static void add_load(struct maker *m, enum vp_roof_kind kind, const struct vp_op_place *place,
                     const struct vp_op_load *load) {
    struct vp_ops ops;
    vp_ops_block(&ops, place->model, place->block);
    for (uint32_t i = 0; i < ops.count; i++) {
        const struct vp_op *op = &ops.item[i];
        struct vp_op_work work = vp_op_work(place, op, load);
        if (!(work.flops > 0))
            continue;
        struct vp_time time = vp_op_time(place, op, load);
        if (time.basis < m->out->basis)
            m->out->basis = time.basis;
        add(m, (struct vp_roof_point){.kind = kind,
                                      .name = op->name,
                                      .flops = work.flops,
                                      .bytes = work.bytes,
                                      .time = time});
    }
}

/* One decode iteration, and the first piece of a prompt as one iteration computes it. */
static void serving_points(struct maker *m, const struct vp_result *result,
                           struct vp_op_place *place) {
    struct vp_serve_load load;
    vp_serve_load_of(&load, result);
    place->layout = load.layout;
    bool narrow = result->scenario->precision.kv_cache == VP_DTYPE_FP8 ||
                  result->scenario->precision.kv_cache == VP_DTYPE_INT8;
    enum vp_kv_width kv = narrow ? VP_KV_8 : VP_KV_16;
    double chunk = fmin(load.prompt, load.budget);
    struct vp_op_load decode = {.tokens = load.running,
                                .expert_tokens = load.running * load.data,
                                .sequences = load.running,
                                .fresh = 1,
                                .past = load.prompt + load.output / 2,
                                .kv = kv};
    struct vp_op_load prefill = {.tokens = chunk,
                                 .expert_tokens = chunk * load.data,
                                 .sequences = 1,
                                 .fresh = chunk,
                                 .kv = kv};
    add_load(m, VP_ROOF_DECODE, place, &decode);
    add_load(m, VP_ROOF_PREFILL, place, &prefill);
}

/* The forward pass of one micro batch. */
static void training_points(struct maker *m, const struct vp_result *result,
                            struct vp_op_place *place) {
    const struct vp_scenario *s = result->scenario;
    double ranks = (double)vp_max(s->parallel.context, 1);
    double length = (double)s->train.sequence / ranks;
    struct vp_op_load load = {.tokens = (double)s->train.micro_batch * length,
                              .sequences = (double)s->train.micro_batch,
                              .fresh = length};
    place->layout = vp_train_layout(s);
    place->fused = false;
    add_load(m, VP_ROOF_FORWARD, place, &load);
}

/* ---- measured products ---- */

struct vp_measured_product *vp_measured_products(struct vp_arena *arena,
                                                 const struct vp_calibration *calibration,
                                                 uint32_t *count) {
    uint32_t room = 0;
    *count = 0;
    for (int r = 0; calibration && r < VP_RATES; r++)
        room += calibration->gemm[r].known ? calibration->gemm[r].anchor_count : 0;
    struct vp_measured_product *out = VP_NEW_ARRAY(arena, room, struct vp_measured_product);
    for (int r = 0; room > 0 && r < VP_RATES; r++) {
        const struct vp_form_fit *fit = &calibration->gemm[r];
        for (uint32_t i = 0; fit->known && i < fit->anchor_count; i++) {
            const struct vp_anchor *anchor = &fit->anchors[i];
            struct vp_form_case c = {.form = VP_FORM_GEMM,
                                     .units = calibration->units,
                                     .cache_bytes = calibration->cache_bytes,
                                     .weight_bytes = vp_rate_bytes((enum vp_rate)r),
                                     .fine = vp_form_is_fine(calibration)};
            for (int d = 0; d < 3; d++)
                c.shape.size[d] = round(exp2((double)anchor->at[d]));
            double form = vp_form_us(&c, fit->constant);
            out[(*count)++] =
                (struct vp_measured_product){.rate = (enum vp_rate)r,
                                             .m = c.shape.size[0],
                                             .n = c.shape.size[1],
                                             .k = c.shape.size[2],
                                             .form_us = form,
                                             .measured_us = form * exp((double)anchor->log_ratio)};
        }
    }
    return out;
}

static void measured_points(struct maker *m, const struct vp_measured_product *products,
                            uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const struct vp_measured_product *p = &products[i];
        double width = vp_rate_bytes(p->rate), us = p->measured_us;
        add(m, (struct vp_roof_point){
                   .kind = VP_ROOF_MEASURED,
                   .name = vp_arena_printf(m->arena, "%.0f x %.0f x %.0f", p->m, p->n, p->k),
                   .rate = p->rate,
                   .flops = 2 * p->m * p->n * p->k,
                   .bytes = p->n * p->k * width + p->m * (p->n + p->k) * 2,
                   .time = {us, us, us, VP_BASIS_CALIBRATED}});
    }
}

/* ---- the whole ---- */

bool vp_roofline_of(struct vp_arena *arena, struct vp_roofline *out,
                    const struct vp_result *result) {
    const struct vp_scenario *s = result->scenario;
    const struct vp_model *model = s->model;
    struct vp_kernels kernels = vp_kernels_of(s);
    uint32_t measured;
    *out = (struct vp_roofline){.gpu = &s->hardware.gpu, .basis = VP_BASIS_CALIBRATED};
    find_peaks(out);
    if (s->hardware.count == 0 || !(out->peak_gbs > 0) || !(out->peak_tflops[VP_RATE_BF16] > 0))
        return false;
    struct vp_measured_product *products =
        vp_measured_products(arena, kernels.calibration, &measured);
    struct maker m = {arena, out, 2 * VP_OPS_MAX + measured};
    out->point = VP_NEW_ARRAY(arena, m.capacity, struct vp_roof_point);
    struct vp_op_place place = {
        .kernels = &kernels, .model = model, .block = commonest(model), .fused = true};
    if (place.block && s->training)
        training_points(&m, result, &place);
    else if (place.block)
        serving_points(&m, result, &place);
    measured_points(&m, products, measured);
    return true;
}
