#include "tests/unit/fixture.h"

#include <stdio.h>
#include <string.h>

#include "planner/model/model.h"

/* ---- tables ---- */

static void roles_and_classes(void **state) {
    (void)state;
    assert_int_equal(vp_role_class(VP_ROLE_Q), VP_CLASS_ATTENTION);
    assert_int_equal(vp_role_shard(VP_ROLE_K), VP_SHARD_KV);
    assert_int_equal(vp_role_shard(VP_ROLE_EXPERT_UP), VP_SHARD_EXPERT);
    assert_true(strncmp(vp_role_names(VP_ROLE_EMBEDDING), "embed_tokens ", 13) == 0);
    assert_string_equal(vp_class_name(VP_CLASS_LINEAR), "linear_attention");
    assert_true(vp_class_quantised(VP_CLASS_MLP));
    assert_false(vp_class_quantised(VP_CLASS_ROUTER));
    for (int i = 0; i < VP_ROLE_COUNT; i++)
        assert_true(vp_role_class((enum vp_role)i) < VP_CLASS_COUNT);
}

static void schemes_are_listed_once(void **state) {
    (void)state;
    struct vp_model model = {.scheme_count = 0};
    struct vp_scheme bf16 = {.name = "bf16", .data = VP_DTYPE_BF16};
    struct vp_scheme other = bf16;
    assert_int_equal(vp_model_scheme(&model, &bf16), 0);
    for (uint32_t i = 1; i < VP_MAX_SCHEMES; i++) {
        other.group = i;
        assert_int_equal(vp_model_scheme(&model, &other), i);
        assert_int_equal(vp_model_scheme(&model, &other), i);
    }
    assert_int_equal(vp_model_scheme(&model, &bf16), 0);
    other.input_scale = true;
    assert_int_equal(vp_model_scheme(&model, &other), VP_MAX_SCHEMES); /* full */
    assert_int_equal(model.scheme_count, VP_MAX_SCHEMES);
}

/* ---- folding ---- */

static struct vp_block dense(void) {
    struct vp_block block = {.norms = 2};
    block.attention = (struct vp_attention){
        .kind = VP_ATTENTION_GQA, .heads = 32, .kv_heads = 8, .head_dim = 128, .v_head_dim = 128};
    block.mlp = (struct vp_mlp){.kind = VP_MLP_GATED, .intermediate = 14336};
    return block;
}

static void equal_layers_fold(void **state) {
    (void)state;
    struct fixture f;
    struct vp_model model = {.hidden = 4096};
    struct vp_block layers[6];
    fixture_begin(&f);
    for (int i = 0; i < 6; i++) { /* every third layer is full, the others see a window */
        layers[i] = dense();
        layers[i].count = (uint32_t)i; /* not looked at */
        layers[i].attention.window = i % 3 == 2 ? 0 : 1024;
    }
    vp_model_fold(&f.ctx, &model, layers, 6);
    assert_int_equal(model.layer_count, 6);
    assert_int_equal(model.block_count, 2);
    assert_int_equal(model.blocks[0].count, 4);
    assert_int_equal(model.blocks[1].count, 2);
    for (int i = 0; i < 6; i++)
        assert_int_equal(model.layers[i], i % 3 == 2);
    fixture_end(&f);
}

/* Each member of a block, changed alone, makes a kind of its own. When a member is added to one of
 * the structures, the sizes below change: compare it in model.c and add it here. */
