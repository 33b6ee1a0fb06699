/* SGLang: no profile run. The static part of the card holds weights and cache, everything else has
 * to live in the rest:
 *
 *   cache = free memory before loading x mem_fraction_static - weights - adapter slots
 *   rest  = free memory before loading x (1 - mem_fraction_static)
 * Source: sglang model_runner_kv_cache_mixin.py; 230.20 - 287.20 x 0.089 = 204.64 GiB against
 * 204.63 logged. Free memory before loading is the total less others and the runtime's context. */
#include "planner/memory/engine_stage.h"

void vp_sglang_pool(struct vp_engine_stage *stage, const struct vp_scenario *scenario) {
    const struct vp_hardware *hardware = &scenario->hardware;
    struct vp_amount total = {hardware->memory.low, hardware->memory_bytes, hardware->memory.high};
    struct vp_amount others = vp_amount_add(stage->non_torch, vp_exactly(hardware->reserved_bytes));
    struct vp_amount fixed =
        vp_amount_share(vp_amount_above(total, others), scenario->engine.utilization_ppb);
    const struct vp_amount taken = vp_amount_add(stage->weights, stage->adapters);

    stage->requested_bytes = fixed.likely;
    stage->available = vp_amount_above(fixed, taken);
    stage->available_negative = fixed.high <= taken.low;
    struct vp_amount rest = vp_amount_add(stage->activation, stage->graphs);
    stage->reserved_bytes = fixed.likely + stage->non_torch.likely + stage->graphs.likely;
    stage->usable_bytes = fixed.likely + stage->non_torch.likely + rest.likely;
    stage->usable_bytes =
        vp_min(stage->usable_bytes, vp_above(hardware->memory_bytes, hardware->reserved_bytes));
}
