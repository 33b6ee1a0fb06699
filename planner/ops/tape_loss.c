/* What stands around the stack: embedding, final norm, head and loss. */
#include <string.h>

#include "planner/ops/tape_parts.h"

/* ---- embedding ---- */

/* Look-ups keep their indices, where the table is trained. */
static void look_up(struct vp_tape_maker *maker, const char *name, uint64_t rows,
                    enum vp_role role) {
    if (vp_maker_trains(maker, role))
        vp_tensor_keep_new(maker, name, rows, 1, VP_DTYPE_INT64);
}

/* Tables of cosines and sines, which the rotations of all layers keep. */
static void add_rotary_tables(struct vp_tape_maker *maker) {
    const struct vp_model *model = maker->scenario->model;
    uint64_t width = 0;

    for (uint32_t i = 0; i < model->block_count; i++) {
        const struct vp_attention *a = &model->blocks[i].attention;
        width = vp_max(width, a->kind == VP_ATTENTION_MLA ? a->qk_rope_head_dim : a->rotary_dim);
    }
    vp_tensor_keep_new(maker, "rotary tables", maker->queries, vp_sum_mul(vp_sum(2), width).v,
                       maker->residual);
}

/* What all cross attention reads: the encoder's output, which their matrices keep. */
static void add_encoder_output(struct vp_tape_maker *maker) {
    const struct vp_model *model = maker->scenario->model;
    uint64_t tokens = 0;

    for (uint32_t i = 0; i < model->block_count; i++) {
        tokens = vp_max(tokens, vp_maker_source(maker, &model->blocks[i].attention));
        tokens = vp_max(tokens, vp_maker_source(maker, &model->blocks[i].second));
    }
    if (tokens > 0 && vp_maker_trains(maker, VP_ROLE_K))
        vp_tensor_keep(maker, vp_tensor_rows(maker, "encoder output",
                                             vp_sum_mul(vp_sum(maker->sequences), tokens).v,
                                             model->hidden, maker->residual, false));
}

void vp_tape_first(struct vp_tape *out, const struct vp_scenario *scenario) {
    const struct vp_model *model = scenario->model;
    struct vp_tape_maker maker;

    vp_maker_start(&maker, out, scenario, NULL);
    vp_ops_first(&maker.ops, model);
    maker.group = VP_TAPE_EMBEDDING;
    uint32_t ids = vp_tensor_rows(&maker, "token ids", maker.tokens, 1, VP_DTYPE_INT64, false);
    add_rotary_tables(&maker);
    add_encoder_output(&maker);
    if (!model->embedding) {
        vp_maker_finish(&maker, ids, ids);
        out->output_bytes = 0;
        return;
    }
    vp_maker_step(&maker);
    bool trained = vp_maker_trains(&maker, VP_ROLE_EMBEDDING);
    if (trained)
        vp_tensor_keep(&maker, ids);
    if (model->learned_positions > 0)
        look_up(&maker, "position ids", maker.queries, VP_ROLE_POSITION);
    if (model->token_types > 0)
        look_up(&maker, "token types", maker.tokens, VP_ROLE_POSITION);
    maker.group = VP_TAPE_PROJECTION;
    uint32_t x = vp_tensor_rows(&maker, "embedding output", maker.outside, model->hidden,
                                maker.residual, trained || scenario->train.input_grad);
    const struct vp_op *norm = vp_maker_kind(&maker, VP_OP_NORM);
    if (norm)
        x = vp_tape_norm(&maker, x, norm, maker.outside);
    if (maker.residual_dropout)
        x = vp_tape_dropout(&maker, x, maker.how->dropout_ppb);
    vp_maker_finish(&maker, ids, x);
}

/* ---- loss ---- */

/* Sizes of one loss. */
struct scores {
    uint32_t hidden, logits; /* tensors */
    uint64_t rows;           /* that have a target */
    uint64_t width;          /* of the vocabulary on this rank */
    enum vp_dtype fine;      /* the loss works in */
    struct vp_sum hidden_bytes, logits_bytes, fine_bytes, target_bytes;
};

