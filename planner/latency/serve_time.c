#include "planner/latency/serve_time.h"

#include <math.h>

static const struct vp_time NOTHING = {.basis = VP_BASIS_CALIBRATED};

/* Tokens of one iteration on one data rank. */
struct iteration {
    double decoding; /* sequences that get one token each */
    double past;     /* tokens cached before it, mean */
    double prompts;  /* sequences whose prompt is computed, */
    double chunk;    /* that many tokens of each */
    double done;     /* tokens of it that were computed before */
    double data;     /* data ranks whose tokens meet at the experts */
};

static void add(struct vp_time *sum, struct vp_time time) { *sum = vp_time_add(*sum, time); }

/* ---- one layer ---- */

/* Sums over the ranks behind attention and feed-forward; with data-parallel attention the tokens
 * of all ranks are gathered before the feed-forward and scattered behind it. */
static struct vp_time exchange(const struct vp_serve_load *load, const struct vp_op_place *place,
                               const struct vp_ops *ops, double tokens) {
    const struct vp_layout *l = &load->layout;
    const struct vp_kernels *kernels = place->kernels;
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
            if (load->data > 1 && ranks > (double)l->attention)
                add(&sum, vp_time_scale(vp_all_gather_time(kernels, ranks, bytes * load->data), 2));
            else
                add(&sum, vp_all_reduce_time(kernels, ranks, bytes));
        }
    }
    return sum;
}

static void pass_layer(struct vp_pass *pass, const struct vp_serve_load *load,
                       const struct vp_op_place *place, const struct vp_ops *ops,
                       const struct iteration *it, double count) {
    double tokens = it->decoding + it->prompts * it->chunk;
    enum vp_kv_width kv = load->scenario->precision.kv_cache == VP_DTYPE_FP8 ||
                                  load->scenario->precision.kv_cache == VP_DTYPE_INT8
                              ? VP_KV_8
                              : VP_KV_16;
    struct vp_op_load work = {.tokens = tokens,
                              .expert_tokens = tokens * it->data,
                              .sequences = it->decoding,
                              .fresh = 1,
                              .past = it->past,
                              .kv = kv};
    struct vp_ops_time time;

    if (it->decoding > 0 || it->prompts <= 0) {
        time = vp_ops_time(place, ops, &work);
    } else {
        work.sequences = it->prompts;
        work.fresh = it->chunk;
        work.past = it->done;
        time = vp_ops_time(place, ops, &work);
    }
    if (it->decoding > 0 && it->prompts > 0) { /* attention of the prompts on top */
        work.sequences = it->prompts;
        work.fresh = it->chunk;
        work.past = it->done;
        for (uint32_t i = 0; i < ops->count; i++)
            if (ops->item[i].kind == VP_OP_ATTENTION || ops->item[i].kind == VP_OP_SCAN)
                add(&time.attention, vp_op_time(place, &ops->item[i], &work));
    }
    add(&pass->linear, vp_time_scale(time.linear, count));
    add(&pass->experts, vp_time_scale(time.experts, count));
    add(&pass->attention, vp_time_scale(time.attention, count));
    add(&pass->other, vp_time_scale(time.other, count));
    add(&pass->exchange, vp_time_scale(exchange(load, place, ops, tokens), count));
    pass->layers += count;
    if (place->block->moe.kind != VP_MLP_NONE)
        pass->expert_layers += count;
}

/* ---- a pass ---- */

static struct vp_pass make_pass(const struct vp_serve_load *load, const struct iteration *it) {
    const struct vp_model *model = load->scenario->model;
    struct vp_kernels kernels = vp_kernels_of(load->scenario);
    struct vp_op_place place = {&kernels, model, NULL, load->layout, true};
    struct vp_pass pass = {NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, 0, 0, 0, 1};
    double tokens = it->decoding + it->prompts * it->chunk, heads = it->decoding + it->prompts;
    struct vp_op_load work = {.tokens = tokens};
    double stages = (double)vp_max(load->scenario->parallel.pipeline, 1);
    struct vp_ops_time time;
    struct vp_ops ops;

    vp_ops_first(&ops, model);
    time = vp_ops_time(&place, &ops, &work);
    add(&pass.other, time.other);
    for (uint32_t i = 0; i < model->block_count; i++) {
        place.block = &model->blocks[i];
        vp_ops_block(&ops, model, place.block);
        pass_layer(&pass, load, &place, &ops, it, (double)model->blocks[i].count);
    }
    place.block = NULL;
    vp_ops_last(&ops, model);
    work.tokens = heads; /* only the last token of a prompt needs logits */
    time = vp_ops_time(&place, &ops, &work);
    add(&pass.linear, time.linear);
    add(&pass.other, time.other);
    add(&pass.exchange,
        vp_all_gather_time(&kernels, (double)load->layout.vocab, heads * (double)model->vocab * 2));
    if (stages > 1)
        add(&pass.exchange, vp_time_scale(vp_send_time(&kernels, load->scenario->hardware.nodes > 1,
                                                       tokens * (double)model->hidden * 2),
                                          stages - 1));
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
    struct iteration decode = {.decoding = fmax(running / stages, fmin(running, 1)),
                               .past = load->prompt + output / 2,
                               .data = load->data};

    *out = (struct vp_serve_terms){0};
    out->decode = make_pass(load, &decode);
    out->waiting = fmax(load->requests / group - 1, 0);

    /* prompts that come within one iteration are computed together */
    double room = fmax(load->budget - (load->mixed ? decode.decoding : 0), 1);
    double arriving = load->batch ? group : fmax(group / output, 1);
    double on_rank = fmax(arriving / load->data, 1);
    double together = fmax(fmin(on_rank, floor(room / load->prompt)), 1);
    double chunks = ceil(load->prompt * together / room);
    struct iteration prefill = {.prompts = together,
                                .chunk = load->prompt / chunks,
                                .done = load->prompt * (chunks - 1) / chunks / 2,
                                .data = fmax(fmin(arriving / together, load->data), 1)};
    struct vp_pass alone = make_pass(load, &prefill);
    out->alone = scaled(&alone, chunks / (together * prefill.data));
    if (load->mixed && !load->batch) {
        struct iteration both = decode;
        both.prompts = prefill.prompts;
        both.chunk = prefill.chunk;
        both.done = prefill.done;
        struct vp_pass pass = make_pass(load, &both);
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
