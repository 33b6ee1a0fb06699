#include "planner/latency/train_op.h"

#include <math.h>
#include <stddef.h>

#include "planner/base/text.h"
#include "planner/latency/kernel_class.h"
#include "planner/ops/tape.h"
#include "planner/ops/train_layout.h"

/* ---- sums ---- */

static const struct vp_time NO_TIME = {.basis = VP_BASIS_CALIBRATED};

struct vp_train_cost vp_train_nothing(void) {
    struct vp_train_cost cost = {.launches = 0};
    for (int k = 0; k < VP_TRAIN_KINDS; k++)
        cost.time[k] = NO_TIME;
    return cost;
}

void vp_train_cost_add(struct vp_train_cost *sum, const struct vp_train_cost *add, double times) {
    for (int k = 0; k < VP_TRAIN_KINDS; k++)
        sum->time[k] = vp_time_add(sum->time[k], vp_time_scale(add->time[k], times));
    sum->launches += add->launches * times;
    sum->waited += add->waited * times;
}

struct vp_time vp_train_cost_total(const struct vp_train_cost *cost) {
    struct vp_time sum = NO_TIME;
    for (int k = 0; k < VP_TRAIN_KINDS; k++)
        sum = vp_time_add(sum, cost->time[k]);
    return sum;
}

static void spend(struct vp_train_cost *cost, enum vp_train_kind kind, struct vp_time time,
                  double launches) {
    cost->time[kind] = vp_time_add(cost->time[kind], time);
    cost->launches += launches;
}

static void wait(struct vp_train_pass *pass, double forward, double backward) {
    pass->forward.waited += forward;
    pass->backward.waited += backward;
}

/* ---- the place ---- */

static enum vp_rate rate_of(enum vp_dtype dtype) {
    return dtype == VP_DTYPE_FP32   ? VP_RATE_FP32
           : dtype == VP_DTYPE_FP16 ? VP_RATE_FP16
                                    : VP_RATE_BF16;
}

struct vp_train_place vp_train_place_of(const struct vp_scenario *scenario) {
    const struct vp_train *train = &scenario->train;
    enum vp_dtype compute =
        train->autocast != VP_DTYPE_UNSET ? train->autocast : scenario->precision.compute;
    struct vp_train_place place = {.scenario = scenario,
                                   .kernels = vp_kernels_of(scenario),
                                   .layout = vp_train_layout(scenario),
                                   .rate = rate_of(compute),
                                   .tokens = (double)vp_tape_tokens(scenario),
                                   .element_bytes = (double)vp_dtype_bytes(compute, vp_sum(1)).v};
    const struct vp_layout *layout = &place.layout;
    double load = train->ops.expert_load_ppb > 0 ? (double)train->ops.expert_load_ppb / 1e9 : 1;

    place.kernels.graphs = false;
    place.kernels.casts_apart = true;
    for (int i = 0; i < VP_RATES;
         i++) /* what changed with the release was the making of operands */
        place.kernels.other_release[i] = false;
    place.matrix_rate = scenario->engine.rules.train.fp8_products && scenario->hardware.gpu.fp8
                            ? VP_RATE_FP8
                            : place.rate;
    place.expert_tokens = place.tokens * (double)layout->expert_ranks *
                          (double)layout->expert_width / (double)layout->tensor * load;
    return place;
}

bool vp_train_place_known(const struct vp_train_place *place) {
    const struct vp_gpu *gpu = place->kernels.gpu;
    return gpu->bandwidth_gbs > 0 && (gpu->tflops_bf16 > 0 || gpu->tflops_fp16 > 0);
}

const char *vp_train_place_why(const struct vp_train_place *place, enum vp_basis basis,
                               struct vp_arena *arena) {
    const struct vp_calibration *calibration = place->kernels.calibration;

    if (!calibration)
        return "what cards of this class reach in training, no calibration";
    if (basis == VP_BASIS_CALIBRATED)
        return vp_arena_printf(arena, "kernels measured on %s, at the share that training reaches",
                               calibration->gpu);
    return vp_arena_printf(arena,
                           "some kernels measured on %s, others only of its class, at the share "
                           "that training reaches",
                           calibration->gpu);
}

