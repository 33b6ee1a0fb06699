#include "planner/plan/recompute_report.h"

#include "planner/base/sum.h"
#include "planner/recompute/judge.h"

/* Whether train.recompute can say this plan: layers by themselves, or segments from the first layer
 * on and nothing behind them; no layer in parts. */
static bool is_scenario_setting(const struct vp_framework_plan *p) {
    bool alone = true, prefix = true;
    for (uint32_t i = 0; i < p->layers; i++) {
        const struct vp_recompute_layer *layer = &p->layer[i];
        if (!layer->recomputed && layer->selective)
            return false;
        alone = alone && (!layer->recomputed || layer->segment == i);
        prefix = prefix && (i == 0 || !layer->recomputed || p->layer[i - 1].recomputed);
    }
    return alone || prefix;
}

static void plan(struct vp_arena *arena, struct vp_recompute_report *out,
                 enum vp_framework framework) {
    const struct vp_framework_plan *best = &out->framework[VP_FRAMEWORK_PYTORCH];
    struct vp_framework_plan *p = &out->framework[framework];
    if (out->known[framework])
        return;
    out->known[framework] = true;
    if (framework == VP_FRAMEWORK_VRAMPLAN && is_scenario_setting(best)) {
        *p = *best;
        p->framework = framework;
        return;
    }
    vp_framework_plan(arena, p, &out->problem, framework);
}

static bool is_better(const struct vp_framework_plan *a, const struct vp_framework_plan *b) {
    if (a->verdict != b->verdict)
        return a->verdict < b->verdict;
    if (a->verdict == VP_DOES_NOT_FIT)
        return a->need.likely < b->need.likely;
    return a->slowest_ns < b->slowest_ns;
}

/* Whatever a framework can be told, PyTorch can be told too: a plan that evaluated as a step leaves
 * room for less recomputation is the best one. */
static void take_faster(struct vp_recompute_report *out) {
    struct vp_framework_plan *best = &out->framework[VP_FRAMEWORK_PYTORCH];
    for (enum vp_framework f = 0; f < VP_FRAMEWORK_COUNT; f++) {
        const struct vp_framework_plan *p = &out->framework[f];
        if (!out->known[f] || p->refused || !is_better(p, best))
            continue;
        *best = *p;
        best->framework = VP_FRAMEWORK_PYTORCH;
        best->setting = (struct vp_recompute_setting){.shape = VP_SHAPE_PLAN};
        best->proven = false;
    }
}

static void find_peak(struct vp_arena *arena, struct vp_recompute_report *out) {
    const struct vp_stage_plan *best = &out->framework[VP_FRAMEWORK_PYTORCH].stage[out->stage];
    struct vp_chain_schedule schedule;
    struct vp_judgement j;
    vp_plan_schedule(arena, &schedule, &best->chain.chain, &best->plan);
    vp_judge(arena, &j, &best->chain.chain, &schedule);
    out->peak_op = schedule.ops[j.peak_at];
}

const char *vp_recompute_of_scenario(struct vp_arena *arena, struct vp_recompute_report *out,
                                     const struct vp_scenario *scenario, uint64_t budget_bytes,
                                     enum vp_framework which) {
    *out = (struct vp_recompute_report){0};
    const char *fault = vp_recompute_problem_make(arena, &out->problem, scenario, budget_bytes);
    if (fault)
        return fault;
    plan(arena, out, VP_FRAMEWORK_PYTORCH);
    for (enum vp_framework f = 0; f < VP_FRAMEWORK_COUNT; f++)
        if (which == VP_FRAMEWORK_COUNT || which == f)
            plan(arena, out, f);
    take_faster(out);

    const struct vp_framework_plan *best = &out->framework[VP_FRAMEWORK_PYTORCH];
    out->stage = best->tightest;
    const struct vp_stage_chain *stage = &out->problem.stage[out->stage];
    out->activation_bytes = best->budget_bytes[out->stage];
    if (out->activation_bytes == 0) /* nothing fits: the figures of what was tried at first */
        out->activation_bytes = stage->budget_bytes;
    out->beside_bytes = vp_above(out->problem.budget_bytes, out->activation_bytes);
    find_peak(arena, out);
    if (which == VP_FRAMEWORK_COUNT)
        vp_policies_find(arena, &out->policies, &stage->chain.chain, out->activation_bytes,
                         stage->chain.in_flight);
    return NULL;
}
