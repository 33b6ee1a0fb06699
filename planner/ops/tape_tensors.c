/* Tensors of a tape and the sums over them. */
#include <assert.h>

#include "planner/ops/tape_parts.h"

/* Regions whose results are dropped though others keep them: they are made again just before they
 * are needed. Of the other regions only what is kept inside of them is dropped. */
static const uint32_t OUTPUT_DROPPED = VP_SELECT_NORM | VP_SELECT_MOE_ACTIVATION | VP_SELECT_MLA_UP;

const struct vp_op *vp_maker_find(const struct vp_tape_maker *maker, enum vp_role role) {
    for (uint32_t i = maker->half; i < maker->ops.count; i++) {
        const struct vp_op *op = &maker->ops.item[i];
        if (op->kind == VP_OP_ADD && maker->block)
            break;
        if (op->role == role && op->kind != VP_OP_ROTARY && op->kind != VP_OP_ACTIVATION)
            return op;
    }
    return NULL;
}

const struct vp_op *vp_maker_kind(const struct vp_tape_maker *maker, enum vp_op_kind kind) {
    for (uint32_t i = maker->half; i < maker->ops.count; i++) {
        const struct vp_op *op = &maker->ops.item[i];
        if (op->kind == kind)
            return op;
        if (op->kind == VP_OP_ADD && maker->block)
            break;
    }
    return NULL;
}

struct vp_op_share vp_maker_share(const struct vp_tape_maker *maker, const struct vp_op *op) {
    return vp_ops_share(op, maker->block, &maker->layout);
}

uint64_t vp_maker_source(const struct vp_tape_maker *maker, const struct vp_attention *a) {
    bool fixed = maker->scenario->engine.rules.train.source_fixed;
    return fixed ? a->source_tokens : vp_min(a->source_tokens, maker->scenario->train.sequence);
}

bool vp_maker_trains(const struct vp_tape_maker *maker, enum vp_role role) {
    const struct vp_train *train = &maker->scenario->train;
    if (role == VP_ROLE_LM_HEAD && maker->scenario->model->tied)
        role = VP_ROLE_EMBEDDING;
    return !train->lora.enabled && !train->frozen && !train->frozen_roles[role];
}

uint32_t vp_tensor_new(struct vp_tape_maker *maker, const char *name, struct vp_sum elements,
                       enum vp_dtype dtype, bool grad) {
    assert(maker->count < VP_TENSORS_MAX);
    struct vp_tensor *t = &maker->tensor[maker->count];
    struct vp_sum bytes = vp_dtype_bytes(dtype, elements);

    maker->out->overflow |= bytes.overflow;
    *t = (struct vp_tensor){.name = name,
                            .group = maker->group,
                            .elements = elements.v,
                            .bytes = bytes.v,
                            .dtype = dtype,
                            .grad = grad,
                            .made = maker->step,
                            .read = maker->step,
                            .needed = UINT32_MAX,
                            .made_in = maker->region,
                            .kept_in = UINT32_MAX};
    return maker->count++;
}

uint32_t vp_tensor_rows(struct vp_tape_maker *maker, const char *name, uint64_t rows,
                        uint64_t width, enum vp_dtype dtype, bool grad) {
    return vp_tensor_new(maker, name, vp_sum_mul(vp_sum(rows), width), dtype, grad);
}

uint32_t vp_tensor_like(struct vp_tape_maker *maker, const char *name, uint32_t tensor) {
    const struct vp_tensor *t = &maker->tensor[tensor];
    return vp_tensor_new(maker, name, vp_sum(t->elements), t->dtype, t->grad);
}

void vp_tensor_read(struct vp_tape_maker *maker, uint32_t tensor) {
    maker->tensor[tensor].read = maker->step;
}

bool vp_tensor_grad(const struct vp_tape_maker *maker, uint32_t tensor) {
    return maker->tensor[tensor].grad;
}

uint32_t vp_tensor_cast(struct vp_tape_maker *maker, uint32_t tensor, enum vp_dtype dtype) {
    const struct vp_tensor *t = &maker->tensor[tensor];

    if (t->dtype == dtype)
        return tensor;
    vp_tensor_read(maker, tensor);
    return vp_tensor_new(maker, t->name, vp_sum(t->elements), dtype, t->grad);
}

