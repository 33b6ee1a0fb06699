/* SGLang: no profile run. The static part of the card holds weights and cache, everything else has
 * to live in the rest:
 *
 *   cache = free memory before loading x mem_fraction_static - weights - adapter slots
 *   rest  = free memory before loading x (1 - mem_fraction_static)
 * Source: sglang model_runner_kv_cache_mixin.py; 230.20 - 287.20 x 0.089 = 204.64 GiB against
 * 204.63 logged. Free memory before loading is the total less others and the runtime's context. */
#include "planner/memory/engine_stage.h"

void vp_sglang_pool(struct vp_engine_stage *stage, const struct vp_scenario *scenario) {
    const uint64_t billion = 1000000000;
    const struct vp_hardware *hardware = &scenario->hardware;
    uint64_t share = scenario->engine.utilization_ppb;
    struct vp_amount free_bytes = {
        vp_above(hardware->memory.low, hardware->reserved_bytes + stage->non_torch.high),
        vp_above(hardware->memory_bytes, hardware->reserved_bytes + stage->non_torch.likely),
        vp_above(hardware->memory.high, hardware->reserved_bytes + stage->non_torch.low)};
    struct vp_amount fixed = {vp_mul_div(free_bytes.low, share, billion),
                              vp_mul_div(free_bytes.likely, share, billion),
                              vp_mul_div(free_bytes.high, share, billion)};

    const struct vp_amount taken = vp_amount_add(stage->weights, stage->adapters);

    stage->requested_bytes = fixed.likely;
    stage->available =
        (struct vp_amount){vp_above(fixed.low, taken.high), vp_above(fixed.likely, taken.likely),
                           vp_above(fixed.high, taken.low)};
    stage->available_negative = fixed.high <= taken.low;
    struct vp_amount rest = vp_amount_add(stage->activation, stage->graphs);
    stage->reserved_bytes = fixed.likely + stage->non_torch.likely + stage->graphs.likely;
    stage->usable_bytes = fixed.likely + stage->non_torch.likely + rest.likely;
    stage->usable_bytes =
        vp_min(stage->usable_bytes, vp_above(hardware->memory_bytes, hardware->reserved_bytes));
}
