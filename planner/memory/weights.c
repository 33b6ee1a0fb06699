#include "planner/memory/weights.h"

#include <string.h>

/* Bytes of one tensor class on one rank, summed over the operators of a block. */
struct part {
    struct vp_sum elements;  /* of matrices */
    struct vp_sum data;      /* bytes of matrices without scales */
    struct vp_sum constants; /* bytes of scales and zero points */
    struct vp_sum vector;    /* bytes of norms, biases and the like */
    bool padded;
};

/* Kernels pad the sizes of MXFP4 experts on some cards. */
static void pad_expert(struct vp_op_share *share, const struct vp_op *op,
                       const struct vp_rules *rules) {
    uint64_t width = rules->expert_width_multiple, hidden = rules->expert_hidden_multiple;
    if (width == 0 || hidden == 0)
        return;
    uint64_t *w = op->all_reduce ? &share->in : &share->out;
    uint64_t *h = op->all_reduce ? &share->out : &share->in;
    *w = vp_ceil_div(*w, width) * width;
    *h = vp_ceil_div(*h, hidden) * hidden;
    if (op->vector > 0)
        share->vector = share->matrices * share->out;
}

static uint32_t vector_bytes(const struct vp_op *op, enum vp_dtype compute) {
    if (op->role == VP_ROLE_ROUTER_BIAS || op->role == VP_ROLE_LINEAR_STATE ||
        op->role == VP_ROLE_HYPER)
        return 4; /* correction biases, decay and mixing parameters are kept in fp32 */
    return (uint32_t)vp_dtype_bytes(compute, vp_sum(1)).v;
}

static void add_op(struct part *parts, const struct vp_scenario *scenario,
                   const struct vp_block *block, const struct vp_op *op,
                   const struct vp_layout *layout) {
    const struct vp_model *model = scenario->model;
    const struct vp_scheme *scheme = &model->schemes[block->scheme[op->role]];
    struct vp_op_share share = vp_ops_share(op, block, layout);
    struct part *part = &parts[vp_role_class(op->role)];

    if (scheme->data == VP_DTYPE_MXFP4 && op->shard == VP_SHARD_EXPERT) {
        pad_expert(&share, op, &scenario->engine.rules);
        part->padded = true;
    }
    if (share.matrices > 0) {
        struct vp_sum n = vp_sum_mul(vp_sum_mul(vp_sum(share.matrices), share.out), share.in);
        struct vp_sum data = vp_dtype_bytes(scheme->data, n);
        struct vp_sum all = vp_scheme_bytes(scheme, share.matrices, share.out, share.in);
        part->elements = vp_sum_plus(part->elements, n);
        part->data = vp_sum_plus(part->data, data);
        all.overflow |= data.overflow;
        part->constants =
            vp_sum_plus(part->constants, (struct vp_sum){all.v - data.v, all.overflow});
    }
    part->vector =
        vp_sum_plus(part->vector, vp_sum_mul(vp_sum(share.vector),
                                             vector_bytes(op, scenario->precision.compute)));
}

/* The same class of another block kind with the same sizes (a window layer beside a full one)
 * shares its row. */
static struct vp_row *same_row(struct vp_ledger *ledger, uint32_t first, const char *owner,
                               const struct part *part) {
    for (uint32_t i = first; i < ledger->count; i++) {
        struct vp_row *row = &ledger->rows[i];
        if (row->owner == owner && row->inputs == 5 && row->input[1].value == part->elements.v &&
            row->input[2].value == part->data.v && row->input[3].value == part->constants.v &&
            row->input[4].value == part->vector.v)
            return row;
    }
    return NULL;
}

