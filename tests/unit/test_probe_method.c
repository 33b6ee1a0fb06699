/* How a figure is measured: warm-up, batches, spread, drift; on a device whose times are scripted.
 */
#include "tests/unit/fixture.h"

#include <math.h>
#include <string.h>

#include "probe/method.h"

/* A clock that only work moves. */
struct script {
    double now_us, started_us;
    double us;                /* of one round */
    double cold_us;           /* more in the first round, less and less */
    uint64_t cold_rounds;     /* in so many */
    double every_third_us;    /* more in every third batch */
    double creep;             /* of each batch over the one before */
    uint64_t rounds, batches; /* counted */
    uint64_t fails_at;        /* round; 0: never */
};

static enum vp_dev_status start(struct vp_dev *device) {
    struct script *s = device->state;
    s->started_us = s->now_us;
    s->batches++;
    return VP_DEV_OK;
}

static enum vp_dev_status stop(struct vp_dev *device, double *us) {
    struct script *s = device->state;
    if (s->batches % 3 == 0)
        s->now_us += s->every_third_us;
    *us = s->now_us - s->started_us;
    return VP_DEV_OK;
}

static enum vp_dev_status work(void *task, uint64_t round) {
    struct script *s = task;
    assert_int_equal(round, s->rounds);
    s->rounds++;
    s->now_us += s->us * (1 + s->creep * (double)s->batches);
    if (s->rounds <= s->cold_rounds) /* clocks rise */
        s->now_us += s->cold_us * (double)(s->cold_rounds - s->rounds) / (double)s->cold_rounds;
    return s->fails_at && s->rounds >= s->fails_at ? VP_DEV_FAILED : VP_DEV_OK;
}

static const struct vp_dev_backend BACKEND = {.name = "scripted", .start = start, .stop = stop};

static struct vp_timing measured(struct script *script, const struct vp_method *method,
                                 enum vp_dev_status want) {
    struct vp_dev device = {.backend = &BACKEND, .state = script};
    struct vp_timing timing = {0};
    assert_int_equal(vp_method_measure(&device, &timing, method, work, script), want);
    return timing;
}

static void near(double got, double want, double tolerance) {
    if (fabs(got - want) > tolerance)
        fail_msg("%g instead of %g", got, want);
}

static void steady(void **state) {
    (void)state;
    struct script s = {.us = 100};
    struct vp_timing t = measured(&s, &vp_method_full, VP_DEV_OK);
    near(t.median, 100, 1e-6);
    near(t.p90 / t.p10, 1, 1e-9);
    assert_false(t.noisy || t.drifting);
    assert_int_equal(t.outliers, 0);
    assert_true(t.repeats >= 20);
    /* for at least 200 ms, in batches of half a millisecond and more */
    assert_true(t.batch * t.median >= 500);
    assert_true(t.repeats * t.batch * t.median >= 200e3 || t.repeats == 200);
}

static void long_rounds_are_few(void **state) {
    (void)state;
    struct script s = {.us = 2e6};
    struct vp_timing t = measured(&s, &vp_method_full, VP_DEV_OK);
    assert_int_equal(t.batch, 1);
    assert_int_equal(t.repeats, vp_method_full.few_repeats);
}

static void short_rounds_come_in_batches(void **state) {
    (void)state;
    struct script s = {.us = 0.5};
    struct vp_timing t = measured(&s, &vp_method_quick, VP_DEV_OK);
    assert_true(t.batch * 0.5 >= vp_method_quick.batch_us);
    near(t.median, 0.5, 1e-9);
}

static void warm_up_is_not_counted(void **state) {
    (void)state;
    struct script s = {.us = 100, .cold_us = 5000, .cold_rounds = 40};
    struct vp_timing t = measured(&s, &vp_method_full, VP_DEV_OK);
    near(t.median, 100, 1e-6);
    near(t.most, 100, 1e-6);
}

static void spread_is_noisy(void **state) {
    (void)state;
    struct script s = {.us = 1000, .every_third_us = 400};
    struct vp_timing t = measured(&s, &vp_method_full, VP_DEV_OK);
    near(t.median, 1000, 1e-6);
    near(t.p90, 1400, 1e-6);
    assert_true(t.noisy);
    assert_int_equal(t.outliers, 0); /* 1.4 times is no outlier */
    s = (struct script){.us = 1000, .every_third_us = 600};
    assert_true(measured(&s, &vp_method_full, VP_DEV_OK).outliers >= 6);
    s = (struct script){.us = 1000, .every_third_us = 200};
    assert_false(measured(&s, &vp_method_full, VP_DEV_OK).noisy);
}

static void drift_is_noticed(void **state) {
    (void)state;
    struct script s = {.us = 20e3, .creep = 0.01};
    struct vp_timing t = measured(&s, &vp_method_full, VP_DEV_OK);
    assert_true(t.drifting);
    assert_true(t.drift > 0.05);
    s = (struct script){.us = 20e3, .creep = 0.0005};
    assert_false(measured(&s, &vp_method_full, VP_DEV_OK).drifting);
}

static void failures_end_it(void **state) {
    (void)state;
    for (uint64_t at = 1; at < 200; at += 7) {
        struct script s = {.us = 100, .fails_at = at};
        measured(&s, &vp_method_full, VP_DEV_FAILED);
    }
}

static void summaries(void **state) {
    (void)state;
    const double us[] = {5, 1, 2, 4, 3};
    struct vp_timing t;
    vp_method_summarise(&t, us, 5);
    near(t.median, 3, 0);
    near(t.p10, 1.4, 1e-12);
    near(t.p90, 4.6, 1e-12);
    near(t.least, 1, 0);
    near(t.most, 5, 0);
    assert_true(t.noisy);
    assert_int_equal(t.outliers, 1);
    near(us[0], 5, 0); /* left in order */
    vp_method_summarise(&t, us, 1);
    near(t.median, 5, 0);
    assert_false(t.noisy || t.drifting);
}

static void normal_numbers(void **state) {
    (void)state;
    enum { N = 200000 };
    struct vp_noise random = {.state = 9}, again = {.state = 9};
    double sum = 0, squares = 0, within = 0;
    for (int i = 0; i < N; i++) {
        double v = (double)vp_noise_normal(&random);
        assert_true(v > -6 && v < 6);
        sum += v;
        squares += v * v;
        within += v > -1 && v < 1;
    }
    near(sum / N, 0, 0.01);
    near(squares / N, 1, 0.01);
    near(within / N, 0.683, 0.01);
    random.state = 9;
    for (int i = 0; i < 10; i++)
        assert_true(vp_noise_bits(&random) == vp_noise_bits(&again));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steady),
        cmocka_unit_test(long_rounds_are_few),
        cmocka_unit_test(short_rounds_come_in_batches),
        cmocka_unit_test(warm_up_is_not_counted),
        cmocka_unit_test(spread_is_noisy),
        cmocka_unit_test(drift_is_noticed),
        cmocka_unit_test(failures_end_it),
        cmocka_unit_test(summaries),
        cmocka_unit_test(normal_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
