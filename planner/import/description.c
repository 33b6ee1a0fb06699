#include "planner/import/description.h"

#include <inttypes.h>
#include <string.h>

#include "planner/base/memo.h"
#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/doc/safetensors.h"
#include "planner/import/document.h"
#include "planner/import/profile.h"

enum { MAX_FROM = 8 }; /* descriptions that build on each other */

static const char INDEX_SUFFIX[] = ".index.json";
static const char TENSORS_SUFFIX[] = ".safetensors";

struct finding {
    struct vp_ctx *ctx;
    struct vp_description *out;
    struct vp_pos pos; /* of the name in the scenario */
    int depth;
};

static enum vp_status find_node(struct finding *f, const struct vp_node *node, const char *base);

static bool is_file(struct finding *f, const char *path) {
    return vp_io_kind(f->ctx, path) == VP_FILE_REGULAR;
}

/* ---- maps ---- */

/* config with `from:` in it: the base's description with the other keys laid on it. */
static enum vp_status find_map(struct finding *f, const struct vp_node *map, const char *base) {
    struct vp_ctx *ctx = f->ctx;
    struct vp_node *from = vp_node_get(map, "from");
    if (!from) {
        const char *name = vp_node_text(vp_node_get(map, "_name_or_path"));
        f->out->config = vp_node_merge(ctx, NULL, map);
        f->out->name = name && *name ? name : NULL;
        return VP_OK;
    }
    if (++f->depth > MAX_FROM) {
        vp_diag_add(ctx->diags, VP_D_CAP, &from->pos,
                    "`from:` is nested deeper than the cap of %d descriptions", MAX_FROM);
        return VP_ERR_INPUT;
    }
    if (vp_node_is_null(from) || from->kind == VP_NODE_LIST) {
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &from->pos,
                    "model.from must be a name or a path, not %s", vp_node_kind_name(from->kind));
        return VP_ERR_INPUT;
    }
    enum vp_status status = find_node(f, from, base);
    if (status != VP_OK)
        return status;
    struct vp_node *over = vp_node_new(ctx, VP_NODE_MAP, map->pos);
    for (uint32_t i = 0; i < map->count; i++)
        if (map->items[i] != from)
            vp_node_set(ctx, over, map->keys[i], map->key_pos[i], map->items[i]);
    if (over->count == 0)
        return VP_OK;
    f->out->config = vp_node_merge(ctx, f->out->config, over);
    if (vp_node_get(over, "quantization_config"))
        f->out->hf_quant = NULL;
    f->out->index = NULL; /* the stored tensors are those of the base */
    f->out->file_count = 0;
    f->out->gguf = NULL;
    if (f->out->name)
        f->out->name = vp_arena_printf(ctx->arena, "%s (changed)", f->out->name);
    return VP_OK;
}

static enum vp_status not_a_map(struct finding *f, const struct vp_node *node, const char *path) {
    struct vp_pos pos = node->pos.file ? node->pos : (struct vp_pos){.file = path};
    vp_diag_add(f->ctx->diags, VP_D_MODEL_FIELD, &pos,
                "a model description must be a map (a JSON object), %s holds %s", path,
                node->kind == VP_NODE_NULL ? "nothing" : vp_node_kind_name(node->kind));
    return VP_ERR_INPUT;
}

/* ---- folders ---- */

/* The file's folder gives the name of a config.json, the file itself that of any other. */
static const char *name_of_path(struct finding *f, const char *path) {
    const char *file = vp_text_file_name(path);
    bool generic = strcmp(file, "config.json") == 0 || vp_text_ends(file, INDEX_SUFFIX) ||
                   vp_text_ends(file, TENSORS_SUFFIX);
    const char *folder = vp_io_dirname(f->ctx, path);
    if (generic && strcmp(folder, ".") != 0 && strcmp(folder, "/") != 0)
        return vp_document_stem(f->ctx, folder);
    return generic ? NULL : vp_document_stem(f->ctx, path);
}

/* config.json and hf_quant_config.json of a folder. */
static enum vp_status read_config(struct finding *f, const char *folder) {
    struct vp_description *d = f->out;
    struct vp_node *node;
    const char *path = vp_io_join(f->ctx, folder, "config.json");
    const char *quant = vp_io_join(f->ctx, folder, "hf_quant_config.json");
    enum vp_status status = vp_document_read(f->ctx, &node, path);
    if (status != VP_OK)
        return status;
    if (node->kind != VP_NODE_MAP)
        return not_a_map(f, node, path);
    status = find_map(f, node, folder);
    if (status == VP_OK && is_file(f, quant))
        status = vp_document_read(f->ctx, &d->hf_quant, quant);
    d->source = path;
    return status;
}

