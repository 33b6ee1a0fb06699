#include "planner/import/chain_reader.h"

#include <inttypes.h>

#include "planner/base/text.h"
#include "planner/doc/json.h"
#include "planner/import/document.h"

static const char *const KEYS[] = {"x", "g", "f", "b", "wn", "opts", "body", "name", "n", "held"};
static const char *const OPTION_KEYS[] = {"t", "r", "wf", "wb"};
enum { KEY_COUNT = sizeof KEYS / sizeof *KEYS, OPTION_KEY_COUNT = 4 };

static void check_keys(struct vp_ctx *ctx, const struct vp_node *map, const char *const *keys,
                       size_t count) {
    for (uint32_t i = 0; i < map->count; i++) {
        size_t k = 0;
        while (k < count && !vp_text_eq(map->keys[i], keys[k]))
            k++;
        if (k < count)
            continue;
        vp_diag_add(ctx->diags, VP_D_UNKNOWN_KEY, &map->key_pos[i], "a chain has no '%s'",
                    map->keys[i]);
        const char *nearest = vp_text_nearest(map->keys[i], keys, count);
        if (nearest)
            vp_diag_hint(ctx->diags, "did you mean '%s'?", nearest);
    }
}

/* An integer from 0 on; label is where it stands, for the message. */
static bool read_number(struct vp_ctx *ctx, uint64_t *out, const struct vp_node *node,
                        const char *label) {
    if (node->kind == VP_NODE_INT && vp_node_u64(out, node))
        return true;
    vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &node->pos, "%s is %s, not an integer from 0 on", label,
                vp_document_show(ctx, node));
    vp_diag_hint(ctx->diags, "bytes and times are whole numbers; give times in a smaller unit");
    return false;
}

static const struct vp_node *get(struct vp_ctx *ctx, const struct vp_node *map, const char *key,
                                 enum vp_node_kind kind, const char *what) {
    const struct vp_node *node = vp_node_get(map, key);
    if (!node) {
        vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, &map->pos, "%s has no '%s'", what, key);
    } else if (node->kind != kind) {
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &node->pos, "'%s' is %s", key,
                    vp_node_kind_name(node->kind));
        vp_diag_hint(ctx->diags, "it must be %s", vp_node_kind_name(kind));
    } else {
        return node;
    }
    return NULL;
}

/* A list of `count` integers; a faulty one is all 0. */
static const uint64_t *read_numbers(struct vp_ctx *ctx, const struct vp_node *map, const char *key,
                                    uint32_t count) {
    uint64_t *values = VP_NEW_ARRAY(ctx->arena, count, uint64_t);
    const struct vp_node *list = get(ctx, map, key, VP_NODE_LIST, "the chain");
    if (!list)
        return values;
    if (list->count != count) {
        vp_diag_add(ctx->diags, VP_D_CONTRADICTION, &list->pos,
                    "'%s' has %" PRIu32 " numbers, for these stages it must have %" PRIu32, key,
                    list->count, count);
        vp_diag_hint(ctx->diags, "n stages have n+1 of x and g, and n of f, b, wn and opts");
        return values;
    }
    for (uint32_t i = 0; i < count; i++)
        read_number(ctx, &values[i], list->items[i],
                    vp_arena_printf(ctx->arena, "%s[%" PRIu32 "]", key, i));
    return values;
}

static void read_option(struct vp_ctx *ctx, struct vp_tape_option *out, const struct vp_node *node,
                        const char *label) {
    uint64_t *const fields[OPTION_KEY_COUNT] = {&out->t, &out->r, &out->wf, &out->wb};
    if (node->kind != VP_NODE_MAP) {
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &node->pos, "%s is %s, not {t, r, wf, wb}", label,
                    vp_node_kind_name(node->kind));
        return;
    }
    check_keys(ctx, node, OPTION_KEYS, OPTION_KEY_COUNT);
    for (int k = 0; k < OPTION_KEY_COUNT; k++) {
        const struct vp_node *value = vp_node_get(node, OPTION_KEYS[k]);
        if (!value)
            vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, &node->pos, "%s has no '%s'", label,
                        OPTION_KEYS[k]);
        else
            read_number(ctx, fields[k], value,
                        vp_arena_printf(ctx->arena, "%s.%s", label, OPTION_KEYS[k]));
    }
}

static const struct vp_tape_option *read_stage(struct vp_ctx *ctx, uint32_t *count,
                                               const struct vp_node *list, uint32_t stage) {
    if (list->kind != VP_NODE_LIST || list->count == 0 || list->count > VP_CHAIN_MAX_OPTIONS) {
        bool long_list = list->kind == VP_NODE_LIST && list->count > 0;
        vp_diag_add(ctx->diags, long_list ? VP_D_CAP : VP_D_BAD_VALUE, &list->pos,
                    "opts[%" PRIu32 "] is not a list of 1 to %d options", stage,
                    VP_CHAIN_MAX_OPTIONS);
        vp_diag_hint(ctx->diags, "the first option is the full tape, with r 0");
        return NULL;
    }
    struct vp_tape_option *options = VP_NEW_ARRAY(ctx->arena, list->count, struct vp_tape_option);
    for (uint32_t j = 0; j < list->count; j++)
        read_option(ctx, &options[j], list->items[j],
                    vp_arena_printf(ctx->arena, "opts[%" PRIu32 "][%" PRIu32 "]", stage, j));
    if (options[0].r != 0) {
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &list->items[0]->pos,
                    "opts[%" PRIu32 "][0] has r %" PRIu64 ", but the first option is the full tape",
                    stage, options[0].r);
        vp_diag_hint(ctx->diags, "put the option that recomputes nothing first, with r 0");
    }
    *count = list->count;
    return options;
}

