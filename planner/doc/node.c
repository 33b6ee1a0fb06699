#include "planner/doc/node.h"

#include <math.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"

struct vp_node *vp_node_get(const struct vp_node *map, const char *key) {
    if (!map || map->kind != VP_NODE_MAP)
        return NULL;
    for (uint32_t i = 0; i < map->count; i++)
        if (*map->keys[i] == *key && strcmp(map->keys[i], key) == 0)
            return map->items[i];
    return NULL;
}

const char *vp_node_kind_name(enum vp_node_kind kind) {
    switch (kind) {
    case VP_NODE_NULL:
        return "null";
    case VP_NODE_BOOL:
        return "true or false";
    case VP_NODE_INT:
        return "an integer";
    case VP_NODE_REAL:
        return "a number";
    case VP_NODE_TEXT:
        return "text";
    case VP_NODE_LIST:
        return "a list";
    case VP_NODE_MAP:
        break;
    }
    return "a map";
}

bool vp_node_is_scalar(const struct vp_node *node) {
    return node && node->kind != VP_NODE_LIST && node->kind != VP_NODE_MAP;
}

bool vp_node_is_null(const struct vp_node *node) { return !node || node->kind == VP_NODE_NULL; }

/* Digits of base 8 or 16; the kind INT says that they are digits. */
static bool read_based(uint64_t *out, const char *digits, unsigned base) {
    uint64_t v = 0;
    for (const char *p = digits; *p; p++) {
        unsigned digit = *p <= '9' ? (unsigned)(*p - '0') : (unsigned)((*p | 0x20) - 'a') + 10;
        if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, digit, &v))
            return false;
    }
    *out = v;
    return true;
}

static bool read_integer(uint64_t *out, const char *text) {
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'o'))
        return read_based(out, text + 2, text[1] == 'x' ? 16 : 8);
    if (*text == '-') /* -0 is the only one that is no negative number */
        return vp_parse_u64(out, text + 1) && *out == 0;
    return vp_parse_u64(out, *text == '+' ? text + 1 : text);
}

bool vp_node_u64(uint64_t *out, const struct vp_node *node) {
    double v;
    if (!node)
        return false;
    if (node->kind == VP_NODE_INT)
        return read_integer(out, node->text);
    if (node->kind != VP_NODE_REAL || !vp_parse_real(&v, node->text))
        return false;
    if (!(v >= 0 && v < 0x1p53) || floor(v) != v)
        return false;
    *out = (uint64_t)v;
    return true;
}

/* .inf, Infinity, .nan, NaN, each as YAML or JSON writers spell it. */
static bool read_not_finite(double *out, const char *text) {
    bool negative = *text == '-';
    if (negative || *text == '+')
        text++;
    if (vp_name_eq(text, ".inf") || vp_name_eq(text, "Infinity")) {
        *out = negative ? -(double)INFINITY : (double)INFINITY;
        return true;
    }
    if (vp_name_eq(text, ".nan") || vp_name_eq(text, "NaN")) {
        *out = (double)NAN;
        return true;
    }
    return false;
}

bool vp_node_real(double *out, const struct vp_node *node) {
    uint64_t v;
    if (!node || (node->kind != VP_NODE_INT && node->kind != VP_NODE_REAL))
        return false;
    if (vp_parse_real(out, node->text))
        return true;
    if (node->kind == VP_NODE_REAL)
        return read_not_finite(out, node->text);
    if (!read_integer(&v, node->text))
        return false;
    *out = (double)v;
    return true;
}

bool vp_node_bool(bool *out, const struct vp_node *node) {
    if (!node || node->kind != VP_NODE_BOOL)
        return false;
    *out = node->text[0] == 't' || node->text[0] == 'T';
    return true;
}

const char *vp_node_text(const struct vp_node *node) {
    return vp_node_is_scalar(node) ? node->text : NULL;
}

struct vp_node *vp_node_new(struct vp_ctx *ctx, enum vp_node_kind kind, struct vp_pos pos) {
    struct vp_node *node = VP_NEW(ctx->arena, struct vp_node);
    node->kind = kind;
    node->pos = pos;
    if (vp_node_is_scalar(node))
        node->text = "";
    return node;
}

struct vp_node *vp_node_scalar(struct vp_ctx *ctx, enum vp_node_kind kind, const char *text,
                               struct vp_pos pos) {
    struct vp_node *node = vp_node_new(ctx, kind, pos);
    node->text = vp_arena_text(ctx->arena, text, strlen(text));
    return node;
}

/* Room for `more` further keys. There is no spare capacity: maps that grow have at most some
 * hundred keys, and readers build theirs at once. */
