/* vp_model_validate: what must hold between the sizes of a model. */
#include "planner/model/model.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "planner/base/text.h"

/* What a size is called in config.json and in hand-written blocks. */
struct key {
    const char *config, *blocks;
};

#define KEY(name, config, blocks) static const struct key name = {config, blocks}
KEY(K_LAYERS, "num_hidden_layers", "blocks");
KEY(K_HIDDEN, "hidden_size", "hidden_size");
KEY(K_VOCAB, "vocab_size", "vocab_size");
KEY(K_POSITIONS, "max_position_embeddings", "position_embeddings");
KEY(K_HEADS, "num_attention_heads", "heads");
KEY(K_KV_HEADS, "num_key_value_heads", "kv_heads");
KEY(K_HEAD_DIM, "head_dim", "head_dim");
KEY(K_V_HEAD_DIM, "v_head_dim", "v_head_dim");
KEY(K_Q_RANK, "q_lora_rank", "q_lora_rank");
KEY(K_KV_RANK, "kv_lora_rank", "kv_lora_rank");
KEY(K_NOPE_DIM, "qk_nope_head_dim", "qk_nope_head_dim");
KEY(K_INDEX_HEADS, "index_n_heads", "index_n_heads");
KEY(K_INDEX_DIM, "index_head_dim", "index_head_dim");
KEY(K_WIDTH, "intermediate_size", "intermediate_size");
KEY(K_EXPERTS, "num_experts", "experts");
KEY(K_TOP_K, "num_experts_per_tok", "top_k");
KEY(K_EXPERT_WIDTH, "moe_intermediate_size", "intermediate_size");
KEY(K_SHARED_WIDTH, "shared_expert_intermediate_size", "shared_intermediate_size");

KEY(K_OUT_GROUPS, "o_groups", "out_groups");
KEY(K_OUT_RANK, "o_lora_rank", "out_lora_rank");

struct linear_keys {
    struct key key_heads, key_dim, value_heads, value_dim, conv_kernel;
};

static const struct linear_keys LINEAR_KEYS[] = {
    [VP_LINEAR_GATED_DELTA] = {{"linear_num_key_heads", "key_heads"},
                               {"linear_key_head_dim", "key_dim"},
                               {"linear_num_value_heads", "value_heads"},
                               {"linear_value_head_dim", "value_dim"},
                               {"linear_conv_kernel_dim", "conv_kernel"}},
    [VP_LINEAR_KDA] = {{"linear_attn_config.num_heads", "key_heads"},
                       {"linear_attn_config.head_dim", "key_dim"},
                       {"linear_attn_config.num_heads", "value_heads"},
                       {"linear_attn_config.head_dim", "value_dim"},
                       {"linear_attn_config.short_conv_kernel_size", "conv_kernel"}},
    [VP_LINEAR_MAMBA2] = {{"n_groups", "key_heads"},
                          {"ssm_state_size", "key_dim"},
                          {"mamba_num_heads", "value_heads"},
                          {"mamba_head_dim", "value_dim"},
                          {"conv_kernel", "conv_kernel"}},
    [VP_LINEAR_MAMBA1] = {{"n_groups", "key_heads"},
                          {"state_size", "key_dim"},
                          {"n_groups", "value_heads"},
                          {"intermediate_size", "value_dim"},
                          {"conv_kernel", "conv_kernel"}},
    [VP_LINEAR_LIGHTNING] = {{"num_attention_heads", "key_heads"},
                             {"head_dim", "key_dim"},
                             {"num_attention_heads", "value_heads"},
                             {"head_dim", "value_dim"},
                             {"conv_kernel", "conv_kernel"}},
};

struct check {
    struct vp_ctx *ctx;
    const struct vp_model *model;
    bool by_hand;
    uint32_t layer; /* first layer of the block that is checked */
    bool in_layer;
    uint32_t faults;
    struct vp_sum elements; /* of all tensors, for the overflow check */
};

static const char *name(const struct check *check, struct key key) {
    return check->by_hand ? key.blocks : key.config;
}

