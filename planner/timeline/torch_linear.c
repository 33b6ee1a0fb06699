/* Matrices: plain, quantised, under autocast, with adapters.
 *
 * A quantised matrix is converted whole to the compute type each time it is used (bitsandbytes
 * autograd/_functions.py MatMul4Bit), in the forward and in the backward pass. PEFT adds
 * B(A(dropout(x))) * scaling to the result (lora/layer.py): the product, the scaled product and the
 * sum are tensors of their own. Under torch.compile casts, scaling and sums are part of other
 * kernels; the inputs of matrices whose weight or adapter is trained are written out and kept
 * (functorch config ban_recompute_materialized_backward). */
#include "planner/timeline/torch_parts.h"

bool vp_torch_trains(const struct vp_torch *t, enum vp_role role) {
    return !t->scenario->train.frozen && !t->scenario->train.frozen_roles[role];
}

bool vp_torch_adapts(const struct vp_torch *t, enum vp_role role) {
    return t->scenario->train.lora.enabled && t->scenario->train.lora.roles[role];
}

uint64_t vp_torch_width_bytes(const struct vp_torch *t) {
    return t->autocast ? t->compute_bytes : t->stream_bytes;
}

static bool is_quantised(const struct vp_torch *t, const struct vp_torch_graph *g,
                         enum vp_role role) {
    enum vp_dtype data = t->scenario->model->schemes[g->block->scheme[role]].data;
    return data != VP_DTYPE_FP32 && data != VP_DTYPE_BF16 && data != VP_DTYPE_FP16;
}

/* Elements of the node's matrices. */
static uint64_t elements(const struct vp_torch_node *n) {
    return n->in_width / n->matrices * (n->out_width / n->matrices) * n->matrices;
}

/* An fp32 matrix becomes a 16-bit copy. Of trained ones autocast keeps the copy until it ends; for
 * frozen ones it is made anew. The graph holds it for the gradient of the input. */
static void cast_weight(struct vp_torch *t, const struct vp_torch_node *n) {
    if (t->weight_bytes <= t->compute_bytes)
        return;
    uint32_t copy = vp_torch_take_weight(t, elements(n), t->compute_bytes);
    if (vp_torch_trains(t, n->role) && t->casts < sizeof t->cast / sizeof *t->cast)
        t->cast[t->casts++] = vp_torch_share(t, copy);
    vp_torch_keep(t, copy);
}

static uint32_t base(struct vp_torch *t, const struct vp_torch_graph *g,
                     const struct vp_torch_node *n, uint32_t in) {
    uint64_t e = t->stream_bytes, c = t->compute_bytes;
    uint32_t out, x;
    if (is_quantised(t, g, n->role)) {
        x = e != c && !t->autocast ? vp_torch_take(t, t->tokens, n->in_width, c)
                                   : vp_torch_share(t, in);
        uint32_t weight = vp_torch_take_weight(t, elements(n), c);
        out = vp_torch_take(t, t->tokens, n->out_width, c);
        vp_torch_drop(t, weight);
        if (e != c && !t->autocast)
            out = vp_torch_become(t, out, vp_torch_take(t, t->tokens, n->out_width, e));
        vp_torch_drop(t, x);
        return out;
    }
    if (!t->autocast)
        return vp_torch_take(t, t->tokens, n->out_width, e);
    x = t->holder[in].bytes > t->tokens * n->in_width * c
            ? vp_torch_take(t, t->tokens, n->in_width, c)
            : vp_torch_share(t, in);
    cast_weight(t, n);
    out = vp_torch_take(t, t->tokens, n->out_width, c);
    if (vp_torch_trains(t, n->role))
        vp_torch_keep(t, x);
    else
        vp_torch_drop(t, x);
    return out;
}

/* Storages that base() leaves on the tape. */
static uint32_t base_kept(const struct vp_torch *t, const struct vp_torch_graph *g,
                          const struct vp_torch_node *n) {
    if (!t->autocast || is_quantised(t, g, n->role))
        return 0;
    return (t->weight_bytes > t->compute_bytes ? 1U : 0U) + (vp_torch_trains(t, n->role) ? 1U : 0U);
}

/* DoRA's norm of base + adapter: whole matrices for a moment. */
static void dora(struct vp_torch *t, const struct vp_torch_node *n) {
    if (!t->scenario->train.lora.dora)
        return;
    uint32_t product = vp_torch_take_weight(t, elements(n), t->adapter_bytes);
    vp_torch_drop(t, vp_torch_take_weight(t, elements(n), t->adapter_bytes));
    vp_torch_drop(t, product);
}

