/* Training: types, optimizer, implementations and recomputation, with each framework's defaults. */
#include "planner/import/finish_parts.h"

#include <inttypes.h>
#include <string.h>

#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/import/engine_args.h"
#include "planner/model/requantise.h"

enum { UNSAID = -1 };

static const struct {
    const char *name;
    enum vp_optimizer optimizer;
    int loop; /* enum vp_step_loop, or UNSAID */
} OPTIMIZERS[] = {
#define X(name, optimizer, loop) {name, VP_OPTIMIZER_##optimizer, loop},
#include "planner/import/optimizer_names.def"
#undef X
};

/* ---- words ---- */

/* One of several words; the index of the default when nothing was said. */
static int choose(struct vp_ctx *ctx, struct vp_scenario *s, enum vp_field field,
                  const char **member, const char *const *words, int count, int usual,
                  const char *why) {
    struct vp_buf known = {.arena = ctx->arena};
    if (!vp_scenario_is_given(s, field)) {
        *member = words[usual];
        vp_finish_note(s, field, VP_ORIGIN_DEFAULT, why);
        return usual;
    }
    for (int i = 0; i < count; i++) {
        vp_buf_printf(&known, "%s%s", i ? ", " : "", words[i]);
        if (vp_name_eq(*member, words[i]))
            return i;
    }
    const char *nearest = vp_text_nearest(*member, words, (size_t)count);
    vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &s->source[field].pos, "%s: %.100s is none of %s",
                vp_field_info(field)->path, *member, vp_buf_text(&known));
    if (nearest)
        vp_diag_hint(ctx->diags, "did you mean %s?", nearest);
    return usual;
}

/* A switch among the framework's arguments. */
static bool says(const struct vp_scenario *s, const char *key) {
    const char *value = vp_engine_arg(&s->engine, key);
    return value && (vp_text_eq(value, "true") || vp_text_eq(value, "1"));
}

static const char *usual_of(struct vp_ctx *ctx, const struct vp_scenario *s) {
    return vp_arena_printf(ctx->arena, "what %s does unless told otherwise", s->engine.name);
}

/* ---- types ---- */

static void set_dtype(struct vp_scenario *s, enum vp_field field, enum vp_dtype *member,
                      enum vp_dtype value, const char *why) {
    if (vp_scenario_is_given(s, field))
        return;
    *member = value;
    vp_finish_note(s, field, VP_ORIGIN_DERIVED, why);
}

static void resolve_compute(struct vp_scenario *s) {
    struct vp_precision *p = &s->precision;
    const struct vp_train *t = &s->train;
    if (p->compute == VP_DTYPE_UNSET) {
        bool half = says(s, "bf16") || says(s, "fp16");
        bool casts = half && s->parallel.fsdp; /* fp32 shards, gathered in 16 bit */
        p->compute = t->parameters != VP_DTYPE_UNSET && !casts ? t->parameters
                     : half ? (says(s, "bf16") ? VP_DTYPE_BF16 : VP_DTYPE_FP16)
                     : vp_dtype_is_plain(s->model->dtype) ? s->model->dtype
                                                          : VP_DTYPE_BF16;
        vp_finish_note(s, VP_F_COMPUTE, VP_ORIGIN_DERIVED,
                       t->parameters != VP_DTYPE_UNSET && !casts ? "train.dtype.parameters"
                       : half                                    ? "the framework's own switch"
                              : "the type of the model's description");
    }
    p->kv_cache = p->compute; /* nothing is cached; a finished scenario names a type */
}

