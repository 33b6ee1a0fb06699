/* What Megatron Core and Transformer Engine have allocated beside weights, states and tapes. Which
 * of it there is, is a rule of the profile, so that a framework that does the same says so there.
 *
 * Not here: workspaces of matrix libraries (profile), what the loss makes (ops/tape_loss.c), which
 * micro batches are in flight (train_stage.c).
 *
 * Sources: megatron/core/utils.py (GlobalMemoryBuffer), transformer/dot_product_attention.py,
 * tensor_parallel/layers.py, pipeline_parallel/schedules.py, optimizer/optimizer.py;
 * transformer_engine/pytorch/module/base.py (get_dummy_wgrad). Held against the allocated bytes
 * that published functional-test logs of Megatron have between two steps. */
#ifndef VP_MEMORY_TRAIN_MEGATRON_H
#define VP_MEMORY_TRAIN_MEGATRON_H

#include "planner/memory/train_stage.h"

struct vp_megatron_beside {
    /* all the time */
    uint64_t buffer; /* one that scores of eager attention or gathered inputs are written to */
    uint64_t placeholders; /* weight gradients that autograd is handed, one per shape */
    /* between two steps only */
    struct vp_amount boundaries; /* inputs that chunks received, and their gradients */
    uint64_t gradient_copies;    /* 16-bit gradients in the type of the master weights */
    /* while a step runs */
    uint64_t deferred;        /* gradients of logits and hidden states that wait */
    uint64_t head_gradients;  /* of the head's matrix and its input, as they come into being */
    uint64_t table_gradients; /* of the embedding */
    bool overflow;
};

/* Of a stage whose layers, tapes, schedule and states are there. */
void vp_megatron_beside(struct vp_megatron_beside *out, const struct vp_scenario *scenario,
                        const struct vp_train_stage *stage);

#endif
