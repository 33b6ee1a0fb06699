#include "planner/memory/kv_cache.h"

#include <string.h>

#include "planner/memory/draft.h"

/* Cache bytes of one token of one layer on one rank.
 * F-KV-01: KV heads are replicated once there are more ranks than heads.
 * F-KV-02: an MLA latent is not divided. */
static struct vp_sum token_bytes(const struct vp_attention *a, const struct vp_layout *layout,
                                 enum vp_dtype dtype) {
    enum { DS_MLA_FP8 = 656 /* 512 FP8 + 4 fp32 scales + 64 bf16 rotary */ };
    uint64_t heads = vp_ceil_div(a->kv_heads, vp_max(vp_min(layout->attention, a->kv_heads), 1));
    struct vp_sum bytes;

    if (a->kind == VP_ATTENTION_GQA)
        return vp_dtype_bytes(dtype,
                              vp_sum_mul(vp_sum_add(vp_sum(a->head_dim), a->v_head_dim), heads));
    if (a->expanded) /* values are padded to the keys' size */
        return vp_dtype_bytes(dtype, vp_sum_mul(vp_sum_mul(vp_sum(a->head_dim), 2), heads));
    bytes = vp_dtype_bytes(dtype, vp_sum_add(vp_sum(a->kv_lora_rank), a->qk_rope_head_dim));
    if (a->index_heads > 0) { /* sparse attention: its own FP8 format and an index key */
        if (dtype == VP_DTYPE_FP8 && a->kv_lora_rank == 512 && a->qk_rope_head_dim == 64)
            bytes = vp_sum(DS_MLA_FP8);
        bytes = vp_sum_add(bytes, a->index_head_dim);
        bytes = vp_sum_add(bytes, 4 * vp_ceil_div(a->index_head_dim, 128));
    }
    return bytes;
}

/* State of one sequence in one recurrent layer on one rank: the recurrence in its own type, the
 * convolution's last kernel - 1 columns in 16 bit (transformers keeps all kernel columns). */
static struct vp_sum state_bytes(const struct vp_attention *a, const struct vp_layout *layout,
                                 const struct vp_scenario *scenario) {
    enum vp_dtype dtype =
        a->state_dtype != VP_DTYPE_UNSET ? a->state_dtype : scenario->precision.compute;
    bool given = a->linear == VP_LINEAR_GIVEN; /* the convolution's elements as they are */
    bool all = scenario->engine.kind == VP_ENGINE_TRANSFORMERS && !given;
    uint64_t columns = a->conv_kernel == 0 ? 0 : a->conv_kernel - (all ? 0 : 1);
    struct vp_sum state =
        vp_dtype_bytes(dtype, vp_sum(vp_ceil_div(a->state_elements, layout->attention)));
    struct vp_sum conv =
        vp_sum_mul(vp_sum(vp_ceil_div(a->conv_channels, layout->attention)), columns);
    return vp_sum_plus(state, vp_sum_mul(conv, 2));
}

/* DeepSeek V4, one vector of a token or of a condensed entry: 448 FP8 elements, 64 of 16 bit and 8
 * scale bytes, or all of them in the cache's type. */
static struct vp_sum vector_bytes(const struct vp_attention *a, enum vp_dtype dtype) {
    enum { DS_V4_FP8 = 584 };

    if (dtype == VP_DTYPE_FP8 && a->head_dim == 512 && a->rotary_dim == 64)
        return vp_sum(DS_V4_FP8);
    return vp_dtype_bytes(dtype, vp_sum(a->head_dim));
}

/* The part of a condensed entry, with its index key (FP8 and an fp32 scale per 128), that falls on
 * one token. */
