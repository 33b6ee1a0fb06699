#include "planner/memory/train_stage.h"

#include <string.h>

#include "planner/memory/train_megatron.h"
#include "planner/ops/train_layout.h"

/* What is made once per kind of layer. */
struct kind {
    struct vp_tape *tape;
    struct vp_train_weights weights;
    uint64_t gradients, gathered, scattered, converted, second, outputs;
};

struct maker {
    struct vp_arena *arena;
    struct vp_train_stage *out;
    const struct vp_scenario *scenario;
    struct vp_layout layout;
    struct kind *kinds;         /* by block */
    struct vp_tape *first_tape; /* of the model's first layer, when its input needs no gradient */
};

static uint64_t take(struct maker *m, struct vp_sum sum) {
    m->out->overflow |= sum.overflow;
    return sum.v;
}

/* ---- which layers ---- */

/* Layers of virtual stage `index` of `count` in the order of the model: stage i of p holds the
 * virtual stages i, i + p, ... */
static struct vp_stage split(const struct vp_scenario *scenario, uint32_t count, uint32_t index) {
    const struct vp_train_rules *rules = &scenario->engine.rules.train;
    uint32_t layers = scenario->model->layer_count;
    uint32_t head = (uint32_t)vp_min(rules->first_stage_layers, layers);
    uint32_t tail = (uint32_t)vp_min(rules->last_stage_layers, layers - head);
    uint32_t ends = (head > 0 ? 1U : 0U) + (tail > 0 ? 1U : 0U);

    if (ends == 0 || count <= ends)
        return vp_stage_split(layers, count, index);
    if (head > 0 && index == 0)
        return (struct vp_stage){index, count, 0, head};
    if (tail > 0 && index + 1 == count)
        return (struct vp_stage){index, count, layers - tail, tail};
    struct vp_stage out =
        vp_stage_split(layers - head - tail, count - ends, index - (head > 0 ? 1U : 0U));
    out.first_layer += head;
    out.index = index;
    out.count = count;
    return out;
}

static uint32_t square_root_up(uint32_t n) {
    uint32_t root = 0;
    while (root * root < n)
        root++;
    return root;
}

static bool is_listed(const struct vp_recompute *how, uint32_t layer) {
    for (uint32_t i = 0; i < how->list_count; i++)
        if (how->list[i] == layer)
            return true;
    return false;
}

/* Number of the given segment that the layer lies in; false: it is beyond all of them. */
static bool find_segment(const struct vp_recompute *how, uint32_t layer, uint32_t *segment) {
    uint64_t end = 0;
    for (*segment = 0; *segment < how->list_count; (*segment)++) {
        end = how->list[*segment] > UINT32_MAX - end ? UINT32_MAX : end + how->list[*segment];
        if (layer < end)
            return true;
    }
    return false;
}

/* Is the layer recomputed, and with which others? position: in its chunk of `count` layers. */
static void set_recompute(struct vp_train_layer *l, const struct vp_recompute *how,
                          uint32_t position, uint32_t count) {
    uint32_t given = 0;

    l->segment = l->layer;
    switch (how->kind) {
    case VP_RECOMPUTE_NONE:
    case VP_RECOMPUTE_SELECTIVE:
    case VP_RECOMPUTE_OPTIMAL: /* plan/ makes a list of it */
        break;
    case VP_RECOMPUTE_FULL:
        l->recomputed = true;
        break;
    case VP_RECOMPUTE_SQRT:
        l->recomputed = true;
        l->segment = l->layer - position % square_root_up(count);
        break;
    case VP_RECOMPUTE_EVERY:
        l->recomputed = true;
        l->segment = l->layer - (uint32_t)(position % vp_max(how->every, 1));
        break;
    case VP_RECOMPUTE_SEGMENTS:
        l->recomputed = find_segment(how, l->layer, &given);
        l->segment = l->recomputed ? given : how->list_count + l->layer;
        break;
    case VP_RECOMPUTE_FIRST:
        l->recomputed = (how->per_stage_first ? position : l->layer) < how->first;
        break;
    case VP_RECOMPUTE_LAYERS:
        l->recomputed = is_listed(how, l->layer);
        break;
    case VP_RECOMPUTE_PLAN:
        l->recomputed = how->plan[l->layer].recomputed;
        l->segment = how->plan[l->layer].segment;
        break;
    }
}

