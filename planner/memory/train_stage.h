/* One pipeline stage in training, as numbers: what its fullest rank holds between steps, what each
 * layer keeps of a micro batch, what the schedule has in flight, and what is allocated at the worst
 * instant of each phase of a step. The timeline replays it, the placement optimizer makes a chain
 * of it, the ledger tells it.
 *
 * Made from the operator list (weights), the tapes (activations), train_state (states by ZeRO,
 * FSDP, tensor, expert and pipeline parallelism) and the rules of the framework. */
#ifndef VP_MEMORY_TRAIN_STAGE_H
#define VP_MEMORY_TRAIN_STAGE_H

#include "planner/memory/ledger.h"
#include "planner/memory/stage.h"
#include "planner/memory/train_state.h"
#include "planner/ops/tape.h"

#define VP_NO_LAYER UINT32_MAX

/* A layer of the stage, in execution order. Bytes per rank. */
struct vp_train_layer {
    uint32_t layer;               /* index in the model */
    uint32_t block;               /* its kind */
    uint32_t chunk;               /* virtual stage on this rank that it belongs to */
    const struct vp_tape *tape;   /* shared by layers of one kind */
    uint64_t saved_bytes;         /* kept of one micro batch after its forward pass, with the
                                     recomputation asked for (a segment's input counts in its first
                                     layer) */
    uint64_t offloaded_bytes;     /* of these, those that go to the host */
    uint64_t rebuilt_bytes;       /* on the tape again while its backward pass runs, above saved */
    uint64_t gradient_bytes;      /* of its weights, as they come into being */
    uint64_t gradient_temp_bytes; /* a second gradient beside the accumulated one */
    uint64_t gathered_bytes;      /* unsharded weights while it runs (ZeRO 3, FSDP); 0: resident */
    uint64_t scattered_bytes;     /* unsharded gradients until they are reduced; 0: none */
    uint64_t weight_temp_bytes;   /* weights converted for the matrix at work (dequantised 4 bit) */
    uint32_t segment;             /* layers of one segment are recomputed together */
    bool recomputed;
};

/* Parts of the weights that reports tell apart. */
enum vp_train_part { VP_PART_FIRST, VP_PART_LAYERS, VP_PART_LAST, VP_PART_COUNT };

/* What makes an instant the worst of its phase. */
enum vp_train_cause {
    VP_CAUSE_LAYERS,    /* the end of the forward pass of the last layer here */
    VP_CAUSE_LOSS,      /* head and loss */
    VP_CAUSE_HEAD,      /* backward pass of the head's matrix */
    VP_CAUSE_REBUILT,   /* backward of a layer whose tape is rebuilt */
    VP_CAUSE_BACKWARD,  /* backward of a layer from what was kept */
    VP_CAUSE_GRADIENTS, /* the last layer's backward ends: all gradients are there */
    VP_CAUSE_EMBEDDING, /* backward of the embedding */
    VP_CAUSE_STEP       /* the optimizer's step */
};

/* What is allocated at an instant beside what is there all the time. Bytes. */
struct vp_train_moment {
    enum vp_step step;
    enum vp_train_cause cause;
    uint32_t layer;       /* in the model, at work; VP_NO_LAYER: none */
    uint64_t gradients;   /* as kept */
    uint64_t saved;       /* tapes of all micro batches in flight */
    uint64_t temporaries; /* activations and their gradients that are on no tape */
    uint64_t logits;
    uint64_t gathered;  /* weights that are whole for a while, or converted */
    uint64_t scattered; /* gradients that are whole for a while */
    uint64_t step_temp;
    uint64_t total;
};

enum { VP_TRAIN_MOMENTS = VP_STEP_COUNT - VP_STEP_FORWARD };

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
    struct vp_train_kept part[VP_PART_COUNT]; /* these add up to: */
    uint64_t parameter_bytes, gradient_bytes, optimizer_bytes, master_bytes;
    uint64_t adapter_bytes;   /* of parameter_bytes */
    uint64_t fp8_bytes;       /* copies of weights */
    uint64_t trainable;       /* parameters that are trained, this rank's share unsharded */
    bool gradients_persist;   /* the gradient buffer is there all the time */
    bool gradients_grow;      /* gradients come into being during the backward pass */
    uint64_t step_temp_bytes; /* temporaries of the optimizer's step */
    uint64_t logits_peak_bytes;

    /* schedule */
    uint64_t micro_batches; /* of one step */
    uint64_t in_flight;     /* micro batches whose tapes are held at once, most; of chunks when
                               the schedule is interleaved */
    const uint64_t *chunk_in_flight;  /* the same of each chunk */
    uint64_t accumulation_temp_bytes; /* a second gradient beside the accumulated one */

    /* by rules of the framework (train_megatron.h) */
    uint64_t buffer_bytes, placeholder_bytes; /* all the time */
    struct vp_amount between;  /* between two steps, beside what is there all the time */
    uint64_t deferred_bytes;   /* of the head, waiting while a step runs */
    uint64_t head_temp_bytes;  /* gradients of the head's matrix and input, as they are made */
    uint64_t table_temp_bytes; /* of the embedding's table */

    /* what the allocator holds beside: BLAS workspaces, buckets, buffers of collectives */
    struct vp_amount workspace, communication;
    /* what it does not see: context, libraries, communicators */
    struct vp_amount runtime;
    uint64_t host_bytes; /* offloaded to host memory */

    uint64_t saved_bytes;         /* all micro batches in flight, at the end of the last forward */
    uint64_t saved_peak_bytes;    /* largest amount at any time, recomputation included */
    uint64_t recomputed_forwards; /* of layers, per micro batch */

    /* parameters, states, copies and likely workspaces: there at any instant */
    uint64_t static_bytes;
    struct vp_train_moment
        moment[VP_TRAIN_MOMENTS]; /* worst of each phase, VP_STEP_FORWARD first */
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
/* Of the four moments the largest. */
const struct vp_train_moment *vp_train_stage_peak(const struct vp_train_stage *stage);

/* train_moments.c: fills saved_peak_bytes and moment[] of a stage whose other numbers are there. */
void vp_train_stage_moments(struct vp_train_stage *stage, const struct vp_scenario *scenario);

#endif
