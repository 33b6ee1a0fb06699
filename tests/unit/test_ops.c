/* Operators of every kind of block: parameters, FLOPs, traffic, and a rank's part of them. The
 * sizes are small and unlike, so that a mistaken factor shows. */
#include <string.h>

#include "planner/ops/ops.h"
#include "tests/unit/model_builder.h"

enum { HIDDEN = 16 };

static struct vp_ops ops;

static void make(const struct vp_block *block) {
    struct vp_model model = {.hidden = HIDDEN};
    vp_ops_block(&ops, &model, block);
    assert_false(ops.overflow);
    assert_true(ops.count <= VP_OPS_MAX);
}

/* The n-th operator of this name, from 0. */
static const struct vp_op *nth(const char *name, int n) {
    for (uint32_t i = 0; i < ops.count; i++)
        if (strcmp(ops.item[i].name, name) == 0 && n-- == 0)
            return &ops.item[i];
    fail_msg("no operator \"%s\"", name);
    return NULL;
}

static const struct vp_op *op(const char *name) { return nth(name, 0); }

static bool has(const char *name) {
    for (uint32_t i = 0; i < ops.count; i++)
        if (strcmp(ops.item[i].name, name) == 0)
            return true;
    return false;
}

static uint64_t parameters(void) {
    struct vp_sum sum = vp_sum(0);
    for (uint32_t i = 0; i < ops.count; i++)
        sum = vp_sum_plus(sum, vp_op_parameters(&ops.item[i]));
    assert_false(sum.overflow);
    return sum.v;
}

static uint64_t active(void) {
    struct vp_sum sum = vp_sum(0);
    for (uint32_t i = 0; i < ops.count; i++)
        sum = vp_sum_plus(sum, vp_op_active(&ops.item[i]));
    assert_false(sum.overflow);
    return sum.v;
}

static uint64_t size_of(const char *name) { return vp_op_parameters(op(name)).v; }

static void expect(const char *name, uint64_t out, uint64_t in, uint64_t vector) {
    const struct vp_op *o = op(name);
    assert_int_equal(o->out, out);
    assert_int_equal(o->in, in);
    assert_int_equal(o->vector, vector);
}

/* ---- attention with keys and values ---- */

/* Values narrower than keys. */
static struct vp_block gqa(void) {
    struct vp_block block = block_gqa(4, 2, 8);
    block.attention.v_head_dim = 6;
    block.attention.rotary_dim = 4;
    return block;
}

static void grouped_query(void **state) {
    (void)state;
    struct vp_block block = gqa();
    make(&block);
    expect("q_proj", 4 * 8, HIDDEN, 0);
    expect("k_proj", 2 * 8, HIDDEN, 0);
    expect("v_proj", 2 * 6, HIDDEN, 0);
    expect("o_proj", HIDDEN, 4 * 6, 0);
    /* q 512 + k 256 + v 192 + o 384, two norms of 16 */
    assert_int_equal(parameters(), 512 + 256 + 192 + 384 + 32);
    assert_int_equal(active(), parameters());
    assert_int_equal(op("q_proj")->flops, 2 * 512);
    assert_int_equal(op("o_proj")->flops, 2 * 384);
    assert_true(op("o_proj")->all_reduce);
    assert_false(op("q_proj")->all_reduce);
    /* scores: 2 FLOPs for each of 4 heads and 8 elements of a key, values: 2 x 4 x 6 */
    assert_int_equal(op("attention")->flops_cached, 2 * 4 * (8 + 6));
    assert_int_equal(op("attention")->reads, 4 * 8 + 2 * 8 + 2 * 6);
    assert_int_equal(op("attention")->writes, 4 * 6);
    assert_int_equal(op("rotary")->writes, (4 + 2) * 4);
    assert_int_equal(op("add")->reads, 2 * HIDDEN);
    assert_string_equal(ops.item[0].name, "input_norm");
    assert_string_equal(ops.item[1].name, "post_attention_norm");
}

static void biases_norms_gate_sinks(void **state) {
    (void)state;
    struct vp_block block = gqa();
    make(&block);
    uint64_t plain = parameters();

    block.attention.qkv_bias = block.attention.out_bias = true;
    make(&block);
    assert_int_equal(parameters(), plain + 32 + 16 + 12 + 16); /* q, k, v, and o of hidden size */
    block = gqa();
    block.attention.qk_norm = VP_QK_NORM_HEAD;
    make(&block);
    assert_int_equal(parameters(), plain + 2 * 8); /* one weight per element of a head, q and k */
    block.attention.qk_norm = VP_QK_NORM_FULL;
    make(&block);
    assert_int_equal(parameters(), plain + 4 * 8 + 2 * 8);
    assert_int_equal(op("qk_norm")->flops, 4 * (4 * 8 + 2 * 8));
    block = gqa();
    block.attention.output_gate = true;
    make(&block);
    assert_int_equal(parameters(), plain + 512); /* a gate as wide as the query */
    block = gqa();
    block.attention.sinks = true;
    make(&block);
    assert_int_equal(parameters(), plain + 4);
    block = gqa();
    block.norm = VP_NORM_LAYER; /* weight and bias */
    make(&block);
    assert_int_equal(parameters(), plain + 2 * HIDDEN);
    block = gqa();
    block.norms = 6; /* names for four, the last for the rest */
    block.attention.rotary_dim = 0;
    make(&block);
    assert_int_equal(parameters(), plain + 4 * HIDDEN);
    assert_false(has("rotary"));
    assert_non_null(nth("post_mlp_norm", 2));
}

