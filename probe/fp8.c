#include "probe/fp8.h"

#include <math.h>
#include <string.h>

enum { MANTISSA = 3, OCP_BIAS = 7, FNUZ_BIAS = 8, OCP_NAN = 0x7f, FNUZ_NAN = 0x80 };

float vp_fp8_largest(bool fnuz) { return fnuz ? 240.0F : 448.0F; }

float vp_fp8_value(uint8_t code, bool fnuz) {
    int exponent = code >> MANTISSA & 0xf, mantissa = code & 7;
    int bias = fnuz ? FNUZ_BIAS : OCP_BIAS;

    if (fnuz ? code == FNUZ_NAN : (code & OCP_NAN) == OCP_NAN)
        return NAN;
    /* subnormals have the exponent of the smallest normal number and no hidden one */
    float value = exponent ? ldexpf((float)(8 + mantissa), exponent - bias - MANTISSA)
                           : ldexpf((float)mantissa, 1 - bias - MANTISSA);
    return code & 0x80 ? -value : value;
}

uint8_t vp_fp8_code(float value, bool fnuz) {
    int bias = fnuz ? FNUZ_BIAS : OCP_BIAS, exponent;
    uint8_t sign = signbit(value) ? 0x80 : 0;

    if (isnan(value))
        return fnuz ? FNUZ_NAN : OCP_NAN;
    float size = fminf(fabsf(value), vp_fp8_largest(fnuz));
    frexpf(size, &exponent); /* size = f x 2^exponent, f in [0.5, 1) */
    exponent = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
    /* eighths of 2^exponent; 16 carries into the next exponent, which the sum below does */
    int steps = (int)nearbyintf(ldexpf(size, MANTISSA - exponent));
    int code = steps < 8 ? steps : (exponent + bias) * 8 + (steps - 8);
    if (fnuz && code == 0)
        return 0; /* there is no -0 */
    return (uint8_t)(sign | code);
}

int8_t vp_int8_code(float value) {
    if (isnan(value))
        return 0;
    return (int8_t)nearbyintf(fmaxf(-127.0F, fminf(127.0F, value)));
}

uint16_t vp_bf16_code(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float vp_bf16_value(uint16_t code) {
    uint32_t bits = (uint32_t)code << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
