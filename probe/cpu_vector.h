/* What the kernels of the cpu back end are written in: vectors of eight floats, and work that is
 * divided into ranges over the threads. Not for others. */
#ifndef VP_PROBE_CPU_VECTOR_H
#define VP_PROBE_CPU_VECTOR_H

#include "probe/cpu_kernels.h"

/* Every kernel body is inlined twice, into a function for the processor that the compiler was told
 * and into one for AVX2. Vectors are passed by address, so that no calling convention depends on
 * either. */
#define BODY static inline __attribute__((always_inline))
#if defined __x86_64__
#define AVX2 __attribute__((target("avx2,fma")))
#endif

enum { LANES = 8 };
typedef float v8 __attribute__((vector_size(32)));
typedef int32_t i8 __attribute__((vector_size(32)));
typedef uint32_t u8 __attribute__((vector_size(32)));
typedef float v8_any __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint16_t h8 __attribute__((vector_size(16), aligned(2), may_alias));
typedef uint8_t b8 __attribute__((vector_size(8), aligned(1), may_alias));

#define ALL(x) ((v8){} + (x))
/* Lane by lane, as a comparison of vectors says. */
#define CHOOSE(mask, a, b) ((v8)(((u8)(mask) & (u8)(a)) | (~(u8)(mask) & (u8)(b))))

BODY void load_floats(v8 *out, const float *from) { *out = *(const v8_any *)from; }

BODY void store_floats(float *to, const v8 *v) { *(v8_any *)to = *v; }

BODY void load_bf16(v8 *out, const uint16_t *from) {
    *out = (v8)(__builtin_convertvector(*(const h8 *)from, u8) << 16);
}

BODY void store_bf16(uint16_t *to, const v8 *v) {
    u8 bits = (u8)*v;
    bits = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    *(h8 *)to = __builtin_convertvector(bits, h8);
}

/* Exponent and mantissa are moved into a float's places; the missing 2^120 repairs the bias, and
 * makes subnormals right as well. NaN codes do not occur. */
BODY void load_fp8(v8 *out, const uint8_t *from) {
    u8 code = __builtin_convertvector(*(const b8 *)from, u8);
    v8 size = (v8)((code & 0x7f) << 20) * ALL(0x1p120F);
    *out = (v8)((u8)size | (code & 0x80) << 24);
}

BODY void load_int8(v8 *out, const uint8_t *from) {
    i8 code = (i8)(__builtin_convertvector(*(const b8 *)from, u8) << 24) >> 24;
    *out = __builtin_convertvector(code, v8);
}

BODY void store_fp8(uint8_t *to, const v8 *v) {
    u8 bits = (u8)*v, sign = bits >> 24 & 0x80;
    v8 size = (v8)(bits & 0x7fffffff);
    size = CHOOSE(size < ALL(448.0F), size, ALL(448.0F));
    bits = (u8)size;
    u8 normal = ((bits + 0x7ffff + (bits >> 20 & 1)) >> 20) - (120 << 3);
    /* below 2^-6 steps are 2^-9; adding 2^14 leaves whole steps in the last bits */
    u8 small = (u8)(size + ALL(0x1p14F)) - (u8)ALL(0x1p14F);
    u8 code = (u8)CHOOSE(size < ALL(0x1p-6F), small, normal);
    *(b8 *)to = __builtin_convertvector(sign | code, b8);
}

BODY void store_int8(uint8_t *to, const v8 *v) {
    v8 x = *v;
    x = CHOOSE(x < ALL(127.0F), x, ALL(127.0F));
    x = CHOOSE(x > ALL(-127.0F), x, ALL(-127.0F));
    /* adding 1.5 x 2^23 rounds to the nearest integer, ties to even */
    u8 bits = (u8)(x + ALL(0x1.8p23F)) - (u8)ALL(0x1.8p23F);
    *(b8 *)to = __builtin_convertvector(bits & 0xff, b8);
}

BODY void load_typed(v8 *out, enum vp_dev_type type, const uint8_t *base, uint64_t i) {
    if (type == VP_TYPE_FP32)
        load_floats(out, (const float *)(const void *)base + i);
    else if (type == VP_TYPE_BF16)
        load_bf16(out, (const uint16_t *)(const void *)base + i);
    else if (type == VP_TYPE_FP8)
        load_fp8(out, base + i);
    else
        load_int8(out, base + i);
}