static void shared_keys_and_values(void **state) {
    (void)state;
    struct vp_block block = gqa();
    block.attention.v_head_dim = 8;
    block.attention.key_is_value = true;
    make(&block);
    assert_false(has("v_proj"));
    assert_int_equal(parameters(), 512 + 256 + HIDDEN * 32 + 32);

    block.attention.key_is_value = false;
    block.attention.shares_cache = true; /* another layer's keys and values */
    block.attention.qk_norm = VP_QK_NORM_HEAD;
    make(&block);
    assert_false(has("k_proj"));
    assert_false(has("v_proj"));
    assert_int_equal(parameters(), 512 + HIDDEN * 32 + 32 + 8);
    block.attention.qk_norm = VP_QK_NORM_FULL;
    make(&block);
    assert_int_equal(op("qk_norm")->vector, 32);
}

/* A gate per head beside the output; a key projection without the bias that the others have. */
static void gates_and_biases_apart(void **state) {
    (void)state;
    struct vp_block block = gqa();
    block.attention.qkv_bias = true;
    make(&block);
    uint64_t plain = parameters();
    block.attention.no_key_bias = true;
    make(&block);
    assert_int_equal(parameters(), plain - 16);
    block.attention.head_gate = true;
    make(&block);
    expect("head_gate", 4, HIDDEN, 0);
    assert_int_equal(parameters(), plain - 16 + 64);
    block.norm = VP_NORM_PLAIN; /* without parameters */
    make(&block);
    assert_int_equal(parameters(), plain - 16 + 64 - 2 * HIDDEN);
}

/* A second mixer behind or beside the first: its projections come on top. */
static void two_mixers(void **state) {
    (void)state;
    struct vp_block block = gqa();
    make(&block);
    uint64_t one = parameters();
    block.second = gqa().attention; /* keys and values of an encoder's output */
    block.second.source_tokens = 100;
    make(&block);
    expect("cross_q_proj", 32, HIDDEN, 0);
    expect("cross_k_proj", 16, HIDDEN, 0);
    expect("cross_v_proj", 12, HIDDEN, 0);
    expect("cross_o_proj", HIDDEN, 24, 0);
    assert_int_equal(parameters(), 2 * (one - 32) + 32); /* norms are the block's */
    assert_non_null(nth("add", 1));
    block.attention.kind = VP_ATTENTION_NONE;
    make(&block);
    assert_int_equal(parameters(), one);
}

/* A description of the cache alone has key and value sizes and nothing else. */
static void cache_alone(void **state) {
    (void)state;
    struct vp_block block = {.norms = 0};
    struct vp_model model = {.hidden = 0};
    block.attention = (struct vp_attention){
        .kind = VP_ATTENTION_GQA, .kv_heads = 2, .head_dim = 8, .v_head_dim = 8};
    vp_ops_block(&ops, &model, &block);
    assert_int_equal(ops.count, 1);
    assert_int_equal(parameters(), 0);
    assert_int_equal(op("attention")->reads, 32);
    block.attention =
        (struct vp_attention){.kind = VP_ATTENTION_MLA, .kv_lora_rank = 12, .qk_rope_head_dim = 4};
    vp_ops_block(&ops, &model, &block);
    assert_int_equal(ops.count, 1);
    assert_int_equal(op("attention")->reads, 16);
    block.attention.kind = VP_ATTENTION_NONE;
    vp_ops_block(&ops, &model, &block);
    assert_int_equal(ops.count, 0);
}

/* ---- latent attention ---- */

static struct vp_block mla(void) {
    struct vp_block block = block_mla(4, 12, 2);
    block.attention.qk_nope_head_dim = 6;
    block.attention.v_head_dim = 5;
    return block;
}

