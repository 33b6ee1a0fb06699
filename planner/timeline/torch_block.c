/* Single operations, forward and backward: norms, attention, activations, residuals. */
#include "planner/timeline/torch_parts.h"

/* ---- norms ---- */

/* RMSNorm as transformers writes it: an fp32 copy, its square, the normalised value in fp32, that
 * in the stream's type, times the weight. Fused kernels and layer_norm read x once. */
static bool is_fused(const struct vp_torch *t, const struct vp_torch_node *n) {
    return n->layer_norm || t->scenario->train.ops.fused_norm || t->compiled;
}

static bool trains_norms(const struct vp_torch *t) { return vp_torch_trains(t, VP_ROLE_NORM); }

/* Bytes per element of what a norm inside a block reads: of the stream, or of a head. */
static uint64_t norm_bytes(const struct vp_torch *t, const struct vp_torch_node *n) {
    return n->groups > 1 ? vp_torch_width_bytes(t) : t->stream_bytes;
}

static uint64_t norm_tokens(const struct vp_torch *t, const struct vp_torch_node *n) {
    return n->groups == 1 && n->in_width == t->hidden ? t->stream_tokens : t->tokens;
}

uint32_t vp_torch_norm(struct vp_torch *t, const struct vp_torch_node *n, uint32_t in) {
    uint64_t e = norm_bytes(t, n), w = n->in_width, tokens = norm_tokens(t, n);
    uint64_t rows = tokens * n->groups;
    if (is_fused(t, n)) {
        uint32_t statistic = vp_torch_take(t, rows, n->layer_norm ? 2 : 1, 4);
        /* layer_norm runs in fp32 under autocast */
        uint32_t out = vp_torch_take(t, tokens, w, n->layer_norm && t->autocast ? 4 : e);
        vp_torch_keep_shared(t, in);
        vp_torch_keep(t, statistic);
        return out;
    }
    uint32_t wide = e != 4 ? vp_torch_take(t, tokens, w, 4) : vp_torch_share(t, in);
    uint32_t square = vp_torch_take(t, tokens, w, 4);
    uint32_t statistic = vp_torch_take(t, rows, 1, 4);
    if (t->rules->mean_keeps_input)
        vp_torch_keep(t, square);
    else
        vp_torch_drop(t, square);
    for (uint64_t i = 0; i < t->rules->norm_extra; i++)
        vp_torch_keep(t, vp_torch_take(t, tokens, w, 4));
    uint32_t hat = vp_torch_take(t, tokens, w, 4);
    vp_torch_keep(t, wide);
    vp_torch_keep(t, statistic);
    bool late = t->rules->norm_product_fp32; /* the cast comes behind the weight */
    if (e != 4 && !late)
        hat = vp_torch_become(t, hat, vp_torch_take(t, tokens, w, e));
    uint32_t out = vp_torch_take(t, tokens, w, late ? 4 : e);
    if (e != 4 && late)
        out = vp_torch_become(t, out, vp_torch_take(t, tokens, w, e));
    if (trains_norms(t))
        vp_torch_keep(t, hat);
    else
        vp_torch_drop(t, hat);
    return out;
}

uint32_t vp_torch_norm_back(struct vp_torch *t, const struct vp_torch_node *n, uint32_t grad) {
    uint64_t e = norm_bytes(t, n), w = n->in_width, tokens = norm_tokens(t, n);
    if (is_fused(t, n)) {
        grad = vp_torch_become(t, grad, vp_torch_take(t, tokens, w, e));
        vp_torch_drop_kept(t, 2);
        return grad;
    }
    if (trains_norms(t))
        vp_torch_drop(t, vp_torch_pop(t));
    if (e != 4)
        grad = vp_torch_become(t, grad, vp_torch_take(t, tokens, w, 4));
    uint32_t first = vp_torch_take(t, tokens, w, 4);
    uint32_t second = vp_torch_take(t, tokens, w, 4);
    vp_torch_drop(t, grad);
    uint32_t sum = vp_torch_take(t, tokens, w, 4);
    vp_torch_drop(t, second);
    vp_torch_drop(t, first);
    vp_torch_drop_kept(t, (t->rules->mean_keeps_input ? 3 : 2) + (uint32_t)t->rules->norm_extra);
    return e != 4 ? vp_torch_become(t, sum, vp_torch_take(t, tokens, w, e)) : sum;
}