static void every_member_counts(void **state) {
    (void)state;
    struct fixture f;
    struct vp_block base = dense(), layers[80];
    struct vp_model model = {.hidden = 4096};
    uint32_t n = 1;
    fixture_begin(&f);
    layers[0] = base;
#define CHANGE(member) (layers[n] = base, layers[n].member = 1, n++)
    CHANGE(norms);
    CHANGE(norm);
    CHANGE(scheme[VP_ROLE_COUNT - 1]);
    CHANGE(attention.heads);
    CHANGE(attention.kv_heads);
    CHANGE(attention.head_dim);
    CHANGE(attention.v_head_dim);
    CHANGE(attention.window);
    CHANGE(attention.chunk);
    CHANGE(attention.qkv_bias);
    CHANGE(attention.out_bias);
    CHANGE(attention.output_gate);
    CHANGE(attention.sinks);
    CHANGE(attention.key_is_value);
    CHANGE(attention.shares_cache);
    CHANGE(attention.qk_norm);
    CHANGE(attention.rotary_dim);
    CHANGE(attention.no_key_bias);
    CHANGE(attention.bidirectional);
    CHANGE(attention.head_gate);
    CHANGE(attention.source_tokens);
    CHANGE(attention.q_lora_rank);
    CHANGE(attention.kv_lora_rank);
    CHANGE(attention.qk_nope_head_dim);
    CHANGE(attention.qk_rope_head_dim);
    CHANGE(attention.index_heads);
    CHANGE(attention.index_head_dim);
    CHANGE(attention.expanded);
    CHANGE(attention.out_groups);
    CHANGE(attention.out_lora_rank);
    CHANGE(attention.compress);
    CHANGE(attention.overlap);
    CHANGE(attention.linear);
    CHANGE(attention.key_heads);
    CHANGE(attention.key_dim);
    CHANGE(attention.value_heads);
    CHANGE(attention.value_dim);
    CHANGE(attention.conv_kernel);
    CHANGE(attention.conv_channels);
    CHANGE(attention.state_elements);
    CHANGE(attention.parameters);
    CHANGE(attention.conv_bias);
    CHANGE(attention.step_rank);
    CHANGE(attention.state_norms);
    CHANGE(attention.no_norm);
    CHANGE(attention.state_dtype);
    CHANGE(second.heads);
    CHANGE(mlp.kind);
    CHANGE(mlp.intermediate);
    CHANGE(mlp.bias);
    CHANGE(moe.kind);
    CHANGE(moe.experts);
    CHANGE(moe.top_k);
    CHANGE(moe.intermediate);
    CHANGE(moe.shared_intermediate);
    CHANGE(moe.input);
    CHANGE(moe.zero_experts);
    CHANGE(moe.bias);
    CHANGE(moe.router_bias);
    CHANGE(moe.score_bias);
    CHANGE(moe.shared_switch);
#undef CHANGE
    layers[n] = base;
    layers[n++].attention.kind = VP_ATTENTION_MLA;
    assert_true(n <= sizeof layers / sizeof *layers);
    vp_model_fold(&f.ctx, &model, layers, n);
    assert_int_equal(model.block_count, n);
    if (sizeof(void *) == 8) {
        assert_int_equal(sizeof(struct vp_attention), 272);
        assert_int_equal(sizeof(struct vp_mlp), 24);
        assert_int_equal(sizeof(struct vp_moe), 64);
    }
    fixture_end(&f);
}

static void caps(void **state) {
    (void)state;
    struct fixture f;
    struct vp_model model = {.hidden = 4096, .vocab = 1000, .embedding = true};
    static struct vp_block layers[VP_MAX_LAYERS + 1];
    fixture_begin(&f);
    for (int i = 0; i <= VP_MAX_LAYERS; i++)
        layers[i] = dense();
    vp_model_fold(&f.ctx, &model, layers, VP_MAX_LAYERS);
    assert_int_equal(vp_model_validate(&f.ctx, &model), VP_OK);
    vp_model_fold(&f.ctx, &model, layers, VP_MAX_LAYERS + 1);
    assert_int_equal(vp_model_validate(&f.ctx, &model), VP_ERR_INPUT);
    fixture_expect(&f, VP_D_MODEL_FIELD, "num_hidden_layers: 4097 is more than 4096");

    for (int i = 0; i <= VP_MAX_BLOCKS; i++)
        layers[i].attention.window = (uint64_t)i;
    vp_model_fold(&f.ctx, &model, layers, VP_MAX_BLOCKS);
    assert_int_equal(vp_model_validate(&f.ctx, &model), VP_OK);
    vp_model_fold(&f.ctx, &model, layers, VP_MAX_BLOCKS + 1);
    assert_int_equal(vp_model_validate(&f.ctx, &model), VP_ERR_INPUT);
    fixture_expect(&f, VP_D_MODEL_FIELD, "num_hidden_layers: more than 512 kinds of layers");
    fixture_end(&f);
}

/* ---- validation ---- */

struct checked {
    struct fixture f;
    struct vp_model model;
    struct vp_block layers[3];
    uint32_t count;
};

static void begin(struct checked *c) {
    memset(c, 0, sizeof *c);
    fixture_begin(&c->f);
    c->count = 3;
    for (uint32_t i = 0; i < c->count; i++)
        c->layers[i] = dense();
    c->model = (struct vp_model){.model_type = "llama",
                                 .hidden = 4096,
                                 .vocab = 128256,
                                 .embedding = true,
                                 .lm_head = true,
                                 .final_norm = true};
}

static enum vp_status validate(struct checked *c) {
    fixture_clear(&c->f);
    vp_model_fold(&c->f.ctx, &c->model, c->layers, c->count);
    return vp_model_validate(&c->f.ctx, &c->model);
}

/* Refused with this message, and with nothing else. */
static void refused(struct checked *c, const char *words) {
    assert_int_equal(validate(c), VP_ERR_INPUT);
    fixture_expect(&c->f, VP_D_MODEL_FIELD, words);
    assert_int_equal(c->f.diags.count, 1);
}

