#include "planner/ops/ops_parts.h"

#include <string.h>

struct vp_op *vp_op_add(struct vp_ops *ops, enum vp_op_kind kind, enum vp_role role,
                        const char *name) {
    struct vp_op *op = &ops->item[ops->count++];
    memset(op, 0, sizeof *op);
    op->kind = kind;
    op->role = role;
    op->name = name;
    op->shard = vp_role_shard(role);
    return op;
}

uint64_t vp_op_product(struct vp_ops *ops, uint64_t a, uint64_t b, uint64_t c) {
    struct vp_sum s = vp_sum_mul(vp_sum_mul(vp_sum(a), b), c);
    ops->overflow |= s.overflow;
    return s.overflow ? 0 : s.v;
}

uint64_t vp_op_sum(struct vp_ops *ops, uint64_t a, uint64_t b) {
    struct vp_sum s = vp_sum_add(vp_sum(a), b);
    ops->overflow |= s.overflow;
    return s.overflow ? 0 : s.v;
}

struct vp_op *vp_op_linear(struct vp_ops *ops, enum vp_role role, const char *name, uint64_t out,
                           uint64_t in, bool bias) {
    struct vp_op *op = vp_op_add(ops, VP_OP_LINEAR, role, name);
    op->matrices = op->active = 1;
    op->out = out;
    op->in = in;
    op->vector = bias ? out : 0;
    op->flops = vp_op_product(ops, 2, out, in);
    op->reads = in;
    op->writes = out;
    return op;
}

struct vp_op *vp_op_linear_row(struct vp_ops *ops, enum vp_role role, const char *name,
                               uint64_t out, uint64_t in, bool bias) {
    struct vp_op *op = vp_op_linear(ops, role, name, out, in, bias);
    op->all_reduce = true;
    return op;
}

void vp_op_norm(struct vp_ops *ops, enum vp_role role, const char *name, uint64_t width,
                enum vp_norm_kind kind) {
    struct vp_op *op = vp_op_add(ops, VP_OP_NORM, role, name);
    op->vector = kind == VP_NORM_LAYER ? vp_op_product(ops, 2, width, 1)
                 : kind == VP_NORM_RMS ? width
                                       : 0;
    op->norm = kind;
    op->out = op->in = width;
    op->flops = vp_op_product(ops, 4, width, 1);
    op->reads = op->writes = width;
}

static void residual(struct vp_ops *ops, uint64_t hidden) {
    struct vp_op *op = vp_op_add(ops, VP_OP_ADD, VP_ROLE_NORM, "add");
    op->out = op->in = hidden;
    op->flops = hidden;
    op->reads = vp_op_product(ops, 2, hidden, 1);
    op->writes = hidden;
}

/* Hyper-connections: `streams` residuals are mixed into one input and the output into all of them,
 * with weights that a small matrix reads off the streams; all of it in fp32. */
static void hyper(struct vp_ops *ops, uint64_t streams, uint64_t hidden, uint64_t rows,
                  uint64_t scales) {
    uint64_t wide = vp_op_product(ops, streams, hidden, 1);
    struct vp_op *op = vp_op_add(ops, VP_OP_NORM, VP_ROLE_HYPER, "hyper_connection");

    op->vector = vp_op_sum(ops, vp_op_product(ops, rows, vp_op_sum(ops, wide, 1), 1), scales);
    op->in = op->reads = wide;
    op->out = op->writes = hidden;
    op->flops = vp_op_product(ops, 2, vp_op_sum(ops, rows, streams), wide);
}

struct mlp_roles {
    enum vp_role gate, up, down;
    const char *gate_name, *up_name, *down_name;
};