struct vp_kernels vp_train_group(const struct vp_train_place *place, double stride) {
    struct vp_kernels kernels = place->kernels;
    kernels.node_devices = (uint64_t)fmax(floor((double)kernels.node_devices / stride), 1);
    return kernels;
}

/* ---- under load ---- */

static const struct load_row {
    const char *vendor, *arch;
    double low, likely, high, likely8, attention;
} LOADS[] = {
#define X(name, vendor, arch, low, likely, high, likely8, attention, source)                       \
    {vendor, arch, low, likely, high, likely8, attention},
#include "planner/latency/train_classes.def"
#undef X
};

static const struct load_row *load_of(const struct vp_gpu *gpu) {
    size_t n = sizeof LOADS / sizeof *LOADS, i = 0;

    while (i + 1 < n && !(gpu->vendor && vp_text_eq(gpu->vendor, LOADS[i].vendor) && gpu->arch &&
                          vp_text_starts(gpu->arch, LOADS[i].arch)))
        i++;
    return &LOADS[i];
}

/* The interval of a kernel says how far off its shape may be, that of the load how far off the
 * clock. The shapes of a step err both ways and even out in part (the square root), and they do not
 * meet their ends together with the clock: the wider of both counts. */
static struct vp_time under_load(const struct load_row *row, double share, struct vp_time time) {
    if (!(time.likely > 0))
        return time;
    double likely = time.likely / share;
    double low = fmin(sqrt(time.low / time.likely), row->likely / row->high);
    double high = fmax(sqrt(time.high / time.likely), row->likely / row->low);
    return (struct vp_time){likely * low, likely, likely * high, time.basis};
}

/* ---- kernels ---- */

/* A product is cut into tiles. The last round of them leaves units idle, which kernels hide in part
 * (fits to A100, H100, H200 and L40S: 3 to 40 % of it stay), and each takes as long to begin and to
 * end as 180 to 280 steps of its inner loop (A100, H100, H200: 42 to 49 % of the rate of long loops
 * at 256 steps, 61 to 67 % at 512). The class's rate is that of loops of 8192. A calibration's form
 * and anchors have that. */
enum { TILE_M = 128, TILE_N = 256 };
static const double WHOLE_ROUNDS = 0.4, ENDS_OF_LOOP = 240, LONG_LOOP = 8192;

/* The least power of two that holds it; matrix instructions take at least 16. */
static double tile(double size, double most) {
    double length = 16;
    while (length < size && length < most)
        length *= 2;
    return length;
}

/* FLOPs that the units spend on a product, those of idle units and unused parts of tiles too. */
static double spent_flops(const struct vp_gpu *gpu, const struct vp_gemm_shape *gemm) {
    double rows = tile(gemm->m, TILE_M), columns = tile(gemm->n, TILE_N);
    double tiles = gemm->batch * ceil(gemm->m / rows) * ceil(gemm->n / columns);
    double steps = (gemm->k + ENDS_OF_LOOP) / (1 + ENDS_OF_LOOP / LONG_LOOP);
    double units = (double)gpu->compute_units, flops = 2 * tiles * rows * columns * steps;

    if (!(units > 0))
        return flops;
    double even = tiles / units;
    return flops * (WHOLE_ROUNDS * ceil(even) / even + 1 - WHOLE_ROUNDS);
}

static struct vp_time product(const struct vp_train_place *place, enum vp_rate rate, double m,
                              double n, double k, double batch, double stored_bytes) {
    struct vp_gemm_shape gemm = {
        .rate = rate, .m = m, .n = n, .k = k, .batch = batch, .stored_bytes = stored_bytes};
    const struct vp_gpu *gpu = place->kernels.gpu;
    const struct load_row *row = load_of(gpu);

    if (!(m > 0) || !(n > 0) || !(k > 0))
        return NO_TIME;
    struct vp_time time = vp_gemm_time(&place->kernels, &gemm);
    double us = vp_launch_time(&place->kernels).likely +
                spent_flops(gpu, &gemm) / (vp_class_tflops(gpu, rate) * 1e6);
    if (time.basis == VP_BASIS_CLASS && us > time.likely)
        time = vp_time_scale(time, us / time.likely);
    return under_load(row, vp_rate_bytes(rate) < 2 ? row->likely8 : row->likely, time);
}

