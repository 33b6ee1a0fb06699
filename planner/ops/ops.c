#include "planner/ops/ops.h"

#include <string.h>

static struct vp_op *add(struct vp_ops *ops, enum vp_op_kind kind, enum vp_role role,
                         const char *name) {
    struct vp_op *op = &ops->item[ops->count++];
    memset(op, 0, sizeof *op);
    op->kind = kind;
    op->role = role;
    op->name = name;
    op->shard = vp_role_shard(role);
    return op;
}

/* a * b * c, or 0 with the list's overflow flag set */
static uint64_t product(struct vp_ops *ops, uint64_t a, uint64_t b, uint64_t c) {
    struct vp_sum s = vp_sum_mul(vp_sum_mul(vp_sum(a), b), c);
    ops->overflow |= s.overflow;
    return s.overflow ? 0 : s.v;
}

static uint64_t sum2(struct vp_ops *ops, uint64_t a, uint64_t b) {
    struct vp_sum s = vp_sum_add(vp_sum(a), b);
    ops->overflow |= s.overflow;
    return s.overflow ? 0 : s.v;
}

/* One matrix; `bias` adds `out` parameters. */
static struct vp_op *linear(struct vp_ops *ops, enum vp_role role, const char *name, uint64_t out,
                            uint64_t in, bool bias) {
    struct vp_op *op = add(ops, VP_OP_LINEAR, role, name);
    op->matrices = op->active = 1;
    op->out = out;
    op->in = in;
    op->vector = bias ? out : 0;
    op->flops = product(ops, 2, out, in);
    op->reads = in;
    op->writes = out;
    return op;
}

/* A matrix divided by its inputs under tensor parallelism: the ranks' outputs are summed. */
static struct vp_op *linear_row(struct vp_ops *ops, enum vp_role role, const char *name,
                                uint64_t out, uint64_t in, bool bias) {
    struct vp_op *op = linear(ops, role, name, out, in, bias);
    op->all_reduce = true;
    return op;
}

static void norm(struct vp_ops *ops, enum vp_role role, const char *name, uint64_t width,
                 enum vp_norm_kind kind) {
    struct vp_op *op = add(ops, VP_OP_NORM, role, name);
    op->vector = kind == VP_NORM_LAYER ? product(ops, 2, width, 1) : width;
    op->out = op->in = width;
    op->flops = product(ops, 4, width, 1);
    op->reads = op->writes = width;
}

static void residual(struct vp_ops *ops, uint64_t hidden) {
    struct vp_op *op = add(ops, VP_OP_ADD, VP_ROLE_NORM, "add");
    op->out = op->in = hidden;
    op->flops = hidden;
    op->reads = product(ops, 2, hidden, 1);
    op->writes = hidden;
}

static void rotary(struct vp_ops *ops, uint64_t width) {
    if (width == 0)
        return;
    struct vp_op *op = add(ops, VP_OP_ROTARY, VP_ROLE_Q, "rotary");
    op->out = op->in = width;
    op->flops = product(ops, 3, width, 1);
    op->reads = op->writes = width;
}

/* Scores and weighted values: per cached token 2 FLOPs for each element of a key and a value. */
static struct vp_op *core(struct vp_ops *ops, uint64_t heads, uint64_t key_dim, uint64_t value_dim,
                          uint64_t kv_elements) {
    struct vp_op *op = add(ops, VP_OP_ATTENTION, VP_ROLE_SINKS, "attention");
    op->flops_cached = product(ops, 2, heads, sum2(ops, key_dim, value_dim));
    op->in = product(ops, heads, key_dim, 1);
    op->out = product(ops, heads, value_dim, 1);
    op->reads = sum2(ops, op->in, kv_elements);
    op->writes = op->out;
    return op;
}

