/* The answer: what reports, user interfaces and gates see. Filled by vp_plan_run, not changed
 * afterwards; lives in the arena of the context it was made in. */
#ifndef VP_PLAN_RESULT_H
#define VP_PLAN_RESULT_H

#include "planner/latency/latency.h"
#include "planner/memory/ledger.h"
#include "planner/memory/llama.h"
#include "planner/memory/train_stage.h"
#include "planner/model/scenario.h"

enum vp_verdict { VP_FITS, VP_AT_RISK, VP_DOES_NOT_FIT };

/* Why it does not fit, or may not: the first that applies is told first. */
enum vp_reason {
    VP_REASON_NONE,
    VP_REASON_NO_FREE_MEMORY, /* free memory below what the engine asks for at start-up */
    VP_REASON_WEIGHTS,        /* weights and overheads alone exceed the budget */
    VP_REASON_ADMISSION,      /* one sequence of max_model_len does not fit the pool */
    VP_REASON_CONCURRENCY,    /* the workload's sequences do not fit at once */
    VP_REASON_GRAPHS,         /* what comes on top of the engine's budget exceeds the device */
    VP_REASON_TRANSIENTS,     /* forward passes may exceed what the static share leaves */
    VP_REASON_STATE_SLOTS,    /* more sequences than state pages */
    VP_REASON_BUFFERS,        /* a device's buffers exceed it (llama.cpp) */
    VP_REASON_REFUSED,        /* the engine does not start with these settings */
    VP_REASON_PEAK,           /* the peak of a training step exceeds the device */
    VP_REASON_HOST,           /* what goes to host memory exceeds it */
    VP_REASON_BUDGET          /* the scenario's own budget is exceeded */
};

struct vp_device {
    char id[16];                /* "gpu0": first rank of the stage; "host" */
    bool host;                  /* host memory of one machine: no ranks, no stage */
    uint32_t first_rank, ranks; /* ranks that carry equal loads */
    uint32_t stage;
    struct vp_amount component[VP_COMPONENT_COUNT]; /* at its own peak over time */
    enum vp_confidence confidence[VP_COMPONENT_COUNT];
    bool present[VP_COMPONENT_COUNT];
    enum vp_step peak_step;
    struct vp_amount need;   /* at the peak */
    uint64_t capacity_bytes; /* total of the device */
    uint64_t usable_bytes;   /* what the engine's policy leaves for the need */
    uint64_t reserved_bytes; /* what the engine will have taken when it runs */
};

/* One layer type of the KV cache. */
struct vp_kv_group {
    const char *kind; /* "full", "window", "chunk", "latent", "state" */
    uint64_t layers, groups, padding_layers;
    uint64_t window;
    uint64_t bytes_per_token;    /* one layer, per rank; state: 0 */
    uint64_t state_bytes;        /* one layer and sequence, per rank */
    uint64_t pages_per_sequence; /* at the context, one group */
};

enum { VP_KV_GROUPS = 8 };

struct vp_kv_report {
    bool known;
    uint64_t bytes_per_token;          /* growing part, per rank */
    uint64_t state_bytes_per_sequence; /* per rank */
    uint64_t block_size, blocks, tokens;
    uint64_t page_bytes;            /* one block over all layers of a group set */
    uint64_t max_concurrency_milli; /* at serve.context, in 1/1000 */
    uint64_t max_context;           /* one sequence */
    struct vp_kv_group group[VP_KV_GROUPS];
    uint32_t group_count;
};

/* Predicted log quantities, whichever of them the engine prints. Bytes unless the name says
 * otherwise. num_gpu_blocks: blocks (vLLM), token slots (SGLang), bytes (transformers). */
struct vp_engine_report {
    struct vp_amount weights, activation_peak, non_torch, graph, available_kv;
    bool available_negative; /* nothing is left for the cache: available_kv is 0 */
    struct vp_amount num_gpu_blocks, kv_cache_tokens; /* counts */
    uint64_t block_size;
    struct vp_amount max_concurrency_milli;   /* at max_model_len */
    struct vp_amount estimated_max_model_len; /* tokens */
    uint64_t requested_bytes;                 /* total x utilisation */
    bool graphs_in_budget;
};

/* When a training step takes most, and what other instants take. */
struct vp_instant {
    struct vp_amount bytes; /* allocated */
    enum vp_step step;
    uint32_t layer;    /* at work; VP_NO_LAYER: none */
    const char *cause; /* "backward of block 31, while its tape is rebuilt" */
};

/* One pipeline stage of a training step. */
struct vp_training_stage {
    struct vp_train_stage numbers;
    struct vp_amount allocated;      /* between two steps */
    struct vp_amount allocated_peak; /* by the framework's allocator */
    struct vp_amount reserved_peak;
    struct vp_instant peak;
    /* candidates: the largest amount in each phase of the step, VP_STEP_FORWARD first */
    struct vp_instant candidate[VP_STEP_COUNT - VP_STEP_FORWARD];
    uint64_t first_step_peak_bytes; /* of the first step, which begins without optimizer states */
    uint64_t component_at_peak[VP_COMPONENT_COUNT];
};

struct vp_training_report {
    struct vp_training_stage *stage; /* NULL: not a training plan */
    uint32_t stages;
    uint32_t worst;
};

/* What the need would become. */
struct vp_prices {
    uint64_t per_1k_context;  /* +1024 tokens for every sequence; bytes on the worst device */
    uint64_t per_sequence;    /* one more sequence of serve.context */
    uint64_t max_context;     /* at serve.concurrency; 0: none */
    uint64_t max_concurrency; /* at serve.context; 0: none */
    bool context_capped;      /* max_context is the model's own limit */
};

/* parameters x bytes + activation bytes x batch x sequence + KV: the rule of thumb. */
struct vp_first_order {
    uint64_t weights_bytes, kv_bytes, activation_bytes, total_bytes;
    int64_t misses_bytes; /* need.likely - total */
};

struct vp_assumption {
    const char *field, *value, *why;
    enum vp_origin origin; /* DEFAULT, DERIVED or PROFILE */
};

struct vp_suggestion {
    const char *change, *from, *to;
    uint64_t need_bytes;
    int64_t headroom_bytes;
    const char *quality, *speed, *money; /* cost in words */
    const char *patch_field, *patch_value;
    uint64_t patch_count; /* hardware.count that goes with it; 0: as it is */
};

struct vp_result {
    const struct vp_scenario *scenario;
    const char *mode; /* "serve", "train" */
    enum vp_verdict verdict;
    enum vp_reason reason;
    const char *reason_text; /* one sentence with the figures */
    uint64_t params_total, params_active, params_trainable;

    uint32_t worst;            /* index of the device with the least headroom, the host aside */
    struct vp_device *devices; /* one per stage, then the host where it keeps something */
    uint32_t device_count;
    int64_t headroom_bytes; /* of the worst device, by likely figures */

    struct vp_ledger ledger;
    struct vp_kv_report kv;
    struct vp_engine_report report;
    const struct vp_llama_plan *llama; /* llama.cpp and ollama; NULL otherwise */
    struct vp_training_report training;
    struct vp_latency latency;
    struct vp_prices prices;
    struct vp_first_order first_order;
    struct vp_assumption *assumptions;
    uint32_t assumption_count;
    struct vp_suggestion *suggestions;
    uint32_t suggestion_count;
    const struct vp_diags *diags; /* of the scenario's import and plan */
};

const char *vp_verdict_name(enum vp_verdict verdict); /* "fits", "at-risk", "does-not-fit" */

#endif
