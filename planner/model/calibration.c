#include "planner/model/calibration.h"

#include <stddef.h>

const struct vp_constant_info vp_constants[VP_FORM_CONSTANT_COUNT] = {
#define X(form, name, text, least, most, what) {VP_FORM_##form, text, least, most, what},
#include "planner/model/calibration.def"
#undef X
};

const char *vp_form_name(enum vp_form form) {
    static const char *const NAMES[VP_FORMS] = {"gemm", "prefill_attention", "decode_attention"};
    return NAMES[form];
}

uint32_t vp_shape_sizes(enum vp_form form) { return form == VP_FORM_GEMM ? 3 : VP_SHAPE_SIZES; }

const char *vp_shape_size_name(enum vp_form form, uint32_t i) {
    static const char *const GEMM[] = {"m", "n", "k"};
    static const char *const ATTENTION[] = {"batch", "tokens", "heads", "kv_heads", "head_dim"};
    return form == VP_FORM_GEMM ? GEMM[i] : ATTENTION[i];
}

uint32_t vp_form_range(enum vp_form form, const struct vp_shape *shape) {
    if (form != VP_FORM_GEMM)
        return shape->size[1] < 512 ? 0 : 1;
    return shape->size[0] <= 16 ? 0 : shape->size[0] < 512 ? 1 : 2;
}

const char *vp_form_range_name(enum vp_form form, uint32_t range) {
    static const char *const GEMM[VP_FORM_RANGES] = {"m<=16", "16<m<512", "m>=512"};
    static const char *const ATTENTION[VP_FORM_RANGES] = {"tokens<512", "tokens>=512", NULL};
    return form == VP_FORM_GEMM ? GEMM[range] : ATTENTION[range];
}

const char *vp_rate_name(enum vp_rate rate) {
    static const char *const NAMES[] = {"bf16", "fp16", "fp32", "fp8", "fp8_block", "int8", "fp4"};
    return NAMES[rate];
}

double vp_rate_bytes(enum vp_rate rate) {
    static const double BYTES[VP_RATES] = {2, 2, 4, 1, 1, 1, 0.5};
    return BYTES[rate];
}

const char *vp_kv_name(enum vp_kv_width width) { return width == VP_KV_8 ? "kv8" : "kv16"; }
