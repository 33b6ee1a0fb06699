/* The device kernels give right numbers against double: as C always, and through OpenCL where PoCL
 * is installed. The AMD and NVIDIA compilers get the same text; only the matrix instructions
 * differ. */
#include "tests/unit/fixture.h"
#include "tests/unit/kernel_rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/base/arena.h"
#include "probe/fp8.h"
#include "probe/kernel_images.h"

enum { BLOCKS = 3, LANES = 64 };

static rig_run run;
static struct vp_arena arena;
static uint32_t seed;

static int fresh(void **state) {
    (void)state;
    seed = 12345;
    return 0;
}

static int clear(void **state) {
    (void)state;
    vp_arena_free(&arena);
    return 0;
}

/* In [-2, 2), with more near 0. */
static double noise(void) {
    double value = 0.0;
    for (int i = 0; i < 4; i++) {
        seed = seed * 1664525u + 1013904223u;
        value += (double)(seed >> 8) / 16777216.0 - 0.5;
    }
    return value;
}

static uint16_t *bf16_noise(size_t count) {
    uint16_t *out = VP_NEW_ARRAY(&arena, count, uint16_t);
    for (size_t i = 0; i < count; i++)
        out[i] = vp_bf16_code((float)noise());
    return out;
}

static uint8_t *fp8_noise(size_t count) {
    uint8_t *out = VP_NEW_ARRAY(&arena, count, uint8_t);
    for (size_t i = 0; i < count; i++)
        out[i] = vp_fp8_code((float)noise(), false);
    return out;
}

static double bf16(uint16_t code) { return (double)vp_bf16_value(code); }
static double fp8(uint8_t code) { return (double)vp_fp8_value(code, false); }

/* A bf16 result has 8 significant bits; sums in fp32 of many terms add a little. */
static void near(uint16_t got, double want, double scale) {
    double tolerance = fabs(want) / 200.0 + scale * 1e-5;
    if (!(fabs(bf16(got) - want) <= tolerance))
        fail_msg("got %g, want %g", bf16(got), want);
}