void vp_tensor_keep(struct vp_tape_maker *maker, uint32_t tensor) {
    struct vp_tensor *t = &maker->tensor[tensor];
    t->kept = true;
    t->needed = maker->step < t->needed ? maker->step : t->needed;
    t->kept_in &= maker->region;
}

void vp_tensor_keep_new(struct vp_tape_maker *maker, const char *name, uint64_t rows,
                        uint64_t width, enum vp_dtype dtype) {
    vp_tensor_keep(maker, vp_tensor_rows(maker, name, rows, width, dtype, false));
}

void vp_maker_step(struct vp_tape_maker *maker) { maker->step++; }

void vp_region_enter(struct vp_tape_maker *maker, enum vp_selective region, uint32_t input) {
    maker->region |= (uint32_t)region;
    maker->tensor[input].input_of |= (uint32_t)region;
}

void vp_region_leave(struct vp_tape_maker *maker, enum vp_selective region) {
    maker->region &= ~(uint32_t)region;
}

/* ---- the finished tape ---- */

static uint32_t dropped_by(const struct vp_tensor *t) {
    return t->made_in & (t->kept_in | OUTPUT_DROPPED);
}

static void add_items(struct vp_tape_maker *maker, uint32_t input) {
    struct vp_tape *out = maker->out;
    struct vp_sum saved = vp_sum(0);

    for (uint32_t i = 0; i < maker->count; i++) {
        const struct vp_tensor *t = &maker->tensor[i];
        for (uint32_t k = 0; k < VP_TAPE_REGIONS; k++)
            if ((t->input_of >> k & 1) && !t->kept)
                out->region_input_bytes[k] += t->bytes;
        if (!t->kept || t->bytes == 0)
            continue;
        assert(out->count < VP_TAPE_MAX);
        out->item[out->count++] = (struct vp_tape_item){.name = t->name,
                                                        .group = t->group,
                                                        .bytes = t->bytes,
                                                        .on_input = i == input,
                                                        .selective = dropped_by(t)};
        saved = vp_sum_add(saved, t->bytes);
        out->input_on_tape |= i == input;
    }
    out->saved_bytes = saved.v;
    out->overflow |= saved.overflow;
}

/* Most bytes at one step. Forward: tensors between their making and their last reading that are not
 * on the tape; what later steps will keep, and the output, are not there yet. Backward: the same
 * steps in reverse, a tensor's gradient lives as long as the tensor did; what the steps behind kept
 * is gone by then. Left out: what one kernel needs inside itself, the second copy while two
 * gradients of one tensor are added, and variables that a program holds longer than it reads them.
 */
static void add_temporaries(struct vp_tape_maker *maker, uint32_t input, uint32_t output) {
    struct vp_tape *out = maker->out;

    for (uint32_t step = 0; step <= maker->step; step++) {
        struct vp_sum forward = vp_sum(0), backward = vp_sum(0), gone = vp_sum(0);
        struct vp_sum later = vp_sum(0);
        for (uint32_t i = 0; i < maker->count; i++) {
            const struct vp_tensor *t = &maker->tensor[i];
            if (t->kept && t->needed > step)
                gone = vp_sum_add(gone, t->bytes);
            if (t->made > step && (t->kept || i == output))
                later = vp_sum_add(later, t->bytes);
            if (t->made > step || t->read < step)
                continue;
            if (!t->kept && i != input && i != output)
                forward = vp_sum_add(forward, t->bytes);
            if (t->grad)
                backward = vp_sum_add(backward, t->bytes);
        }
        out->overflow |= forward.overflow || backward.overflow || gone.overflow || later.overflow;
        forward.v = vp_above(forward.v, later.v);
        backward.v = vp_above(backward.v, gone.v);
        out->forward_temp_bytes = vp_max(out->forward_temp_bytes, forward.v);
        out->backward_temp_bytes = vp_max(out->backward_temp_bytes, backward.v);
    }
}

void vp_maker_finish(struct vp_tape_maker *maker, uint32_t input, uint32_t output) {
    struct vp_tape *out = maker->out;

    out->overflow |= maker->ops.overflow;
    maker->tensor[output].read = maker->step;
    out->input_bytes = maker->tensor[input].bytes;
    out->output_bytes = maker->tensor[output].bytes;
    add_items(maker, input);
    add_temporaries(maker, input, output);
}
