#include "planner/import/settings.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/doc/yaml.h"

static const struct vp_pos NOWHERE = {0};

static enum vp_status value_node(struct vp_ctx *ctx, struct vp_node **out,
                                 const struct vp_setting *setting) {
    const char *text = setting->value;
    const char *name = setting->key ? setting->key : setting->path;
    if (text[0] != '{' && text[0] != '[' && text[0] != '"' && text[0] != '\'') {
        *out = vp_node_scalar(ctx, vp_yaml_scalar_kind(text), text, NOWHERE);
        return VP_OK;
    }
    return vp_yaml_read(ctx, out, (struct vp_bytes){text, strlen(text)}, name);
}

/* The map under a key, made when it is missing. */
static struct vp_node *descend(struct vp_ctx *ctx, struct vp_node *map, const char *key,
                               bool is_model) {
    struct vp_node *child = vp_node_get(map, key);
    if (child && child->kind == VP_NODE_MAP)
        return child;
    struct vp_node *made = vp_node_new(ctx, VP_NODE_MAP, NOWHERE);
    if (is_model && child)
        vp_node_set(ctx, made, "from", NOWHERE, child);
    vp_node_set(ctx, map, key, NOWHERE, made);
    return made;
}

static void put(struct vp_ctx *ctx, struct vp_node *root, const char *path, struct vp_node *value) {
    static const char *const WHOLE[] = {"engine.args.", "engine.env."};
    size_t whole = 0; /* from here on no dot divides */
    struct vp_node *map = root;
    for (size_t i = 0; i < sizeof WHOLE / sizeof *WHOLE; i++)
        if (vp_text_starts(path, WHOLE[i]))
            whole = strlen(WHOLE[i]);
    const char *key = path;
    for (const char *dot = strchr(key, '.'); dot && !(whole && (size_t)(key - path) >= whole);
         dot = strchr(key, '.')) {
        const char *name = vp_arena_text(ctx->arena, key, (size_t)(dot - key));
        map = descend(ctx, map, name, map == root && strcmp(name, "model") == 0);
        key = dot + 1;
    }
    vp_node_set(ctx, map, key, NOWHERE, value);
}

enum vp_status vp_settings_tree(struct vp_ctx *ctx, struct vp_node **out,
                                const struct vp_setting *settings, size_t count) {
    enum vp_status status = VP_OK;
    *out = vp_node_new(ctx, VP_NODE_MAP, NOWHERE);
    for (size_t i = 0; i < count; i++) {
        struct vp_node *value;
        enum vp_status one = value_node(ctx, &value, &settings[i]);
        if (one == VP_OK)
            put(ctx, *out, settings[i].path, value);
        else if (status != VP_ERR_ENV)
            status = one;
    }
    return status;
}

struct vp_node *vp_settings_model(struct vp_ctx *ctx, const struct vp_node *file,
                                  const struct vp_node *flags) {
    if (vp_node_is_null(flags) || vp_node_is_null(file))
        return vp_node_merge(ctx, file, vp_node_is_null(flags) ? NULL : flags);
    if (flags->kind != VP_NODE_MAP || vp_node_get(flags, "from"))
        return vp_node_merge(ctx, NULL, flags); /* another model */
    if (file->kind == VP_NODE_MAP)
        return vp_node_merge(ctx, file, flags);
    struct vp_node *base = vp_node_new(ctx, VP_NODE_MAP, file->pos);
    vp_node_set(ctx, base, "from", file->pos, vp_node_merge(ctx, NULL, file));
    return vp_node_merge(ctx, base, flags);
}
