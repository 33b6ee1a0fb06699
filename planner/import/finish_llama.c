/* llama.cpp and ollama: the server's own defaults of that version, what the neutral fields of a
 * scenario mean for it, and what must hold between them. */
#include "planner/import/finish_parts.h"

#include <inttypes.h>
#include <string.h>

#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/import/finish_llama_model.h"

static const uint64_t MOST_TOKENS = UINT64_C(1) << 34; /* of context over all slots */

static void bad(struct vp_ctx *ctx, const struct vp_scenario *s, enum vp_field field,
                const char *want, const char *text) {
    vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &s->source[field].pos, "%s must be %s, not %.100s",
                vp_field_label(s->engine.kind, field), want, text);
}

/* ---- words ---- */

static bool is_one_of(const char *text, const char *const words[], size_t count) {
    for (size_t i = 0; i < count; i++)
        if (vp_name_eq(text, words[i]))
            return true;
    return false;
}

static void read_flash(struct vp_ctx *ctx, struct vp_scenario *s) {
    static const char *const ON[] = {"on", "true", "1", "enabled", "yes"};
    static const char *const OFF[] = {"off", "false", "0", "disabled", "no"};
    static const char *const AUTO[] = {"auto", "-1"};
    const char *text = s->llama.flash_name;

    if (is_one_of(text, ON, 5))
        s->llama.flash = VP_FLASH_ON;
    else if (is_one_of(text, OFF, 5))
        s->llama.flash = VP_FLASH_OFF;
    else if (is_one_of(text, AUTO, 2))
        s->llama.flash = VP_FLASH_AUTO;
    else
        bad(ctx, s, VP_F_FLASH_ATTN, "on, off or auto", text);
}

static void read_split(struct vp_ctx *ctx, struct vp_scenario *s) {
    static const char *const NAMES[] = {"layer", "none", "row", "tensor"};
    int i = 0;

    while (i < 4 && !vp_name_eq(s->llama.split_name, NAMES[i]))
        i++;
    if (i == 4) {
        bad(ctx, s, VP_F_SPLIT_MODE, "layer, none, row or tensor", s->llama.split_name);
        return;
    }
    s->llama.split = (enum vp_split)i;
    if (i < VP_SPLIT_ROW || s->hardware.count < 2)
        return;
    vp_diag_add(ctx->diags, VP_D_UNMODELLED, &s->source[VP_F_SPLIT_MODE].pos,
                "split_mode %s is not modelled: how it divides tensors and buffers is not known",
                NAMES[i]);
    vp_diag_hint(ctx->diags, "modelled are layer and none");
}

/* "3,1" or "3/1": shares of the GPUs in their order; what is not named gets nothing. */
static void read_shares(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_llama *l = &s->llama;
    const char *at = l->split_text;
    double share, sum = 0;

    while (*at) {
        size_t n = strcspn(at, ",/");
        bool ok = vp_parse_real(&share, vp_arena_text(ctx->arena, at, n)) && share >= 0 &&
                  share < 1e6 && l->shares < VP_LLAMA_MAX_DEVICES;
        if (!ok) {
            bad(ctx, s, VP_F_TENSOR_SPLIT, "numbers with commas between them (3,1)", l->split_text);
            return;
        }
        sum += share;
        l->share_ppb[l->shares++] = (uint64_t)(share * 1e9 + 0.5);
        at += n + (at[n] != '\0');
    }
    if (!(sum > 0))
        l->shares = 0; /* as if it were not said */
}

static void read_words(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_llama *l = &s->llama;

    if (vp_scenario_is_given(s, VP_F_FLASH_ATTN))
        read_flash(ctx, s);
    if (vp_scenario_is_given(s, VP_F_SPLIT_MODE))
        read_split(ctx, s);
    else
        l->split_name = "layer";
    if (vp_scenario_is_given(s, VP_F_TENSOR_SPLIT))
        read_shares(ctx, s);
}

/* ---- formats ---- */

static bool is_cache_type(enum vp_dtype dtype) {
    return vp_dtype_is_plain(dtype) || dtype == VP_DTYPE_Q8_0 || dtype == VP_DTYPE_Q4_0 ||
           dtype == VP_DTYPE_Q4_1 || dtype == VP_DTYPE_Q5_0 || dtype == VP_DTYPE_Q5_1 ||
           dtype == VP_DTYPE_IQ4_NL;
}

