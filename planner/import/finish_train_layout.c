/* Ranks, batches and pipeline schedules of a training run, and what cannot be. */
#include "planner/import/finish_parts.h"

#include <inttypes.h>

#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/import/engine_args.h"

enum { MAX_DEVICES = 1 << 20 };

static const char ONE[] = "not divided unless asked for";

/* Ranks of one copy of the model. */
static uint64_t ranks_of_copy(const struct vp_parallel *p) {
    struct vp_sum ranks = vp_sum_mul(vp_sum_mul(vp_sum(p->tensor), p->pipeline), p->context);
    return ranks.overflow ? UINT64_MAX : ranks.v;
}

/* Chunks per stage, also from Megatron's layers per chunk. */
static void resolve_chunks(struct vp_scenario *s) {
    const char *text = vp_engine_arg(&s->engine, "num_layers_per_virtual_pipeline_stage");
    uint64_t *chunks = &s->parallel.virtual_pipeline, layers = 0;

    if (text && s->model && vp_parse_u64(&layers, text)) {
        struct vp_sum all = vp_sum_mul(vp_sum(layers), s->parallel.pipeline);
        if (!all.overflow && all.v > 0 && s->model->layer_count % all.v == 0) {
            vp_finish_number(s, VP_F_VIRTUAL_PIPELINE, chunks, s->model->layer_count / all.v,
                             VP_ORIGIN_DERIVED, "num_layers_per_virtual_pipeline_stage");
            return;
        }
    }
    vp_finish_number(s, VP_F_VIRTUAL_PIPELINE, chunks, 1, VP_ORIGIN_DEFAULT,
                     "one chunk of layers per stage");
}

void vp_finish_train_parallel(struct vp_scenario *s) {
    struct vp_parallel *p = &s->parallel;
    bool counted = vp_scenario_is_given(s, VP_F_COUNT);
    vp_finish_number(s, VP_F_TENSOR, &p->tensor, 1, VP_ORIGIN_DEFAULT, ONE);
    vp_finish_number(s, VP_F_PIPELINE, &p->pipeline, 1, VP_ORIGIN_DEFAULT, ONE);
    vp_finish_number(s, VP_F_CONTEXT_PARALLEL, &p->context, 1, VP_ORIGIN_DEFAULT, ONE);
    vp_finish_number(s, VP_F_EXPERT, &p->expert, 1, VP_ORIGIN_DEFAULT, ONE);
    resolve_chunks(s);
    p->attention_data = 1;
    uint64_t copy = ranks_of_copy(p);
    if (counted && s->hardware.count >= copy)
        vp_finish_number(s, VP_F_DATA, &p->data, s->hardware.count / copy, VP_ORIGIN_DERIVED,
                         "the devices that tensor, pipeline and context parallelism leave");
    else
        vp_finish_number(s, VP_F_DATA, &p->data, 1, VP_ORIGIN_DEFAULT, ONE);
    struct vp_sum all = vp_sum_mul(vp_sum(copy), p->data);
    vp_finish_number(s, VP_F_COUNT, &s->hardware.count, all.overflow ? UINT64_MAX : all.v,
                     VP_ORIGIN_DERIVED, "tensor x pipeline x context x data");
}

static void complain(struct vp_ctx *ctx, const struct vp_scenario *s, enum vp_field field,
                     const char *message, const char *hint) {
    vp_diag_add(ctx->diags, VP_D_LAYOUT, &s->source[field].pos, "%s", message);
    if (hint)
        vp_diag_hint(ctx->diags, "%s", hint);
}

