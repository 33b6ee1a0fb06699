/* Activation peak of the profile run. By hand: hidden 256, a gated feed-forward of 512, 10,000
 * words, 256 sequences, 2048 tokens, bf16:
 *
 *   hidden states   2048 x 256 x 2                    1,048,576 bytes
 *   layer           2048 x (3 x 512 + 3 x 256) x 2    9,437,184
 *   sampler at 41   256 x 10,000 x 41               104,960,000 */
#include "planner/memory/activation.h"

#include "tests/unit/model_builder.h"

enum { HIDDEN = 1048576, LAYER = 9437184, SAMPLER = 104960000 };

static struct builder b;
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
    builder_ends(&b, 10000, false);
    rules = &b.scenario.engine.rules;
    rules->sampler_millibytes = 41000;
    return 0;
}

static int end(void **state) {
    (void)state;
    builder_end(&b);
    return 0;
}

static struct vp_activation make(void) {
    struct vp_activation a;
    vp_activation_make(&a, &b.scenario, true);
    assert_false(a.overflow);
    return a;
}

static uint64_t likely(void) { return make().total.likely; }

/* ---- the two runs ---- */

static void sampler_wins(void **state) {
    (void)state;
    struct vp_activation a = make();
    assert_true(a.sampler_wins);
    assert_int_equal(a.sampler_bytes, SAMPLER);
    assert_int_equal(a.layer_bytes, LAYER);
    assert_int_equal(a.total.likely, SAMPLER + HIDDEN); /* the hidden states are alive */
    assert_int_equal(a.tokens, 2048);
    rules->activation_fixed_bytes = MIB(40);
    assert_int_equal(likely(), SAMPLER + HIDDEN + MIB(40));
    rules->sampler_adds_logits = true; /* one copy in the compute type */
    assert_int_equal(likely(), 256 * 10000 * 43 + HIDDEN + MIB(40));
    rules->sampler_millibytes = 12500; /* a part of a byte */
    assert_int_equal(likely(), 256 * 10000 * 29 / 2 + HIDDEN + MIB(40));
}

static void layer_wins(void **state) {
    (void)state;
    struct vp_activation a;
    vp_activation_make(&a, &b.scenario, false); /* a stage without the head */
    assert_false(a.sampler_wins);
    assert_int_equal(a.total.likely, LAYER);
    b.model.lm_head = false;
    assert_int_equal(likely(), LAYER);
    b.model.lm_head = true;
    b.scenario.engine.max_batched_tokens = 2048 * 16;
    assert_int_equal(likely(), 16 * LAYER);
    b.scenario.engine.max_num_seqs = 4096; /* and over again */
    assert_int_equal(likely(), 16 * SAMPLER + 16 * HIDDEN);
}

/* The vocabulary is not divided, the width is. */
static void tensor_ranks(void **state) {
    (void)state;
    b.scenario.parallel.tensor = 4;
    struct vp_activation a = make();
    assert_int_equal(a.sampler_bytes, SAMPLER);
    assert_int_equal(a.layer_bytes, 2048 * (3 * 128 + 3 * 256) * 2);
}

static void widest_block(void **state) {
    (void)state;
    struct vp_block kinds[] = {dense(), dense(), block_gqa(64, 8, 32)};
    kinds[1].mlp = (struct vp_mlp){.kind = VP_MLP_PLAIN, .intermediate = 900};
    builder_layers(&b, kinds, (uint32_t[]){1, 1, 0}, 3); /* two matrices: 2 x 900 above 3 x 512 */
    assert_int_equal(make().layer_bytes, 2048 * (1800 + 768) * 2);
    builder_layers(&b, kinds, (uint32_t[]){1, 1, 1}, 3); /* queries of 2048 */
    assert_int_equal(make().layer_bytes, 2048 * (3 * 2048 + 768) * 2);
    b.scenario.precision.compute = VP_DTYPE_FP32;
    assert_int_equal(make().layer_bytes, 2048 * (3 * 2048 + 768) * 4);
}

/* ---- experts ---- */

static struct vp_block sparse(enum vp_mlp_kind kind) {
    struct vp_block block = block_gqa(8, 2, 32);
    block.moe = (struct vp_moe){.kind = kind, .experts = 16, .top_k = 4, .intermediate = 96};
    return block;
}

