/* Servers and processes with a cache pool: stages, pool and verdict. */
#include "planner/memory/engine_stage.h"
#include "planner/memory/offload.h"
#include "planner/plan/evaluate_parts.h"

static void fill_device(struct vp_device *device, const struct vp_result *result, uint32_t index,
                        const struct vp_engine_stage *stage, uint32_t ranks) {
    const struct vp_hardware *hardware = &result->scenario->hardware;

    vp_device_fold(device, &result->ledger, index);
    device->first_rank = index * ranks;
    device->ranks = ranks;
    device->stage = index;
    device->capacity_bytes = hardware->memory_bytes;
    device->usable_bytes = stage->usable_bytes;
    device->reserved_bytes =
        stage->reserved_bytes > 0 ? stage->reserved_bytes : device->need.likely;
}

/* Rows of host memory, which stands behind the stages' devices. */
static void add_host(struct vp_arena *arena, struct vp_result *out,
                     const struct vp_engine_stage *stages, uint32_t count) {
    struct vp_amount *moved = VP_NEW_ARRAY(arena, count, struct vp_amount);

    for (uint32_t i = 0; i < count; i++)
        moved[i] = stages[i].moved;
    vp_offload_host(&out->ledger, out->scenario, moved, count, count);
}

static void fill_host(struct vp_result *out, uint32_t index) {
    struct vp_device *host = &out->devices[index];

    vp_device_fold(host, &out->ledger, index);
    host->host = true;
    host->capacity_bytes = host->usable_bytes = out->scenario->hardware.host_memory_bytes;
    host->reserved_bytes = host->need.likely;
    out->device_count = index + 1;
}

/* vLLM's own figures over all stages: the largest weights, the smallest number of blocks. */
static void report(struct vp_result *out, const struct vp_engine_stage *stages, uint32_t count) {
    struct vp_engine_report *r = &out->report;
    const struct vp_scenario *scenario = out->scenario;
    const struct vp_kv_plan *kv = &stages[0].kv;
    uint32_t tightest = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct vp_engine_stage *s = &stages[i];
        if (s->weights.likely > r->weights.likely || i == 0)
            r->weights = s->weights;
        if (s->activation.likely > r->activation_peak.likely || i == 0)
            r->activation_peak = s->activation;
        if (s->graphs.likely > r->graph.likely || i == 0)
            r->graph = s->graphs;
        r->num_gpu_blocks.low = i ? vp_min(r->num_gpu_blocks.low, s->units.low) : s->units.low;
        r->num_gpu_blocks.high = i ? vp_min(r->num_gpu_blocks.high, s->units.high) : s->units.high;
        if (s->units.likely < stages[tightest].units.likely)
            tightest = i;
    }
    r->non_torch = stages[0].non_torch;
    r->available_kv = stages[tightest].available;
    r->available_negative = stages[tightest].available_negative;
    r->num_gpu_blocks.likely = stages[tightest].units.likely;
    r->block_size = kv->block_size;
    r->requested_bytes = stages[0].requested_bytes;
    r->graphs_in_budget = stages[0].graphs_in_budget;

    uint64_t per_request = vp_kv_units(kv, scenario->engine.max_model_len);
    uint64_t limit = scenario->model->max_position > 0 ? scenario->model->max_position
                                                       : scenario->engine.max_model_len;
    limit = vp_max(limit, scenario->engine.max_model_len);
    const uint64_t *blocks = &r->num_gpu_blocks.low;
    uint64_t *tokens = &r->kv_cache_tokens.low, *milli = &r->max_concurrency_milli.low;
    uint64_t *longest = &r->estimated_max_model_len.low;
    for (int i = 0; i < 3; i++) { /* low, likely, high */
        if (per_request > 0)
            milli[i] = vp_mul_div(blocks[i], 1000, per_request);
        if (scenario->engine.rules.tokens_by_concurrency && per_request > 0)
            tokens[i] = vp_mul_div(blocks[i], scenario->engine.max_model_len, per_request);
        else if (kv->cut == VP_KV_TOKENS)
            tokens[i] = blocks[i];
        else if (kv->cut == VP_KV_PAGED && kv->groups > 0)
            tokens[i] = blocks[i] / kv->groups * kv->block_size * kv->context_ranks;
        longest[i] = vp_kv_longest(kv, blocks[i], 1, limit);
    }
}

