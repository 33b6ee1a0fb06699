/* Compute buffers: what the graph of one prompt batch needs at once, on each device, and on the
 * host. ggml allocates them once, for the largest batch over a full cache; phases of a layer that
 * reuse each other's memory compete, the largest one wins.
 *
 * Letters: T tokens of the physical batch, O outputs, E hidden size, F feed-forward width, U
 * experts used, H heads. All tensors of a graph are fp32, 4 bytes, unless said. Source: the phases
 * were found on graphs that llama.cpp's own allocator reserved for 23 models (docs/FORMULAS.md),
 * and explain public logs since 2024. What they leave out is fragmentation. */
#include "planner/memory/llama_parts.h"

enum {
    F32 = 4,
    OFFLOAD_LEAST = 32, /* tokens: smaller batches do not bring weights of the host to a GPU */
    ROTATION_V = 64     /* width of the rotation of values; of keys: the largest power of two */
};

/* What the layers on one device ask for, and who asks most. */
struct phases {
    struct vp_sum logits, inner; /* inner: the larger of feed-forward, attention, recurrence */
    struct vp_sum stuck;         /* beside the logits, where the allocator cannot use the gaps */
    enum vp_llama_phase phase;   /* of inner */
    struct vp_sum masks;         /* attention masks of its layers */
    struct vp_sum indices;       /* rows of the cache that a batch is written to */
    bool layers, output;
};

static struct vp_sum tokens_of(uint64_t elements, uint64_t tokens) {
    return vp_sum_mul(vp_sum_mul(vp_sum(elements), tokens), F32);
}

static struct vp_sum larger(struct vp_sum a, struct vp_sum b) {
    bool overflow = a.overflow || b.overflow;
    struct vp_sum r = b.v > a.v ? b : a;
    r.overflow = overflow;
    return r;
}

static void compete(struct phases *p, struct vp_sum bytes, enum vp_llama_phase phase) {
    if (bytes.v > p->inner.v || p->phase == VP_LLAMA_PHASE_NONE)
        p->phase = phase;
    p->inner = larger(p->inner, bytes);
}

/* ---- a layer's phases, elements per token ---- */

static uint64_t queries(const struct vp_attention *a) { return a->heads * a->head_dim; }

/* Gate, up and their product, beside the residual, the normed input and what attention left. */
static uint64_t dense_elements(const struct vp_llama_work *w, const struct vp_block *block) {
    const struct vp_attention *a = &block->attention;
    uint64_t hidden = w->model->hidden, matrices = block->mlp.kind == VP_MLP_GATED ? 3 : 2;
    uint64_t left = a->kind == VP_ATTENTION_GQA && !a->output_gate ? vp_min(hidden, queries(a))
                    : a->kind == VP_ATTENTION_MLA                  ? hidden
                                                                   : 0;
    if (block->mlp.kind == VP_MLP_NONE)
        return 0;
    return matrices * block->mlp.intermediate + 2 * hidden + left;
}

static uint64_t expert_elements(const struct vp_llama_work *w, const struct vp_block *block) {
    const struct vp_moe *moe = &block->moe;
    uint64_t hidden = w->model->hidden, used = moe->top_k * moe->intermediate;

    if (moe->kind == VP_MLP_NONE)
        return 0;
    return vp_max(3 * used + 3 * hidden, 2 * moe->top_k * hidden + used + 2 * hidden);
}

/* Without flash attention: keys are copied, queries scaled where the family does so. */
static uint64_t attention_elements(const struct vp_llama_work *w, const struct vp_block *block,
                                   const struct vp_attention *a) {
    uint64_t hidden = w->model->hidden, key, value;
    uint64_t cells = vp_llama_is_window(w, a) ? w->window_cells : w->cells;
    uint64_t scores = w->flash ? 0 : a->heads * cells;
    bool scaled = block->norms >= 4;

    if (vp_llama_is_latent(w, a)) /* absorbed: queries in the latent's width */
        return scores + 2 * a->heads * (a->kv_lora_rank + a->qk_rope_head_dim) +
               a->heads * (a->qk_nope_head_dim + a->qk_rope_head_dim) + 3 * hidden;
    uint64_t wide = a->kind == VP_ATTENTION_MLA
                        ? a->heads * (a->qk_nope_head_dim + a->qk_rope_head_dim)
                        : queries(a);
    uint64_t out = a->heads * a->v_head_dim;
    uint64_t gate = a->output_gate ? (w->flash ? 3 : 1) * wide : 0;
    vp_llama_cache_widths(w, a, &key, &value);
    if (w->flash)
        return 2 * hidden + wide + out + gate;
    return scores + 2 * hidden + wide + out + gate + (scaled ? wide : 0) +
           (w->rules->index_tensors ? 2 * key : 0);
}