static bool describe_condensed(struct vp_kv_type *type, bool *overflow,
                               const struct vp_scenario *scenario, const struct vp_attention *a) {
    struct vp_sum entry = vector_bytes(a, scenario->precision.kv_cache);

    memset(type, 0, sizeof *type);
    if (a->kind != VP_ATTENTION_COMPRESSED || a->compress == 0)
        return false;
    if (a->index_heads > 0)
        entry = vp_sum_add(entry, a->index_head_dim + 4 * vp_ceil_div(a->index_head_dim, 128));
    type->kind = VP_KV_CONDENSED;
    type->token_bytes = vp_ceil_div(entry.v, a->compress);
    *overflow |= entry.overflow;
    return true;
}

/* False: the mixer keeps nothing. */
static bool describe(struct vp_kv_type *type, bool *overflow, const struct vp_scenario *scenario,
                     const struct vp_attention *a, const struct vp_layout *layout) {
    bool groups = scenario->engine.rules.window_groups && !scenario->engine.hybrid_off;
    struct vp_sum bytes;

    memset(type, 0, sizeof *type);
    if (a->kind == VP_ATTENTION_NONE || a->shares_cache || a->bidirectional)
        return false;
    if (a->kind == VP_ATTENTION_LINEAR) {
        type->kind = VP_KV_STATE;
        bytes = state_bytes(a, layout, scenario);
        type->state_bytes = bytes.v;
    } else if (a->kind == VP_ATTENTION_COMPRESSED) {
        type->kind = VP_KV_WINDOW;
        type->window = a->window;
        bytes = vector_bytes(a, scenario->precision.kv_cache);
        type->token_bytes = bytes.v;
    } else {
        type->kind = a->kind == VP_ATTENTION_MLA && !a->expanded ? VP_KV_LATENT : VP_KV_FULL;
        if (a->source_tokens > 0) {
            type->kind = VP_KV_CROSS;
            type->window = a->source_tokens;
        } else if (groups && a->window > 0) {
            type->kind = VP_KV_WINDOW;
            type->window = a->window;
        } else if (groups && a->chunk > 0) {
            type->kind = VP_KV_CHUNK;
            type->window = a->chunk;
        }
        bytes = token_bytes(a, layout, scenario->precision.kv_cache);
        type->token_bytes = bytes.v;
    }
    *overflow |= bytes.overflow;
    return bytes.v > 0;
}

static void add_type(struct vp_kv_plan *plan, const struct vp_kv_type *type, uint64_t here,
                     uint64_t everywhere) {
    uint32_t t = 0;

    while (t < plan->types &&
           (plan->type[t].kind != type->kind || plan->type[t].window != type->window ||
            plan->type[t].token_bytes != type->token_bytes ||
            plan->type[t].state_bytes != type->state_bytes))
        t++;
    if (t == VP_KV_TYPES) {
        plan->too_many_types = true;
        return;
    }
    if (t == plan->types)
        plan->type[plan->types++] = *type;
    plan->type[t].layers += here;
    plan->type[t].model_layers += everywhere;
}

static void collect(struct vp_kv_plan *plan, const struct vp_scenario *scenario,
                    const struct vp_stage *stage, const struct vp_layout *layout) {
    const struct vp_model *model = scenario->model;

    for (uint32_t b = 0; b < model->block_count; b++) {
        const struct vp_block *block = &model->blocks[b];
        uint64_t here = vp_stage_layers(model, stage, b);
        struct vp_kv_type type;
        if (describe(&type, &plan->overflow, scenario, &block->attention, layout))
            add_type(plan, &type, here, block->count);
        if (describe_condensed(&type, &plan->overflow, scenario, &block->attention))
            add_type(plan, &type, here, block->count);
        if (describe(&type, &plan->overflow, scenario, &block->second, layout))
            add_type(plan, &type, here, block->count);
    }
}

/* Layers that speculative decoding adds to the pool. */
static void collect_draft(struct vp_kv_plan *plan, const struct vp_scenario *scenario,
                          const struct vp_stage *stage) {
    const struct vp_layout layout = vp_draft_layout(scenario);
    const struct vp_block *block;
    uint64_t count;

    for (uint32_t i = 0; vp_draft_layers(&block, &count, scenario, i); i++) {
        uint64_t here = stage->index + 1 == stage->count ? count : 0;
        struct vp_kv_type type;
        if (describe(&type, &plan->overflow, scenario, &block->attention, &layout))
            add_type(plan, &type, here, count);
        if (describe(&type, &plan->overflow, scenario, &block->second, &layout))
            add_type(plan, &type, here, count);
    }
}

