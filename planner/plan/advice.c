#include "planner/plan/advice.h"

#include <inttypes.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/memory/stage.h"
#include "planner/memory/weights.h"
#include "planner/plan/advice_parts.h"
#include "planner/plan/plan.h"

/* ---- what the checks share ---- */

/* Shares are kept in parts per billion and told in hundredths. */
enum { PPB_PER_HUNDREDTH = 10000000 };

bool vp_advice_evaluate(const struct vp_advice *a, struct vp_variant *out,
                        const struct vp_scenario *variant) {
    struct vp_arena_mark mark = vp_arena_mark(a->ctx->arena);
    struct vp_result result;
    bool ok = vp_plan_evaluate(a->ctx->arena, &result, variant);

    *out = (struct vp_variant){.verdict = result.verdict,
                               .cache_tokens = result.kv.tokens,
                               .cache_bytes = result.report.available_kv.likely,
                               .activation_bytes = result.report.activation_peak.likely};
    vp_arena_rewind(a->ctx->arena, mark);
    return ok;
}

const struct vp_pos *vp_advice_at_model(const struct vp_advice *a) {
    const struct vp_pos *pos = &a->scenario->model->pos;
    const char *shipped = a->ctx->profiles, *own = a->ctx->user_profiles;
    bool profile = pos->file && ((shipped && vp_text_starts(pos->file, shipped)) ||
                                 (own && vp_text_starts(pos->file, own)));

    return profile ? NULL : pos;
}

bool vp_advice_share_decides(const struct vp_advice *a) {
    const struct vp_engine *engine = &a->scenario->engine;
    const bool *measured = a->scenario->measured.known;

    return engine->kind != VP_ENGINE_TRANSFORMERS && a->result->kv.known &&
           engine->kv_cache_bytes == 0 && engine->blocks_override == 0 &&
           !measured[VP_M_AVAILABLE_KV] && !measured[VP_M_BLOCKS];
}

const char *vp_advice_gib(const struct vp_advice *a, uint64_t bytes) {
    return vp_format_gib(a->ctx->arena, bytes, 2);
}

const char *vp_advice_count(const struct vp_advice *a, uint64_t number) {
    return vp_format_count(a->ctx->arena, number);
}

const char *vp_advice_arg(const struct vp_advice *a, enum vp_field field) {
    const char *label = vp_field_label(a->scenario->engine.kind, field);
    const char *dot = strrchr(label, '.');
    return dot ? dot + 1 : label;
}

static bool is_vllm(const struct vp_advice *a) {
    return a->scenario->engine.kind == VP_ENGINE_VLLM;
}

static const struct vp_device *worst_of(const struct vp_advice *a) {
    return &a->result->devices[a->result->worst];
}

/* "0.09" of 9 */
static const char *hundredths(const struct vp_advice *a, uint64_t n) {
    return vp_arena_printf(a->ctx->arena, "%" PRIu64 ".%02" PRIu64, n / 100, n % 100);
}

/* ---- gradient checkpointing without a backward ---- */

static bool is_off(const char *value) {
    static const char *const OFF[] = {"false", "no", "off", "none", "null", "0", ""};
    for (size_t i = 0; i < sizeof OFF / sizeof *OFF; i++)
        if (vp_name_eq(value, OFF[i]))
            return true;
    return false;
}

static const struct vp_engine_arg *checkpointing_arg(const struct vp_engine *engine) {
    static const char *const KEYS[] = {"gradient_checkpointing", "activation_checkpointing",
                                       "activations_checkpoint", "recompute_granularity",
                                       "recompute_activations"};
    for (uint32_t i = 0; i < engine->arg_count; i++)
        for (size_t k = 0; k < sizeof KEYS / sizeof *KEYS; k++)
            if (strstr(engine->args[i].key, KEYS[k]) && !is_off(engine->args[i].value))
                return &engine->args[i];
    return NULL;
}

/* What does lower the peak: half a prefill chunk; half the sequences where that takes off less than
 * a twentieth (the sampler is the peak) or is refused (a chunk holds a token of each sequence). */
