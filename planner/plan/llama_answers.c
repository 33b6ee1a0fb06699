#include "planner/plan/llama_answers.h"

#include <inttypes.h>
#include <string.h>

#include "planner/base/units.h"
#include "planner/model/requantise.h"
#include "planner/plan/evaluate_parts.h"
#include "planner/plan/pool_answers.h"

enum { MOST_SUGGESTIONS = 8, MOST_SLOTS = 256 /* LLAMA_MAX_SEQ */, CONTEXT_STEP = 256 };

/* ---- the same set-up with other settings ---- */

/* What the plan was made with, as if the user had said all of it; the model with its table, which
 * then need not be made again. */
static struct vp_scenario settled(struct vp_ctx *ctx, const struct vp_result *out) {
    struct vp_scenario s = *out->scenario;
    struct vp_gguf_table *table = VP_NEW(ctx->arena, struct vp_gguf_table);

    s.model = VP_NEW(ctx->arena, struct vp_model);
    *s.model = *out->scenario->model;
    *table = *out->llama->table;
    s.model->gguf = table;

    s.llama.fit_context = s.llama.fit_layers = false;
    s.llama.context = out->llama->n_ctx;
    s.llama.gpu_layers = out->llama->gpu_layers;
    memcpy(s.llama.gpu_host_experts, out->llama->gpu_host_experts, sizeof s.llama.gpu_host_experts);
    return s;
}

static bool is_shared(const struct vp_scenario *s) {
    return s->llama.unified || s->engine.rules.llama.always_unified;
}

/* Slots of this many tokens each; a shared cache holds one sequence of them, or as many as said. */
static void set_workload(struct vp_scenario *s, uint64_t context, uint64_t slots) {
    s->llama.slots = s->serve.concurrency = slots;
    s->serve.context = context;
    struct vp_sum total = vp_sum_mul(vp_sum(context), is_shared(s) ? 1 : slots);
    s->llama.context = total.overflow ? UINT64_MAX : total.v;
}

static uint64_t slot_context(const struct vp_result *out) {
    uint64_t slots = is_shared(out->scenario) ? 1 : vp_max(out->scenario->llama.slots, 1);

    return out->llama->n_ctx / slots;
}

/* Evaluates in passing; false when it does not even count. */
static bool try_out(struct vp_arena *arena, const struct vp_scenario *scenario, uint64_t *out_need,
                    int64_t *out_headroom, enum vp_verdict *out_verdict) {
    struct vp_arena_mark mark = vp_arena_mark(arena);
    struct vp_result plan;

    memset(&plan, 0, sizeof plan);
    plan.scenario = scenario;
    plan.ledger.arena = arena;
    bool ok = vp_evaluate_llama(arena, &plan) && !plan.llama->refused;
    if (ok) {
        *out_need = plan.devices[plan.worst].need.likely;
        *out_headroom = plan.headroom_bytes;
        *out_verdict = plan.verdict;
    }
    vp_arena_rewind(arena, mark);
    return ok;
}

static bool has_room(struct vp_arena *arena, const struct vp_scenario *scenario) {
    uint64_t need;
    int64_t headroom;
    enum vp_verdict verdict;

    return try_out(arena, scenario, &need, &headroom, &verdict) && headroom >= 0;
}

/* ---- what more would cost ---- */

static uint64_t need_of(struct vp_arena *arena, const struct vp_scenario *scenario) {
    uint64_t need = 0;
    int64_t headroom;
    enum vp_verdict verdict;

    return try_out(arena, scenario, &need, &headroom, &verdict) ? need : 0;
}

/* Largest number of steps in [0, limit] with room; the need never falls with either. */
static uint64_t largest(struct vp_arena *arena, const struct vp_scenario *base, bool contexts,
                        uint64_t other, uint64_t limit) {
    uint64_t fits = 0, beyond = limit + 1;

    while (beyond - fits > 1) {
        uint64_t middle = beyond == limit + 1 ? limit : fits + (beyond - fits) / 2;
        struct vp_scenario s = *base;
        set_workload(&s, contexts ? middle * CONTEXT_STEP : other, contexts ? other : middle);
        if (has_room(arena, &s))
            fits = middle;
        else
            beyond = middle;
    }
    return fits;
}

