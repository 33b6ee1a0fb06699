#include "planner/latency/serve_time.h"

#include <math.h>

static const struct vp_time NOTHING = {.basis = VP_BASIS_CALIBRATED};

static void add(struct vp_time *sum, struct vp_time time) { *sum = vp_time_add(*sum, time); }

/* Of the layers of all stages, on one rank each: as many as were asked for, or a share. */
static double host_bytes(const struct vp_scenario *s, const struct vp_layout *layout) {
    const struct vp_model *model = s->model;
    double layers = 0, stages = (double)vp_max(s->parallel.pipeline, 1);
    struct vp_ops ops;

    if (s->offload.weights_bytes == 0 && s->offload.weights_ppb == 0)
        return 0;
    for (uint32_t b = 0; b < model->block_count; b++) {
        const struct vp_block *block = &model->blocks[b];
        vp_ops_block(&ops, model, block);
        for (uint32_t i = 0; i < ops.count; i++) {
            const struct vp_op *op = &ops.item[i];
            struct vp_op_share share = vp_ops_share(op, block, layout);
            if (op->matrices > 0)
                layers += (double)block->count *
                          (double)vp_scheme_bytes(&model->schemes[block->scheme[op->role]],
                                                  share.matrices, share.out, share.in)
                              .v;
        }
    }
    if (s->offload.weights_ppb > 0)
        return layers * (double)s->offload.weights_ppb / 1e9;
    return fmin((double)s->offload.weights_bytes * stages, layers);
}

void vp_stack_of(struct vp_stack *out, const struct vp_scenario *scenario,
                 const struct vp_layout *layout, double data) {
    bool narrow = scenario->precision.kv_cache == VP_DTYPE_FP8 ||
                  scenario->precision.kv_cache == VP_DTYPE_INT8;

    *out = (struct vp_stack){.scenario = scenario,
                             .model = scenario->model,
                             .layout = *layout,
                             .kernels = vp_kernels_of(scenario),
                             .kv = narrow ? VP_KV_8 : VP_KV_16,
                             .data = data,
                             .stages = (double)vp_max(scenario->parallel.pipeline, 1),
                             .host_bytes = host_bytes(scenario, layout)};
}

static struct vp_op_place place_of(const struct vp_stack *stack, const struct vp_block *block) {
    return (struct vp_op_place){&stack->kernels, stack->model, block, stack->layout, true};
}

/* ---- what every token passes ---- */

/* Sums over the ranks behind attention and feed-forward; with data-parallel attention the tokens
 * of all ranks are gathered before the feed-forward and scattered behind it. */
static struct vp_time exchange(const struct vp_stack *stack, const struct vp_ops *ops,
                               double tokens) {
    const struct vp_layout *l = &stack->layout;
    const struct vp_kernels *kernels = &stack->kernels;
    struct vp_time sum = NOTHING;
    bool joined = false; /* routed and shared experts are summed together */

    for (uint32_t i = 0; i < ops->count; i++) {
        const struct vp_op *op = &ops->item[i];
        bool attention = op->shard == VP_SHARD_HEADS || op->shard == VP_SHARD_KV;
        double bytes = tokens * (double)op->out * 2;
        double ranks =
            (double)(op->kind == VP_OP_EXPERTS ? l->expert_ranks * l->expert_width : l->tensor);
        if (!op->all_reduce)
            continue;
        if (attention) {
            add(&sum, vp_all_reduce_time(kernels, (double)l->attention, bytes));
        } else if (!joined) {
            joined = true;
            if (stack->data > 1 && ranks > (double)l->attention)
                add(&sum,
                    vp_time_scale(vp_all_gather_time(kernels, ranks, bytes * stack->data), 2));
            else
                add(&sum, vp_all_reduce_time(kernels, ranks, bytes));
        }
    }
    return sum;
}

