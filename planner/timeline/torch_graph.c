/* Blocks of a model as operations with what they read and write. */
#include "planner/timeline/torch_parts.h"

#include <string.h>

struct builder {
    struct vp_torch_graph *g;
    const struct vp_model *model;
    const struct vp_train *train;
    const struct vp_train_rules *rules;
    const struct vp_block *block;
    const struct vp_layout *layout;
    uint32_t regions; /* that nodes are added to */
    struct vp_ops ops;
};

/* ---- nodes ---- */

static uint8_t new_value(struct builder *b, uint64_t width) {
    struct vp_torch_graph *g = b->g;
    if (g->values >= VP_TORCH_VALUES || g->nodes >= VP_TORCH_NODES) {
        g->overflow = true;
        return 0;
    }
    g->width[g->values] = width;
    return (uint8_t)g->values++;
}

static struct vp_torch_node *add(struct builder *b, enum vp_torch_kind kind, uint8_t in,
                                 uint64_t width) {
    static struct vp_torch_node full; /* where a block has too many operations */
    uint8_t out = new_value(b, width);
    if (b->g->overflow)
        return &full;
    struct vp_torch_node *node = &b->g->node[b->g->nodes++];
    *node = (struct vp_torch_node){.kind = kind,
                                   .in = {in},
                                   .ins = 1,
                                   .out = out,
                                   .in_width = b->g->width[in],
                                   .out_width = width,
                                   .groups = 1,
                                   .matrices = 1,
                                   .regions = b->regions};
    return node;
}

static void also_reads(struct vp_torch_node *node, uint8_t value) {
    if (node->ins < 3)
        node->in[node->ins++] = value;
}

static const struct vp_op *find(const struct builder *b, enum vp_role role) {
    for (uint32_t i = 0; i < b->ops.count; i++) {
        const struct vp_op *op = &b->ops.item[i];
        if (op->role == role && (op->kind == VP_OP_LINEAR || op->kind == VP_OP_EXPERTS))
            return op;
    }
    return NULL;
}

static uint8_t linear_op(struct builder *b, const struct vp_op *op, uint8_t in) {
    struct vp_op_share share = vp_ops_share(op, b->block, b->layout);
    struct vp_torch_node *node = add(b, VP_TORCH_LINEAR, in, share.out * share.matrices);
    node->role = op->role;
    node->in_width = share.in * share.matrices;
    node->matrices = vp_max(share.matrices, 1);
    return node->out;
}

/* The matrix of this role; `in` itself where the block has none. */
static uint8_t linear(struct builder *b, enum vp_role role, uint8_t in) {
    const struct vp_op *op = find(b, role);
    return op ? linear_op(b, op, in) : in;
}

static uint8_t norm(struct builder *b, uint8_t in, uint64_t groups, enum vp_norm_kind kind) {
    struct vp_torch_node *node = add(b, VP_TORCH_NORM, in, b->g->width[in]);
    node->groups = vp_max(groups, 1);
    node->regions |= VP_SELECT_NORM;
    node->layer_norm = kind != VP_NORM_RMS || b->rules->norm_is_layer;
    return node->out;
}

static uint8_t copy(struct builder *b, enum vp_torch_kind kind, uint8_t in, uint64_t width) {
    return add(b, kind, in, width)->out;
}

static uint8_t join(struct builder *b, enum vp_torch_kind kind, uint8_t x, uint8_t y) {
    struct vp_torch_node *node = add(b, kind, x, b->g->width[x]);
    also_reads(node, y);
    return node->out;
}

/* Several matrices that the model's code has as one; each result is a part of its output. */
static void joint(struct builder *b, const enum vp_role *roles, uint32_t count, uint8_t in,
                  uint8_t *out) {
    uint64_t width[3], all = 0, first = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct vp_op *op = find(b, roles[i]);
        struct vp_op_share share = {1, 0, 0, 0};
        if (op)
            share = vp_ops_share(op, b->block, b->layout);
        width[i] = share.out;
        all += share.out;
        first = i == 0 ? share.in : first;
    }
    struct vp_torch_node *node = add(b, VP_TORCH_LINEAR, in, all);
    uint8_t whole = node->out;
    node->role = roles[0];
    node->in_width = first;
    for (uint32_t i = 0; i < count; i++)
        out[i] = copy(b, VP_TORCH_VIEW, whole, width[i]);
}