static void attention_gqa(struct vp_ops *ops, uint64_t hidden, const struct vp_attention *a) {
    uint64_t q = product(ops, a->heads, a->head_dim, 1);
    uint64_t k = product(ops, a->kv_heads, a->head_dim, 1);
    uint64_t v = product(ops, a->kv_heads, a->v_head_dim, 1);

    if (a->heads > 0) {
        linear(ops, VP_ROLE_Q, "q_proj", product(ops, q, a->output_gate ? 2 : 1, 1), hidden,
               a->qkv_bias);
        if (!a->shares_cache) {
            linear(ops, VP_ROLE_K, "k_proj", k, hidden, a->qkv_bias);
            if (!a->key_is_value)
                linear(ops, VP_ROLE_V, "v_proj", v, hidden, a->qkv_bias);
        }
        if (a->qk_norm != VP_QK_NORM_NONE) {
            struct vp_op *op = add(ops, VP_OP_NORM, VP_ROLE_QK_NORM, "qk_norm");
            uint64_t key_width = a->shares_cache ? 0 : k;
            op->vector = a->qk_norm == VP_QK_NORM_FULL
                             ? sum2(ops, q, key_width)
                             : product(ops, a->head_dim, a->shares_cache ? 1 : 2, 1);
            op->out = op->in = op->reads = op->writes = sum2(ops, q, key_width);
            op->flops = product(ops, 4, op->out, 1);
        }
        if (a->rotary_dim > 0)
            rotary(ops, product(ops, sum2(ops, a->heads, a->kv_heads), a->rotary_dim, 1));
    }
    struct vp_op *op = core(ops, a->heads, a->head_dim, a->v_head_dim, sum2(ops, k, v));
    op->vector = a->sinks ? a->heads : 0;
    if (a->heads > 0)
        linear_row(ops, VP_ROLE_O, "o_proj", hidden, product(ops, a->heads, a->v_head_dim, 1),
                   a->out_bias);
}

static void attention_mla(struct vp_ops *ops, uint64_t hidden, const struct vp_attention *a) {
    uint64_t key = sum2(ops, a->qk_nope_head_dim, a->qk_rope_head_dim);
    uint64_t latent = sum2(ops, a->kv_lora_rank, a->qk_rope_head_dim);
    bool bias = a->qkv_bias;

    if (a->heads > 0) {
        uint64_t q = product(ops, a->heads, key, 1);
        if (a->q_lora_rank > 0) {
            linear(ops, VP_ROLE_Q_A, "q_a_proj", a->q_lora_rank, hidden, bias);
            norm(ops, VP_ROLE_Q_A_NORM, "q_a_layernorm", a->q_lora_rank, VP_NORM_RMS);
            linear(ops, VP_ROLE_Q_B, "q_b_proj", q, a->q_lora_rank, bias);
        } else {
            linear(ops, VP_ROLE_Q, "q_proj", q, hidden, bias);
        }
        linear(ops, VP_ROLE_KV_A, "kv_a_proj", latent, hidden, bias);
        norm(ops, VP_ROLE_KV_A_NORM, "kv_a_layernorm", a->kv_lora_rank, VP_NORM_RMS);
        linear(ops, VP_ROLE_KV_B, "kv_b_proj",
               product(ops, a->heads, sum2(ops, a->qk_nope_head_dim, a->v_head_dim), 1),
               a->kv_lora_rank, bias);
        if (a->index_heads > 0) {
            linear(ops, VP_ROLE_INDEX_Q, "indexer.wq_b",
                   product(ops, a->index_heads, a->index_head_dim, 1), a->q_lora_rank, false);
            linear(ops, VP_ROLE_INDEX_K, "indexer.wk", a->index_head_dim, hidden, false);
            norm(ops, VP_ROLE_INDEX_NORM, "indexer.k_norm", a->index_head_dim, VP_NORM_LAYER);
            linear(ops, VP_ROLE_INDEX_WEIGHTS, "indexer.weights_proj", a->index_heads, hidden,
                   false);
        }
        rotary(ops, product(ops, sum2(ops, a->heads, 1), a->qk_rope_head_dim, 1));
    }
    core(ops, a->heads, key, a->v_head_dim, latent);
    if (a->heads > 0)
        linear_row(ops, VP_ROLE_O, "o_proj", hidden, product(ops, a->heads, a->v_head_dim, 1),
                   a->out_bias);
}

static void conv(struct vp_ops *ops, const struct vp_attention *a) {
    struct vp_op *op = add(ops, VP_OP_CONV, VP_ROLE_LINEAR_CONV, "conv1d");
    op->vector = product(ops, a->conv_channels, a->conv_kernel + (a->conv_bias ? 1 : 0), 1);
    op->out = op->in = op->reads = op->writes = a->conv_channels;
    op->flops = product(ops, 2, a->conv_channels, a->conv_kernel);
}