static void latent(void **state) {
    (void)state;
    struct vp_block block = mla();
    make(&block);
    expect("q_proj", 4 * (6 + 2), HIDDEN, 0);
    expect("kv_a_proj", 12 + 2, HIDDEN, 0);
    expect("kv_a_layernorm", 12, 12, 12);
    expect("kv_b_proj", 4 * (6 + 5), 12, 0);
    expect("o_proj", HIDDEN, 4 * 5, 0);
    assert_int_equal(parameters(), 512 + 224 + 12 + 528 + 320 + 32);
    assert_int_equal(op("kv_a_proj")->shard, VP_SHARD_NONE);
    assert_int_equal(op("kv_b_proj")->shard, VP_SHARD_HEADS);
    assert_int_equal(op("attention")->flops_cached, 2 * 4 * (8 + 5));
    assert_int_equal(op("rotary")->writes, (4 + 1) * 2); /* one key part for all heads */

    block.attention.q_lora_rank = 10;
    make(&block);
    expect("q_a_proj", 10, HIDDEN, 0);
    expect("q_b_proj", 32, 10, 0);
    assert_int_equal(parameters(), 160 + 10 + 320 + 224 + 12 + 528 + 320 + 32);
    block.attention.qkv_bias = block.attention.out_bias = true;
    make(&block);
    assert_int_equal(op("q_a_proj")->vector + op("q_b_proj")->vector, 10 + 32);
    assert_int_equal(op("kv_a_proj")->vector + op("kv_b_proj")->vector, 14 + 44);
}

static void latent_with_indexer(void **state) {
    (void)state;
    struct vp_block block = mla();
    block.attention.q_lora_rank = 10;
    make(&block);
    uint64_t plain = parameters();
    block.attention.index_heads = 3;
    block.attention.index_head_dim = 7;
    make(&block);
    expect("indexer.wq_b", 21, 10, 0);
    expect("indexer.wk", 7, HIDDEN, 0);
    expect("indexer.weights_proj", 3, HIDDEN, 0);
    assert_int_equal(op("indexer.k_norm")->vector, 14); /* a LayerNorm */
    assert_int_equal(parameters(), plain + 210 + 112 + 14 + 48);
    assert_int_equal(op("indexer.wq_b")->shard, VP_SHARD_NONE);
}

/* ---- condensed attention ---- */

/* Four heads of 8 that share one vector per token; every 4 tokens make an entry, with overlap. */
static struct vp_block compressed(void) {
    struct vp_block block = {.norms = 1};
    block.attention = (struct vp_attention){.kind = VP_ATTENTION_COMPRESSED,
                                            .heads = 4,
                                            .kv_heads = 1,
                                            .head_dim = 8,
                                            .v_head_dim = 8,
                                            .rotary_dim = 2,
                                            .q_lora_rank = 10,
                                            .out_groups = 2,
                                            .out_lora_rank = 3};
    return block;
}

static void condensed(void **state) {
    (void)state;
    struct vp_block block = compressed();
    make(&block);
    /* q 16 -> 10 -> 32 with a norm, kv 16 -> 8 with a norm; out 2 x (16 -> 3), 6 -> 16 */
    uint64_t window = 160 + 10 + 320 + 128 + 8 + 2 * 48 + 96 + HIDDEN;
    assert_int_equal(parameters(), window);
    expect("o_a_proj", 3, 16, 0);
    assert_int_equal(op("o_a_proj")->matrices, 2);
    assert_int_equal(op("o_a_proj")->flops, 2 * 96);
    expect("o_b_proj", HIDDEN, 6, 0);
    assert_int_equal(op("rotary")->writes, (4 + 1) * 2);
    assert_false(has("condensed_attention"));

    block.attention.compress = 4;
    block.attention.overlap = 2;
    make(&block);
    /* value and weight, both twice as wide: 2 x 16 from 16, an offset per place, a norm */
    expect("compressor", 32, HIDDEN, 4 * 16);
    assert_int_equal(parameters(), window + 512 + 64 + 8);
    assert_int_equal(op("attention")->flops_cached, 2 * 4 * 16);
    assert_int_equal(op("condensed_attention")->flops_cached, 2 * 4 * 16 / 4);

    block.attention.index_heads = 3;
    block.attention.index_head_dim = 5;
    block.attention.sinks = true;
    make(&block);
    expect("indexer.compressor", 20, HIDDEN, 4 * 10);
    expect("indexer.q_b_proj", 15, 10, 0);
    assert_int_equal(parameters(), window + 584 + 4 + (320 + 40 + 5) + 150 + 48);
}

/* Residual streams: around each half of a block, and before the head, a mix in fp32. */
static void hyper_connections(void **state) {
    (void)state;
    struct vp_model model = {.hidden = HIDDEN, .hyper = 2};
    struct vp_block block = gqa();
    block.mlp = (struct vp_mlp){.kind = VP_MLP_PLAIN, .intermediate = 40};
    vp_ops_block(&ops, &model, &block);
    /* (2 + 2) x 2 weights read off 2 x 16 values, with a base each, and three scales */
    assert_int_equal(nth("hyper_connection", 0)->vector, 8 * 33 + 3);
    assert_int_equal(nth("hyper_connection", 1)->role, VP_ROLE_HYPER);
    vp_ops_last(&ops, &model);
    assert_int_equal(parameters(), 2 * 33 + 1);
}

/* ---- recurrent layers ---- */