static void expert_buffers(void **state) {
    (void)state;
    b.scenario.engine.max_num_seqs = 1;
    builder_layer(&b, sparse(VP_MLP_GATED), 2);
    /* four rows per token: the output of 256 is wider than gate and up of 192; then 96 */
    struct vp_activation a = make();
    assert_int_equal(a.workspace_bytes, 2048 * 4 * (256 + 96) * 2);
    /* beside it the attention: 3 x 256 and 3 x 256 */
    assert_int_equal(a.layer_bytes, 2048 * 1536 * 2);
    assert_int_equal(a.total.likely, a.workspace_bytes + a.layer_bytes);
    b.model.blocks[0].moe.intermediate = 160; /* gate and up are wider */
    assert_int_equal(make().workspace_bytes, 2048 * 4 * (320 + 160) * 2);
    b.scenario.parallel.tensor = 2; /* 80 per rank */
    assert_int_equal(make().workspace_bytes, 2048 * 4 * (256 + 80) * 2);
    b.scenario.engine.expert_parallel = true; /* whole experts */
    assert_int_equal(make().workspace_bytes, 2048 * 4 * (320 + 160) * 2);
    b.scenario.parallel.tensor = 1;
    builder_layer(&b, sparse(VP_MLP_PLAIN), 2);
    b.model.blocks[0].moe.input = 64; /* narrower experts: up of 96 is the widest */
    assert_int_equal(make().workspace_bytes, 2048 * 4 * (96 + 96) * 2);
    b.model.blocks[0].moe.shared_intermediate = 400;
    assert_int_equal(make().layer_bytes, 2048 * (1200 + 768) * 2);
}

/* From 0.17 the workspace stays allocated while the sampler runs. */
static void held_workspace(void **state) {
    (void)state;
    builder_layer(&b, sparse(VP_MLP_GATED), 2);
    assert_int_equal(likely(), SAMPLER + HIDDEN);
    rules->workspace_held = true;
    assert_int_equal(likely(), SAMPLER + HIDDEN + 2048 * 4 * 352 * 2);
    assert_int_equal(make().workspace_bytes, 2048 * 4 * 352 * 2);
    /* MXFP4 kernels have none to keep, but need their buffers in the network's run */
    builder_scheme(&b, (struct vp_scheme){.name = "mxfp4", .data = VP_DTYPE_MXFP4});
    assert_int_equal(likely(), SAMPLER + HIDDEN);
    assert_int_equal(make().workspace_bytes, 0);
    b.model.lm_head = false;
    assert_int_equal(likely(), 2048 * 1536 * 2 + 2048 * 4 * 352 * 2);
}

/* ---- tokens, encoders, intervals ---- */

static void tokens_of_the_run(void **state) {
    (void)state;
    b.scenario.engine.max_model_len = 30000;
    assert_int_equal(make().tokens, 2048);
    b.scenario.engine.chunked_prefill = false;
    assert_int_equal(make().tokens, 2048); /* V1 profiles a batch in any case */
    rules->budget = VP_VLLM_V0;
    assert_int_equal(make().tokens, 30000);
    b.scenario.engine.max_model_len = 1000;
    assert_int_equal(make().tokens, 2048);
    b.scenario.engine.max_model_len = 30000;
    b.scenario.engine.chunked_prefill = true;
    assert_int_equal(make().tokens, 2048);
}

static void encoder_outputs(void **state) {
    (void)state;
    rules->multimodal_bytes = MIB(190);
    assert_int_equal(likely(), SAMPLER + HIDDEN);
    b.model.multimodal = true;
    assert_int_equal(likely(), SAMPLER + HIDDEN + MIB(190));
    b.model.lm_head = false; /* kept in both runs */
    assert_int_equal(likely(), LAYER + MIB(190));
}

static void interval(void **state) {
    (void)state;
    rules->activation_low_permille = 900;
    rules->activation_high_permille = 1450;
    struct vp_amount t = make().total;
    assert_int_equal(t.low, 95407718); /* 0.9 x 106,008,576 */
    assert_int_equal(t.likely, 106008576);
    assert_int_equal(t.high, 153712435);
    rules->activation_slack_bytes = MIB(60);
    t = make().total;
    assert_int_equal(t.low, 106008576 - MIB(60));
    assert_int_equal(t.high, 106008576 + MIB(60));
    rules->activation_slack_bytes = MIB(200); /* more than the whole */
    assert_int_equal(make().total.low, 0);
}

static void overflow_is_told(void **state) {
    (void)state;
    struct vp_activation a;
    struct vp_ledger ledger = builder_ledger(&b);
    b.scenario.engine.max_num_seqs = UINT64_C(1) << 50;
    vp_activation_make(&a, &b.scenario, true);
    assert_true(a.overflow);
    vp_activation_add(&ledger, &a, &b.scenario, 0);
    assert_true(ledger.overflow);
    b.scenario.engine.max_num_seqs = 1;
    b.scenario.engine.max_batched_tokens = UINT64_C(1) << 60;
    vp_activation_make(&a, &b.scenario, true);
    assert_true(a.overflow);
}

