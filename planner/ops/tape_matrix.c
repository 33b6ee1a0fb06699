/* What norms, matrices with their adapters, and element-wise operators keep. */
#include "planner/ops/tape_parts.h"

static enum vp_dtype wider(enum vp_dtype a, enum vp_dtype b) {
    return vp_dtype_bytes(a, vp_sum(1)).v >= vp_dtype_bytes(b, vp_sum(1)).v ? a : b;
}

/* ---- norms ---- */

/* torch's layer_norm (and norms without weights): its input, mean and 1/deviation in fp32. */
static uint32_t layer_norm(struct vp_tape_maker *maker, uint32_t x, bool weight, uint64_t rows) {
    bool grad = vp_tensor_grad(maker, x) || weight;

    enum vp_dtype dtype = maker->tensor[x].dtype;
    bool fp32 = maker->scenario->engine.rules.train.layer_norm_fp32;

    if (maker->autocast || fp32)
        x = vp_tensor_cast(maker, x, VP_DTYPE_FP32);
    vp_tensor_read(maker, x);
    if (grad) {
        vp_tensor_keep(maker, x);
        vp_tensor_keep_new(maker, "norm statistics", rows, 2, VP_DTYPE_FP32);
    }
    uint32_t out = vp_tensor_like(maker, "norm output", x);
    maker->tensor[out].grad = grad;
    return fp32 && !maker->autocast ? vp_tensor_cast(maker, out, dtype) : out;
}

/* One kernel (Liger, Apex, TE): input and 1/rms. */
static uint32_t rms_fused(struct vp_tape_maker *maker, uint32_t x, bool weight, uint64_t rows) {
    bool grad = vp_tensor_grad(maker, x) || weight;

    vp_tensor_read(maker, x);
    if (grad) {
        vp_tensor_keep(maker, x);
        vp_tensor_keep_new(maker, "norm statistics", rows, 1, VP_DTYPE_FP32);
    }
    uint32_t out = vp_tensor_like(maker, "norm output", x);
    maker->tensor[out].grad = grad;
    return out;
}

/* As models are written in Python: x to fp32, times rsqrt(mean(x^2)), times the weight and back to
 * x's type, in this order or the other. */
static uint32_t rms_unfused(struct vp_tape_maker *maker, uint32_t x, bool weight, uint64_t rows) {
    const struct vp_train_rules *rules = &maker->scenario->engine.rules.train;
    enum vp_dtype dtype = maker->tensor[x].dtype;
    bool grad = vp_tensor_grad(maker, x);

    vp_tensor_read(maker, x);
    uint32_t wide = vp_tensor_cast(maker, x, VP_DTYPE_FP32);
    vp_maker_step(maker);
    uint32_t square = vp_tensor_like(maker, "squares", wide);
    uint32_t scale = vp_tensor_rows(maker, "norm statistics", rows, 1, VP_DTYPE_FP32, grad);
    vp_tensor_read(maker, wide);
    if (grad) {
        vp_tensor_keep(maker, wide);  /* x^2, and x * scale */
        vp_tensor_keep(maker, scale); /* rsqrt keeps its result */
        if (rules->mean_keeps_input)
            vp_tensor_keep(maker, square);
        for (uint64_t i = 0; i < rules->norm_extra && i < VP_TAPE_EXTRA; i++)
            vp_tensor_keep(maker, vp_tensor_like(maker, "differences", wide));
    }
    vp_maker_step(maker);
    vp_tensor_read(maker, wide);
    vp_tensor_read(maker, scale);
    uint32_t unit = vp_tensor_like(maker, "normalised", wide);
    if (!rules->norm_product_fp32)
        unit = vp_tensor_cast(maker, unit, dtype);
    vp_maker_step(maker);
    vp_tensor_read(maker, unit);
    if (weight)
        vp_tensor_keep(maker, unit);
    uint32_t out = vp_tensor_like(maker, "norm output", unit);
    maker->tensor[out].grad = grad || weight;
    return vp_tensor_cast(maker, out, dtype);
}

static uint32_t norm(struct vp_tape_maker *maker, uint32_t x, const struct vp_op *op,
                     uint64_t rows) {
    bool weight = op->vector > 0 && vp_maker_trains(maker, op->role);

    if (op->norm != VP_NORM_RMS || maker->scenario->engine.rules.train.norm_is_layer)
        return layer_norm(maker, x, weight, rows);
    if (maker->how->fused_norm)
        return rms_fused(maker, x, weight, rows);
    return rms_unfused(maker, x, weight, rows);
}

uint32_t vp_tape_norm(struct vp_tape_maker *maker, uint32_t x, const struct vp_op *op,
                      uint64_t rows) {
    enum vp_tape_group group = maker->group;

    vp_region_enter(maker, VP_SELECT_NORM, x);
    vp_maker_step(maker);
    maker->group = VP_TAPE_NORM;
    uint32_t out = norm(maker, x, op, rows);
    maker->group = group;
    vp_region_leave(maker, VP_SELECT_NORM);
    return out;
}

