/* What fits: the settings of llama.cpp and ollama that a scenario leaves open, chosen so that every
 * device holds its part. Layers on the GPUs, context, type of the cache, sequences at once, tokens
 * of a physical batch, experts that stay on the host; several GPUs share layers by the engine's own
 * rule, and where something does not fit so, layer by layer. What the user gave stays as it is.
 *
 * Exact: every candidate is a scenario that vp_plan_evaluate sizes. Bisection only over what never
 * lowers a need (context, sequences) and over the bytes of weights and caches, which grow with
 * every layer that comes to the GPUs; the whole need does not (a GPU without the last layer needs
 * room to copy that layer over), so layers and experts are tried one by one from there.
 *
 * A candidate fits for sure when the upper end of the need, runtime included, stays within each GPU
 * and so do the buffers with a margin beside them. The margin (fit_target, 1024 MiB) is llama.cpp's
 * own and stands for what is not counted there, the runtime among it: so it is not added to the
 * runtime. At risk is what fits by the likely figures, without a margin.
 *
 * A candidate here is a handful of settings; vp_fit_llama_scenario makes a scenario of one, for a
 * full plan. Nothing is printed; lists live in the arena. */
#ifndef VP_PLAN_FIT_LLAMA_H
#define VP_PLAN_FIT_LLAMA_H

#include "planner/plan/plan.h"

/* What ranks first. */
enum vp_fit_goal {
    VP_FIT_BALANCED, /* cache of 8 bits or more, all on the GPUs, batch, layers, context */
    VP_FIT_CONTEXT,
    VP_FIT_LAYERS,
    VP_FIT_SLOTS
};

/* What a scenario says itself. */
struct vp_fit_fixed {
    bool context; /* serve.context or ctx_size */
    bool total;   /* it is ctx_size, over all sequences */
    bool layers, experts, cache, slots, batch;
    bool split; /* how layers are divided over GPUs, or there is nothing to divide */
};

struct vp_fit_settings {
    uint64_t gpu_layers;   /* the output layer counts as one */
    uint64_t host_experts; /* experts of so many first layers stay on the host */
    uint64_t context;      /* tokens of each sequence */
    uint64_t slots, ubatch;
    enum vp_dtype type_k, type_v;
    uint32_t shares; /* tensor_split: layers of each GPU; 0: divided by the engine's own rule */
    uint16_t share[VP_LLAMA_MAX_DEVICES];
};

/* Which quantity was driven as far as it goes. */
enum vp_fit_question {
    VP_FIT_Q_CONTEXT, /* the longest context with these layers */
    VP_FIT_Q_LAYERS,  /* the most layers at this context */
    VP_FIT_Q_EXPERTS, /* the fewest experts on the host, all layers on the GPUs */
    VP_FIT_Q_SLOTS    /* the most sequences */
};

struct vp_fit_proposal {
    struct vp_fit_settings set;
    enum vp_fit_question question;
    bool sure;    /* false: at risk */
    bool further; /* by the likely figures the quantity goes on to: */
    uint64_t further_to;
    uint32_t worst;        /* GPU with the least room; without a GPU the host */
    struct vp_amount need; /* bytes of it */
    int64_t spare_bytes;   /* what is left of it at the upper end */
    uint64_t host_bytes;   /* likely, mapped weights included */
};

/* What the user gave and what had to give way. */
enum vp_fit_freed {
    VP_FIT_CACHE,
    VP_FIT_UBATCH,
    VP_FIT_PARALLEL,
    VP_FIT_MOE,
    VP_FIT_NGL,
    VP_FIT_CTX,
    VP_FIT_FREED
};

enum { VP_FIT_PROPOSALS = 128 };

struct vp_fit_llama {
    struct vp_fit_fixed fixed;
    enum vp_fit_goal goal;
    uint64_t margin_bytes; /* on every GPU */
    uint64_t layer_slots;  /* blocks + 1 */
    bool experts;          /* experts may stay on the host */

    struct vp_fit_proposal item[VP_FIT_PROPOSALS]; /* the best first */
    uint32_t count, sure;
    /* when nothing fits: the best for each single setting given that would have to give way */
    struct vp_fit_proposal freed[VP_FIT_FREED];
    bool has_freed[VP_FIT_FREED];
    /* and what came nearest */
    struct vp_fit_settings nearest;
    const struct vp_result *nearest_plan; /* NULL: every candidate overflowed */
    uint32_t short_device;                /* index of its devices */
    uint64_t short_bytes;                 /* 0: it is refused, or over the scenario's own budget */
    uint64_t tried;                       /* candidates that were sized */
};

/* What a scenario of llama.cpp or ollama says itself. */
struct vp_fit_fixed vp_fit_llama_fixed(const struct vp_scenario *scenario);
/* The search. False: the model's sizes exceed 64 bits. */
bool vp_fit_llama_find(struct vp_arena *arena, struct vp_fit_llama *out,
                       const struct vp_scenario *scenario, enum vp_fit_goal goal);
/* What stays given when one of them gives way. */
struct vp_fit_fixed vp_fit_llama_freed(const struct vp_fit_fixed *fixed, enum vp_fit_freed freed);
/* The scenario with these settings, as if the user had said all of them. */
struct vp_scenario vp_fit_llama_scenario(const struct vp_scenario *scenario,
                                         const struct vp_fit_fixed *fixed,
                                         const struct vp_fit_settings *set);

#endif
