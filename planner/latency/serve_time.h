/* Serving as passes over the layers: one decode iteration of the sequences that run together, and
 * what an arriving prompt adds to the iterations that it is computed in. A pass is a handful of
 * sums (kernels, collectives, layers, sequences), so that the constants of an engine
 * (struct vp_serving_fit) enter linearly: prediction and fit use the same sums.
 *
 * The load is that of one replica in its steady state. Left out: variance of lengths and arrivals
 * (queues beyond the mean), prefix hits, preemption, images. */
#ifndef VP_LATENCY_SERVE_TIME_H
#define VP_LATENCY_SERVE_TIME_H

#include "planner/base/arena.h"
#include "planner/latency/latency.h"
#include "planner/latency/op_time.h"

/* One pass over the layers; microseconds of one rank. */
struct vp_pass {
    struct vp_time linear, experts, attention, other; /* kernels */
    struct vp_time exchange;                          /* collectives and pipeline hops */
    double layers; /* passed, those with routed experts among them: */
    double expert_layers;
    double sequences; /* that get a token, on this rank */
    double passes;    /* host steps: 1, or a share of one */
};

/* The layers as one rank of a layout runs them, and what of a pass depends on what: products and
 * collectives on its tokens, attention on the sequences and what they look back at, the head on
 * the tokens that need logits. */
struct vp_stack {
    const struct vp_scenario *scenario;
    const struct vp_model *model; /* the scenario's, or that of its draft */
    struct vp_layout layout;
    struct vp_kernels kernels;
    enum vp_kv_width kv;
    double data;       /* ranks (or groups of tensor ranks) with sequences of their own */
    double stages;     /* of a pipeline: hops between them */
    double host_bytes; /* weights in host memory, which every pass reads over the link */
    const struct vp_stack_op *looking_back; /* attention and scans of its layers, */
    uint32_t looking_back_count;            /* once vp_stack_prepare has found them */
};
struct vp_stack_op {
    const struct vp_block *block;
    struct vp_op op;
};
void vp_stack_of(struct vp_stack *out, const struct vp_scenario *scenario,
                 const struct vp_layout *layout, double data);
/* For one that is asked about attention thousands of times: its operators are made once. */
void vp_stack_prepare(struct vp_arena *arena, struct vp_stack *stack);
/* On top of *pass: all layers for so many tokens on this rank, without what looks back.
 * expert_tokens: of all ranks that send theirs to this rank's experts. */
void vp_stack_tokens(struct vp_pass *pass, const struct vp_stack *stack, double tokens,
                     double expert_tokens);
/* Routed experts of all layers, for so many tokens of all ranks that send theirs. */
struct vp_time vp_stack_experts(const struct vp_stack *stack, double tokens);
/* Attention and scans of all layers, `fresh` tokens each of so many sequences behind `past`. */
struct vp_time vp_stack_attention(const struct vp_stack *stack, double sequences, double fresh,
                                  double past);
void vp_stack_head(struct vp_pass *pass, const struct vp_stack *stack, double tokens);

/* Tokens of one iteration on one data rank. */
struct vp_pass_load {
    double decoding; /* sequences that get one token each */
    double past;     /* tokens cached before it, mean */
    double prompts;  /* sequences whose prompt is computed, */
    double chunk;    /* that many tokens of each */
    double done;     /* tokens of it that were computed before */
    double data;     /* data ranks whose tokens meet at the experts */
};
struct vp_pass vp_pass_of(const struct vp_stack *stack, const struct vp_pass_load *load);

struct vp_serve_load {
    const struct vp_scenario *scenario;
    struct vp_layout layout;
    double data;           /* ranks (or groups of tensor ranks) with sequences of their own */
    double requests;       /* in flight on one replica */
    double running;        /* of them at once on one data rank: cache and scheduler permitting */
    double prompt, output; /* tokens of a request, means */
    double budget;         /* tokens of an iteration */
    bool mixed; /* prompts share iterations with decoding sequences; else they have their own */
    bool batch; /* all start together, none follows */
};

struct vp_serve_terms {
    struct vp_pass decode; /* one iteration, no prompt in it */
    struct vp_pass prompt; /* what one prompt costs all others: iterations of its own, or what it
                              adds to theirs */
    struct vp_pass first;  /* from a prompt's first iteration to its last, for itself */
    struct vp_pass alone;  /* what one costs when nothing else runs */
    double interruptions;  /* prompts of others per output token of a request */
    double ahead;   /* other prompts; of a batch: those computed before its own, on average */
    double waiting; /* requests waiting per request running: no room in the cache */
};

void vp_serve_terms(struct vp_serve_terms *out, const struct vp_serve_load *load);

#endif