static void grow(struct vp_ctx *ctx, struct vp_node *map, uint32_t more) {
    size_t n = map->count, all = n + more;
    const char **keys = VP_NEW_ARRAY(ctx->arena, all, const char *);
    struct vp_pos *key_pos = VP_NEW_ARRAY(ctx->arena, all, struct vp_pos);
    struct vp_node **items = VP_NEW_ARRAY(ctx->arena, all, struct vp_node *);
    if (n) {
        memcpy(keys, map->keys, n * sizeof *keys);
        memcpy(key_pos, map->key_pos, n * sizeof *key_pos);
        memcpy(items, map->items, n * sizeof *items);
    }
    map->keys = keys;
    map->key_pos = key_pos;
    map->items = items;
}

static uint32_t index_of(const struct vp_node *map, const char *key) {
    uint32_t i = 0;
    while (i < map->count && strcmp(map->keys[i], key) != 0)
        i++;
    return i;
}

struct vp_node *vp_node_new_u64(struct vp_ctx *ctx, uint64_t value, struct vp_pos pos) {
    return vp_node_scalar(ctx, VP_NODE_INT, vp_format_u64(ctx->arena, value), pos);
}

struct vp_node *vp_node_new_bool(struct vp_ctx *ctx, bool value, struct vp_pos pos) {
    return vp_node_scalar(ctx, VP_NODE_BOOL, value ? "true" : "false", pos);
}

void vp_node_set(struct vp_ctx *ctx, struct vp_node *map, const char *key, struct vp_pos key_pos,
                 struct vp_node *value) {
    uint32_t i = index_of(map, key);
    if (i == map->count) {
        grow(ctx, map, 1);
        map->keys[i] = vp_arena_text(ctx->arena, key, strlen(key));
        map->count++;
    }
    map->key_pos[i] = key_pos;
    map->items[i] = value;
}

/* Nothing of the result that may be set later is shared with base or over, so copies are deep for
 * lists and maps; scalars are never changed in place. */
static struct vp_node *copy(struct vp_ctx *ctx, const struct vp_node *node) {
    struct vp_node *to = VP_NEW(ctx->arena, struct vp_node);
    *to = *node;
    if (node->count == 0)
        return to;
    to->items = VP_NEW_ARRAY(ctx->arena, node->count, struct vp_node *);
    for (uint32_t i = 0; i < node->count; i++)
        to->items[i] = copy(ctx, node->items[i]);
    if (node->kind == VP_NODE_MAP) {
        to->keys = VP_NEW_ARRAY(ctx->arena, node->count, const char *);
        to->key_pos = VP_NEW_ARRAY(ctx->arena, node->count, struct vp_pos);
        memcpy(to->keys, node->keys, node->count * sizeof *to->keys);
        memcpy(to->key_pos, node->key_pos, node->count * sizeof *to->key_pos);
    }
    return to;
}

struct vp_node *vp_node_merge(struct vp_ctx *ctx, const struct vp_node *base,
                              const struct vp_node *over) {
    if (!base || !over || base->kind != VP_NODE_MAP || over->kind != VP_NODE_MAP)
        return over ? copy(ctx, over) : base ? copy(ctx, base) : NULL;
    struct vp_node *out = copy(ctx, base);
    out->pos = over->pos;
    grow(ctx, out, over->count);
    for (uint32_t i = 0; i < over->count; i++) {
        uint32_t at = index_of(base, over->keys[i]);
        if (at < base->count) {
            out->items[at] = vp_node_merge(ctx, base->items[at], over->items[i]);
        } else {
            at = out->count++;
            out->keys[at] = over->keys[i];
            out->items[at] = copy(ctx, over->items[i]);
        }
        out->key_pos[at] = over->key_pos[i];
    }
    return out;
}

static const char *clone_text(struct vp_ctx *ctx, const char *text) {
    return text ? vp_arena_text(ctx->arena, text, strlen(text)) : NULL;
}

struct vp_node *vp_node_clone(struct vp_ctx *ctx, const struct vp_node *node) {
    if (!node)
        return NULL;
    struct vp_node *to = vp_node_new(ctx, node->kind, node->pos);
    if (node->count > 0)
        grow(ctx, to, node->count);
    to->count = node->count;
    to->text = clone_text(ctx, node->text);
    to->pos.file = clone_text(ctx, node->pos.file);
    for (uint32_t i = 0; i < node->count; i++) {
        to->items[i] = vp_node_clone(ctx, node->items[i]);
        if (node->kind != VP_NODE_MAP)
            continue;
        to->keys[i] = clone_text(ctx, node->keys[i]);
        to->key_pos[i] = node->key_pos[i];
        to->key_pos[i].file = clone_text(ctx, node->key_pos[i].file);
    }
    return to;
}