static uint8_t dropped(struct builder *b, uint8_t in) {
    return b->train->ops.dropout_ppb > 0 && b->rules->residual_dropout
               ? copy(b, VP_TORCH_DROPOUT, in, b->g->width[in])
               : in;
}

/* ---- mixers ---- */

static uint8_t core(struct builder *b, uint8_t q, uint8_t k, uint8_t v, uint64_t width) {
    struct vp_torch_node *node = add(b, VP_TORCH_ATTENTION, q, width);
    node->regions |= VP_SELECT_CORE_ATTENTION;
    also_reads(node, k);
    also_reads(node, v);
    return node->out;
}

static uint64_t heads_of(const struct builder *b, uint64_t heads) {
    return vp_ceil_div(heads, b->layout->attention);
}

static uint8_t grouped_query(struct builder *b, uint8_t n, const struct vp_attention *a) {
    uint64_t heads = heads_of(b, a->heads);
    uint64_t kv = vp_ceil_div(a->kv_heads, vp_min(b->layout->attention, vp_max(a->kv_heads, 1)));
    uint64_t width = heads * a->head_dim;
    uint8_t q, k, v;
    if (b->rules->joint_qkv && !a->key_is_value && find(b, VP_ROLE_K)) {
        static const enum vp_role ROLES[] = {VP_ROLE_Q, VP_ROLE_K, VP_ROLE_V};
        uint8_t parts[3];
        joint(b, ROLES, 3, n, parts);
        q = parts[0];
        k = parts[1];
        v = parts[2];
    } else {
        q = linear(b, VP_ROLE_Q, n);
        k = linear(b, VP_ROLE_K, n);
        v = a->key_is_value ? k : linear(b, VP_ROLE_V, n);
    }
    uint8_t gate = q;

    if (a->output_gate) /* the query projection carries the gate */
        q = copy(b, VP_TORCH_COPY, q, width);
    if (a->qk_norm != VP_QK_NORM_NONE) {
        bool each = a->qk_norm == VP_QK_NORM_HEAD;
        q = norm(b, q, each ? heads : 1, VP_NORM_RMS);
        k = norm(b, k, each ? kv : 1, VP_NORM_RMS);
    }
    if (a->rotary_dim > 0) {
        q = copy(b, VP_TORCH_ROTARY, q, width);
        k = copy(b, VP_TORCH_ROTARY, k, b->g->width[k]);
    }
    if (b->train->ops.repeat_kv && kv > 1 && kv < heads) { /* of one head they are views */
        b->regions |= VP_SELECT_CORE_ATTENTION;
        k = copy(b, VP_TORCH_COPY, k, width);
        v = copy(b, VP_TORCH_COPY, v, heads * a->v_head_dim);
        b->regions &= ~(uint32_t)VP_SELECT_CORE_ATTENTION;
    }
    uint8_t o = core(b, q, k, v, heads * a->v_head_dim);
    if (a->output_gate)
        o = join(b, VP_TORCH_MULTIPLY, o, gate);
    return linear(b, VP_ROLE_O, o);
}

/* Latents, their norms, what they expand into; keys are put together head by head. */
static uint8_t latent(struct builder *b, uint8_t n, const struct vp_attention *a) {
    uint64_t heads = heads_of(b, a->heads);
    uint64_t key = a->qk_nope_head_dim + a->qk_rope_head_dim;
    uint8_t q;

    if (a->q_lora_rank > 0) {
        uint8_t low = norm(b, linear(b, VP_ROLE_Q_A, n), 1, VP_NORM_RMS);
        q = linear(b, VP_ROLE_Q_B, low);
    } else {
        q = linear(b, VP_ROLE_Q, n);
    }
    uint8_t low = linear(b, VP_ROLE_KV_A, n);
    uint8_t kv = linear(b, VP_ROLE_KV_B, norm(b, low, 1, VP_NORM_RMS));
    q = copy(b, VP_TORCH_ROTARY, q, heads * key);
    uint8_t k = copy(b, VP_TORCH_ROTARY, kv, heads * key);
    uint8_t v = copy(b, VP_TORCH_VIEW, kv, heads * a->v_head_dim); /* keeps all of kv */
    return linear(b, VP_ROLE_O, core(b, q, k, v, heads * a->v_head_dim));
}

