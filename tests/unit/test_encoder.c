/* The encoder's profile run. By hand: images of 64 patches of 12 elements that become 16 vectors of
 * 256 between two marks (18 tokens); layers of 32 with a feed-forward of 128; 16 bit. A batch of
 * 2048 tokens admits 113 of them:
 *
 *   kept     113 x (16 x 256 + 64 x 12) x 2      1,099,264 bytes
 *   forward  113 x 64 x (2 x 32 + 3 x 128) x 2   6,479,872 */
#include "planner/memory/encoder.h"

#include "tests/unit/model_builder.h"

enum { KEPT = 1099264, FORWARD = 6479872 };

static struct builder b;
static struct vp_encoder *encoder;

static int begin(void **state) {
    (void)state;
    builder_begin(&b);
    b.model.hidden = 256;
    struct vp_block block = block_gqa(8, 2, 32);
    block.mlp = (struct vp_mlp){.kind = VP_MLP_GATED, .intermediate = 512};
    builder_layer(&b, block, 4);
    builder_ends(&b, 1000, false);
    b.model.multimodal = true;
    encoder = &b.model.encoder;
    *encoder = (struct vp_encoder){.known = true,
                                   .hidden = 32,
                                   .width = 128,
                                   .item_patches = 64,
                                   .item_tokens = 18,
                                   .item_outputs = 16,
                                   .patch_elements = 12,
                                   .output_width = 256};
    b.scenario.engine.rules.multimodal_bytes = MIB(190); /* of encoders that are not known */
    return 0;
}

static int end(void **state) {
    (void)state;
    builder_end(&b);
    return 0;
}

static struct vp_encoder_run run(void) {
    struct vp_encoder_run out;
    vp_encoder_run(&out, &b.scenario);
    assert_false(out.overflow);
    return out;
}

static void what_it_keeps(void **state) {
    (void)state;
    struct vp_encoder_run r = run();
    assert_true(r.known);
    assert_int_equal(r.budget_tokens, 2048);
    assert_int_equal(r.items, 113);
    assert_int_equal(r.kept_bytes, KEPT);
    assert_int_equal(r.forward.likely, FORWARD);
    assert_int_equal(r.forward.low, FORWARD * 3 / 4);
    assert_int_equal(r.forward.high, FORWARD * 3 / 2);
    b.scenario.parallel.tensor = 2; /* the feed-forward is divided */
    assert_int_equal(run().forward.likely, 113 * 64 * (2 * 32 + 3 * 64) * 2);
    assert_int_equal(run().kept_bytes, KEPT);
    b.scenario.precision.compute = VP_DTYPE_FP32;
    assert_int_equal(run().kept_bytes, 2 * KEPT);
}

static void how_many_images(void **state) {
    (void)state;
    b.scenario.engine.max_num_seqs = 1; /* one request of at most 4096 / 18 images */
    assert_int_equal(run().items, 113);
    b.scenario.engine.max_model_len = 100;
    assert_int_equal(run().items, 5);
    b.scenario.images.limit = 2;
    assert_int_equal(run().items, 2);
    b.scenario.engine.max_num_seqs = 40;
    assert_int_equal(run().items, 80);
    encoder->item_tokens = 5000; /* beyond a batch: the budget grows to one image */
    assert_int_equal(run().items, 1);
    assert_int_equal(run().budget_tokens, 5000);
}

static void where_there_is_no_run(void **state) {
    (void)state;
    b.scenario.images.off = true;
    assert_false(run().known);
    assert_int_equal(run().kept_bytes, 0);
    b.scenario.images.off = false;
    b.scenario.images.unprofiled = true;
    assert_int_equal(run().kept_bytes, 0);
    b.scenario.images.unprofiled = false;
    b.scenario.engine.rules.multimodal_bytes = 0; /* versions that profile the decoder alone */
    assert_int_equal(run().kept_bytes, 0);
    b.scenario.engine.rules.multimodal_bytes = 1;
    b.scenario.engine.kind = VP_ENGINE_SGLANG;
    assert_int_equal(run().kept_bytes, 0);
    b.scenario.engine.kind = VP_ENGINE_VLLM;
    encoder->known = false;
    assert_int_equal(run().kept_bytes, 0);
}

static struct vp_activation activation(void) {
    struct vp_activation out;
    vp_activation_make(&out, &b.scenario, true);
    assert_false(out.overflow);
    return out;
}

