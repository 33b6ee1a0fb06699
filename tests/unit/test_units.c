#include "tests/unit/fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/base/units.h"

static uint64_t size_of(const char *text) {
    uint64_t bytes;
    assert_true(vp_parse_size(&bytes, text));
    return bytes;
}

static void sizes(void **state) {
    (void)state;
    assert_int_equal(size_of("17179869184"), 17179869184);
    assert_int_equal(size_of("16 GiB"), 17179869184);
    assert_int_equal(size_of("80GB"), 80000000000);
    assert_int_equal(size_of(" 512  MiB "), 536870912);
    assert_int_equal(size_of("1kB"), 1000);
    assert_int_equal(size_of("1 KiB"), 1024);
    assert_int_equal(size_of("2 TB"), 2000000000000);
    assert_int_equal(size_of("2 TiB"), 2199023255552);
    assert_int_equal(size_of("7 B"), 7);
    assert_int_equal(size_of("16gib"), 17179869184);
    assert_int_equal(size_of("0"), 0);
    assert_int_equal(size_of("18446744073709551615"), UINT64_MAX);
}

static void sizes_with_decimals_round_to_the_nearest_byte(void **state) {
    (void)state;
    assert_int_equal(size_of("31.86 GiB"), 34209414513); /* 34209414512.64 */
    assert_int_equal(size_of("1.5 KiB"), 1536);
    assert_int_equal(size_of("0.0005 kB"), 1); /* half a byte */
    assert_int_equal(size_of("0.00049 kB"), 0);
    assert_int_equal(size_of("0.1000000000000000000000000001 GB"), 100000000);
    assert_int_equal(size_of("16777215.9999999 TiB"), 18446744073709441665ull);
}

static void what_is_no_size(void **state) {
    (void)state;
    static const char *const BAD[] = {
        "",
        "GiB",
        "-1",
        "+1",
        "1.5",
        "1.5 B",
        "1,5 GiB",
        "1 G",
        "1 GiBs",
        "1e3",
        "0x10",
        "1. GiB",
        ".5 GiB",
        "1 GiB 2",
        "16 777 216",
        "18446744073709551616",
        "16777216 TiB",
        "99999999999999999999 B",
        "nan",
        "inf",
        "1 Gi B",
    };
    uint64_t bytes;
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++)
        assert_false(vp_parse_size(&bytes, BAD[i]));
}

static void token_counts(void **state) {
    (void)state;
    uint64_t tokens;
    static const struct {
        const char *text;
        uint64_t tokens;
    } GOOD[] = {{"32768", 32768},    {"32k", 32768}, {"32K", 32768},
                {"1M", 1024 * 1024}, {"1.5k", 1536}, {"128 k", 131072}};
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        assert_true(vp_parse_tokens(&tokens, GOOD[i].text));
        assert_int_equal(tokens, GOOD[i].tokens);
    }
    static const char *const BAD[] = {
        "", "k", "1m", "1.3k", "1.5", "-1k", "1kB", "1G", "18014398509481984k"};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++)
        assert_false(vp_parse_tokens(&tokens, BAD[i]));
}

static void plain_integers(void **state) {
    (void)state;
    uint64_t v;
    assert_true(vp_parse_u64(&v, "18446744073709551615") && v == UINT64_MAX);
    assert_true(vp_parse_u64(&v, "007") && v == 7);
    assert_false(vp_parse_u64(&v, "18446744073709551616"));
    assert_false(vp_parse_u64(&v, ""));
    assert_false(vp_parse_u64(&v, "-1"));
    assert_false(vp_parse_u64(&v, "1 "));
    assert_false(vp_parse_u64(&v, " 1"));
}

static void reals(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double v;
    } GOOD[] = {{"0.9", 0.9}, {"1e-5", 1e-5}, {"-2", -2}, {"+.5", 0.5},
                {"5.", 5},    {"1E3", 1000},  {"0e0", 0}, {"1e-999", 0}};
    double v;
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        assert_true(vp_parse_real(&v, GOOD[i].text));
        assert_true(v == GOOD[i].v);
    }
    static const char *const BAD[] = {"",   ".",  "e5",    "1e",  "1e+",   "inf", "nan",     "0x10",
                                      "1 ", " 1", "1.2.3", "1,5", "1e999", "--1", "Infinity"};
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++)
        assert_false(vp_parse_real(&v, BAD[i]));
    char digits[1000];
    memset(digits, '1', sizeof digits - 1);
    digits[sizeof digits - 1] = '\0';
    assert_false(vp_parse_real(&v, digits));
    digits[300] = '\0';
    assert_true(vp_parse_real(&v, digits));
}

