/* Adapters, speculative decoding, images and host memory: defaults, what must hold, and what is
 * refused for an engine. */
#include "planner/import/finish_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/doc/yaml.h"
#include "planner/import/engine_args.h"
#include "planner/model/requantise.h"

static void refuse(struct vp_ctx *ctx, const struct vp_source *source, const char *what,
                   const char *why) {
    vp_diag_add(ctx->diags, VP_D_UNMODELLED, &source->pos, "%s is not modelled %s", what, why);
    vp_diag_hint(ctx->diags, "no answer is given, because it would leave out its memory");
}

static const char *engine_text(struct vp_ctx *ctx, const struct vp_scenario *s) {
    return vp_arena_printf(ctx->arena, "for %s", s->engine.name);
}

/* ---- adapters ---- */

/* Ranks that vLLM takes (config/lora.py). */
static void check_rank(struct vp_ctx *ctx, const struct vp_scenario *s) {
    static const uint64_t RANKS[] = {8, 16, 32, 64, 128, 256, 320, 512};
    enum { COUNT = sizeof RANKS / sizeof *RANKS };
    size_t i = 0;

    if (s->lora.rank == 1)
        return;
    while (i < COUNT && RANKS[i] < s->lora.rank)
        i++;
    if (i < COUNT && RANKS[i] == s->lora.rank)
        return;
    vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &s->source[VP_F_LORA_RANK].pos,
                "vllm keeps slots of rank 1, 8, 16, 32, 64, 128, 256, 320 or 512, not %" PRIu64,
                s->lora.rank);
    if (i < COUNT)
        vp_diag_hint(ctx->diags, "an adapter of rank %" PRIu64 " needs slots of %" PRIu64,
                     s->lora.rank, RANKS[i]);
}

/* Layers whose matrices are not known one by one, and experts under expert parallelism. */
static void check_layers(struct vp_ctx *ctx, const struct vp_scenario *s) {
    const struct vp_source *source = &s->source[VP_F_LORA_SLOTS];
    bool experts = false, given = false, plain = true;

    for (uint32_t i = 0; i < s->model->block_count; i++) {
        const struct vp_block *block = &s->model->blocks[i];
        experts |= block->moe.kind != VP_MLP_NONE;
        given |= block->attention.kind == VP_ATTENTION_LINEAR &&
                 block->attention.linear == VP_LINEAR_GIVEN;
        plain &=
            block->attention.kind == VP_ATTENTION_GQA || block->attention.kind == VP_ATTENTION_NONE;
    }
    if (given)
        refuse(ctx, source, "adapters on hand-described recurrent layers", "at all");
    if (experts && s->engine.expert_parallel && s->engine.rules.lora_experts != VP_NEVER)
        refuse(ctx, source, "adapters on experts that are dealt over the ranks",
               "(vLLM took none there for long)");
    if (s->engine.kind == VP_ENGINE_SGLANG && !plain)
        refuse(ctx, source, "adapters on other layers than attention with plain heads",
               engine_text(ctx, s));
}

static void finish_rank(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_lora *lora = &s->lora;

    if (s->engine.kind == VP_ENGINE_VLLM) {
        vp_finish_number(s, VP_F_LORA_RANK, &lora->rank, 16, VP_ORIGIN_DEFAULT,
                         "max_lora_rank of vllm serve");
        check_rank(ctx, s);
    } else if (lora->rank == 0) {
        vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, &s->source[VP_F_ENABLE_LORA].pos,
                    "the adapters' largest rank is missing");
        vp_diag_hint(ctx->diags, "sglang reads it from the adapters: give max_lora_rank, or "
                                 "serve: {lora: {slots: 8, rank: 16}}");
    }
}

