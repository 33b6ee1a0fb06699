/* How a weight matrix is stored: element format, scales, zero points, kernel padding. One scheme
 * serves many tensors; blocks name schemes by their index in the model's list. */
#ifndef VP_MODEL_SCHEME_H
#define VP_MODEL_SCHEME_H

#include "planner/model/dtype.h"

enum vp_scale_shape {
    VP_SCALE_NONE,
    VP_SCALE_TENSOR,  /* one per matrix (each expert is a matrix) */
    VP_SCALE_CHANNEL, /* one per output */
    VP_SCALE_GROUP,   /* one per output and `group` inputs */
    VP_SCALE_BLOCK    /* one per block_out x block_in tile */
};

enum { VP_SCHEME_NAME = 48, VP_MAX_SCHEMES = 32 };

struct vp_scheme {
    char name[VP_SCHEME_NAME]; /* what a report calls it: "bf16", "fp8 block 128x128" */
    enum vp_dtype data;
    enum vp_scale_shape scale;
    enum vp_dtype scale_dtype;
    uint32_t group;
    uint32_t block_out, block_in;
    enum vp_dtype zero_dtype; /* UNSET: symmetric, no zero points; they have the scales' shape */
    uint32_t extra_per_input; /* bytes per input element beside the matrix (GPTQ act-order index) */
    uint32_t pad_out, pad_in; /* kernels pad the sizes to multiples; 0: not */
    bool input_scale;         /* one fp32 activation scale per matrix (static activations) */
};

/* A matrix of `out` x `in`, `matrices` of them. Bytes with scales and zero points. Units: bytes. */
struct vp_sum vp_scheme_bytes(const struct vp_scheme *scheme, uint64_t matrices, uint64_t out,
                              uint64_t in);

#endif
