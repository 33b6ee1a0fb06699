/* From work to launches: what is planned, run as C, gives what the processor's own kernels give for
 * the same work, which are written apart; and what cannot be done is refused. */
#include "tests/unit/fixture.h"
#include "tests/unit/kernel_rig.h"

#include <math.h>
#include <string.h>

#include "probe/fp8.h"
#include "probe/gpu_launch.h"
#include "probe/method.h"

static const enum vp_dev_type FLOATS[] = {VP_TYPE_BF16, VP_TYPE_FP8};

static struct vp_arena arena;
static struct vp_dev cpu, gpu;
static struct vp_kernel_traits traits;
static struct vp_noise random_state;

static int set_up(void **state) {
    uint32_t numbers[8] = {0};
    struct rig_launch describe = {
        .kernel = "vp_describe", .blocks = 1, .lanes = 1, .buffer = {[2] = numbers}};

    (void)state;
    cpu = (struct vp_dev){.backend = &vp_cpu_backend, .arena = &arena};
    gpu = (struct vp_dev){.arena = &arena};
    random_state.state = 7;
    assert_int_equal(vp_cpu_backend.open(&cpu), VP_DEV_OK);
    assert_true(rig_run_host(&describe));
    assert_true(vp_kernel_traits_read(&traits, numbers));
    traits.compute_units = 4;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    vp_cpu_backend.close(&cpu);
    vp_arena_free(&arena);
    return 0;
}

static void *noise(uint64_t count, enum vp_dev_type type) {
    uint8_t *out = vp_arena_alloc(&arena, count * vp_dev_type_bytes(type));
    for (uint64_t i = 0; i < count; i++) {
        float value = vp_noise_normal(&random_state);
        uint16_t half = vp_bf16_code(value);
        if (type == VP_TYPE_FP32)
            memcpy(out + 4 * i, &value, 4);
        else if (type == VP_TYPE_BF16)
            memcpy(out + 2 * i, &half, 2);
        else
            out[i] =
                type == VP_TYPE_FP8 ? vp_fp8_code(value, false) : (uint8_t)vp_int8_code(20 * value);
    }
    return out;
}

static void run_planned(const struct vp_dev_work *work) {
    struct vp_kernel_plan plan;
    void *scratch = vp_arena_alloc(&arena, vp_kernel_scratch_bytes(work));

    assert_int_equal(vp_kernel_plan(&gpu, &plan, work, &traits, scratch), VP_DEV_OK);
    for (uint32_t i = 0; i < plan.launches; i++) {
        const struct vp_kernel_launch *l = &plan.launch[i];
        struct rig_launch launch = {
            .kernel = vp_kernel_entry_name(l->entry), .blocks = l->blocks, .lanes = l->lanes};
        memcpy(launch.buffer, l->buffer, sizeof launch.buffer);
        assert_int_equal(sizeof launch.numbers, sizeof l->numbers);
        memcpy(&launch.numbers, &l->numbers, sizeof launch.numbers);
        assert_true(rig_run_host(&launch));
    }
}

/* Both results of `count` elements at buffer `b`; codes may differ by the last bit of a tie. */
static void check(struct vp_dev_work work, unsigned b, uint64_t count, enum vp_dev_type type) {
    uint64_t bytes = count * vp_dev_type_bytes(type);
    uint8_t *ours = vp_arena_alloc(&arena, bytes), *theirs = vp_arena_alloc(&arena, bytes);

    work.buffer[b] = ours;
    run_planned(&work);
    work.buffer[b] = theirs;
    assert_int_equal(vp_cpu_backend.launch(&cpu, &work), VP_DEV_OK);
    for (uint64_t i = 0; i < count; i++) {
        double got, want;
        float x, y;
        if (type == VP_TYPE_FP32) {
            memcpy(&x, ours + 4 * i, 4);
            memcpy(&y, theirs + 4 * i, 4);
            got = (double)x, want = (double)y;
        } else if (type == VP_TYPE_BF16) {
            uint16_t p, q;
            memcpy(&p, ours + 2 * i, 2);
            memcpy(&q, theirs + 2 * i, 2);
            got = (double)vp_bf16_value(p), want = (double)vp_bf16_value(q);
        } else {
            got = ours[i], want = theirs[i];
        }
        /* what lies between the steps of RECOMPUTE is rounded to bf16 by one of them only */
        double loose = work.kernel == VP_KERNEL_RECOMPUTE ? 4 : 1;
        if (!(fabs(got - want) <= (0.01 + fabs(want) / 64) * loose))
            fail_msg("%s: element %u is %g, not %g", vp_dev_kernel_name(work.kernel), (unsigned)i,
                     got, want);
    }
}