static void finish_lora(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_lora *lora = &s->lora;
    bool sglang = s->engine.kind == VP_ENGINE_SGLANG;
    bool neutral = s->source[VP_F_LORA_SLOTS].origin == VP_ORIGIN_FILE ||
                   s->source[VP_F_LORA_RANK].origin == VP_ORIGIN_FILE;
    bool flags = s->source[VP_F_LORA_SLOTS].origin == VP_ORIGIN_FLAG ||
                 s->source[VP_F_LORA_RANK].origin == VP_ORIGIN_FLAG;

    if (!vp_scenario_is_given(s, VP_F_ENABLE_LORA)) {
        const char *paths = vp_engine_arg(&s->engine, "lora_paths");
        lora->enabled =
            neutral || flags || (sglang && (paths || vp_scenario_is_given(s, VP_F_LORA_RANK)));
        if (lora->enabled)
            vp_finish_note(s, VP_F_ENABLE_LORA, VP_ORIGIN_DERIVED, "slots are asked for");
    } else if (!lora->enabled && neutral) {
        vp_diag_add(ctx->diags, VP_D_CONTRADICTION, &s->source[VP_F_ENABLE_LORA].pos,
                    "engine.args.enable_lora is false, but serve.lora asks for adapters");
    }
    if (!lora->enabled)
        return;
    if (s->engine.kind == VP_ENGINE_TRANSFORMERS) {
        refuse(ctx, &s->source[VP_F_LORA_SLOTS], "serve.lora", engine_text(ctx, s));
        return;
    }
    vp_finish_number(s, VP_F_LORA_SLOTS, &lora->slots, sglang ? 8 : 1, VP_ORIGIN_DEFAULT,
                     sglang ? "max_loras_per_batch of sglang" : "max_loras of vllm serve");
    finish_rank(ctx, s);
    if (lora->dtype == VP_DTYPE_UNSET) {
        lora->dtype = s->precision.compute;
        vp_finish_note(s, VP_F_LORA_DTYPE, VP_ORIGIN_DERIVED, "auto: the compute type");
    }
    check_layers(ctx, s);
}

/* ---- speculative decoding ---- */

static void finish_draft(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_draft *draft = &s->draft;
    const struct vp_extra *mtp = vp_model_mtp(s->model);
    const struct vp_source *source = &s->source[draft->name ? VP_F_DRAFT_MODEL : VP_F_DRAFT_METHOD];

    if (draft->method == VP_DRAFT_NONE)
        return;
    if (s->engine.kind != VP_ENGINE_VLLM) {
        refuse(ctx, source, "speculative decoding", engine_text(ctx, s));
        return;
    }
    if (s->engine.rules.budget <= VP_VLLM_V0) {
        refuse(ctx, source, "speculative decoding",
               "for vllm's V0 engine, which split its cache in another way");
        return;
    }
    if (draft->method == VP_DRAFT_MTP && mtp)
        vp_finish_number(s, VP_F_DRAFT_TOKENS, &draft->tokens, mtp->layers, VP_ORIGIN_DEFAULT,
                         "as many as the model has layers for it");
    if (draft->tokens == 0) {
        vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, &source->pos,
                    "speculative decoding: the number of tokens per step is missing");
        vp_diag_hint(ctx->diags, "serve: {draft: {tokens: 3}}, or num_speculative_tokens");
    }
    vp_finish_number(s, VP_F_DRAFT_TENSOR, &draft->tensor, s->parallel.tensor, VP_ORIGIN_DERIVED,
                     "divided like the target");
    if (draft->tensor != 1 && draft->tensor != s->parallel.tensor)
        vp_diag_add(ctx->diags, VP_D_LAYOUT, &s->source[VP_F_DRAFT_TENSOR].pos,
                    "the draft's %" PRIu64
                    " tensor-parallel ranks must be 1 or the target's %" PRIu64,
                    draft->tensor, s->parallel.tensor);
    if (!draft->model)
        return;
    vp_model_load_plain_as(draft->model, s->precision.compute);
    if (draft->method != VP_DRAFT_MODEL) /* with stages the target's embedding is elsewhere */
        draft->model->embedding = s->parallel.pipeline > 1;
}

/* ---- images ---- */

/* The number behind a modality in limit_mm_per_prompt: {image: 4}, {image: {count: 4}}, "image=4".
 */