uint32_t vp_tape_norm_part(struct vp_tape_maker *maker, uint32_t x, const struct vp_op *op,
                           uint64_t rows) {
    const struct vp_tensor *t = &maker->tensor[x];
    bool view = op->norm == VP_NORM_RMS && !maker->how->fused_norm && t->dtype == VP_DTYPE_FP32;

    vp_maker_step(maker);
    vp_tensor_read(maker, x);
    uint32_t part = vp_tensor_rows(maker, t->name, rows, op->in, t->dtype, t->grad);
    uint32_t out = vp_tape_norm(maker, part, op, rows);
    if (view && maker->tensor[part].kept) {
        maker->tensor[part].kept = false;
        vp_tensor_keep(maker, x);
    }
    return out;
}

/* ---- matrices ---- */

uint32_t vp_tape_matrix_input(struct vp_tape_maker *maker, uint32_t x) {
    return maker->autocast ? vp_tensor_cast(maker, x, maker->matrix) : x;
}

/* Autocast keeps the converted weight where the input needs a gradient (so does the cache of casts
 * until the forward pass ends, which holds the same tensor). */
static void weight_copy(struct vp_tape_maker *maker, uint64_t elements, enum vp_dtype dtype,
                        uint32_t in) {
    enum vp_tape_group group = maker->group;

    if (!maker->autocast || dtype == maker->matrix)
        return;
    maker->group = VP_TAPE_WEIGHT_COPY;
    uint32_t copy =
        vp_tensor_new(maker, "converted weights", vp_sum(elements), maker->matrix, false);
    if (vp_tensor_grad(maker, in))
        vp_tensor_keep(maker, copy);
    maker->group = group;
}

/* The type a weight of this role is held in; UNSET: quantised, it is expanded inside the product
 * and not kept. */
static enum vp_dtype weight_type(const struct vp_tape_maker *maker, enum vp_role role) {
    const struct vp_model *model = maker->scenario->model;
    uint8_t scheme = role == VP_ROLE_LM_HEAD ? model->head_scheme
                     : maker->block          ? maker->block->scheme[role]
                                             : 0;
    enum vp_dtype data = model->scheme_count > 0 ? model->schemes[scheme].data : VP_DTYPE_UNSET;

    if (vp_maker_trains(maker, role) || data == VP_DTYPE_UNSET)
        return maker->residual;
    return data == VP_DTYPE_FP32 || data == VP_DTYPE_BF16 || data == VP_DTYPE_FP16 ? maker->residual
                                                                                   : maker->matrix;
}

/* DoRA: trained magnitudes scale the sum, so what they scale is kept: the adapter's output and the
 * frozen matrix's, which behind a dropout is worked out once more in the adapter's type, with a
 * copy of the matrix in that type. The norms of the adapted matrix take no gradient, but the matrix
 * is written out for them (as A and B applied to an identity). */
static void scale(struct vp_tape_maker *maker, uint32_t own, uint32_t base, uint32_t high,
                  const struct vp_op *op, const struct vp_op_share *share) {
    const struct vp_train_lora *lora = &maker->scenario->train.lora;
    enum vp_dtype dtype = lora->dtype == VP_DTYPE_UNSET ? maker->residual : lora->dtype;

    vp_maker_step(maker);
    vp_tensor_rows(maker, "identity", share->in, share->in, dtype, false);
    vp_tensor_rows(maker, "adapted matrix", share->out, share->in, dtype, false);
    vp_maker_step(maker);
    if (lora->dropout_ppb > 0) {
        base = vp_tensor_new(maker, "base output", vp_sum(maker->tensor[base].elements), dtype,
                             vp_tensor_grad(maker, own));
        if (vp_tensor_grad(maker, own) && weight_type(maker, op->role) != dtype)
            vp_tensor_keep_new(maker, "converted weights", share->out, share->in, dtype);
    }
    vp_tensor_keep(maker, base);
    vp_tensor_keep(maker, high);
    vp_tensor_keep_new(maker, "magnitudes and norms", share->out, 3, dtype);
}

/* PEFT's low-rank pair beside a frozen matrix: out + B(A(dropout(x in the adapter's type))). */
static uint32_t adapter(struct vp_tape_maker *maker, uint32_t x, uint32_t base,
                        const struct vp_op *op, const struct vp_op_share *share, uint64_t rows) {
    const struct vp_train_lora *lora = &maker->scenario->train.lora;
    enum vp_dtype dtype = lora->dtype == VP_DTYPE_UNSET ? maker->residual : lora->dtype;
    enum vp_tape_group group = maker->group;

    maker->group = VP_TAPE_ADAPTER;
    vp_maker_step(maker);
    uint32_t own = vp_tape_dropout(maker, vp_tensor_cast(maker, x, dtype), lora->dropout_ppb);
    own = vp_tape_matrix_input(maker, own);
    vp_tensor_read(maker, own);
    vp_tensor_keep(maker, own);
    weight_copy(maker, vp_sum_mul(vp_sum(lora->rank), share->in).v, dtype, own);
    enum vp_dtype works_in = maker->autocast ? maker->matrix : dtype;
    uint32_t low = vp_tensor_rows(maker, "adapter inner product", rows, lora->rank, works_in, true);
    vp_maker_step(maker);
    vp_tensor_read(maker, low);
    vp_tensor_keep(maker, low);
    weight_copy(maker, vp_sum_mul(vp_sum(lora->rank), share->out).v, dtype, low);
    uint32_t high = vp_tensor_new(maker, "adapter output", vp_sum(maker->tensor[base].elements),
                                  works_in, true);
    if (lora->dora)
        scale(maker, own, base, high, op, share);
    uint32_t sum = vp_tape_add(maker, base, high, "adapted output");
    maker->group = group;
    return vp_tensor_cast(maker, sum, maker->tensor[base].dtype);
}

