#include "planner/plan/optimal.h"

#include "planner/plan/evaluate_parts.h"

enum { ROUNDS = 8 };

uint64_t vp_optimal_budget(const struct vp_scenario *scenario, const struct vp_train_stage *stage) {
    const struct vp_hardware *hardware = &scenario->hardware;
    uint64_t left = vp_above(hardware->memory_bytes, hardware->reserved_bytes);
    left = vp_above(left, stage->runtime.high);
    left = vp_above(left, stage->static_bytes);
    if (stage->gradients_persist)
        left = vp_above(left, stage->gradient_bytes);
    return left;
}

/* The setting of a plan that keeps everything, to be filled stage by stage. */
static struct vp_recompute no_recompute(struct vp_arena *arena, const struct vp_model *model) {
    struct vp_recompute out = {.kind = VP_RECOMPUTE_PLAN};
    out.plan = VP_NEW_ARRAY(arena, model->layer_count, struct vp_recompute_layer);
    for (uint32_t i = 0; i < model->layer_count; i++)
        out.plan[i].segment = i;
    return out;
}

/* Every layer of the stage by itself: the least that any framework can be told. */
static void recompute_all(struct vp_recompute *out, const struct vp_train_chain *chain) {
    for (uint32_t i = 0; i < chain->layers; i++)
        out->plan[chain->layer[i]] =
            (struct vp_recompute_layer){.segment = chain->layer[i], .recomputed = true};
}

static void solve_stage(struct vp_arena *arena, struct vp_recompute *out,
                        const struct vp_train_chain *chain, uint64_t budget) {
    struct vp_recompute_answer answer = {.feasible = false};
    enum vp_recompute_class class = chain->in_flight > 1 ? VP_PLACE_PIPELINE : VP_PLACE_JOINT;
    if (!chain->overflow && budget > 0)
        vp_recompute_solve(arena, &answer, &chain->chain, class, budget, chain->in_flight);
    if (answer.feasible)
        vp_train_chain_apply(out, chain, &answer.plan);
    else
        recompute_all(out, chain);
}

/* What the evaluated stage needs beyond the device, by the upper end. */
static uint64_t shortage(const struct vp_result *result, uint32_t stage) {
    const struct vp_device *device = &result->devices[stage];
    return vp_above(device->need.high, device->usable_bytes);
}

const struct vp_scenario *vp_optimal_scenario(struct vp_arena *arena,
                                              const struct vp_scenario *scenario) {
    if (scenario->train.recompute.kind != VP_RECOMPUTE_OPTIMAL)
        return scenario;
    struct vp_scenario *copy = VP_NEW(arena, struct vp_scenario);
    uint32_t stages = (uint32_t)vp_max(scenario->parallel.pipeline, 1);
    struct vp_train_chain *chain = VP_NEW_ARRAY(arena, stages, struct vp_train_chain);
    uint64_t *budget = VP_NEW_ARRAY(arena, stages, uint64_t);
    *copy = *scenario;
    copy->train.recompute = no_recompute(arena, scenario->model);
    for (uint32_t i = 0; i < stages; i++) {
        struct vp_train_stage *plain = VP_NEW(arena, struct vp_train_stage);
        vp_train_stage_make(arena, plain, copy, i);
        vp_train_chain_make(arena, &chain[i], copy, plain);
        budget[i] = vp_optimal_budget(copy, plain);
    }
    for (uint32_t i = 0; i < stages; i++)
        solve_stage(arena, &copy->train.recompute, &chain[i], budget[i]);
    for (int round = 0; round < ROUNDS; round++) {
        struct vp_result *result = VP_NEW(arena, struct vp_result);
        bool again = false;
        if (!vp_plan_evaluate(arena, result, copy))
            break;
        for (uint32_t i = 0; i < stages; i++) {
            uint64_t missing = shortage(result, i);
            if (missing == 0 || budget[i] == 0)
                continue;
            budget[i] = vp_above(budget[i], missing + missing / 16);
            solve_stage(arena, &copy->train.recompute, &chain[i], budget[i]);
            again = true;
        }
        if (!again)
            break;
    }
    return copy;
}
