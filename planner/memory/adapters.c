#include "planner/memory/adapters.h"

#include <string.h>

/* Elements of the two halves of one slot's pairs, over the matrices of one tensor class. */
struct pairs {
    struct vp_sum a, b;             /* in any case */
    struct vp_sum a_maybe, b_maybe; /* in some versions */
    uint64_t matrices;
};

struct fold {
    const struct vp_scenario *scenario;
    const struct vp_block *block;
    struct vp_layout layout;
    struct pairs pairs[VP_CLASS_COUNT];
};

/* Does the engine adapt this matrix? */
static enum vp_perhaps is_adapted(const struct vp_scenario *scenario, const struct vp_op *op) {
    bool sglang = scenario->engine.kind == VP_ENGINE_SGLANG;

    if (op->matrices == 0 || (op->kind != VP_OP_LINEAR && op->kind != VP_OP_EXPERTS))
        return VP_NEVER;
    switch (vp_role_class(op->role)) {
    case VP_CLASS_EXPERT:
        return scenario->engine.rules.lora_experts;
    case VP_CLASS_ROUTER: /* a gate of one output was a plain module for long */
        return sglang ? VP_NEVER : op->role == VP_ROLE_ROUTER ? VP_ALWAYS : VP_MAYBE;
    default:
        return VP_ALWAYS;
    }
}

/* An operator whose A half is that of the one before it: fused in the checkpoint. */
static enum vp_perhaps shares_a(const struct vp_rules *rules, enum vp_role role) {
    if (role == VP_ROLE_EXPERT_UP)
        return rules->lora_joint_experts;
    bool second = role == VP_ROLE_K || role == VP_ROLE_V || role == VP_ROLE_UP;
    return second && rules->lora_joint_layers ? VP_ALWAYS : VP_NEVER;
}

/* Projections of a recurrent layer that later versions cut into so many slices, an A for each. */
static uint64_t more_slices(enum vp_role role) {
    return role == VP_ROLE_LINEAR_IN ? 3 : role == VP_ROLE_LINEAR_GATES ? 1 : 0;
}

static struct vp_sum product(uint64_t a, uint64_t b, uint64_t c) {
    return vp_sum_mul(vp_sum_mul(vp_sum(a), b), c);
}

static void add_pair(struct fold *fold, const struct vp_op *op) {
    const struct vp_lora *lora = &fold->scenario->lora;
    const struct vp_rules *rules = &fold->scenario->engine.rules;
    struct vp_op_share share = vp_ops_share(op, fold->block, &fold->layout);
    struct pairs *pairs = &fold->pairs[vp_role_class(op->role)];
    enum vp_perhaps adapted = is_adapted(fold->scenario, op), joint = shares_a(rules, op->role);
    uint64_t rank = lora->rank, ranks = fold->layout.tensor;
    bool divided = share.in < op->in || share.out < op->out;

    if (adapted == VP_NEVER)
        return;
    /* fully sharded: the half that tensor parallelism leaves whole is divided too */
    uint64_t a_rank = lora->sharded && divided && !op->all_reduce ? vp_ceil_div(rank, ranks) : rank;
    uint64_t out =
        lora->sharded && divided && op->all_reduce ? vp_ceil_div(share.out, ranks) : share.out;
    struct vp_sum a = product(share.matrices, a_rank, share.in);
    struct vp_sum b = product(share.matrices, rank, out);
    pairs->matrices += share.matrices;
    if (adapted == VP_MAYBE) {
        pairs->a_maybe = vp_sum_plus(pairs->a_maybe, a);
        pairs->b_maybe = vp_sum_plus(pairs->b_maybe, b);
        return;
    }
    pairs->b = vp_sum_plus(pairs->b, b);
    if (joint == VP_NEVER)
        pairs->a = vp_sum_plus(pairs->a, a);
    else if (joint == VP_MAYBE)
        pairs->a_maybe = vp_sum_plus(pairs->a_maybe, a);
    pairs->a_maybe = vp_sum_plus(pairs->a_maybe, vp_sum_mul(a, more_slices(op->role)));
}

/* A convolution over time is a linear module to vLLM, and may get a pair. */
static void add_conv(struct fold *fold, const struct vp_op *op) {
    struct pairs *pairs = &fold->pairs[VP_CLASS_LINEAR];
    uint64_t rank = fold->scenario->lora.rank;
    uint64_t channels = vp_ceil_div(op->out, fold->layout.attention);

    if (fold->scenario->engine.kind != VP_ENGINE_VLLM || op->out == 0)
        return;
    pairs->a_maybe =
        vp_sum_plus(pairs->a_maybe, product(rank, vp_ceil_div(op->vector, op->out), 1));
    pairs->b_maybe = vp_sum_plus(pairs->b_maybe, product(rank, channels, 1));
}

static struct vp_sum bytes_of(const struct vp_lora *lora, struct vp_sum elements, uint64_t layers) {
    return vp_sum_mul(vp_dtype_bytes(lora->dtype, vp_sum_mul(elements, lora->slots)), layers);
}