static void check_ranks(struct vp_ctx *ctx, const struct vp_scenario *s) {
    const struct vp_parallel *p = &s->parallel;
    struct vp_sum all = vp_sum_mul(vp_sum(ranks_of_copy(p)), p->data);
    uint64_t count = s->hardware.count, copy = ranks_of_copy(p);
    if (all.overflow || all.v > MAX_DEVICES || count > MAX_DEVICES) {
        vp_diag_add(ctx->diags, VP_D_LAYOUT, &s->source[VP_F_COUNT].pos,
                    "tensor x pipeline x context x data is more than the cap of %d devices",
                    MAX_DEVICES);
    } else if (all.v != count) {
        vp_diag_add(ctx->diags, VP_D_LAYOUT, &s->source[VP_F_COUNT].pos,
                    "tensor %" PRIu64 " x pipeline %" PRIu64 " x context %" PRIu64
                    " x data %" PRIu64 " = %" PRIu64 " devices, hardware.count is %" PRIu64,
                    p->tensor, p->pipeline, p->context, p->data, all.v, count);
        if (count % copy == 0 && count > 0)
            vp_diag_hint(ctx->diags,
                         "parallel.data: %" PRIu64 " uses them all; left out, it "
                         "follows",
                         count / copy);
        else
            vp_diag_hint(ctx->diags, "hardware.count must be a multiple of %" PRIu64, copy);
    }
    if (count % s->hardware.nodes != 0)
        vp_diag_add(ctx->diags, VP_D_LAYOUT, &s->source[VP_F_NODES].pos,
                    "hardware.count %" PRIu64 " does not divide evenly over %" PRIu64 " machines",
                    count, s->hardware.nodes);
}

static void check_expert(struct vp_ctx *ctx, const struct vp_scenario *s) {
    const struct vp_parallel *p = &s->parallel;
    uint64_t dealt = p->data * p->context * p->tensor;
    if (p->expert <= 1)
        return;
    if (dealt % p->expert != 0)
        complain(ctx, s, VP_F_EXPERT,
                 vp_arena_printf(ctx->arena,
                                 "parallel.expert is %" PRIu64 ": it must divide the tensor x "
                                 "context x data = %" PRIu64 " ranks of a stage",
                                 p->expert, dealt),
                 NULL);
    for (uint32_t i = 0; i < s->model->block_count; i++) {
        const struct vp_moe *moe = &s->model->blocks[i].moe;
        if (moe->kind == VP_MLP_NONE || moe->experts % p->expert == 0)
            continue;
        complain(ctx, s, VP_F_EXPERT,
                 vp_arena_printf(ctx->arena,
                                 "%" PRIu64 " experts cannot be dealt over %" PRIu64 " ranks",
                                 moe->experts, p->expert),
                 "parallel.expert must divide the number of experts");
        return;
    }
}

/* Interleaved stages: whole chunks of equal size. */
static void check_pipeline(struct vp_ctx *ctx, const struct vp_scenario *s) {
    const struct vp_parallel *p = &s->parallel;
    uint32_t layers = s->model->layer_count;
    uint64_t chunks = p->pipeline * p->virtual_pipeline;
    if (p->pipeline > layers)
        complain(ctx, s, VP_F_PIPELINE,
                 vp_arena_printf(ctx->arena, "%" PRIu64 " pipeline stages for %" PRIu32 " layers",
                                 p->pipeline, layers),
                 NULL);
    else if (p->virtual_pipeline > 1 && p->pipeline == 1)
        complain(ctx, s, VP_F_VIRTUAL_PIPELINE,
                 "parallel.virtual_pipeline without pipeline stages to interleave", NULL);
    else if (p->virtual_pipeline > 1 && chunks > layers)
        complain(ctx, s, VP_F_VIRTUAL_PIPELINE,
                 vp_arena_printf(ctx->arena,
                                 "%" PRIu64 " stages of %" PRIu64 " chunks for %" PRIu32 " layers",
                                 p->pipeline, p->virtual_pipeline, layers),
                 "virtual_pipeline x pipeline can be the number of layers at most");
    if (p->pipeline > 1 && p->zero >= 2 && s->engine.kind == VP_ENGINE_DEEPSPEED)
        complain(ctx, s, VP_F_ZERO,
                 vp_arena_printf(ctx->arena,
                                 "DeepSpeed's pipeline does not run with ZeRO stage %" PRIu64
                                 ": gradients have to stay whole while micro batches accumulate",
                                 p->zero),
                 "parallel.zero: 1 works, and so does ZeRO 3 without pipeline stages");
    else if (p->pipeline > 1 && (p->zero >= 3 || p->fsdp) && s->engine.kind == VP_ENGINE_MEGATRON)
        complain(ctx, s, VP_F_ZERO,
                 "Megatron's fully sharded data parallelism has no pipeline "
                 "stages",
                 "parallel.zero: 1 (the distributed optimizer) works with a pipeline");
}

