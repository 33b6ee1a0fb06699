#include "planner/import/finish_llama_model.h"

#include <stdlib.h>
#include <string.h>

#include "planner/base/io.h"
#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/doc/gguf.h"
#include "planner/import/regex.h"
#include "planner/model/requantise.h"

/* ---- what is not known ---- */

static const char *unknown_cache(const struct vp_model *model) {
    for (uint32_t b = 0; b < model->block_count; b++) {
        const struct vp_attention *both[2] = {&model->blocks[b].attention,
                                              &model->blocks[b].second};
        for (int i = 0; i < 2; i++) {
            if (both[i]->kind == VP_ATTENTION_COMPRESSED)
                return "its layers keep condensed streams beside a window";
            if (both[i]->index_heads > 0)
                return "its sparse attention keeps a cache of an indexer";
            if (both[i]->source_tokens > 0)
                return "its cross attention keeps an encoder's output";
            if (both[i]->kind == VP_ATTENTION_LINEAR && both[i]->linear == VP_LINEAR_LIGHTNING)
                return "llama.cpp has no lightning attention";
        }
    }
    return model->cache_unknown;
}

static bool check_cache(struct vp_ctx *ctx, const struct vp_scenario *s) {
    const char *why = unknown_cache(s->model);

    if (!why)
        return true;
    vp_diag_add(ctx->diags, VP_D_UNMODELLED, &s->model->pos,
                "llama.cpp's cache of this model is not known: %s", why);
    vp_diag_hint(ctx->diags, "no answer is given; describe a model of ordinary layers with "
                             "`blocks:` to bound it");
    return false;
}

/* ---- --override-tensor ---- */

/* "CPU", "CUDA0", "ROCm1", "Vulkan0", "CUDA_Host": the device's number ends the name. */
static int32_t device_of(const char *name) {
    size_t n = strlen(name);

    while (n > 0 && name[n - 1] >= '0' && name[n - 1] <= '9')
        n--;
    if (!name[n] || n == 0 || strlen(name + n) > 3)
        return VP_LLAMA_HOST;
    return (int32_t)strtol(name + n, NULL, 10);
}

static bool matches(const void *compiled, const char *name) {
    return vp_regex_match(compiled, name);
}

static bool add_override(struct vp_ctx *ctx, struct vp_scenario *s, const char *text) {
    struct vp_llama *l = &s->llama;
    const char *equals = strrchr(text, '=');

    if (!equals || equals == text || !equals[1] || l->overrides == VP_LLAMA_MAX_OVERRIDES) {
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &s->source[VP_F_OVERRIDE_TENSOR].pos,
                    "override_tensor must be PATTERN=BUFFER, at most %d of them, not %.100s",
                    VP_LLAMA_MAX_OVERRIDES, text);
        return false;
    }
    struct vp_llama_override *o = &l->override[l->overrides++];
    const struct vp_regex *regex;
    const char *why;
    o->pattern = vp_arena_text(ctx->arena, text, (size_t)(equals - text));
    o->device = device_of(equals + 1);
    /* llama.cpp looks for the pattern anywhere in a name */
    if (!vp_regex_compile(ctx->arena, &regex, &why,
                          vp_arena_printf(ctx->arena, ".*(?:%s)", o->pattern))) {
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &s->source[VP_F_OVERRIDE_TENSOR].pos,
                    "override_tensor: \"%.100s\" is no regular expression: %s", o->pattern, why);
        return false;
    }
    o->compiled = regex;
    l->override_matches = matches;
    if (o->device < (int64_t)s->hardware.count)
        return true;
    vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &s->source[VP_F_OVERRIDE_TENSOR].pos,
                "override_tensor names device %.40s, but there are only %d", equals + 1,
                (int)s->hardware.count);
    return false;
}

static bool set_overrides(struct vp_ctx *ctx, struct vp_scenario *s) {
    const char *at = s->llama.override_text;

    if (!vp_scenario_is_given(s, VP_F_OVERRIDE_TENSOR) || !at)
        return true;
    while (*at) {
        size_t n = strcspn(at, ",");
        if (n > 0 && !add_override(ctx, s, vp_arena_text(ctx->arena, at, n)))
            return false;
        at += n + (at[n] != '\0');
    }
    return true;
}

/* ---- the encoder ---- */

/* Relative to the file that names it. */
static const char *path_of(struct vp_ctx *ctx, const struct vp_source *source, const char *path) {
    bool in_file = source->origin != VP_ORIGIN_FLAG && source->pos.file;

    return vp_io_join(ctx, in_file ? vp_io_dirname(ctx, source->pos.file) : NULL, path);
}

static enum vp_status read_encoder(struct vp_ctx *ctx, struct vp_scenario *s) {
    enum { ALIGNMENT = 128 };
    struct vp_llama *l = &s->llama;
    const struct vp_source *source = &s->source[VP_F_MMPROJ];
    struct vp_sum bytes = vp_sum(0);
    struct vp_gguf file;

    if (!vp_scenario_is_given(s, VP_F_MMPROJ) || !l->mmproj)
        return VP_OK;
    enum vp_status status = vp_gguf_read(ctx, &file, path_of(ctx, source, l->mmproj));
    if (status != VP_OK)
        return status;
    for (uint32_t i = 0; i < file.tensor_count; i++)
        bytes = vp_sum_plus(bytes, vp_sum_round_up(vp_sum(file.tensors[i].bytes), ALIGNMENT));
    if (bytes.overflow) {
        vp_diag_add(ctx->diags, VP_D_OVERFLOW, &source->pos, "the encoder's size exceeds 64 bits");
        return VP_ERR_INPUT;
    }
    l->mmproj_bytes = bytes.v;
    return VP_OK;
}

enum vp_status vp_finish_llama_model(struct vp_ctx *ctx, struct vp_scenario *s) {
    if (!check_cache(ctx, s))
        return VP_ERR_INPUT;
    if (!vp_name_eq(s->precision.weights, "checkpoint")) {
        enum vp_status status = vp_model_requantise(ctx, s);
        if (status != VP_OK)
            return status;
    }
    return set_overrides(ctx, s) ? read_encoder(ctx, s) : VP_ERR_INPUT;
}
