#include "tests/unit/fixture.h"

#include "planner/model/scheme_format.h"

static uint64_t bytes(const struct vp_scheme *scheme, uint64_t matrices, uint64_t out,
                      uint64_t in) {
    struct vp_sum sum = vp_scheme_bytes(scheme, matrices, out, in);
    assert_false(sum.overflow);
    return sum.v;
}

static void plain(void **state) {
    (void)state;
    const struct vp_scheme bf16 = {.data = VP_DTYPE_BF16};
    assert_int_equal(bytes(&bf16, 1, 4096, 14336), 117440512); /* 4096 x 14336 x 2 */
    assert_int_equal(bytes(&bf16, 8, 4096, 14336), 939524096);
    assert_int_equal(bytes(&bf16, 0, 4096, 14336), 0);
    assert_int_equal(bytes(&bf16, 1, 0, 14336), 0);
}

static void int4_in_groups(void **state) {
    (void)state;
    const struct vp_scheme scheme = {
        .data = VP_DTYPE_INT4, .scale = VP_SCALE_GROUP, .scale_dtype = VP_DTYPE_BF16, .group = 128};
    /* 4096 x 14336 / 2 = 29360128; 4096 x 112 groups x 2 = 917504 */
    assert_int_equal(bytes(&scheme, 1, 4096, 14336), 30277632);
    /* a last group of 1: 10 x ceil(129/2) = 650; 10 x 2 x 2 = 40 */
    assert_int_equal(bytes(&scheme, 1, 10, 129), 690);
}

static void gptq_with_act_order(void **state) {
    (void)state;
    const struct vp_scheme scheme = {.data = VP_DTYPE_INT4,
                                     .scale = VP_SCALE_GROUP,
                                     .scale_dtype = VP_DTYPE_FP16,
                                     .group = 128,
                                     .zero_dtype = VP_DTYPE_INT4,
                                     .extra_per_input = 4};
    /* 29360128 + scales 917504 + zeros 4096 x 112 / 2 = 229376 + g_idx 14336 x 4 = 57344 */
    assert_int_equal(bytes(&scheme, 1, 4096, 14336), 30564352);
}

static void gptq_of_three_bits(void **state) {
    (void)state;
    const struct vp_scheme scheme = {.data = VP_DTYPE_INT3,
                                     .scale = VP_SCALE_CHANNEL,
                                     .scale_dtype = VP_DTYPE_FP16,
                                     .zero_dtype = VP_DTYPE_INT3};
    /* 4096 x 4096 x 3 / 8 = 6291456; 4096 x 2 = 8192; 4096 x 3 / 8 = 1536 */
    assert_int_equal(bytes(&scheme, 1, 4096, 4096), 6301184);
}

static void nvfp4(void **state) {
    (void)state;
    const struct vp_scheme scheme = {.data = VP_DTYPE_NVFP4,
                                     .scale = VP_SCALE_TENSOR,
                                     .scale_dtype = VP_DTYPE_FP32,
                                     .input_scale = true};
    /* 4096 rows x 896 groups of 16 x (8 + 1) = 33030144; + 4 global + 4 of the input */
    assert_int_equal(bytes(&scheme, 1, 4096, 14336), 33030152);
}

static void mxfp4_padded_by_the_kernel(void **state) {
    (void)state;
    struct vp_scheme scheme = {.data = VP_DTYPE_MXFP4};
    /* 5760 rows x 90 groups of 32 x 17 */
    assert_int_equal(bytes(&scheme, 1, 5760, 2880), 8812800);
    /* 6144 rows x 96 groups x 17, 32 experts */
    scheme.pad_out = scheme.pad_in = 3072;
    assert_int_equal(bytes(&scheme, 32, 5760, 2880), 320864256);
}

static void fp8_in_blocks_with_a_ragged_edge(void **state) {
    (void)state;
    const struct vp_scheme scheme = {.data = VP_DTYPE_FP8,
                                     .scale = VP_SCALE_BLOCK,
                                     .scale_dtype = VP_DTYPE_FP32,
                                     .block_out = 128,
                                     .block_in = 128};
    /* 576 x 7168 = 4128768; ceil(576 / 128) = 5 times 56 tiles x 4 = 1120 */
    assert_int_equal(bytes(&scheme, 1, 576, 7168), 4129888);
    /* ragged on both sides: 129 x 130 = 16770; 2 x 2 x 4 */
    assert_int_equal(bytes(&scheme, 1, 129, 130), 16786);
}

static void fp8_per_channel_and_per_tensor(void **state) {
    (void)state;
    struct vp_scheme scheme = {
        .data = VP_DTYPE_FP8, .scale = VP_SCALE_CHANNEL, .scale_dtype = VP_DTYPE_FP32};
    assert_int_equal(bytes(&scheme, 1, 4096, 4096), 16793600); /* 16777216 + 4096 x 4 */
    scheme.scale = VP_SCALE_TENSOR;
    scheme.input_scale = true;
    assert_int_equal(bytes(&scheme, 1, 4096, 4096), 16777224); /* + 4 + 4 */
    assert_int_equal(bytes(&scheme, 3, 4096, 4096), 50331672); /* each matrix has its own */
}

