#include "api/serving_settings.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/memory/engine_stage.h"

enum { BILLION = 1000000000 };

/* Each replica has a scheduler and a pool of its own; more would take minutes and gigabytes. */
enum { MOST_REPLICAS = 4096 };

/* ---- the scheduler ---- */

/* SGLang 0.4 to 0.5, managers/scheduler.py and environ: running requests are expected to write that
 * share of what they may still write, less at every step down to a floor, of which schedule_
 * conservativeness is a factor; max_prefill_tokens 16384 (server_args.py); the largest number of
 * requests: model_executor/model_runner.py. */
static const double NEW_TOKEN_RATIO = 0.7, NEW_TOKEN_FLOOR = 0.14, NEW_TOKEN_STEPS = 600;
enum { SGLANG_PREFILL_TOKENS = 16384, SGLANG_MOST = 4096, SGLANG_LEAST = 2048, SGLANG_SHARE = 512 };

/* vLLM V0, core/scheduler.py: blocks kept free when a request is admitted, of all. */
static const double V0_WATERMARK = 0.01;
enum { V0_LEAST_BUDGET = 2048 };

/* An argument that moves no bytes, and so is no field; NULL: not given. */
static const char *argument(const struct vp_scenario *s, const char *key) {
    for (uint32_t i = 0; i < s->engine.arg_count; i++)
        if (vp_name_eq(s->engine.args[i].key, key))
            return s->engine.args[i].value;
    return NULL;
}

static double real_argument(const struct vp_scenario *s, const char *key, double otherwise) {
    const char *text = argument(s, key);
    double value;
    return text && vp_parse_real(&value, text) ? value : otherwise;
}