/* 16-bit copies of one layer's quantised keys and values, for flash attention's kernels. */
static struct vp_sum scratch(const struct vp_llama_work *w, const struct vp_attention *a) {
    uint64_t key, value, cells = vp_llama_is_window(w, a) ? w->window_cells : w->cells;

    if (!w->flash || !w->rules->scratch_counted || vp_llama_is_latent(w, a) ||
        (w->set->type_k == VP_DTYPE_FP16 && w->set->type_v == VP_DTYPE_FP16))
        return vp_sum(0);
    vp_llama_cache_widths(w, a, &key, &value);
    struct vp_sum rows = vp_sum_mul(vp_sum_mul(vp_sum(cells), w->streams), 2);
    return vp_sum_mul(rows, key + value);
}

static void recurrent(struct vp_llama_work *w, struct phases *p, const struct vp_attention *a) {
    uint64_t inner = a->value_heads * a->value_dim;
    uint64_t conv = a->conv_kernel > 0 ? (a->conv_kernel - 1) * a->conv_channels : 0;
    struct vp_sum states = tokens_of(a->state_elements + 2 * conv, w->slots);

    compete(
        p,
        vp_sum_plus(tokens_of(3 * a->conv_channels + 2 * inner + 2 * w->model->hidden, w->tokens),
                    states),
        VP_LLAMA_PHASE_FEED_FORWARD);
}

static void mixer(struct vp_llama_work *w, struct phases *p, const struct vp_block *block,
                  const struct vp_attention *a) {
    if (a->kind == VP_ATTENTION_LINEAR)
        recurrent(w, p, a);
    if (a->kind != VP_ATTENTION_GQA && a->kind != VP_ATTENTION_MLA)
        return;
    compete(p, vp_sum_plus(tokens_of(attention_elements(w, block, a), w->tokens), scratch(w, a)),
            VP_LLAMA_PHASE_ATTENTION);
}

/* ---- inputs of the graph ---- */

/* Caches that layers on this device use: an ordinary one, one of windows. */
struct used {
    const struct vp_attention *full, *window;
    bool recurrent;
};

static struct vp_sum mask_bytes(const struct vp_llama_work *w, const struct used *used,
                                uint64_t element) {
    uint64_t cells = (used->full ? w->cells : 0) + (used->window ? w->window_cells : 0);

    return vp_sum_mul(vp_sum_mul(vp_sum(cells), w->tokens), element);
}

static uint64_t power_of_two(uint64_t n) { return n & (0 - n); }

/* Positions, rows of the cache to write to, rotations of a quantised one. */
static struct vp_sum small_inputs(const struct vp_llama_work *w, const struct used *used) {
    const struct vp_attention *both[2] = {used->full, used->window};
    struct vp_sum sum = tokens_of(1, w->tokens);

    for (int i = 0; i < 2; i++) {
        const struct vp_attention *a = both[i];
        if (!a)
            continue;
        uint64_t width =
            vp_llama_is_latent(w, a) ? a->kv_lora_rank + a->qk_rope_head_dim : a->head_dim;
        uint64_t value = vp_llama_is_latent(w, a) ? 0 : a->v_head_dim;
        uint64_t square = power_of_two(width) * power_of_two(width);
        if (w->rules->index_tensors)
            sum = vp_sum_plus(sum, tokens_of(4, w->tokens)); /* two of 8 bytes */
        if (w->rules->rotated && vp_llama_quantised(w->set->type_k) && width % ROTATION_V == 0)
            sum = vp_sum_plus(sum, tokens_of(square, 1));
        if (w->rules->rotated && vp_llama_quantised(w->set->type_v) && value > 0 &&
            value % ROTATION_V == 0)
            sum = vp_sum_plus(sum, tokens_of((uint64_t)ROTATION_V * ROTATION_V, 1));
    }
    return sum;
}

