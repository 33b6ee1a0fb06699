/* The model in a comparison: its description's keys in place of a name or a path where nothing else
 * belongs to it, so that they can be changed one at a time; else the model as a whole. */
#include <inttypes.h>
#include <string.h>

#include "api/diff_parts.h"
#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/import/document.h"
#include "planner/import/model_reader.h"

/* ---- paths ---- */

static bool names_file(struct vp_ctx *ctx, const char *base, const char *text) {
    return vp_io_kind(ctx, vp_io_join(ctx, base, vp_document_expand(ctx, text))) != VP_FILE_NONE;
}

/* The text of map.key as a path from the current directory. */
static void place_text(struct vp_ctx *ctx, const struct vp_diff_tree *tree, struct vp_node *map,
                       const char *key) {
    struct vp_node *node = vp_node_get(map, key);
    const char *base = tree->base;

    if (!node || node->kind != VP_NODE_TEXT || !names_file(tree->side->ctx, base, node->text))
        return;
    struct vp_pos pos = node->pos;
    const char *path = vp_io_join(ctx, base, vp_document_expand(ctx, node->text));
    vp_node_set(ctx, map, key, pos, vp_node_scalar(ctx, VP_NODE_TEXT, path, pos));
}

void vp_diff_place(struct vp_ctx *ctx, struct vp_diff_tree *tree) {
    struct vp_node *args = vp_node_get(vp_node_get(tree->root, "engine"), "args");

    place_text(ctx, tree, tree->root, "model");
    place_text(ctx, tree, vp_node_get(tree->root, "model"), "from");
    place_text(ctx, tree, tree->root, "calibration");
    place_text(ctx, tree, vp_node_get(vp_node_get(tree->root, "serve"), "draft"), "model");
    place_text(ctx, tree, args, "mmproj");
    tree->base = NULL;
}

/* ---- the two descriptions ---- */

struct model {
    const struct vp_diff_tree *tree;
    struct vp_node *node;    /* as it stands in the tree; NULL: none */
    const char *name;        /* a name or a path; NULL: written out in the scenario */
    bool by_name;            /* of a profile or the hub's, not of a file */
    bool plain;              /* the description is all there is */
    struct vp_description d; /* config NULL: it could not be found */
};

static struct model model_of(const struct vp_diff_tree *tree) {
    const struct vp_diff_side *side = tree->side;
    struct model m = {.tree = tree, .node = vp_node_get(tree->root, "model")};
    struct vp_ctx quiet = *side->ctx;
    const struct vp_node *from = vp_node_get(m.node, "from");

    if (vp_node_is_null(m.node))
        return m;
    quiet.diags = VP_NEW(quiet.arena, struct vp_diags); /* told when the scenario was read */
    quiet.diags->arena = quiet.arena;
    m.name = vp_node_text(from ? from : m.node);
    m.by_name = m.name && !names_file(&quiet, tree->base, m.name);
    if (vp_description_find(&quiet, &m.d, m.node, tree->base) != VP_OK)
        m.d.config = NULL;
    m.plain = m.d.config && !m.d.index && m.d.file_count == 0 && !m.d.gguf && !m.d.hf_quant;
    return m;
}

/* Keys can be changed one at a time. Between two models by name that would be the way from one
 * product to another, through models that do not exist. */
static bool by_keys(const struct model *a, const struct model *b) {
    bool named = (a->by_name || b->by_name) && !vp_text_eq(a->name, b->name);

    return a->plain && b->plain && !named;
}

static void write_out(struct vp_ctx *ctx, struct vp_diff_tree *tree, const struct model *m) {
    vp_node_set(ctx, tree->root, "model", m->node->pos, vp_node_clone(ctx, m->d.config));
}

/* ---- a model as a whole ---- */

static void add_model(struct vp_diff_changes *out, struct vp_ctx *ctx, const struct model *a,
                      const struct model *b) {
    static const char WRITTEN[] = "(written out)";
    struct vp_diff_key *key = VP_NEW(ctx->arena, struct vp_diff_key);
    const char *from = !a->node ? NULL : a->name ? a->name : WRITTEN;
    const char *to = !b->node ? NULL : b->name ? b->name : WRITTEN;

    key->name = "model";
    *vp_diff_add(out) = (struct vp_diff_change){
        .cause = {.path = "model", .from = from, .to = to, .pos = (b->node ? b : a)->node->pos},
        .key = key,
        .depth = 1,
        .value = b->node};
}

