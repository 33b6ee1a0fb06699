#include "planner/memory/train_state.h"

#include <string.h>

#include "planner/ops/train_layout.h"

/* ---- one tensor ---- */

/* columns 0: a vector. layer: it belongs to a layer, not to embedding or head. */
struct tensor {
    enum vp_role role;
    uint64_t count, rows, columns;
    bool layer;
};

static struct vp_sum product(uint64_t a, uint64_t b, uint64_t c) {
    return vp_sum_mul(vp_sum_mul(vp_sum(a), b), c);
}

static struct vp_sum elements_of(const struct tensor *t) {
    return product(t->rows, vp_max(t->columns, 1), 1);
}

/* 0: there is none */
static uint64_t width_of(enum vp_dtype dtype) {
    return dtype == VP_DTYPE_UNSET ? 0 : vp_dtype_bytes(dtype, vp_sum(1)).v;
}

/* Values of less than 8 bits or 8 bits with an fp32 constant per block of them. */
static struct vp_sum blockwise(enum vp_dtype dtype, struct vp_sum n, uint64_t block) {
    struct vp_sum constants = vp_sum_mul(vp_sum(vp_ceil_div(n.v, vp_max(block, 1))), 4);
    return vp_sum_plus(vp_dtype_bytes(dtype, n), constants);
}

static struct vp_sum low_bit_states(const struct vp_train_rules *rules, const struct tensor *t,
                                    enum vp_dtype dtype, uint64_t block) {
    struct vp_sum n = elements_of(t);
    bool whole =
        n.v < rules->small_tensor || (rules->embedding_fp32 && t->role == VP_ROLE_EMBEDDING);
    return vp_sum_mul(whole ? vp_sum_mul(n, 4) : blockwise(dtype, n, block), 2);
}

/* Muon takes the matrices of the layers, AdamW the rest (reference implementation). */
static bool is_orthogonalised(const struct tensor *t) {
    return t->layer && t->columns > 1 && vp_role_class(t->role) != VP_CLASS_NORM;
}

/* Bytes that the optimizer keeps of a tensor between two steps. */
static struct vp_sum states_of(const struct vp_scenario *scenario, const struct tensor *t) {
    const struct vp_train_rules *rules = &scenario->engine.rules.train;
    struct vp_sum n = elements_of(t);
    struct vp_sum one = vp_dtype_bytes(scenario->train.optimizer_states, n);

    switch (scenario->train.optimizer) {
    case VP_OPTIMIZER_ADAMW:
        return vp_sum_mul(one, 2);
    case VP_OPTIMIZER_ADAMW_8BIT:
    case VP_OPTIMIZER_PAGED_ADAMW_8BIT:
        return low_bit_states(rules, t, VP_DTYPE_INT8, rules->block_8bit);
    case VP_OPTIMIZER_ADAMW_4BIT:
        return low_bit_states(rules, t, VP_DTYPE_INT4, rules->block_4bit);
    case VP_OPTIMIZER_ADAFACTOR: /* row and column sums in fp32 whatever the gradients' type */
        return t->columns > 1 ? vp_sum_mul(vp_sum_add(vp_sum(t->rows), t->columns), 4)
                              : vp_sum_mul(n, 4);
    case VP_OPTIMIZER_SGD_MOMENTUM:
    case VP_OPTIMIZER_LION:
        return one;
    case VP_OPTIMIZER_MUON:
        return vp_sum_mul(one, is_orthogonalised(t) ? 1 : 2);
    case VP_OPTIMIZER_SGD:
    case VP_OPTIMIZER_NONE:
    case VP_OPTIMIZER_COUNT:
        break;
    }
    return vp_sum(0);
}

/* ---- the base ---- */

static bool is_plain(const struct vp_scheme *scheme) {
    return scheme->scale == VP_SCALE_NONE && width_of(scheme->data) >= 2;
}

static void add_sum(struct vp_sum *out, struct vp_sum add) { *out = vp_sum_plus(*out, add); }

static void train_tensor(struct vp_weight_sums *out, const struct vp_scenario *scenario,
                         const struct tensor *t) {
    struct vp_sum n = elements_of(t);

    add_sum(&out->trainable, vp_sum_mul(n, t->count));
    add_sum(&out->states, vp_sum_mul(states_of(scenario, t), t->count));
    out->largest = vp_max(out->largest, n.v);
    if (is_orthogonalised(t))
        out->largest_matrix = vp_max(out->largest_matrix, n.v);
}

static bool is_trained(const struct vp_train *train, enum vp_role role) {
    return !train->lora.enabled && !train->frozen && !train->frozen_roles[role];
}

