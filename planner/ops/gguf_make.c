#include "planner/ops/gguf_make.h"

#include <stdio.h>
#include <string.h>

#include "planner/ops/ops.h"

enum {
    NAME_BYTES = 64, /* GGML_MAX_NAME */
    GROWTH = 256
};

struct maker {
    struct vp_arena *arena;
    const struct vp_model *model;
    struct vp_gguf_table *table;
    uint32_t capacity;
    int32_t layer;  /* -1 before the blocks, layer_count behind them */
    uint32_t norms; /* of the layer so far */
    const struct vp_block *block;
    bool overflow;
};

/* How tensors of a role are called; the first name of the list. */
static const struct {
    const char *stem;
    enum vp_role role;
} NAMES[] = {
#define X(stem, kind, role) {stem, VP_ROLE_##role},
#include "planner/model/gguf_names.def"
#undef X
};

static const char *stem_of(enum vp_role role) {
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (NAMES[i].role == role)
            return NAMES[i].stem;
    return NULL;
}

/* What a converter writes of a scheme: formats that GGUF does not have become f16. */
static enum vp_dtype converted(const struct vp_scheme *scheme) {
    enum vp_dtype type = scheme->data;
    bool block = vp_dtype_is_ggml(type) || type == VP_DTYPE_MXFP4 || type == VP_DTYPE_NVFP4;
    return block || type == VP_DTYPE_FP32 || type == VP_DTYPE_BF16 ? type : VP_DTYPE_FP16;
}

static struct vp_gguf_tensor *room(struct maker *m) {
    struct vp_gguf_table *table = m->table;
    if (table->count == m->capacity) {
        uint32_t capacity = m->capacity ? 2 * m->capacity : GROWTH;
        struct vp_gguf_tensor *more = VP_NEW_ARRAY(m->arena, capacity, struct vp_gguf_tensor);
        if (table->count)
            memcpy(more, table->tensor, table->count * sizeof *more);
        table->tensor = more;
        m->capacity = capacity;
    }
    return &table->tensor[table->count++];
}

/* One tensor of ne0 x ne1 x ne2, stored as `asked` unless the quantizer does otherwise. end:
 * ".weight", ".bias" or "". */
static void add(struct maker *m, const char *stem, const char *end, enum vp_dtype asked,
                uint64_t ne0, uint64_t ne1, uint64_t ne2) {
    char name[NAME_BYTES];
    bool inside = m->layer >= 0 && (uint32_t)m->layer < m->model->layer_count;
    if (ne0 == 0 || ne1 == 0 || ne2 == 0)
        return;
    if (inside)
        snprintf(name, sizeof name, "blk.%d.%s%s", m->layer, stem, end);
    else
        snprintf(name, sizeof name, "%s%s", stem, end);
    struct vp_gguf_tensor *t = room(m);
    *t = (struct vp_gguf_tensor){.name = vp_arena_text(m->arena, name, strlen(name)),
                                 .dims = ne2 > 1   ? 3
                                         : ne1 > 1 ? 2
                                                   : 1,
                                 .ne = {ne0, ne1, ne2, 1}};
    vp_gguf_classify(t, m->model->layer_count);
    t->type = vp_gguf_stored_type(t, asked);
    m->overflow |= !vp_gguf_measure(t);
}

static void add_vector(struct maker *m, const char *stem, const char *end, uint64_t n) {
    add(m, stem, end, VP_DTYPE_FP32, n, 1, 1);
}

static enum vp_dtype asked(const struct maker *m, enum vp_role role) {
    return converted(&m->model->schemes[m->block->scheme[role]]);
}

/* ---- operators whose tensors are not simply a matrix and a bias ---- */

/* A norm's weight, and its bias where it has one. */
static void norm(struct maker *m, const struct vp_op *op, const char *stem) {
    if (op->vector == 0)
        return;
    add_vector(m, stem, ".weight", op->in);
    if (op->vector > op->in)
        add_vector(m, stem, ".bias", op->vector - op->in);
}

