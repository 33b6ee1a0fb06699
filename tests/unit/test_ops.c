/* Operators of every kind of block: parameters, FLOPs, traffic. A rank's part of them:
 * test_ops_ranks.c. */
#include "tests/unit/model_builder_ops.h"

static uint64_t size_of(const char *name) { return vp_op_parameters(ops_named(name)).v; }

static void expect(const char *name, uint64_t out, uint64_t in, uint64_t vector) {
    const struct vp_op *o = ops_named(name);
    assert_int_equal(o->out, out);
    assert_int_equal(o->in, in);
    assert_int_equal(o->vector, vector);
}

/* ---- attention with keys and values ---- */

static void grouped_query(void **state) {
    (void)state;
    struct vp_block block = ops_gqa();
    ops_make(&block);
    expect("q_proj", 4 * 8, HIDDEN, 0);
    expect("k_proj", 2 * 8, HIDDEN, 0);
    expect("v_proj", 2 * 6, HIDDEN, 0);
    expect("o_proj", HIDDEN, 4 * 6, 0);
    /* q 512 + k 256 + v 192 + o 384, two norms of 16 */
    assert_int_equal(ops_parameters(), 512 + 256 + 192 + 384 + 32);
    assert_int_equal(ops_active(), ops_parameters());
    assert_int_equal(ops_named("q_proj")->flops, 2 * 512);
    assert_int_equal(ops_named("o_proj")->flops, 2 * 384);
    assert_true(ops_named("o_proj")->all_reduce);
    assert_false(ops_named("q_proj")->all_reduce);
    /* scores: 2 FLOPs for each of 4 heads and 8 elements of a key, values: 2 x 4 x 6 */
    assert_int_equal(ops_named("attention")->flops_cached, 2 * 4 * (8 + 6));
    assert_int_equal(ops_named("attention")->reads, 4 * 8 + 2 * 8 + 2 * 6);
    assert_int_equal(ops_named("attention")->writes, 4 * 6);
    assert_int_equal(ops_named("rotary")->writes, (4 + 2) * 4);
    assert_int_equal(ops_named("add")->reads, 2 * HIDDEN);
    assert_string_equal(ops_list.item[0].name, "input_norm");
    assert_string_equal(ops_list.item[1].name, "post_attention_norm");
}

static void biases_norms_gate_sinks(void **state) {
    (void)state;
    struct vp_block block = ops_gqa();
    ops_make(&block);
    uint64_t plain = ops_parameters();

    block.attention.qkv_bias = block.attention.out_bias = true;
    ops_make(&block);
    assert_int_equal(ops_parameters(),
                     plain + 32 + 16 + 12 + 16); /* q, k, v, and o of hidden size */
    block = ops_gqa();
    block.attention.qk_norm = VP_QK_NORM_HEAD;
    ops_make(&block);
    assert_int_equal(ops_parameters(),
                     plain + 2 * 8); /* one weight per element of a head, q and k */
    block.attention.qk_norm = VP_QK_NORM_FULL;
    ops_make(&block);
    assert_int_equal(ops_parameters(), plain + 4 * 8 + 2 * 8);
    assert_int_equal(ops_named("qk_norm")->flops, 4 * (4 * 8 + 2 * 8));
    block = ops_gqa();
    block.attention.output_gate = true;
    ops_make(&block);
    assert_int_equal(ops_parameters(), plain + 512); /* a gate as wide as the query */
    block = ops_gqa();
    block.attention.sinks = true;
    ops_make(&block);
    assert_int_equal(ops_parameters(), plain + 4);
    block = ops_gqa();
    block.norm = VP_NORM_LAYER; /* weight and bias */
    ops_make(&block);
    assert_int_equal(ops_parameters(), plain + 2 * HIDDEN);
    block = ops_gqa();
    block.norms = 6; /* names for four, the last for the rest */
    block.attention.rotary_dim = 0;
    ops_make(&block);
    assert_int_equal(ops_parameters(), plain + 4 * HIDDEN);
    assert_false(ops_has("rotary"));
    assert_non_null(ops_nth("post_mlp_norm", 2));
}