static void smaller_peak(const struct vp_advice *a) {
    const struct vp_engine *engine = &a->scenario->engine;
    struct vp_scenario variant = *a->scenario;
    uint64_t now = a->result->report.activation_peak.likely;
    uint64_t half = engine->max_batched_tokens / 2, seqs = engine->max_num_seqs / 2;
    const char *chunk = vp_advice_arg(a, VP_F_BATCHED_TOKENS);
    struct vp_variant v;

    if (engine->kind == VP_ENGINE_TRANSFORMERS) {
        vp_diag_hint(a->ctx->diags,
                     "prefill_chunk_size of generate() lowers the activation peak of a long prompt "
                     "(%s GiB here)",
                     vp_advice_gib(a, now));
        return;
    }
    variant.engine.chunked_prefill = true;
    variant.engine.max_batched_tokens = half;
    if (half >= engine->max_num_seqs && vp_advice_evaluate(a, &v, &variant) &&
        vp_above(now, v.activation_bytes) >= now / 20) {
        vp_diag_hint(a->ctx->diags,
                     "a smaller prefill chunk lowers the activation peak: %s %" PRIu64
                     " instead of %" PRIu64 " makes it %s instead of %s GiB",
                     chunk, half, engine->max_batched_tokens, vp_advice_gib(a, v.activation_bytes),
                     vp_advice_gib(a, now));
        return;
    }
    variant = *a->scenario;
    variant.engine.max_num_seqs = seqs;
    if (seqs == 0 || !vp_advice_evaluate(a, &v, &variant))
        return;
    vp_diag_hint(a->ctx->diags,
                 "the activation peak is the sampler's here: %s %" PRIu64 " instead of %" PRIu64
                 " makes it %s instead of %s GiB; a smaller %s alone would "
                 "change little",
                 vp_advice_arg(a, VP_F_MAX_NUM_SEQS), seqs, engine->max_num_seqs,
                 vp_advice_gib(a, v.activation_bytes), vp_advice_gib(a, now), chunk);
}

/* Always told: it is asked for in the belief that it saves memory. Source: torch.utils.checkpoint
 * re-runs a forward inside backward; a serving forward runs under no_grad and keeps nothing. */
static void no_backward(const struct vp_advice *a) {
    const struct vp_engine_arg *arg = checkpointing_arg(&a->scenario->engine);
    const char *name = arg ? vp_arena_printf(a->ctx->arena, "engine.args.%.100s", arg->key)
                           : "gradient_checkpointing of the model";

    if (!arg && !a->scenario->model->gradient_checkpointing)
        return;
    vp_diag_add(a->ctx->diags, a->id, arg ? &arg->pos : vp_advice_at_model(a),
                "%s frees nothing when serving: it recomputes activations in a backward pass, and "
                "there is none",
                name);
    smaller_peak(a);
}

/* ---- cache that tensor parallelism does not divide ---- */

/* Into how many parts the layer's cache can be divided; 0: it keeps none. */
static uint64_t parts_of(const struct vp_attention *at) {
    if (at->shares_cache || at->bidirectional)
        return 0;
    switch (at->kind) {
    case VP_ATTENTION_GQA:
        return at->kv_heads;
    case VP_ATTENTION_MLA:
    case VP_ATTENTION_COMPRESSED:
        return 1; /* one latent, one head */
    case VP_ATTENTION_LINEAR:
    case VP_ATTENTION_NONE:
        break;
    }
    return 0;
}

/* Elements that a rank keeps per token and layer. */
static struct vp_sum entry_of(const struct vp_attention *at, uint64_t ranks) {
    if (at->kind == VP_ATTENTION_MLA)
        return vp_sum_add(vp_sum(at->kv_lora_rank), at->qk_rope_head_dim);
    if (at->kind == VP_ATTENTION_COMPRESSED)
        return vp_sum(at->head_dim);
    struct vp_sum width = vp_sum_add(vp_sum(at->head_dim), at->v_head_dim);
    return vp_sum_mul(width, vp_ceil_div(at->kv_heads, ranks));
}

