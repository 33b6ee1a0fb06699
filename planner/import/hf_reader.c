#include "planner/import/hf_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "planner/base/text.h"

enum { NAME_MAX_LENGTH = 64 };

/* Sizes beyond this are typing errors; the product of two stays within 64 bits. */
static const uint64_t largest_size = UINT64_C(1) << 31;

static const struct vp_node *find_in(const struct vp_node *map, const char *keys) {
    char key[NAME_MAX_LENGTH];

    while (*keys) {
        size_t n = strcspn(keys, "|");
        if (n < sizeof key) {
            memcpy(key, keys, n);
            key[n] = '\0';
            const struct vp_node *node = vp_node_get(map, key);
            if (node && !vp_node_is_null(node))
                return node;
        }
        keys += n + (keys[n] == '|');
    }
    return NULL;
}

const struct vp_node *vp_hf_find(const struct vp_hf *hf, const char *keys) {
    const struct vp_node *node = find_in(hf->text, keys);
    return node || hf->text == hf->top ? node : find_in(hf->top, keys);
}

void vp_hf_fault(struct vp_hf *hf, const struct vp_node *node, const char *format, ...) {
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    vp_diag_add(hf->ctx->diags, VP_D_MODEL_FIELD, node ? &node->pos : &hf->model->pos, "%s", text);
    hf->failed = true;
}

static int first_key(const char *keys) { return (int)strcspn(keys, "|"); }

/* Reads a number node; a fault names the key. */
static uint64_t number(struct vp_hf *hf, const struct vp_node *node, const char *keys,
                       uint64_t least) {
    uint64_t value;

    if (node->kind != VP_NODE_INT && node->kind != VP_NODE_REAL) {
        vp_hf_fault(hf, node, "%.*s must be a whole number, not %s", first_key(keys), keys,
                    vp_node_kind_name(node->kind));
        return 0;
    }
    if (!vp_node_u64(&value, node) || value < least || value > largest_size) {
        vp_hf_fault(hf, node, "%.*s: %s is out of range", first_key(keys), keys,
                    node->text ? node->text : "?");
        return 0;
    }
    return value;
}

uint64_t vp_hf_size(struct vp_hf *hf, const char *keys) {
    const struct vp_node *node = vp_hf_find(hf, keys);

    if (!node) {
        vp_hf_fault(hf, NULL, "%.*s is missing or null in the description of a %s model",
                    first_key(keys), keys, hf->family->model_type);
        return 0;
    }
    return number(hf, node, keys, 1);
}

uint64_t vp_hf_size_or(struct vp_hf *hf, const char *keys, uint64_t fallback) {
    const struct vp_node *node = vp_hf_find(hf, keys);
    return node ? number(hf, node, keys, 0) : fallback;
}

bool vp_hf_flag(struct vp_hf *hf, const char *keys, bool fallback) {
    const struct vp_node *node = vp_hf_find(hf, keys);
    bool value = fallback;

    if (node && !vp_node_bool(&value, node))
        vp_hf_fault(hf, node, "%.*s must be true or false", first_key(keys), keys);
    return value;
}

double vp_hf_real_or(struct vp_hf *hf, const char *keys, double fallback) {
    const struct vp_node *node = vp_hf_find(hf, keys);
    double value = fallback;

    if (node && !vp_node_real(&value, node))
        vp_hf_fault(hf, node, "%.*s must be a number", first_key(keys), keys);
    return value;
}

uint64_t vp_hf_size_in(struct vp_hf *hf, const char *map, const char *key) {
    const struct vp_node *outer = vp_hf_find(hf, map);
    const struct vp_node *node = vp_node_get(outer, key);
    uint64_t value;

    if (vp_node_is_null(node) || !vp_node_u64(&value, node) || value < 1 || value > largest_size) {
        vp_hf_fault(hf, node ? node : outer, "%s.%s is %s in the description of a %s model", map,
                    key, node ? "no size" : "missing", hf->family->model_type);
        return 0;
    }
    return value;
}

const char *vp_hf_layer_text(struct vp_hf *hf, const char *key, uint32_t layer) {
    const struct vp_node *list = vp_hf_find(hf, key);

    if (!list || hf->failed)
        return NULL;
    if (list->kind != VP_NODE_LIST || list->count != hf->count) {
        vp_hf_fault(hf, list, "%s must list one type per layer: %u for %u layers", key,
                    list->kind == VP_NODE_LIST ? list->count : 0, hf->count);
        return NULL;
    }
    const char *type = vp_node_text(list->items[layer]);
    return type ? type : "";
}

const char *vp_hf_layer_type(struct vp_hf *hf, uint32_t layer) {
    return vp_hf_layer_text(hf, "layer_types", layer);
}

bool vp_hf_architecture(const struct vp_hf *hf, const char *word) {
    const struct vp_node *list = vp_node_get(hf->top, "architectures");

    return list && list->kind == VP_NODE_LIST && list->count > 0 && vp_node_text(list->items[0]) &&
           vp_text_ends(vp_node_text(list->items[0]), word);
}

