#include "cli/git_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/git_run.h"
#include "planner/base/text.h"
#include "planner/base/units.h"

enum {
    FIRST_FD = 1 << 20, /* descriptors of blobs: above any that the system gives */
    MOST_OPEN = 16,
    MOST_LINKS = 8, /* symbolic links that lead to each other */
    ID_LENGTH = 64  /* SHA-256 */
};
static const uint64_t MOST_BYTES = UINT64_C(1) << 30;

/* A path that differs between the commit and the working tree. */
struct entry {
    const char *path;       /* from the top */
    const char *id;         /* of the commit's blob; NULL: the commit does not have the path */
    const char *renamed_to; /* NULL: not renamed */
    const char *renamed_from;
    bool link, other; /* symbolic link; a submodule */
    const char *data; /* once read */
    uint64_t size;
};

struct open_blob {
    const struct entry *entry; /* NULL: free */
    uint64_t at;
};

struct tree {
    struct vp_ctx *ctx; /* of the opening, for trouble */
    struct vp_arena arena;
    const char *top, *here; /* absolute, without a slash at the end */
    const char *commit;
    struct entry
        *entries; /* by path; one path may stand twice: gone, and made anew by a renaming */
    size_t count, capacity;
    struct vp_git_child blobs;
    struct open_blob open[MOST_OPEN];
};

static struct tree *tree; /* see git_tree.h */

/* ---- paths ---- */

/* Absolute, without ".", "..", doubled slashes; links are not followed. */
static char *absolute(struct vp_arena *arena, const char *path) {
    char *all = path[0] == '/' ? vp_arena_text(arena, path, strlen(path))
                               : vp_arena_printf(arena, "%s/%s", tree->here, path);
    size_t n = 0;
    for (const char *p = all; *p;) {
        size_t length = strcspn(p, "/");
        if (length == 2 && p[0] == '.' && p[1] == '.') {
            while (n > 0 && all[--n] != '/')
                ;
        } else if (length > 0 && !(length == 1 && p[0] == '.')) {
            char *to = &all[n + 1];
            memmove(to, p, length);
            all[n] = '/';
            n += length + 1;
            p = p + length;
            while (*p == '/')
                p++;
            continue;
        }
        p += length;
        while (*p == '/')
            p++;
    }
    all[n] = '\0';
    return all;
}

/* The path from the top, "" the top itself; NULL: outside of the repository. */
static const char *inside(struct vp_arena *arena, const char *path) {
    const char *all = absolute(arena, path);
    size_t n = strlen(tree->top);
    if (strncmp(all, tree->top, n) != 0 || (all[n] != '/' && all[n] != '\0'))
        return NULL;
    return all[n] ? all + n + 1 : all + n;
}

/* The other way round: from the current directory where that lies above it. */
static const char *shown(struct vp_arena *arena, const char *path) {
    const char *all = vp_arena_printf(arena, "%s/%s", tree->top, path);
    size_t n = strlen(tree->here);
    return strncmp(all, tree->here, n) == 0 && all[n] == '/' ? all + n + 1 : all;
}

/* ---- what differs ---- */

static int by_path(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    return order ? order : (y->id != NULL) - (x->id != NULL); /* what the commit has comes first */
}

