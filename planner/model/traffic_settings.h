/* What a server's requests are like, as the scenario's `serve` block says it: when they come, how
 * long they are, how they are divided over copies of the set-up. Plain values; requests are drawn
 * from them by planner/serving/traffic.h. What is not said is 0. */
#ifndef VP_MODEL_TRAFFIC_SETTINGS_H
#define VP_MODEL_TRAFFIC_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

/* ---- lengths ---- */

enum vp_length_kind {
    VP_LENGTH_FIXED,
    VP_LENGTH_UNIFORM,     /* whole numbers from low to high */
    VP_LENGTH_EXPONENTIAL, /* by its mean */
    VP_LENGTH_LOGNORMAL    /* by its mean and the deviation of its logarithm */
};

/* Tokens of a prompt or an output. */
struct vp_lengths {
    enum vp_length_kind kind;
    double mean;      /* of what is drawn, before `most`; 0: not said */
    double low, high; /* UNIFORM */
    double sigma;     /* LOGNORMAL */
    double most;      /* longer ones are cut to it; 0: none are */
};

/* ---- arrivals ---- */

enum vp_arrival_kind {
    VP_ARRIVAL_CLOSED,  /* serve.concurrency in flight, a finished one is replaced at once */
    VP_ARRIVAL_BATCH,   /* serve.concurrency start together */
    VP_ARRIVAL_POISSON, /* exponential gaps */
    VP_ARRIVAL_GAMMA,   /* gaps of a gamma distribution: bursts where cv is above 1 */
    VP_ARRIVAL_RAMP,    /* Poisson, of a rate that follows straight lines between points */
    VP_ARRIVAL_TRACE    /* as a file says */
};

/* The rate at a time; between two points it changes evenly, behind the last it stays. */
struct vp_rate_point {
    double at_s, per_s;
};

enum { VP_RATE_POINTS = 256 };

struct vp_arrival {
    enum vp_arrival_kind kind;
    double per_s;                /* POISSON, GAMMA: mean rate */
    double cv;                   /* GAMMA: deviation of the gaps over their mean */
    struct vp_rate_point *point; /* RAMP: ascending in time, the first at 0 */
    uint32_t points;
};

/* ---- classes of requests ---- */

/* The first tokens of every prompt are one of so many texts: a system prompt, a document. */
struct vp_shared_prefix {
    uint64_t tokens; /* 0: none */
    uint64_t groups; /* different ones, equally often; 1: all requests have the same */
};

struct vp_request_class {
    const char *name;
    double share;     /* of all requests; they add up to 1 */
    int64_t priority; /* smaller goes first, where the engine is told to look at it */
    struct vp_lengths prompt, output;
    struct vp_shared_prefix prefix;
};

enum { VP_REQUEST_CLASSES = 16 };

/* ---- copies of the set-up ---- */

/* Copies that only read prompts, and copies that only write answers. */
struct vp_disaggregation {
    bool on;
    uint64_t prefill_replicas, decode_replicas;
    uint64_t prefill_tensor, decode_tensor; /* 0: as parallel.tensor */
    double link_gbs; /* between a copy of the one kind and one of the other; 0: the network's */
};

struct vp_traffic {
    struct vp_arrival arrival;
    struct vp_lengths prompt, output; /* of serve.prompt_tokens and output_tokens */
    struct vp_shared_prefix prefix;
    struct vp_request_class *class; /* NULL: one, of the above */
    uint32_t classes;
    const char *trace_path; /* from the current directory; NULL: none */
    struct vp_disaggregation disaggregation;
};

#endif