static void add_tensor(struct vp_weight_sums *out, const struct vp_scenario *scenario,
                       const struct tensor *t, const struct vp_scheme *scheme) {
    struct vp_sum n = vp_sum_mul(elements_of(t), t->count);

    if (t->count == 0 || n.v == 0)
        return;
    if (t->columns == 0 || is_plain(scheme)) {
        add_sum(&out->plain, n);
        add_sum(&out->stored, vp_dtype_bytes(scenario->train.parameters, n));
    } else {
        struct vp_sum all = vp_scheme_bytes(scheme, t->count, t->rows, t->columns);
        struct vp_sum bytes = vp_dtype_bytes(scheme->data, n);
        add_sum(&out->quantised, bytes);
        add_sum(&out->stored, bytes);
        add_sum(&out->constants, (struct vp_sum){vp_above(all.v, bytes.v), all.overflow});
        out->largest_quantised = vp_max(out->largest_quantised, elements_of(t).v);
    }
    if (is_trained(&scenario->train, t->role))
        train_tensor(out, scenario, t);
}

/* ---- adapters ---- */

static void add_adapter(struct vp_weight_sums *out, const struct vp_scenario *scenario,
                        const struct vp_op *op, const struct vp_op_share *share) {
    const struct vp_train_lora *lora = &scenario->train.lora;
    uint64_t slots = vp_max(lora->slots, 1);
    struct vp_sum pairs = product(share->matrices, slots, 1);
    const struct tensor parts[] = {
        {op->role, pairs.v, lora->rank, share->in, true},
        {op->role, pairs.v, share->out, lora->rank, true},
        {op->role, lora->dora ? pairs.v : 0, share->out, 0, true},
    };

    if (!lora->enabled || !lora->roles[op->role] || share->matrices == 0)
        return;
    out->adapters.overflow |= pairs.overflow;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct vp_sum n = vp_sum_mul(elements_of(&parts[i]), parts[i].count);
        if (n.v == 0)
            continue;
        add_sum(&out->adapters, vp_dtype_bytes(lora->dtype, n));
        struct tensor part = parts[i];
        if (op->shard == VP_SHARD_EXPERT) { /* a micro batch trains one set of the experts' */
            part.count /= slots;
            add_sum(&out->idle, vp_sum_mul(elements_of(&part), part.count * (slots - 1)));
        }
        train_tensor(out, scenario, &part);
    }
}

/* ---- operators ---- */

static void add_op(struct vp_train_weights *out, const struct vp_scenario *scenario,
                   const struct vp_op *op, const struct vp_block *block,
                   const struct vp_layout *layout, const struct vp_scheme *scheme) {
    const struct vp_train_rules *rules = &scenario->engine.rules.train;
    struct vp_op_share share = vp_ops_share(op, block, layout);
    bool expert = op->shard == VP_SHARD_EXPERT, joined = expert && rules->joined_experts;
    struct vp_weight_sums *sums = expert ? &out->experts : &out->dense;
    struct tensor matrix = {op->role, share.matrices, share.out, share.in, block != NULL};
    struct tensor vector = {op->role, 1, share.vector, 0, block != NULL};

    if (op->in == 1 && share.matrices > 0) { /* stated as a number of parameters */
        matrix.columns = 0;
    } else if (joined && is_plain(scheme)) {
        struct vp_sum rows = product(share.matrices, share.out, 1);
        sums->stored.overflow |= rows.overflow;
        matrix.count = share.matrices > 0;
        matrix.rows = rows.v;
    }
    if (op->kind == VP_OP_NORM && op->out > 0 && op->vector == 2 * op->out) {
        vector.count = 2; /* weight and bias */
        vector.rows /= 2;
    }
    add_tensor(sums, scenario, &matrix, scheme);
    add_tensor(sums, scenario, &vector, scheme);
    add_adapter(sums, scenario, op, &share);
    if (block && share.matrices > 0 && vp_class_quantised(vp_role_class(op->role)))
        add_sum(&sums->fp8_copies,
                vp_sum_mul(product(share.matrices, share.out, share.in), rules->fp8_weight_bytes));
}

void vp_train_block_weights(struct vp_train_weights *out, const struct vp_scenario *scenario,
                            const struct vp_block *block, const struct vp_layout *layout) {
    const struct vp_model *model = scenario->model;
    struct vp_ops ops;

    memset(out, 0, sizeof *out);
    vp_ops_block(&ops, model, block);
    out->dense.stored.overflow |= ops.overflow;
    for (uint32_t i = 0; i < ops.count; i++)
        add_op(out, scenario, &ops.item[i], block, layout,
               &model->schemes[block->scheme[ops.item[i].role]]);
}