/* Regions of a kept layer that are recomputed. */
static uint32_t selected_regions(const struct vp_recompute *how, const struct vp_train_layer *l) {
    if (how->kind == VP_RECOMPUTE_PLAN)
        return how->plan[l->layer].selective;
    return how->kind == VP_RECOMPUTE_SELECTIVE ? how->selective : 0;
}

/* ---- kinds ---- */

static uint64_t compiled(const struct maker *m, uint64_t bytes) {
    const struct vp_train *train = &m->scenario->train;
    bool fused = train->ops.fused_norm && train->ops.fused_mlp;

    return train->compile && !fused
               ? vp_mul_div(bytes, m->scenario->engine.rules.train.compiled.likely, 1000)
               : bytes;
}

/* Bytes of a gradient of the largest tensor that stands beside the accumulated one. */
static uint64_t second_gradient(struct maker *m, const struct vp_train_weights *weights) {
    const struct vp_train *train = &m->scenario->train;
    const struct vp_train_rules *rules = &m->scenario->engine.rules.train;
    struct vp_sum n = vp_sum(vp_max(weights->dense.largest, weights->experts.largest));

    if (rules->gradients_persist)
        return rules->fuses_accumulation ? 0 : take(m, vp_dtype_bytes(train->parameters, n));
    return m->out->micro_batches > 1 ? take(m, vp_dtype_bytes(train->gradients, n)) : 0;
}

/* What selective recomputation by operator keeps beside a layer's input: the outputs of attention
 * and of every second matrix (torchtitan's default). */
static uint64_t kept_outputs(struct maker *m, const struct vp_block *block) {
    struct vp_ops ops;
    struct vp_sum width = vp_sum(0);
    uint32_t matrices = 0;

    vp_ops_block(&ops, m->scenario->model, block);
    for (uint32_t i = 0; i < ops.count; i++) {
        const struct vp_op *op = &ops.item[i];
        struct vp_op_share share = vp_ops_share(op, block, &m->layout);
        if (op->kind == VP_OP_ATTENTION)
            width = vp_sum_add(width, vp_ceil_div(op->out, m->layout.attention));
        else if (op->kind == VP_OP_LINEAR && matrices++ % 2 == 0)
            width = vp_sum_add(width, share.out);
    }
    width = vp_sum_mul(width, vp_tape_tokens(m->scenario));
    return take(m, vp_dtype_bytes(m->scenario->precision.compute, width));
}

static const struct kind *kind_of(struct maker *m, uint32_t block) {
    struct kind *kind = &m->kinds[block];
    const struct vp_block *b = &m->scenario->model->blocks[block];

    if (kind->tape)
        return kind;
    kind->tape = VP_NEW(m->arena, struct vp_tape);
    vp_tape_block(kind->tape, m->scenario, b, false);
    vp_train_block_weights(&kind->weights, m->scenario, b, &m->layout);
    kind->gradients = take(m, vp_train_gradients(m->scenario, &kind->weights));
    kind->gathered = take(m, vp_train_gathered(m->scenario, &kind->weights));
    kind->scattered = take(m, vp_train_scattered(m->scenario, &kind->weights));
    kind->second = second_gradient(m, &kind->weights);
    uint64_t largest =
        vp_max(kind->weights.dense.largest_quantised, kind->weights.experts.largest_quantised);
    kind->converted = take(m, vp_dtype_bytes(m->scenario->precision.compute, vp_sum(largest)));
    kind->outputs = kept_outputs(m, b);
    m->out->overflow |= kind->tape->overflow;
    return kind;
}

/* The first layer's tape lacks what a gradient of its input would need. */
static const struct vp_tape *tape_of(struct maker *m, const struct kind *kind,
                                     const struct vp_train_layer *l) {
    if (l->layer != 0 || m->scenario->train.input_grad)
        return kind->tape;
    m->first_tape = VP_NEW(m->arena, struct vp_tape);
    vp_tape_block(m->first_tape, m->scenario, &m->scenario->model->blocks[l->block], true);
    m->out->overflow |= m->first_tape->overflow;
    return m->first_tape;
}

