/* Matrix products of the cpu back end. */
#include <math.h>
#include <string.h>

#include "probe/cpu_vector.h"

/* Columns of a panel, and the part of k that is done at once: 96 KiB of weights as floats. */
enum { PANEL = VP_CPU_PANEL, DEPTH = VP_CPU_DEPTH, ROWS = 64, TILE_M = 4, TILE_N = 3 };

/* Rows of the activation as floats, padded with zeros to whole vectors. */
BODY void widen(const struct job *job, unsigned thread, uint64_t from, uint64_t to) {
    const struct vp_dev_work *w = job->work;
    uint64_t size = vp_dev_type_bytes(w->type), wide = padded(w->k), whole = w->k / LANES * LANES;
    (void)thread;

    for (uint64_t r = from; r < to; r++) {
        const uint8_t *row = (const uint8_t *)w->buffer[0] + r * w->k * size;
        float *out = job->cpu->shared + r * wide;
        v8 v;
        for (uint64_t i = 0; i < whole; i += LANES) {
            load_typed(&v, w->type, row, i);
            store_floats(out + i, &v);
        }
        if (whole < w->k) {
            float tail[LANES] = {0};
            uint8_t raw[LANES * sizeof(float)] = {0};
            memcpy(raw, row + whole * size, (w->k - whole) * size);
            load_typed(&v, w->type, raw, 0);
            store_floats(tail, &v);
            memcpy(out + whole, tail, sizeof tail);
        }
    }
}
KERNEL(widen)

/* `count` weight rows from `row`, k from `k0` on, as floats: [PANEL][depth]. Missing ones are 0. */
BODY void pack(float *panel, const struct vp_dev_work *w, uint64_t row, uint64_t count, uint64_t k0,
               uint64_t depth) {
    uint64_t size = vp_dev_type_bytes(w->type);
    uint64_t here = w->k - k0 < depth ? w->k - k0 : depth, whole = here / LANES * LANES;
    enum { AHEAD = 6 }; /* rows: parts of rows are too short for the processor to see a stream */

    for (uint64_t r = 0; r < PANEL; r++) {
        float *out = panel + r * depth;
        if (r >= count) {
            if (r < (count + TILE_N - 1) / TILE_N * TILE_N)
                memset(out, 0, depth * sizeof *out);
            continue;
        }
        const uint8_t *from = (const uint8_t *)w->buffer[1] + ((row + r) * w->k + k0) * size;
        v8 v;
        for (uint64_t i = 0; i < whole; i += LANES) {
            __builtin_prefetch(from + AHEAD * w->k * size + i * size);
            load_typed(&v, w->type, from, i);
            store_floats(out + i, &v);
        }
        if (whole < here) {
            uint8_t raw[LANES * sizeof(float)] = {0};
            memcpy(raw, from + whole * size, (here - whole) * size);
            load_typed(&v, w->type, raw, 0);
            store_floats(out + whole, &v);
        }
    }
}

/* c[i][j] += sum over depth of a[i] b[j], four rows by three columns. */
BODY void tile_4x3(float *c, const float *a, uint64_t a_stride, const float *b, uint64_t depth) {
    v8 c00 = {}, c01 = {}, c02 = {}, c10 = {}, c11 = {}, c12 = {};
    v8 c20 = {}, c21 = {}, c22 = {}, c30 = {}, c31 = {}, c32 = {};

    for (uint64_t k = 0; k < depth; k += LANES) {
        v8 b0, b1, b2, x;
        load_floats(&b0, b + k);
        load_floats(&b1, b + depth + k);
        load_floats(&b2, b + 2 * depth + k);
        load_floats(&x, a + k);
        c00 += x * b0, c01 += x * b1, c02 += x * b2;
        load_floats(&x, a + a_stride + k);
        c10 += x * b0, c11 += x * b1, c12 += x * b2;
        load_floats(&x, a + 2 * a_stride + k);
        c20 += x * b0, c21 += x * b1, c22 += x * b2;
        load_floats(&x, a + 3 * a_stride + k);
        c30 += x * b0, c31 += x * b1, c32 += x * b2;
    }
    c[0] += sum_of(&c00), c[1] += sum_of(&c01), c[2] += sum_of(&c02);
    c += PANEL;
    c[0] += sum_of(&c10), c[1] += sum_of(&c11), c[2] += sum_of(&c12);
    c += PANEL;
    c[0] += sum_of(&c20), c[1] += sum_of(&c21), c[2] += sum_of(&c22);
    c += PANEL;
    c[0] += sum_of(&c30), c[1] += sum_of(&c31), c[2] += sum_of(&c32);
}