/* 16-bit parameters of Megatron and DeepSpeed have fp32 copies that the optimizer works on. */
static void resolve_types(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_train *t = &s->train;
    bool megatron = s->engine.kind == VP_ENGINE_MEGATRON;
    bool mixed = megatron || s->engine.kind == VP_ENGINE_DEEPSPEED;
    const char *why = usual_of(ctx, s);
    resolve_compute(s);
    set_dtype(s, VP_F_TRAIN_PARAMETERS, &t->parameters, s->precision.compute, "the compute type");
    bool half = t->parameters != VP_DTYPE_FP32;
    enum vp_dtype fine = mixed && half ? VP_DTYPE_FP32 : t->parameters;
    bool fp32_sums =
        megatron && half &&
        (t->parameters == VP_DTYPE_BF16 || says(s, "accumulate_allreduce_grads_in_fp32"));
    set_dtype(s, VP_F_TRAIN_GRADIENTS, &t->gradients, fp32_sums ? VP_DTYPE_FP32 : t->parameters,
              fp32_sums ? why : "the type of the parameters");
    set_dtype(s, VP_F_TRAIN_STATES, &t->optimizer_states, fine,
              mixed && half ? why : "the type of the parameters");
    if (mixed && half)
        set_dtype(s, VP_F_TRAIN_MASTER, &t->master, VP_DTYPE_FP32, why);
    if (!vp_scenario_is_given(s, VP_F_AUTOCAST) && s->engine.kind == VP_ENGINE_TRANSFORMERS &&
        (says(s, "bf16") || says(s, "fp16")) && t->parameters == VP_DTYPE_FP32 && !s->parallel.fsdp)
        set_dtype(s, VP_F_AUTOCAST, &t->autocast, says(s, "bf16") ? VP_DTYPE_BF16 : VP_DTYPE_FP16,
                  "bf16 or fp16 of Trainer");
}

static enum vp_status resolve_weights(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_precision *p = &s->precision;
    enum vp_status status = VP_OK;
    if (!vp_scenario_is_given(s, VP_F_WEIGHTS)) {
        p->weights = "checkpoint";
        vp_finish_note(s, VP_F_WEIGHTS, VP_ORIGIN_DEFAULT, "as stored in the checkpoint");
    }
    if (!vp_name_eq(p->weights, "checkpoint"))
        status = vp_model_requantise(ctx, s);
    vp_model_load_plain_as(s->model, s->train.parameters);
    return status;
}

/* ---- optimizer ---- */

static void resolve_optimizer(struct vp_ctx *ctx, struct vp_scenario *s) {
    static const char *const LOOPS[] = {"foreach", "for_loop", "fused"};
    enum { COUNT = sizeof OPTIMIZERS / sizeof *OPTIMIZERS };
    const char *names[COUNT];
    struct vp_train *t = &s->train;
    int loop = UNSAID;
    for (int i = 0; i < COUNT; i++)
        names[i] = OPTIMIZERS[i].name;
    int k = choose(ctx, s, VP_F_OPTIMIZER, &t->optimizer_name, names, COUNT, 0, usual_of(ctx, s));
    t->optimizer = OPTIMIZERS[k].optimizer;
    loop = OPTIMIZERS[k].loop;
    if (loop == UNSAID)
        loop = s->engine.kind >= VP_ENGINE_MEGATRON ? VP_LOOP_FUSED : VP_LOOP_FOREACH;
    t->loop = (enum vp_step_loop)choose(ctx, s, VP_F_OPTIMIZER_LOOP, &t->loop_name, LOOPS, 3, loop,
                                        usual_of(ctx, s));
}

/* ---- adapters ---- */

static void resolve_adapters(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_train *t = &s->train;
    struct vp_train_lora *lora = &t->lora;
    bool some = false;
    if (!lora->enabled) {
        if (s->source[VP_F_INPUT_GRAD].origin == VP_ORIGIN_UNSET)
            vp_finish_flag(s, VP_F_INPUT_GRAD, &t->input_grad, !s->model->embedding || !t->frozen,
                           "a trained embedding, or none before it");
        return;
    }
    t->frozen = true;
    vp_finish_number(s, VP_F_TRAIN_LORA_RANK, &lora->rank, 8, VP_ORIGIN_DEFAULT, "PEFT's default");
    vp_finish_number(s, VP_F_TRAIN_LORA_SLOTS, &lora->slots, 1, VP_ORIGIN_DEFAULT,
                     "one set of adapters");
    set_dtype(s, VP_F_TRAIN_LORA_DTYPE, &lora->dtype,
              s->engine.kind == VP_ENGINE_TRANSFORMERS ? VP_DTYPE_FP32 : t->parameters,
              s->engine.kind == VP_ENGINE_TRANSFORMERS ? "PEFT keeps adapters in fp32"
                                                       : "the type of the parameters");
    for (int i = 0; i < VP_ROLE_COUNT; i++)
        some |= lora->roles[i];
    if (!some) {
        vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, &s->source[VP_F_TRAIN_LORA_RANK].pos,
                    "train.lora.targets is missing: which matrices have adapters");
        vp_diag_hint(ctx->diags, "targets: all-linear, or [q_proj, v_proj]");
    }
    bool needs = !s->model->embedding || t->recompute.kind != VP_RECOMPUTE_NONE;
    vp_finish_flag(s, VP_F_INPUT_GRAD, &t->input_grad, needs,
                   needs ? "recomputation, or an input that is an activation, asks for it"
                         : "behind a frozen embedding it needs none");
}

