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

/* ReLU keeps its result, which the next matrix keeps anyway; squared, both. */
static uint32_t relu(struct vp_tape_maker *maker, uint32_t x, bool squared) {
    bool grad = vp_tensor_grad(maker, x);

    vp_maker_step(maker);
    vp_tensor_read(maker, x);
    uint32_t out = vp_tensor_like(maker, "activation", x);
    if (grad)
        vp_tensor_keep(maker, out);
    if (!squared)
        return out;
    vp_maker_step(maker);
    vp_tensor_read(maker, out);
    return vp_tensor_like(maker, "squared activation", out);
}

static uint32_t plain(struct vp_tape_maker *maker, uint32_t x) {
    enum vp_activation_kind activation = maker->scenario->model->activation;

    if (activation == VP_ACTIVATION_RELU || activation == VP_ACTIVATION_RELU2)
        return relu(maker, x, activation == VP_ACTIVATION_RELU2);
    return gelu(maker, x);
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
    const struct vp_train_rules *rules = &maker->scenario->engine.rules.train;

    if (!maker->how->fused_mlp) {
        uint32_t open = silu(maker, gate);
        for (uint64_t i = 0; i < rules->gated_extra && i < VP_TAPE_EXTRA; i++)
            vp_tensor_keep(maker, vp_tensor_like(maker, "activation", gate));
        return vp_tape_multiply(maker, open, up, "gated activation");
    }
    uint32_t out = vp_tape_add(maker, gate, up, "gated activation");
    if (vp_tensor_grad(maker, out)) {
        vp_tensor_keep(maker, gate);
        vp_tensor_keep(maker, up);
    }
    return out;
}

