/* What linear-attention, state-space and condensed mixers keep. Recurrences run in fused kernels
 * (mamba_ssm, causal_conv1d, flash-linear-attention), as all frameworks do on a GPU; what these
 * keep is read off their autograd functions, not measured. */
#include "planner/ops/tape_parts.h"

enum { DELTA_CHUNK = 64 }; /* tokens per chunk of flash-linear-attention's delta rules */

/* A tensor of `width` elements per token made of x by an operator that keeps x. */
static uint32_t keeping(struct vp_tape_maker *maker, uint32_t x, const char *name, uint64_t width) {
    vp_maker_step(maker);
    vp_tensor_read(maker, x);
    if (vp_tensor_grad(maker, x))
        vp_tensor_keep(maker, x);
    return vp_tensor_rows(maker, name, maker->tokens, width, maker->tensor[x].dtype,
                          vp_tensor_grad(maker, x));
}

/* The same by one that needs nothing of x again. */
static uint32_t passing(struct vp_tape_maker *maker, uint32_t x, const char *name, uint64_t width) {
    vp_maker_step(maker);
    vp_tensor_read(maker, x);
    return vp_tensor_rows(maker, name, maker->tokens, width, maker->tensor[x].dtype,
                          vp_tensor_grad(maker, x));
}

static uint64_t per_rank(const struct vp_tape_maker *maker, uint64_t elements) {
    return vp_ceil_div(elements, vp_max(maker->layout.attention, 1));
}

/* The norm of each head's output together with its gate, in one kernel: both inputs and 1/rms. */
static uint32_t gated_norm(struct vp_tape_maker *maker, uint32_t x, uint32_t gate, uint64_t heads) {
    uint32_t out = vp_tape_add(maker, x, gate, "gated output");

    if (vp_tensor_grad(maker, out)) {
        vp_tensor_keep(maker, x);
        vp_tensor_keep(maker, gate);
        vp_tensor_keep_new(maker, "norm statistics", maker->tokens, heads, VP_DTYPE_FP32);
    }
    return out;
}

/* ---- delta rules ---- */

/* Queries, keys and values through a convolution and a chunked delta rule. `decay`: of how many
 * elements per token the decay is; with one per channel, products of queries and keys within a
 * chunk are kept beside those of keys. */
static uint32_t delta_rule(struct vp_tape_maker *maker, uint32_t qkv, const struct vp_attention *a,
                           uint64_t decay) {
    uint64_t heads = per_rank(maker, a->value_heads);
    uint64_t keys = vp_sum_mul(vp_sum(heads), a->key_dim).v;
    uint64_t values = vp_sum_mul(vp_sum(heads), a->value_dim).v;
    uint32_t mixed = keeping(maker, qkv, "convolved", per_rank(maker, a->conv_channels));
    bool grad = vp_tensor_grad(maker, mixed);
    uint64_t products = decay > heads ? 2 * heads : heads;
    uint32_t q = passing(maker, mixed, "queries", keys);
    uint32_t k = passing(maker, mixed, "keys", keys);
    uint32_t v = passing(maker, mixed, "values", values);

    if (grad) {
        vp_tensor_keep(maker, q);
        vp_tensor_keep(maker, k);
        vp_tensor_keep(maker, v);
        vp_tensor_keep_new(maker, "lengths of queries and keys", maker->tokens, 2 * heads,
                           VP_DTYPE_FP32);
        vp_tensor_keep_new(maker, "decays", maker->tokens, 2 * decay, VP_DTYPE_FP32);
        vp_tensor_keep_new(maker, "update rates", maker->tokens, 2 * heads, VP_DTYPE_FP32);
        vp_tensor_keep(maker,
                       vp_tensor_rows(maker, "products within chunks", maker->tokens,
                                      products * DELTA_CHUNK, maker->tensor[k].dtype, false));
    }
    return passing(maker, v, "state output", values);
}