static struct vp_time stream(const struct vp_train_place *place, double read_bytes,
                             double written_bytes) {
    return vp_stream_time(&place->kernels, read_bytes, written_bytes);
}

static struct vp_time exposed(struct vp_time time, const struct vp_amount *permille) {
    return (struct vp_time){time.low * (double)permille->low / 1e3,
                            time.likely * (double)permille->likely / 1e3,
                            time.high * (double)permille->high / 1e3, time.basis};
}

/* ---- matrices ---- */

static bool trains(const struct vp_train_place *place, enum vp_role role) {
    const struct vp_train *train = &place->scenario->train;
    if (role == VP_ROLE_LM_HEAD && place->scenario->model->tied)
        role = VP_ROLE_EMBEDDING;
    return !train->lora.enabled && !train->frozen && !train->frozen_roles[role];
}

/* A product of this rank, with the outputs of those that run with it. */
struct matrix {
    const struct vp_op *op;
    double tokens, in, out, count;
    enum vp_rate rate;
};

static struct matrix matrix_of(const struct vp_train_place *place, const struct vp_block *block,
                               const struct vp_op *op) {
    struct vp_op_share share = vp_ops_share(op, block, &place->layout);
    struct matrix m = {.op = op,
                       .tokens = place->tokens,
                       .in = (double)share.in,
                       .out = (double)share.out,
                       .count = (double)vp_max(share.matrices, 1),
                       .rate =
                           block && op->role != VP_ROLE_ROUTER ? place->matrix_rate : place->rate};
    if (op->kind == VP_OP_EXPERTS)
        m.tokens = place->expert_tokens * (double)op->active / (double)op->matrices;
    return m;
}

/* Queries, keys and values or gate and up are one matrix where the framework makes them so. */
static bool joins(const struct vp_train_place *place, const struct vp_op *a,
                  const struct vp_op *b) {
    const struct vp_train_rules *rules = &place->scenario->engine.rules.train;
    bool heads = a->shard == VP_SHARD_HEADS || a->shard == VP_SHARD_KV;
    bool joint = heads ? rules->joint_qkv : rules->joint_gate_up;

    return joint && a->kind == b->kind && a->in == b->in && a->matrices == b->matrices &&
           !a->all_reduce && !b->all_reduce && a->shard != VP_SHARD_NONE &&
           b->shard != VP_SHARD_NONE;
}

/* Bytes of a weight's gradient as it is added to the one of the micro batches before. */
static struct vp_time weight_gradient(const struct vp_train_place *place, const struct matrix *m) {
    const struct vp_scenario *s = place->scenario;
    const struct vp_train_rules *rules = &s->engine.rules.train;
    double size = m->count * m->in * m->out;
    double kept = (double)vp_dtype_bytes(s->train.gradients, vp_sum(1)).v;
    bool fused = rules->gradients_persist && rules->fuses_accumulation;
    double operands = m->count * m->tokens * m->in * place->element_bytes;
    struct vp_time time = product(place, m->rate, m->out, m->in, m->tokens, m->count,
                                  fused ? operands + size * (2 * kept - 2) : operands);

    if (!fused && (rules->gradients_persist || vp_train_micro_batches(s) > 1))
        time = vp_time_add(time, stream(place, size * (place->element_bytes + kept), size * kept));
    return time;
}

/* Weights that are stored in fewer bits are written out before each product. */
static struct vp_time converted(const struct vp_train_place *place, const struct vp_block *block,
                                const struct matrix *m) {
    const struct vp_model *model = place->scenario->model;
    const struct vp_scheme *scheme;
    double size = m->count * m->in * m->out;

    if (!block)
        return NO_TIME;
    scheme = &model->schemes[block->scheme[m->op->role]];
    double stored = (double)vp_scheme_bytes(scheme, 1, 1024, 1024).v / (1024 * 1024);
    if (stored >= place->element_bytes)
        return NO_TIME;
    return stream(place, size * stored, size * place->element_bytes);
}