/* Encoders and other tensors beside the stack, as one matrix each. */
static void add_extras(struct vp_train_weights *out, const struct vp_scenario *scenario,
                       const struct vp_layout *layout, bool first) {
    const struct vp_model *model = scenario->model;

    for (uint32_t i = 0; i < model->extra_count; i++) {
        const struct vp_extra *extra = &model->extras[i];
        struct vp_sum n = vp_ops_extra_parameters(model, extra);
        struct tensor t = {VP_ROLE_COUNT, 1, n.v, 0, false};
        if (!extra->counted || extra->first_stage != first)
            continue;
        out->dense.stored.overflow |= n.overflow;
        if (extra->sharded)
            t.rows = vp_ceil_div(n.v, layout->tensor);
        t.role = VP_ROLE_EMBEDDING;
        add_tensor(&out->dense, scenario, &t, &model->schemes[extra->scheme]);
    }
}

void vp_train_first_weights(struct vp_train_weights *out, const struct vp_scenario *scenario,
                            const struct vp_layout *layout) {
    const struct vp_model *model = scenario->model;
    struct vp_ops ops;

    memset(out, 0, sizeof *out);
    vp_ops_first(&ops, model);
    out->dense.stored.overflow |= ops.overflow;
    for (uint32_t i = 0; i < ops.count; i++)
        add_op(out, scenario, &ops.item[i], NULL, layout, &model->schemes[model->embedding_scheme]);
    add_extras(out, scenario, layout, true);
}

void vp_train_last_weights(struct vp_train_weights *out, const struct vp_scenario *scenario,
                           const struct vp_layout *layout, bool tied_copy) {
    const struct vp_model *model = scenario->model;
    struct vp_ops ops;

    memset(out, 0, sizeof *out);
    vp_ops_last(&ops, model);
    out->dense.stored.overflow |= ops.overflow;
    for (uint32_t i = 0; i < ops.count; i++)
        add_op(out, scenario, &ops.item[i], NULL, layout, &model->schemes[model->head_scheme]);
    add_extras(out, scenario, layout, false);
    if (!tied_copy)
        return;
    vp_ops_first(&ops, model);
    for (uint32_t i = 0; i < ops.count; i++)
        if (ops.item[i].role == VP_ROLE_EMBEDDING)
            add_op(out, scenario, &ops.item[i], NULL, layout,
                   &model->schemes[model->embedding_scheme]);
}

static void add_sums(struct vp_weight_sums *out, const struct vp_weight_sums *add, uint64_t times) {
    add_sum(&out->stored, vp_sum_mul(add->stored, times));
    add_sum(&out->plain, vp_sum_mul(add->plain, times));
    add_sum(&out->quantised, vp_sum_mul(add->quantised, times));
    add_sum(&out->constants, vp_sum_mul(add->constants, times));
    add_sum(&out->idle, vp_sum_mul(add->idle, times));
    add_sum(&out->adapters, vp_sum_mul(add->adapters, times));
    add_sum(&out->trainable, vp_sum_mul(add->trainable, times));
    add_sum(&out->states, vp_sum_mul(add->states, times));
    add_sum(&out->fp8_copies, vp_sum_mul(add->fp8_copies, times));
    if (times == 0)
        return;
    out->largest = vp_max(out->largest, add->largest);
    out->largest_matrix = vp_max(out->largest_matrix, add->largest_matrix);
    out->largest_quantised = vp_max(out->largest_quantised, add->largest_quantised);
}

void vp_train_weights_add(struct vp_train_weights *out, const struct vp_train_weights *add,
                          uint64_t times) {
    add_sums(&out->dense, &add->dense, times);
    add_sums(&out->experts, &add->experts, times);
}

/* ---- what data parallelism divides ---- */

struct vp_train_shards vp_train_shards_of(const struct vp_scenario *scenario, bool experts) {
    uint64_t copies = experts ? vp_train_expert_copies(scenario) : vp_train_copies(scenario);
    uint64_t stage = scenario->parallel.fsdp ? 3 : scenario->parallel.zero;
    /* without synchronisation whole gradients are accumulated */
    bool whole = scenario->train.no_sync && vp_train_micro_batches(scenario) > 1;

    return (struct vp_train_shards){.parameters = stage >= 3 ? copies : 1,
                                    .gradients = stage >= 2 && !whole ? copies : 1,
                                    .states = stage >= 1 ? copies : 1};
}

static struct vp_sum divided(struct vp_sum sum, uint64_t by) {
    return (struct vp_sum){vp_ceil_div(sum.v, vp_max(by, 1)), sum.overflow};
}

