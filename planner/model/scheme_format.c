#include "planner/model/scheme_format.h"

#include <stdio.h>

#include "planner/base/text.h"

/* group: the usual one, 0: the format has none to choose. */
static const struct {
    const char *name;
    struct vp_scheme scheme;
} FORMATS[] = {
    {"fp32", {.data = VP_DTYPE_FP32}},
    {"bf16", {.data = VP_DTYPE_BF16}},
    {"fp16", {.data = VP_DTYPE_FP16}},
    {"fp8", {.data = VP_DTYPE_FP8, .scale = VP_SCALE_TENSOR, .scale_dtype = VP_DTYPE_FP32}},
    {"int8", {.data = VP_DTYPE_INT8, .scale = VP_SCALE_CHANNEL, .scale_dtype = VP_DTYPE_FP32}},
    {"int4",
     {.data = VP_DTYPE_INT4, .scale = VP_SCALE_GROUP, .scale_dtype = VP_DTYPE_BF16, .group = 128}},
    {"nf4",
     {.data = VP_DTYPE_NF4, .scale = VP_SCALE_GROUP, .scale_dtype = VP_DTYPE_FP32, .group = 64}},
    {"mxfp4", {.data = VP_DTYPE_MXFP4}},
    {"nvfp4", {.data = VP_DTYPE_NVFP4, .scale = VP_SCALE_TENSOR, .scale_dtype = VP_DTYPE_FP32}},
};

/* Sets the group where the format allows one: int8 and int4 any, the others only their own. */
static bool set_group(struct vp_scheme *scheme, uint64_t group) {
    uint64_t own = scheme->data == VP_DTYPE_MXFP4   ? 32
                   : scheme->data == VP_DTYPE_NVFP4 ? 16
                   : scheme->data == VP_DTYPE_NF4   ? 64
                                                    : 0;
    if (group == 0 || group == own)
        return true;
    if ((scheme->data != VP_DTYPE_INT8 && scheme->data != VP_DTYPE_INT4) || group > UINT32_MAX)
        return false;
    scheme->scale = VP_SCALE_GROUP;
    scheme->scale_dtype = VP_DTYPE_BF16;
    scheme->group = (uint32_t)group;
    return true;
}

/* ggml's formats have their scales inside of their blocks. */
static bool ggml_format(struct vp_scheme *out, const char *name) {
    enum vp_dtype dtype = vp_dtype_parse(name);
    if (!vp_dtype_is_ggml(dtype))
        return false;
    *out = (struct vp_scheme){.data = dtype};
    vp_scheme_describe(out);
    return true;
}

bool vp_scheme_format(struct vp_scheme *out, const char *name, uint64_t group, bool double_quant) {
    if (group == 0 && !double_quant && ggml_format(out, name))
        return true;
    for (size_t i = 0; name && i < sizeof FORMATS / sizeof *FORMATS; i++) {
        if (!vp_name_eq(name, FORMATS[i].name))
            continue;
        struct vp_scheme scheme = FORMATS[i].scheme;
        if (!set_group(&scheme, group))
            return false;
        if (double_quant) {
            if (scheme.data != VP_DTYPE_NF4)
                return false;
            scheme.scale_dtype = VP_DTYPE_DOUBLE8;
        }
        vp_scheme_describe(&scheme);
        *out = scheme;
        return true;
    }
    return false;
}

void vp_scheme_describe(struct vp_scheme *scheme) {
    const char *data = vp_dtype_name(scheme->data);
    const char *order = scheme->extra_per_input == 4   ? ", act order"
                        : scheme->extra_per_input == 2 ? ", smoothed"
                                                       : "";
    char *name = scheme->name;
    size_t n = sizeof scheme->name;
    if (scheme->scale == VP_SCALE_CHANNEL)
        snprintf(name, n, "%s per channel%s", data, order);
    else if (scheme->scale == VP_SCALE_BLOCK)
        snprintf(name, n, "%s block %ux%u", data, scheme->block_out, scheme->block_in);
    else if (scheme->scale == VP_SCALE_GROUP && scheme->scale_dtype == VP_DTYPE_DOUBLE8)
        snprintf(name, n, "%s double quant", data);
    else if (scheme->scale == VP_SCALE_GROUP && scheme->scale_dtype == VP_DTYPE_E8M0)
        snprintf(name, n, "mx%s", data);
    else if (scheme->scale == VP_SCALE_GROUP && scheme->data != VP_DTYPE_NF4)
        snprintf(name, n, "%s group %u%s", data, scheme->group, order);
    else
        snprintf(name, n, "%s%s", data, order);
}