static void a_sound_model_passes(void **state) {
    (void)state;
    struct checked c;
    begin(&c);
    assert_int_equal(validate(&c), VP_OK);
    assert_int_equal(c.f.diags.count, 0);
    fixture_end(&c.f);
}

static void heads_must_fit(void **state) {
    (void)state;
    struct checked c;
    begin(&c);
    for (int i = 0; i < 3; i++)
        c.layers[i].attention.kv_heads = 64;
    refused(&c, "num_key_value_heads: 64 is more than num_attention_heads 32");
    for (int i = 0; i < 3; i++)
        c.layers[i].attention.kv_heads = 5;
    refused(&c, "num_attention_heads: 32 is not a multiple of num_key_value_heads 5");
    for (int i = 0; i < 3; i++)
        c.layers[i].attention.kv_heads = 0;
    refused(&c, "num_key_value_heads: must be at least 1");
    for (int i = 0; i < 3; i++)
        c.layers[i] = dense(), c.layers[i].attention.heads = 0;
    refused(&c, "num_attention_heads: must be at least 1");
    for (int i = 0; i < 3; i++)
        c.layers[i] = dense(), c.layers[i].attention.rotary_dim = 256;
    refused(&c, "head_dim: 128 is less than its rotary part 256");
    fixture_end(&c.f);
}

static void a_fault_names_its_layer(void **state) {
    (void)state;
    struct checked c;
    begin(&c);
    c.layers[2].mlp.intermediate = 0;
    refused(&c, "intermediate_size: must be at least 1 (layer 2)");
    fixture_end(&c.f);
}

static void all_faults_at_once(void **state) {
    (void)state;
    struct checked c;
    begin(&c);
    c.model.vocab = 0;
    c.layers[0].attention.head_dim = 0;
    c.layers[1].mlp.intermediate = 0;
    assert_int_equal(validate(&c), VP_ERR_INPUT);
    fixture_expect(&c.f, VP_D_MODEL_FIELD, "vocab_size: must be at least 1");
    fixture_expect(&c.f, VP_D_MODEL_FIELD, "head_dim: must be at least 1 (layer 0)");
    fixture_expect(&c.f, VP_D_MODEL_FIELD, "intermediate_size: must be at least 1 (layer 1)");
    assert_int_equal(c.f.diags.count, 3);
    fixture_end(&c.f);
}

static void ends(void **state) {
    (void)state;
    struct checked c;
    begin(&c);
    c.model.hidden = 0;
    refused(&c, "hidden_size: must be at least 1");
    c.model.hidden = 4096;
    c.count = 0;
    refused(&c, "num_hidden_layers: the model has no layers");
    c.count = 3;
    c.model.embedding = false;
    c.model.tied = true;
    refused(&c, "tie_word_embeddings: there is no embedding");
    fixture_end(&c.f);
}

static void experts(void **state) {
    (void)state;
    struct checked c;
    begin(&c);
    for (int i = 0; i < 3; i++) {
        c.layers[i].mlp.kind = VP_MLP_NONE;
        c.layers[i].moe =
            (struct vp_moe){.kind = VP_MLP_GATED, .experts = 128, .top_k = 8, .intermediate = 768};
    }
    assert_int_equal(validate(&c), VP_OK);
    for (int i = 0; i < 3; i++)
        c.layers[i].moe.top_k = 129;
    refused(&c, "num_experts_per_tok: 129 is more than num_experts 128");
    for (int i = 0; i < 3; i++)
        c.layers[i].moe.top_k = 0;
    refused(&c, "num_experts_per_tok: must be at least 1");
    for (int i = 0; i < 3; i++)
        c.layers[i].moe.top_k = 8, c.layers[i].moe.intermediate = 0;
    refused(&c, "moe_intermediate_size: must be at least 1");
    for (int i = 0; i < 3; i++)
        c.layers[i].moe.intermediate = 768, c.layers[i].moe.experts = 0;
    refused(&c, "num_experts: must be at least 1");
    fixture_end(&c.f);
}