static bool is_copy(const char *name) { return vp_text_starts(name, "consolidated"); }

/* The names' number of the folder's index, model.safetensors.index.json before others; `count`
 * when there is none. */
static size_t find_index_name(char **names, size_t count) {
    size_t found = count;
    for (size_t i = 0; i < count; i++)
        if (vp_text_ends(names[i], ".safetensors.index.json") &&
            (found == count || vp_text_starts(names[i], "model.safetensors.")))
            found = i;
    return found;
}

/* The safetensors files of a folder: its index, model.safetensors, or all there are. Copies in
 * another format (consolidated.*) count only where nothing else is. */
static enum vp_status list_tensors(struct finding *f, const char *folder, bool need_parts) {
    struct vp_description *d = f->out;
    char **names;
    size_t count, plain = 0, files = 0;
    enum vp_status status = vp_io_list(f->ctx, &names, &count, folder);
    if (status != VP_OK)
        return status;
    size_t index = find_index_name(names, count);
    for (size_t i = 0; i < count; i++) {
        bool tensors = vp_text_ends(names[i], TENSORS_SUFFIX);
        files += tensors;
        plain += tensors && !is_copy(names[i]);
    }
    d->tensor_source = folder;
    if (index < count && (files > 0 || need_parts)) {
        d->index = d->tensor_source = vp_io_join(f->ctx, folder, names[index]);
        return VP_OK;
    }
    d->files = VP_NEW_ARRAY(f->ctx->arena, files, const char *);
    for (size_t i = 0; i < count; i++) {
        if (!vp_text_ends(names[i], TENSORS_SUFFIX) || (plain > 0 && is_copy(names[i])))
            continue;
        d->files[d->file_count++] = vp_io_join(f->ctx, folder, names[i]);
        if (!vp_text_eq(names[i], "model.safetensors"))
            continue;
        d->files[0] = d->tensor_source = d->files[d->file_count - 1];
        d->file_count = 1;
        break;
    }
    return VP_OK;
}

/* ---- GGUF ---- */

/* What the tensors say and the keys may leave open, so that the description is whole without the
 * file: the vocabulary (else the tokenizer's length, which is not kept) and a tied head. */
static void complete_keys(struct finding *f, const struct vp_gguf *file) {
    const struct vp_gguf_entry *embedding = NULL;
    const char *arch = vp_node_text(vp_node_get(file->metadata, "general.architecture"));
    struct vp_pos pos = {.file = file->source};
    bool head = false;
    for (uint32_t i = 0; i < file->tensor_count; i++) {
        if (strcmp(file->tensors[i].name, "token_embd.weight") == 0)
            embedding = &file->tensors[i];
        head |= strcmp(file->tensors[i].name, "output.weight") == 0;
    }
    if (!embedding || !arch)
        return;
    vp_node_set(f->ctx, f->out->config, "tie_word_embeddings", pos,
                vp_node_new_bool(f->ctx, !head, pos));
    const char *key = vp_arena_printf(f->ctx->arena, "%s.vocab_size", arch);
    const char *rows = vp_format_u64(f->ctx->arena, embedding->ne[1]);
    if (!vp_node_get(file->metadata, key))
        vp_node_set(f->ctx, file->metadata, key, pos,
                    vp_node_scalar(f->ctx, VP_NODE_INT, rows, pos));
}

static enum vp_status find_gguf(struct finding *f, const char *path) {
    struct vp_ctx *ctx = f->ctx;
    struct vp_gguf *file = VP_NEW(ctx->arena, struct vp_gguf);
    enum vp_status status = vp_gguf_read(ctx, file, path);
    if (status != VP_OK)
        return status;
    struct vp_pos pos = {.file = file->source};
    f->out->config = vp_node_new(ctx, VP_NODE_MAP, pos);
    complete_keys(f, file);
    vp_node_set(ctx, f->out->config, "gguf", pos, file->metadata);
    f->out->gguf = file;
    f->out->name = vp_document_stem(ctx, path);
    f->out->source = file->source;
    return VP_OK;
}

/* The GGUF model of a folder: one file, or one split model by its first part; projectors beside it
 * do not count. NULL: none. Several are a fault. */
