/* The tensor table of a GGUF file: placed and classified (planner/model/gguf_table.h), and what it
 * says about each layer that the keys leave open: biases, norms, gates, experts. */
#ifndef VP_IMPORT_GGUF_TENSORS_H
#define VP_IMPORT_GGUF_TENSORS_H

#include "planner/doc/gguf.h"
#include "planner/model/model.h"

/* Tensors that tell what a layer is: X(NAME, "name behind blk.N."). */
#define VP_GGUF_FACTS                                                                              \
    X(ATTN_Q, "attn_q.weight")                                                                     \
    X(ATTN_QKV, "attn_qkv.weight")                                                                 \
    X(ATTN_V, "attn_v.weight")                                                                     \
    X(ATTN_Q_BIAS, "attn_q.bias")                                                                  \
    X(ATTN_QKV_BIAS, "attn_qkv.bias")                                                              \
    X(ATTN_K_BIAS, "attn_k.bias")                                                                  \
    X(ATTN_OUT_BIAS, "attn_output.bias")                                                           \
    X(ATTN_GATE, "attn_gate.weight")                                                               \
    X(ATTN_SINKS, "attn_sinks.weight")                                                             \
    X(ATTN_K_NORM, "attn_k_norm.weight")                                                           \
    X(NORM, "attn_norm.weight")                                                                    \
    X(NORM_BIAS, "attn_norm.bias")                                                                 \
    X(FFN_GATE, "ffn_gate.weight")                                                                 \
    X(FFN_UP, "ffn_up.weight")                                                                     \
    X(FFN_DOWN, "ffn_down.weight")                                                                 \
    X(FFN_BIAS, "ffn_down.bias")                                                                   \
    X(ROUTER, "ffn_gate_inp.weight")                                                               \
    X(ROUTER_BIAS, "ffn_gate_inp.bias")                                                            \
    X(SCORE_BIAS, "exp_probs_b.bias")                                                              \
    X(EXPERT_GATE, "ffn_gate_exps.weight")                                                         \
    X(EXPERT_GATE_UP, "ffn_gate_up_exps.weight")                                                   \
    X(EXPERT_DOWN, "ffn_down_exps.weight")                                                         \
    X(EXPERT_BIAS, "ffn_down_exps.bias")                                                           \
    X(SHARED_DOWN, "ffn_down_shexp.weight")                                                        \
    X(SHARED_SWITCH, "ffn_gate_inp_shexp.weight")                                                  \
    X(SSM_OUT, "ssm_out.weight")                                                                   \
    X(SSM_NORM, "ssm_norm.weight")                                                                 \
    X(SSM_DT_NORM, "ssm_dt_norm.weight")                                                           \
    X(SSM_CONV_BIAS, "ssm_conv1d.bias")                                                            \
    X(SHORTCONV, "shortconv.conv.weight")                                                          \
    X(TIME_MIX, "time_mix_key.weight")

enum vp_gguf_fact {
#define X(name, text) VP_GGUF_FACT_##name,
    VP_GGUF_FACTS
#undef X
        VP_GGUF_FACT_COUNT
};

struct vp_gguf_layer {
    const struct vp_gguf_tensor *fact[VP_GGUF_FACT_COUNT]; /* NULL: the layer lacks it */
    uint32_t norms;                                        /* weights of norms of hidden size */
    uint64_t elements;                                     /* of all its tensors */
};

struct vp_gguf_facts {
    const struct vp_gguf_tensor *embedding, *output, *output_bias, *output_norm, *positions,
        *token_types, *embedding_norm;
    struct vp_gguf_layer *layer; /* [layers] */
    uint32_t layers;
};

/* layers: blocks that run. The table goes to model->gguf. VP_D_OVERFLOW when the sums exceed 64
 * bits. */
enum vp_status vp_gguf_tensors_attach(struct vp_ctx *ctx, struct vp_model *model,
                                      struct vp_gguf_facts *out, const struct vp_gguf *file,
                                      const char *arch, uint32_t layers);
/* Blocks in the table: the highest number of a "blk.N." and one. */
uint32_t vp_gguf_tensors_blocks(const struct vp_gguf *file);
/* Storage schemes of `blocks`, one per layer, and of the ends, from the table's types. */
enum vp_status vp_gguf_tensors_schemes(struct vp_ctx *ctx, struct vp_model *model,
                                       const struct vp_gguf_facts *facts, struct vp_block *blocks);

#endif
