#include "planner/timeline/torch_parts.h"

#include "planner/ops/train_layout.h"
#include "planner/timeline/step.h"

/* What a micro batch holds between its forward and its backward pass. */
struct pass {
    struct vp_torch_stack tape;
    uint32_t *input; /* of the first layer of each recomputed segment, by layer */
    uint32_t *depth; /* of the outputs before each layer, with selective recomputation */
    struct vp_torch_stack outputs;
    uint32_t held[3]; /* token ids, mask, tables of the rotary embedding */
    uint32_t helds;
    uint32_t logits;
    uint32_t grad; /* of the last layer's output, once the head has run */
};

struct step {
    struct vp_torch t;
    const struct vp_train_stage *stage;
    struct pass *pass;      /* one for each micro batch in flight */
    uint32_t *shard;        /* gradients that stay, sharded: by layer, then embedding and head */
    uint32_t gather, whole; /* of the layer at work; VP_NO_STORAGE */
    uint32_t *staying;      /* by layer: whole weights between forward and backward pass */
    uint32_t ahead;         /* all-gather of the next one */
    uint32_t reducing;      /* reduce-scatter input of the layer before */
    uint32_t root;          /* embedding and head while they are whole */
    uint32_t root_gather;   /* the buffer that they came in */
};

/* ---- types ---- */

static uint64_t width_of(enum vp_dtype dtype) { return vp_dtype_bytes(dtype, vp_sum(1)).v; }

static void set_types(struct vp_torch *t) {
    const struct vp_scenario *s = t->scenario;
    const struct vp_train *train = &s->train;
    uint64_t kept = width_of(train->parameters);
    uint64_t compute =
        s->precision.compute == VP_DTYPE_UNSET ? kept : width_of(s->precision.compute);

    t->autocast = train->autocast != VP_DTYPE_UNSET;
    t->mixed = s->parallel.fsdp && !t->autocast && compute < kept;
    t->weight_bytes = t->mixed ? compute : kept;
    t->stream_bytes = t->weight_bytes;
    t->compute_bytes = t->autocast ? width_of(train->autocast) : vp_min(compute, kept);
    t->adapter_bytes = train->lora.enabled ? width_of(train->lora.dtype) : 0;
    if (t->mixed || t->autocast)
        t->adapter_bytes = vp_min(t->adapter_bytes, t->compute_bytes);
    t->gradient_bytes = t->mixed ? t->weight_bytes : width_of(train->gradients);
    t->compiled = train->compile;
}

/* ---- what is there all the time ---- */

/* Bytes in pieces, one per layer: of the size that tensors of a layer have together. */
static void hold(struct step *p, uint64_t bytes, enum vp_component component) {
    uint64_t pieces = vp_max(p->stage->layers, 1);
    for (uint64_t i = 0; i < pieces && bytes > 0; i++) {
        uint64_t part = i + 1 < pieces ? bytes / (pieces - i) : bytes;
        bytes -= part;
        if (part > 0)
            vp_torch_take_on(&p->t, part, VP_STREAM_WORK, component);
    }
}

static void hold_weights(struct step *p) {
    const struct vp_train_stage *stage = p->stage;
    hold(p, stage->parameter_bytes - stage->adapter_bytes, VP_C_WEIGHTS);
    hold(p, stage->adapter_bytes, VP_C_ADAPTERS);
    hold(p, stage->master_bytes, VP_C_MASTER_WEIGHTS);
    hold(p, stage->fp8_bytes, VP_C_WEIGHTS);
    hold(p, stage->communication.likely, VP_C_COMMUNICATION);
    if (stage->gradients_persist)
        hold(p, stage->gradient_bytes, VP_C_GRADIENTS);
}

/* ---- sharded parameters ---- */

static uint32_t taken(struct step *p, uint64_t bytes, uint8_t stream, enum vp_component c) {
    return bytes > 0 ? vp_torch_take_on(&p->t, bytes, stream, c) : VP_NO_STORAGE;
}

static void dropped(struct step *p, uint32_t *id) {
    if (*id != VP_NO_STORAGE)
        vp_torch_drop(&p->t, *id);
    *id = VP_NO_STORAGE;
}

