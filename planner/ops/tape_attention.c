/* What attention keeps: grouped heads and latents, eager and fused. */
#include "planner/ops/tape_parts.h"

/* A head count and a head size: what a core works on. */
struct core {
    uint64_t heads, kv_heads; /* of this rank */
    uint64_t key_dim, value_dim;
    uint64_t keys; /* tokens that a query's scores are over */
    bool sinks;
};

/* Rotation makes a new tensor of the wider of the tensor's type and that of the tables, which have
 * the residual's; the product keeps the tables only. */
static uint32_t rotate(struct vp_tape_maker *maker, uint32_t x, const char *name) {
    vp_maker_step(maker);
    vp_tensor_read(maker, x);
    uint32_t out = vp_tensor_like(maker, name, x);
    if (maker->autocast && maker->residual == VP_DTYPE_FP32) {
        maker->tensor[out].dtype = VP_DTYPE_FP32;
        maker->tensor[out].bytes =
            vp_dtype_bytes(VP_DTYPE_FP32, vp_sum(maker->tensor[out].elements)).v;
    }
    return out;
}

/* Keys or values written out to all query heads, where the implementation does that, and in the
 * type that products work in. Of one head that is a view without a copy, unless it is converted or
 * (`copied`) folded with the batch. */
static uint32_t expand(struct vp_tape_maker *maker, uint32_t x, const char *name,
                       const struct core *core, uint64_t dim, bool copied) {
    enum vp_dtype dtype = maker->autocast ? maker->matrix : maker->tensor[x].dtype;
    struct vp_sum full =
        vp_sum_mul(vp_sum_mul(vp_sum_mul(vp_sum(maker->sequences), core->keys), core->heads), dim);
    bool expands = core->kv_heads < core->heads &&
                   (maker->how->repeat_kv || maker->how->attention == VP_IMPL_EAGER);
    bool view = core->kv_heads == 1 && dtype == maker->tensor[x].dtype && !copied;

    vp_tensor_read(maker, x);
    if (!expands || view)
        return vp_tensor_cast(maker, x, dtype);
    vp_maker_step(maker);
    vp_tensor_read(maker, x);
    return vp_tensor_new(maker, name, full, dtype, vp_tensor_grad(maker, x));
}

/* Ranks that share a sequence either exchange heads for tokens, so that the output exists on both
 * sides of the exchange, or pass keys and values round, which they join for that. */
static uint32_t exchanged(struct vp_tape_maker *maker, uint32_t out, uint32_t k, uint32_t v) {
    const struct vp_train_rules *rules = &maker->scenario->engine.rules.train;

    if (maker->scenario->parallel.context <= 1)
        return out;
    if (rules->context_copies_keys && vp_tensor_grad(maker, k))
        vp_tensor_keep_new(maker, "joined keys and values",
                           maker->tensor[k].elements + maker->tensor[v].elements, 1,
                           maker->tensor[k].dtype);
    if (!rules->context_copies_output)
        return out;
    vp_maker_step(maker);
    vp_tensor_read(maker, out);
    return vp_tensor_like(maker, "exchanged attention output", out);
}

/* One kernel that keeps its inputs, its output and a logarithm per row; of dropout a seed only. */
static uint32_t fused(struct vp_tape_maker *maker, uint32_t q, uint32_t k, uint32_t v,
                      const struct core *core) {
    bool grad = vp_tensor_grad(maker, q) || vp_tensor_grad(maker, k) || vp_tensor_grad(maker, v);

    q = vp_tape_matrix_input(maker, q);
    k = expand(maker, k, "keys", core, core->key_dim, false);
    v = expand(maker, v, "values", core, core->value_dim, false);
    vp_maker_step(maker);
    vp_tensor_read(maker, q);
    vp_tensor_read(maker, k);
    vp_tensor_read(maker, v);
    uint32_t out = vp_tensor_rows(maker, "attention output", maker->tokens,
                                  core->heads * core->value_dim, maker->tensor[q].dtype, grad);
    if (grad) {
        vp_tensor_keep(maker, q);
        vp_tensor_keep(maker, k);
        vp_tensor_keep(maker, v);
        vp_tensor_keep(maker, out);
        vp_tensor_keep_new(maker, "softmax statistics", maker->tokens, core->heads, VP_DTYPE_FP32);
    }
    return exchanged(maker, out, k, v);
}

