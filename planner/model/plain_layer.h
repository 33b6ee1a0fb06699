/* A decoder layer of the plain kind (RMS norms, grouped heads, gated feed-forward), by its five
 * sizes: what a probe measures whole, and what is predicted of it. */
#ifndef VP_MODEL_PLAIN_LAYER_H
#define VP_MODEL_PLAIN_LAYER_H

#include "planner/model/model.h"

struct vp_plain_layer {
    uint64_t hidden, intermediate, heads, kv_heads, head_dim;
};
/* 16-bit weights. */
void vp_plain_layer(struct vp_model *model, struct vp_block *block,
                    const struct vp_plain_layer *layer);

#endif
