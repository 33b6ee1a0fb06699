/* What one operator of a layer takes of a training step on one rank: the forward pass, the
 * gradients of its input and of its weights, and the collectives that stand in its way. Step times,
 * prices of recomputation and chains of the placement optimizer are sums over these.
 *
 * Backward: a matrix product for the input's gradient and, where the matrix is trained, one for its
 * own; attention 2.5 times its forward FLOPs (flash) at four fifths of the rate; what streams reads
 * its inputs and the gradient of its outputs.
 *
 * Kernels that run for seconds do not reach what they reach alone: cards lower their clock under
 * load (train_classes.def).
 *
 * Left out: imbalance of experts beyond train.ops.expert_load, packed sequences (attention over the
 * whole length), the first layer's missing input gradient behind a frozen embedding. */
#ifndef VP_LATENCY_TRAIN_OP_H
#define VP_LATENCY_TRAIN_OP_H

#include "planner/latency/op_time.h"

/* Where time goes inside a layer. */
enum vp_train_kind {
    VP_TRAIN_LINEAR,    /* products of dense matrices */
    VP_TRAIN_EXPERTS,   /* of routed experts */
    VP_TRAIN_ATTENTION, /* scores and values, scans, convolutions */
    VP_TRAIN_OTHER,     /* what streams */
    VP_TRAIN_TENSOR,    /* collectives of tensor parallelism that nothing hides */
    VP_TRAIN_EXPERT,    /* tokens on their way to experts and back */
    VP_TRAIN_CONTEXT,   /* of context parallelism */
    VP_TRAIN_KINDS
};

struct vp_train_cost {
    struct vp_time time[VP_TRAIN_KINDS];
    double launches; /* kernels that the host starts one by one */
    double waited;   /* those of them that it starts only when others have ended: experts, whose
                        tokens it counts first */
};
struct vp_train_pass {
    struct vp_train_cost forward, backward;
};

/* What all operators of a rank share, for one micro batch. */
struct vp_train_place {
    const struct vp_scenario *scenario;
    struct vp_kernels kernels;
    struct vp_layout layout;
    enum vp_rate rate;        /* of products in the compute type */
    enum vp_rate matrix_rate; /* of the layers' matrices: FP8 where the framework multiplies so */
    double tokens;            /* after context parallelism */
    double expert_tokens;     /* of all ranks that send theirs to this rank's experts */
    double element_bytes;     /* of an activation */
};
struct vp_train_place vp_train_place_of(const struct vp_scenario *scenario);
/* The card's rates are known; else no time here means anything. */
bool vp_train_place_known(const struct vp_train_place *place);
/* Where times of this basis come from, in words. */
const char *vp_train_place_why(const struct vp_train_place *place, enum vp_basis basis,
                               struct vp_arena *arena);

/* The kernels as a group sees them whose members stand `stride` ranks apart. */
struct vp_kernels vp_train_group(const struct vp_train_place *place, double stride);

struct vp_train_cost vp_train_nothing(void);
void vp_train_cost_add(struct vp_train_cost *sum, const struct vp_train_cost *add, double times);
/* Of all kinds. */
struct vp_time vp_train_cost_total(const struct vp_train_cost *cost);

/* Operator i of the list, and those behind it that run as one product with it; returns how many
 * these are together. block: NULL before and behind the layers. */
uint32_t vp_train_op(struct vp_train_pass *out, const struct vp_train_place *place,
                     const struct vp_block *block, const struct vp_ops *ops, uint32_t i);

#endif