static void add_detail(struct vp_diff_changes *out, const char *path, const char *from,
                       const char *to, const char *file) {
    if (!vp_text_eq(from, to))
        *vp_diff_add(out) = (struct vp_diff_change){
            .cause = {.path = path, .from = from, .to = to, .pos = {.file = file}}, .detail = true};
}

/* "291 tensors, 16443154432 bytes" */
static const char *tensors_of_gguf(struct vp_ctx *ctx, const struct vp_gguf *file) {
    struct vp_sum all = vp_sum(0);

    for (uint32_t i = 0; i < file->tensor_count; i++)
        all = vp_sum_add(all, file->tensors[i].bytes);
    return vp_arena_printf(ctx->arena, "%" PRIu32 " tensors, %" PRIu64 " bytes", file->tensor_count,
                           all.v);
}

/* What the description's files hold, as far as plans depend on it; NULL: nothing. */
static const char *tensors_of(struct vp_ctx *ctx, const struct model *m) {
    struct vp_ctx quiet = *m->tree->side->ctx;
    struct vp_model *model;

    if (m->d.gguf)
        return tensors_of_gguf(ctx, m->d.gguf);
    if (!m->d.index && m->d.file_count == 0)
        return NULL;
    quiet.diags = VP_NEW(quiet.arena, struct vp_diags);
    quiet.diags->arena = quiet.arena;
    if (vp_model_read(&quiet, &model, m->node, m->tree->base) != VP_OK)
        return NULL;
    return vp_arena_printf(ctx->arena, "%" PRIu64 " tensors, %" PRIu64 " bytes",
                           model->checkpoint.tensors, model->checkpoint.total_bytes);
}

static const char *file_of(const struct model *m) {
    return m->d.gguf ? m->d.gguf->source : m->d.tensor_source ? m->d.tensor_source : m->d.source;
}

/* The same file, with other tables of tensors. */
static bool same_tensors(const struct vp_gguf *a, const struct vp_gguf *b) {
    bool same = a->tensor_count == b->tensor_count;

    for (uint32_t i = 0; same && i < a->tensor_count; i++) {
        const struct vp_gguf_entry *x = &a->tensors[i], *y = &b->tensors[i];
        same = vp_text_eq(x->name, y->name) && vp_text_eq(x->type->name, y->type->name) &&
               x->bytes == y->bytes && x->elements == y->elements;
    }
    return same;
}

static void replace(struct vp_ctx *ctx, struct vp_diff_changes *out, const struct model *a,
                    const struct model *b) {
    size_t begin = out->count;
    const char *file = file_of(b->node ? b : a);
    bool other = !vp_text_eq(a->name, b->name) || !a->d.config || !b->d.config;

    if (!a->node && !b->node)
        return;
    if (other)
        add_model(out, ctx, a, b);
    vp_diff_compare(ctx, out, a->d.config, b->d.config, "model");
    vp_diff_compare(ctx, out, a->d.hf_quant, b->d.hf_quant, "model.hf_quant_config");
    for (size_t i = begin + other; i < out->count; i++) {
        out->items[i].detail = true;
        out->items[i].key = NULL; /* told, not made: the model is replaced */
    }
    if (a->d.gguf && b->d.gguf && same_tensors(a->d.gguf, b->d.gguf))
        ; /* the same bytes, whatever the file is called */
    else
        add_detail(out, "model (tensors)", tensors_of(ctx, a), tensors_of(ctx, b), file);
    if (other || out->count == begin)
        return;
    add_model(out, ctx, a, b); /* the same name, other files behind it */
    out->items[out->count - 1].cause.pos = (struct vp_pos){.file = file};
}

void vp_diff_models(struct vp_ctx *ctx, struct vp_diff_changes *out, struct vp_diff_tree *before,
                    struct vp_diff_tree *after) {
    struct model a = model_of(before), b = model_of(after);

    if (by_keys(&a, &b)) {
        write_out(ctx, before, &a);
        write_out(ctx, after, &b);
        return;
    }
    before->replaced = after->replaced = true;
    replace(ctx, out, &a, &b);
}