/* ---- layers ---- */

static void add_layer(struct maker *m, uint32_t layer, uint32_t chunk, uint32_t position,
                      uint32_t count) {
    struct vp_train_layer *l = &m->out->layer[m->out->layers++];
    const struct vp_recompute *how = &m->scenario->train.recompute;

    l->layer = layer;
    l->block = m->scenario->model->layers[layer];
    l->chunk = chunk;
    const struct kind *kind = kind_of(m, l->block);
    l->tape = tape_of(m, kind, l);
    l->gradient_bytes = kind->gradients;
    l->gradient_temp_bytes = kind->second;
    l->gathered_bytes = kind->gathered;
    l->scattered_bytes = kind->scattered;
    l->weight_temp_bytes = kind->converted;
    set_recompute(l, how, position, count);
    m->out->recomputed_forwards += l->recomputed;

    const struct vp_train_layer *before = position > 0 ? l - 1 : NULL;
    bool inner = before && before->recomputed && before->segment == l->segment;
    uint64_t all = compiled(m, l->tape->saved_bytes);
    if (l->recomputed) {
        l->saved_bytes = inner ? 0 : l->tape->input_bytes;
        l->rebuilt_bytes = all;
        if (!inner && l->tape->input_on_tape)
            l->rebuilt_bytes = vp_above(all, l->tape->input_bytes);
    } else if (how->kind == VP_RECOMPUTE_SELECTIVE &&
               m->scenario->engine.kind != VP_ENGINE_MEGATRON) {
        l->saved_bytes = vp_min(l->tape->input_bytes + kind->outputs, all);
        l->rebuilt_bytes = all - l->saved_bytes;
    } else {
        l->rebuilt_bytes = vp_min(vp_tape_selected(l->tape, selected_regions(how, l)), all);
        l->saved_bytes = all - l->rebuilt_bytes;
    }
}

static void add_layers(struct maker *m) {
    struct vp_train_stage *out = m->out;
    uint32_t count = out->count * out->chunks;

    out->layer = VP_NEW_ARRAY(m->arena, m->scenario->model->layer_count, struct vp_train_layer);
    m->kinds = VP_NEW_ARRAY(m->arena, m->scenario->model->block_count, struct kind);
    for (uint32_t c = 0; c < out->chunks; c++) {
        struct vp_stage part = split(m->scenario, count, c * out->count + out->index);
        for (uint32_t i = 0; i < part.layers; i++)
            add_layer(m, part.first_layer + i, c, i, part.layers);
    }
}

/* Tapes of all but the last layers, which are needed at once, go to the host. */
static void offload_tapes(struct maker *m) {
    struct vp_train_stage *out = m->out;
    uint64_t stay = m->scenario->engine.rules.train.offloaded_layers;

    for (uint32_t i = 0; m->scenario->train.offload_activations && i < out->layers; i++)
        if (out->layers - i > stay) {
            out->layer[i].offloaded_bytes = out->layer[i].saved_bytes;
            out->layer[i].saved_bytes = 0;
        }
}

/* ---- the schedule ---- */

/* Forward passes before the first backward pass, by chunk. 1F1B: as many as there are stages from
 * here on. Interleaved: 2 (p - i - 1) + (v - 1) p of warm-up and one more, chunk after chunk for p
 * micro batches each (Megatron pipeline_parallel/schedules.py). */
static void set_in_flight(struct maker *m) {
    struct vp_train_stage *out = m->out;
    uint64_t group = m->scenario->engine.rules.train.interleave_group;
    uint64_t *counts = VP_NEW_ARRAY(m->arena, out->chunks, uint64_t);
    uint64_t stages = out->count, behind = stages - 1 - out->index, n = out->micro_batches;

    out->chunk_in_flight = counts;
    if (m->scenario->engine.rules.train.all_in_flight || out->chunks == 1) {
        bool all = m->scenario->engine.rules.train.all_in_flight;
        for (uint32_t c = 0; c < out->chunks; c++)
            counts[c] = all ? n : vp_min(n, behind + 1);
        out->in_flight = counts[0];
        return;
    }
    group = vp_min(group > 0 ? group : stages, n);
    uint64_t total = 2 * behind + (out->chunks - 1) * group + 1;
    out->in_flight = total / out->chunks >= n ? n * out->chunks : total;
    for (uint64_t k = 0; k < out->in_flight; k++)
        counts[k % (group * out->chunks) / group]++;
}

