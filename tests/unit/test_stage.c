/* Pipeline stages and the layouts that a scenario asks for. */
#include "planner/memory/stage.h"
#include "tests/unit/model_builder.h"

static void expect_split(uint32_t layers, uint32_t count, const uint32_t *want) {
    uint32_t first = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct vp_stage stage = vp_stage_split(layers, count, i);
        assert_int_equal(stage.index, i);
        assert_int_equal(stage.count, count);
        assert_int_equal(stage.layers, want[i]);
        assert_int_equal(stage.first_layer, first);
        first += stage.layers;
    }
    assert_int_equal(first, layers);
}

/* vLLM's get_pp_indices: what is left over goes to the stages before the last, from the back. */
static void remainders(void **state) {
    (void)state;
    expect_split(61, 1, (uint32_t[]){61});
    expect_split(48, 4, (uint32_t[]){12, 12, 12, 12});
    expect_split(61, 4, (uint32_t[]){15, 15, 16, 15});
    expect_split(10, 4, (uint32_t[]){2, 3, 3, 2});
    expect_split(7, 4, (uint32_t[]){2, 2, 2, 1});
    expect_split(3, 2, (uint32_t[]){2, 1});
    expect_split(4, 4, (uint32_t[]){1, 1, 1, 1});
}

static void layers_of_a_kind(void **state) {
    (void)state;
    struct builder b;
    struct vp_block kinds[] = {block_gqa(8, 8, 64), block_window(8, 64, 512), block_gqa(8, 8, 64)};
    uint32_t counts[] = {1, 5, 1};
    builder_begin(&b);
    b.model.hidden = 512;
    builder_layers(&b, kinds, counts, 3); /* full, five windows, full: two kinds */
    assert_int_equal(b.model.block_count, 2);
    struct vp_stage all = vp_stage_split(7, 1, 0);
    assert_int_equal(vp_stage_layers(&b.model, &all, 0), 2);
    assert_int_equal(vp_stage_layers(&b.model, &all, 1), 5);
    struct vp_stage first = vp_stage_split(7, 2, 0), last = vp_stage_split(7, 2, 1);
    assert_int_equal(vp_stage_layers(&b.model, &first, 0), 1); /* 4 layers */
    assert_int_equal(vp_stage_layers(&b.model, &first, 1), 3);
    assert_int_equal(vp_stage_layers(&b.model, &last, 0), 1);
    assert_int_equal(vp_stage_layers(&b.model, &last, 1), 2);
    builder_end(&b);
}

static void expect_layout(const struct builder *b, struct vp_layout want) {
    struct vp_layout got = vp_stage_layout(&b->scenario);
    assert_int_equal(got.tensor, want.tensor);
    assert_int_equal(got.attention, want.attention);
    assert_int_equal(got.vocab, want.vocab);
    assert_int_equal(got.expert_ranks, want.expert_ranks);
    assert_int_equal(got.expert_width, want.expert_width);
    assert_int_equal(got.vocab_pad, want.vocab_pad);
}

static void layouts_of_vllm(void **state) {
    (void)state;
    struct builder b;
    builder_begin(&b);
    struct vp_parallel *p = &b.scenario.parallel;
    expect_layout(&b, (struct vp_layout){1, 1, 1, 1, 1, 64});
    p->tensor = 8;
    expect_layout(&b, (struct vp_layout){8, 8, 8, 1, 8, 64});
    b.scenario.engine.expert_parallel = true; /* whole experts over the ranks */
    expect_layout(&b, (struct vp_layout){8, 8, 8, 8, 1, 64});
    p->expert = 8; /* the same said in numbers */
    expect_layout(&b, (struct vp_layout){8, 8, 8, 8, 1, 64});
    p->expert = 4; /* pairs of ranks share an expert's width */
    expect_layout(&b, (struct vp_layout){8, 8, 8, 4, 2, 64});

    /* data ranks have the dense part each, and all of them the experts together */
    p->tensor = 2;
    p->data = 4;
    p->expert = 1;
    b.scenario.engine.expert_parallel = false;
    expect_layout(&b, (struct vp_layout){2, 2, 2, 1, 8, 64});
    b.scenario.engine.expert_parallel = true;
    expect_layout(&b, (struct vp_layout){2, 2, 2, 8, 1, 64});
    /* vLLM's data-parallel attention is these same data ranks: heads are still divided by 2 */
    p->attention_data = 4;
    expect_layout(&b, (struct vp_layout){2, 2, 2, 8, 1, 64});
    builder_end(&b);
}

/* SGLang's data-parallel attention divides the tensor ranks themselves. */
static void layouts_of_sglang(void **state) {
    (void)state;
    struct builder b;
    builder_begin(&b);
    b.scenario.engine.kind = VP_ENGINE_SGLANG;
    b.scenario.parallel.tensor = 8;
    b.scenario.parallel.attention_data = 4;
    expect_layout(&b, (struct vp_layout){8, 2, 2, 1, 8, 64});
    b.scenario.parallel.attention_data = 8;
    b.scenario.parallel.expert = 8;
    expect_layout(&b, (struct vp_layout){8, 1, 1, 8, 1, 64});
    b.scenario.parallel.expert = 2; /* four ranks share the width of each expert */
    expect_layout(&b, (struct vp_layout){8, 1, 1, 2, 4, 64});
    b.scenario.parallel.expert = 8;
    b.scenario.parallel.data = 4; /* copies: nothing is shared with them */
    expect_layout(&b, (struct vp_layout){8, 1, 1, 8, 1, 64});
    b.scenario.parallel.attention_data = 0; /* not said */
    expect_layout(&b, (struct vp_layout){8, 8, 8, 8, 1, 64});
    builder_end(&b);
}

static void layout_of_transformers(void **state) {
    (void)state;
    struct builder b;
    builder_begin(&b);
    b.scenario.engine.kind = VP_ENGINE_TRANSFORMERS;
    expect_layout(&b, (struct vp_layout){1, 1, 1, 1, 1, 1}); /* no padding of the vocabulary */
    builder_end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(remainders),
        cmocka_unit_test(layers_of_a_kind),
        cmocka_unit_test(layouts_of_vllm),
        cmocka_unit_test(layouts_of_sglang),
        cmocka_unit_test(layout_of_transformers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
