/* What each operator of a layer keeps between its forward and its backward pass: the tape of one
 * micro batch on one rank. Saved bytes, recomputation, timelines and the placement optimizer are
 * folds over these items; nobody else derives what a layer keeps.
 *
 * Every item is one storage on the device, counted once however many operators read it. Sizes are
 * those of the fullest rank: tokens divided by context parallelism, heads and widths by tensor
 * parallelism, with sequence parallelism also what lies between the divided halves. Scalars (at
 * most 16 bytes a layer) are left out. Which implementation is used (eager, SDPA, flash; fused
 * norms; ...) is scenario->train.ops; what a version of the framework does differently is a rule
 * of its profile.
 *
 * Sources: measured with saved_tensors_hooks and the profiler's allocator events on torch 1.13;
 * tools/autograd/derivatives.yaml for later versions; Korthikanti et al. 2022 for the closed form.
 */
#ifndef VP_OPS_TAPE_H
#define VP_OPS_TAPE_H

#include "planner/model/scenario.h"
#include "planner/ops/ops.h"

/* What a block keeps for its backward pass, by what selective recomputation can leave out. */
enum vp_tape_group {
    VP_TAPE_NAME,        /* meaning */
    VP_TAPE_INPUT,       /* the block's own input, where an operator keeps it as it is */
    VP_TAPE_NORM,        /* inputs, normalised values and statistics of norms */
    VP_TAPE_PROJECTION,  /* inputs of matrices */
    VP_TAPE_ATTENTION,   /* queries, keys, values, probabilities and output of the attention core */
    VP_TAPE_LATENT,      /* compressed queries, keys and values, and what they expand into */
    VP_TAPE_STATE,       /* what linear-attention and state-space layers keep */
    VP_TAPE_ACTIVATION,  /* inputs and outputs of the feed-forward's activation function */
    VP_TAPE_ROUTER,      /* scores and choices of experts, permutations of tokens */
    VP_TAPE_EXPERTS,     /* tokens of the routed experts and their activations */
    VP_TAPE_SHARED,      /* activations of shared experts */
    VP_TAPE_ADAPTER,     /* inputs and inner products of adapters */
    VP_TAPE_DROPOUT,     /* masks */
    VP_TAPE_WEIGHT_COPY, /* copies of weights in the compute type (autocast) */
    VP_TAPE_EMBEDDING,   /* token ids */
    VP_TAPE_LOSS,        /* scores over the vocabulary and targets */
};

struct vp_tape_item {
    const char *name; /* static text: "attention probabilities", "gate" */
    enum vp_tape_group group;
    uint64_t bytes;
    bool on_input;      /* is the layer's input itself, which exists anyway while it runs */
    uint32_t selective; /* set of enum vp_selective: each of them leaves it out */
};

enum { VP_TAPE_MAX = 192, VP_TAPE_REGIONS = 7 /* members of enum vp_selective */ };

struct vp_tape {
    struct vp_tape_item item[VP_TAPE_MAX];
    uint32_t count;
    uint64_t saved_bytes;  /* sum of the items */
    uint64_t input_bytes;  /* of the layer's input: what recomputation keeps instead */
    bool input_on_tape;    /* the input is one of the items */
    uint64_t output_bytes; /* of its output */
    /* Most that is needed on top of the whole tape, the input and the output: while the layer runs
     * forward; on top of the whole tape and the input, while it runs backward (gradients of
     * activations, the gradient of its output included, but not those of weights). */
    uint64_t forward_temp_bytes, backward_temp_bytes;
    /* What selective recomputation of each region (bit of enum vp_selective) reads and the plain
     * tape does not have: kept instead. */
    uint64_t region_input_bytes[VP_TAPE_REGIONS];
    /* What the layer keeps is not known for some of its operators (a mixer described by its number
     * of parameters only): their inputs and outputs are counted, nothing between. */
    bool incomplete;
    bool overflow;
};

/* Around the stack: final norm, head and loss. */
struct vp_head_tape {
    struct vp_tape tape;
    /* largest amount during the loss, forward or backward, of what belongs to logits: logits,
     * log-probabilities and their gradients, and the hidden states that the head reads */
    uint64_t logits_peak_bytes;
    uint64_t logits_bytes;    /* the logits themselves */
    uint64_t peak_tape_bytes; /* of the tape, what logits_peak_bytes contains */
};

/* A layer of this kind. first: its input needs no gradient (the first one of a frozen model). */
void vp_tape_block(struct vp_tape *out, const struct vp_scenario *scenario,
                   const struct vp_block *block, bool first);
/* Embedding and learned positions. */
void vp_tape_first(struct vp_tape *out, const struct vp_scenario *scenario);
void vp_tape_last(struct vp_head_tape *out, const struct vp_scenario *scenario);
/* Bytes of the items that selective recomputation of this set (enum vp_selective) leaves out. */
uint64_t vp_tape_selected(const struct vp_tape *tape, uint32_t selective);
/* Tokens of a micro batch on one rank, after context parallelism. */
uint64_t vp_tape_tokens(const struct vp_scenario *scenario);

#endif