static void block_norm(struct maker *m, const struct vp_op *op) {
    static const char *const TWO[] = {"attn_norm", "ffn_norm"};
    static const char *const FOUR[] = {"attn_norm", "post_attention_norm", "ffn_norm",
                                       "post_ffw_norm"};
    const char *const *names = m->block->norms > 2 ? FOUR : TWO;
    uint32_t last = m->block->norms > 2 ? 3 : 1;
    norm(m, op, names[m->norms < last ? m->norms : last]);
    m->norms++;
}

static void qk_norm(struct maker *m, const struct vp_op *op) {
    const struct vp_attention *a = &m->block->attention;
    uint64_t q = a->qk_norm == VP_QK_NORM_FULL ? a->heads * a->head_dim : a->head_dim;
    add_vector(m, "attn_q_norm", ".weight", q);
    add_vector(m, "attn_k_norm", ".weight", vp_above(op->vector, q));
}

/* The up-projection of the latent: for keys and values apart, absorbed into the queries. Files that
 * cache head by head keep them together. */
static void latent_up(struct maker *m, const struct vp_op *op) {
    const struct vp_attention *a = &m->block->attention;
    enum vp_dtype type = asked(m, VP_ROLE_KV_B);
    if (a->expanded) {
        add(m, "attn_kv_b", ".weight", type, op->in, op->out, 1);
        return;
    }
    add(m, "attn_k_b", ".weight", type, a->qk_nope_head_dim, a->kv_lora_rank, a->heads);
    add(m, "attn_v_b", ".weight", type, a->kv_lora_rank, a->v_head_dim, a->heads);
}

static const struct vp_attention *recurrent_half(const struct maker *m) {
    return m->block->attention.kind == VP_ATTENTION_LINEAR ? &m->block->attention
                                                           : &m->block->second;
}

static void linear_in(struct maker *m, const struct vp_op *op) {
    const struct vp_attention *a = recurrent_half(m);
    uint64_t values = a->value_heads * a->value_dim;
    enum vp_dtype type = asked(m, VP_ROLE_LINEAR_IN);
    switch (a->linear) {
    case VP_LINEAR_GATED_DELTA:
        add(m, "attn_qkv", ".weight", type, op->in, vp_above(op->out, values), 1);
        add(m, "attn_gate", ".weight", type, op->in, values, 1);
        break;
    case VP_LINEAR_KDA:
    case VP_LINEAR_LIGHTNING:
        add(m, "attn_qkv", ".weight", type, op->in, op->out, 1);
        break;
    case VP_LINEAR_SHORT_CONV:
        add(m, "shortconv.in_proj", ".weight", type, op->in, op->out, 1);
        break;
    default:
        add(m, "ssm_in", ".weight", type, op->in, op->out, 1);
    }
}

static void linear_conv(struct maker *m) {
    const struct vp_attention *a = recurrent_half(m);
    bool alone = a->linear == VP_LINEAR_SHORT_CONV;
    const char *stem = alone ? "shortconv.conv" : "ssm_conv1d";
    add(m, stem, ".weight", VP_DTYPE_FP32, a->conv_kernel, a->conv_channels, 1);
    if (a->conv_bias)
        add_vector(m, stem, ".bias", a->conv_channels);
}