/* 2 key heads of 3, 4 value heads of 5; convolved: q, k and v. */
static struct vp_block linear(enum vp_linear_kind kind) {
    struct vp_block block = {.norms = 1};
    block.attention = (struct vp_attention){.kind = VP_ATTENTION_LINEAR,
                                            .linear = kind,
                                            .key_heads = 2,
                                            .key_dim = 3,
                                            .value_heads = 4,
                                            .value_dim = 5,
                                            .conv_kernel = 4,
                                            .conv_channels = 2 * 6 + 20,
                                            .state_elements = 4 * 3 * 5};
    return block;
}

static void gated_delta(void **state) {
    (void)state;
    struct vp_block block = linear(VP_LINEAR_GATED_DELTA);
    make(&block);
    expect("in_proj_qkvz", 2 * 6 + 2 * 20, HIDDEN, 0);
    expect("in_proj_ba", 8, HIDDEN, 0);
    assert_int_equal(op("conv1d")->vector, 32 * 4);
    assert_int_equal(op("scan")->vector, 8); /* decay and step bias per value head */
    assert_int_equal(nth("norm", 0)->vector, 5);
    expect("out_proj", HIDDEN, 20, 0);
    assert_int_equal(parameters(), 832 + 128 + 128 + 8 + 5 + 320 + 16);
    assert_int_equal(op("scan")->flops, 6 * 60);
    assert_int_equal(op("conv1d")->flops, 2 * 32 * 4);
    assert_true(op("out_proj")->all_reduce);
    block.attention.conv_bias = true;
    make(&block);
    assert_int_equal(op("conv1d")->vector, 32 * 5);
}

static void kda(void **state) {
    (void)state;
    struct vp_block block = linear(VP_LINEAR_KDA);
    block.attention.key_heads = 4; /* as many as value heads, and as wide */
    block.attention.key_dim = 5;
    block.attention.conv_channels = 60;
    make(&block);
    expect("qkv_proj", 60, HIDDEN, 0);
    expect("f_a_g_a_proj", 10, HIDDEN, 0); /* two low-rank factors as wide as a head */
    expect("f_b_g_b_proj", 40, 5, 0);
    expect("b_proj", 4, HIDDEN, 0);
    assert_int_equal(op("scan")->vector, 4 + 20);
    assert_int_equal(op("o_norm")->vector, 5);
    assert_int_equal(parameters(), 960 + 160 + 200 + 64 + 240 + 24 + 5 + 320 + 16);
    assert_int_equal(op("f_a_g_a_proj")->shard, VP_SHARD_NONE);
    assert_int_equal(op("f_b_g_b_proj")->shard, VP_SHARD_HEADS);
}

static void mamba2(void **state) {
    (void)state;
    struct vp_block block = linear(VP_LINEAR_MAMBA2);
    make(&block);
    expect("in_proj", 20 + 32 + 4, HIDDEN, 0); /* gate; x, B, C; a step per head */
    assert_int_equal(op("scan")->vector, 3 * 4);
    assert_int_equal(nth("norm", 0)->vector, 20);
    assert_int_equal(parameters(), 896 + 128 + 12 + 20 + 320 + 16);
    block.attention.no_norm = block.attention.qkv_bias = block.attention.out_bias = true;
    make(&block);
    assert_int_equal(parameters(), 896 + 128 + 12 + 320 + 16 + 56 + 16);
}

static void mamba1(void **state) {
    (void)state;
    struct vp_block block = linear(VP_LINEAR_MAMBA1);
    block.attention.key_heads = block.attention.value_heads = 1;
    block.attention.key_dim = 6;    /* state */
    block.attention.value_dim = 20; /* inner width */
    block.attention.step_rank = 3;
    block.attention.conv_channels = 20;
    make(&block);
    expect("in_proj", 40, HIDDEN, 0);
    expect("x_proj", 3 + 2 * 6, 20, 0); /* step size, B and C */
    expect("dt_proj", 20, 3, 20);
    assert_int_equal(op("scan")->vector, 20 * (6 + 1)); /* decays and a skip */
    assert_int_equal(parameters(), 640 + 80 + 300 + 80 + 140 + 320 + 16);
    assert_true(op("x_proj")->all_reduce);
    block.attention.state_norms = block.attention.qkv_bias = block.attention.out_bias = true;
    make(&block);
    assert_int_equal(parameters(), 640 + 80 + 300 + 80 + 140 + 320 + 16 + 15 + 40 + 16);
}

static void short_convolution(void **state) {
    (void)state;
    struct vp_block block = linear(VP_LINEAR_SHORT_CONV);
    block.attention.conv_channels = HIDDEN;
    block.attention.conv_kernel = 3;
    make(&block);
    expect("in_proj", 3 * HIDDEN, HIDDEN, 0);
    assert_int_equal(parameters(), 768 + 48 + 256 + 16);
    block.attention.qkv_bias = block.attention.out_bias = true;
    make(&block);
    assert_int_equal(parameters(), 768 + 48 + 256 + 16 + 48 + 16);
}