static void mxfp8(void **state) {
    (void)state;
    const struct vp_scheme scheme = {
        .data = VP_DTYPE_FP8, .scale = VP_SCALE_GROUP, .scale_dtype = VP_DTYPE_E8M0, .group = 32};
    assert_int_equal(bytes(&scheme, 1, 4096, 4096), 17301504); /* 16777216 x 33 / 32 */
}

static void nf4_and_double_quantisation(void **state) {
    (void)state;
    struct vp_scheme scheme = {
        .data = VP_DTYPE_NF4, .scale = VP_SCALE_GROUP, .scale_dtype = VP_DTYPE_FP32, .group = 64};
    /* 8388608 + 262144 constants x 4: 0.5625 bytes per parameter */
    assert_int_equal(bytes(&scheme, 1, 4096, 4096), 9437184);
    /* 8388608 + 262144 + 1024 x 4: 0.516 bytes per parameter */
    scheme.scale_dtype = VP_DTYPE_DOUBLE8;
    assert_int_equal(bytes(&scheme, 1, 4096, 4096), 8654848);
}

static void sizes_beyond_64_bits(void **state) {
    (void)state;
    const struct vp_scheme bf16 = {.data = VP_DTYPE_BF16};
    const struct vp_scheme block = {.data = VP_DTYPE_FP8,
                                    .scale = VP_SCALE_BLOCK,
                                    .scale_dtype = VP_DTYPE_FP32,
                                    .block_out = 1,
                                    .block_in = 1,
                                    .pad_out = UINT32_MAX,
                                    .pad_in = UINT32_MAX};
    assert_true(vp_scheme_bytes(&bf16, 1, UINT64_MAX, 1).overflow);
    assert_true(vp_scheme_bytes(&bf16, 1, UINT64_C(1) << 32, UINT64_C(1) << 32).overflow);
    assert_true(vp_scheme_bytes(&bf16, UINT64_MAX, 2, 2).overflow);
    assert_true(vp_scheme_bytes(&block, 1, UINT64_MAX, 1).overflow);
    assert_true(vp_scheme_bytes(&block, 1, 1, UINT64_MAX).overflow);
}

static void formats_by_name(void **state) {
    (void)state;
    struct vp_scheme s;
    assert_true(vp_scheme_format(&s, "bf16", 0, false));
    assert_string_equal(s.name, "bf16");
    assert_true(vp_scheme_format(&s, "fp8", 0, false));
    assert_int_equal(vp_scheme_bytes(&s, 1, 4096, 4096).v, 16777220);
    assert_true(vp_scheme_format(&s, "int8", 0, false));
    assert_string_equal(s.name, "int8 per channel");
    assert_true(vp_scheme_format(&s, "int4", 0, false));
    assert_string_equal(s.name, "int4 group 128");
    assert_true(vp_scheme_format(&s, "int4", 32, false));
    assert_string_equal(s.name, "int4 group 32");
    assert_true(vp_scheme_format(&s, "INT8", 64, false));
    assert_string_equal(s.name, "int8 group 64");
    assert_true(vp_scheme_format(&s, "nf4", 0, true));
    assert_int_equal(vp_scheme_bytes(&s, 1, 4096, 4096).v, 8654848);
    assert_true(vp_scheme_format(&s, "mxfp4", 32, false));
    assert_true(vp_scheme_format(&s, "nvfp4", 16, false));
    assert_int_equal(vp_scheme_bytes(&s, 1, 4096, 14336).v, 33030148);

    assert_false(vp_scheme_format(&s, "fp4", 0, false));
    assert_false(vp_scheme_format(&s, "q4_k_m", 0, false));
    assert_false(vp_scheme_format(&s, "q8_0", 128, false));
    assert_true(vp_scheme_format(&s, "Q8_0", 0, false));
    assert_int_equal(s.data, VP_DTYPE_Q8_0);
    assert_int_equal(s.scale, VP_SCALE_NONE);
    assert_false(vp_scheme_format(&s, NULL, 0, false));
    assert_false(vp_scheme_format(&s, "fp8", 128, false)); /* no such format */
    assert_false(vp_scheme_format(&s, "nvfp4", 32, false));
    assert_false(vp_scheme_format(&s, "int4", UINT64_C(1) << 32, false));
    assert_false(vp_scheme_format(&s, "int8", 0, true));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain),
        cmocka_unit_test(int4_in_groups),
        cmocka_unit_test(gptq_with_act_order),
        cmocka_unit_test(gptq_of_three_bits),
        cmocka_unit_test(nvfp4),
        cmocka_unit_test(mxfp4_padded_by_the_kernel),
        cmocka_unit_test(fp8_in_blocks_with_a_ragged_edge),
        cmocka_unit_test(fp8_per_channel_and_per_tensor),
        cmocka_unit_test(mxfp8),
        cmocka_unit_test(nf4_and_double_quantisation),
        cmocka_unit_test(sizes_beyond_64_bits),
        cmocka_unit_test(formats_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
