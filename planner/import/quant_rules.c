#include "planner/import/quant_rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/model/scheme_format.h"

enum { MAX_COUNT = 1 << 24 }; /* no group or tile is larger than a matrix's side */

const struct vp_node *vp_quant_get(const struct vp_quant_reader *reader, const char *key) {
    const struct vp_node *node = vp_node_get(reader->map, key);
    if (vp_node_is_null(node))
        node = vp_node_get(reader->more, key);
    return vp_node_is_null(node) ? NULL : node;
}

void vp_quant_fault(struct vp_quant_reader *reader, const struct vp_node *node, const char *key,
                    const char *what) {
    reader->failed = true;
    vp_diag_add(reader->ctx->diags, VP_D_MODEL_FIELD, node ? &node->pos : &reader->map->pos,
                "quantization_config.%s: %s", key, what);
}

void vp_quant_refuse(struct vp_quant_reader *reader, const struct vp_node *node, const char *format,
                     ...) {
    char what[300];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    reader->failed = true;
    vp_diag_add(reader->ctx->diags, VP_D_QUANT_UNKNOWN, node ? &node->pos : &reader->map->pos, "%s",
                what);
    vp_diag_hint(reader->ctx->diags, "`quantization_config: null` plans without it; "
                                     "precision.weights then names a format");
}

uint32_t vp_quant_count(struct vp_quant_reader *reader, const struct vp_node *map, const char *key,
                        uint32_t fallback) {
    const struct vp_node *node = vp_node_get(map, key);
    uint64_t v;
    if (vp_node_is_null(node))
        return fallback;
    if (vp_node_u64(&v, node) && v >= 1 && v <= MAX_COUNT)
        return (uint32_t)v;
    vp_quant_fault(reader, node, key, "a count of at least 1 is expected");
    return 1;
}

bool vp_quant_flag(struct vp_quant_reader *reader, const struct vp_node *map, const char *key,
                   bool fallback) {
    const struct vp_node *node = vp_node_get(map, key);
    bool v = fallback;
    if (!vp_node_is_null(node) && !vp_node_bool(&v, node))
        vp_quant_fault(reader, node, key, "true or false is expected");
    return v;
}

const char *vp_quant_word(struct vp_quant_reader *reader, const struct vp_node *map,
                          const char *key, const char *fallback) {
    const struct vp_node *node = vp_node_get(map, key);
    if (vp_node_is_null(node))
        return fallback;
    if (node->kind == VP_NODE_TEXT)
        return node->text;
    vp_quant_fault(reader, node, key, "text is expected");
    return fallback;
}

uint32_t vp_quant_group_size(struct vp_quant_reader *reader, const struct vp_node *map,
                             const char *key) {
    if (vp_text_eq(vp_node_text(vp_node_get(map, key)), "-1"))
        return 0;
    return vp_quant_count(reader, map, key, 0);
}

void vp_quant_block(struct vp_quant_reader *reader, const struct vp_node *map, const char *key,
                    uint32_t out[2]) {
    const struct vp_node *node = vp_node_get(map, key);
    uint64_t side[2] = {0, 0};
    bool ok = false;
    out[0] = out[1] = 0;
    if (vp_node_is_null(node))
        return;
    if (node->kind == VP_NODE_LIST) {
        ok = node->count == 2 && vp_node_u64(&side[0], node->items[0]) &&
             vp_node_u64(&side[1], node->items[1]);
    } else if (node->kind == VP_NODE_TEXT) {
        const char *x = strchr(node->text, 'x');
        ok = x && vp_parse_u64(&side[1], x + 1) &&
             vp_parse_u64(&side[0],
                          vp_arena_text(reader->ctx->arena, node->text, (size_t)(x - node->text)));
    }
    if (!ok || side[0] < 1 || side[1] < 1 || side[0] > MAX_COUNT || side[1] > MAX_COUNT) {
        vp_quant_fault(reader, node, key, "two counts are expected: [128, 128]");
        return;
    }
    out[0] = (uint32_t)side[0];
    out[1] = (uint32_t)side[1];
}

const struct vp_scheme *vp_quant_keep(struct vp_quant_reader *reader, struct vp_scheme scheme) {
    struct vp_scheme *kept = VP_NEW(reader->ctx->arena, struct vp_scheme);
    *kept = scheme;
    vp_scheme_describe(kept);
    return kept;
}

enum vp_dtype vp_quant_half(const struct vp_quant *quant) {
    return quant->plain.data == VP_DTYPE_FP16 ? VP_DTYPE_FP16 : VP_DTYPE_BF16;
}

struct vp_quant_rule *vp_quant_rule_add(struct vp_quant_reader *reader,
                                        const struct vp_scheme *scheme) {
    struct vp_quant_rule *rule = VP_NEW(reader->ctx->arena, struct vp_quant_rule);
    rule->scheme = scheme;
    *reader->end = rule;
    reader->end = &rule->next;
    return rule;
}

void vp_quant_rule_names(struct vp_quant_reader *reader, struct vp_quant_rule *rule,
                         const struct vp_node *list) {
    bool many = list && list->kind == VP_NODE_LIST;
    uint32_t count = many ? list->count : !vp_node_is_null(list);
    for (uint32_t i = 0; i < count; i++) {
        const struct vp_node *entry = many ? list->items[i] : list;
        const char *why;
        if (entry->kind != VP_NODE_TEXT) {
            vp_diag_add(reader->ctx->diags, VP_D_MODEL_FIELD, &entry->pos,
                        "quantization_config: a module's name is expected, not %s",
                        vp_node_kind_name(entry->kind));
            reader->failed = true;
        } else if (!vp_name_set_add(reader->ctx->arena, &rule->names, &why, entry->text)) {
            vp_quant_refuse(reader, entry, "the pattern \"%.120s\" cannot be used: %s", entry->text,
                            why);
        }
    }
}

void vp_quant_skip(struct vp_quant_reader *reader, const char *key) {
    const struct vp_node *list = vp_quant_get(reader, key);
    if (list)
        vp_quant_rule_names(reader, vp_quant_rule_add(reader, &reader->quant->plain), list);
}

void vp_quant_linear(struct vp_quant_reader *reader, const struct vp_scheme *scheme,
                     bool with_head) {
    const struct vp_scheme **by_class = reader->quant->by_class;
    for (int i = 0; i < VP_CLASS_COUNT; i++) {
        bool head = i == VP_CLASS_LM_HEAD && with_head;
        if (!by_class[i] && (head || vp_class_quantised((enum vp_class)i)))
            by_class[i] = scheme;
    }
}