/* The softmax over scores, as the model's code writes it. */
static uint32_t probabilities(struct vp_tape_maker *maker, uint32_t scores,
                              const struct core *core) {
    const struct vp_train_rules *rules = &maker->scenario->engine.rules.train;
    enum vp_dtype dtype = maker->tensor[scores].dtype;

    vp_maker_step(maker);
    vp_tensor_read(maker, scores);
    uint32_t scaled = vp_tensor_like(maker, "scores", scores);
    if (rules->scores_kept && vp_tensor_grad(maker, scaled))
        vp_tensor_keep(maker, scaled);
    vp_maker_step(maker);
    vp_tensor_read(maker, scaled);
    if (rules->scores_capped && vp_tensor_grad(maker, scaled)) { /* tanh keeps its result */
        scaled = vp_tensor_like(maker, "capped scores", scaled);
        vp_tensor_keep(maker, scaled);
        vp_maker_step(maker);
    }
    if (core->sinks) { /* one more column; what the product reads is a part of the same tensor */
        uint64_t rows = maker->tokens * core->heads;
        uint32_t wide = vp_tensor_rows(maker, "probabilities with sinks", rows, core->keys + 1,
                                       dtype, vp_tensor_grad(maker, scores));
        vp_tensor_keep_new(maker, "places of largest scores", rows, 1, VP_DTYPE_INT64);
        return wide;
    }
    if (maker->softmax_fp32 || maker->autocast)
        scaled = vp_tensor_cast(maker, scaled, VP_DTYPE_FP32);
    vp_tensor_read(maker, scaled);
    uint32_t out = vp_tensor_like(maker, "softmax output", scaled);
    if (vp_tensor_grad(maker, out))
        vp_tensor_keep(maker, out);
    vp_maker_step(maker);
    return vp_tensor_cast(maker, out, dtype);
}

/* Scores, softmax and weighted values one by one. */
static uint32_t eager(struct vp_tape_maker *maker, uint32_t q, uint32_t k, uint32_t v,
                      const struct core *core) {
    bool copied = maker->sequences > 1;

    q = vp_tape_matrix_input(maker, q);
    k = expand(maker, k, "keys", core, core->key_dim, copied);
    v = expand(maker, v, "values", core, core->value_dim, copied);
    if (maker->scenario->engine.rules.train.scores_fp32 && !maker->autocast) {
        q = vp_tensor_cast(maker, q, VP_DTYPE_FP32);
        k = vp_tensor_cast(maker, k, VP_DTYPE_FP32);
    }
    vp_maker_step(maker);
    vp_tensor_read(maker, q);
    vp_tensor_read(maker, k);
    struct vp_sum size = vp_sum_mul(vp_sum_mul(vp_sum(maker->tokens), core->heads), core->keys);
    uint32_t scores = vp_tensor_new(maker, "scores", size, maker->tensor[q].dtype,
                                    vp_tensor_grad(maker, q) || vp_tensor_grad(maker, k));
    if (vp_tensor_grad(maker, q))
        vp_tensor_keep(maker, k);
    if (vp_tensor_grad(maker, k))
        vp_tensor_keep(maker, q);
    uint32_t p = probabilities(maker, scores, core);
    if (!maker->autocast)
        p = vp_tensor_cast(maker, p, maker->tensor[v].dtype);
    p = vp_tape_dropout(maker, p, maker->how->dropout_ppb);
    p = vp_tape_matrix_input(maker, p);
    vp_maker_step(maker);
    vp_tensor_read(maker, p);
    vp_tensor_read(maker, v);
    bool grad = vp_tensor_grad(maker, p) || vp_tensor_grad(maker, v);
    uint32_t out = vp_tensor_rows(maker, "attention output", maker->tokens,
                                  core->heads * core->value_dim, maker->tensor[v].dtype, grad);
    if (vp_tensor_grad(maker, v))
        vp_tensor_keep(maker, p);
    if (vp_tensor_grad(maker, p))
        vp_tensor_keep(maker, v);
    return out;
}