/* A hybrid's attention block grows until one page of it holds a state. */
static void align_block(struct vp_kv_plan *plan, const struct vp_scenario *scenario) {
    const struct vp_rules *rules = &scenario->engine.rules;
    uint64_t state = 0, token = 0, align = rules->state_align;

    for (uint32_t t = 0; t < plan->types; t++) {
        const struct vp_kv_type *type = &plan->type[t];
        state = vp_max(state, type->state_bytes);
        if (type->kind == VP_KV_STATE)
            continue;
        token = vp_max(token, type->token_bytes);
        if (type->kind == VP_KV_LATENT)
            align = rules->latent_align;
    }
    if (state == 0 || token == 0 || align == 0)
        return;
    struct vp_sum unit = vp_sum_mul(vp_sum(align), token);
    plan->overflow |= unit.overflow;
    uint64_t needed = align * vp_ceil_div(state, unit.overflow ? UINT64_MAX : unit.v);
    plan->block_size = vp_max(plan->block_size, needed);
}

/* Types whose tokens take fewer bytes get longer blocks, so that all pages are equal where the
 * sizes divide; else the smaller page is padded. */
static void unify_pages(struct vp_kv_plan *plan) {
    for (uint32_t t = 0; t < plan->types; t++) {
        struct vp_sum page = vp_sum_mul(vp_sum(plan->type[t].token_bytes), plan->block_size);
        plan->overflow |= page.overflow;
        plan->page_bytes = vp_max(plan->page_bytes, page.v);
    }
    for (uint32_t t = 0; t < plan->types; t++) {
        struct vp_kv_type *type = &plan->type[t];
        uint64_t page = type->token_bytes * plan->block_size;
        type->block = plan->block_size;
        if (type->kind == VP_KV_STATE)
            plan->page_bytes = vp_max(plan->page_bytes, type->state_bytes);
        else if (page > 0 && plan->page_bytes % page == 0)
            type->block = plan->block_size * (plan->page_bytes / page);
    }
}

/* One group when all layers grow alike; their pages may then differ in size. */
static bool one_group(struct vp_kv_plan *plan) {
    bool alike = true;

    for (uint32_t t = 0; t < plan->types; t++)
        alike &= plan->type[t].kind == VP_KV_FULL || plan->type[t].kind == VP_KV_LATENT;
    if (plan->types > 1 && !alike)
        return false;
    struct vp_sum bytes = vp_sum(0);
    for (uint32_t t = 0; t < plan->types; t++) {
        struct vp_kv_type *type = &plan->type[t];
        struct vp_sum page = vp_sum_mul(vp_sum(type->token_bytes), plan->block_size);
        if (type->kind == VP_KV_STATE)
            page = vp_sum(type->state_bytes);
        bytes = vp_sum_plus(bytes, vp_sum_mul(page, type->layers));
        type->block = plan->block_size;
        type->groups = t == 0;
        plan->group_layers += type->layers;
        plan->page_bytes = vp_max(plan->page_bytes, page.v);
    }
    plan->groups = plan->types > 0;
    plan->unit_bytes = bytes.v;
    plan->overflow |= bytes.overflow;
    return true;
}