/* ---- attention ---- */

static uint64_t heads_of(const struct vp_torch *t, const struct vp_torch_graph *g) {
    return vp_ceil_div(g->block->attention.heads, t->layout.attention);
}

static uint32_t scores(struct vp_torch *t, const struct vp_torch_graph *g, uint64_t bytes) {
    return vp_torch_take(t, t->tokens * heads_of(t, g), t->sequence, bytes);
}

static bool is_eager(const struct vp_torch *t, const struct vp_torch_graph *g) {
    return t->scenario->train.ops.attention == VP_IMPL_EAGER &&
           g->block->attention.kind != VP_ATTENTION_LINEAR;
}

/* With sinks the softmax works in the type of the scores (gpt-oss). */
static uint64_t softmax_bytes(const struct vp_torch *t, const struct vp_torch_graph *g) {
    bool fine = t->autocast || (t->rules->softmax_fp32 && !g->block->attention.sinks);
    return fine ? 4 : vp_torch_width_bytes(t);
}

/* Scores, scaled, masked; softmax in fp32; its cast; dropout. */
static uint32_t eager(struct vp_torch *t, const struct vp_torch_graph *g,
                      const struct vp_torch_node *n, const uint32_t *in) {
    uint64_t e = vp_torch_width_bytes(t), w = n->out_width;
    bool expanded = t->scenario->train.ops.repeat_kv && g->block->attention.kv_heads > 1 &&
                    g->block->attention.kv_heads < g->block->attention.heads;
    bool drops = t->scenario->train.ops.dropout_ppb > 0;
    uint32_t q = vp_torch_take(t, t->tokens, n->in_width, e);
    uint32_t k = expanded ? vp_torch_share(t, in[1]) : vp_torch_take(t, t->tokens, n->in_width, e);
    uint32_t s = scores(t, g, e);
    s = vp_torch_become(t, s, scores(t, g, e));
    s = vp_torch_become(t, s, scores(t, g, e));
    if (t->rules->scores_kept)
        vp_torch_keep_shared(t, s);
    if (t->rules->scores_capped) {
        s = vp_torch_become(t, s, scores(t, g, e));
        vp_torch_keep_shared(t, s);
    }
    uint64_t f = softmax_bytes(t, g);
    uint32_t p = vp_torch_become(t, s, scores(t, g, f)), used = p, mask = VP_NO_STORAGE;
    if (e != f)
        used = scores(t, g, e);
    if (drops) {
        mask = scores(t, g, 1);
        uint32_t dropped = scores(t, g, e);
        if (used != p)
            vp_torch_drop(t, used);
        used = dropped;
    }
    uint32_t v = expanded ? vp_torch_share(t, in[2]) : vp_torch_take(t, t->tokens, w, e);
    uint32_t out = vp_torch_take(t, t->tokens, w, e);
    vp_torch_keep(t, q);
    vp_torch_keep(t, k);
    vp_torch_keep(t, p);
    if (drops)
        vp_torch_keep(t, mask);
    if (used != p)
        vp_torch_keep(t, used);
    vp_torch_keep(t, v);
    return vp_torch_become(t, out, vp_torch_take(t, t->tokens, w, e));
}

/* Gradients of queries, keys and values. The softmax's backward makes grad * output first
 * (SoftMax.cu), so four tensors of its size coexist in fp32. */