static void add_rows(struct vp_ledger *ledger, const struct part *parts, uint32_t layers,
                     uint32_t device, uint32_t first) {
    for (int c = 0; c < VP_CLASS_COUNT; c++) {
        const struct part *part = &parts[c];
        struct vp_sum bytes = vp_sum_plus(vp_sum_plus(part->data, part->constants), part->vector);
        if (bytes.v == 0 && !bytes.overflow)
            continue;
        enum vp_formula formula = part->padded           ? VP_FORMULA_W_PAD
                                  : part->elements.v > 0 ? VP_FORMULA_W_MATRIX
                                                         : VP_FORMULA_W_VECTOR;
        const char *owner = vp_class_name((enum vp_class)c);
        struct vp_row *row = same_row(ledger, first, owner, part);
        if (row) {
            row->layers += layers;
            row->input[0].value = row->layers;
            vp_row_exact(ledger, row, vp_sum_mul(bytes, row->layers));
            continue;
        }
        row = vp_ledger_add(ledger, VP_C_WEIGHTS, formula, device, owner);
        row->layers = layers;
        vp_row_input(row, "layers", layers);
        vp_row_input(row, "elements", part->elements.v);
        vp_row_input(row, "matrix_bytes", part->data.v);
        vp_row_input(row, "scale_bytes", part->constants.v);
        vp_row_input(row, "vector_bytes", part->vector.v);
        vp_row_exact(ledger, row, vp_sum_mul(bytes, layers));
    }
}

static void add_blocks(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                       const struct vp_stage *stage, const struct vp_layout *layout,
                       uint32_t device) {
    const struct vp_model *model = scenario->model;
    uint32_t first = ledger->count;
    struct vp_ops ops;

    for (uint32_t b = 0; b < model->block_count; b++) {
        struct part parts[VP_CLASS_COUNT];
        uint32_t layers = vp_stage_layers(model, stage, b);
        if (layers == 0)
            continue;
        memset(parts, 0, sizeof parts);
        vp_ops_block(&ops, model, &model->blocks[b]);
        ledger->overflow |= ops.overflow;
        for (uint32_t i = 0; i < ops.count; i++)
            add_op(parts, scenario, &model->blocks[b], &ops.item[i], layout);
        add_rows(ledger, parts, layers, device, first);
    }
}

static void add_vocab(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                      const struct vp_op *op, uint8_t scheme, const struct vp_layout *layout,
                      const char *owner, uint32_t device) {
    const struct vp_scheme *how = &scenario->model->schemes[scheme];
    struct vp_op_share share = vp_ops_share(op, NULL, layout);
    struct vp_row *row = vp_ledger_add(ledger, VP_C_WEIGHTS, VP_FORMULA_W_VOCAB, device, owner);
    struct vp_sum bytes = vp_scheme_bytes(how, 1, share.out, share.in);

    vp_row_input(row, "vocabulary", op->out);
    vp_row_input(row, "ranks", layout->vocab);
    vp_row_input(row, "rows", share.out);
    vp_row_input(row, "hidden", share.in);
    vp_row_exact(ledger, row,
                 vp_sum_plus(bytes, vp_sum_mul(vp_sum(share.vector),
                                               vector_bytes(op, scenario->precision.compute))));
}

/* Embedding, positions, final norm, head: what belongs to the first and the last stage. */
static void add_ends(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                     const struct vp_stage *stage, const struct vp_layout *layout,
                     uint32_t device) {
    const struct vp_model *model = scenario->model;
    bool first = stage->index == 0, last = stage->index + 1 == stage->count;
    struct vp_ops ops[2];

    /* with a tied head the last stage needs the embedding's matrix too */
    vp_ops_first(&ops[0], model);
    if (last)
        vp_ops_last(&ops[1], model);
    for (int end = 0; end < (last ? 2 : 1); end++) {
        ledger->overflow |= ops[end].overflow;
        for (uint32_t i = 0; i < ops[end].count; i++) {
            const struct vp_op *op = &ops[end].item[i];
            if (end == 0 && !first && !(last && model->tied && op->role == VP_ROLE_EMBEDDING))
                continue;
            if (op->role == VP_ROLE_EMBEDDING)
                add_vocab(ledger, scenario, op, model->embedding_scheme, layout,
                          first ? "embedding" : "embedding (tied head)", device);
            else if (op->role == VP_ROLE_LM_HEAD && op->matrices > 0)
                add_vocab(ledger, scenario, op, model->head_scheme, layout, "lm_head", device);
            else if (op->vector > 0) {
                struct vp_row *row =
                    vp_ledger_add(ledger, VP_C_WEIGHTS, VP_FORMULA_W_VECTOR, device, op->name);
                vp_row_input(row, "elements", op->vector);
                vp_row_exact(
                    ledger, row,
                    vp_sum_mul(vp_sum(op->vector), vector_bytes(op, scenario->precision.compute)));
            }
        }
    }
}

