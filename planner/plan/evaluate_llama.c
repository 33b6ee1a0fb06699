/* llama.cpp and ollama: buffers per device, and whether each device holds its own. */
#include "planner/plan/evaluate_parts.h"

static const struct vp_amount *memory_of(const struct vp_hardware *hardware, uint32_t gpu) {
    for (uint32_t i = 0; i < hardware->group_count; i++) {
        if (gpu < hardware->groups[i].count)
            return &hardware->groups[i].memory;
        gpu -= (uint32_t)hardware->groups[i].count;
    }
    return &hardware->memory;
}

static void fill_gpu(struct vp_result *out, uint32_t index) {
    const struct vp_llama_place *place = &out->llama->place[index];
    struct vp_device *device = &out->devices[index];

    vp_device_fold(device, &out->ledger, index);
    device->first_rank = index;
    device->ranks = 1;
    device->stage = index;
    device->capacity_bytes = place->total_bytes;
    device->usable_bytes = vp_above(place->total_bytes, place->reserved_bytes);
    device->reserved_bytes = device->need.likely;
}

static void fill_host(struct vp_result *out, uint32_t index) {
    struct vp_device *host = &out->devices[index];

    vp_device_fold(host, &out->ledger, index);
    host->host = true;
    host->capacity_bytes = host->usable_bytes = out->scenario->hardware.host_memory_bytes;
    host->reserved_bytes = host->need.likely;
}

/* Over all devices. */
static void report_cache(struct vp_result *out) {
    const struct vp_llama_plan *plan = out->llama;
    struct vp_kv_report *r = &out->kv;

    r->known = true;
    r->bytes_per_token = plan->token_bytes;
    r->state_bytes_per_sequence = plan->state_bytes;
    uint64_t context = vp_min(out->scenario->serve.context, plan->cells);
    r->max_context = context;
    r->block_size = 1;
    r->blocks = r->tokens = plan->n_ctx;
    if (context > 0)
        r->max_concurrency_milli = vp_mul_div(plan->n_ctx, 1000, context);
}

/* Buffers and runtime against what is free: 0 they fit for sure, 1 they may not, 2 they do not. */
static int short_of(const struct vp_result *out, uint32_t gpu) {
    const struct vp_amount *memory = memory_of(&out->scenario->hardware, gpu);
    const struct vp_device *device = &out->devices[gpu];
    uint64_t taken = out->llama->place[gpu].reserved_bytes;

    if (device->need.low > vp_above(memory->high, taken))
        return 2;
    return device->need.high > vp_above(memory->low, taken);
}

/* Of the host's memory. An APU's GPU has none of its own. */
static struct vp_amount host_need(const struct vp_result *out) {
    struct vp_amount need = out->devices[out->llama->gpus].need;
    bool apu = out->llama->gpus > 0 && out->scenario->hardware.gpu.gtt_ppb > 0;

    return apu ? vp_amount_add(need, out->devices[0].need) : need;
}

static uint64_t mapped_bytes(const struct vp_llama_plan *plan) {
    uint64_t mapped = 0;

    for (uint32_t p = plan->gpus; p < plan->places; p++)
        mapped += plan->place[p].mapped_bytes;
    return mapped;
}

static uint64_t paged_bytes(const struct vp_result *out) {
    uint64_t capacity = out->devices[out->llama->gpus].capacity_bytes;
    uint64_t low = host_need(out).low;

    if (capacity == 0 || vp_above(low, mapped_bytes(out->llama)) > capacity)
        return 0; /* it does not load at all */
    return vp_above(low, capacity);
}

/* What is mapped from the file need not all be there at once. */
static int short_of_host(const struct vp_result *out) {
    uint64_t capacity = out->devices[out->llama->gpus].capacity_bytes;
    uint64_t mapped = mapped_bytes(out->llama);
    struct vp_amount need = host_need(out);

    if (capacity == 0)
        return 0;
    if (out->llama->gpus == 0)
        mapped = 0; /* all of it is read for every token */
    if (vp_above(need.low, mapped) > capacity)
        return 2;
    return need.high > capacity;
}

static void judge(struct vp_result *out) {
    out->verdict = VP_FITS;
    out->reason = VP_REASON_NONE;
    if (out->llama->refused)
        vp_verdict_settle(out, VP_REASON_REFUSED, 2);
    for (uint32_t g = 0; g < out->llama->gpus; g++)
        vp_verdict_settle(out, VP_REASON_BUFFERS, short_of(out, g));
    vp_verdict_settle(out, VP_REASON_HOST, short_of_host(out));
    vp_verdict_budget(out);
}

bool vp_evaluate_llama(struct vp_arena *arena, struct vp_result *out) {
    struct vp_llama_plan *plan = VP_NEW(arena, struct vp_llama_plan);

    vp_llama_make(arena, plan, &out->ledger, out->scenario);
    out->llama = plan;
    if (plan->overflow || out->ledger.overflow || vp_ledger_too_large(&out->ledger))
        return false;
    out->device_count = plan->gpus + 1;
    out->devices = VP_NEW_ARRAY(arena, out->device_count, struct vp_device);
    for (uint32_t g = 0; g < plan->gpus; g++) {
        fill_gpu(out, g);
        if (vp_device_headroom(&out->devices[g]) < vp_device_headroom(&out->devices[out->worst]))
            out->worst = g;
    }
    fill_host(out, plan->gpus);
    plan->paged_bytes = paged_bytes(out);
    out->headroom_bytes = vp_device_headroom(&out->devices[out->worst]);
    report_cache(out);
    judge(out);
    return true;
}
