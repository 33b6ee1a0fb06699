/* One pipeline stage in training, as numbers: what its fullest rank holds between steps, what each
 * layer keeps of a micro batch, what the schedule has in flight. The timeline replays it, the
 * placement optimizer makes a chain of it, the ledger tells it.
 *
 * Made from the operator list (weights), the tapes (activations), train_state (states by ZeRO,
 * FSDP, tensor, expert and pipeline parallelism) and the rules of the framework. */
#ifndef VP_MEMORY_TRAIN_STAGE_H
#define VP_MEMORY_TRAIN_STAGE_H

#include "planner/memory/ledger.h"
#include "planner/memory/stage.h"
#include "planner/ops/tape.h"

/* A layer of the stage, in execution order. Bytes per rank. */
struct vp_train_layer {
    uint32_t layer;             /* index in the model */
    uint32_t block;             /* its kind */
    const struct vp_tape *tape; /* shared by layers of one kind */
    uint64_t saved_bytes;       /* kept of one micro batch after its forward pass, with the
                                   recomputation asked for (a segment's input counts in its first
                                   layer) */
    uint64_t gradient_bytes;    /* of its weights, as they come into being */
    uint64_t gathered_bytes;    /* unsharded weights while it runs (ZeRO 3, FSDP); 0: resident */
    uint64_t scattered_bytes;   /* unsharded gradients until they are reduced; 0: none */
    uint64_t weight_temp_bytes; /* weights converted for the matrix at work (dequantised 4 bit) */
    uint32_t segment;           /* layers of one segment are recomputed together */
    bool recomputed;
};

struct vp_train_stage {
    uint32_t index, count;
    uint32_t chunks; /* virtual stages held by this rank */
    struct vp_train_layer *layer;
    uint32_t layers;
    bool first, last;                                       /* holds the embedding; the head */
    struct vp_tape embedding;                               /* first */
    struct vp_head_tape head;                               /* last */
    uint64_t head_gradient_bytes, embedding_gradient_bytes; /* of their weights */
    uint64_t head_gathered_bytes, embedding_gathered_bytes;

    /* between two steps */
    uint64_t parameter_bytes, gradient_bytes, optimizer_bytes, master_bytes;
    uint64_t trainable;       /* parameters that are trained, this rank's share unsharded */
    bool gradients_persist;   /* the gradient buffer is there all the time */
    bool gradients_grow;      /* gradients come into being during the backward pass */
    uint64_t step_temp_bytes; /* temporaries of the optimizer's step */
    uint64_t logits_peak_bytes;

    /* schedule */
    uint64_t micro_batches; /* of one step */
    uint64_t in_flight;     /* micro batches whose tapes are held at once, most; of chunks when
                               the schedule is interleaved */
    uint64_t accumulation_temp_bytes; /* a second gradient beside the accumulated one */

    /* what the allocator holds beside: BLAS workspaces, buckets, buffers of collectives */
    struct vp_amount workspace, communication;
    /* what it does not see: context, libraries, communicators */
    struct vp_amount runtime;
    uint64_t host_bytes; /* offloaded to host memory */

    /* sums over the layers, one micro batch */
    uint64_t saved_bytes;      /* all micro batches in flight, at the end of the last forward */
    uint64_t saved_peak_bytes; /* largest amount at any time, recomputation included */
    uint64_t recomputed_forwards;
    bool overflow;
};

/* Fills stage `index` of the scenario's pipeline. Arrays come from the arena. A layout that cannot
 * be (found by import) is never seen here. */
void vp_train_stage_make(struct vp_arena *arena, struct vp_train_stage *out,
                         const struct vp_scenario *scenario, uint32_t index);
/* The rows of this stage at each instant of the step; the sums of the rows alive at an instant are
 * what is allocated then, with workspaces and what is outside the allocator. */
void vp_train_stage_rows(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                         const struct vp_train_stage *stage, uint32_t device);

#endif
