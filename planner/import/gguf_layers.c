/* One layer of a GGUF model: its mixer, its feed-forward, its norms. What the tensors say outranks
 * what the architecture's traits say. */
#include "planner/import/gguf_parts.h"

#define FACT(name) vp_gguf_fact(s, layer, VP_GGUF_FACT_##name)

static bool trait(const struct vp_gguf_source *s, unsigned bit) {
    return (s->arch->traits & bit) != 0;
}

static bool extra(const struct vp_gguf_source *s, unsigned bit) {
    return (s->arch->extra & bit) != 0;
}

/* a x b; beyond 2^62 a fault that names the key. */
static uint64_t product(struct vp_gguf_source *s, const char *key, uint64_t a, uint64_t b) {
    struct vp_sum v = vp_sum_mul(vp_sum(a), b);
    if (!v.overflow && v.v < UINT64_C(1) << 62)
        return v.v;
    vp_gguf_key_fault(&s->k, vp_gguf_key(&s->k, key), key, ": a tensor of this size is too large");
    return 0;
}

/* ---- recurrent mixers; their states are f32 in llama.cpp ---- */

static void mamba1(struct vp_gguf_source *s, struct vp_attention *a, uint32_t layer) {
    a->linear = VP_LINEAR_MAMBA1;
    a->key_heads = a->value_heads = 1;
    a->key_dim = vp_gguf_key_size(&s->k, "ssm.state_size");
    a->value_dim = a->conv_channels = vp_gguf_key_size(&s->k, "ssm.inner_size");
    a->conv_kernel = vp_gguf_key_size(&s->k, "ssm.conv_kernel");
    a->step_rank = vp_gguf_key_size(&s->k, "ssm.time_step_rank");
    a->conv_bias = true;
    a->state_norms = FACT(SSM_DT_NORM) != NULL;
    a->state_elements = product(s, "ssm.inner_size", a->value_dim, a->key_dim);
}

static void mamba2(struct vp_gguf_source *s, struct vp_attention *a, uint32_t layer) {
    uint64_t inner = vp_gguf_key_size(&s->k, "ssm.inner_size");
    a->linear = VP_LINEAR_MAMBA2;
    a->value_heads = vp_gguf_key_size(&s->k, "ssm.time_step_rank");
    a->key_heads = vp_gguf_key_size(&s->k, "ssm.group_count");
    a->key_dim = vp_gguf_key_size(&s->k, "ssm.state_size");
    a->conv_kernel = vp_gguf_key_size(&s->k, "ssm.conv_kernel");
    if (s->k.failed)
        return;
    if (inner % a->value_heads != 0)
        vp_gguf_key_fault(&s->k, vp_gguf_key(&s->k, "ssm.inner_size"), "ssm.inner_size",
                          " is not a multiple of ssm.time_step_rank");
    a->value_dim = inner / a->value_heads;
    a->conv_bias = !s->has_table || FACT(SSM_CONV_BIAS);
    a->no_norm = s->has_table && !FACT(SSM_NORM);
    a->conv_channels = inner + 2 * product(s, "ssm.state_size", a->key_heads, a->key_dim);
    a->state_elements = product(s, "ssm.inner_size", inner, a->key_dim);
}

/* Keys and values have heads of one size, ssm.state_size. */
static void delta(struct vp_gguf_source *s, struct vp_attention *a) {
    uint64_t inner = vp_gguf_key_size(&s->k, "ssm.inner_size");
    a->linear = VP_LINEAR_GATED_DELTA;
    a->key_heads = vp_gguf_key_size(&s->k, "ssm.group_count");
    a->value_heads = vp_gguf_key_size(&s->k, "ssm.time_step_rank");
    a->key_dim = a->value_dim = vp_gguf_key_size(&s->k, "ssm.state_size");
    a->conv_kernel = vp_gguf_key_size(&s->k, "ssm.conv_kernel");
    if (!s->k.failed && a->value_heads * a->value_dim != inner)
        vp_gguf_key_fault(&s->k, vp_gguf_key(&s->k, "ssm.inner_size"), "ssm.inner_size",
                          " is not ssm.time_step_rank times ssm.state_size");
    a->conv_channels = inner + 2 * product(s, "ssm.state_size", a->key_heads, a->key_dim);
    a->state_elements = product(s, "ssm.inner_size", inner, a->key_dim);
}

