/* Speculative decoding: the draft's weights, its layers in the cache, states to go back to. By
 * hand: hidden 256, 8 heads and 2 KV heads of 32, a gated feed-forward of 512, two norms, 16 bit:
 *
 *   attention  256 x (256 + 64 + 64 + 256) x 2 bytes     327,680
 *   mlp        3 x 256 x 512 x 2                         786,432
 *   norms      2 x 256 x 2                                 1,024   one layer: 1,115,136 */
#include "planner/memory/draft.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "tests/unit/model_builder.h"

enum { LAYER = 1115136 };

static struct builder b;
static struct builder own; /* holds the draft's model */
static struct vp_draft *draft;

static struct vp_block dense(void) {
    struct vp_block block = block_gqa(8, 2, 32);
    block.mlp = (struct vp_mlp){.kind = VP_MLP_GATED, .intermediate = 512};
    block.norms = 2;
    return block;
}

static int begin(void **state) {
    (void)state;
    builder_begin(&b);
    b.model.hidden = 256;
    builder_layer(&b, dense(), 4);
    builder_ends(&b, 1024, false);
    builder_begin(&own);
    own.model.hidden = 256;
    builder_layer(&own, dense(), 1);
    draft = &b.scenario.draft;
    *draft =
        (struct vp_draft){.method = VP_DRAFT_MODEL, .model = &own.model, .tokens = 3, .tensor = 1};
    return 0;
}

static int end(void **state) {
    (void)state;
    builder_end(&own);
    builder_end(&b);
    return 0;
}

static struct vp_ledger load(uint32_t index) {
    struct vp_ledger ledger = builder_ledger(&b);
    uint32_t count = (uint32_t)b.scenario.parallel.pipeline;
    struct vp_stage stage = vp_stage_split(b.model.layer_count, count, index);
    vp_draft_add(&ledger, &b.scenario, &stage, index);
    assert_false(ledger.overflow);
    return ledger;
}

static uint64_t bytes(void) {
    struct vp_ledger ledger = load(0);
    assert_int_equal(ledger_likely(&ledger, 0, VP_C_WEIGHTS), 0);
    return ledger_likely(&ledger, 0, VP_C_DRAFT);
}

/* ---- weights ---- */

static void a_model_of_its_own(void **state) {
    (void)state;
    assert_int_equal(bytes(), LAYER);
    builder_ends(&own, 1024, false); /* embedding, head, last norm */
    assert_int_equal(bytes(), LAYER + 2 * 1024 * 256 * 2 + 512);
    draft->tensor = 2;
    assert_int_equal(bytes(), (327680 + 786432) / 2 + 1024 + 1024 * 256 * 2 + 512);
    own.model.tied = true; /* what the target does not share */
    assert_int_equal(bytes(), (327680 + 786432) / 2 + 1024 + 512 * 256 * 2 + 512);
}

static void nothing_to_load(void **state) {
    (void)state;
    draft->method = VP_DRAFT_NGRAM;
    draft->model = NULL;
    assert_int_equal(bytes(), 0);
    draft->method = VP_DRAFT_NONE;
    assert_int_equal(bytes(), 0);
}

/* On the last stage, whole, whatever the target's stages. */
static void stages(void **state) {
    (void)state;
    b.scenario.parallel.pipeline = 2;
    struct vp_ledger first = load(0), last = load(1);
    assert_int_equal(first.count, 0);
    assert_int_equal(ledger_likely(&last, 1, VP_C_DRAFT), LAYER);
}

static void an_eagle_head(void **state) {
    (void)state;
    draft->method = VP_DRAFT_EAGLE;
    draft->fused_inputs = 512;
    struct vp_ledger ledger = load(0);
    assert_int_equal(ledger_owner(&ledger, 0, "joined inputs"), 512 * 256 * 2);
    assert_int_equal(ledger_likely(&ledger, 0, VP_C_DRAFT), LAYER + 512 * 256 * 2);
    draft->tensor =
        4; /* the joint is whole on every rank; two KV heads are halved, not quartered */
    assert_int_equal(bytes(), 256 * (64 + 32 + 32 + 64) * 2 + 786432 / 4 + 1024 + 512 * 256 * 2);
}

