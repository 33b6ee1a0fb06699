/* What a layer does, as a list of operators: the one place that knows the matrices of an attention,
 * a feed-forward or a state-space block. Weights, activations, FLOPs, traffic and communication
 * are folds over these lists; nobody derives a layer's shapes twice.
 *
 * Sizes are of the unsharded model, per token where a token is meant. An operator says how it is
 * divided (`shard`); vp_ops_share gives a rank's part. */
#ifndef VP_OPS_OPS_H
#define VP_OPS_OPS_H

#include "planner/model/model.h"

enum vp_op_kind {
    VP_OP_EMBEDDING, /* table look-up */
    VP_OP_NORM,
    VP_OP_LINEAR, /* out = in x matrix (+ bias) */
    VP_OP_ROTARY,
    VP_OP_ATTENTION,  /* scores, softmax, weighted values over the cached tokens */
    VP_OP_CONV,       /* causal convolution over time */
    VP_OP_SCAN,       /* recurrence of a linear-attention or state-space layer */
    VP_OP_ACTIVATION, /* element-wise non-linearity, gating included */
    VP_OP_ROUTE,      /* top-k choice of experts */
    VP_OP_EXPERTS,    /* grouped matrices: top_k of `matrices` per token */
    VP_OP_ADD         /* residual */
};

struct vp_op {
    enum vp_op_kind kind;
    enum vp_role role;      /* the tensors it owns; meaningful when parameters > 0 */
    const char *name;       /* "q_proj", "attention", "down_proj" */
    uint64_t matrices;      /* LINEAR, EXPERTS: number of out x in matrices, else 0 */
    uint64_t active;        /* matrices that work for one token */
    uint64_t out, in;       /* elements per token and active matrix */
    uint64_t vector;        /* parameters beside the matrices: norms, biases, sinks */
    enum vp_norm_kind norm; /* NORM */
    uint64_t flops;         /* per token, not counting what grows with the context */
    uint64_t flops_cached;  /* per token and cached token */
    uint64_t reads, writes; /* activation elements per token */
    bool all_reduce;        /* under tensor parallelism its `out` elements are summed over ranks */
    enum vp_shard shard;
};

enum { VP_OPS_MAX = 64 };

struct vp_ops {
    struct vp_op item[VP_OPS_MAX];
    uint32_t count;
    bool overflow; /* some size exceeded 64 bits */
};

/* A rank's view of the layout. */
struct vp_layout {
    uint64_t tensor;    /* ranks that divide dense matrices */
    uint64_t attention; /* ranks that divide attention heads (tensor, or less with DP attention) */
    uint64_t vocab;     /* ranks that divide the vocabulary */
    uint64_t
        expert_ranks; /* ranks over which whole experts are dealt; 1: experts' width is divided */
    uint64_t expert_width; /* ranks that divide the width of each expert */
    uint64_t vocab_pad;    /* vocabulary rows are padded to a multiple of this; 1: not */
};

/* Operators of one layer of this kind. hidden: the model's width. */
void vp_ops_block(struct vp_ops *out, const struct vp_model *model, const struct vp_block *block);
/* Embedding and learned positions; final norm and head. */
void vp_ops_first(struct vp_ops *out, const struct vp_model *model);
void vp_ops_last(struct vp_ops *out, const struct vp_model *model);

/* Parameters of an operator on the unsharded model. */
struct vp_sum vp_op_parameters(const struct vp_op *op);
/* Of a tensor group beside the stack, with the decoder layers it holds. */
struct vp_sum vp_ops_extra_parameters(const struct vp_model *model, const struct vp_extra *extra);
/* Parameters that work for one token (top_k of the experts). */
struct vp_sum vp_op_active(const struct vp_op *op);

/* A rank's part of an operator's matrices: number, out, in, and vector elements. Uneven divisions
 * round up: the fullest rank. */
struct vp_op_share {
    uint64_t matrices, out, in, vector;
};
struct vp_op_share vp_ops_share(const struct vp_op *op, const struct vp_block *block,
                                const struct vp_layout *layout);

/* Logical parameters of the model: tied heads once, quantisation aside, MTP layers left out. */
struct vp_params {
    uint64_t total, active;
    bool overflow;
};
struct vp_params vp_ops_params(const struct vp_model *model);

#endif