/* Without flash attention values lie transposed: every element has an index of 8 bytes. */
static struct vp_sum value_indices(const struct vp_llama_work *w, const struct used *used) {
    const struct vp_attention *both[2] = {used->full, used->window};
    struct vp_sum sum = vp_sum(0);

    for (int i = 0; i < 2; i++) {
        uint64_t key, value;
        if (!both[i] || w->flash || !w->rules->index_tensors)
            continue;
        vp_llama_cache_widths(w, both[i], &key, &value);
        sum = vp_sum_plus(sum, tokens_of(2 * value, w->tokens));
    }
    return sum;
}

/* Bytes of a mask's element while layers run, and on the host. */
static uint64_t mask_element(const struct vp_llama_work *w) { return w->flash ? 2 : F32; }

static uint64_t host_mask_element(const struct vp_llama_work *w) {
    return w->flash && !w->rules->mask_cast ? 2 : F32;
}

static void note_used(const struct vp_llama_work *w, struct used *used,
                      const struct vp_attention *a) {
    uint64_t key, value;

    used->recurrent |= a->kind == VP_ATTENTION_LINEAR;
    if ((a->kind != VP_ATTENTION_GQA && a->kind != VP_ATTENTION_MLA) || a->source_tokens > 0)
        return;
    vp_llama_cache_widths(w, a, &key, &value);
    if (key == 0 && !a->shares_cache && !a->bidirectional)
        return;
    if (vp_llama_is_window(w, a))
        used->window = a;
    else
        used->full = a;
}

/* ---- one device ---- */

static struct vp_sum logits_of(const struct vp_llama_work *w, const struct used *used) {
    const struct vp_model *model = w->model;
    bool sinks = used->full ? used->full->sinks : used->window && used->window->sinks;
    uint64_t vectors = used->recurrent || sinks ? 2 : 1;

    return tokens_of(model->vocab + vectors * model->hidden, w->outputs);
}

/* Where keys and values are as wide as the hidden state, a mask that is smaller than one leaves
 * gaps that the logits cannot use (Qwen1.5 4B below 5120 cells: 19 MiB). */
static struct vp_sum stuck(const struct vp_llama_work *w, const struct used *used,
                           const struct phases *p) {
    const struct vp_attention *a = used->full ? used->full : used->window;
    struct vp_sum hidden = tokens_of(w->model->hidden, w->tokens);
    uint64_t key, value;

    if (!a || p->masks.v >= hidden.v)
        return vp_sum(0);
    vp_llama_cache_widths(w, a, &key, &value);
    if (vp_min(key, value) < w->model->hidden)
        return vp_sum(0);
    return vp_sum_plus(vp_sum_plus(p->masks, p->indices), vp_sum_mul(hidden, 3));
}

/* home: a GPU's index, or VP_LLAMA_HOST; all: every layer wherever it is. */
static struct phases phases_of(struct vp_llama_work *w, int16_t home, bool all) {
    const struct vp_model *model = w->model;
    struct phases p = {.phase = VP_LLAMA_PHASE_NONE};
    struct used used = {NULL, NULL, false}, here = {NULL, NULL, false};
    bool *present = VP_NEW_ARRAY(w->arena, model->block_count, bool);