static bool limit_of(struct vp_ctx *ctx, uint64_t *out, const char *text, const char *modality) {
    struct vp_bytes bytes = {text, strlen(text)};
    struct vp_node *map = NULL;
    char *end;

    if (text[0] == '{') {
        if (vp_yaml_read(ctx, &map, bytes, "limit_mm_per_prompt") != VP_OK)
            return false;
        const struct vp_node *node = vp_node_get(map, modality);
        if (node && node->kind == VP_NODE_MAP)
            node = vp_node_get(node, "count");
        return vp_node_u64(out, node);
    }
    const char *at = strstr(text, modality);
    size_t n = strlen(modality);
    if (!at || at[n] != '=' || at[n + 1] < '0' || at[n + 1] > '9')
        return false;
    *out = strtoull(at + n + 1, &end, 10);
    return true;
}

/* max_pixels and longest_edge (of Qwen-VL in pixels too) bound the largest image. */
static void limit_pixels(struct vp_ctx *ctx, struct vp_encoder *e, const char *text) {
    struct vp_bytes bytes = {text, strlen(text)};
    struct vp_node *map = NULL;
    uint64_t pixels = 0;

    if (!e->video || text[0] != '{' ||
        vp_yaml_read(ctx, &map, bytes, "mm_processor_kwargs") != VP_OK)
        return;
    if (!vp_node_u64(&pixels, vp_node_get(map, "max_pixels")) &&
        !vp_node_u64(&pixels, vp_node_get(vp_node_get(map, "size"), "longest_edge")))
        return;
    /* a patch of one frame; patch_elements counts three colours and two frames of it */
    uint64_t patches = pixels / vp_max(e->patch_elements / 6, 1);
    uint64_t merged = vp_max(e->item_patches / vp_max(e->item_tokens, 1), 1);
    e->item_tokens = e->item_outputs = vp_max(patches / merged, 1);
    e->item_patches = e->item_tokens * merged;
}

static void finish_limits(struct vp_ctx *ctx, struct vp_scenario *s) {
    const char *limits = vp_engine_arg(&s->engine, "limit_mm_per_prompt");
    const char *only = vp_engine_arg(&s->engine, "language_model_only");
    const char *pixels = vp_engine_arg(&s->engine, "mm_processor_kwargs");
    const char *mode = vp_engine_arg(&s->engine, "mm_encoder_tp_mode");
    const char *skip = vp_engine_arg(&s->engine, "skip_mm_profiling");
    uint64_t images = 1, videos = 1;
    bool image = limits && limit_of(ctx, &images, limits, "image");
    bool video = limits && limit_of(ctx, &videos, limits, "video");

    if (pixels)
        limit_pixels(ctx, &s->model->encoder, pixels);
    if (image && images > 0)
        s->images.limit = images;
    bool no_images = image && images == 0;
    bool no_videos = !s->model->encoder.video || (video && videos == 0);
    s->images.off = vp_text_eq(only, "true") || (no_images && no_videos);
    s->images.unprofiled = vp_text_eq(skip, "true");
    for (uint32_t i = 0; vp_text_eq(mode, "data") && i < s->model->extra_count; i++)
        if (s->model->extras[i].class_ == VP_CLASS_VISION)
            s->model->extras[i].sharded = false; /* whole on every rank */
}

static void finish_images(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_images *images = &s->images;
    const struct vp_source *source = &s->source[VP_F_IMAGES];

    finish_limits(ctx, s);
    if (images->per_request == 0)
        return;
    if (!s->model->multimodal || images->off) {
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &source->pos,
                    images->off ? "serve.images is %" PRIu64 ", but the engine is told to take none"
                                : "serve.images is %" PRIu64 ", but the model takes text only",
                    images->per_request);
        return;
    }
    if (s->model->encoder.image_tokens > 0)
        vp_finish_number(s, VP_F_IMAGE_TOKENS, &images->tokens, s->model->encoder.image_tokens,
                         VP_ORIGIN_DERIVED, "the same for any image of this model");
    else if (s->model->encoder.known)
        vp_finish_number(s, VP_F_IMAGE_TOKENS, &images->tokens, s->model->encoder.item_tokens,
                         VP_ORIGIN_DERIVED, "of the largest image; smaller ones take less");
    struct vp_sum all = vp_sum_mul(vp_sum(images->per_request), images->tokens);
    bool known = images->tokens > 0;
    if (known && (all.overflow || all.v > s->serve.context))
        vp_diag_add(ctx->diags, VP_D_CONTRADICTION, &source->pos,
                    "%" PRIu64 " images of %" PRIu64 " tokens do not fit a context of %" PRIu64,
                    images->per_request, images->tokens, s->serve.context);
    else if (known)
        vp_diag_add(ctx->diags, VP_D_IMAGE_TOKENS, &source->pos,
                    "%" PRIu64 " x %" PRIu64
                    " tokens of images are part of the context of %" PRIu64,
                    images->per_request, images->tokens, s->serve.context);
    else
        vp_diag_add(ctx->diags, VP_D_IMAGE_TOKENS, &source->pos,
                    "how many tokens an image of this model takes is not known; they are part of "
                    "the context");
}