static void set_prices(struct vp_ctx *ctx, struct vp_result *out) {
    enum { MORE = 1024 };
    struct vp_scenario base = settled(ctx, out), longer = base, wider = base;
    struct vp_prices *prices = &out->prices;
    uint64_t context = slot_context(out), slots = vp_max(base.llama.slots, 1);
    uint64_t model = base.model->max_position, limit = model > 0 ? model : UINT64_C(1) << 24;

    if (out->llama->n_ctx == 0)
        return;
    set_workload(&longer, context + MORE, slots);
    set_workload(&wider, context, slots + 1);
    uint64_t now = out->devices[out->worst].need.likely;
    prices->per_1k_context = vp_above(need_of(ctx->arena, &longer), now);
    prices->per_sequence = vp_above(need_of(ctx->arena, &wider), now);
    prices->max_context =
        largest(ctx->arena, &base, true, slots, limit / CONTEXT_STEP) * CONTEXT_STEP;
    prices->max_concurrency = largest(ctx->arena, &base, false, context, MOST_SLOTS);
    prices->context_capped =
        model > 0 && prices->max_context > 0 && prices->max_context + CONTEXT_STEP > limit;
    out->kv.max_context = vp_max(prices->max_context, context);
}

/* ---- why ---- */

static const char *gib(struct vp_ctx *ctx, uint64_t bytes) {
    return vp_format_gib(ctx->arena, bytes, 2);
}

/* The GPU with the least room at the high end of its need. */
static uint32_t tightest(const struct vp_result *out) {
    uint32_t worst = 0;

    for (uint32_t g = 1; g < out->llama->gpus; g++) {
        const struct vp_device *a = &out->devices[g], *b = &out->devices[worst];
        if ((int64_t)(a->usable_bytes - a->need.high) < (int64_t)(b->usable_bytes - b->need.high))
            worst = g;
    }
    return worst;
}

static const char *buffers_text(struct vp_ctx *ctx, const struct vp_result *out) {
    uint32_t gpu = tightest(out);
    const struct vp_device *device = &out->devices[gpu];
    const struct vp_llama_place *place = &out->llama->place[gpu];

    return vp_arena_printf(
        ctx->arena,
        "%s %s not hold its buffers: model %s, KV cache and states %s, compute %s, runtime %s to "
        "%s GiB, where %s GiB are free",
        place->id, out->verdict == VP_AT_RISK ? "may" : "does",
        gib(ctx, place->buffer[VP_LLAMA_MODEL].likely),
        gib(ctx, place->buffer[VP_LLAMA_KV].likely + place->buffer[VP_LLAMA_STATE].likely),
        gib(ctx, place->buffer[VP_LLAMA_COMPUTE].likely), gib(ctx, place->pool.low),
        gib(ctx, place->pool.high), gib(ctx, device->usable_bytes));
}

static const char *reason_text(struct vp_ctx *ctx, const struct vp_result *out) {
    const struct vp_device *host = &out->devices[out->llama->gpus];

    switch (out->reason) {
    case VP_REASON_REFUSED:
        return out->llama->refused;
    case VP_REASON_BUFFERS:
        return buffers_text(ctx, out);
    case VP_REASON_HOST:
        return vp_arena_printf(ctx->arena,
                               "host memory of %s GiB does not hold what stays there: %s GiB",
                               gib(ctx, host->capacity_bytes), gib(ctx, host->need.likely));
    default:
        return vp_pool_reason(ctx, out);
    }
}

/* ---- what would help ---- */

struct change {
    const char *text, *field, *from, *to, *quality, *speed;
};

static const char *number(struct vp_ctx *ctx, uint64_t n) {
    return vp_arena_printf(ctx->arena, "%" PRIu64, n);
}

/* Keeps a candidate that fits for sure. */
static void consider(struct vp_ctx *ctx, struct vp_result *out, const struct vp_scenario *candidate,
                     const struct change *change) {
    uint64_t need;
    int64_t headroom;
    enum vp_verdict verdict;

    if (out->suggestion_count == MOST_SUGGESTIONS ||
        !try_out(ctx->arena, candidate, &need, &headroom, &verdict) || verdict != VP_FITS)
        return;
    out->suggestions[out->suggestion_count++] = (struct vp_suggestion){.change = change->text,
                                                                       .from = change->from,
                                                                       .to = change->to,
                                                                       .need_bytes = need,
                                                                       .headroom_bytes = headroom,
                                                                       .quality = change->quality,
                                                                       .speed = change->speed,
                                                                       .money = "none",
                                                                       .patch_field = change->field,
                                                                       .patch_value = change->to};
}

static void try_slots(struct vp_ctx *ctx, struct vp_result *out) {
    struct vp_scenario s = settled(ctx, out);
    uint64_t slots = s.llama.slots, context = slot_context(out);

    if (slots < 2)
        return;
    set_workload(&s, context, 1);
    consider(ctx, out, &s,
             &(struct change){"one slot", "engine.args.parallel", number(ctx, slots), "1", "none",
                              "one request at a time"});
}