static double gelu(double x) {
    return 0.5 * x * (1.0 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
}

static double silu(double x) { return x / (1.0 + exp(-x)); }

/* Buffers as pairs (memory, bytes), NULL for none. */
static void launch(const char *kernel, uint32_t blocks, struct rig_numbers numbers, void *b0,
                   size_t n0, void *b1, size_t n1, void *b2, size_t n2) {
    struct rig_launch l = {.kernel = kernel,
                           .blocks = blocks,
                           .lanes = LANES,
                           .buffer = {b0, b1, b2},
                           .bytes = {n0, n1, n2},
                           .numbers = numbers};
    assert_true(run(&l));
}

static void test_streams(void **state) {
    (void)state;
    enum { N = 8 * 1000 };
    uint16_t *a = bf16_noise(N), *b = bf16_noise(N), *c = VP_NEW_ARRAY(&arena, N, uint16_t);
    size_t bytes = N * 2;
    struct rig_numbers words = {.n = N / 8};

    launch("vp_empty", 1, words, a, bytes, NULL, 0, NULL, 0);
    launch("vp_copy", BLOCKS, words, a, bytes, c, bytes, NULL, 0);
    assert_memory_equal(a, c, bytes);
    launch("vp_add", BLOCKS, words, a, bytes, b, bytes, c, bytes);
    for (size_t i = 0; i < N; i++)
        near(c[i], bf16(a[i]) + bf16(b[i]), 1.0);
    launch("vp_activate", BLOCKS, words, a, bytes, c, bytes, NULL, 0);
    for (size_t i = 0; i < N; i++)
        near(c[i], gelu(bf16(a[i])), 1.0);
    words.option = 1;
    launch("vp_activate", BLOCKS, words, a, bytes, c, bytes, NULL, 0);
    for (size_t i = 0; i < N; i++)
        near(c[i], silu(bf16(a[i])), 1.0);
    launch("vp_swiglu", BLOCKS, (struct rig_numbers){.m = 10, .n = N / 80 / 2}, a, bytes, c, bytes,
           NULL, 0);
    for (size_t i = 0; i < N / 2; i++) {
        size_t row = i / (N / 20), at = row * (N / 10) + i % (N / 20);
        near(c[i], silu(bf16(a[at])) * bf16(a[at + N / 20]), 1.0);
    }
}

static void test_read_and_triad(void **state) {
    (void)state;
    enum { N = 4000 };
    float *a = VP_NEW_ARRAY(&arena, N, float), *b = VP_NEW_ARRAY(&arena, N, float),
          *c = VP_NEW_ARRAY(&arena, N, float), sums[BLOCKS] = {-1.0f, -1.0f, -1.0f};

    for (size_t i = 0; i < N; i++) {
        a[i] = (float)noise();
        b[i] = (float)noise();
    }
    launch("vp_triad", BLOCKS, (struct rig_numbers){.n = N / 4}, a, sizeof(float) * N, b,
           sizeof(float) * N, c, sizeof(float) * N);
    for (size_t i = 0; i < N; i++)
        assert_true(fabs((double)c[i] - ((double)a[i] + 3.0 * (double)b[i])) < 1e-6);
    launch("vp_read", BLOCKS, (struct rig_numbers){.n = N / 4}, a, sizeof(float) * N, sums,
           sizeof sums, NULL, 0);
    for (size_t i = 0; i < BLOCKS; i++)
        assert_true(sums[i] >= 0.0f);
    /* Every word counts: another one changes the sum of its block. */
    float before = sums[0] + sums[1] + sums[2];
    uint32_t one;
    memcpy(&one, &a[N - 1], sizeof one);
    one ^= 1;
    memcpy(&a[N - 1], &one, sizeof one);
    launch("vp_read", BLOCKS, (struct rig_numbers){.n = N / 4}, a, sizeof(float) * N, sums,
           sizeof sums, NULL, 0);
    assert_true(before != sums[0] + sums[1] + sums[2]);
}

static void test_norms(void **state) {
    (void)state;
    enum { M = 7, N = 8 * 45 };
    uint16_t *a = bf16_noise(M * N), *w = bf16_noise(2 * N),
             *c = VP_NEW_ARRAY(&arena, M * N, uint16_t);
    struct rig_numbers shape = {.m = M, .n = N / 8};

    for (int kind = 0; kind < 3; kind++) {
        shape.option = kind == 2;
        launch(kind ? "vp_layernorm" : "vp_norm", BLOCKS, shape, a, M * N * 2, w, N * 4, c,
               M * N * 2);
        for (size_t row = 0; row < M; row++) {
            double sum = 0.0, squares = 0.0;
            for (size_t i = 0; i < N; i++) {
                sum += bf16(a[row * N + i]);
                squares += bf16(a[row * N + i]) * bf16(a[row * N + i]);
            }
            double mean = kind ? sum / N : 0.0;
            double factor = 1.0 / sqrt(squares / N - mean * mean + 1e-5);
            for (size_t i = 0; i < N; i++) {
                double want = (bf16(a[row * N + i]) - mean) * factor * bf16(w[i]);
                want += kind ? bf16(w[N + i]) : 0.0;
                near(c[row * N + i], kind == 2 ? gelu(want) : want, 1.0);
            }
        }
    }
}

static void test_every_fp8_code(void **state) {
    (void)state;
    uint8_t codes[256], back[256];
    uint16_t values[256];
    struct rig_numbers shape = {.n = 256 / 8, .scale0 = 1.0f, .scale1 = 1.0f};

    for (int i = 0; i < 256; i++)
        codes[i] = (uint8_t)i;
    launch("vp_dequantise", BLOCKS, shape, codes, 256, values, 512, NULL, 0);
    for (int i = 0; i < 256; i++) {
        float want = vp_fp8_value((uint8_t)i, false);
        if (isnan(want))
            assert_true(isnan(vp_bf16_value(values[i])));
        else
            assert_true(vp_bf16_value(values[i]) == want);
        if (isnan(want))
            values[i] = 0;
    }
    launch("vp_quantise", BLOCKS, shape, values, 512, back, 256, NULL, 0);
    for (int i = 0; i < 256; i++)
        assert_int_equal(back[i], (i & 0x7f) == 0x7f ? 0 : i);
}

static void test_quantise(void **state) {
    (void)state;
    enum { N = 1 << 16 };
    uint16_t *a = VP_NEW_ARRAY(&arena, N, uint16_t), *c = VP_NEW_ARRAY(&arena, N, uint16_t);
    uint8_t *codes = VP_NEW_ARRAY(&arena, N, uint8_t);
    struct rig_numbers shape = {.n = N / 8, .scale0 = 1.0f, .scale1 = 1.0f};

    /* Every 16-bit value but infinities and NaN. */
    for (size_t i = 0; i < N; i++)
        a[i] = (i & 0x7f80) == 0x7f80 ? 0 : (uint16_t)i;
    launch("vp_quantise", BLOCKS, shape, a, N * 2, codes, N, NULL, 0);
    for (size_t i = 0; i < N; i++)
        if (codes[i] != vp_fp8_code(vp_bf16_value(a[i]), false))
            fail_msg("%g: code %d", (double)vp_bf16_value(a[i]), codes[i]);
    shape.scale0 = 0.03125f;
    shape.option = 1;
    launch("vp_quantise", BLOCKS, shape, a, N * 2, codes, N, NULL, 0);
    for (size_t i = 0; i < N; i++)
        assert_int_equal((int8_t)codes[i], vp_int8_code(vp_bf16_value(a[i]) * 32.0f));
    launch("vp_dequantise", BLOCKS, shape, codes, N, c, N * 2, NULL, 0);
    for (size_t i = 0; i < N; i++)
        near(c[i], (double)(int8_t)codes[i] / 32.0, 0.0);
}

/* One row or many, bf16 or FP8; sizes that are no multiples of a tile. */
static void check_product(const char *kernel, size_t m, size_t n, size_t k, bool eight) {
    uint16_t *a = bf16_noise(m * k), *b = bf16_noise(n * k),
             *c = VP_NEW_ARRAY(&arena, m * n, uint16_t);
    uint8_t *a8 = fp8_noise(m * k), *b8 = fp8_noise(n * k);
    size_t width = eight ? 1 : 2;
    uint32_t side = 8; /* rows and columns of a block where a wave has one lane */
    uint32_t blocks = (uint32_t)((m + side - 1) / side * ((n + side - 1) / side));
    struct rig_numbers shape = {
        .m = (uint32_t)m, .n = (uint32_t)n, .k = (uint32_t)k, .scale0 = 0.5f, .scale1 = 2.0f};

    launch(kernel, blocks, shape, eight ? (void *)a8 : a, m * k * width, eight ? (void *)b8 : b,
           n * k * width, c, m * n * 2);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double want = 0.0;
            for (size_t l = 0; l < k; l++)
                want += eight ? fp8(a8[i * k + l]) * fp8(b8[j * k + l])
                              : bf16(a[i * k + l]) * bf16(b[j * k + l]);
            near(c[i * n + j], want, (double)k);
        }
}

