#include "planner/latency/op_time.h"

#include <math.h>

/* Which units multiply weights stored like this on the card: what it has no units for is read as
 * stored and multiplied in 16 bit. */
static enum vp_rate rate_of_scheme(const struct vp_gpu *gpu, const struct vp_scheme *scheme) {
    switch (scheme->data) {
    case VP_DTYPE_FP32:
    case VP_DTYPE_TF32:
        return VP_RATE_FP32;
    case VP_DTYPE_FP16:
        return VP_RATE_FP16;
    case VP_DTYPE_FP8:
        if (!gpu->fp8)
            return VP_RATE_BF16;
        return scheme->scale == VP_SCALE_BLOCK ? VP_RATE_FP8_BLOCK : VP_RATE_FP8;
    case VP_DTYPE_INT8: /* in groups: weights only */
        return scheme->scale == VP_SCALE_GROUP ? VP_RATE_BF16 : VP_RATE_INT8;
    case VP_DTYPE_FP4:
    case VP_DTYPE_MXFP4:
    case VP_DTYPE_NVFP4: /* on cards without such units: weights only */
        return gpu->tflops_fp4 > 0 ? VP_RATE_FP4 : VP_RATE_BF16;
    default:
        return VP_RATE_BF16;
    }
}

double vp_experts_hit(double matrices, double active, double tokens) {
    if (!(matrices > 0) || active >= matrices)
        return matrices;
    return matrices * -expm1(tokens * log1p(-active / matrices));
}

/* ---- matrices ---- */

static const struct vp_scheme *scheme_of(const struct vp_op_place *place, const struct vp_op *op) {
    const struct vp_model *model = place->model;
    uint8_t index = op->role == VP_ROLE_LM_HEAD     ? model->head_scheme
                    : op->role == VP_ROLE_EMBEDDING ? model->embedding_scheme
                    : place->block                  ? place->block->scheme[op->role]
                                                    : 0;
    return &model->schemes[index];
}

/* One product, with the outputs of `joined` neighbours beside its own. */
struct product {
    const struct vp_op *op;
    const struct vp_scheme *scheme;
    struct vp_op_share share;
    double out; /* of all joined */
    double stored_bytes;
};

static struct product product_of(const struct vp_op_place *place, const struct vp_op *op) {
    struct product p = {.op = op, .scheme = scheme_of(place, op)};

    p.share = vp_ops_share(op, place->block, &place->layout);
    if (p.share.matrices == 0)
        p.share.matrices = 1; /* a tied head: counted with the embedding, multiplied here */
    p.out = (double)p.share.out;
    p.stored_bytes = (double)vp_scheme_bytes(p.scheme, p.share.matrices, p.share.out, p.share.in).v;
    return p;
}

/* What a rank multiplies: of experts those that are woken. */
static struct vp_gemm_shape gemm_of(const struct vp_op_place *place, const struct product *p,
                                    const struct vp_op_load *load) {
    const struct vp_op *op = p->op;
    struct vp_gemm_shape gemm = {
        .rate = load->rate ? *load->rate : rate_of_scheme(place->kernels->gpu, p->scheme),
        .m = load->tokens,
        .n = p->out,
        .k = (double)p->share.in,
        .batch = (double)p->share.matrices,
        .stored_bytes = load->rate ? 0 : p->stored_bytes};

    if (op->kind == VP_OP_EXPERTS) {
        double tokens = load->expert_tokens > 0 ? load->expert_tokens : load->tokens;
        double all = (double)op->matrices;
        double hit = vp_experts_hit(all, (double)op->active, tokens) / all;
        gemm.batch *= hit;
        gemm.m = tokens * (double)op->active / all / hit;
        gemm.stored_bytes *= hit;
        if (gemm.batch < 1) { /* on average not even one of them is wanted: the fullest has one */
            gemm.stored_bytes /= gemm.batch;
            gemm.batch = 1;
        }
    }
    return gemm;
}

static struct vp_time product_time(const struct vp_op_place *place, const struct product *p,
                                   const struct vp_op_load *load) {
    struct vp_gemm_shape gemm = gemm_of(place, p, load);

    if (!(gemm.m > 0))
        return (struct vp_time){.basis = VP_BASIS_CALIBRATED};
    return vp_gemm_time(place->kernels, &gemm);
}

/* ---- attention and recurrences ---- */

static double divided(uint64_t n, uint64_t ranks) {
    return (double)vp_ceil_div(n, vp_max(ranks, 1));
}