/* Decoder layers that a tensor group holds, on one rank. */
static struct vp_sum extra_layers(const struct vp_scenario *scenario, const struct vp_extra *extra,
                                  const struct vp_layout *layout) {
    struct part parts[VP_CLASS_COUNT];
    struct vp_sum bytes = vp_sum(0);
    struct vp_ops ops;

    if (!extra->layer)
        return bytes;
    memset(parts, 0, sizeof parts);
    vp_ops_block(&ops, scenario->model, extra->layer);
    for (uint32_t i = 0; i < ops.count; i++)
        add_op(parts, scenario, extra->layer, &ops.item[i], layout);
    for (int c = 0; c < VP_CLASS_COUNT; c++) {
        bytes = vp_sum_plus(bytes, vp_sum_plus(parts[c].data, parts[c].constants));
        bytes = vp_sum_plus(bytes, parts[c].vector);
    }
    bytes.overflow |= ops.overflow;
    return vp_sum_mul(bytes, extra->layers);
}

/* An encoder that the engine does not even load when it takes no images. */
static bool is_left_out(const struct vp_scenario *scenario, enum vp_class class_) {
    return class_ == VP_CLASS_VISION && scenario->images.off &&
           scenario->engine.rules.tower_skipped;
}

void vp_weights_extra(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                      const struct vp_extra *extra, enum vp_component component, uint32_t device) {
    const struct vp_model *model = scenario->model;
    struct vp_layout layout = vp_stage_layout(scenario);
    uint64_t ranks = extra->sharded ? scenario->parallel.tensor : 1;
    uint64_t matrix = vp_ceil_div(extra->matrix_elements, ranks);
    struct vp_sum bytes = vp_scheme_bytes(&model->schemes[extra->scheme], 1, 1, matrix);
    struct vp_row *row = vp_ledger_add(ledger, component, VP_FORMULA_W_EXTRA, device, extra->name);

    vp_row_input(row, "matrix_elements", extra->matrix_elements);
    vp_row_input(row, "ranks", ranks);
    vp_row_input(row, "other_elements", extra->other_elements);
    bytes = vp_sum_plus(bytes, extra_layers(scenario, extra, &layout));
    vp_row_exact(ledger, row,
                 vp_sum_plus(bytes, vp_dtype_bytes(scenario->precision.compute,
                                                   vp_sum(extra->other_elements))));
}

static void add_extras(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                       const struct vp_stage *stage, uint32_t device) {
    const struct vp_model *model = scenario->model;

    for (uint32_t i = 0; i < model->extra_count; i++) {
        const struct vp_extra *extra = &model->extras[i];
        bool here = extra->first_stage ? stage->index == 0 : stage->index + 1 == stage->count;
        bool vision = extra->class_ == VP_CLASS_VISION;
        if (extra->loaded && here && !is_left_out(scenario, extra->class_))
            vp_weights_extra(ledger, scenario, extra, vision ? VP_C_VISION : VP_C_WEIGHTS, device);
    }
}

/* Engines precompute cosines and sines for every position. */
static void add_rotary(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                       uint32_t device) {
    const struct vp_model *model = scenario->model;
    uint64_t dim = 0;

    for (uint32_t i = 0; i < model->block_count && dim == 0; i++) {
        const struct vp_attention *a = &model->blocks[i].attention;
        dim = a->kind == VP_ATTENTION_MLA ? a->qk_rope_head_dim : a->rotary_dim;
    }
    if (dim == 0 || model->rotary_positions == 0)
        return;
    struct vp_row *row =
        vp_ledger_add(ledger, VP_C_WEIGHTS, VP_FORMULA_W_ROTARY, device, "rotary tables");
    vp_row_input(row, "positions", model->rotary_positions);
    vp_row_input(row, "rotary_dim", dim);
    vp_row_exact(ledger, row,
                 vp_dtype_bytes(scenario->precision.compute,
                                vp_sum_mul(vp_sum(model->rotary_positions), dim)));
}

/* MLA decodes with the up-projection split into two 16-bit factors. From a plain matrix they are
 * views; from a quantised one they are copies (vLLM v1/attention/backends/mla/common.py). */