    for (uint32_t i = 0; i < model->layer_count; i++)
        present[model->layers[i]] |= all || w->home[i] == home;
    for (uint32_t b = 0; b < model->block_count; b++) {
        const struct vp_block *block = &model->blocks[b];
        note_used(w, &used, &block->attention);
        note_used(w, &used, &block->second);
        if (!present[b])
            continue;
        note_used(w, &here, &block->attention);
        note_used(w, &here, &block->second);
        mixer(w, &p, block, &block->attention);
        mixer(w, &p, block, &block->second);
        compete(&p, tokens_of(dense_elements(w, block), w->tokens), VP_LLAMA_PHASE_FEED_FORWARD);
        compete(&p, tokens_of(expert_elements(w, block), w->tokens), VP_LLAMA_PHASE_FEED_FORWARD);
        p.layers = true;
    }
    p.output = (all || w->home[model->layer_count] == home) && model->lm_head;
    if (p.output)
        p.logits = logits_of(w, &used);
    p.masks = mask_bytes(w, &here, mask_element(w));
    p.indices = vp_sum_plus(small_inputs(w, &here), tokens_of(1, w->outputs));
    if (p.output)
        p.stuck = stuck(w, &here, &p);
    /* the 32-bit mask and its 16-bit copy, before anything else runs */
    if (w->rules->mask_cast && w->flash) {
        struct vp_sum cast =
            vp_sum_plus(mask_bytes(w, &here, F32), tokens_of(4 * model->hidden, w->tokens));
        compete(&p, cast, VP_LLAMA_PHASE_MASK_CAST);
    }
    return p;
}

static struct vp_sum most_of(const struct phases *p, enum vp_llama_phase *phase) {
    struct vp_sum inner = vp_sum_plus(vp_sum_plus(p->inner, p->masks), p->indices);

    struct vp_sum logits = vp_sum_plus(p->logits, p->logits.v > 0 ? p->stuck : vp_sum(0));

    if (!p->layers)
        inner = vp_sum(0);
    *phase = logits.v > inner.v ? VP_LLAMA_PHASE_LOGITS : p->phase;
    return larger(logits, inner);
}

/* Several GPUs work on consecutive batches: inputs exist `copies` times, and hidden states wait
 * on both sides of each device but the first. */
static struct vp_sum pipelined(const struct vp_llama_work *w, const struct phases *p, bool first,
                               enum vp_llama_phase *phase) {
    uint64_t copies = w->rules->copies;
    struct vp_sum inputs = vp_sum_mul(vp_sum_plus(p->masks, p->indices), copies);
    struct vp_sum hidden = tokens_of((first ? 1 : 2) * copies * w->model->hidden, w->tokens);
    struct used used = {NULL, NULL, false};
    const struct vp_model *model = w->model;

    for (uint32_t b = 0; b < model->block_count; b++)
        note_used(w, &used, &model->blocks[b].attention);
    struct vp_sum indices = vp_sum_mul(value_indices(w, &used), copies - 1);
    *phase = p->logits.v > p->inner.v ? VP_LLAMA_PHASE_LOGITS : p->phase;
    struct vp_sum most = larger(p->logits, p->inner);
    return vp_sum_plus(vp_sum_plus(most, inputs), vp_sum_plus(hidden, indices));
}

/* ---- weights of the host, copied over for a batch ---- */

static bool copies_weights(const struct vp_llama_work *w) {
    return w->gpus > 0 && !w->set->no_op_offload && w->tokens >= OFFLOAD_LEAST;
}

static const struct vp_block *block_at(const struct vp_llama_work *w, int32_t layer) {
    if (layer < 0 || (uint32_t)layer >= w->model->layer_count)
        return NULL;
    return &w->model->blocks[w->model->layers[layer]];
}

/* The matrix and what is alive beside it. */
static struct vp_sum copied(const struct vp_llama_work *w, const struct vp_gguf_tensor *t) {
    const struct vp_block *block = block_at(w, t->layer);
    uint64_t hidden = w->model->hidden;
    struct vp_sum bytes = vp_llama_allocated(true, t->type, t->ne[0], vp_sum(t->bytes));

    if (!block || t->kind == VP_GGUF_VECTOR)
        return vp_sum(0);
    if (t->kind == VP_GGUF_EXPERT) {
        uint64_t used = block->moe.top_k * block->moe.intermediate;
        return vp_sum_plus(bytes,
                           tokens_of(2 * used + block->moe.top_k * hidden + 3 * hidden, w->tokens));
    }
    return vp_sum_plus(bytes, tokens_of(3 * block->mlp.intermediate + hidden, w->tokens));
}

