/* Several models on one node: what each takes, which GPUs it gets, which share of a card to set.
 *
 * What a program takes of a card is asked of its own plan: the most that others may hold while it
 * still fits, by bisection over hardware.reserved (a plan that fits beside others fits beside
 * fewer; tests/unit/test_find.c. Not quite so in training, where the allocator's cache makes the
 * edge between fits and at risk uneven.) An engine with a share gets the smallest that its workload
 * fits in. At the end every program is planned again with the others' bytes as hardware.reserved,
 * and the answer is no better than the worst of these plans.
 *
 * llama.cpp counts with what it takes alone. A layout that the scenario says is kept; else for each
 * number of GPUs the one that takes least of a card. planner/plan/placing.h deals out the GPUs. */
#ifndef VP_API_PACK_H
#define VP_API_PACK_H

#include "api/search.h"
#include "planner/plan/packing.h"

struct vp_pack_input {
    const char *input, *name;
};

struct vp_pack_ask {
    const struct vp_pack_input *input;
    uint32_t inputs;
    const struct vp_setting *settings; /* without hardware.count */
    size_t setting_count;
    uint32_t count;                       /* GPUs of the node; 0: the most that an input says */
    const char *phase[VP_PLACING_PHASES]; /* names */
    uint64_t works[VP_PLACING_PHASES];    /* bit i: input i works in it */
    uint32_t phases;                      /* 0: all work all the time */
};

/* Faults of inputs are in the context's diagnostics. searches: room for one per input, to be closed
 * by vp_search_close in either case, after the answer was shown. */
enum vp_status vp_pack_find(struct vp_ctx *ctx, struct vp_pack *out, struct vp_search *searches,
                            const struct vp_pack_ask *ask);

#endif
