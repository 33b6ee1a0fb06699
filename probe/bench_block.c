/* A transformer block, its operators taken from the one list that all estimates use (ops.h), each
 * as one launch; measured as a whole, with the weights of as many layers as no cache holds. Sizes
 * are those of `block` items: a causal prompt of m tokens. */
#include "planner/model/plain_layer.h"
#include "planner/ops/ops.h"
#include "probe/bench_parts.h"

/* Operands of the activations take turns: read one, write the next. */
enum { TURNS = 4 };

struct building {
    struct vp_bench_task *task;
    uint64_t weight_bytes; /* of the operators so far */
    uint64_t widest;       /* elements per token of any operand */
    uint8_t *turn[TURNS], *weights, *vector;
    unsigned at;
};

static uint64_t rounded(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

static void describe(struct vp_ops *out, struct vp_model *model, const struct vp_bench_item *item) {
    const struct vp_plain_layer layer = {.hidden = item->n,
                                         .intermediate = item->width,
                                         .heads = item->heads,
                                         .kv_heads = item->kv_heads,
                                         .head_dim = item->head_dim};
    struct vp_block block;

    vp_plain_layer(model, &block, &layer);
    vp_ops_block(out, model, &block);
}

static struct vp_dev_work *launch(struct building *b, enum vp_dev_kernel kernel, uint64_t m,
                                  uint64_t n) {
    struct vp_dev_work *work = &b->task->work[b->task->launches++];
    *work = (struct vp_dev_work){.kernel = kernel, .m = m, .n = n, .scale = {1, 1}};
    return work;
}

static void *here(const struct building *b) { return b->turn[b->at % TURNS]; }
static void *next(struct building *b) { return b->turn[++b->at % TURNS]; }

static void add_linear(struct building *b, const struct vp_op *op, uint64_t tokens) {
    struct vp_dev_work *work = launch(b, VP_KERNEL_GEMM, tokens, op->out);

    work->k = op->in;
    work->buffer[0] = here(b);
    work->buffer[1] = b->weights + b->weight_bytes;
    work->buffer[2] = next(b);
    b->task->rotates[b->task->launches - 1][1] = true;
    b->weight_bytes += rounded(2 * op->out * op->in);
}

/* A fused pair of gate and up is one row for SWIGLU; here they come one behind the other, which
 * takes the same time. */
static bool add_op(struct building *b, const struct vp_op *op, const struct vp_bench_item *item) {
    struct vp_dev_work *work;

    switch (op->kind) {
    case VP_OP_LINEAR:
        add_linear(b, op, item->m);
        return true;
    case VP_OP_NORM:
        work = launch(b, VP_KERNEL_NORM, item->m, op->in);
        work->buffer[0] = here(b);
        work->buffer[1] = b->vector;
        work->buffer[2] = next(b);
        return true;
    case VP_OP_ACTIVATION:
        work = launch(b, VP_KERNEL_SWIGLU, item->m, op->out);
        work->buffer[0] = here(b);
        work->buffer[1] = next(b);
        return true;
    case VP_OP_ADD:
        work = launch(b, VP_KERNEL_ADD, 0, item->m * op->in);
        work->buffer[0] = here(b);
        work->buffer[1] = next(b);
        work->buffer[2] = next(b);
        return true;
    case VP_OP_ATTENTION:
        work = launch(b, VP_KERNEL_PREFILL, 0, item->m);
        work->batch = 1;
        work->heads = item->heads;
        work->kv_heads = item->kv_heads;
        work->head_dim = item->head_dim;
        for (unsigned i = 0; i < VP_DEV_BUFFERS; i++)
            work->buffer[i] = b->turn[(b->at + i) % TURNS];
        return true;
    default:
        return false;
    }
}

static enum vp_dev_status build(struct building *b, struct vp_bench_session *s,
                                const struct vp_ops *ops, const struct vp_bench_item *item) {
    b->task->launches = 0;
    b->weight_bytes = 0;
    b->at = 0;
    if (ops->count > VP_TASK_LAUNCHES)
        return vp_dev_fail(&s->device, VP_DEV_UNSUPPORTED, "a block of too many operators");
    for (uint32_t i = 0; i < ops->count; i++)
        if (!add_op(b, &ops->item[i], item))
            return vp_dev_fail(&s->device, VP_DEV_UNSUPPORTED, "the block has an operator \"%s\"",
                               ops->item[i].name);
    return VP_DEV_OK;
}

static uint64_t widest_of(const struct vp_ops *ops) {
    uint64_t widest = 0;
    for (uint32_t i = 0; i < ops->count; i++) {
        uint64_t in = ops->item[i].in, out = ops->item[i].out;
        widest = in > widest ? in : widest;
        widest = out > widest ? out : widest;
    }
    return widest;
}

enum vp_dev_status vp_bench_block(struct vp_bench_session *s, struct vp_sample *out,
                                  const struct vp_bench_item *item) {
    struct vp_bench_task task = {.session = s};
    struct building b = {.task = &task};
    struct vp_model model;
    struct vp_ops ops;

    describe(&ops, &model, item);
    enum vp_dev_status status = build(&b, s, &ops, item); /* once for the sizes */
    uint64_t operand = rounded(2 * item->m * widest_of(&ops)), vector = rounded(2 * item->n);
    uint64_t fixed = TURNS * operand + vector, spread = vp_bench_spread(s);
    uint64_t copies = b.weight_bytes ? spread / b.weight_bytes + 1 : 1;
    if (status == VP_DEV_OK)
        status = vp_bench_pool_need(s, fixed + copies * b.weight_bytes);
    if (status != VP_DEV_OK)
        return status;
    for (unsigned i = 0; i < TURNS; i++)
        b.turn[i] = s->pool.memory + i * operand;
    b.vector = s->pool.memory + TURNS * operand;
    b.weights = s->pool.memory + fixed;
    build(&b, s, &ops, item);
    task.stride = b.weight_bytes;
    task.copies = copies;
    status = vp_bench_fill(s, s->pool.memory, fixed + copies * b.weight_bytes, VP_TYPE_BF16);
    return status == VP_DEV_OK ? vp_bench_time(s, out, &task) : status;
}