/* ---- implementations ---- */

/* An argument that is a probability says that there is dropout. */
static bool drops(const struct vp_scenario *s, const char *key) {
    const char *text = vp_engine_arg(&s->engine, key);
    double share;
    return text && vp_parse_real(&share, text) && share > 0;
}

/* Tokens of an expert against an even deal: with a capacity factor at most that share, padded to it
 * where that was asked for. */
static uint64_t expert_load(const struct vp_scenario *s) {
    const char *text = vp_engine_arg(&s->engine, "moe_expert_capacity_factor");
    bool padded = says(s, "moe_pad_expert_input_to_capacity");
    double factor;
    if (!text || !vp_parse_real(&factor, text) || !(factor > 0 && factor <= 1000))
        return 0;
    return factor < 1 || padded ? (uint64_t)(factor * 1e9 + 0.5) : 0;
}

static void resolve_ops(struct vp_ctx *ctx, struct vp_scenario *s) {
    static const char *const ATTENTION[] = {"eager", "sdpa", "flash"};
    static const char *const FUSED[] = {"unfused", "fused"};
    static const char *const GELU[] = {"erf", "tanh", "new"};
    static const char *const LOSS[] = {"unfused", "chunked", "fused_linear", "fused"};
    struct vp_train *t = &s->train;
    struct vp_train_ops *ops = &t->ops;
    bool megatron = s->engine.kind == VP_ENGINE_MEGATRON;
    bool te = megatron && !vp_text_eq(vp_engine_arg(&s->engine, "transformer_impl"), "local");
    bool loss = megatron && says(s, "cross_entropy_loss_fusion");
    const char *why = usual_of(ctx, s);
    int attention =
        megatron ? (te || says(s, "use_flash_attn") ? VP_IMPL_FLASH : VP_IMPL_EAGER) : VP_IMPL_SDPA;
    if (vp_text_eq(vp_engine_arg(&s->engine, "attention_backend"), "unfused"))
        attention = VP_IMPL_EAGER;
    ops->attention = (enum vp_attention_impl)choose(ctx, s, VP_F_OPS_ATTENTION, &t->attention_name,
                                                    ATTENTION, 3, attention, why);
    ops->fused_norm = choose(ctx, s, VP_F_OPS_NORM, &t->norm_name, FUSED, 2, megatron, why) == 1;
    ops->fused_mlp = choose(ctx, s, VP_F_OPS_MLP, &t->mlp_name, FUSED, 2, megatron, why) == 1;
    enum vp_activation_kind activation = s->model->activation;
    enum vp_gelu gelu = activation == VP_ACTIVATION_GELU_NEW    ? VP_GELU_NEW
                        : activation == VP_ACTIVATION_GELU_TANH ? VP_GELU_TANH
                                                                : VP_GELU_ERF;
    ops->gelu = (enum vp_gelu)choose(ctx, s, VP_F_OPS_GELU, &t->gelu_name, GELU, 3, (int)gelu, why);
    ops->loss = (enum vp_loss_impl)choose(ctx, s, VP_F_OPS_LOSS, &t->loss_name, LOSS, 4,
                                          loss ? VP_LOSS_FUSED : VP_LOSS_UNFUSED, why);
    ops->expert_load_ppb = expert_load(s);
    vp_finish_flag(s, VP_F_OPS_UPCAST, &ops->logits_upcast, true, why);
    vp_finish_flag(s, VP_F_OPS_REFERENCED, &ops->logits_referenced,
                   s->engine.kind == VP_ENGINE_TRANSFORMERS, why);
    vp_finish_flag(s, VP_F_OPS_REPEAT_KV, &ops->repeat_kv,
                   s->engine.kind == VP_ENGINE_TRANSFORMERS && ops->attention != VP_IMPL_FLASH,
                   why);
    if (megatron && (drops(s, "hidden_dropout") || drops(s, "attention_dropout")))
        vp_finish_number(s, VP_F_OPS_DROPOUT, &ops->dropout_ppb, 100000000, VP_ORIGIN_DERIVED,
                         "hidden_dropout, attention_dropout: that there is some");
    else
        vp_finish_number(s, VP_F_OPS_DROPOUT, &ops->dropout_ppb, 0, VP_ORIGIN_DEFAULT, "none");
}

