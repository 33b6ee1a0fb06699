/* llama.cpp's own fit (--fit): what it changes when neither context nor layers are given. First
 * the context between the model's own and a least one, linearly; then, with the least context,
 * experts of the first layers or whole layers go to the host until every GPU keeps its margin.
 * Source: llama.cpp common/fit.cpp (pull request 16653); the choice of single tensors of a layer
 * is left out, so layers are never split. */
#include "planner/memory/llama_parts.h"

enum { CONTEXT_STEP = 256, MIB_SHIFT = 20 };

static uint64_t used_of(const struct vp_llama_place *place) {
    struct vp_sum sum = vp_sum(place->encoder.likely);

    for (int b = 0; b < VP_LLAMA_BUFFERS; b++)
        if (place->has[b])
            sum = vp_sum_add(sum, place->buffer[b].likely);
    return sum.overflow ? UINT64_MAX : sum.v;
}

static uint64_t target_of(const struct vp_llama_work *w, const struct vp_llama_place *place) {
    uint64_t free_bytes = vp_above(place->total_bytes, place->reserved_bytes);

    return vp_above(free_bytes, vp_min(w->set->fit_margin_mib, UINT64_C(1) << 40) << MIB_SHIFT);
}

/* Bytes over all GPUs with this context; fits: every GPU keeps its margin. */
static uint64_t try_out(struct vp_llama_work *w, uint64_t context, bool *fits) {
    struct vp_sum sum = vp_sum(0);

    w->context = context;
    vp_llama_size(w);
    *fits = !w->plan->overflow;
    for (uint32_t g = 0; g < w->gpus; g++) {
        const struct vp_llama_place *place = &w->plan->place[g];
        uint64_t used = used_of(place);
        *fits = *fits && used <= target_of(w, place);
        sum = vp_sum_add(sum, used);
    }
    return sum.overflow || w->plan->overflow ? UINT64_MAX : sum.v;
}

static uint64_t targets(const struct vp_llama_work *w) {
    uint64_t sum = 0;

    for (uint32_t g = 0; g < w->gpus; g++)
        sum += target_of(w, &w->plan->place[g]);
    return sum;
}

/* True: it fits with what was chosen. */
static bool fit_context(struct vp_llama_work *w, uint64_t most) {
    uint64_t least = vp_min(w->set->fit_context_least, most);
    bool fits;
    uint64_t full = try_out(w, most, &fits);

    if (fits)
        return true;
    uint64_t base = try_out(w, least, &fits), room = targets(w);
    if (!fits || base > room || full <= base || most <= least)
        return fits;
    uint64_t context = least + vp_mul_div(room - base, most - least, full - base);
    context = vp_min(context, most) / CONTEXT_STEP * CONTEXT_STEP;
    try_out(w, vp_max(context, least), &fits);
    for (; !fits && w->context > least;) /* several GPUs: the fullest one decides */
        try_out(w, vp_max(vp_above(w->context, CONTEXT_STEP), least), &fits);
    return fits;
}

static bool fits_on(const struct vp_llama_work *w, uint32_t gpu) {
    const struct vp_llama_place *place = &w->plan->place[gpu];

    return !w->plan->overflow && used_of(place) <= target_of(w, place);
}

/* The least number of each GPU's first layers whose experts go; true: it fits. */
static bool fit_experts(struct vp_llama_work *w) {
    bool fits = false;

    for (uint32_t g = 0; g < w->gpus; g++) {
        uint64_t low = 0, high = w->plan->place[g].layers;
        while (low < high) {
            w->host_experts[g] = low + (high - low) / 2;
            try_out(w, w->context, &fits);
            if (fits_on(w, g))
                high = w->host_experts[g];
            else
                low = w->host_experts[g] + 1;
        }
        w->host_experts[g] = high;
        try_out(w, w->context, &fits);
    }
    return fits;
}

/* The largest number of layers on GPUs. */
static void fit_layers(struct vp_llama_work *w) {
    uint64_t low = 0, high = w->model->layer_count + 1;
    bool fits;

    while (low < high) {
        w->gpu_layers = low + (high - low + 1) / 2;
        try_out(w, w->context, &fits);
        if (fits)
            low = w->gpu_layers;
        else
            high = w->gpu_layers - 1;
    }
    w->gpu_layers = low;
}

void vp_llama_fit(struct vp_llama_work *w) {
    uint64_t most = w->context;
    bool fits;

    if (w->gpus == 0)
        return;
    w->gpu_layers = w->set->gpu_layers;
    if (w->set->fit_context)
        fits = fit_context(w, most);
    else
        try_out(w, most, &fits);
    if (!fits && w->set->fit_layers && vp_model_has_experts(w->model) && !w->overridden)
        fits = fit_experts(w);
    if (!fits && w->set->fit_layers)
        fit_layers(w);
    w->plan->fitted =
        w->context != most || w->gpu_layers != w->set->gpu_layers || w->plan->host_experts > 0;
}
