/* The settings of each engine that the user left out. */
#include "planner/import/finish_parts.h"

#include <inttypes.h>

#include "planner/base/sum.h"

enum { BILLION = 1000000000 };

static bool has_block(const struct vp_model *model, bool (*is)(const struct vp_attention *)) {
    for (uint32_t i = 0; i < model->block_count; i++)
        if (is(&model->blocks[i].attention) || is(&model->blocks[i].second))
            return true;
    return false;
}

static bool is_linear(const struct vp_attention *a) { return a->kind == VP_ATTENTION_LINEAR; }

static bool is_windowed(const struct vp_attention *a) { return a->window > 0; }

static bool keeps_part(const struct vp_attention *a) { return a->window > 0 || a->chunk > 0; }

/* ---- vLLM ---- */

/* Before V1, vLLM turned chunked prefill on by itself only for long text models without sliding
 * windows (0.4 to 0.10, engine/arg_utils.py). */
static void resolve_chunked(struct vp_scenario *s) {
    enum { LONG_TOKENS = 32768 };
    struct vp_engine *e = &s->engine;
    bool early = e->rules.budget <= VP_VLLM_V0 && !e->rules.default_chunked;
    bool long_text = e->max_model_len > LONG_TOKENS && !s->model->multimodal &&
                     !has_block(s->model, is_windowed);
    if (early && long_text)
        vp_finish_flag(s, VP_F_CHUNKED_PREFILL, &e->chunked_prefill, true,
                       "this version turns it on above 32768 tokens of max_model_len");
    else
        vp_finish_flag(s, VP_F_CHUNKED_PREFILL, &e->chunked_prefill, e->rules.default_chunked,
                       "the default of this version");
}

static void resolve_batch(struct vp_ctx *ctx, struct vp_scenario *s) {
    static const char ON_CARD[] = "the default of vllm serve in this version on this card";
    struct vp_engine *e = &s->engine;
    bool seqs_given = vp_scenario_is_given(s, VP_F_MAX_NUM_SEQS);
    uint64_t tokens = e->rules.max_batched_tokens;
    const char *why = ON_CARD;
    if (!e->chunked_prefill && e->max_model_len > tokens) {
        tokens = e->max_model_len;
        why = "max_model_len: without chunked prefill a prompt is one batch";
    }
    vp_finish_number(s, VP_F_BATCHED_TOKENS, &e->max_batched_tokens, tokens, VP_ORIGIN_DEFAULT,
                     why);
    bool fewer = e->max_batched_tokens < e->rules.max_num_seqs;
    vp_finish_number(s, VP_F_MAX_NUM_SEQS, &e->max_num_seqs,
                     fewer ? e->max_batched_tokens : e->rules.max_num_seqs,
                     fewer ? VP_ORIGIN_DERIVED : VP_ORIGIN_DEFAULT,
                     fewer ? "max_num_batched_tokens: each sequence takes one" : ON_CARD);
    if (!vp_scenario_is_given(s, VP_F_BATCHED_TOKENS))
        return;
    const struct vp_pos *pos = &s->source[VP_F_BATCHED_TOKENS].pos;
    if (seqs_given && e->max_batched_tokens < e->max_num_seqs)
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, pos,
                    "max_num_batched_tokens %" PRIu64 " is less than max_num_seqs %" PRIu64
                    ": vllm refuses to start",
                    e->max_batched_tokens, e->max_num_seqs);
    if (!e->chunked_prefill && e->max_batched_tokens < e->max_model_len)
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, pos,
                    "max_num_batched_tokens %" PRIu64 " is less than max_model_len %" PRIu64
                    " without chunked prefill: vllm refuses to start",
                    e->max_batched_tokens, e->max_model_len);
}

/* Versions that know no latent cache: keys and values of every head, padded to a size that the
 * attention kernels have. */
static void expand_latent(struct vp_attention *a, uint64_t head_dim) {
    if (head_dim == 0 || a->kind != VP_ATTENTION_MLA || a->expanded)
        return;
    a->expanded = true;
    a->head_dim = vp_max(a->head_dim, head_dim);
}

static void finish_vllm(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_engine *e = &s->engine;
    for (uint32_t b = 0; b < s->model->block_count; b++) {
        expand_latent(&s->model->blocks[b].attention, e->rules.latent_head_dim);
        expand_latent(&s->model->blocks[b].second, e->rules.latent_head_dim);
    }
    bool linear = has_block(s->model, is_linear);
    vp_finish_number(s, VP_F_UTILIZATION, &e->utilization_ppb, e->rules.utilization_ppb,
                     VP_ORIGIN_DEFAULT, "the default of this version");
    vp_finish_number(s, VP_F_BLOCK_SIZE, &e->block_size, e->rules.block_size, VP_ORIGIN_DEFAULT,
                     "the default of this version on this card");
    vp_finish_flag(s, VP_F_EAGER, &e->enforce_eager, false, "graphs are captured");
    vp_finish_flag(s, VP_F_HYBRID_OFF, &e->hybrid_off, false, "the default of vllm serve");
    vp_finish_flag(s, VP_F_PREFIX_CACHING, &e->prefix_caching,
                   e->rules.default_prefix_caching && !linear,
                   linear ? "vllm turns it on for models with recurrent layers only when asked to"
                          : "the default of this version");
    resolve_chunked(s);
    resolve_batch(ctx, s);
}

