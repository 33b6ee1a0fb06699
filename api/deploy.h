/* The smallest deployment that keeps a promise under a traffic: over GPU types, layouts of a copy,
 * a few settings of the engine (deploy_settings.def) and numbers of copies. Every answer was
 * simulated: with iterations at their likely times it keeps the promise likely, at the slow end for
 * sure.
 *
 * A shape is a GPU, a layout and settings; its deployments have 1, 2, 3, ... copies of it. Shapes
 * are looked at one after the other, copies from a proven least number on, one by one. Of one GPU
 * the fewest devices are wanted, so that a shape which needs more than what is found is left alone.
 * Both prunings are proved by tests/unit/test_deploy.c, which compares with all deployments:
 *
 *   least copies   prompts and answers of the requests that must be in time cannot be computed
 *                  faster than by the fullest batches
 *   never          a request by itself is too slow: no number of copies helps
 *
 * Left out: copies of different shapes side by side, disaggregated prefill. */
#ifndef VP_API_DEPLOY_H
#define VP_API_DEPLOY_H

#include "api/search.h"
#include "api/simulate.h"

enum { VP_DEPLOY_MOST_GPUS = 64 };

struct vp_deploy_ask {
    struct vp_simulate_ask simulate; /* its threads: of the search; its progress is not called */
    const char *const *gpus;         /* names; NULL in the only item: the scenario's own */
    size_t gpu_count;
    bool every;             /* every shape gets its own answer: no shape is left alone because of
                               another. For tables and parts of searches. */
    bool plain;             /* without proven bounds: for tests */
    uint64_t shard, shards; /* the shard-th of so many parts of the shapes; 0: all */
    void (*progress)(void *state, uint32_t done, uint32_t all);
    void *progress_state;
};

enum vp_deploy_state {
    VP_DEPLOY_KEPT,    /* with `copies`, for sure */
    VP_DEPLOY_LIKELY,  /* with `copies`, by the likely figures; no number of copies for sure */
    VP_DEPLOY_BROKEN,  /* with no number of copies up to the most GPUs */
    VP_DEPLOY_BEATEN,  /* another shape needs fewer GPUs */
    VP_DEPLOY_NO_FIT,  /* it does not fit */
    VP_DEPLOY_REFUSED, /* the engine does not start so, or it is not simulated */
    VP_DEPLOY_OPEN     /* only the least that iterations take is known */
};
const char *vp_deploy_state_name(enum vp_deploy_state state); /* "kept", "likely", ... */

struct vp_deployment {
    uint32_t row;                        /* of the shape */
    const char *gpu, *layout, *settings; /* id; "4 tensor"; "max_num_seqs 64", "" */
    struct vp_setting *set;
    uint32_t sets;
    uint64_t each, tensor, pipeline, data, expert; /* devices of a copy, and how they are divided */
    enum vp_deploy_state state;
    const char *why;         /* NO_FIT, REFUSED, BROKEN */
    uint64_t least_copies;   /* proven */
    uint64_t copies, gpus;   /* KEPT, LIKELY */
    uint64_t likely_copies;  /* by the likely figures; 0: none */
    double price_per_hour;   /* of all; 0: not known */
    double cost_per_million; /* output tokens; 0: not known */
    double margin;           /* of the tightest promise, likely */
    double tightest_ms;      /* of it, likely */
    double tightest_slow_ms; /* at the slow end; 0: not asked */
    uint32_t tightest;       /* index of the promise */
    double output_tokens_per_s;
};

struct vp_deployments {
    struct vp_deployment *item; /* of this part, in the order of the shapes */
    uint32_t count;
    uint32_t *best; /* indices: of every GPU the smallest, the best of all first */
    uint32_t best_count;
    uint64_t simulated;  /* deployments that were */
    uint64_t left_alone; /* deployments of shapes up to the most GPUs that were not */
    struct vp_slo slo;
    const char *traffic; /* in words */
};

/* search: opened over the input, with prices; cost: ranked by money. Results live in the context's
 * arena. */
enum vp_status vp_deploy_find(struct vp_search *search, struct vp_deployments *out,
                              const struct vp_deploy_ask *ask, bool cost);

/* ---- bounds, for the search and its tests ---- */

/* What is known of the requests without simulating them. */
struct vp_load {
    double requests;      /* that come at least */
    double span_s;        /* until the last of them */
    double first_s;       /* a limit on first tokens: seconds, and the share that must keep it; */
    double first_share;   /* 0: none */
    double prompt_tokens; /* of that share's shortest prompts, what must be computed of them */
    double token_s, token_share; /* the same of the time per token */
    double both_share;           /* of requests that keep both */
    double output_tokens;        /* of the shortest answers of these */
    double longest_output;       /* among them */
    uint32_t prompt_at_share;    /* at least 1 - first_share of the prompts are as long */
    uint32_t least_context;      /* of any answer */
};
void vp_load_of(struct vp_load *out, struct vp_arena *arena,
                const struct vp_simulation *simulation);
/* Copies below which the promise is broken for certain; UINT64_MAX: it is with any number. */
uint64_t vp_deploy_least_copies(const struct vp_load *load, const struct vp_serving_copy *copy);

#endif