struct copies {
    uint64_t parts; /* of the layers that can be divided least; 0: every layer is divided */
    uint64_t ranks; /* that would share the cache */
    bool latent;
    uint64_t rank_bytes; /* of a rank's cache for the workload, what another rank has too */
};

static struct copies find_copies(const struct vp_advice *a) {
    const struct vp_model *model = a->scenario->model;
    uint64_t shared =
        vp_stage_layout(a->scenario).attention / vp_max(a->scenario->parallel.context, 1);
    struct copies c = {.ranks = vp_max(shared, 1)}; /* attention's data ranks may leave none */
    struct vp_sum all = vp_sum(0), copied = vp_sum(0);

    for (uint32_t i = 0; i < model->block_count; i++) {
        const struct vp_attention *at = &model->blocks[i].attention;
        uint64_t parts = parts_of(at);
        if (parts == 0)
            continue;
        struct vp_sum entry = vp_sum_mul(entry_of(at, c.ranks), model->blocks[i].count);
        all = vp_sum_plus(all, vp_sum_mul(entry, c.ranks));
        if (parts >= c.ranks)
            continue;
        copied = vp_sum_plus(copied, vp_sum_mul(entry, c.ranks - parts));
        c.latent |= at->kind != VP_ATTENTION_GQA;
        c.parts = c.parts ? vp_min(c.parts, parts) : parts;
    }
    if (all.overflow || copied.overflow || all.v == 0)
        c.parts = 0;
    else
        c.rank_bytes = vp_mul_div(worst_of(a)->component[VP_C_KV_CACHE].likely, copied.v, all.v);
    return c;
}

static void divide_copies(const struct vp_advice *a, const struct copies *c) {
    struct vp_scenario variant = *a->scenario;
    struct vp_variant v;

    variant.parallel.context *= c->ranks / c->parts;
    if (is_vllm(a) && a->scenario->engine.rules.budget >= VP_VLLM_V1 &&
        a->result->kv.group_count == 1 &&
        a->scenario->parallel.tensor % variant.parallel.context == 0 &&
        vp_advice_evaluate(a, &v, &variant) && v.cache_tokens > a->result->kv.tokens)
        vp_diag_hint(a->ctx->diags,
                     "decode_context_parallel_size %" PRIu64 " divides the copies: a cache of %s "
                     "tokens instead of %s, where the attention backend supports it",
                     variant.parallel.context, vp_advice_count(a, v.cache_tokens),
                     vp_advice_count(a, a->result->kv.tokens));
    else if (a->scenario->engine.kind == VP_ENGINE_SGLANG)
        vp_diag_hint(a->ctx->diags,
                     "data-parallel attention (enable_dp_attention) keeps a sequence on one rank "
                     "only: up to %" PRIu64 " times the tokens in the group, less the attention "
                     "weights that each rank repeats",
                     c->ranks / c->parts);
    else
        vp_diag_hint(a->ctx->diags,
                     "tensor %" PRIu64 " needs no copies: the other ranks may go into pipeline or "
                     "data parallelism",
                     c->parts);
}

/* Always told: a rank's cache stops shrinking, which no calculator by heads / ranks shows. Source:
 * vLLM config/model.py, max(1, kv_heads // ranks); an MLA latent is one for all heads. */
static void kv_replicated(const struct vp_advice *a) {
    struct copies c = find_copies(a);
    const char *rank = vp_advice_gib(a, c.rank_bytes);
    const char *group = vp_advice_gib(a, vp_sum_mul(vp_sum(c.rank_bytes), c.ranks).v);

    if (c.parts == 0)
        return;
    if (c.latent)
        vp_diag_add(a->ctx->diags, a->id, vp_advice_at(a, VP_F_TENSOR),
                    "the latent KV cache is kept whole on each of %" PRIu64 " ranks: %s GiB of a "
                    "rank's cache are copies, %s GiB over the group",
                    c.ranks, rank, group);
    else
        vp_diag_add(a->ctx->diags, a->id, vp_advice_at(a, VP_F_TENSOR),
                    "%" PRIu64 " KV heads on %" PRIu64 " ranks: each is kept %" PRIu64
                    " times, and more ranks do not make a rank's cache smaller; %s GiB of it are "
                    "copies, %s GiB over the group",
                    c.parts, c.ranks, c.ranks / c.parts, rank, group);
    divide_copies(a, &c);
}

