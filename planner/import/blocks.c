#include "planner/import/blocks.h"

#include <string.h>

#include "planner/base/text.h"

struct reader {
    struct vp_ctx *ctx;
    struct vp_model *model;
    bool failed;
};

static void fault(struct reader *r, const struct vp_pos *pos, const char *text, const char *key) {
    vp_diag_add(r->ctx->diags, VP_D_MODEL_FIELD, pos, "%s%s", key, text);
    r->failed = true;
}

/* Refuses keys that are not in the list (NULL-terminated). */
static void known_keys(struct reader *r, const struct vp_node *map, const char *const *keys) {
    size_t count = 0;

    while (keys[count])
        count++;
    for (uint32_t i = 0; i < map->count; i++) {
        size_t k = 0;
        while (k < count && strcmp(map->keys[i], keys[k]) != 0)
            k++;
        if (k < count)
            continue;
        const char *near = vp_text_nearest(map->keys[i], keys, count);
        vp_diag_add(r->ctx->diags, VP_D_UNKNOWN_KEY, &map->key_pos[i],
                    "'%s' is no key of a hand-written model here", map->keys[i]);
        if (near)
            vp_diag_hint(r->ctx->diags, "did you mean '%s'?", near);
        r->failed = true;
    }
}

static uint64_t size(struct reader *r, const struct vp_node *map, const char *key, bool required) {
    const struct vp_node *node = vp_node_get(map, key);
    uint64_t value = 0;

    if (vp_node_is_null(node)) {
        if (required)
            fault(r, &map->pos, " is missing", key);
        return 0;
    }
    if (!vp_node_u64(&value, node) || value > UINT64_C(1) << 40)
        fault(r, &node->pos, " must be a whole number within range", key);
    else if (required && value == 0)
        fault(r, &node->pos, " must be at least 1", key);
    return value;
}

static bool flag(struct reader *r, const struct vp_node *map, const char *key, bool fallback) {
    const struct vp_node *node = vp_node_get(map, key);
    bool value = fallback;

    if (!vp_node_is_null(node) && !vp_node_bool(&value, node))
        fault(r, &node->pos, " must be true or false", key);
    return value;
}

/* Index of a word in a list; a fault (and 0) when it is none. */
static int choice(struct reader *r, const struct vp_node *map, const char *key,
                  const char *const *words, int fallback) {
    const struct vp_node *node = vp_node_get(map, key);
    const char *text = vp_node_is_null(node) ? NULL : vp_node_text(node);

    if (vp_node_is_null(node) && fallback >= 0)
        return fallback;
    for (int i = 0; text && words[i]; i++)
        if (strcmp(text, words[i]) == 0)
            return i;
    fault(r, node ? &node->pos : &map->pos, node ? " is none of the known kinds" : " is missing",
          key);
    return 0;
}

static void read_gqa(struct reader *r, struct vp_attention *a, const struct vp_node *map,
                     bool whole) {
    static const char *const keys[] = {"kind",   "heads", "kv_heads", "head_dim",   "v_head_dim",
                                       "window", "bias",  "qk_norm",  "rotary_dim", NULL};

    known_keys(r, map, keys);
    a->kind = VP_ATTENTION_GQA;
    a->heads = size(r, map, "heads", whole);
    a->kv_heads = size(r, map, "kv_heads", a->heads == 0);
    if (a->kv_heads == 0)
        a->kv_heads = a->heads;
    a->head_dim = size(r, map, "head_dim", true);
    a->v_head_dim = size(r, map, "v_head_dim", false);
    if (a->v_head_dim == 0)
        a->v_head_dim = a->head_dim;
    a->window = size(r, map, "window", false);
    a->qkv_bias = a->out_bias = flag(r, map, "bias", false);
    a->qk_norm = flag(r, map, "qk_norm", false) ? VP_QK_NORM_HEAD : VP_QK_NORM_NONE;
    a->rotary_dim = size(r, map, "rotary_dim", false);
}