/* ---- host memory ---- */

/* From 0.25 on many models run on another model runner, which passed the option over at first. */
static void warn_runner(struct vp_ctx *ctx, const struct vp_scenario *s, const struct vp_pos *pos) {
    struct vp_version from;

    if (s->engine.kind != VP_ENGINE_VLLM || !vp_version_parse(&from, "0.25") ||
        vp_version_compare(s->engine.version, from) < 0)
        return;
    vp_diag_add(ctx->diags, VP_D_OFFLOAD_UNSURE, pos,
                "vllm's second model runner, the default for many models from 0.25 on, passed "
                "cpu_offload_gb over without a word (issue 51396)");
    vp_diag_hint(ctx->diags,
                 "look for \"offloaded\" in the start-up log; VLLM_USE_V2_MODEL_RUNNER=0 "
                 "takes the first one");
}

/* swap_space is of each rank, and of V0 only: later versions ignore it. */
static void finish_swap(struct vp_scenario *s) {
    const double gib = 1073741824, most = 1 << 24;
    struct vp_engine *engine = &s->engine;
    const char *text = vp_engine_arg(engine, "swap_space");
    double number;

    if (!text || engine->kind != VP_ENGINE_VLLM || engine->rules.budget > VP_VLLM_V0 ||
        !vp_parse_real(&number, text) || !(number > 0 && number < most))
        return;
    for (uint32_t i = 0; i < engine->arg_count; i++)
        engine->args[i].used |= vp_text_eq(engine->args[i].key, "swap_space");
    struct vp_sum all =
        vp_sum_mul(vp_sum((uint64_t)(number * gib)), s->parallel.tensor * s->parallel.pipeline);
    if (!all.overflow)
        vp_finish_number(s, VP_F_OFFLOAD_KV, &s->offload.kv_bytes, all.v, VP_ORIGIN_DERIVED,
                         "swap_space of every rank");
}

static void finish_offload(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_offload *offload = &s->offload;
    const struct vp_source *size = &s->source[VP_F_OFFLOAD_WEIGHTS];
    const struct vp_source *share = &s->source[VP_F_OFFLOAD_SHARE];
    bool weights = offload->weights_bytes > 0 || offload->weights_ppb > 0;
    const struct vp_source *which = offload->weights_ppb > 0 ? share : size;

    finish_swap(s);
    if (offload->weights_bytes > 0 && offload->weights_ppb > 0)
        vp_diag_add(ctx->diags, VP_D_CONTRADICTION, &share->pos,
                    "the weights to keep in host memory are given as a share and as a size");
    if (weights && s->engine.kind == VP_ENGINE_TRANSFORMERS)
        refuse(ctx, which, "serve.offload.weights", engine_text(ctx, s));
    else if (weights)
        warn_runner(ctx, s, &which->pos);
    if (offload->kv_bytes > 0 && s->engine.kind != VP_ENGINE_VLLM)
        refuse(ctx, &s->source[VP_F_OFFLOAD_KV], "serve.offload.kv", engine_text(ctx, s));
}

void vp_finish_extras(struct vp_ctx *ctx, struct vp_scenario *s) {
    finish_lora(ctx, s);
    finish_draft(ctx, s);
    finish_images(ctx, s);
    finish_offload(ctx, s);
}