static void kda(struct vp_gguf_source *s, struct vp_attention *a) {
    a->linear = VP_LINEAR_KDA;
    a->key_heads = a->value_heads = vp_gguf_key_or(&s->k, "attention.head_count", 0);
    a->key_dim = a->value_dim = vp_gguf_key_size(&s->k, "kda.head_dim");
    a->conv_kernel = vp_gguf_key_size(&s->k, "ssm.conv_kernel");
    uint64_t width = product(s, "kda.head_dim", a->key_heads, a->key_dim);
    a->conv_channels = 3 * width;
    a->state_elements = product(s, "kda.head_dim", width, a->key_dim);
}

static void short_conv(struct vp_gguf_source *s, struct vp_attention *a) {
    a->linear = VP_LINEAR_SHORT_CONV;
    a->value_heads = 1;
    a->value_dim = a->conv_channels = s->model->hidden;
    a->conv_kernel = vp_gguf_key_size(&s->k, "shortconv.l_cache");
}

/* RWKV 6 and 7: what mixes time differs between versions, the state does not: per head a square
 * matrix, and token_shift_count last inputs. The parameters are those of the layer's tensors. */
static void rwkv(struct vp_gguf_source *s, struct vp_attention *a, const struct vp_block *block,
                 uint32_t layer) {
    uint64_t hidden = s->model->hidden;
    uint64_t norms = (uint64_t)block->norms * hidden * (block->norm == VP_NORM_LAYER ? 2 : 1);
    uint64_t mlp = block->mlp.kind == VP_MLP_GATED ? 3 * hidden * block->mlp.intermediate : 0;
    a->linear = VP_LINEAR_GIVEN;
    a->parameters = vp_above(s->facts.layer[layer].elements, norms + mlp);
    a->state_elements =
        product(s, "wkv.head_size", hidden, vp_gguf_key_size(&s->k, "wkv.head_size"));
    a->conv_channels = hidden * vp_min(vp_gguf_key_or(&s->k, "token_shift_count", 2), 64);
    a->conv_kernel = 2; /* one column */
}

static void recurrent(struct vp_gguf_source *s, struct vp_attention *a,
                      const struct vp_block *block, uint32_t layer) {
    *a = (struct vp_attention){.kind = VP_ATTENTION_LINEAR, .state_dtype = VP_DTYPE_FP32};
    switch (s->arch->mixer) {
    case VP_GM_MAMBA1:
        mamba1(s, a, layer);
        break;
    case VP_GM_MAMBA2:
        mamba2(s, a, layer);
        break;
    case VP_GM_DELTA:
        delta(s, a);
        break;
    case VP_GM_KDA:
        kda(s, a);
        break;
    case VP_GM_SHORT_CONV:
        short_conv(s, a);
        break;
    case VP_GM_RWKV:
        rwkv(s, a, block, layer);
        break;
    case VP_GM_NONE:
        break;
    }
}

/* Whether the layer has a recurrent mixer in the place of attention. */
static bool is_recurrent(struct vp_gguf_source *s, uint32_t layer) {
    enum { DEFAULT_INTERVAL = 4 };
    if (s->arch->mixer == VP_GM_NONE || extra(s, VP_G_BESIDE))
        return false;
    if (extra(s, VP_G_RECURRENT))
        return true;
    if (s->has_table)
        return FACT(SSM_OUT) || FACT(SSM_NORM) || FACT(SHORTCONV);
    if (s->arch->mixer == VP_GM_DELTA) {
        if (vp_gguf_key(&s->k, "attention.recurrent_layers"))
            return vp_gguf_key_at(&s->k, "attention.recurrent_layers", layer, 0) != 0;
        uint64_t interval = vp_gguf_key_or(&s->k, "full_attention_interval", DEFAULT_INTERVAL);
        return interval == 0 || (layer + 1) % interval != 0;
    }
    bool feed_forward = vp_gguf_key_at(&s->k, "feed_forward_length", layer, 0) > 0;
    return vp_gguf_key_at(&s->k, "attention.head_count_kv", layer, 1) == 0 &&
           !(extra(s, VP_G_ONE_HALF) && feed_forward);
}

/* ---- attention ---- */

