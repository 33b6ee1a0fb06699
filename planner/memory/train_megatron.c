#include "planner/memory/train_megatron.h"

#include <string.h>

#include "planner/ops/train_layout.h"

struct counter {
    struct vp_megatron_beside *out;
    const struct vp_scenario *scenario;
    const struct vp_train_stage *stage;
    const struct vp_train_rules *rules;
    struct vp_layout layout;
};

static uint64_t take(struct counter *c, struct vp_sum sum) {
    c->out->overflow |= sum.overflow;
    return sum.v;
}

static uint64_t typed(struct counter *c, struct vp_sum elements) {
    return take(c, vp_dtype_bytes(c->scenario->train.parameters, elements));
}

/* ---- the buffer ---- */

/* Scores of eager attention over all heads of the rank. */
static uint64_t scores(struct counter *c) {
    const struct vp_scenario *s = c->scenario;
    uint64_t most = 0;

    if (!c->rules->scores_buffer || s->train.ops.attention != VP_IMPL_EAGER)
        return 0;
    for (uint32_t i = 0; i < c->stage->layers; i++) {
        const struct vp_block *block = &s->model->blocks[c->stage->layer[i].block];
        uint64_t heads = vp_ceil_div(block->attention.heads, vp_max(c->layout.attention, 1));
        struct vp_sum n =
            vp_sum_mul(vp_sum_mul(vp_sum(vp_tape_tokens(s)), heads), s->train.sequence);
        most = vp_max(most, typed(c, n));
    }
    return most;
}

/* Tokens that sequence parallelism divides, gathered for the matrix that reads them. TE's matrices
 * gather into tensors of their own; the head's does not. */
static uint64_t gathered_input(struct counter *c) {
    const struct vp_scenario *s = c->scenario;

    if (!c->rules->gather_buffer || !s->parallel.sequence ||
        !(c->stage->last || c->rules->scores_buffer))
        return 0;
    return typed(c, vp_sum_mul(vp_sum(vp_tape_tokens(s)), s->model->hidden));
}

/* ---- placeholders ---- */

enum { SHAPES_MAX = 64 };

struct shapes {
    struct vp_op_share item[SHAPES_MAX];
    uint32_t count;
};

static void add_shape(struct shapes *all, uint64_t out, uint64_t in) {
    for (uint32_t i = 0; i < all->count; i++)
        if (all->item[i].out == out && all->item[i].in == in)
            return;
    if (out > 0 && in > 0 && all->count < SHAPES_MAX)
        all->item[all->count++] = (struct vp_op_share){.out = out, .in = in};
}

/* Matrices that are one: a role and those joined to it. */
static enum vp_role joined_to(enum vp_role role) {
    switch (role) {
    case VP_ROLE_K:
    case VP_ROLE_V:
        return VP_ROLE_Q;
    case VP_ROLE_GATE:
        return VP_ROLE_UP;
    case VP_ROLE_EXPERT_GATE:
        return VP_ROLE_EXPERT_UP;
    case VP_ROLE_SHARED_GATE:
        return VP_ROLE_SHARED_UP;
    default:
        return role;
    }
}

static void add_block_shapes(struct counter *c, struct shapes *all, const struct vp_block *block) {
    struct vp_ops ops;

    vp_ops_block(&ops, c->scenario->model, block);
    c->out->overflow |= ops.overflow;
    for (uint32_t i = 0; i < ops.count; i++) {
        const struct vp_op *op = &ops.item[i];
        struct vp_sum rows = vp_sum(0);
        if (op->matrices == 0 || joined_to(op->role) != op->role ||
            !vp_class_quantised(vp_role_class(op->role)))
            continue;
        for (uint32_t k = 0; k < ops.count; k++)
            if (ops.item[k].matrices > 0 && joined_to(ops.item[k].role) == op->role)
                rows = vp_sum_add(rows, vp_ops_share(&ops.item[k], block, &c->layout).out);
        add_shape(all, take(c, rows), vp_ops_share(op, block, &c->layout).in);
    }
}

