/* The inside of the simulation: requests under way, engines (replicas) and their queues. Shared by
 * simulator.c (time, arrivals, routing), sim_engine.c (iterations) and the schedulers. */
#ifndef VP_SERVING_SIM_PARTS_H
#define VP_SERVING_SIM_PARTS_H

#include "planner/base/random.h"
#include "planner/serving/sim_metrics.h"
#include "planner/serving/simulator.h"

struct vp_sim;
struct vp_sim_engine;

/* What a sequence whose prompt was computed elsewhere holds there, until it has been fetched. */
struct vp_sim_sent {
    struct vp_cache_seq cache;
    struct vp_sim_engine *from;
    struct vp_sim_sent *next; /* free */
    uint32_t tokens;
};

/* A request under way. Its tokens are prompt + made, of which `computed` are in the cache; when all
 * are, the next one comes out. (In padded batches the cache has more.) */
struct vp_sim_seq {
    struct vp_sim_seq *next; /* in the waiting queue, or free */
    struct vp_cache_seq cache;
    uint64_t number, prefix_id;
    double arrival_us, queued_us, admitted_us, first_us, last_us, longest_gap_us;
    double ready_us;          /* its cache comes from host memory or over the link until then */
    struct vp_sim_sent *sent; /* its cache is still on the replica that computed the prompt */
    uint32_t prompt, output, shared_prefix, class_id;
    int32_t priority;
    uint32_t made;     /* output tokens */
    uint32_t computed; /* tokens in the cache */
    uint32_t chunk;    /* computed in the iteration under way; 0: none */
    uint32_t lost;     /* tokens that a preemption lost: computing them again is no progress */
    uint32_t loaded;   /* tokens that will come over the link when it is admitted */
    uint32_t hit, preemptions;
    bool counted, admitted;
};

/* Waiting requests: first come first served with a way back to the front, or by priority. */
struct vp_wait_queue {
    bool by_priority; /* then by number */
    struct vp_sim_seq *first, *newest;
    struct vp_sim_seq **heap;
    uint32_t count, room;
};

void vp_wait_push(struct vp_wait_queue *queue, struct vp_arena *arena, struct vp_sim_seq *seq);
void vp_wait_push_front(struct vp_wait_queue *queue, struct vp_arena *arena,
                        struct vp_sim_seq *seq);
struct vp_sim_seq *vp_wait_peek(const struct vp_wait_queue *queue); /* NULL: empty */
struct vp_sim_seq *vp_wait_pop(struct vp_wait_queue *queue);
/* a goes before b, where priority decides. */
bool vp_wait_before(const struct vp_sim_seq *a, const struct vp_sim_seq *b);

/* Why requests still wait after the next iteration was put together. */
enum vp_sim_blocked { VP_BLOCKED_NOT, VP_BLOCKED_TOKENS, VP_BLOCKED_MEMORY, VP_BLOCKED_SLOTS };

struct vp_scheduler {
    /* Puts the next iteration together: admits and preempts, adds to the batch with chunks. */
    void (*plan)(struct vp_sim_engine *engine);
    /* Whether a request that arrives changes the next plan, be it only by what it says of those
     * that wait. Asked before it is queued, and of steady engines. */
    bool (*hears)(const struct vp_sim_engine *engine);
    /* After a run of `iterations` that only decoded. May be NULL. */
    void (*decoded)(struct vp_sim_engine *engine, uint64_t iterations);
    bool publishes_early; /* a prefix can be hit once it is scheduled, not once it is computed */
    bool whole_batches;   /* nobody leaves before all are done */
};

struct vp_sim_slot { /* llama-server */
    struct vp_sim_seq *seq;
    uint64_t prefix_id; /* of what its cache still has */
    uint32_t tokens;
    double used_us;
};

struct vp_sim_engine {
    struct vp_sim *sim;
    uint32_t index;
    bool prefill_only; /* hands a sequence over once its prompt is computed */
    const struct vp_pool_settings *settings;
    const struct vp_scheduler *scheduler;
    struct vp_block_pool *pool;
    struct vp_wait_queue waiting;
    struct vp_sim_seq **running;  /* in order of admission; with a chunk: in the iteration */
    uint32_t running_count, room; /* of running, swapped and spare */
    struct vp_sim_seq **swapped, **spare;
    uint32_t swapped_count;
    struct vp_random random;
    uint64_t keep_units;   /* the watermark */
    uint64_t handed_units; /* of sequences whose cache waits for a replica that decodes */

    /* the iteration under way, or a run of them */
    struct vp_iteration iteration;
    enum vp_sim_blocked blocked;
    struct vp_decode_run run;
    uint64_t iterations; /* 0: none under way */
    double now_us;       /* of the plan */
    double start_us, end_us;
    double extra_us; /* copies that the iteration waits for */
    double wake_us;  /* something that it waits for is there; INFINITY: nothing */
    double idle_us;  /* since when nothing runs */
    bool preempted;  /* in this plan */
    bool steady;     /* set by the plan: nothing but an end or an arrival changes the next one */
    bool at_work;    /* between two iterations */
    uint64_t held_before;
    double least_us; /* an iteration with one sequence: what larger ones share */

