#include "planner/memory/offload.h"

bool vp_offload_any(const struct vp_scenario *scenario) {
    const struct vp_offload *offload = &scenario->offload;

    return offload->weights_bytes > 0 || offload->weights_ppb > 0 || offload->kv_bytes > 0;
}

/* Layers are made one by one and offloaded parameter by parameter; what is outside of them stays.
 */
static bool is_layer(const struct vp_row *row) {
    return row->component == VP_C_WEIGHTS &&
           (row->layers > 0 || row->formula == VP_FORMULA_W_TENSORS);
}

/* The largest parameter of a layer of this rank: offloading stops behind the one that reaches the
 * size asked for. Gate and up are one parameter, and so are q, k and v. */
static uint64_t largest_parameter(const struct vp_scenario *scenario) {
    const struct vp_model *model = scenario->model;
    struct vp_layout layout = vp_stage_layout(scenario);
    struct vp_ops ops;
    uint64_t most = 0;

    for (uint32_t b = 0; b < model->block_count; b++) {
        const struct vp_block *block = &model->blocks[b];
        vp_ops_block(&ops, model, block);
        for (uint32_t i = 0; i < ops.count; i++) {
            const struct vp_op *op = &ops.item[i];
            if (op->matrices == 0)
                continue;
            struct vp_op_share share = vp_ops_share(op, block, &layout);
            uint64_t joined = op->role == VP_ROLE_UP || op->role == VP_ROLE_EXPERT_UP ? 2 : 1;
            struct vp_sum bytes = vp_scheme_bytes(&model->schemes[block->scheme[op->role]],
                                                  share.matrices * joined, share.out, share.in);
            most = vp_max(most, bytes.v);
        }
    }
    return most;
}

static uint64_t rows_of_layers(const struct vp_ledger *ledger, uint32_t first) {
    uint64_t total = 0;

    for (uint32_t i = first; i < ledger->count; i++)
        if (is_layer(&ledger->rows[i]))
            total += ledger->rows[i].bytes.likely; /* exact rows of one model: no overflow */
    return total;
}

/* Takes `bytes` out of the layers' rows, the first ones first; they are exact. */
static void take(struct vp_ledger *ledger, uint32_t first, uint64_t bytes) {
    for (uint32_t i = first; i < ledger->count && bytes > 0; i++) {
        struct vp_row *row = &ledger->rows[i];
        if (!is_layer(row))
            continue;
        uint64_t part = vp_min(bytes, row->bytes.likely);
        row->bytes = vp_exactly(row->bytes.likely - part);
        vp_row_input(row, "on_host", part);
        bytes -= part;
    }
}

struct vp_amount vp_offload_weights(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                                    const struct vp_stage *stage, uint32_t first) {
    const uint64_t billion = 1000000000;
    const struct vp_offload *offload = &scenario->offload;
    uint64_t layers, asked = offload->weights_bytes;

    if ((asked == 0 && offload->weights_ppb == 0) || stage->layers == 0)
        return vp_exactly(0);
    layers = rows_of_layers(ledger, first);
    if (offload->weights_ppb > 0)
        asked = vp_mul_div(layers, offload->weights_ppb, billion);
    asked = vp_min(asked, layers);
    uint64_t beyond = vp_min(largest_parameter(scenario), layers - asked);
    take(ledger, first, asked);
    if (beyond == 0)
        return vp_exactly(asked);
    /* the parameter that reaches the size goes as a whole */
    for (uint32_t i = ledger->count; i-- > first;) {
        struct vp_row *row = &ledger->rows[i];
        if (!is_layer(row) || row->bytes.likely < beyond)
            continue;
        row->bytes.low -= beyond;
        row->bytes.likely -= beyond / 2;
        row->confidence = VP_CLASS_AVERAGE;
        vp_row_input(row, "up_to_one_parameter", beyond);
        return (struct vp_amount){asked, asked + beyond / 2, asked + beyond};
    }
    return vp_exactly(asked);
}

static uint64_t power_of_two(uint64_t bytes) {
    uint64_t power = 1;

    while (power < bytes && power <= UINT64_MAX / 2)
        power *= 2;
    return vp_max(power, bytes);
}

static struct vp_sum per_machine(struct vp_sum bytes, uint64_t nodes) {
    bytes.v = vp_ceil_div(bytes.v, vp_max(nodes, 1));
    return bytes;
}

void vp_offload_host(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                     const struct vp_amount *moved, uint32_t stages, uint32_t device) {
    uint64_t ranks = scenario->parallel.tensor * scenario->parallel.data;
    uint64_t nodes = scenario->hardware.nodes, kv = scenario->offload.kv_bytes;

    for (uint32_t i = 0; i < stages; i++) {
        struct vp_sum low = vp_sum_mul(vp_sum(moved[i].low), ranks);
        struct vp_sum likely = vp_sum_mul(vp_sum(moved[i].likely), ranks);
        struct vp_sum high = vp_sum_mul(vp_sum_mul(vp_sum(moved[i].high), ranks), 2);
        if (moved[i].high == 0)
            continue;
        struct vp_row *row = vp_ledger_add(ledger, VP_C_WEIGHTS, VP_FORMULA_HOST_WEIGHTS, device,
                                           "offloaded layers");
        /* between exactly as much and the next power of two for every tensor */
        likely.v += likely.v / 3;
        row->bytes = (struct vp_amount){per_machine(low, nodes).v, per_machine(likely, nodes).v,
                                        per_machine(high, nodes).v};
        ledger->overflow |= high.overflow || likely.overflow;
        vp_row_input(row, "of_one_rank", moved[i].likely);
        vp_row_input(row, "ranks", ranks);
        vp_row_input(row, "machines", nodes);
    }
    if (kv == 0)
        return;
    struct vp_sum all = vp_sum_mul(vp_sum(kv), scenario->parallel.data);
    uint64_t shares = ranks * stages;
    struct vp_row *row =
        vp_ledger_add(ledger, VP_C_KV_CACHE, VP_FORMULA_HOST_KV, device, "second cache");
    struct vp_sum most = vp_sum_mul(vp_sum(power_of_two(vp_ceil_div(all.v, shares))), shares);
    row->bytes = (struct vp_amount){per_machine(all, nodes).v, per_machine(all, nodes).v,
                                    vp_max(per_machine(most, nodes).v, per_machine(all, nodes).v)};
    ledger->overflow |= all.overflow || most.overflow;
    vp_row_input(row, "asked", kv);
    vp_row_input(row, "replicas", scenario->parallel.data);
    vp_row_input(row, "machines", nodes);
}
