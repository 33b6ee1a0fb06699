/* vLLM: what the profile run leaves of the request, by version.
 *
 *   requested = total x gpu_memory_utilization
 *   torch-peak   (2023)        cache = requested - weights - activation peak
 *   v0, v1-used, v1            cache = requested - weights - non-torch - activation peak
 *   v1-graphs    (0.21 on)     the same, minus the graph estimate
 * Before v1-graphs the captured graphs come on top of what was requested. v1-used also counts what
 * other processes hold. Source: vLLM worker.py and gpu_worker.py of those versions. */
#include "planner/memory/engine_stage.h"

void vp_vllm_pool(struct vp_engine_stage *stage, const struct vp_scenario *scenario) {
    const struct vp_rules *rules = &scenario->engine.rules;
    const struct vp_hardware *hardware = &scenario->hardware;
    struct vp_amount taken = vp_amount_add(stage->weights, stage->activation);
    struct vp_amount total = {hardware->memory.low, hardware->memory_bytes, hardware->memory.high};
    struct vp_amount asked = vp_amount_share(total, scenario->engine.utilization_ppb);

    stage->graphs_in_budget = rules->budget == VP_VLLM_V1_GRAPHS;
    if (rules->budget != VP_VLLM_TORCH_PEAK)
        taken = vp_amount_add(taken, stage->non_torch);
    if (stage->graphs_in_budget)
        taken = vp_amount_add(taken, stage->graphs);
    if (rules->budget == VP_VLLM_V1_USED)
        taken = vp_amount_add(taken, vp_exactly(hardware->reserved_bytes));
    stage->requested_bytes = asked.likely;
    stage->available = vp_amount_above(asked, taken);
    stage->available_negative = asked.high <= taken.low;
    stage->reserved_bytes = asked.likely + (stage->graphs_in_budget ? 0 : stage->graphs.likely);
    stage->usable_bytes =
        vp_min(vp_above(hardware->memory_bytes, hardware->reserved_bytes), stage->reserved_bytes);
    if (scenario->model->encoder_only) { /* no pool: what is asked for is not taken */
        stage->reserved_bytes = 0;
        stage->usable_bytes = vp_above(hardware->memory_bytes, hardware->reserved_bytes);
    }
}