/* hidden states 2048 x 256 x 2, layer 2048 x (3 x 512 + 3 x 256) x 2 */
static void beside_the_decoder(void **state) {
    (void)state;
    enum { LAYER = 9437184 };
    struct vp_activation a = activation();
    assert_int_equal(a.encoder_bytes, 0); /* the flat figure is of others */
    assert_int_equal(a.total.likely, LAYER + KEPT);
    assert_false(a.encoder_wins);
    b.scenario.images.off = true;
    assert_int_equal(activation().total.likely, LAYER);
    b.scenario.images.off = false;
    encoder->width = 1280; /* now its own run is the larger one */
    a = activation();
    assert_true(a.encoder_wins);
    assert_int_equal(a.total.likely, KEPT + UINT64_C(113) * 64 * (2 * 32 + 3 * 1280) * 2);
    struct vp_ledger ledger = builder_ledger(&b);
    vp_activation_add(&ledger, &a, &b.scenario, 0);
    const struct vp_row *row = ledger_row(&ledger, 0, "encoder");
    assert_int_equal(row->formula, VP_FORMULA_ACT_ENCODER);
    assert_int_equal(row->component, VP_C_ACTIVATIONS);
    row = ledger_row(&ledger, 0, "encoder outputs and pixels");
    assert_int_equal(row->component, VP_C_VISION);
    assert_int_equal(row->formula, VP_FORMULA_ENCODER_KEPT);
    assert_int_equal(row->confidence, VP_EXACT);
    assert_int_equal(row->from, VP_STEP_PROFILE);
    assert_int_equal(row->bytes.likely, KEPT);
    assert_int_equal(row_input(row, "items"), 113);
    struct vp_amount sum = vp_ledger_at(&ledger, 0, VP_STEP_PROFILE);
    assert_int_equal(sum.low, a.total.low);
    assert_int_equal(sum.likely, a.total.likely);
    assert_int_equal(sum.high, a.total.high);
}

static void never_less_for_more_tokens(void **state) {
    (void)state;
    uint64_t before = 0;
    for (b.scenario.engine.max_batched_tokens = 1; b.scenario.engine.max_batched_tokens < 100000;
         b.scenario.engine.max_batched_tokens *= 2) {
        struct vp_activation a = activation();
        assert_true(a.total.low <= a.total.likely && a.total.likely <= a.total.high);
        assert_true(a.total.likely >= before);
        before = a.total.likely;
    }
}

static void overflow_is_told(void **state) {
    (void)state;
    struct vp_encoder_run out;
    encoder->item_patches = UINT64_C(1) << 60;
    vp_encoder_run(&out, &b.scenario);
    assert_true(out.overflow);
    struct vp_activation a;
    vp_activation_make(&a, &b.scenario, true);
    assert_true(a.overflow);
}

/* Start-up logs of H100s with 8192 batched tokens: activation peaks in MiB. */
static void logged_peaks(void **state) {
    (void)state;
    static const struct {
        const char *model;
        uint64_t items, logged_mib;
    } LOGS[] = {{"gemma-3-12b", 31, 4035}, {"llama-4-scout", 3, 3267}};
    for (size_t i = 0; i < sizeof LOGS / sizeof *LOGS; i++) {
        struct fixture f;
        fixture_begin(&f);
        const struct vp_result *r =
            plan_yaml(&f, vp_arena_printf(&f.arena,
                                          "model: %s\nhardware: {gpu: h100-sxm, count: 4}\n"
                                          "parallel: {tensor: 4}\nserve: {context: 8192}\n"
                                          "engine: {name: vllm, version: \"0.19\"}\n",
                                          LOGS[i].model));
        const struct vp_row *row = ledger_row(&r->ledger, 0, "encoder outputs and pixels");
        assert_int_equal(row_input(row, "items"), LOGS[i].items);
        assert_near(r->report.activation_peak.likely, MIB(LOGS[i].logged_mib), 25);
        fixture_end(&f);
    }
}

/* Without images the run is left out, and from 0.15 on the tower is not even loaded. */
static void images_turned_off(void **state) {
    (void)state;
    static const char YAML[] = "model: gemma-3-12b\nhardware: {gpu: h100-sxm}\n"
                               "serve: {context: 8192}\nengine: {name: vllm}\n";
    static const char *const OFF[] = {
        "{limit_mm_per_prompt: {image: 0}}", "{limit_mm_per_prompt: \"{\\\"image\\\": 0}\"}",
        "{limit_mm_per_prompt: image=0}", "{language_model_only: true}"};
    struct fixture f;
    fixture_begin(&f);
    for (size_t i = 0; i < sizeof OFF / sizeof *OFF; i++) {
        const struct vp_result *r = plan_yaml_with(&f, YAML, "engine.args", OFF[i]);
        assert_true(r->scenario->images.off);
        assert_false(r->devices[0].present[VP_C_VISION]);
    }
    const struct vp_result *on =
        plan_yaml_with(&f, YAML, "engine.args", "{limit_mm_per_prompt: {image: {count: 3}}}");
    assert_false(on->scenario->images.off);
    assert_int_equal(on->scenario->images.limit, 3);
    const struct vp_result *old =
        plan_yaml_with(&f, YAML, "engine",
                       "{name: vllm, version: \"0.12\", args: {limit_mm_per_prompt: image=0}}");
    assert_true(ledger_has(&old->ledger, 0, "vision tower"));
    assert_false(ledger_has(&old->ledger, 0, "encoder outputs and pixels"));
    fixture_end(&f);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        T(what_it_keeps),
        T(how_many_images),
        T(where_there_is_no_run),
        T(beside_the_decoder),
        T(never_less_for_more_tokens),
        T(overflow_is_told),
        T(logged_peaks),
        T(images_turned_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