void vp_stack_tokens(struct vp_pass *pass, const struct vp_stack *stack, double tokens,
                     double expert_tokens) {
    const struct vp_model *model = stack->model;
    struct vp_op_load work = {.tokens = tokens, .expert_tokens = expert_tokens, .kv = stack->kv};
    struct vp_op_place place = place_of(stack, NULL);
    struct vp_ops_time time;
    struct vp_ops ops;

    vp_ops_first(&ops, model);
    add(&pass->other, vp_ops_time(&place, &ops, &work).other);
    for (uint32_t i = 0; i < model->block_count; i++) {
        double count = (double)model->blocks[i].count;
        place.block = &model->blocks[i];
        vp_ops_block(&ops, model, place.block);
        time = vp_ops_time(&place, &ops, &work);
        add(&pass->linear, vp_time_scale(time.linear, count));
        add(&pass->experts, vp_time_scale(time.experts, count));
        add(&pass->attention, vp_time_scale(time.attention, count)); /* convolutions */
        add(&pass->other, vp_time_scale(time.other, count));
        add(&pass->exchange, vp_time_scale(exchange(stack, &ops, tokens), count));
        pass->layers += count;
        if (place.block->moe.kind != VP_MLP_NONE)
            pass->expert_layers += count;
    }
    if (stack->host_bytes > 0)
        add(&pass->exchange, vp_host_copy_time(&stack->kernels, stack->host_bytes));
    if (stack->stages > 1)
        add(&pass->exchange,
            vp_time_scale(vp_send_time(&stack->kernels, stack->scenario->hardware.nodes > 1,
                                       tokens * (double)model->hidden * 2),
                          stack->stages - 1));
    pass->passes += 1;
}

struct vp_time vp_stack_experts(const struct vp_stack *stack, double tokens) {
    const struct vp_model *model = stack->model;
    struct vp_op_load work = {.tokens = tokens, .expert_tokens = tokens, .kv = stack->kv};
    struct vp_op_place place = place_of(stack, NULL);
    struct vp_time sum = NOTHING;
    struct vp_ops ops;

    for (uint32_t i = 0; i < model->block_count; i++) {
        place.block = &model->blocks[i];
        if (place.block->moe.kind == VP_MLP_NONE)
            continue;
        vp_ops_block(&ops, model, place.block);
        add(&sum,
            vp_time_scale(vp_ops_time(&place, &ops, &work).experts, (double)place.block->count));
    }
    return sum;
}

/* ---- what looks back ---- */

static bool looks_back(const struct vp_op *op) {
    return op->kind == VP_OP_ATTENTION || op->kind == VP_OP_SCAN;
}

void vp_stack_prepare(struct vp_arena *arena, struct vp_stack *stack) {
    const struct vp_model *model = stack->model;
    struct vp_stack_op *out = VP_NEW_ARRAY(arena, 2 * model->block_count, struct vp_stack_op);
    struct vp_ops ops;

    stack->looking_back = out;
    stack->looking_back_count = 0;
    for (uint32_t i = 0; i < model->block_count; i++) {
        vp_ops_block(&ops, model, &model->blocks[i]);
        for (uint32_t j = 0, n = 0; j < ops.count && n < 2; j++)
            if (looks_back(&ops.item[j])) { /* two mixers of a layer at most */
                out[stack->looking_back_count++] =
                    (struct vp_stack_op){&model->blocks[i], ops.item[j]};
                n++;
            }
    }
}

struct vp_time vp_stack_attention(const struct vp_stack *stack, double sequences, double fresh,
                                  double past) {
    const struct vp_model *model = stack->model;
    struct vp_op_load work = {.tokens = sequences * fresh,
                              .sequences = sequences,
                              .fresh = fresh,
                              .past = past,
                              .kv = stack->kv};
    struct vp_op_place place = place_of(stack, NULL);
    struct vp_time sum = NOTHING;
    struct vp_ops ops;

    if (!(sequences > 0))
        return sum;
    for (uint32_t i = 0; stack->looking_back && i < stack->looking_back_count; i++) {
        const struct vp_stack_op *one = &stack->looking_back[i];
        place.block = one->block;
        add(&sum, vp_time_scale(vp_op_time(&place, &one->op, &work), (double)one->block->count));
    }
    for (uint32_t i = 0; !stack->looking_back && i < model->block_count; i++) {
        place.block = &model->blocks[i];
        vp_ops_block(&ops, model, place.block);
        for (uint32_t j = 0; j < ops.count; j++)
            if (looks_back(&ops.item[j]))
                add(&sum, vp_time_scale(vp_op_time(&place, &ops.item[j], &work),
                                        (double)place.block->count));
    }
    return sum;
}

/* ---- the head ---- */

void vp_stack_head(struct vp_pass *pass, const struct vp_stack *stack, double tokens) {
    struct vp_op_load work = {.tokens = tokens};
    struct vp_op_place place = place_of(stack, NULL);
    struct vp_ops_time time;
    struct vp_ops ops;

    vp_ops_last(&ops, stack->model);
    time = vp_ops_time(&place, &ops, &work);
    add(&pass->linear, time.linear);
    add(&pass->other, time.other);
    add(&pass->exchange, vp_all_gather_time(&stack->kernels, (double)stack->layout.vocab,
                                            tokens * (double)stack->model->vocab * 2));
}