static void add_absorbed(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                         const struct vp_stage *stage, const struct vp_layout *layout,
                         uint32_t device) {
    const struct vp_model *model = scenario->model;

    for (uint32_t b = 0; b < model->block_count; b++) {
        const struct vp_attention *a = &model->blocks[b].attention;
        uint32_t layers = vp_stage_layers(model, stage, b);
        uint8_t scheme = model->blocks[b].scheme[VP_ROLE_KV_B];
        if (layers == 0 || a->kind != VP_ATTENTION_MLA || a->expanded || a->heads == 0 ||
            model->schemes[scheme].scale == VP_SCALE_NONE)
            continue;
        struct vp_row *row = vp_ledger_add(ledger, VP_C_WEIGHTS, VP_FORMULA_W_ABSORBED, device,
                                           "absorbed up-projections");
        uint64_t heads = vp_ceil_div(a->heads, layout->attention);
        uint64_t width = a->qk_nope_head_dim + a->v_head_dim;
        struct vp_sum n = vp_sum_mul(vp_sum_mul(vp_sum(heads), width), a->kv_lora_rank);
        row->layers = layers;
        vp_row_input(row, "layers", layers);
        vp_row_input(row, "heads", heads);
        vp_row_input(row, "nope_plus_v", width);
        vp_row_input(row, "kv_lora_rank", a->kv_lora_rank);
        vp_row_exact(ledger, row,
                     vp_sum_mul(vp_dtype_bytes(scenario->precision.compute, n), layers));
    }
}

/* ---- from the checkpoint's tensor table ---- */

static const char *const shard_owner[] = {
    [VP_SHARD_NONE] = "replicated tensors",  [VP_SHARD_HEADS] = "attention tensors",
    [VP_SHARD_KV] = "key and value tensors", [VP_SHARD_WIDTH] = "feed-forward tensors",
    [VP_SHARD_VOCAB] = "vocabulary tensors", [VP_SHARD_EXPERT] = "expert tensors"};

static uint64_t shard_ranks(const struct vp_scenario *scenario, const struct vp_layout *layout,
                            int shard) {
    uint64_t kv_heads = 0;

    switch (shard) {
    case VP_SHARD_HEADS:
        return layout->attention;
    case VP_SHARD_KV:
        for (uint32_t i = 0; i < scenario->model->block_count; i++)
            kv_heads = vp_max(kv_heads, scenario->model->blocks[i].attention.kv_heads);
        return kv_heads > 0 ? vp_min(layout->attention, kv_heads) : layout->attention;
    case VP_SHARD_WIDTH:
        return layout->tensor;
    case VP_SHARD_VOCAB:
        return layout->vocab;
    case VP_SHARD_EXPERT:
        return layout->expert_ranks * layout->expert_width;
    default:
        return 1;
    }
}

/* Whole experts that do not divide evenly: the fullest rank's part of the bytes, before their width
 * is divided. */
static uint64_t fullest_experts(const struct vp_model *model, uint64_t bytes, uint64_t ranks) {
    uint64_t experts = 0;

    for (uint32_t i = 0; i < model->block_count; i++)
        experts = vp_max(experts, model->blocks[i].moe.experts);
    if (experts == 0 || experts % ranks == 0)
        return vp_ceil_div(bytes, ranks);
    return vp_ceil_div(bytes, experts) * vp_ceil_div(experts, ranks);
}

