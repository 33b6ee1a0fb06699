/* LoRA slots. By hand: hidden 256, 8 heads and 2 KV heads of 32, a gated feed-forward of 512, four
 * layers, rank 16, two slots, 16 bit. A is rank x inputs, B is outputs x rank:
 *
 *   q, o   A 16 x 256, B 256 x 16      k, v   A 16 x 256, B 64 x 16
 *   gate, up  A 16 x 256, B 512 x 16   down   A 16 x 512, B 256 x 16
 *   attention   A 16,384   B 10,240   -> 2 slots x 4 layers x 26,624 x 2 bytes = 425,984
 *   mlp         A 16,384   B 20,480   -> 2 x 4 x 36,864 x 2 = 589,824 */
#include "planner/memory/adapters.h"

#include "tests/unit/model_builder.h"

static struct builder b;
static struct vp_lora *lora;
static struct vp_rules *rules;

static struct vp_block dense(void) {
    struct vp_block block = block_gqa(8, 2, 32);
    block.mlp = (struct vp_mlp){.kind = VP_MLP_GATED, .intermediate = 512};
    return block;
}

static int begin(void **state) {
    (void)state;
    builder_begin(&b);
    b.model.hidden = 256;
    builder_layer(&b, dense(), 4);
    lora = &b.scenario.lora;
    rules = &b.scenario.engine.rules;
    *lora = (struct vp_lora){.enabled = true, .slots = 2, .rank = 16, .dtype = VP_DTYPE_BF16};
    rules->lora_experts = VP_ALWAYS;
    return 0;
}

static int end(void **state) {
    (void)state;
    builder_end(&b);
    return 0;
}

static struct vp_ledger adapt(uint32_t index) {
    struct vp_ledger ledger = builder_ledger(&b);
    uint32_t count = (uint32_t)b.scenario.parallel.pipeline;
    struct vp_stage stage = vp_stage_split(b.model.layer_count, count, index);
    vp_adapters_add(&ledger, &b.scenario, &stage, index);
    assert_false(ledger.overflow);
    return ledger;
}

static uint64_t bytes(void) {
    struct vp_ledger ledger = adapt(0);
    return ledger_likely(&ledger, 0, VP_C_ADAPTERS);
}

static void pairs_of_a_layer(void **state) {
    (void)state;
    struct vp_ledger ledger = adapt(0);
    const struct vp_row *row = ledger_row(&ledger, 0, "attention");
    assert_int_equal(row->component, VP_C_ADAPTERS);
    assert_int_equal(row->formula, VP_FORMULA_LORA);
    assert_int_equal(row->confidence, VP_EXACT);
    assert_int_equal(row->bytes.low, 425984);
    assert_int_equal(row->bytes.high, 425984);
    assert_int_equal(row_input(row, "a_elements"), 16384);
    assert_int_equal(row_input(row, "b_elements"), 10240);
    assert_int_equal(row_input(row, "slots"), 2);
    assert_int_equal(row_input(row, "rank"), 16);
    assert_int_equal(ledger_owner(&ledger, 0, "mlp"), 589824);
    lora->enabled = false;
    assert_int_equal(bytes(), 0);
}

/* Four ranks: of a matrix divided by outputs A stays whole, of one divided by inputs B does. Two
 * KV heads are not divided below a half. */
static void tensor_ranks(void **state) {
    (void)state;
    b.scenario.parallel.tensor = 4;
    struct vp_ledger ledger = adapt(0);
    /* q A 4096 B 1024; k, v A 4096 B 512 each; o A 1024 B 4096 */
    uint64_t attention = 4096 + 1024 + 2 * (4096 + 512) + 1024 + 4096;
    /* gate, up A 4096 B 2048 each; down A 2048 B 4096 */
    uint64_t mlp = 2 * (4096 + 2048) + 2048 + 4096;
    assert_int_equal(ledger_owner(&ledger, 0, "attention"), 2 * 4 * 2 * attention);
    assert_int_equal(ledger_owner(&ledger, 0, "mlp"), 2 * 4 * 2 * mlp);
    lora->sharded = true; /* the other halves by the rank, or by the outputs */
    ledger = adapt(0);
    attention = 1024 + 1024 + 2 * (1024 + 512) + 1024 + 1024;
    mlp = 2 * (1024 + 2048) + 2048 + 1024;
    assert_int_equal(ledger_owner(&ledger, 0, "attention"), 2 * 4 * 2 * attention);
    assert_int_equal(ledger_owner(&ledger, 0, "mlp"), 2 * 4 * 2 * mlp);
}

static void stages_share_the_layers(void **state) {
    (void)state;
    uint64_t whole = bytes();
    b.scenario.parallel.pipeline = 2;
    struct vp_ledger first = adapt(0), second = adapt(1);
    assert_int_equal(ledger_likely(&first, 0, VP_C_ADAPTERS), whole / 2);
    assert_int_equal(ledger_likely(&second, 1, VP_C_ADAPTERS), whole / 2);
}

