#include "tests/unit/fixture.h"

#include "planner/model/version.h"

static void expect(const char *text, enum vp_version_kind kind, uint32_t a, uint32_t b,
                   uint32_t c) {
    struct vp_version v;
    assert_true(vp_version_parse(&v, text));
    assert_int_equal(v.kind, kind);
    assert_int_equal(v.part[0], a);
    assert_int_equal(v.part[1], b);
    assert_int_equal(v.part[2], c);
}

static void releases(void **state) {
    (void)state;
    expect("0.19", VP_VERSION_RELEASE, 0, 19, 0);
    expect("0.13.0rc2.dev112+g763963aa7.d20251213", VP_VERSION_RELEASE, 0, 13, 0);
    expect("v0.6.3.post1", VP_VERSION_RELEASE, 0, 6, 3);
    expect("2.9.0+rocm6.4", VP_VERSION_RELEASE, 2, 9, 0);
    expect("1", VP_VERSION_RELEASE, 1, 0, 0);
    expect("0.10.1.2", VP_VERSION_RELEASE, 0, 10, 1);
    expect("0.11.dev5", VP_VERSION_RELEASE, 0, 11, 0);
}

static void builds_and_dates(void **state) {
    (void)state;
    expect("b6500", VP_VERSION_BUILD, 6500, 0, 0);
    expect("2025-10", VP_VERSION_DATE, 2025, 10, 0);
    expect("2026-08-18", VP_VERSION_DATE, 2026, 8, 18);
}

static void what_is_no_version(void **state) {
    (void)state;
    static const char *const BAD[] = {"",    "latest",     "nightly",    "v",     "b",
                                      "bx",  "2025-13",    "2026-08-32", ".1",    "2025-",
                                      "1 2", "2025-10-1x", "4294967296", "0.19!", "-1"};
    struct vp_version v;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        assert_false(vp_version_parse(&v, BAD[i]));
        assert_int_equal(v.kind, VP_VERSION_NONE);
    }
    assert_false(vp_version_parse(&v, NULL));
}

static int compare(const char *a, const char *b) {
    struct vp_version x, y;
    assert_true(vp_version_parse(&x, a));
    assert_true(vp_version_parse(&y, b));
    return vp_version_compare(x, y);
}

static void order(void **state) {
    (void)state;
    assert_true(compare("0.9.2", "0.10") < 0);
    assert_true(compare("0.10", "0.9.2") > 0);
    assert_int_equal(compare("0.10", "v0.10.0"), 0);
    assert_int_equal(compare("0.13.0rc2", "0.13.0"), 0); /* a candidate follows its release */
    assert_true(compare("1.0", "0.99.99") > 0);
    assert_true(compare("b999", "b6500") < 0);
    assert_true(compare("2025-10", "2025-10-02") < 0);
    assert_true(compare("2025-12-31", "2026-01-01") < 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(releases),
        cmocka_unit_test(builds_and_dates),
        cmocka_unit_test(what_is_no_version),
        cmocka_unit_test(order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
