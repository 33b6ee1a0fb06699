/* What the parts of advice.c share. Private to advice*.c. */
#ifndef VP_PLAN_ADVICE_PARTS_H
#define VP_PLAN_ADVICE_PARTS_H

#include "planner/plan/result.h"

struct vp_advice {
    struct vp_ctx *ctx;
    const struct vp_result *result;
    const struct vp_scenario *scenario;
    enum vp_diag_id id; /* of the check that runs; it reports under no other */
};

/* What a check reads of a variant; its rows and devices are gone. */
struct vp_variant {
    enum vp_verdict verdict;
    uint64_t cache_tokens, cache_bytes; /* capacity of the pool; bytes of the tightest rank */
    uint64_t activation_bytes;
};

/* False: a size overflowed. */
bool vp_advice_evaluate(const struct vp_advice *a, struct vp_variant *out,
                        const struct vp_scenario *variant);

/* Written by the user, in the file or on the command line. */
static inline bool vp_advice_is_given(const struct vp_advice *a, enum vp_field field) {
    return vp_scenario_is_given(a->scenario, field);
}

/* Where the user wrote it; no position for a default. */
static inline const struct vp_pos *vp_advice_at(const struct vp_advice *a, enum vp_field field) {
    return &a->scenario->source[field].pos;
}

/* Where the model is described; no position for a profile, which the user did not write. */
const struct vp_pos *vp_advice_at_model(const struct vp_advice *a);
/* The pool is what the engine's share leaves, not a size that somebody gave or measured. */
bool vp_advice_share_decides(const struct vp_advice *a);
const char *vp_advice_gib(const struct vp_advice *a, uint64_t bytes);    /* "12.35" */
const char *vp_advice_count(const struct vp_advice *a, uint64_t number); /* "1,234" */
/* What the engine calls a setting: "max_num_batched_tokens", "chunked_prefill_size". */
const char *vp_advice_arg(const struct vp_advice *a, enum vp_field field);

/* Each check says nothing, or one diagnostic under a->id, mostly with a hint. */
void vp_advice_fp8_units(const struct vp_advice *a);
void vp_advice_fp8_fnuz(const struct vp_advice *a);
void vp_advice_sold_size(const struct vp_advice *a);
void vp_advice_packages(const struct vp_advice *a);
void vp_advice_partition(const struct vp_advice *a);
void vp_advice_partition_memory(const struct vp_advice *a);
void vp_advice_aiter(const struct vp_advice *a);

#endif
