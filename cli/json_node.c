#include "cli/json_node.h"

#include "planner/base/units.h"

static void json_number(struct vp_json *json, const struct vp_node *node) {
    uint64_t whole, magnitude;
    double real;
    if (vp_node_u64(&whole, node))
        vp_json_u64(json, whole);
    else if (node->kind == VP_NODE_INT && node->text[0] == '-' &&
             vp_parse_u64(&magnitude, node->text + 1) && magnitude <= INT64_MAX)
        vp_json_i64(json, -(int64_t)magnitude);
    else if (vp_node_real(&real, node))
        vp_json_real(json, real); /* null for what JSON has no number for */
    else
        vp_json_text(json, node->text);
}

void vp_json_node(struct vp_json *json, const struct vp_node *node) {
    bool yes = false;
    switch (node->kind) {
    case VP_NODE_NULL:
        vp_json_null(json);
        break;
    case VP_NODE_BOOL:
        vp_json_bool(json, vp_node_bool(&yes, node) && yes);
        break;
    case VP_NODE_INT:
    case VP_NODE_REAL:
        json_number(json, node);
        break;
    case VP_NODE_TEXT:
        vp_json_text(json, node->text);
        break;
    case VP_NODE_LIST:
        vp_json_list_inline(json);
        for (uint32_t i = 0; i < node->count; i++)
            vp_json_node(json, node->items[i]);
        vp_json_end(json, ']');
        break;
    case VP_NODE_MAP:
        vp_json_map(json);
        for (uint32_t i = 0; i < node->count; i++) {
            vp_json_key(json, node->keys[i]);
            vp_json_node(json, node->items[i]);
        }
        vp_json_end(json, '}');
        break;
    }
}