static void shared_keys_and_values(void **state) {
    (void)state;
    struct vp_block block = ops_gqa();
    block.attention.v_head_dim = 8;
    block.attention.key_is_value = true;
    ops_make(&block);
    assert_false(ops_has("v_proj"));
    assert_int_equal(ops_parameters(), 512 + 256 + HIDDEN * 32 + 32);

    block.attention.key_is_value = false;
    block.attention.shares_cache = true; /* another layer's keys and values */
    block.attention.qk_norm = VP_QK_NORM_HEAD;
    ops_make(&block);
    assert_false(ops_has("k_proj"));
    assert_false(ops_has("v_proj"));
    assert_int_equal(ops_parameters(), 512 + HIDDEN * 32 + 32 + 8);
    block.attention.qk_norm = VP_QK_NORM_FULL;
    ops_make(&block);
    assert_int_equal(ops_named("qk_norm")->vector, 32);
}

/* A gate per head beside the output; a key projection without the bias that the others have. */
static void gates_and_biases_apart(void **state) {
    (void)state;
    struct vp_block block = ops_gqa();
    block.attention.qkv_bias = true;
    ops_make(&block);
    uint64_t plain = ops_parameters();
    block.attention.no_key_bias = true;
    ops_make(&block);
    assert_int_equal(ops_parameters(), plain - 16);
    block.attention.head_gate = true;
    ops_make(&block);
    expect("head_gate", 4, HIDDEN, 0);
    assert_int_equal(ops_parameters(), plain - 16 + 64);
    block.norm = VP_NORM_PLAIN; /* without parameters */
    ops_make(&block);
    assert_int_equal(ops_parameters(), plain - 16 + 64 - 2 * HIDDEN);
}

/* A second mixer behind or beside the first: its projections come on top. */
static void two_mixers(void **state) {
    (void)state;
    struct vp_block block = ops_gqa();
    ops_make(&block);
    uint64_t one = ops_parameters();
    block.second = ops_gqa().attention; /* keys and values of an encoder's output */
    block.second.source_tokens = 100;
    ops_make(&block);
    expect("cross_q_proj", 32, HIDDEN, 0);
    expect("cross_k_proj", 16, HIDDEN, 0);
    expect("cross_v_proj", 12, HIDDEN, 0);
    expect("cross_o_proj", HIDDEN, 24, 0);
    assert_int_equal(ops_parameters(), 2 * (one - 32) + 32); /* norms are the block's */
    assert_non_null(ops_nth("add", 1));
    block.attention.kind = VP_ATTENTION_NONE;
    ops_make(&block);
    assert_int_equal(ops_parameters(), one);
}

/* A description of the cache alone has key and value sizes and nothing else. */
static void cache_alone(void **state) {
    (void)state;
    struct vp_block block = {.norms = 0};
    struct vp_model model = {.hidden = 0};
    block.attention = (struct vp_attention){
        .kind = VP_ATTENTION_GQA, .kv_heads = 2, .head_dim = 8, .v_head_dim = 8};
    vp_ops_block(&ops_list, &model, &block);
    assert_int_equal(ops_list.count, 1);
    assert_int_equal(ops_parameters(), 0);
    assert_int_equal(ops_named("attention")->reads, 32);
    block.attention =
        (struct vp_attention){.kind = VP_ATTENTION_MLA, .kv_lora_rank = 12, .qk_rope_head_dim = 4};
    vp_ops_block(&ops_list, &model, &block);
    assert_int_equal(ops_list.count, 1);
    assert_int_equal(ops_named("attention")->reads, 16);
    block.attention.kind = VP_ATTENTION_NONE;
    vp_ops_block(&ops_list, &model, &block);
    assert_int_equal(ops_list.count, 0);
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
    ops_make(&block);
    expect("q_proj", 4 * (6 + 2), HIDDEN, 0);
    expect("kv_a_proj", 12 + 2, HIDDEN, 0);
    expect("kv_a_layernorm", 12, 12, 12);
    expect("kv_b_proj", 4 * (6 + 5), 12, 0);
    expect("o_proj", HIDDEN, 4 * 5, 0);
    assert_int_equal(ops_parameters(), 512 + 224 + 12 + 528 + 320 + 32);
    assert_int_equal(ops_named("kv_a_proj")->shard, VP_SHARD_NONE);
    assert_int_equal(ops_named("kv_b_proj")->shard, VP_SHARD_HEADS);
    assert_int_equal(ops_named("attention")->flops_cached, 2 * 4 * (8 + 5));
    assert_int_equal(ops_named("rotary")->writes, (4 + 1) * 2); /* one key part for all heads */

    block.attention.q_lora_rank = 10;
    ops_make(&block);
    expect("q_a_proj", 10, HIDDEN, 0);
    expect("q_b_proj", 32, 10, 0);
    assert_int_equal(ops_parameters(), 160 + 10 + 320 + 224 + 12 + 528 + 320 + 32);
    block.attention.qkv_bias = block.attention.out_bias = true;
    ops_make(&block);
    assert_int_equal(ops_named("q_a_proj")->vector + ops_named("q_b_proj")->vector, 10 + 32);
    assert_int_equal(ops_named("kv_a_proj")->vector + ops_named("kv_b_proj")->vector, 14 + 44);
}

