#include "planner/import/finish.h"

#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/import/engine_args.h"
#include "planner/import/engine_profile.h"
#include "planner/import/finish_parts.h"

/* Plain defaults of what memory does not depend on, and of sums that start at nothing. */
static void set_plain_defaults(struct vp_scenario *s) {
    static const char NONE[] = "nothing else runs on the device";
    vp_finish_number(s, VP_F_NODES, &s->hardware.nodes, 1, VP_ORIGIN_DEFAULT, "one machine");
    vp_finish_number(s, VP_F_RESERVED, &s->hardware.reserved_bytes, 0, VP_ORIGIN_DEFAULT, NONE);
    vp_finish_number(s, VP_F_CONCURRENCY, &s->serve.concurrency, 1, VP_ORIGIN_DEFAULT,
                     "one sequence in flight");
    vp_finish_number(s, VP_F_REPLICAS, &s->serve.replicas, 1, VP_ORIGIN_DEFAULT, "one copy");
    if (!vp_scenario_is_given(s, VP_F_ARRIVAL)) {
        s->serve.arrival = "closed_loop";
        vp_finish_note(s, VP_F_ARRIVAL, VP_ORIGIN_DEFAULT,
                       "a finished request is replaced at once");
    }
}

/* A share of what the engine may take: the base is the budget's limit, not what happens to be
 * needed. */
static void resolve_headroom(struct vp_scenario *s) {
    enum { BILLION = 1000000000 };
    struct vp_budget *budget = &s->budget;
    if (budget->headroom_ppb)
        budget->bound[VP_BOUND_HEADROOM].value =
            vp_mul_div(vp_mul_div(s->hardware.memory_bytes, s->engine.utilization_ppb, BILLION),
                       budget->headroom_ppb, BILLION);
}

/* Engines that only train need something to train. */
static bool check_accounting(struct vp_ctx *ctx, const struct vp_scenario *s) {
    bool trainer = s->engine.kind >= VP_ENGINE_PYTORCH;
    bool server = s->engine.kind < VP_ENGINE_PYTORCH && s->engine.kind != VP_ENGINE_TRANSFORMERS;
    if (s->training ? !server : !trainer)
        return true;
    vp_diag_add(ctx->diags, s->training ? VP_D_CONTRADICTION : VP_D_MISSING_VALUE,
                &s->source[VP_F_ENGINE].pos,
                s->training ? "engine %s does not train, but there is a train: block"
                            : "engine %s trains, but there is no train: block",
                s->engine.name);
    vp_diag_hint(ctx->diags, s->training ? "engines that train: transformers, pytorch, megatron, "
                                           "deepspeed"
                                         : "train: {micro_batch: 1, sequence_length: 4096}");
    return false;
}

static void check_imbalance(struct vp_ctx *ctx, const struct vp_scenario *s) {
    double imbalance = s->serve.expert_imbalance;

    if (!(imbalance > 0) || imbalance >= 1)
        return;
    vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &s->source[VP_F_EXPERT_IMBALANCE].pos,
                "serve.expert_imbalance is %g: the busiest rank has at least the mean, 1",
                imbalance);
}

/* What only a training step has, said of a server: its memory would be left out. */
static void check_serving(struct vp_ctx *ctx, const struct vp_scenario *s) {
    const struct vp_parallel *p = &s->parallel;
    const struct {
        enum vp_field field;
        bool said;
    } TRAINING[] = {{VP_F_SEQUENCE, p->sequence},
                    {VP_F_ZERO, p->zero > 0},
                    {VP_F_FSDP, p->fsdp},
                    {VP_F_VIRTUAL_PIPELINE, p->virtual_pipeline > 1},
                    {VP_F_MICROBATCHES, p->microbatches > 1}};
    for (size_t i = 0; i < sizeof TRAINING / sizeof *TRAINING; i++) {
        const struct vp_field_info *info = vp_field_info(TRAINING[i].field);
        if (!TRAINING[i].said || !vp_scenario_is_given(s, TRAINING[i].field))
            continue;
        vp_diag_add(ctx->diags, VP_D_UNMODELLED, &s->source[TRAINING[i].field].pos,
                    "%s (%s) is not modelled for serving", info->path, info->meaning);
        vp_diag_hint(ctx->diags, "a training step has a train: block");
    }
}