/* ---- graphs that no budget holds ---- */

/* Told when the likely graphs exceed what the share leaves: their first capture then takes what
 * the profile run freed, and a later forward pass finds it gone. Source: one recipe ended 784 MiB
 * short at 0.80 and at 0.93 alike; vllm#7553 (2.4 GiB per card on top of the budget). */
static void graphs_outside(const struct vp_advice *a) {
    const struct vp_engine_report *r = &a->result->report;
    const struct vp_hardware *hardware = &a->scenario->hardware;
    uint64_t free_bytes = vp_above(hardware->memory_bytes, hardware->reserved_bytes);
    uint64_t left = vp_above(free_bytes, r->requested_bytes);
    struct vp_scenario variant = *a->scenario;
    struct vp_variant v;

    if (!is_vllm(a) || r->graphs_in_budget || !vp_advice_share_decides(a) ||
        r->graph.likely <= left)
        return;
    vp_diag_add(a->ctx->diags, a->id, vp_advice_at(a, VP_F_UTILIZATION),
                "captured graphs (%s GiB) come on top of the share that vLLM takes, which leaves "
                "%s GiB for them",
                vp_advice_gib(a, r->graph.likely), vp_advice_gib(a, left));
    uint64_t share = vp_mul_div(vp_above(free_bytes, r->graph.high), 100, hardware->memory_bytes);
    variant.engine.utilization_ppb = share * PPB_PER_HUNDREDTH;
    if (share == 0 || !vp_advice_evaluate(a, &v, &variant) || v.cache_tokens == 0)
        vp_diag_hint(a->ctx->diags, "enforce_eager: true captures none");
    else
        vp_diag_hint(a->ctx->diags,
                     "gpu_memory_utilization %s leaves room for up to %s GiB; the cache then holds "
                     "%s tokens instead of %s",
                     hundredths(a, share), vp_advice_gib(a, r->graph.high),
                     vp_advice_count(a, v.cache_tokens), vp_advice_count(a, a->result->kv.tokens));
}

/* ---- a sampler for more sequences than there are ---- */

/* Told when the cache would hold a twentieth more: below that the default does no harm. The target
 * is the concurrency rounded up to 16, the grain of captured batches. Source: the activation peak
 * of vLLM's profile run is max_num_seqs x vocabulary x 14 to 41 B in start-up logs (F-ACT-01). */
static void sampler_rows(const struct vp_advice *a) {
    const struct vp_engine *engine = &a->scenario->engine;
    struct vp_scenario variant = *a->scenario;
    uint64_t now = a->result->kv.tokens;
    uint64_t seqs = vp_sum_round_up(vp_sum(a->scenario->serve.concurrency), 16).v;
    struct vp_variant v;

    if (!is_vllm(a) || !vp_advice_share_decides(a) || seqs >= engine->max_num_seqs)
        return;
    variant.engine.max_num_seqs = seqs;
    if (!vp_advice_evaluate(a, &v, &variant) || vp_above(v.cache_tokens, now) <= now / 20)
        return;
    vp_diag_add(a->ctx->diags, a->id, vp_advice_at(a, VP_F_MAX_NUM_SEQS),
                "vLLM's profile run samples max_num_seqs = %" PRIu64 " sequences at once and keeps "
                "%s GiB free for that; the workload has %" PRIu64,
                engine->max_num_seqs, vp_advice_gib(a, a->result->report.activation_peak.likely),
                a->scenario->serve.concurrency);
    vp_diag_hint(a->ctx->diags,
                 "max_num_seqs %" PRIu64 " gives a cache of %s tokens instead of %s (%s GiB more); "
                 "further sequences wait",
                 seqs, vp_advice_count(a, v.cache_tokens), vp_advice_count(a, now),
                 vp_advice_gib(a, vp_above(v.cache_bytes, a->result->report.available_kv.likely)));
}

