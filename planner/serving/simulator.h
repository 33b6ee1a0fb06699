/* Serving, simulated: requests arrive, replicas schedule them iteration by iteration as their
 * engine does, caches fill, sequences are preempted, tokens come out. Discrete events in total
 * order; the same settings, requests and seed give the same bytes.
 *
 * What comes from elsewhere is handed in: the cache (block_pool.h, from the plan), the clock
 * (iteration.h, from calibrated step times), the requests (a stream, so that a million of them need
 * no memory before they arrive). Times in microseconds from the start.
 *
 * Left out: batching of the front end, aborted requests, what differs between ranks of a replica.
 */
#ifndef VP_SERVING_SIMULATOR_H
#define VP_SERVING_SIMULATOR_H

#include "planner/base/arena.h"
#include "planner/serving/block_pool.h"
#include "planner/serving/iteration.h"

/* ---- requests ---- */

struct vp_request {
    double arrival_us;             /* open loop: not before the one before it; else ignored */
    uint32_t prompt, output;       /* tokens, at least 1 each */
    uint64_t prefix_id;            /* requests of one id begin alike; 0: with nothing in common */
    uint32_t shared_prefix_tokens; /* so many tokens of the prompt */
    uint32_t class_id;             /* below settings.classes */
    int32_t priority;              /* smaller goes first, where the policy asks */
};

struct vp_request_stream {
    bool (*next)(void *state, struct vp_request *out); /* false: there are no more */
    void *state;
};

enum vp_loop {
    VP_LOOP_OPEN,   /* requests come when they come */
    VP_LOOP_CLOSED, /* `concurrency` are kept in flight, a finished one is replaced at once */
    VP_LOOP_BATCH   /* all of the stream at time 0 */
};

/* ---- engines ---- */

enum vp_scheduler_kind {
    VP_SCHED_VLLM_V1,
    VP_SCHED_VLLM_V0,
    VP_SCHED_SGLANG,
    VP_SCHED_LLAMA, /* llama-server: slots */
    VP_SCHED_STATIC /* whole batches, padded: transformers generate */
};

/* Settings of a scheduler under the names of vLLM; which of the others' flags they hold is said.
 * A count of 0 is "no limit" unless said otherwise. docs/SIMULATE.md: which scheduler uses what. */
struct vp_scheduler_settings {
    enum vp_scheduler_kind kind;
    uint32_t max_running;         /* max_num_seqs; max_running_requests; slots; batch size */
    uint32_t token_budget;        /* max_num_batched_tokens; max_prefill_tokens; n_batch */
    uint32_t chunk_tokens;        /* SGLang's chunked_prefill_size */
    bool chunked;                 /* V0, V1: a prompt may be computed in parts */
    uint32_t long_prefill_tokens; /* long_prefill_token_threshold */
    bool by_priority;             /* else first come, first served */
    double watermark;             /* share of the pool left free when a request is admitted */
    bool whole_prompt_fits;       /* V1: admitted when its whole prompt fits, not its first part */
    uint32_t max_model_len;       /* prompt + output of a request */
    /* SGLang: the share of what running requests may still write that admission reserves */
    double new_token_ratio, min_new_token_ratio, new_token_ratio_decay; /* the last per step */
    bool swap;              /* V0: preempted sequences go to host memory where they fit */
    uint32_t adapters;      /* LoRA: most adapters in a batch; 0: no limit */
    double adapter_load_us; /* to load one that is not in a slot; 0: not known, left out */
    uint32_t draft_tokens;  /* speculative decoding: tokens proposed per step; 0: none */
    double acceptance;      /* of one proposed token, those before it accepted; 0..1 */
};

struct vp_pool_settings { /* replicas that are alike */
    uint32_t replicas;
    struct vp_scheduler_settings scheduler;
    struct vp_cache_settings cache;
    struct vp_clock clock; /* shared by them; called for one at a time */
};

enum vp_routing {
    VP_ROUTE_ROUND_ROBIN,
    VP_ROUTE_LEAST_REQUESTS,
    VP_ROUTE_LEAST_TOKENS, /* of its requests so far: prompts, waiting or not, and output */
    VP_ROUTE_PREFIX        /* one id always to the same replica; others to the least tokens */
};

struct vp_link_settings { /* between prefill and decode replicas */
    double bytes_per_token, bytes_per_us, latency_us;
};

/* ---- what is watched ---- */

/* A request that has ended. */
struct vp_request_record {
    uint64_t number; /* in order of arrival */
    uint32_t replica, class_id;
    uint32_t prompt, output, prefix_hit, preemptions;
    double arrival_us, admitted_us, first_us, last_us; /* first_us: its first token is out */
    double longest_gap_us;                             /* between two tokens */
};

/* One iteration, or a run of decode iterations that nothing interrupted. */
struct vp_iteration_record {
    uint32_t replica;
    uint64_t iterations;
    double start_us, end_us;
    struct vp_iteration first; /* composition of the first of them */
    uint32_t running, waiting;
    uint64_t units_held; /* by sequences, at its end */
};

struct vp_sim_watch {
    void *state;
    void (*request)(void *state, const struct vp_request_record *record);     /* may be NULL */
    void (*iteration)(void *state, const struct vp_iteration_record *record); /* may be NULL */
    /* Every `stop_every` requests that end; true: that is enough. May be NULL. */
    bool (*stop)(void *state, double now_us, uint64_t ended);
    uint64_t stop_every;
};

