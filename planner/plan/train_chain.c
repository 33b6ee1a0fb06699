#include "planner/plan/train_chain.h"

#include <string.h>

#include "planner/base/sum.h"
#include "planner/latency/roofline.h"
#include "planner/ops/train_layout.h"

/* ---- which operators a region holds ---- */

static bool is_expert(const struct vp_op *op) {
    return op->role == VP_ROLE_EXPERT_GATE || op->role == VP_ROLE_EXPERT_UP ||
           op->role == VP_ROLE_EXPERT_DOWN;
}

static bool is_shared(const struct vp_op *op) {
    return op->role == VP_ROLE_SHARED_GATE || op->role == VP_ROLE_SHARED_UP ||
           op->role == VP_ROLE_SHARED_DOWN;
}

static bool is_dense(const struct vp_op *op) {
    return op->role == VP_ROLE_GATE || op->role == VP_ROLE_UP || op->role == VP_ROLE_DOWN;
}

/* Regions (enum vp_selective) whose recomputation runs the operator again. before: the matrix in
 * front of it, whose feed-forward an activation function belongs to. */
static uint32_t regions_of(const struct vp_op *op, const struct vp_op *before) {
    const struct vp_op *owner = op->kind == VP_OP_ACTIVATION && before ? before : op;
    uint32_t set = 0;
    if (op->kind == VP_OP_ATTENTION)
        set |= VP_SELECT_CORE_ATTENTION;
    if (op->kind == VP_OP_NORM && op->role == VP_ROLE_NORM)
        set |= VP_SELECT_NORM;
    if (op->role == VP_ROLE_KV_B || op->role == VP_ROLE_Q_B)
        set |= VP_SELECT_MLA_UP;
    if (is_dense(owner))
        set |= VP_SELECT_MLP;
    if (is_shared(owner))
        set |= VP_SELECT_SHARED_EXPERTS | VP_SELECT_MOE;
    if (is_expert(owner) || op->kind == VP_OP_ROUTE)
        set |= VP_SELECT_MOE;
    if (is_expert(owner) && op->kind == VP_OP_ACTIVATION)
        set |= VP_SELECT_MOE_ACTIVATION;
    return set;
}

/* ---- one kind of layer ---- */

struct kind {
    bool made;
    uint64_t forward_ns;
    struct vp_tape_option option[VP_CHAIN_TAPES];
    uint32_t select[VP_CHAIN_TAPES];
    uint32_t options;
    uint64_t bare_bytes; /* transient bytes of a forward pass that saves nothing */
};

struct maker {
    struct vp_arena *arena;
    const struct vp_scenario *scenario;
    struct kind *kinds; /* by block of the model */
    bool timed;
};

/* Without known rates every layer takes as long as any other, and a region as long as its bytes are
 * a part of the tape. */
enum { UNTIMED_NS = 1000000 };

static uint64_t time_of(const struct maker *m, const struct vp_block *block, uint32_t regions,
                        const struct vp_tape *tape, uint64_t dropped) {
    const struct vp_scenario *s = m->scenario;
    const struct vp_attention *a = &block->attention;
    struct vp_roofline_load load = {.tokens = vp_tape_tokens(s),
                                    .sequence = s->train.sequence,
                                    .ranks = s->parallel.tensor,
                                    .element_bytes =
                                        vp_dtype_bytes(s->precision.compute, vp_sum(1)).v,
                                    .window = a->window > 0 ? a->window : a->chunk,
                                    .bidirectional = a->bidirectional};
    const struct vp_op *matrix = NULL;
    struct vp_ops ops;
    uint64_t ns = 0;

    if (!m->timed)
        return regions == UINT32_MAX
                   ? UNTIMED_NS
                   : vp_mul_div(UNTIMED_NS, dropped, vp_max(tape->saved_bytes, 1));
    vp_ops_block(&ops, s->model, block);
    for (uint32_t i = 0; i < ops.count; i++) {
        const struct vp_op *op = &ops.item[i];
        if (regions == UINT32_MAX || (regions_of(op, matrix) & regions))
            ns += vp_roofline_ns(&s->hardware.gpu, op, &load);
        if (op->kind == VP_OP_LINEAR || op->kind == VP_OP_EXPERTS)
            matrix = op;
    }
    return ns;
}

static uint64_t largest_item(const struct vp_tape *tape) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < tape->count; i++)
        most = vp_max(most, tape->item[i].bytes);
    return most;
}

static void add_option(struct kind *kind, uint32_t select, struct vp_tape_option option) {
    if (kind->options == VP_CHAIN_TAPES)
        return;
    kind->select[kind->options] = select;
    kind->option[kind->options++] = option;
}

/* Regions that some operator of the block belongs to: in a layer without it, recomputing a region
 * does nothing. */