static void set_saved(struct maker *m) {
    struct vp_train_stage *out = m->out;
    struct vp_sum all = vp_sum(0), host = vp_sum(0);

    for (uint32_t i = 0; i < out->layers; i++) {
        const struct vp_train_layer *l = &out->layer[i];
        uint64_t times = out->chunk_in_flight[l->chunk];
        all = vp_sum_plus(all, vp_sum_mul(vp_sum(l->saved_bytes), times));
        host = vp_sum_plus(host, vp_sum_mul(vp_sum(l->offloaded_bytes), times));
    }
    if (out->first)
        all = vp_sum_plus(all,
                          vp_sum_mul(vp_sum(out->embedding.saved_bytes), out->chunk_in_flight[0]));
    if (out->last)
        all = vp_sum_plus(all, vp_sum_mul(vp_sum(out->head.tape.saved_bytes),
                                          out->chunk_in_flight[out->chunks - 1]));
    out->saved_bytes = take(m, all);
    out->host_bytes = take(m, vp_sum_add(host, out->host_bytes));
}

/* ---- weights and states ---- */

static void add_kept(struct maker *m, enum vp_train_part part,
                     const struct vp_train_weights *weights) {
    struct vp_train_stage *out = m->out;
    struct vp_train_kept *kept = &out->part[part];

    vp_train_keep(kept, m->scenario, weights);
    out->parameter_bytes += take(m, kept->parameters);
    out->adapter_bytes += take(m, kept->adapters);
    out->master_bytes += take(m, kept->master);
    out->optimizer_bytes += take(m, kept->optimizer);
    out->gradient_bytes += take(m, kept->gradients);
    out->fp8_bytes += take(m, kept->fp8_copies);
    out->host_bytes += take(m, kept->host);
    out->trainable += take(m, kept->trainable);
}

static void add_weights(struct maker *m) {
    struct vp_train_stage *out = m->out;
    const struct vp_scenario *scenario = m->scenario;
    struct vp_train_weights all = {0}, first = {0}, last = {0}, layers = {0};
    struct vp_train_kept whole;

    if (out->first)
        vp_train_first_weights(&first, scenario, &m->layout);
    if (out->last)
        vp_train_last_weights(&last, scenario, &m->layout, scenario->model->tied && !out->first);
    for (uint32_t i = 0; i < out->layers; i++)
        vp_train_weights_add(&layers, &m->kinds[out->layer[i].block].weights, 1);
    add_kept(m, VP_PART_FIRST, &first);
    add_kept(m, VP_PART_LAYERS, &layers);
    add_kept(m, VP_PART_LAST, &last);
    out->embedding_gradient_bytes = take(m, vp_train_gradients(scenario, &first));
    out->head_gradient_bytes = take(m, vp_train_gradients(scenario, &last));
    out->embedding_gathered_bytes = take(m, vp_train_gathered(scenario, &first));
    out->head_gathered_bytes = take(m, vp_train_gathered(scenario, &last));

    vp_train_weights_add(&all, &first, 1);
    vp_train_weights_add(&all, &layers, 1);
    vp_train_weights_add(&all, &last, 1);
    vp_train_keep(&whole, scenario, &all);
    out->step_temp_bytes = take(m, whole.step_temp);
    out->accumulation_temp_bytes = second_gradient(m, &all);
    out->gradients_persist = scenario->engine.rules.train.gradients_persist;
    if (scenario->engine.rules.train.optimizer_in_backward) {
        out->gradient_bytes = take(m, whole.gradients); /* one tensor's at a time */
        for (int i = 0; i < VP_PART_COUNT; i++)
            out->part[i].gradients = vp_sum(0);
        out->part[VP_PART_LAYERS].gradients = vp_sum(out->gradient_bytes);
    }
    out->gradients_grow = !out->gradients_persist && out->micro_batches == 1 &&
                          !scenario->engine.rules.train.optimizer_in_backward;
}