static uint32_t attend(struct vp_tape_maker *maker, uint32_t q, uint32_t k, uint32_t v,
                       const struct core *core) {
    uint32_t out;

    maker->group = VP_TAPE_ATTENTION;
    vp_region_enter(maker, VP_SELECT_CORE_ATTENTION, q);
    vp_region_enter(maker, VP_SELECT_CORE_ATTENTION, k);
    vp_region_enter(maker, VP_SELECT_CORE_ATTENTION, v);
    if (maker->how->attention == VP_IMPL_EAGER)
        out = eager(maker, q, k, v, core);
    else
        out = fused(maker, q, k, v, core);
    vp_region_leave(maker, VP_SELECT_CORE_ATTENTION);
    if (maker->how->attention == VP_IMPL_EAGER) { /* heads side by side again: a copy */
        vp_maker_step(maker);
        vp_tensor_read(maker, out);
        out = vp_tensor_like(maker, "attention output", out);
    }
    return out;
}

/* ---- grouped heads ---- */

/* The output gate is the second half of what the query projection makes. */
static uint32_t gate_output(struct vp_tape_maker *maker, uint32_t out, uint32_t gate) {
    vp_maker_step(maker);
    vp_tensor_read(maker, gate);
    uint32_t open = vp_tensor_like(maker, "output gate", gate);
    if (vp_tensor_grad(maker, open))
        vp_tensor_keep(maker, open);
    return vp_tape_multiply(maker, out, open, "gated attention output");
}

static struct core gqa_core(const struct vp_tape_maker *maker, const struct vp_attention *a) {
    uint64_t ranks = vp_max(maker->layout.attention, 1);
    uint64_t kv = vp_max(a->kv_heads, 1);

    return (struct core){.heads = vp_ceil_div(a->heads, ranks),
                         .kv_heads = vp_ceil_div(a->kv_heads, vp_min(ranks, kv)),
                         .key_dim = a->head_dim,
                         .value_dim = a->v_head_dim,
                         .keys = a->source_tokens > 0 ? vp_maker_source(maker, a) : maker->keys,
                         .sinks = a->sinks};
}

/* Values that are read as a part of what one matrix made keep all of it. Rotated or normed queries
 * and keys are tensors of their own; so is a copy of the values. */
static bool keeps_whole(const struct vp_tape_maker *maker, const struct core *core) {
    bool eager = maker->how->attention == VP_IMPL_EAGER;
    bool expands = core->kv_heads < core->heads && (maker->how->repeat_kv || eager);

    return maker->joint_qkv && maker->rotary && !expands &&
           !maker->scenario->engine.rules.train.values_copied && (!eager || maker->sequences == 1);
}

static uint32_t whole_of(struct vp_tape_maker *maker, uint32_t q, uint32_t k, uint32_t v) {
    struct vp_sum all = vp_sum_add(vp_sum(maker->tensor[q].elements), maker->tensor[k].elements);

    return vp_tensor_new(maker, "queries, keys and values",
                         vp_sum_add(all, maker->tensor[v].elements), maker->tensor[v].dtype,
                         vp_tensor_grad(maker, v));
}

/* q, k and v of x. Where they are one matrix, they share its converted input. */
struct projections {
    uint32_t q, k, v;
};

static uint64_t source_rows(struct vp_tape_maker *maker, const struct vp_attention *a) {
    struct vp_sum rows = vp_sum_mul(vp_sum(maker->sequences), vp_maker_source(maker, a));
    maker->out->overflow |= rows.overflow;
    return rows.v;
}

