#include "planner/memory/engine_stage.h"

#include <assert.h>
#include <string.h>

#include "planner/memory/adapters.h"
#include "planner/memory/draft.h"
#include "planner/memory/offload.h"
#include "planner/memory/weights.h"

/* Replaces a component by a measured figure: the rows since first_row go, one row of the value
 * stays. */
static struct vp_amount pin(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                            enum vp_measure what, enum vp_component component, uint32_t device,
                            uint32_t first_row, struct vp_amount estimate) {
    if (!scenario->measured.known[what])
        return estimate;
    ledger->count = first_row;
    struct vp_row *row = vp_ledger_add(ledger, component, VP_FORMULA_MEASURED, device, "measured");
    row->bytes = vp_exactly(scenario->measured.value[what]);
    vp_row_input(row, "value", row->bytes.likely);
    return row->bytes;
}

static struct vp_amount sum_since(const struct vp_ledger *ledger, uint32_t first) {
    struct vp_amount sum = {0, 0, 0};

    for (uint32_t i = first; i < ledger->count; i++)
        sum = vp_amount_add(sum, ledger->rows[i].bytes);
    return sum;
}

/* What is loaded before the engine looks at what is left: weights, adapter slots, the draft. */
static void load(struct vp_engine_stage *out, struct vp_ledger *ledger,
                 const struct vp_scenario *scenario, const struct vp_stage *stage,
                 uint32_t device) {
    const struct vp_amount excess = scenario->engine.rules.load_excess;
    uint32_t first = ledger->count;
    bool apart = scenario->engine.kind == VP_ENGINE_SGLANG;

    vp_weights_add(ledger, scenario, stage, device);
    out->moved = vp_offload_weights(ledger, scenario, stage, first);
    if (!apart)
        vp_adapters_add(ledger, scenario, stage, device);
    vp_draft_add(ledger, scenario, stage, device);
    if (excess.high > 0) {
        struct vp_row *row = vp_ledger_add(ledger, VP_C_RUNTIME, VP_FORMULA_W_LOAD, device,
                                           "load, beyond the tensors");
        row->bytes = excess;
    }
    out->weights =
        pin(ledger, scenario, VP_M_WEIGHTS, VP_C_WEIGHTS, device, first, sum_since(ledger, first));
    first = ledger->count;
    if (apart)
        vp_adapters_add(ledger, scenario, stage, device);
    out->adapters = sum_since(ledger, first);
}

static struct vp_amount activation(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                                   const struct vp_stage *stage, uint32_t device) {
    struct vp_activation estimate;
    uint32_t first = ledger->count;

    vp_activation_make(&estimate, scenario, stage->index + 1 == stage->count);
    vp_activation_add(ledger, &estimate, scenario, device);
    struct vp_amount bytes =
        pin(ledger, scenario, VP_M_ACTIVATION, VP_C_ACTIVATIONS, device, first, estimate.total);
    ledger->rows[ledger->count - 1].from = VP_STEP_PROFILE;
    return bytes;
}

static struct vp_amount non_torch(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                                  uint32_t device) {
    const struct vp_rules *rules = &scenario->engine.rules;
    uint32_t first = ledger->count;
    struct vp_row *row =
        vp_ledger_add(ledger, VP_C_RUNTIME, VP_FORMULA_NON_TORCH, device, rules->overhead_class);

    row->bytes = scenario->parallel.tensor > 1 ? rules->non_torch_group : rules->non_torch;
    vp_row_input(row, "tensor_ranks", scenario->parallel.tensor);
    return pin(ledger, scenario, VP_M_NON_TORCH, VP_C_RUNTIME, device, first, row->bytes);
}

static struct vp_amount graphs(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                               const struct vp_stage *stage, uint32_t device) {
    const struct vp_rules *rules = &scenario->engine.rules;
    uint32_t first = ledger->count;
    if (rules->graph_base.high + rules->graph_per_layer.high == 0 &&
        !scenario->measured.known[VP_M_GRAPHS])
        return vp_exactly(0); /* this engine captures none */
    uint64_t layers = scenario->engine.enforce_eager ? 0 : stage->layers;
    if (layers > 0 && stage->index + 1 == stage->count)
        layers += vp_draft_depth(scenario);
    struct vp_amount bytes = {rules->graph_base.low + layers * rules->graph_per_layer.low,
                              rules->graph_base.likely + layers * rules->graph_per_layer.likely,
                              rules->graph_base.high + layers * rules->graph_per_layer.high};