static void scan(struct vp_ops *ops, const struct vp_attention *a, uint64_t vector) {
    struct vp_op *op = add(ops, VP_OP_SCAN, VP_ROLE_LINEAR_STATE, "scan");
    op->vector = vector;
    op->in = a->conv_channels;
    op->out = product(ops, a->value_heads, a->value_dim, 1);
    /* decay, outer-product update and read-out touch every state element about twice each */
    op->flops = product(ops, 6, a->state_elements, 1);
    op->reads = op->in;
    op->writes = op->out;
}

static void attention_linear(struct vp_ops *ops, uint64_t hidden, const struct vp_attention *a) {
    uint64_t keys = product(ops, a->key_heads, a->key_dim, 1);
    uint64_t values = product(ops, a->value_heads, a->value_dim, 1);

    switch (a->linear) {
    case VP_LINEAR_GIVEN:
        if (a->parameters > 0)
            linear(ops, VP_ROLE_LINEAR_OTHER, "linear_attn", a->parameters, 1, false);
        scan(ops, a, 0);
        return;
    case VP_LINEAR_GATED_DELTA:
        linear(ops, VP_ROLE_LINEAR_IN, "in_proj_qkvz",
               sum2(ops, product(ops, 2, keys, 1), product(ops, 2, values, 1)), hidden, false);
        linear(ops, VP_ROLE_LINEAR_GATES, "in_proj_ba", product(ops, 2, a->value_heads, 1), hidden,
               false);
        conv(ops, a);
        scan(ops, a, product(ops, 2, a->value_heads, 1));
        norm(ops, VP_ROLE_LINEAR_NORM, "norm", a->value_dim, VP_NORM_RMS);
        linear_row(ops, VP_ROLE_LINEAR_OUT, "out_proj", hidden, values, false);
        return;
    case VP_LINEAR_KDA:
        linear(ops, VP_ROLE_LINEAR_IN, "qkv_proj", sum2(ops, product(ops, 2, keys, 1), values),
               hidden, false);
        linear(ops, VP_ROLE_LINEAR_LOW, "f_a_g_a_proj", product(ops, 2, a->value_dim, 1), hidden,
               false);
        linear(ops, VP_ROLE_LINEAR_HIGH, "f_b_g_b_proj", product(ops, 2, values, 1), a->value_dim,
               false);
        linear(ops, VP_ROLE_LINEAR_GATES, "b_proj", a->value_heads, hidden, false);
        conv(ops, a);
        scan(ops, a, sum2(ops, a->value_heads, values));
        norm(ops, VP_ROLE_LINEAR_NORM, "o_norm", a->value_dim, VP_NORM_RMS);
        linear_row(ops, VP_ROLE_LINEAR_OUT, "o_proj", hidden, values, false);
        return;
    case VP_LINEAR_MAMBA2:
        /* gate, convolved x B C, and a step size per head */
        linear(ops, VP_ROLE_LINEAR_IN, "in_proj",
               sum2(ops, sum2(ops, values, a->conv_channels), a->value_heads), hidden, false);
        conv(ops, a);
        scan(ops, a, product(ops, 3, a->value_heads, 1));
        norm(ops, VP_ROLE_LINEAR_NORM, "norm", values, VP_NORM_RMS);
        linear_row(ops, VP_ROLE_LINEAR_OUT, "out_proj", hidden, values, false);
        return;
    }
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
        op = linear(ops, roles->up, roles->up_name, width > 0 ? width : hidden, hidden, bias);
        op->kind = op_kind;
        op->matrices = matrices;
        op->active = active;
        op->vector = product(ops, op->vector, matrices, 1);
        op->flops = product(ops, op->flops, active, 1);
        op->reads = product(ops, op->reads, active, 1);
        op->writes = product(ops, op->writes, active, 1);
        return;
    }
    for (int i = kind == VP_MLP_GATED ? 0 : 1; i < 3; i++) {
        if (i == 2) {
            op = add(ops, VP_OP_ACTIVATION, VP_ROLE_NORM, "activation");
            op->in = product(ops, width, active, kind == VP_MLP_GATED ? 2 : 1);
            op->out = product(ops, width, active, 1);
            op->flops = product(ops, 5, op->out, 1);
            op->reads = op->in;
            op->writes = op->out;
        }
        op = add(ops, op_kind,
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
        op->vector = bias ? product(ops, matrices, op->out, 1) : 0;
        op->flops = product(ops, 2 * active, op->out, op->in);
        op->reads = product(ops, active, op->in, 1);
        op->writes = product(ops, active, op->out, 1);
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

    linear(ops, VP_ROLE_ROUTER, "router", moe->experts, hidden, moe->router_bias);
    struct vp_op *op = add(ops, VP_OP_ROUTE, VP_ROLE_ROUTER_BIAS, "top_k");
    op->vector = moe->score_bias ? moe->experts : 0;
    op->in = op->reads = moe->experts;
    op->out = op->writes = moe->top_k;
    if (moe->input > 0)
        linear(ops, VP_ROLE_LATENT_DOWN, "latent_down", moe->input, hidden, false);
    feed_forward(ops, &routed, moe->kind, moe->experts, moe->top_k,
                 moe->input > 0 ? moe->input : hidden, moe->intermediate, moe->bias);
    if (moe->input > 0)
        linear(ops, VP_ROLE_LATENT_UP, "latent_up", hidden, moe->input, false);
    if (moe->shared_intermediate > 0) {
        feed_forward(ops, &shared, moe->kind, 1, 1, hidden, moe->shared_intermediate, false);
        if (moe->shared_switch)
            linear(ops, VP_ROLE_SHARED_SWITCH, "shared_expert_gate", 1, hidden, false);
    }
}

void vp_ops_block(struct vp_ops *out, const struct vp_model *model, const struct vp_block *block) {
    static const struct mlp_roles dense = {VP_ROLE_GATE, VP_ROLE_UP, VP_ROLE_DOWN,
                                           "gate_proj",  "up_proj",  "down_proj"};
    static const char *const norm_names[] = {"input_norm", "post_attention_norm", "pre_mlp_norm",
                                             "post_mlp_norm"};
    uint64_t hidden = model->hidden;
    bool mixes = block->attention.kind != VP_ATTENTION_NONE;
    bool feeds = block->mlp.kind != VP_MLP_NONE || block->moe.kind != VP_MLP_NONE;

    out->count = 0;
    out->overflow = false;
    for (uint32_t i = 0; i < block->norms && i < 8; i++)
        norm(out, VP_ROLE_NORM, norm_names[i < 4 ? i : 3], hidden, block->norm);
    switch (block->attention.kind) {
    case VP_ATTENTION_NONE:
        break;
    case VP_ATTENTION_GQA:
        attention_gqa(out, hidden, &block->attention);
        break;
    case VP_ATTENTION_MLA:
        attention_mla(out, hidden, &block->attention);
        break;
    case VP_ATTENTION_LINEAR:
        attention_linear(out, hidden, &block->attention);
        break;
    }
    if (mixes && hidden > 0)
        residual(out, hidden);
    if (block->mlp.kind != VP_MLP_NONE)
        feed_forward(out, &dense, block->mlp.kind, 1, 1, hidden, block->mlp.intermediate,
                     block->mlp.bias);
    if (block->moe.kind != VP_MLP_NONE)
        experts(out, hidden, &block->moe);
    if (feeds && hidden > 0)
        residual(out, hidden);
}

void vp_ops_first(struct vp_ops *out, const struct vp_model *model) {
    out->count = 0;
    out->overflow = false;
    if (model->embedding) {
        struct vp_op *op = add(out, VP_OP_EMBEDDING, VP_ROLE_EMBEDDING, "embedding");
        op->matrices = 1;
        op->active = 1;
        op->out = model->vocab;
        op->in = model->hidden;
        op->reads = 1;
        op->writes = model->hidden;
    }
    if (model->learned_positions > 0) {
        struct vp_op *op = add(out, VP_OP_EMBEDDING, VP_ROLE_POSITION, "positions");
        op->vector = product(out, model->learned_positions, model->hidden, 1);
        op->writes = model->hidden;
    }
}

void vp_ops_last(struct vp_ops *out, const struct vp_model *model) {
    out->count = 0;
    out->overflow = false;
    if (model->final_norm)
        norm(out, VP_ROLE_FINAL_NORM, "final_norm", model->hidden, model->final_norm_kind);
    if (model->lm_head) {
        struct vp_op *op =
            linear(out, VP_ROLE_LM_HEAD, "lm_head", model->vocab, model->hidden, model->head_bias);
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
        struct vp_sum n = vp_sum_add(vp_sum(extra->matrix_elements), extra->other_elements);
        if (!extra->counted)
            continue;
        total = vp_sum_plus(total, n);
        active = vp_sum_plus(active, n);
    }
    params.total = total.v;
    params.active = active.v;
    params.overflow |= total.overflow || active.overflow;
    return params;
}