static uint32_t regions_in(const struct maker *m, const struct vp_block *block) {
    const struct vp_op *matrix = NULL;
    struct vp_ops ops;
    uint32_t set = 0;
    vp_ops_block(&ops, m->scenario->model, block);
    for (uint32_t i = 0; i < ops.count; i++) {
        const struct vp_op *op = &ops.item[i];
        set |= regions_of(op, matrix);
        if (op->kind == VP_OP_LINEAR || op->kind == VP_OP_EXPERTS)
            matrix = op;
    }
    return set;
}

/* A layer without recomputation: what it keeps beside its input (that is counted as the boundary),
 * and transient bytes. */
static struct vp_tape_option full_option(const struct vp_train_layer *layer) {
    const struct vp_tape *tape = layer->tape;
    return (struct vp_tape_option){.t = vp_above(tape->saved_bytes, tape->input_bytes),
                                   .wf = tape->forward_temp_bytes,
                                   .wb = vp_above(tape->backward_temp_bytes, tape->output_bytes) +
                                         layer->weight_temp_bytes + layer->gradient_temp_bytes};
}

static struct vp_tape_option selective_option(const struct maker *m,
                                              const struct vp_train_layer *layer, uint32_t select) {
    const struct vp_block *block = &m->scenario->model->blocks[layer->block];
    struct vp_tape_option option = full_option(layer);
    select &= regions_in(m, block);
    uint64_t dropped = vp_min(vp_tape_selected(layer->tape, select), option.t);
    option.r = time_of(m, block, select, layer->tape, dropped);
    option.t -= dropped;
    option.wb += dropped;
    return option;
}

/* Sets of regions that leave something out, and each once: what a set drops beyond its parts
 * decides. Few regions occur together in a block, so all sets are tried. */
static void add_selective(const struct maker *m, struct kind *kind,
                          const struct vp_train_layer *layer) {
    uint32_t useful[VP_TAPE_REGIONS], count = 0;
    uint32_t here = regions_in(m, &m->scenario->model->blocks[layer->block]);
    uint64_t full = kind->option[0].t;
    for (int k = 0; k < VP_TAPE_REGIONS; k++)
        if (here >> k & 1 && vp_tape_selected(layer->tape, UINT32_C(1) << k) > 0)
            useful[count++] = UINT32_C(1) << k;
    for (uint32_t set = 1; set < UINT32_C(1) << count; set++) {
        uint32_t select = 0;
        for (uint32_t k = 0; k < count; k++)
            if (set >> k & 1)
                select |= useful[k];
        struct vp_tape_option option = selective_option(m, layer, select);
        bool better = option.t < full && option.r < kind->forward_ns;
        for (uint32_t i = 1; i < kind->options && better; i++)
            better = option.t < kind->option[i].t || option.r < kind->option[i].r;
        if (better && kind->options < VP_CHAIN_TAPES - 1)
            add_option(kind, select, option);
    }
}

static const struct kind *kind_of(struct maker *m, const struct vp_train_layer *layer) {
    struct kind *kind = &m->kinds[layer->block];
    const struct vp_block *block = &m->scenario->model->blocks[layer->block];
    const struct vp_tape *tape = layer->tape;
    if (kind->made)
        return kind;
    kind->made = true;
    struct vp_tape_option full = full_option(layer);
    kind->forward_ns = time_of(m, block, UINT32_MAX, tape, 0);
    kind->bare_bytes = full.wf + largest_item(tape);
    add_option(kind, 0, full);
    add_selective(m, kind, layer);
    add_option(kind, UINT32_MAX,
               (struct vp_tape_option){0, kind->forward_ns, kind->bare_bytes, full.wb + full.t});
    return kind;
}

/* ---- the chain ---- */

struct arrays {
    uint64_t *x, *g, *f, *b, *wn, *held;
    const struct vp_tape_option **options;
    uint32_t *counts, *layer;
    const uint32_t **select;
};

/* Final norm, head and loss. Its matrix is as exact as the layers'. */
static void add_head(struct maker *m, const struct arrays *a, uint32_t i,
                     const struct vp_train_stage *stage) {
    static const uint32_t KEEP[1] = {0};
    const struct vp_head_tape *head = &stage->head;
    const struct vp_scenario *s = m->scenario;
    struct vp_tape_option *option = VP_NEW(m->arena, struct vp_tape_option);
    struct vp_roofline_load load = {.tokens = vp_tape_tokens(s),
                                    .ranks = s->parallel.tensor,
                                    .element_bytes =
                                        vp_dtype_bytes(s->precision.compute, vp_sum(1)).v};
    uint64_t ns = 1;
    struct vp_ops ops;

    vp_ops_last(&ops, s->model);
    for (uint32_t k = 0; k < ops.count; k++)
        ns += m->timed ? vp_roofline_ns(&s->hardware.gpu, &ops.item[k], &load) : UNTIMED_NS;
    option->t =
        vp_above(head->tape.saved_bytes, head->tape.input_on_tape ? head->tape.input_bytes : 0);
    option->wf = option->wb = vp_above(head->logits_peak_bytes, head->peak_tape_bytes);
    a->f[i] = ns;
    a->b[i] = 2 * ns;
    a->wn[i] = option->wf + option->t;
    a->held[i] = stage->head_gradient_bytes;
    a->options[i] = option;
    a->counts[i] = 1;
    a->select[i] = KEEP;
    a->x[i + 1] = a->g[i + 1] = sizeof(float); /* the loss */
}