/* The buffer of an all-gather; what it is copied out into is taken when the layer begins (FSDP 2:
 * two whole copies; FSDP 1 and ZeRO 3 work on the buffer itself). */
static uint32_t gather(struct step *p, uint32_t row) {
    return taken(p, p->stage->layer[row].gathered_bytes, VP_STREAM_GATHER, VP_C_WEIGHTS);
}

static bool copies_out(const struct step *p) {
    return p->t.scenario->parallel.fsdp && p->t.rules->gather_copies;
}

static void begin_layer(struct step *p, uint32_t row) {
    if (p->staying[row] != VP_NO_STORAGE) {
        p->whole = p->staying[row];
        p->staying[row] = VP_NO_STORAGE;
        return;
    }
    p->gather = p->ahead != VP_NO_STORAGE ? p->ahead : gather(p, row);
    p->ahead = VP_NO_STORAGE;
    if (copies_out(p))
        p->whole = taken(p, p->stage->layer[row].gathered_bytes, VP_STREAM_WORK, VP_C_WEIGHTS);
}

/* stays: until the layer's backward pass (reshard_after_forward: false). */
static void end_layer(struct step *p, uint32_t row, bool stays) {
    if (stays && p->whole == VP_NO_STORAGE) {
        p->whole = p->gather;
        p->gather = VP_NO_STORAGE;
    }
    if (stays)
        p->staying[row] = p->whole;
    else
        dropped(p, &p->whole);
    p->whole = VP_NO_STORAGE;
    dropped(p, &p->gather);
}

static bool offloads_gradients(const struct step *p) {
    const struct vp_train *train = &p->t.scenario->train;
    return p->t.rules->offload_gradients && (train->offload_parameters || train->offload_optimizer);
}

/* Whole gradients of a layer are reduced: the buffer that they are copied into stays until the next
 * layer's is ready; this rank's part stays, or is added to what is there. */
static void reduce(struct step *p, uint32_t row, uint64_t whole, uint64_t part) {
    struct vp_torch *t = &p->t;
    uint32_t *place = t->gradient[row];
    uint32_t input = taken(p, whole, VP_STREAM_REDUCE, VP_C_GRADIENTS);
    for (uint32_t i = 0; i < VP_TORCH_NODES * VP_TORCH_SLOTS; i++)
        dropped(p, &place[i]);
    dropped(p, &p->reducing);
    p->reducing = input;
    uint32_t shard = taken(p, part, VP_STREAM_REDUCE, VP_C_GRADIENTS);
    if (shard == VP_NO_STORAGE)
        return;
    if (p->shard[row] != VP_NO_STORAGE || offloads_gradients(p))
        vp_torch_drop(t, shard);
    else
        p->shard[row] = shard;
}

static bool reduces(const struct step *p) {
    const struct vp_scenario *s = p->t.scenario;
    return (s->parallel.fsdp || s->parallel.zero >= 2) && vp_train_copies(s) > 1;
}

/* Of the whole gradients that a stage counts, the buffer that is reduced: where it has a type of
 * its own, the gradients themselves are storages of their operators. */
static uint64_t reduced_bytes(const struct step *p, uint64_t scattered) {
    const struct vp_train *train = &p->t.scenario->train;
    uint64_t own = train->lora.enabled ? width_of(train->lora.dtype) : p->t.weight_bytes;
    uint64_t reduced = p->t.rules->reduce_bytes;
    if (p->t.rules->reduce_elements > 0) /* buckets that are there all the time */
        return 0;
    if (reduced == 0 || reduced == own)
        return scattered;
    return vp_mul_div(scattered, reduced, reduced + own);
}

/* Gradients of a layer's tensors after its backward pass. */
static void settle_gradients(struct step *p, uint32_t row) {
    struct vp_torch *t = &p->t;
    const struct vp_train_layer *layer = &p->stage->layer[row];
    if (p->stage->gradients_persist || t->rules->optimizer_in_backward) {
        for (uint32_t i = 0; i < VP_TORCH_NODES * VP_TORCH_SLOTS; i++)
            dropped(p, &t->gradient[row][i]);
    } else if (t->scenario->parallel.fsdp || reduces(p)) {
        reduce(p, row, reduced_bytes(p, layer->scattered_bytes), layer->gradient_bytes);
    }
}

/* ---- forward ---- */