static void gib_to_bytes(void **state) {
    (void)state;
    uint64_t bytes;
    assert_true(vp_gib_to_bytes(&bytes, 31.86) && bytes == 34209414513);
    assert_true(vp_gib_to_bytes(&bytes, 0) && bytes == 0);
    assert_true(vp_gib_to_bytes(&bytes, 0.5 / 1073741824) && bytes == 1);
    assert_true(vp_gib_to_bytes(&bytes, 17179869183.0) && bytes == 18446744072635809792ull);
    assert_false(vp_gib_to_bytes(&bytes, 17179869184.0));
    assert_false(vp_gib_to_bytes(&bytes, -1));
    assert_false(vp_gib_to_bytes(&bytes, (double)NAN));
    assert_false(vp_gib_to_bytes(&bytes, (double)INFINITY));
}

static void formats(void **state) {
    (void)state;
    struct vp_arena arena = {0};
    const uint64_t GIB = 1ull << 30;
    assert_string_equal(vp_format_gib(&arena, 12 * GIB + GIB / 8, 2), "12.13"); /* half up */
    assert_string_equal(vp_format_gib(&arena, 12 * GIB, 0), "12");
    assert_string_equal(vp_format_gib(&arena, GIB - 1, 2), "1.00");
    assert_string_equal(vp_format_gib(&arena, 1, 6), "0.000000");
    assert_string_equal(vp_format_gib(&arena, UINT64_MAX, 6), "17179869184.000000");
    assert_string_equal(vp_format_bytes(&arena, 12), "12 B");
    assert_string_equal(vp_format_bytes(&arena, 17 * 1024), "17 KiB");
    assert_string_equal(vp_format_bytes(&arena, 640ull << 20), "640 MiB");
    assert_string_equal(vp_format_bytes(&arena, 3ull << 19), "1.5 MiB");
    assert_string_equal(vp_format_bytes(&arena, 2ull << 20), "2 MiB");
    assert_string_equal(vp_format_bytes(&arena, 12 * GIB + GIB / 4), "12.25 GiB");
    assert_string_equal(vp_format_count(&arena, 0), "0");
    assert_string_equal(vp_format_count(&arena, 999), "999");
    assert_string_equal(vp_format_count(&arena, 1234567), "1,234,567");
    assert_string_equal(vp_format_count(&arena, UINT64_MAX), "18,446,744,073,709,551,615");
    vp_arena_free(&arena);
}

static void reals_are_shortest(void **state) {
    (void)state;
    struct vp_arena arena = {0};
    static const struct {
        double v;
        const char *text;
    } CASES[] = {
        {0, "0"},
        {-0.0, "0"},
        {1, "1"},
        {-1.5, "-1.5"},
        {0.5, "0.5"},
        {0.1, "0.1"},
        {0.05, "0.05"},
        {1e-5, "0.00001"},
        {1e-6, "1e-6"},
        {1.25e-7, "1.25e-7"},
        {100, "100"},
        {123456789, "123456789"},
        {1e16, "10000000000000000"},
        {1e17, "1e17"},
        {1.5e300, "1.5e300"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1e22, "1e22"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e308"},
        {2.5, "2.5"},
        {1234.5678, "1234.5678"},
        {(double)NAN, "null"},
        {(double)INFINITY, "null"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        assert_string_equal(vp_format_real(&arena, CASES[i].v), CASES[i].text);
    uint64_t bits = 88172645463325252ull; /* xorshift */
    for (int i = 0; i < 20000; i++) {
        double v, back;
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        memcpy(&v, &bits, sizeof v);
        if (!isfinite(v))
            continue;
        assert_true(vp_parse_real(&back, vp_format_real(&arena, v)));
        assert_true(v == back);
    }
    vp_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),
        cmocka_unit_test(sizes_with_decimals_round_to_the_nearest_byte),
        cmocka_unit_test(what_is_no_size),
        cmocka_unit_test(token_counts),
        cmocka_unit_test(plain_integers),
        cmocka_unit_test(reals),
        cmocka_unit_test(gib_to_bytes),
        cmocka_unit_test(formats),
        cmocka_unit_test(reals_are_shortest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
