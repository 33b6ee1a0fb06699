/* The kernels of the cpu back end against plain loops in double, at sizes that are no multiples of
 * anything, and what its clock says. */
#include "tests/unit/fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probe/fp8.h"
#include "probe/method.h"

static struct vp_arena arena;
static struct vp_dev device;
static struct vp_noise noise;

static int open_device(void **state) {
    (void)state;
    noise.state = 5;
    device = (struct vp_dev){.backend = &vp_cpu_backend, .arena = &arena};
    return device.backend->open(&device) != VP_DEV_OK;
}

static int close_device(void **state) {
    (void)state;
    device.backend->close(&device);
    vp_arena_free(&arena);
    return 0;
}

/* Operands as a kernel reads them, and as numbers. */
struct operand {
    void *memory;
    double *value;
};

static void put(struct operand *o, enum vp_dev_type type, uint64_t i, float v) {
    uint16_t half = vp_bf16_code(v);
    uint8_t narrow =
        type == VP_TYPE_FP8 ? vp_fp8_code(v * 16, false) : (uint8_t)vp_int8_code(v * 20);
    if (type == VP_TYPE_FP32) {
        memcpy((float *)o->memory + i, &v, sizeof v);
        o->value[i] = (double)v;
    } else if (type == VP_TYPE_BF16) {
        memcpy((uint16_t *)o->memory + i, &half, sizeof half);
        o->value[i] = (double)vp_bf16_value(half);
    } else {
        ((uint8_t *)o->memory)[i] = narrow;
        o->value[i] =
            type == VP_TYPE_FP8 ? (double)vp_fp8_value(narrow, false) : (double)(int8_t)narrow;
    }
}

static struct operand numbers(enum vp_dev_type type, uint64_t n) {
    struct operand o = {VP_NEW_ARRAY(&arena, n + 16, float), VP_NEW_ARRAY(&arena, n, double)};
    for (uint64_t i = 0; i < n; i++)
        put(&o, type, i, vp_noise_normal(&noise));
    return o;
}

static double bf16_at(const void *memory, uint64_t i) {
    return (double)vp_bf16_value(((const uint16_t *)memory)[i]);
}

static void close_to(double got, double want, double scale, double tolerance, const char *what) {
    if (!(fabs(got - want) <= tolerance * scale))
        fail_msg("%s: %g instead of %g", what, got, want);
}

static void launch(const struct vp_dev_work *work) {
    if (device.backend->launch(&device, work) != VP_DEV_OK)
        fail_msg("%s: %s", vp_dev_kernel_name(work->kernel), device.why);
}

/* ---- products ---- */

static void product(enum vp_dev_type type, uint64_t m, uint64_t n, uint64_t k) {
    struct operand a = numbers(type, m * k), b = numbers(type, n * k);
    float *out = VP_NEW_ARRAY(&arena, m * n + 16, float);
    bool narrow = type == VP_TYPE_FP8 || type == VP_TYPE_INT8;
    struct vp_dev_work work = {.kernel = VP_KERNEL_GEMM,
                               .type = type,
                               .m = m,
                               .n = n,
                               .k = k,
                               .buffer = {a.memory, b.memory, out},
                               .scale = {0.5F, 0.25F}};
    launch(&work);
    for (uint64_t r = 0; r < m; r++)
        for (uint64_t c = 0; c < n; c++) {
            double sum = 0, size = 0;
            for (uint64_t i = 0; i < k; i++) {
                double term = a.value[r * k + i] * b.value[c * k + i];
                sum += term;
                size += fabs(term);
            }
            double factor = narrow ? 0.125 : 1;
            double got = type == VP_TYPE_FP32 ? (double)out[r * n + c] : bf16_at(out, r * n + c);
            close_to(got, sum * factor, fabs(sum) * factor + size * factor * 1e-5,
                     type == VP_TYPE_FP32 ? 1e-3 : 0x1p-8, vp_dev_type_name(type));
        }
}

static void products(void **state) {
    (void)state;
    for (enum vp_dev_type type = 0; type < VP_DEV_TYPES; type++) {
        product(type, 1, 1, 1);
        product(type, 5, 50, 37);
        product(type, 3, 7, 520);
        product(type, 66, 49, 1030);
    }
}

static void recomputed(void **state) {
    (void)state;
    enum { M = 5, N = 50, K = 64 };
    struct operand x = numbers(VP_TYPE_BF16, M * K), gain = numbers(VP_TYPE_BF16, K),
                   w = numbers(VP_TYPE_BF16, N * K);
    uint16_t out[M * N];
    struct vp_dev_work work = {.kernel = VP_KERNEL_RECOMPUTE,
                               .m = M,
                               .n = N,
                               .k = K,
                               .buffer = {x.memory, gain.memory, w.memory, out}};
    launch(&work);
    for (int r = 0; r < M; r++) {
        double squares = 0;
        for (int i = 0; i < K; i++)
            squares += x.value[r * K + i] * x.value[r * K + i];
        for (int c = 0; c < N; c++) {
            double sum = 0;
            for (int i = 0; i < K; i++)
                sum += x.value[r * K + i] / sqrt(squares / K + 1e-5) * gain.value[i] *
                       w.value[c * K + i];
            close_to(bf16_at(out, (uint64_t)(r * N + c)), sum / (1 + exp(-sum)), fabs(sum) + 0.1,
                     0x1p-7, "recompute");
        }
    }
}

