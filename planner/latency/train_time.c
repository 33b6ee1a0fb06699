#include "planner/latency/train_time.h"

#include <math.h>

#include "planner/ops/train_layout.h"

static struct vp_train_pass nothing(void) {
    return (struct vp_train_pass){vp_train_nothing(), vp_train_nothing()};
}

static void add_pass(struct vp_train_pass *sum, const struct vp_train_pass *add) {
    vp_train_cost_add(&sum->forward, &add->forward, 1);
    vp_train_cost_add(&sum->backward, &add->backward, 1);
}

static struct vp_train_pass sum_of(const struct vp_train_place *place, const struct vp_block *block,
                                   const struct vp_ops *ops) {
    struct vp_train_pass sum = nothing(), one;

    for (uint32_t i = 0; i < ops->count;) {
        i += vp_train_op(&one, place, block, ops, i);
        add_pass(&sum, &one);
    }
    return sum;
}

struct vp_train_pass vp_train_block(const struct vp_train_place *place,
                                    const struct vp_block *block) {
    struct vp_ops ops;
    vp_ops_block(&ops, place->scenario->model, block);
    return sum_of(place, block, &ops);
}

struct vp_train_pass vp_train_first(const struct vp_train_place *place) {
    struct vp_ops ops;
    vp_ops_first(&ops, place->scenario->model);
    return sum_of(place, NULL, &ops);
}

/* ---- head and loss ---- */

/* Bytes per logit that the loss moves. One kernel reads the logits and writes their gradient over
 * them; unfused, the logits are converted to fp32, become log-probabilities, and both gradients are
 * written out. */
static double loss_bytes(const struct vp_train_place *place) {
    const struct vp_train_ops *ops = &place->scenario->train.ops;
    double logits = place->element_bytes;

    switch (ops->loss) {
    case VP_LOSS_FUSED:
    case VP_LOSS_FUSED_LINEAR:
        return 3 * logits;
    default:
        return ops->logits_upcast ? 2 * logits + 32 : 8 * logits;
    }
}

static void add_loss(struct vp_train_pass *sum, const struct vp_train_place *place,
                     double vocabulary) {
    double bytes = place->tokens * vocabulary * loss_bytes(place);
    bool fused = place->scenario->train.ops.loss == VP_LOSS_FUSED ||
                 place->scenario->train.ops.loss == VP_LOSS_FUSED_LINEAR;
    double tensor = (double)place->layout.vocab;

    sum->forward.time[VP_TRAIN_OTHER] = vp_time_add(sum->forward.time[VP_TRAIN_OTHER],
                                                    vp_stream_time(&place->kernels, bytes / 2, 0));
    sum->backward.time[VP_TRAIN_OTHER] = vp_time_add(sum->backward.time[VP_TRAIN_OTHER],
                                                     vp_stream_time(&place->kernels, 0, bytes / 2));
    sum->forward.launches += fused ? 1 : 4;
    sum->backward.launches += fused ? 1 : 4;
    if (tensor <= 1)
        return;
    /* the largest logit, the label's and the sum of a token over all parts of the vocabulary */
    struct vp_time small = vp_all_reduce_time(&place->kernels, tensor, place->tokens * 4);
    sum->forward.time[VP_TRAIN_TENSOR] =
        vp_time_add(sum->forward.time[VP_TRAIN_TENSOR], vp_time_scale(small, 3));
}

struct vp_train_pass vp_train_last(const struct vp_train_place *place) {
    const struct vp_scenario *s = place->scenario;
    double tensor = (double)place->layout.tensor;
    struct vp_train_pass sum;
    struct vp_ops ops;

