/* What the files that write a PyTorch step as events share. Private to torch_*.c.
 *
 * A storage has a number of holders, as a tensor has references: taking one makes the first holder,
 * the last one to drop it gives it back. What autograd keeps for the backward pass lies on a stack
 * per micro batch; the backward pass takes it off in reverse. */
#ifndef VP_TIMELINE_TORCH_PARTS_H
#define VP_TIMELINE_TORCH_PARTS_H

#include "planner/base/arena.h"
#include "planner/memory/stage.h"
#include "planner/timeline/torch_step.h"

#define VP_NO_STORAGE UINT32_MAX

/* Streams: work, all-gathers (and copies from the host), reductions. A freed block is used again
 * only by the stream that it was made on. */
enum { VP_STREAM_WORK, VP_STREAM_GATHER, VP_STREAM_REDUCE };

enum { VP_TORCH_NODES = 96, VP_TORCH_VALUES = 128, VP_TORCH_SLOTS = 3, VP_TORCH_TAKES = 1024 };

/* ---- a block as a list of operations with what they read and write ---- */

enum vp_torch_kind {
    VP_TORCH_NORM,
    VP_TORCH_LINEAR,
    VP_TORCH_ROTARY,    /* rotated copy */
    VP_TORCH_VIEW,      /* a part of another tensor */
    VP_TORCH_COPY,      /* a new tensor that nothing is kept for: repeated heads, slices */
    VP_TORCH_ATTENTION, /* in: queries, keys, values */
    VP_TORCH_ACTIVATION,
    VP_TORCH_PRODUCT,  /* in: activated gate, up */
    VP_TORCH_GATED,    /* in: gate, up; both of these in one kernel */
    VP_TORCH_MULTIPLY, /* in: value, gate; value * sigmoid(gate) */
    VP_TORCH_SCAN,     /* recurrence or convolution: keeps what it reads */
    VP_TORCH_DROPOUT,
    VP_TORCH_ADD,
    VP_TORCH_EXPERTS /* routed experts as a whole, permutations included */
};

struct vp_torch_node {
    enum vp_torch_kind kind;
    enum vp_role role; /* LINEAR */
    uint8_t in[3], ins;
    uint8_t out;
    uint64_t in_width, out_width; /* elements per token, this rank's */
    uint64_t groups;              /* NORM: so many norms per token, of in_width / groups */
    uint64_t matrices;            /* LINEAR: matrices of out_width x in_width; EXPERTS: experts */
    bool layer_norm;              /* NORM: with mean and bias */
    uint32_t regions;             /* set of enum vp_selective that it belongs to */
    const struct vp_moe *moe;     /* EXPERTS */
    uint64_t expert_width;        /* this rank's */
};

struct vp_torch_graph {
    struct vp_torch_node node[VP_TORCH_NODES];
    uint32_t nodes, values;
    uint64_t width[VP_TORCH_VALUES];   /* elements per token */
    uint8_t last_use[VP_TORCH_VALUES]; /* index of the node that reads it last */
    uint8_t out;                       /* the value that leaves the block */
    const struct vp_block *block;
    bool overflow;
};

/* The operations of a block on one rank. */
void vp_torch_graph_make(struct vp_torch_graph *out, const struct vp_scenario *scenario,
                         const struct vp_block *block, const struct vp_layout *layout);

/* ---- storages ---- */

struct vp_torch_holder {
    uint32_t holders;
    uint32_t next; /* in the list of unused ids */
    uint64_t bytes;
    uint32_t ordinal; /* of what a layer takes, from 0 */
    uint8_t component, stream;
};

struct vp_torch_stack {
    uint32_t *id;
    uint32_t depth, capacity;
};

struct vp_torch {
    struct vp_arena *arena;
    const struct vp_scenario *scenario;
    const struct vp_train_stage *stage;
    const struct vp_train_rules *rules;
    struct vp_layout layout;
    const struct vp_torch_graph *graph; /* by block kind */
    struct vp_event_sink sink;

    struct vp_torch_holder *holder;
    uint32_t holders, capacity, unused;
    struct vp_torch_stack *tape; /* of the micro batch at work */
    bool recording;              /* autograd records: not so in a pass that is recomputed later */
    bool reaches;                /* the input of the operation at work needs a gradient */
    uint32_t select;             /* regions of the layer at work that are recomputed */
    struct vp_torch_stack *outputs; /* selective recomputation: what a pass keeps; NULL */
    bool overflow;

    /* which of the storages that a layer takes end on the tape, found by a trial pass */
    bool trial;
    bool stamp; /* what is taken now is kept: the input of a segment that is recomputed */
    uint32_t ordinal;
    uint8_t *keeps; /* by ordinal; NULL outside of a recorded pass */
    uint8_t **kept; /* by block kind, twice: the model's first layer, others */

    /* stamped on events */
    uint8_t component, step, cause;
    uint32_t layer, micro_batch;
    uint32_t
        row; /* of the layer in stage->layer; gradients of embedding and head have rows behind */