static struct vp_row *add_row(struct vp_ledger *ledger, const struct vp_lora *lora,
                              enum vp_formula formula, uint32_t device, const char *owner) {
    struct vp_row *row = vp_ledger_add(ledger, VP_C_ADAPTERS, formula, device, owner);

    vp_row_input(row, "slots", lora->slots);
    vp_row_input(row, "rank", lora->rank);
    return row;
}

/* What some versions have and others do not: nothing to all of it, and all of it likely. */
static void add_maybe(struct vp_ledger *ledger, const struct vp_lora *lora, struct vp_sum bytes,
                      uint32_t device, const char *owner) {
    if (bytes.v == 0 && !bytes.overflow)
        return;
    struct vp_row *row = add_row(ledger, lora, VP_FORMULA_LORA_MAYBE, device, owner);
    vp_row_exact(ledger, row, bytes);
    row->bytes.low = 0;
}

static void add_rows(struct vp_ledger *ledger, const struct fold *fold, uint32_t layers,
                     uint32_t device) {
    const struct vp_lora *lora = &fold->scenario->lora;

    for (int c = 0; c < VP_CLASS_COUNT; c++) {
        const struct pairs *pairs = &fold->pairs[c];
        const char *owner = vp_class_name((enum vp_class)c);
        struct vp_sum known = vp_sum_plus(pairs->a, pairs->b);
        struct vp_sum maybe = vp_sum_plus(pairs->a_maybe, pairs->b_maybe);
        if (known.v > 0 || known.overflow) {
            struct vp_row *row = add_row(ledger, lora, VP_FORMULA_LORA, device, owner);
            row->layers = layers;
            vp_row_input(row, "layers", layers);
            vp_row_input(row, "matrices", pairs->matrices);
            vp_row_input(row, "a_elements", pairs->a.v);
            vp_row_input(row, "b_elements", pairs->b.v);
            vp_row_exact(ledger, row, bytes_of(lora, known, layers));
        }
        add_maybe(ledger, lora, bytes_of(lora, maybe, layers), device, owner);
    }
}

/* Embedding and head: neither half is divided. Versions that let an adapter add tokens keep rows
 * for them: in the embedding and the head, which are divided, and once per slot. */
static void add_vocabulary(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                           const struct vp_layout *layout, bool head, uint32_t device) {
    const struct vp_lora *lora = &scenario->lora;
    const struct vp_rules *rules = &scenario->engine.rules;
    const struct vp_model *model = scenario->model;
    uint64_t extra = rules->lora_extra_rows, element = vp_dtype_bytes(lora->dtype, vp_sum(1)).v;
    uint64_t rows = head ? extra : extra * lora->slots; /* a slot each, or one set of scores */
    const char *owner = head ? "lm_head" : "embedding";
    struct vp_sum pair =
        vp_sum_mul(vp_sum_add(vp_sum_add(vp_sum(model->vocab), extra), model->hidden), lora->rank);
    struct vp_sum added = product(vp_ceil_div(rows, layout->vocab), model->hidden, element);

    if (head)
        added = vp_sum_plus(added, vp_sum_mul(product(extra, lora->slots, model->hidden), element));
    struct vp_sum bytes = vp_sum_plus(bytes_of(lora, pair, 1), added);
    if (rules->lora_vocabulary == VP_MAYBE) {
        add_maybe(ledger, lora, bytes, device, owner);
        return;
    }
    struct vp_row *row = add_row(ledger, lora, VP_FORMULA_LORA_VOCAB, device, owner);
    vp_row_input(row, "vocabulary", model->vocab);
    vp_row_input(row, "hidden", model->hidden);
    vp_row_input(row, "added_rows", rows);
    vp_row_exact(ledger, row, bytes);
}

void vp_adapters_add(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                     const struct vp_stage *stage, uint32_t device) {
    const struct vp_model *model = scenario->model;
    struct fold fold = {.scenario = scenario};
    struct vp_ops ops;

    if (!scenario->lora.enabled)
        return;
    fold.layout = vp_stage_layout(scenario);
    for (uint32_t b = 0; b < model->block_count; b++) {
        uint32_t layers = vp_stage_layers(model, stage, b);
        if (layers == 0)
            continue;
        memset(fold.pairs, 0, sizeof fold.pairs);
        fold.block = &model->blocks[b];
        vp_ops_block(&ops, model, fold.block);
        ledger->overflow |= ops.overflow;
        for (uint32_t i = 0; i < ops.count; i++)
            if (ops.item[i].kind == VP_OP_CONV)
                add_conv(&fold, &ops.item[i]);
            else
                add_pair(&fold, &ops.item[i]);
        add_rows(ledger, &fold, layers, device);
    }
    if (scenario->engine.rules.lora_vocabulary == VP_NEVER)
        return;
    if (stage->index == 0 && model->embedding)
        add_vocabulary(ledger, scenario, &fold.layout, false, device);
    if (stage->index + 1 == stage->count && model->lm_head)
        add_vocabulary(ledger, scenario, &fold.layout, true, device);
}