static void split_groups(struct vp_kv_plan *plan) {
    uint64_t least = UINT64_MAX, most = 0, size;

    for (uint32_t t = 0; t < plan->types; t++) {
        least = vp_min(least, plan->type[t].model_layers);
        most = vp_max(most, plan->type[t].model_layers);
    }
    /* nearly equal counts: one group each, the smaller padded (most < 1.25 x least) */
    size = 4 * most < 5 * least ? most : least;
    for (uint32_t t = 0; t < plan->types; t++) {
        struct vp_kv_type *type = &plan->type[t];
        type->groups = vp_ceil_div(type->model_layers, size);
        type->padding = type->groups * size - type->model_layers;
        plan->groups += type->groups;
        /* layers are dealt round robin to a type's groups, so a stage holds about equal parts */
        plan->group_layers = vp_max(plan->group_layers, vp_ceil_div(type->layers, type->groups));
        if (type->layers == type->model_layers)
            plan->group_layers = size;
    }
    unify_pages(plan);
    struct vp_sum bytes = vp_sum_mul(vp_sum(plan->page_bytes), plan->group_layers);
    plan->unit_bytes = bytes.v;
    plan->overflow |= bytes.overflow;
}

static void sum_types(struct vp_kv_plan *plan) {
    struct vp_sum token = vp_sum(0), state = vp_sum(0);

    for (uint32_t t = 0; t < plan->types; t++) {
        const struct vp_kv_type *type = &plan->type[t];
        if (type->kind == VP_KV_FULL || type->kind == VP_KV_LATENT || type->kind == VP_KV_CONDENSED)
            token = vp_sum_plus(token, vp_sum_mul(vp_sum(type->token_bytes), type->layers));
        state = vp_sum_plus(state, vp_sum_mul(vp_sum(type->state_bytes), type->layers));
    }
    plan->token_bytes = token.v;
    plan->state_bytes = state.v;
    plan->overflow |= token.overflow || state.overflow;
}

/* SGLang: a token slot in all full layers, and its share of the window layers' slots. Without full
 * layers the window layers' slots are the pool. */
static uint64_t token_cell(struct vp_kv_plan *plan, const struct vp_scenario *scenario) {
    const uint64_t billion = 1000000000;
    struct vp_sum window = vp_sum(0);

    for (uint32_t t = 0; t < plan->types; t++) {
        const struct vp_kv_type *type = &plan->type[t];
        plan->type[t].block = plan->block_size;
        if (type->kind == VP_KV_WINDOW || type->kind == VP_KV_CHUNK)
            window = vp_sum_plus(window, vp_sum_mul(vp_sum(type->token_bytes), type->layers));
    }
    plan->overflow |= window.overflow;
    if (plan->token_bytes == 0)
        return window.v;
    return plan->token_bytes +
           vp_mul_div(window.v, scenario->engine.rules.window_share_ppb, billion);
}

static bool has_condensed(const struct vp_kv_plan *plan) {
    for (uint32_t t = 0; t < plan->types; t++)
        if (plan->type[t].kind == VP_KV_CONDENSED)
            return true;
    return false;
}

/* vLLM keeps condensed entries in pages of 256 tokens of every layer, windows in pages of their
 * own sizes. The pool is counted in the former; windows take their share of it. What the pages of
 * the windows and of half-made entries waste is left out. */
static void mixed_pages(struct vp_kv_plan *plan) {
    enum { CONDENSED_BLOCK = 256 };
    struct vp_sum unit;

    plan->cut = VP_KV_BYTES;
    plan->groups = 1;
    plan->block_size = vp_max(plan->block_size, CONDENSED_BLOCK);
    unit = vp_sum_mul(vp_sum(plan->token_bytes), plan->block_size);
    plan->unit_bytes = vp_max(unit.v, 1);
    plan->overflow |= unit.overflow;
}

