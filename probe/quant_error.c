#include "probe/quant_error.h"

#include <math.h>
#include <stdio.h>

#include "probe/fp8.h"

enum format { OCP, FNUZ, INT8 };
enum { CELLS = VP_QUANT_CHANNELS * VP_QUANT_VALUES };

static const char *const FORMATS[] = {"fp8_e4m3", "fp8_e4m3fnuz", "int8"};

static void fill(float *out, bool weights) {
    static const float WEIGHT = 0.02F, OUTLIER = 20;
    enum { OUTLIER_EVERY = 128, STEPS = 1024 };
    struct vp_noise random = {.state = weights ? 1 : 2};

    for (unsigned c = 0; c < VP_QUANT_CHANNELS; c++) {
        /* 2^-1.5 to 2^1.5 */
        float spread = exp2f(3.0F * (float)(vp_noise_bits(&random) % STEPS) / STEPS - 1.5F);
        float scale = weights ? WEIGHT * spread : c % OUTLIER_EVERY == 5 ? OUTLIER : 1.0F;
        for (unsigned i = 0; i < VP_QUANT_VALUES; i++)
            out[c * VP_QUANT_VALUES + i] = scale * vp_noise_normal(&random);
    }
}

static float there_and_back(float value, float scale, enum format format) {
    if (format == INT8)
        return (float)vp_int8_code(value / scale) * scale;
    return vp_fp8_value(vp_fp8_code(value / scale, format == FNUZ), format == FNUZ) * scale;
}

static double largest_of(const float *values, unsigned count) {
    double largest = 0;
    for (unsigned i = 0; i < count; i++)
        largest = fmax(largest, fabs((double)values[i]));
    return largest;
}

static void measure(struct vp_quant_errors *out, const float *values, enum format format,
                    bool per_channel) {
    static const double RULE = 0.01;
    double squares = 0, error_squares = 0, all = largest_of(values, CELLS);
    double top = format == INT8 ? 127 : (double)vp_fp8_largest(format == FNUZ);
    unsigned below = 0;

    for (unsigned c = 0; c < VP_QUANT_CHANNELS; c++) {
        const float *row = values + (size_t)c * VP_QUANT_VALUES;
        float scale = (float)((per_channel ? largest_of(row, VP_QUANT_VALUES) : all) / top);
        for (unsigned i = 0; i < VP_QUANT_VALUES; i++) {
            double v = (double)row[i];
            double error = fabs(v - (double)there_and_back(row[i], scale, format));
            squares += v * v;
            error_squares += error * error;
            out->largest = fmax(out->largest, error);
            below += error < RULE;
        }
    }
    out->rms_relative = sqrt(error_squares / squares);
    out->largest_relative = out->largest / all;
    out->below = (double)below / CELLS;
}

void vp_quant_errors(struct vp_quant_errors *out, struct vp_arena *arena, uint32_t i) {
    bool activations = i / 6 % 2, per_channel = i % 2;
    enum format format = (enum format)(i / 2 % 3);
    struct vp_arena_mark mark = vp_arena_mark(arena);
    float *values = VP_NEW_ARRAY(arena, CELLS, float);

    *out = (struct vp_quant_errors){0};
    snprintf(out->data, sizeof out->data, "%s", activations ? "activations" : "weights");
    snprintf(out->format, sizeof out->format, "%s", FORMATS[format]);
    snprintf(out->scale, sizeof out->scale, "%s", per_channel ? "per_channel" : "per_tensor");
    fill(values, !activations);
    measure(out, values, format, per_channel);
    vp_arena_rewind(arena, mark);
}