    /* for routing */
    uint64_t live_requests, live_tokens;
    double link_free_us, host_free_us; /* the copies before have ended */

    /* of one scheduler each */
    double new_token_ratio;
    enum vp_sim_blocked full; /* SGLang: why nobody is admitted before a request has ended */
    struct vp_sim_slot *slot;
    uint32_t *adapter; /* classes that have a slot, used longest ago first; 0: free */
};

struct vp_delivery { /* a request on its way to its scheduler, or a cache that has been fetched */
    double at_us;
    uint64_t number; /* order among equals */
    struct vp_sim_seq *seq;
    struct vp_sim_engine *to;
    struct vp_sim_sent *sent;
};

struct vp_sim {
    const struct vp_sim_settings *settings;
    const struct vp_request_stream *requests;
    struct vp_arena *arena;
    struct vp_sim_metrics metrics;
    struct vp_sim_engine *engine;
    uint32_t engines, prefill_engines; /* the prefill replicas come first */
    uint32_t next_prefill, next_serve; /* round robin */
    struct vp_sim_seq *free_seqs;
    struct vp_sim_sent *free_sent;
    struct vp_delivery *delivery; /* heap */
    uint32_t deliveries, delivery_room;
    uint64_t delivery_number;
    struct vp_request pending; /* the next arrival */
    bool has_pending;
    uint64_t arrived, ended;
    double now_us;
    bool stopped;
    bool exhausted; /* closed loop: what comes is refused, so nothing more is asked for */
};

/* ---- sim_engine.c ---- */

void vp_engine_init(struct vp_sim_engine *engine, struct vp_sim *sim, uint32_t index,
                    const struct vp_pool_settings *settings);
/* A request that this engine could never serve. */
bool vp_engine_refuses(const struct vp_sim_engine *engine, const struct vp_sim_seq *seq,
                       bool *too_long);
/* Into its queue; starts it, or ends a run of iterations early. */
void vp_engine_queue(struct vp_sim_engine *engine, struct vp_sim_seq *seq, double now_us);
/* Its event: the iteration ends, the next one begins. */
void vp_engine_event(struct vp_sim_engine *engine, double now_us);
double vp_engine_next_us(const struct vp_sim_engine *engine); /* INFINITY: none */
uint64_t vp_engine_tokens(const struct vp_sim_engine *engine, double now_us);

/* for schedulers */
uint32_t vp_seq_known(const struct vp_sim_seq *seq); /* its tokens */
bool vp_seq_decodes(const struct vp_sim_seq *seq);   /* one token is to be computed: the last */
void vp_engine_add(struct vp_sim_engine *engine, struct vp_sim_seq *seq, uint32_t chunk);
/* The first of the waiting, which was let in, begins to run. */
void vp_engine_admit(struct vp_sim_engine *engine, struct vp_sim_seq *seq, uint32_t computed,
                     const struct vp_cache_hit *hit);
/* It loses its cache and waits at the front. It must not be in `running` any more. */
void vp_engine_preempt(struct vp_sim_engine *engine, struct vp_sim_seq *seq);
/* Of running, in order; the index is gone. */
struct vp_sim_seq *vp_engine_remove(struct vp_sim_engine *engine, uint32_t index);
/* What the cache has of a waiting sequence; loaded: what came over the link. */
struct vp_cache_hit vp_engine_look_up(struct vp_sim_engine *engine, const struct vp_sim_seq *seq,
                                      uint32_t *computed);
/* Its cache is still on its way; the engine wakes when it is there. */
bool vp_engine_waits(struct vp_sim_engine *engine, const struct vp_sim_seq *seq);
/* Whether the class's adapter has a slot or can have one: one that nobody in the batch uses. */
bool vp_engine_adapter(struct vp_sim_engine *engine, const struct vp_sim_seq *seq);
void vp_engine_use_adapter(struct vp_sim_engine *engine, const struct vp_sim_seq *seq);
/* What counts at this time; NULL: nothing yet. */
struct vp_sim_totals *vp_engine_counted(struct vp_sim_engine *engine);

extern const struct vp_scheduler VP_SCHEDULER_VLLM_V1, VP_SCHEDULER_VLLM_V0, VP_SCHEDULER_SGLANG,
    VP_SCHEDULER_LLAMA, VP_SCHEDULER_STATIC;

/* ---- simulator.c ---- */

void vp_sim_end(struct vp_sim *sim, struct vp_sim_engine *engine, struct vp_sim_seq *seq,
                double now_us);
/* It fails: the engine has no room for what it has begun. */
void vp_sim_drop(struct vp_sim *sim, struct vp_sim_engine *engine, struct vp_sim_seq *seq);
/* Its prompt is computed: it goes to a replica that decodes, its cache stays until that one has
 * room.
 */
void vp_sim_hand_over(struct vp_sim *sim, struct vp_sim_engine *engine, struct vp_sim_seq *seq);
/* There is room now; sets when it will be there. */
void vp_sim_fetch(struct vp_sim *sim, struct vp_sim_seq *seq, double now_us);

#endif