/* A feed-forward of `matrices` experts, `active` of which work for one token. */
static void feed_forward(struct vp_ops *ops, const struct mlp_roles *roles, enum vp_mlp_kind kind,
                         uint64_t matrices, uint64_t active, uint64_t hidden, uint64_t width,
                         bool bias) {
    enum vp_op_kind op_kind = matrices > 1 ? VP_OP_EXPERTS : VP_OP_LINEAR;
    struct vp_op *op;

    if (kind == VP_MLP_NONE)
        return;
    if (kind == VP_MLP_LINEAR) {
        op = vp_op_linear(ops, roles->up, roles->up_name, width > 0 ? width : hidden, hidden, bias);
        op->kind = op_kind;
        op->matrices = matrices;
        op->active = active;
        op->vector = vp_op_product(ops, op->vector, matrices, 1);
        op->flops = vp_op_product(ops, op->flops, active, 1);
        op->reads = vp_op_product(ops, op->reads, active, 1);
        op->writes = vp_op_product(ops, op->writes, active, 1);
        return;
    }
    for (int i = kind == VP_MLP_GATED ? 0 : 1; i < 3; i++) {
        if (i == 2) {
            op = vp_op_add(ops, VP_OP_ACTIVATION, VP_ROLE_NORM, "activation");
            op->in = vp_op_product(ops, width, active, kind == VP_MLP_GATED ? 2 : 1);
            op->out = vp_op_product(ops, width, active, 1);
            op->flops = vp_op_product(ops, 5, op->out, 1);
            op->reads = op->in;
            op->writes = op->out;
        }
        op = vp_op_add(ops, op_kind,
                       i == 0   ? roles->gate
                       : i == 1 ? roles->up
                                : roles->down,
                       i == 0   ? roles->gate_name
                       : i == 1 ? roles->up_name
                                : roles->down_name);
        op->matrices = matrices;
        op->active = active;
        op->out = i == 2 ? hidden : width;
        op->in = i == 2 ? width : hidden;
        op->vector = bias ? vp_op_product(ops, matrices, op->out, 1) : 0;
        op->flops = vp_op_product(ops, 2 * active, op->out, op->in);
        op->reads = vp_op_product(ops, active, op->in, 1);
        op->writes = vp_op_product(ops, active, op->out, 1);
        op->all_reduce = i == 2;
    }
}

static void experts(struct vp_ops *ops, uint64_t hidden, const struct vp_moe *moe) {
    static const struct mlp_roles routed = {VP_ROLE_EXPERT_GATE, VP_ROLE_EXPERT_UP,
                                            VP_ROLE_EXPERT_DOWN, "experts.gate_proj",
                                            "experts.up_proj",   "experts.down_proj"};
    static const struct mlp_roles shared = {VP_ROLE_SHARED_GATE,     VP_ROLE_SHARED_UP,
                                            VP_ROLE_SHARED_DOWN,     "shared_expert.gate_proj",
                                            "shared_expert.up_proj", "shared_expert.down_proj"};

    uint64_t choices = vp_op_sum(ops, moe->experts, moe->zero_experts);

    vp_op_linear(ops, VP_ROLE_ROUTER, "router", choices, hidden, moe->router_bias);
    struct vp_op *op = vp_op_add(ops, VP_OP_ROUTE, VP_ROLE_ROUTER_BIAS, "top_k");
    op->vector = moe->score_bias ? choices : 0;
    op->in = op->reads = choices;
    op->out = op->writes = moe->top_k;
    if (moe->input > 0)
        vp_op_linear(ops, VP_ROLE_LATENT_DOWN, "latent_down", moe->input, hidden, false);
    feed_forward(ops, &routed, moe->kind, moe->experts, moe->top_k,
                 moe->input > 0 ? moe->input : hidden, moe->intermediate, moe->bias);
    if (moe->input > 0)
        vp_op_linear(ops, VP_ROLE_LATENT_UP, "latent_up", hidden, moe->input, false);
    if (moe->shared_intermediate > 0) {
        feed_forward(ops, &shared, moe->kind, 1, 1, hidden, moe->shared_intermediate, false);
        if (moe->shared_switch)
            vp_op_linear(ops, VP_ROLE_SHARED_SWITCH, "shared_expert_gate", 1, hidden, false);
    }
}

static void mixer(struct vp_ops *ops, uint64_t hidden, const struct vp_attention *a) {
    switch (a->kind) {
    case VP_ATTENTION_NONE:
        break;
    case VP_ATTENTION_GQA:
        vp_ops_gqa(ops, hidden, a);
        break;
    case VP_ATTENTION_MLA:
        vp_ops_mla(ops, hidden, a);
        break;
    case VP_ATTENTION_LINEAR:
        vp_ops_recurrent(ops, hidden, a);
        break;
    case VP_ATTENTION_COMPRESSED:
        vp_ops_compressed(ops, hidden, a);
        break;
    }
}