static void read_options(struct vp_ctx *ctx, struct vp_chain *chain, const struct vp_node *map) {
    const struct vp_tape_option **options =
        VP_NEW_ARRAY(ctx->arena, chain->n, const struct vp_tape_option *);
    uint32_t *counts = VP_NEW_ARRAY(ctx->arena, chain->n, uint32_t);
    const struct vp_node *list = get(ctx, map, "opts", VP_NODE_LIST, "the chain");
    chain->options = options;
    chain->option_counts = counts;
    if (!list)
        return;
    if (list->count != chain->n) {
        vp_diag_add(ctx->diags, VP_D_CONTRADICTION, &list->pos,
                    "'opts' has %" PRIu32 " stages, 'f' has %" PRIu32, list->count, chain->n);
        return;
    }
    for (uint32_t i = 0; i < chain->n; i++)
        options[i] = read_stage(ctx, &counts[i], list->items[i], i);
}

static void read_body(struct vp_ctx *ctx, struct vp_chain *chain, const struct vp_node *map) {
    const struct vp_node *list = vp_node_get(map, "body");
    uint64_t first = 0, end = chain->n - 1;
    if (list) {
        bool ok = list->kind == VP_NODE_LIST && list->count == 2 &&
                  vp_node_u64(&first, list->items[0]) && vp_node_u64(&end, list->items[1]) &&
                  first <= end && end <= chain->n;
        if (!ok) {
            vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &list->pos,
                        "'body' is %s, not [first, end) within the %" PRIu32 " stages",
                        vp_document_show(ctx, list), chain->n);
            vp_diag_hint(ctx->diags, "such as [0, %" PRIu32 "]: all but the last", chain->n - 1);
            return;
        }
    }
    chain->body_first = (uint32_t)first;
    chain->body_end = (uint32_t)end;
}

/* The number of stages is that of f; n, where it is given, must agree. */
static bool read_count(struct vp_ctx *ctx, struct vp_chain *chain, const struct vp_node *map) {
    const struct vp_node *f = get(ctx, map, "f", VP_NODE_LIST, "the chain");
    const struct vp_node *n = vp_node_get(map, "n");
    uint64_t said;
    if (!f)
        return false;
    if (f->count == 0 || f->count > VP_CHAIN_MAX_STAGES) {
        vp_diag_add(ctx->diags, f->count ? VP_D_CAP : VP_D_BAD_VALUE, &f->pos,
                    "a chain has 1 to %d stages, this one has %" PRIu32, VP_CHAIN_MAX_STAGES,
                    f->count);
        vp_diag_hint(ctx->diags, "put neighbouring stages together");
        return false;
    }
    chain->n = f->count;
    if (n && read_number(ctx, &said, n, "n") && said != chain->n)
        vp_diag_add(ctx->diags, VP_D_CONTRADICTION, &n->pos,
                    "n is %" PRIu64 ", but f has %" PRIu32 " stages", said, chain->n);
    return true;
}

static void read_all(struct vp_ctx *ctx, struct vp_chain *chain, const struct vp_node *map) {
    uint32_t n = chain->n;
    chain->x = read_numbers(ctx, map, "x", n + 1);
    chain->g = read_numbers(ctx, map, "g", n + 1);
    chain->f = read_numbers(ctx, map, "f", n);
    chain->b = read_numbers(ctx, map, "b", n);
    chain->wn = read_numbers(ctx, map, "wn", n);
    if (vp_node_get(map, "held"))
        chain->held = read_numbers(ctx, map, "held", n);
    read_options(ctx, chain, map);
    read_body(ctx, chain, map);
}

enum vp_status vp_chain_read(struct vp_ctx *ctx, struct vp_chain_file *out, const char *path,
                             uint64_t inflight) {
    uint32_t errors = ctx->diags->errors;
    struct vp_bytes text;
    struct vp_node *root;
    *out = (struct vp_chain_file){.name = vp_document_stem(ctx, path)};
    enum vp_status status = vp_io_read(ctx, &text, path, VP_DOCUMENT_MAX_BYTES);
    if (status == VP_OK)
        status = vp_json_read(ctx, &root, text, vp_text_eq(path, "-") ? "<stdin>" : path);
    if (status != VP_OK)
        return status;
    if (root->kind != VP_NODE_MAP) {
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &root->pos, "a chain is a map, this is %s",
                    vp_node_kind_name(root->kind));
        return VP_ERR_INPUT;
    }
    check_keys(ctx, root, KEYS, KEY_COUNT);
    if (vp_node_text(vp_node_get(root, "name")))
        out->name = vp_node_text(vp_node_get(root, "name"));
    if (read_count(ctx, &out->chain, root))
        read_all(ctx, &out->chain, root);
    if (ctx->diags->errors != errors)
        return VP_ERR_INPUT;
    const char *large = vp_chain_overflow(&out->chain, inflight);
    if (!large)
        return VP_OK;
    vp_diag_add(ctx->diags, VP_D_OVERFLOW, &root->pos,
                "the %s of the chain add up to more than 2^60", large);
    vp_diag_hint(ctx->diags, "times may be given in a larger unit");
    return VP_ERR_INPUT;
}
