/* What a training framework can be told about recomputation, one shape of setting after the other,
 * and what a setting does to one pipeline stage: which layers run again, what that needs and how
 * long it takes, by the judge. Shapes with a number mean the same number in all stages. */
#ifndef VP_PLAN_RECOMPUTE_SETTINGS_H
#define VP_PLAN_RECOMPUTE_SETTINGS_H

#include "planner/plan/train_chain.h"
#include "planner/recompute/recompute.h"

/* X(NAME, enumerated, "meaning"): enumerated: all numbers or sets are tried; else the stage is
 * solved by itself. k, m: the number. */
#define VP_RECOMPUTE_SHAPES                                                                        \
    X(NONE, true, "nothing")                                                                       \
    X(ALL, true, "every layer by itself")                                                          \
    X(KTH, true, "every k-th layer by itself, from layer k - 1 on")                                \
    X(UNIFORM, true, "segments of k layers, where k divides the layers of each stage")             \
    X(INTERVAL, true, "segments of k layers from a stage's first on, the last one shorter")        \
    X(BLOCK, true, "the first m layers of each stage, each by itself")                             \
    X(SELECTIVE, true, "the same parts of every layer")                                            \
    X(LAYERS, false, "any layers, each by itself")                                                 \
    X(SEGMENTS, false, "any layers, together or by themselves")                                    \
    X(PLAN, false, "any layers, together or by themselves, and parts of the others")

enum vp_recompute_shape {
#define X(name, enumerated, meaning) VP_SHAPE_##name,
    VP_RECOMPUTE_SHAPES
#undef X
        VP_SHAPE_COUNT
};

struct vp_recompute_setting {
    enum vp_recompute_shape shape;
    uint32_t number; /* KTH, UNIFORM, INTERVAL: k; BLOCK: m */
    uint32_t select; /* SELECTIVE: set of enum vp_selective */
};

/* A stage, and what its activations may take. */
struct vp_stage_chain {
    const struct vp_train_stage *plain; /* without recomputation */
    struct vp_train_chain chain;
    uint64_t budget_bytes; /* at the most: what is left beside static bytes */
};

/* What a setting does to a stage. */
struct vp_stage_plan {
    bool feasible;               /* within the budget */
    bool proven;                 /* no plan of the shape takes less time */
    struct vp_train_chain chain; /* that of the stage, with the options that the plan names */
    struct vp_recompute_plan plan;
    uint64_t peak_bytes, time; /* of activations of all micro batches in flight; ns of one */
};

bool vp_shape_is_enumerated(enum vp_recompute_shape shape);
/* Numbers 1..last are worth a try; sets: each that is within `last`. 0: the shape has none. */
uint32_t vp_shape_last(enum vp_recompute_shape shape, const struct vp_scenario *scenario,
                       const struct vp_stage_chain *stages, uint32_t count);
/* false: the stage cannot be told so. Without a plan within the budget out->feasible is false and
 * the plan is the one of the least peak. */
bool vp_setting_apply(struct vp_arena *arena, struct vp_stage_plan *out,
                      const struct vp_scenario *scenario, const struct vp_stage_chain *stage,
                      const struct vp_recompute_setting *setting, uint64_t budget_bytes);

#endif