/* One half of a block joins the residual stream. */
static void join(struct vp_ops *ops, const struct vp_model *model) {
    if (model->hidden == 0)
        return;
    if (model->hyper > 0)
        hyper(ops, model->hyper, model->hidden,
              vp_op_product(ops, vp_op_sum(ops, model->hyper, 2), model->hyper, 1), 3);
    residual(ops, model->hidden);
}

void vp_ops_block(struct vp_ops *out, const struct vp_model *model, const struct vp_block *block) {
    static const struct mlp_roles dense = {VP_ROLE_GATE, VP_ROLE_UP, VP_ROLE_DOWN,
                                           "gate_proj",  "up_proj",  "down_proj"};
    static const char *const norm_names[] = {"input_norm", "post_attention_norm", "pre_mlp_norm",
                                             "post_mlp_norm"};
    uint64_t hidden = model->hidden;

    out->count = 0;
    out->overflow = false;
    for (uint32_t i = 0; i < block->norms && i < 8; i++)
        vp_op_norm(out, VP_ROLE_NORM, norm_names[i < 4 ? i : 3], hidden, block->norm);
    mixer(out, hidden, &block->attention);
    if (block->attention.kind != VP_ATTENTION_NONE)
        join(out, model);
    mixer(out, hidden, &block->second);
    if (block->second.kind != VP_ATTENTION_NONE)
        join(out, model);
    if (block->mlp.kind != VP_MLP_NONE)
        feed_forward(out, &dense, block->mlp.kind, 1, 1, hidden, block->mlp.intermediate,
                     block->mlp.bias);
    if (block->moe.kind != VP_MLP_NONE)
        experts(out, hidden, &block->moe);
    if (block->mlp.kind != VP_MLP_NONE || block->moe.kind != VP_MLP_NONE)
        join(out, model);
}

void vp_ops_first(struct vp_ops *out, const struct vp_model *model) {
    out->count = 0;
    out->overflow = false;
    if (model->embedding) {
        struct vp_op *op = vp_op_add(out, VP_OP_EMBEDDING, VP_ROLE_EMBEDDING, "embedding");
        op->matrices = 1;
        op->active = 1;
        op->out = model->vocab;
        op->in = model->hidden;
        op->reads = 1;
        op->writes = model->hidden;
    }
    if (model->learned_positions > 0) {
        struct vp_op *op = vp_op_add(out, VP_OP_EMBEDDING, VP_ROLE_POSITION, "positions");
        op->vector = vp_op_product(out, model->learned_positions, model->hidden, 1);
        op->writes = model->hidden;
    }
    if (model->token_types > 0) {
        struct vp_op *op = vp_op_add(out, VP_OP_EMBEDDING, VP_ROLE_POSITION, "token_types");
        op->vector = vp_op_product(out, model->token_types, model->hidden, 1);
        op->writes = model->hidden;
    }
    if (model->embedding_norm)
        vp_op_norm(out, VP_ROLE_NORM, "embedding_norm", model->hidden, model->final_norm_kind);
}

void vp_ops_last(struct vp_ops *out, const struct vp_model *model) {
    out->count = 0;
    out->overflow = false;
    if (model->hyper > 0)
        hyper(out, model->hyper, model->hidden, model->hyper, 1);
    if (model->final_norm)
        vp_op_norm(out, VP_ROLE_FINAL_NORM, "final_norm", model->hidden, model->final_norm_kind);
    if (model->lm_head) {
        struct vp_op *op = vp_op_linear(out, VP_ROLE_LM_HEAD, "lm_head", model->vocab,
                                        model->hidden, model->head_bias);
        if (model->tied) /* the embedding's matrix is used; it is counted there */
            op->matrices = op->active = 0;
    }
}

struct vp_sum vp_op_parameters(const struct vp_op *op) {
    return vp_sum_add(vp_sum_mul(vp_sum_mul(vp_sum(op->matrices), op->out), op->in), op->vector);
}

struct vp_sum vp_op_active(const struct vp_op *op) {
    struct vp_sum vector = vp_sum(op->vector);
    if (op->kind == VP_OP_EXPERTS && op->matrices > 0)
        vector.v = vp_mul_div(op->vector, op->active, op->matrices);
    return vp_sum_plus(vp_sum_mul(vp_sum_mul(vp_sum(op->active), op->out), op->in), vector);
}

