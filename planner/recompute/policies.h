/* The settings that people use and the best plans of each class, for one chain and budget, side by
 * side. */
#ifndef VP_RECOMPUTE_POLICIES_H
#define VP_RECOMPUTE_POLICIES_H

#include "planner/recompute/recompute.h"

/* X(name, class, "meaning"): class: the class whose best plan it is, CLASSES for a setting.
 * `number` of a row is its k, segments, m or option. */
#define VP_POLICIES                                                                                \
    X(NONE, CLASSES, "no recomputation")                                                           \
    X(EVERY, CLASSES, "every stage by itself")                                                     \
    X(SQRT, CLASSES, "segments of sqrt(N) stages")                                                 \
    X(UNIFORM, CLASSES, "Megatron uniform, best k")                                                \
    X(SEQUENTIAL, CLASSES, "torch checkpoint_sequential, best n")                                  \
    X(BLOCK, CLASSES, "first m stages by themselves")                                              \
    X(ONE_OPTION, CLASSES, "one tape option everywhere")                                           \
    X(EQUAL, EQUAL, "equal segments, best k")                                                      \
    X(SEGMENTS, SEGMENTS, "segments of any length")                                                \
    X(OPTIONS, OPTIONS, "a tape option per stage")                                                 \
    X(JOINT, JOINT, "segments and tape options")                                                   \
    X(MULTILEVEL, MULTILEVEL, "segments inside segments")                                          \
    X(PIPELINE, PIPELINE, "segments and options, pipelined")

enum vp_policy_kind {
#define X(name, class, meaning) VP_POLICY_##name,
    VP_POLICIES
#undef X
        VP_POLICY_COUNT
};

struct vp_policy {
    enum vp_policy_kind kind;
    const char *meaning;
    enum vp_recompute_class class; /* CLASSES: a setting, not a class */
    bool known;                    /* there is a plan; else what is below is 0 */
    bool fits;                     /* within the budget */
    uint64_t peak_bytes, time;     /* of the fastest that fits, else of the one of the least peak */
    uint64_t number;               /* its k, segments, m or option; 0: none */
    struct vp_recompute_answer answer; /* classes */
};

struct vp_policies {
    struct vp_policy items[VP_POLICY_COUNT];
    uint32_t count;
    uint64_t base_time;  /* of no recomputation */
    uint64_t tape_ratio; /* of the body: bytes of tapes and boundaries, in thousandths of those of
                            the boundaries */
};

/* With several microbatches in flight only the settings and the pipeline class are there. */
void vp_policies_find(struct vp_arena *arena, struct vp_policies *out, const struct vp_chain *chain,
                      uint64_t budget_bytes, uint64_t inflight);

/* The whole number nearest to the square root. */
uint32_t vp_policy_sqrt(uint32_t n);

#endif
