#include "planner/model/scheme.h"

#include <assert.h>

/* Scales of one matrix. */
static struct vp_sum scale_count(const struct vp_scheme *scheme, struct vp_sum out,
                                 struct vp_sum in) {
    switch (scheme->scale) {
    case VP_SCALE_NONE:
        break;
    case VP_SCALE_TENSOR:
        return vp_sum(1);
    case VP_SCALE_CHANNEL:
        return out;
    case VP_SCALE_GROUP:
        assert(scheme->group > 0);
        in.v = vp_ceil_div(in.v, scheme->group);
        break;
    case VP_SCALE_BLOCK:
        assert(scheme->block_out > 0 && scheme->block_in > 0);
        out.v = vp_ceil_div(out.v, scheme->block_out);
        in.v = vp_ceil_div(in.v, scheme->block_in);
        break;
    }
    if (scheme->scale == VP_SCALE_NONE)
        return vp_sum(0);
    out.overflow |= in.overflow;
    return vp_sum_mul(out, in.v);
}

/* Packed formats never cross a row: every output begins with a new block of inputs. */
static struct vp_sum data_bytes(const struct vp_scheme *scheme, struct vp_sum out,
                                struct vp_sum in) {
    struct vp_sum row = vp_dtype_bytes(scheme->data, in);
    row.overflow |= out.overflow;
    return vp_sum_mul(row, out.v);
}

struct vp_sum vp_scheme_bytes(const struct vp_scheme *scheme, uint64_t matrices, uint64_t out,
                              uint64_t in) {
    if (matrices == 0 || out == 0 || in == 0)
        return vp_sum(0);
    struct vp_sum rows = vp_sum(out), columns = vp_sum(in);
    if (scheme->pad_out)
        rows = vp_sum_round_up(rows, scheme->pad_out);
    if (scheme->pad_in)
        columns = vp_sum_round_up(columns, scheme->pad_in);

    struct vp_sum bytes = data_bytes(scheme, rows, columns);
    struct vp_sum scales = scale_count(scheme, rows, columns);
    if (scheme->scale != VP_SCALE_NONE)
        bytes = vp_sum_plus(bytes, vp_dtype_bytes(scheme->scale_dtype, scales));
    if (scheme->zero_dtype != VP_DTYPE_UNSET)
        bytes = vp_sum_plus(bytes, vp_dtype_bytes(scheme->zero_dtype, scales));
    bytes = vp_sum_plus(bytes, vp_sum_mul(columns, scheme->extra_per_input));
    if (scheme->input_scale)
        bytes = vp_sum_plus(bytes, vp_dtype_bytes(VP_DTYPE_FP32, vp_sum(1)));
    return vp_sum_mul(bytes, matrices);
}
