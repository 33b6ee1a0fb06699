/* Operators of the attention mixers: grouped heads, latent, condensed. */
#include "planner/ops/ops_parts.h"

static void rotary(struct vp_ops *ops, uint64_t width) {
    if (width == 0)
        return;
    struct vp_op *op = vp_op_add(ops, VP_OP_ROTARY, VP_ROLE_Q, "rotary");
    op->out = op->in = width;
    op->flops = vp_op_product(ops, 3, width, 1);
    op->reads = op->writes = width;
}

/* Scores and weighted values: per cached token 2 FLOPs for each element of a key and a value. */
static struct vp_op *core(struct vp_ops *ops, uint64_t heads, uint64_t key_dim, uint64_t value_dim,
                          uint64_t kv_elements) {
    struct vp_op *op = vp_op_add(ops, VP_OP_ATTENTION, VP_ROLE_SINKS, "attention");
    op->flops_cached = vp_op_product(ops, 2, heads, vp_op_sum(ops, key_dim, value_dim));
    op->in = vp_op_product(ops, heads, key_dim, 1);
    op->out = vp_op_product(ops, heads, value_dim, 1);
    op->reads = vp_op_sum(ops, op->in, kv_elements);
    op->writes = op->out;
    return op;
}

static void qk_norm(struct vp_ops *ops, const struct vp_attention *a, uint64_t q, uint64_t k) {
    struct vp_op *op = vp_op_add(ops, VP_OP_NORM, VP_ROLE_QK_NORM, "qk_norm");

    op->vector = a->qk_norm == VP_QK_NORM_FULL
                     ? vp_op_sum(ops, q, k)
                     : vp_op_product(ops, a->head_dim, a->shares_cache ? 1 : 2, 1);
    op->out = op->in = op->reads = op->writes = vp_op_sum(ops, q, k);
    op->flops = vp_op_product(ops, 4, op->out, 1);
}

/* Cross attention has the same projections under names of its own; its keys and values are made
 * once per sequence, from an encoder's output of the same width. */
void vp_ops_gqa(struct vp_ops *ops, uint64_t hidden, const struct vp_attention *a) {
    uint64_t q = vp_op_product(ops, a->heads, a->head_dim, 1);
    uint64_t k = vp_op_product(ops, a->kv_heads, a->head_dim, 1);
    uint64_t v = vp_op_product(ops, a->kv_heads, a->v_head_dim, 1);
    bool cross = a->source_tokens > 0;

    if (a->heads > 0) {
        vp_op_linear(ops, VP_ROLE_Q, cross ? "cross_q_proj" : "q_proj",
                     vp_op_product(ops, q, a->output_gate ? 2 : 1, 1), hidden, a->qkv_bias);
        if (!a->shares_cache) {
            vp_op_linear(ops, VP_ROLE_K, cross ? "cross_k_proj" : "k_proj", k, hidden,
                         a->qkv_bias && !a->no_key_bias);
            if (!a->key_is_value)
                vp_op_linear(ops, VP_ROLE_V, cross ? "cross_v_proj" : "v_proj", v, hidden,
                             a->qkv_bias);
        }
        if (a->head_gate)
            vp_op_linear(ops, VP_ROLE_HEAD_GATE, "head_gate", a->heads, hidden, false);
        if (a->qk_norm != VP_QK_NORM_NONE)
            qk_norm(ops, a, q, a->shares_cache ? 0 : k);
        if (a->rotary_dim > 0)
            rotary(ops,
                   vp_op_product(ops, vp_op_sum(ops, a->heads, a->kv_heads), a->rotary_dim, 1));
    }
    struct vp_op *op = core(ops, a->heads, a->head_dim, a->v_head_dim, vp_op_sum(ops, k, v));
    op->vector = a->sinks ? a->heads : 0;
    if (a->heads > 0)
        vp_op_linear_row(ops, VP_ROLE_O, cross ? "cross_o_proj" : "o_proj", hidden,
                         vp_op_product(ops, a->heads, a->v_head_dim, 1), a->out_bias);
}