static void set_cache_type(struct vp_ctx *ctx, struct vp_scenario *s, enum vp_field field,
                           enum vp_dtype *type) {
    enum vp_dtype neutral = s->precision.kv_cache;
    bool both = vp_scenario_is_given(s, VP_F_KV_DTYPE) && neutral != VP_DTYPE_UNSET;

    if (vp_scenario_is_given(s, field) && *type != VP_DTYPE_UNSET) {
        if (both && *type != neutral) {
            vp_diag_add(ctx->diags, VP_D_CONTRADICTION, &s->source[field].pos,
                        "%s is %s, but precision.kv_cache is %s",
                        vp_field_label(s->engine.kind, field), vp_dtype_name(*type),
                        vp_dtype_name(neutral));
            vp_diag_hint(ctx->diags, "both mean the same fact: keep one of the two");
        }
    } else if (both) {
        *type = neutral;
        vp_finish_note(s, field, VP_ORIGIN_DERIVED, "precision.kv_cache");
    } else {
        *type = VP_DTYPE_FP16;
        vp_finish_note(s, field, VP_ORIGIN_DEFAULT, "llama-server's default");
    }
    if (is_cache_type(*type))
        return;
    vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &s->source[both ? VP_F_KV_DTYPE : field].pos,
                "llama.cpp has no cache of type %s", vp_dtype_name(*type));
    vp_diag_hint(ctx->diags, "it has f32, f16, bf16, q8_0, q4_0, q4_1, iq4_nl, q5_0 and q5_1");
}

static void set_formats(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_precision *p = &s->precision;

    if (!vp_scenario_is_given(s, VP_F_WEIGHTS)) {
        p->weights = "checkpoint";
        vp_finish_note(s, VP_F_WEIGHTS, VP_ORIGIN_DEFAULT, "as stored in the file");
    }
    if (p->compute == VP_DTYPE_UNSET) {
        p->compute = VP_DTYPE_FP32;
        vp_finish_note(s, VP_F_COMPUTE, VP_ORIGIN_DERIVED, "ggml's graphs are fp32");
    }
    set_cache_type(ctx, s, VP_F_CACHE_TYPE_K, &s->llama.type_k);
    set_cache_type(ctx, s, VP_F_CACHE_TYPE_V, &s->llama.type_v);
    if (!vp_scenario_is_given(s, VP_F_KV_DTYPE) || p->kv_cache == VP_DTYPE_UNSET) {
        p->kv_cache = s->llama.type_k;
        vp_finish_note(s, VP_F_KV_DTYPE, VP_ORIGIN_DERIVED,
                       vp_field_label(s->engine.kind, VP_F_CACHE_TYPE_K));
    }
}

/* ---- slots and context ---- */

static void set_slots(struct vp_scenario *s) {
    const struct vp_llama_rules *rules = &s->engine.rules.llama;
    struct vp_llama *l = &s->llama;
    bool given = vp_scenario_is_given(s, VP_F_LLAMA_SLOTS);
    bool wanted = vp_scenario_is_given(s, VP_F_CONCURRENCY);

    if (!given && wanted)
        vp_finish_number(s, VP_F_LLAMA_SLOTS, &l->slots, s->serve.concurrency, VP_ORIGIN_DERIVED,
                         "serve.concurrency");
    else
        vp_finish_number(s, VP_F_LLAMA_SLOTS, &l->slots, rules->default_slots, VP_ORIGIN_DEFAULT,
                         "the server's default");
    if (!wanted) {
        s->serve.concurrency = l->slots;
        vp_finish_note(s, VP_F_CONCURRENCY, VP_ORIGIN_DERIVED, "every slot is busy");
    }
    if (!vp_scenario_is_given(s, VP_F_KV_UNIFIED)) {
        l->unified = rules->always_unified || (!given && !wanted && rules->default_unified);
        vp_finish_note(s, VP_F_KV_UNIFIED, VP_ORIGIN_DEFAULT,
                       l->unified ? "this version's server shares the cache"
                                  : "slots that were asked for have caches of their own");
    }
}

static bool shared(const struct vp_scenario *s) {
    return s->llama.unified || s->engine.rules.llama.always_unified;
}

/* The longest sequence that a slot can hold. */
static uint64_t slot_context(const struct vp_scenario *s) {
    return shared(s) ? s->llama.context : s->llama.context / vp_max(s->llama.slots, 1);
}

static bool context_from_model(struct vp_ctx *ctx, struct vp_scenario *s, bool asked) {
    struct vp_llama *l = &s->llama;

    if (s->model->max_position == 0) {
        vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, &s->model->pos,
                    "ctx_size is missing, and the model's description names no limit");
        vp_diag_hint(ctx->diags, "--context 8192, or engine: {args: {ctx_size: 8192}}");
        return false;
    }
    l->context = s->model->max_position;
    if (!asked)
        vp_finish_note(s, VP_F_CTX_SIZE, VP_ORIGIN_DEFAULT,
                       l->fit_context ? "the model's own; the engine's own fit may lower it"
                                      : "the model's own");
    return true;
}

