/* Weight formats by name: what precision.weights may say, and what reports call a scheme. */
#ifndef VP_MODEL_SCHEME_FORMAT_H
#define VP_MODEL_SCHEME_FORMAT_H

#include "planner/model/scheme.h"

/* "fp8", "int8", "int4", "nf4", "mxfp4", "nvfp4", "bf16", "fp16", "fp32" and ggml's types ("q8_0",
 * "q4_k", "iq4_xs"); group 0: the format's usual one. False: no such format, or it has no such
 * group. */
bool vp_scheme_format(struct vp_scheme *out, const char *name, uint64_t group, bool double_quant);
/* Sets the name that fits the other members: "fp8 block 128x128", "int4 group 128". */
void vp_scheme_describe(struct vp_scheme *scheme);

#endif