static bool slides(struct vp_gguf_source *s, uint32_t layer) {
    const struct vp_node *pattern = vp_gguf_key(&s->k, "attention.sliding_window_pattern");
    uint64_t period = s->arch->period;
    if (pattern && pattern->kind == VP_NODE_LIST)
        return vp_gguf_key_at(&s->k, "attention.sliding_window_pattern", layer, 0) != 0;
    if (pattern)
        period = vp_gguf_key_or(&s->k, "attention.sliding_window_pattern", period);
    else if (period == 0)
        return false;
    return period == 0 || layer % period < period - 1;
}

static void set_window(struct vp_gguf_source *s, struct vp_attention *a, uint32_t layer) {
    uint64_t window = vp_gguf_key_or(&s->k, "attention.sliding_window", s->arch->window);
    if (s->arch->period == 0 && !vp_gguf_key(&s->k, "attention.sliding_window_pattern"))
        return;
    if (window == 0 || !slides(s, layer))
        return;
    if (extra(s, VP_G_CHUNKED)) {
        a->chunk = s->arch->window; /* llama.cpp does not read another size */
        return;
    }
    a->window = window;
    a->head_dim = vp_gguf_key_or(&s->k, "attention.key_length_swa", a->head_dim);
    a->v_head_dim = vp_gguf_key_or(&s->k, "attention.value_length_swa", a->v_head_dim);
    a->rotary_dim =
        vp_gguf_key_or(&s->k, "rope.dimension_count_swa", vp_min(a->rotary_dim, a->head_dim));
}

/* The last layers read the cache of an earlier one. Gemma 3n has 20 with a cache of their own
 * whatever it says (llama.cpp gemma3n.cpp). */
static bool shares_cache(struct vp_gguf_source *s, uint32_t layer) {
    enum { GEMMA3N_OWN = 20 };
    uint64_t fallback = s->arch->period > 0 ? vp_above(s->k.layers, GEMMA3N_OWN) : 0;
    if (!extra(s, VP_G_KV_FROM_START))
        return false;
    return layer >=
           vp_above(s->k.layers, vp_gguf_key_or(&s->k, "attention.shared_kv_layers", fallback));
}

static void attention_of_tensors(struct vp_gguf_source *s, struct vp_attention *a, uint32_t layer) {
    const struct vp_gguf_tensor *norm = FACT(ATTN_K_NORM), *q = FACT(ATTN_Q);
    bool fused_bias = FACT(ATTN_QKV_BIAS) != NULL;
    a->qkv_bias = FACT(ATTN_Q_BIAS) || fused_bias;
    a->no_key_bias = FACT(ATTN_Q_BIAS) && !FACT(ATTN_K_BIAS);
    a->out_bias = FACT(ATTN_OUT_BIAS) != NULL;
    a->sinks = FACT(ATTN_SINKS) != NULL;
    a->qk_norm = !norm                           ? VP_QK_NORM_NONE
                 : norm->elements == a->head_dim ? VP_QK_NORM_HEAD
                                                 : VP_QK_NORM_FULL;
    a->key_is_value = q && !FACT(ATTN_V) && !a->shares_cache;
    a->output_gate = q && q->ne[1] == 2 * a->heads * a->head_dim;
    a->head_gate = FACT(ATTN_GATE) && FACT(ATTN_GATE)->ne[1] == a->heads;
}

static void grouped(struct vp_gguf_source *s, struct vp_attention *a, uint32_t layer) {
    uint64_t heads = vp_gguf_key_at(&s->k, "attention.head_count", layer, 0);
    uint64_t kv_heads = vp_gguf_key_at(&s->k, "attention.head_count_kv", layer, heads);
    if (s->k.failed || heads == 0 || kv_heads == 0) {
        if (!vp_gguf_key(&s->k, "attention.head_count"))
            vp_gguf_key_size(&s->k, "attention.head_count");
        return; /* a layer without attention */
    }
    /* the fallback is of the first layer, also where heads differ */
    uint64_t first = vp_max(vp_gguf_key_at(&s->k, "attention.head_count", 0, heads), 1);
    a->kind = VP_ATTENTION_GQA;
    a->heads = heads;
    a->kv_heads = kv_heads;
    a->head_dim = vp_gguf_key_or(&s->k, "attention.key_length", s->model->hidden / first);
    a->v_head_dim = vp_gguf_key_or(&s->k, "attention.value_length", s->model->hidden / first);
    a->rotary_dim =
        trait(s, VP_T_NO_ROTARY) ? 0 : vp_gguf_key_or(&s->k, "rope.dimension_count", a->head_dim);
    a->bidirectional = trait(s, VP_T_ENCODER);
    set_window(s, a, layer);
    a->shares_cache = shares_cache(s, layer);
    if (s->has_table) {
        attention_of_tensors(s, a, layer);
        return;
    }
    a->qkv_bias = trait(s, VP_T_QKV_BIAS);
    a->out_bias = trait(s, VP_T_OUT_BIAS);
    a->qk_norm = trait(s, VP_T_QK_NORM)   ? VP_QK_NORM_HEAD
                 : trait(s, VP_T_QK_FULL) ? VP_QK_NORM_FULL
                                          : VP_QK_NORM_NONE;
    a->output_gate = extra(s, VP_G_GATED_QUERY);
    a->sinks = extra(s, VP_G_SINKS);
}