/* Activations become FP8 before a product, in two orders of their elements. */
static struct vp_time quantised(const struct vp_train_place *place, const struct matrix *m,
                                double width) {
    double elements = m->count * m->tokens * width;

    if (m->rate != VP_RATE_FP8)
        return NO_TIME;
    return stream(place, elements * place->element_bytes, elements * 2);
}

static void adapters(struct vp_train_pass *out, const struct vp_train_place *place,
                     const struct matrix *m) {
    const struct vp_train_lora *lora = &place->scenario->train.lora;
    double rank = (double)lora->rank;

    if (!lora->enabled || !lora->roles[m->op->role])
        return;
    struct vp_time down = product(place, place->rate, m->tokens, rank, m->in, m->count, 0);
    struct vp_time up = product(place, place->rate, m->tokens, m->out, rank, m->count, 0);
    struct vp_time added = stream(place, m->count * m->tokens * m->out * 2 * place->element_bytes,
                                  m->count * m->tokens * m->out * place->element_bytes);
    struct vp_time both = vp_time_add(down, up);
    spend(&out->forward, VP_TRAIN_LINEAR, both, 2);
    spend(&out->forward, VP_TRAIN_OTHER, added, 2);
    spend(&out->backward, VP_TRAIN_LINEAR, vp_time_scale(both, 2), 4);
    spend(&out->backward, VP_TRAIN_OTHER, added, 2);
}

/* Outside of graphs a collective is started by the host and begins that much later (all-reduces on
 * H100 and A100, launched one by one against captured: 15 to 40 us). */
static const double EAGER_START_US = 15;

static struct vp_time collective(struct vp_time time) {
    if (time.basis != VP_BASIS_CLASS || !(time.likely > 0))
        return time;
    struct vp_time start = {EAGER_START_US / 2, EAGER_START_US, EAGER_START_US * 2, VP_BASIS_CLASS};
    return vp_time_add(time, start);
}

/* Partial sums behind a matrix that is divided by its inputs; with sequence parallelism a scatter
 * and, before the next divided matrix, a gather, which move as much. Where the gathered input was
 * not kept, the backward pass gathers it once more. */
static void reduce(struct vp_train_pass *out, const struct vp_train_place *place,
                   const struct matrix *m) {
    const struct vp_train_rules *rules = &place->scenario->engine.rules.train;
    bool experts = m->op->kind == VP_OP_EXPERTS, sequence = place->scenario->parallel.sequence;
    double ranks = experts ? (double)place->layout.expert_width : (double)place->layout.tensor;
    double bytes = m->count * m->tokens * m->out * place->element_bytes;
    double again = sequence && !rules->gathered_kept ? 1.5 : 1;
    struct vp_time time;

    if (!m->op->all_reduce || ranks <= 1)
        return;
    if (sequence)
        time = vp_time_scale(collective(vp_all_gather_time(&place->kernels, ranks, bytes)), 2);
    else
        time = collective(vp_all_reduce_time(&place->kernels, ranks, bytes));
    time = exposed(time, &rules->exposed_tensor);
    spend(&out->forward, VP_TRAIN_TENSOR, time, 2);
    spend(&out->backward, VP_TRAIN_TENSOR, vp_time_scale(time, again), 3);
}

static void matrices(struct vp_train_pass *out, const struct vp_train_place *place,
                     const struct vp_block *block, const struct matrix *m) {
    bool experts = m->op->kind == VP_OP_EXPERTS;
    enum vp_train_kind kind = experts ? VP_TRAIN_EXPERTS : VP_TRAIN_LINEAR;
    const struct vp_train_rules *rules = &place->scenario->engine.rules.train;
    double launches = experts && !rules->joined_experts ? m->count : 1;
    double casts = m->rate == VP_RATE_FP8 ? launches : 0;
    struct vp_time forward = product(place, m->rate, m->tokens, m->out, m->in, m->count, 0);
    struct vp_time written = converted(place, block, m);

    spend(&out->forward, kind, forward, launches);
    spend(&out->forward, VP_TRAIN_OTHER, written, written.likely > 0 ? launches : 0);
    spend(&out->forward, VP_TRAIN_OTHER, quantised(place, m, m->in), casts);
    spend(&out->backward, kind, product(place, m->rate, m->tokens, m->in, m->out, m->count, 0),
          launches);
    spend(&out->backward, VP_TRAIN_OTHER, written, written.likely > 0 ? launches : 0);
    spend(&out->backward, VP_TRAIN_OTHER, quantised(place, m, m->out), casts);
    if (experts)
        wait(out, launches + casts, 2 * launches + casts);
    if (trains(place, m->op->role))
        spend(&out->backward, kind, weight_gradient(place, m), launches);
    adapters(out, place, m);
    reduce(out, place, m);
}

