/* A result that is built by hand, for tests of what shows results: a 70B model on one card, fits.
 */
#ifndef VP_TESTS_SAMPLE_RESULT_H
#define VP_TESTS_SAMPLE_RESULT_H

#include "planner/plan/result.h"

enum { SAMPLE_DEVICES = 4 };

struct sample {
    struct vp_arena arena;
    struct vp_diags diags; /* of the result */
    struct vp_scenario scenario;
    struct vp_model model;
    struct vp_device devices[SAMPLE_DEVICES];
    struct vp_assumption assumptions[2];
    struct vp_suggestion suggestions[2];
    struct vp_result result;
};

uint64_t mib(uint64_t n); /* bytes */
void sample_make(struct sample *f);
/* A row of the ledger. */
void sample_add(struct sample *f, enum vp_component component, enum vp_formula formula,
                uint32_t device, struct vp_amount bytes);
/* The devices' figures as folds over the ledger, as the planner makes them. */
void sample_settle(struct sample *f, uint32_t devices, uint64_t capacity, uint64_t usable);
/* The same load on a card of 64 GiB. */
void sample_make_short(struct sample *f);

#endif
