/* Attention of the cpu back end: plain, with the cache of one head as floats in scratch. */
#include <math.h>

#include "probe/cpu_vector.h"

/* Four sums at once do not wait for each other. */
enum { FOUR = 4 * LANES };

BODY float dot(const float *a, const float *b, uint64_t n) {
    v8 s0 = {}, s1 = {}, s2 = {}, s3 = {}, x, y;
    uint64_t i = 0;
    for (; i + FOUR <= n; i += FOUR) {
        load_floats(&x, a + i);
        load_floats(&y, b + i);
        s0 += x * y;
        load_floats(&x, a + i + LANES);
        load_floats(&y, b + i + LANES);
        s1 += x * y;
        load_floats(&x, a + i + 2 * LANES);
        load_floats(&y, b + i + 2 * LANES);
        s2 += x * y;
        load_floats(&x, a + i + 3 * LANES);
        load_floats(&y, b + i + 3 * LANES);
        s3 += x * y;
    }
    for (; i < n; i += LANES) {
        load_floats(&x, a + i);
        load_floats(&y, b + i);
        s0 += x * y;
    }
    s0 = (s0 + s1) + (s2 + s3);
    return sum_of(&s0);
}

/* out = sum over t of weights[t] values[t], of 32 elements of a head. */
BODY void weigh_four(float *out, const float *weights, const float *values, uint64_t d,
                     uint64_t seen) {
    v8 s0 = {}, s1 = {}, s2 = {}, s3 = {}, v;
    for (uint64_t t = 0; t < seen; t++, values += d) {
        load_floats(&v, values);
        s0 += ALL(weights[t]) * v;
        load_floats(&v, values + LANES);
        s1 += ALL(weights[t]) * v;
        load_floats(&v, values + 2 * LANES);
        s2 += ALL(weights[t]) * v;
        load_floats(&v, values + 3 * LANES);
        s3 += ALL(weights[t]) * v;
    }
    store_floats(out, &s0);
    store_floats(out + LANES, &s1);
    store_floats(out + 2 * LANES, &s2);
    store_floats(out + 3 * LANES, &s3);
}

BODY void weigh_one(float *out, const float *weights, const float *values, uint64_t d,
                    uint64_t seen) {
    v8 sum = {}, v;
    for (uint64_t t = 0; t < seen; t++, values += d) {
        load_floats(&v, values);
        sum += ALL(weights[t]) * v;
    }
    store_floats(out, &sum);
}

/* Scores become weights that sum to 1; the space behind them, to whole vectors, becomes 0. */
BODY void softmax(float *scores, uint64_t n) {
    float top = scores[0];
    v8 sum = {}, v;

    for (uint64_t i = 1; i < n; i++)
        top = scores[i] > top ? scores[i] : top;
    for (uint64_t i = n; i < padded(n); i++)
        scores[i] = -1e30F;
    for (uint64_t i = 0; i < n; i += LANES) {
        load_floats(&v, scores + i);
        v -= ALL(top);
        exponential(&v);
        store_floats(scores + i, &v);
        sum += v;
    }
    float scale = 1 / sum_of(&sum);
    for (uint64_t i = 0; i < n; i++)
        scores[i] *= scale;
}

/* Item: one sequence and KV head; its query heads share what is read of the cache. One new token
 * over n (DECODE), or n of them, each over those before it (PREFILL). */
BODY void attention(const struct job *job, unsigned thread, uint64_t from, uint64_t to) {
    const struct vp_dev_work *w = job->work;
    uint64_t d = w->head_dim, group = w->heads / w->kv_heads, n = w->n;
    bool decode = w->kernel == VP_KERNEL_DECODE;
    uint64_t queries = decode ? 1 : n, size = vp_dev_type_bytes(w->type);
    float *keys = job->cpu->own[thread], *values = keys + n * d, *scores = values + n * d;
    float shrink = 1 / sqrtf((float)d), query[VP_CPU_HEAD_MOST], out[VP_CPU_HEAD_MOST];

    for (uint64_t item = from; item < to; item++) {
        uint64_t sequence = item / w->kv_heads, head = item % w->kv_heads;
        v8 v;
        for (uint64_t t = 0; t < n; t++) {
            uint64_t at = ((sequence * n + t) * w->kv_heads + head) * d;
            for (uint64_t i = 0; i < d; i += LANES) {
                load_typed(&v, w->type, (const uint8_t *)w->buffer[1] + at * size, i);
                store_floats(keys + t * d + i, &v);
                load_typed(&v, w->type, (const uint8_t *)w->buffer[2] + at * size, i);
                store_floats(values + t * d + i, &v);
            }
        }
        for (uint64_t q = 0; q < queries * group; q++) {
            uint64_t row = q / group, seen = decode ? n : row + 1;
            uint64_t at = ((sequence * queries + row) * w->heads + head * group + q % group) * d;
            for (uint64_t i = 0; i < d; i += LANES) {
                load_bf16(&v, (const uint16_t *)w->buffer[0] + at + i);
                v *= ALL(shrink);
                store_floats(query + i, &v);
            }
            for (uint64_t t = 0; t < seen; t++)
                scores[t] = dot(query, keys + t * d, d);
            softmax(scores, seen);
            uint64_t i = 0;
            for (; i + FOUR <= d; i += FOUR)
                weigh_four(out + i, scores, values + i, d, seen);
            for (; i < d; i += LANES)
                weigh_one(out + i, scores, values + i, d, seen);
            for (i = 0; i < d; i += LANES) {
                load_floats(&v, out + i);
                store_bf16((uint16_t *)w->buffer[3] + at + i, &v);
            }
        }
    }
}
KERNEL(attention)