void vp_kv_plan_make(struct vp_kv_plan *out, const struct vp_scenario *scenario,
                     const struct vp_stage *stage) {
    const struct vp_engine *engine = &scenario->engine;
    struct vp_layout layout = vp_stage_layout(scenario);

    memset(out, 0, sizeof *out);
    out->block_size = engine->block_size;
    out->batched_tokens = engine->max_batched_tokens;
    out->context_ranks = vp_max(scenario->parallel.context, 1);
    out->state_pages = engine->prefix_caching ? engine->rules.state_pages_cached : 1;
    collect(out, scenario, stage, &layout);
    if (scenario->draft.method != VP_DRAFT_NONE) {
        out->state_pages += scenario->draft.tokens; /* a state to go back to for each of them */
        collect_draft(out, scenario, stage);
    }
    sum_types(out);
    if (scenario->engine.kind == VP_ENGINE_VLLM && has_condensed(out)) {
        mixed_pages(out);
    } else if (scenario->engine.kind == VP_ENGINE_VLLM) {
        align_block(out, scenario);
        if (scenario->measured.known[VP_M_BLOCK_SIZE])
            out->block_size = scenario->measured.value[VP_M_BLOCK_SIZE];
        if (!one_group(out))
            split_groups(out);
    } else {
        out->cut = scenario->engine.kind == VP_ENGINE_SGLANG ? VP_KV_TOKENS : VP_KV_BYTES;
        out->groups = out->types > 0;
        out->unit_bytes = out->cut == VP_KV_BYTES ? 1 : token_cell(out, scenario);
        if (out->unit_bytes == 0 && out->state_bytes > 0) { /* states alone: no tokens to count */
            out->cut = VP_KV_BYTES;
            out->unit_bytes = 1;
        }
        out->separate_state = out->cut == VP_KV_TOKENS && out->state_bytes > 0;
    }
}

uint64_t vp_kv_pages(const struct vp_kv_plan *plan, const struct vp_kv_type *type,
                     uint64_t tokens) {
    uint64_t most;

    if (plan->cut != VP_KV_PAGED) {
        if (type->kind == VP_KV_STATE)
            return 1;
        if (type->kind == VP_KV_CROSS)
            return type->window;
        return type->window > 0 ? vp_min(tokens, type->window) : tokens;
    }
    switch (type->kind) {
    case VP_KV_FULL:
    case VP_KV_LATENT:
    case VP_KV_CONDENSED: {
        struct vp_sum per = vp_sum_mul(vp_sum(type->block), plan->context_ranks);
        return vp_ceil_div(tokens, per.overflow ? UINT64_MAX : per.v);
    }
    case VP_KV_WINDOW: /* the window may start inside a page: one page more */
        most = vp_sum_add(vp_sum(type->window - 1), plan->batched_tokens).v;
        return vp_ceil_div(vp_min(most, tokens), type->block) + 1;
    case VP_KV_CHUNK:
        most = vp_sum_add(vp_sum(type->window), plan->batched_tokens).v;
        return vp_ceil_div(vp_min(most, tokens), type->block);
    case VP_KV_STATE:
        return plan->state_pages;
    case VP_KV_CROSS:
        return vp_ceil_div(type->window, type->block);
    }
    return 0;
}

uint64_t vp_kv_units(const struct vp_kv_plan *plan, uint64_t tokens) {
    struct vp_sum units = vp_sum(0);

    if (plan->cut == VP_KV_TOKENS && plan->unit_bytes > 0)
        return vp_ceil_div(tokens, plan->block_size) * plan->block_size;
    for (uint32_t t = 0; t < plan->types; t++) {
        const struct vp_kv_type *type = &plan->type[t];
        uint64_t each = plan->cut == VP_KV_PAGED
                            ? type->groups
                            : type->layers * (type->token_bytes + type->state_bytes);
        units = vp_sum_plus(units, vp_sum_mul(vp_sum(vp_kv_pages(plan, type, tokens)), each));
    }
    if (plan->cut == VP_KV_BYTES && plan->unit_bytes > 1)
        units.v = vp_ceil_div(units.v, plan->unit_bytes);
    return units.overflow ? UINT64_MAX : units.v;
}

uint64_t vp_kv_longest(const struct vp_kv_plan *plan, uint64_t units, uint64_t sequences,
                       uint64_t limit) {
    uint64_t fits = 0, beyond = limit;

    if (sequences == 0)
        return limit;
    units /= sequences;
    if (vp_kv_units(plan, limit) <= units)
        return limit;
    /* units never fall with the length (a test), so bisection is exact */
    while (beyond - fits > 1) {
        uint64_t middle = fits + (beyond - fits) / 2;
        if (vp_kv_units(plan, middle) <= units)
            fits = middle;
        else
            beyond = middle;
    }
    return fits;
}