static void lightning(void **state) {
    (void)state;
    struct vp_block block = linear(VP_LINEAR_LIGHTNING);
    make(&block);
    expect("qkv_proj", 60, HIDDEN, 0);
    expect("output_gate", 20, HIDDEN, 0);
    assert_int_equal(parameters(), 960 + 20 + 320 + 320 + 16);
}

static void recurrent_by_hand(void **state) {
    (void)state;
    struct vp_block block = block_state(60, VP_DTYPE_UNSET);
    make(&block);
    assert_int_equal(parameters(), 0);
    assert_int_equal(op("scan")->flops, 360);
    block.attention.parameters = 1000;
    make(&block);
    assert_int_equal(parameters(), 1000);
    assert_int_equal(op("linear_attn")->flops, 2000);
}

/* ---- feed-forward ---- */

static struct vp_block feed_forward(enum vp_mlp_kind kind, bool bias) {
    struct vp_block block = {.norms = 0};
    block.mlp = (struct vp_mlp){.kind = kind, .intermediate = 40, .bias = bias};
    return block;
}

static void dense_feed_forward(void **state) {
    (void)state;
    struct vp_block block = feed_forward(VP_MLP_GATED, false);
    make(&block);
    assert_int_equal(parameters(), 3 * 40 * HIDDEN);
    expect("down_proj", HIDDEN, 40, 0);
    assert_true(op("down_proj")->all_reduce);
    assert_int_equal(op("activation")->reads, 80);
    assert_int_equal(op("activation")->writes, 40);
    block = feed_forward(VP_MLP_GATED, true);
    make(&block);
    assert_int_equal(parameters(), 3 * 40 * HIDDEN + 40 + 40 + HIDDEN);
    block = feed_forward(VP_MLP_PLAIN, true);
    make(&block);
    assert_false(has("gate_proj"));
    assert_int_equal(parameters(), 2 * 40 * HIDDEN + 40 + HIDDEN);
    assert_int_equal(op("activation")->reads, 40);
    block = feed_forward(VP_MLP_LINEAR, true);
    make(&block);
    assert_int_equal(parameters(), 40 * HIDDEN + 40);
    block.mlp.intermediate = 0; /* as wide as the model */
    make(&block);
    expect("up_proj", HIDDEN, HIDDEN, HIDDEN);
    block = feed_forward(VP_MLP_NONE, false);
    make(&block);
    assert_int_equal(ops.count, 0); /* the empty block has not even a residual */
}

static struct vp_block experts(enum vp_mlp_kind kind) {
    struct vp_block block = {.norms = 0};
    block.moe = (struct vp_moe){.kind = kind, .experts = 10, .top_k = 3, .intermediate = 12};
    return block;
}

static void mixture(void **state) {
    (void)state;
    struct vp_block block = experts(VP_MLP_GATED);
    make(&block);
    assert_int_equal(size_of("router"), 10 * HIDDEN);
    assert_int_equal(size_of("experts.gate_proj"), 10 * 12 * HIDDEN);
    assert_int_equal(parameters(), 160 + 3 * 1920);
    assert_int_equal(active(), 160 + 3 * 3 * 12 * HIDDEN);
    assert_int_equal(op("experts.down_proj")->kind, VP_OP_EXPERTS);
    assert_int_equal(op("experts.down_proj")->flops, 2 * 3 * 12 * HIDDEN);
    assert_int_equal(op("experts.up_proj")->writes, 3 * 12);
    assert_int_equal(op("activation")->writes, 3 * 12);
    assert_int_equal(op("top_k")->writes, 3);
    assert_int_equal(op("top_k")->vector, 0);

    block.moe.router_bias = block.moe.score_bias = block.moe.bias = true;
    make(&block);
    assert_int_equal(op("router")->vector, 10);
    assert_int_equal(op("top_k")->vector, 10);
    assert_int_equal(op("experts.down_proj")->vector, 10 * HIDDEN);
    assert_int_equal(parameters(), 160 + 3 * 1920 + 10 + 10 + 10 * (12 + 12 + HIDDEN));
    /* of the biases, those of three experts work */
    assert_int_equal(active(), 160 + 3 * 576 + 10 + 10 + 3 * (12 + 12 + HIDDEN));
}

static void shared_and_latent_experts(void **state) {
    (void)state;
    struct vp_block block = experts(VP_MLP_PLAIN);
    make(&block);
    assert_int_equal(parameters(), 160 + 2 * 1920);
    block.moe.shared_intermediate = 20;
    make(&block);
    assert_int_equal(size_of("shared_expert.up_proj"), 20 * HIDDEN);
    assert_int_equal(parameters(), 160 + 2 * 1920 + 2 * 320);
    assert_int_equal(op("shared_expert.up_proj")->shard, VP_SHARD_WIDTH);
    block.moe.shared_switch = true;
    make(&block);
    assert_int_equal(size_of("shared_expert_gate"), HIDDEN);
    block.moe.shared_intermediate = 0; /* no shared expert, no switch */
    make(&block);
    assert_false(has("shared_expert_gate"));

    block.moe.zero_experts = 2; /* may be chosen, have no weights */
    block.moe.score_bias = true;
    make(&block);
    assert_int_equal(parameters(), 12 * HIDDEN + 12 + 2 * 1920);
    block.moe.zero_experts = 0;
    block.moe.score_bias = false;

    block.moe.input = 6; /* experts work in a narrower space */
    make(&block);
    expect("latent_down", 6, HIDDEN, 0);
    expect("latent_up", HIDDEN, 6, 0);
    expect("experts.up_proj", 12, 6, 0);
    assert_int_equal(parameters(), 160 + 2 * 96 + 2 * 10 * 12 * 6);
}