static enum vp_status find_folder_gguf(struct finding *f, const char **out, const char *folder) {
    char **names;
    size_t count;
    *out = NULL;
    enum vp_status status = vp_io_list(f->ctx, &names, &count, folder);
    for (size_t i = 0; i < count && status == VP_OK; i++) {
        const char *of = strstr(names[i], "-of-");
        bool later = of && of - names[i] >= 5 && memcmp(of - 5, "00001", 5) != 0;
        if (!vp_text_ends(names[i], ".gguf") || vp_text_starts(names[i], "mmproj") || later)
            continue;
        if (*out) {
            vp_diag_add(f->ctx->diags, VP_D_FILE_MISSING, &f->pos,
                        "%s holds several models: %s and %s", folder, *out, names[i]);
            vp_diag_hint(f->ctx->diags, "name one of the files");
            return VP_ERR_INPUT;
        }
        *out = names[i];
    }
    if (*out)
        *out = vp_io_join(f->ctx, folder, *out);
    return status;
}

/* need_parts: an index without its parts is a fault; the local cache often holds no more. */
static enum vp_status find_folder(struct finding *f, const char *folder, bool need_parts) {
    const char *gguf = NULL;
    enum vp_status status = VP_OK;
    if (!is_file(f, vp_io_join(f->ctx, folder, "config.json")))
        status = find_folder_gguf(f, &gguf, folder);
    if (status != VP_OK || gguf)
        return status != VP_OK ? status : find_gguf(f, gguf);
    status = read_config(f, folder);
    if (status == VP_ERR_ENV)
        return status;
    enum vp_status tensors = list_tensors(f, folder, need_parts);
    if (status == VP_OK)
        f->out->name = vp_document_stem(f->ctx, folder);
    return status == VP_OK ? tensors : status;
}

/* ---- files ---- */

/* Tensors without a config.json: they are read for their faults, which are told in one run. */
static enum vp_status no_config(struct finding *f, const char *path, const char *folder) {
    struct vp_tensors tensors;
    enum vp_status status = vp_text_ends(path, TENSORS_SUFFIX)
                                ? vp_safetensors_read(f->ctx, &tensors, path)
                                : vp_safetensors_read_index(f->ctx, &tensors, path);
    if (status == VP_ERR_ENV)
        return status;
    vp_diag_add(f->ctx->diags, VP_D_FILE_MISSING, &f->pos,
                "%s alone does not describe a model: there is no config.json beside it", path);
    vp_diag_hint(f->ctx->diags, "put the model's config.json into %s", folder);
    return VP_ERR_INPUT;
}

/* A file of tensors or an index; a part of several ("...-00001-of-00003...") stands for all. */
static enum vp_status find_tensors(struct finding *f, const char *path, bool is_index) {
    struct vp_description *d = f->out;
    const char *folder = vp_io_dirname(f->ctx, path);
    if (!is_file(f, vp_io_join(f->ctx, folder, "config.json")))
        return no_config(f, path, folder);
    if (!is_index && strstr(path, "-of-"))
        return find_folder(f, folder, true);
    enum vp_status status = read_config(f, folder);
    d->tensor_source = path;
    if (is_index) {
        d->index = path;
    } else {
        d->files = VP_NEW(f->ctx->arena, const char *);
        d->files[0] = path;
        d->file_count = 1;
    }
    if (status == VP_OK)
        d->name = name_of_path(f, path);
    return status;
}

static enum vp_status find_profile_root(struct finding *f, const struct vp_node *root,
                                        const char *id, const char *path) {
    struct vp_node *config = vp_node_get(root, "config");
    if (!config || config->kind != VP_NODE_MAP) {
        struct vp_pos pos = {.file = path};
        vp_diag_add(f->ctx->diags, VP_D_PROFILE_BROKEN, &pos,
                    "the model profile %s cannot be used: it has no map `config`", path);
        return VP_ERR_INPUT;
    }
    enum vp_status status = find_map(f, config, vp_io_dirname(f->ctx, path));
    f->out->name = id;
    f->out->source = path;
    return status;
}

