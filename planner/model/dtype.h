/* Element formats as (elements, bytes) pairs, never as bits in a double. */
#ifndef VP_MODEL_DTYPE_H
#define VP_MODEL_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/base/sum.h"

enum vp_dtype {
    VP_DTYPE_UNSET,
#define X(name, text, elements, bytes) VP_DTYPE_##name,
#include "planner/model/dtype.def"
#undef X
    VP_DTYPE_COUNT
};

const char *vp_dtype_name(enum vp_dtype dtype);
uint32_t vp_dtype_block(enum vp_dtype dtype); /* elements that are stored together */
/* One of ggml's own block formats: a type that only GGUF files have. */
bool vp_dtype_is_ggml(enum vp_dtype dtype);
bool vp_dtype_is_plain(enum vp_dtype dtype); /* fp32, fp16, bf16: what is computed in */
/* Reads our names and those of ggml, torch, safetensors, vLLM and transformers ("bfloat16", "BF16",
 * "float16", "half", "fp8_e4m3", "F8_E4M3", ...); VP_DTYPE_UNSET when it is none. */
enum vp_dtype vp_dtype_parse(const char *text);
/* ceil(elements / per) * bytes */
struct vp_sum vp_dtype_bytes(enum vp_dtype dtype, struct vp_sum elements);

#endif