/* A rank without the loss hands its output on: an empty stage in its place, because solvers keep
 * the last one. */
static void add_end(struct maker *m, const struct arrays *a, uint32_t i) {
    static const uint32_t KEEP[1] = {0};
    a->options[i] = VP_NEW(m->arena, struct vp_tape_option);
    a->counts[i] = 1;
    a->select[i] = KEEP;
}

static void add_layer(struct maker *m, const struct arrays *a, uint32_t i,
                      const struct vp_train_layer *layer) {
    const struct kind *kind = kind_of(m, layer);
    a->x[i] = a->g[i] = layer->tape->input_bytes;
    a->x[i + 1] = a->g[i + 1] = layer->tape->output_bytes;
    a->f[i] = kind->forward_ns;
    a->b[i] = 2 * kind->forward_ns;
    a->wn[i] = kind->bare_bytes;
    a->held[i] = layer->gradient_bytes;
    a->options[i] = kind->option;
    a->counts[i] = kind->options;
    a->select[i] = kind->select;
    a->layer[i] = layer->layer;
}

static uint64_t most_in_flight(const struct vp_train_stage *stage) {
    uint64_t most = 1;
    for (uint32_t c = 0; c < stage->chunks; c++)
        most = vp_max(most, stage->chunk_in_flight[c]);
    return most;
}

void vp_train_chain_make(struct vp_arena *arena, struct vp_train_chain *out,
                         const struct vp_scenario *scenario, const struct vp_train_stage *stage) {
    uint32_t n = stage->layers + 1;
    struct maker m = {.arena = arena,
                      .scenario = scenario,
                      .kinds = VP_NEW_ARRAY(arena, scenario->model->block_count, struct kind),
                      .timed = vp_roofline_known(&scenario->hardware.gpu)};
    struct arrays a = {.x = VP_NEW_ARRAY(arena, n + 1, uint64_t),
                       .g = VP_NEW_ARRAY(arena, n + 1, uint64_t),
                       .f = VP_NEW_ARRAY(arena, n, uint64_t),
                       .b = VP_NEW_ARRAY(arena, n, uint64_t),
                       .wn = VP_NEW_ARRAY(arena, n, uint64_t),
                       .held = VP_NEW_ARRAY(arena, n, uint64_t),
                       .options = VP_NEW_ARRAY(arena, n, const struct vp_tape_option *),
                       .counts = VP_NEW_ARRAY(arena, n, uint32_t),
                       .layer = VP_NEW_ARRAY(arena, n, uint32_t),
                       .select = VP_NEW_ARRAY(arena, n, const uint32_t *)};

    for (uint32_t i = 0; i < stage->layers; i++)
        add_layer(&m, &a, i, &stage->layer[i]);
    if (stage->last)
        add_head(&m, &a, stage->layers, stage);
    else
        add_end(&m, &a, stage->layers);
    *out = (struct vp_train_chain){.chain = {.n = n,
                                             .x = a.x,
                                             .g = a.g,
                                             .f = a.f,
                                             .b = a.b,
                                             .wn = a.wn,
                                             .options = a.options,
                                             .option_counts = a.counts,
                                             .body_first = 0,
                                             .body_end = stage->layers,
                                             .held = stage->gradients_grow ? a.held : NULL},
                                   .layers = stage->layers,
                                   .layer = a.layer,
                                   .select = a.select,
                                   .timed = m.timed,
                                   .static_bytes = stage->static_bytes,
                                   .in_flight = most_in_flight(stage),
                                   .apart = stage->chunks > 1};
    out->overflow = vp_chain_overflow(&out->chain, out->in_flight);
}

struct vp_tape_option vp_train_chain_option(const struct vp_scenario *scenario,
                                            const struct vp_train_layer *layer, uint32_t select) {
    struct maker m = {.scenario = scenario, .timed = vp_roofline_known(&scenario->hardware.gpu)};
    return selective_option(&m, layer, select);
}

void vp_train_chain_apply(struct vp_recompute *out, const struct vp_train_chain *chain,
                          const struct vp_recompute_plan *plan) {
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct vp_plan_item *item = &plan->items[i];
        for (uint32_t stage = item->first; stage <= item->last && stage < chain->layers; stage++) {
            struct vp_recompute_layer *layer = &out->plan[chain->layer[stage]];
            uint32_t select = item->recompute ? 0 : chain->select[stage][item->option];
            layer->recomputed = item->recompute || select == UINT32_MAX;
            layer->segment = chain->layer[item->recompute ? item->first : stage];
            layer->selective = select == UINT32_MAX ? 0 : select;
        }
    }
}
