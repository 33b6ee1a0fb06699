#include "planner/import/gguf_keys.h"

#include <stdarg.h>
#include <stdio.h>

#include "planner/base/text.h"

/* Sizes beyond this are damage; the product of two stays within 64 bits. */
static const uint64_t largest_size = UINT64_C(1) << 31;

void vp_gguf_key_fault(struct vp_gguf_keys *k, const struct vp_node *node, const char *end,
                       const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    vp_diag_add(k->ctx->diags, VP_D_MODEL_FIELD, node ? &node->pos : &k->map->pos, "%.60s.%s%s",
                k->arch, end, text);
    k->failed = true;
}

const struct vp_node *vp_gguf_key(const struct vp_gguf_keys *k, const char *end) {
    char name[160];
    int n = snprintf(name, sizeof name, "%s.%s", k->arch, end);
    if (n < 0 || (size_t)n >= sizeof name)
        return NULL;
    const struct vp_node *node = vp_node_get(k->map, name);
    return vp_node_is_null(node) ? NULL : node;
}

uint64_t vp_gguf_key_count(const struct vp_gguf_keys *k, const char *name) {
    const struct vp_node *list = vp_node_get(k->map, name);
    uint64_t n = 0;
    if (list && list->kind == VP_NODE_LIST)
        return list->count;
    vp_node_u64(&n, vp_node_get(k->counts, name));
    return n;
}

static uint64_t number(struct vp_gguf_keys *k, const struct vp_node *node, const char *end,
                       uint64_t least) {
    uint64_t value;
    bool flag;
    if (vp_node_bool(&flag, node)) /* some patterns are written as truth values */
        return flag;
    if (node->kind != VP_NODE_INT && node->kind != VP_NODE_REAL) {
        vp_gguf_key_fault(k, node, end, " must be a whole number, its type is %s",
                          vp_node_kind_name(node->kind));
        return 0;
    }
    if (!vp_node_u64(&value, node) || value < least || value > largest_size) {
        vp_gguf_key_fault(k, node, end, ": %s is out of range", node->text);
        return 0;
    }
    return value;
}

uint64_t vp_gguf_key_size(struct vp_gguf_keys *k, const char *end) {
    const struct vp_node *node = vp_gguf_key(k, end);
    if (!node) {
        vp_gguf_key_fault(k, NULL, end, " is missing");
        return 0;
    }
    return number(k, node, end, 1);
}

uint64_t vp_gguf_key_or(struct vp_gguf_keys *k, const char *end, uint64_t fallback) {
    const struct vp_node *node = vp_gguf_key(k, end);
    if (!node)
        return fallback;
    if (node->kind != VP_NODE_LIST || node->count == 0)
        return number(k, node, end, 0);
    uint64_t first = number(k, node->items[0], end, 0);
    for (uint32_t i = 1; i < node->count && !k->failed; i++)
        if (number(k, node->items[i], end, 0) != first)
            vp_gguf_key_fault(k, node, end, " differs between layers");
    return first;
}

uint64_t vp_gguf_key_at(struct vp_gguf_keys *k, const char *end, uint32_t layer,
                        uint64_t fallback) {
    const struct vp_node *node = vp_gguf_key(k, end);
    if (!node)
        return fallback;
    if (node->kind != VP_NODE_LIST)
        return number(k, node, end, 0);
    if (node->count != k->layers && node->count != k->all_layers) {
        if (!k->failed)
            vp_gguf_key_fault(k, node, end, " must list one number per layer: %u for %u layers",
                              node->count, k->layers);
        return 0;
    }
    return layer < node->count ? number(k, node->items[layer], end, 0) : fallback;
}
