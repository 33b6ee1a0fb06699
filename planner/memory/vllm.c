#include "planner/memory/vllm.h"

#include <string.h>

#include "planner/memory/weights.h"

static const uint64_t billion = 1000000000;

/* Replaces a component by a measured figure: its rows go, one row of the value stays. `sum` is
 * what the log's figure stands for. */
static struct vp_amount pin(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                            enum vp_measure what, enum vp_component component, uint32_t device,
                            uint32_t first_row, struct vp_amount estimate)
{
    if (!scenario->measured.known[what])
        return estimate;
    ledger->count = first_row;
    struct vp_row *row = vp_ledger_add(ledger, component, VP_FORMULA_MEASURED, device, "measured");
    row->bytes = vp_exactly(scenario->measured.value[what]);
    vp_row_input(row, "value", row->bytes.likely);
    return row->bytes;
}

static struct vp_amount weights(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                                const struct vp_stage *stage, uint32_t device)
{
    const struct vp_amount excess = scenario->engine.rules.load_excess;
    uint32_t first = ledger->count;
    struct vp_amount sum = {0, 0, 0};

    vp_weights_add(ledger, scenario, stage, device);
    if (excess.high > 0) {
        struct vp_row *row = vp_ledger_add(ledger, VP_C_RUNTIME, VP_FORMULA_W_LOAD, device,
                                           "load, beyond the tensors");
        row->bytes = excess;
    }
    for (uint32_t i = first; i < ledger->count; i++)
        sum = vp_amount_add(sum, ledger->rows[i].bytes);
    return pin(ledger, scenario, VP_M_WEIGHTS, VP_C_WEIGHTS, device, first, sum);
}

static struct vp_amount activation(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                                   const struct vp_stage *stage, uint32_t device)
{
    struct vp_activation estimate;
    uint32_t first = ledger->count;

    vp_activation_make(&estimate, scenario, stage->index + 1 == stage->count);
    vp_activation_add(ledger, &estimate, scenario, device);
    struct vp_amount bytes = pin(ledger, scenario, VP_M_ACTIVATION, VP_C_ACTIVATIONS, device, first,
                                 estimate.total);
    ledger->rows[ledger->count - 1].from = VP_STEP_PROFILE;
    return bytes;
}

static struct vp_amount non_torch(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                                  uint32_t device)
{
    uint32_t first = ledger->count;
    struct vp_row *row = vp_ledger_add(ledger, VP_C_RUNTIME, VP_FORMULA_NON_TORCH, device,
                                       scenario->engine.rules.overhead_class);
    row->bytes = scenario->parallel.tensor > 1 ? scenario->engine.rules.non_torch_group
                                               : scenario->engine.rules.non_torch;
    vp_row_input(row, "tensor_ranks", scenario->parallel.tensor);
    return pin(ledger, scenario, VP_M_NON_TORCH, VP_C_RUNTIME, device, first, row->bytes);
}

static struct vp_amount graphs(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                               const struct vp_stage *stage, uint32_t device)
{
    const struct vp_vllm_rules *rules = &scenario->engine.rules;
    uint32_t first = ledger->count;
    struct vp_amount bytes = {
        rules->graph_base.low + stage->layers * rules->graph_per_layer.low,
        rules->graph_base.likely + stage->layers * rules->graph_per_layer.likely,
        rules->graph_base.high + stage->layers * rules->graph_per_layer.high};

    if (scenario->engine.enforce_eager)
        bytes = vp_exactly(0);
    struct vp_row *row = vp_ledger_add(ledger, VP_C_GRAPHS, VP_FORMULA_GRAPHS, device,
                                       rules->overhead_class);
    row->bytes = bytes;
    vp_row_input(row, "base", rules->graph_base.likely);
    vp_row_input(row, "per_layer", rules->graph_per_layer.likely);
    vp_row_input(row, "layers", scenario->engine.enforce_eager ? 0 : stage->layers);
    bytes = pin(ledger, scenario, VP_M_GRAPHS, VP_C_GRAPHS, device, first, bytes);
    ledger->rows[ledger->count - 1].from = VP_STEP_CAPTURE;
    return bytes;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* What is left of the request for the cache. */
static void leave(struct vp_vllm_stage *out, const struct vp_scenario *scenario)
{
    const struct vp_vllm_rules *rules = &scenario->engine.rules;
    struct vp_amount taken = vp_amount_add(out->weights, out->activation);
    uint64_t others = rules->budget == VP_VLLM_V1_USED ? scenario->hardware.reserved_bytes : 0;

    if (rules->budget != VP_VLLM_TORCH_PEAK)
        taken = vp_amount_add(taken, out->non_torch);
    if (out->graphs_in_budget)
        taken = vp_amount_add(taken, out->graphs);
    taken = vp_amount_add(taken, vp_exactly(others));
    uint64_t low = vp_mul_div(scenario->hardware.memory.low, scenario->engine.utilization_ppb, billion);
    uint64_t high = vp_mul_div(scenario->hardware.memory.high, scenario->engine.utilization_ppb, billion);
    out->available = (struct vp_amount){less(low, taken.high),
                                        less(out->requested_bytes, taken.likely),
                                        less(high, taken.low)};
    out->available_negative = high <= taken.low;
    if (scenario->measured.known[VP_M_AVAILABLE_KV])
        out->available = vp_exactly(scenario->measured.value[VP_M_AVAILABLE_KV]);
    else if (scenario->engine.kv_cache_bytes > 0)
        out->available = vp_exactly(scenario->engine.kv_cache_bytes);
    else
        return;
    out->pinned = true;
    out->available_negative = out->available.likely == 0;
}

static void count_blocks(struct vp_vllm_stage *out, const struct vp_scenario *scenario)
{
    uint64_t block = out->kv.block_bytes;

    if (scenario->measured.known[VP_M_BLOCKS])
        out->blocks = vp_exactly(scenario->measured.value[VP_M_BLOCKS]);
    else if (scenario->engine.blocks_override > 0)
        out->blocks = vp_exactly(scenario->engine.blocks_override);
    else if (block > 0)
        out->blocks = (struct vp_amount){out->available.low / block, out->available.likely / block,
                                         out->available.high / block};
}

void vp_vllm_stage_make(struct vp_vllm_stage *out, struct vp_ledger *ledger,
                        const struct vp_scenario *scenario, const struct vp_stage *stage,
                        uint32_t device)
{
    memset(out, 0, sizeof *out);
    out->requested_bytes = vp_mul_div(scenario->hardware.memory_bytes,
                                      scenario->engine.utilization_ppb, billion);
    out->graphs_in_budget = scenario->engine.rules.budget == VP_VLLM_V1_GRAPHS;
    out->weights = weights(ledger, scenario, stage, device);
    out->activation = activation(ledger, scenario, stage, device);
    out->non_torch = non_torch(ledger, scenario, device);
    out->graphs = graphs(ledger, scenario, stage, device);
    leave(out, scenario);
    vp_kv_plan_make(&out->kv, scenario, stage);
    count_blocks(out, scenario);
    vp_kv_add(ledger, &out->kv, scenario->serve.concurrency, scenario->serve.context, device);
}