static void read_mla(struct reader *r, struct vp_attention *a, const struct vp_node *map,
                     bool whole) {
    static const char *const keys[] = {"kind",
                                       "heads",
                                       "kv_heads",
                                       "q_lora_rank",
                                       "kv_lora_rank",
                                       "qk_nope_head_dim",
                                       "qk_rope_head_dim",
                                       "v_head_dim",
                                       "bias",
                                       NULL};

    known_keys(r, map, keys);
    a->kind = VP_ATTENTION_MLA;
    a->heads = a->kv_heads = size(r, map, "heads", whole);
    a->q_lora_rank = size(r, map, "q_lora_rank", false);
    a->kv_lora_rank = size(r, map, "kv_lora_rank", true);
    a->qk_nope_head_dim = size(r, map, "qk_nope_head_dim", whole);
    a->qk_rope_head_dim = size(r, map, "qk_rope_head_dim", true);
    a->v_head_dim = size(r, map, "v_head_dim", whole);
    a->head_dim = a->qk_nope_head_dim + a->qk_rope_head_dim;
    a->qkv_bias = a->out_bias = flag(r, map, "bias", false);
}

static void read_linear(struct reader *r, struct vp_attention *a, const struct vp_node *map) {
    static const char *const keys[] = {"kind",        "state_elements", "conv_elements",
                                       "state_dtype", "parameters",     NULL};
    const struct vp_node *dtype = vp_node_get(map, "state_dtype");

    known_keys(r, map, keys);
    a->kind = VP_ATTENTION_LINEAR;
    a->linear = VP_LINEAR_GIVEN;
    a->state_elements = size(r, map, "state_elements", true);
    a->conv_channels = size(r, map, "conv_elements", false);
    a->conv_kernel = 2; /* the given elements are the whole state: one column */
    a->parameters = size(r, map, "parameters", false);
    if (!vp_node_is_null(dtype)) {
        a->state_dtype = vp_node_text(dtype) ? vp_dtype_parse(vp_node_text(dtype)) : VP_DTYPE_UNSET;
        if (a->state_dtype == VP_DTYPE_UNSET)
            fault(r, &dtype->pos, " is no known type", "state_dtype");
    }
}

static const char *const mlp_kinds[] = {"none", "linear", "plain", "gated", NULL};

static void read_mlp(struct reader *r, struct vp_mlp *mlp, const struct vp_node *map) {
    static const char *const keys[] = {"kind", "intermediate_size", "bias", NULL};

    known_keys(r, map, keys);
    mlp->kind = (enum vp_mlp_kind)choice(r, map, "kind", mlp_kinds, -1);
    mlp->intermediate = size(r, map, "intermediate_size", mlp->kind >= VP_MLP_PLAIN);
    mlp->bias = flag(r, map, "bias", false);
}

static void read_moe(struct reader *r, struct vp_moe *moe, const struct vp_node *map) {
    static const char *const keys[] = {
        "kind", "experts", "top_k", "intermediate_size", "shared_intermediate_size", "bias", NULL};

    known_keys(r, map, keys);
    moe->kind = (enum vp_mlp_kind)choice(r, map, "kind", mlp_kinds, VP_MLP_GATED);
    moe->experts = size(r, map, "experts", true);
    moe->top_k = size(r, map, "top_k", true);
    moe->intermediate = size(r, map, "intermediate_size", true);
    moe->shared_intermediate = size(r, map, "shared_intermediate_size", false);
    moe->bias = flag(r, map, "bias", false);
}

static const struct vp_node *part(struct reader *r, const struct vp_node *map, const char *key) {
    const struct vp_node *node = vp_node_get(map, key);

    if (vp_node_is_null(node))
        return NULL;
    if (node->kind != VP_NODE_MAP) {
        fault(r, &node->pos, " must be a map", key);
        return NULL;
    }
    return node;
}