/* rows: tokens that reach it (of all experts of a rank together). */
static uint32_t feed_forward(struct vp_tape_maker *maker, uint32_t x, const struct mlp_roles *roles,
                             uint64_t rows) {
    const struct vp_op *gate = vp_maker_find(maker, roles->gate);
    const struct vp_op *up = vp_maker_find(maker, roles->up);
    const struct vp_op *down = vp_maker_find(maker, roles->down);
    bool routed = roles->group == VP_TAPE_EXPERTS; /* Megatron's moe_act is theirs alone */
    uint32_t in = vp_tape_matrix_input(maker, x), out;

    maker->group = roles->group;
    if (!down) /* a single matrix */
        return vp_tape_matrix(maker, x, in, up, "output", rows);
    if (gate) {
        uint32_t g = vp_tape_matrix(maker, x, in, gate, "gate", rows);
        if (!maker->joint_gate_up)
            in = vp_tape_matrix_input(maker, x);
        uint32_t u = vp_tape_matrix(maker, x, in, up, "up", rows);
        if (routed) {
            vp_region_enter(maker, VP_SELECT_MOE_ACTIVATION, g);
            vp_region_enter(maker, VP_SELECT_MOE_ACTIVATION, u);
        }
        out = gated(maker, g, u);
    } else {
        out = vp_tape_matrix(maker, x, in, up, "up", rows);
        if (routed)
            vp_region_enter(maker, VP_SELECT_MOE_ACTIVATION, out);
        out = plain(maker, out);
    }
    if (routed)
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

/* ---- experts ---- */

/* Rows that a rank's experts work on: top_k of each token when the router deals evenly, times the
 * capacity factor or the imbalance that the scenario assumes. Where fewer ranks than the tensor-
 * parallel ones divide an expert, the others' tokens go elsewhere. */
static uint64_t routed_rows(struct vp_tape_maker *maker) {
    const uint64_t billion = 1000000000;
    uint64_t factor = maker->how->expert_load_ppb;
    struct vp_sum rows = vp_sum_mul(vp_sum(maker->tokens), maker->block->moe.top_k);

    rows = vp_sum_mul(rows, maker->layout.expert_width);
    maker->out->overflow |= rows.overflow;
    rows.v = vp_ceil_div(rows.v, maker->layout.tensor);
    if (factor == 0 || rows.overflow)
        return rows.v;
    unsigned __int128 wide = (unsigned __int128)rows.v * factor + (billion - 1);
    maker->out->overflow |= wide / billion > UINT64_MAX;
    return (uint64_t)(wide / billion);
}

/* The router's product in fp32: converted copies of its input and of its matrix are kept. */
static uint32_t fp32_logits(struct vp_tape_maker *maker, uint32_t x, const struct vp_op *router) {
    struct vp_op_share share = vp_maker_share(maker, router);
    uint32_t wide = vp_tensor_cast(maker, x, VP_DTYPE_FP32);
    bool trained = vp_maker_trains(maker, router->role), grad = vp_tensor_grad(maker, x);

    vp_maker_step(maker);
    vp_tensor_read(maker, wide);
    if (trained)
        vp_tensor_keep(maker, wide);
    if (grad && maker->residual != VP_DTYPE_FP32)
        vp_tensor_keep_new(maker, "router weights", share.out, share.in, VP_DTYPE_FP32);
    return vp_tensor_rows(maker, "router logits", maker->tokens, share.out, VP_DTYPE_FP32,
                          trained || grad);
}

/* Scores over the experts in fp32, the chosen ones and their weights: what softmax (or sigmoid),
 * top-k and the normalisation keep. Returns the weights, one per routed row. */
static uint32_t route(struct vp_tape_maker *maker, uint32_t x, uint64_t rows) {
    const struct vp_op *router = vp_maker_find(maker, VP_ROLE_ROUTER);
    uint64_t top_k = maker->block->moe.top_k;

    maker->group = VP_TAPE_ROUTER;
    bool fp32 = maker->scenario->engine.rules.train.router_fp32 && !maker->autocast;
    uint32_t logits = fp32 ? fp32_logits(maker, x, router)
                           : vp_tape_matrix(maker, x, vp_tape_matrix_input(maker, x), router,
                                            "router logits", maker->tokens);
    bool grad = vp_tensor_grad(maker, logits);
    vp_maker_step(maker);
    vp_tensor_read(maker, logits);
    logits = vp_tensor_cast(maker, logits, VP_DTYPE_FP32);
    uint32_t scores = vp_tensor_like(maker, "router scores", logits);
    uint32_t chosen =
        vp_tensor_rows(maker, "expert weights", maker->tokens, top_k, VP_DTYPE_FP32, grad);
    uint32_t weights = vp_tensor_rows(maker, "weights of routed tokens", rows, 1,
                                      fp32 ? VP_DTYPE_FP32 : maker->tensor[x].dtype, grad);
    if (grad) {
        vp_tensor_keep(maker, scores);
        vp_tensor_keep(maker, chosen);
        vp_tensor_keep_new(maker, "chosen experts", maker->tokens, top_k, VP_DTYPE_INT64);
        vp_tensor_keep_new(maker, "sums of weights", maker->tokens, 1, VP_DTYPE_FP32);
    }
    return weights;
}

static uint32_t shared_experts(struct vp_tape_maker *maker, uint32_t x) {
    static const struct mlp_roles roles = {VP_ROLE_SHARED_GATE, VP_ROLE_SHARED_UP,
                                           VP_ROLE_SHARED_DOWN, VP_TAPE_SHARED};
    const struct vp_op *gate = vp_maker_find(maker, VP_ROLE_SHARED_SWITCH);

    vp_region_enter(maker, VP_SELECT_SHARED_EXPERTS, x);
    uint32_t out = feed_forward(maker, x, &roles, maker->tokens);
    if (gate) {
        uint32_t open = vp_tape_matrix(maker, x, vp_tape_matrix_input(maker, x), gate,
                                       "shared expert gate", maker->tokens);
        vp_maker_step(maker);
        vp_tensor_read(maker, open);
        open = vp_tensor_like(maker, "shared expert gate", open);
        if (vp_tensor_grad(maker, open))
            vp_tensor_keep(maker, open);
        out = vp_tape_multiply(maker, open, out, "shared expert output");
    }
    vp_region_leave(maker, VP_SELECT_SHARED_EXPERTS);
    return out;
}

/* Tokens are copied in the order of their experts, go through them, are weighted and added up. */
static uint32_t routed_experts(struct vp_tape_maker *maker, uint32_t x, uint32_t weights,
                               uint64_t rows) {
    static const struct mlp_roles roles = {VP_ROLE_EXPERT_GATE, VP_ROLE_EXPERT_UP,
                                           VP_ROLE_EXPERT_DOWN, VP_TAPE_EXPERTS};
    uint64_t width =
        maker->block->moe.input > 0 ? maker->block->moe.input : maker->scenario->model->hidden;
    const struct vp_train_rules *rules = &maker->scenario->engine.rules.train;
    enum vp_dtype dtype = maker->tensor[x].dtype;

    maker->group = VP_TAPE_EXPERTS;
    vp_maker_step(maker);
    vp_tensor_read(maker, x);
    if (vp_tensor_grad(maker, x) || vp_tensor_grad(maker, weights)) {
        vp_tensor_keep_new(maker, "places of routed tokens", rows, 2, VP_DTYPE_INT64);
    }
    uint64_t held = vp_min(rules->dispatch_held, vp_max(maker->scenario->parallel.expert, 1));
    uint32_t waiting = maker->count;
    for (uint64_t i = 0; i < held; i++)
        vp_tensor_rows(maker, "dispatched tokens", rows, width, dtype, false);
    uint32_t routed =
        vp_tensor_rows(maker, "routed tokens", rows, width, dtype, vp_tensor_grad(maker, x));
    uint32_t out = feed_forward(maker, routed, &roles, rows);
    if (rules->expert_weights_early && vp_tensor_grad(maker, weights))
        vp_tensor_keep(maker, weights);
    else
        out = vp_tape_multiply(maker, out, weights, "weighted expert output");
    if (rules->expert_sum_kept && vp_tensor_grad(maker, out))
        vp_tensor_keep(maker, out);
    for (uint64_t i = 0; i < held; i++) { /* in the order of their ranks again, and back there */
        vp_maker_step(maker);
        vp_tensor_read(maker, out);
        out = vp_tensor_like(maker, "returning tokens", out);
    }
    vp_maker_step(maker);
    for (uint64_t i = 0; i < held; i++) {
        vp_tensor_read(maker, waiting + (uint32_t)i);
        vp_tensor_read(maker, out - (uint32_t)i);
    }
    vp_tensor_read(maker, out);
    return vp_tensor_rows(maker, "expert output", maker->outside, width, dtype,
                          vp_tensor_grad(maker, out));
}

uint32_t vp_tape_moe(struct vp_tape_maker *maker, uint32_t x) {
    enum vp_tape_group group = maker->group;
    uint64_t rows = routed_rows(maker);
    bool latent = maker->block->moe.input > 0;

    vp_region_enter(maker, VP_SELECT_MOE, x);
    uint32_t weights = route(maker, x, rows), in = x;
    if (latent)
        in = vp_tape_matrix_of(maker, x, VP_ROLE_LATENT_DOWN, "expert input");
    uint32_t out = routed_experts(maker, in, weights, rows);
    if (latent)
        out = vp_tape_matrix_of(maker, out, VP_ROLE_LATENT_UP, "expert output");
    if (maker->block->moe.shared_intermediate > 0)
        out = vp_tape_add(maker, out, shared_experts(maker, x), "expert output");
    vp_region_leave(maker, VP_SELECT_MOE);
    maker->group = group;
    return out;
}