static const struct vp_torch_graph *graph_of(const struct step *p, uint32_t row) {
    return &p->t.graph[p->stage->layer[row].block];
}

static void at_layer(struct step *p, uint32_t row) {
    const struct vp_recompute *how = &p->t.scenario->train.recompute;
    p->t.row = row;
    p->t.layer = p->stage->layer[row].layer;
    p->t.select = how->kind == VP_RECOMPUTE_PLAN ? how->plan[p->t.layer].selective : 0;
}

static bool is_selective(const struct step *p) {
    return p->t.scenario->train.recompute.kind == VP_RECOMPUTE_SELECTIVE;
}

/* Mask and tables that all layers read. */
static void begin_pass(struct step *p, struct pass *pass) {
    struct vp_torch *t = &p->t;
    const struct vp_train_ops *ops = &t->scenario->train.ops;
    const struct vp_attention *a = &t->scenario->model->blocks[0].attention;
    pass->tape.depth = pass->outputs.depth = 0;
    pass->helds = 0;
    pass->logits = pass->grad = VP_NO_STORAGE;
    pass->held[pass->helds++] = vp_torch_take(t, t->tokens, 3, 8); /* ids, labels, positions */
    if (ops->attention == VP_IMPL_EAGER)
        pass->held[pass->helds++] = vp_torch_take(t, t->tokens, t->sequence, t->stream_bytes);
    if (a->rotary_dim > 0)
        pass->held[pass->helds++] = vp_torch_take(t, t->tokens, 2 * a->rotary_dim, t->stream_bytes);
    t->tape = &pass->tape;
}

static bool is_segment_begin(const struct step *p, uint32_t row) {
    const struct vp_train_stage *stage = p->stage;
    return row == 0 || is_selective(p) ||
           stage->layer[row].segment != stage->layer[row - 1].segment ||
           !stage->layer[row - 1].recomputed;
}

/* Embedding, final norm and head are whole from the forward to the end of the backward pass. */
static void gather_root(struct step *p) {
    uint64_t bytes = p->stage->head_gathered_bytes + p->stage->embedding_gathered_bytes;
    if (p->root != VP_NO_STORAGE)
        return;
    if (!p->t.scenario->parallel.fsdp) { /* ZeRO 3 gathers them one by one */
        uint32_t table =
            taken(p, p->stage->embedding_gathered_bytes, VP_STREAM_GATHER, VP_C_WEIGHTS);
        dropped(p, &table);
        return;
    }
    p->root = taken(p, bytes, VP_STREAM_GATHER, VP_C_WEIGHTS);
    if (!copies_out(p))
        return;
    p->root_gather = p->root;
    p->root = taken(p, bytes, VP_STREAM_WORK, VP_C_WEIGHTS);
}

/* ZeRO 3 keeps layers whole that are used again soon: what runs until then is the rest of the
 * forward pass and as much of the backward pass. */
static bool is_reused_soon(const struct step *p, uint32_t row) {
    uint64_t limit = p->t.rules->reuse_elements;
    struct vp_sum ahead = vp_sum(p->stage->head_gathered_bytes);
    if (limit == 0 || p->t.scenario->parallel.zero < 3)
        return false;
    for (uint32_t i = row + 1; i < p->stage->layers; i++)
        ahead = vp_sum_add(ahead, p->stage->layer[i].gathered_bytes);
    return !ahead.overflow && ahead.v / vp_max(p->t.weight_bytes, 1) <= limit / 2;
}

static uint32_t layers_forward(struct step *p, struct pass *pass, uint32_t x) {
    struct vp_torch *t = &p->t;
    const struct vp_train_stage *stage = p->stage;
    bool offload = t->scenario->train.offload_activations;
    uint32_t leaving = VP_NO_STORAGE; /* input on its way to the host */

    for (uint32_t row = 0; row < stage->layers; row++) {
        bool again = stage->layer[row].recomputed || is_selective(p);
        at_layer(p, row);
        begin_layer(p, row);
        dropped(p, &p->root_gather);
        if (row + 1 < stage->layers && t->rules->gathered_layers > 1)
            p->ahead = gather(p, row + 1);
        pass->input[row] = VP_NO_STORAGE;
        if (again && is_segment_begin(p, row)) {
            dropped(p, &leaving);
            if (offload)
                leaving = vp_torch_share(t, x);
            else
                pass->input[row] = vp_torch_share(t, x);
        }
        pass->depth[row] = pass->outputs.depth;
        t->recording = !again;
        t->outputs = is_selective(p) ? &pass->outputs : NULL;
        x = vp_torch_become(t, x, vp_torch_layer(t, graph_of(p, row), x));
        end_layer(p, row, t->rules->gathered_stay || is_reused_soon(p, row));
    }
    dropped(p, &leaving);
    return x;
}