static void rows(void **state) {
    (void)state;
    struct vp_ledger ledger = builder_ledger(&b);
    struct vp_activation a = make();
    vp_activation_add(&ledger, &a, &b.scenario, 0);
    const struct vp_row *row = ledger_row(&ledger, 0, "sampler");
    assert_int_equal(row->component, VP_C_ACTIVATIONS);
    assert_int_equal(row->formula, VP_FORMULA_ACT_SAMPLER);
    assert_int_equal(row->confidence, VP_CLASS_AVERAGE);
    assert_int_equal(row->from, VP_STEP_PROFILE);
    assert_int_equal(row_input(row, "max_num_seqs"), 256);
    assert_int_equal(row_input(row, "sampler_bytes"), SAMPLER);
    b.model.lm_head = false;
    a = make();
    vp_activation_add(&ledger, &a, &b.scenario, 0);
    row = ledger_row(&ledger, 0, "forward pass");
    assert_int_equal(row->formula, VP_FORMULA_ACT_LAYER);
    assert_int_equal(row_input(row, "layer_bytes"), LAYER);
    assert_int_equal(row_input(row, "tokens"), 2048);

    builder_layer(&b, sparse(VP_MLP_GATED), 2);
    ledger = builder_ledger(&b);
    a = make();
    vp_activation_add(&ledger, &a, &b.scenario, 0);
    row = ledger_row(&ledger, 0, "forward pass");
    assert_int_equal(row_input(row, "expert_workspace"), 2048 * 4 * 352 * 2);
}

/* ---- logs ---- */

/* Start-up logs in MiB, of all eras and both runs. */
static void logged_peaks(void **state) {
    (void)state;
    static const struct {
        const char *yaml;
        uint64_t logged_mib, permille;
    } LOGS[] = {
        /* V0: 41 bytes; without chunked prefill a whole prompt runs at once */
        {"model: llama-3-8b\nhardware: {gpu: h100-sxm}\n"
         "engine: {name: vllm, version: 0.6.4, args: {max_model_len: 8192}}\n",
         1290, 90},
        {"model: llama-3.1-8b\nhardware: {gpu: rtx3090}\n"
         "engine: {name: vllm, version: 0.6.4, args: {max_model_len: 20000}}\n",
         2120, 40},
        {"model: llama-3.1-8b\nhardware: {gpu: rtx3090}\n"
         "engine: {name: vllm, version: 0.6.4, args: {max_model_len: 29000}}\n",
         3062, 40},
        /* V1 up to 0.16: 38 bytes */
        {"model: gpt-oss-20b\nhardware: {gpu: h100-sxm}\nserve: {context: 8192}\n"
         "engine: {name: vllm, version: \"0.11\"}\n",
         7557, 10},
        {"model: llama-3.1-8b\nhardware: {gpu: h100-sxm}\nserve: {context: 8192}\n"
         "engine: {name: vllm, version: \"0.11\"}\n",
         4874, 10},
        {"model: qwen3-0.6b\nhardware: {gpu: h100-sxm}\nserve: {context: 8192}\n"
         "engine: {name: vllm, version: \"0.11\"}\n",
         5693, 10},
        {"model: qwen3-14b\nhardware: {gpu: h100-sxm}\nserve: {context: 8192}\n"
         "engine: {name: vllm, version: \"0.16\"}\n",
         5775, 10},
        /* from 0.17 on: 12.5 bytes and one copy of the logits */
        {"model: qwen3-14b\nhardware: {gpu: h100-sxm}\nserve: {context: 8192}\n"
         "engine: {name: vllm, version: \"0.17\"}\n",
         2284, 10},
        {"model: llama-3.1-8b\nhardware: {gpu: h100-sxm, count: 4}\nserve: {context: 8192}\n"
         "parallel: {tensor: 4}\nengine: {name: vllm, version: \"0.19\"}\n",
         1935, 10},
        {"model: qwen3-30b-a3b\nhardware: {gpu: h100-sxm}\nserve: {context: 8192}\n"
         "engine: {name: vllm, version: \"0.19\"}\n",
         2744, 65},
    };
    for (size_t i = 0; i < sizeof LOGS / sizeof *LOGS; i++) {
        struct fixture f;
        fixture_begin(&f);
        const struct vp_result *r = plan_yaml(&f, LOGS[i].yaml);
        struct vp_amount peak = r->report.activation_peak;
        assert_near(peak.likely, MIB(LOGS[i].logged_mib), LOGS[i].permille);
        assert_true(peak.low <= MIB(LOGS[i].logged_mib) && MIB(LOGS[i].logged_mib) <= peak.high);
        fixture_end(&f);
    }
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        T(sampler_wins),
        T(layer_wins),
        T(tensor_ranks),
        T(widest_block),
        T(expert_buffers),
        T(held_workspace),
        T(tokens_of_the_run),
        T(encoder_outputs),
        T(interval),
        T(overflow_is_told),
        T(rows),
        T(logged_peaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
