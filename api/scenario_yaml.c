#include "api/scenario_yaml.h"

#include <string.h>
#include <unistd.h>

#include "api/yaml_writer.h"

/* Where a scenario names files. */
static const char *const FILES[] = {"model",
                                    "model.from",
                                    "calibration",
                                    "serve.trace",
                                    "serve.draft.model",
                                    "serve.draft.model.from",
                                    "engine.args.mmproj"};

struct moving {
    struct vp_ctx *ctx;
    const char *from; /* folder that relative paths start at now; NULL: the current one */
    bool stays;       /* the new file is in that folder */
    bool here;        /* the new file is in the current folder */
    const char *to;   /* the new file's folder */
    const char *up;   /* from there to the current one; NULL: not known */
};

/* NULL: the system does not say. */
static const char *current_folder(struct vp_arena *arena) {
    enum { MOST = 4096 };
    char *text = vp_arena_alloc(arena, MOST);
    return getcwd(text, MOST);
}

/* "../../" for "a/b"; NULL for a folder that is not named from the current one downwards. */
static const char *way_up(struct vp_arena *arena, const char *folder) {
    struct vp_buf up = {.arena = arena};
    if (*folder == '/' || *folder == '~')
        return NULL;
    while (*folder) {
        size_t n = strcspn(folder, "/");
        if (n == 2 && folder[0] == '.' && folder[1] == '.')
            return NULL;
        if (n > 0 && !(n == 1 && folder[0] == '.'))
            vp_buf_add(&up, "../");
        folder += n + (folder[n] == '/');
    }
    return vp_buf_text(&up);
}

/* The same file, named from the new place; NULL: the name may stay, or names no file. */
static const char *moved(const struct moving *m, const char *name) {
    struct vp_ctx *ctx = m->ctx;
    const char *now = vp_io_join(ctx, m->from, name);

    if (*name == '/' || *name == '~' || m->stays)
        return NULL;
    if (vp_io_kind(ctx, now) == VP_FILE_NONE) {
        now = name; /* said on the command line */
        if (vp_io_kind(ctx, now) == VP_FILE_NONE)
            return NULL;
    }
    while (now[0] == '.' && now[1] == '/')
        now += 2;
    if (m->here || *now == '/')
        return now;
    size_t n = strlen(m->to);
    if (strncmp(now, m->to, n) == 0 && now[n] == '/')
        return now + n + 1;
    if (m->up)
        return vp_arena_printf(ctx->arena, "%s%s", m->up, now);
    return vp_io_join(ctx, current_folder(ctx->arena), now);
}

static void move_file(const struct moving *m, struct vp_node *map, const char *path) {
    const char *dot = strchr(path, '.');
    const char *key = dot ? vp_arena_text(m->ctx->arena, path, (size_t)(dot - path)) : path;
    struct vp_node *node = vp_node_get(map, key);

    if (!node || vp_node_is_null(node))
        return;
    if (dot) {
        if (node->kind == VP_NODE_MAP)
            move_file(m, node, dot + 1);
        return;
    }
    const char *to = node->kind == VP_NODE_TEXT ? moved(m, node->text) : NULL;
    if (to)
        vp_node_set(m->ctx, map, key, node->pos,
                    vp_node_scalar(m->ctx, VP_NODE_TEXT, to, node->pos));
}

/* The keys that come first, and in which order; all others keep theirs. */
static struct vp_node *in_order(struct vp_ctx *ctx, const struct vp_node *root) {
    static const char *const FIRST[] = {"vramplan", "name",      "model", "hardware", "engine",
                                        "parallel", "precision", "serve", "train"};
    struct vp_node *out = vp_node_new(ctx, VP_NODE_MAP, root->pos);

    vp_node_set(ctx, out, "vramplan", root->pos, vp_node_new_u64(ctx, 1, root->pos));
    for (size_t i = 1; i < sizeof FIRST / sizeof *FIRST; i++) {
        struct vp_node *node = vp_node_get(root, FIRST[i]);
        if (node)
            vp_node_set(ctx, out, FIRST[i], node->pos, node);
    }
    for (uint32_t i = 0; i < root->count; i++)
        if (!vp_node_get(out, root->keys[i]))
            vp_node_set(ctx, out, root->keys[i], root->key_pos[i], root->items[i]);
    return out;
}

enum vp_status vp_scenario_tree(struct vp_ctx *ctx, struct vp_node **out,
                                const struct vp_variants *variants,
                                const struct vp_setting *changes, size_t count, const char *path) {
    struct vp_node *said;
    const struct vp_scenario *scenario;
    const char *base = vp_variants_folder(variants), *from = base ? base : ".";
    const char *to = path ? vp_io_dirname(ctx, path) : ".";
    enum vp_status status = vp_variants_make(variants, ctx, &scenario, changes, count);
    if (status == VP_OK)
        status = vp_variants_said(variants, ctx, &said, changes, count);
    if (status != VP_OK)
        return status;
    struct moving moving = {.ctx = ctx,
                            .from = base,
                            .stays = vp_text_eq(from, to),
                            .here = vp_text_eq(to, "."),
                            .to = to,
                            .up = way_up(ctx->arena, to)};
    struct vp_node *root = vp_node_clone(ctx, said);
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++)
        move_file(&moving, root, FILES[i]);
    *out = in_order(ctx, root);
    return VP_OK;
}

enum vp_status vp_scenario_yaml(struct vp_ctx *ctx, struct vp_buf *out,
                                const struct vp_variants *variants,
                                const struct vp_setting *changes, size_t count, const char *path) {
    struct vp_node *root;
    const struct vp_scenario *scenario;
    enum vp_status status = vp_scenario_tree(ctx, &root, variants, changes, count, path);
    if (status == VP_OK)
        status = vp_variants_make(variants, ctx, &scenario, changes, count);
    if (status != VP_OK)
        return status;
    if (!vp_node_get(root, "name")) { /* it was that of the file, or of its place there */
        vp_node_set(ctx, root, "name", root->pos,
                    vp_node_scalar(ctx, VP_NODE_TEXT, scenario->name, root->pos));
        root = in_order(ctx, root);
    }
    vp_yaml_write_map(out, root, 0);
    return VP_OK;
}