static void latent_with_indexer(void **state) {
    (void)state;
    struct vp_block block = mla();
    block.attention.q_lora_rank = 10;
    ops_make(&block);
    uint64_t plain = ops_parameters();
    block.attention.index_heads = 3;
    block.attention.index_head_dim = 7;
    ops_make(&block);
    expect("indexer.wq_b", 21, 10, 0);
    expect("indexer.wk", 7, HIDDEN, 0);
    expect("indexer.weights_proj", 3, HIDDEN, 0);
    assert_int_equal(ops_named("indexer.k_norm")->vector, 14); /* a LayerNorm */
    assert_int_equal(ops_parameters(), plain + 210 + 112 + 14 + 48);
    assert_int_equal(ops_named("indexer.wq_b")->shard, VP_SHARD_NONE);
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
    ops_make(&block);
    /* q 16 -> 10 -> 32 with a norm, kv 16 -> 8 with a norm; out 2 x (16 -> 3), 6 -> 16 */
    uint64_t window = 160 + 10 + 320 + 128 + 8 + 2 * 48 + 96 + HIDDEN;
    assert_int_equal(ops_parameters(), window);
    expect("o_a_proj", 3, 16, 0);
    assert_int_equal(ops_named("o_a_proj")->matrices, 2);
    assert_int_equal(ops_named("o_a_proj")->flops, 2 * 96);
    expect("o_b_proj", HIDDEN, 6, 0);
    assert_int_equal(ops_named("rotary")->writes, (4 + 1) * 2);
    assert_false(ops_has("condensed_attention"));

    block.attention.compress = 4;
    block.attention.overlap = 2;
    ops_make(&block);
    /* value and weight, both twice as wide: 2 x 16 from 16, an offset per place, a norm */
    expect("compressor", 32, HIDDEN, 4 * 16);
    assert_int_equal(ops_parameters(), window + 512 + 64 + 8);
    assert_int_equal(ops_named("attention")->flops_cached, 2 * 4 * 16);
    assert_int_equal(ops_named("condensed_attention")->flops_cached, 2 * 4 * 16 / 4);

    block.attention.index_heads = 3;
    block.attention.index_head_dim = 5;
    block.attention.sinks = true;
    ops_make(&block);
    expect("indexer.compressor", 20, HIDDEN, 4 * 10);
    expect("indexer.q_b_proj", 15, 10, 0);
    assert_int_equal(ops_parameters(), window + 584 + 4 + (320 + 40 + 5) + 150 + 48);
}

/* Residual streams: around each half of a block, and before the head, a mix in fp32. */
static void hyper_connections(void **state) {
    (void)state;
    struct vp_model model = {.hidden = HIDDEN, .hyper = 2};
    struct vp_block block = ops_gqa();
    block.mlp = (struct vp_mlp){.kind = VP_MLP_PLAIN, .intermediate = 40};
    vp_ops_block(&ops_list, &model, &block);
    /* (2 + 2) x 2 weights read off 2 x 16 values, with a base each, and three scales */
    assert_int_equal(ops_nth("hyper_connection", 0)->vector, 8 * 33 + 3);
    assert_int_equal(ops_nth("hyper_connection", 1)->role, VP_ROLE_HYPER);
    vp_ops_last(&ops_list, &model);
    assert_int_equal(ops_parameters(), 2 * 33 + 1);
}

/* ---- recurrent layers ---- */