static void latent_attention(void **state) {
    (void)state;
    struct checked c;
    begin(&c);
    c.count = 1;
    c.layers[0].attention = (struct vp_attention){.kind = VP_ATTENTION_MLA,
                                                  .heads = 128,
                                                  .q_lora_rank = 1536,
                                                  .kv_lora_rank = 512,
                                                  .qk_nope_head_dim = 128,
                                                  .qk_rope_head_dim = 64,
                                                  .v_head_dim = 128};
    assert_int_equal(validate(&c), VP_OK);
    c.layers[0].attention.index_heads = 64;
    refused(&c, "index_head_dim: must be at least 1");
    c.layers[0].attention.index_head_dim = 128;
    assert_int_equal(validate(&c), VP_OK);
    c.layers[0].attention.v_head_dim = 0;
    refused(&c, "v_head_dim: must be at least 1");
    c.layers[0].attention.v_head_dim = 128;
    c.layers[0].attention.kv_lora_rank = 0;
    refused(&c, "kv_lora_rank: must be at least 1");
    c.layers[0].attention.kv_lora_rank = 512;
    c.layers[0].attention.qk_nope_head_dim = c.layers[0].attention.qk_rope_head_dim = 0;
    refused(&c, "qk_nope_head_dim: must be at least 1");
    fixture_end(&c.f);
}

static void linear_attention(void **state) {
    (void)state;
    struct checked c;
    begin(&c);
    c.count = 1;
    c.layers[0].attention = (struct vp_attention){.kind = VP_ATTENTION_LINEAR,
                                                  .linear = VP_LINEAR_MAMBA2,
                                                  .key_heads = 8,
                                                  .key_dim = 128,
                                                  .value_heads = 64,
                                                  .value_dim = 64,
                                                  .conv_kernel = 4,
                                                  .conv_channels = 6144};
    assert_int_equal(validate(&c), VP_OK);
    c.layers[0].attention.key_heads = 7;
    refused(&c, "mamba_num_heads: 64 is not a multiple of n_groups 7");
    c.layers[0].attention.key_heads = 8;
    c.layers[0].attention.key_dim = 0;
    refused(&c, "ssm_state_size: must be at least 1");
    c.layers[0].attention.linear = VP_LINEAR_GATED_DELTA;
    refused(&c, "linear_key_head_dim: must be at least 1");
    c.layers[0].attention = (struct vp_attention){
        .kind = VP_ATTENTION_LINEAR, .linear = VP_LINEAR_GIVEN, .state_elements = 1000};
    assert_int_equal(validate(&c), VP_OK);
    fixture_end(&c.f);
}

/* What describes the cache alone needs neither width nor heads, but a config.json does. */
static void attention_alone(void **state) {
    (void)state;
    struct checked c;
    begin(&c);
    c.count = 1;
    c.layers[0] = (struct vp_block){.count = 1};
    c.layers[0].attention = (struct vp_attention){
        .kind = VP_ATTENTION_GQA, .kv_heads = 8, .head_dim = 128, .v_head_dim = 128};
    c.model = (struct vp_model){.model_type = "blocks"};
    assert_int_equal(validate(&c), VP_OK);
    c.layers[0].norms = 2;
    refused(&c, "hidden_size: must be at least 1");
    c.layers[0].norms = 0;
    c.layers[0].attention.kv_heads = 0;
    refused(&c, "kv_heads: must be at least 1");
    c.layers[0].attention = (struct vp_attention){.kind = VP_ATTENTION_NONE};
    assert_int_equal(validate(&c), VP_OK); /* the empty block */
    fixture_end(&c.f);
}

static void sizes_beyond_64_bits(void **state) {
    (void)state;
    struct checked c;
    begin(&c);
    c.model.vocab = UINT64_C(1) << 62;
    refused(&c, "vocab_size: 4611686018427387904 times hidden_size 4096 exceeds 64 bits");
    fixture_end(&c.f);
    begin(&c);
    for (int i = 0; i < 3; i++)
        c.layers[i].attention.heads = UINT64_C(1) << 60;
    refused(&c, "num_attention_heads: 1152921504606846976 times head_dim 128 exceeds 64 bits");
    fixture_end(&c.f);
    begin(&c);
    for (int i = 0; i < 3; i++)
        c.layers[i].mlp.intermediate = UINT64_C(1) << 48; /* 3 x 2^60 a layer: only the sum */
    refused(&c, "num_hidden_layers: the sizes of all 3 layers together exceed 64 bits");
    fixture_end(&c.f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles_and_classes),
        cmocka_unit_test(schemes_are_listed_once),
        cmocka_unit_test(equal_layers_fold),
        cmocka_unit_test(every_member_counts),
        cmocka_unit_test(caps),
        cmocka_unit_test(a_sound_model_passes),
        cmocka_unit_test(heads_must_fit),
        cmocka_unit_test(a_fault_names_its_layer),
        cmocka_unit_test(all_faults_at_once),
        cmocka_unit_test(ends),
        cmocka_unit_test(experts),
        cmocka_unit_test(latent_attention),
        cmocka_unit_test(linear_attention),
        cmocka_unit_test(attention_alone),
        cmocka_unit_test(sizes_beyond_64_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
