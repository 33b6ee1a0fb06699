/* Narrow number formats in plain C, for every back end and every test: E4M3 in its two kinds, INT8,
 * bfloat16. Rounding is to the nearest, ties to even.
 *
 * OCP E4M3 (gfx95x, gfx12, NVIDIA): bias 7, largest 448, S.1111.111 is NaN, has -0, no infinity.
 * E4M3 FNUZ (gfx94x): bias 8, largest 240, 0x80 is the only NaN, no -0: the same bits are half the
 * value. Encoders saturate, as quantising kernels do; NaN stays NaN. */
#ifndef VP_PROBE_FP8_H
#define VP_PROBE_FP8_H

#include <stdbool.h>
#include <stdint.h>

float vp_fp8_value(uint8_t code, bool fnuz);
uint8_t vp_fp8_code(float value, bool fnuz);
float vp_fp8_largest(bool fnuz);

/* Symmetric: -127 to 127. */
int8_t vp_int8_code(float value);

uint16_t vp_bf16_code(float value);
float vp_bf16_value(uint16_t code);

#endif