/* ---- rows and streams ---- */

static double gelu(double x) { return x / (1 + exp(-1.5957691216 * (x + 0.044715 * x * x * x))); }

static void norms(void **state) {
    (void)state;
    enum { M = 3, N = 72 };
    struct operand x = numbers(VP_TYPE_BF16, M * N), gain = numbers(VP_TYPE_BF16, 2 * N);
    uint16_t rms[M * N], layer[M * N], fused[M * N], gated[M * N / 2];
    struct vp_dev_work work = {
        .kernel = VP_KERNEL_NORM, .m = M, .n = N, .buffer = {x.memory, gain.memory, rms}};
    launch(&work);
    work.kernel = VP_KERNEL_LAYERNORM;
    work.buffer[2] = layer;
    launch(&work);
    work.kernel = VP_KERNEL_LAYERNORM_GELU;
    work.buffer[2] = fused;
    launch(&work);
    work = (struct vp_dev_work){
        .kernel = VP_KERNEL_SWIGLU, .m = M, .n = N / 2 - 4, .buffer = {x.memory, gated}};
    launch(&work);
    for (int r = 0; r < M; r++) {
        const double *row = x.value + r * N;
        double mean = 0, squares = 0, spread = 0;
        for (int i = 0; i < N; i++) {
            mean += row[i] / N;
            squares += row[i] * row[i] / N;
        }
        for (int i = 0; i < N; i++)
            spread += (row[i] - mean) * (row[i] - mean) / N;
        for (int i = 0; i < N; i++) {
            uint64_t at = (uint64_t)(r * N + i);
            double normed = row[i] / sqrt(squares + 1e-5) * gain.value[i];
            double y = (row[i] - mean) / sqrt(spread + 1e-5) * gain.value[i] + gain.value[N + i];
            close_to(bf16_at(rms, at), normed, fabs(normed), 0x1p-7, "norm");
            close_to(bf16_at(layer, at), y, fabs(y) + 1e-3, 0x1p-7, "layer norm");
            close_to(bf16_at(fused, at), gelu(y), fabs(gelu(y)) + 1e-3, 0x1p-7, "fused");
        }
    }
    for (int r = 0; r < M; r++)
        for (int i = 0; i < N / 2 - 4; i++) {
            const double *row = x.value + r * 2 * (N / 2 - 4);
            double want = row[i] / (1 + exp(-row[i])) * row[N / 2 - 4 + i];
            close_to(bf16_at(gated, (uint64_t)(r * (N / 2 - 4) + i)), want, fabs(want), 0x1p-7,
                     "swiglu");
        }
}

static void streams(void **state) {
    (void)state;
    enum { N = 1024 };
    struct operand x = numbers(VP_TYPE_BF16, N), y = numbers(VP_TYPE_BF16, N),
                   a = numbers(VP_TYPE_FP32, N), b = numbers(VP_TYPE_FP32, N);
    uint16_t sum[N], active[N], back[N];
    float triad[N], read[4096];
    uint8_t copied[N], codes[N];
    launch(&(struct vp_dev_work){
        .kernel = VP_KERNEL_ADD, .n = N, .buffer = {x.memory, y.memory, sum}});
    launch(&(struct vp_dev_work){.kernel = VP_KERNEL_GELU, .n = N, .buffer = {x.memory, active}});
    launch(&(struct vp_dev_work){
        .kernel = VP_KERNEL_TRIAD, .n = N, .buffer = {a.memory, b.memory, triad}});
    launch(&(struct vp_dev_work){.kernel = VP_KERNEL_COPY, .n = N, .buffer = {x.memory, copied}});
    launch(&(struct vp_dev_work){.kernel = VP_KERNEL_READ, .n = N, .buffer = {a.memory, read}});
    launch(&(struct vp_dev_work){.kernel = VP_KERNEL_EMPTY});
    assert_memory_equal(copied, x.memory, N);
    for (uint64_t i = 0; i < N; i++) {
        close_to(bf16_at(sum, i), x.value[i] + y.value[i], 4, 0x1p-8, "add");
        close_to(bf16_at(active, i), gelu(x.value[i]), fabs(gelu(x.value[i])) + 1e-3, 0x1p-8,
                 "gelu");
        close_to((double)triad[i], a.value[i] + 3 * b.value[i], 16, 1e-6, "triad");
    }
    for (enum vp_dev_type type = VP_TYPE_FP8; type <= VP_TYPE_INT8; type++) {
        struct vp_dev_work work = {.kernel = VP_KERNEL_QUANTISE,
                                   .type = type,
                                   .m = 4,
                                   .n = N / 4,
                                   .buffer = {x.memory, codes},
                                   .scale = {0.01F}};
        launch(&work);
        work.kernel = VP_KERNEL_DEQUANTISE;
        work.buffer[0] = codes;
        work.buffer[1] = back;
        launch(&work);
        for (uint64_t i = 0; i < N; i++) {
            /* the product with the inverse, as the kernel has it */
            float scaled = (float)x.value[i] * (1 / 0.01F);
            uint8_t want =
                type == VP_TYPE_FP8 ? vp_fp8_code(scaled, false) : (uint8_t)vp_int8_code(scaled);
            float value = type == VP_TYPE_FP8 ? vp_fp8_value(want, false) : (float)(int8_t)want;
            assert_int_equal(codes[i], want);
            assert_int_equal(back[i], vp_bf16_code(value * 0.01F));
        }
    }
}