/* Llama's classes adapt embedding and head; neither is divided. */
static void vocabulary(void **state) {
    (void)state;
    builder_ends(&b, 10000, false);
    rules->lora_vocabulary = VP_ALWAYS;
    b.scenario.parallel.tensor = 2;
    struct vp_ledger ledger = adapt(0);
    assert_int_equal(ledger_owner(&ledger, 0, "embedding"), 2 * 16 * (10000 + 256) * 2);
    assert_int_equal(ledger_owner(&ledger, 0, "lm_head"), 2 * 16 * (10000 + 256) * 2);
    assert_int_equal(ledger_row(&ledger, 0, "lm_head")->formula, VP_FORMULA_LORA_VOCAB);
    /* Rows for added tokens: 256 per slot in the embedding and 256 in the head, halved by the
     * ranks; 256 per slot once more beside the head. */
    rules->lora_extra_rows = 256;
    ledger = adapt(0);
    assert_int_equal(ledger_owner(&ledger, 0, "embedding"),
                     2 * 16 * (10256 + 256) * 2 + 256 * 256 * 2);
    assert_int_equal(ledger_owner(&ledger, 0, "lm_head"),
                     2 * 16 * (10256 + 256) * 2 + 128 * 256 * 2 + 256 * 2 * 256 * 2);
    rules->lora_extra_rows = 0;
    rules->lora_vocabulary = VP_MAYBE;
    ledger = adapt(0);
    const struct vp_row *row = ledger_row(&ledger, 0, "embedding");
    assert_int_equal(row->confidence, VP_CLASS_AVERAGE);
    assert_int_equal(row->bytes.low, 0);
    assert_int_equal(row->bytes.likely, 2 * 16 * (10000 + 256) * 2);
    rules->lora_vocabulary = VP_NEVER;
    ledger = adapt(0);
    assert_false(ledger_has(&ledger, 0, "embedding"));
}

static struct vp_block sparse(void) {
    struct vp_block block = block_gqa(8, 2, 32);
    block.moe =
        (struct vp_moe){.kind = VP_MLP_GATED, .experts = 10, .top_k = 2, .intermediate = 96};
    return block;
}

/* Ten experts of 96: gate, up A 16 x 256, B 96 x 16; down A 16 x 96, B 256 x 16. */
static void experts(void **state) {
    (void)state;
    builder_layer(&b, sparse(), 4);
    struct vp_ledger ledger = adapt(0);
    uint64_t gate = 4096 + 1536, down = 1536 + 4096;
    assert_int_equal(ledger_owner(&ledger, 0, "experts"), 2 * 4 * 2 * 10 * (2 * gate + down));
    assert_int_equal(ledger_owner(&ledger, 0, "router"), 2 * 4 * 2 * (16 * 256 + 10 * 16));
    rules->lora_joint_experts = VP_ALWAYS; /* gate and up share one A */
    ledger = adapt(0);
    assert_int_equal(ledger_owner(&ledger, 0, "experts"), 2 * 4 * 2 * 10 * (gate + 1536 + down));
    rules->lora_joint_experts = VP_MAYBE;
    ledger = adapt(0);
    assert_int_equal(ledger_owner(&ledger, 0, "experts"), 2 * 4 * 2 * 10 * (2 * gate + down));
    assert_int_equal(ledger_row(&ledger, 0, "experts")->bytes.low,
                     2 * 4 * 2 * 10 * (gate + 1536 + down));
    rules->lora_experts = VP_NEVER;
    ledger = adapt(0);
    assert_false(ledger_has(&ledger, 0, "experts"));
}

static void fused_projections_share_a(void **state) {
    (void)state;
    uint64_t apart = bytes();
    rules->lora_joint_layers = true; /* A once for q, k, v and once for gate, up */
    assert_int_equal(apart - bytes(), 2 * 4 * 2 * 3 * 16 * 256);
}

/* SGLang adapts the same matrices, but no router. */
static void sglang(void **state) {
    (void)state;
    uint64_t vllm = bytes();
    b.scenario.engine.kind = VP_ENGINE_SGLANG;
    assert_int_equal(bytes(), vllm);
    builder_layer(&b, sparse(), 4);
    struct vp_ledger ledger = adapt(0);
    assert_false(ledger_has(&ledger, 0, "router"));
}

static void never_less_for_more(void **state) {
    (void)state;
    static const uint64_t TENSOR[] = {1, 2, 4, 8};
    builder_ends(&b, 1000, true);
    rules->lora_vocabulary = VP_ALWAYS;
    for (size_t t = 0; t < 4; t++) {
        uint64_t before = 0;
        b.scenario.parallel.tensor = TENSOR[t];
        for (uint64_t slots = 1; slots <= 4; slots++)
            for (lora->rank = 8; lora->rank <= 512; lora->rank *= 2) {
                lora->slots = slots;
                uint64_t now = bytes();
                assert_true(lora->rank == 8 || now > before);
                before = now;
            }
        lora->rank = 64;
        lora->slots = 1;
        uint64_t one = bytes();
        lora->slots = 3;
        assert_int_equal(bytes(), 3 * one); /* slots are alike */
    }
}

