#include "planner/memory/draft.h"

#include "planner/memory/weights.h"

/* The draft as a scenario of its own: its weights are then those of any model. */
static struct vp_scenario alone(const struct vp_scenario *scenario) {
    struct vp_scenario out = *scenario;

    out.model = scenario->draft.model;
    out.parallel.tensor = scenario->draft.tensor;
    out.parallel.pipeline = 1;
    return out;
}

struct vp_layout vp_draft_layout(const struct vp_scenario *scenario) {
    if (scenario->draft.model) {
        struct vp_scenario draft = alone(scenario);
        return vp_stage_layout(&draft);
    }
    return vp_stage_layout(scenario);
}

bool vp_draft_layers(const struct vp_block **out, uint64_t *count,
                     const struct vp_scenario *scenario, uint32_t i) {
    const struct vp_draft *draft = &scenario->draft;

    if (draft->model && i < draft->model->block_count) {
        *out = &draft->model->blocks[i];
        *count = draft->model->blocks[i].count;
        return true;
    }
    const struct vp_extra *mtp =
        draft->method == VP_DRAFT_MTP && i == 0 ? vp_model_mtp(scenario->model) : NULL;
    if (!mtp)
        return false;
    *out = mtp->layer;
    *count = mtp->layers;
    return true;
}

uint64_t vp_draft_depth(const struct vp_scenario *scenario) {
    const struct vp_block *block;
    uint64_t depth = 0, count;

    for (uint32_t i = 0; vp_draft_layers(&block, &count, scenario, i); i++)
        depth += count;
    return depth;
}

static uint64_t element_bytes(const struct vp_scenario *scenario) {
    return vp_dtype_bytes(scenario->precision.compute, vp_sum(1)).v;
}

/* F-D-01: vectors of the target are joined into one of the draft's width. */
static void add_join(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                     uint32_t device) {
    const struct vp_draft *draft = &scenario->draft;
    struct vp_row *row =
        vp_ledger_add(ledger, VP_C_DRAFT, VP_FORMULA_DRAFT_JOIN, device, "joined inputs");

    vp_row_input(row, "inputs", draft->fused_inputs);
    vp_row_input(row, "hidden", draft->model->hidden);
    vp_row_exact(ledger, row,
                 vp_sum_mul(vp_sum_mul(vp_sum(draft->fused_inputs), draft->model->hidden),
                            element_bytes(scenario)));
}

/* F-D-02: the second half of the first layer's inputs. */
static void add_wide(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                     uint32_t device) {
    const struct vp_model *model = scenario->draft.model;
    const struct vp_block *block = &model->blocks[model->layers[0]];
    struct vp_layout layout = vp_draft_layout(scenario);
    struct vp_ops ops;
    uint64_t out = 0;

    vp_ops_block(&ops, model, block);
    ledger->overflow |= ops.overflow;
    for (uint32_t i = 0; i < ops.count; i++) {
        const struct vp_op *op = &ops.item[i];
        if (op->role == VP_ROLE_Q || op->role == VP_ROLE_K || op->role == VP_ROLE_V)
            out += op->matrices > 0 ? vp_ops_share(op, block, &layout).out : 0;
    }
    struct vp_row *row =
        vp_ledger_add(ledger, VP_C_DRAFT, VP_FORMULA_DRAFT_WIDE, device, "second inputs");
    vp_row_input(row, "hidden", model->hidden);
    vp_row_input(row, "outputs", out);
    vp_row_exact(ledger, row,
                 vp_sum_mul(vp_sum_mul(vp_sum(out), model->hidden), element_bytes(scenario)));
}

/* A head over fewer words than the target's, and which of its words those are. */
static void add_head(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                     uint32_t device) {
    const struct vp_draft *draft = &scenario->draft;
    struct vp_layout layout = vp_draft_layout(scenario);
    uint64_t pad = layout.vocab_pad;
    uint64_t rows = vp_ceil_div(vp_ceil_div(draft->head_vocab, pad) * pad, layout.vocab);
    struct vp_row *row =
        vp_ledger_add(ledger, VP_C_DRAFT, VP_FORMULA_W_VOCAB, device, "draft lm_head");

    vp_row_input(row, "vocabulary", draft->head_vocab);
    vp_row_input(row, "ranks", layout.vocab);
    vp_row_input(row, "rows", rows);
    vp_row_input(row, "hidden", draft->model->hidden);
    vp_row_exact(
        ledger, row,
        vp_sum_mul(vp_sum_mul(vp_sum(rows), draft->model->hidden), element_bytes(scenario)));
    if (draft->method != VP_DRAFT_EAGLE3)
        return;
    row = vp_ledger_add(ledger, VP_C_DRAFT, VP_FORMULA_DRAFT_MAP, device, "vocabulary map");
    vp_row_input(row, "vocabulary", draft->head_vocab);
    vp_row_exact(ledger, row, vp_sum_mul(vp_sum(draft->head_vocab), 8));
}

void vp_draft_add(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                  const struct vp_stage *stage, uint32_t device) {
    const struct vp_stage whole = {0, 1, 0,
                                   scenario->draft.model ? scenario->draft.model->layer_count : 0};
    const struct vp_draft *draft = &scenario->draft;
    uint32_t first = ledger->count;

    if (draft->method == VP_DRAFT_NONE || stage->index + 1 != stage->count)
        return;
    if (draft->method == VP_DRAFT_MTP) {
        const struct vp_extra *mtp = vp_model_mtp(scenario->model);
        if (mtp)
            vp_weights_extra(ledger, scenario, mtp, VP_C_DRAFT, device);
        return;
    }
    if (!draft->model)
        return;
    struct vp_scenario own = alone(scenario);
    vp_weights_add(ledger, &own, &whole, device);
    for (uint32_t i = first; i < ledger->count; i++)
        ledger->rows[i].component = VP_C_DRAFT;
    if (draft->fused_inputs > 0)
        add_join(ledger, scenario, device);
    if (draft->wide_first)
        add_wide(ledger, scenario, device);
    if (draft->head_vocab > 0)
        add_head(ledger, scenario, device);
}
