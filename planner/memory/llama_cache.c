/* KV cache and recurrent states: how many cells, of which width, on which device.
 * Source: llama.cpp src/llama-context.cpp, llama-kv-cache.cpp, llama-kv-cache-iswa.cpp,
 * llama-memory-recurrent.cpp. */
#include "planner/memory/llama_parts.h"

enum { STATE_BYTES = 4 /* per element: states are fp32 */ };

bool vp_llama_quantised(enum vp_dtype type) {
    switch (type) {
    case VP_DTYPE_FP64:
    case VP_DTYPE_FP32:
    case VP_DTYPE_FP16:
    case VP_DTYPE_BF16:
    case VP_DTYPE_INT8:
    case VP_DTYPE_INT16:
    case VP_DTYPE_INT32:
    case VP_DTYPE_INT64:
        return false;
    default:
        return true;
    }
}

/* ---- cells ---- */

static uint64_t window_of(const struct vp_attention *attention) {
    return attention->window > 0 ? attention->window : attention->chunk;
}

static bool caches(const struct vp_attention *attention) {
    return (attention->kind == VP_ATTENTION_GQA || attention->kind == VP_ATTENTION_MLA) &&
           !attention->shares_cache && !attention->bidirectional && attention->source_tokens == 0;
}

/* A model whose layers all have the same window has an ordinary cache there. */
static bool is_interleaved(const struct vp_model *model) {
    bool window = false, full = false;

    for (uint32_t b = 0; b < model->block_count; b++) {
        const struct vp_attention *attention = &model->blocks[b].attention;
        if (!caches(attention))
            continue;
        window |= window_of(attention) > 0;
        full |= window_of(attention) == 0;
    }
    return window && full;
}

static uint64_t largest_window(const struct vp_model *model) {
    uint64_t most = 0;

    for (uint32_t b = 0; b < model->block_count; b++)
        if (caches(&model->blocks[b].attention))
            most = vp_max(most, window_of(&model->blocks[b].attention));
    return most;
}

bool vp_llama_is_window(const struct vp_llama_work *w, const struct vp_attention *attention) {
    return w->window_cells > 0 && window_of(attention) > 0;
}

bool vp_llama_is_latent(const struct vp_llama_work *w, const struct vp_attention *attention) {
    return attention->kind == VP_ATTENTION_MLA && w->rules->latent && !attention->expanded;
}

static uint64_t padded(struct vp_llama_work *w, uint64_t cells) {
    uint64_t multiple = w->flash ? w->rules->cells_multiple_flash : w->rules->cells_multiple;

    return vp_llama_check(w, vp_sum_round_up(vp_sum(cells), multiple));
}

static void cut_window(struct vp_llama_work *w) {
    const struct vp_llama_rules *rules = w->rules;
    uint64_t window = largest_window(w->model);

    w->window_cells = 0;
    if (!is_interleaved(w->model) || !rules->window_cache)
        return;
    if (rules->window_kept > 0)
        window = rules->window_kept;
    struct vp_sum kept = vp_sum_mul(vp_sum(window), w->unified ? w->slots : 1);
    uint64_t cells = padded(w, vp_llama_check(w, vp_sum_add(kept, w->tokens)));
    w->window_cells = w->set->swa_full ? w->cells : vp_min(w->cells, cells);
}

/* Tokens of a batch whose logits the server wants at most. */
static uint64_t outputs(const struct vp_llama_work *w) {
    const struct vp_draft *draft = &w->scenario->draft;
    uint64_t few = vp_sum_mul(vp_sum(w->slots), 1 + draft->tokens).v;

    if (w->set->outputs_max > 0)
        return vp_min(w->tokens, w->set->outputs_max);
    return w->rules->few_outputs == VP_ALWAYS ? vp_min(w->tokens, few) : w->tokens;
}

void vp_llama_cut(struct vp_llama_work *w) {
    const struct vp_llama *set = w->set;
    uint64_t context = vp_max(w->context, 1);

    w->slots = vp_max(set->slots, 1);
    w->unified = set->unified || w->rules->always_unified || w->slots == 1;
    w->flash = set->flash != VP_FLASH_OFF; /* auto: wherever it can be */
    w->streams = w->unified ? 1 : w->slots;
    w->cells = padded(w, context);
    if (!w->unified)
        w->cells = padded(w, w->cells / w->slots);
    w->plan->n_ctx = vp_llama_check(w, vp_sum_mul(vp_sum(w->cells), w->streams));
    w->tokens = vp_min(vp_min(set->ubatch, set->batch), vp_max(w->plan->n_ctx, 1));
    w->outputs = outputs(w);
    cut_window(w);
    w->plan->cells = w->cells;
    w->plan->streams = w->streams;
    w->plan->window_cells = w->window_cells;
    w->plan->flash = w->flash;
}

/* ---- keys and values ---- */