/* What a trained matrix keeps of its input: itself, or a copy in FP8 that matrices reading the same
 * input share. */
static void keep_input(struct vp_tape_maker *maker, uint32_t in, enum vp_role role) {
    bool narrow = maker->scenario->engine.rules.train.fp8_inputs && maker->block &&
                  vp_class_quantised(vp_role_class(role));

    if (!narrow) {
        vp_tensor_keep(maker, in);
        return;
    }
    if (maker->tensor[in].narrow == 0) {
        struct vp_sum elements = vp_sum(maker->tensor[in].elements);
        uint32_t copy = vp_tensor_new(maker, "FP8 input", elements, VP_DTYPE_FP8, false);
        maker->tensor[in].narrow = copy + 1;
        vp_tensor_keep(maker, copy);
    }
}

uint32_t vp_tape_matrix(struct vp_tape_maker *maker, uint32_t x, uint32_t in,
                        const struct vp_op *op, const char *name, uint64_t rows) {
    struct vp_op_share share = vp_maker_share(maker, op);
    const struct vp_train_lora *lora = &maker->scenario->train.lora;
    bool trained = vp_maker_trains(maker, op->role);
    /* a tied head has no matrix of its own, and reads the embedding's */
    struct vp_sum weights =
        vp_sum_mul(vp_sum_mul(vp_sum(vp_max(share.matrices, 1)), share.out), share.in);
    /* a product over divided inputs is summed, and divided by tokens again */
    bool linear = op->kind == VP_OP_LINEAR;
    uint64_t out_rows = op->all_reduce && linear ? maker->outside : rows;

    vp_maker_step(maker);
    vp_tensor_read(maker, x);
    vp_tensor_read(maker, in);
    if (trained)
        keep_input(maker, in, op->role);
    maker->out->overflow |= weights.overflow;
    weight_copy(maker, weights.v, weight_type(maker, op->role), in);
    uint32_t out = vp_tensor_new(
        maker, name,
        vp_sum_mul(vp_sum_mul(vp_sum(out_rows), share.out), linear ? vp_max(op->active, 1) : 1),
        maker->autocast ? maker->matrix : maker->tensor[in].dtype,
        trained || vp_tensor_grad(maker, in));
    if (lora->enabled && lora->roles[op->role])
        out = adapter(maker, x, out, op, &share, rows);
    return out;
}

uint32_t vp_tape_matrix_of(struct vp_tape_maker *maker, uint32_t x, enum vp_role role,
                           const char *name) {
    const struct vp_op *op = vp_maker_find(maker, role);
    uint32_t in = vp_tape_matrix_input(maker, x);

    return vp_tape_matrix(maker, x, in, op, name, maker->tokens);
}

/* ---- element by element ---- */

uint32_t vp_tape_dropout(struct vp_tape_maker *maker, uint32_t x, uint64_t ppb) {
    enum vp_tape_group group = maker->group;

    if (ppb == 0)
        return x;
    vp_maker_step(maker);
    vp_tensor_read(maker, x);
    maker->group = VP_TAPE_DROPOUT;
    if (vp_tensor_grad(maker, x))
        vp_tensor_keep_new(maker, "dropout mask", maker->tensor[x].elements, 1, VP_DTYPE_INT8);
    maker->group = group;
    return vp_tensor_like(maker, maker->tensor[x].name, x);
}

uint32_t vp_tape_add(struct vp_tape_maker *maker, uint32_t a, uint32_t b, const char *name) {
    const struct vp_tensor *x = &maker->tensor[a], *y = &maker->tensor[b];

    vp_maker_step(maker);
    vp_tensor_read(maker, a);
    vp_tensor_read(maker, b);
    return vp_tensor_new(maker, name, vp_sum(vp_max(x->elements, y->elements)),
                         wider(x->dtype, y->dtype), x->grad || y->grad);
}

uint32_t vp_tape_multiply(struct vp_tape_maker *maker, uint32_t a, uint32_t b, const char *name) {
    uint32_t out = vp_tape_add(maker, a, b, name);

    if (vp_tensor_grad(maker, a))
        vp_tensor_keep(maker, b);
    if (vp_tensor_grad(maker, b))
        vp_tensor_keep(maker, a);
    return out;
}
