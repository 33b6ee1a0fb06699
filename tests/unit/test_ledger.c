/* The ledger: rows over devices and time, and the folds over them. */
#include "planner/memory/ledger.h"

#include <string.h>

#include "tests/unit/fixture.h"

static struct fixture f;
static struct vp_ledger ledger;

static int begin(void **state) {
    (void)state;
    fixture_begin(&f);
    ledger = (struct vp_ledger){.arena = &f.arena};
    return 0;
}

static int end(void **state) {
    (void)state;
    fixture_end(&f);
    return 0;
}

static struct vp_row *add(enum vp_component component, uint32_t device, uint64_t bytes) {
    struct vp_row *row = vp_ledger_add(&ledger, component, VP_FORMULA_W_MATRIX, device, "a part");
    row->bytes = vp_exactly(bytes);
    return row;
}

static void a_new_row(void **state) {
    (void)state;
    struct vp_row *row = vp_ledger_add(&ledger, VP_C_GRAPHS, VP_FORMULA_GRAPHS, 3, "graphs");
    assert_int_equal(row->component, VP_C_GRAPHS);
    assert_int_equal(row->formula, VP_FORMULA_GRAPHS);
    assert_int_equal(row->confidence, VP_CLASS_AVERAGE); /* by the formula's kind */
    assert_int_equal(row->device, 3);
    assert_int_equal(row->from, VP_STEP_LOAD);
    assert_int_equal(row->to, VP_STEP_SERVE);
    assert_string_equal(row->owner, "graphs");
    assert_int_equal(row->inputs, 0);
    assert_int_equal(row->bytes.likely, 0);
}

/* The list grows by doubling; the rows before stay. */
static void many_rows(void **state) {
    (void)state;
    enum { ROWS = 1000 };
    for (uint64_t i = 0; i < ROWS; i++)
        add(VP_C_WEIGHTS, (uint32_t)(i % 2), i);
    assert_int_equal(ledger.count, ROWS);
    for (uint64_t i = 0; i < ROWS; i++)
        assert_int_equal(ledger.rows[i].bytes.likely, i);
    /* 0 + 2 + ... + 998 and 1 + 3 + ... + 999 */
    assert_int_equal(vp_ledger_at(&ledger, 0, VP_STEP_SERVE).likely, 249500);
    assert_int_equal(vp_ledger_at(&ledger, 1, VP_STEP_SERVE).likely, 250000);
}

static void inputs_are_capped(void **state) {
    (void)state;
    struct vp_row *row = add(VP_C_WEIGHTS, 0, 0);
    for (uint64_t i = 0; i < VP_ROW_INPUTS + 3; i++)
        vp_row_input(row, "n", i);
    assert_int_equal(row->inputs, VP_ROW_INPUTS);
    assert_int_equal(row->input[VP_ROW_INPUTS - 1].value, VP_ROW_INPUTS - 1);
}

static void overflow_sticks(void **state) {
    (void)state;
    struct vp_row *row = add(VP_C_WEIGHTS, 0, 0);
    vp_row_exact(&ledger, row, vp_sum_mul(vp_sum(UINT64_MAX), 2));
    assert_true(ledger.overflow);
    vp_row_exact(&ledger, row, vp_sum(5));
    assert_true(ledger.overflow);
    assert_int_equal(row->bytes.low, 5);
    assert_int_equal(row->bytes.high, 5);
}