void vp_ops_mla(struct vp_ops *ops, uint64_t hidden, const struct vp_attention *a) {
    uint64_t key = vp_op_sum(ops, a->qk_nope_head_dim, a->qk_rope_head_dim);
    uint64_t latent = vp_op_sum(ops, a->kv_lora_rank, a->qk_rope_head_dim);
    bool bias = a->qkv_bias;

    if (a->heads > 0) {
        uint64_t q = vp_op_product(ops, a->heads, key, 1);
        if (a->q_lora_rank > 0) {
            vp_op_linear(ops, VP_ROLE_Q_A, "q_a_proj", a->q_lora_rank, hidden, bias);
            vp_op_norm(ops, VP_ROLE_Q_A_NORM, "q_a_layernorm", a->q_lora_rank, VP_NORM_RMS);
            vp_op_linear(ops, VP_ROLE_Q_B, "q_b_proj", q, a->q_lora_rank, bias);
        } else {
            vp_op_linear(ops, VP_ROLE_Q, "q_proj", q, hidden, bias);
        }
        vp_op_linear(ops, VP_ROLE_KV_A, "kv_a_proj", latent, hidden, bias);
        vp_op_norm(ops, VP_ROLE_KV_A_NORM, "kv_a_layernorm", a->kv_lora_rank, VP_NORM_RMS);
        vp_op_linear(
            ops, VP_ROLE_KV_B, "kv_b_proj",
            vp_op_product(ops, a->heads, vp_op_sum(ops, a->qk_nope_head_dim, a->v_head_dim), 1),
            a->kv_lora_rank, bias);
        if (a->index_heads > 0) {
            vp_op_linear(ops, VP_ROLE_INDEX_Q, "indexer.wq_b",
                         vp_op_product(ops, a->index_heads, a->index_head_dim, 1), a->q_lora_rank,
                         false);
            vp_op_linear(ops, VP_ROLE_INDEX_K, "indexer.wk", a->index_head_dim, hidden, false);
            vp_op_norm(ops, VP_ROLE_INDEX_NORM, "indexer.k_norm", a->index_head_dim, VP_NORM_LAYER);
            vp_op_linear(ops, VP_ROLE_INDEX_WEIGHTS, "indexer.weights_proj", a->index_heads, hidden,
                         false);
        }
        rotary(ops, vp_op_product(ops, vp_op_sum(ops, a->heads, 1), a->qk_rope_head_dim, 1));
    }
    core(ops, a->heads, key, a->v_head_dim, latent);
    if (a->heads > 0)
        vp_op_linear_row(ops, VP_ROLE_O, "o_proj", hidden,
                         vp_op_product(ops, a->heads, a->v_head_dim, 1), a->out_bias);
}

/* Entries of `dim` elements, one per `compress` tokens: a value and a weight for every token (both
 * twice as wide where entries overlap), a learned offset per place, a norm on the result. */
static void condense(struct vp_ops *ops, uint64_t hidden, const struct vp_attention *a,
                     uint64_t dim, const char *name) {
    uint64_t width = vp_op_product(ops, dim, a->overlap, 1);
    struct vp_op *op =
        vp_op_linear(ops, VP_ROLE_CONDENSE, name, vp_op_product(ops, 2, width, 1), hidden, false);

    op->vector = vp_op_product(ops, a->compress, width, 1);
    vp_op_norm(ops, VP_ROLE_KV_A_NORM, "condensed_norm", dim, VP_NORM_RMS);
}

/* DeepSeek V4: low-rank queries, one vector per token that is key and value of all heads; a window
 * of them and condensed older ones; the output projection by groups of heads, then together. */
void vp_ops_compressed(struct vp_ops *ops, uint64_t hidden, const struct vp_attention *a) {
    uint64_t q = vp_op_product(ops, a->heads, a->head_dim, 1);
    uint64_t low = vp_op_product(ops, a->out_groups, a->out_lora_rank, 1);

    vp_op_linear(ops, VP_ROLE_Q_A, "q_a_proj", a->q_lora_rank, hidden, false);
    vp_op_norm(ops, VP_ROLE_Q_A_NORM, "q_a_norm", a->q_lora_rank, VP_NORM_RMS);
    vp_op_linear(ops, VP_ROLE_Q_B, "q_b_proj", q, a->q_lora_rank, false);
    vp_op_linear(ops, VP_ROLE_KV_A, "kv_proj", a->head_dim, hidden, false);
    vp_op_norm(ops, VP_ROLE_KV_A_NORM, "kv_norm", a->head_dim, VP_NORM_RMS);
    if (a->compress > 0)
        condense(ops, hidden, a, a->head_dim, "compressor");
    if (a->index_heads > 0) {
        condense(ops, hidden, a, a->index_head_dim, "indexer.compressor");
        vp_op_linear(ops, VP_ROLE_INDEX_Q, "indexer.q_b_proj",
                     vp_op_product(ops, a->index_heads, a->index_head_dim, 1), a->q_lora_rank,
                     false);
        vp_op_linear(ops, VP_ROLE_INDEX_WEIGHTS, "indexer.weights_proj", a->index_heads, hidden,
                     false);
    }
    rotary(ops, vp_op_product(ops, vp_op_sum(ops, a->heads, 1), a->rotary_dim, 1));
    struct vp_op *op = core(ops, a->heads, a->head_dim, a->head_dim, a->head_dim);
    op->vector = a->sinks ? a->heads : 0;
    if (a->compress > 0) { /* over condensed entries: at most all of them */
        op = core(ops, a->heads, a->head_dim, a->head_dim, a->head_dim);
        op->name = "condensed_attention";
        op->flops_cached /= a->compress;
    }
    op = vp_op_linear(ops, VP_ROLE_O_A, "o_a_proj", a->out_lora_rank, q / a->out_groups, false);
    op->matrices = op->active = a->out_groups;
    op->flops = vp_op_product(ops, op->flops, a->out_groups, 1);
    op->reads = q;
    op->writes = low;
    vp_op_linear_row(ops, VP_ROLE_O, "o_b_proj", hidden, low, false);
}
