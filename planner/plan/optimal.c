#include "planner/plan/optimal.h"

#include "planner/plan/evaluate_parts.h"

enum { ROUNDS = 12 };

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

/* The search for one stage's budget: too much does not fit the device when the step is evaluated,
 * enough does. */
struct search {
    struct vp_train_chain chain;
    uint64_t enough, too_much, tried; /* bytes */
};

/* Every layer of the stage by itself: the least that any framework can be told. */
static void recompute_all(struct vp_recompute *out, const struct vp_train_chain *chain) {
    for (uint32_t i = 0; i < chain->layers; i++)
        out->plan[chain->layer[i]] =
            (struct vp_recompute_layer){.segment = chain->layer[i], .recomputed = true};
}

static void solve(struct vp_arena *arena, struct vp_recompute *out, struct search *search,
                  uint64_t budget) {
    const struct vp_train_chain *chain = &search->chain;
    struct vp_recompute_answer answer = {.feasible = false};
    enum vp_recompute_class class = chain->apart           ? VP_PLACE_OPTIONS
                                    : chain->in_flight > 1 ? VP_PLACE_PIPELINE
                                                           : VP_PLACE_JOINT;
    search->tried = budget;
    if (!chain->overflow && budget > 0)
        vp_recompute_single(arena, &answer, &chain->chain, class, budget, chain->in_flight);
    if (answer.feasible)
        vp_train_chain_apply(out, chain, &answer.plan);
    else
        recompute_all(out, chain);
}

/* The next budget to try after the last one was evaluated; false: the search is over. */
static bool narrow(struct search *search, const struct vp_device *device) {
    const uint64_t fine = UINT64_C(1) << 26; /* 64 MiB: allocators round more than that */
    if (device->need.high <= device->usable_bytes)
        search->enough = search->tried;
    else
        search->too_much = search->tried;
    return search->too_much > search->enough && search->too_much - search->enough > fine;
}

static void prepare(struct vp_arena *arena, struct search *search,
                    const struct vp_scenario *scenario, uint32_t stage) {
    struct vp_train_stage *plain = VP_NEW(arena, struct vp_train_stage);
    vp_train_stage_make(arena, plain, scenario, stage);
    vp_train_chain_make(arena, &search->chain, scenario, plain);
    search->too_much = vp_optimal_budget(scenario, plain);
    search->enough = 0;
}

const struct vp_scenario *vp_optimal_scenario(struct vp_arena *arena,
                                              const struct vp_scenario *scenario) {
    if (scenario->train.recompute.kind != VP_RECOMPUTE_OPTIMAL)
        return scenario;
    struct vp_scenario *copy = VP_NEW(arena, struct vp_scenario);
    uint32_t stages = (uint32_t)vp_max(scenario->parallel.pipeline, 1);
    struct search *search = VP_NEW_ARRAY(arena, stages, struct search);
    struct vp_recompute *how = &copy->train.recompute;
    *copy = *scenario;
    *how = no_recompute(arena, scenario->model);
    for (uint32_t i = 0; i < stages; i++) {
        prepare(arena, &search[i], copy, i);
        solve(arena, how, &search[i], search[i].too_much);
    }
    for (int round = 0; round < ROUNDS; round++) {
        struct vp_result *result = VP_NEW(arena, struct vp_result);
        bool again = false;
        if (!vp_plan_evaluate(arena, result, copy))
            return copy;
        for (uint32_t i = 0; i < stages; i++) {
            if (!narrow(&search[i], &result->devices[i]))
                continue;
            uint64_t middle = search[i].enough + (search[i].too_much - search[i].enough) / 2;
            solve(arena, how, &search[i], middle);
            again = true;
        }
        if (!again)
            break;
    }
    for (uint32_t i = 0; i < stages; i++)
        if (search[i].tried != search[i].enough)
            solve(arena, how, &search[i], search[i].enough);
    return copy;
}