static uint64_t placeholders(struct counter *c) {
    struct shapes all = {.count = 0};
    struct vp_sum elements = vp_sum(0);

    if (!c->rules->gradient_placeholders || c->stage->trainable == 0)
        return 0;
    for (uint32_t i = 0; i < c->stage->layers; i++)
        if (i == 0 || c->stage->layer[i].block != c->stage->layer[i - 1].block)
            add_block_shapes(c, &all, &c->scenario->model->blocks[c->stage->layer[i].block]);
    for (uint32_t i = 0; i < all.count; i++)
        elements = vp_sum_plus(elements, vp_sum_mul(vp_sum(all.item[i].out), all.item[i].in));
    return typed(c, elements);
}

/* ---- between two steps ---- */

/* Every chunk but the one that begins with the embedding holds the tensor that it received last;
 * whether its gradient is still referenced depends on how the schedule ended. */
static struct vp_amount boundaries(struct counter *c) {
    const struct vp_train_stage *s = c->stage;
    uint64_t chunks = s->chunks - (s->first ? 1 : 0);

    if (!c->rules->boundaries_stay || s->count <= 1 || s->layers == 0)
        return vp_exactly(0);
    uint64_t bytes = take(c, vp_sum_mul(vp_sum(s->layer[0].tape->input_bytes), chunks));
    return (struct vp_amount){0, bytes, take(c, vp_sum_mul(vp_sum(bytes), 2))};
}

/* The step casts 16-bit gradients of a buffer that stays; the casts go when the next step begins.
 */
static uint64_t gradient_copies(const struct counter *c) {
    const struct vp_train *t = &c->scenario->train;
    struct vp_sum one = vp_sum(1);
    bool casts = c->rules->step_gradient_copy && c->rules->gradients_persist &&
                 t->master != VP_DTYPE_UNSET &&
                 vp_dtype_bytes(t->gradients, one).v < vp_dtype_bytes(t->master, one).v;
    return casts ? c->stage->master_bytes : 0;
}

/* ---- head and embedding ---- */

/* Bytes of the matrix with this role on the rank, of operators beside the stack. */
static uint64_t matrix_bytes(struct counter *c, const struct vp_ops *ops, enum vp_role role) {
    for (uint32_t i = 0; i < ops->count; i++)
        if (ops->item[i].role == role) {
            struct vp_op_share share = vp_ops_share(&ops->item[i], NULL, &c->layout);
            return typed(c, vp_sum_mul(vp_sum(share.out), share.in));
        }
    return 0;
}

/* Gradients with a buffer are made in the type of the parameters and added to it. That of the head
 * is handed to autograd as a tensor even when the kernel has added it already. */
static void head_and_table(struct counter *c) {
    const struct vp_scenario *s = c->scenario;
    const struct vp_train_stage *stage = c->stage;
    struct vp_ops ops;

    if (!c->rules->gradients_persist || s->train.frozen || s->train.lora.enabled)
        return;
    if (stage->last) {
        uint64_t hidden = typed(c, vp_sum_mul(vp_sum(vp_tape_tokens(s)), s->model->hidden));
        uint64_t waiting = vp_min(c->rules->deferred_heads, stage->micro_batches);
        vp_ops_last(&ops, s->model);
        uint64_t matrix = matrix_bytes(c, &ops, VP_ROLE_LM_HEAD);
        if (matrix > 0) {
            struct vp_sum one = vp_sum_add(vp_sum(stage->head.logits_bytes), hidden);
            c->out->head_gradients = take(c, vp_sum_add(vp_sum(matrix), hidden));
            c->out->deferred = take(c, vp_sum_mul(one, waiting));
        }
    }
    if (stage->first) {
        vp_ops_first(&ops, s->model);
        c->out->table_gradients = matrix_bytes(c, &ops, VP_ROLE_EMBEDDING);
    }
}

void vp_megatron_beside(struct vp_megatron_beside *out, const struct vp_scenario *scenario,
                        const struct vp_train_stage *stage) {
    struct counter c = {.out = out,
                        .scenario = scenario,
                        .stage = stage,
                        .rules = &scenario->engine.rules.train,
                        .layout = vp_train_layout(scenario)};

    memset(out, 0, sizeof *out);
    out->buffer = vp_max(scores(&c), gathered_input(&c));
    out->placeholders = placeholders(&c);
    out->boundaries = boundaries(&c);
    out->gradient_copies = gradient_copies(&c);
    head_and_table(&c);
}
