/* Figures of a real training run in the place of those computed. */
#include "planner/import/input.h"
#include "planner/plan/train_pins.h"
#include "tests/unit/model_builder.h"

static const char SCENARIO[] =
    "model: {model_type: llama, hidden_size: 1024, num_hidden_layers: 4, num_attention_heads: 16, "
    "intermediate_size: 2816, vocab_size: 32000}\n"
    "hardware: {gpu: h100-sxm, count: 1}\n"
    "train: {micro_batch: 2, sequence_length: 1024}\n";

static const struct vp_result *plan(struct fixture *f, const char *engine, const char *measured) {
    return plan_yaml(f, vp_arena_printf(&f->arena, "%sengine: {name: %s}\nmeasured: {%s}\n",
                                        SCENARIO, engine, measured));
}

static void expect_row(const struct vp_result *result, const char *owner) {
    const struct vp_row *row = ledger_row(&result->ledger, 0, owner);
    assert_int_equal(row->formula, VP_FORMULA_MEASURED);
    assert_int_equal(row->confidence, VP_MEASURED_VALUE);
}

/* The rows follow, and so does everything that they add up to. */
static void expect_sums(const struct vp_result *result) {
    const struct vp_training_stage *stage = &result->training.stage[0];
    const struct vp_train_stage *n = &stage->numbers;
    for (int i = 0; i < VP_TRAIN_MOMENTS; i++) {
        enum vp_step step = n->moment[i].step;
        uint64_t outside = vp_ledger_component(&result->ledger, 0, VP_C_RUNTIME, step).likely +
                           vp_ledger_component(&result->ledger, 0, VP_C_FRAGMENTATION, step).likely;
        assert_int_equal(vp_ledger_at(&result->ledger, 0, step).likely - outside,
                         n->moment[i].total);
    }
    assert_int_equal(vp_train_stage_peak(n)->total, stage->allocated_peak.likely);
}

static const char *const ENGINES[] = {"pytorch", "megatron"};

static void states(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    for (int e = 0; e < 2; e++) {
        const struct vp_training_stage *before = &plan(&f, ENGINES[e], "")->training.stage[0];
        const struct vp_result *result =
            plan(&f, ENGINES[e], "parameter_bytes: 300 MiB, optimizer_bytes: 1 GiB");
        const struct vp_training_stage *after = &result->training.stage[0];
        assert_int_equal(after->numbers.parameter_bytes, MIB(300));
        assert_int_equal(after->numbers.optimizer_bytes, GIB(1));
        assert_int_equal(after->allocated_peak.likely - before->allocated_peak.likely,
                         MIB(300) - before->numbers.parameter_bytes + GIB(1) -
                             before->numbers.optimizer_bytes);
        assert_int_equal(after->allocated.likely - before->allocated.likely,
                         after->allocated_peak.likely - before->allocated_peak.likely);
        expect_row(result, "layers");
        expect_sums(result);
    }
    fixture_end(&f);
}

static void tapes(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    const struct vp_train_stage *before = &plan(&f, "megatron", "")->training.stage[0].numbers;
    const struct vp_result *result = plan(&f, "megatron", "saved_bytes: 3 GiB");
    const struct vp_train_stage *after = &result->training.stage[0].numbers;
    assert_int_equal(after->saved_bytes, GIB(3));
    assert_int_equal(after->moment[0].saved,
                     vp_mul_div(before->moment[0].saved, GIB(3), before->saved_bytes));
    expect_row(result, "kept for backward");
    expect_sums(result);
    result = plan(&f, "megatron", "optimizer_step_temp_bytes: 123 MiB");
    assert_int_equal(result->training.stage[0].numbers.moment[VP_TRAIN_MOMENTS - 1].step_temp,
                     MIB(123));
    expect_sums(result);
    fixture_end(&f);
}

/* Between two steps: what no other figure explains is the framework's own. */
static void resting(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    const struct vp_result *result = plan(&f, "pytorch", "allocated_bytes: 2 GiB");
    const struct vp_training_stage *stage = &result->training.stage[0];
    assert_int_equal(stage->allocated.low, GIB(2));
    assert_int_equal(stage->allocated.likely, GIB(2));
    assert_int_equal(stage->allocated.high, GIB(2));
    expect_sums(result);
    fixture_end(&f);
}

static void peaks(void **state) {
    (void)state;
    static const uint64_t SIZES[] = {GIB(1), GIB(3), GIB(9)}; /* below, near and above */
    struct fixture f;
    fixture_begin(&f);
    for (int e = 0; e < 2; e++) {
        for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
            const struct vp_result *result =
                plan(&f, ENGINES[e],
                     vp_arena_printf(&f.arena, "allocated_peak_bytes: %llu",
                                     (unsigned long long)SIZES[i]));
            const struct vp_training_stage *stage = &result->training.stage[0];
            if (SIZES[i] > stage->numbers.static_bytes) {
                assert_int_equal(stage->allocated_peak.likely, SIZES[i]);
                assert_int_equal(stage->allocated_peak.low, SIZES[i]);
                assert_int_equal(stage->allocated_peak.high, SIZES[i]);
            }
            assert_true(stage->reserved_peak.likely >= SIZES[i]);
            expect_sums(result);
        }
        const struct vp_result *result =
            plan(&f, ENGINES[e], "allocated_peak_bytes: 9 GiB, reserved_peak_bytes: 10 GiB");
        const struct vp_training_stage *stage = &result->training.stage[0];
        assert_int_equal(stage->reserved_peak.low, GIB(10));
        assert_int_equal(stage->reserved_peak.high, GIB(10));
        assert_int_equal(result->devices[0].need.likely, GIB(10) + stage->numbers.runtime.likely);
        expect_row(result, "reserved, not allocated");
    }
    fixture_end(&f);
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *measured, *words;
        enum vp_diag_id id;
    } cases[] = {
        {"allocated_peek_bytes: 1", "allocated_peek_bytes", VP_D_UNKNOWN_KEY},
        {"allocated_peak_bytes: much", "must be a size", VP_D_BAD_VALUE},
        {"weights_gib: 3", "weights_gib", VP_D_UNKNOWN_KEY},
    };
    struct fixture f;
    fixture_begin(&f);
    f.ctx.profiles = "profiles";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct vp_scenarios scenarios;
        const char *text =
            vp_arena_printf(&f.arena, "vramplan: 1\n%sengine: {name: pytorch}\nmeasured: {%s}\n",
                            SCENARIO, cases[i].measured);
        fixture_clear(&f);
        assert_int_not_equal(vp_input_read(&f.ctx, &scenarios,
                                           fixture_text_file(&f, "scenario.yaml", text), NULL, 0),
                             VP_OK);
        fixture_expect(&f, cases[i].id, cases[i].words);
    }
    fixture_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states), cmocka_unit_test(tapes),   cmocka_unit_test(resting),
        cmocka_unit_test(peaks),  cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