/* The total over all slots: as given, or serve.context for every sequence in flight; slots that
 * share one cache are not taken to be all full unless serve.concurrency says so. */
static bool set_context(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_llama *l = &s->llama;
    bool given = vp_scenario_is_given(s, VP_F_CTX_SIZE);
    bool wanted = vp_scenario_is_given(s, VP_F_CONTEXT);

    if (given && l->context == 0 && !wanted)
        return context_from_model(ctx, s, true);
    if (given && l->context > 0)
        return true;
    if (!wanted)
        return context_from_model(ctx, s, false);
    bool one = l->unified && !vp_scenario_is_given(s, VP_F_CONCURRENCY);
    struct vp_sum total = vp_sum_mul(vp_sum(s->serve.context), one ? 1 : l->slots);
    l->context = total.overflow ? UINT64_MAX : total.v;
    vp_finish_note(s, VP_F_CTX_SIZE, VP_ORIGIN_DERIVED,
                   one ? "serve.context, shared by all slots" : "serve.context for every slot");
    if (one) {
        s->serve.concurrency = 1;
        vp_finish_note(s, VP_F_CONCURRENCY, VP_ORIGIN_DERIVED, "slots share the cache");
    }
    return true;
}

static void check_context(struct vp_ctx *ctx, struct vp_scenario *s) {
    uint64_t most = slot_context(s), *context = &s->serve.context;

    if (s->llama.context > MOST_TOKENS) {
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &s->source[VP_F_CTX_SIZE].pos,
                    "ctx_size of %" PRIu64 " tokens is more than any cache holds",
                    s->llama.context);
        return;
    }
    vp_finish_number(s, VP_F_CONTEXT, context, most, VP_ORIGIN_DERIVED,
                     s->llama.slots == 1 ? "ctx_size"
                     : shared(s)         ? "ctx_size, which all slots share"
                                         : "ctx_size / parallel");
    if (*context > most) {
        vp_diag_add(ctx->diags, VP_D_CONTRADICTION, &s->source[VP_F_CONTEXT].pos,
                    "serve.context is %" PRIu64 ", but ctx_size %" PRIu64 " leaves %" PRIu64
                    " for each of %" PRIu64 " slots",
                    *context, s->llama.context, most, s->llama.slots);
        vp_diag_hint(ctx->diags, "ctx_size counts all slots: raise it, lower parallel, or share "
                                 "the cache with kv_unified");
    }
    if (s->model->max_position > 0 && *context > s->model->max_position)
        vp_diag_add(ctx->diags, VP_D_CONTEXT_BEYOND, &s->source[VP_F_CONTEXT].pos,
                    "the context is %" PRIu64 ", the model was trained for %" PRIu64, *context,
                    s->model->max_position);
}

/* ---- the rest ---- */

static void set_layers(struct vp_scenario *s) {
    const struct vp_llama_rules *rules = &s->engine.rules.llama;
    struct vp_llama *l = &s->llama;
    bool given = vp_scenario_is_given(s, VP_F_N_GPU_LAYERS);
    bool context = vp_scenario_is_given(s, VP_F_CTX_SIZE) || vp_scenario_is_given(s, VP_F_CONTEXT);

    l->fit_layers = rules->fit && !given && s->hardware.count > 0;
    l->fit_context = l->fit_layers && !context;
    if (s->hardware.count == 0)
        vp_finish_number(s, VP_F_N_GPU_LAYERS, &l->gpu_layers, 0, VP_ORIGIN_DERIVED,
                         "there is no GPU");
    else
        vp_finish_number(s, VP_F_N_GPU_LAYERS, &l->gpu_layers, rules->default_gpu_layers,
                         VP_ORIGIN_DEFAULT,
                         rules->fit ? "all, unless the engine's own fit lowers it"
                         : rules->default_gpu_layers == 0 ? "this version's default: none"
                                                          : "all");
    if (!l->fit_layers)
        return;
    vp_finish_number(s, VP_F_FIT_TARGET, &l->fit_margin_mib, 1024, VP_ORIGIN_DEFAULT,
                     "llama-server's default");
    vp_finish_number(s, VP_F_FIT_CTX, &l->fit_context_least, 4096, VP_ORIGIN_DEFAULT,
                     "llama-server's default");
}

