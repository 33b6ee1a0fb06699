/* Ranks of measured numbers: nearest and between neighbours. */
#include "planner/base/quantile.h"

#include "fixture.h"

static void nearest(void **state) {
    double v[] = {4, 1, 3, 2, 5};
    (void)state;
    assert_true(vp_quantile(v, 5, 0.5) == 3);
    assert_true(v[0] == 1 && v[4] == 5);
    assert_true(vp_quantile(v, 5, 0) == 1 && vp_quantile(v, 5, 1) == 5);
    assert_true(vp_quantile(v, 5, 0.9) == 5);
    assert_true(vp_quantile(v, 1, 0.9) == 1);
    assert_true(vp_quantile(v, 0, 0.5) == 0);
}

static void between(void **state) {
    const double v[] = {1, 2, 4, 8};
    (void)state;
    assert_true(vp_quantile_between(v, 4, 0.5) == 3);
    assert_true(vp_quantile_between(v, 3, 0.5) == 2);
    assert_true(vp_quantile_between(v, 4, 1) == 8);
    assert_true(vp_quantile_between(v, 1, 0.5) == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nearest), cmocka_unit_test(between)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
