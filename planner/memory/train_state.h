/* What training keeps of the weights: parameters as stored, gradients, master weights, optimizer
 * states, adapters. Sums over the tensors of the operator list; what one tensor is matters where an
 * optimizer treats small tensors or matrices apart, and for the largest one.
 *
 * Not here: activations (ops/tape.h), which layers a stage holds and when what is there
 * (train_stage.h). The 4-byte step counter of each tensor is left out. */
#ifndef VP_MEMORY_TRAIN_STATE_H
#define VP_MEMORY_TRAIN_STATE_H

#include "planner/model/scenario.h"
#include "planner/ops/ops.h"

/* Of some tensors on one rank, whole: data parallelism has not divided them yet. */
struct vp_weight_sums {
    struct vp_sum stored;       /* bytes of the base, without quantisation constants */
    struct vp_sum plain;        /* elements of the base that are not quantised */
    struct vp_sum quantised;    /* bytes of the rest */
    struct vp_sum constants;    /* bytes of its scales: no parameters, so that FSDP and ZeRO neither
                                   divide nor offload them (bitsandbytes quant_state) */
    struct vp_sum idle;         /* elements of experts' adapters that a step does not train: those
                                   of the other sets (prime-rl multi_moe.py) */
    struct vp_sum adapters;     /* bytes */
    struct vp_sum trainable;    /* elements, adapters included */
    struct vp_sum states;       /* bytes of optimizer states */
    struct vp_sum fp8_copies;   /* bytes */
    uint64_t largest;           /* elements of the largest tensor that is trained */
    uint64_t largest_matrix;    /* of those that are trained */
    uint64_t largest_quantised; /* elements of the largest quantised matrix */
};

/* Dense weights and those of routed experts have data-parallel groups of their own. */
struct vp_train_weights {
    struct vp_weight_sums dense, experts;
};

/* Of one layer of this kind; of embedding and positions; of final norm and head. Where `tied_copy`
 * the last stage holds the embedding's matrix as its head. */
void vp_train_block_weights(struct vp_train_weights *out, const struct vp_scenario *scenario,
                            const struct vp_block *block, const struct vp_layout *layout);
void vp_train_first_weights(struct vp_train_weights *out, const struct vp_scenario *scenario,
                            const struct vp_layout *layout);
void vp_train_last_weights(struct vp_train_weights *out, const struct vp_scenario *scenario,
                           const struct vp_layout *layout, bool tied_copy);
/* *out += times x add */
void vp_train_weights_add(struct vp_train_weights *out, const struct vp_train_weights *add,
                          uint64_t times);

/* Ranks over which data parallelism divides what a rank keeps. 1: each has all of it. */
struct vp_train_shards {
    uint64_t parameters, gradients, states;
};
struct vp_train_shards vp_train_shards_of(const struct vp_scenario *scenario, bool experts);

/* Bytes that one rank keeps. Offloaded parts are in `host` instead. */
struct vp_train_kept {
    struct vp_sum parameters; /* adapters and constants included */
    struct vp_sum adapters;   /* of these */
    struct vp_sum constants;  /* of these */
    struct vp_sum gradients, master, optimizer, fp8_copies, host;
    struct vp_sum trainable;        /* elements, whole */
    struct vp_sum step_temp;        /* temporaries of the optimizer's step */
    struct vp_sum largest_gradient; /* of one tensor, whole */
};
void vp_train_keep(struct vp_train_kept *out, const struct vp_scenario *scenario,
                   const struct vp_train_weights *weights);

/* Bytes of the weights while they are whole on a rank, in the type that they work in. */
struct vp_sum vp_train_gathered(const struct vp_scenario *scenario,
                                const struct vp_train_weights *weights);
/* Bytes of their gradients while these are whole. */
struct vp_sum vp_train_scattered(const struct vp_scenario *scenario,
                                 const struct vp_train_weights *weights);
/* Bytes of their gradients as one rank keeps them. */
struct vp_sum vp_train_gradients(const struct vp_scenario *scenario,
                                 const struct vp_train_weights *weights);
/* Parameters of the whole model that are trained, adapters of all slots included. */
struct vp_sum vp_train_trainable(const struct vp_scenario *scenario);

#endif