static void try_batch(struct vp_ctx *ctx, struct vp_result *out) {
    struct vp_scenario s = settled(ctx, out);
    uint64_t tokens = vp_min(s.llama.ubatch, s.llama.batch);

    if (tokens <= 128)
        return;
    s.llama.ubatch = tokens / 4;
    consider(ctx, out, &s,
             &(struct change){"a smaller physical batch", "engine.args.ubatch_size",
                              number(ctx, tokens), number(ctx, tokens / 4), "none",
                              "slower prompts"});
}

static void try_flash(struct vp_ctx *ctx, struct vp_result *out) {
    struct vp_scenario s = settled(ctx, out);

    if (s.llama.flash != VP_FLASH_OFF)
        return;
    s.llama.flash = VP_FLASH_ON;
    consider(ctx, out, &s,
             &(struct change){"flash attention", "engine.args.flash_attn", "off", "on", "none",
                              "mostly faster"});
}

static void try_cache(struct vp_ctx *ctx, struct vp_result *out, enum vp_dtype type,
                      const char *quality) {
    struct vp_scenario s = settled(ctx, out);

    if (s.llama.type_k != VP_DTYPE_FP16 || s.llama.flash == VP_FLASH_OFF)
        return;
    s.llama.type_k = s.llama.type_v = type;
    consider(ctx, out, &s,
             &(struct change){vp_arena_printf(ctx->arena, "a cache in %s", vp_dtype_name(type)),
                              "precision.kv_cache", vp_dtype_name(out->scenario->llama.type_k),
                              vp_dtype_name(type), quality, "some slower"});
}

/* Another file of the same model. Only where there is none yet: a file's own mix is not known of
 * other formats. */
static void try_weights(struct vp_ctx *ctx, struct vp_result *out, const char *format,
                        const char *quality) {
    const struct vp_model *model = out->scenario->model;
    struct vp_scenario s = settled(ctx, out);

    if (model->gguf || vp_model_is_quantised(model))
        return;
    s.model->gguf = NULL;
    s.model->blocks = VP_NEW_ARRAY(ctx->arena, model->block_count, struct vp_block);
    if (model->block_count > 0)
        memcpy(s.model->blocks, model->blocks, model->block_count * sizeof *model->blocks);
    s.model->extra_count = 0; /* encoders are files of their own here */
    s.precision.weights = format;
    if (vp_model_requantise(ctx, &s) != VP_OK)
        return;
    consider(ctx, out, &s,
             &(struct change){vp_arena_printf(ctx->arena, "weights in %s", format),
                              "precision.weights", out->scenario->precision.weights, format,
                              quality, "faster answers"});
}

static void try_context(struct vp_ctx *ctx, struct vp_result *out) {
    struct vp_scenario s = settled(ctx, out);
    uint64_t context = vp_min(out->prices.max_context, slot_context(out));

    /* what fits by the likely figures may not for sure */
    for (int i = 0; i < 3 && context >= 2 * CONTEXT_STEP; i++) {
        uint64_t less = context * (uint64_t)(19 - i) / 20 / CONTEXT_STEP * CONTEXT_STEP;
        uint32_t before = out->suggestion_count;
        set_workload(&s, less, vp_max(s.llama.slots, 1));
        consider(ctx, out, &s,
                 &(struct change){"a shorter context", "engine.args.ctx_size",
                                  number(ctx, out->llama->n_ctx), number(ctx, s.llama.context),
                                  "forgets earlier", "none"});
        if (out->suggestion_count > before)
            return;
    }
}

static bool fits_for_sure(struct vp_ctx *ctx, const struct vp_scenario *s) {
    uint64_t need;
    int64_t headroom;
    enum vp_verdict verdict;

    return try_out(ctx->arena, s, &need, &headroom, &verdict) && verdict == VP_FITS;
}

/* Experts of the fewest layers, else the fewest whole layers, that have to stay on the host. */
static void try_host(struct vp_ctx *ctx, struct vp_result *out) {
    struct vp_scenario s = settled(ctx, out);
    uint64_t layers = s.model->layer_count, low = 0, high = layers;
    bool experts = vp_model_has_experts(s.model);

    if (out->llama->gpus == 0)
        return;
    if (!experts)
        high = vp_min(s.llama.gpu_layers, layers + 1);
    uint64_t all = high;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (experts)
            s.llama.cpu_moe_layers = middle;
        else
            s.llama.gpu_layers = all - middle;
        if (fits_for_sure(ctx, &s))
            high = middle;
        else
            low = middle + 1;
    }
    uint64_t value = experts ? high : all - high;
    if (experts)
        s.llama.cpu_moe_layers = value;
    else
        s.llama.gpu_layers = value;
    consider(
        ctx, out, &s,
        &(struct change){
            experts ? "experts of the first layers on the host" : "fewer layers on the GPU",
            experts ? "engine.args.n_cpu_moe" : "engine.args.n_gpu_layers",
            number(ctx, experts ? out->scenario->llama.cpu_moe_layers : out->llama->gpu_layers),
            number(ctx, value), "none", "slower: the host computes them"});
}

