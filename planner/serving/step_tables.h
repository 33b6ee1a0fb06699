/* What the times of simulated iterations are looked up in (step_time.h): made by step_tables.c,
 * read by step_time.c and step_bound.c, nobody else. */
#ifndef VP_SERVING_STEP_TABLES_H
#define VP_SERVING_STEP_TABLES_H

#include "planner/serving/step_curve.h"
#include "planner/serving/step_time.h"

/* Microseconds of the full pass, all layers and the engine's constants included. */
struct vp_step_tables {
    struct vp_curve tokens; /* by tokens of the fullest data rank: products, collectives, streams */
    struct vp_curve experts; /* by tokens of all data ranks: routed experts */
    struct vp_curve head;    /* by tokens that need logits */
    struct vp_sheet decode;  /* by sequences and their mean context: attention to one token each, */
    struct vp_sheet verify;  /* to a token and its drafts */
    struct vp_sheet draft;   /* one pass of the draft over them, all of it */
    struct vp_sheet prompt;  /* by fresh and past tokens: attention of one prompt, */
    struct vp_sheet prompts; /* of each further one beside it */
    double fixed_us;         /* host and layers, each iteration */
    double sequence_us;
    double first_us, first_token_us, request_us, wait_steps;
    double typical_context; /* of a running sequence, where the scenario says it; 0 */
    double most_running;
    double budget; /* tokens of an iteration */
    double ranks, stages, drafts;
};

#endif