static struct scores measure(struct vp_tape_maker *maker, uint32_t hidden, uint32_t logits,
                             uint64_t width) {
    const struct vp_train_rules *rules = &maker->scenario->engine.rules.train;
    bool upcast = maker->how->logits_upcast || maker->autocast;
    struct scores s = {.hidden = hidden, .logits = logits, .rows = maker->tokens, .width = width};

    /* copies without the last token of each sequence, which nothing follows */
    if (rules->loss_shifted)
        s.rows = vp_sum_mul(vp_sum(maker->sequences), vp_above(maker->queries, 1)).v;
    s.fine = upcast ? VP_DTYPE_FP32 : maker->tensor[logits].dtype;
    s.hidden_bytes = vp_sum(maker->tensor[hidden].bytes);
    s.logits_bytes = vp_sum(maker->tensor[logits].bytes);
    s.fine_bytes = vp_dtype_bytes(s.fine, vp_sum_mul(vp_sum(s.rows), width));
    s.target_bytes = vp_sum_mul(vp_sum(s.rows), 8);
    return s;
}

static void set_peak(struct vp_head_tape *out, struct vp_sum forward, struct vp_sum backward) {
    out->logits_peak_bytes = vp_max(forward.v, backward.v);
    out->tape.overflow |= forward.overflow || backward.overflow;
}

static void keep_targets(struct vp_tape_maker *maker, const struct scores *s) {
    vp_tensor_keep_new(maker, "targets", s->rows, 1, VP_DTYPE_INT64);
}

/* cross_entropy of torch: log-probabilities are kept; in the backward pass they, the gradient that
 * nll_loss makes and the one that log_softmax makes of it exist at once. With `chunks` the last two
 * and the converted logits are of one chunk at a time. */
static void unfused(struct vp_tape_maker *maker, struct vp_head_tape *out, const struct scores *s,
                    uint64_t chunks) {
    const struct vp_train_rules *rules = &maker->scenario->engine.rules.train;
    struct vp_sum part = {vp_ceil_div(s->fine_bytes.v, chunks), s->fine_bytes.overflow};
    struct vp_sum lasting = vp_sum_plus(s->hidden_bytes, s->fine_bytes);
    struct vp_sum forward = vp_sum_plus(vp_sum_plus(lasting, s->logits_bytes), s->target_bytes);
    struct vp_sum backward = vp_sum_plus(lasting, vp_sum_mul(part, 2));

    if (rules->loss_shifted || s->fine != maker->tensor[s->logits].dtype)
        forward = vp_sum_plus(forward, part);
    if (maker->how->logits_referenced)
        backward = vp_sum_plus(backward, s->logits_bytes);
    set_peak(out, forward, backward);
    vp_tensor_keep(maker, vp_tensor_rows(maker, "log-probabilities", s->rows, s->width, s->fine,
                                         vp_tensor_grad(maker, s->logits)));
    keep_targets(maker, s);
}

/* Over a divided vocabulary (Megatron's): the fp32 softmax replaces the converted logits and
 * becomes their gradient in place. A scripted version makes a second copy, one as a kernel of its
 * own works in the logits. */
static void parallel(struct vp_tape_maker *maker, struct vp_head_tape *out,
                     const struct scores *s) {
    const struct vp_train_rules *rules = &maker->scenario->engine.rules.train;
    uint64_t copies = rules->loss_in_place ? rules->loss_copies : 1;
    struct vp_sum fine = vp_sum_mul(s->fine_bytes, copies);
    struct vp_sum both = vp_sum_plus(vp_sum_plus(s->hidden_bytes, fine), s->logits_bytes);

    set_peak(out, vp_sum_plus(both, s->target_bytes), both);
    if (copies > 0)
        vp_tensor_keep(maker, vp_tensor_rows(maker, "probabilities", s->rows, s->width, s->fine,
                                             vp_tensor_grad(maker, s->logits)));
    else
        vp_tensor_keep(maker, s->logits);
    vp_tensor_keep_new(maker, "targets outside of the rank's part", s->rows, 1, VP_DTYPE_INT8);
    keep_targets(maker, s);
}

static uint64_t next_power_of_2(uint64_t n) {
    uint64_t p = 1;

    while (p < n && p < UINT64_C(1) << 62)
        p *= 2;
    return p;
}

/* Head and loss together (Liger): logits of a chunk of rows at a time, about as many as the hidden
 * states have elements; the gradients of the hidden states and of a trained head are made in the
 * forward pass and kept until the backward pass hands them on. */