/* Three hidden states are joined, the first layer reads two vectors, the head knows 130 words. */
static void an_eagle3_head(void **state) {
    (void)state;
    draft->method = VP_DRAFT_EAGLE3;
    draft->fused_inputs = 768;
    draft->wide_first = true;
    draft->head_vocab = 130;
    struct vp_ledger ledger = load(0);
    assert_int_equal(ledger_owner(&ledger, 0, "joined inputs"), 768 * 256 * 2);
    assert_int_equal(ledger_owner(&ledger, 0, "second inputs"), 256 * (256 + 64 + 64) * 2);
    assert_int_equal(ledger_owner(&ledger, 0, "draft lm_head"), 192 * 256 * 2); /* padded to 64 */
    assert_int_equal(ledger_owner(&ledger, 0, "vocabulary map"), 130 * 8);
    for (uint32_t i = 0; i < ledger.count; i++)
        assert_int_equal(ledger.rows[i].component, VP_C_DRAFT);
    draft->tensor = 2;
    ledger = load(0);
    assert_int_equal(ledger_owner(&ledger, 0, "second inputs"), 256 * (128 + 32 + 32) * 2);
    assert_int_equal(ledger_owner(&ledger, 0, "draft lm_head"), 96 * 256 * 2);
    assert_int_equal(ledger_owner(&ledger, 0, "vocabulary map"), 130 * 8);
}

/* The model's own layer: a joint of 2 x 256 to 256, three norms, and the layer. */
static struct vp_extra *add_mtp(void) {
    static struct vp_block layer;
    static struct vp_extra extra;
    layer = dense();
    extra = (struct vp_extra){.name = "MTP layers",
                              .matrix_elements = 512 * 256,
                              .other_elements = 768,
                              .layer = &layer,
                              .layers = 1};
    b.model.extras = &extra;
    b.model.extra_count = 1;
    draft->method = VP_DRAFT_MTP;
    draft->model = NULL;
    return &extra;
}

static void own_layers(void **state) {
    (void)state;
    struct vp_extra *extra = add_mtp();
    assert_ptr_equal(vp_model_mtp(&b.model), extra);
    struct vp_ledger ledger = load(0);
    assert_int_equal(ledger_owner(&ledger, 0, "MTP layers"), LAYER + 512 * 256 * 2 + 768 * 2);
    assert_int_equal(ledger_row(&ledger, 0, "MTP layers")->component, VP_C_DRAFT);
    assert_int_equal(ledger_row(&ledger, 0, "MTP layers")->formula, VP_FORMULA_W_EXTRA);
    uint64_t target = builder_weights(&b, NULL, 0); /* not among its weights */
    b.model.extra_count = 0;
    assert_int_equal(builder_weights(&b, NULL, 0), target);
    assert_null(vp_model_mtp(&b.model));
    assert_int_equal(bytes(), 0);
}

/* ---- cache ---- */

static void layers_join_the_pool(void **state) {
    (void)state;
    struct vp_kv_plan kv = builder_kv(&b, 0);
    assert_int_equal(kv.types, 1);
    assert_int_equal(kv.type[0].layers, 5); /* four of the target, one of the draft */
    assert_int_equal(kv.token_bytes, 5 * 2 * 64 * 2);
    assert_int_equal(kv.unit_bytes, 5 * 16 * 256);
    builder_layer(&own, block_gqa(4, 4, 32), 2); /* heads of another number: a type of its own */
    kv = builder_kv(&b, 0);
    assert_int_equal(kv.types, 2);
    assert_int_equal(kv.token_bytes, 4 * 256 + 2 * 512);
    assert_int_equal(kv.groups, 1);
    assert_int_equal(kv.unit_bytes, 16 * (4 * 256 + 2 * 512));
    add_mtp();
    assert_int_equal(builder_kv(&b, 0).token_bytes, 5 * 256);
    draft->method = VP_DRAFT_NGRAM;
    assert_int_equal(builder_kv(&b, 0).token_bytes, 4 * 256);
}

static void cache_of_stages_and_ranks(void **state) {
    (void)state;
    b.scenario.parallel.pipeline = 2;
    assert_int_equal(builder_kv(&b, 0).type[0].layers, 2);
    assert_int_equal(builder_kv(&b, 1).type[0].layers, 3);
    b.scenario.parallel.pipeline = 1;
    b.scenario.parallel.tensor = 2; /* the draft is not divided: twice the target's heads */
    struct vp_kv_plan kv = builder_kv(&b, 0);
    assert_int_equal(kv.types, 2);
    assert_int_equal(kv.token_bytes, 4 * 128 + 256);
    draft->tensor = 2;
    assert_int_equal(builder_kv(&b, 0).token_bytes, 5 * 128);
}

/* A recurrent layer keeps a state per proposed token more. */
static void states_to_go_back_to(void **state) {
    (void)state;
    struct vp_block kinds[] = {dense(), block_state(4096, VP_DTYPE_BF16)};
    builder_layers(&b, kinds, (uint32_t[]){2, 2}, 2);
    draft->method = VP_DRAFT_NONE;
    assert_int_equal(builder_kv(&b, 0).state_pages, 1);
    draft->method = VP_DRAFT_NGRAM;
    assert_int_equal(builder_kv(&b, 0).state_pages, 4);
    b.scenario.engine.prefix_caching = true;
    b.scenario.engine.rules.state_pages_cached = 2;
    assert_int_equal(builder_kv(&b, 0).state_pages, 5);
    uint64_t before = 0;
    for (draft->tokens = 0; draft->tokens < 8; draft->tokens++) {
        struct vp_kv_plan kv = builder_kv(&b, 0);
        uint64_t units = vp_kv_units(&kv, 1000);
        assert_true(units > before);
        before = units;
    }
}

