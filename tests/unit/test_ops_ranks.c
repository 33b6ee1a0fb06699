/* A rank's part of a block's operators under each layout, and the parameters of whole models. */
#include "tests/unit/model_builder_ops.h"

/* ---- a rank's part ---- */

static const struct vp_layout TWO = {2, 2, 2, 1, 2, 64};

static struct vp_op_share share_of(const char *name, const struct vp_block *block,
                                   struct vp_layout layout) {
    return vp_ops_share(ops_named(name), block, &layout);
}

static void heads_and_width_are_divided(void **state) {
    (void)state;
    struct vp_block block = ops_gqa();
    block.attention.qkv_bias = block.attention.out_bias = true;
    block.attention.sinks = true;
    block.mlp = ops_feed_forward(VP_MLP_GATED, true).mlp;
    ops_make(&block);
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
    struct vp_block block = ops_gqa(); /* two KV heads of 8 */
    ops_make(&block);
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
    struct vp_block block = ops_recurrent(VP_LINEAR_GATED_DELTA);
    ops_make(&block);
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
    vp_ops_last(&ops_list, &model);
    /* 1000 rows become 1024, of which three ranks hold 342 at most */
    struct vp_op_share head = share_of("lm_head", NULL, (struct vp_layout){3, 3, 3, 1, 3, 64});
    assert_int_equal(head.out, 342);
    assert_int_equal(head.vector, 342);
    assert_int_equal(share_of("lm_head", NULL, (struct vp_layout){1, 1, 1, 1, 1, 64}).out, 1024);
    assert_int_equal(share_of("lm_head", NULL, (struct vp_layout){1, 1, 1, 1, 1, 1}).out, 1000);
    vp_ops_first(&ops_list, &model);
    assert_int_equal(share_of("embedding", NULL, TWO).out, 512);
    assert_int_equal(share_of("embedding", NULL, TWO).vector, 0);
}

static void experts_are_dealt_or_divided(void **state) {
    (void)state;
    struct vp_block block = ops_experts(VP_MLP_GATED);
    block.moe.bias = true;
    ops_make(&block);
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
    builder_layer(&b, ops_feed_forward(VP_MLP_GATED, false), 2);
    struct vp_extra extras[] = {
        {.name = "tower", .matrix_elements = 1000, .other_elements = 10, .counted = true},
        {.name = "MTP", .matrix_elements = 5000, .counted = false}};
    b.model.extras = extras;
    b.model.extra_count = 2;
    struct vp_params params = vp_ops_params(&b.model);
    assert_int_equal(params.total, 2 * 1920 + 1010); /* MTP layers do not count */
    assert_int_equal(params.active, params.total);
    struct vp_block layer =
        ops_feed_forward(VP_MLP_PLAIN, false); /* an encoder of three such layers */
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
    vp_ops_block(&ops_list, &model, &block); /* heads x head size */
    assert_true(ops_list.overflow);
    block = block_mla(4, 4, UINT64_MAX);
    block.attention.qk_nope_head_dim = 2;
    vp_ops_block(&ops_list, &model, &block); /* a sum */
    assert_true(ops_list.overflow);

    builder_begin(&b);
    b.model.hidden = UINT64_C(1) << 40;
    block = ops_feed_forward(VP_MLP_PLAIN, false);
    block.mlp.intermediate = UINT64_C(1) << 22;
    builder_layer(&b, block, 1);
    assert_false(vp_ops_params(&b.model).overflow); /* 2^63 */
    builder_layer(&b, block, 2);
    assert_true(vp_ops_params(&b.model).overflow); /* the sum over layers */
    builder_end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_and_width_are_divided),   cmocka_unit_test(kv_heads_are_replicated),
        cmocka_unit_test(states_are_divided_like_heads), cmocka_unit_test(vocabulary_is_padded),
        cmocka_unit_test(experts_are_dealt_or_divided),  cmocka_unit_test(published_counts),
        cmocka_unit_test(parts_beside_the_stack),        cmocka_unit_test(overflow_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
