#include "planner/memory/llama.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "planner/memory/llama_parts.h"
#include "planner/ops/gguf_make.h"

enum { BLOCK_OF_TYPES = 32 /* elements: of all formats that a cache can have */ };

const char *vp_llama_buffer_key(enum vp_llama_buffer buffer) {
    static const char *const KEYS[VP_LLAMA_BUFFERS] = {"model_mib", "kv_mib", "state_mib",
                                                       "compute_mib", "output_mib"};
    return KEYS[buffer];
}

const char *vp_llama_phase_name(enum vp_llama_phase phase) {
    static const char *const NAMES[] = {
        [VP_LLAMA_PHASE_NONE] = "inputs",
        [VP_LLAMA_PHASE_LOGITS] = "logits",
        [VP_LLAMA_PHASE_FEED_FORWARD] = "feed-forward",
        [VP_LLAMA_PHASE_ATTENTION] = "attention",
        [VP_LLAMA_PHASE_MASK_CAST] = "mask conversion",
        [VP_LLAMA_PHASE_COPY] = "weights copied from the host",
    };
    return NAMES[phase];
}

/* ---- putting bytes somewhere ---- */

uint64_t vp_llama_check(struct vp_llama_work *w, struct vp_sum bytes) {
    w->plan->overflow |= bytes.overflow || bytes.v > INT64_MAX / 8;
    return w->plan->overflow ? 0 : bytes.v;
}

/* The measured value of a buffer; false: it was not measured. */
static bool measured_bytes(const struct vp_llama_work *w, uint32_t place, enum vp_llama_buffer buffer,
                       uint64_t *out_bytes) {
    const struct vp_measured *measured = &w->scenario->measured;

    for (uint32_t i = 0; i < measured->buffer_count; i++) {
        const struct vp_measured_buffer *m = &measured->buffers[i];
        if (m->buffer == buffer && strcmp(m->place, w->plan->place[place].id) == 0) {
            *out_bytes = m->bytes;
            return true;
        }
    }
    return false;
}

static enum vp_component component_of(enum vp_llama_buffer buffer) {
    static const enum vp_component OF[VP_LLAMA_BUFFERS] = {
        VP_C_WEIGHTS, VP_C_KV_CACHE, VP_C_RECURRENT_STATE, VP_C_ACTIVATIONS, VP_C_LOGITS};
    return OF[buffer];
}

/* The host's two places are one device of the ledger. */
static uint32_t device_of(const struct vp_llama_work *w, uint32_t place) {
    return vp_min(place, w->host) < w->gpus ? place : w->gpus;
}

static struct vp_row *row_of(struct vp_llama_work *w, uint32_t place, enum vp_component component,
                             enum vp_formula formula, const char *owner, struct vp_amount bytes) {
    struct vp_row *row = &w->unused;

    w->unused.inputs = 0;
    if (w->ledger)
        row = vp_ledger_add(w->ledger, component, formula, device_of(w, place), owner);
    row->bytes = bytes;
    return row;
}

struct vp_row *vp_llama_put(struct vp_llama_work *w, uint32_t place, enum vp_llama_buffer buffer,
                            enum vp_formula formula, const char *owner, struct vp_amount bytes) {
    struct vp_llama_place *p = &w->plan->place[place];
    uint64_t measured;

    if (measured_bytes(w, place, buffer, &measured)) {
        w->unused.inputs = 0;
        return &w->unused;
    }
    vp_llama_check(w, vp_sum_add(vp_sum(p->buffer[buffer].high), bytes.high));
    p->has[buffer] = true;
    if (!w->plan->overflow)
        p->buffer[buffer] = vp_amount_add(p->buffer[buffer], bytes);
    return row_of(w, place, component_of(buffer), formula, owner, bytes);
}

static void put_measured(struct vp_llama_work *w) {
    for (uint32_t p = 0; p <= w->cpu; p++)
        for (int b = 0; b < VP_LLAMA_BUFFERS; b++) {
            struct vp_llama_place *place = &w->plan->place[p];
            uint64_t bytes;
            if (!measured_bytes(w, p, (enum vp_llama_buffer)b, &bytes))
                continue;
            place->has[b] = true;
            place->buffer[b] = vp_exactly(bytes);
            row_of(w, p, component_of((enum vp_llama_buffer)b), VP_FORMULA_MEASURED,
                   vp_llama_buffer_key((enum vp_llama_buffer)b), vp_exactly(bytes));
        }
}

/* ---- beside the language model ---- */

/* The encoder of images: its weights, and what it computes with, which depends on the image. */
static void put_encoder(struct vp_llama_work *w) {
    const uint64_t mib = UINT64_C(1) << 20;
    uint32_t place = w->gpus == 0 ? w->cpu : w->main;
    uint64_t weights = w->set->mmproj_bytes;

    if (weights == 0)
        return;
    row_of(w, place, VP_C_VISION, VP_FORMULA_LL_ENCODER, "image encoder", vp_exactly(weights));
    struct vp_amount compute = {50 * mib, 300 * mib, 1600 * mib};
    row_of(w, place, VP_C_VISION, VP_FORMULA_LL_ENCODER_COMPUTE, "images being encoded", compute);
    w->plan->place[place].encoder = vp_amount_add(vp_exactly(weights), compute);
}

