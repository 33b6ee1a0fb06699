#include "planner/doc/build.h"

#include <stdlib.h>
#include <string.h>

void vp_items_push(struct vp_ctx *ctx, struct vp_items *stack, struct vp_item item) {
    if (stack->count == stack->capacity) {
        size_t capacity = stack->capacity ? stack->capacity * 2 : 64;
        struct vp_item *more = VP_NEW_ARRAY(ctx->arena, capacity, struct vp_item);
        if (stack->count)
            memcpy(more, stack->items, stack->count * sizeof *more);
        stack->items = more;
        stack->capacity = capacity;
    }
    stack->items[stack->count++] = item;
}

static int by_key_then_order(const void *a, const void *b) {
    const struct vp_item *x = *(const struct vp_item *const *)a;
    const struct vp_item *y = *(const struct vp_item *const *)b;
    int c = strcmp(x->key, y->key);
    return c ? c : (x > y) - (x < y);
}

static void report_twice(struct vp_ctx *ctx, const struct vp_item *earlier,
                         const struct vp_item *later) {
    vp_diag_add(ctx->diags, VP_D_DUPLICATE_KEY, &later->key_pos,
                "duplicate key \"%.200s\", first given on line %u", later->key,
                earlier->key_pos.line);
}

/* items[i].value becomes NULL where a merged key is already there. */
static bool check_small(struct vp_ctx *ctx, struct vp_item *items, size_t n, size_t own) {
    bool ok = true;
    for (size_t i = 1; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(items[i].key, items[j].key) != 0)
                continue;
            if (i < own) {
                report_twice(ctx, &items[j], &items[i]);
                ok = false;
            } else {
                items[i].value = NULL;
            }
            break;
        }
    }
    return ok;
}

/* Eight bytes at a time: keys of checkpoints have sixty and more. */
static uint32_t hash_of(const char *key) {
    size_t n = strlen(key);
    uint64_t h = n;
    while (n > 0) {
        uint64_t word = 0;
        size_t take = n < sizeof word ? n : sizeof word;
        memcpy(&word, key, take);
        h = (h ^ word) * 0x9E3779B97F4A7C15; /* 2^64 / golden ratio, an odd number */
        h ^= h >> 32;
        key += take;
        n -= take;
    }
    return (uint32_t)h;
}

/* The common case of a large map, where n may be a hundred thousand, by a hash table. False also
 * when keys made for it would make the table slow. */
static bool all_differ(struct vp_ctx *ctx, const struct vp_item *items, size_t n) {
    bool differ = true;
    size_t slots = 16, steps_left = 8 * n;
    while (slots < 2 * n)
        slots *= 2;
    struct vp_arena_mark mark = vp_arena_mark(ctx->arena);
    uint32_t *table = VP_NEW_ARRAY(ctx->arena, slots, uint32_t); /* index + 1, 0: free */
    for (size_t i = 0; differ && i < n; i++) {
        size_t slot = hash_of(items[i].key) & (slots - 1);
        for (; differ && table[slot]; slot = (slot + 1) & (slots - 1))
            differ = steps_left-- > 0 && strcmp(items[table[slot] - 1].key, items[i].key) != 0;
        table[slot] = (uint32_t)i + 1;
    }
    vp_arena_rewind(ctx->arena, mark);
    return differ;
}

static bool check_large(struct vp_ctx *ctx, struct vp_item *items, size_t n, size_t own) {
    bool ok = true;
    if (all_differ(ctx, items, n))
        return true;
    struct vp_item **sorted = VP_NEW_ARRAY(ctx->arena, n, struct vp_item *);
    for (size_t i = 0; i < n; i++)
        sorted[i] = &items[i];
    qsort(sorted, n, sizeof *sorted, by_key_then_order);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) != 0)
            continue;
        if ((size_t)(sorted[i] - items) < own) {
            report_twice(ctx, sorted[i - 1], sorted[i]);
            ok = false;
        } else {
            sorted[i]->value = NULL;
        }
    }
    return ok;
}

bool vp_items_check_keys(struct vp_ctx *ctx, struct vp_items *stack, size_t first, size_t own) {
    enum { SMALL = 8 };
    size_t n = stack->count - first;
    if (n == 0)
        return true;
    struct vp_item *items = stack->items + first;
    bool ok = n <= SMALL ? check_small(ctx, items, n, own) : check_large(ctx, items, n, own);
    size_t kept = own;
    for (size_t i = own; i < n; i++)
        if (items[i].value)
            items[kept++] = items[i];
    stack->count = first + kept;
    return ok;
}

void vp_items_close(struct vp_ctx *ctx, struct vp_items *stack, size_t first,
                    struct vp_node *node) {
    size_t n = stack->count - first;
    node->count = (uint32_t)n; /* the readers count nodes, far below 2^32 */
    if (n == 0)
        return;
    const struct vp_item *items = stack->items + first;
    node->items = VP_NEW_ARRAY(ctx->arena, n, struct vp_node *);
    for (size_t i = 0; i < n; i++)
        node->items[i] = items[i].value;
    if (node->kind == VP_NODE_MAP) {
        node->keys = VP_NEW_ARRAY(ctx->arena, n, const char *);
        node->key_pos = VP_NEW_ARRAY(ctx->arena, n, struct vp_pos);
        for (size_t i = 0; i < n; i++) {
            node->keys[i] = items[i].key;
            node->key_pos[i] = items[i].key_pos;
        }
    }
    stack->count = first;
}

bool vp_doc_too_deep(struct vp_ctx *ctx, struct vp_pos pos) {
    vp_diag_add(ctx->diags, VP_D_CAP, &pos,
                "nesting depth above the cap of %d lists and maps inside each other",
                VP_DOC_MAX_DEPTH);
    return false;
}

bool vp_doc_count_node(struct vp_ctx *ctx, uint32_t *nodes, struct vp_pos pos) {
    if (++*nodes <= VP_DOC_MAX_NODES)
        return true;
    vp_diag_add(ctx->diags, VP_D_CAP, &pos, "more values than the cap on their count, %d",
                VP_DOC_MAX_NODES);
    return false;
}
