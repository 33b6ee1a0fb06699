/* Serving as passes over the layers: one decode iteration of the sequences that run together, and
 * what an arriving prompt adds to the iterations that it is computed in. A pass is a handful of
 * sums (kernels, collectives, layers, sequences), so that the constants of an engine
 * (struct vp_serving_fit) enter linearly: prediction and fit use the same sums.
 *
 * The load is that of one replica in its steady state. Left out: variance of lengths and arrivals
 * (queues beyond the mean), prefix hits, preemption, images. */
#ifndef VP_LATENCY_SERVE_TIME_H
#define VP_LATENCY_SERVE_TIME_H

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