struct vp_sim_settings {
    enum vp_loop loop;
    uint32_t concurrency;     /* closed loop */
    uint64_t seed;            /* of what the engines draw: accepted drafts */
    double warmup_us;         /* requests that arrive before are served, not counted, */
    uint64_t warmup_requests; /* nor are the first of them */
    double duration_us;       /* no arrivals behind it; what is under way is finished; 0: none */
    uint64_t request_limit;   /* arrivals; 0: none */
    double horizon_us;        /* the simulation ends here whatever is under way; 0: none */
    uint32_t classes;         /* at least 1 */
    uint32_t bins;            /* of the time series; 0: 120 */

    struct vp_pool_settings serve;   /* serves whole requests, or decodes them: */
    bool disaggregated;              /* prompts are computed by `prefill` first, */
    struct vp_pool_settings prefill; /* and their caches go over `link` */
    struct vp_link_settings link;
    enum vp_routing routing;

    bool step_by_step; /* never take a run of iterations at once: slow, for tests */
    bool checked;      /* prove the books after every event: slow, for tests */
    struct vp_sim_watch watch;
};

/* ---- results ---- */

/* What time was spent on, and what held requests back: shares of every iteration by its clock.
 * While somebody waits, the part of it that any iteration takes is put down to what he waits for:
 * more room would share it among more requests, the rest would only grow. */
enum vp_sim_limit {
    VP_LIMIT_IDLE,    /* nothing to do */
    VP_LIMIT_DECODE,  /* tokens are written: memory bandwidth */
    VP_LIMIT_PREFILL, /* prompts are computed, or wait for tokens of the batch */
    VP_LIMIT_MEMORY,  /* somebody waits for pages of the cache */
    VP_LIMIT_SLOTS,   /* somebody waits for a sequence slot (or an adapter's) */
    VP_LIMIT_COUNT
};

struct vp_sim_bin { /* means over replicas and the time of the bin */
    double start_us;
    double running, waiting; /* sequences of all replicas */
    double cache_share;      /* of the pool held by sequences, 0..1 */
    double busy_share;       /* of the time */
    double limit_share[VP_LIMIT_COUNT];
    double arrivals, finished, preemptions; /* requests in this bin */
    double prompt_tokens, output_tokens;    /* computed, given out */
    double recomputed_tokens, hit_tokens;
};

/* One entry per request that counts, in the order in which they ended. Microseconds. */
struct vp_sim_samples {
    uint64_t count;
    float *ttft_us, *queue_us, *tpot_us, *longest_gap_us, *e2e_us; /* tpot: 0 for one token */
    uint32_t *output;
    uint8_t *class_id; /* 255: and above */
};

struct vp_sim_totals {
    uint64_t arrived, finished;
    uint64_t refused_length; /* longer than max_model_len */
    uint64_t refused_pool;   /* longer than the cache */
    uint64_t dropped;        /* failed under way for want of cache (llama-server's shared one) */
    uint64_t unfinished;     /* under way or waiting when it ended */
    uint64_t prompt_tokens;  /* of finished requests */
    uint64_t output_tokens;
    uint64_t computed_tokens;   /* of prompts, recomputation included */
    uint64_t recomputed_tokens; /* computed before, lost by preemption */
    uint64_t hit_tokens;        /* of prompts, found in the cache */
    uint64_t host_hit_tokens;   /* of these, copied back from host memory */
    uint64_t preemptions, swaps;
    uint64_t iterations;
    uint64_t drafted_tokens, accepted_tokens;
    uint64_t adapter_loads;
};

struct vp_sim_result {
    struct vp_sim_totals all;     /* of the whole run */
    struct vp_sim_totals counted; /* after the warm-up */
    double end_us;                /* last event */
    double counted_from_us, last_arrival_us;
    double counted_us; /* from the end of the warm-up to the last event */
    struct vp_sim_samples samples;
    struct vp_sim_bin *bin; /* bins of bin_us each, from 0 */
    uint32_t bins;
    double bin_us;
    double busy_share, cache_share, cache_peak_share; /* means and the peak, after the warm-up */
    double limit_share[VP_LIMIT_COUNT];
    uint64_t running_peak, waiting_peak;
    uint32_t replicas; /* of all pools */
    bool stopped;      /* by the watch */
    bool exhausted;    /* closed loop: it ended because what came was refused */
};

/* Everything in the result lives in the arena. */
void vp_simulate(struct vp_sim_result *out, struct vp_arena *arena,
                 const struct vp_sim_settings *settings, const struct vp_request_stream *requests);

/* Quantiles (ascending shares in 0..1) of one kind of sample, of one class or of all (-1), by
 * linear interpolation. 0 where there are none. The arena is for scratch and is rewound. */
void vp_sim_quantiles(double *out, struct vp_arena *arena, const struct vp_sim_samples *samples,
                      const float *values, int class_id, const double *shares, uint32_t count);
double vp_sim_mean(const struct vp_sim_samples *samples, const float *values, int class_id);

/* Requests that kept all limits that are given (0: none). */
struct vp_sim_promise {
    double ttft_us, tpot_us, longest_gap_us, e2e_us;
};
uint64_t vp_sim_good(const struct vp_sim_samples *samples, const struct vp_sim_promise *promise,
                     int class_id);

/* Per second between the end of the warm-up and the last arrival, by whole bins: without the time
 * in which it empties, when nobody comes any more. Where no bin lies between them (a batch), of all
 * that counts. */
struct vp_sim_rates {
    double finished, prompt_tokens, output_tokens; /* prompts: as computed, hits left out */
};
void vp_sim_rates(struct vp_sim_rates *out, const struct vp_sim_result *result);

#endif
