#include "planner/model/dtype.h"

#include <assert.h>
#include <stddef.h>

#include "planner/base/text.h"

static const struct {
    const char *name;
    uint32_t elements, bytes;
} TABLE[VP_DTYPE_COUNT] = {
    [VP_DTYPE_UNSET] = {"unset", 1, 0},
#define X(name, text, elements, bytes) [VP_DTYPE_##name] = {text, elements, bytes},
#include "planner/model/dtype.def"
#undef X
};

/* Other names of the same formats: torch, safetensors, vLLM, transformers. The variants of fp8
 * (e4m3, e5m2, fn, fnuz) differ in what a byte means, not in how many there are. Compared without
 * case, dashes and underscores. */
static const struct {
    const char *name;
    enum vp_dtype dtype;
} ALIASES[] = {
    {"float32", VP_DTYPE_FP32},
    {"float", VP_DTYPE_FP32},
    {"f32", VP_DTYPE_FP32},
    {"bfloat16", VP_DTYPE_BF16},
    {"float16", VP_DTYPE_FP16},
    {"half", VP_DTYPE_FP16},
    {"f16", VP_DTYPE_FP16},
    {"float8", VP_DTYPE_FP8},
    {"f8", VP_DTYPE_FP8},
    {"e4m3", VP_DTYPE_FP8},
    {"e5m2", VP_DTYPE_FP8},
    {"fp8_e4m3", VP_DTYPE_FP8},
    {"fp8_e4m3fn", VP_DTYPE_FP8},
    {"fp8_e4m3fnuz", VP_DTYPE_FP8},
    {"fp8_e5m2", VP_DTYPE_FP8},
    {"fp8_e5m2fnuz", VP_DTYPE_FP8},
    {"fp8_inc", VP_DTYPE_FP8},
    {"f8_e4m3", VP_DTYPE_FP8},
    {"f8_e4m3fn", VP_DTYPE_FP8},
    {"f8_e4m3fnuz", VP_DTYPE_FP8},
    {"f8_e5m2", VP_DTYPE_FP8},
    {"f8_e5m2fnuz", VP_DTYPE_FP8},
    {"float8_e4m3", VP_DTYPE_FP8},
    {"float8_e4m3fn", VP_DTYPE_FP8},
    {"float8_e4m3fnuz", VP_DTYPE_FP8},
    {"float8_e5m2", VP_DTYPE_FP8},
    {"float8_e5m2fnuz", VP_DTYPE_FP8},
    {"i8", VP_DTYPE_INT8},
    {"u8", VP_DTYPE_INT8},
    {"uint8", VP_DTYPE_INT8},
    {"i4", VP_DTYPE_INT4},
    {"u4", VP_DTYPE_INT4},
    {"uint4", VP_DTYPE_INT4},
    {"f4", VP_DTYPE_FP4},
    {"fp4_e2m1", VP_DTYPE_FP4},
    {"f4_e2m1", VP_DTYPE_FP4},
    {"float4_e2m1fn_x2", VP_DTYPE_FP4},
    {"f8_e8m0", VP_DTYPE_E8M0},
    {"float8_e8m0fnu", VP_DTYPE_E8M0},
    {"ue8m0", VP_DTYPE_E8M0},
    {"i16", VP_DTYPE_INT16},
    {"u16", VP_DTYPE_INT16},
    {"f64", VP_DTYPE_FP64},
    {"float64", VP_DTYPE_FP64},
    {"i32", VP_DTYPE_INT32},
    {"u32", VP_DTYPE_INT32},
    {"uint32", VP_DTYPE_INT32},
    {"i64", VP_DTYPE_INT64},
    {"u64", VP_DTYPE_INT64},
    {"uint64", VP_DTYPE_INT64},
};

const char *vp_dtype_name(enum vp_dtype dtype) { return TABLE[dtype].name; }

uint32_t vp_dtype_block(enum vp_dtype dtype) { return TABLE[dtype].elements; }

bool vp_dtype_is_ggml(enum vp_dtype dtype) {
    return dtype >= VP_DTYPE_Q4_0 && dtype <= VP_DTYPE_Q2_0;
}

bool vp_dtype_is_plain(enum vp_dtype dtype) {
    return dtype == VP_DTYPE_FP32 || dtype == VP_DTYPE_FP16 || dtype == VP_DTYPE_BF16;
}

enum vp_dtype vp_dtype_parse(const char *text) {
    static const char TORCH[] = "torch.";
    if (!text)
        return VP_DTYPE_UNSET;
    if (vp_text_starts(text, TORCH))
        text += sizeof TORCH - 1;
    for (int i = VP_DTYPE_UNSET + 1; i < VP_DTYPE_COUNT; i++)
        if (vp_name_eq(text, TABLE[i].name))
            return (enum vp_dtype)i;
    for (size_t i = 0; i < sizeof ALIASES / sizeof *ALIASES; i++)
        if (vp_name_eq(text, ALIASES[i].name))
            return ALIASES[i].dtype;
    return VP_DTYPE_UNSET;
}

struct vp_sum vp_dtype_bytes(enum vp_dtype dtype, struct vp_sum elements) {
    assert(dtype > VP_DTYPE_UNSET && dtype < VP_DTYPE_COUNT);
    struct vp_sum blocks = {vp_ceil_div(elements.v, TABLE[dtype].elements), elements.overflow};
    return vp_sum_mul(blocks, TABLE[dtype].bytes);
}