static struct vp_sum typed(enum vp_dtype dtype, struct vp_sum elements) {
    return dtype == VP_DTYPE_UNSET ? vp_sum(0) : vp_dtype_bytes(dtype, elements);
}

/* ---- the optimizer's step ---- */

/* AdamW's are those of the framework's version. Lion: the update and its sum (lion-pytorch).
 * Adafactor: squares, the estimate, and fp32 copies of what is not fp32 (transformers). Muon: three
 * 16-bit matrices of the Newton-Schulz iteration and the update (reference implementation). 8- and
 * 4-bit optimizers step in one kernel, as fused ones do. */
static struct vp_sum step_temporaries(const struct vp_scenario *scenario,
                                      const struct vp_weight_sums *w, uint64_t shards,
                                      uint64_t parameter_shards) {
    const struct vp_train *train = &scenario->train;
    const struct vp_train_rules *rules = &scenario->engine.rules.train;
    enum vp_dtype states = train->optimizer_states;
    struct vp_sum largest = divided(vp_sum(w->largest), parameter_shards);
    struct vp_sum matrix = divided(vp_sum(w->largest_matrix), parameter_shards);
    struct vp_sum all = rules->optimizer_in_backward ? largest : divided(w->trainable, shards);
    uint64_t casts =
        (width_of(train->gradients) < 4 ? 1U : 0U) + (width_of(train->parameters) < 4 ? 1U : 0U);
    struct vp_sum adam = vp_sum(0);

    if (train->loop == VP_LOOP_FOREACH)
        adam = vp_sum_mul(typed(states, all), rules->step_all);
    else if (train->loop == VP_LOOP_FOR)
        adam = vp_sum_mul(typed(states, largest), rules->step_largest);
    switch (train->optimizer) {
    case VP_OPTIMIZER_ADAMW:
        return adam;
    case VP_OPTIMIZER_LION:
        return train->loop == VP_LOOP_FUSED ? vp_sum(0) : vp_sum_mul(typed(states, largest), 2);
    case VP_OPTIMIZER_ADAFACTOR:
        return vp_sum_mul(largest, 4 * (2 + casts));
    case VP_OPTIMIZER_MUON:
        return vp_sum_plus(vp_sum_mul(matrix, 6), typed(states, matrix));
    case VP_OPTIMIZER_ADAMW_8BIT:
    case VP_OPTIMIZER_PAGED_ADAMW_8BIT:
    case VP_OPTIMIZER_ADAMW_4BIT:
    case VP_OPTIMIZER_SGD:
    case VP_OPTIMIZER_SGD_MOMENTUM:
    case VP_OPTIMIZER_NONE:
    case VP_OPTIMIZER_COUNT:
        break;
    }
    return vp_sum(0);
}

/* ---- what a rank keeps ---- */

struct vp_sum vp_train_gradients(const struct vp_scenario *scenario,
                                 const struct vp_train_weights *weights) {
    enum vp_dtype dtype = scenario->train.gradients;
    struct vp_train_shards dense = vp_train_shards_of(scenario, false);
    struct vp_train_shards experts = vp_train_shards_of(scenario, true);

    return vp_sum_plus(divided(typed(dtype, weights->dense.trainable), dense.gradients),
                       divided(typed(dtype, weights->experts.trainable), experts.gradients));
}

static void keep(struct vp_train_kept *out, const struct vp_scenario *scenario,
                 const struct vp_weight_sums *w, bool experts) {
    const struct vp_train *train = &scenario->train;
    struct vp_train_shards shards = vp_train_shards_of(scenario, experts);
    struct vp_sum adapters = divided(w->adapters, shards.parameters);
    struct vp_sum temp = step_temporaries(scenario, w, shards.states, shards.parameters);
    bool cast = scenario->engine.rules.train.step_gradient_copy &&
                width_of(train->gradients) < width_of(train->master);

    add_sum(&out->parameters, divided(w->stored, shards.parameters));
    add_sum(&out->parameters, w->constants);
    add_sum(&out->parameters, adapters);
    add_sum(&out->constants, w->constants);
    add_sum(&out->adapters, adapters);
    add_sum(&out->master, divided(typed(train->master, w->trainable), shards.states));
    add_sum(&out->optimizer, divided(w->states, shards.states));
    add_sum(&out->fp8_copies, w->fp8_copies);
    add_sum(&out->trainable, w->trainable);
    add_sum(&out->step_temp, temp);
    if (cast && train->master != VP_DTYPE_UNSET)
        add_sum(&out->step_temp, divided(typed(train->master, w->trainable), shards.states));
    struct vp_sum largest = typed(train->gradients, vp_sum(w->largest));
    if (largest.v > out->largest_gradient.v)
        out->largest_gradient = largest;
}

