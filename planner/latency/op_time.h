/* Time of one operator (planner/ops/ops.h) on one rank, forward only: its share of the matrices by
 * the layout, the rate by how they are stored, and the kernels of kernels.h. The one place where an
 * operator becomes a kernel; serving, training and recomputation are sums over it.
 *
 * Left out, because they belong to who runs the operators: collectives, host time, overlap of
 * streams, imbalance between experts (all are taken as equally wanted). */
#ifndef VP_LATENCY_OP_TIME_H
#define VP_LATENCY_OP_TIME_H

#include "planner/latency/kernels.h"
#include "planner/ops/ops.h"

/* Where an operator runs. */
struct vp_op_place {
    const struct vp_kernels *kernels;
    const struct vp_model *model;
    const struct vp_block *block; /* the layer it belongs to; NULL: before or behind the layers */
    struct vp_layout layout;
    bool fused; /* neighbours that share their input are one product (q, k, v; gate, up), norms and
                   activations one kernel with what they follow; false: each by itself */
};

/* What it works on: one pass of this rank. */
struct vp_op_load {
    double tokens;        /* through the layer, on this rank */
    double expert_tokens; /* of all ranks that send theirs to this rank's experts; 0: `tokens` */
    double sequences, fresh, past; /* attention: sequences of `fresh` tokens after `past` cached */
    enum vp_kv_width kv;
    const enum vp_rate *rate; /* of matrix products; NULL: as their weights are stored */
};

/* Experts of `matrices` that `tokens` tokens wake, each token `active` of them, chosen evenly. */
double vp_experts_hit(double matrices, double active, double tokens);

/* One operator by itself. Residuals that a fused norm adds take no time of their own. */
struct vp_time vp_op_time(const struct vp_op_place *place, const struct vp_op *op,
                          const struct vp_op_load *load);

/* What it computes and what has to move for it at least: floating-point operations; bytes of
 * weights, cached tokens, and 16-bit activations in and out. Of matrix products and attention; 0
 * for what only streams. */
struct vp_op_work {
    double flops, bytes;
};
struct vp_op_work vp_op_work(const struct vp_op_place *place, const struct vp_op *op,
                             const struct vp_op_load *load);

/* A list of them, neighbours joined where the place is fused. Without sequences nothing looks back:
 * attention and scans are left out. */
struct vp_ops_time {
    struct vp_time linear;    /* matrix products of dense layers, router, shared experts */
    struct vp_time experts;   /* of routed experts */
    struct vp_time attention; /* scores and values, scans, convolutions */
    struct vp_time other;     /* what streams: norms, activations, rotary, look-ups */
    double reduced;           /* elements per token that tensor ranks sum up, dense layers */
    double reduced_experts;   /* the same behind experts */
};
struct vp_ops_time vp_ops_time(const struct vp_op_place *place, const struct vp_ops *ops,
                               const struct vp_op_load *load);

#endif
