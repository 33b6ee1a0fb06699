#include "tests/unit/fixture.h"

#include "planner/model/dtype.h"

static void names_read_back(void **state) {
    (void)state;
    for (int i = VP_DTYPE_UNSET + 1; i < VP_DTYPE_COUNT; i++)
        assert_int_equal(vp_dtype_parse(vp_dtype_name((enum vp_dtype)i)), i);
}

static void other_peoples_names(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum vp_dtype dtype;
    } KNOWN[] = {
        {"bfloat16", VP_DTYPE_BF16},       {"BF16", VP_DTYPE_BF16},
        {"torch.bfloat16", VP_DTYPE_BF16}, {"float16", VP_DTYPE_FP16},
        {"half", VP_DTYPE_FP16},           {"F16", VP_DTYPE_FP16},
        {"float32", VP_DTYPE_FP32},        {"F32", VP_DTYPE_FP32},
        {"fp8_e4m3", VP_DTYPE_FP8},        {"fp8_e5m2", VP_DTYPE_FP8},
        {"F8_E4M3", VP_DTYPE_FP8},         {"float8_e4m3fn", VP_DTYPE_FP8},
        {"float8_e4m3fnuz", VP_DTYPE_FP8}, {"torch.float8_e4m3fn", VP_DTYPE_FP8},
        {"I32", VP_DTYPE_INT32},           {"U8", VP_DTYPE_INT8},
        {"int64", VP_DTYPE_INT64},         {"F8_E8M0", VP_DTYPE_E8M0},
    };
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        assert_int_equal(vp_dtype_parse(KNOWN[i].text), KNOWN[i].dtype);
}

static void what_is_no_format(void **state) {
    (void)state;
    static const char *const BAD[] = {"", "auto", "q4_k_m", "fp", "torch.", "float128", "unset"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        assert_int_equal(vp_dtype_parse(BAD[i]), VP_DTYPE_UNSET);
    assert_int_equal(vp_dtype_parse(NULL), VP_DTYPE_UNSET);
}

static void bytes_round_up_to_whole_blocks(void **state) {
    (void)state;
    assert_int_equal(vp_dtype_bytes(VP_DTYPE_BF16, vp_sum(7)).v, 14);
    assert_int_equal(vp_dtype_bytes(VP_DTYPE_INT4, vp_sum(7)).v, 4);
    assert_int_equal(vp_dtype_bytes(VP_DTYPE_MXFP4, vp_sum(33)).v, 34); /* 2 x 17 */
    assert_int_equal(vp_dtype_bytes(VP_DTYPE_INT3, vp_sum(64)).v, 24);
    assert_int_equal(vp_dtype_bytes(VP_DTYPE_DOUBLE8, vp_sum(512)).v, 520);
    assert_int_equal(vp_dtype_bytes(VP_DTYPE_FP32, vp_sum(0)).v, 0);
}

static void overflow_sticks(void **state) {
    (void)state;
    assert_true(vp_dtype_bytes(VP_DTYPE_FP32, vp_sum(UINT64_MAX / 2)).overflow);
    assert_true(vp_dtype_bytes(VP_DTYPE_FP8, (struct vp_sum){1, true}).overflow);
    assert_false(vp_dtype_bytes(VP_DTYPE_FP8, vp_sum(UINT64_MAX)).overflow);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_read_back),   cmocka_unit_test(other_peoples_names),
        cmocka_unit_test(what_is_no_format), cmocka_unit_test(bytes_round_up_to_whole_blocks),
        cmocka_unit_test(overflow_sticks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