/* On the first GPU, which takes what others would bring over. */
static struct vp_sum largest_copy(struct vp_llama_work *w) {
    const struct vp_gguf_table *table = w->table;
    struct vp_sum most = vp_sum(0);
    bool head = false;
    const struct vp_gguf_tensor *output = NULL;
    struct used used = {NULL, NULL, false};

    if (!copies_weights(w))
        return most;
    for (uint32_t i = 0; i < table->count; i++) {
        const struct vp_gguf_tensor *t = &table->tensor[i];
        if (!vp_llama_tensor_loaded(w, t))
            continue;
        if (t->kind == VP_GGUF_HEAD ||
            (!head && t->kind == VP_GGUF_EMBEDDING && t->ne[1] == w->model->vocab && t->dims == 2))
            output = t;
        head |= t->kind == VP_GGUF_HEAD;
        if (t->place == VP_GGUF_BLOCK && vp_llama_tensor_home(w, i) == VP_LLAMA_HOST)
            most = larger(most, copied(w, t));
    }
    if (!output || w->home[w->model->layer_count] != VP_LLAMA_HOST || !w->model->lm_head)
        return most;
    for (uint32_t b = 0; b < w->model->block_count; b++)
        note_used(w, &used, &w->model->blocks[b].attention);
    return larger(most, vp_sum_plus(vp_llama_allocated(true, output->type, output->ne[0],
                                                       vp_sum(output->bytes)),
                                    logits_of(w, &used)));
}

/* ---- the buffers ---- */

static bool is_pipelined(const struct vp_llama_work *w) {
    return w->used > 1 && w->plan->gpu_layers > w->model->layer_count &&
           w->set->split == VP_SPLIT_LAYER && !w->set->no_kv_offload && !w->overridden &&
           w->plan->host_experts == 0;
}

/* Low and high around an estimate, by what it is made of. */
static struct vp_amount spread(const struct vp_llama_work *w, uint64_t bytes,
                               enum vp_llama_phase phase) {
    bool partly = w->gpus > 0 && w->plan->gpu_layers <= w->model->layer_count;
    const struct vp_amount *permille = phase == VP_LLAMA_PHASE_COPY ? &w->rules->spread_copies
                                       : phase == VP_LLAMA_PHASE_NONE && partly
                                           ? &w->rules->spread_copies
                                       : phase == VP_LLAMA_PHASE_LOGITS ? &w->rules->spread_logits
                                                                        : &w->rules->spread_layers;

    return (struct vp_amount){vp_mul_div(bytes, permille->low, 1000), bytes,
                              vp_mul_div(bytes, permille->high, 1000)};
}

/* least: without logits, for versions of which it is not known whether they reserve them. */
static void put(struct vp_llama_work *w, uint32_t place, struct vp_sum bytes, struct vp_sum least,
                enum vp_llama_phase phase, enum vp_formula formula) {
    struct vp_amount amount = spread(w, vp_llama_check(w, bytes), phase);

    if (bytes.v == 0)
        return;
    if (w->rules->few_outputs == VP_MAYBE && w->set->outputs_max == 0)
        amount.low = vp_min(amount.low, vp_llama_check(w, least));
    w->plan->place[place].phase = phase;
    struct vp_row *row =
        vp_llama_put(w, place, VP_LLAMA_COMPUTE, formula, vp_llama_phase_name(phase), amount);
    vp_row_input(row, "tokens", w->tokens);
    vp_row_input(row, "outputs", w->outputs);
    vp_row_input(row, "cells", w->cells);
    vp_row_input(row, "window_cells", w->window_cells);
}

