/* Any bytes through the YAML reader; what it accepts keeps the caps. */
#include <stdlib.h>
#include <string.h>

#include "planner/doc/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct vp_node *node, int depth) {
    double v;
    uint64_t u;
    bool b;
    (void)vp_node_u64(&u, node);
    (void)vp_node_real(&v, node);
    (void)vp_node_bool(&b, node);
    if (vp_node_is_scalar(node) != (node->text != NULL) || node->pos.line == 0)
        abort();
    if (!vp_node_is_scalar(node) && depth == VP_DOC_MAX_DEPTH)
        abort();
    for (uint32_t i = 0; i < node->count; i++) {
        if (node->kind == VP_NODE_MAP && !vp_node_get(node, node->keys[i]))
            abort();
        check(node->items[i], depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct vp_arena arena = {0};
    struct vp_diags diags = {.arena = &arena};
    struct vp_ctx ctx = {.arena = &arena, .diags = &diags, .io = &vp_io_posix};
    struct vp_node *node;
    const char *text = vp_arena_text(&arena, (const char *)data, size);
    enum vp_status status = vp_yaml_read(&ctx, &node, (struct vp_bytes){text, size}, "fuzz");
    if ((status == VP_OK) != (diags.errors == 0))
        abort();
    if (status == VP_OK) {
        check(node, 0);
        check(vp_node_merge(&ctx, node, node), 0);
    }
    vp_arena_free(&arena);
    return 0;
}