/* Decays, skips and step sizes of a scan: they have no ".weight" in their names. */
static void linear_state(struct maker *m, const struct vp_op *op) {
    const struct vp_attention *a = recurrent_half(m);
    uint64_t values = a->value_heads * a->value_dim;
    switch (a->linear) {
    case VP_LINEAR_MAMBA1:
        add(m, "ssm_a", "", VP_DTYPE_FP32, a->key_dim, a->value_dim, 1);
        add_vector(m, "ssm_d", "", a->value_dim);
        break;
    case VP_LINEAR_MAMBA2:
        add_vector(m, "ssm_dt", ".bias", a->value_heads);
        add(m, "ssm_a", "", VP_DTYPE_FP32, 1, a->value_heads, 1);
        add(m, "ssm_d", "", VP_DTYPE_FP32, 1, a->value_heads, 1);
        break;
    case VP_LINEAR_KDA:
        add_vector(m, "ssm_dt", ".bias", values);
        add(m, "ssm_a", "", VP_DTYPE_FP32, 1, a->value_heads, 1);
        break;
    case VP_LINEAR_GATED_DELTA:
        add_vector(m, "ssm_dt", ".bias", a->value_heads);
        add_vector(m, "ssm_a", "", a->value_heads);
        break;
    default:
        add_vector(m, "ssm_a", "", op->vector);
    }
}

static void state_norm(struct maker *m, const struct vp_op *op) {
    const struct vp_attention *a = recurrent_half(m);
    if (a->linear == VP_LINEAR_MAMBA1) {
        add_vector(m, "ssm_dt_norm", ".weight", a->step_rank);
        add_vector(m, "ssm_b_norm", ".weight", a->key_dim);
        add_vector(m, "ssm_c_norm", ".weight", a->key_dim);
    } else if (a->linear == VP_LINEAR_MAMBA2 && op->in % a->key_heads == 0) {
        add(m, "ssm_norm", ".weight", VP_DTYPE_FP32, op->in / a->key_heads, a->key_heads, 1);
    } else {
        norm(m, op, "ssm_norm");
    }
}

/* Two projections side by side are two tensors. */
static void two_halves(struct maker *m, const struct vp_op *op, const char *first,
                       const char *second) {
    enum vp_dtype type = asked(m, op->role);
    add(m, first, ".weight", type, op->in, op->out / 2, 1);
    add(m, second, ".weight", type, op->in, op->out - op->out / 2, 1);
}

/* ---- any operator ---- */

static bool is_kda(const struct maker *m) { return recurrent_half(m)->linear == VP_LINEAR_KDA; }

/* A matrix, or one for each expert as a third dimension, and its biases. */
static void matrix(struct maker *m, const struct vp_op *op, const char *stem) {
    uint64_t count = op->matrices;
    bool own_scheme = m->block && stem_of(op->role);
    enum vp_dtype type = own_scheme ? asked(m, op->role) : VP_DTYPE_FP16;
    if (count > 0)
        add(m, stem, ".weight", type, op->in, op->out, count);
    if (op->vector > 0 && count > 0)
        add(m, stem, ".bias", VP_DTYPE_FP32, op->vector / count, count, 1);
    else if (op->vector > 0)
        add_vector(m, stem, ".weight", op->vector);
}

static bool special(struct maker *m, const struct vp_op *op) {
    switch (op->role) {
    case VP_ROLE_NORM:
        block_norm(m, op);
        return true;
    case VP_ROLE_QK_NORM:
        qk_norm(m, op);
        return true;
    case VP_ROLE_Q_A_NORM:
        norm(m, op, "attn_q_a_norm");
        return true;
    case VP_ROLE_KV_A_NORM:
        norm(m, op, "attn_kv_a_norm");
        return true;
    case VP_ROLE_INDEX_NORM:
        norm(m, op, "indexer.k_norm");
        return true;
    case VP_ROLE_KV_B:
        latent_up(m, op);
        return true;
    case VP_ROLE_SINKS:
        add_vector(m, "attn_sinks", ".weight", op->vector);
        return true;
    case VP_ROLE_ROUTER_BIAS:
        add_vector(m, "exp_probs_b", ".bias", op->vector);
        return true;
    case VP_ROLE_LINEAR_IN:
        linear_in(m, op);
        return true;
    case VP_ROLE_LINEAR_CONV:
        linear_conv(m);
        return true;
    case VP_ROLE_LINEAR_STATE:
        linear_state(m, op);
        return true;
    case VP_ROLE_LINEAR_NORM:
        state_norm(m, op);
        return true;
    case VP_ROLE_LINEAR_LOW:
        two_halves(m, op, "ssm_f_a", "ssm_g_a");
        return true;
    case VP_ROLE_LINEAR_GATES:
        if (recurrent_half(m)->linear == VP_LINEAR_GATED_DELTA)
            two_halves(m, op, "ssm_alpha", "ssm_beta");
        else
            matrix(m, op, "ssm_beta");
        return true;
    case VP_ROLE_LINEAR_HIGH:
        if (is_kda(m))
            two_halves(m, op, "ssm_f_b", "ssm_g_b");
        else
            matrix(m, op, "ssm_dt");
        return true;
    case VP_ROLE_LINEAR_OUT:
        matrix(m, op,
               recurrent_half(m)->linear == VP_LINEAR_SHORT_CONV ? "shortconv.out_proj"
               : is_kda(m)                                       ? "attn_output"
                                                                 : "ssm_out");
        return true;
    default:
        return false;
    }
}