static void test_streams(void **state) {
    enum { N = 4096 };
    struct vp_dev_work w = {.n = N * 4, .scale = {1, 1}};
    (void)state;

    w.buffer[0] = noise(N, VP_TYPE_FP32);
    w.buffer[1] = noise(N, VP_TYPE_FP32);
    w.kernel = VP_KERNEL_COPY;
    check(w, 1, N, VP_TYPE_FP32);
    w.kernel = VP_KERNEL_TRIAD;
    w.n = N;
    check(w, 2, N, VP_TYPE_FP32);
    w.buffer[0] = noise(N, VP_TYPE_BF16);
    w.buffer[1] = noise(N, VP_TYPE_BF16);
    w.kernel = VP_KERNEL_ADD;
    check(w, 2, N, VP_TYPE_BF16);
    w.kernel = VP_KERNEL_GELU;
    check(w, 1, N, VP_TYPE_BF16);
    w.kernel = VP_KERNEL_EMPTY;
    run_planned(&w);
}

static void test_rows(void **state) {
    enum { M = 5, N = 256 };
    struct vp_dev_work w = {.m = M, .n = N};
    (void)state;

    w.buffer[0] = noise(2 * M * N, VP_TYPE_BF16);
    w.buffer[1] = noise(2 * N, VP_TYPE_BF16);
    w.kernel = VP_KERNEL_NORM;
    check(w, 2, M * N, VP_TYPE_BF16);
    w.kernel = VP_KERNEL_LAYERNORM;
    check(w, 2, M * N, VP_TYPE_BF16);
    w.kernel = VP_KERNEL_LAYERNORM_GELU;
    check(w, 2, M * N, VP_TYPE_BF16);
    w.kernel = VP_KERNEL_SWIGLU;
    check(w, 1, M * N, VP_TYPE_BF16);
}

static void test_codes(void **state) {
    enum { M = 3, N = 256 };
    struct vp_dev_work w = {.m = M, .n = N, .scale = {0.125F, 1}};
    static const enum vp_dev_type TYPES[] = {VP_TYPE_FP8, VP_TYPE_INT8};
    (void)state;

    for (unsigned i = 0; i < 2; i++) {
        enum vp_dev_type type = w.type = TYPES[i];
        w.kernel = VP_KERNEL_QUANTISE;
        w.buffer[0] = noise(M * N, VP_TYPE_BF16);
        check(w, 1, M * N, type);
        w.kernel = VP_KERNEL_DEQUANTISE;
        w.buffer[0] = noise(M * N, type);
        check(w, 1, M * N, VP_TYPE_BF16);
    }
}

static void test_products(void **state) {
    struct vp_dev_work w = {.m = 9, .n = 40, .k = 256, .scale = {0.5F, 0.25F}};
    (void)state;

    for (unsigned i = 0; i < 2; i++) {
        enum vp_dev_type type = w.type = FLOATS[i];
        w.m = 9;
        w.kernel = VP_KERNEL_GEMM;
        w.buffer[0] = noise(w.m * w.k, type);
        w.buffer[1] = noise(w.n * w.k, type);
        check(w, 2, w.m * w.n, VP_TYPE_BF16);
        w.kernel = VP_KERNEL_GEMV;
        w.m = 1;
        check(w, 2, w.n, VP_TYPE_BF16);
    }
    w = (struct vp_dev_work){.kernel = VP_KERNEL_RECOMPUTE, .m = 7, .n = 40, .k = 128};
    w.buffer[0] = noise(w.m * w.k, VP_TYPE_BF16);
    w.buffer[1] = noise(w.k, VP_TYPE_BF16);
    w.buffer[2] = noise(w.n * w.k, VP_TYPE_BF16);
    check(w, 3, w.m * w.n, VP_TYPE_BF16);
}

