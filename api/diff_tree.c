/* Two trees as a list of leaves that differ, in an order; and one such change made in a tree. */
#include <stdlib.h>
#include <string.h>

#include "api/diff_parts.h"
#include "planner/base/text.h"
#include "planner/import/document.h"
#include "planner/import/engine_args.h"

struct vp_diff_change *vp_diff_add(struct vp_diff_changes *changes) {
    if (changes->count == changes->capacity) {
        size_t capacity = changes->capacity ? 2 * changes->capacity : 16;
        struct vp_diff_change *items =
            VP_NEW_ARRAY(changes->arena, capacity, struct vp_diff_change);
        if (changes->count)
            memcpy(items, changes->items, changes->count * sizeof *items);
        changes->items = items;
        changes->capacity = capacity;
    }
    return &changes->items[changes->count++];
}

/* ---- what differs ---- */

struct walk {
    struct vp_ctx *ctx;
    struct vp_diff_changes *out;
    struct vp_diff_key key[VP_DOC_MAX_DEPTH + 8];
    uint32_t depth;
};

static void compare(struct walk *w, const struct vp_node *a, const struct vp_node *b,
                    const char *path);

static const struct vp_node *said(const struct vp_node *node) {
    return vp_node_is_null(node) ? NULL : node;
}

static bool is_full_map(const struct vp_node *node) {
    return node && node->kind == VP_NODE_MAP && node->count > 0;
}

static void compare_key(struct walk *w, const struct vp_node *a, const struct vp_node *b,
                        const char *path, const char *name) {
    w->key[w->depth++] = (struct vp_diff_key){.name = name};
    compare(w, vp_node_get(a, name), vp_node_get(b, name),
            *path ? vp_arena_printf(w->ctx->arena, "%s.%s", path, name) : name);
    w->depth--;
}

static void compare_maps(struct walk *w, const struct vp_node *a, const struct vp_node *b,
                         const char *path) {
    for (uint32_t i = 0; b && i < b->count; i++)
        compare_key(w, a, b, path, b->keys[i]);
    for (uint32_t i = 0; a && i < a->count; i++)
        if (!vp_node_get(b, a->keys[i]))
            compare_key(w, a, b, path, a->keys[i]);
}

/* As many maps in both: compared one by one. */
static bool are_like_lists(const struct vp_node *a, const struct vp_node *b) {
    if (!a || !b || a->kind != VP_NODE_LIST || b->kind != VP_NODE_LIST || a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->items[i]->kind != VP_NODE_MAP || b->items[i]->kind != VP_NODE_MAP)
            return false;
    return a->count > 0;
}

static void compare_lists(struct walk *w, const struct vp_node *a, const struct vp_node *b,
                          const char *path) {
    for (uint32_t i = 0; i < a->count; i++) {
        w->key[w->depth++] = (struct vp_diff_key){.index = i};
        compare(w, a->items[i], b->items[i],
                vp_arena_printf(w->ctx->arena, "%s[%u]", path, (unsigned)i));
        w->depth--;
    }
}

static void compare_leaves(struct walk *w, const struct vp_node *a, const struct vp_node *b,
                           const char *path) {
    const char *from = a ? vp_document_show(w->ctx, a) : NULL;
    const char *to = b ? vp_document_show(w->ctx, b) : NULL;

    if (vp_text_eq(from, to))
        return;
    struct vp_diff_change *change = vp_diff_add(w->out);
    struct vp_diff_key *key = VP_NEW_ARRAY(w->ctx->arena, w->depth, struct vp_diff_key);
    if (w->depth)
        memcpy(key, w->key, w->depth * sizeof *key);
    *change = (struct vp_diff_change){
        .cause = {.path = path, .from = from, .to = to, .pos = b ? b->pos : a->pos},
        .key = key,
        .depth = w->depth,
        .value = b};
}

static void compare(struct walk *w, const struct vp_node *a, const struct vp_node *b,
                    const char *path) {
    a = said(a);
    b = said(b);
    if ((is_full_map(a) || is_full_map(b)) && (!a || a->kind == VP_NODE_MAP) &&
        (!b || b->kind == VP_NODE_MAP))
        compare_maps(w, a, b, path);
    else if (are_like_lists(a, b))
        compare_lists(w, a, b, path);
    else
        compare_leaves(w, a, b, path);
}

void vp_diff_compare(struct vp_ctx *ctx, struct vp_diff_changes *out, const struct vp_node *before,
                     const struct vp_node *after, const char *prefix) {
    struct walk w = {.ctx = ctx, .out = out};

    compare(&w, before, after, prefix ? prefix : "");
}

