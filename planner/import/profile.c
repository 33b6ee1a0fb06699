#include "planner/import/profile.h"

#include <string.h>

#include "planner/base/memo.h"
#include "planner/base/text.h"
#include "planner/doc/yaml.h"

const struct vp_profile_kind VP_PROFILE_GPU = {"gpus", "vramplan_gpu", "GPU"};
const struct vp_profile_kind VP_PROFILE_MODEL = {"models", "vramplan_model", "model"};

enum { MAX_BYTES = 4 * 1024 * 1024 };

static const char SUFFIX[] = ".yaml";

static bool is_alnum(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

/* The file name that an id has: lower case, everything but letters, digits and dots as a dash.
 * NULL where that could leave the folder or name a hidden file. */
static const char *slug_of(struct vp_ctx *ctx, const char *name) {
    size_t n = strlen(name);
    if (n == 0 || n > 200 || name[0] == '.')
        return NULL;
    char *slug = vp_arena_text(ctx->arena, name, n);
    for (size_t i = 0; i < n; i++)
        slug[i] = is_alnum(slug[i]) || slug[i] == '.' ? lower(slug[i]) : '-';
    return slug;
}

static bool answers_to(const struct vp_node *root, const char *id, const char *name) {
    const struct vp_node *aliases = vp_node_get(root, "aliases");
    if (vp_name_eq(id, name))
        return true;
    if (!aliases || aliases->kind != VP_NODE_LIST)
        return false;
    for (uint32_t i = 0; i < aliases->count; i++)
        if (vp_node_is_scalar(aliases->items[i]) && vp_name_eq(aliases->items[i]->text, name))
            return true;
    return false;
}

static enum vp_status broken(struct vp_ctx *ctx, const struct vp_profile_kind *kind,
                             const char *path, const char *why) {
    struct vp_pos pos = {.file = path};
    vp_diag_add(ctx->diags, VP_D_PROFILE_BROKEN, &pos, "the %s profile %s cannot be used: %s",
                kind->what, path, why);
    return VP_ERR_INPUT;
}

static enum vp_status parse(struct vp_ctx *ctx, struct vp_profile *out,
                            const struct vp_profile_kind *kind, const char *path,
                            struct vp_bytes text) {
    struct vp_node *root;
    uint64_t version;
    enum vp_status status = vp_yaml_read(ctx, &root, text, path);
    if (status == VP_ERR_ENV)
        return status;
    if (status != VP_OK)
        return broken(ctx, kind, path, "it is not well-formed");
    if (root->kind != VP_NODE_MAP)
        return broken(ctx, kind, path, "it is not a map");
    if (!vp_node_u64(&version, vp_node_get(root, kind->version_key)) || version != 1)
        return broken(ctx, kind, path,
                      vp_arena_printf(ctx->arena, "%s: 1 is missing", kind->version_key));
    const char *id = vp_node_text(vp_node_get(root, "id"));
    const char *file = vp_text_file_name(path);
    size_t n = strlen(file) - (sizeof SUFFIX - 1);
    if (!id || strlen(id) != n || memcmp(id, file, n) != 0)
        return broken(ctx, kind, path, "its id is not the name of the file");
    *out = (struct vp_profile){id, path, root};
    return VP_OK;
}

static enum vp_status read_file(struct vp_ctx *ctx, struct vp_profile *out,
                                const struct vp_profile_kind *kind, const char *path) {
    struct vp_bytes text;
    enum vp_status status = vp_io_read(ctx, &text, path, MAX_BYTES);
    return status == VP_OK ? parse(ctx, out, kind, path, text) : status;
}

static bool is_left_out(char c) {
    switch (c) {
    case ' ':
    case '-':
    case '_':
    case '"':
    case '\'':
    case '\r':
    case '\n':
        return true;
    default:
        return false;
    }
}

/* Whether an alias of that name could stand in the file. Quotes and line breaks are left out like
 * separators: a long alias may be folded. Parsing every file would take ten times as long. */
static bool may_name(struct vp_ctx *ctx, struct vp_bytes text, const char *reduced) {
    char *out = vp_arena_alloc(ctx->arena, text.size + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.size; i++)
        if (!is_left_out(text.data[i]))
            out[n++] = lower(text.data[i] ? text.data[i] : '?');
    return strstr(out, reduced) != NULL;
}

static enum vp_status scan(struct vp_ctx *ctx, struct vp_profile *out,
                           const struct vp_profile_kind *kind, const char *folder,
                           const char *name) {
    char **files;
    size_t count;
    const char *reduced = vp_name_reduce(ctx->arena, name);
    enum vp_status status = vp_io_list(ctx, &files, &count, folder);
    for (size_t i = 0; i < count && status == VP_OK; i++) {
        struct vp_bytes text;
        struct vp_profile found;
        if (!vp_text_ends(files[i], SUFFIX))
            continue;
        const char *path = vp_io_join(ctx, folder, files[i]);
        status = vp_io_read(ctx, &text, path, MAX_BYTES);
        if (status != VP_OK || !may_name(ctx, text, reduced))
            continue;
        status = parse(ctx, &found, kind, path, text);
        if (status == VP_OK && answers_to(found.root, found.id, name)) {
            *out = found;
            break;
        }
    }
    return status;
}

/* The folders in the order they are looked at; those that do not exist are left out. */
static size_t folders_of(struct vp_ctx *ctx, const char *out[2],
                         const struct vp_profile_kind *kind) {
    const char *roots[] = {ctx->user_profiles, ctx->profiles};
    size_t n = 0;
    for (size_t i = 0; i < 2; i++) {
        const char *path = roots[i] ? vp_io_join(ctx, roots[i], kind->folder) : NULL;
        if (path && vp_io_kind(ctx, path) == VP_FILE_DIRECTORY)
            out[n++] = path;
    }
    return n;
}

static enum vp_status no_profiles(struct vp_ctx *ctx, const struct vp_profile_kind *kind) {
    vp_diag_add(ctx->diags, VP_D_NO_PROFILES, NULL,
                "the folder of the shipped %s profiles was not found", kind->what);
    vp_diag_hint(ctx->diags, "set VRAMPLAN_PROFILES to the folder that holds gpus/, models/ and "
                             "engines/");
    return VP_ERR_ENV;
}

static enum vp_status find(struct vp_ctx *ctx, struct vp_profile *out,
                           const struct vp_profile_kind *kind, const char *name) {
    const char *folder[2];
    uint32_t errors = ctx->diags->errors;
    size_t count = folders_of(ctx, folder, kind);
    *out = (struct vp_profile){0};
    if (count == 0)
        return no_profiles(ctx, kind);
    const char *slug = slug_of(ctx, name);
    if (!slug || !*vp_name_reduce(ctx->arena, name))
        return VP_OK;
    const char *file = vp_arena_printf(ctx->arena, "%s%s", slug, SUFFIX);
    enum vp_status status = VP_OK;
    for (size_t i = 0; i < count && status == VP_OK && !out->root; i++) {
        const char *path = vp_io_join(ctx, folder[i], file);
        if (vp_io_kind(ctx, path) == VP_FILE_REGULAR)
            status = read_file(ctx, out, kind, path);
        else
            status = scan(ctx, out, kind, folder[i], name);
    }
    /* A folder or file whose kind could not be told was told as a fault, and passed over. */
    return status == VP_OK && ctx->diags->errors > errors ? VP_ERR_ENV : status;
}

struct wanted {
    const struct vp_profile_kind *kind;
    const char *name;
};

static enum vp_status make(struct vp_ctx *ctx, const void **out, const void *from) {
    const struct wanted *wanted = from;
    struct vp_profile *profile = VP_NEW(ctx->arena, struct vp_profile);
    *out = profile;
    return find(ctx, profile, wanted->kind, wanted->name);
}

enum vp_status vp_profile_find(struct vp_ctx *ctx, struct vp_profile *out,
                               const struct vp_profile_kind *kind, const char *name) {
    struct wanted wanted = {kind, name};
    const void *found;
    if (!ctx->memo)
        return find(ctx, out, kind, name);
    enum vp_status status =
        vp_memo_get(ctx, &found, vp_arena_printf(ctx->arena, "profile %s %s", kind->folder, name),
                    make, &wanted);
    *out = *(const struct vp_profile *)found;
    return status;
}

/* Two sorted lists into one without doubles. */
static void merge_names(struct vp_ctx *ctx, char ***names, size_t *count, char **more, size_t n) {
    char **all = VP_NEW_ARRAY(ctx->arena, *count + n, char *);
    size_t a = 0, b = 0, out = 0;
    while (a < *count || b < n) {
        int c = a == *count ? 1 : b == n ? -1 : strcmp((*names)[a], more[b]);
        all[out++] = c <= 0 ? (*names)[a] : more[b];
        a += c <= 0;
        b += c >= 0;
    }
    *names = all;
    *count = out;
}

/* Files are sorted with their suffix, which puts "a-b.yaml" before "a.yaml". */
static void sort_names(char **names, size_t count) {
    for (size_t i = 1; i < count; i++) { /* nearly sorted already */
        char *name = names[i];
        size_t j = i;
        for (; j > 0 && strcmp(names[j - 1], name) > 0; j--)
            names[j] = names[j - 1];
        names[j] = name;
    }
}

enum vp_status vp_profile_names(struct vp_ctx *ctx, char ***names, size_t *count,
                                const struct vp_profile_kind *kind) {
    const char *folder[2];
    size_t folders = folders_of(ctx, folder, kind);
    *names = NULL;
    *count = 0;
    if (folders == 0)
        return no_profiles(ctx, kind);
    for (size_t i = 0; i < folders; i++) {
        char **files;
        size_t n, kept = 0;
        enum vp_status status = vp_io_list(ctx, &files, &n, folder[i]);
        if (status != VP_OK)
            return status;
        for (size_t f = 0; f < n; f++)
            if (vp_text_ends(files[f], SUFFIX))
                files[kept++] =
                    vp_arena_text(ctx->arena, files[f], strlen(files[f]) - (sizeof SUFFIX - 1));
        sort_names(files, kept);
        merge_names(ctx, names, count, files, kept);
    }
    return VP_OK;
}

const char *vp_profile_suggest(struct vp_ctx *ctx, const struct vp_profile_kind *kind,
                               const char *name) {
    enum { SHOWN = 6 };
    char **names;
    size_t count, shown = 0;
    struct vp_buf buf = {.arena = ctx->arena};
    if (vp_profile_names(ctx, &names, &count, kind) != VP_OK)
        return NULL;
    const char *nearest = vp_text_nearest(name, (const char *const *)names, count);
    /* "mi300" stands for several cards, and "rtx4080super" begins with the name of one. */
    const char *word = vp_name_reduce(ctx->arena, name);
    for (size_t i = 0; i < count && shown < SHOWN && strlen(word) >= 3; i++) {
        const char *id = vp_name_reduce(ctx->arena, names[i]);
        if (strstr(id, word) || (strlen(id) >= 3 && strstr(word, id)))
            vp_buf_printf(&buf, "%s%s", shown++ ? ", " : "", names[i]);
    }
    if (shown > 1)
        return vp_arena_printf(ctx->arena, "did you mean one of %s?", vp_buf_text(&buf));
    if (shown == 1)
        nearest = vp_buf_text(&buf);
    return nearest ? vp_arena_printf(ctx->arena, "did you mean %s?", nearest) : NULL;
}