static enum vp_status find_config_file(struct finding *f, const char *path) {
    struct vp_node *node;
    const char *folder = vp_io_dirname(f->ctx, path);
    enum vp_status status = vp_document_read(f->ctx, &node, path);
    if (status != VP_OK)
        return status;
    if (node->kind != VP_NODE_MAP)
        return not_a_map(f, node, path);
    if (vp_node_get(node, "weight_map"))
        return find_tensors(f, path, true);
    if (vp_node_get(node, "vramplan_model")) {
        const char *id = vp_node_text(vp_node_get(node, "id"));
        return find_profile_root(f, node, id ? id : vp_document_stem(f->ctx, path), path);
    }
    if (vp_node_get(node, "vramplan")) {
        vp_diag_add(f->ctx->diags, VP_D_BAD_VALUE, &f->pos,
                    "%s is a scenario, not a model description", path);
        return VP_ERR_INPUT;
    }
    status = find_map(f, node, folder);
    if (!f->out->name)
        f->out->name = name_of_path(f, path);
    f->out->source = path;
    const char *quant = vp_io_join(f->ctx, folder, "hf_quant_config.json");
    bool plain = strcmp(vp_text_file_name(path), "config.json") == 0;
    if (status == VP_OK && plain && is_file(f, quant))
        status = vp_document_read(f->ctx, &f->out->hf_quant, quant);
    return status;
}

static enum vp_status find_path(struct finding *f, const char *path, enum vp_file_kind kind) {
    f->out->source = path;
    if (kind == VP_FILE_DIRECTORY)
        return find_folder(f, path, true);
    if (vp_text_ends(path, ".gguf"))
        return find_gguf(f, path);
    if (vp_text_ends(path, TENSORS_SUFFIX))
        return find_tensors(f, path, false);
    if (vp_text_ends(path, INDEX_SUFFIX))
        return find_tensors(f, path, true);
    return find_config_file(f, path);
}

/* ---- names ---- */

/* "org/name" with the characters that the hub allows. */
static bool is_hub_id(const char *text) {
    const char *slash = strchr(text, '/');
    if (!slash || slash == text || !slash[1] || strchr(slash + 1, '/') || text[0] == '.')
        return false;
    for (const char *p = text; *p; p++) {
        bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
        if (!letter && !(*p >= '0' && *p <= '9') && !strchr("-_./", *p))
            return false;
    }
    return slash[1] != '.';
}

static bool is_path_like(const char *text) {
    static const char *const SUFFIXES[] = {".json", ".yaml", ".yml", ".gguf", ".safetensors"};
    for (size_t i = 0; i < sizeof SUFFIXES / sizeof *SUFFIXES; i++)
        if (vp_text_ends(text, SUFFIXES[i]))
            return true;
    return strchr("./~", text[0]) || (strchr(text, '/') && !is_hub_id(text));
}

/* The snapshot that `main` points to, or else any that has a config.json. */
static enum vp_status find_snapshot(struct finding *f, const char **out, const char *repo) {
    char **names;
    size_t count;
    const char *snapshots = vp_io_join(f->ctx, repo, "snapshots");
    const char *ref = vp_io_join(f->ctx, repo, "refs/main");
    *out = NULL;
    if (vp_io_kind(f->ctx, snapshots) != VP_FILE_DIRECTORY)
        return VP_OK;
    if (is_file(f, ref)) {
        struct vp_bytes text;
        enum vp_status status = vp_io_read(f->ctx, &text, ref, 4096);
        if (status != VP_OK)
            return status;
        size_t n = strspn(text.data, "0123456789abcdef");
        const char *folder =
            vp_io_join(f->ctx, snapshots, vp_arena_text(f->ctx->arena, text.data, n));
        if (n > 0 && is_file(f, vp_io_join(f->ctx, folder, "config.json"))) {
            *out = folder;
            return VP_OK;
        }
    }
    enum vp_status status = vp_io_list(f->ctx, &names, &count, snapshots);
    for (size_t i = 0; i < count && status == VP_OK; i++) {
        const char *folder = vp_io_join(f->ctx, snapshots, names[i]);
        if (is_file(f, vp_io_join(f->ctx, folder, "config.json")))
            *out = folder;
    }
    return status;
}

static enum vp_status find_cached(struct finding *f, const char *id) {
    const char *slash = strchr(id, '/');
    const char *repo = vp_arena_printf(f->ctx->arena, "%s/models--%.*s--%s", f->ctx->hub_cache,
                                       (int)(slash - id), id, slash + 1);
    const char *folder;
    enum vp_status status = find_snapshot(f, &folder, repo);
    if (status != VP_OK || !folder)
        return status;
    status = find_folder(f, folder, false);
    f->out->name = id;
    return status;
}