/* Counts of the simulation have 32 bits; what is above them is no limit. */
static uint32_t count_of(double value) {
    return value < (double)UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static void vllm(struct vp_scheduler_settings *out, const struct vp_scenario *s) {
    const struct vp_engine *e = &s->engine;
    bool v0 = e->rules.budget <= VP_VLLM_V0;
    const char *policy = argument(s, "scheduling_policy"), *mode = argument(s, "preemption_mode");
    const char *whole = argument(s, "scheduler_reserve_full_isl");

    out->kind = v0 ? VP_SCHED_VLLM_V0 : VP_SCHED_VLLM_V1;
    out->max_running = count_of((double)e->max_num_seqs);
    out->token_budget = count_of((double)e->max_batched_tokens);
    if (v0 && !e->chunked_prefill)
        out->token_budget = count_of(
            fmax((double)e->max_batched_tokens, fmax((double)e->max_model_len, V0_LEAST_BUDGET)));
    out->chunked = e->chunked_prefill;
    out->long_prefill_tokens = count_of(real_argument(s, "long_prefill_token_threshold", 0));
    out->by_priority = policy && vp_name_eq(policy, "priority");
    out->watermark = v0 ? V0_WATERMARK : real_argument(s, "watermark", 0);
    out->whole_prompt_fits = whole ? vp_name_eq(whole, "true") : e->rules.whole_prompts;
    out->swap = v0 && mode && vp_name_eq(mode, "swap");
}

static void sglang(struct vp_scheduler_settings *out, const struct vp_result *plan) {
    const struct vp_scenario *s = plan->scenario;
    const struct vp_engine *e = &s->engine;
    double slots = (double)plan->report.num_gpu_blocks.likely;
    double most =
        fmin(fmax(floor(slots / (double)vp_max(e->max_model_len, 1) * SGLANG_SHARE), SGLANG_LEAST),
             SGLANG_MOST);
    const char *enabled = argument(s, "enable_priority_scheduling");

    out->kind = VP_SCHED_SGLANG;
    out->max_running = count_of(
        e->max_running > 0 ? (double)e->max_running / (double)vp_max(s->parallel.attention_data, 1)
                           : most);
    out->token_budget = count_of(real_argument(s, "max_prefill_tokens", SGLANG_PREFILL_TOKENS));
    out->chunked = e->chunked_prefill;
    out->chunk_tokens = e->chunked_prefill ? count_of((double)e->max_batched_tokens) : 0;
    out->new_token_ratio =
        fmin(NEW_TOKEN_RATIO * real_argument(s, "schedule_conservativeness", 1), 1);
    out->min_new_token_ratio = out->new_token_ratio * NEW_TOKEN_FLOOR;
    out->new_token_ratio_decay =
        (out->new_token_ratio - out->min_new_token_ratio) / NEW_TOKEN_STEPS;
    out->by_priority = enabled && vp_name_eq(enabled, "true");
}

static void llama(struct vp_scheduler_settings *out, const struct vp_scenario *s) {
    out->kind = VP_SCHED_LLAMA;
    out->max_running = count_of((double)vp_max(s->llama.slots, 1));
    out->token_budget = count_of((double)s->llama.batch);
    out->chunked = true;
}

static void set_scheduler(struct vp_serving_copy *c) {
    const struct vp_scenario *s = c->plan->scenario;
    struct vp_scheduler_settings *out = &c->scheduler;
    double ranks = (double)c->time.ranks;

    out->max_model_len = count_of((double)s->engine.max_model_len);
    switch (s->engine.kind) {
    case VP_ENGINE_VLLM:
        vllm(out, s);
        break;
    case VP_ENGINE_SGLANG:
        sglang(out, c->plan);
        break;
    case VP_ENGINE_LLAMA_CPP:
    case VP_ENGINE_OLLAMA:
        llama(out, s);
        break;
    default:
        out->kind = VP_SCHED_STATIC;
        out->max_running = count_of((double)s->serve.concurrency);
        break;
    }
    /* data ranks that pass the layers together are one engine with the slots of all */
    out->max_running = count_of(out->max_running * ranks);
    out->token_budget = count_of(out->token_budget * ranks);
    out->chunk_tokens = count_of(out->chunk_tokens * ranks);
    out->adapters = s->lora.enabled ? count_of((double)s->lora.slots) : 0;
    out->draft_tokens = count_of((double)c->time.draft_tokens);
    out->acceptance = (double)s->draft.acceptance_ppb / BILLION;
}

/* ---- the cache ---- */

/* A second cache in host memory, of which every rank holds its part of a block. */
static void set_host_cache(struct vp_serving_copy *c, const struct vp_kv_plan *kv) {
    const struct vp_scenario *s = c->plan->scenario;
    double ranks = (double)vp_max(s->parallel.tensor * s->parallel.pipeline, 1);
    double block = (double)kv->token_bytes * c->cache.block_tokens;
    struct vp_kernels kernels = vp_kernels_of(s);

    if (s->offload.kv_bytes == 0 || !(block > 0) || !c->cache.prefix_caching)
        return;
    c->cache.host_blocks = (uint64_t)((double)s->offload.kv_bytes / ranks / block);
    c->cache.host_block_us = vp_host_copy_time(&kernels, block).likely;
}

static void set_cache(struct vp_serving_copy *c) {
    const struct vp_scenario *s = c->plan->scenario;
    struct vp_stage stage =
        vp_stage_split(s->model->layer_count, (uint32_t)s->parallel.pipeline, 0);
    struct vp_kv_plan kv;

    if (vp_engine_is_llama(s->engine.kind)) { /* cells of single tokens */
        const struct vp_llama_plan *plan = c->plan->llama;
        c->cache =
            (struct vp_cache_settings){.units = plan->n_ctx,
                                       .block_tokens = 1,
                                       .group = {{.kind = VP_PAGES_FULL, .block = 1, .units = 1}},
                                       .groups = 1,
                                       .prefix_caching = false};
        uint64_t slots = s->llama.unified ? 1 : vp_max(s->llama.slots, 1);
        uint64_t each = plan->n_ctx / slots;
        c->scheduler.max_model_len = count_of((double)each);
        return;
    }
    vp_kv_plan_make(&kv, s, &stage);
    vp_cache_settings_of(&c->cache, &kv, c->plan->report.num_gpu_blocks.likely * c->time.ranks);
    c->cache.prefix_caching = s->engine.prefix_caching && s->engine.kind != VP_ENGINE_TRANSFORMERS;
    set_host_cache(c, &kv);
}

/* ---- one copy ---- */

static bool refuse(struct vp_ctx *ctx, const struct vp_scenario *s, enum vp_field field,
                   enum vp_diag_id id, const char *what, const char *hint) {
    vp_diag_add(ctx->diags, id, &s->source[field].pos, "%s", what);
    if (hint)
        vp_diag_hint(ctx->diags, "%s", hint);
    return false;
}

/* What llama.cpp keeps on the host or on several cards has times of its own, which the simulation
 * does not know. */
static bool check_llama(struct vp_ctx *ctx, const struct vp_result *plan) {
    const struct vp_scenario *s = plan->scenario;

    if (!plan->llama)
        return true;
    if (plan->llama->gpus != 1 || plan->llama->gpu_layers < plan->llama->layer_slots ||
        plan->llama->host_experts > 0 || s->llama.cpu_moe || s->llama.cpu_moe_layers > 0 ||
        s->llama.overrides > 0 || s->llama.no_kv_offload)
        return refuse(ctx, s, VP_F_N_GPU_LAYERS, VP_D_UNMODELLED,
                      "traffic is simulated for llama.cpp and ollama only with all layers and the "
                      "cache on one GPU",
                      "`vramplan plan` has times for one request");
    return true;
}

static bool make_copy(struct vp_ctx *ctx, struct vp_serving_copy *out,
                      const struct vp_result *plan) {
    const struct vp_scenario *s = plan->scenario;

    *out = (struct vp_serving_copy){.plan = plan, .gpus = s->hardware.count};
    if (s->training)
        return refuse(ctx, s, VP_F_MICRO_BATCH, VP_D_CONTRADICTION,
                      "a training run serves no requests", "`vramplan timeline` shows its step");
    if (!check_llama(ctx, plan))
        return false;
    if (!vp_step_time_make(ctx->arena, &out->time, s))
        return refuse(ctx, s, VP_F_GPU, VP_D_UNMODELLED,
                      vp_arena_printf(ctx->arena, "no traffic is simulated: %s", out->time.why),
                      NULL);
    if (out->time.draft_tokens > 0 && s->draft.acceptance_ppb == 0)
        return refuse(ctx, s, VP_F_DRAFT_TOKENS, VP_D_MISSING_VALUE,
                      "how many drafted tokens are right decides how fast it is, and is not said",
                      "serve.draft.acceptance: 0.7 (engines log it as the acceptance rate)");
    out->engines = vp_max(out->time.copies, 1);
    set_scheduler(out);
    set_cache(out);
    if (out->cache.units > 0)
        return true;
    return refuse(ctx, s, VP_F_GPU, VP_D_BAD_VALUE,
                  "the set-up leaves no room for a cache: nothing can be served",
                  "`vramplan fit` says what to change");
}

/* ---- the whole ---- */

static enum vp_routing routing_of(const char *name) {
    static const struct {
        const char *name;
        enum vp_routing routing;
    } ROWS[] = {{"round_robin", VP_ROUTE_ROUND_ROBIN},
                {"least_requests", VP_ROUTE_LEAST_REQUESTS},
                {"least_tokens", VP_ROUTE_LEAST_TOKENS},
                {"prefix_affinity", VP_ROUTE_PREFIX}};

    for (size_t i = 0; name && i < sizeof ROWS / sizeof *ROWS; i++)
        if (vp_text_eq(name, ROWS[i].name))
            return ROWS[i].routing;
    return VP_ROUTE_ROUND_ROBIN;
}

/* Caches go from the ranks of a prefill copy to those of a decode copy side by side: each sends its
 * part over its own link. */
static bool set_link(struct vp_ctx *ctx, struct vp_serving *out) {
    const struct vp_scenario *s = out->serve.plan->scenario;
    const struct vp_disaggregation *d = &s->traffic.disaggregation;
    double gbs = d->link_gbs > 0 ? d->link_gbs : s->hardware.internode_gbs;

    out->sim.link.bytes_per_token =
        (double)vp_max(out->prefill.plan->kv.bytes_per_token, out->serve.plan->kv.bytes_per_token);
    out->sim.link.bytes_per_us = gbs * 1e3;
    if (gbs > 0)
        return true;
    return refuse(ctx, s, VP_F_DISAGGREGATED, VP_D_MISSING_VALUE,
                  "how fast caches go from prefill to decode copies is not said",
                  "serve.disaggregated.link_gbs, or hardware.internode_gbs: GB/s of one device");
}

bool vp_serving_make(struct vp_ctx *ctx, struct vp_serving *out, const struct vp_result *plan,
                     const struct vp_result *prefill) {
    const struct vp_scenario *s = plan->scenario;
    const struct vp_disaggregation *d = &s->traffic.disaggregation;

    *out = (struct vp_serving){.replicas = vp_max(s->serve.replicas, 1)};
    if (!make_copy(ctx, &out->serve, plan))
        return false;
    if (prefill) {
        if (s->serve.replicas > 1)
            return refuse(ctx, s, VP_F_REPLICAS, VP_D_CONTRADICTION,
                          "serve.replicas counts copies that do both, serve.disaggregated those "
                          "that do one",
                          "say the replicas of prefill and decode");
        if (!make_copy(ctx, &out->prefill, prefill) || !set_link(ctx, out))
            return false;
        out->replicas = d->decode_replicas;
        out->prefill_replicas = d->prefill_replicas;
    }
    if (out->replicas > MOST_REPLICAS || out->prefill_replicas > MOST_REPLICAS)
        return refuse(ctx, s, VP_F_REPLICAS, VP_D_CAP,
                      vp_arena_printf(ctx->arena,
                                      "%" PRIu64 " replicas are more than are simulated",
                                      vp_max(out->replicas, out->prefill_replicas)),
                      vp_arena_printf(ctx->arena,
                                      "at most %d; simulate a share of them under that share of "
                                      "the traffic (--rate-scale)",
                                      (int)MOST_REPLICAS));
    out->gpus = out->serve.gpus * out->replicas + out->prefill.gpus * out->prefill_replicas;
    out->sim.disaggregated = prefill != NULL;
    out->sim.routing = routing_of(s->serve.routing);
    out->sim.classes = s->traffic.classes ? s->traffic.classes : 1;
    return true;
}

/* Blocks at an end of the plan's interval, in proportion: units may be counted otherwise. */
static uint64_t units_at(const struct vp_serving_copy *c, enum vp_serving_end end) {
    const struct vp_amount *blocks = &c->plan->report.num_gpu_blocks;
    uint64_t wanted = end == VP_SERVING_FAST   ? blocks->high
                      : end == VP_SERVING_SLOW ? blocks->low
                                               : blocks->likely;

    if (blocks->likely == 0 || c->plan->llama)
        return c->cache.units;
    return vp_max((uint64_t)((double)c->cache.units * ((double)wanted / (double)blocks->likely)),
                  1);
}

static struct vp_pool_settings pool_at(const struct vp_serving_copy *c, uint64_t copies,
                                       enum vp_serving_end end, struct vp_step_time *time) {
    struct vp_pool_settings pool = {
        .replicas = (uint32_t)(copies * c->engines), .scheduler = c->scheduler, .cache = c->cache};

    *time = c->time;
    if (end != VP_SERVING_LIKELY && time->spread > 0)
        time->factor *= end == VP_SERVING_FAST ? 1 / time->spread : time->spread;
    vp_step_clock(&pool.clock, time);
    pool.cache.units = units_at(c, end);
    return pool;
}

struct vp_sim_settings vp_serving_at(const struct vp_serving *serving, enum vp_serving_end end,
                                     struct vp_step_time times[2]) {
    struct vp_sim_settings sim = serving->sim;

    sim.serve = pool_at(&serving->serve, serving->replicas, end, &times[0]);
    if (sim.disaggregated)
        sim.prefill = pool_at(&serving->prefill, serving->prefill_replicas, end, &times[1]);
    return sim;
}

enum vp_basis vp_serving_basis(const struct vp_serving *serving) {
    enum vp_basis basis = serving->serve.time.basis;

    if (serving->prefill.plan && serving->prefill.time.basis < basis)
        basis = serving->prefill.time.basis;
    return basis;
}