/* What a training step does not ask for is no error, but its user should see it. */
static void check_training(struct vp_ctx *ctx, const struct vp_scenario *s) {
    for (int i = 0; i < VP_FIELD_COUNT; i++) {
        const char *path = vp_field_info((enum vp_field)i)->path;
        if (vp_text_starts(path, "serve.") && vp_scenario_is_given(s, (enum vp_field)i))
            vp_diag_add(ctx->diags, VP_D_ARG_IGNORED, &s->source[i].pos,
                        "%s is of serving: a training step is not computed with it",
                        s->source[i].key ? s->source[i].key : path);
    }
}

static enum vp_status worst(enum vp_status a, enum vp_status b) {
    return a > b ? a : b; /* the environment's faults outrank the input's */
}

/* What a server with a cache pool takes from its settings. */
static enum vp_status finish_pool(struct vp_ctx *ctx, struct vp_scenario *s, bool resolved) {
    uint32_t errors = ctx->diags->errors;
    enum vp_status status = vp_finish_precision(ctx, s);
    vp_finish_lengths(ctx, s);
    if (!resolved || ctx->diags->errors > errors)
        status = worst(status, VP_ERR_INPUT);
    if (status != VP_OK)
        return status;
    vp_finish_engine(ctx, s);
    vp_finish_extras(ctx, s);
    return VP_OK;
}

/* What follows from a model that could be read. */
static enum vp_status finish_model(struct vp_ctx *ctx, struct vp_engine_profile *profile,
                                   struct vp_scenario *s, bool resolved) {
    uint32_t errors = ctx->diags->errors;
    enum vp_status status = VP_OK;
    enum vp_accounting accounting = vp_scenario_accounting(s);
    if (resolved && accounting != VP_ACCOUNT_LLAMA)
        vp_finish_layout(ctx, s);
    if (resolved)
        status = vp_rules_read(ctx, &s->engine.rules, profile, s);
    if (resolved && status == VP_OK)
        vp_finish_measured_memory(ctx, s);
    resolved = resolved && ctx->diags->errors == errors;
    switch (accounting) {
    case VP_ACCOUNT_POOL:
        status = worst(status, finish_pool(ctx, s, resolved));
        break;
    case VP_ACCOUNT_LLAMA:
        status = worst(status, vp_finish_llama(ctx, s, resolved));
        break;
    case VP_ACCOUNT_TRAIN:
        status = worst(status, vp_finish_train(ctx, s, resolved));
        break;
    }
    if (status != VP_OK)
        return status;
    resolve_headroom(s);
    return ctx->diags->errors > errors ? VP_ERR_INPUT : VP_OK;
}

enum vp_status vp_scenario_finish(struct vp_ctx *ctx, struct vp_scenario *scenario) {
    uint32_t errors = ctx->diags->errors;
    struct vp_engine_profile profile = {.root = NULL};
    set_plain_defaults(scenario);
    if (!check_accounting(ctx, scenario))
        return VP_ERR_INPUT;
    if (scenario->training)
        check_training(ctx, scenario);
    else
        check_serving(ctx, scenario);
    check_imbalance(ctx, scenario);
    vp_finish_parallel(ctx, scenario);
    enum vp_status status = vp_finish_hardware(ctx, scenario);
    if (status == VP_OK)
        status = vp_finish_calibration(ctx, scenario);
    status = worst(status, vp_finish_version(ctx, &profile, scenario));
    bool resolved = status == VP_OK && ctx->diags->errors == errors;
    if (scenario->model)
        status = worst(status, finish_model(ctx, &profile, scenario, resolved));
    else
        status = worst(status, VP_ERR_INPUT); /* its faults were told when it was read */
    vp_engine_args_report(ctx, &scenario->engine);
    return status;
}
