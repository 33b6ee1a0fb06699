/* What runs say of an engine's overheads, put into that engine's profile: this card gets a row of
 * its own, above the row of its class, with intervals around what was measured.
 *
 * The row keeps what each run would have needed (`runs`), so that every run more counts as much as
 * the first. Likely is the median of the class's value and all runs. The interval holds all runs,
 * the class's value, and beyond these the class's half-widths divided by the root of runs + 1. A
 * class interval is the spread over cards, models and settings; runs of one card differ in models
 * and settings, too, so it narrows no faster than what a few runs can show.
 *
 * Left out: activation and cache rules, which depend on the model more than on the card. */
#ifndef VP_IMPORT_ENGINE_REFIT_H
#define VP_IMPORT_ENGINE_REFIT_H

#include "planner/import/engine_profile.h"

/* predicted, measured: bytes of the same quantity. */
struct vp_refit_term {
    bool known;
    uint64_t predicted, measured;
    const char *how; /* NULL: logged as such; else what it was computed from */
};

struct vp_refit {
    struct vp_refit_term non_torch; /* outside torch, of this number of tensor-parallel ranks */
    struct vp_refit_term graphs;    /* all layers */
    struct vp_refit_term load;      /* "loading took"; predicted with the class's excess */
    const char *provenance;         /* what the row's source is: "vllm 0.19, Llama-3.1-8B" */
};

struct vp_refit_change {
    const char *key;              /* "non_torch_group" */
    uint64_t before[3], after[3]; /* MiB */
};

enum { VP_REFIT_CHANGES = 4 };

struct vp_refit_result {
    struct vp_node *profile; /* the whole profile, to be written as a user's */
    const char *name;        /* of the new row */
    const char *class_name;  /* of the one that it was made from */
    uint64_t runs;
    struct vp_refit_change change[VP_REFIT_CHANGES];
    uint32_t changes;
};

/* Engines whose overheads are no such rows (llama.cpp, training) are VP_D_UNMODELLED. */
enum vp_status vp_engine_refit(struct vp_ctx *ctx, struct vp_refit_result *out,
                               const struct vp_scenario *scenario, const struct vp_refit *refit);

#endif