/* ---- a whole plan ---- */

static void depth_and_activations(void **state) {
    (void)state;
    struct vp_ledger ledger = builder_ledger(&b);
    b.scenario.engine.rules.sampler_millibytes = 40000;
    b.scenario.engine.rules.graph_per_layer = vp_exactly(1000);
    struct vp_engine_stage with = builder_stage(&b, &ledger, 0);
    assert_int_equal(vp_draft_depth(&b.scenario), 1);
    *draft = (struct vp_draft){.method = VP_DRAFT_NONE};
    struct vp_engine_stage without = builder_stage(&b, &ledger, 0);
    assert_int_equal(with.graphs.likely - without.graphs.likely, 1000);
    assert_int_equal(with.weights.likely - without.weights.likely, LAYER);
    /* two copies of the logits of 256 sequences, up to four and the hidden states */
    assert_int_equal(with.activation.likely - without.activation.likely, 256 * 1024 * 4);
    assert_int_equal(with.activation.low, without.activation.low);
    assert_int_equal(with.activation.high - without.activation.high,
                     256 * 1024 * 8 + 2048 * 256 * 2);
}

/* A Qwen3.5-9B on a card of 32 GB, vLLM 0.20: 17.66 GiB loaded, 18.12 with its own layer; three
 * padding layers ("at most 12.50%"), blocks of 528 tokens. */
static const char QWEN[] =
    "model:\n  model_type: qwen3_5\n"
    "  text_config: {model_type: qwen3_5_text, hidden_size: 4096, intermediate_size: 12288,\n"
    "    num_hidden_layers: 32, num_attention_heads: 16, num_key_value_heads: 4, head_dim: 256,\n"
    "    vocab_size: 248320, max_position_embeddings: 262144, linear_conv_kernel_dim: 4,\n"
    "    linear_key_head_dim: 128, linear_num_key_heads: 16, linear_num_value_heads: 32,\n"
    "    linear_value_head_dim: 128, full_attention_interval: 4, mamba_ssm_dtype: float32,\n"
    "    mtp_num_hidden_layers: 1, tie_word_embeddings: false}\n"
    "  vision_config: {model_type: qwen3_5, deepstack_visual_indexes: [], depth: 27,\n"
    "    hidden_size: 1152, in_channels: 3, intermediate_size: 4304, num_heads: 16,\n"
    "    num_position_embeddings: 2304, out_hidden_size: 4096, patch_size: 16,\n"
    "    spatial_merge_size: 2, temporal_patch_size: 2}\n"
    "hardware: {gpu: rtx5090}\n"
    "engine: {name: vllm, version: \"0.20.0\", args: {gpu_memory_utilization: 0.85,\n"
    "  max_model_len: 4096, max_num_batched_tokens: 8192, max_num_seqs: 256}}\n";

static void a_logged_run(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    const struct vp_result *plain = plan_yaml(&f, QWEN);
    assert_near(plain->report.weights.likely, UINT64_C(17660) * GIB(1) / 1000, 1);
    const uint64_t left = UINT64_C(6560) * GIB(1) / 1000; /* for the cache */
    assert_true(plain->report.available_kv.low < left && left < plain->report.available_kv.high);
    assert_near(plain->report.available_kv.likely, left, 30);
    const struct vp_result *mtp =
        plan_yaml_with(&f, QWEN, "engine.args.speculative_config", "{method: mtp}");
    assert_int_equal(mtp->scenario->draft.tokens, 1); /* as many as it has layers for it */
    assert_near(mtp->report.weights.likely, UINT64_C(18120) * GIB(1) / 1000, 1);
    assert_int_equal(mtp->report.block_size, 528);
    assert_int_equal(mtp->kv.group_count, 2);
    assert_int_equal(mtp->kv.group[0].padding_layers, 3);
    assert_int_equal(mtp->kv.group[0].pages_per_sequence, 2);
    assert_int_equal(mtp->kv.group[1].layers, 9);
    assert_true(mtp->report.kv_cache_tokens.low <= 41184);
    assert_true(mtp->report.kv_cache_tokens.high >= 41184);
    fixture_end(&f);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        T(a_model_of_its_own),
        T(nothing_to_load),
        T(stages),
        T(an_eagle_head),
        T(an_eagle3_head),
        T(own_layers),
        T(layers_join_the_pool),
        T(cache_of_stages_and_ranks),
        T(states_to_go_back_to),
        T(depth_and_activations),
        T(a_logged_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