static void report_kv(struct vp_result *out, const struct vp_engine_stage *stages, uint32_t count) {
    struct vp_kv_report *r = &out->kv;
    const struct vp_scenario *scenario = out->scenario;
    const struct vp_kv_plan *kv = &stages[0].kv;
    uint64_t per_request = vp_kv_units(kv, scenario->serve.context);

    r->known = kv->types > 0;
    for (uint32_t i = 0; i < count; i++) { /* the fullest rank */
        r->bytes_per_token = vp_max(r->bytes_per_token, stages[i].kv.token_bytes);
        r->state_bytes_per_sequence = vp_max(r->state_bytes_per_sequence, stages[i].kv.state_bytes);
        r->page_bytes = vp_max(r->page_bytes, stages[i].kv.unit_bytes);
    }
    r->block_size = kv->block_size;
    r->blocks = out->report.num_gpu_blocks.likely;
    if (per_request > 0)
        r->max_concurrency_milli = vp_mul_div(r->blocks, 1000, per_request);
    if (kv->cut == VP_KV_TOKENS)
        r->tokens = r->blocks;
    else if (kv->cut == VP_KV_PAGED && kv->groups == 1 && kv->type[0].kind <= VP_KV_LATENT)
        r->tokens = r->blocks * kv->block_size * kv->context_ranks;
    else if (per_request > 0)
        r->tokens = vp_mul_div(r->blocks, scenario->serve.context, per_request);
    r->max_context = out->report.estimated_max_model_len.likely;
    for (uint32_t i = 0; i < kv->types && i < VP_KV_GROUPS; i++) {
        const struct vp_kv_type *type = &kv->type[i];
        struct vp_kv_group *group = &r->group[r->group_count++];
        group->kind = vp_kv_kind_name(type->kind);
        group->layers = type->model_layers;
        group->groups = type->groups;
        group->padding_layers = type->padding;
        group->window = type->window;
        group->bytes_per_token = type->token_bytes;
        group->state_bytes = type->state_bytes;
        group->pages_per_sequence = vp_kv_pages(kv, type, scenario->serve.context);
    }
}

/* Blocks that something needs against the pool's interval: 0 it fits for sure, 1 it may not,
 * 2 it does not. */
static int short_of(const struct vp_amount *blocks, uint64_t needed) {
    return needed <= blocks->low ? 0 : needed <= blocks->high ? 1 : 2;
}

/* A pool that was given in bytes or blocks is taken whatever is free: as short_of. */
static int short_for_pool(const struct vp_scenario *scenario, const struct vp_engine_stage *s,
                          uint64_t free_bytes) {
    const struct vp_engine *engine = &scenario->engine;
    const bool *measured = scenario->measured.known;
    struct vp_sum pool = vp_sum(engine->kv_cache_bytes);

    if (scenario->engine.kind != VP_ENGINE_VLLM)
        return 0; /* SGLang's max_total_tokens only lowers the pool */
    if (measured[VP_M_AVAILABLE_KV] || measured[VP_M_BLOCKS])
        return 0; /* seen to be there */
    if (engine->blocks_override > 0 && engine->kind == VP_ENGINE_VLLM)
        pool = vp_sum_mul(vp_sum(engine->blocks_override), s->kv.unit_bytes);
    if (pool.v == 0 && !pool.overflow)
        return 0;
    struct vp_sum low = vp_sum_add(vp_sum_add(pool, s->weights.low), s->non_torch.low);
    struct vp_sum high = vp_sum_add(vp_sum_add(pool, s->weights.high), s->non_torch.high);
    low = vp_sum_add(low, s->graphs.low);
    high = vp_sum_add(vp_sum_add(high, s->activation.high), s->graphs.high);
    if (low.overflow || low.v > free_bytes)
        return 2;
    return high.overflow || high.v > free_bytes;
}

/* Host memory, where its size is known: as short_of. */
static int short_of_host(const struct vp_result *out) {
    const struct vp_device *last = &out->devices[out->device_count - 1];

    if (!last->host || last->capacity_bytes == 0)
        return 0;
    return vp_need_over(last->need, last->capacity_bytes);
}

/* SGLang keeps recurrent states in a pool of their own; with its prefix cache a running request
 * takes three to five of its slots, without it one. */
static int short_of_slots(const struct vp_scenario *scenario, const struct vp_engine_stage *stage) {
    const uint64_t billion = 1000000000;
    uint64_t share = scenario->engine.rules.state_share_ppb;
    uint64_t sequences = vp_rank_sequences(scenario);
    bool shared = scenario->engine.prefix_caching;

    if (!stage->kv.separate_state || stage->kv.state_bytes == 0)
        return 0;
    struct vp_amount slots = {
        vp_mul_div(stage->available.low, share, billion + share) / stage->kv.state_bytes, 0,
        vp_mul_div(stage->available.high, share, billion + share) / stage->kv.state_bytes};
    slots.low /= shared ? 5 : 1;
    slots.high /= shared ? 3 : 1;
    return short_of(&slots, sequences);
}