BODY float sum_of(const v8 *v) {
    const v8 x = *v;
    return ((x[0] + x[4]) + (x[1] + x[5])) + ((x[2] + x[6]) + (x[3] + x[7]));
}

/* e^x to about 1e-6: 2^n times a polynomial on half a step either side. */
BODY void exponential(v8 *v) {
    v8 x = *v;
    x = CHOOSE(x < ALL(-80.0F), ALL(-80.0F), x);
    x = CHOOSE(x > ALL(80.0F), ALL(80.0F), x);
    v8 turns = x * ALL(1.44269504F);
    v8 shifted = turns + ALL(0x1.8p23F);
    v8 rest = (turns - (shifted - ALL(0x1.8p23F))) * ALL(0.69314718F);
    v8 p = ALL(1.0F / 120) * rest + ALL(1.0F / 24);
    p = p * rest + ALL(1.0F / 6);
    p = p * rest + ALL(0.5F);
    p = p * rest + ALL(1.0F);
    p = p * rest + ALL(1.0F);
    u8 power = ((u8)shifted - (u8)ALL(0x1.8p23F)) << 23;
    *v = (v8)((u8)p + power);
}

/* The tanh form: x / (1 + e^(-2 t)), t = sqrt(2 / pi) (x + 0.044715 x^3). */
BODY void gelu_of(v8 *v) {
    v8 x = *v, e = ALL(-1.59576912F) * (x + ALL(0.044715F) * x * x * x);
    exponential(&e);
    *v = x / (ALL(1.0F) + e);
}

BODY void silu_of(v8 *v) {
    v8 e = -*v;
    exponential(&e);
    *v = *v / (ALL(1.0F) + e);
}

struct job {
    const struct vp_dev_work *work;
    struct vp_cpu *cpu;
    uint64_t items, block; /* what is divided between the threads; the step of streams */
};

/* One thread's part: items from, ..., to - 1. */
typedef void (*range_kernel)(const struct job *job, unsigned thread, uint64_t from, uint64_t to);

#ifdef AVX2
#define KERNEL(name)                                                                               \
    static void name##_plain(const struct job *j, unsigned t, uint64_t a, uint64_t b) {            \
        name(j, t, a, b);                                                                          \
    }                                                                                              \
    AVX2 static void name##_avx2(const struct job *j, unsigned t, uint64_t a, uint64_t b) {        \
        name(j, t, a, b);                                                                          \
    }                                                                                              \
    const range_kernel vp_cpu_##name[2] = {name##_plain, name##_avx2};
#else
#define KERNEL(name)                                                                               \
    static void name##_plain(const struct job *j, unsigned t, uint64_t a, uint64_t b) {            \
        name(j, t, a, b);                                                                          \
    }                                                                                              \
    const range_kernel vp_cpu_##name[2] = {name##_plain, name##_plain};
#endif

/* Of the processor that the program was built for, and with AVX2. */
extern const range_kernel vp_cpu_widen[2], vp_cpu_norm_widen[2],
    vp_cpu_product[2]; /* cpu_product.c */
extern const range_kernel vp_cpu_norm[2], vp_cpu_layernorm[2], vp_cpu_swiglu[2], vp_cpu_gelu[2],
    vp_cpu_add[2], vp_cpu_triad[2], vp_cpu_read_all[2], vp_cpu_quantise[2],
    vp_cpu_dequantise[2];                      /* cpu_stream.c */
extern const range_kernel vp_cpu_attention[2]; /* cpu_attention.c */

enum { VP_CPU_PANEL = 48, VP_CPU_DEPTH = 512, VP_CPU_HEAD_MOST = 256 };

static inline uint64_t padded(uint64_t n) { return (n + LANES - 1) / LANES * LANES; }

/* Added to mean squares. */
static const float VP_CPU_EPSILON = 1e-5F;

/* Of (x - mean). */
BODY float mean_square(const uint16_t *row, uint64_t n, float mean) {
    v8 sum = {}, v;
    for (uint64_t i = 0; i < n; i += LANES) {
        load_bf16(&v, row + i);
        v -= ALL(mean);
        sum += v * v;
    }
    return sum_of(&sum) / (float)n;
}

#endif
