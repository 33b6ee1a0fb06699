/* The fastest recompute plan that a training framework can be told, for a step within a budget of
 * device memory; what it costs against the best plan that anything could run.
 *
 * Every setting of the framework is tried, or where it may choose by layer each stage is solved
 * exactly (recompute_settings.h). Because the chain of a stage does not know all that a step
 * allocates, plans are evaluated as whole steps, and what the activations may take is lowered until
 * the step fits by its upper end, or failing that by its likely figure: as planner/plan/optimal.h
 * does, for each shape of setting by itself.
 *
 * Times are the likely ones of one micro batch's forward and backward pass (train_chain.h); the
 * slowest stage sets the pace of a pipeline, so plans are compared by it. */
#ifndef VP_PLAN_RECOMPUTE_FRAMEWORKS_H
#define VP_PLAN_RECOMPUTE_FRAMEWORKS_H

#include "planner/plan/recompute_settings.h"
#include "planner/plan/result.h"

enum vp_framework {
#define X(name, text, title, shapes, pipelined, meaning) VP_FRAMEWORK_##name,
#include "planner/plan/recompute_frameworks.def"
#undef X
    VP_FRAMEWORK_COUNT
};

struct vp_framework_info {
    const char *name, *title, *meaning;
    uint32_t shapes, pipelined; /* sets of enum vp_recompute_shape */
};

struct vp_framework_plan {
    enum vp_framework framework;
    const char *refused; /* NULL, or why it cannot run this at all; then nothing else is filled */
    struct vp_recompute_setting setting;
    struct vp_stage_plan *stage;      /* by pipeline stage */
    uint64_t *budget_bytes;           /* by stage: what the activations were allowed in the end */
    struct vp_recompute_layer *layer; /* by layer of the model */
    uint32_t layers, stages;
    uint64_t slowest_ns, total_ns; /* of the slowest stage, of all */
    uint32_t tightest;             /* stage with the least room */
    struct vp_amount need;         /* of its device, evaluated as a step */
    enum vp_verdict verdict;
    bool proven; /* no setting of its shape is faster within those budgets */
};

/* What is to be placed. */
struct vp_recompute_problem {
    const struct vp_scenario *scenario; /* on a device of the budget, recomputing nothing */
    struct vp_stage_chain *stage;
    uint32_t stages;
    uint64_t budget_bytes; /* of one device, all that the process allocates included */
    enum vp_basis basis;   /* of the times; NONE: every layer takes as long */
    uint64_t base_ns;      /* the slowest stage's time without recomputation */
};

const struct vp_framework_info *vp_framework_info(enum vp_framework framework);
/* VP_FRAMEWORK_COUNT when there is none. */
enum vp_framework vp_framework_find(const char *name);

/* budget_bytes 0: the scenario's own device. NULL, or why there is nothing to place. */
const char *vp_recompute_problem_make(struct vp_arena *arena, struct vp_recompute_problem *out,
                                      const struct vp_scenario *scenario, uint64_t budget_bytes);
void vp_framework_plan(struct vp_arena *arena, struct vp_framework_plan *out,
                       const struct vp_recompute_problem *problem, enum vp_framework framework);

#endif