/* Newer files say the sizes of the heads beside those of what is cached; files from before 2025,
 * and MiniCPM3, have no such keys: keys and values are then cached head by head. */
static void latent(struct vp_gguf_source *s, struct vp_attention *a) {
    bool split = vp_gguf_key(&s->k, "attention.key_length_mla") != NULL;
    uint64_t key =
        vp_gguf_key_size(&s->k, split ? "attention.key_length_mla" : "attention.key_length");
    uint64_t value =
        vp_gguf_key_size(&s->k, split ? "attention.value_length_mla" : "attention.value_length");
    a->kind = VP_ATTENTION_MLA;
    a->heads = a->kv_heads = vp_gguf_key_or(&s->k, "attention.head_count", 0);
    a->q_lora_rank = vp_gguf_key_or(&s->k, "attention.q_lora_rank", 0);
    a->kv_lora_rank = vp_gguf_key_size(&s->k, "attention.kv_lora_rank");
    a->qk_rope_head_dim = vp_gguf_key_size(&s->k, "rope.dimension_count");
    if (!s->k.failed && key <= a->qk_rope_head_dim)
        vp_gguf_key_fault(&s->k, vp_gguf_key(&s->k, "rope.dimension_count"), "rope.dimension_count",
                          " is not below the length of a key");
    a->qk_nope_head_dim = vp_above(key, a->qk_rope_head_dim);
    a->head_dim = key;
    a->v_head_dim = value;
    a->expanded = !split;
    a->index_heads = vp_gguf_key_or(&s->k, "attention.indexer.head_count", 0);
    a->index_head_dim = vp_gguf_key_or(&s->k, "attention.indexer.key_length", 0);
}

/* ---- feed-forward ---- */

static void experts(struct vp_gguf_source *s, struct vp_block *block, uint32_t layer,
                    uint64_t dense) {
    enum { SIGMOID = 2 };
    struct vp_moe *moe = &block->moe;
    const struct vp_gguf_tensor *down = FACT(EXPERT_DOWN), *shared = FACT(SHARED_DOWN);
    /* DeepSeek V3 and its like, as opposed to V2: they alone correct their scores */
    bool sigmoid = vp_gguf_key_or(&s->k, "expert_gating_func", 0) == SIGMOID;
    moe->kind = trait(s, VP_T_PLAIN_MLP) ? VP_MLP_PLAIN : VP_MLP_GATED;
    moe->experts = vp_gguf_key_size(&s->k, "expert_count");
    moe->top_k = vp_gguf_key_size(&s->k, "expert_used_count");
    if (s->k.failed)
        return;
    uint64_t width = extra(s, VP_G_BY_USED) ? dense / moe->top_k : dense;
    moe->intermediate = vp_gguf_key_or(&s->k, "expert_feed_forward_length", width);
    moe->input = vp_gguf_key_or(&s->k, "moe_latent_size", 0);
    uint64_t count = vp_gguf_key_or(&s->k, "expert_shared_count", 0);
    uint64_t all = product(s, "expert_shared_count", count, moe->intermediate);
    moe->shared_intermediate =
        vp_gguf_key_or(&s->k, "expert_shared_feed_forward_length",
                       all == 0 && extra(s, VP_G_SHARED_WIDTH) ? dense : all);
    moe->shared_switch = extra(s, VP_G_SWITCH);
    moe->score_bias = extra(s, VP_G_SCORE_BIAS) || (extra(s, VP_G_LATENT) && sigmoid);
    moe->bias = moe->router_bias = extra(s, VP_G_EXPERT_BIAS);
    if (!s->has_table)
        return;
    moe->kind = FACT(EXPERT_GATE) || FACT(EXPERT_GATE_UP) ? VP_MLP_GATED : VP_MLP_PLAIN;
    if (down)
        moe->intermediate = down->ne[0];
    moe->shared_intermediate = shared ? shared->ne[0] : 0;
    moe->shared_switch = FACT(SHARED_SWITCH) != NULL;
    moe->score_bias = FACT(SCORE_BIAS) != NULL;
    moe->bias = FACT(EXPERT_BIAS) != NULL;
    moe->router_bias = FACT(ROUTER_BIAS) != NULL;
}