static struct vp_amount pool_of(const struct vp_llama_work *w, struct vp_amount compute) {
    const struct vp_llama_rules *rules = w->rules;
    struct vp_amount pool = rules->pool_base;

    pool.low += vp_mul_div(compute.low, rules->pool_permille.low, 1000);
    pool.likely += vp_mul_div(compute.likely, rules->pool_permille.likely, 1000);
    pool.high += vp_mul_div(compute.high, rules->pool_permille.high, 1000);
    return pool;
}

/* What the runtime takes on every GPU that is used. */
static void put_pools(struct vp_llama_work *w) {
    for (uint32_t g = 0; g < w->gpus; g++) {
        struct vp_llama_place *place = &w->plan->place[g];
        bool any = false;
        for (int b = 0; b < VP_LLAMA_BUFFERS; b++)
            any |= place->has[b];
        if (!any || w->plan->overflow)
            continue;
        struct vp_amount compute = place->buffer[VP_LLAMA_COMPUTE];
        if (place->phase == VP_LLAMA_PHASE_COPY) /* pools grow with the batch, not with weights */
            compute = vp_exactly(vp_min(compute.low, w->graph[g]));
        place->pool = pool_of(w, compute);
        struct vp_row *row = row_of(w, g, VP_C_RUNTIME, VP_FORMULA_LL_POOL,
                                    w->scenario->engine.rules.overhead_class, place->pool);
        vp_row_input(row, "compute", compute.likely);
    }
}

/* ---- one sizing ---- */

static void set_places(struct vp_llama_work *w) {
    const struct vp_hardware *hardware = &w->scenario->hardware;
    uint32_t g = 0;

    for (uint32_t p = 0; p <= w->cpu; p++) {
        struct vp_llama_place *place = &w->plan->place[p];
        *place = (struct vp_llama_place){.gpu = p < w->gpus ? (int32_t)p : -1,
                                         .total_bytes = hardware->host_memory_bytes};
        if (p < w->gpus)
            snprintf(place->id, sizeof place->id, "GPU%u", p);
        else
            snprintf(place->id, sizeof place->id, p == w->host ? "GPU_Host" : "CPU");
    }
    for (; hardware->group_count == 0 && g < w->gpus; g++) {
        w->plan->place[g].total_bytes = hardware->memory_bytes;
        w->plan->place[g].reserved_bytes = hardware->reserved_bytes;
    }
    for (uint32_t i = 0; i < hardware->group_count; i++)
        for (uint64_t k = 0; k < hardware->groups[i].count && g < w->gpus; k++, g++) {
            w->plan->place[g].total_bytes = hardware->groups[i].memory_bytes;
            w->plan->place[g].reserved_bytes = hardware->groups[i].reserved_bytes;
        }
}

/* Products of two sizes, and sums of a few of them, then stay within 64 bits. */
static bool is_sane(const struct vp_llama_work *w) {
    const uint64_t most = UINT64_C(1) << 28, cells = UINT64_C(1) << 34;
    const struct vp_model *m = w->model;
    bool sane = m->hidden < most && m->vocab < most && w->slots < most && w->cells < cells;

    for (uint32_t b = 0; b < m->block_count; b++) {
        const struct vp_block *block = &m->blocks[b];
        const struct vp_attention *both[2] = {&block->attention, &block->second};
        sane = sane && block->mlp.intermediate < most && block->moe.intermediate < most &&
               block->moe.top_k < most;
        for (int i = 0; i < 2; i++) {
            const struct vp_attention *a = both[i];
            sane = sane && a->heads < most && a->kv_heads < most && a->head_dim < most &&
                   a->v_head_dim < most && a->kv_lora_rank < most && a->qk_nope_head_dim < most &&
                   a->qk_rope_head_dim < most && a->value_heads < most && a->value_dim < most &&
                   a->conv_channels < most && a->conv_kernel < most &&
                   a->state_elements < UINT64_C(1) << 40;
        }
    }
    return sane;
}

static uint64_t largest_of(const struct vp_llama_place *place) {
    uint64_t most = 0;

    for (int b = 0; b < VP_LLAMA_BUFFERS; b++)
        if (place->has[b])
            most = vp_max(most, place->buffer[b].likely -
                                    (b == VP_LLAMA_MODEL
                                         ? vp_min(place->mapped_bytes, place->buffer[b].likely)
                                         : 0));
    return most;
}

