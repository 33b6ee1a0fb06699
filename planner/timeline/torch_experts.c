/* Routed experts as TorchTitan and transformers write them: tokens are copied in the order of their
 * experts, grouped matrices work on them, the result is weighted by the router's scores (in fp32
 * outside transformers) and added back. The scores need a gradient wherever the input does, so the
 * weighting keeps the experts' output. All tokens are routed to this rank's experts on average. */
#include "planner/timeline/torch_parts.h"

struct routed {
    const struct vp_torch_node *node;
    uint32_t index;
    uint64_t rows, width, in; /* token copies, width of an expert, of its input */
    uint64_t e, score;        /* bytes: activations, weighted output */
    bool trains, adapts, gated, keeps_activated;
};

static struct routed describe(const struct vp_torch *t, const struct vp_torch_graph *g,
                              uint32_t index) {
    const struct vp_torch_node *n = &g->node[index];
    const struct vp_moe *moe = n->moe;
    struct routed r = {.node = n, .index = index};
    struct vp_sum rows = vp_sum_mul(vp_sum(t->tokens), moe->top_k);
    uint64_t load = t->scenario->train.ops.expert_load_ppb;

    /* where fewer ranks than the tensor-parallel ones divide an expert, others have their tokens */
    rows = vp_sum_mul(rows, t->layout.expert_width);
    r.rows = rows.overflow ? UINT64_MAX : vp_ceil_div(rows.v, vp_max(t->layout.tensor, 1));
    if (load > 0 && !rows.overflow)
        r.rows = vp_mul_div(r.rows, load, 1000000000);
    r.width = n->expert_width;
    r.in = moe->input > 0 ? moe->input : t->hidden;
    r.e = vp_torch_width_bytes(t);
    bool wide = t->rules->router_fp32 || t->scenario->engine.kind == VP_ENGINE_PYTORCH;
    r.score = wide ? 4 : r.e;
    r.trains = vp_torch_trains(t, VP_ROLE_EXPERT_UP);
    r.adapts = vp_torch_adapts(t, VP_ROLE_EXPERT_UP);
    r.gated = moe->kind == VP_MLP_GATED;
    r.keeps_activated = !t->scenario->train.ops.fused_mlp;
    return r;
}

static uint32_t wide(struct vp_torch *t, const struct routed *r, uint64_t width, uint64_t bytes) {
    return vp_torch_take(t, r->rows, width, bytes);
}

/* All experts' matrices of one kind, with an adapter pair each. */
static uint32_t matrix(struct vp_torch *t, const struct routed *r, uint64_t out) {
    uint32_t y = wide(t, r, out, r->e);
    if (!r->adapts)
        return y;
    uint32_t low = wide(t, r, t->scenario->train.lora.rank, r->e);
    uint32_t high = wide(t, r, out, r->e);
    high = vp_torch_become(t, high, wide(t, r, out, r->e));
    y = vp_torch_become(t, y, wide(t, r, out, r->e));
    vp_torch_drop(t, high);
    vp_torch_keep(t, low);
    return y;
}

/* One set of adapters works on a micro batch: the others have no gradients. */
static uint32_t matrix_back(struct vp_torch *t, const struct routed *r, uint32_t grad, uint64_t out,
                            uint64_t in, uint32_t place) {
    uint64_t experts = r->node->matrices, rank = t->scenario->train.lora.rank;
    uint32_t of_low = VP_NO_STORAGE;
    if (r->adapts) {
        uint32_t scaled = wide(t, r, out, r->e);
        vp_torch_gradient(t, r->index, place, experts * rank * (in + out), t->gradient_bytes);
        uint32_t low = wide(t, r, rank, r->e);
        vp_torch_drop(t, scaled);
        of_low = wide(t, r, in, r->e);
        vp_torch_drop(t, low);
        vp_torch_drop(t, vp_torch_pop(t));
    } else if (r->trains) {
        vp_torch_gradient(t, r->index, place, experts * in * out, t->gradient_bytes);
    }
    uint32_t of_in = wide(t, r, in, r->e);
    vp_torch_drop(t, grad);
    return of_low == VP_NO_STORAGE ? of_in : vp_torch_become(t, of_low, of_in);
}