static struct projections project(struct vp_tape_maker *maker, uint32_t x,
                                  const struct vp_attention *a) {
    const struct vp_op *q = vp_maker_find(maker, VP_ROLE_Q);
    const struct vp_op *k = vp_maker_find(maker, VP_ROLE_K);
    const struct vp_op *v = vp_maker_find(maker, VP_ROLE_V);
    struct projections out;
    uint32_t in = vp_tape_matrix_input(maker, x);
    uint64_t rows = maker->tokens;

    maker->group = VP_TAPE_ATTENTION;
    out.q = out.k = out.v = vp_tape_matrix(maker, x, in, q, "queries", rows);
    uint32_t source = x;
    if (a->source_tokens > 0) {
        source = x = vp_tensor_rows(maker, "encoder output", source_rows(maker, a),
                                    maker->scenario->model->hidden, maker->residual, true);
        in = vp_tape_matrix_input(maker, x);
        rows = source_rows(maker, a);
    }
    if (k) {
        if (!maker->joint_qkv && a->source_tokens == 0)
            in = vp_tape_matrix_input(maker, x);
        out.k = out.v = vp_tape_matrix(maker, x, in, k, "keys", rows);
    }
    if (v) {
        if (!maker->joint_qkv)
            in = vp_tape_matrix_input(maker, x);
        out.v = vp_tape_matrix(maker, x, in, v, "values", rows);
    }
    if (a->source_tokens > 0) { /* not this layer's: vp_tape_first counts it once */
        maker->tensor[source].kept = false;
        maker->tensor[source].bytes = 0;
    }
    return out;
}

static uint32_t grouped(struct vp_tape_maker *maker, uint32_t x, const struct vp_attention *a) {
    const struct vp_op *norm = vp_maker_find(maker, VP_ROLE_QK_NORM);
    struct core core = gqa_core(maker, a);
    struct projections p = project(maker, x, a);
    uint32_t gate = 0;

    if (keeps_whole(maker, &core) && p.v != p.k)
        p.v = whole_of(maker, p.q, p.k, p.v);
    if (a->output_gate) { /* both halves are copied out of the projection */
        struct vp_sum half = vp_sum_mul(vp_sum_mul(vp_sum(maker->tokens), core.heads), a->head_dim);
        vp_maker_step(maker);
        vp_tensor_read(maker, p.q);
        enum vp_dtype dtype = maker->tensor[p.q].dtype;
        bool grad = vp_tensor_grad(maker, p.q);
        gate = vp_tensor_new(maker, "output gate", half, dtype, grad);
        p.q = vp_tensor_new(maker, "queries", half, dtype, grad);
    }
    if (norm) {
        bool full = a->qk_norm == VP_QK_NORM_FULL;
        p.q = vp_tape_norm(maker, p.q, norm, maker->tokens * (full ? 1 : core.heads));
        if (!a->shares_cache)
            p.k = vp_tape_norm(maker, p.k, norm, maker->tokens * (full ? 1 : core.kv_heads));
    }
    maker->group = VP_TAPE_ATTENTION;
    if (maker->rotary && a->source_tokens == 0) {
        p.q = rotate(maker, p.q, "queries");
        if (!a->shares_cache)
            p.k = rotate(maker, p.k, "keys");
    }
    uint32_t out = attend(maker, p.q, p.k, p.v, &core);
    if (a->output_gate)
        out = gate_output(maker, out, gate);
    maker->group = VP_TAPE_ATTENTION;
    return vp_tape_matrix_of(maker, out, VP_ROLE_O, "attention projection");
}

/* ---- latents ---- */

/* A part of a tensor's last dimension: the same storage, kept whole when it is kept. */
static uint32_t joined(struct vp_tape_maker *maker, uint32_t x, const char *name, uint64_t width,
                       bool grad) {
    vp_maker_step(maker);
    vp_tensor_read(maker, x);
    return vp_tensor_rows(maker, name, maker->tokens, width, maker->tensor[x].dtype, grad);
}

/* Queries, keys and values of latents. The rotated parts are joined to the others in new tensors;
 * values stay a view of what kv_b made, so that a fused kernel keeps all of that, where they are
 * not copied out. */