static int by_path_only(const void *a, const void *b) {
    return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

/* The commit's entry of a path, or the one that says that it has none; NULL: nothing differs. */
static struct entry *find(const char *path) {
    struct entry key = {.path = path};
    struct entry *e =
        tree->count ? bsearch(&key, tree->entries, tree->count, sizeof key, by_path_only) : NULL;
    while (e && e > tree->entries && strcmp(e[-1].path, path) == 0)
        e--;
    return e;
}

static void add(struct entry entry) {
    if (tree->count == tree->capacity) {
        tree->capacity = tree->capacity ? 2 * tree->capacity : 64;
        struct entry *all = VP_NEW_ARRAY(&tree->arena, tree->capacity, struct entry);
        if (tree->count)
            memcpy(all, tree->entries, tree->count * sizeof *all);
        tree->entries = all;
    }
    tree->entries[tree->count++] = entry;
}

/* The next field of a record, up to a NUL. */
static const char *field(const char **at, const char *end) {
    const char *p = *at;
    if (p >= end)
        return "";
    *at = p + strlen(p) + 1;
    return vp_arena_text(&tree->arena, p, strlen(p));
}

/* ":100644 100644 1f3c... 9d0e... M" and its paths: mode and blob before, then those of the working
 * tree, the kind of change. */
static bool take_record(const char **at, const char *end) {
    char before[8], after[8], id[ID_LENGTH + 1], other[ID_LENGTH + 1], kind;
    const char *head = field(at, end);
    if (sscanf(head, ":%7s %7s %64s %64s %c", before, after, id, other, &kind) != 5)
        return false;
    struct entry e = {.path = field(at, end),
                      .id = vp_arena_text(&tree->arena, id, strlen(id)),
                      .link = strcmp(before, "120000") == 0,
                      .other = strcmp(before, "160000") == 0};
    if (kind == 'A')
        e.id = NULL;
    if (kind == 'R') {
        e.renamed_to = field(at, end);
        add((struct entry){.path = e.renamed_to, .renamed_from = e.path});
    } else if (kind == 'C') {
        e = (struct entry){.path = field(at, end)};
    }
    add(e);
    return *e.path;
}

static enum vp_status git_says(struct vp_ctx *ctx, const char *what,
                               const struct vp_git_answer *answer) {
    vp_diag_add(ctx->diags, VP_D_GIT_FAILED, NULL, "git %s failed with %d%s%s", what, answer->code,
                *answer->error ? ": " : "", answer->error);
    return VP_ERR_ENV;
}

static enum vp_status read_changes(struct vp_ctx *ctx) {
    const char *const words[] = {"diff",
                                 "--raw",
                                 "-z",
                                 "-M",
                                 "--no-abbrev",
                                 "--no-ext-diff",
                                 "--ignore-submodules=all",
                                 tree->commit,
                                 "--",
                                 NULL};
    struct vp_git_answer answer;
    enum vp_status status = vp_git_run(ctx, &answer, tree->top, words);
    if (status != VP_OK)
        return status;
    if (answer.code != 0)
        return git_says(ctx, "diff", &answer);
    const char *at = vp_buf_text(&answer.out), *end = at + answer.out.size;
    while (at < end)
        if (!take_record(&at, end)) {
            vp_diag_add(ctx->diags, VP_D_GIT_FAILED, NULL, "what git diff printed is not known");
            return VP_ERR_ENV;
        }
    if (tree->count)
        qsort(tree->entries, tree->count, sizeof *tree->entries, by_path);
    return VP_OK;
}

/* ---- blobs ---- */

static bool send_text(int fd, const char *text) {
    for (size_t n = strlen(text); n > 0;) {
        ssize_t sent = write(fd, text, n);
        if (sent < 0 && errno != EINTR)
            return false;
        text += sent > 0 ? sent : 0;
        n -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

static bool receive(int fd, char *to, uint64_t n) {
    while (n > 0) {
        ssize_t got = read(fd, to, n);
        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        to += got > 0 ? got : 0;
        n -= got > 0 ? (uint64_t)got : 0;
    }
    return true;
}

/* The size in "1f3c... blob 123". */
static bool receive_size(int fd, uint64_t *size) {
    char line[128] = "";
    size_t n = 0;
    while (n < sizeof line - 1 && receive(fd, &line[n], 1) && line[n] != '\n')
        n++;
    line[n] = '\0';
    const char *last = strrchr(line, ' ');
    return last && strstr(line, " blob ") && vp_parse_u64(size, last + 1) && *size < MOST_BYTES;
}

static bool ask_for(struct entry *e) {
    char order[ID_LENGTH + 2], newline;
    snprintf(order, sizeof order, "%s\n", e->id);
    if (!send_text(tree->blobs.to, order) || !receive_size(tree->blobs.from, &e->size))
        return false;
    char *data = vp_arena_alloc(&tree->arena, (size_t)e->size + 1);
    if (!receive(tree->blobs.from, data, e->size) || !receive(tree->blobs.from, &newline, 1))
        return false;
    e->data = data;
    return true;
}

/* Not there, too large or git gone: EIO, which is told as trouble of the environment. What is left
 * of an answer is not taken for the next one: another git is started then. */
static bool load(struct entry *e) {
    static const char *const words[] = {"cat-file", "--batch", NULL};
    if (e->data)
        return true;
    if (tree->blobs.pid == 0 && vp_git_start(tree->ctx, &tree->blobs, tree->top, words) != VP_OK)
        return false;
    if (ask_for(e))
        return true;
    vp_git_end(&tree->blobs);
    return false;
}

/* ---- the table of calls ---- */

enum where { WHERE_DISK, WHERE_NOWHERE, WHERE_FOLDER, WHERE_BLOB, WHERE_FAILED };

/* Whether the commit had files below a path. */
static bool had_folder(const char *path) {
    size_t n = strlen(path);
    for (size_t i = 0; i < tree->count; i++) {
        const struct entry *e = &tree->entries[i];
        if (e->id && strncmp(e->path, path, n) == 0 && e->path[n] == '/')
            return true;
    }
    return false;
}

/* Where the commit's version of a path is to be read. */
static enum where locate(struct entry **out, const char *path) {
    struct vp_arena *arena = &tree->arena;
    const char *at = strcmp(path, "-") == 0 ? NULL : inside(arena, path);
    for (int links = 0; at && links < MOST_LINKS; links++) {
        struct entry *e = find(at);
        if (!e)
            return had_folder(at) ? WHERE_FOLDER : WHERE_DISK;
        if (!e->id || e->other)
            return had_folder(at) ? WHERE_FOLDER : WHERE_NOWHERE;
        *out = e;
        if (!load(e))
            return WHERE_FAILED;
        if (!e->link)
            return WHERE_BLOB;
        const char *slash = strrchr(e->path, '/');
        at = inside(arena, e->data[0] == '/'
                               ? e->data
                               : vp_arena_printf(arena, "%s/%.*s%s", tree->top,
                                                 slash ? (int)(slash + 1 - e->path) : 0, e->path,
                                                 e->data));
    }
    return at ? WHERE_NOWHERE : WHERE_DISK;
}

static int fail(int error) {
    errno = error;
    return -1;
}

static int git_open(const char *path) {
    struct entry *e;
    switch (locate(&e, path)) {
    case WHERE_DISK:
        return vp_io_posix.open(path);
    case WHERE_NOWHERE:
        return fail(ENOENT);
    case WHERE_FOLDER:
        return fail(EISDIR);
    case WHERE_FAILED:
        return fail(EIO);
    case WHERE_BLOB:
        break;
    }
    for (int i = 0; i < MOST_OPEN; i++)
        if (!tree->open[i].entry) {
            tree->open[i] = (struct open_blob){e, 0};
            return FIRST_FD + i;
        }
    return fail(EMFILE);
}

static long git_read(int fd, void *buffer, size_t n) {
    if (fd < FIRST_FD)
        return vp_io_posix.read(fd, buffer, n);
    struct open_blob *blob = &tree->open[fd - FIRST_FD];
    uint64_t left = blob->entry->size - blob->at;
    n = n < left ? n : (size_t)left;
    memcpy(buffer, blob->entry->data + blob->at, n);
    blob->at += n;
    return (long)n;
}

static int git_close(int fd) {
    if (fd < FIRST_FD)
        return vp_io_posix.close(fd);
    tree->open[fd - FIRST_FD] = (struct open_blob){0};
    return 0;
}

static int git_stat(const char *path, enum vp_file_kind *kind, uint64_t *size_bytes) {
    struct entry *e;
    *size_bytes = 0;
    switch (locate(&e, path)) {
    case WHERE_DISK:
        return vp_io_posix.stat(path, kind, size_bytes);
    case WHERE_NOWHERE:
        return fail(ENOENT);
    case WHERE_FAILED:
        return fail(EIO);
    case WHERE_FOLDER:
        *kind = VP_FILE_DIRECTORY;
        return 0;
    case WHERE_BLOB:
        break;
    }
    *kind = VP_FILE_REGULAR;
    *size_bytes = e->size;
    return 0;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_among(char *const *names, size_t count, const char *name, size_t n) {
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0)
            return true;
    return false;
}

/* What lies on the disk, less what the commit does not have, with what only the commit has. */
static int git_list(struct vp_ctx *ctx, const char *path, char ***names, size_t *count) {
    const char *at = inside(&tree->arena, path);
    int code = vp_io_posix.list(ctx, path, names, count);
    if (!at || (code != 0 && !had_folder(at)))
        return code;
    size_t n = strlen(at), on_disk = code == 0 ? *count : 0;
    char **all = VP_NEW_ARRAY(ctx->arena, on_disk + tree->count, char *);
    *count = 0;
    for (size_t i = 0; i < on_disk; i++) {
        const char *below = n ? vp_arena_printf(ctx->arena, "%s/%s", at, (*names)[i]) : (*names)[i];
        const struct entry *e = find(below);
        if (!e || e->id)
            all[(*count)++] = (*names)[i];
    }
    for (size_t i = 0; i < tree->count; i++) {
        const struct entry *e = &tree->entries[i];
        if (!e->id || (n && (strncmp(e->path, at, n) != 0 || e->path[n] != '/')))
            continue;
        const char *name = e->path + n + (n > 0);
        size_t length = strcspn(name, "/");
        if (!is_among(all, *count, name, length))
            all[(*count)++] = vp_arena_text(ctx->arena, name, length);
    }
    *names = all;
    if (*count)
        qsort(all, *count, sizeof *all, by_name);
    return 0;
}

const struct vp_io vp_git_tree_io = {git_open, git_read, git_close, git_stat, git_list};

/* ---- the tree ---- */

enum vp_status vp_git_tree_open(struct vp_ctx *ctx, const char *top, const char *commit) {
    char *here = getcwd(NULL, 0);
    if (!here) {
        vp_diag_add(ctx->diags, VP_D_IO, NULL, "the current directory is not known: %s",
                    strerror(errno));
        return VP_ERR_ENV;
    }
    struct tree *new = calloc(1, sizeof *new);
    if (!new) {
        free(here);
        vp_diag_add(ctx->diags, VP_D_NO_MEMORY, NULL, "the system has no memory left");
        return VP_ERR_ENV;
    }
    tree = new;
    tree->ctx = ctx;
    tree->arena.oom = ctx->arena->oom;
    tree->here = vp_arena_text(&tree->arena, here, strlen(here));
    tree->top = vp_arena_text(&tree->arena, top, strlen(top));
    tree->commit = vp_arena_text(&tree->arena, commit, strlen(commit));
    free(here);
    enum vp_status status = read_changes(ctx);
    if (status != VP_OK)
        vp_git_tree_close();
    return status;
}

void vp_git_tree_close(void) {
    if (!tree)
        return;
    vp_git_end(&tree->blobs);
    vp_arena_free(&tree->arena);
    free(tree);
    tree = NULL;
}

/* A path that does not differ is in the commit when git knows it there. */
static bool is_in_commit(struct vp_ctx *ctx, const char *path) {
    const char *const words[] = {"ls-tree",    "-z", "--full-tree", "--name-only",
                                 tree->commit, "--", path,          NULL};
    struct vp_git_answer answer;
    return vp_git_run(ctx, &answer, tree->top, words) == VP_OK && answer.code == 0 &&
           answer.out.size > 0;
}

const char *vp_git_tree_before(struct vp_ctx *ctx, const char *path, bool *outside) {
    const char *at = inside(&tree->arena, path);
    *outside = !at;
    if (!at)
        return NULL;
    const struct entry *e = find(at);
    if (e && e->id && !e->other)
        return path;
    if (e)
        return e->renamed_from ? shown(&tree->arena, e->renamed_from) : NULL;
    return is_in_commit(ctx, at) ? path : NULL;
}
