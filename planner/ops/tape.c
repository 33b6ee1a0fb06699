#include "planner/ops/tape.h"

#include <string.h>

#include "planner/ops/tape_parts.h"
#include "planner/ops/train_layout.h"

/* Tokens of one sequence on one rank; the fullest when they do not divide evenly. */
static uint64_t sequence_part(const struct vp_scenario *scenario) {
    return vp_ceil_div(scenario->train.sequence, vp_max(scenario->parallel.context, 1));
}

uint64_t vp_tape_tokens(const struct vp_scenario *scenario) {
    struct vp_sum tokens = vp_sum_mul(vp_sum(scenario->train.micro_batch), sequence_part(scenario));
    return tokens.overflow ? UINT64_MAX : tokens.v;
}

/* Types of the residual stream and of what matrices work in. FSDP with a 16-bit compute type
 * gathers converted parameters, so everything has that type; autocast converts what each matrix
 * reads. */
static void set_types(struct vp_tape_maker *maker) {
    const struct vp_train *train = &maker->scenario->train;
    bool gathered = maker->scenario->parallel.fsdp && train->parameters == VP_DTYPE_FP32 &&
                    train->autocast == VP_DTYPE_UNSET;

    maker->residual = gathered ? maker->scenario->precision.compute : train->parameters;
    maker->autocast = train->autocast != VP_DTYPE_UNSET;
    maker->matrix = maker->autocast ? train->autocast : maker->residual;
}

/* How the code of a model like this is written, as far as it decides what is kept. */
static void set_style(struct vp_tape_maker *maker) {
    const struct vp_train_rules *rules = &maker->scenario->engine.rules.train;
    const char *type = maker->scenario->model->model_type;
    const struct vp_block *block = maker->block;

    maker->joint_qkv = rules->joint_qkv;
    maker->joint_gate_up = rules->joint_gate_up;
    maker->softmax_fp32 = rules->softmax_fp32;
    maker->residual_dropout = rules->residual_dropout;
    /* Blocks written by hand carry no tables; those with RMSNorm are taken to be rotated. */
    maker->rotary = block && (block->attention.rotary_dim > 0 ||
                              (block->norm == VP_NORM_RMS && type && strcmp(type, "blocks") == 0));
}

void vp_maker_start(struct vp_tape_maker *maker, struct vp_tape *out,
                    const struct vp_scenario *scenario, const struct vp_block *block) {
    memset(out, 0, sizeof *out);
    maker->out = out;
    maker->scenario = scenario;
    maker->how = &scenario->train.ops;
    maker->block = block;
    maker->half = 0;
    maker->ops.count = 0;
    maker->ops.overflow = false;
    maker->layout = vp_train_layout(scenario);
    maker->sequences = scenario->train.micro_batch;
    maker->queries = sequence_part(scenario);
    maker->keys = scenario->train.sequence;
    maker->tokens = vp_tape_tokens(scenario);
    maker->outside = scenario->parallel.sequence ? vp_ceil_div(maker->tokens, maker->layout.tensor)
                                                 : maker->tokens;
    maker->group = VP_TAPE_PROJECTION;
    maker->region = 0;
    maker->count = maker->step = 0;
    out->overflow = maker->tokens == UINT64_MAX;
    set_types(maker);
    set_style(maker);
}

/* ---- a layer ---- */

/* The parts of a block that follow one another: each reads the stream and adds to it. */
enum part { PART_MIXER, PART_SECOND, PART_FEED };

static uint32_t run_part(struct vp_tape_maker *maker, uint32_t x, enum part part) {
    const struct vp_block *block = maker->block;
    uint32_t out = x;

    switch (part) {
    case PART_MIXER:
        return vp_tape_mixer(maker, x, &block->attention);
    case PART_SECOND:
        return vp_tape_mixer(maker, x, &block->second);
    case PART_FEED:
        if (block->mlp.kind != VP_MLP_NONE)
            out = vp_tape_mlp(maker, x);
        if (block->moe.kind != VP_MLP_NONE) {
            uint32_t routed = vp_tape_moe(maker, x);
            out = block->mlp.kind != VP_MLP_NONE ? vp_tape_add(maker, out, routed, "sum") : routed;
        }
        return out;
    }
    return x;
}