bool vp_hf_layers(struct vp_hf *hf, uint64_t count) {
    if (hf->failed)
        return false;
    if (count > VP_MAX_LAYERS) {
        vp_hf_fault(hf, NULL, "%llu layers; the cap is %d", (unsigned long long)count,
                    VP_MAX_LAYERS);
        return false;
    }
    hf->count = (uint32_t)count;
    hf->layers = VP_NEW_ARRAY(hf->ctx->arena, count, struct vp_block);
    return true;
}

bool vp_hf_list_has(const struct vp_node *list, uint64_t value) {
    uint64_t item;

    if (!list || list->kind != VP_NODE_LIST)
        return false;
    for (uint32_t i = 0; i < list->count; i++)
        if (vp_node_u64(&item, list->items[i]) && item == value)
            return true;
    return false;
}

enum vp_dtype vp_hf_state_dtype(struct vp_hf *hf) {
    const struct vp_node *node = vp_hf_find(hf, "mamba_ssm_dtype|mamba_ssm_cache_dtype");
    const char *text = node ? vp_node_text(node) : NULL;
    enum vp_dtype dtype = text ? vp_dtype_parse(text) : VP_DTYPE_UNSET;

    if (node && dtype == VP_DTYPE_UNSET && !vp_text_eq(text, "auto"))
        vp_hf_fault(hf, node, "mamba_ssm_dtype '%s' is not a known type", text ? text : "?");
    return dtype;
}

void vp_hf_experts(struct vp_hf *hf, struct vp_block *layer, uint64_t width) {
    layer->moe.kind = VP_MLP_GATED;
    layer->moe.experts = vp_hf_size(hf, "num_local_experts|num_experts|n_routed_experts");
    layer->moe.top_k =
        vp_hf_size(hf, "num_experts_per_tok|experts_per_token|num_experts_per_token|top_k_experts");
    layer->moe.intermediate = width;
    layer->mlp.kind = VP_MLP_NONE;
}

uint64_t vp_hf_product(struct vp_hf *hf, const char *keys, uint64_t a, uint64_t b, uint64_t c) {
    struct vp_sum s = vp_sum_mul(vp_sum_mul(vp_sum(a), b), c);

    if (!s.overflow)
        return s.v;
    vp_hf_fault(hf, vp_hf_find(hf, keys), "%.*s: a tensor of this size exceeds 64 bits",
                first_key(keys), keys);
    return 0;
}

static struct vp_extra *add_extra(struct vp_hf *hf, const char *name) {
    struct vp_model *model = hf->model;
    struct vp_extra *extras = VP_NEW_ARRAY(hf->ctx->arena, model->extra_count + 1, struct vp_extra);

    if (model->extra_count > 0)
        memcpy(extras, model->extras, model->extra_count * sizeof *extras);
    model->extras = extras;
    extras += model->extra_count++;
    extras->name = name;
    extras->class_ = VP_CLASS_EXTRA;
    extras->counted = extras->first_stage = extras->loaded = true;
    return extras;
}

void vp_hf_extra(struct vp_hf *hf, const char *name, uint64_t matrix, uint64_t other) {
    struct vp_extra *extra = add_extra(hf, name);

    extra->class_ = VP_CLASS_VISION;
    extra->matrix_elements = matrix;
    extra->other_elements = other;
    extra->sharded = true;
}

struct vp_extra *vp_hf_extra_plain(struct vp_hf *hf, const char *name, uint64_t elements,
                                   bool first_stage) {
    struct vp_extra *extra = add_extra(hf, name);

    extra->other_elements = elements;
    extra->first_stage = first_stage;
    return extra;
}

struct vp_extra *vp_hf_mtp(struct vp_hf *hf, const struct vp_block *like, uint32_t norms) {
    static const char keys[] =
        "num_nextn_predict_layers|mtp_num_hidden_layers|mtp_num_layers|num_mtp_layers";
    uint64_t count = vp_hf_size_or(hf, keys, 0), hidden = hf->model->hidden;

    if (count == 0 || hf->failed)
        return NULL;
    if (count > VP_MAX_LAYERS) {
        vp_hf_fault(hf, vp_hf_find(hf, keys),
                    "num_nextn_predict_layers: %llu layers; the cap is %d",
                    (unsigned long long)count, VP_MAX_LAYERS);
        return NULL;
    }
    struct vp_extra *extra = vp_hf_extra_plain(hf, "MTP layers", 0, false);
    extra->matrix_elements = vp_hf_product(hf, keys, 2 * hidden, hidden, count);
    extra->other_elements = count * norms * hidden;
    extra->layer = VP_NEW(hf->ctx->arena, struct vp_block);
    *extra->layer = *like;
    extra->layers = (uint32_t)count;
    extra->counted = extra->loaded = false;
    return extra;
}