static void block(struct maker *m, const struct vp_block *layer, int32_t index) {
    struct vp_ops ops;
    m->block = layer;
    m->layer = index;
    m->norms = 0;
    vp_ops_block(&ops, m->model, layer);
    m->overflow |= ops.overflow;
    for (uint32_t i = 0; i < ops.count; i++) {
        const struct vp_op *op = &ops.item[i];
        bool owns = op->vector > 0 || op->matrices > 0;
        if (!owns || special(m, op))
            continue;
        const char *stem = stem_of(op->role);
        matrix(m, op, stem ? stem : op->name);
    }
}

/* ---- the ends ---- */

static void input(struct maker *m) {
    const struct vp_model *model = m->model;
    m->layer = -1;
    if (model->embedding)
        add(m, "token_embd", ".weight", converted(&model->schemes[model->embedding_scheme]),
            model->hidden, model->vocab, 1);
    add(m, "position_embd", ".weight", VP_DTYPE_FP32, model->hidden, model->learned_positions, 1);
    add(m, "token_types", ".weight", VP_DTYPE_FP32, model->hidden, model->token_types, 1);
    if (model->embedding_norm) {
        add_vector(m, "token_embd_norm", ".weight", model->hidden);
        if (model->final_norm_kind == VP_NORM_LAYER)
            add_vector(m, "token_embd_norm", ".bias", model->hidden);
    }
}

static void output(struct maker *m) {
    const struct vp_model *model = m->model;
    struct vp_ops ops;
    m->layer = (int32_t)model->layer_count;
    m->block = NULL;
    vp_ops_last(&ops, model);
    m->overflow |= ops.overflow;
    for (uint32_t i = 0; i < ops.count; i++) {
        const struct vp_op *op = &ops.item[i];
        if (op->role == VP_ROLE_FINAL_NORM) {
            norm(m, op, "output_norm");
        } else if (op->role == VP_ROLE_LM_HEAD) {
            add(m, "output", ".weight", converted(&model->schemes[model->head_scheme]), op->in,
                op->matrices ? op->out : 0, 1);
            if (op->vector)
                add_vector(m, "output", ".bias", op->vector);
        } else if (op->vector) {
            add_vector(m, "output_hc", ".weight", op->vector);
        }
    }
}

const struct vp_gguf_table *vp_gguf_make(struct vp_arena *arena, const struct vp_model *model) {
    if (model->gguf)
        return model->gguf;
    struct maker m = {.arena = arena, .model = model};
    m.table = VP_NEW(arena, struct vp_gguf_table);
    m.table->made_up = true;
    m.table->alignment = 32;
    m.table->parts = 1;
    m.table->architecture = model->gguf_keys ? model->model_type : NULL;
    input(&m);
    for (uint32_t i = 0; i < model->layer_count; i++)
        block(&m, &model->blocks[model->layers[i]], (int32_t)i);
    output(&m);
    return vp_gguf_total(m.table) && !m.overflow ? m.table : NULL;
}