/* One matrix per expert: all of them count, top_k of them work. */
static void linear_experts(void **state) {
    (void)state;
    struct vp_block block = experts(VP_MLP_LINEAR);
    block.moe.bias = true;
    make(&block);
    assert_int_equal(size_of("experts.up_proj"), 10 * 12 * HIDDEN + 10 * 12);
    assert_int_equal(op("experts.up_proj")->kind, VP_OP_EXPERTS);
    assert_int_equal(op("experts.up_proj")->flops, 3 * 2 * 12 * HIDDEN);
    assert_int_equal(active(), 160 + 3 * 12 * HIDDEN + 3 * 12);
}

/* The largest block there can be stays inside the list. */
static void largest_block(void **state) {
    (void)state;
    struct vp_block block = mla();
    block.norms = 12; /* eight are taken */
    block.attention.q_lora_rank = 10;
    block.attention.index_heads = block.attention.index_head_dim = 2;
    block.mlp = (struct vp_mlp){.kind = VP_MLP_GATED, .intermediate = 40};
    block.moe = experts(VP_MLP_GATED).moe;
    block.moe.input = 6;
    block.moe.shared_intermediate = 20;
    block.moe.shared_switch = true;
    make(&block);
    assert_true(ops.count > 30 && ops.count <= VP_OPS_MAX);
}

/* ---- the ends ---- */

static void ends(void **state) {
    (void)state;
    struct vp_model model = {.hidden = HIDDEN, .vocab = 100, .embedding = true, .lm_head = true};
    vp_ops_first(&ops, &model);
    assert_int_equal(parameters(), 1600);
    assert_int_equal(op("embedding")->shard, VP_SHARD_VOCAB);
    assert_int_equal(op("embedding")->flops, 0);
    model.learned_positions = 50;
    vp_ops_first(&ops, &model);
    assert_int_equal(parameters(), 1600 + 800);
    model.token_types = 2; /* segments of an encoder, and its norm */
    model.embedding_norm = true;
    vp_ops_first(&ops, &model);
    assert_int_equal(parameters(), 1600 + 800 + 32 + HIDDEN);
    vp_ops_last(&ops, &model);
    assert_int_equal(parameters(), 1600);
    assert_int_equal(op("lm_head")->flops, 3200);
    model.final_norm = true;
    model.head_bias = true;
    vp_ops_last(&ops, &model);
    assert_int_equal(parameters(), 1600 + HIDDEN + 100);
    model.final_norm_kind = VP_NORM_LAYER;
    model.tied = true; /* works, but is counted with the embedding */
    vp_ops_last(&ops, &model);
    assert_int_equal(parameters(), 2 * HIDDEN + 100);
    assert_int_equal(op("lm_head")->flops, 3200);
    model = (struct vp_model){.hidden = HIDDEN};
    vp_ops_first(&ops, &model);
    assert_int_equal(ops.count, 0);
    vp_ops_last(&ops, &model);
    assert_int_equal(ops.count, 0);
}

/* ---- a rank's part ---- */

static const struct vp_layout TWO = {2, 2, 2, 1, 2, 64};

static struct vp_op_share share_of(const char *name, const struct vp_block *block,
                                   struct vp_layout layout) {
    return vp_ops_share(op(name), block, &layout);
}

static void heads_and_width_are_divided(void **state) {
    (void)state;
    struct vp_block block = gqa();
    block.attention.qkv_bias = block.attention.out_bias = true;
    block.attention.sinks = true;
    block.mlp = feed_forward(VP_MLP_GATED, true).mlp;
    make(&block);
    struct vp_op_share q = share_of("q_proj", &block, TWO);
    assert_int_equal(q.out, 16);
    assert_int_equal(q.in, HIDDEN);
    assert_int_equal(q.vector, 16);
    struct vp_op_share o = share_of("o_proj", &block, TWO);
    assert_int_equal(o.out, HIDDEN); /* row-parallel: by its inputs, the bias whole */
    assert_int_equal(o.in, 12);
    assert_int_equal(o.vector, HIDDEN);
    assert_int_equal(share_of("up_proj", &block, TWO).out, 20);
    assert_int_equal(share_of("down_proj", &block, TWO).in, 20);
    assert_int_equal(share_of("down_proj", &block, TWO).vector, HIDDEN);
    assert_int_equal(share_of("attention", &block, TWO).vector, 2); /* sinks */
    assert_int_equal(share_of("input_norm", &block, TWO).vector, HIDDEN);
    /* three ranks of 40: the fullest has 14 */
    assert_int_equal(share_of("up_proj", &block, (struct vp_layout){3, 1, 1, 1, 3, 64}).out, 14);
    /* data-parallel attention: heads whole, widths divided */
    assert_int_equal(share_of("q_proj", &block, (struct vp_layout){4, 1, 1, 1, 4, 64}).out, 32);
    assert_int_equal(share_of("up_proj", &block, (struct vp_layout){4, 1, 1, 1, 4, 64}).out, 10);
}