    if (scenario->engine.enforce_eager)
        bytes = vp_exactly(0);
    if (scenario->lora.enabled)
        bytes.high *= 2; /* captured with and without adapters */
    struct vp_row *row =
        vp_ledger_add(ledger, VP_C_GRAPHS, VP_FORMULA_GRAPHS, device, rules->overhead_class);
    row->bytes = bytes;
    vp_row_input(row, "base", scenario->engine.enforce_eager ? 0 : rules->graph_base.likely);
    vp_row_input(row, "per_layer", rules->graph_per_layer.likely);
    vp_row_input(row, "layers", layers);
    bytes = pin(ledger, scenario, VP_M_GRAPHS, VP_C_GRAPHS, device, first, bytes);
    ledger->rows[ledger->count - 1].from = VP_STEP_CAPTURE;
    return bytes;
}

/* A pool that was measured or asked for in bytes replaces what the policy would leave. */
static void fix_pool(struct vp_engine_stage *out, const struct vp_scenario *scenario) {
    if (scenario->measured.known[VP_M_AVAILABLE_KV])
        out->available = vp_exactly(scenario->measured.value[VP_M_AVAILABLE_KV]);
    else if (scenario->engine.kv_cache_bytes > 0)
        out->available = vp_exactly(scenario->engine.kv_cache_bytes);
    else
        return;
    out->pinned = true;
    out->available_negative = out->available.likely == 0;
    struct vp_amount rest = vp_amount_add(vp_amount_add(out->weights, out->activation),
                                          vp_amount_add(out->non_torch, out->graphs));
    rest = vp_amount_add(rest, out->adapters);
    out->usable_bytes = rest.likely + out->available.likely;
    if (!scenario->measured.known[VP_M_AVAILABLE_KV]) { /* asked for, not seen to be there */
        uint64_t taken = vp_min(scenario->hardware.reserved_bytes, scenario->hardware.memory_bytes);
        out->usable_bytes = vp_min(out->usable_bytes, scenario->hardware.memory_bytes - taken);
    }
}

static void count_units(struct vp_engine_stage *out, const struct vp_scenario *scenario) {
    const struct vp_engine *engine = &scenario->engine;
    uint64_t unit = out->kv.unit_bytes;
    uint64_t state = out->kv.separate_state ? engine->rules.state_share_ppb : 0;
    const uint64_t billion = 1000000000;
    /* SGLang's max_total_tokens is a cap, and its pool is whole pages */
    bool tokens = out->kv.cut == VP_KV_TOKENS;
    uint64_t most = tokens && engine->blocks_override > 0 ? engine->blocks_override : UINT64_MAX;

    if (scenario->measured.known[VP_M_BLOCKS]) {
        out->units = vp_exactly(scenario->measured.value[VP_M_BLOCKS]);
    } else if (engine->blocks_override > 0 && engine->kind == VP_ENGINE_VLLM) {
        out->units = vp_exactly(engine->blocks_override);
    } else if (unit > 0) {
        /* a state pool of its own takes share / (1 + share) of the bytes */
        const uint64_t *bytes = &out->available.low;
        uint64_t *units = &out->units.low;
        for (int i = 0; i < 3; i++) {
            units[i] = vp_mul_div(bytes[i], billion, billion + state) / unit;
            units[i] = vp_min(units[i], most);
            if (tokens)
                units[i] -= units[i] % out->kv.block_size;
        }
    } else if (out->kv.types > 0) {
        out->units = vp_exactly(UINT64_MAX); /* none of the cache is on this stage: no limit */
    }
}

void vp_engine_stage_make(struct vp_engine_stage *out, struct vp_ledger *ledger,
                          const struct vp_scenario *scenario, const struct vp_stage *stage,
                          uint32_t device) {
    memset(out, 0, sizeof *out);
    load(out, ledger, scenario, stage, device);
    out->activation = activation(ledger, scenario, stage, device);
    out->non_torch = non_torch(ledger, scenario, device);
    out->graphs = graphs(ledger, scenario, stage, device);
    switch (scenario->engine.kind) {
    case VP_ENGINE_VLLM:
        vp_vllm_pool(out, scenario);
        break;
    case VP_ENGINE_SGLANG:
        vp_sglang_pool(out, scenario);
        break;
    case VP_ENGINE_TRANSFORMERS:
        vp_transformers_pool(out, scenario);
        break;
    case VP_ENGINE_LLAMA_CPP: /* no pool: llama.c, train_stage.c */
    case VP_ENGINE_OLLAMA:
    case VP_ENGINE_PYTORCH:
    case VP_ENGINE_MEGATRON:
    case VP_ENGINE_DEEPSPEED:
        assert(false); /* accounted for elsewhere */
    }
    fix_pool(out, scenario);
    vp_kv_plan_make(&out->kv, scenario, stage);
    count_units(out, scenario);
    vp_kv_add(ledger, &out->kv, vp_rank_sequences(scenario), scenario->serve.context, device);
}