/* ---- attention ---- */

enum { SEQUENCES = 2, HEADS = 4, KV_HEADS = 2, SIZE = 40, TOKENS = 21 };

/* One head of one query over the first `seen` tokens of sequence s. */
static void attended(double out[SIZE], const double *q, const struct operand *k,
                     const struct operand *v, int s, int head, int seen) {
    double weight[TOKENS], all = 0;
    memset(out, 0, SIZE * sizeof *out);
    for (int t = 0; t < seen; t++) {
        double score = 0;
        for (int i = 0; i < SIZE; i++)
            score += q[i] * k->value[((s * TOKENS + t) * KV_HEADS + head) * SIZE + i];
        weight[t] = exp(score / sqrt(SIZE));
        all += weight[t];
    }
    for (int t = 0; t < seen; t++)
        for (int i = 0; i < SIZE; i++)
            out[i] += weight[t] / all * v->value[((s * TOKENS + t) * KV_HEADS + head) * SIZE + i];
}

static void attention(enum vp_dev_kernel kernel, enum vp_dev_type type) {
    int fresh = kernel == VP_KERNEL_DECODE ? 1 : TOKENS;
    uint64_t queries = (uint64_t)(SEQUENCES * fresh * HEADS * SIZE);
    uint64_t cached = SEQUENCES * TOKENS * KV_HEADS * SIZE;
    struct operand q = numbers(VP_TYPE_BF16, queries), k = numbers(type, cached),
                   v = numbers(type, cached);
    uint16_t *out = VP_NEW_ARRAY(&arena, queries, uint16_t);
    struct vp_dev_work work = {.kernel = kernel,
                               .type = type,
                               .n = TOKENS,
                               .batch = SEQUENCES,
                               .heads = HEADS,
                               .kv_heads = KV_HEADS,
                               .head_dim = SIZE,
                               .buffer = {q.memory, k.memory, v.memory, out},
                               .scale = {1, 1}};
    launch(&work);
    for (int s = 0; s < SEQUENCES; s++)
        for (int t = 0; t < fresh; t++)
            for (int h = 0; h < HEADS; h++) {
                uint64_t at = (uint64_t)(((s * fresh + t) * HEADS + h) * SIZE);
                double want[SIZE];
                attended(want, q.value + at, &k, &v, s, h / (HEADS / KV_HEADS),
                         fresh == 1 ? TOKENS : t + 1);
                for (uint64_t i = 0; i < SIZE; i++)
                    close_to(bf16_at(out, at + i), want[i], fabs(want[i]) + 0.1, 0x1p-6,
                             vp_dev_kernel_name(kernel));
            }
}

static void attentions(void **state) {
    (void)state;
    attention(VP_KERNEL_DECODE, VP_TYPE_BF16);
    attention(VP_KERNEL_DECODE, VP_TYPE_FP8);
    attention(VP_KERNEL_PREFILL, VP_TYPE_BF16);
    attention(VP_KERNEL_PREFILL, VP_TYPE_FP8);
}

static void refusals(void **state) {
    (void)state;
    struct vp_dev_work work = {.kernel = VP_KERNEL_GELU, .n = 9};
    assert_int_equal(device.backend->launch(&device, &work), VP_DEV_UNSUPPORTED);
    work = (struct vp_dev_work){
        .kernel = VP_KERNEL_DECODE, .n = 1, .batch = 1, .heads = 1, .kv_heads = 1, .head_dim = 512};
    assert_int_equal(device.backend->launch(&device, &work), VP_DEV_UNSUPPORTED);
}

/* Work moves the clock, waiting does not. */
static void clock_counts_work(void **state) {
    (void)state;
    enum { N = 1 << 20 };
    struct operand a = numbers(VP_TYPE_FP32, N);
    float read[4096];
    struct vp_dev_work work = {
        .kernel = VP_KERNEL_READ, .n = N * sizeof(float), .buffer = {a.memory, read}};
    double idle = -1, busy = -1;
    device.backend->start(&device);
    device.backend->stop(&device, &idle);
    close_to(idle, 0, 1, 1e-9, "nothing was done");
    device.backend->start(&device);
    for (int i = 0; i < 10; i++)
        launch(&work);
    device.backend->stop(&device, &busy);
    /* 4 MB ten times: between 0.5 and 400 GB/s */
    assert_true(busy > 100 && busy < 80e3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(recomputed),
        cmocka_unit_test(norms),
        cmocka_unit_test(streams),
        cmocka_unit_test(attentions),
        cmocka_unit_test(refusals),
        cmocka_unit_test(clock_counts_work),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