/* ---- what is set aside is not what is needed ---- */

/* The smallest share in hundredths at which the workload still fits for sure; 0: none is known. */
static uint64_t least_share(const struct vp_advice *a) {
    struct vp_scenario variant = *a->scenario;
    uint64_t fails = 0, fits = a->scenario->engine.utilization_ppb / PPB_PER_HUNDREDTH;
    struct vp_variant v;

    variant.engine.utilization_ppb = fits * PPB_PER_HUNDREDTH;
    if (!vp_advice_evaluate(a, &v, &variant) || v.verdict != VP_FITS)
        return 0;
    while (fits - fails > 1) {
        uint64_t middle = fails + (fits - fails) / 2;
        variant.engine.utilization_ppb = middle * PPB_PER_HUNDREDTH;
        if (vp_advice_evaluate(a, &v, &variant) && v.verdict == VP_FITS)
            fits = middle;
        else
            fails = middle;
    }
    return fits;
}

/* Told when less than half of what the engine takes is needed: the question behind "0.5B takes
 * 21 GB" (vllm#4253, #15204, #17891, legacy-rocm-build#5265). */
static void policy_not_need(const struct vp_advice *a) {
    const struct vp_device *device = worst_of(a);
    uint64_t share = 0;

    if (a->result->verdict != VP_FITS || !vp_advice_share_decides(a) ||
        device->need.likely >= device->reserved_bytes / 2)
        return;
    vp_diag_add(a->ctx->diags, a->id, vp_advice_at(a, VP_F_UTILIZATION),
                "the engine takes %s GiB by its policy, this workload needs %s GiB: the rest is "
                "cache set aside ahead of need",
                vp_advice_gib(a, device->reserved_bytes), vp_advice_gib(a, device->need.likely));
    share = least_share(a);
    if (share > 0)
        vp_diag_hint(a->ctx->diags,
                     "%s %s would be enough for this workload; more only holds more "
                     "sequences",
                     vp_advice_arg(a, VP_F_UTILIZATION), hundredths(a, share));
}

/* ---- the log's token line ---- */

/* Told when the line is off by more than a tenth. Source: vLLM v1/core/kv_cache_utils.py; one
 * hybrid logged 75,840 tokens and held 2.48 requests of 120,000 (vllm#28228, #51041). */
static void token_line(const struct vp_advice *a) {
    const struct vp_kv_report *kv = &a->result->kv;
    const struct vp_engine_report *r = &a->result->report;
    uint64_t printed = r->kv_cache_tokens.likely, groups = 0;
    bool by_length = a->scenario->engine.rules.tokens_by_concurrency;

    for (uint32_t i = 0; i < kv->group_count; i++)
        groups += kv->group[i].groups;
    uint64_t apart = vp_above(printed, kv->tokens) + vp_above(kv->tokens, printed);
    if (!is_vllm(a) || groups <= 1 || kv->blocks == 0 || apart <= kv->tokens / 10)
        return;
    const char *how = by_length
                          ? vp_arena_printf(a->ctx->arena, "concurrency x max_model_len %" PRIu64,
                                            a->scenario->engine.max_model_len)
                          : vp_arena_printf(a->ctx->arena, "blocks / %" PRIu64 " groups x %" PRIu64,
                                            groups, kv->block_size);
    vp_diag_add(a->ctx->diags, a->id, vp_advice_at(a, VP_F_VERSION),
                "the log will say %s tokens of KV cache, which is %s and no capacity: %s blocks "
                "hold %s.%02" PRIu64 " sequences of %s tokens",
                vp_advice_count(a, printed), how, vp_advice_count(a, kv->blocks),
                vp_advice_count(a, kv->max_concurrency_milli / 1000),
                kv->max_concurrency_milli % 1000 / 10,
                vp_advice_count(a, a->scenario->serve.context));
    vp_diag_hint(
        a->ctx->diags,
        "compare the log's number of blocks (%s) and its maximum concurrency (%s.%02" PRIu64
        "x at %s tokens) instead",
        vp_advice_count(a, kv->blocks), vp_advice_count(a, r->max_concurrency_milli.likely / 1000),
        r->max_concurrency_milli.likely % 1000 / 10,
        vp_advice_count(a, a->scenario->engine.max_model_len));
}