static const struct vp_attention *mixer_of(const struct vp_block *block, enum vp_op_kind kind) {
    bool recurrent = block->attention.kind == VP_ATTENTION_LINEAR;
    bool wanted = kind == VP_OP_SCAN || kind == VP_OP_CONV;

    if (block->attention.kind != VP_ATTENTION_NONE && recurrent == wanted)
        return &block->attention;
    return &block->second;
}

static struct vp_attention_shape attention_of(const struct vp_op_place *place,
                                              const struct vp_op *op,
                                              const struct vp_op_load *load) {
    const struct vp_attention *a = mixer_of(place->block, op->kind);
    uint64_t ranks = place->layout.attention;
    struct vp_attention_shape shape = {.batch = load->sequences,
                                       .fresh = load->fresh,
                                       .past = load->past,
                                       .heads = divided(a->heads, ranks),
                                       .kv_heads = divided(a->kv_heads, vp_min(ranks, a->kv_heads)),
                                       .head_dim = (double)a->head_dim,
                                       .v_head_dim = (double)a->v_head_dim,
                                       .kv = load->kv,
                                       .window = (double)a->window,
                                       .bidirectional = a->bidirectional};

    if (a->chunk > 0) /* on average half a chunk lies behind a token */
        shape.window = (double)a->chunk / 2;
    if (a->source_tokens > 0) {
        shape.past = (double)a->source_tokens;
        shape.bidirectional = true;
    }
    if (a->kind == VP_ATTENTION_MLA) {
        double rope = (double)a->qk_rope_head_dim;
        shape.head_dim = (double)a->qk_nope_head_dim + rope;
        shape.kv_heads = shape.heads;
        if (!a->expanded && load->fresh <= load->past) { /* absorbed: the latent itself is read */
            shape.latent = true;
            shape.kv_heads = 1;
            shape.head_dim = (double)a->kv_lora_rank + rope;
            shape.v_head_dim = (double)a->kv_lora_rank;
        }
    }
    if (a->kind == VP_ATTENTION_COMPRESSED) {
        shape.latent = true;
        shape.kv_heads = 1;
        if (op->flops_cached > 0 && a->compress > 0 &&
            op->flops_cached < 2 * a->heads * (a->head_dim + a->head_dim)) {
            shape.past /= (double)a->compress;
            shape.window = 0;
        }
    }
    return shape;
}

enum {
    SCAN_CHUNK = 64
}; /* tokens between stored states of a chunked scan (flash-linear-attention,
      Mamba 2's kernels: 64 to 256) */

/* Reads and writes each sequence's state, once per chunk; products of the chunks in 16 bit. */
static struct vp_time scan_time(const struct vp_op_place *place, const struct vp_op *op,
                                const struct vp_op_load *load) {
    const struct vp_attention *a = mixer_of(place->block, op->kind);
    double ranks = (double)vp_max(place->layout.attention, 1);
    enum vp_dtype dtype = a->state_dtype == VP_DTYPE_UNSET ? VP_DTYPE_BF16 : a->state_dtype;
    double state = (double)vp_dtype_bytes(dtype, vp_sum(a->state_elements)).v / ranks;
    double states = load->sequences * ceil(load->fresh / SCAN_CHUNK);
    double inputs = load->tokens * (double)op->reads * 2 / ranks;
    double outputs = load->tokens * (double)op->writes * 2 / ranks;
    struct vp_time moved =
        vp_stream_time(place->kernels, inputs + states * state, outputs + states * state);
    struct vp_gemm_shape gemm = {.rate = VP_RATE_BF16,
                                 .m = load->tokens,
                                 .n = (double)op->out / ranks,
                                 .batch = 1,
                                 .stored_bytes = 1};

    if (load->fresh <= 1 || op->out == 0)
        return moved;
    gemm.k = (double)op->flops / 2 / (double)op->out;
    return vp_time_max(moved, vp_gemm_time(place->kernels, &gemm));
}

/* ---- what streams ---- */

static double stream_ranks(const struct vp_op_place *place, const struct vp_op *op) {
    switch (op->kind) {
    case VP_OP_ACTIVATION:
        return (double)vp_max(place->layout.tensor, 1);
    case VP_OP_ROTARY:
    case VP_OP_CONV:
        return (double)vp_max(place->layout.attention, 1);
    default:
        return 1;
    }
}

static struct vp_time stream_time(const struct vp_op_place *place, const struct vp_op *op,
                                  const struct vp_op_load *load) {
    double elements = load->tokens / stream_ranks(place, op);

    if (op->kind == VP_OP_ADD && place->fused)
        return (struct vp_time){.basis = VP_BASIS_CALIBRATED};
    return vp_stream_time(place->kernels, elements * (double)op->reads * 2,
                          elements * (double)op->writes * 2);
}