static void put_gpu(struct vp_llama_work *w, uint32_t gpu, struct vp_sum copy) {
    struct phases p = phases_of(w, (int16_t)gpu, false);
    enum vp_llama_phase phase = VP_LLAMA_PHASE_NONE;
    struct phases quiet = p;
    struct vp_sum bytes, least;

    quiet.logits = vp_sum(0);
    if (w->plan->pipeline && p.layers) {
        least = pipelined(w, &quiet, gpu == w->main, &phase);
        bytes = pipelined(w, &p, gpu == w->main, &phase);
    } else {
        least = most_of(&quiet, &phase);
        bytes = most_of(&p, &phase);
        if (p.layers && w->used > 1 && gpu != w->main) { /* hidden states from the one before */
            struct vp_sum hidden = tokens_of(2 * w->model->hidden, w->tokens);
            bytes = vp_sum_plus(bytes, hidden);
            least = vp_sum_plus(least, hidden);
        }
    }
    w->graph[gpu] = vp_llama_check(w, bytes);
    if (gpu == w->main && copy.v > bytes.v) {
        bytes = copy;
        phase = VP_LLAMA_PHASE_COPY;
    }
    put(w, gpu, bytes, least, phase, VP_FORMULA_LL_COMPUTE);
}

/* Inputs of all layers, pinned; with layers that the processor computes, those as well. */
static void put_host(struct vp_llama_work *w) {
    const struct vp_model *model = w->model;
    struct used used = {NULL, NULL, false};
    uint64_t copies = w->plan->pipeline ? w->rules->copies : 1;
    enum vp_llama_phase phase;

    for (uint32_t b = 0; b < model->block_count; b++) {
        note_used(w, &used, &model->blocks[b].attention);
        note_used(w, &used, &model->blocks[b].second);
    }
    struct vp_sum inputs =
        vp_sum_plus(mask_bytes(w, &used, host_mask_element(w)),
                    vp_sum_plus(value_indices(w, &used), small_inputs(w, &used)));
    inputs = vp_sum_mul(vp_sum_plus(inputs, tokens_of(1, w->outputs)), copies);
    struct vp_sum hidden =
        tokens_of(w->rules->host_inputs * model->hidden + 1, w->tokens); /* and token ids */
    struct vp_sum bytes = vp_sum_plus(inputs, hidden);
    if (!copies_weights(w) && w->home[0] == VP_LLAMA_HOST) {
        struct phases p = phases_of(w, VP_LLAMA_HOST, false);
        bytes =
            larger(bytes, vp_sum_plus(most_of(&p, &phase), tokens_of(model->hidden, w->tokens)));
    }
    put(w, w->host, bytes, bytes, VP_LLAMA_PHASE_NONE, VP_FORMULA_LL_HOST_COMPUTE);
}

void vp_llama_put_compute(struct vp_llama_work *w) {
    w->plan->pipeline = is_pipelined(w);
    if (w->gpus == 0) {
        struct phases p = phases_of(w, VP_LLAMA_HOST, true);
        struct phases quiet = p;
        enum vp_llama_phase phase;
        struct vp_sum hidden = tokens_of(w->model->hidden, w->tokens);
        quiet.logits = vp_sum(0);
        struct vp_sum least = vp_sum_plus(most_of(&quiet, &phase), hidden);
        struct vp_sum bytes = vp_sum_plus(most_of(&p, &phase), hidden);
        put(w, w->cpu, bytes, least, phase, VP_FORMULA_LL_COMPUTE);
        return;
    }
    struct vp_sum copy = largest_copy(w);
    for (uint32_t g = 0; g < w->gpus; g++)
        put_gpu(w, g, copy);
    put_host(w);
}

void vp_llama_put_output(struct vp_llama_work *w) {
    const struct vp_model *model = w->model;
    bool embeddings = w->set->embeddings;
    uint64_t width =
        (model->lm_head ? model->vocab : 0) + (embeddings || !model->lm_head ? model->hidden : 0);
    uint32_t place = w->home[model->layer_count] == VP_LLAMA_HOST ? w->cpu : w->host;

    struct vp_row *row =
        vp_llama_put(w, place, VP_LLAMA_OUTPUT, VP_FORMULA_LL_OUTPUT, "logits of the slots",
                     vp_exactly(vp_llama_check(w, tokens_of(width, w->slots))));
    vp_row_input(row, "vocabulary", model->vocab);
    vp_row_input(row, "sequences", w->slots);
}