static void gated_delta(void **state) {
    (void)state;
    struct vp_block block = ops_recurrent(VP_LINEAR_GATED_DELTA);
    ops_make(&block);
    expect("in_proj_qkvz", 2 * 6 + 2 * 20, HIDDEN, 0);
    expect("in_proj_ba", 8, HIDDEN, 0);
    assert_int_equal(ops_named("conv1d")->vector, 32 * 4);
    assert_int_equal(ops_named("scan")->vector, 8); /* decay and step bias per value head */
    assert_int_equal(ops_nth("norm", 0)->vector, 5);
    expect("out_proj", HIDDEN, 20, 0);
    assert_int_equal(ops_parameters(), 832 + 128 + 128 + 8 + 5 + 320 + 16);
    assert_int_equal(ops_named("scan")->flops, 6 * 60);
    assert_int_equal(ops_named("conv1d")->flops, 2 * 32 * 4);
    assert_true(ops_named("out_proj")->all_reduce);
    block.attention.conv_bias = true;
    ops_make(&block);
    assert_int_equal(ops_named("conv1d")->vector, 32 * 5);
}

static void kda(void **state) {
    (void)state;
    struct vp_block block = ops_recurrent(VP_LINEAR_KDA);
    block.attention.key_heads = 4; /* as many as value heads, and as wide */
    block.attention.key_dim = 5;
    block.attention.conv_channels = 60;
    ops_make(&block);
    expect("qkv_proj", 60, HIDDEN, 0);
    expect("f_a_g_a_proj", 10, HIDDEN, 0); /* two low-rank factors as wide as a head */
    expect("f_b_g_b_proj", 40, 5, 0);
    expect("b_proj", 4, HIDDEN, 0);
    assert_int_equal(ops_named("scan")->vector, 4 + 20);
    assert_int_equal(ops_named("o_norm")->vector, 5);
    assert_int_equal(ops_parameters(), 960 + 160 + 200 + 64 + 240 + 24 + 5 + 320 + 16);
    assert_int_equal(ops_named("f_a_g_a_proj")->shard, VP_SHARD_NONE);
    assert_int_equal(ops_named("f_b_g_b_proj")->shard, VP_SHARD_HEADS);
}

static void mamba2(void **state) {
    (void)state;
    struct vp_block block = ops_recurrent(VP_LINEAR_MAMBA2);
    ops_make(&block);
    expect("in_proj", 20 + 32 + 4, HIDDEN, 0); /* gate; x, B, C; a step per head */
    assert_int_equal(ops_named("scan")->vector, 3 * 4);
    assert_int_equal(ops_nth("norm", 0)->vector, 20);
    assert_int_equal(ops_parameters(), 896 + 128 + 12 + 20 + 320 + 16);
    block.attention.no_norm = block.attention.qkv_bias = block.attention.out_bias = true;
    ops_make(&block);
    assert_int_equal(ops_parameters(), 896 + 128 + 12 + 320 + 16 + 56 + 16);
}

static void mamba1(void **state) {
    (void)state;
    struct vp_block block = ops_recurrent(VP_LINEAR_MAMBA1);
    block.attention.key_heads = block.attention.value_heads = 1;
    block.attention.key_dim = 6;    /* state */
    block.attention.value_dim = 20; /* inner width */
    block.attention.step_rank = 3;
    block.attention.conv_channels = 20;
    ops_make(&block);
    expect("in_proj", 40, HIDDEN, 0);
    expect("x_proj", 3 + 2 * 6, 20, 0); /* step size, B and C */
    expect("dt_proj", 20, 3, 20);
    assert_int_equal(ops_named("scan")->vector, 20 * (6 + 1)); /* decays and a skip */
    assert_int_equal(ops_parameters(), 640 + 80 + 300 + 80 + 140 + 320 + 16);
    assert_true(ops_named("x_proj")->all_reduce);
    block.attention.state_norms = block.attention.qkv_bias = block.attention.out_bias = true;
    ops_make(&block);
    assert_int_equal(ops_parameters(), 640 + 80 + 300 + 80 + 140 + 320 + 16 + 15 + 40 + 16);
}

static void short_convolution(void **state) {
    (void)state;
    struct vp_block block = ops_recurrent(VP_LINEAR_SHORT_CONV);
    block.attention.conv_channels = HIDDEN;
    block.attention.conv_kernel = 3;
    ops_make(&block);
    expect("in_proj", 3 * HIDDEN, HIDDEN, 0);
    assert_int_equal(ops_parameters(), 768 + 48 + 256 + 16);
    block.attention.qkv_bias = block.attention.out_bias = true;
    ops_make(&block);
    assert_int_equal(ops_parameters(), 768 + 48 + 256 + 16 + 48 + 16);
}