static uint32_t gated_delta(struct vp_tape_maker *maker, uint32_t x, const struct vp_attention *a) {
    uint64_t heads = per_rank(maker, a->value_heads);
    uint64_t values = vp_sum_mul(vp_sum(heads), a->value_dim).v;
    uint32_t all = vp_tape_matrix_of(maker, x, VP_ROLE_LINEAR_IN, "queries, keys, values and gate");

    vp_tape_matrix_of(maker, x, VP_ROLE_LINEAR_GATES, "decays and rates");
    uint32_t qkv = passing(maker, all, "convolution input", per_rank(maker, a->conv_channels));
    uint32_t gate = passing(maker, all, "gate", values);
    uint32_t out = delta_rule(maker, qkv, a, heads);
    out = gated_norm(maker, out, gate, heads);
    return vp_tape_matrix_of(maker, out, VP_ROLE_LINEAR_OUT, "output");
}

/* Kimi's: decays per channel and the gate come from low-rank pairs. */
static uint32_t kda(struct vp_tape_maker *maker, uint32_t x, const struct vp_attention *a) {
    uint64_t heads = per_rank(maker, a->value_heads);
    uint64_t values = vp_sum_mul(vp_sum(heads), a->value_dim).v;
    uint32_t qkv = vp_tape_matrix_of(maker, x, VP_ROLE_LINEAR_IN, "queries, keys and values");
    uint32_t low = vp_tape_matrix_of(maker, x, VP_ROLE_LINEAR_LOW, "low-rank gates");
    uint32_t high = vp_tape_matrix_of(maker, low, VP_ROLE_LINEAR_HIGH, "decays and gate");

    vp_tape_matrix_of(maker, x, VP_ROLE_LINEAR_GATES, "update rates");
    uint32_t gate = passing(maker, high, "gate", values);
    uint32_t out = delta_rule(maker, qkv, a, vp_sum_mul(vp_sum(heads), a->key_dim).v);
    out = gated_norm(maker, out, gate, heads);
    return vp_tape_matrix_of(maker, out, VP_ROLE_LINEAR_OUT, "output");
}

/* ---- state spaces ---- */

/* mamba_ssm's functions from the input projection's result to the output projection's: they keep
 * the former and the scan's output, and work out convolution, step sizes and gate again. */
static uint32_t scanned(struct vp_tape_maker *maker, uint32_t projected, uint64_t inner) {
    uint32_t out = keeping(maker, projected, "state output", inner);

    if (vp_tensor_grad(maker, out))
        vp_tensor_keep(maker, out);
    return out;
}

/* The output projection reads a tensor that is made again. */
static uint32_t project_out(struct vp_tape_maker *maker, uint32_t x, bool fused) {
    uint32_t gated =
        passing(maker, x, "gated output", maker->tensor[x].elements / vp_max(maker->tokens, 1));
    uint32_t out = vp_tape_matrix_of(maker, gated, VP_ROLE_LINEAR_OUT, "output");

    if (fused)
        maker->tensor[gated].kept = false;
    return out;
}

static uint32_t mamba1(struct vp_tape_maker *maker, uint32_t x, const struct vp_attention *a) {
    enum { SCAN_CHUNK = 2048 }; /* tokens between kept states, selective_scan_fwd_kernel.cuh */
    uint64_t inner = per_rank(maker, a->value_dim);
    uint64_t small = a->step_rank + 2 * a->key_dim;
    uint64_t chunks = vp_ceil_div(maker->queries, SCAN_CHUNK);
    uint32_t projected = vp_tape_matrix_of(maker, x, VP_ROLE_LINEAR_IN, "input and gate");
    uint32_t out = scanned(maker, projected, inner);

    if (vp_tensor_grad(maker, out)) {
        enum vp_dtype dtype = maker->tensor[out].dtype;
        /* step, B and C as projected, B and C once more in their own order */
        vp_tensor_keep(maker, vp_tensor_rows(maker, "steps, B and C", maker->tokens,
                                             small + 2 * a->key_dim, dtype, false));
        vp_tensor_keep_new(maker, "states between chunks",
                           vp_sum_mul(vp_sum(maker->sequences * chunks), inner).v, 2 * a->key_dim,
                           VP_DTYPE_FP32);
    }
    return project_out(maker, out, true);
}

