/* The rules of training frameworks as their profiles say them, by version, card and arguments. */
#include "planner/import/input.h"
#include "tests/unit/model_builder.h"

static const char MODEL[] = "model: {model_type: llama, hidden_size: 256, num_hidden_layers: 2, "
                            "num_attention_heads: 4, intermediate_size: 512, vocab_size: 1000}\n"
                            "train: {micro_batch: 1, sequence_length: 128}\n";

static struct vp_train_rules rules_of(struct fixture *f, const char *engine, const char *gpu) {
    const char *yaml = vp_arena_printf(&f->arena, "%shardware: {gpu: %s, count: 1}\nengine: %s\n",
                                       MODEL, gpu, engine);
    return read_yaml(f, yaml, NULL, NULL)->engine.rules.train;
}

/* Every rule has a row that holds, from the oldest version on; reading fails otherwise. */
static void every_profile(void **state) {
    (void)state;
    static const char *const ENGINES[] = {
        "{name: pytorch, version: \"1.8\"}",
        "{name: pytorch, version: \"1.13\"}",
        "{name: pytorch, version: \"2.11\"}",
        "{name: pytorch}",
        "{name: transformers, version: \"4.20\"}",
        "{name: transformers, version: \"5.0\"}",
        "{name: transformers}",
        "{name: megatron, version: \"0.5\"}",
        "{name: megatron, version: 2026-04}",
        "{name: megatron}",
        "{name: deepspeed, version: \"0.3\"}",
        "{name: deepspeed}",
    };
    static const char *const GPUS[] = {"mi300x",   "mi250x-gcd", "rx7900xtx",
                                       "h100-sxm", "t4",         "v100-sxm2"};
    struct fixture f;
    fixture_begin(&f);
    for (size_t e = 0; e < sizeof ENGINES / sizeof *ENGINES; e++) {
        for (size_t g = 0; g < sizeof GPUS / sizeof *GPUS; g++) {
            struct vp_train_rules rules = rules_of(&f, ENGINES[e], GPUS[g]);
            assert_true(rules.workspace.likely > 0);
            assert_true(rules.workspace.low <= rules.workspace.likely);
            assert_true(rules.context.likely > 0);
            assert_true(rules.vocab_pad > 0);
            assert_int_equal(rules.spread.likely, 1000);
        }
    }
    fixture_end(&f);
}

/* What torch does has one home; the other frameworks go by the version of torch beside them. */
static void based_on_torch(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    assert_int_equal(rules_of(&f, "{name: pytorch, version: \"1.13\"}", "t4").step_all, 2);
    assert_int_equal(rules_of(&f, "{name: pytorch, version: \"2.4\"}", "t4").step_all, 1);
    assert_true(rules_of(&f, "{name: pytorch, version: \"1.13\"}", "t4").mean_keeps_input);
    assert_false(rules_of(&f, "{name: pytorch, version: \"2.0\"}", "t4").mean_keeps_input);
    const char *old = "{name: transformers, version: \"4.46\", torch: \"1.13\"}";
    assert_int_equal(rules_of(&f, old, "t4").step_all, 2);
    assert_int_equal(rules_of(&f, "{name: transformers, version: \"4.46\"}", "t4").step_all, 1);
    assert_int_equal(rules_of(&f, "{name: transformers, version: \"4.28\"}", "t4").step_all, 2);
    assert_int_equal(rules_of(&f, "{name: megatron}", "h100-sxm").step_all, 0); /* its own */
    assert_true(rules_of(&f, "{name: megatron}", "h100-sxm").gradients_persist);
    assert_false(rules_of(&f, "{name: deepspeed}", "h100-sxm").gradients_persist);
    assert_true(rules_of(&f, "{name: deepspeed}", "h100-sxm").step_gradient_copy);
    fixture_end(&f);
}

/* Arguments choose rows, or are the number themselves. */
static void arguments(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    assert_int_equal(rules_of(&f, "{name: megatron}", "h100-sxm").vocab_pad, 128);
    const char *engine = "{name: megatron, args: {make_vocab_size_divisible_by: 64}}";
    assert_int_equal(rules_of(&f, engine, "h100-sxm").vocab_pad, 64);
    engine = "{name: megatron, args: {fp8_format: hybrid}}";
    assert_int_equal(rules_of(&f, engine, "h100-sxm").fp8_weight_bytes, 2);
    assert_int_equal(rules_of(&f, engine, "b200").fp8_weight_bytes, 1);
    assert_int_equal(rules_of(&f, "{name: megatron}", "b200").fp8_weight_bytes, 0);
    engine = "{name: pytorch, version: \"2.5\", args: {optimizer_in_bwd: true}}";
    assert_true(rules_of(&f, engine, "t4").optimizer_in_backward);
    engine = "{name: pytorch, version: \"2.5\", args: {optimizer_in_bwd: false}}";
    assert_false(rules_of(&f, engine, "t4").optimizer_in_backward);
    engine = "{name: pytorch, version: \"2.5\", args: {reduce_dtype: float32}}";
    assert_int_equal(rules_of(&f, engine, "t4").reduce_bytes, 4);
    fixture_end(&f);
}

/* Workspaces of matrix libraries: the newer the card, the larger. */
static void cards(void **state) {
    (void)state;
    static const char ENGINE[] = "{name: pytorch, version: \"2.5\"}";
    struct fixture f;
    fixture_begin(&f);
    uint64_t t4 = rules_of(&f, ENGINE, "t4").workspace.likely;
    uint64_t h100 = rules_of(&f, ENGINE, "h100-sxm").workspace.likely;
    uint64_t mi300x = rules_of(&f, ENGINE, "mi300x").workspace.likely;
    assert_true(t4 < h100);
    assert_true(h100 < mi300x);
    assert_true(mi300x >= MIB(128));
    fixture_end(&f);
}

static enum vp_status try_read(struct fixture *f, const char *engine) {
    const char *yaml =
        vp_arena_printf(&f->arena, "%shardware: {gpu: t4}\nengine: %s\n", MODEL, engine);
    const char *path =
        fixture_text_file(f, "scenario.yaml", vp_arena_printf(&f->arena, "vramplan: 1\n%s", yaml));
    struct vp_scenarios scenarios;
    f->ctx.profiles = "profiles";
    fixture_clear(f);
    return vp_input_read(&f->ctx, &scenarios, path, NULL, 0);
}

static void refused(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    assert_int_not_equal(try_read(&f, "{name: pytorch, version: \"1.1\"}"), VP_OK);
    fixture_expect(&f, VP_D_VERSION_UNKNOWN, "1.8 to");
    assert_int_not_equal(try_read(&f, "{name: transformers, version: \"4.1\"}"), VP_OK);
    fixture_expect(&f, VP_D_VERSION_UNKNOWN, "4.20 to");
    /* a number is wanted */
    assert_int_not_equal(
        try_read(&f, "{name: megatron, args: {make_vocab_size_divisible_by: many}}"), VP_OK);
    fixture_expect(&f, VP_D_BAD_VALUE, "make_vocab_size_divisible_by must be a whole number");
    fixture_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_profile), cmocka_unit_test(based_on_torch),
        cmocka_unit_test(arguments),     cmocka_unit_test(cards),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