/* ---- recomputation ---- */

static uint64_t number_of(const struct vp_scenario *s, const char *key, uint64_t usual) {
    const char *text = vp_engine_arg(&s->engine, key);
    uint64_t v = usual;
    if (text && !vp_parse_u64(&v, text))
        return usual;
    return v;
}

/* Whether a word stands in a list that is kept as text: ["core_attn", "mlp"]. */
static bool has_word(const char *text, const char *word) {
    static const char INNER[] = "abcdefghijklmnopqrstuvwxyz_";
    size_t n = strlen(word);
    while (text && *text) {
        text += strcspn(text, INNER);
        size_t length = strspn(text, INNER);
        if (length == n && memcmp(text, word, n) == 0)
            return true;
        text += length;
    }
    return false;
}

/* Megatron's recompute_modules as a set; its own default when none is named. */
static uint32_t selected(const struct vp_scenario *s) {
    static const struct {
        const char *name;
        enum vp_selective set;
    } MODULES[] = {
#define X(region, name, meaning) {name, VP_SELECT_##region},
#include "planner/model/recompute_modules.def"
#undef X
    };
    const char *text = vp_engine_arg(&s->engine, "recompute_modules");
    uint32_t set = 0;
    for (size_t i = 0; i < sizeof MODULES / sizeof *MODULES; i++)
        if (has_word(text, MODULES[i].name))
            set |= (uint32_t)MODULES[i].set;
    return set ? set : VP_SELECT_CORE_ATTENTION;
}

/* --recompute-granularity, -method, -num-layers; train.recompute, where it was said, holds. */
static void resolve_megatron(struct vp_scenario *s) {
    struct vp_recompute *out = &s->train.recompute;
    const char *granularity = vp_engine_arg(&s->engine, "recompute_granularity");
    const char *method = vp_engine_arg(&s->engine, "recompute_method");
    uint64_t layers = number_of(s, "recompute_num_layers", 1);
    if (!granularity || vp_scenario_is_given(s, VP_F_RECOMPUTE))
        return;
    *out = (struct vp_recompute){.kind = VP_RECOMPUTE_NONE};
    if (vp_text_eq(granularity, "selective")) {
        out->kind = VP_RECOMPUTE_SELECTIVE;
    } else if (vp_text_eq(method, "block")) {
        out->kind = layers > 0 ? VP_RECOMPUTE_FIRST : VP_RECOMPUTE_NONE;
        out->first = layers;
        out->per_stage_first = true;
    } else if (layers > 1) {
        out->kind = VP_RECOMPUTE_EVERY;
        out->every = layers;
    } else if (layers == 1) {
        out->kind = VP_RECOMPUTE_FULL;
    }
    s->train.recompute_name = granularity;
    vp_finish_note(s, VP_F_RECOMPUTE, VP_ORIGIN_DERIVED, "the framework's recompute arguments");
}

static void check_recompute(struct vp_ctx *ctx, const struct vp_scenario *s) {
    const struct vp_recompute *r = &s->train.recompute;
    uint32_t layers = s->model->layer_count;
    struct vp_sum sum = vp_sum(0);
    const char *wrong = NULL;
    for (uint32_t i = 0; i < r->list_count; i++) {
        sum = vp_sum_add(sum, r->list[i]);
        if (r->kind == VP_RECOMPUTE_LAYERS && r->list[i] >= layers)
            wrong = "names a layer that is not there (they count from 0)";
    }
    if (r->kind == VP_RECOMPUTE_SEGMENTS && (sum.overflow || sum.v > layers))
        wrong = "covers more layers than there are";
    if (r->kind == VP_RECOMPUTE_FIRST && !r->per_stage_first && r->first > layers)
        wrong = "names more layers than there are";
    if (!wrong)
        return;
    vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &s->source[VP_F_RECOMPUTE].pos,
                "train.recompute %s: the model has %" PRIu32, wrong, layers);
}