/* Moves what is offloaded to the host. */
static void offload(struct vp_train_kept *out, const struct vp_scenario *scenario) {
    const struct vp_train *train = &scenario->train;
    bool any = train->offload_optimizer || train->offload_parameters;

    if (train->offload_parameters) {
        add_sum(&out->host, out->parameters);
        out->host.v -= vp_min(out->constants.v, out->host.v);
        out->parameters = out->constants;
        out->adapters = vp_sum(0);
    }
    if (train->offload_optimizer) {
        add_sum(&out->host, vp_sum_plus(out->optimizer, out->master));
        out->optimizer = out->master = out->step_temp = vp_sum(0);
    }
    if (any && scenario->engine.rules.train.offload_gradients) {
        add_sum(&out->host, out->gradients);
        out->gradients = vp_sum(0);
    }
}

void vp_train_keep(struct vp_train_kept *out, const struct vp_scenario *scenario,
                   const struct vp_train_weights *weights) {
    memset(out, 0, sizeof *out);
    keep(out, scenario, &weights->dense, false);
    keep(out, scenario, &weights->experts, true);
    out->gradients = vp_train_gradients(scenario, weights);
    if (scenario->engine.rules.train.optimizer_in_backward)
        out->gradients = out->largest_gradient; /* each is dropped once its tensor was stepped */
    offload(out, scenario);
}

/* The type that whole weights of a layer have: FSDP casts an fp32 shard for 16-bit computation. */
static enum vp_dtype working_type(const struct vp_scenario *scenario) {
    enum vp_dtype kept = scenario->train.parameters, compute = scenario->precision.compute;
    bool cast = scenario->parallel.fsdp && scenario->train.autocast == VP_DTYPE_UNSET &&
                compute != VP_DTYPE_UNSET && width_of(compute) < width_of(kept);
    return cast ? compute : kept;
}

struct vp_sum vp_train_gathered(const struct vp_scenario *scenario,
                                const struct vp_train_weights *weights) {
    const struct vp_weight_sums *parts[] = {&weights->dense, &weights->experts};
    enum vp_dtype dtype = working_type(scenario), kept = scenario->train.parameters;
    struct vp_sum bytes = vp_sum(0);

    for (int i = 0; i < 2; i++) { /* one rank alone converts its weights as well */
        if (vp_train_shards_of(scenario, i == 1).parameters == 1 && dtype == kept)
            continue;
        add_sum(&bytes, vp_dtype_bytes(dtype, parts[i]->plain));
        add_sum(&bytes, parts[i]->quantised);
        add_sum(&bytes, parts[i]->adapters);
    }
    return bytes;
}

struct vp_sum vp_train_scattered(const struct vp_scenario *scenario,
                                 const struct vp_train_weights *weights) {
    const struct vp_weight_sums *parts[] = {&weights->dense, &weights->experts};
    uint64_t reduced = scenario->engine.rules.train.reduce_bytes;
    enum vp_dtype dtype = working_type(scenario);
    struct vp_sum bytes = vp_sum(0);

    if (scenario->train.lora.enabled)
        dtype = scenario->train.lora.dtype;
    for (int i = 0; i < 2; i++) {
        struct vp_train_shards shards = vp_train_shards_of(scenario, i == 1);
        if (shards.gradients == 1 && !scenario->parallel.fsdp)
            continue;
        add_sum(&bytes, vp_dtype_bytes(dtype, parts[i]->trainable));
        if (reduced > 0 && reduced != width_of(dtype)) /* the buffer that is reduced */
            add_sum(&bytes, vp_sum_mul(parts[i]->trainable, reduced));
    }
    return bytes;
}

struct vp_sum vp_train_trainable(const struct vp_scenario *scenario) {
    static const struct vp_layout WHOLE = {1, 1, 1, 1, 1, 1};
    const struct vp_model *model = scenario->model;
    struct vp_train_weights all = {0}, part;

    for (uint32_t b = 0; b < model->block_count; b++) {
        vp_train_block_weights(&part, scenario, &model->blocks[b], &WHOLE);
        vp_train_weights_add(&all, &part, model->blocks[b].count);
    }
    vp_train_first_weights(&part, scenario, &WHOLE);
    vp_train_weights_add(&all, &part, 1);
    vp_train_last_weights(&part, scenario, &WHOLE, false);
    vp_train_weights_add(&all, &part, 1);
    return vp_sum_plus(vp_sum_plus(all.dense.trainable, all.experts.trainable), all.experts.idle);
}