static uint32_t latent(struct vp_tape_maker *maker, uint32_t x, const struct vp_attention *a) {
    uint64_t heads = vp_ceil_div(a->heads, vp_max(maker->layout.attention, 1));
    uint64_t key = a->qk_nope_head_dim + a->qk_rope_head_dim;
    struct core core = {.heads = heads,
                        .kv_heads = heads,
                        .key_dim = key,
                        .value_dim = a->v_head_dim,
                        .keys = maker->keys};
    uint32_t q, low = x;

    maker->group = VP_TAPE_LATENT;
    if (a->q_lora_rank > 0) {
        low = vp_tape_matrix_of(maker, x, VP_ROLE_Q_A, "query latent");
        low = vp_tape_norm(maker, low, vp_maker_find(maker, VP_ROLE_Q_A_NORM), maker->tokens);
    }
    uint32_t all = vp_tape_matrix_of(maker, x, VP_ROLE_KV_A, "key and value latent");
    vp_region_enter(maker, VP_SELECT_MLA_UP, low);
    vp_region_enter(maker, VP_SELECT_MLA_UP, all);
    q = vp_tape_matrix_of(maker, low, a->q_lora_rank > 0 ? VP_ROLE_Q_B : VP_ROLE_Q, "queries");
    uint32_t kv =
        vp_tape_norm_part(maker, all, vp_maker_find(maker, VP_ROLE_KV_A_NORM), maker->tokens);
    kv = vp_tape_matrix_of(maker, kv, VP_ROLE_KV_B, "keys and values");
    bool grad = vp_tensor_grad(maker, kv);
    q = joined(maker, q, "queries", heads * key, vp_tensor_grad(maker, q));
    uint32_t k = joined(maker, kv, "keys", heads * key, grad);
    bool copied = maker->scenario->engine.rules.train.values_copied;
    uint32_t v = copied || maker->how->attention == VP_IMPL_EAGER
                     ? joined(maker, kv, "values", heads * a->v_head_dim, grad)
                     : kv;
    vp_region_leave(maker, VP_SELECT_MLA_UP);
    uint32_t out = attend(maker, q, k, v, &core);
    return vp_tape_matrix_of(maker, out, VP_ROLE_O, "attention projection");
}

/* DeepSeek V4: one vector per token is key and value of all heads. Older tokens' entries are
 * weighted sums of projections of every token; an indexer chooses among them and takes no gradient.
 */
static uint32_t condensed(struct vp_tape_maker *maker, uint32_t x, const struct vp_attention *a) {
    struct core core = {.heads = vp_ceil_div(a->heads, vp_max(maker->layout.attention, 1)),
                        .kv_heads = 1,
                        .key_dim = a->head_dim,
                        .value_dim = a->head_dim,
                        .keys = maker->keys,
                        .sinks = a->sinks};

    maker->group = VP_TAPE_LATENT;
    uint32_t q = vp_tape_matrix_of(maker, x, VP_ROLE_Q_A, "query latent");
    q = vp_tape_norm(maker, q, vp_maker_find(maker, VP_ROLE_Q_A_NORM), maker->tokens);
    q = rotate(maker, vp_tape_matrix_of(maker, q, VP_ROLE_Q_B, "queries"), "queries");
    uint32_t kv = vp_tape_matrix_of(maker, x, VP_ROLE_KV_A, "keys");
    kv = vp_tape_norm(maker, kv, vp_maker_find(maker, VP_ROLE_KV_A_NORM), maker->tokens);
    kv = rotate(maker, kv, "keys");
    if (a->compress > 0) {
        uint32_t wide = vp_tape_matrix_of(maker, x, VP_ROLE_CONDENSE, "values and weights");
        if (vp_tensor_grad(maker, wide))
            vp_tensor_keep(maker, wide);
        core.keys = vp_min(core.keys, vp_max(a->window, 1) + core.keys / a->compress);
    }
    uint32_t out = attend(maker, q, kv, kv, &core);
    out = vp_tape_matrix_of(maker, out, VP_ROLE_O_A, "grouped projection");
    return vp_tape_matrix_of(maker, out, VP_ROLE_O, "attention projection");
}

uint32_t vp_tape_mixer(struct vp_tape_maker *maker, uint32_t x, const struct vp_attention *a) {
    enum vp_tape_group group = maker->group;
    uint32_t out = x;

    switch (a->kind) {
    case VP_ATTENTION_NONE:
        break;
    case VP_ATTENTION_GQA:
        out = grouped(maker, x, a);
        break;
    case VP_ATTENTION_MLA:
        out = latent(maker, x, a);
        break;
    case VP_ATTENTION_COMPRESSED:
        out = condensed(maker, x, a);
        break;
    case VP_ATTENTION_LINEAR:
        out = vp_tape_recurrent(maker, x, a);
        break;
    }
    maker->group = group;
    return out;
}