/* ---- a rank's part ---- */

static void divide(struct vp_op_share *share, const struct vp_op *op, uint64_t ranks) {
    if (op->matrices == 0) { /* convolution, state vectors, sinks: divided like heads */
        share->vector = vp_ceil_div(op->vector, ranks);
    } else if (op->all_reduce) {
        share->in = vp_ceil_div(op->in, ranks); /* the bias is added once, whole */
    } else {
        share->out = vp_ceil_div(op->out, ranks);
        share->vector = vp_ceil_div(op->vector, ranks);
    }
}

struct vp_op_share vp_ops_share(const struct vp_op *op, const struct vp_block *block,
                                const struct vp_layout *layout) {
    struct vp_op_share share = {op->matrices, op->out, op->in, op->vector};
    uint64_t kv_heads;

    switch (op->shard) {
    case VP_SHARD_NONE:
        break;
    case VP_SHARD_HEADS:
        divide(&share, op, layout->attention);
        break;
    case VP_SHARD_WIDTH:
        divide(&share, op, layout->tensor);
        break;
    case VP_SHARD_KV: /* at least one KV head on every rank: replicated beyond */
        kv_heads = block ? block->attention.kv_heads : 0;
        if (kv_heads > 0)
            divide(&share, op, vp_min(layout->attention, kv_heads));
        break;
    case VP_SHARD_VOCAB: {
        uint64_t pad = layout->vocab_pad;
        share.out = vp_ceil_div(vp_ceil_div(op->out, pad) * pad, layout->vocab);
        if (op->vector > 0)
            share.vector = share.out;
        break;
    }
    case VP_SHARD_EXPERT:
        share.matrices = vp_ceil_div(op->matrices, layout->expert_ranks);
        if (op->all_reduce)
            share.in = vp_ceil_div(op->in, layout->expert_width);
        else
            share.out = vp_ceil_div(op->out, layout->expert_width);
        if (op->vector > 0)
            share.vector = share.matrices * share.out;
        break;
    }
    return share;
}

/* ---- parameters of the whole model ---- */

static void count_params(struct vp_params *params, struct vp_sum *total, struct vp_sum *active,
                         const struct vp_ops *ops, uint64_t times) {
    params->overflow |= ops->overflow;
    for (uint32_t i = 0; i < ops->count; i++) {
        *total = vp_sum_plus(*total, vp_sum_mul(vp_op_parameters(&ops->item[i]), times));
        *active = vp_sum_plus(*active, vp_sum_mul(vp_op_active(&ops->item[i]), times));
    }
}

struct vp_sum vp_ops_extra_parameters(const struct vp_model *model, const struct vp_extra *extra) {
    struct vp_sum n = vp_sum_add(vp_sum(extra->matrix_elements), extra->other_elements);
    struct vp_ops ops;

    if (!extra->layer)
        return n;
    vp_ops_block(&ops, model, extra->layer);
    n.overflow |= ops.overflow;
    for (uint32_t i = 0; i < ops.count; i++)
        n = vp_sum_plus(n, vp_sum_mul(vp_op_parameters(&ops.item[i]), extra->layers));
    return n;
}

struct vp_params vp_ops_params(const struct vp_model *model) {
    struct vp_params params = {0};
    struct vp_sum total = vp_sum(0), active = vp_sum(0);
    struct vp_ops ops;

    vp_ops_first(&ops, model);
    count_params(&params, &total, &active, &ops, 1);
    for (uint32_t i = 0; i < model->block_count; i++) {
        vp_ops_block(&ops, model, &model->blocks[i]);
        count_params(&params, &total, &active, &ops, model->blocks[i].count);
    }
    vp_ops_last(&ops, model);
    count_params(&params, &total, &active, &ops, 1);
    for (uint32_t i = 0; i < model->extra_count; i++) {
        const struct vp_extra *extra = &model->extras[i];
        if (!extra->counted)
            continue;
        struct vp_sum n = vp_ops_extra_parameters(model, extra);
        total = vp_sum_plus(total, n);
        active = vp_sum_plus(active, n);
    }
    params.total = model->gguf ? model->gguf->parameters : total.v;
    params.active = active.v;
    params.overflow |= total.overflow || active.overflow;
    return params;
}