    /* sizes of one rank */
    uint64_t tokens, sequence, hidden, vocab;
    uint64_t stream_tokens; /* of them, on the residual stream (sequence parallelism divides it) */
    uint64_t stream_bytes;  /* bytes per element: residual stream */
    uint64_t compute_bytes; /* of quantised matrices, and of matrices under autocast */
    uint64_t adapter_bytes; /* of adapters while they work */
    uint64_t weight_bytes;  /* of parameters as they work (gathered type) */
    uint64_t gradient_bytes;
    bool autocast, mixed; /* mixed: FSDP's, 32-bit shards that are gathered in 16 bit */
    bool compiled;

    /* gradients of the layer at work, VP_TORCH_SLOTS for each node (weight, A, B), and those that
     * stay: [layer][node x slots] */
    uint32_t **gradient;

    uint32_t cast[VP_TORCH_NODES * 4]; /* copies that autocast holds until it ends */
    uint32_t casts;
};

/* rows x width x bytes, on the stream of the work */
uint32_t vp_torch_take(struct vp_torch *t, uint64_t rows, uint64_t width, uint64_t bytes);
/* A whole matrix that is there for a moment: converted, or cast. */
uint32_t vp_torch_take_weight(struct vp_torch *t, uint64_t elements, uint64_t bytes);
uint32_t vp_torch_take_on(struct vp_torch *t, uint64_t bytes, uint8_t stream,
                          enum vp_component component);
uint32_t vp_torch_share(struct vp_torch *t, uint32_t id);
void vp_torch_drop(struct vp_torch *t, uint32_t id);
/* Drops `old`, after `new` was made from it. */
uint32_t vp_torch_become(struct vp_torch *t, uint32_t old, uint32_t new_id);
/* Hands a holder over to the tape; drops it where nothing is recorded. */
void vp_torch_keep(struct vp_torch *t, uint32_t id);
void vp_torch_keep_shared(struct vp_torch *t, uint32_t id);
uint32_t vp_torch_pop(struct vp_torch *t);
void vp_torch_drop_kept(struct vp_torch *t, uint32_t count);
/* Stacks of storages grow in the arena. */
void vp_torch_push(struct vp_torch *t, struct vp_torch_stack *stack, uint32_t id);
/* A gradient of `elements` in the type of the working weights, added to what is there. */
void vp_torch_gradient(struct vp_torch *t, uint32_t node, uint32_t slot, uint64_t elements,
                       uint64_t bytes);
void vp_torch_end_autocast(struct vp_torch *t);

/* ---- operations: forward takes shared inputs and returns a new output; backward takes over the
 * gradient of the output and returns that of the input ---- */

uint32_t vp_torch_linear(struct vp_torch *t, const struct vp_torch_graph *g, uint32_t node,
                         uint32_t in);
/* needed: of the input; VP_NO_STORAGE comes back otherwise */
uint32_t vp_torch_linear_back(struct vp_torch *t, const struct vp_torch_graph *g, uint32_t node,
                              uint32_t grad, bool needed);
uint32_t vp_torch_experts(struct vp_torch *t, const struct vp_torch_graph *g, uint32_t node,
                          uint32_t in);
uint32_t vp_torch_experts_back(struct vp_torch *t, const struct vp_torch_graph *g, uint32_t node,
                               uint32_t grad);
uint32_t vp_torch_norm(struct vp_torch *t, const struct vp_torch_node *node, uint32_t in);
uint32_t vp_torch_norm_back(struct vp_torch *t, const struct vp_torch_node *node, uint32_t grad);
bool vp_torch_trains(const struct vp_torch *t, enum vp_role role);
bool vp_torch_adapts(const struct vp_torch *t, enum vp_role role);
/* Bytes per element of activations inside a block. */
uint64_t vp_torch_width_bytes(const struct vp_torch *t);

/* One operation of a block. forward: its new output; backward: takes `grad` over, fills the
 * gradients of the inputs, of which `needs` tells by value whether they are wanted. */
uint32_t vp_torch_forward(struct vp_torch *t, const struct vp_torch_graph *g, uint32_t node,
                          const uint32_t *in);
void vp_torch_backward(struct vp_torch *t, const struct vp_torch_graph *g, uint32_t node,
                       uint32_t grad, const bool *needs, uint32_t *out);

/* A layer from its input (shared) to its output. */
uint32_t vp_torch_layer(struct vp_torch *t, const struct vp_torch_graph *g, uint32_t in);
/* From the gradient of its output (taken over) to that of its input. */
uint32_t vp_torch_layer_back(struct vp_torch *t, const struct vp_torch_graph *g, uint32_t grad);

/* Final norm, head and loss, forward and backward: takes the last layer's output over, returns its
 * gradient. *logits: what the caller holds until the step is over, or VP_NO_STORAGE. */
uint32_t vp_torch_head(struct vp_torch *t, uint32_t in, uint32_t *logits);

#endif