/* ---- SGLang ---- */

/* Rows of profiles/engines/sglang.yaml: what the static share leaves for forward passes. */
static uint64_t static_reserve(const struct vp_scenario *s) {
    enum { LEAST_CHUNK = 2048, LARGE_BATCH = 300 };
    const struct vp_rules *rules = &s->engine.rules;
    const struct vp_parallel *p = &s->parallel;
    uint64_t batch = s->engine.max_num_seqs;
    uint64_t chunk =
        s->engine.chunked_prefill ? s->engine.max_batched_tokens : rules->unchunked_tokens;
    struct vp_sum ranks = vp_sum_mul(vp_sum(p->tensor), p->pipeline);
    struct vp_sum sum = vp_sum(rules->static_base_bytes + rules->prefill_graph_bytes);
    sum =
        vp_sum_plus(sum, vp_sum_mul(vp_sum(vp_max(chunk, LEAST_CHUNK)), rules->static_token_bytes));
    sum = vp_sum_plus(sum, vp_sum_mul(vp_sum(batch), rules->static_graph_bytes));
    sum = vp_sum_plus(sum, vp_sum_mul(ranks, rules->static_rank_bytes));
    if (p->attention_data > 1) {
        uint64_t each = rules->static_attention_graph_bytes +
                        (batch > LARGE_BATCH ? rules->static_attention_large_bytes : 0);
        struct vp_sum graphs = vp_sum_mul(vp_sum_mul(vp_sum(batch), p->attention_data), each);
        sum = vp_sum_add(vp_sum_plus(sum, graphs), rules->static_attention_bytes);
    }
    if (s->hardware.memory_bytes > rules->static_least_above_bytes)
        sum.v = vp_max(sum.v, rules->static_least_bytes);
    return sum.overflow ? UINT64_MAX : sum.v;
}

/* 1 - reserve / total with three decimals, in parts per billion. SGLang asks the driver. */
static uint64_t static_share(const struct vp_scenario *s, uint64_t reserve) {
    enum { STEP = BILLION / 1000 };
    bool given = vp_scenario_is_given(s, VP_F_MEMORY) || s->hardware.gpu.driver_mib == 0;
    uint64_t total = given ? s->hardware.memory_bytes : s->hardware.gpu.driver_mib << 20;
    uint64_t left = total > reserve ? vp_mul_div(total - reserve, BILLION, total) : 0;
    return (left + STEP / 2) / STEP * STEP;
}

static void resolve_fraction(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_engine *e = &s->engine;
    const uint64_t mib = UINT64_C(1) << 20;
    uint64_t reserve = static_reserve(s), share = static_share(s, reserve);
    bool seen = s->measured.known[VP_M_AVAILABLE_KV] || s->measured.known[VP_M_BLOCKS];
    const char *why = vp_arena_printf(
        ctx->arena, "1 - %" PRIu64 " MiB reserved for forward passes and graphs / total",
        reserve / mib);
    if (s->model->multimodal) {
        share = vp_mul_div(share, e->rules.vision_share_ppb, BILLION);
        why = vp_arena_printf(ctx->arena, "%s, less for a vision tower of usual size", why);
    }
    vp_finish_number(s, VP_F_UTILIZATION, &e->utilization_ppb, share, VP_ORIGIN_DERIVED, why);
    if (e->utilization_ppb > 0 || seen)
        return;
    vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &s->source[VP_F_BATCHED_TOKENS].pos,
                "the reserve for forward passes (%" PRIu64 " MiB) leaves nothing of the card for a "
                "static share",
                reserve / mib);
    vp_diag_hint(ctx->diags, "a smaller chunked_prefill_size or cuda_graph_max_bs, or "
                             "mem_fraction_static itself");
}

/* Batches: a prefill chunk, and the largest batch that is captured. */
static void resolve_sglang_batch(struct vp_scenario *s) {
    static const char ON_CARD[] = "the default of this version on this card";
    struct vp_engine *e = &s->engine;
    if (!vp_scenario_is_given(s, VP_F_CHUNKED_PREFILL))
        e->chunked_prefill = e->rules.default_chunked;
    if (e->chunked_prefill)
        vp_finish_number(s, VP_F_BATCHED_TOKENS, &e->max_batched_tokens,
                         e->rules.max_batched_tokens, VP_ORIGIN_DEFAULT, ON_CARD);
    else
        vp_finish_number(s, VP_F_BATCHED_TOKENS, &e->max_batched_tokens,
                         vp_max(e->rules.unchunked_tokens, e->max_model_len), VP_ORIGIN_DERIVED,
                         "a whole prompt: prompts are not chunked");
    vp_finish_number(s, VP_F_MAX_NUM_SEQS, &e->max_num_seqs, e->rules.max_num_seqs,
                     VP_ORIGIN_DEFAULT, ON_CARD);
}