/* Rows of an engine without pages: sequences x tokens kept x layers x bytes. */
static void add_kept(struct vp_ledger *ledger, const struct vp_kv_plan *plan, uint64_t sequences,
                     uint64_t tokens, uint32_t device) {
    for (uint32_t t = 0; t < plan->types; t++) {
        const struct vp_kv_type *type = &plan->type[t];
        bool state = type->kind == VP_KV_STATE;
        uint64_t kept = vp_kv_pages(plan, type, tokens);
        uint64_t each = state ? type->state_bytes : type->token_bytes;
        struct vp_row *row = vp_ledger_add(ledger, state ? VP_C_RECURRENT_STATE : VP_C_KV_CACHE,
                                           state ? VP_FORMULA_KV_STATE_PLAIN : VP_FORMULA_KV_TOKENS,
                                           device, vp_kv_kind_name(type->kind));
        row->from = VP_STEP_CAPTURE;
        row->layers = (uint32_t)type->layers;
        vp_row_input(row, "sequences", sequences);
        if (!state)
            vp_row_input(row, "tokens_kept", kept);
        vp_row_input(row, "layers", type->layers);
        vp_row_input(row, state ? "state_bytes" : "token_bytes", each);
        vp_row_exact(
            ledger, row,
            vp_sum_mul(vp_sum_mul(vp_sum_mul(vp_sum(sequences), kept), type->layers), each));
    }
}

static void add_paged(struct vp_ledger *ledger, const struct vp_kv_plan *plan, uint64_t sequences,
                      uint64_t tokens, uint32_t device) {
    bool uniform = plan->groups == 1;

    for (uint32_t t = 0; t < plan->types; t++) {
        const struct vp_kv_type *type = &plan->type[t];
        uint64_t pages = vp_kv_pages(plan, type, tokens);
        bool state = type->kind == VP_KV_STATE;
        struct vp_sum bytes = vp_sum_mul(vp_sum(sequences), pages);
        struct vp_row *row = vp_ledger_add(ledger, state ? VP_C_RECURRENT_STATE : VP_C_KV_CACHE,
                                           state                        ? VP_FORMULA_KV_STATE
                                           : type->kind == VP_KV_LATENT ? VP_FORMULA_KV_LATENT
                                                                        : VP_FORMULA_KV_PAGE,
                                           device, vp_kv_kind_name(type->kind));
        row->from = VP_STEP_CAPTURE;
        row->layers = (uint32_t)type->layers;
        vp_row_input(row, "sequences", sequences);
        vp_row_input(row, "tokens", tokens);
        vp_row_input(row, "pages", pages);
        vp_row_input(row, "block", type->block);
        vp_row_input(row, state ? "state_bytes" : "token_bytes",
                     state ? type->state_bytes : type->token_bytes);
        if (uniform) {
            uint64_t page = state ? type->state_bytes : type->token_bytes * type->block;
            vp_row_input(row, "layers", type->layers);
            bytes = vp_sum_mul(vp_sum_mul(bytes, page), type->layers);
        } else {
            vp_row_input(row, "groups", type->groups);
            vp_row_input(row, "block_bytes", plan->unit_bytes);
            bytes = vp_sum_mul(vp_sum_mul(bytes, type->groups), plan->unit_bytes);
        }
        vp_row_exact(ledger, row, bytes);
    }
}

void vp_kv_add(struct vp_ledger *ledger, const struct vp_kv_plan *plan, uint64_t sequences,
               uint64_t tokens, uint32_t device) {
    ledger->overflow |= plan->overflow;
    if (plan->cut == VP_KV_PAGED)
        add_paged(ledger, plan, sequences, tokens, device);
    else
        add_kept(ledger, plan, sequences, tokens, device);
}

const char *vp_kv_kind_name(enum vp_kv_kind kind) {
    static const char *const names[] = {"full",  "latent", "window",   "chunk",
                                        "state", "cross",  "condensed"};
    return names[kind];
}
