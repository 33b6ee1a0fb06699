/* Which device each tensor is loaded to, and what it takes there.
 * Source: llama.cpp src/llama-model.cpp (load_tensors), ggml-cuda.cu (get_alloc_size). */
#include <string.h>

#include "planner/memory/llama_parts.h"

enum {
    GPU_ALIGNMENT = 128,
    HOST_ALIGNMENT = 32,
    ROW_MULTIPLE = 512, /* elements: quantised rows are padded for the matrix kernels */
    KINDS = VP_GGUF_ROUTER + 1
};

static const char *const OWNERS[KINDS] = {
    [VP_GGUF_OTHER] = "other tensors",   [VP_GGUF_VECTOR] = "norms and biases",
    [VP_GGUF_EMBEDDING] = "embedding",   [VP_GGUF_HEAD] = "output matrix",
    [VP_GGUF_ATTENTION] = "attention",   [VP_GGUF_RECURRENT] = "recurrent",
    [VP_GGUF_FFN] = "feed-forward",      [VP_GGUF_SHARED] = "shared experts",
    [VP_GGUF_EXPERT] = "routed experts", [VP_GGUF_ROUTER] = "router",
};

/* ---- layers ---- */

/* What decides on a GPU's share when the user does not: its free memory. */
static uint64_t share_of(const struct vp_llama_work *w, uint32_t gpu) {
    const struct vp_llama_place *place = &w->plan->place[gpu];

    if (w->set->shares > 0)
        return gpu < w->set->shares ? w->set->share_ppb[gpu] : 0;
    return vp_above(place->total_bytes, place->reserved_bytes) >> 10;
}

/* Slot i of `slots` goes to the first GPU whose cumulative share exceeds i / slots. */
static int16_t gpu_of_slot(const struct vp_llama_work *w, uint64_t slot, uint64_t slots) {
    unsigned __int128 all = 0, sum = 0;

    if (w->set->split == VP_SPLIT_NONE || w->used == 1)
        return (int16_t)w->main;
    for (uint32_t g = 0; g < w->gpus; g++)
        all += share_of(w, g);
    for (uint32_t g = 0; g < w->gpus; g++) {
        sum += share_of(w, g);
        if (sum * slots > slot * all)
            return (int16_t)g;
    }
    return (int16_t)(w->gpus - 1);
}

void vp_llama_place_layers(struct vp_llama_work *w) {
    uint64_t layers = w->model->layer_count;
    uint64_t slots = w->gpus > 0 ? vp_min(w->gpu_layers, layers + 1) : 0;
    uint64_t first = layers + 1 - slots; /* the output counts as one, and goes first */

    w->main = w->set->split == VP_SPLIT_NONE && w->gpus > 0
                  ? (uint32_t)vp_min(w->set->main_gpu, w->gpus - 1)
                  : 0;
    w->used = w->set->split == VP_SPLIT_NONE ? vp_min(w->gpus, 1) > 0 : w->gpus;
    for (uint64_t i = 0; i <= layers; i++)
        w->home[i] = i < first ? VP_LLAMA_HOST : gpu_of_slot(w, i - first, slots);
    w->plan->gpu_layers = slots;
    w->plan->layer_slots = layers + 1;
    for (uint64_t i = layers; i-- > 0;) {
        w->plan->place[vp_llama_place_of(w->home[i], w->cpu)].layers++;
        if (w->home[i] >= 0)
            w->first[w->home[i]] = (uint32_t)i;
    }
}

/* ---- tensors ---- */

static uint32_t host_weights(const struct vp_llama_work *w) {
    return w->set->mmap || w->gpus == 0 ? w->cpu : w->host;
}

bool vp_llama_tensor_loaded(const struct vp_llama_work *w, const struct vp_gguf_tensor *tensor) {
    return tensor->place != VP_GGUF_EXTRA &&
           (!tensor->nextn || w->scenario->draft.method == VP_DRAFT_MTP);
}

static bool is_host_expert(const struct vp_llama_work *w, const struct vp_gguf_tensor *tensor) {
    uint64_t layer = (uint64_t)tensor->layer;

    if (tensor->kind != VP_GGUF_EXPERT || tensor->layer < 0 || layer >= w->model->layer_count)
        return false;
    int16_t home = w->home[layer];
    return w->set->cpu_moe || layer < w->set->cpu_moe_layers ||
           (home >= 0 && layer - w->first[home] < w->host_experts[home]);
}

int16_t vp_llama_tensor_home(const struct vp_llama_work *w, uint32_t tensor) {
    const struct vp_gguf_tensor *t = &w->table->tensor[tensor];
    int16_t given = w->placed ? w->placed[tensor] : VP_LLAMA_BY_LAYER;

    if (given != VP_LLAMA_BY_LAYER)
        return given >= 0 && (uint32_t)given < w->gpus ? given : VP_LLAMA_HOST;
    if (is_host_expert(w, t) || t->place == VP_GGUF_INPUT || t->layer < 0)
        return VP_LLAMA_HOST;
    if (t->place == VP_GGUF_OUTPUT || (uint32_t)t->layer >= w->model->layer_count)
        return w->home[w->model->layer_count];
    return w->home[t->layer];
}

struct vp_sum vp_llama_allocated(bool gpu, enum vp_dtype type, uint64_t ne0, struct vp_sum bytes) {
    uint64_t rest = ne0 % ROW_MULTIPLE;