/* Recurrent and other mixers: matrices of the model's width read the norm, all else follows one
 * another. */
static uint8_t chain(struct builder *b, uint8_t n, uint32_t first, uint32_t end) {
    uint8_t now = n;
    for (uint32_t i = first; i < end; i++) {
        const struct vp_op *op = &b->ops.item[i];
        struct vp_op_share share = vp_ops_share(op, b->block, b->layout);
        uint64_t width = vp_ceil_div(op->out, b->layout->attention);
        switch (op->kind) {
        case VP_OP_LINEAR:
            if (op->in == 1) /* given as a number of parameters */
                break;
            now = linear_op(b, op, op->in == b->model->hidden ? n : now);
            break;
        case VP_OP_NORM:
            now = norm(b, now, vp_max(b->g->width[now] / vp_max(share.in, 1), 1), VP_NORM_RMS);
            break;
        case VP_OP_SCAN: /* one kernel with the convolution before it */
            now = copy(b, VP_TORCH_SCAN, now, width);
            break;
        case VP_OP_ATTENTION:
            now = core(b, now, now, now, width);
            break;
        case VP_OP_CONV:
        case VP_OP_ROTARY:
        case VP_OP_EMBEDDING:
        case VP_OP_ACTIVATION:
        case VP_OP_ROUTE:
        case VP_OP_EXPERTS:
        case VP_OP_ADD:
            break;
        }
    }
    return now;
}

/* The mixer's operators end at the first residual after them. */
static uint8_t mixer(struct builder *b, uint8_t n, const struct vp_attention *a, uint32_t skip) {
    uint32_t first = 0;
    if (a->kind == VP_ATTENTION_GQA && a->source_tokens == 0)
        return grouped_query(b, n, a);
    if (a->kind == VP_ATTENTION_MLA)
        return latent(b, n, a);
    while (first < b->ops.count && b->ops.item[first].role == VP_ROLE_NORM &&
           b->ops.item[first].kind == VP_OP_NORM)
        first++;
    for (uint32_t i = first; skip > 0 && i < b->ops.count; i++)
        if (b->ops.item[i].kind == VP_OP_ADD) {
            first = i + 1;
            skip--;
        }
    uint32_t end = first;
    while (end < b->ops.count && b->ops.item[end].kind != VP_OP_ADD)
        end++;
    return chain(b, n, first, end);
}

/* ---- feed-forward ---- */

static uint8_t feed_forward(struct builder *b, uint8_t n, enum vp_mlp_kind kind, enum vp_role gate,
                            enum vp_role up, enum vp_role down) {
    if (kind == VP_MLP_LINEAR)
        return linear(b, up, n);
    if (kind == VP_MLP_PLAIN) {
        uint8_t u = linear(b, up, n);
        return linear(b, down, copy(b, VP_TORCH_ACTIVATION, u, b->g->width[u]));
    }
    if (b->rules->joint_gate_up && gate == VP_ROLE_GATE) {
        const enum vp_role roles[] = {gate, up};
        uint8_t parts[2];
        joint(b, roles, 2, n, parts);
        if (b->train->ops.fused_mlp || b->train->compile)
            return linear(b, down, join(b, VP_TORCH_GATED, parts[0], parts[1]));
        uint8_t on = copy(b, VP_TORCH_ACTIVATION, parts[0], b->g->width[parts[0]]);
        return linear(b, down, join(b, VP_TORCH_PRODUCT, on, parts[1]));
    }
    uint8_t g = linear(b, gate, n);
    if (b->train->ops.fused_mlp || b->train->compile)
        return linear(b, down, join(b, VP_TORCH_GATED, g, linear(b, up, n)));
    uint8_t act = copy(b, VP_TORCH_ACTIVATION, g, b->g->width[g]);
    return linear(b, down, join(b, VP_TORCH_PRODUCT, act, linear(b, up, n)));
}