static void overflow_is_told(void **state) {
    (void)state;
    struct vp_ledger ledger = builder_ledger(&b);
    struct vp_stage stage = vp_stage_split(4, 1, 0);
    lora->slots = UINT64_C(1) << 62;
    vp_adapters_add(&ledger, &b.scenario, &stage, 0);
    assert_true(ledger.overflow);
}

/* Nothing to all of it, where versions differ. */
static void in_some_versions(void **state) {
    (void)state;
    builder_layer(&b, sparse(), 4);
    builder_ends(&b, 1000, false);
    rules->lora_experts = VP_MAYBE;
    rules->lora_vocabulary = VP_MAYBE;
    struct vp_ledger ledger = adapt(0);
    static const char *const OWNERS[] = {"experts", "embedding", "lm_head"};
    for (size_t i = 0; i < 3; i++) {
        const struct vp_row *row = ledger_row(&ledger, 0, OWNERS[i]);
        assert_int_equal(row->formula, VP_FORMULA_LORA_MAYBE);
        assert_int_equal(row->bytes.low, 0);
        assert_int_equal(row->bytes.likely, row->bytes.high);
    }
    assert_int_equal(ledger_owner(&ledger, 0, "experts"), 2 * 4 * 2 * 10 * 3 * (4096 + 1536));
    assert_int_equal(ledger_owner(&ledger, 0, "lm_head"), 2 * 16 * (1000 + 256) * 2);
}

/* 30 recurrent layers of 2048: q, k, v and z in one and the two gates in one get an A per slice in
 * later versions, and the convolution over 8192 channels and 4 steps a pair. */
static void recurrent_layers(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    const struct vp_result *r =
        plan_yaml(&f, "model: qwen3.5-35b-a3b\nhardware: {gpu: h200}\n"
                      "serve: {context: 8192, lora: {slots: 2, rank: 16}}\n"
                      "engine: {name: vllm, version: \"0.19\", args: {max_num_seqs: 64}}\n");
    uint64_t maybe = 0;
    for (uint32_t i = 0; i < r->ledger.count; i++)
        if (r->ledger.rows[i].formula == VP_FORMULA_LORA_MAYBE)
            maybe += r->ledger.rows[i].bytes.high;
    uint64_t slices = UINT64_C(30) * 2 * 2 * 16 * (4 * 2048 + 4 + 8192);
    uint64_t gate = UINT64_C(40) * 2 * 2 * 16 * (2048 + 1); /* of the shared expert */
    assert_int_equal(maybe, slices + gate);
    fixture_end(&f);
}

/* Through the reader: the load line holds them, and the cache has so much less. */
static void planned(void **state) {
    (void)state;
    static const char PLAIN[] = "model: llama-3.1-8b\nhardware: {gpu: h100-sxm}\n"
                                "serve: {context: 8192}\n"
                                "engine: {name: vllm, version: \"0.19\"}\n";
    struct fixture f;
    fixture_begin(&f);
    const struct vp_result *without = plan_yaml(&f, PLAIN);
    const struct vp_result *with = plan_yaml_with(&f, PLAIN, "serve.lora", "{slots: 4, rank: 64}");
    /* per layer and slot: A 4 x 64 x 4096, B 64 x (4096 + 1024 + 1024 + 4096); three of 64 x
     * (4096 + 14336); embedding and head 64 x (128256 + 4096) each */
    uint64_t attention = UINT64_C(32) * 4 * 2 * (1048576 + 655360);
    uint64_t mlp = UINT64_C(32) * 4 * 2 * 64 * (3 * (4096 + 14336));
    uint64_t ends = UINT64_C(2) * 4 * 2 * 64 * (128256 + 4096);
    const struct vp_device *device = &with->devices[0];
    assert_int_equal(device->component[VP_C_ADAPTERS].likely, attention + mlp + ends);
    assert_int_equal(with->report.weights.likely - without->report.weights.likely,
                     attention + mlp + ends);
    assert_int_equal(without->report.available_kv.likely - with->report.available_kv.likely,
                     attention + mlp + ends);
    assert_true(with->report.graph.high == 2 * without->report.graph.high);
    fixture_end(&f);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        T(pairs_of_a_layer),
        T(tensor_ranks),
        T(stages_share_the_layers),
        T(vocabulary),
        T(experts),
        T(fused_projections_share_a),
        T(sglang),
        T(never_less_for_more),
        T(overflow_is_told),
        T(in_some_versions),
        T(recurrent_layers),
        T(planned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