    vp_ops_last(&ops, s->model);
    sum = sum_of(place, NULL, &ops);
    if (!s->model->lm_head)
        return sum;
    add_loss(&sum, place, (double)s->model->vocab / (double)place->layout.vocab);
    if (tensor > 1) { /* all tokens come to the head; their gradients are summed */
        double bytes = place->tokens * (double)s->model->hidden * place->element_bytes;
        struct vp_time time = s->parallel.sequence
                                  ? vp_all_gather_time(&place->kernels, tensor, bytes)
                                  : vp_all_reduce_time(&place->kernels, tensor, bytes);
        sum.backward.time[VP_TRAIN_TENSOR] = vp_time_add(sum.backward.time[VP_TRAIN_TENSOR], time);
        if (s->parallel.sequence)
            sum.forward.time[VP_TRAIN_TENSOR] =
                vp_time_add(sum.forward.time[VP_TRAIN_TENSOR], time);
    }
    return sum;
}

/* ---- between ranks ---- */

struct vp_time vp_train_send(const struct vp_train_place *place) {
    const struct vp_parallel *p = &place->scenario->parallel;
    double tensor = (double)place->layout.tensor;
    double inside = tensor * fmax((double)p->context, 1) * fmax((double)p->data, 1);
    double bytes = place->tokens * (double)place->scenario->model->hidden * place->element_bytes;
    bool across = place->kernels.node_devices > 0 &&
                  inside * (double)p->pipeline > (double)place->kernels.node_devices;

    return vp_send_time(&place->kernels, across, p->sequence ? bytes / tensor : bytes);
}

struct vp_time vp_train_reduce(const struct vp_train_place *place, enum vp_train_collective kind,
                               bool experts, double bytes) {
    const struct vp_scenario *s = place->scenario;
    const struct vp_layout *layout = &place->layout;
    double ranks = (double)(experts ? vp_train_expert_copies(s) : vp_train_copies(s));
    double stride = experts ? (double)layout->expert_ranks * (double)layout->expert_width
                            : (double)layout->tensor;
    struct vp_kernels kernels = vp_train_group(place, stride);

    if (ranks <= 1 || !(bytes > 0))
        return (struct vp_time){.basis = VP_BASIS_CALIBRATED};
    return kind == VP_TRAIN_ALL_REDUCE ? vp_all_reduce_time(&kernels, ranks, bytes)
                                       : vp_all_gather_time(&kernels, ranks, bytes);
}

/* ---- the optimizer ---- */

/* How often the states pass by: a fused kernel reads and writes them once; foreach runs a dozen
 * kernels over all of them, and so does the loop over tensors. */
static const double STEP_PASSES = 3;

static double host_gbs(const struct vp_scenario *s) {
    const double MEMORY_GBS = 200; /* of a server's processors that a step reaches, both ways */
    double nodes = fmax((double)s->hardware.nodes, 1);
    return MEMORY_GBS / fmax((double)s->hardware.count / nodes, 1);
}

struct vp_time vp_train_optimizer(const struct vp_train_place *place,
                                  const struct vp_train_states *states) {
    const struct vp_scenario *s = place->scenario;
    double kept = states->master_bytes + states->optimizer_bytes;
    double read = states->gradient_bytes + kept, written = kept + states->parameter_bytes;
    bool fused = s->train.loop == VP_LOOP_FUSED;

    if (s->train.optimizer == VP_OPTIMIZER_NONE || !(states->elements > 0))
        return (struct vp_time){.basis = VP_BASIS_CALIBRATED};
    /* the norm of the gradients, and their buffer set to 0 */
    struct vp_time time =
        vp_stream_time(&place->kernels, states->gradient_bytes, states->gradient_bytes);
    if (s->train.offload_optimizer) {
        struct vp_time moved = vp_host_copy_time(&place->kernels, states->gradient_bytes);
        double us = (states->elements * 28) / (host_gbs(s) * 1e3);
        struct vp_time host = {us / 2, us, us * 2, VP_BASIS_CLASS};
        moved = vp_time_add(moved, vp_host_copy_time(&place->kernels, states->parameter_bytes));
        return vp_time_add(vp_time_add(time, moved), host);
    }
    double passes = fused ? 1 : STEP_PASSES;
    return vp_time_add(time, vp_stream_time(&place->kernels, read * passes, written * passes));
}