static bool has_experts(struct vp_gguf_source *s, uint32_t layer) {
    if (vp_gguf_key_or(&s->k, "expert_count", 0) == 0)
        return false;
    if (s->has_table)
        return FACT(ROUTER) != NULL;
    uint64_t step = vp_gguf_key_or(&s->k, "interleave_moe_layer_step", 1);
    return layer >= vp_gguf_key_or(&s->k, "leading_dense_block_count", 0) &&
           (step == 0 || (layer + 1) % step == 0);
}

static void dense_of_tensors(struct vp_gguf_source *s, struct vp_mlp *mlp, uint32_t layer) {
    const struct vp_gguf_tensor *down = FACT(FFN_DOWN), *up = FACT(FFN_UP);
    mlp->kind = VP_MLP_NONE;
    if (!down)
        return;
    mlp->intermediate = down->ne[0];
    bool gated = FACT(FFN_GATE) || (up && up->ne[1] == 2 * mlp->intermediate);
    mlp->kind = gated ? VP_MLP_GATED : VP_MLP_PLAIN;
    mlp->bias = FACT(FFN_BIAS) != NULL;
}

static void feed_forward(struct vp_gguf_source *s, struct vp_block *block, uint32_t layer,
                         bool mixes) {
    uint64_t width = vp_gguf_key_at(&s->k, "feed_forward_length", layer, 0);
    struct vp_mlp *mlp = &block->mlp;
    if (has_experts(s, layer) && !(extra(s, VP_G_ONE_HALF) && mixes))
        experts(s, block, layer, width);
    if (s->has_table) {
        dense_of_tensors(s, mlp, layer);
        return;
    }
    if (block->moe.kind != VP_MLP_NONE || width == 0 || (extra(s, VP_G_ONE_HALF) && mixes))
        return;
    mlp->kind = trait(s, VP_T_PLAIN_MLP) ? VP_MLP_PLAIN : VP_MLP_GATED;
    mlp->intermediate = extra(s, VP_G_HALF_WIDTH) ? width / 2 : width;
    mlp->bias = trait(s, VP_T_MLP_BIAS);
}

/* ---- the layer ---- */

static void norms(struct vp_gguf_source *s, struct vp_block *block, uint32_t layer) {
    block->norms = trait(s, VP_T_NORMS4) ? 4 : trait(s, VP_T_ONE_NORM) ? 1 : 2;
    block->norm = trait(s, VP_T_LAYER_NORM)   ? VP_NORM_LAYER
                  : trait(s, VP_T_PLAIN_NORM) ? VP_NORM_PLAIN
                                              : VP_NORM_RMS;
    if (!s->has_table)
        return;
    if (block->norm != VP_NORM_PLAIN)
        block->norms = s->facts.layer[layer].norms;
    if (FACT(NORM))
        block->norm = FACT(NORM_BIAS) ? VP_NORM_LAYER : VP_NORM_RMS;
}

void vp_gguf_fill_layer(struct vp_gguf_source *s, struct vp_block *block, uint32_t layer) {
    bool recurs = is_recurrent(s, layer);
    bool feeds = !s->has_table && extra(s, VP_G_ONE_HALF) &&
                 vp_gguf_key_at(&s->k, "feed_forward_length", layer, 0) > 0;
    bool attends = !recurs && !feeds &&
                   (!s->has_table || !extra(s, VP_G_ONE_HALF) || FACT(ATTN_Q) || FACT(ATTN_QKV));
    norms(s, block, layer);
    feed_forward(s, block, layer, recurs || attends);
    if (recurs)
        recurrent(s, &block->attention, block, layer);
    else if (attends && extra(s, VP_G_LATENT))
        latent(s, &block->attention);
    else if (attends && !trait(s, VP_T_NO_HEADS))
        grouped(s, &block->attention, layer);
    if (extra(s, VP_G_BESIDE))
        recurrent(s, &block->second, block, layer);
}