static void eager_back(struct vp_torch *t, const struct vp_torch_graph *g,
                       const struct vp_torch_node *n, uint32_t grad, uint32_t *out) {
    uint64_t e = vp_torch_width_bytes(t), w = n->out_width;
    uint64_t f = softmax_bytes(t, g);
    bool drops = t->scenario->train.ops.dropout_ppb > 0;
    uint32_t of_out = vp_torch_become(t, grad, vp_torch_take(t, t->tokens, w, e));
    uint32_t of_p = scores(t, g, e);
    out[2] = vp_torch_take(t, t->tokens, w, e);
    vp_torch_drop(t, of_out);
    vp_torch_drop(t, vp_torch_pop(t)); /* values */
    if (e != f || drops)
        vp_torch_drop(t, vp_torch_pop(t));
    if (drops) {
        of_p = vp_torch_become(t, of_p, scores(t, g, e));
        vp_torch_drop(t, vp_torch_pop(t));
    }
    if (e != f)
        of_p = vp_torch_become(t, of_p, scores(t, g, f));
    uint32_t product = scores(t, g, f), of_s = scores(t, g, e);
    vp_torch_drop(t, product);
    vp_torch_drop(t, of_p);
    vp_torch_drop(t, vp_torch_pop(t)); /* probabilities */
    of_s = vp_torch_become(t, of_s, scores(t, g, e));
    out[0] = vp_torch_take(t, t->tokens, n->in_width, e);
    out[1] = vp_torch_take(t, t->tokens, n->in_width, e);
    vp_torch_drop(t, of_s);
    vp_torch_drop_kept(t,
                       2 + (t->rules->scores_kept ? 1U : 0U) + (t->rules->scores_capped ? 1U : 0U));
}

static uint32_t attend(struct vp_torch *t, const struct vp_torch_graph *g,
                       const struct vp_torch_node *n, const uint32_t *in) {
    if (is_eager(t, g))
        return eager(t, g, n, in);
    uint32_t out = vp_torch_take(t, t->tokens, n->out_width, vp_torch_width_bytes(t));
    uint32_t sums = vp_torch_take(t, t->tokens, heads_of(t, g), 4);
    for (uint32_t i = 0; i < n->ins; i++)
        vp_torch_keep_shared(t, in[i]);
    vp_torch_keep_shared(t, out);
    vp_torch_keep(t, sums);
    return out;
}

/* Flash kernels sum the gradient of the queries in fp32 beside it. */
static void attend_back(struct vp_torch *t, const struct vp_torch_graph *g,
                        const struct vp_torch_node *n, uint32_t grad, uint32_t *out) {
    uint64_t e = vp_torch_width_bytes(t);
    if (is_eager(t, g)) {
        eager_back(t, g, n, grad, out);
        return;
    }
    uint32_t sums = vp_torch_take(t, t->tokens, heads_of(t, g), 4), wide = VP_NO_STORAGE;
    if (t->scenario->train.ops.attention == VP_IMPL_FLASH)
        wide = vp_torch_take(t, t->tokens, n->in_width, 4);
    for (uint32_t i = 0; i < n->ins; i++)
        out[i] = vp_torch_take(t, t->tokens, g->width[n->in[i]], e);
    if (wide != VP_NO_STORAGE)
        vp_torch_drop(t, wide);
    vp_torch_drop(t, sums);
    vp_torch_drop(t, grad);
    vp_torch_drop_kept(t, n->ins + 2);
}

/* ---- one operation ---- */

/* x * cos + rotate(x) * sin: four tensors, of which the last stays. */
static uint32_t rotate(struct vp_torch *t, uint64_t width) {
    uint64_t e = vp_torch_width_bytes(t);
    if (t->compiled)
        return vp_torch_take(t, t->tokens, width, e);
    uint32_t first = vp_torch_take(t, t->tokens, width, e);
    uint32_t turned = vp_torch_take(t, t->tokens, width, e);
    uint32_t second = vp_torch_become(t, turned, vp_torch_take(t, t->tokens, width, e));
    uint32_t out = vp_torch_take(t, t->tokens, width, e);
    vp_torch_drop(t, first);
    vp_torch_drop(t, second);
    return out;
}

/* GPT-2's written-out gelu keeps the cube, the tanh and what is between (tape: 4 more). */
static uint32_t activate(struct vp_torch *t, const struct vp_torch_node *n, uint32_t in) {
    uint64_t e = vp_torch_width_bytes(t), w = n->out_width;
    if (t->scenario->train.ops.gelu == VP_GELU_NEW && !t->compiled)
        for (int i = 0; i < 3; i++)
            vp_torch_keep(t, vp_torch_take(t, t->tokens, w, e));
    vp_torch_keep_shared(t, in);
    return vp_torch_take(t, t->tokens, w, e);
}