static uint32_t adapted(struct vp_torch *t, const struct vp_torch_node *n, uint32_t in,
                        uint32_t out) {
    const struct vp_train_lora *lora = &t->scenario->train.lora;
    uint64_t e = vp_torch_width_bytes(t), a = t->adapter_bytes;
    uint32_t x = t->holder[in].bytes != t->tokens * n->in_width * a && !t->compiled
                     ? vp_torch_take(t, t->tokens, n->in_width, a)
                     : vp_torch_share(t, in);
    uint32_t mask = VP_NO_STORAGE;

    if (lora->dropout_ppb > 0) {
        uint32_t kept = vp_torch_take(t, t->tokens, n->in_width, a);
        mask = vp_torch_take(t, t->tokens, n->in_width, 1);
        x = vp_torch_become(t, x, kept);
    }
    dora(t, n);
    uint32_t low = vp_torch_take(t, t->tokens, lora->rank, a);
    uint32_t high = vp_torch_take(t, t->tokens, n->out_width, a);
    if (!t->compiled)
        high = vp_torch_become(t, high, vp_torch_take(t, t->tokens, n->out_width, a));
    out = vp_torch_become(t, out, vp_torch_take(t, t->tokens, n->out_width, vp_max(e, a)));
    vp_torch_drop(t, high);
    if (a > e)
        out = vp_torch_become(t, out, vp_torch_take(t, t->tokens, n->out_width, e));
    if (mask != VP_NO_STORAGE && t->reaches)
        vp_torch_keep(t, mask);
    else if (mask != VP_NO_STORAGE)
        vp_torch_drop(t, mask);
    vp_torch_keep(t, x);
    vp_torch_keep(t, low);
    return out;
}

uint32_t vp_torch_linear(struct vp_torch *t, const struct vp_torch_graph *g, uint32_t node,
                         uint32_t in) {
    const struct vp_torch_node *n = &g->node[node];
    uint32_t out = base(t, g, n, in);
    if (!t->autocast && vp_torch_trains(t, n->role))
        vp_torch_keep_shared(t, in);
    return vp_torch_adapts(t, n->role) ? adapted(t, n, in, out) : out;
}

/* Gradients of A and B, and what they add to that of the input. */
static uint32_t adapted_back(struct vp_torch *t, const struct vp_torch_node *n, uint32_t node,
                             uint32_t grad, bool needed) {
    const struct vp_train_lora *lora = &t->scenario->train.lora;
    uint64_t e = vp_torch_width_bytes(t), a = t->adapter_bytes, sets = vp_max(lora->slots, 1);
    uint64_t rank = lora->rank * sets;
    uint32_t wide = e != a ? vp_torch_take(t, t->tokens, n->out_width, a) : vp_torch_share(t, grad);

    if (!t->compiled) /* times the scaling */
        wide = vp_torch_become(t, wide, vp_torch_take(t, t->tokens, n->out_width, a));
    vp_torch_gradient(t, node, 2, rank * n->out_width, t->gradient_bytes);
    uint32_t low = vp_torch_take(t, t->tokens, lora->rank, a);
    vp_torch_drop(t, wide);
    vp_torch_drop(t, vp_torch_pop(t));
    vp_torch_gradient(t, node, 1, rank * n->in_width, t->gradient_bytes);
    uint32_t out = vp_torch_take(t, t->tokens, n->in_width, a);
    vp_torch_drop(t, low);
    vp_torch_drop(t, vp_torch_pop(t));
    if (lora->dropout_ppb > 0) {
        out = vp_torch_become(t, out, vp_torch_take(t, t->tokens, n->in_width, a));
        if (needed)
            vp_torch_drop(t, vp_torch_pop(t));
    }
    if (a != t->stream_bytes && !t->compiled)
        out = vp_torch_become(t, out, vp_torch_take(t, t->tokens, n->in_width, t->stream_bytes));
    return out;
}

static uint32_t base_back(struct vp_torch *t, const struct vp_torch_graph *g,
                          const struct vp_torch_node *n, uint32_t grad, bool needed) {
    uint64_t e = t->stream_bytes, c = t->compute_bytes;
    if (!needed) {
        vp_torch_drop(t, grad);
        return VP_NO_STORAGE;
    }
    uint32_t out;
    if (is_quantised(t, g, n->role)) {
        if (vp_torch_width_bytes(t) != c)
            grad = vp_torch_become(t, grad, vp_torch_take(t, t->tokens, n->out_width, c));
        uint32_t weight = vp_torch_take_weight(t, elements(n), c);
        out = vp_torch_take(t, t->tokens, n->in_width, c);
        vp_torch_drop(t, weight);
    } else {
        out = vp_torch_take(t, t->tokens, n->in_width, t->autocast ? c : e);
    }
    vp_torch_drop(t, grad);
    bool casts = is_quantised(t, g, n->role) || t->autocast;
    if (casts && e != c)
        out = vp_torch_become(t, out, vp_torch_take(t, t->tokens, n->in_width, e));
    return out;
}

uint32_t vp_torch_linear_back(struct vp_torch *t, const struct vp_torch_graph *g, uint32_t node,
                              uint32_t grad, bool needed) {
    const struct vp_torch_node *n = &g->node[node];
    uint32_t low = VP_NO_STORAGE;

    if (vp_torch_adapts(t, n->role))
        low = adapted_back(t, n, node, grad, needed);
    if (vp_torch_trains(t, n->role))
        vp_torch_gradient(t, node, 0, elements(n), t->gradient_bytes);
    uint32_t kept = base_kept(t, g, n) + (!t->autocast && vp_torch_trains(t, n->role));
    uint32_t out = base_back(t, g, n, grad, needed);
    vp_torch_drop_kept(t, kept);
    if (low == VP_NO_STORAGE)
        return out;
    if (out == VP_NO_STORAGE) {
        vp_torch_drop(t, low);
        return out;
    }
    return vp_torch_become(t, low, out); /* added in place */
}
