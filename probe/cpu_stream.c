/* Norms, activations and streams of the cpu back end. */
#include <math.h>

#include "probe/cpu_vector.h"

/* ---- rows ---- */

BODY float mean_of(const uint16_t *row, uint64_t n) {
    v8 sum = {}, v;
    for (uint64_t i = 0; i < n; i += LANES) {
        load_bf16(&v, row + i);
        sum += v;
    }
    return sum_of(&sum) / (float)n;
}

BODY void norm(const struct job *job, unsigned thread, uint64_t from, uint64_t to) {
    const struct vp_dev_work *w = job->work;
    const uint16_t *gain = w->buffer[1];
    (void)thread;

    for (uint64_t r = from; r < to; r++) {
        const uint16_t *row = (const uint16_t *)w->buffer[0] + r * w->n;
        uint16_t *out = (uint16_t *)w->buffer[2] + r * w->n;
        float scale = 1 / sqrtf(mean_square(row, w->n, 0) + VP_CPU_EPSILON);
        for (uint64_t i = 0; i < w->n; i += LANES) {
            v8 v, g;
            load_bf16(&v, row + i);
            load_bf16(&g, gain + i);
            v = v * ALL(scale) * g;
            store_bf16(out + i, &v);
        }
    }
}
KERNEL(norm)

BODY void layernorm(const struct job *job, unsigned thread, uint64_t from, uint64_t to) {
    const struct vp_dev_work *w = job->work;
    const uint16_t *gain = w->buffer[1], *shift = gain + w->n;
    bool gelu = w->kernel == VP_KERNEL_LAYERNORM_GELU;
    (void)thread;

    for (uint64_t r = from; r < to; r++) {
        const uint16_t *row = (const uint16_t *)w->buffer[0] + r * w->n;
        uint16_t *out = (uint16_t *)w->buffer[2] + r * w->n;
        float mean = mean_of(row, w->n);
        float scale = 1 / sqrtf(mean_square(row, w->n, mean) + VP_CPU_EPSILON);
        for (uint64_t i = 0; i < w->n; i += LANES) {
            v8 v, g, b;
            load_bf16(&v, row + i);
            load_bf16(&g, gain + i);
            load_bf16(&b, shift + i);
            v = (v - ALL(mean)) * ALL(scale) * g + b;
            if (gelu)
                gelu_of(&v);
            store_bf16(out + i, &v);
        }
    }
}
KERNEL(layernorm)

BODY void swiglu(const struct job *job, unsigned thread, uint64_t from, uint64_t to) {
    const struct vp_dev_work *w = job->work;
    (void)thread;

    for (uint64_t r = from; r < to; r++) {
        const uint16_t *row = (const uint16_t *)w->buffer[0] + r * 2 * w->n;
        uint16_t *out = (uint16_t *)w->buffer[1] + r * w->n;
        for (uint64_t i = 0; i < w->n; i += LANES) {
            v8 gate, up;
            load_bf16(&gate, row + i);
            load_bf16(&up, row + w->n + i);
            silu_of(&gate);
            up *= gate;
            store_bf16(out + i, &up);
        }
    }
}
KERNEL(swiglu)

/* ---- streams: items are vectors of eight ---- */

BODY void gelu(const struct job *job, unsigned thread, uint64_t from, uint64_t to) {
    const uint16_t *in = job->work->buffer[0];
    uint16_t *out = job->work->buffer[1];
    (void)thread;

    for (uint64_t i = from * LANES; i < to * LANES; i += LANES) {
        v8 v;
        load_bf16(&v, in + i);
        gelu_of(&v);
        store_bf16(out + i, &v);
    }
}
KERNEL(gelu)

BODY void add(const struct job *job, unsigned thread, uint64_t from, uint64_t to) {
    const uint16_t *a = job->work->buffer[0], *b = job->work->buffer[1];
    uint16_t *out = job->work->buffer[2];
    (void)thread;

    for (uint64_t i = from * LANES; i < to * LANES; i += LANES) {
        v8 x, y;
        load_bf16(&x, a + i);
        load_bf16(&y, b + i);
        x += y;
        store_bf16(out + i, &x);
    }
}
KERNEL(add)

BODY void triad(const struct job *job, unsigned thread, uint64_t from, uint64_t to) {
    const float *a = job->work->buffer[0], *b = job->work->buffer[1];
    float *out = job->work->buffer[2];
    (void)thread;

    for (uint64_t i = from * LANES; i < to * LANES; i += LANES) {
        v8 x, y;
        load_floats(&x, a + i);
        load_floats(&y, b + i);
        x += ALL(3.0F) * y;
        store_floats(out + i, &x);
    }
}
KERNEL(triad)

BODY void read_all(const struct job *job, unsigned thread, uint64_t from, uint64_t to) {
    const float *in = job->work->buffer[0];
    v8 a = {}, b = {}, v;

    for (uint64_t i = from * LANES; i < to * LANES; i += 2 * LANES) {
        load_floats(&v, in + i);
        a += v;
        if (i + LANES < to * LANES) {
            load_floats(&v, in + i + LANES);
            b += v;
        }
    }
    a += b;
    ((float *)job->work->buffer[1])[thread % 1024] = sum_of(&a);
}
KERNEL(read_all)

BODY void quantise(const struct job *job, unsigned thread, uint64_t from, uint64_t to) {
    const struct vp_dev_work *w = job->work;
    const uint16_t *in = w->buffer[0];
    uint8_t *out = w->buffer[1];
    float inverse = 1 / w->scale[0];
    (void)thread;

    for (uint64_t i = from * LANES; i < to * LANES; i += LANES) {
        v8 v;
        load_bf16(&v, in + i);
        v *= ALL(inverse);
        if (w->type == VP_TYPE_FP8)
            store_fp8(out + i, &v);
        else
            store_int8(out + i, &v);
    }
}
KERNEL(quantise)

BODY void dequantise(const struct job *job, unsigned thread, uint64_t from, uint64_t to) {
    const struct vp_dev_work *w = job->work;
    const uint8_t *in = w->buffer[0];
    uint16_t *out = w->buffer[1];
    (void)thread;

    for (uint64_t i = from * LANES; i < to * LANES; i += LANES) {
        v8 v;
        load_typed(&v, w->type, in, i);
        v *= ALL(w->scale[0]);
        store_bf16(out + i, &v);
    }
}
KERNEL(dequantise)