static void test_products(void **state) {
    (void)state;
    check_product("vp_gemm_bf16", 9, 40, 128, false);
    check_product("vp_gemm_bf16", 32, 24, 192, false);
    check_product("vp_gemm_fp8", 9, 40, 128, true);
    check_product("vp_gemm_fp8", 32, 24, 256, true);
    check_product("vp_gemv_bf16", 1, 44, 128, false);
    check_product("vp_gemv_fp8", 1, 44, 1096, true);
}

static void check_decode(size_t batch, size_t tokens, size_t heads, size_t kv_heads, size_t dim,
                         bool eight) {
    size_t count = batch * tokens * kv_heads * dim, width = eight ? 1 : 2, group = heads / kv_heads;
    uint16_t *q = bf16_noise(batch * heads * dim), *k = bf16_noise(count), *v = bf16_noise(count);
    uint16_t *out = VP_NEW_ARRAY(&arena, batch * heads * dim, uint16_t);
    uint8_t *k8 = fp8_noise(count), *v8 = fp8_noise(count);
    size_t chunks = (tokens + 255) / 256, passes = (group + 7) / 8;
    size_t pieces = batch * heads * chunks * (dim + 2) * sizeof(float);
    struct rig_launch l = {.kernel = eight ? "vp_decode_fp8" : "vp_decode_bf16",
                           .blocks = (uint32_t)(batch * kv_heads * passes * chunks),
                           .lanes = LANES,
                           .buffer = {q, eight ? (void *)k8 : k, eight ? (void *)v8 : v, out,
                                      VP_NEW_ARRAY(&arena, pieces, char)},
                           .bytes = {batch * heads * dim * 2, count * width, count * width,
                                     batch * heads * dim * 2, pieces},
                           .numbers = {.n = (uint32_t)tokens,
                                       .heads = (uint32_t)heads,
                                       .kv_heads = (uint32_t)kv_heads,
                                       .head_dim = (uint32_t)dim,
                                       .scale0 = 0.5f,
                                       .scale1 = 2.0f}};
    double *score = VP_NEW_ARRAY(&arena, tokens, double);

    assert_true(run(&l));
    l.kernel = "vp_combine";
    l.blocks = (uint32_t)(batch * heads);
    assert_true(run(&l));
    for (size_t i = 0; i < batch * heads; i++) {
        double sum = 0.0;
        for (size_t t = 0; t < tokens; t++) {
            size_t at = ((i / heads * tokens + t) * kv_heads + i % heads / group) * dim;
            score[t] = 0.0;
            for (size_t d = 0; d < dim; d++)
                score[t] += bf16(q[i * dim + d]) * (eight ? fp8(k8[at + d]) : bf16(k[at + d]));
            score[t] = exp(score[t] * 0.5 / sqrt((double)dim));
            sum += score[t];
        }
        for (size_t d = 0; d < dim; d++) {
            double want = 0.0;
            for (size_t t = 0; t < tokens; t++) {
                size_t at = ((i / heads * tokens + t) * kv_heads + i % heads / group) * dim + d;
                want += score[t] / sum * 2.0 * (eight ? fp8(v8[at]) : bf16(v[at]));
            }
            near(out[i * dim + d], want, 1.0);
        }
    }
}

