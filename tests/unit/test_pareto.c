#include "planner/plan/pareto.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MAX = 64 };

static void check(const double *values, size_t count, size_t objectives, const char *expected) {
    struct vp_arena arena = {0};
    bool keep[MAX];
    size_t kept = 0;
    size_t n = vp_pareto_front(&arena, keep, values, count, objectives);
    for (size_t i = 0; i < count; i++) {
        kept += keep[i];
        assert_int_equal(keep[i], expected[i] == '+');
    }
    assert_int_equal(n, kept);
    vp_arena_free(&arena);
}

static void empty_and_single(void **state) {
    static const double ONE[] = {3, 4};
    (void)state;
    check(ONE, 0, 2, "");
    check(ONE, 1, 2, "+");
    check(ONE, 2, 1, "+-");
}

static void two_objectives(void **state) {
    static const double POINTS[] = {1, 9, 2, 8, 2, 9, 9, 1, 5, 5, 5, 6, 9, 9};
    (void)state;
    check(POINTS, 7, 2, "++-++--");
}

static void equal_points_stay(void **state) {
    static const double POINTS[] = {1, 1, 2, 2, 1, 1};
    (void)state;
    check(POINTS, 3, 2, "+-+");
}

static void unknown_is_worst(void **state) {
    static const double POINTS[] = {1, NAN, 1, 5, NAN, 1, NAN, NAN};
    (void)state;
    check(POINTS, 4, 2, "-++-");
}

/* Against the definition, on every order of pseudo-random points in three objectives. */
static void as_defined(void **state) {
    uint32_t seed = 1;
    (void)state;
    for (int round = 0; round < 200; round++) {
        double points[MAX][3];
        char expected[MAX + 1] = {0};
        size_t count = (size_t)(round % MAX);
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < 3; k++) {
                seed = seed * 1664525u + 1013904223u;
                points[i][k] = (double)((seed >> 16) % 7u);
            }
        for (size_t i = 0; i < count; i++) {
            expected[i] = '+';
            for (size_t j = 0; j < count; j++) {
                bool as_good = true, better = false;
                for (size_t k = 0; k < 3; k++) {
                    as_good &= points[j][k] <= points[i][k];
                    better |= points[j][k] < points[i][k];
                }
                if (as_good && better)
                    expected[i] = '-';
            }
        }
        check(&points[0][0], count, 3, expected);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_and_single),  cmocka_unit_test(two_objectives),
        cmocka_unit_test(equal_points_stay), cmocka_unit_test(unknown_is_worst),
        cmocka_unit_test(as_defined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