static uint32_t mamba2(struct vp_tape_maker *maker, uint32_t x, const struct vp_attention *a) {
    uint64_t inner = per_rank(maker, vp_sum_mul(vp_sum(a->value_heads), a->value_dim).v);
    uint32_t projected = vp_tape_matrix_of(maker, x, VP_ROLE_LINEAR_IN, "input, B, C and steps");
    uint32_t out = scanned(maker, projected, inner);

    if (!a->no_norm && vp_tensor_grad(maker, out))
        vp_tensor_keep_new(maker, "norm statistics", maker->tokens, 1, VP_DTYPE_FP32);
    return project_out(maker, out, true);
}

/* ---- others ---- */

/* Two gates around a convolution: B * x, convolved, * C. */
static uint32_t short_conv(struct vp_tape_maker *maker, uint32_t x, const struct vp_attention *a) {
    uint64_t width = per_rank(maker, a->conv_channels);
    uint32_t all = vp_tape_matrix_of(maker, x, VP_ROLE_LINEAR_IN, "gates and input");
    uint32_t gated = keeping(maker, all, "gated input", width);
    uint32_t mixed = keeping(maker, gated, "convolved", width);
    uint32_t out = keeping(maker, mixed, "gated output", width);

    return vp_tape_matrix_of(maker, out, VP_ROLE_LINEAR_OUT, "output");
}

/* Linear attention with fixed decays: queries, keys and values after silu, the output's norm, and a
 * sigmoid gate that is read off the layer's input. */
static uint32_t lightning(struct vp_tape_maker *maker, uint32_t x, const struct vp_attention *a) {
    uint64_t values = per_rank(maker, vp_sum_mul(vp_sum(a->value_heads), a->value_dim).v);
    uint32_t all = vp_tape_matrix_of(maker, x, VP_ROLE_LINEAR_IN, "queries, keys and values");
    uint32_t qkv = keeping(maker, all, "queries, keys and values", 3 * values);
    uint32_t out = keeping(maker, qkv, "state output", values);
    uint32_t normed =
        vp_tape_norm(maker, out, vp_maker_find(maker, VP_ROLE_LINEAR_NORM), maker->tokens);
    uint32_t gate = vp_tape_matrix_of(maker, x, VP_ROLE_LINEAR_GATES, "output gate");
    uint32_t open = passing(maker, gate, "output gate", values);

    if (vp_tensor_grad(maker, open))
        vp_tensor_keep(maker, open);
    out = vp_tape_multiply(maker, normed, open, "gated output");
    return vp_tape_matrix_of(maker, out, VP_ROLE_LINEAR_OUT, "output");
}

/* Described by its number of parameters: its input is kept, what else is not known. */
static uint32_t given(struct vp_tape_maker *maker, uint32_t x) {
    maker->out->incomplete = true;
    if (vp_maker_trains(maker, VP_ROLE_LINEAR_OTHER))
        vp_tensor_keep(maker, x);
    return passing(maker, x, "mixer output", maker->scenario->model->hidden);
}

uint32_t vp_tape_recurrent(struct vp_tape_maker *maker, uint32_t x, const struct vp_attention *a) {
    maker->group = VP_TAPE_STATE;
    switch (a->linear) {
    case VP_LINEAR_GATED_DELTA:
        return gated_delta(maker, x, a);
    case VP_LINEAR_KDA:
        return kda(maker, x, a);
    case VP_LINEAR_MAMBA2:
        return mamba2(maker, x, a);
    case VP_LINEAR_MAMBA1:
        return mamba1(maker, x, a);
    case VP_LINEAR_SHORT_CONV:
        return short_conv(maker, x, a);
    case VP_LINEAR_LIGHTNING:
        return lightning(maker, x, a);
    case VP_LINEAR_GIVEN:
        break;
    }
    return given(maker, x);
}