static void test_decode(void **state) {
    struct vp_dev_work w = {.kernel = VP_KERNEL_DECODE,
                            .n = 300,
                            .batch = 2,
                            .heads = 6,
                            .kv_heads = 2,
                            .head_dim = 64,
                            .scale = {1, 1}}; /* the processor's kernel has no scales here */
    uint64_t cached = w.batch * w.n * w.kv_heads * w.head_dim;
    uint64_t queries = w.batch * w.heads * w.head_dim;
    (void)state;

    for (unsigned i = 0; i < 2; i++) {
        enum vp_dev_type type = w.type = FLOATS[i];
        w.buffer[0] = noise(queries, VP_TYPE_BF16);
        w.buffer[1] = noise(cached, type);
        w.buffer[2] = noise(cached, type);
        check(w, 3, queries, VP_TYPE_BF16);
    }
}

static void refused(struct vp_dev_work work, const char *reason) {
    struct vp_kernel_plan plan;
    gpu.why[0] = '\0';
    assert_int_equal(vp_kernel_plan(&gpu, &plan, &work, &traits, NULL), VP_DEV_UNSUPPORTED);
    if (!strstr(gpu.why, reason))
        fail_msg("\"%s\" does not say \"%s\"", gpu.why, reason);
}

static void test_refused(void **state) {
    struct vp_dev_work gemm = {.kernel = VP_KERNEL_GEMM, .m = 8, .n = 64, .k = 256};
    struct vp_dev_work w = gemm;
    (void)state;

    refused((struct vp_dev_work){.kernel = VP_KERNEL_PREFILL}, "prefill");
    refused((struct vp_dev_work){.kernel = VP_KERNEL_COPY, .n = 24}, "16-byte");
    refused((struct vp_dev_work){.kernel = VP_KERNEL_COPY}, "16-byte");
    refused((struct vp_dev_work){.kernel = VP_KERNEL_READ, .n = UINT64_C(1) << 40}, "too large");
    refused((struct vp_dev_work){.kernel = VP_KERNEL_NORM, .m = 4, .n = 12}, "multiple of 8");
    w.type = VP_TYPE_FP32;
    refused(w, "bf16 and FP8");
    w = gemm;
    w.n = 60;
    refused(w, "steps of 8");
    w = gemm;
    w.k = 24;
    refused(w, "128 bytes");
    w = gemm;
    traits.products = false;
    refused(w, "matrix units");
    refused((struct vp_dev_work){.kernel = VP_KERNEL_DECODE,
                                 .n = 8,
                                 .batch = 1,
                                 .heads = 2,
                                 .kv_heads = 1,
                                 .head_dim = 512},
            "256 elements");
    refused((struct vp_dev_work){.kernel = VP_KERNEL_DECODE,
                                 .n = 8,
                                 .batch = 1,
                                 .heads = 3,
                                 .kv_heads = 2,
                                 .head_dim = 64},
            "256 elements");
}

/* A GPU with matrix units: blocks are 128 x 128, of four waves; FP8 rows count their own bytes. */
static void test_tiles(void **state) {
    struct vp_dev_work w = {.kernel = VP_KERNEL_GEMM, .m = 129, .n = 256, .k = 192};
    struct vp_kernel_plan plan;
    (void)state;

    traits = (struct vp_kernel_traits){
        .wave = 64, .side = 128, .fp8_units = true, .products = true, .step_bytes = 128};
    assert_int_equal(vp_kernel_plan(&gpu, &plan, &w, &traits, NULL), VP_DEV_OK);
    assert_int_equal(plan.launch[0].blocks, 4);
    assert_int_equal(plan.launch[0].lanes, 256);
    w.type = VP_TYPE_FP8;
    refused(w, "128 bytes");
    traits.fp8_units = false; /* decoded: 384 bytes of bf16 */
    assert_int_equal(vp_kernel_plan(&gpu, &plan, &w, &traits, NULL), VP_DEV_OK);
}

static void test_traits(void **state) {
    uint32_t numbers[8] = {0x56504b31, 64, 128, 1, 1, 1, 128, 256};
    (void)state;

    assert_true(vp_kernel_traits_read(&traits, numbers));
    assert_true(traits.fp8_fnuz && traits.fp8_units && traits.products);
    numbers[0] = 0;
    assert_false(vp_kernel_traits_read(&traits, numbers));
    numbers[0] = 0x56504b31;
    numbers[2] = 0;
    assert_false(vp_kernel_traits_read(&traits, numbers));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(test_streams),  TEST(test_rows),   TEST(test_codes),
                                       TEST(test_products), TEST(test_decode), TEST(test_refused),
                                       TEST(test_tiles),    TEST(test_traits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