static void lightning(void **state) {
    (void)state;
    struct vp_block block = ops_recurrent(VP_LINEAR_LIGHTNING);
    ops_make(&block);
    expect("qkv_proj", 60, HIDDEN, 0);
    expect("output_gate", 20, HIDDEN, 0);
    assert_int_equal(ops_parameters(), 960 + 20 + 320 + 320 + 16);
}

static void recurrent_by_hand(void **state) {
    (void)state;
    struct vp_block block = block_state(60, VP_DTYPE_UNSET);
    ops_make(&block);
    assert_int_equal(ops_parameters(), 0);
    assert_int_equal(ops_named("scan")->flops, 360);
    block.attention.parameters = 1000;
    ops_make(&block);
    assert_int_equal(ops_parameters(), 1000);
    expect("linear_attn", 1000 / HIDDEN, HIDDEN, 0); /* matrices that read the input */
    expect("linear_rest", 1000 % HIDDEN, 1, 0);
}

/* ---- feed-forward ---- */

static void dense_feed_forward(void **state) {
    (void)state;
    struct vp_block block = ops_feed_forward(VP_MLP_GATED, false);
    ops_make(&block);
    assert_int_equal(ops_parameters(), 3 * 40 * HIDDEN);
    expect("down_proj", HIDDEN, 40, 0);
    assert_true(ops_named("down_proj")->all_reduce);
    assert_int_equal(ops_named("activation")->reads, 80);
    assert_int_equal(ops_named("activation")->writes, 40);
    block = ops_feed_forward(VP_MLP_GATED, true);
    ops_make(&block);
    assert_int_equal(ops_parameters(), 3 * 40 * HIDDEN + 40 + 40 + HIDDEN);
    block = ops_feed_forward(VP_MLP_PLAIN, true);
    ops_make(&block);
    assert_false(ops_has("gate_proj"));
    assert_int_equal(ops_parameters(), 2 * 40 * HIDDEN + 40 + HIDDEN);
    assert_int_equal(ops_named("activation")->reads, 40);
    block = ops_feed_forward(VP_MLP_LINEAR, true);
    ops_make(&block);
    assert_int_equal(ops_parameters(), 40 * HIDDEN + 40);
    block.mlp.intermediate = 0; /* as wide as the model */
    ops_make(&block);
    expect("up_proj", HIDDEN, HIDDEN, HIDDEN);
    block = ops_feed_forward(VP_MLP_NONE, false);
    ops_make(&block);
    assert_int_equal(ops_list.count, 0); /* the empty block has not even a residual */
}

static void mixture(void **state) {
    (void)state;
    struct vp_block block = ops_experts(VP_MLP_GATED);
    ops_make(&block);
    assert_int_equal(size_of("router"), 10 * HIDDEN);
    assert_int_equal(size_of("experts.gate_proj"), 10 * 12 * HIDDEN);
    assert_int_equal(ops_parameters(), 160 + 3 * 1920);
    assert_int_equal(ops_active(), 160 + 3 * 3 * 12 * HIDDEN);
    assert_int_equal(ops_named("experts.down_proj")->kind, VP_OP_EXPERTS);
    assert_int_equal(ops_named("experts.down_proj")->flops, 2 * 3 * 12 * HIDDEN);
    assert_int_equal(ops_named("experts.up_proj")->writes, 3 * 12);
    assert_int_equal(ops_named("activation")->writes, 3 * 12);
    assert_int_equal(ops_named("top_k")->writes, 3);
    assert_int_equal(ops_named("top_k")->vector, 0);

    block.moe.router_bias = block.moe.score_bias = block.moe.bias = true;
    ops_make(&block);
    assert_int_equal(ops_named("router")->vector, 10);
    assert_int_equal(ops_named("top_k")->vector, 10);
    assert_int_equal(ops_named("experts.down_proj")->vector, 10 * HIDDEN);
    assert_int_equal(ops_parameters(), 160 + 3 * 1920 + 10 + 10 + 10 * (12 + 12 + HIDDEN));
    /* of the biases, those of three experts work */
    assert_int_equal(ops_active(), 160 + 3 * 576 + 10 + 10 + 3 * (12 + 12 + HIDDEN));
}