/* ---- what stands beside ---- */

/* Copies of gradients in DDP's buckets; buffers that ZeRO fills before it reduces them. */
static uint64_t collected(struct maker *m) {
    const struct vp_train_rules *rules = &m->scenario->engine.rules.train;
    uint64_t stage = m->scenario->parallel.fsdp ? 3 : m->scenario->parallel.zero;
    struct vp_sum bytes = vp_sum(0);

    if (vp_train_copies(m->scenario) == 1 || m->out->trainable == 0)
        return 0;
    if (rules->gradient_buckets && stage == 0)
        bytes = vp_sum(m->out->gradient_bytes);
    if (rules->reduce_elements > 0 && stage >= 1)
        bytes = vp_sum_plus(
            bytes, vp_dtype_bytes(m->scenario->train.gradients, vp_sum(rules->reduce_elements)));
    return take(m, bytes);
}

/* Context and libraries, and buffers of one communicator for each kind of parallelism. */
static struct vp_amount outside(const struct vp_scenario *scenario) {
    const struct vp_train_rules *rules = &scenario->engine.rules.train;
    const struct vp_parallel *p = &scenario->parallel;
    const uint64_t sizes[] = {p->data, p->tensor, p->pipeline, p->context, p->expert};
    struct vp_amount all = rules->context;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] > 1)
            all = vp_amount_add(all, rules->communicators);
    return all;
}

static void add_overheads(struct maker *m) {
    struct vp_train_stage *out = m->out;
    const struct vp_train_rules *rules = &m->scenario->engine.rules.train;
    struct vp_megatron_beside beside;

    vp_megatron_beside(&beside, m->scenario, out);
    out->overflow |= beside.overflow;
    out->between = vp_amount_add(beside.boundaries, vp_exactly(beside.gradient_copies));
    out->buffer_bytes = beside.buffer;
    out->placeholder_bytes = beside.placeholders;
    out->deferred_bytes = beside.deferred;
    out->head_temp_bytes = beside.head_gradients;
    out->table_temp_bytes = beside.table_gradients;

    out->workspace = vp_amount_add(rules->workspace, rules->beside);
    out->communication = vp_exactly(collected(m));
    out->runtime = outside(m->scenario);
    struct vp_sum all = vp_sum_add(vp_sum(out->parameter_bytes), out->master_bytes);
    all = vp_sum_add(vp_sum_add(all, out->optimizer_bytes), out->fp8_bytes);
    all = vp_sum_add(vp_sum_add(all, out->workspace.likely), out->communication.likely);
    all = vp_sum_add(vp_sum_add(all, out->buffer_bytes), out->placeholder_bytes);
    out->static_bytes = take(m, all);
}

void vp_train_stage_make(struct vp_arena *arena, struct vp_train_stage *out,
                         const struct vp_scenario *scenario, uint32_t index) {
    struct maker m = {
        .arena = arena, .out = out, .scenario = scenario, .layout = vp_train_layout(scenario)};

    memset(out, 0, sizeof *out);
    out->index = index;
    out->count = (uint32_t)vp_max(scenario->parallel.pipeline, 1);
    out->chunks = out->count > 1 ? (uint32_t)vp_max(scenario->parallel.virtual_pipeline, 1) : 1;
    out->first = index == 0;
    out->last = index + 1 == out->count;
    out->micro_batches = vp_train_micro_batches(scenario);
    add_layers(&m);
    offload_tapes(&m);
    if (out->first)
        vp_tape_first(&out->embedding, scenario);
    if (out->last)
        vp_tape_last(&out->head, scenario);
    out->logits_peak_bytes = out->head.logits_peak_bytes;
    out->overflow |= out->embedding.overflow || out->head.tape.overflow;
    set_in_flight(&m);
    add_weights(&m);
    set_saved(&m);
    add_overheads(&m);
    vp_train_stage_moments(out, scenario);
}