/* ---- attention ---- */

/* FlashAttention-2 and -3: five products backward for two forward, at 0.78 to 0.85 of the rate. */
static const double FLASH_BACKWARD = 2.5 / 0.8;

/* Bytes per score that eager attention moves: scale, mask, softmax and its conversions, dropout;
 * one fused kernel reads and writes it once between the two products. */
static double score_bytes(const struct vp_scenario *s, double element_bytes) {
    const struct vp_train_rules *rules = &s->engine.rules.train;
    double bytes = rules->softmax_fp32 ? 6 * element_bytes + 14 : 4 * element_bytes;
    return s->train.ops.dropout_ppb > 0 ? bytes + 2 * element_bytes + 1 : bytes;
}

static void eager(struct vp_train_pass *out, const struct vp_train_place *place,
                  const struct vp_attention *a, struct vp_time flash) {
    const struct vp_train *train = &place->scenario->train;
    double heads = ceil((double)a->heads / (double)place->layout.attention);
    double scores = place->tokens * heads * (double)train->sequence;
    double bytes = scores * score_bytes(place->scenario, place->element_bytes);

    /* the half above the diagonal is computed, too */
    spend(&out->forward, VP_TRAIN_ATTENTION, vp_time_scale(flash, 2), 2);
    spend(&out->forward, VP_TRAIN_ATTENTION, stream(place, bytes / 2, bytes / 2), 6);
    spend(&out->backward, VP_TRAIN_ATTENTION, vp_time_scale(flash, 4), 4);
    spend(&out->backward, VP_TRAIN_ATTENTION, stream(place, bytes / 2, bytes / 2), 8);
}

/* All-to-all: queries, keys, values and outputs change from parts of the sequence to parts of the
 * heads. Ring: keys and values go round while attention works. */
static void exchange(struct vp_train_pass *out, const struct vp_train_place *place,
                     const struct vp_attention *a, struct vp_time at_work) {
    double ranks = (double)place->scenario->parallel.context;
    double tensor = (double)place->layout.tensor;
    double per_head = place->tokens * place->element_bytes / tensor;
    double keys = (double)a->kv_heads * (double)(a->head_dim + a->v_head_dim);
    double queries = (double)a->heads * (double)(a->head_dim + a->v_head_dim);
    struct vp_kernels kernels = vp_train_group(place, tensor);
    struct vp_time time;

    if (ranks <= 1)
        return;
    if (place->scenario->engine.rules.train.context_copies_output) {
        time = vp_time_scale(
            collective(vp_all_to_all_time(&kernels, ranks, per_head * (queries + keys) / 4)), 4);
        spend(&out->forward, VP_TRAIN_CONTEXT, time, 4);
        spend(&out->backward, VP_TRAIN_CONTEXT, time, 4);
        return;
    }
    time = vp_all_gather_time(&kernels, ranks, per_head * keys * ranks);
    time.low = fmax(time.low - at_work.high, 0);
    time.likely = fmax(time.likely - at_work.likely, 0);
    spend(&out->forward, VP_TRAIN_CONTEXT, time, ranks);
    spend(&out->backward, VP_TRAIN_CONTEXT, time, ranks);
}

/* Latent attention puts queries and keys together from their halves with and without positions, and
 * takes values apart from keys: each is read and written once more. */
