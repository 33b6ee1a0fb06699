/* Random numbers: those of the published generator, streams apart, and the moments they should
 * have. */
#include "planner/base/random.h"

#include <math.h>

#include "fixture.h"

/* xoshiro256** from the state 1, 2, 3, 4, as its authors' code gives them. */
static void published_numbers(void **state) {
    static const uint64_t EXPECTED[] = {
        11520, 0, 1509978240, 1215971899390074240, 1216172134540287360, 607988272756665600};
    struct vp_random random = {.state = {1, 2, 3, 4}};
    (void)state;
    for (int i = 0; i < 6; i++)
        assert_true(vp_random_bits(&random) == EXPECTED[i]);
}

static void streams_differ(void **state) {
    struct vp_random a, b, c, d;
    (void)state;
    vp_random_seed(&a, 1, 0);
    vp_random_seed(&b, 1, 0);
    vp_random_seed(&c, 1, 1);
    vp_random_seed(&d, 2, 0);
    for (int i = 0; i < 10; i++) {
        uint64_t bits = vp_random_bits(&a);
        assert_true(bits == vp_random_bits(&b));
        assert_true(bits != vp_random_bits(&c));
        assert_true(bits != vp_random_bits(&d));
    }
}

static void limits(void **state) {
    uint32_t seen[7] = {0};
    struct vp_random random;
    (void)state;
    vp_random_seed(&random, 3, 0);
    for (int i = 0; i < 70000; i++) {
        uint64_t below = vp_random_below(&random, 7);
        double unit = vp_random_unit(&random);
        assert_true(below < 7 && unit >= 0 && unit < 1);
        seen[below]++;
    }
    for (int i = 0; i < 7; i++)
        assert_in_range(seen[i], 9600, 10400); /* four deviations */
    assert_int_equal(vp_random_below(&random, 0), 0);
    assert_int_equal(vp_random_below(&random, 1), 0);
}

enum { DRAWS = 200000 };

static void moments(double (*draw)(struct vp_random *random), double mean, double variance) {
    struct vp_random random;
    double sum = 0, squares = 0;

    vp_random_seed(&random, 11, 5);
    for (int i = 0; i < DRAWS; i++) {
        double x = draw(&random);
        sum += x;
        squares += (x - mean) * (x - mean);
    }
    if (fabs(sum / DRAWS - mean) > 5 * sqrt(variance / DRAWS))
        fail_msg("mean %g, expected %g", sum / DRAWS, mean);
    if (fabs(squares / DRAWS / variance - 1) > 0.05)
        fail_msg("variance %g, expected %g", squares / DRAWS, variance);
}

static double bursts(struct vp_random *random) { return vp_random_gamma(random, 0.25); }
static double even(struct vp_random *random) { return vp_random_gamma(random, 4); }

static void distributions(void **state) {
    (void)state;
    moments(vp_random_unit, 0.5, 1.0 / 12);
    moments(vp_random_exponential, 1, 1);
    moments(vp_random_normal, 0, 1);
    moments(bursts, 0.25, 0.25);
    moments(even, 4, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_numbers),
        cmocka_unit_test(streams_differ),
        cmocka_unit_test(limits),
        cmocka_unit_test(distributions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