void vp_llama_size(struct vp_llama_work *w) {
    set_places(w);
    w->plan->overflow = false;
    w->plan->token_bytes = w->plan->state_bytes = 0;
    vp_llama_place_layers(w);
    w->plan->host_experts = 0;
    for (uint32_t g = 0; g < w->gpus; g++)
        w->plan->host_experts += vp_min(w->host_experts[g], w->plan->place[g].layers);
    vp_llama_cut(w);
    if (!is_sane(w))
        w->plan->overflow = true;
    if (w->plan->overflow)
        return;
    vp_llama_put_weights(w);
    vp_llama_put_cache(w);
    vp_llama_put_compute(w);
    vp_llama_put_output(w);
    put_measured(w);
    put_encoder(w);
    put_pools(w);
    for (uint32_t p = 0; p <= w->cpu; p++)
        w->plan->place[p].largest_bytes = largest_of(&w->plan->place[p]);
}

/* ---- the whole ---- */

static const char *refusal(struct vp_arena *arena, const struct vp_llama_work *w) {
    const struct vp_llama *set = w->set;
    bool quantised_k = vp_llama_quantised(set->type_k);
    bool quantised_v = vp_llama_quantised(set->type_v);

    if (quantised_v && !w->flash)
        return vp_arena_printf(arena,
                               "llama.cpp does not start: a value cache in %s needs flash "
                               "attention (flash_attn: on)",
                               vp_dtype_name(set->type_v));
    for (uint32_t b = 0; b < w->model->block_count; b++) {
        const struct vp_attention *a = &w->model->blocks[b].attention;
        uint64_t key, value;
        vp_llama_cache_widths(w, a, &key, &value);
        bool latent = vp_llama_is_latent(w, a);
        uint64_t head = latent ? key : a->head_dim, out = latent ? 0 : a->v_head_dim;
        if ((key > 0 && quantised_k && head % BLOCK_OF_TYPES != 0) ||
            (value > 0 && quantised_v && out % BLOCK_OF_TYPES != 0))
            return vp_arena_printf(arena,
                                   "llama.cpp does not start: heads of %" PRIu64
                                   " elements are no whole blocks of the cache's format",
                                   key > 0 && head % BLOCK_OF_TYPES != 0 ? head : out);
    }
    return NULL;
}

/* Places that hold nothing are left out, except the GPUs. */
static void list_places(struct vp_llama_plan *plan, uint32_t gpus, uint32_t places) {
    plan->gpus = plan->places = gpus;
    for (uint32_t p = gpus; p < places; p++) {
        bool any = false;
        for (int b = 0; b < VP_LLAMA_BUFFERS; b++)
            any |= plan->place[p].has[b];
        if (any)
            plan->place[plan->places++] = plan->place[p];
    }
}

/* The first pattern that matches a tensor's name holds. */
static void apply_overrides(struct vp_llama_work *w) {
    const struct vp_llama *set = w->set;

    w->overridden = set->cpu_moe || set->cpu_moe_layers > 0 || set->overrides > 0;
    if (set->overrides == 0)
        return;
    w->placed = VP_NEW_ARRAY(w->arena, w->table->count, int16_t);
    for (uint32_t i = 0; i < w->table->count; i++) {
        uint32_t o = 0;
        while (o < set->overrides &&
               !set->override_matches(set->override[o].compiled, w->table->tensor[i].name))
            o++;
        w->placed[i] =
            o < set->overrides ? (int16_t)set->override[o].device : (int16_t)VP_LLAMA_BY_LAYER;
    }
}

void vp_llama_make(struct vp_arena *arena, struct vp_llama_plan *out, struct vp_ledger *ledger,
                   const struct vp_scenario *scenario) {
    const struct vp_model *model = scenario->model;
    struct vp_llama_work w = {.arena = arena,
                              .scenario = scenario,
                              .model = model,
                              .table = vp_gguf_make(arena, model),
                              .set = &scenario->llama,
                              .rules = &scenario->engine.rules.llama,
                              .plan = out,
                              .context = scenario->llama.context,
                              .gpu_layers = scenario->llama.gpu_layers};

    *out = (struct vp_llama_plan){.refused = NULL};
    w.gpus = (uint32_t)vp_min(scenario->hardware.count, VP_LLAMA_MAX_DEVICES);
    w.host = w.gpus;
    w.cpu = w.gpus + 1;
    w.home = VP_NEW_ARRAY(arena, model->layer_count + 1, int16_t);
    out->table = w.table;
    out->overflow = !w.table;
    if (!w.table)
        return;
    apply_overrides(&w);
    memcpy(w.host_experts, w.set->gpu_host_experts, sizeof w.host_experts);
    if (w.set->fit_context || w.set->fit_layers)
        vp_llama_fit(&w);
    w.ledger = ledger;
    vp_llama_size(&w);
    memcpy(out->gpu_host_experts, w.host_experts, sizeof w.host_experts);
    out->refused = refusal(arena, &w);
    list_places(out, w.gpus, w.cpu + 1);
}