static void fault(struct check *check, struct key key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void fault(struct check *check, struct key key, const char *format, ...) {
    char what[200];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    check->faults++;
    if (check->in_layer && check->model->block_count > 1)
        vp_diag_add(check->ctx->diags, VP_D_MODEL_FIELD, &check->model->pos,
                    "%s: %s (layer %" PRIu32 ")", name(check, key), what, check->layer);
    else
        vp_diag_add(check->ctx->diags, VP_D_MODEL_FIELD, &check->model->pos, "%s: %s",
                    name(check, key), what);
}

static bool positive(struct check *check, struct key key, uint64_t v) {
    if (v == 0)
        fault(check, key, "must be at least 1");
    return v > 0;
}

/* a must be a multiple of b; both are at least 1. */
static void divides(struct check *check, struct key a_key, uint64_t a, struct key b_key,
                    uint64_t b) {
    if (a % b != 0)
        fault(check, a_key, "%" PRIu64 " is not a multiple of %s %" PRIu64, a, name(check, b_key),
              b);
}

/* One tensor (or `count` equal ones) of count x a x b elements. */
static void product(struct check *check, uint64_t count, struct key a_key, uint64_t a,
                    struct key b_key, uint64_t b) {
    struct vp_sum size = vp_sum_mul(vp_sum_mul(vp_sum(a), b), count);
    if (size.overflow)
        fault(check, a_key, "%" PRIu64 " times %s %" PRIu64 " exceeds 64 bits", a,
              name(check, b_key), b);
    else
        check->elements = vp_sum_plus(check->elements, size);
}

/* heads 0 is enough for the cache: a hand-written description of the attention alone. */
static bool heads_given(struct check *check, const struct vp_block *block,
                        const struct vp_attention *a) {
    bool alone = block->mlp.kind == VP_MLP_NONE && block->moe.kind == VP_MLP_NONE;
    if (a->heads > 0)
        return true;
    if (!(check->by_hand && alone))
        fault(check, K_HEADS, "must be at least 1");
    return false;
}

static void check_gqa(struct check *check, const struct vp_block *block,
                      const struct vp_attention *a) {
    bool heads = heads_given(check, block, a);
    bool kv_heads = positive(check, K_KV_HEADS, a->kv_heads);
    if (heads && kv_heads) {
        if (a->kv_heads > a->heads)
            fault(check, K_KV_HEADS, "%" PRIu64 " is more than %s %" PRIu64, a->kv_heads,
                  name(check, K_HEADS), a->heads);
        else
            divides(check, K_HEADS, a->heads, K_KV_HEADS, a->kv_heads);
    }
    positive(check, K_HEAD_DIM, a->head_dim);
    positive(check, K_V_HEAD_DIM, a->v_head_dim);
    if (a->rotary_dim > a->head_dim)
        fault(check, K_HEAD_DIM, "%" PRIu64 " is less than its rotary part %" PRIu64, a->head_dim,
              a->rotary_dim);

    struct vp_sum q = vp_sum_mul(vp_sum(a->heads), a->output_gate ? 2 : 1);
    uint64_t widest = vp_max(a->head_dim, a->v_head_dim);
    uint64_t all_heads = vp_max(q.overflow ? UINT64_MAX : q.v, a->kv_heads);
    struct vp_sum width = vp_sum_mul(vp_sum(all_heads), widest);
    if (width.overflow)
        fault(check, K_HEADS, "%" PRIu64 " times %s %" PRIu64 " exceeds 64 bits", a->heads,
              name(check, K_HEAD_DIM), widest);
    else
        product(check, 4, K_HIDDEN, vp_max(check->model->hidden, 1), K_HEADS, width.v);
}

static void check_mla(struct check *check, const struct vp_block *block,
                      const struct vp_attention *a) {
    uint64_t hidden = vp_max(check->model->hidden, 1);
    heads_given(check, block, a);
    positive(check, K_KV_RANK, a->kv_lora_rank);
    if (a->heads > 0) {
        positive(check, K_V_HEAD_DIM, a->v_head_dim);
        if (a->qk_nope_head_dim == 0 && a->qk_rope_head_dim == 0)
            fault(check, K_NOPE_DIM, "must be at least 1");
    }
    if ((a->index_heads == 0) != (a->index_head_dim == 0))
        positive(check, a->index_heads == 0 ? K_INDEX_HEADS : K_INDEX_DIM, 0);

    struct vp_sum dim =
        vp_sum_add(vp_sum_add(vp_sum(a->qk_nope_head_dim), a->qk_rope_head_dim), a->v_head_dim);
    struct vp_sum width = vp_sum_mul(dim, vp_max(a->heads, 1));
    struct vp_sum rank = vp_sum_add(vp_sum_add(vp_sum(a->q_lora_rank), a->kv_lora_rank), hidden);
    struct vp_sum index = vp_sum_mul(vp_sum(a->index_heads), a->index_head_dim);
    if (width.overflow || rank.overflow || index.overflow) {
        fault(check,
              width.overflow   ? K_HEADS
              : index.overflow ? K_INDEX_HEADS
                               : K_KV_RANK,
              "the projections exceed 64 bits");
        return;
    }
    product(check, 1, K_HEADS, width.v, K_KV_RANK, rank.v);
    product(check, 1, K_HIDDEN, hidden, K_Q_RANK, a->q_lora_rank);
    product(check, 1, K_HIDDEN, hidden, K_KV_RANK, a->kv_lora_rank);
    product(check, 2, K_HIDDEN, vp_max(hidden, a->q_lora_rank), K_INDEX_HEADS, index.v);
}

static void check_short_conv(struct check *check, const struct vp_attention *a) {
    static const struct key width = {"conv_dim", "conv_channels"};
    static const struct key kernel = {"conv_L_cache", "conv_kernel"};
    if (positive(check, width, a->conv_channels) && positive(check, kernel, a->conv_kernel))
        product(check, 4, K_HIDDEN, vp_max(check->model->hidden, 1), width, a->conv_channels);
}

/* DeepSeek V4: one vector per token is key and value. */
static void check_compressed(struct check *check, const struct vp_attention *a) {
    uint64_t hidden = vp_max(check->model->hidden, 1);
    bool heads = positive(check, K_HEADS, a->heads);
    bool groups = positive(check, K_OUT_GROUPS, a->out_groups);
    positive(check, K_HEAD_DIM, a->head_dim);
    positive(check, K_Q_RANK, a->q_lora_rank);
    positive(check, K_OUT_RANK, a->out_lora_rank);
    positive(check, (struct key){"sliding_window", "window"}, a->window);
    if (heads && groups)
        divides(check, K_HEADS, a->heads, K_OUT_GROUPS, a->out_groups);
    if ((a->index_heads == 0) != (a->index_head_dim == 0))
        positive(check, a->index_heads == 0 ? K_INDEX_HEADS : K_INDEX_DIM, 0);

    struct vp_sum width = vp_sum_mul(vp_sum(a->heads), a->head_dim);
    struct vp_sum low = vp_sum_mul(vp_sum(a->out_groups), a->out_lora_rank);
    if (width.overflow || low.overflow) {
        fault(check, width.overflow ? K_HEADS : K_OUT_GROUPS, "the projections exceed 64 bits");
        return;
    }
    product(check, 1, K_HEADS, width.v, K_Q_RANK, vp_max(a->q_lora_rank, a->out_lora_rank));
    product(check, 2, K_HIDDEN, hidden, K_OUT_GROUPS, vp_max(low.v, a->q_lora_rank));
    product(check, 8, K_HIDDEN, hidden, K_HEAD_DIM, vp_max(a->head_dim, a->index_head_dim));
}

static void check_linear(struct check *check, const struct vp_attention *a) {
    static const struct key rank = {"time_step_rank", "step_rank"};
    if (a->linear == VP_LINEAR_SHORT_CONV) {
        check_short_conv(check, a);
        return;
    }
    if (a->linear == VP_LINEAR_GIVEN) {
        check->elements = vp_sum_add(check->elements, a->parameters);
        check->elements = vp_sum_add(check->elements, a->state_elements);
        return;
    }
    const struct linear_keys *keys = &LINEAR_KEYS[a->linear];
    bool heads = positive(check, keys->key_heads, a->key_heads);
    heads &= positive(check, keys->value_heads, a->value_heads);
    positive(check, keys->key_dim, a->key_dim);
    positive(check, keys->value_dim, a->value_dim);
    if (a->linear != VP_LINEAR_LIGHTNING)
        positive(check, keys->conv_kernel, a->conv_kernel);
    if (a->linear == VP_LINEAR_MAMBA1)
        positive(check, rank, a->step_rank);
    if (heads)
        divides(check, keys->value_heads, a->value_heads, keys->key_heads, a->key_heads);

    struct vp_sum keys_width = vp_sum_mul(vp_sum(a->key_heads), a->key_dim);
    struct vp_sum width = vp_sum_mul(vp_sum(a->value_heads), a->value_dim);
    if (keys_width.overflow || width.overflow) {
        fault(check, keys_width.overflow ? keys->key_heads : keys->value_heads,
              "the projections exceed 64 bits");
        return;
    }
    uint64_t hidden = vp_max(check->model->hidden, 1);
    product(check, 2, K_HIDDEN, hidden, keys->key_heads, keys_width.v);
    product(check, 4, K_HIDDEN, hidden, keys->value_heads, width.v);
    product(check, 1, keys->key_dim, a->key_dim, keys->value_heads, width.v); /* the state */
    product(check, 1, keys->conv_kernel, a->conv_kernel, keys->value_heads, a->conv_channels);
}

static void check_attention(struct check *check, const struct vp_block *block,
                            const struct vp_attention *a) {
    switch (a->kind) {
    case VP_ATTENTION_NONE:
        break;
    case VP_ATTENTION_GQA:
        check_gqa(check, block, a);
        break;
    case VP_ATTENTION_MLA:
        check_mla(check, block, a);
        break;
    case VP_ATTENTION_LINEAR:
        check_linear(check, a);
        break;
    case VP_ATTENTION_COMPRESSED:
        check_compressed(check, a);
        break;
    }
}

static void check_feed_forward(struct check *check, const struct vp_block *block) {
    const struct vp_mlp *mlp = &block->mlp;
    const struct vp_moe *moe = &block->moe;
    uint64_t hidden = vp_max(check->model->hidden, 1);
    if (mlp->kind != VP_MLP_NONE && positive(check, K_WIDTH, mlp->intermediate))
        product(check, (uint64_t)mlp->kind, K_WIDTH, mlp->intermediate, K_HIDDEN, hidden);
    if (moe->kind == VP_MLP_NONE)
        return;
    bool experts = positive(check, K_EXPERTS, moe->experts);
    bool top_k = positive(check, K_TOP_K, moe->top_k);
    if (experts && top_k && moe->top_k > moe->experts)
        fault(check, K_TOP_K, "%" PRIu64 " is more than %s %" PRIu64, moe->top_k,
              name(check, K_EXPERTS), moe->experts);
    if (positive(check, K_EXPERT_WIDTH, moe->intermediate)) {
        uint64_t width = vp_max(hidden, moe->input);
        struct vp_sum one = vp_sum_mul(vp_sum_mul(vp_sum(width), moe->intermediate), moe->kind);
        if (one.overflow)
            product(check, (uint64_t)moe->kind, K_EXPERT_WIDTH, moe->intermediate, K_HIDDEN, width);
        else
            product(check, 1, K_EXPERTS, moe->experts, K_EXPERT_WIDTH, one.v);
    }
    product(check, (uint64_t)moe->kind, K_SHARED_WIDTH, moe->shared_intermediate, K_HIDDEN, hidden);
    product(check, 1, K_EXPERTS, moe->experts, K_HIDDEN, hidden);
}

/* The width may be left out only where nothing has it: a description for the cache alone. */
static bool needs_hidden(const struct vp_model *model) {
    if (model->embedding || model->lm_head || model->final_norm || model->learned_positions)
        return true;
    for (uint32_t i = 0; i < model->block_count; i++) {
        const struct vp_block *block = &model->blocks[i];
        if (block->norms || block->mlp.kind != VP_MLP_NONE || block->moe.kind != VP_MLP_NONE)
            return true;
    }
    return false;
}

static void check_ends(struct check *check) {
    const struct vp_model *model = check->model;
    if (needs_hidden(model))
        positive(check, K_HIDDEN, model->hidden);
    if (model->embedding || model->lm_head) {
        if (positive(check, K_VOCAB, model->vocab))
            product(check, 2, K_VOCAB, model->vocab, K_HIDDEN, model->hidden);
    }
    if (model->tied && model->lm_head && !model->embedding)
        fault(check, (struct key){"tie_word_embeddings", "tie_word_embeddings"},
              "there is no embedding that the head could share");
    product(check, 1, K_POSITIONS, model->learned_positions, K_HIDDEN, model->hidden);
    product(check, model->hyper, (struct key){"hc_mult", "hyper"}, model->hyper, K_HIDDEN,
            model->hidden);
}

static bool check_layers(struct check *check) {
    const struct vp_model *model = check->model;
    if (model->layer_count == 0)
        fault(check, K_LAYERS, "the model has no layers");
    else if (model->layer_count > VP_MAX_LAYERS)
        fault(check, K_LAYERS, "%" PRIu32 " is more than %d", model->layer_count, VP_MAX_LAYERS);
    else if (model->block_count > VP_MAX_BLOCKS)
        fault(check, K_LAYERS, "more than %d kinds of layers", VP_MAX_BLOCKS);
    else
        return true;
    return false;
}

enum vp_status vp_model_validate(struct vp_ctx *ctx, const struct vp_model *model) {
    struct check check = {.ctx = ctx, .model = model, .elements = vp_sum(0)};
    check.by_hand = vp_text_eq(model->model_type, "blocks");
    if (!check_layers(&check))
        return VP_ERR_INPUT;
    check_ends(&check);

    uint32_t seen = 0; /* block kinds are numbered in the order of their first layers */
    check.in_layer = true;
    for (uint32_t layer = 0; layer < model->layer_count && seen < model->block_count; layer++) {
        if (model->layers[layer] != seen)
            continue;
        const struct vp_block *block = &model->blocks[seen++];
        struct vp_sum before = check.elements;
        check.layer = layer;
        check.elements = vp_sum_mul(vp_sum(block->norms), vp_max(model->hidden, 1));
        check_attention(&check, block, &block->attention);
        check_attention(&check, block, &block->second);
        check_feed_forward(&check, block);
        check.elements = vp_sum_plus(before, vp_sum_mul(check.elements, block->count));
    }
    check.in_layer = false;

    /* 16 bytes per element leave room for what is kept beside a weight. */
    if (check.faults == 0 && vp_sum_mul(check.elements, 16).overflow)
        fault(&check, K_LAYERS, "the sizes of all %" PRIu32 " layers together exceed 64 bits",
              model->layer_count);
    return check.faults ? VP_ERR_INPUT : VP_OK;
}