    if (gpu && rest > 0 && vp_llama_quantised(type))
        bytes = vp_sum_plus(bytes, vp_dtype_bytes(type, vp_sum(ROW_MULTIPLE - rest)));
    return vp_sum_round_up(bytes, gpu ? GPU_ALIGNMENT : HOST_ALIGNMENT);
}

/* What is loaded so far, by place and kind. */
struct load {
    struct vp_sum bytes[KINDS];
    uint64_t tensors[KINDS];
};

static void add(struct vp_llama_work *w, struct load *loads, uint32_t place,
                const struct vp_gguf_tensor *tensor, enum vp_gguf_kind kind) {
    struct load *load = &loads[place];
    bool mapped = place == w->cpu && w->set->mmap;
    struct vp_sum bytes = vp_sum(tensor->bytes);

    if (!mapped)
        bytes = vp_llama_allocated(place < w->gpus, tensor->type, tensor->ne[0], bytes);
    load->bytes[kind] = vp_sum_plus(load->bytes[kind], bytes);
    load->tensors[kind]++;
}

/* rope_freqs: where blocks are. */
static void add_everywhere(struct vp_llama_work *w, struct load *loads,
                           const struct vp_gguf_tensor *tensor) {
    for (uint32_t p = 0; p <= w->cpu; p++)
        if (w->plan->place[p].layers > 0)
            add(w, loads, p < w->gpus ? p : host_weights(w), tensor, tensor->kind);
}

/* Mapped are all bytes of a file from the first to the last tensor that stays on the host. */
static uint64_t mapped_range(struct vp_llama_work *w) {
    uint64_t *low = VP_NEW_ARRAY(w->arena, w->table->parts, uint64_t);
    uint64_t *high = VP_NEW_ARRAY(w->arena, w->table->parts, uint64_t);
    struct vp_sum all = vp_sum(0);

    for (uint32_t i = 0; i < w->table->count; i++) {
        const struct vp_gguf_tensor *t = &w->table->tensor[i];
        uint32_t p = t->part;
        if (!vp_llama_tensor_loaded(w, t) || p >= w->table->parts ||
            vp_llama_tensor_home(w, i) != VP_LLAMA_HOST)
            continue;
        low[p] = high[p] == 0 ? t->offset : vp_min(low[p], t->offset);
        high[p] = vp_max(high[p], vp_llama_check(w, vp_sum_add(vp_sum(t->offset), t->bytes)));
    }
    for (uint32_t p = 0; p < w->table->parts; p++)
        all = vp_sum_add(all, high[p] - low[p]);
    return vp_llama_check(w, all);
}

static void put_loads(struct vp_llama_work *w, const struct load *load, uint32_t place) {
    bool gpu = place < w->gpus;
    struct vp_sum all = vp_sum(0);

    for (int k = 0; k < KINDS; k++) {
        if (load->tensors[k] == 0)
            continue;
        all = vp_sum_plus(all, load->bytes[k]);
        if (k == VP_GGUF_EXPERT)
            w->plan->place[place].expert_bytes = load->bytes[k].v;
        if (k != VP_GGUF_EMBEDDING)
            w->plan->place[place].read_bytes += load->bytes[k].v;
        struct vp_row *row = vp_llama_put(w, place, VP_LLAMA_MODEL,
                                          gpu ? VP_FORMULA_LL_WEIGHTS : VP_FORMULA_LL_HOST_WEIGHTS,
                                          OWNERS[k], vp_exactly(vp_llama_check(w, load->bytes[k])));
        vp_row_input(row, "tensors", load->tensors[k]);
    }
    if (place != w->cpu || !w->set->mmap)
        return;
    uint64_t range = w->table->made_up ? all.v : mapped_range(w);
    w->plan->place[place].mapped_bytes = vp_max(range, all.v);
    if (range > all.v)
        vp_llama_put(w, place, VP_LLAMA_MODEL, VP_FORMULA_LL_HOST_WEIGHTS,
                     "between them in the file", vp_exactly(range - all.v));
}

void vp_llama_put_weights(struct vp_llama_work *w) {
    struct load *loads = VP_NEW_ARRAY(w->arena, w->cpu + 1, struct load);
    const struct vp_gguf_tensor *embedding = NULL;
    int16_t output = w->home[w->model->layer_count];
    bool head = false;

    for (uint32_t i = 0; i < w->table->count; i++) {
        const struct vp_gguf_tensor *t = &w->table->tensor[i];
        if (!vp_llama_tensor_loaded(w, t))
            continue;
        head |= t->kind == VP_GGUF_HEAD;
        if (strcmp(t->name, "token_embd.weight") == 0)
            embedding = t;
        if (t->every)
            add_everywhere(w, loads, t);
        else
            add(w, loads, vp_llama_place_of(vp_llama_tensor_home(w, i), host_weights(w)), t,
                t->kind);
    }
    /* tied: the output matrix is a second copy, unless both are on the host */
    if (!head && embedding && w->model->lm_head && output >= 0)
        add(w, loads, (uint32_t)output, embedding, VP_GGUF_HEAD);
    for (uint32_t p = 0; p <= w->cpu; p++)
        put_loads(w, &loads[p], p);
    if (!head && embedding && w->model->lm_head && output < 0)
        w->plan->place[host_weights(w)].read_bytes += embedding->bytes;
}