struct vp_time vp_op_time(const struct vp_op_place *place, const struct vp_op *op,
                          const struct vp_op_load *load) {
    struct vp_attention_shape attention;
    struct product product;

    switch (op->kind) {
    case VP_OP_LINEAR:
    case VP_OP_EXPERTS:
        product = product_of(place, op);
        return product_time(place, &product, load);
    case VP_OP_ATTENTION:
        attention = attention_of(place, op, load);
        return vp_attention_time(place->kernels, &attention);
    case VP_OP_SCAN:
        return scan_time(place, op, load);
    default:
        return stream_time(place, op, load);
    }
}

/* ---- work ---- */

static struct vp_op_work attention_work(const struct vp_attention_shape *a) {
    double width = a->kv == VP_KV_8 ? 1 : 2;
    double past = a->window > 0 ? fmin(a->past, a->window) : a->past;
    double fresh = a->bidirectional ? a->fresh : (a->fresh + 1) / 2; /* looked back at, mean */
    double sizes = a->head_dim + a->v_head_dim;
    double cached = a->latent ? a->head_dim : a->kv_heads * sizes; /* of a token */
    if (a->window > 0)
        fresh = fmin(fresh, a->window);
    return (struct vp_op_work){
        2 * a->batch * a->fresh * (past + fresh) * a->heads * sizes,
        a->batch * ((past + a->fresh) * cached * width + a->fresh * a->heads * sizes * 2)};
}

struct vp_op_work vp_op_work(const struct vp_op_place *place, const struct vp_op *op,
                             const struct vp_op_load *load) {
    if (op->kind == VP_OP_ATTENTION) {
        struct vp_attention_shape shape = attention_of(place, op, load);
        return attention_work(&shape);
    }
    if (op->kind != VP_OP_LINEAR && op->kind != VP_OP_EXPERTS)
        return (struct vp_op_work){0, 0};
    struct product product = product_of(place, op);
    struct vp_gemm_shape gemm = gemm_of(place, &product, load);
    double stored = gemm.stored_bytes > 0 ? gemm.stored_bytes
                                          : gemm.batch * gemm.n * gemm.k * vp_rate_bytes(gemm.rate);
    return (struct vp_op_work){2 * gemm.batch * gemm.m * gemm.n * gemm.k,
                               stored + gemm.batch * gemm.m * (gemm.n + gemm.k) * 2};
}

/* ---- lists ---- */

static bool joins(const struct vp_op_place *place, const struct vp_op *a, const struct vp_op *b) {
    return place->fused && a->kind == b->kind && a->in == b->in && a->matrices == b->matrices &&
           !a->all_reduce && !b->all_reduce && scheme_of(place, a) == scheme_of(place, b) &&
           a->shard != VP_SHARD_NONE && b->shard != VP_SHARD_NONE;
}

static void add(struct vp_time *sum, struct vp_time time) { *sum = vp_time_add(*sum, time); }

struct vp_ops_time vp_ops_time(const struct vp_op_place *place, const struct vp_ops *ops,
                               const struct vp_op_load *load) {
    const struct vp_time none = {.basis = VP_BASIS_CALIBRATED};
    struct vp_ops_time sum = {none, none, none, none, 0, 0};

    for (uint32_t i = 0; i < ops->count; i++) {
        const struct vp_op *op = &ops->item[i];
        if (op->all_reduce && op->kind == VP_OP_EXPERTS)
            sum.reduced_experts += (double)op->out;
        else if (op->all_reduce)
            sum.reduced += (double)op->out;
        if (op->kind == VP_OP_ATTENTION || op->kind == VP_OP_SCAN || op->kind == VP_OP_CONV) {
            if (load->sequences > 0 || op->kind == VP_OP_CONV)
                add(&sum.attention, vp_op_time(place, op, load));
        } else if (op->kind != VP_OP_LINEAR && op->kind != VP_OP_EXPERTS) {
            add(&sum.other, vp_op_time(place, op, load));
        } else {
            struct product product = product_of(place, op);
            for (; i + 1 < ops->count && joins(place, op, &ops->item[i + 1]); i++) {
                struct product next = product_of(place, &ops->item[i + 1]);
                product.out += next.out;
                product.stored_bytes += next.stored_bytes;
            }
            add(op->kind == VP_OP_EXPERTS ? &sum.experts : &sum.linear,
                product_time(place, &product, load));
        }
    }
    return sum;
}