static enum vp_status not_found(struct finding *f, const char *text, const char *path) {
    struct vp_diags *diags = f->ctx->diags;
    if (is_path_like(text)) {
        vp_diag_add(diags, VP_D_FILE_MISSING, &f->pos,
                    "cannot open the model %s: no such file or "
                    "folder",
                    path);
        return VP_ERR_INPUT;
    }
    vp_diag_add(diags, VP_D_MODEL_NOT_FOUND, &f->pos,
                is_hub_id(text)
                    ? "no model %.200s: neither a path, a built-in model nor in the local cache"
                    : "no model %.200s: neither a path nor a built-in model",
                text);
    const char *near = vp_profile_suggest(f->ctx, &VP_PROFILE_MODEL, text);
    if (is_hub_id(text))
        vp_diag_hint(diags, "download its description: hf download %s config.json", text);
    else
        vp_diag_hint(diags, "%s%s`vramplan list models` shows the built-in ones", near ? near : "",
                     near ? " " : "");
    return VP_ERR_INPUT;
}

static enum vp_status find_text(struct finding *f, const char *text, const char *base) {
    struct vp_ctx *ctx = f->ctx;
    struct vp_profile profile = {0};
    const char *path = vp_io_join(ctx, base, vp_document_expand(ctx, text));
    enum vp_file_kind kind = vp_io_kind(ctx, path);
    /* A folder that happens to be called like a built-in model holds no description. */
    bool stray = kind == VP_FILE_DIRECTORY && !is_path_like(text) &&
                 !is_file(f, vp_io_join(ctx, path, "config.json"));
    enum vp_status status = VP_OK;
    if (kind != VP_FILE_NONE && !stray)
        return find_path(f, path, kind);
    if (!is_path_like(text))
        status = vp_profile_find(ctx, &profile, &VP_PROFILE_MODEL, text);
    if (status != VP_OK)
        return status;
    if (profile.root)
        return find_profile_root(f, profile.root, profile.id, profile.path);
    if (is_hub_id(text) && ctx->hub_cache)
        status = find_cached(f, text);
    if (status != VP_OK || f->out->config)
        return status;
    return stray ? find_path(f, path, kind) : not_found(f, text, path);
}

static enum vp_status find_node(struct finding *f, const struct vp_node *node, const char *base) {
    if (node->kind == VP_NODE_MAP)
        return find_map(f, node, base);
    if (!vp_node_is_scalar(node) || node->kind == VP_NODE_NULL || !*node->text) {
        vp_diag_add(f->ctx->diags, VP_D_BAD_VALUE, &node->pos,
                    "model must be a name, a path or a map of config.json keys, not %s",
                    vp_node_kind_name(node->kind));
        return VP_ERR_INPUT;
    }
    f->pos = node->pos;
    return find_text(f, node->text, base);
}

/* ---- the whole ---- */

struct wanted {
    const struct vp_node *node;
    const char *base;
};

static enum vp_status find(struct vp_ctx *ctx, struct vp_description *out,
                           const struct vp_node *node, const char *base) {
    struct finding f = {.ctx = ctx, .out = out, .pos = node->pos};
    uint32_t errors = ctx->diags->errors;
    *out = (struct vp_description){0};
    enum vp_status status = find_node(&f, node, base);
    if (status == VP_OK && ctx->diags->errors > errors)
        status = VP_ERR_ENV; /* a path whose kind could not be told was passed over */
    if (status == VP_OK && !out->source)
        out->source = out->config->pos.file;
    return status;
}

static enum vp_status make(struct vp_ctx *ctx, const void **out, const void *from) {
    const struct wanted *wanted = from;
    struct vp_description *found = VP_NEW(ctx->arena, struct vp_description);
    *out = found;
    return find(ctx, found, vp_node_clone(ctx, wanted->node), wanted->base);
}

const char *vp_description_key(struct vp_ctx *ctx, const char *what, const struct vp_node *node,
                               const char *base) {
    const char *text = vp_document_show(ctx, node);
    if (strcmp(text, "{...}") == 0 || strcmp(text, "[...]") == 0)
        return NULL;
    return vp_arena_printf(ctx->arena, "%s %s %s:%" PRIu32 ":%" PRIu32 " %d %s", what,
                           base ? base : "", node->pos.file ? node->pos.file : "", node->pos.line,
                           node->pos.column, (int)node->kind, text);
}

enum vp_status vp_description_find(struct vp_ctx *ctx, struct vp_description *out,
                                   const struct vp_node *node, const char *base) {
    struct wanted wanted = {node, base};
    const void *found;
    const char *key = ctx->memo ? vp_description_key(ctx, "description", node, base) : NULL;
    if (!key)
        return find(ctx, out, node, base);
    enum vp_status status = vp_memo_get(ctx, &found, key, make, &wanted);
    *out = *(const struct vp_description *)found;
    return status;
}