static void resolve_recompute(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_train *t = &s->train;
    resolve_megatron(s);
    if (s->source[VP_F_RECOMPUTE].origin == VP_ORIGIN_UNSET) {
        bool asked = s->model->gradient_checkpointing;
        t->recompute.kind = asked ? VP_RECOMPUTE_FULL : VP_RECOMPUTE_NONE;
        t->recompute_name = asked ? "full" : "none";
        vp_finish_note(s, VP_F_RECOMPUTE, VP_ORIGIN_DEFAULT,
                       asked ? "the model's description asks for it"
                             : "nothing is recomputed unless asked for");
    }
    t->recompute.selective = selected(s);
    check_recompute(ctx, s);
}

/* ---- the whole ---- */

static void resolve_lengths(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_train *t = &s->train;
    vp_finish_number(s, VP_F_MICRO_BATCH, &t->micro_batch, 1, VP_ORIGIN_DEFAULT,
                     "one sequence per pass");
    if (vp_scenario_is_given(s, VP_F_SEQUENCE_LENGTH))
        return;
    vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, &s->model->pos, "train.sequence_length is missing");
    vp_diag_hint(ctx->diags, "--seq 4096, or train: {sequence_length: 4096}");
}

/* Rotary positions go on beyond what was trained; a learned vector that is not there cannot be
 * looked up. */
static void check_length(struct vp_ctx *ctx, const struct vp_scenario *s) {
    const struct vp_model *model = s->model;
    const struct vp_pos *pos = &s->source[VP_F_SEQUENCE_LENGTH].pos;
    uint64_t length = s->train.sequence;
    uint64_t longest = model->max_position > 0 ? model->max_position : model->learned_positions;
    if (longest == 0 || length <= longest)
        return;
    if (model->learned_positions > 0) {
        vp_diag_add(ctx->diags, VP_D_CONTRADICTION, pos,
                    "train.sequence_length is %" PRIu64
                    ", but the model has learned positions for %" PRIu64 " tokens only",
                    length, longest);
        vp_diag_hint(ctx->diags, "shorter sequences, or a model described with more positions");
        return;
    }
    vp_diag_add(ctx->diags, VP_D_LENGTH_BEYOND, pos,
                "train.sequence_length is %" PRIu64 ", the model was trained for %" PRIu64
                ": positions beyond are new to it",
                length, longest);
    vp_diag_hint(ctx->diags,
                 "the memory is counted all the same; fit --maximize context stops at %" PRIu64,
                 longest);
}

static void resolve_versions(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_engine *e = &s->engine;
    if (e->kind == VP_ENGINE_PYTORCH && !e->torch_text)
        e->torch_text = e->version_text;
    if (e->torch_text && !vp_version_parse(&e->torch, e->torch_text))
        vp_diag_add(ctx->diags, VP_D_VERSION_UNKNOWN, &s->source[VP_F_ENGINE].pos,
                    "torch version \"%.100s\" cannot be read", e->torch_text);
}

/* Quantised matrices have no gradient: frameworks refuse to train them. */
static void check_trainable(struct vp_ctx *ctx, const struct vp_scenario *s) {
    const struct vp_train *t = &s->train;
    if (!vp_model_is_quantised(s->model) || t->lora.enabled || t->frozen)
        return;
    vp_diag_add(ctx->diags, VP_D_CONTRADICTION, &s->source[VP_F_WEIGHTS].pos,
                "the weights of %s are quantised, and all of them are to be trained",
                s->model->name);
    vp_diag_hint(ctx->diags, "precision.weights: bf16 trains a converted copy; train.lora trains "
                             "adapters beside them");
}

enum vp_status vp_finish_train(struct vp_ctx *ctx, struct vp_scenario *s, bool resolved) {
    uint32_t errors = ctx->diags->errors;
    resolve_versions(ctx, s);
    resolve_types(ctx, s);
    enum vp_status status = resolve_weights(ctx, s);
    resolve_lengths(ctx, s);
    check_length(ctx, s);
    resolve_optimizer(ctx, s);
    resolve_recompute(ctx, s);
    resolve_adapters(ctx, s);
    check_trainable(ctx, s);
    resolve_ops(ctx, s);
    if (resolved && ctx->diags->errors == errors)
        vp_finish_train_layout(ctx, s);
    if (!resolved || ctx->diags->errors > errors)
        return status > VP_ERR_INPUT ? status : VP_ERR_INPUT;
    return status;
}
