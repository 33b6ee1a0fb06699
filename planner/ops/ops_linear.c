/* Operators of the mixers that keep a state instead of a cache: linear attention, state spaces,
 * short convolutions. */
#include "planner/ops/ops_parts.h"

static void conv(struct vp_ops *ops, const struct vp_attention *a) {
    struct vp_op *op = vp_op_add(ops, VP_OP_CONV, VP_ROLE_LINEAR_CONV, "conv1d");
    op->vector = vp_op_product(ops, a->conv_channels, a->conv_kernel + (a->conv_bias ? 1 : 0), 1);
    op->out = op->in = op->reads = op->writes = a->conv_channels;
    op->flops = vp_op_product(ops, 2, a->conv_channels, a->conv_kernel);
}

static void scan(struct vp_ops *ops, const struct vp_attention *a, uint64_t vector) {
    struct vp_op *op = vp_op_add(ops, VP_OP_SCAN, VP_ROLE_LINEAR_STATE, "scan");
    op->vector = vector;
    op->in = a->conv_channels;
    op->out = vp_op_product(ops, a->value_heads, a->value_dim, 1);
    /* decay, outer-product update and read-out touch every state element about twice each */
    op->flops = vp_op_product(ops, 6, a->state_elements, 1);
    op->reads = op->in;
    op->writes = op->out;
}

/* A step size, B and C per token come from a small projection; a decay per channel and state. */
static void mamba1(struct vp_ops *ops, uint64_t hidden, const struct vp_attention *a) {
    uint64_t inner = a->value_dim;
    uint64_t small = vp_op_sum(ops, a->step_rank, vp_op_product(ops, 2, a->key_dim, 1));

    vp_op_linear(ops, VP_ROLE_LINEAR_IN, "in_proj", vp_op_product(ops, 2, inner, 1), hidden,
                 a->qkv_bias);
    conv(ops, a);
    vp_op_linear_row(ops, VP_ROLE_LINEAR_STEP, "x_proj", small, inner, false);
    if (a->state_norms)
        vp_op_norm(ops, VP_ROLE_LINEAR_NORM, "dt_b_c_norms", small, VP_NORM_RMS);
    vp_op_linear(ops, VP_ROLE_LINEAR_HIGH, "dt_proj", inner, a->step_rank, true);
    scan(ops, a, vp_op_product(ops, inner, vp_op_sum(ops, a->key_dim, 1), 1));
    vp_op_linear_row(ops, VP_ROLE_LINEAR_OUT, "out_proj", hidden, inner, a->out_bias);
}

static void mamba2(struct vp_ops *ops, uint64_t hidden, const struct vp_attention *a) {
    uint64_t values = vp_op_product(ops, a->value_heads, a->value_dim, 1);

    /* gate, convolved x B C, and a step size per head */
    vp_op_linear(ops, VP_ROLE_LINEAR_IN, "in_proj",
                 vp_op_sum(ops, vp_op_sum(ops, values, a->conv_channels), a->value_heads), hidden,
                 a->qkv_bias);
    conv(ops, a);
    scan(ops, a, vp_op_product(ops, 3, a->value_heads, 1));
    if (!a->no_norm)
        vp_op_norm(ops, VP_ROLE_LINEAR_NORM, "norm", values, VP_NORM_RMS);
    vp_op_linear_row(ops, VP_ROLE_LINEAR_OUT, "out_proj", hidden, values, a->out_bias);
}

/* Two gates and a value of the model's width, a convolution over time, an output projection. */
static void short_conv(struct vp_ops *ops, uint64_t hidden, const struct vp_attention *a) {
    vp_op_linear(ops, VP_ROLE_LINEAR_IN, "in_proj", vp_op_product(ops, 3, a->conv_channels, 1),
                 hidden, a->qkv_bias);
    conv(ops, a);
    vp_op_linear_row(ops, VP_ROLE_LINEAR_OUT, "out_proj", hidden, a->conv_channels, a->out_bias);
}