/* whole: weights are described too, not the cache alone */
static void read_block(struct reader *r, struct vp_block *block, const struct vp_node *map,
                       bool *cache_only) {
    static const char *const keys[] = {"repeat", "norms", "norm", "attention", "mlp", "moe", NULL};
    static const char *const attention_kinds[] = {"none", "gqa", "mla", "linear", NULL};
    static const char *const norm_kinds[] = {"rmsnorm", "layernorm", NULL};
    const struct vp_node *attention = part(r, map, "attention");
    const struct vp_node *mlp = part(r, map, "mlp"), *moe = part(r, map, "moe");

    known_keys(r, map, keys);
    block->count = 1;
    if (vp_node_get(map, "repeat")) {
        uint64_t repeat = size(r, map, "repeat", true);
        if (repeat > VP_MAX_LAYERS)
            fault(r, &map->pos, " is above the cap of 4096 layers", "repeat");
        else
            block->count = (uint32_t)repeat;
    }
    block->norms = (uint32_t)vp_min(size(r, map, "norms", false), 8);
    if (!vp_node_get(map, "norms"))
        block->norms = 2;
    block->norm = (enum vp_norm_kind)choice(r, map, "norm", norm_kinds, VP_NORM_RMS);
    if (!attention) {
        fault(r, &map->pos, " is missing (kind: none for a block without)", "attention");
        return;
    }
    bool whole = mlp || moe;
    int kind = choice(r, attention, "kind", attention_kinds, -1);
    if (kind == VP_ATTENTION_GQA)
        read_gqa(r, &block->attention, attention, whole);
    else if (kind == VP_ATTENTION_MLA)
        read_mla(r, &block->attention, attention, whole);
    else if (kind == VP_ATTENTION_LINEAR)
        read_linear(r, &block->attention, attention);
    if (mlp)
        read_mlp(r, &block->mlp, mlp);
    if (moe)
        read_moe(r, &block->moe, moe);
    if (!whole) {
        *cache_only = true;
        block->norms = vp_node_get(map, "norms") ? block->norms : 0;
    }
}

enum vp_status vp_blocks_read(struct vp_ctx *ctx, struct vp_model *out,
                              const struct vp_node *node) {
    struct reader r = {ctx, out, false};
    const struct vp_node *list = vp_node_get(node, "blocks");
    const struct vp_node *dtype = vp_node_get(node, "torch_dtype");
    bool cache_only = false;
    uint32_t count = 0;
    static const struct vp_block zero;

    if (!list || list->kind != VP_NODE_LIST || list->count == 0) {
        fault(&r, list ? &list->pos : &node->pos, " must be a list of blocks", "blocks");
        return VP_ERR_INPUT;
    }
    if (!dtype)
        dtype = vp_node_get(node, "dtype");
    out->pos = node->pos;
    out->model_type = "blocks";
    out->dtype = VP_DTYPE_BF16;
    if (!vp_node_is_null(dtype)) {
        out->dtype = vp_node_text(dtype) ? vp_dtype_parse(vp_node_text(dtype)) : VP_DTYPE_UNSET;
        if (out->dtype == VP_DTYPE_UNSET)
            fault(&r, &dtype->pos, " is no known type", "torch_dtype");
    }
    struct vp_block *layers = VP_NEW_ARRAY(ctx->arena, VP_MAX_LAYERS, struct vp_block);
    for (uint32_t i = 0; i < list->count; i++) {
        struct vp_block block = zero;
        if (list->items[i]->kind != VP_NODE_MAP) {
            fault(&r, &list->items[i]->pos, " must be maps", "blocks");
            continue;
        }
        read_block(&r, &block, list->items[i], &cache_only);
        if (count + block.count > VP_MAX_LAYERS) {
            fault(&r, &list->items[i]->pos, " have more than 4096 layers in all", "blocks");
            break;
        }
        for (uint32_t k = 0; k < block.count; k++)
            layers[count++] = block;
    }
    out->hidden = size(&r, node, "hidden_size", !cache_only);
    out->embedding = flag(&r, node, "embedding", !cache_only);
    out->lm_head = flag(&r, node, "lm_head", !cache_only);
    out->tied = out->lm_head && flag(&r, node, "tie_word_embeddings", false);
    out->vocab = size(&r, node, "vocab_size", out->embedding || out->lm_head);
    out->max_position = size(&r, node, "max_position_embeddings", false);
    out->learned_positions = size(&r, node, "position_embeddings", false);
    out->final_norm = flag(&r, node, "final_norm", !cache_only);
    out->final_norm_kind = layers[0].norm;
    if (out->tied && !out->embedding)
        fault(&r, &node->pos, " needs embedding: true", "tie_word_embeddings");
    if (r.failed)
        return VP_ERR_INPUT;
    struct vp_scheme plain = {.data = out->dtype};
    strncpy(plain.name, vp_dtype_name(out->dtype), sizeof plain.name - 1);
    vp_model_scheme(out, &plain);
    vp_model_fold(ctx, out, layers, count);
    for (uint32_t i = 0; i < out->block_count; i++)
        if (out->blocks[i].attention.rotary_dim > 0)
            out->rotary_positions = out->max_position;
    return VP_OK;
}