/* ---- the order ---- */

static enum vp_cause_group group_of(struct vp_ctx *ctx, const char *path,
                                    enum vp_engine_kind engine) {
    static const struct {
        enum vp_cause_group group;
        const char *pattern;
    } ROWS[] = {
#define X(group, pattern) {VP_CAUSE_##group, pattern},
#include "api/diff_order.def"
#undef X
    };
    static const char ARGS[] = "engine.args.";
    enum vp_field field = VP_FIELD_COUNT;

    if (vp_text_starts(path, ARGS))
        field = vp_engine_arg_field(ctx, engine, path + strlen(ARGS));
    if (field < VP_FIELD_COUNT)
        path = vp_field_info(field)->path;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (vp_text_glob(ROWS[i].pattern, path))
            return ROWS[i].group;
    return VP_CAUSE_REST;
}

/* A model that is replaced as a whole comes first, then what is different in it. */
static int rank_of(const struct vp_diff_change *change) {
    return change->detail ? 1 : vp_text_eq(change->cause.path, "model") ? 0 : 2;
}

static int order(const void *left, const void *right) {
    const struct vp_diff_change *a = left, *b = right;

    if (a->cause.group != b->cause.group)
        return a->cause.group < b->cause.group ? -1 : 1;
    if (rank_of(a) != rank_of(b))
        return rank_of(a) - rank_of(b);
    return strcmp(a->cause.path, b->cause.path);
}

void vp_diff_sort(struct vp_ctx *ctx, struct vp_diff_changes *changes, enum vp_engine_kind engine) {
    for (size_t i = 0; i < changes->count; i++) {
        struct vp_diff_change *change = &changes->items[i];
        change->cause.group =
            change->detail ? VP_CAUSE_MODEL : group_of(ctx, change->cause.path, engine);
    }
    if (changes->count)
        qsort(changes->items, changes->count, sizeof *changes->items, order);
}

/* ---- one change ---- */

static struct vp_node *step_into(const struct vp_node *node, const struct vp_diff_key *key) {
    if (!node)
        return NULL;
    if (key->name)
        return vp_node_get(node, key->name);
    return node->kind == VP_NODE_LIST && key->index < node->count ? node->items[key->index] : NULL;
}

static void remove_key(struct vp_node *map, const char *name) {
    uint32_t at = 0;

    while (at < map->count && strcmp(map->keys[at], name) != 0)
        at++;
    for (uint32_t i = at; i + 1 < map->count; i++) {
        map->keys[i] = map->keys[i + 1];
        map->key_pos[i] = map->key_pos[i + 1];
        map->items[i] = map->items[i + 1];
    }
    map->count -= at < map->count;
}

/* A map that is empty afterwards goes too, unless the new tree has one there. */
static void take_away(struct vp_node *node, const struct vp_diff_change *change, uint32_t depth,
                      const struct vp_node *after) {
    const struct vp_diff_key *key = &change->key[depth];
    struct vp_node *child = step_into(node, key);

    if (!child)
        return;
    if (depth + 1 < change->depth) {
        const struct vp_node *new = step_into(after, key);
        take_away(child, change, depth + 1, new);
        if (child->kind != VP_NODE_MAP || child->count > 0 || !vp_node_is_null(new))
            return;
    }
    if (key->name)
        remove_key(node, key->name);
}

void vp_diff_apply(struct vp_ctx *ctx, struct vp_node *tree, const struct vp_diff_change *change,
                   const struct vp_node *after) {
    struct vp_node *node = tree;

    if (!change->value) {
        take_away(tree, change, 0, after);
        return;
    }
    for (uint32_t i = 0; i + 1 < change->depth; i++) {
        const struct vp_diff_key *key = &change->key[i];
        struct vp_node *child = step_into(node, key);
        if (key->name && (!child || vp_node_is_scalar(child))) {
            child = vp_node_new(ctx, VP_NODE_MAP, change->value->pos);
            vp_node_set(ctx, node, key->name, change->value->pos, child);
        }
        if (!child)
            return; /* a list of another length: replaced as a whole */
        node = child;
    }
    const struct vp_diff_key *last = &change->key[change->depth - 1];
    struct vp_node *value = vp_node_clone(ctx, change->value);
    if (last->name)
        vp_node_set(ctx, node, last->name, value->pos, value);
    else if (last->index < node->count)
        node->items[last->index] = value;
}
