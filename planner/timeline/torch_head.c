/* Final norm, head and loss. The loss is where a step with a large vocabulary has its peak:
 * log-probabilities, the gradient of the loss and that of the softmax coexist, beside the logits
 * that the caller holds. */
#include "planner/timeline/torch_parts.h"

enum { MAX_CHUNKS = 64 };

static uint64_t vocabulary(const struct vp_torch *t) {
    return vp_ceil_div(t->vocab, t->layout.vocab);
}

/* logits as the matrix makes them */
static uint32_t scores(struct vp_torch *t, uint64_t rows, uint64_t bytes) {
    return vp_torch_take(t, rows, vocabulary(t), bytes);
}

static void head_gradient(struct vp_torch *t) {
    if (!vp_torch_trains(t, VP_ROLE_LM_HEAD))
        return;
    uint32_t row = t->row;
    t->row = t->stage->layers + 1;
    vp_torch_gradient(t, 0, 0, vocabulary(t) * t->hidden, t->gradient_bytes);
    t->row = row;
}

static uint32_t hidden_gradient(struct vp_torch *t) {
    return vp_torch_take(t, t->stream_tokens, t->hidden, t->stream_bytes);
}

/* cross_entropy over whole logits. Before transformers 4.46 the model's own logits were fp32, and
 * the loss read a copy without the last token. */
static uint32_t unfused(struct vp_torch *t, uint32_t *logits) {
    const struct vp_train_ops *ops = &t->scenario->train.ops;
    uint64_t e = vp_torch_width_bytes(t), f = ops->logits_upcast || t->autocast ? 4 : e;
    uint32_t own = scores(t, t->tokens, e), read;

    read = f != e ? scores(t, t->tokens, f) : vp_torch_share(t, own);
    if (ops->logits_referenced)
        *logits = vp_torch_share(t, t->rules->logits_float ? read : own);
    vp_torch_drop(t, own);
    if (t->rules->loss_shifted)
        read = vp_torch_become(t, read, scores(t, t->tokens, f));
    uint32_t log = vp_torch_become(t, read, scores(t, t->tokens, f));
    uint32_t of_loss = scores(t, t->tokens, f), grad = scores(t, t->tokens, f);
    vp_torch_drop(t, of_loss);
    vp_torch_drop(t, log);
    if (t->rules->loss_shifted)
        grad = vp_torch_become(t, grad, scores(t, t->tokens, f));
    if (f != e)
        grad = vp_torch_become(t, grad, scores(t, t->tokens, e));
    head_gradient(t);
    return vp_torch_become(t, grad, hidden_gradient(t));
}

/* A kernel that writes the gradient over the logits. */
static uint32_t in_place(struct vp_torch *t, uint32_t *logits) {
    uint32_t own = scores(t, t->tokens, vp_torch_width_bytes(t));
    if (t->scenario->train.ops.logits_referenced)
        *logits = vp_torch_share(t, own);
    head_gradient(t);
    return vp_torch_become(t, own, hidden_gradient(t));
}

/* The hidden states go through the head in pieces; their logits all exist when the backward pass
 * begins, in fp32 too unless the loss is compiled. */
static uint32_t chunked(struct vp_torch *t) {
    uint64_t chunks = vp_min(vp_max(t->rules->loss_chunks, 1), MAX_CHUNKS);
    uint64_t e = vp_torch_width_bytes(t), rows = vp_ceil_div(t->tokens, chunks);
    uint32_t part[MAX_CHUNKS], log[MAX_CHUNKS], grad[MAX_CHUNKS];

    for (uint64_t i = 0; i < chunks; i++)
        part[i] = scores(t, rows, e);
    for (uint64_t i = 0; i < chunks && !t->compiled; i++)
        log[i] = scores(t, rows, 4);
    for (uint64_t i = 0; i < chunks; i++) {
        grad[i] = scores(t, rows, e);
        if (!t->compiled)
            vp_torch_drop(t, log[i]);
    }
    for (uint64_t i = 0; i < chunks; i++)
        vp_torch_drop(t, part[i]);
    head_gradient(t);
    uint32_t out = hidden_gradient(t);
    for (uint64_t i = 0; i < chunks; i++)
        vp_torch_drop(t, grad[i]);
    return out;
}

/* Liger's fused linear cross entropy: rows in chunks of about tokens x hidden scores, the gradient
 * of the hidden states whole, all of it in the forward pass. */
static uint32_t fused_linear(struct vp_torch *t) {
    uint64_t pieces = vp_max(vp_ceil_div(vocabulary(t), vp_max(t->hidden, 1)), 1);
    uint64_t rows = 1, least = vp_ceil_div(t->tokens, pieces);
    while (rows < least)
        rows *= 2;
    rows = vp_min(rows, t->tokens);
    uint32_t out = hidden_gradient(t);
    head_gradient(t);
    uint32_t own = scores(t, rows, vp_torch_width_bytes(t));
    uint32_t wide = scores(t, rows, 4);
    vp_torch_drop(t, own);
    vp_torch_drop(t, wide);
    return out;
}

/* Under autocast the head reads 16-bit copies of the hidden states and of its matrix, which the
 * graph holds until the loss's backward pass is over. */
static void cast_operands(struct vp_torch *t, uint32_t *copies) {
    bool casts = t->autocast && t->weight_bytes > t->compute_bytes;
    copies[0] = copies[1] = VP_NO_STORAGE;
    if (!casts || !t->scenario->model->lm_head)
        return;
    copies[0] = vp_torch_take(t, t->stream_tokens, t->hidden, t->compute_bytes);
    copies[1] = vp_torch_take_weight(t, vocabulary(t) * t->hidden, t->compute_bytes);
}

uint32_t vp_torch_head(struct vp_torch *t, uint32_t in, uint32_t *logits) {
    struct vp_torch_node norm = {.kind = VP_TORCH_NORM,
                                 .in_width = t->hidden,
                                 .out_width = t->hidden,
                                 .groups = 1,
                                 .matrices = 1};
    const struct vp_model *model = t->scenario->model;
    bool normed = model->final_norm;
    uint32_t hidden = vp_torch_share(t, in), grad, copies[2];

    norm.layer_norm = model->final_norm_kind != VP_NORM_RMS;
    t->recording = true;
    if (normed)
        hidden = vp_torch_become(t, hidden, vp_torch_norm(t, &norm, in));
    t->component = VP_C_LOGITS;
    *logits = VP_NO_STORAGE;
    cast_operands(t, copies);
    if (!model->lm_head)
        grad = hidden_gradient(t);
    else if (t->scenario->train.ops.loss == VP_LOSS_UNFUSED)
        grad = unfused(t, logits);
    else if (t->scenario->train.ops.loss == VP_LOSS_CHUNKED)
        grad = chunked(t);
    else if (t->scenario->train.ops.loss == VP_LOSS_FUSED)
        grad = in_place(t, logits);
    else
        grad = fused_linear(t);
    t->component = VP_C_ACTIVATIONS;
    t->step = VP_STEP_BACKWARD;
    vp_torch_drop(t, hidden);
    for (int i = 0; i < 2; i++)
        if (copies[i] != VP_NO_STORAGE)
            vp_torch_drop(t, copies[i]);
    if (normed)
        grad = vp_torch_norm_back(t, &norm, grad);
    vp_torch_drop(t, in);
    return grad;
}