static void assemble(struct vp_train_pass *out, const struct vp_train_place *place,
                     const struct vp_attention *a) {
    double heads = ceil((double)a->heads / (double)place->layout.attention);
    double key = (double)(a->qk_nope_head_dim + a->qk_rope_head_dim);
    double bytes = place->tokens * heads * (2 * key + (double)a->v_head_dim) * place->element_bytes;
    struct vp_time time = stream(place, bytes, bytes);

    spend(&out->forward, VP_TRAIN_OTHER, time, 3);
    spend(&out->backward, VP_TRAIN_OTHER, time, 3);
}

static struct vp_time at_speed(struct vp_time time, const struct vp_amount *permille) {
    if (permille->low == 0) /* of a scenario without rules */
        return time;
    double likely = 1e3 / (double)permille->likely;
    return (struct vp_time){
        fmin(time.low * likely, time.likely * 1e3 / (double)permille->high), time.likely * likely,
        fmax(time.high * likely, time.likely * 1e3 / (double)permille->low), time.basis};
}

static void attention(struct vp_train_pass *out, const struct vp_train_place *place,
                      const struct vp_block *block, const struct vp_op *op) {
    const struct vp_train *train = &place->scenario->train;
    struct vp_op_place where = {.kernels = &place->kernels,
                                .model = place->scenario->model,
                                .block = block,
                                .layout = place->layout};
    struct vp_op_load load = {.tokens = place->tokens,
                              .sequences = (double)train->micro_batch,
                              .fresh = (double)train->sequence,
                              .kv = VP_KV_16,
                              .rate = &place->rate};
    double context = fmax((double)place->scenario->parallel.context, 1);
    const struct vp_attention *a = &block->attention;
    const struct load_row *row = load_of(place->kernels.gpu);
    struct vp_time time = vp_op_time(&where, op, &load);

    if (op->kind != VP_OP_ATTENTION) { /* scans take their own tokens */
        spend(&out->forward, VP_TRAIN_ATTENTION, time, 2);
        spend(&out->backward, VP_TRAIN_ATTENTION, vp_time_scale(time, FLASH_BACKWARD), 4);
        return;
    }
    time = vp_time_scale(under_load(row, row->attention, time), 1 / context);
    time = at_speed(time, &place->scenario->engine.rules.train.attention_speed);
    if (place->rate == VP_RATE_FP32)
        time = vp_time_scale(time, 2);
    if (train->ops.attention == VP_IMPL_EAGER) {
        eager(out, place, a, time);
    } else {
        spend(&out->forward, VP_TRAIN_ATTENTION, time, 1);
        spend(&out->backward, VP_TRAIN_ATTENTION, vp_time_scale(time, FLASH_BACKWARD), 3);
    }
    if (a->kind == VP_ATTENTION_MLA)
        assemble(out, place, a);
    exchange(out, place, a, time);
}

/* ---- what streams ---- */

/* How often the bytes of the fused kernel, and kernels. An RMSNorm as transformers writes it
 * converts, squares, averages, scales, converts back and multiplies: 36 bytes of an element of 2
 * bytes where a fused one moves 4; a gate that is multiplied by itself 10 where it moves 6. */
static double unfused(const struct vp_train_place *place, const struct vp_op *op,
                      double *launches) {
    const struct vp_train *train = &place->scenario->train;
    bool gated = op->in > op->out;

    *launches = 1;
    if (train->compile)
        return 1;
    if (op->kind == VP_OP_NORM && op->norm == VP_NORM_RMS && !train->ops.fused_norm &&
        !place->scenario->engine.rules.train.norm_is_layer) {
        *launches = 6;
        return 9;
    }
    if (op->kind == VP_OP_ACTIVATION && !train->ops.fused_mlp) {
        bool spelled = !gated && train->ops.gelu == VP_GELU_NEW;
        *launches = spelled ? 8 : gated ? 2 : 1;
        return spelled ? 4 : gated ? 5.0 / 3 : 1;
    }
    if (op->kind == VP_OP_ROTARY)
        *launches = 4;
    return 1;
}