static void rows_in_time(void **state) {
    (void)state;
    add(VP_C_WEIGHTS, 0, 100);
    add(VP_C_ACTIVATIONS, 0, 50)->from = VP_STEP_PROFILE;
    struct vp_row *probe = add(VP_C_WORKSPACE, 0, 30);
    probe->from = probe->to = VP_STEP_PROFILE;
    add(VP_C_KV_CACHE, 0, 20)->from = VP_STEP_CAPTURE;
    add(VP_C_WEIGHTS, 1, 1000);
    struct vp_row *tape = add(VP_C_ACTIVATIONS, 0, 7); /* of a training step, which has instants */
    tape->from = VP_STEP_FORWARD;                      /* of its own */
    tape->to = VP_STEP_BACKWARD;
    static const uint64_t WANT[VP_STEP_COUNT] = {100, 180, 170, 170, 7, 7, 0, 0};
    for (int step = 0; step < VP_STEP_COUNT; step++)
        assert_int_equal(vp_ledger_at(&ledger, 0, (enum vp_step)step).likely, WANT[step]);
    assert_int_equal(vp_ledger_peak(&ledger, 0), VP_STEP_PROFILE);
    assert_int_equal(vp_ledger_component(&ledger, 0, VP_C_WORKSPACE, VP_STEP_PROFILE).likely, 30);
    assert_int_equal(vp_ledger_component(&ledger, 0, VP_C_WORKSPACE, VP_STEP_SERVE).likely, 0);
    assert_int_equal(vp_ledger_component(&ledger, 1, VP_C_KV_CACHE, VP_STEP_SERVE).likely, 0);
    /* of equal steps the earliest, and of nothing the first */
    assert_int_equal(vp_ledger_peak(&ledger, 1), VP_STEP_LOAD);
    assert_int_equal(vp_ledger_peak(&ledger, 2), VP_STEP_LOAD);
}

static void confidence_is_the_least(void **state) {
    (void)state;
    assert_int_equal(vp_ledger_confidence(&ledger, 0, VP_C_WEIGHTS), VP_EXACT);
    add(VP_C_WEIGHTS, 0, 1);
    add(VP_C_WEIGHTS, 1, 1)->confidence = VP_GUESS;
    add(VP_C_RUNTIME, 0, 1)->confidence = VP_CLASS_AVERAGE;
    assert_int_equal(vp_ledger_confidence(&ledger, 0, VP_C_WEIGHTS), VP_EXACT);
    add(VP_C_WEIGHTS, 0, 1)->confidence = VP_CLASS_AVERAGE;
    add(VP_C_WEIGHTS, 0, 1)->confidence = VP_MEASURED_VALUE;
    assert_int_equal(vp_ledger_confidence(&ledger, 0, VP_C_WEIGHTS), VP_CLASS_AVERAGE);
    assert_int_equal(vp_ledger_confidence(&ledger, 1, VP_C_WEIGHTS), VP_GUESS);
}

/* Result, reports and documents share these names; a bar needs a letter of its own for each. */
static void names(void **state) {
    (void)state;
    assert_string_equal(vp_component_name(VP_C_KV_CACHE), "kv_cache");
    assert_string_equal(vp_component_name(VP_C_OTHER), "other");
    for (int i = 0; i < VP_COMPONENT_COUNT; i++) {
        assert_true(strlen(vp_component_meaning((enum vp_component)i)) > 0);
        for (int k = 0; k < i; k++) {
            assert_true(vp_component_letter((enum vp_component)i) !=
                        vp_component_letter((enum vp_component)k));
            assert_string_not_equal(vp_component_name((enum vp_component)i),
                                    vp_component_name((enum vp_component)k));
        }
    }
    assert_string_equal(vp_formula_id(VP_FORMULA_KV_LATENT), "F-KV-02");
    for (int i = 0; i < VP_FORMULA_COUNT; i++) {
        enum vp_formula formula = (enum vp_formula)i;
        assert_true(strncmp(vp_formula_id(formula), "F-", 2) == 0);
        assert_true(strlen(vp_formula_expression(formula)) > 0);
        assert_true(strlen(vp_formula_source(formula)) > 0);
        assert_true(strlen(vp_formula_leaves_out(formula)) > 0);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(vp_formula_id(formula), vp_formula_id((enum vp_formula)k));
    }
    assert_int_equal(vp_formula_kind(VP_FORMULA_MEASURED), VP_MEASURED_VALUE);
    assert_string_equal(vp_confidence_name(VP_MEASURED_VALUE), "measured");
    assert_string_equal(vp_confidence_name(VP_GUESS), "guess");
    assert_string_equal(vp_step_name(VP_STEP_LOAD), "load");
    assert_string_equal(vp_step_name(VP_STEP_SERVE), "serve");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_new_row, begin, end),
        cmocka_unit_test_setup_teardown(many_rows, begin, end),
        cmocka_unit_test_setup_teardown(inputs_are_capped, begin, end),
        cmocka_unit_test_setup_teardown(overflow_sticks, begin, end),
        cmocka_unit_test_setup_teardown(rows_in_time, begin, end),
        cmocka_unit_test_setup_teardown(confidence_is_the_least, begin, end),
        cmocka_unit_test_setup_teardown(names, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
