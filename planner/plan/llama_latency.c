#include "planner/plan/llama_latency.h"

#include <math.h>

#include "planner/latency/op_time.h"

/* One decode step of all slots that are busy. */
struct load {
    const struct vp_scenario *scenario;
    const struct vp_llama_plan *plan;
    double slots, past, prompt, output;
};

/* Share of the experts that so many tokens wake: the others are not read. */
static double experts_hit(const struct load *l, double tokens) {
    const struct vp_model *model = l->scenario->model;
    double hit = 1;

    for (uint32_t i = 0; i < model->block_count; i++) {
        const struct vp_moe *moe = &model->blocks[i].moe;
        if (moe->kind != VP_MLP_NONE && moe->experts > 0)
            hit = vp_experts_hit((double)moe->experts, (double)moe->top_k, tokens) /
                  (double)moe->experts;
    }
    return hit;
}

/* Bytes of the weights that a pass of so many tokens reads. */
static double weight_bytes(const struct load *l, const struct vp_llama_place *place,
                           double tokens) {
    return (double)place->read_bytes - (double)place->expert_bytes * (1 - experts_hit(l, tokens));
}

/* Of the group that a GPU belongs to, where not all are alike. */
static const struct vp_gpu *gpu_of(const struct vp_hardware *hardware, int32_t index) {
    uint64_t first = 0;

    for (uint32_t i = 0; i < hardware->group_count; i++) {
        first += hardware->groups[i].count;
        if ((uint64_t)index < first)
            return &hardware->groups[i].gpu;
    }
    return &hardware->gpu;
}

static struct vp_kernels kernels_of(const struct load *l, int32_t index) {
    struct vp_kernels kernels = vp_kernels_of(l->scenario);

    kernels.gpu = gpu_of(&l->scenario->hardware, index);
    if (kernels.gpu != &l->scenario->hardware.gpu)
        kernels.calibration = NULL;
    return kernels;
}

/* Bytes of the cache that a step reads: its cells are filled as far as the context goes. */
static double cache_bytes(const struct load *l, const struct vp_llama_place *place) {
    double share = l->slots * l->past / fmax((double)l->plan->n_ctx, 1);

    return (double)place->buffer[VP_LLAMA_KV].likely * fmin(share, 1) +
           (double)place->buffer[VP_LLAMA_STATE].likely;
}

static struct vp_time decode_time(const struct load *l) {
    struct vp_time sum = {.basis = VP_BASIS_CALIBRATED};

    for (uint32_t i = 0; i < l->plan->places; i++) {
        const struct vp_llama_place *place = &l->plan->place[i];
        if (place->gpu < 0)
            continue;
        struct vp_kernels kernels = kernels_of(l, place->gpu);
        double bytes = weight_bytes(l, place, l->slots) + cache_bytes(l, place);
        sum = vp_time_add(sum, vp_stream_time(&kernels, bytes, 0));
    }
    return sum;
}

/* ---- the host's part: a bound ---- */

/* No field states the rate of host memory. The most that one socket reads: 12 channels x 8 bytes x
 * 6400 MT/s, 614 GB/s (data sheet of AMD's EPYC 9005; Intel's Xeon 6 has as many channels). An
 * APU's is the card's own. */
static bool host_is_the_cards(const struct load *l) {
    const struct vp_gpu *gpu = &l->scenario->hardware.gpu;

    return gpu->gtt_ppb > 0 && gpu->bandwidth_gbs > 0;
}

static double host_gbs(const struct load *l) {
    return host_is_the_cards(l) ? l->scenario->hardware.gpu.bandwidth_gbs : 12 * 8 * 6.4;
}

/* At least so many microseconds for one pass of `tokens` tokens; a host that computes reads each
 * weight once, and one that hands them to a GPU does so too. */
static double host_us(const struct load *l, double tokens, bool cache) {
    double bytes = 0;

    for (uint32_t i = 0; i < l->plan->places; i++) {
        const struct vp_llama_place *place = &l->plan->place[i];
        if (place->gpu < 0)
            bytes += weight_bytes(l, place, tokens) + (cache ? cache_bytes(l, place) : 0);
    }
    return bytes / (host_gbs(l) * 1e3);
}

/* Products of one prompt, layer after layer, in 16 bit. */
static struct vp_time prompt_time(const struct load *l) {
    struct vp_kernels kernels = kernels_of(l, 0);
    struct vp_params params = vp_ops_params(l->scenario->model);
    double hidden = fmax((double)l->scenario->model->hidden, 1);
    struct vp_gemm_shape gemm = {.rate = VP_RATE_FP16,
                                 .m = l->prompt,
                                 .n = (double)params.active / hidden,
                                 .k = hidden,
                                 .batch = 1,
                                 .stored_bytes = 1};
    return vp_gemm_time(&kernels, &gemm);
}