static void streams(struct vp_train_pass *out, const struct vp_train_place *place,
                    const struct vp_op *op, const struct vp_op *before) {
    double tensor = (double)place->layout.tensor, launches;
    bool of_experts = op->kind == VP_OP_ACTIVATION && before && before->kind == VP_OP_EXPERTS;
    bool divided = op->kind == VP_OP_ROTARY || op->kind == VP_OP_ACTIVATION ||
                   op->role == VP_ROLE_QK_NORM || place->scenario->parallel.sequence;
    double tokens = of_experts ? place->expert_tokens / (double)place->layout.expert_ranks /
                                     (double)place->layout.expert_width
                               : place->tokens / (divided ? tensor : 1);
    double bytes = tokens * place->element_bytes * unfused(place, op, &launches);
    double reads = bytes * (double)op->reads, writes = bytes * (double)op->writes;

    spend(&out->forward, VP_TRAIN_OTHER, stream(place, reads, writes), launches);
    if (op->kind == VP_OP_ADD) /* two gradients meet */
        spend(&out->backward, VP_TRAIN_OTHER, stream(place, reads, writes), 1);
    else
        spend(&out->backward, VP_TRAIN_OTHER, stream(place, reads + writes, reads), launches);
}

/* Softmax, the choice, masks, counts of tokens, sorting, the balancing loss: small kernels
 * (megatron/core/transformer/moe, router.py and moe_utils.py). */
static const double ROUTER_LAUNCHES = 40;

/* Tokens are put in the order of their experts and back again, on the sender's side and, behind the
 * all-to-all, on the experts'. */
static void route(struct vp_train_pass *out, const struct vp_train_place *place,
                  const struct vp_block *block) {
    const struct vp_moe *moe = &block->moe;
    const struct vp_layout *layout = &place->layout;
    double width = (double)(moe->input > 0 ? moe->input : place->scenario->model->hidden);
    double sent = place->tokens / (place->scenario->parallel.sequence ? (double)layout->tensor : 1);
    double bytes = sent * (double)moe->top_k * width * place->element_bytes;
    double ranks = (double)layout->expert_ranks;
    double passes = ranks > 1 ? 4 : 2;
    double launches = 2 * passes + ROUTER_LAUNCHES;
    struct vp_time order = stream(place, passes * bytes, passes * bytes);

    spend(&out->forward, VP_TRAIN_OTHER, order, launches);
    spend(&out->backward, VP_TRAIN_OTHER, order, launches);
    wait(out, launches, launches);
    if (ranks <= 1)
        return;
    struct vp_kernels kernels = vp_train_group(place, (double)layout->expert_width);
    struct vp_time both = vp_time_scale(collective(vp_all_to_all_time(&kernels, ranks, bytes)), 2);
    spend(&out->forward, VP_TRAIN_EXPERT, both, 2);
    spend(&out->backward, VP_TRAIN_EXPERT, both, 2);
}

/* ---- one operator ---- */

static const struct vp_op *matrix_before(const struct vp_ops *ops, uint32_t i) {
    while (i-- > 0)
        if (ops->item[i].kind == VP_OP_LINEAR || ops->item[i].kind == VP_OP_EXPERTS)
            return &ops->item[i];
    return NULL;
}

uint32_t vp_train_op(struct vp_train_pass *out, const struct vp_train_place *place,
                     const struct vp_block *block, const struct vp_ops *ops, uint32_t i) {
    const struct vp_op *op = &ops->item[i];
    struct matrix m;
    uint32_t n = 1;

    *out = (struct vp_train_pass){vp_train_nothing(), vp_train_nothing()};
    switch (op->kind) {
    case VP_OP_LINEAR:
    case VP_OP_EXPERTS:
        m = matrix_of(place, block, op);
        for (; i + n < ops->count && joins(place, op, &ops->item[i + n]); n++)
            m.out += matrix_of(place, block, &ops->item[i + n]).out;
        matrices(out, place, block, &m);
        return n;
    case VP_OP_ATTENTION:
    case VP_OP_SCAN:
        attention(out, place, block, op);
        return 1;
    case VP_OP_ROUTE:
        route(out, place, block);
        return 1;
    default:
        streams(out, place, op, matrix_before(ops, i));
        return 1;
    }
}