static void lightning(struct vp_ops *ops, uint64_t hidden, const struct vp_attention *a) {
    uint64_t values = vp_op_product(ops, a->value_heads, a->value_dim, 1);

    vp_op_linear(ops, VP_ROLE_LINEAR_IN, "qkv_proj", vp_op_product(ops, 3, values, 1), hidden,
                 false);
    scan(ops, a, 0);
    vp_op_norm(ops, VP_ROLE_LINEAR_NORM, "norm", values, VP_NORM_RMS);
    vp_op_linear(ops, VP_ROLE_LINEAR_GATES, "output_gate", values, hidden, false);
    vp_op_linear_row(ops, VP_ROLE_LINEAR_OUT, "out_proj", hidden, values, false);
}

/* Only how many parameters there are is known. Most of them are matrices that read the layer's
 * input; the shape decides about scales of a quantised format, and about time. */
static void given(struct vp_ops *ops, uint64_t hidden, uint64_t parameters) {
    uint64_t rows = hidden > 0 ? parameters / hidden : 0, rest = parameters - rows * hidden;
    if (rows > 0)
        vp_op_linear(ops, VP_ROLE_LINEAR_OTHER, "linear_attn", rows, hidden, false);
    if (rest > 0)
        vp_op_linear(ops, VP_ROLE_LINEAR_OTHER, "linear_rest", rest, 1, false);
}

void vp_ops_recurrent(struct vp_ops *ops, uint64_t hidden, const struct vp_attention *a) {
    uint64_t keys = vp_op_product(ops, a->key_heads, a->key_dim, 1);
    uint64_t values = vp_op_product(ops, a->value_heads, a->value_dim, 1);

    switch (a->linear) {
    case VP_LINEAR_GIVEN:
        given(ops, hidden, a->parameters);
        scan(ops, a, 0);
        return;
    case VP_LINEAR_GATED_DELTA:
        vp_op_linear(
            ops, VP_ROLE_LINEAR_IN, "in_proj_qkvz",
            vp_op_sum(ops, vp_op_product(ops, 2, keys, 1), vp_op_product(ops, 2, values, 1)),
            hidden, false);
        vp_op_linear(ops, VP_ROLE_LINEAR_GATES, "in_proj_ba",
                     vp_op_product(ops, 2, a->value_heads, 1), hidden, false);
        conv(ops, a);
        scan(ops, a, vp_op_product(ops, 2, a->value_heads, 1));
        vp_op_norm(ops, VP_ROLE_LINEAR_NORM, "norm", a->value_dim, VP_NORM_RMS);
        vp_op_linear_row(ops, VP_ROLE_LINEAR_OUT, "out_proj", hidden, values, false);
        return;
    case VP_LINEAR_KDA:
        vp_op_linear(ops, VP_ROLE_LINEAR_IN, "qkv_proj",
                     vp_op_sum(ops, vp_op_product(ops, 2, keys, 1), values), hidden, false);
        vp_op_linear(ops, VP_ROLE_LINEAR_LOW, "f_a_g_a_proj",
                     vp_op_product(ops, 2, a->value_dim, 1), hidden, false);
        vp_op_linear(ops, VP_ROLE_LINEAR_HIGH, "f_b_g_b_proj", vp_op_product(ops, 2, values, 1),
                     a->value_dim, false);
        vp_op_linear(ops, VP_ROLE_LINEAR_GATES, "b_proj", a->value_heads, hidden, false);
        conv(ops, a);
        scan(ops, a, vp_op_sum(ops, a->value_heads, values));
        vp_op_norm(ops, VP_ROLE_LINEAR_NORM, "o_norm", a->value_dim, VP_NORM_RMS);
        vp_op_linear_row(ops, VP_ROLE_LINEAR_OUT, "o_proj", hidden, values, false);
        return;
    case VP_LINEAR_MAMBA2:
        mamba2(ops, hidden, a);
        return;
    case VP_LINEAR_MAMBA1:
        mamba1(ops, hidden, a);
        return;
    case VP_LINEAR_SHORT_CONV:
        short_conv(ops, hidden, a);
        return;
    case VP_LINEAR_LIGHTNING:
        lightning(ops, hidden, a);
        return;
    }
}