static void kv_heads_are_replicated(void **state) {
    (void)state;
    struct vp_block block = gqa(); /* two KV heads of 8 */
    make(&block);
    assert_int_equal(share_of("k_proj", &block, TWO).out, 8);
    assert_int_equal(share_of("k_proj", &block, (struct vp_layout){8, 8, 8, 1, 8, 64}).out, 8);
    assert_int_equal(share_of("v_proj", &block, (struct vp_layout){8, 8, 8, 1, 8, 64}).out, 6);
    assert_int_equal(share_of("q_proj", &block, (struct vp_layout){4, 4, 4, 1, 4, 64}).out, 8);
    /* without a block, or without KV heads in it, nothing says how to divide */
    assert_int_equal(share_of("k_proj", NULL, TWO).out, 16);
    block.attention.kv_heads = 0;
    assert_int_equal(share_of("k_proj", &block, TWO).out, 16);
}

static void states_are_divided_like_heads(void **state) {
    (void)state;
    struct vp_block block = linear(VP_LINEAR_GATED_DELTA);
    make(&block);
    assert_int_equal(share_of("in_proj_qkvz", &block, TWO).out, 26);
    assert_int_equal(share_of("conv1d", &block, TWO).vector, 64);
    assert_int_equal(share_of("scan", &block, TWO).vector, 4);
    assert_int_equal(share_of("norm", &block, TWO).vector, 5);
    assert_int_equal(share_of("out_proj", &block, TWO).in, 10);
}

static void vocabulary_is_padded(void **state) {
    (void)state;
    struct vp_model model = {
        .hidden = HIDDEN, .vocab = 1000, .embedding = true, .lm_head = true, .head_bias = true};
    vp_ops_last(&ops, &model);
    /* 1000 rows become 1024, of which three ranks hold 342 at most */
    struct vp_op_share head = share_of("lm_head", NULL, (struct vp_layout){3, 3, 3, 1, 3, 64});
    assert_int_equal(head.out, 342);
    assert_int_equal(head.vector, 342);
    assert_int_equal(share_of("lm_head", NULL, (struct vp_layout){1, 1, 1, 1, 1, 64}).out, 1024);
    assert_int_equal(share_of("lm_head", NULL, (struct vp_layout){1, 1, 1, 1, 1, 1}).out, 1000);
    vp_ops_first(&ops, &model);
    assert_int_equal(share_of("embedding", NULL, TWO).out, 512);
    assert_int_equal(share_of("embedding", NULL, TWO).vector, 0);
}

static void experts_are_dealt_or_divided(void **state) {
    (void)state;
    struct vp_block block = experts(VP_MLP_GATED);
    block.moe.bias = true;
    make(&block);
    /* by width: ten experts of 12 / 2 */
    struct vp_op_share up = share_of("experts.up_proj", &block, TWO);
    assert_int_equal(up.matrices, 10);
    assert_int_equal(up.out, 6);
    assert_int_equal(up.vector, 60);
    struct vp_op_share down = share_of("experts.down_proj", &block, TWO);
    assert_int_equal(down.in, 6);
    assert_int_equal(down.out, HIDDEN);
    assert_int_equal(down.vector, 10 * HIDDEN);
    /* whole experts over four ranks: three on the fullest */
    up = share_of("experts.up_proj", &block, (struct vp_layout){4, 4, 4, 4, 1, 64});
    assert_int_equal(up.matrices, 3);
    assert_int_equal(up.out, 12);
    assert_int_equal(up.vector, 36);
    /* both: two ranks of experts, each pair of ranks shares a width */
    up = share_of("experts.up_proj", &block, (struct vp_layout){4, 4, 4, 2, 2, 64});
    assert_int_equal(up.matrices, 5);
    assert_int_equal(up.out, 6);
    assert_int_equal(share_of("router", &block, TWO).out, 10); /* on every rank */
}

/* ---- whole models ---- */

