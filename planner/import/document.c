#include "planner/import/document.h"

#include <string.h>

#include "planner/base/json_writer.h"
#include "planner/base/text.h"
#include "planner/doc/json.h"
#include "planner/doc/yaml.h"

static size_t skip_blank(struct vp_bytes text, size_t at) {
    while (at < text.size && strchr(" \t\r\n", text.data[at]) && text.data[at])
        at++;
    return at;
}

/* YAML flow maps start with '{' too, but their keys are rarely quoted. */
static bool starts_like_json(struct vp_bytes text) {
    static const char BOM[] = "\xef\xbb\xbf";
    size_t at = 0;
    if (text.size >= 3 && memcmp(text.data, BOM, 3) == 0)
        at = 3;
    at = skip_blank(text, at);
    if (at >= text.size || text.data[at] != '{')
        return false;
    at = skip_blank(text, at + 1);
    return at < text.size && (text.data[at] == '"' || text.data[at] == '}');
}

enum vp_status vp_document_parse(struct vp_ctx *ctx, struct vp_node **out, struct vp_bytes text,
                                 const char *name) {
    if (vp_text_ends(name, ".json") || starts_like_json(text))
        return vp_json_read(ctx, out, text, name);
    return vp_yaml_read(ctx, out, text, name);
}

enum vp_status vp_document_read(struct vp_ctx *ctx, struct vp_node **out, const char *path) {
    struct vp_bytes text;
    *out = NULL;
    enum vp_status status = vp_io_read(ctx, &text, path, VP_DOCUMENT_MAX_BYTES);
    if (status != VP_OK)
        return status;
    return vp_document_parse(ctx, out, text, vp_text_eq(path, "-") ? "<stdin>" : path);
}

const char *vp_document_expand(struct vp_ctx *ctx, const char *path) {
    if (path[0] != '~' || (path[1] && path[1] != '/') || !ctx->home)
        return path;
    return vp_arena_printf(ctx->arena, "%s%s", ctx->home, path + 1);
}

const char *vp_document_stem(struct vp_ctx *ctx, const char *path) {
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    size_t dot = end;
    while (dot > start + 1 && path[dot - 1] != '.')
        dot--;
    /* "llama-3.1" is a folder, not a file with the suffix ".1": suffixes start with a letter. */
    bool suffix = dot > start + 1 && dot < end && !(path[dot] >= '0' && path[dot] <= '9');
    return vp_arena_text(ctx->arena, path + start, (suffix ? dot - 1 : end) - start);
}

static void show(struct vp_json *json, const struct vp_node *node) {
    uint64_t v;
    double real;
    bool flag;
    if (node->kind == VP_NODE_MAP) {
        vp_json_map_inline(json);
        for (uint32_t i = 0; i < node->count; i++) {
            vp_json_key(json, node->keys[i]);
            show(json, node->items[i]);
        }
        vp_json_end(json, '}');
    } else if (node->kind == VP_NODE_LIST) {
        vp_json_list_inline(json);
        for (uint32_t i = 0; i < node->count; i++)
            show(json, node->items[i]);
        vp_json_end(json, ']');
    } else if (node->kind == VP_NODE_INT && vp_node_u64(&v, node)) {
        vp_json_u64(json, v);
    } else if (vp_node_real(&real, node)) {
        vp_json_real(json, real);
    } else if (vp_node_bool(&flag, node)) {
        vp_json_bool(json, flag);
    } else if (node->kind == VP_NODE_NULL) {
        vp_json_null(json);
    } else {
        vp_json_text(json, node->text);
    }
}

static int depth_of(const struct vp_node *node) {
    int deepest = 0;
    for (uint32_t i = 0; i < node->count; i++) {
        int depth = depth_of(node->items[i]);
        if (depth > deepest)
            deepest = depth;
    }
    return deepest + 1;
}

const char *vp_document_show(struct vp_ctx *ctx, const struct vp_node *node) {
    struct vp_buf buf = {.arena = ctx->arena};
    if (!node)
        return "null";
    if (vp_node_is_scalar(node))
        return node->kind == VP_NODE_NULL ? "null" : node->text;
    if (depth_of(node) >= VP_JSON_DEPTH) /* documents may be deeper than the writer */
        return node->kind == VP_NODE_MAP ? "{...}" : "[...]";
    struct vp_json json = vp_json_begin(&buf);
    show(&json, node);
    return vp_buf_text(&buf);
}
