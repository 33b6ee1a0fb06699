#include "api/quality.h"

#include <string.h>

#include "tests/unit/fixture.h"

static struct vp_quality read_shipped(struct fixture *f) {
    struct vp_quality quality;
    f->ctx.profiles = "profiles";
    assert_int_equal(vp_quality_read(&f->ctx, &quality), VP_OK);
    assert_non_null(quality.root);
    return quality;
}

/* Every format that changes propose is there, known only with two publishers, and its figures are
 * an interval. */
static void shipped(void **state) {
    static const char *const WEIGHTS[] = {"fp8", "int8", "int4", "nf4", "q8_0", "q6_k", "q4_k"};
    struct fixture f;
    (void)state;
    fixture_begin(&f);
    struct vp_quality quality = read_shipped(&f);
    for (size_t i = 0; i < sizeof WEIGHTS / sizeof *WEIGHTS; i++) {
        struct vp_risk risk = vp_quality_risk(&f.arena, &quality, "weights", WEIGHTS[i]);
        assert_true(risk.publishers >= 1);
        assert_int_equal(risk.known, risk.publishers >= 2);
        assert_true(risk.low <= risk.likely && risk.likely <= risk.high);
        assert_true(strlen(risk.by) > 0 && risk.unit);
    }
    assert_true(vp_quality_risk(&f.arena, &quality, "kv_cache", "fp8").known);
    fixture_end(&f);
}

static void not_known(void **state) {
    struct fixture f;
    (void)state;
    fixture_begin(&f);
    struct vp_quality quality = read_shipped(&f), none = {NULL};
    struct vp_risk risk = vp_quality_risk(&f.arena, &quality, "weights", "fp3");
    assert_false(risk.known);
    assert_int_equal(risk.publishers, 0);
    assert_string_equal(risk.format, "weights fp3");
    assert_false(vp_quality_risk(&f.arena, &none, "weights", "fp8").known);
    fixture_end(&f);
}

static void publishers(void **state) {
    static const char TEXT[] =
        "vramplan_quality: 1\n"
        "weights:\n"
        "  one: {unit: accuracy, measured: [{by: A, low: 1, high: 3, source: x},"
        " {by: A, low: 0, high: 2, source: y}]}\n"
        "  two: {unit: accuracy, measured: [{by: A, low: 1, high: 3, source: x},"
        " {by: B, low: -1, high: 5, source: y}]}\n";
    struct vp_quality quality;
    struct fixture f;
    (void)state;
    fixture_begin(&f);
    f.ctx.profiles = fixture_folder(&f);
    fixture_text_file(&f, "quality.yaml", TEXT);
    assert_int_equal(vp_quality_read(&f.ctx, &quality), VP_OK);
    struct vp_risk one = vp_quality_risk(&f.arena, &quality, "weights", "one");
    assert_false(one.known); /* the same publisher twice */
    assert_int_equal(one.publishers, 1);
    struct vp_risk two = vp_quality_risk(&f.arena, &quality, "weights", "two");
    assert_true(two.known && two.low == -1 && two.high == 5 && two.likely == 2);
    assert_string_equal(two.by, "A, B");
    fixture_end(&f);
}

static void broken(void **state) {
    static const char *const TEXTS[] = {
        "weights: {}\n",
        "vramplan_quality: 2\n",
        "vramplan_quality: 1\nweights: {a: {measured: []}}\n",
        "vramplan_quality: 1\nweights: {a: {unit: accuracy, measured: 3}}\n",
        "vramplan_quality: 1\nweights: {a: {unit: accuracy, measured: [{by: A, low: 3, high: 1, "
        "source: x}]}}\n",
        "vramplan_quality: 1\nweights: {a: {unit: accuracy, measured: [{by: A, low: 1, high: "
        "2}]}}\n"};
    struct vp_quality quality;
    (void)state;
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        struct fixture f;
        fixture_begin(&f);
        f.ctx.profiles = fixture_folder(&f);
        fixture_text_file(&f, "quality.yaml", TEXTS[i]);
        assert_int_equal(vp_quality_read(&f.ctx, &quality), VP_ERR_INPUT);
        fixture_expect(&f, VP_D_PROFILE_BROKEN, "quality");
        fixture_end(&f);
    }
    struct fixture f;
    fixture_begin(&f);
    f.ctx.profiles = fixture_folder(&f); /* no such file: nothing is known */
    assert_int_equal(vp_quality_read(&f.ctx, &quality), VP_OK);
    assert_null(quality.root);
    fixture_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(shipped), cmocka_unit_test(not_known),
                                       cmocka_unit_test(publishers), cmocka_unit_test(broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