/* Would the engine start, and does the workload fit? The first reason of the worst kind is kept. */
static void judge(struct vp_result *out, const struct vp_engine_stage *stages) {
    const struct vp_scenario *scenario = out->scenario;
    const struct vp_hardware *hardware = &scenario->hardware;
    const struct vp_engine_stage *s = &stages[out->worst];
    const struct vp_amount *blocks = &out->report.num_gpu_blocks;
    uint64_t free_bytes = vp_above(hardware->memory_bytes, hardware->reserved_bytes);
    bool vllm = scenario->engine.kind == VP_ENGINE_VLLM;
    bool v1 = vllm && scenario->engine.rules.budget >= VP_VLLM_V1_USED;
    uint64_t one = vp_kv_units(&s->kv, scenario->engine.max_model_len);
    uint64_t all = vp_kv_units(&s->kv, scenario->serve.context);
    struct vp_sum wanted = vp_sum_mul(vp_sum(all), vp_rank_sequences(scenario));

    out->verdict = VP_FITS;
    out->reason = VP_REASON_NONE;
    if (hardware->reserved_bytes > 0 && free_bytes < s->requested_bytes && v1 && !s->pinned)
        vp_verdict_settle(out, VP_REASON_NO_FREE_MEMORY, 2);
    /* V0 did not look, and ran out of it later. What the profile run took is free again by then. */
    if (hardware->reserved_bytes > 0 && vllm && !v1 && !s->pinned)
        vp_verdict_settle(out, VP_REASON_NO_FREE_MEMORY,
                          s->requested_bytes + s->graphs.low > free_bytes + s->activation.high ? 2
                          : s->requested_bytes + s->graphs.likely > free_bytes                 ? 1
                                                                                               : 0);
    for (uint32_t i = 0; i < scenario->parallel.pipeline; i++)
        vp_verdict_settle(out, VP_REASON_NO_FREE_MEMORY,
                          short_for_pool(scenario, &stages[i], free_bytes));
    vp_verdict_settle(out, VP_REASON_HOST, short_of_host(out));
    if (out->device_count > 0 && s->kv.types > 0 && out->report.available_kv.likely == 0)
        vp_verdict_settle(out, VP_REASON_WEIGHTS, out->report.available_negative ? 2 : 1);
    else if (s->kv.types == 0 && out->headroom_bytes < 0)
        vp_verdict_settle(
            out, VP_REASON_WEIGHTS,
            out->devices[out->worst].need.low > out->devices[out->worst].usable_bytes ? 2 : 1);
    if (scenario->engine.kind != VP_ENGINE_TRANSFORMERS) /* it admits what it is given */
        vp_verdict_settle(out, VP_REASON_ADMISSION, short_of(blocks, one));
    vp_verdict_settle(out, VP_REASON_CONCURRENCY, wanted.overflow ? 2 : short_of(blocks, wanted.v));
    /* The profile run's activations are free again while graphs are captured. */
    if (vllm && !s->graphs_in_budget &&
        s->requested_bytes + s->graphs.likely > free_bytes + s->activation.likely)
        vp_verdict_settle(out, VP_REASON_GRAPHS, 1);
    if (s->kv.state_bytes > 0 && v1 && scenario->engine.max_num_seqs > blocks->likely)
        vp_verdict_settle(out, VP_REASON_STATE_SLOTS, 1);
    vp_verdict_settle(out, VP_REASON_STATE_SLOTS, short_of_slots(scenario, s));
    /* SGLang: forward passes live in what the static share leaves */
    if (scenario->engine.kind == VP_ENGINE_SGLANG &&
        s->requested_bytes + s->non_torch.likely + s->activation.likely + s->graphs.likely >
            free_bytes)
        vp_verdict_settle(out, VP_REASON_TRANSIENTS, 1);
    /* the workload fills the pool, and with what is beside it the card: no plan that fits is short
     */
    if (out->headroom_bytes < 0)
        vp_verdict_settle(out, vllm ? VP_REASON_GRAPHS : VP_REASON_TRANSIENTS, 1);
    vp_verdict_budget(out);
}

bool vp_evaluate_pool(struct vp_arena *arena, struct vp_result *out) {
    const struct vp_scenario *scenario = out->scenario;
    uint32_t count = (uint32_t)scenario->parallel.pipeline;
    uint32_t ranks = (uint32_t)(scenario->parallel.tensor * scenario->parallel.data);
    struct vp_engine_stage *stages = VP_NEW_ARRAY(arena, count, struct vp_engine_stage);
    bool overflow = false;

    out->devices = VP_NEW_ARRAY(arena, count + 1, struct vp_device);
    out->device_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct vp_stage stage = vp_stage_split(scenario->model->layer_count, count, i);
        vp_engine_stage_make(&stages[i], &out->ledger, scenario, &stage, i);
        overflow |= stages[i].kv.overflow || stages[i].kv.too_many_types;
    }
    if (vp_offload_any(scenario))
        add_host(arena, out, stages, count);
    if (overflow || out->ledger.overflow || vp_ledger_too_large(&out->ledger))
        return false;
    if (vp_offload_any(scenario))
        fill_host(out, count);
    for (uint32_t i = 0; i < count; i++) {
        fill_device(&out->devices[i], out, i, &stages[i], ranks);
        if (vp_device_headroom(&out->devices[i]) < vp_device_headroom(&out->devices[out->worst]))
            out->worst = i;
    }
    out->headroom_bytes = vp_device_headroom(&out->devices[out->worst]);
    report(out, stages, count);
    report_kv(out, stages, count);
    judge(out, stages);
    return true;
}