void vp_llama_cache_widths(const struct vp_llama_work *w, const struct vp_attention *attention,
                           uint64_t *out_key, uint64_t *out_value) {
    const struct vp_attention *a = attention;

    *out_key = *out_value = 0;
    if (!caches(a))
        return;
    if (vp_llama_is_latent(w, a)) {
        *out_key = a->kv_lora_rank + a->qk_rope_head_dim;
    } else if (a->kind == VP_ATTENTION_MLA) {
        *out_key = vp_sum_mul(vp_sum(a->heads), a->qk_nope_head_dim + a->qk_rope_head_dim).v;
        *out_value = vp_sum_mul(vp_sum(a->heads), a->v_head_dim).v;
    } else {
        *out_key = vp_sum_mul(vp_sum(a->kv_heads), a->head_dim).v;
        *out_value = vp_sum_mul(vp_sum(a->kv_heads), a->v_head_dim).v;
    }
}

static struct vp_sum cache_tensor(struct vp_llama_work *w, bool gpu, enum vp_dtype type,
                                  uint64_t width, uint64_t cells) {
    struct vp_sum rows = vp_sum_mul(vp_sum(cells), w->streams);

    if (width == 0)
        return vp_sum(0);
    struct vp_sum row = vp_dtype_bytes(type, vp_sum(width));
    rows.overflow |= row.overflow;
    return vp_llama_allocated(gpu, type, width, vp_sum_mul(rows, row.v));
}

static uint32_t cache_place(const struct vp_llama_work *w, uint32_t layer) {
    return w->set->no_kv_offload ? w->cpu : vp_llama_place_of(w->home[layer], w->cpu);
}

/* Layers of one kind on one place. */
static void put_kind(struct vp_llama_work *w, uint32_t place, const struct vp_attention *attention,
                     uint32_t layers) {
    bool gpu = place < w->gpus, window = vp_llama_is_window(w, attention);
    uint64_t key, value, cells = window ? w->window_cells : w->cells;

    vp_llama_cache_widths(w, attention, &key, &value);
    if (layers == 0 || key == 0)
        return;
    struct vp_sum bytes = vp_sum_plus(cache_tensor(w, gpu, w->set->type_k, key, cells),
                                      cache_tensor(w, gpu, w->set->type_v, value, cells));
    bytes = vp_sum_mul(bytes, layers);
    if (!window)
        w->plan->token_bytes +=
            layers * (vp_dtype_bytes(w->set->type_k, vp_sum(key)).v +
                      (value > 0 ? vp_dtype_bytes(w->set->type_v, vp_sum(value)).v : 0));
    struct vp_row *row = vp_llama_put(w, place, VP_LLAMA_KV, VP_FORMULA_LL_KV,
                                      window       ? "window layers"
                                      : value == 0 ? "latent layers"
                                                   : "full layers",
                                      vp_exactly(vp_llama_check(w, bytes)));
    row->layers = layers;
    vp_row_input(row, "layers", layers);
    vp_row_input(row, "cells", cells);
    vp_row_input(row, "streams", w->streams);
    vp_row_input(row, "key_width", key);
    vp_row_input(row, "value_width", value);
}

/* ---- recurrent states ---- */

static void put_state(struct vp_llama_work *w, uint32_t place, const struct vp_attention *attention,
                      uint32_t layers) {
    bool gpu = place < w->gpus;
    uint64_t conv = attention->conv_kernel > 0
                        ? vp_sum_mul(vp_sum(attention->conv_channels), attention->conv_kernel - 1).v
                        : 0;
    uint64_t state = attention->state_elements;
    struct vp_sum copies = vp_sum_mul(vp_sum_add(vp_sum(w->set->rollback), 1), w->slots);

    if (layers == 0 || attention->kind != VP_ATTENTION_LINEAR)
        return;
    struct vp_sum each = vp_sum_mul(copies, STATE_BYTES);
    struct vp_sum bytes =
        vp_sum_plus(vp_llama_allocated(gpu, VP_DTYPE_FP32, conv, vp_sum_mul(each, conv)),
                    vp_llama_allocated(gpu, VP_DTYPE_FP32, state, vp_sum_mul(each, state)));
    bytes = vp_sum_mul(bytes, layers);
    w->plan->state_bytes += layers * STATE_BYTES * (conv + state);
    struct vp_row *row = vp_llama_put(w, place, VP_LLAMA_STATE, VP_FORMULA_LL_STATE,
                                      "recurrent layers", vp_exactly(vp_llama_check(w, bytes)));
    row->layers = layers;
    vp_row_input(row, "layers", layers);
    vp_row_input(row, "sequences", w->slots);
    vp_row_input(row, "rollback", w->set->rollback);
    vp_row_input(row, "convolution", conv);
    vp_row_input(row, "state", state);
}

void vp_llama_put_cache(struct vp_llama_work *w) {
    const struct vp_model *model = w->model;
    uint32_t *layers = VP_NEW_ARRAY(w->arena, model->block_count, uint32_t);

    for (uint32_t p = 0; p <= w->cpu; p++) {
        for (uint32_t b = 0; b < model->block_count; b++)
            layers[b] = 0;
        for (uint32_t i = 0; i < model->layer_count; i++)
            layers[model->layers[i]] += cache_place(w, i) == p;
        for (uint32_t b = 0; b < model->block_count; b++) {
            const struct vp_block *block = &model->blocks[b];
            put_kind(w, p, &block->attention, layers[b]);
            put_kind(w, p, &block->second, layers[b]);
            put_state(w, p, &block->attention, layers[b]);
            put_state(w, p, &block->second, layers[b]);
        }
    }
}