static void forward(struct step *p, struct pass *pass) {
    struct vp_torch *t = &p->t;
    t->step = VP_STEP_FORWARD;
    t->cause = VP_CAUSE_LAYERS;
    t->layer = VP_NO_LAYER;
    t->component = VP_C_ACTIVATIONS;
    begin_pass(p, pass);
    gather_root(p);
    t->stamp = p->stage->layers > 0 && p->stage->layer[0].recomputed;
    uint32_t x = vp_torch_take(t, t->stream_tokens, t->hidden, t->stream_bytes);
    t->stamp = false;
    x = layers_forward(p, pass, x);
    t->layer = VP_NO_LAYER;
    t->cause = VP_CAUSE_LOSS;
    vp_torch_end_autocast(t);
    uint32_t head = VP_NO_STORAGE;
    if (!t->scenario->parallel.fsdp)
        head = taken(p, p->stage->head_gathered_bytes, VP_STREAM_GATHER, VP_C_WEIGHTS);
    if (p->stage->last)
        pass->grad = vp_torch_head(t, x, &pass->logits);
    else
        vp_torch_drop(t, x);
    dropped(p, &head);
}

/* ---- backward ---- */

/* Rebuilds the tapes of the segment that ends at `last`; returns its first layer. */
static uint32_t rebuild(struct step *p, struct pass *pass, uint32_t last) {
    struct vp_torch *t = &p->t;
    uint32_t row = last;
    while (!is_segment_begin(p, row))
        row--;
    if (t->scenario->train.offload_activations)
        pass->input[row] = vp_torch_take(t, t->stream_tokens, t->hidden, t->stream_bytes);
    uint32_t first = row, x = vp_torch_share(t, pass->input[row]);
    /* what was kept is used again; here it is given back and made anew */
    while (is_selective(p) && pass->outputs.depth > pass->depth[row])
        vp_torch_drop(t, pass->outputs.id[--pass->outputs.depth]);
    t->recording = true;
    t->outputs = NULL;
    for (; row <= last; row++) {
        at_layer(p, row);
        x = vp_torch_become(t, x, vp_torch_layer(t, graph_of(p, row), x));
    }
    vp_torch_end_autocast(t);
    vp_torch_drop(t, x);
    return first;
}

static void backward(struct step *p, struct pass *pass) {
    struct vp_torch *t = &p->t;
    const struct vp_train_stage *stage = p->stage;
    uint32_t grad = pass->grad, rebuilt = stage->layers; /* tapes exist from here on */

    t->tape = &pass->tape;
    t->step = VP_STEP_BACKWARD;
    if (grad == VP_NO_STORAGE)
        grad = vp_torch_take(t, t->stream_tokens, t->hidden, t->stream_bytes);
    for (uint32_t row = stage->layers; row-- > 0;) {
        t->cause = stage->layer[row].recomputed ? VP_CAUSE_REBUILT : VP_CAUSE_BACKWARD;
        at_layer(p, row);
        begin_layer(p, row);
        if (row > 0 && t->rules->gathered_layers > 1 && p->staying[row - 1] == VP_NO_STORAGE)
            p->ahead = gather(p, row - 1);
        if ((stage->layer[row].recomputed || is_selective(p)) && row < rebuilt)
            rebuilt = rebuild(p, pass, row);
        at_layer(p, row);
        grad = vp_torch_layer_back(t, graph_of(p, row), grad);
        if (grad == VP_NO_STORAGE) /* the first layer's input needs none */
            grad = vp_torch_take(t, 1, 1, 1);
        dropped(p, &pass->input[row]);
        end_layer(p, row, false);
        settle_gradients(p, row);
    }
    t->layer = VP_NO_LAYER;
    t->step = VP_STEP_BACKWARD_END;
    t->cause = VP_CAUSE_EMBEDDING;
    vp_torch_drop(t, grad);
}