/* Physical batches of the prompt, each of which passes over the host's weights. */
static double prompt_host_us(const struct load *l) {
    const struct vp_llama *set = &l->scenario->llama;
    double batch = fmax((double)vp_min(set->ubatch, set->batch), 1);

    return ceil(l->prompt / batch) * host_us(l, fmin(l->prompt, batch), false);
}

static struct vp_estimate inverse(double tokens, const struct vp_estimate *ms, bool bound) {
    struct vp_estimate out = {ms->basis, tokens * 1e3 / ms->high, tokens * 1e3 / ms->likely,
                              tokens * 1e3 / ms->low};
    if (bound)
        out = (struct vp_estimate){VP_BASIS_BOUND, 0, 0, tokens * 1e3 / ms->low};
    return out;
}

static void set_decode(struct vp_latency *out, const struct load *l, struct vp_time step,
                       bool host) {
    double share = l->slots * (double)vp_max(l->scenario->serve.replicas, 1);

    out->step_ms =
        (struct vp_estimate){step.basis, step.low / 1e3, step.likely / 1e3, step.high / 1e3};
    if (host)
        out->step_ms = (struct vp_estimate){VP_BASIS_BOUND, step.low / 1e3, 0, 0};
    out->tpot_ms = out->step_ms;
    out->decode_tokens_per_s = inverse(share, &out->step_ms, host);
}

/* Layers, or experts of layers, in host memory; the embedding always is, and is looked up only. */
static bool works_on_host(const struct load *l) {
    const struct vp_scenario *s = l->scenario;

    if (l->plan->host_experts > 0 || s->llama.cpu_moe || s->llama.cpu_moe_layers > 0 ||
        s->llama.no_kv_offload)
        return true;
    for (uint32_t i = 0; i < l->plan->places; i++)
        if (l->plan->place[i].gpu < 0 && l->plan->place[i].layers > 0)
            return true;
    return l->plan->gpu_layers < l->plan->layer_slots;
}

/* Where neither length is said, halves of the context. */
static void set_requests(struct load *l) {
    const struct vp_serve *serve = &l->scenario->serve;
    double context = fmax((double)serve->context, 1);
    double prompt = (double)serve->prompt_tokens, output = (double)serve->output_tokens;

    if (!(prompt > 0) && !(output > 0))
        prompt = output = context / 2;
    l->prompt = prompt > 0 ? prompt : fmax(context - output, 1);
    l->output = output > 0 ? output : fmax(context - prompt, 1);
    l->past = fmin(l->prompt + l->output / 2, context);
}

static const char *no_time(const struct vp_llama_plan *plan) {
    if (!plan || plan->gpus == 0)
        return "times on the processor are not modelled";
    return plan->paged_bytes > 0 ? "host memory does not hold the weights that stay there: they "
                                   "are read from the disk again and again, at a rate that no "
                                   "field states"
                                 : NULL;
}

static void say_host(struct vp_latency *out, const struct load *l) {
    bool apu = host_is_the_cards(l);

    out->beyond_probe = true;
    out->taken = apu ? "with host memory at the card's rate" : "with host memory at 614 GB/s";
    out->why = apu ? "the host reads at the card's rate at most, and what it computes is left out"
                   : "no field states the rate of host memory; 614 GB/s is the most that a socket "
                     "reads (twelve channels of DDR5-6400; two channels have 102), and what the "
                     "host computes is left out";
}

void vp_llama_latency(struct vp_result *result) {
    const struct vp_scenario *s = result->scenario;
    struct vp_latency *out = &result->latency;
    struct load l = {.scenario = s, .plan = result->llama};
    struct vp_time step, prompt;
    bool host;

    *out = (struct vp_latency){.why = no_time(l.plan)};
    if (out->why)
        return;
    set_requests(&l);
    l.slots = fmax((double)vp_min(s->serve.concurrency, vp_max(s->llama.slots, 1)), 1);
    step = decode_time(&l);
    if (!(step.likely > 0)) {
        out->why = "the card's rates are not known";
        return;
    }
    host = works_on_host(&l);
    prompt = prompt_time(&l);
    if (host) {
        step.low += host_us(&l, l.slots, true);
        prompt.low = fmax(prompt.low, prompt_host_us(&l));
    }
    set_decode(out, &l, step, host);
    if (prompt.low > 0) {
        out->ttft_ms = (struct vp_estimate){VP_BASIS_BOUND, prompt.low / 1e3, 0, 0};
        out->prefill_tokens_per_s =
            (struct vp_estimate){VP_BASIS_BOUND, 0, 0, l.prompt * 1e6 / prompt.low};
    }
    if (host) {
        say_host(out, &l);
    } else {
        out->why = step.basis == VP_BASIS_CALIBRATED
                       ? "weights and cache read at the card's measured rate"
                       : "weights and cache read at the rate of cards like it";
        out->part[out->parts++] = (struct vp_time_part){"weights and cache", step};
    }
}