/* How pools are shared, where the model has more than one. */
static void resolve_pools(struct vp_scenario *s) {
    static const char VERSION[] = "the default of this version";
    struct vp_engine *e = &s->engine;
    struct vp_rules *rules = &e->rules;
    bool part = has_block(s->model, keeps_part);
    if (part)
        vp_finish_flag(s, VP_F_HYBRID_OFF, &e->hybrid_off, !rules->window_groups,
                       rules->window_groups
                           ? "window layers have a pool of their own"
                           : "this version keeps all tokens in this model's window "
                             "layers");
    if (part && !e->hybrid_off && rules->window_groups)
        vp_finish_number(s, VP_F_WINDOW_SHARE, &e->window_share_ppb, rules->window_share_ppb,
                         VP_ORIGIN_DEFAULT, VERSION);
    if (has_block(s->model, is_linear))
        vp_finish_number(s, VP_F_STATE_SHARE, &e->state_share_ppb, rules->state_share_ppb,
                         VP_ORIGIN_DEFAULT, VERSION);
    if (vp_scenario_is_given(s, VP_F_WINDOW_SHARE))
        rules->window_share_ppb = e->window_share_ppb;
    if (vp_scenario_is_given(s, VP_F_STATE_SHARE))
        rules->state_share_ppb = e->state_share_ppb;
}

static void finish_sglang(struct vp_ctx *ctx, struct vp_scenario *s) {
    static const char VERSION[] = "the default of this version";
    struct vp_engine *e = &s->engine;
    uint64_t running = e->max_running / vp_max(s->parallel.attention_data, 1);
    vp_finish_number(s, VP_F_BLOCK_SIZE, &e->block_size, e->rules.block_size, VP_ORIGIN_DEFAULT,
                     VERSION);
    vp_finish_flag(s, VP_F_EAGER, &e->enforce_eager, false, "graphs are captured");
    vp_finish_flag(s, VP_F_PREFIX_CACHING, &e->prefix_caching, e->rules.default_prefix_caching,
                   VERSION);
    resolve_sglang_batch(s);
    resolve_fraction(ctx, s);
    if (running > 0 && running < e->max_num_seqs) /* the fraction does not know of it */
        vp_finish_number(s, VP_F_MAX_NUM_SEQS, &e->max_num_seqs, running, VP_ORIGIN_DERIVED,
                         "max_running_requests: no larger batch is captured");
    resolve_pools(s);
}

/* ---- transformers ---- */

static void check_devices(struct vp_ctx *ctx, const struct vp_scenario *s) {
    const struct vp_parallel *p = &s->parallel;
    enum vp_field field = p->pipeline > 1 ? VP_F_PIPELINE : p->data > 1 ? VP_F_DATA : VP_F_COUNT;
    if (p->pipeline == 1 && p->data == 1 && (s->hardware.count == 1 || p->tensor > 1))
        return;
    vp_diag_add(ctx->diags, VP_D_UNMODELLED, &s->source[field].pos,
                "%s is %" PRIu64 ": generate over several devices is modelled with tensor "
                "parallelism only, not with layers dealt by device_map",
                vp_field_info(field)->path,
                p->pipeline > 1 ? p->pipeline
                : p->data > 1   ? p->data
                                : s->hardware.count);
    vp_diag_hint(ctx->diags, "hardware: {count: 1}, or parallel: {tensor: N} for tp_plan=\"auto\"");
}

/* No pool and no graphs: one batch of all prompts, then all sequences token by token. */
static void finish_transformers(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_engine *e = &s->engine;
    bool prompt = s->serve.prompt_tokens > 0;
    check_devices(ctx, s);
    e->utilization_ppb = BILLION;
    e->block_size = e->rules.block_size;
    e->enforce_eager = true;
    vp_finish_number(s, VP_F_MAX_NUM_SEQS, &e->max_num_seqs, s->serve.concurrency,
                     VP_ORIGIN_DERIVED, "serve.concurrency: generate takes all as one batch");
    vp_finish_number(s, VP_F_BATCHED_TOKENS, &e->max_batched_tokens, vp_generate_tokens(s),
                     VP_ORIGIN_DERIVED,
                     prompt ? "concurrency x prompt_tokens: the prompts are one batch"
                            : "concurrency x context: prompts may be that long, and are one "
                              "batch");
}

void vp_finish_engine(struct vp_ctx *ctx, struct vp_scenario *s) {
    switch (s->engine.kind) {
    case VP_ENGINE_VLLM:
        finish_vllm(ctx, s);
        break;
    case VP_ENGINE_SGLANG:
        finish_sglang(ctx, s);
        break;
    case VP_ENGINE_TRANSFORMERS:
        finish_transformers(ctx, s);
        break;
    case VP_ENGINE_LLAMA_CPP: /* no pool: finish_llama.c, finish_train.c */
    case VP_ENGINE_OLLAMA:
    case VP_ENGINE_PYTORCH:
    case VP_ENGINE_MEGATRON:
    case VP_ENGINE_DEEPSPEED:
        break;
    }
}