BODY void tile_1x3(float *c, const float *a, const float *b, uint64_t depth) {
    v8 c0 = {}, c1 = {}, c2 = {}, x, y;

    for (uint64_t k = 0; k < depth; k += LANES) {
        load_floats(&x, a + k);
        load_floats(&y, b + k);
        c0 += x * y;
        load_floats(&y, b + depth + k);
        c1 += x * y;
        load_floats(&y, b + 2 * depth + k);
        c2 += x * y;
    }
    c[0] += sum_of(&c0), c[1] += sum_of(&c1), c[2] += sum_of(&c2);
}

/* One panel of columns against all rows; c: [m][PANEL]. */
BODY void panel_product(float *c, const struct job *job, float *panel, uint64_t columns,
                        uint64_t k0, uint64_t depth) {
    uint64_t m = job->work->m, stride = padded(job->work->k);
    const float *a = job->cpu->shared + k0;

    for (uint64_t r0 = 0; r0 < m; r0 += ROWS)
        for (uint64_t j = 0; j < columns; j += TILE_N) {
            uint64_t end = r0 + ROWS < m ? r0 + ROWS : m, r = r0;
            for (; r + TILE_M <= end; r += TILE_M)
                tile_4x3(c + r * PANEL + j, a + r * stride, stride, panel + j * depth, depth);
            for (; r < end; r++)
                tile_1x3(c + r * PANEL + j, a + r * stride, panel + j * depth, depth);
        }
}

/* b2, and silu of it for RECOMPUTE. */
BODY void put_columns(const struct job *job, const float *c, uint64_t column, uint64_t columns,
                      float scale) {
    const struct vp_dev_work *w = job->work;
    bool floats = w->type == VP_TYPE_FP32, silu = w->kernel == VP_KERNEL_RECOMPUTE;
    void *out = w->buffer[silu ? 3 : 2];

    for (uint64_t r = 0; r < w->m; r++) {
        const float *from = c + r * PANEL;
        uint64_t at = r * w->n + column;
        for (uint64_t j = 0; j < columns; j += LANES) {
            float some[LANES];
            v8 v;
            load_floats(&v, from + j);
            v *= ALL(scale);
            if (silu)
                silu_of(&v);
            uint64_t left = columns - j;
            if (floats) {
                store_floats(some, &v);
                memcpy((float *)out + at + j, some, (left < LANES ? left : LANES) * sizeof *some);
            } else if (left >= LANES) {
                store_bf16((uint16_t *)out + at + j, &v);
            } else {
                uint16_t few[LANES];
                store_bf16(few, &v);
                memcpy((uint16_t *)out + at + j, few, left * sizeof *few);
            }
        }
    }
}

/* Items are panels of columns. */
BODY void product(const struct job *job, unsigned thread, uint64_t from, uint64_t to) {
    struct vp_dev_work w = *job->work;
    float *panel = job->cpu->own[thread], *c = panel + PANEL * DEPTH;
    float scale = w.type == VP_TYPE_FP8 || w.type == VP_TYPE_INT8 ? w.scale[0] * w.scale[1] : 1;

    if (w.kernel == VP_KERNEL_RECOMPUTE)
        w.buffer[1] = w.buffer[2];
    for (uint64_t p = from; p < to; p++) {
        uint64_t column = p * PANEL;
        uint64_t columns = w.n - column < PANEL ? w.n - column : PANEL;
        memset(c, 0, w.m * PANEL * sizeof *c);
        for (uint64_t k0 = 0; k0 < w.k; k0 += DEPTH) {
            uint64_t left = padded(w.k - k0), depth = left < DEPTH ? left : DEPTH;
            pack(panel, &w, column, columns, k0, depth);
            panel_product(c, job, panel, columns, k0, depth);
        }
        put_columns(job, c, column, columns, scale);
    }
}
KERNEL(product)

/* The normed rows that RECOMPUTE multiplies, straight into the widened activation. */
BODY void norm_widen(const struct job *job, unsigned thread, uint64_t from, uint64_t to) {
    const struct vp_dev_work *w = job->work;
    const uint16_t *gain = w->buffer[1];
    (void)thread;

    for (uint64_t r = from; r < to; r++) {
        const uint16_t *row = (const uint16_t *)w->buffer[0] + r * w->k;
        float *out = job->cpu->shared + r * w->k;
        float scale = 1 / sqrtf(mean_square(row, w->k, 0) + VP_CPU_EPSILON);
        for (uint64_t i = 0; i < w->k; i += LANES) {
            v8 v, g;
            load_bf16(&v, row + i);
            load_bf16(&g, gain + i);
            v = v * ALL(scale) * g;
            store_floats(out + i, &v);
        }
    }
}
KERNEL(norm_widen)
