/* What a search over changes to a scenario found: plain values, filled by api/, shown by reports/.
 * Every proposal is a plan that was evaluated; its patch are settings that make the scenario so.
 * Text and lists live in the arena of the search. */
#ifndef VP_PLAN_CHANGES_H
#define VP_PLAN_CHANGES_H

#include "planner/plan/result.h"

/* A field and its new value, as --set takes them. */
struct vp_patch {
    const char *field, *value;
};

/* What public measurements say that a format costs; profiles/quality.yaml. Per cent. */
struct vp_risk {
    const char *format;       /* "weights fp8"; NULL: nothing is quantised */
    const char *unit;         /* "accuracy" or "perplexity" */
    bool known;               /* at least two independent publishers */
    double low, likely, high; /* loss; likely: the mean of the publishers' middles */
    uint32_t publishers;
    const char *by; /* "Neural Magic, NVIDIA" */
};

/* One change, by one lever. */
struct vp_change {
    const char *lever; /* "kv-cache" */
    const char *what;  /* "KV cache in another format" */
    const char *field, *from, *to;
    const char *speed, *money; /* costs in words; "none" */
    const char *quality;       /* the same; the figure is in risk */
    struct vp_risk risk;
    uint32_t order; /* of the lever: the cheaper to bear, the smaller */
    double size;    /* how far it goes, of levers with degrees; 0 otherwise */
};

/* A promise about latency, and how an estimate stands to it. Percentiles are held against the
 * estimated mean: a mean above the limit breaks it for sure, one below does not prove it. */
enum vp_slo_state {
    VP_SLO_NONE,     /* nothing was promised */
    VP_SLO_LIKELY,   /* the likely mean is within the limits */
    VP_SLO_OPEN,     /* only a bound is known, and it is within the limits */
    VP_SLO_UNLIKELY, /* the likely mean is above a limit, its low end is not */
    VP_SLO_BROKEN    /* even the low end of a mean is above its limit */
};

/* One candidate that was evaluated: a scenario's verdict, and what proposals are compared by. */
struct vp_trial {
    bool made; /* false: refused, or a size overflowed */
    enum vp_verdict verdict;
    enum vp_reason reason;
    char device[16]; /* the worst */
    struct vp_amount need;
    uint64_t usable_bytes, capacity_bytes, reserved_bytes; /* of it */
    int64_t headroom_bytes;                                /* likely */
    uint64_t gpus, tensor, pipeline, data, expert;
    const char *gpu;
    double price_per_hour;       /* of all GPUs; 0: not known */
    uint64_t context, sequences; /* serving; training: sequence length and global batch */
    struct vp_estimate ttft, tpot, e2e, step; /* ms */
    double time_ms; /* what is compared: tpot, or step per 1,000 tokens; 0: not known */
    enum vp_slo_state slo;
};

enum { VP_CHANGES_MOST = 3, VP_PATCHES_MOST = 24 };

struct vp_proposal {
    struct vp_change change[VP_CHANGES_MOST];
    uint32_t changes;
    struct vp_patch *patch;
    uint32_t patches;
    const char *command; /* to paste: vramplan plan ... */
    struct vp_trial trial;
    double kept;     /* share of the workload that is left: tokens in flight, 0..1 */
    bool risk_known; /* of all formats changed */
    double risk;     /* likely loss of all of them, per cent */
    /* --maximize: how far the quantity goes for sure, by the likely figures, and what ends it */
    uint64_t most, most_likely;
    bool capped;  /* by the model or by the cap of the search, not by memory */
    bool by_time; /* by a promise about latency, not by memory */
};

enum vp_question {
    VP_ASK_CHANGES, /* what makes it fit */
    VP_ASK_MOST,    /* how far a quantity goes */
    VP_ASK_FEWEST,  /* on how few GPUs, or for how little money */
};

struct vp_outcome {
    enum vp_question question;
    const char *goal;             /* "context", "concurrency", "batch"; "gpus", "cost"; NULL */
    const struct vp_result *base; /* the scenario as it is */
    uint32_t needed;              /* changes that the proposals have; 0: it fits as it is */
    struct vp_proposal *item;     /* the best first; none beats another in everything */
    uint32_t count;
    uint32_t beaten; /* fitted, but another proposal is as good in everything and better in one */
    uint64_t tried;  /* candidates that were evaluated */
    bool stopped;    /* the cap on candidates was reached */
    enum vp_verdict verdict; /* of the best */
    /* VP_ASK_CHANGES: limits of the scenario as it is; 0: none fits */
    uint64_t max_context, max_sequences, max_micro_batch;
    bool context_capped, sequences_capped;
    /* when nothing fits */
    uint64_t short_bytes; /* of the scenario as it is, at the upper end of its need */
    const char *short_text;
    struct vp_proposal *nearest; /* the candidate with the most headroom; NULL: none */
    struct vp_trial now;         /* the scenario as it is */
    struct vp_patch *slo;        /* limits asked for: name and text */
    uint32_t slos;
    enum vp_slo_state slo_state; /* of the best; of the scenario as it is where that fits */
    const char **notes;          /* what was left out, and why */
    uint32_t note_count;
};

#endif