/* Of the embedding, dense, and of what else stands before the layers (positions, encoders). */
static void add_table_gradients(struct step *p) {
    struct vp_torch *t = &p->t;
    const struct vp_train_stage *stage = p->stage;
    const struct vp_model *model = t->scenario->model;
    uint64_t table = vp_ceil_div(model->vocab, t->layout.vocab) * model->hidden;

    if (!stage->first || !vp_torch_trains(t, VP_ROLE_EMBEDDING))
        return;
    if (model->embedding) {
        t->row = model->tied && stage->last ? stage->layers + 1 : stage->layers;
        vp_torch_gradient(t, 0, 0, table, t->gradient_bytes);
    }
    t->row = stage->layers;
    uint64_t others = vp_above(stage->embedding_gradient_bytes, table * t->gradient_bytes);
    if (others > 0 && !reduces(p))
        vp_torch_gradient(t, 1, 0, others, 1);
}

/* The embedding's gradient is dense; tied ones are added to the head's. */
static void end_pass(struct step *p, struct pass *pass) {
    struct vp_torch *t = &p->t;
    const struct vp_train_stage *stage = p->stage;
    uint32_t head = stage->layers + 1, embedding = stage->layers;

    add_table_gradients(p);
    if (stage->gradients_persist || t->rules->optimizer_in_backward) {
        dropped(p, &t->gradient[embedding][0]);
        dropped(p, &t->gradient[embedding][VP_TORCH_SLOTS]);
        dropped(p, &t->gradient[head][0]);
    } else if (t->scenario->parallel.fsdp || reduces(p)) {
        uint64_t bytes[] = {stage->embedding_gradient_bytes, stage->head_gradient_bytes};
        for (uint32_t i = 0; i < 2; i++) {
            struct vp_sum whole = vp_sum_mul(vp_sum(bytes[i]), vp_train_copies(t->scenario));
            t->overflow |= whole.overflow;
            reduce(p, embedding + i, whole.v, bytes[i]);
        }
    }
    dropped(p, &p->reducing);
    dropped(p, &p->root);
    dropped(p, &pass->logits);
    for (uint32_t i = 0; i < pass->helds; i++)
        vp_torch_drop(t, pass->held[i]);
}

/* ---- the whole ---- */

/* Gradients are set to None after the step. */
static void drop_gradients(struct step *p) {
    for (uint32_t row = 0; row < p->stage->layers + 2; row++) {
        for (uint32_t i = 0; i < VP_TORCH_NODES * VP_TORCH_SLOTS; i++)
            dropped(p, &p->t.gradient[row][i]);
        dropped(p, &p->shard[row]);
    }
}

static void optimizer(struct step *p, bool first) {
    struct vp_torch *t = &p->t;
    t->step = VP_STEP_OPTIMIZER;
    t->cause = VP_CAUSE_STEP;
    t->layer = VP_NO_LAYER;
    if (first)
        hold(p, p->stage->optimizer_bytes, VP_C_OPTIMIZER);
    /* at least the norm of the gradients */
    uint32_t temp = taken(p, vp_max(p->stage->step_temp_bytes, 1), VP_STREAM_WORK, VP_C_OPTIMIZER);
    dropped(p, &temp);
    drop_gradients(p);
}

static void mark(struct step *p, enum vp_mark what, uint64_t n) {
    const struct vp_event_sink *sink = &p->t.sink;
    sink->event(sink->user, &(struct vp_event){.kind = VP_EVENT_MARK,
                                               .id = what,
                                               .bytes = n,
                                               .step = VP_STEP_FORWARD,
                                               .layer = VP_NO_LAYER,
                                               .micro_batch = p->t.micro_batch});
}

/* As many micro batches as are in flight, and one more where there are more: the second adds to the
 * first one's gradients, later ones do as the second and are left out. Those behind the mark are
 * the step's last ones. */