static void add_tensors(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                        const struct vp_stage *stage, const struct vp_layout *layout,
                        uint32_t device) {
    const struct vp_checkpoint *table = &scenario->model->checkpoint;
    bool first = stage->index == 0, last = stage->index + 1 == stage->count;
    uint32_t from = first ? 0 : stage->first_layer + 1;
    uint32_t to = last ? scenario->model->layer_count + 2 : stage->first_layer + 1 + stage->layers;

    for (int shard = 0; shard <= VP_SHARD_EXPERT; shard++) {
        struct vp_sum bytes = vp_sum(0);
        uint64_t ranks = shard_ranks(scenario, layout, shard);
        for (uint32_t i = from; i < to; i++)
            bytes = vp_sum_add(bytes, table->bytes[i][shard]);
        /* with a tied head the last stage needs the embedding's matrix too */
        if (shard == VP_SHARD_VOCAB && scenario->model->tied && last && !first)
            bytes = vp_sum_add(bytes, table->bytes[0][shard]);
        if (bytes.v == 0)
            continue;
        struct vp_row *row =
            vp_ledger_add(ledger, VP_C_WEIGHTS, VP_FORMULA_W_TENSORS, device, shard_owner[shard]);
        vp_row_input(row, "tensor_bytes", bytes.v);
        vp_row_input(row, "ranks", ranks);
        if (shard == VP_SHARD_EXPERT) {
            bytes.v = fullest_experts(scenario->model, bytes.v, layout->expert_ranks);
            ranks = layout->expert_width;
        }
        bytes.v = vp_ceil_div(bytes.v, ranks);
        vp_row_exact(ledger, row, bytes);
    }
    if (table->extra_bytes > 0 && stage->index == 0 && !is_left_out(scenario, VP_CLASS_VISION)) {
        struct vp_row *row =
            vp_ledger_add(ledger, VP_C_VISION, VP_FORMULA_W_TENSORS, device, "encoder tensors");
        vp_row_input(row, "tensor_bytes", table->extra_bytes);
        vp_row_exact(ledger, row, vp_sum(table->extra_bytes));
    }
}

void vp_weights_add(struct vp_ledger *ledger, const struct vp_scenario *scenario,
                    const struct vp_stage *stage, uint32_t device) {
    struct vp_layout layout = vp_stage_layout(scenario);

    if (scenario->model->checkpoint.known) {
        add_tensors(ledger, scenario, stage, &layout, device);
    } else {
        add_ends(ledger, scenario, stage, &layout, device);
        add_blocks(ledger, scenario, stage, &layout, device);
        add_extras(ledger, scenario, stage, device);
    }
    add_absorbed(ledger, scenario, stage, &layout, device);
    add_rotary(ledger, scenario, device);
}

/* All tensors of a list of operators, whole. block NULL: those of the ends of the stack. */
static struct vp_sum whole_bytes(const struct vp_model *model, const struct vp_ops *ops,
                                 const struct vp_block *block) {
    struct vp_sum total = vp_sum(0);

    total.overflow |= ops->overflow;
    for (uint32_t i = 0; i < ops->count; i++) {
        const struct vp_op *op = &ops->item[i];
        uint8_t scheme = block                           ? block->scheme[op->role]
                         : op->role == VP_ROLE_EMBEDDING ? model->embedding_scheme
                                                         : model->head_scheme;
        if (op->matrices > 0)
            total = vp_sum_plus(
                total, vp_scheme_bytes(&model->schemes[scheme], op->matrices, op->out, op->in));
        total = vp_sum_plus(total, vp_sum_mul(vp_sum(op->vector), vector_bytes(op, model->dtype)));
    }
    return total;
}

struct vp_sum vp_weights_unsharded(const struct vp_model *model) {
    struct vp_sum total = vp_sum(0);
    struct vp_ops ops;

    for (uint32_t b = 0; b < model->block_count; b++) {
        const struct vp_block *block = &model->blocks[b];
        vp_ops_block(&ops, model, block);
        total = vp_sum_plus(total, vp_sum_mul(whole_bytes(model, &ops, block), block->count));
    }
    vp_ops_first(&ops, model);
    total = vp_sum_plus(total, whole_bytes(model, &ops, NULL));
    vp_ops_last(&ops, model);
    total = vp_sum_plus(total, whole_bytes(model, &ops, NULL));
    for (uint32_t i = 0; i < model->extra_count; i++) {
        const struct vp_extra *extra = &model->extras[i];
        if (!extra->loaded)
            continue;
        total = vp_sum_plus(
            total, vp_scheme_bytes(&model->schemes[extra->scheme], 1, 1, extra->matrix_elements));
        total = vp_sum_plus(total, vp_dtype_bytes(model->dtype, vp_sum(extra->other_elements)));
        if (!extra->layer)
            continue;
        vp_ops_block(&ops, model, extra->layer);
        total =
            vp_sum_plus(total, vp_sum_mul(whole_bytes(model, &ops, extra->layer), extra->layers));
    }
    return total;
}