uint32_t vp_torch_experts(struct vp_torch *t, const struct vp_torch_graph *g, uint32_t node,
                          uint32_t in) {
    struct routed r = describe(t, g, node);
    uint32_t up, act, product;

    (void)in;
    vp_torch_keep(t, vp_torch_take(t, t->tokens, r.node->moe->experts, 4)); /* scores */
    uint32_t x = wide(t, &r, r.in, r.e);
    uint32_t gate = r.gated ? matrix(t, &r, r.width) : VP_NO_STORAGE;
    up = matrix(t, &r, r.width);
    for (uint64_t i = 0; r.gated && i < t->rules->gated_extra; i++)
        vp_torch_keep(t, wide(t, &r, r.width, r.e));
    act = wide(t, &r, r.width, r.e);
    product = r.gated ? wide(t, &r, r.width, r.e) : vp_torch_share(t, act);
    uint32_t y = matrix(t, &r, r.in);
    vp_torch_keep(t, x);
    if (r.gated)
        vp_torch_keep(t, gate);
    vp_torch_keep(t, up);
    if (r.gated && r.keeps_activated)
        vp_torch_keep(t, act);
    else
        vp_torch_drop(t, act);
    if (r.trains || r.adapts)
        vp_torch_keep(t, product);
    else
        vp_torch_drop(t, product);
    if (r.score != r.e)
        y = vp_torch_become(t, y, wide(t, &r, r.in, r.score));
    uint32_t weighted = wide(t, &r, r.in, r.score);
    vp_torch_keep(t, y);
    if (r.score != r.e)
        weighted = vp_torch_become(t, weighted, wide(t, &r, r.in, r.e));
    if (t->rules->expert_sum_kept)
        vp_torch_keep_shared(t, weighted);
    uint32_t zeros = vp_torch_take(t, t->tokens, r.node->out_width, t->stream_bytes);
    uint32_t out = vp_torch_take(t, t->tokens, r.node->out_width, t->stream_bytes);
    vp_torch_drop(t, weighted);
    vp_torch_drop(t, zeros);
    return out;
}

/* The gradients of the output and of the scores: two products of the same size. */
static uint32_t weighting_back(struct vp_torch *t, const struct routed *r) {
    uint32_t grad = wide(t, r, r->in, r->e);
    if (t->rules->expert_sum_kept)
        vp_torch_drop(t, vp_torch_pop(t));
    if (r->score != r->e)
        grad = vp_torch_become(t, grad, wide(t, r, r->in, r->score));
    uint32_t of_y = wide(t, r, r->in, r->score);
    vp_torch_drop(t, wide(t, r, r->in, r->score));
    vp_torch_drop(t, grad);
    vp_torch_drop(t, vp_torch_pop(t));
    return r->score != r->e ? vp_torch_become(t, of_y, wide(t, r, r->in, r->e)) : of_y;
}

static void pop_low(struct vp_torch *t, const struct routed *r, uint32_t *kept, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        kept[i] = vp_torch_pop(t);
    (void)r;
}

uint32_t vp_torch_experts_back(struct vp_torch *t, const struct vp_torch_graph *g, uint32_t node,
                               uint32_t grad) {
    struct routed r = describe(t, g, node);
    uint32_t kept[5], count = 2u + (r.gated ? 1u : 0u) + (r.gated && r.keeps_activated ? 1u : 0u) +
                              (r.trains || r.adapts ? 1u : 0u);
    uint32_t of_y = weighting_back(t, &r);

    /* from the top: product, activated gate, up, gate, tokens */
    pop_low(t, &r, kept, count);
    uint32_t of_p = matrix_back(t, &r, of_y, r.in, r.width, 0);
    uint32_t of_act = r.gated ? wide(t, &r, r.width, r.e) : VP_NO_STORAGE;
    uint32_t of_up = wide(t, &r, r.width, r.e);
    vp_torch_drop(t, of_p);
    for (uint32_t i = 0; i + (r.gated ? 2u : 1u) < count; i++)
        vp_torch_drop(t, kept[i]);
    uint32_t of_x = matrix_back(t, &r, of_up, r.width, r.in, 1);
    if (r.gated) {
        uint32_t of_gate = vp_torch_become(t, of_act, wide(t, &r, r.width, r.e));
        vp_torch_drop(t, kept[count - 2]);
        vp_torch_drop(t, matrix_back(t, &r, of_gate, r.width, r.in, 2));
    }
    vp_torch_drop(t, kept[count - 1]);
    if (r.gated)
        vp_torch_drop_kept(t, (uint32_t)t->rules->gated_extra);
    vp_torch_drop(t, vp_torch_pop(t)); /* scores */
    uint32_t out = vp_torch_take(t, t->tokens, r.node->out_width, t->stream_bytes);
    vp_torch_drop(t, of_x);
    vp_torch_drop(t, grad);
    return out;
}
