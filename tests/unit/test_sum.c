#include "tests/unit/fixture.h"

#include "planner/base/amount.h"
#include "planner/base/sum.h"

static void sums_and_products(void **state) {
    (void)state;
    struct vp_sum s = vp_sum_add(vp_sum_mul(vp_sum(3), 4), 5);
    assert_int_equal(s.v, 17);
    assert_false(s.overflow);
    s = vp_sum_plus(vp_sum(UINT64_MAX - 1), vp_sum(1));
    assert_int_equal(s.v, UINT64_MAX);
    assert_false(s.overflow);
}

static void an_overflow_sticks(void **state) {
    (void)state;
    assert_true(vp_sum_add(vp_sum(UINT64_MAX), 1).overflow);
    struct vp_sum s = vp_sum_mul(vp_sum(1ull << 33), 1ull << 33);
    assert_true(s.overflow);
    assert_true(vp_sum_mul(s, 0).overflow);
    assert_true(vp_sum_add(s, 1).overflow);
    assert_true(vp_sum_plus(vp_sum(1), s).overflow);
    assert_true(vp_sum_round_up(s, 4).overflow);
    assert_false(vp_sum_mul(vp_sum(1ull << 32), (1ull << 32) - 1).overflow);
}

static void rounding(void **state) {
    (void)state;
    assert_int_equal(vp_ceil_div(0, 7), 0);
    assert_int_equal(vp_ceil_div(14, 7), 2);
    assert_int_equal(vp_ceil_div(15, 7), 3);
    assert_int_equal(vp_ceil_div(UINT64_MAX, 2), UINT64_MAX / 2 + 1);
    assert_int_equal(vp_sum_round_up(vp_sum(1), 512).v, 512);
    assert_int_equal(vp_sum_round_up(vp_sum(512), 512).v, 512);
    assert_int_equal(vp_sum_round_up(vp_sum(0), 512).v, 0);
    assert_true(vp_sum_round_up(vp_sum(UINT64_MAX), 512).overflow);
}

static void a_fraction_keeps_the_high_half(void **state) {
    (void)state;
    assert_int_equal(vp_mul_div(UINT64_MAX, 3, 4), UINT64_MAX / 4 * 3 + 2);
    assert_int_equal(vp_mul_div(10, 1, 3), 3);
}

static void amounts(void **state) {
    (void)state;
    struct vp_amount a = vp_amount_add(vp_exactly(5), (struct vp_amount){1, 2, 3});
    assert_int_equal(a.low, 6);
    assert_int_equal(a.likely, 7);
    assert_int_equal(a.high, 8);
    assert_int_equal(vp_min(2, 3), 2);
    assert_int_equal(vp_max(2, 3), 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_products), cmocka_unit_test(an_overflow_sticks),
        cmocka_unit_test(rounding),          cmocka_unit_test(a_fraction_keeps_the_high_half),
        cmocka_unit_test(amounts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
