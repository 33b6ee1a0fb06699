#include "api/slo.h"

#include "tests/unit/fixture.h"

static void reads(void **state) {
    struct vp_slo slo;
    struct fixture f;
    (void)state;
    fixture_begin(&f);
    assert_int_equal(vp_slo_read(&f.ctx, &slo, "ttft_p99=2s,tpot=50 ms,step=1.5min,tpot_mean=90us"),
                     VP_OK);
    assert_int_equal(slo.count, 4);
    assert_true(slo.limit[0].ms == 2000 && slo.limit[1].ms == 50 && slo.limit[2].ms == 90000);
    assert_true(slo.limit[3].ms > 0.0899 && slo.limit[3].ms < 0.0901);
    assert_string_equal(slo.limit[0].name, "ttft_p99");
    assert_string_equal(slo.limit[1].text, "50 ms");
    assert_int_equal(slo.limit[2].what, VP_SLO_STEP);
    assert_int_equal(vp_slo_read(&f.ctx, &slo, NULL), VP_OK);
    assert_int_equal(slo.count, 0);
    fixture_end(&f);
}

static void refuses(void **state) {
    static const struct {
        const char *text, *said;
    } CASES[] = {{"ttft", "column 1"},
                 {"ttft_p42=2s", "column 1"},
                 {"ttft=2s,", "column 9"},
                 {"ttft=2", "column 6"},
                 {"ttft=s", "column 6"},
                 {"tpot=1s,ttft=0s", "column 14"},
                 {"tpot=-1s", "no time"},
                 {"tpot=nan s", "no time"},
                 {"", "column 1"},
                 {"tpot=1s,tpot=1s,tpot=1s,tpot=1s,tpot=1s,tpot=1s,"
                  "tpot=1s,tpot=1s,tpot=1s",
                  "8 limits"}};
    struct vp_slo slo;
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct fixture f;
        fixture_begin(&f);
        assert_int_equal(vp_slo_read(&f.ctx, &slo, CASES[i].text), VP_ERR_INPUT);
        fixture_expect(&f, VP_D_BAD_OPTION, CASES[i].said);
        fixture_end(&f);
    }
}

static void states(void **state) {
    const struct vp_estimate between = {VP_BASIS_CLASS, 40, 60, 90};
    const struct vp_estimate bound = {VP_BASIS_BOUND, 40, 0, 0};
    static const struct {
        double ms;
        enum vp_slo_state between, bound;
    } CASES[] = {{30, VP_SLO_BROKEN, VP_SLO_BROKEN},
                 {50, VP_SLO_UNLIKELY, VP_SLO_OPEN},
                 {60, VP_SLO_LIKELY, VP_SLO_OPEN},
                 {100, VP_SLO_LIKELY, VP_SLO_OPEN}};
    struct vp_arena arena = {0};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct vp_slo slo = {.limit = {{VP_SLO_TPOT, "tpot", "x", CASES[i].ms}}, .count = 1};
        struct vp_trial trial = {.tpot = between};
        assert_int_equal(vp_slo_check(&slo, &trial), CASES[i].between);
        assert_int_equal(vp_slo_text(&arena, &slo, &trial) != NULL,
                         CASES[i].between >= VP_SLO_UNLIKELY);
        trial.tpot = bound;
        assert_int_equal(vp_slo_check(&slo, &trial), CASES[i].bound);
        slo.limit[0].what = VP_SLO_TTFT; /* nothing is known of it */
        assert_int_equal(vp_slo_check(&slo, &trial), VP_SLO_OPEN);
    }
    const struct vp_slo none = {.count = 0};
    const struct vp_trial trial = {.tpot = between};
    assert_int_equal(vp_slo_check(&none, &trial), VP_SLO_NONE);
    vp_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads), cmocka_unit_test(refuses),
                                       cmocka_unit_test(states)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