static void shared_and_latent_experts(void **state) {
    (void)state;
    struct vp_block block = ops_experts(VP_MLP_PLAIN);
    ops_make(&block);
    assert_int_equal(ops_parameters(), 160 + 2 * 1920);
    block.moe.shared_intermediate = 20;
    ops_make(&block);
    assert_int_equal(size_of("shared_expert.up_proj"), 20 * HIDDEN);
    assert_int_equal(ops_parameters(), 160 + 2 * 1920 + 2 * 320);
    assert_int_equal(ops_named("shared_expert.up_proj")->shard, VP_SHARD_WIDTH);
    block.moe.shared_switch = true;
    ops_make(&block);
    assert_int_equal(size_of("shared_expert_gate"), HIDDEN);
    block.moe.shared_intermediate = 0; /* no shared expert, no switch */
    ops_make(&block);
    assert_false(ops_has("shared_expert_gate"));

    block.moe.zero_experts = 2; /* may be chosen, have no weights */
    block.moe.score_bias = true;
    ops_make(&block);
    assert_int_equal(ops_parameters(), 12 * HIDDEN + 12 + 2 * 1920);
    block.moe.zero_experts = 0;
    block.moe.score_bias = false;

    block.moe.input = 6; /* experts work in a narrower space */
    ops_make(&block);
    expect("latent_down", 6, HIDDEN, 0);
    expect("latent_up", HIDDEN, 6, 0);
    expect("experts.up_proj", 12, 6, 0);
    assert_int_equal(ops_parameters(), 160 + 2 * 96 + 2 * 10 * 12 * 6);
}

/* One matrix per expert: all of them count, top_k of them work. */
static void linear_experts(void **state) {
    (void)state;
    struct vp_block block = ops_experts(VP_MLP_LINEAR);
    block.moe.bias = true;
    ops_make(&block);
    assert_int_equal(size_of("experts.up_proj"), 10 * 12 * HIDDEN + 10 * 12);
    assert_int_equal(ops_named("experts.up_proj")->kind, VP_OP_EXPERTS);
    assert_int_equal(ops_named("experts.up_proj")->flops, 3 * 2 * 12 * HIDDEN);
    assert_int_equal(ops_active(), 160 + 3 * 12 * HIDDEN + 3 * 12);
}

/* The largest block there can be stays inside the list. */
static void largest_block(void **state) {
    (void)state;
    struct vp_block block = mla();
    block.norms = 12; /* eight are taken */
    block.attention.q_lora_rank = 10;
    block.attention.index_heads = block.attention.index_head_dim = 2;
    block.mlp = (struct vp_mlp){.kind = VP_MLP_GATED, .intermediate = 40};
    block.moe = ops_experts(VP_MLP_GATED).moe;
    block.moe.input = 6;
    block.moe.shared_intermediate = 20;
    block.moe.shared_switch = true;
    ops_make(&block);
    assert_true(ops_list.count > 30 && ops_list.count <= VP_OPS_MAX);
}

/* ---- the ends ---- */

static void ends(void **state) {
    (void)state;
    struct vp_model model = {.hidden = HIDDEN, .vocab = 100, .embedding = true, .lm_head = true};
    vp_ops_first(&ops_list, &model);
    assert_int_equal(ops_parameters(), 1600);
    assert_int_equal(ops_named("embedding")->shard, VP_SHARD_VOCAB);
    assert_int_equal(ops_named("embedding")->flops, 0);
    model.learned_positions = 50;
    vp_ops_first(&ops_list, &model);
    assert_int_equal(ops_parameters(), 1600 + 800);
    model.token_types = 2; /* segments of an encoder, and its norm */
    model.embedding_norm = true;
    vp_ops_first(&ops_list, &model);
    assert_int_equal(ops_parameters(), 1600 + 800 + 32 + HIDDEN);
    vp_ops_last(&ops_list, &model);
    assert_int_equal(ops_parameters(), 1600);
    assert_int_equal(ops_named("lm_head")->flops, 3200);
    model.final_norm = true;
    model.head_bias = true;
    vp_ops_last(&ops_list, &model);
    assert_int_equal(ops_parameters(), 1600 + HIDDEN + 100);
    model.final_norm_kind = VP_NORM_LAYER;
    model.tied = true; /* works, but is counted with the embedding */
    vp_ops_last(&ops_list, &model);
    assert_int_equal(ops_parameters(), 2 * HIDDEN + 100);
    assert_int_equal(ops_named("lm_head")->flops, 3200);
    model = (struct vp_model){.hidden = HIDDEN};
    vp_ops_first(&ops_list, &model);
    assert_int_equal(ops_list.count, 0);
    vp_ops_last(&ops_list, &model);
    assert_int_equal(ops_list.count, 0);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