void vp_llama_suggest(struct vp_ctx *ctx, struct vp_result *out) {
    out->suggestions = VP_NEW_ARRAY(ctx->arena, MOST_SUGGESTIONS, struct vp_suggestion);
    if (out->verdict == VP_FITS || out->reason == VP_REASON_BUDGET)
        return;
    try_weights(ctx, out, "q8_0", "hardly measurable");
    try_weights(ctx, out, "q4_k", "small");
    try_flash(ctx, out);
    try_slots(ctx, out);
    try_batch(ctx, out);
    try_cache(ctx, out, VP_DTYPE_Q8_0, "hardly measurable");
    try_cache(ctx, out, VP_DTYPE_Q4_0, "noticeable");
    try_context(ctx, out);
    try_host(ctx, out);
}

/* An APU's limit is a setting of the kernel. */
static void note_pool(struct vp_ctx *ctx, const struct vp_result *out) {
    enum { PAGE = 4096 };
    const struct vp_hardware *hardware = &out->scenario->hardware;
    const struct vp_device *device = &out->devices[out->worst];

    if (out->verdict == VP_FITS || out->reason != VP_REASON_BUFFERS || out->llama->gpus == 0 ||
        hardware->gpu.gtt_ppb == 0)
        return;
    uint64_t wanted = device->need.high + vp_above(device->capacity_bytes, device->usable_bytes);
    vp_diag_add(ctx->diags, VP_D_APU_POOL, &out->scenario->source[VP_F_MEMORY].pos,
                "%s GiB of this APU's memory would be enough, %s GiB is its limit now",
                gib(ctx, wanted), gib(ctx, device->capacity_bytes));
    vp_diag_hint(ctx->diags,
                 "ttm.pages_limit=%" PRIu64 " on the kernel's command line allows that, if the "
                 "machine has it beside the system and %s GiB of pinned memory",
                 vp_ceil_div(wanted, PAGE), gib(ctx, out->devices[out->llama->gpus].need.likely));
}

/* llama.cpp starts with less memory than it maps: the system drops pages of the file and reads them
 * again. Source: llama.cpp's llama-mmap.cpp, mmap(2) of a file that is only read. */
static void note_paged(struct vp_ctx *ctx, const struct vp_result *out) {
    const struct vp_llama_plan *plan = out->llama;
    uint64_t mapped = 0, memory = out->devices[plan->gpus].capacity_bytes;

    if (plan->paged_bytes == 0)
        return;
    for (uint32_t p = plan->gpus; p < plan->places; p++)
        mapped += plan->place[p].mapped_bytes;
    vp_diag_add(ctx->diags, VP_D_HOST_PAGED, &out->scenario->source[VP_F_HOST_MEMORY].pos,
                "%s GiB of weights are mapped from the file, and host memory of %s GiB has room "
                "for %s of them: %s GiB or more are read from the disk again and again",
                gib(ctx, mapped), gib(ctx, memory), gib(ctx, vp_above(mapped, plan->paged_bytes)),
                gib(ctx, plan->paged_bytes));
    vp_diag_hint(ctx->diags,
                 "host memory above %s GiB, %sor fewer bits per weight; without mmap it would not "
                 "load at all",
                 gib(ctx, memory + plan->paged_bytes),
                 plan->gpus > 0 ? "more layers on the GPUs, " : "");
}

/* One sequence of the whole cache, as people compute it. */
static void set_first_order(struct vp_result *out) {
    const struct vp_scenario *scenario = out->scenario;
    struct vp_scenario whole = *scenario;

    whole.serve.context = out->llama->n_ctx;
    whole.serve.concurrency = 1;
    whole.parallel.data = 1;
    out->scenario = &whole;
    vp_pool_first_order(out);
    out->scenario = scenario;
}

void vp_llama_answers(struct vp_ctx *ctx, struct vp_result *out) {
    note_pool(ctx, out);
    note_paged(ctx, out);
    set_prices(ctx, out);
    if (out->llama->gpus < 2)
        set_first_order(out);
    out->reason_text = reason_text(ctx, out);
}