/* ---- a pass ---- */

struct vp_pass vp_pass_of(const struct vp_stack *stack, const struct vp_pass_load *it) {
    double tokens = it->decoding + it->prompts * it->chunk, heads = it->decoding + it->prompts;
    struct vp_pass pass = {NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, 0, 0, 0, 0};

    vp_stack_tokens(&pass, stack, tokens, tokens * it->data);
    add(&pass.attention, vp_stack_attention(stack, it->decoding, 1, it->past));
    add(&pass.attention, vp_stack_attention(stack, it->prompts, it->chunk, it->done));
    vp_stack_head(&pass, stack, heads); /* only the last token of a prompt needs logits */
    pass.sequences = heads;
    return pass;
}

static struct vp_time less(struct vp_time a, struct vp_time b) {
    return (struct vp_time){fmax(a.low - b.low, 0), fmax(a.likely - b.likely, 0),
                            fmax(a.high - b.high, 0), a.basis};
}

/* What b has on top of a, or b in iterations of its own. */
static struct vp_pass added(const struct vp_pass *b, const struct vp_pass *a) {
    return (struct vp_pass){less(b->linear, a->linear),
                            less(b->experts, a->experts),
                            less(b->attention, a->attention),
                            less(b->other, a->other),
                            less(b->exchange, a->exchange),
                            0,
                            0,
                            b->sequences - a->sequences,
                            0};
}

static struct vp_pass scaled(const struct vp_pass *p, double f) {
    return (struct vp_pass){vp_time_scale(p->linear, f),
                            vp_time_scale(p->experts, f),
                            vp_time_scale(p->attention, f),
                            vp_time_scale(p->other, f),
                            vp_time_scale(p->exchange, f),
                            p->layers * f,
                            p->expert_layers * f,
                            p->sequences * f,
                            p->passes * f};
}

/* ---- the steady state ---- */

void vp_serve_terms(struct vp_serve_terms *out, const struct vp_serve_load *load) {
    double stages = (double)vp_max(load->scenario->parallel.pipeline, 1);
    double running = fmax(load->running, 1), output = fmax(load->output, 1);
    double group = running * load->data; /* of the replica */
    /* with stages, as many groups of sequences are under way as there are stages */
    struct vp_pass_load decode = {.decoding = fmax(running / stages, fmin(running, 1)),
                                  .past = load->prompt + output / 2,
                                  .data = load->data};
    struct vp_stack stack;

    *out = (struct vp_serve_terms){0};
    vp_stack_of(&stack, load->scenario, &load->layout, load->data);
    out->decode = vp_pass_of(&stack, &decode);
    out->waiting = fmax(load->requests / group - 1, 0);

    /* prompts that come within one iteration are computed together */
    double room = fmax(load->budget - (load->mixed ? decode.decoding : 0), 1);
    double arriving = load->batch ? group : fmax(group / output, 1);
    double on_rank = fmax(arriving / load->data, 1);
    double together = fmax(fmin(on_rank, floor(room / load->prompt)), 1);
    double chunks = ceil(load->prompt * together / room);
    struct vp_pass_load prefill = {.prompts = together,
                                   .chunk = load->prompt / chunks,
                                   .done = load->prompt * (chunks - 1) / chunks / 2,
                                   .data = fmax(fmin(arriving / together, load->data), 1)};
    struct vp_pass alone = vp_pass_of(&stack, &prefill);
    out->alone = scaled(&alone, chunks / (together * prefill.data));
    if (load->mixed && !load->batch) {
        struct vp_pass_load both = decode;
        both.prompts = prefill.prompts;
        both.chunk = prefill.chunk;
        both.done = prefill.done;
        struct vp_pass pass = vp_pass_of(&stack, &both);
        out->first = scaled(&pass, chunks);
        pass = added(&pass, &out->decode);
        out->prompt = scaled(&pass, chunks / (together * prefill.data));
    } else {
        out->first = scaled(&alone, chunks);
        out->prompt = out->alone;
    }
    out->interruptions = load->batch ? 0 : fmax(group - 1, 0) / output;
    out->ahead = load->batch ? (group - together * prefill.data) / 2 : group - 1;
}