static uint8_t experts(struct builder *b, uint8_t n) {
    const struct vp_moe *moe = &b->block->moe;
    b->regions |= VP_SELECT_MOE;
    const struct vp_op *op = find(b, VP_ROLE_EXPERT_UP);
    struct vp_op_share share = {1, 0, 0, 0};
    if (op)
        share = vp_ops_share(op, b->block, b->layout);
    struct vp_torch_node *node = add(b, VP_TORCH_EXPERTS, n, b->model->hidden);
    uint8_t out = node->out;
    node->moe = moe;
    node->matrices = share.matrices;
    node->expert_width = share.out;
    node->role = VP_ROLE_EXPERT_UP;
    if (moe->shared_intermediate > 0) {
        b->regions |= VP_SELECT_SHARED_EXPERTS;
        uint8_t shared = feed_forward(b, n, moe->kind, VP_ROLE_SHARED_GATE, VP_ROLE_SHARED_UP,
                                      VP_ROLE_SHARED_DOWN);
        b->regions &= ~(uint32_t)VP_SELECT_SHARED_EXPERTS;
        out = join(b, VP_TORCH_ADD, shared, out);
    }
    b->regions &= ~(uint32_t)VP_SELECT_MOE;
    return out;
}

/* ---- the whole ---- */

static void find_last_uses(struct vp_torch_graph *g) {
    for (uint32_t i = 0; i < g->nodes; i++)
        for (uint32_t k = 0; k < g->node[i].ins; k++)
            g->last_use[g->node[i].in[k]] = (uint8_t)i;
}

/* The second half of a block behind its mixers; in: the layer's input. */
static uint8_t second_half(struct builder *b, uint8_t in, uint8_t x, uint8_t n) {
    const struct vp_block *block = b->block;
    uint32_t norms = block->norms;
    if (norms >= 2 || (norms == 1 && block->attention.kind == VP_ATTENTION_NONE))
        n = norm(b, b->rules->parallel_halves ? in : x, 1, block->norm);
    else if (norms == 0)
        n = x;
    uint8_t y;
    if (block->mlp.kind == VP_MLP_NONE) {
        y = experts(b, n);
    } else {
        b->regions |= VP_SELECT_MLP;
        y = feed_forward(b, n, block->mlp.kind, VP_ROLE_GATE, VP_ROLE_UP, VP_ROLE_DOWN);
        b->regions &= ~(uint32_t)VP_SELECT_MLP;
    }
    if (block->mlp.kind != VP_MLP_NONE && block->moe.kind != VP_MLP_NONE)
        y = join(b, VP_TORCH_ADD, y, experts(b, n));
    y = dropped(b, y);
    if (norms >= 3)
        y = norm(b, y, 1, block->norm);
    return join(b, VP_TORCH_ADD, x, y);
}

/* Norms stand before each half; four of them also behind, one serves both halves. */
void vp_torch_graph_make(struct vp_torch_graph *out, const struct vp_scenario *scenario,
                         const struct vp_block *block, const struct vp_layout *layout) {
    struct builder b = {.g = out,
                        .model = scenario->model,
                        .train = &scenario->train,
                        .rules = &scenario->engine.rules.train,
                        .block = block,
                        .layout = layout};
    uint32_t norms = block->norms;
    bool feeds = block->mlp.kind != VP_MLP_NONE || block->moe.kind != VP_MLP_NONE;

    memset(out, 0, sizeof *out);
    out->block = block;
    vp_ops_block(&b.ops, scenario->model, block);
    uint8_t x = new_value(&b, scenario->model->hidden), n = x;
    const uint8_t in = x;
    if (block->attention.kind != VP_ATTENTION_NONE) {
        if (norms > 0)
            n = norm(&b, x, 1, block->norm);
        uint8_t y = dropped(&b, mixer(&b, n, &block->attention, 0));
        if (norms >= 4)
            y = norm(&b, y, 1, block->norm);
        x = join(&b, VP_TORCH_ADD, x, y);
    }
    if (block->second.kind != VP_ATTENTION_NONE) {
        n = norm(&b, x, 1, block->norm);
        x = join(&b, VP_TORCH_ADD, x, dropped(&b, mixer(&b, n, &block->second, 1)));
    }
    if (feeds)
        x = second_half(&b, in, x, n);
    out->out = x;
    out->overflow |= b.ops.overflow;
    find_last_uses(out);
}