/* One number of micro batches from what was said; what disagrees is told. */
static void resolve_batches(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_train *train = &s->train;
    struct vp_parallel *p = &s->parallel;
    struct vp_sum per_pass = vp_sum_mul(vp_sum(train->micro_batch), p->data);
    bool global = vp_scenario_is_given(s, VP_F_GLOBAL_BATCH);
    if (per_pass.overflow || per_pass.v == 0)
        return;
    if (global && train->global_batch % per_pass.v != 0) {
        vp_diag_add(ctx->diags, VP_D_LAYOUT, &s->source[VP_F_GLOBAL_BATCH].pos,
                    "train.global_batch %" PRIu64
                    " is no multiple of micro_batch x data = %" PRIu64,
                    train->global_batch, per_pass.v);
        vp_diag_hint(ctx->diags, "%" PRIu64 " or %" PRIu64 " work",
                     vp_max(train->global_batch / per_pass.v, 1) * per_pass.v,
                     (train->global_batch / per_pass.v + 1) * per_pass.v);
        return;
    }
    uint64_t follows = global ? train->global_batch / per_pass.v : 1;
    vp_finish_number(s, VP_F_ACCUMULATION, &train->accumulation, follows,
                     global ? VP_ORIGIN_DERIVED : VP_ORIGIN_DEFAULT,
                     global ? "global_batch / (micro_batch x data)" : "no accumulation");
    vp_finish_number(s, VP_F_MICROBATCHES, &p->microbatches, train->accumulation, VP_ORIGIN_DERIVED,
                     "gradient_accumulation");
    if (vp_scenario_is_given(s, VP_F_MICROBATCHES) && !vp_scenario_is_given(s, VP_F_ACCUMULATION))
        train->accumulation = p->microbatches;
    if (train->accumulation != p->microbatches || (global && train->accumulation != follows)) {
        vp_diag_add(ctx->diags, VP_D_CONTRADICTION,
                    &s->source[global ? VP_F_GLOBAL_BATCH : VP_F_MICROBATCHES].pos,
                    "micro batches per step: %" PRIu64 " by gradient_accumulation or "
                    "microbatches, %" PRIu64 " by %s",
                    train->accumulation, global ? follows : p->microbatches,
                    global ? "global_batch / (micro_batch x data)" : "parallel.microbatches");
        vp_diag_hint(ctx->diags, "give one of the two");
    }
    vp_finish_number(s, VP_F_GLOBAL_BATCH, &train->global_batch, per_pass.v * train->accumulation,
                     VP_ORIGIN_DERIVED, "micro_batch x data x gradient_accumulation");
}

static void check_sequence(struct vp_ctx *ctx, const struct vp_scenario *s) {
    const struct vp_parallel *p = &s->parallel;
    uint64_t parts = p->context * (p->sequence ? p->tensor : 1);
    if (s->train.sequence % vp_max(parts, 1) == 0)
        return;
    vp_diag_add(ctx->diags, VP_D_LAYOUT, &s->source[VP_F_SEQUENCE_LENGTH].pos,
                "sequences of %" PRIu64 " tokens cannot be divided over %" PRIu64
                " ranks (context x tensor with sequence parallelism)",
                s->train.sequence, parts);
}

void vp_finish_train_layout(struct vp_ctx *ctx, struct vp_scenario *s) {
    check_ranks(ctx, s);
    check_pipeline(ctx, s);
    check_expert(ctx, s);
    if (s->parallel.zero > 3)
        complain(ctx, s, VP_F_ZERO, "parallel.zero: stages are 0, 1, 2 and 3", NULL);
    if (s->parallel.sequence && s->parallel.tensor == 1)
        s->parallel.sequence = false; /* nothing to divide */
    check_sequence(ctx, s);
    resolve_batches(ctx, s);
}
