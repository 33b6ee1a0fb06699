/* What layers of published model families keep, against what their own code keeps. */
#include "planner/ops/tape.h"
#include "tests/unit/model_builder.h"

static struct fixture f;

static int begin(void **state) {
    (void)state;
    fixture_begin(&f);
    f.ctx.profiles = "profiles";
    return 0;
}

static int end(void **state) {
    (void)state;
    fixture_end(&f);
    return 0;
}

static uint64_t kept(const char *config, const char *dtype, const char *attention) {
    const char *yaml = vp_arena_printf(
        &f.arena,
        "model: {%s}\n"
        "hardware: {gpu: mi300x}\n"
        "engine: {name: transformers, version: '4.57', torch: '2.4'}\n"
        "train: {micro_batch: 2, sequence_length: 24, dtype: {parameters: %s},\n"
        "        ops: {attention: %s, norm: unfused, mlp: unfused, dropout: 0.0}}\n",
        config, dtype, attention);
    const struct vp_scenario *s = read_yaml(&f, yaml, NULL, NULL);
    struct vp_tape tape;
    vp_tape_block(&tape, s, &s->model->blocks[s->model->layers[1]], false);
    assert_false(tape.overflow || tape.incomplete);
    return tape.saved_bytes;
}

static void check(const char *config, uint64_t fp32, uint64_t bf16, uint64_t sdpa) {
    if (fp32 > 0)
        assert_int_equal(kept(config, "fp32", "eager"), fp32);
    if (bf16 > 0)
        assert_int_equal(kept(config, "bf16", "eager"), bf16);
    if (sdpa > 0)
        assert_int_equal(kept(config, "bf16", "sdpa"), sdpa);
}

#define X(name, config, fp32, bf16, sdpa)                                                          \
    static void family_##name(void **state) {                                                      \
        (void)state;                                                                               \
        check(config, fp32, bf16, sdpa);                                                           \
    }
#include "tests/unit/tape_families.def"
#undef X

int main(void) {
    const struct CMUnitTest tests[] = {
#define X(name, config, fp32, bf16, sdpa)                                                          \
    cmocka_unit_test_setup_teardown(family_##name, begin, end),
#include "tests/unit/tape_families.def"
#undef X
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