/* ---- experts that do not work are resident all the same ---- */

/* "30.53": billions */
static const char *billions(const struct vp_advice *a, uint64_t n) {
    enum { HUNDREDTH = 10000000 };
    return hundredths(a, n / HUNDREDTH);
}

/* Told when the weights are most of what does not fit and the active part is less than a third:
 * sized by it, a model seems to fit (one calculator said 9.2 GB for 37.4, odysseus#377). */
static void experts_resident(const struct vp_advice *a) {
    const struct vp_result *result = a->result;
    const struct vp_engine_report *r = &result->report;
    const struct vp_model *model = a->scenario->model;
    uint64_t whole = model->checkpoint.known
                         ? model->checkpoint.total_bytes - model->checkpoint.skipped_bytes
                         : vp_weights_unsharded(model).v;
    uint64_t room = vp_above(r->requested_bytes, r->activation_peak.likely + r->non_torch.likely);

    if (result->verdict != VP_DOES_NOT_FIT || result->params_active == 0 ||
        result->params_total / 3 <= result->params_active ||
        r->weights.likely <= r->requested_bytes / 2)
        return;
    vp_diag_add(a->ctx->diags, a->id, vp_advice_at_model(a),
                "all experts must be resident: %s x 10^9 parameters, though %s x 10^9 work for a "
                "token; %s GiB of weights, not %s",
                billions(a, result->params_total), billions(a, result->params_active),
                vp_advice_gib(a, whole),
                vp_advice_gib(a, vp_mul_div(whole, result->params_active, result->params_total)));
    if (room > 0)
        vp_diag_hint(
            a->ctx->diags,
            "the weights in this format need %" PRIu64 " such devices or more; at 4.5 bits "
            "per parameter they would be %s GiB in all",
            vp_ceil_div(whole, room), vp_advice_gib(a, vp_mul_div(result->params_total, 9, 16)));
}

/* ---- the table ---- */

/* Order: hardware, formats, layout, policy. */
static const struct {
    void (*check)(const struct vp_advice *a);
    enum vp_diag_id id;
    bool serving; /* asks about a serving engine's pool, options or forward pass */
} CHECKS[] = {
    {vp_advice_sold_size, VP_D_SOLD_SIZE, false},
    {vp_advice_packages, VP_D_PACKAGES, false},
    {vp_advice_partition, VP_D_PARTITION, false},
    {vp_advice_partition_memory, VP_D_PARTITION_MEMORY, false},
    {vp_advice_fp8_units, VP_D_FP8_EMULATED, false},
    {vp_advice_fp8_fnuz, VP_D_FP8_FNUZ, false},
    {no_backward, VP_D_NO_BACKWARD, true},
    {kv_replicated, VP_D_KV_REPLICATED, true},
    {graphs_outside, VP_D_GRAPHS_OUTSIDE, true},
    {vp_advice_aiter, VP_D_AITER_WORKSPACE, true},
    {sampler_rows, VP_D_SAMPLER_ROWS, true},
    {token_line, VP_D_TOKEN_LINE, true},
    {experts_resident, VP_D_EXPERTS_RESIDENT, true},
    {policy_not_need, VP_D_POLICY_NOT_NEED, true},
};

void vp_advice_add(struct vp_ctx *ctx, const struct vp_result *result) {
    bool serving = vp_text_eq(result->mode, "serve");

    for (size_t i = 0; i < sizeof CHECKS / sizeof *CHECKS; i++) {
        struct vp_advice a = {ctx, result, result->scenario, CHECKS[i].id};
        if (serving || !CHECKS[i].serving)
            CHECKS[i].check(&a);
    }
}
