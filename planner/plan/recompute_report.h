/* Where a training scenario should recompute: what each framework can be told and what that costs,
 * and beside it what people set by hand and the best plans of each class, on the stage with the
 * least room.
 *
 *     struct vp_recompute_report report;
 *     const char *fault = vp_recompute_of_scenario(arena, &report, scenario, budget, which);
 *
 * scenario is any that trains (struct vp_result's member of that name, or the one that was read);
 * its own train.recompute is left aside. Everything comes from the arena. */
#ifndef VP_PLAN_RECOMPUTE_REPORT_H
#define VP_PLAN_RECOMPUTE_REPORT_H

#include "planner/plan/recompute_frameworks.h"
#include "planner/recompute/policies.h"

struct vp_recompute_report {
    struct vp_recompute_problem problem;
    /* [VP_FRAMEWORK_PYTORCH] is the best plan, always there; others where they were asked for */
    struct vp_framework_plan framework[VP_FRAMEWORK_COUNT];
    bool known[VP_FRAMEWORK_COUNT];
    /* of the stage where the best plan is tightest; policies: when all frameworks were asked for */
    uint32_t stage;
    uint64_t activation_bytes; /* what its activations may take */
    uint64_t beside_bytes;     /* the rest of the budget: weights, states, workspaces, fragments */
    struct vp_policies policies;
    struct vp_chain_op peak_op; /* where the best plan's activations are at their most */
};

/* budget_bytes: of one device, everything that the process allocates included; 0: the scenario's
 * device. which: VP_FRAMEWORK_COUNT: all, and the policies. NULL, or why there is no answer. */
const char *vp_recompute_of_scenario(struct vp_arena *arena, struct vp_recompute_report *out,
                                     const struct vp_scenario *scenario, uint64_t budget_bytes,
                                     enum vp_framework which);

#endif
