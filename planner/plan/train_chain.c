#include "planner/plan/train_chain.h"

#include "planner/base/sum.h"
#include "planner/plan/train_regions.h"

/* ---- one kind of layer ---- */

struct kind {
    bool made;
    uint64_t forward_ns, backward_ns;
    struct vp_tape_option option[VP_CHAIN_TAPES];
    uint32_t select[VP_CHAIN_TAPES];
    uint32_t options;
    uint64_t bare_bytes; /* transient bytes of a forward pass that saves nothing */
};

struct maker {
    struct vp_arena *arena;
    const struct vp_scenario *scenario;
    struct vp_train_place place;
    struct kind *kinds; /* by block of the model */
    bool timed;
    enum vp_basis basis; /* the weakest of the layers' times */
};

/* Without known rates every layer takes as long as any other, and a region as long as its bytes are
 * a part of the tape. */
enum { UNTIMED_NS = 1000000 };

static uint64_t ns_of(const struct vp_train_cost *cost) {
    double ns = vp_train_cost_total(cost).likely * 1e3;
    return ns < 1e18 ? (uint64_t)ns + 1 : UINT64_MAX / 4;
}

static void weaken(struct maker *m, const struct vp_train_pass *pass) {
    struct vp_time all =
        vp_time_add(vp_train_cost_total(&pass->forward), vp_train_cost_total(&pass->backward));
    if (all.basis < m->basis)
        m->basis = all.basis;
}

static uint64_t time_again(const struct maker *m, const struct vp_block *block, uint32_t regions,
                           const struct vp_tape *tape, uint64_t dropped) {
    if (!m->timed)
        return vp_mul_div(UNTIMED_NS, dropped, vp_max(tape->saved_bytes, 1));
    if (regions == 0)
        return 0;
    struct vp_train_cost cost = vp_regions_cost(&m->place, block, regions);
    return ns_of(&cost);
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
    select &= vp_regions_in(m->scenario->model, block);
    uint64_t dropped = vp_min(vp_tape_selected(layer->tape, select), option.t);
    option.r = time_again(m, block, select, layer->tape, dropped);
    option.t -= dropped;
    option.wb += dropped;
    return option;
}

/* Sets of regions that leave something out, and each once: what a set drops beyond its parts
 * decides. Few regions occur together in a block, so all sets are tried. */
static void add_selective(const struct maker *m, struct kind *kind,
                          const struct vp_train_layer *layer) {
    uint32_t useful[VP_TAPE_REGIONS], count = 0;
    const struct vp_model *model = m->scenario->model;
    uint32_t here = vp_regions_in(model, &model->blocks[layer->block]);
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
    kind->forward_ns = UNTIMED_NS;
    kind->backward_ns = 2 * UNTIMED_NS;
    if (m->timed) {
        struct vp_train_pass pass = vp_train_block(&m->place, block);
        kind->forward_ns = ns_of(&pass.forward);
        kind->backward_ns = ns_of(&pass.backward);
        weaken(m, &pass);
    }
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
    struct vp_tape_option *option = VP_NEW(m->arena, struct vp_tape_option);
    struct vp_train_pass pass;

    a->f[i] = UNTIMED_NS;
    a->b[i] = 2 * UNTIMED_NS;
    if (m->timed) {
        pass = vp_train_last(&m->place);
        a->f[i] = ns_of(&pass.forward);
        a->b[i] = ns_of(&pass.backward);
        weaken(m, &pass);
    }
    option->t =
        vp_above(head->tape.saved_bytes, head->tape.input_on_tape ? head->tape.input_bytes : 0);
    option->wf = option->wb = vp_above(head->logits_peak_bytes, head->peak_tape_bytes);
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
    a->b[i] = kind->backward_ns;
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
                      .place = vp_train_place_of(scenario),
                      .kinds = VP_NEW_ARRAY(arena, scenario->model->block_count, struct kind)};
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

    m.timed = vp_train_place_known(&m.place);
    m.basis = m.timed ? VP_BASIS_CALIBRATED : VP_BASIS_NONE;
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
                                   .basis = m.basis,
                                   .static_bytes = stage->static_bytes,
                                   .in_flight = most_in_flight(stage),
                                   .apart = stage->chunks > 1};
    out->overflow = vp_chain_overflow(&out->chain, out->in_flight);
}

struct vp_tape_option vp_train_chain_option(const struct vp_scenario *scenario,
                                            const struct vp_train_layer *layer, uint32_t select) {
    struct maker m = {.scenario = scenario, .place = vp_train_place_of(scenario)};

    m.timed = vp_train_place_known(&m.place);
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
