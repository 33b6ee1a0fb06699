#include "planner/latency/forms.h"

#include <math.h>

#include "planner/base/text.h"

bool vp_form_is_fine(const struct vp_calibration *calibration) {
    return vp_text_eq(calibration->gpu, "processor");
}

/* Times that overlap: their maximum for a large exponent, their sum for 1. */
static double joined(double a, double b, double norm) {
    double most = fmax(a, b), least = fmin(a, b);
    if (!(least > most * 1e-6))
        return most;
    return most * pow(1 + pow(least / most, norm), 1 / norm);
}

/* Share of operands that is read from device memory when `bytes` are read again and again: next to
 * nothing well below the size of the cache, all of it well above, evenly at the same size. */
static double miss_share(const struct vp_form_case *c, double bytes, double copies) {
    if (!(c->cache_bytes > 0) || !(copies > 0))
        return 1;
    double ratio = c->cache_bytes / (copies * bytes);
    return 1 / (1 + ratio * ratio * ratio * ratio);
}

/* Microseconds of `bytes` operands that are read over and over, at a rate that too few blocks for
 * the device do not reach; rates in GB/s. */
static double read_us(const struct vp_form_case *c, double bytes, double other_bytes, double blocks,
                      double memory, double cache, double occupancy) {
    double miss = miss_share(c, bytes, c->copies), other_miss = miss_share(c, other_bytes, 1);
    double far = miss * bytes + other_miss * other_bytes;
    double us = (far / memory + (bytes + other_bytes - far) / cache) / 1e3;
    double idle = c->units / (blocks * occupancy), idle2 = idle * idle;
    return us * sqrt(sqrt(1 + idle2 * idle2)); /* joined(1, idle, 4), quicker */
}

/* Rounds of all units that `blocks` take, in units' blocks. */
static double waves(const struct vp_form_case *c, double blocks, double wave) {
    double even = blocks / c->units;
    return (wave * ceil(even) + (1 - wave) * even) * c->units;
}

static double tile_rows(double m, double most) {
    double rows = 16; /* the least that matrix instructions take */
    while (rows < m && rows < most)
        rows *= 2;
    return rows;
}

/* Passes over an activation that is made 8 bit: 16 bit are read, up to 32 bit kept in between. */
static double quantise_us(const struct vp_form_case *c, double elements, const double *p) {
    enum { PASS_BYTES = 6 };
    double far = miss_share(c, PASS_BYTES * elements, 1);
    return elements * (p[VP_C_GEMM_QUANTISE] + far * p[VP_C_GEMM_QUANTISE_FAR]) / 1e6;
}

static double gemm_us(const struct vp_form_case *c, const double *p) {
    double m = c->shape.size[0], n = c->shape.size[1], k = c->shape.size[2];
    double together = fmax(c->together, 1);
    double rows = c->fine ? 1 : tile_rows(m, p[VP_C_GEMM_TILE_M]);
    double columns = c->fine ? 1 : p[VP_C_GEMM_TILE_N];
    double tiles = together * ceil(m / rows) * ceil(n / columns);
    double compute = waves(c, tiles, p[VP_C_GEMM_WAVE]) * 2 * rows * columns *
                     (k + p[VP_C_GEMM_FILL]) / (p[VP_C_GEMM_TFLOPS] * 1e6);
    double memory = read_us(c, together * n * k * c->weight_bytes, together * (m * k + m * n) * 2,
                            tiles, p[VP_C_GEMM_MEMORY], p[VP_C_GEMM_CACHE], p[VP_C_GEMM_OCCUPANCY]);
    double serial = k * p[VP_C_GEMM_SERIAL] / 1e3;
    double norm = p[VP_C_GEMM_NORM];
    return p[VP_C_GEMM_LAUNCH] + quantise_us(c, together * m * k, p) +
           joined(joined(compute, memory, norm), serial, norm);
}

enum { BLOCK = 128 }; /* queries, and keys, of a tile */

/* Tiles of all rows of blocks: each sees what is before it, as far as it looks back. */
static double tiles_seen(const struct vp_form_case *c, double rows) {
    double past = c->fine ? c->past / BLOCK : ceil(c->past / BLOCK);
    double most = c->window > 0 ? ceil(c->window / BLOCK) + 1 : past + rows;
    if (c->bidirectional)
        return rows * fmin(past + rows, most);
    double short_rows = fmin(fmax(most - past, 0), rows); /* those that see all before them */
    double own = c->fine ? 1.0 / BLOCK : 1;               /* of a row of tiles, or of tokens */
    return short_rows * past + short_rows * (short_rows + own) / 2 + (rows - short_rows) * most;
}

/* Products and exponentials of the tiles; what begins and ends a block of queries; operands; the
 * longest row of tiles, which nobody shares. */
static double prefill_us(const struct vp_form_case *c, const double *p) {
    double batch = c->shape.size[0], fresh = c->shape.size[1], heads = c->shape.size[2];
    double kv_heads = c->shape.size[3], head_dim = c->shape.size[4];
    double rows = c->fine ? fresh / BLOCK : ceil(fresh / BLOCK);
    double blocks = batch * heads * rows;
    double tiles = tiles_seen(c, rows);
    double tile_us = 4.0 * BLOCK * BLOCK * head_dim / (p[VP_C_PREFILL_TFLOPS] * 1e6) +
                     p[VP_C_PREFILL_TILE] / c->units;
    double share = waves(c, blocks, p[VP_C_PREFILL_WAVE]) / blocks;
    double compute =
        share * (batch * heads * tiles * tile_us + blocks * p[VP_C_PREFILL_BLOCK] / c->units);
    double memory = batch * (fresh * heads + (fresh + c->past) * kv_heads * c->weight_bytes / 2) *
                    4 * head_dim / (p[VP_C_PREFILL_MEMORY] * 1e3);
    double serial = tiles / rows * p[VP_C_PREFILL_SERIAL];
    double norm = p[VP_C_PREFILL_NORM];
    return p[VP_C_PREFILL_LAUNCH] + joined(joined(compute, memory, norm), serial, norm);
}

static double decode_us(const struct vp_form_case *c, const double *p) {
    double batch = c->shape.size[0], past = c->shape.size[1], heads = c->shape.size[2];
    double kv_heads = c->shape.size[3], head_dim = c->shape.size[4];
    double blocks = batch * kv_heads * ceil(past / BLOCK);
    double bytes = 2 * batch * kv_heads * head_dim * past * c->weight_bytes;
    double memory = read_us(c, bytes, 4 * batch * heads * head_dim, blocks, p[VP_C_DECODE_MEMORY],
                            p[VP_C_DECODE_CACHE], p[VP_C_DECODE_OCCUPANCY]);
    double each = c->rows > 0 ? c->rows : heads / kv_heads;
    double rows = c->fine ? each : ceil(each / 16) * 16; /* of a matrix instruction */
    double compute = 4 * batch * kv_heads * rows * past * head_dim / (p[VP_C_DECODE_TFLOPS] * 1e6);
    double block = batch * kv_heads * p[VP_C_DECODE_BLOCK] / c->units;
    double serial = past * p[VP_C_DECODE_SERIAL] / 1e3;
    double norm = p[VP_C_DECODE_NORM];
    return p[VP_C_DECODE_LAUNCH] + block + joined(joined(memory, compute, norm), serial, norm);
}

double vp_form_us(const struct vp_form_case *c, const double *constant) {
    switch (c->form) {
    case VP_FORM_GEMM:
        return gemm_us(c, constant);
    case VP_FORM_PREFILL:
        return prefill_us(c, constant);
    default:
        return decode_us(c, constant);
    }
}