static void test_decode(void **state) {
    (void)state;
    check_decode(2, 300, 4, 2, 64, false);
    check_decode(1, 513, 18, 2, 128, false); /* 9 query heads a KV head: two passes */
    check_decode(2, 100, 3, 3, 256, true);
    check_decode(1, 256, 8, 1, 80, true);
}

static void test_describe(void **state) {
    (void)state;
    uint32_t out[8] = {0};

    launch("vp_describe", 1, (struct rig_numbers){0}, NULL, 0, NULL, 0, out, sizeof out);
    assert_int_equal(out[0], 0x56504b31);
    assert_int_equal(out[1], 1);
    assert_int_equal(out[2], 8);
    assert_int_equal(out[3], 0);
    assert_int_equal(out[4], 0);
    assert_int_equal(out[5], 1);
}

static void test_images(void **state) {
    (void)state;
    static const char *const ARCH[] = {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"};
    for (size_t i = 0; i < sizeof ARCH / sizeof *ARCH; i++) {
        const struct vp_kernel_image *image = vp_kernel_image_find(ARCH[i]);
        assert_non_null(image);
        /* ELF, AMD GPU (224), code object version 5 (ABI 3). */
        const uint8_t *byte = (const uint8_t *)image->words;
        assert_memory_equal(byte, "\177ELF", 4);
        assert_int_equal(byte[8], 3);
        assert_int_equal(byte[18], 224);
    }
    assert_null(vp_kernel_image_find("gfx908"));
    assert_null(vp_kernel_image_find("gfx9"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_describe, fresh, clear),
        cmocka_unit_test_setup_teardown(test_streams, fresh, clear),
        cmocka_unit_test_setup_teardown(test_read_and_triad, fresh, clear),
        cmocka_unit_test_setup_teardown(test_norms, fresh, clear),
        cmocka_unit_test_setup_teardown(test_every_fp8_code, fresh, clear),
        cmocka_unit_test_setup_teardown(test_quantise, fresh, clear),
        cmocka_unit_test_setup_teardown(test_products, fresh, clear),
        cmocka_unit_test_setup_teardown(test_decode, fresh, clear),
    };
    const struct CMUnitTest images[] = {cmocka_unit_test(test_images)};
    const char *why;
    int failed = cmocka_run_group_tests(images, NULL, NULL);

    run = rig_run_host;
    failed += cmocka_run_group_tests_name("kernels as C", tests, NULL, NULL);
    run = rig_opencl(vp_kernel_text(&arena), &why);
    if (run)
        failed += cmocka_run_group_tests_name("kernels through OpenCL", tests, NULL, NULL);
    else
        printf("# skipped: kernels through OpenCL: %s\n", why);
    return failed;
}