/* Published sizes; parameters of each layer added by hand. */
static void published_counts(void **state) {
    (void)state;
    static const struct {
        const char *model;
        uint64_t total, active;
    } KNOWN[] = {
        /* 32 x (2 x 4096^2 + 2 x 1024 x 4096 + 3 x 4096 x 14336 + 2 x 4096) + 2 x 128256 x 4096 +
         * 4096 */
        {"llama-3-8b", 8030261248, 8030261248},
        /* 48 x (2 x 4096 x 2048 + 2 x 512 x 2048 + 256 + 128 x (2048 + 3 x 2048 x 768) + 2 x 2048)
         * + 2 x 151936 x 2048 + 2048; eight of 128 experts work */
        {"qwen3-30b-a3b", 30532122624, 3353032704},
        /* 61 x MLA, three dense layers, 58 x 256 experts with a correction bias each */
        {"deepseek-v3", 671026419200, 0},
    };
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        struct fixture f;
        fixture_begin(&f);
        struct vp_scenario *s = read_yaml(&f, "hardware: {gpu: mi300x}\nserve: {context: 4096}\n",
                                          "model", KNOWN[i].model);
        struct vp_params params = vp_ops_params(s->model);
        assert_false(params.overflow);
        assert_int_equal(params.total, KNOWN[i].total);
        if (KNOWN[i].active)
            assert_int_equal(params.active, KNOWN[i].active);
        fixture_end(&f);
    }
}

static void parts_beside_the_stack(void **state) {
    (void)state;
    struct builder b;
    builder_begin(&b);
    b.model.hidden = HIDDEN;
    builder_layer(&b, feed_forward(VP_MLP_GATED, false), 2);
    struct vp_extra extras[] = {
        {.name = "tower", .matrix_elements = 1000, .other_elements = 10, .counted = true},
        {.name = "MTP", .matrix_elements = 5000, .counted = false}};
    b.model.extras = extras;
    b.model.extra_count = 2;
    struct vp_params params = vp_ops_params(&b.model);
    assert_int_equal(params.total, 2 * 1920 + 1010); /* MTP layers do not count */
    assert_int_equal(params.active, params.total);
    struct vp_block layer = feed_forward(VP_MLP_PLAIN, false); /* an encoder of three such layers */
    extras[0].layer = &layer;
    extras[0].layers = 3;
    assert_int_equal(vp_ops_extra_parameters(&b.model, &extras[0]).v, 1010 + 3 * 1280);
    assert_int_equal(vp_ops_params(&b.model).total, 2 * 1920 + 1010 + 3 * 1280);
    layer.mlp.intermediate = UINT64_C(1) << 60;
    assert_true(vp_ops_params(&b.model).overflow);
    builder_end(&b);
}

/* ---- sizes beyond 64 bits ---- */

static void overflow_is_told(void **state) {
    (void)state;
    struct builder b;
    struct vp_model model = {.hidden = HIDDEN};
    struct vp_block block = block_gqa(UINT64_C(1) << 40, 1, UINT64_C(1) << 40);
    vp_ops_block(&ops, &model, &block); /* heads x head size */
    assert_true(ops.overflow);
    block = block_mla(4, 4, UINT64_MAX);
    block.attention.qk_nope_head_dim = 2;
    vp_ops_block(&ops, &model, &block); /* a sum */
    assert_true(ops.overflow);

    builder_begin(&b);
    b.model.hidden = UINT64_C(1) << 40;
    block = feed_forward(VP_MLP_PLAIN, false);
    block.mlp.intermediate = UINT64_C(1) << 22;
    builder_layer(&b, block, 1);
    assert_false(vp_ops_params(&b.model).overflow); /* 2^63 */
    builder_layer(&b, block, 2);
    assert_true(vp_ops_params(&b.model).overflow); /* the sum over layers */
    builder_end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grouped_query),
        cmocka_unit_test(biases_norms_gate_sinks),
        cmocka_unit_test(shared_keys_and_values),
        cmocka_unit_test(gates_and_biases_apart),
        cmocka_unit_test(two_mixers),
        cmocka_unit_test(cache_alone),
        cmocka_unit_test(latent),
        cmocka_unit_test(latent_with_indexer),
        cmocka_unit_test(condensed),
        cmocka_unit_test(hyper_connections),
        cmocka_unit_test(gated_delta),
        cmocka_unit_test(kda),
        cmocka_unit_test(mamba2),
        cmocka_unit_test(mamba1),
        cmocka_unit_test(short_convolution),
        cmocka_unit_test(lightning),
        cmocka_unit_test(recurrent_by_hand),
        cmocka_unit_test(dense_feed_forward),
        cmocka_unit_test(mixture),
        cmocka_unit_test(shared_and_latent_experts),
        cmocka_unit_test(linear_experts),
        cmocka_unit_test(largest_block),
        cmocka_unit_test(ends),
        cmocka_unit_test(heads_and_width_are_divided),
        cmocka_unit_test(kv_heads_are_replicated),
        cmocka_unit_test(states_are_divided_like_heads),
        cmocka_unit_test(vocabulary_is_padded),
        cmocka_unit_test(experts_are_dealt_or_divided),
        cmocka_unit_test(published_counts),
        cmocka_unit_test(parts_beside_the_stack),
        cmocka_unit_test(overflow_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