static void run(struct step *p, bool first) {
    struct vp_torch *t = &p->t;
    uint64_t n = vp_max(p->stage->micro_batches, 1);
    uint64_t flight = vp_max(vp_min(p->stage->in_flight, n), 1);
    uint64_t more = n > flight ? 1 : 0, left_out = n - flight - more;

    for (uint64_t i = 0; i < flight; i++) {
        t->micro_batch = (uint32_t)i;
        forward(p, &p->pass[i]);
    }
    for (uint64_t i = 0; i < flight + more; i++) {
        struct pass *pass = &p->pass[i % flight];
        t->micro_batch = (uint32_t)(i < more ? i : i + left_out);
        backward(p, pass);
        end_pass(p, pass);
        if (i < more) {
            t->micro_batch = (uint32_t)(flight + i);
            forward(p, pass);
            if (left_out > 0)
                mark(p, VP_MARK_REPEAT, left_out);
        }
    }
    optimizer(p, first);
}

static void prepare(struct step *p) {
    struct vp_torch *t = &p->t;
    const struct vp_scenario *s = t->scenario;
    uint32_t rows = p->stage->layers + 2;
    uint64_t flight = vp_max(p->stage->in_flight, 1);
    struct vp_torch_graph *graphs =
        VP_NEW_ARRAY(t->arena, s->model->block_count, struct vp_torch_graph);

    t->layout = vp_train_layout(s);
    set_types(t);
    t->tokens = vp_tape_tokens(s);
    t->stream_tokens =
        vp_ceil_div(t->tokens, s->parallel.sequence ? vp_max(s->parallel.tensor, 1) : 1);
    t->sequence = vp_ceil_div(t->tokens, vp_max(s->train.micro_batch, 1));
    t->hidden = s->model->hidden;
    t->vocab = s->model->vocab;
    for (uint32_t b = 0; b < s->model->block_count; b++) {
        vp_torch_graph_make(&graphs[b], s, &s->model->blocks[b], &t->layout);
        t->overflow |= graphs[b].overflow;
    }
    t->graph = graphs;
    t->kept = VP_NEW_ARRAY(t->arena, 2 * (size_t)s->model->block_count, uint8_t *);
    t->gradient = VP_NEW_ARRAY(t->arena, rows, uint32_t *);
    p->shard = VP_NEW_ARRAY(t->arena, rows, uint32_t);
    p->staying = VP_NEW_ARRAY(t->arena, rows, uint32_t);
    for (uint32_t row = 0; row < rows; row++) {
        t->gradient[row] = VP_NEW_ARRAY(t->arena, VP_TORCH_NODES * VP_TORCH_SLOTS, uint32_t);
        for (uint32_t i = 0; i < VP_TORCH_NODES * VP_TORCH_SLOTS; i++)
            t->gradient[row][i] = VP_NO_STORAGE;
        p->shard[row] = p->staying[row] = VP_NO_STORAGE;
    }
    p->pass = VP_NEW_ARRAY(t->arena, flight, struct pass);
    for (uint64_t i = 0; i < flight; i++) {
        p->pass[i].input = VP_NEW_ARRAY(t->arena, p->stage->layers, uint32_t);
        p->pass[i].depth = VP_NEW_ARRAY(t->arena, p->stage->layers, uint32_t);
    }
}

bool vp_torch_step(struct vp_arena *arena, const struct vp_scenario *scenario,
                   const struct vp_train_stage *stage, const struct vp_event_sink *sink) {
    struct step p = {.t = {.arena = arena,
                           .scenario = scenario,
                           .stage = stage,
                           .rules = &scenario->engine.rules.train,
                           .sink = *sink,
                           .unused = VP_NO_STORAGE,
                           .component = VP_C_ACTIVATIONS,
                           .step = VP_STEP_FORWARD,
                           .layer = VP_NO_LAYER},
                     .stage = stage,
                     .gather = VP_NO_STORAGE,
                     .whole = VP_NO_STORAGE,
                     .ahead = VP_NO_STORAGE,
                     .reducing = VP_NO_STORAGE,
                     .root = VP_NO_STORAGE,
                     .root_gather = VP_NO_STORAGE};
    prepare(&p);
    hold_weights(&p);
    vp_torch_take_on(&p.t, stage->workspace.likely, VP_STREAM_WORK, VP_C_WORKSPACE);
    run(&p, true);
    p.t.micro_batch = 0;
    mark(&p, VP_MARK_STEP, 0);
    run(&p, false);
    return !p.t.overflow;
}