/* Operators of the next part of the block. */
static void next_part(struct vp_tape_maker *maker) {
    while (maker->half < maker->ops.count && maker->ops.item[maker->half].kind != VP_OP_ADD)
        maker->half++;
    maker->half += maker->half < maker->ops.count;
}

static uint32_t list_parts(enum part out[3], const struct vp_block *block) {
    uint32_t count = 0;

    if (block->attention.kind != VP_ATTENTION_NONE)
        out[count++] = PART_MIXER;
    if (block->second.kind != VP_ATTENTION_NONE)
        out[count++] = PART_SECOND;
    if (block->mlp.kind != VP_MLP_NONE || block->moe.kind != VP_MLP_NONE)
        out[count++] = PART_FEED;
    return count;
}

/* Tokens that sequence parallelism divides, together again for the matrices. */
static uint32_t gathered(struct vp_tape_maker *maker, uint32_t x) {
    const struct vp_tensor *t = &maker->tensor[x];

    if (maker->outside == maker->tokens || !maker->scenario->engine.rules.train.gathered_kept)
        return x;
    vp_maker_step(maker);
    vp_tensor_read(maker, x);
    return vp_tensor_rows(maker, "gathered tokens", maker->tokens, maker->scenario->model->hidden,
                          t->dtype, t->grad);
}

/* The stream through all parts. A norm stands before each part, and one behind it where there are
 * twice as many; a part that has none of its own shares that of the part before (GPT-J, Falcon-H1),
 * whose input it then reads too. */
static uint32_t run_parts(struct vp_tape_maker *maker, uint32_t stream) {
    const struct vp_block *block = maker->block;
    enum part parts[3];
    uint32_t count = list_parts(parts, block), used = 0, norms = 0;
    const struct vp_op *norm[8];
    uint32_t read = stream;

    while (norms < 8 && norms < block->norms && norms < maker->ops.count) {
        norm[norms] = &maker->ops.item[norms];
        norms++;
    }
    bool behind = norms >= 2 * count;
    bool parallel = maker->scenario->engine.rules.train.parallel_halves;
    uint32_t input = stream;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t left = count - i, have = norms - used;
        if (have >= (behind ? 2 * left : left) || (i == 0 && have > 0))
            read = vp_tape_norm(maker, parallel ? input : stream, norm[used++], maker->outside);
        else if (norms == 0)
            read = stream;
        uint32_t made = run_part(maker, gathered(maker, read), parts[i]);
        if (behind && used < norms)
            made = vp_tape_norm(maker, made, norm[used++], maker->outside);
        if (maker->residual_dropout)
            made = vp_tape_dropout(maker, made, maker->how->dropout_ppb);
        stream = vp_tape_add(maker, stream, made, "residual");
        next_part(maker);
    }
    return stream;
}

void vp_tape_block(struct vp_tape *out, const struct vp_scenario *scenario,
                   const struct vp_block *block, bool first) {
    const struct vp_model *model = scenario->model;
    struct vp_tape_maker maker;

    vp_maker_start(&maker, out, scenario, block);
    vp_ops_block(&maker.ops, model, block);
    maker.group = VP_TAPE_INPUT;
    uint32_t input =
        vp_tensor_rows(&maker, "layer input", maker.outside,
                       vp_max(model->hyper, 1) * model->hidden, maker.residual, !first);
    maker.group = VP_TAPE_PROJECTION;
    uint32_t output = run_parts(&maker, input);
    vp_maker_finish(&maker, input, output);
}

uint64_t vp_tape_selected(const struct vp_tape *tape, uint32_t selective) {
    uint64_t dropped = 0, instead = 0;

    for (uint32_t i = 0; i < tape->count; i++)
        if (tape->item[i].selective & selective)
            dropped += tape->item[i].bytes;
    for (uint32_t k = 0; k < VP_TAPE_REGIONS; k++)
        if (selective >> k & 1)
            instead += tape->region_input_bytes[k];
    return vp_above(dropped, instead);
}