static void set_switches(struct vp_scenario *s) {
    const struct vp_llama_rules *rules = &s->engine.rules.llama;
    struct vp_llama *l = &s->llama;
    static const char DEFAULT[] = "llama-server's default";

    vp_finish_number(s, VP_F_LLAMA_BATCH, &l->batch,
                     s->engine.kind == VP_ENGINE_OLLAMA ? 512 : 2048, VP_ORIGIN_DEFAULT,
                     s->engine.kind == VP_ENGINE_OLLAMA ? "ollama's default" : DEFAULT);
    vp_finish_number(s, VP_F_LLAMA_UBATCH, &l->ubatch, vp_min(512, l->batch), VP_ORIGIN_DEFAULT,
                     DEFAULT);
    if (!vp_scenario_is_given(s, VP_F_FLASH_ATTN)) {
        l->flash = rules->default_flash ? VP_FLASH_AUTO : VP_FLASH_OFF;
        l->flash_name = rules->default_flash ? "auto" : "off";
        vp_finish_note(s, VP_F_FLASH_ATTN, VP_ORIGIN_DEFAULT,
                       rules->default_flash ? "on wherever the backend can"
                                            : "this version's default");
    }
    if (!vp_scenario_is_given(s, VP_F_LLAMA_MMAP)) {
        l->mmap = true;
        vp_finish_note(s, VP_F_LLAMA_MMAP, VP_ORIGIN_DEFAULT, DEFAULT);
    }
    if (!vp_scenario_is_given(s, VP_F_EMBEDDINGS) && rules->embeddings) {
        l->embeddings = true;
        vp_finish_note(s, VP_F_EMBEDDINGS, VP_ORIGIN_DEFAULT, "this version's runner does so");
    }
}

/* Parallelism has other words here. */
static void check_parallel(struct vp_ctx *ctx, struct vp_scenario *s) {
    static const enum vp_field SIZES[] = {VP_F_TENSOR, VP_F_PIPELINE,         VP_F_DATA,
                                          VP_F_EXPERT, VP_F_CONTEXT_PARALLEL, VP_F_ATTENTION_DATA};
    const uint64_t sizes[] = {s->parallel.tensor, s->parallel.pipeline, s->parallel.data,
                              s->parallel.expert, s->parallel.context,  s->parallel.attention_data};

    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        if (!vp_scenario_is_given(s, SIZES[i]))
            s->source[SIZES[i]].origin = VP_ORIGIN_UNSET; /* nothing that anybody assumes */
        if (s->source[SIZES[i]].origin == VP_ORIGIN_UNSET || sizes[i] < 2)
            continue;
        vp_diag_add(ctx->diags, VP_D_CONTRADICTION, &s->source[SIZES[i]].pos,
                    "%s has no %s: it divides layers over hardware.count devices", s->engine.name,
                    vp_field_info(SIZES[i])->path);
        vp_diag_hint(ctx->diags, "hardware: {count: N}; engine.args.tensor_split says the shares");
    }
}

static void refuse_extras(struct vp_ctx *ctx, const struct vp_scenario *s) {
    const struct {
        bool is;
        enum vp_field field;
        const char *what;
    } REFUSED[] = {
        {s->draft.method != VP_DRAFT_NONE && s->draft.method != VP_DRAFT_NGRAM, VP_F_DRAFT_MODEL,
         "a draft model, which is a second context"},
        {s->lora.enabled || s->lora.slots > 0, VP_F_LORA_SLOTS, "adapters"},
        {s->offload.weights_bytes > 0 || s->offload.weights_ppb > 0, VP_F_OFFLOAD_WEIGHTS,
         "serve.offload: say n_gpu_layers, n_cpu_moe or override_tensor;"},
        {s->offload.kv_bytes > 0, VP_F_OFFLOAD_KV, "a second cache in host memory"},
    };

    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        if (!REFUSED[i].is)
            continue;
        vp_diag_add(ctx->diags, VP_D_UNMODELLED, &s->source[REFUSED[i].field].pos,
                    "%s is not modelled for %s", REFUSED[i].what, s->engine.name);
        vp_diag_hint(ctx->diags, "no answer is given, because it would leave out its memory");
    }
}

enum vp_status vp_finish_llama(struct vp_ctx *ctx, struct vp_scenario *s, bool resolved) {
    uint32_t errors = ctx->diags->errors;

    check_parallel(ctx, s);
    refuse_extras(ctx, s);
    read_words(ctx, s);
    set_formats(ctx, s);
    if (s->hardware.count > VP_LLAMA_MAX_DEVICES) {
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &s->source[VP_F_COUNT].pos,
                    "llama.cpp takes %d devices at most", VP_LLAMA_MAX_DEVICES);
    }
    if (!resolved || ctx->diags->errors > errors)
        return VP_ERR_INPUT;
    set_slots(s);
    set_layers(s);
    set_switches(s);
    if (set_context(ctx, s))
        check_context(ctx, s);
    if (ctx->diags->errors > errors)
        return VP_ERR_INPUT;
    s->engine.max_model_len = s->serve.context;
    return vp_finish_llama_model(ctx, s);
}
