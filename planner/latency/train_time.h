/* Sums over the operators of a training step (train_op.h) and what stands beside the layers: head
 * and loss, embedding, reduction of gradients, gathering of weights, the optimizer. Of one micro
 * batch or of one optimizer step of one rank, as named; microseconds.
 *
 * Not here: which layers a stage holds, what is recomputed, the schedule of a pipeline
 * (planner/plan/train_latency.h). */
#ifndef VP_LATENCY_TRAIN_TIME_H
#define VP_LATENCY_TRAIN_TIME_H

#include "planner/latency/train_op.h"

/* A layer of this kind; embedding and positions; final norm, head and loss. Of a micro batch. */
struct vp_train_pass vp_train_block(const struct vp_train_place *place,
                                    const struct vp_block *block);
struct vp_train_pass vp_train_first(const struct vp_train_place *place);
struct vp_train_pass vp_train_last(const struct vp_train_place *place);

/* Activations of a micro batch on their way to the next stage, once. */
struct vp_time vp_train_send(const struct vp_train_place *place);
/* A collective of the ranks that hold the same weights, or the same experts. */
enum vp_train_collective { VP_TRAIN_ALL_REDUCE, VP_TRAIN_SCATTER_OR_GATHER };
struct vp_time vp_train_reduce(const struct vp_train_place *place, enum vp_train_collective kind,
                               bool experts, double bytes);

/* What the optimizer's step of a rank works on. Bytes of its share but for `gradients`, which a
 * buffer may hold whole; elements that it trains. */
struct vp_train_states {
    double elements;
    double gradient_bytes, master_bytes, optimizer_bytes, parameter_bytes;
};
struct vp_time vp_train_optimizer(const struct vp_train_place *place,
                                  const struct vp_train_states *states);

#endif
