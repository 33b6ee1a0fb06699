#include "planner/model/plain_layer.h"

void vp_plain_layer(struct vp_model *model, struct vp_block *block,
                    const struct vp_plain_layer *layer) {
    *model = (struct vp_model){.hidden = layer->hidden};
    model->schemes[0] = (struct vp_scheme){.name = "bf16", .data = VP_DTYPE_BF16};
    model->scheme_count = 1;
    *block = (struct vp_block){.count = 1,
                               .norms = 2,
                               .norm = VP_NORM_RMS,
                               .attention = {.kind = VP_ATTENTION_GQA,
                                             .heads = layer->heads,
                                             .kv_heads = layer->kv_heads,
                                             .head_dim = layer->head_dim,
                                             .v_head_dim = layer->head_dim},
                               .mlp = {.kind = VP_MLP_GATED, .intermediate = layer->intermediate}};
}
