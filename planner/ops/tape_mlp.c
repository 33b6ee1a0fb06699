/* What feed-forward halves keep: plain, gated, experts. */
#include "planner/ops/tape_parts.h"

struct mlp_roles {
    enum vp_role gate, up, down;
    enum vp_tape_group group;
};

/* GELU as one operator keeps its input; written out in Python (0.5 x (1 + tanh(c (x + k x^3)))) it
 * keeps four tensors, under autocast the power in fp32. */
static uint32_t gelu(struct vp_tape_maker *maker, uint32_t x) {
    vp_maker_step(maker);
    vp_tensor_read(maker, x);
    if (maker->how->gelu != VP_GELU_NEW) {
        if (vp_tensor_grad(maker, x))
            vp_tensor_keep(maker, x);
        return vp_tensor_like(maker, "activation", x);
    }
    uint32_t half = vp_tensor_like(maker, "half of the input", x);
    uint32_t base = maker->autocast ? vp_tensor_cast(maker, x, VP_DTYPE_FP32) : x;
    uint32_t cubed = vp_tensor_like(maker, "argument of tanh", base);
    vp_maker_step(maker);
    vp_tensor_read(maker, cubed);
    uint32_t tanh = vp_tensor_like(maker, "tanh", base);
    vp_maker_step(maker);
    vp_tensor_read(maker, tanh);
    uint32_t plus = vp_tensor_like(maker, "1 + tanh", base);
    if (vp_tensor_grad(maker, x)) {
        vp_tensor_keep(maker, base);
        vp_tensor_keep(maker, tanh);
    }
    return vp_tape_multiply(maker, half, plus, "activation");
}

static uint32_t silu(struct vp_tape_maker *maker, uint32_t x) {
    vp_maker_step(maker);
    vp_tensor_read(maker, x);
    if (vp_tensor_grad(maker, x))
        vp_tensor_keep(maker, x);
    return vp_tensor_like(maker, "activation", x);
}

/* act(gate) * up; one kernel keeps gate and up and works out the rest again. */
static uint32_t gated(struct vp_tape_maker *maker, uint32_t gate, uint32_t up) {
    if (!maker->how->fused_mlp)
        return vp_tape_multiply(maker, silu(maker, gate), up, "gated activation");
    uint32_t out = vp_tape_add(maker, gate, up, "gated activation");
    if (vp_tensor_grad(maker, out)) {
        vp_tensor_keep(maker, gate);
        vp_tensor_keep(maker, up);
    }
    return out;
}

/* rows: tokens that reach it (of all experts of a rank together). */
static uint32_t feed_forward(struct vp_tape_maker *maker, uint32_t x,
                             const struct mlp_roles *roles, uint64_t rows) {
    const struct vp_op *gate = vp_maker_find(maker, roles->gate);
    const struct vp_op *up = vp_maker_find(maker, roles->up);
    const struct vp_op *down = vp_maker_find(maker, roles->down);
    uint32_t in = vp_tape_matrix_input(maker, x), out;

    maker->group = roles->group;
    if (!down) /* a single matrix */
        return vp_tape_matrix(maker, x, in, up, "output", rows);
    if (gate) {
        uint32_t g = vp_tape_matrix(maker, x, in, gate, "gate", rows);
        if (!maker->joint_gate_up)
            in = vp_tape_matrix_input(maker, x);
        uint32_t u = vp_tape_matrix(maker, x, in, up, "up", rows);
        vp_region_enter(maker, VP_SELECT_MOE_ACTIVATION, g);
        vp_region_enter(maker, VP_SELECT_MOE_ACTIVATION, u);
        out = gated(maker, g, u);
    } else {
        out = vp_tape_matrix(maker, x, in, up, "up", rows);
        vp_region_enter(maker, VP_SELECT_MOE_ACTIVATION, out);
        out = gelu(maker, out);
    }
    vp_region_leave(maker, VP_SELECT_MOE_ACTIVATION);
    in = vp_tape_matrix_input(maker, out);
    return vp_tape_matrix(maker, out, in, down, "down", rows);
}

uint32_t vp_tape_mlp(struct vp_tape_maker *maker, uint32_t x) {
    static const struct mlp_roles roles = {VP_ROLE_GATE, VP_ROLE_UP, VP_ROLE_DOWN,
                                           VP_TAPE_ACTIVATION};
    enum vp_tape_group group = maker->group;

    vp_region_enter(maker, VP_SELECT_MLP, x);
    uint32_t out = feed_forward(maker, x, &roles, maker->tokens);
    vp_region_leave(maker, VP_SELECT_MLP);
    maker->group = group;
    return out;
}

uint32_t vp_tape_moe(struct vp_tape_maker *maker, uint32_t x) {
    (void)maker;
    return x;
}