static void fused_linear(struct vp_tape_maker *maker, struct vp_head_tape *out, uint32_t hidden,
                         const struct vp_op *head) {
    const struct vp_tensor *x = &maker->tensor[hidden];
    uint64_t width = maker->scenario->model->hidden;
    struct vp_op_share share = vp_maker_share(maker, head);
    uint64_t chunks = vp_ceil_div(share.out, width);
    uint64_t rows = vp_min(next_power_of_2(vp_ceil_div(maker->tokens, chunks)), maker->tokens);
    struct vp_sum logits = vp_dtype_bytes(maker->matrix, vp_sum_mul(vp_sum(rows), share.out));
    struct vp_sum peak = vp_sum_add(logits, 2 * x->bytes);

    vp_tensor_keep(
        maker, vp_tensor_rows(maker, "gradient of hidden states", x->elements, 1, x->dtype, false));
    if (vp_maker_trains(maker, VP_ROLE_LM_HEAD)) {
        uint32_t gradient =
            vp_tensor_rows(maker, "gradient of the head", share.out, width, maker->matrix, false);
        vp_tensor_keep(maker, gradient);
        peak = vp_sum_add(peak, maker->tensor[gradient].bytes);
    }
    out->logits_bytes = logits.v;
    set_peak(out, peak, vp_sum(0));
}

static uint32_t final_norm(struct vp_tape_maker *maker, uint32_t x) {
    const struct vp_op *norm = vp_maker_find(maker, VP_ROLE_FINAL_NORM);

    return norm ? vp_tape_norm(maker, x, norm, maker->outside) : x;
}

/* Logits and loss of what the head reads; returns its last tensor. */
static uint32_t add_loss(struct vp_tape_maker *maker, struct vp_head_tape *out, uint32_t x,
                         const struct vp_op *head) {
    const struct vp_train_rules *rules = &maker->scenario->engine.rules.train;
    uint32_t in = vp_tape_matrix_input(maker, x);

    maker->group = VP_TAPE_LOSS;
    if (maker->how->loss == VP_LOSS_FUSED_LINEAR) {
        fused_linear(maker, out, in, head);
        return in;
    }
    uint32_t logits = vp_tape_matrix(maker, x, in, head, "logits", maker->tokens);
    if (rules->logits_float && maker->how->logits_upcast)
        logits = vp_tensor_cast(maker, logits, VP_DTYPE_FP32);
    struct scores s = measure(maker, in, logits, vp_maker_share(maker, head).out);
    out->logits_bytes = maker->tensor[logits].bytes;
    switch (maker->how->loss) {
    case VP_LOSS_UNFUSED:
        if (rules->loss_in_place)
            parallel(maker, out, &s);
        else
            unfused(maker, out, &s, 1);
        break;
    case VP_LOSS_CHUNKED:
        unfused(maker, out, &s, vp_max(rules->loss_chunks, 1));
        break;
    case VP_LOSS_FUSED:
    case VP_LOSS_FUSED_LINEAR:
        parallel(maker, out, &s);
        break;
    }
    return logits;
}

void vp_tape_last(struct vp_head_tape *out, const struct vp_scenario *scenario) {
    const struct vp_model *model = scenario->model;
    struct vp_tape_maker maker;

    memset(out, 0, sizeof *out);
    vp_maker_start(&maker, &out->tape, scenario, NULL);
    vp_ops_last(&maker.ops, model);
    maker.group = VP_TAPE_INPUT;
    uint32_t input = vp_tensor_rows(&maker, "stack output", maker.outside,
                                    vp_max(model->hyper, 1) * model->hidden, maker.residual, true);
    maker.group = VP_TAPE_PROJECTION;
    uint32_t x = final_norm(&maker, input);
    const struct vp_op *head = vp_maker_find(&maker, VP_ROLE_LM_HEAD);
    uint32_t hidden = x, begin = maker.count;
    if (head)
        x = add_loss(&maker, out, x, head);
    vp_maker_finish(&maker, input, x);
    for (uint32_t i = 0; head && i < maker.count; i++)
        if (maker.tensor[i].kept && (i == hidden || i >= begin))
            out->peak_tape_bytes += maker.tensor[i].bytes;
}
