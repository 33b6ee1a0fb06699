/* All 256 codes of both kinds of E4M3 against their definition, and what values are rounded to. */
#include "tests/unit/fixture.h"

#include <math.h>

#include "probe/fp8.h"

/* By the formats' definitions: sign, 4 bits of exponent, 3 of mantissa; OCP 8-bit floating point
 * specification 1.0 (bias 7), and FNUZ (bias 8, no -0, one NaN). */
static double defined(unsigned code, bool fnuz) {
    unsigned exponent = code >> 3 & 15, mantissa = code & 7;
    int bias = fnuz ? 8 : 7;
    if (fnuz ? code == 0x80 : (code & 0x7f) == 0x7f)
        return (double)NAN;
    double size = exponent == 0 ? mantissa / 8.0 * pow(2, 1 - bias)
                                : (1 + mantissa / 8.0) * pow(2, (int)exponent - bias);
    return code & 0x80 ? -size : size;
}

static void values(void **state) {
    (void)state;
    for (int fnuz = 0; fnuz < 2; fnuz++)
        for (unsigned code = 0; code < 256; code++) {
            double want = defined(code, fnuz), got = (double)vp_fp8_value((uint8_t)code, fnuz);
            if (isnan(want) ? !isnan(got) : got < want || got > want)
                fail_msg("code %02x is %g, not %g", code, got, want);
        }
    assert_true(vp_fp8_value(0x7e, false) == 448.0F);
    assert_true(vp_fp8_value(0x7f, true) == 240.0F);
    assert_true(vp_fp8_value(0x01, false) == 0x1p-9F);
    assert_true(vp_fp8_value(0x01, true) == 0x1p-10F);
    assert_true(signbit(vp_fp8_value(0x80, false)));
}

static void codes_come_back(void **state) {
    (void)state;
    for (int fnuz = 0; fnuz < 2; fnuz++)
        for (unsigned code = 0; code < 256; code++) {
            uint8_t back = vp_fp8_code(vp_fp8_value((uint8_t)code, fnuz), fnuz);
            bool nan = isnan(defined(code, fnuz));
            assert_int_equal(back, nan && !fnuz ? 0x7f : code);
        }
}

/* Between two neighbours: the nearer one, in the middle the even one. */
static void rounding(void **state) {
    (void)state;
    for (int fnuz = 0; fnuz < 2; fnuz++) {
        unsigned top = fnuz ? 0x7f : 0x7e;
        for (unsigned code = 0; code < top; code++) {
            double low = defined(code, fnuz), high = defined(code + 1, fnuz);
            double middle = (low + high) / 2;
            unsigned even = code % 2 ? code + 1 : code;
            assert_int_equal(vp_fp8_code((float)middle, fnuz), even);
            assert_int_equal(vp_fp8_code(nextafterf((float)middle, 0), fnuz), code);
            assert_int_equal(vp_fp8_code(nextafterf((float)middle, 1e9F), fnuz), code + 1);
            assert_int_equal(vp_fp8_code(-nextafterf((float)middle, 1e9F), fnuz),
                             0x80 | (code + 1));
        }
        assert_int_equal(vp_fp8_code(1e30F, fnuz), top);
        assert_int_equal(vp_fp8_code(-INFINITY, fnuz), 0x80 | top);
        assert_int_equal(vp_fp8_code(NAN, fnuz), fnuz ? 0x80 : 0x7f);
        assert_int_equal(vp_fp8_code(-0.0F, fnuz), fnuz ? 0 : 0x80);
        assert_int_equal(vp_fp8_code(1e-30F, fnuz), 0);
    }
}

static void others(void **state) {
    (void)state;
    assert_int_equal(vp_int8_code(2.5F), 2);
    assert_int_equal(vp_int8_code(3.5F), 4);
    assert_int_equal(vp_int8_code(-1e9F), -127);
    assert_int_equal(vp_int8_code(200), 127);
    assert_int_equal(vp_int8_code(NAN), 0);
    assert_int_equal(vp_bf16_code(1), 0x3f80);
    assert_int_equal(vp_bf16_code(1 + 0x1p-8F), 0x3f80); /* in the middle: even */
    assert_int_equal(vp_bf16_code(1 + 0x3p-8F), 0x3f82);
    assert_true(isnan(vp_bf16_value(vp_bf16_code(NAN))));
    for (unsigned code = 0; code < 0x7f80; code += 3)
        assert_int_equal(vp_bf16_code(vp_bf16_value((uint16_t)code)), code);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(codes_come_back),
        cmocka_unit_test(rounding),
        cmocka_unit_test(others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