uint32_t vp_torch_forward(struct vp_torch *t, const struct vp_torch_graph *g, uint32_t i,
                          const uint32_t *in) {
    const struct vp_torch_node *n = &g->node[i];
    uint64_t e = vp_torch_width_bytes(t);
    uint32_t out;

    switch (n->kind) {
    case VP_TORCH_NORM:
        return vp_torch_norm(t, n, in[0]);
    case VP_TORCH_LINEAR:
        return vp_torch_linear(t, g, i, in[0]);
    case VP_TORCH_ROTARY:
        return rotate(t, n->out_width);
    case VP_TORCH_ATTENTION:
        return attend(t, g, n, in);
    case VP_TORCH_EXPERTS:
        return vp_torch_experts(t, g, i, in[0]);
    case VP_TORCH_ACTIVATION:
        return activate(t, n, in[0]);
    case VP_TORCH_PRODUCT:
        for (uint64_t k = 0; k < t->rules->gated_extra; k++)
            vp_torch_keep(t, vp_torch_take(t, t->tokens, n->out_width, e));
        /* fall through */
    case VP_TORCH_GATED:
    case VP_TORCH_MULTIPLY:
    case VP_TORCH_SCAN:
        out = vp_torch_take(t, t->tokens, n->out_width, e);
        for (uint32_t k = 0; k < n->ins; k++)
            vp_torch_keep_shared(t, in[k]);
        return out;
    case VP_TORCH_DROPOUT:
        out = vp_torch_take(t, t->tokens, n->out_width, e);
        vp_torch_keep(t, vp_torch_take(t, t->tokens, n->out_width, 1));
        return out;
    case VP_TORCH_ADD:
        return vp_torch_take(t, t->stream_tokens, n->out_width, t->stream_bytes);
    case VP_TORCH_VIEW:
        return vp_torch_share(t, in[0]);
    case VP_TORCH_COPY:
        break;
    }
    return vp_torch_take(t, t->tokens, n->out_width, e);
}

void vp_torch_backward(struct vp_torch *t, const struct vp_torch_graph *g, uint32_t i,
                       uint32_t grad, const bool *needs, uint32_t *out) {
    const struct vp_torch_node *n = &g->node[i];
    uint64_t e = vp_torch_width_bytes(t);
    uint32_t extra = 0;

    switch (n->kind) {
    case VP_TORCH_NORM:
        out[0] = vp_torch_norm_back(t, n, grad);
        if (trains_norms(t))
            vp_torch_gradient(t, i, 0, n->in_width / n->groups * (n->layer_norm ? 2 : 1),
                              t->gradient_bytes);
        return;
    case VP_TORCH_LINEAR:
        out[0] = vp_torch_linear_back(t, g, i, grad, needs[n->in[0]]);
        return;
    case VP_TORCH_ATTENTION:
        attend_back(t, g, n, grad, out);
        return;
    case VP_TORCH_EXPERTS:
        out[0] = vp_torch_experts_back(t, g, i, grad);
        return;
    case VP_TORCH_ADD:
        out[0] = vp_torch_share(t, grad);
        out[1] = grad;
        return;
    case VP_TORCH_PRODUCT:
    case VP_TORCH_GATED:
    case VP_TORCH_MULTIPLY:
    case VP_TORCH_SCAN:
    case VP_TORCH_ACTIVATION:
    case VP_TORCH_DROPOUT:
    case VP_TORCH_ROTARY:
    case VP_TORCH_VIEW:
    case VP_TORCH_COPY:
        break;
    }
    for (uint32_t k = 0; k < n->ins; k++)
        out[k] = vp_torch_take(t, t->tokens, g->width[n->in[k]], e);
    vp_torch_drop(t, grad);
    if (n->kind == VP_TORCH_ACTIVATION && t->scenario->train.ops.gelu == VP_GELU_NEW &&
        !t->compiled)
        vp_torch_drop_kept(t, 3);
    if (n->kind == VP_TORCH_PRODUCT)
        extra = (uint32_t)t->rules->gated_extra;
    if (n->kind != VP_TORCH_ROTARY && n->kind != VP_TORCH_COPY && n->kind != VP_TORCH_VIEW)
        vp_torch_drop_kept(t, n->ins + extra);
}
