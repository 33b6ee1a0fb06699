#include "planner/base/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "planner/base/ctx.h"
#include "planner/base/sum.h"

/* ---- the table for a POSIX system ---- */

static int posix_open(const char *path) {
    if (strcmp(path, "-") == 0)
        return dup(STDIN_FILENO);
    return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

static long posix_read(int fd, void *buffer, size_t n) { return read(fd, buffer, n); }

static int posix_stat(const char *path, enum vp_file_kind *kind, uint64_t *size_bytes) {
    struct stat st;
    if ((strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &st) : stat(path, &st)) != 0)
        return -1;
    *kind = S_ISREG(st.st_mode)   ? VP_FILE_REGULAR
            : S_ISDIR(st.st_mode) ? VP_FILE_DIRECTORY
                                  : VP_FILE_OTHER;
    *size_bytes = S_ISREG(st.st_mode) && st.st_size > 0 ? (uint64_t)st.st_size : 0;
    return 0;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void read_names(struct vp_ctx *ctx, DIR *dir, char ***names, size_t *count) {
    struct dirent *entry;
    size_t capacity = 0;
    while ((errno = 0, entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (*count == capacity) {
            capacity = capacity ? capacity * 2 : 16;
            char **more = VP_NEW_ARRAY(ctx->arena, capacity, char *);
            if (*count)
                memcpy(more, *names, *count * sizeof *more);
            *names = more;
        }
        (*names)[(*count)++] = vp_arena_text(ctx->arena, entry->d_name, strlen(entry->d_name));
    }
}

/* The arena leaves by longjmp when there is no memory: the folder must be closed before. */
static int read_names_guarded(struct vp_ctx *ctx, DIR *dir, char ***names, size_t *count) {
    jmp_buf guard;
    jmp_buf *outer = ctx->arena->oom;
    if (setjmp(guard)) {
        ctx->arena->oom = outer;
        closedir(dir);
        vp_arena_array(ctx->arena, SIZE_MAX, 2); /* no memory: goes on to the owner's jump */
    }
    ctx->arena->oom = &guard;
    read_names(ctx, dir, names, count);
    ctx->arena->oom = outer;
    return errno;
}

static int posix_list(struct vp_ctx *ctx, const char *path, char ***names, size_t *count) {
    *names = NULL;
    *count = 0;
    DIR *dir = opendir(path);
    if (!dir)
        return -1;
    int error = read_names_guarded(ctx, dir, names, count);
    closedir(dir);
    errno = error;
    if (error)
        return -1;
    if (*count)
        qsort(*names, *count, sizeof **names, by_name);
    return 0;
}

const struct vp_io vp_io_posix = {posix_open, posix_read, close, posix_stat, posix_list};

/* ---- reading through a table ---- */

static const char *shown(const char *path) {
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

/* A name that leads nowhere is the user's mistake, everything else the environment's. */
static bool is_users_mistake(int error) {
    return error == ENOENT || error == ENOTDIR || error == EISDIR || error == EACCES ||
           error == EPERM || error == ELOOP || error == ENAMETOOLONG || error == ENXIO;
}

static enum vp_status report_open(struct vp_ctx *ctx, const char *path, int error) {
    struct vp_pos pos = {.file = path};
    bool users = is_users_mistake(error);
    vp_diag_add(ctx->diags, users ? VP_D_FILE_MISSING : VP_D_IO, &pos, "cannot open %s: %s",
                shown(path), strerror(error));
    return users ? VP_ERR_INPUT : VP_ERR_ENV;
}

static enum vp_status report_read(struct vp_ctx *ctx, const char *path, int error) {
    struct vp_pos pos = {.file = path};
    vp_diag_add(ctx->diags, VP_D_IO, &pos, "reading %s failed: %s", shown(path), strerror(error));
    return VP_ERR_ENV;
}

enum vp_status vp_io_open(struct vp_ctx *ctx, int *fd, uint64_t *size_bytes, const char *path) {
    enum vp_file_kind kind = VP_FILE_NONE;
    *size_bytes = 0;
    if (ctx->io->stat(path, &kind, size_bytes) != 0)
        return report_open(ctx, path, errno);
    if (kind == VP_FILE_DIRECTORY)
        return report_open(ctx, path, EISDIR);
    *fd = ctx->io->open(path);
    return *fd < 0 ? report_open(ctx, path, errno) : VP_OK;
}

/* Fills the buffer as far as the file goes; -1 and errno when a read fails. */
static long read_up_to(const struct vp_io *io, int fd, char *buffer, size_t n) {
    size_t used = 0;
    while (used < n) {
        long got = io->read(fd, buffer + used, n - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        used += (size_t)got;
    }
    return (long)used;
}

static enum vp_status report_too_large(struct vp_ctx *ctx, const char *path, uint64_t cap_bytes) {
    struct vp_pos pos = {.file = path};
    vp_diag_add(ctx->diags, VP_D_FILE_TOO_LARGE, &pos,
                "%s is larger than the cap of %" PRIu64 " bytes", shown(path), cap_bytes);
    return VP_ERR_INPUT;
}

/* Reads to the end. The length told by the system is a first guess: pipes and /proc have none, and
 * a file may grow. */
static enum vp_status read_all(struct vp_ctx *ctx, struct vp_bytes *out, int fd, uint64_t guess,
                               const char *path, uint64_t cap_bytes) {
    enum { FIRST_GUESS = 64 * 1024 };
    size_t capacity = (size_t)vp_min(guess ? guess + 1 : FIRST_GUESS, cap_bytes + 1);
    char *data = vp_arena_alloc(ctx->arena, capacity + 1);
    size_t size = 0;
    for (;;) {
        long got = read_up_to(ctx->io, fd, data + size, capacity - size);
        if (got < 0)
            return report_read(ctx, path, errno);
        size += (size_t)got;
        if (size > cap_bytes)
            return report_too_large(ctx, path, cap_bytes);
        if (size < capacity)
            break;
        capacity = (size_t)vp_min(capacity * 2, cap_bytes + 1);
        char *more = vp_arena_alloc(ctx->arena, capacity + 1);
        memcpy(more, data, size);
        data = more;
    }
    data[size] = '\0';
    *out = (struct vp_bytes){data, size};
    return VP_OK;
}

enum vp_status vp_io_read(struct vp_ctx *ctx, struct vp_bytes *out, const char *path,
                          uint64_t cap_bytes) {
    int fd;
    uint64_t size;
    *out = (struct vp_bytes){"", 0};
    if (cap_bytes >= SIZE_MAX / 4)
        cap_bytes = SIZE_MAX / 4; /* the doubling below cannot overflow */
    enum vp_status status = vp_io_open(ctx, &fd, &size, path);
    if (status != VP_OK)
        return status;
    if (size > cap_bytes)
        status = report_too_large(ctx, path, cap_bytes);
    else
        status = read_all(ctx, out, fd, size, path, cap_bytes);
    ctx->io->close(fd); /* a failing close of a file that was only read loses nothing */
    return status;
}

enum vp_status vp_io_read_head(struct vp_ctx *ctx, struct vp_bytes *out, uint64_t *file_size_bytes,
                               const char *path, size_t n) {
    int fd;
    *out = (struct vp_bytes){"", 0};
    enum vp_status status = vp_io_open(ctx, &fd, file_size_bytes, path);
    if (status != VP_OK)
        return status;
    if (n > *file_size_bytes)
        n = (size_t)*file_size_bytes;
    char *data = vp_arena_alloc(ctx->arena, n + 1);
    long got = read_up_to(ctx->io, fd, data, n);
    if (got < 0) {
        status = report_read(ctx, path, errno);
    } else {
        data[got] = '\0';
        *out = (struct vp_bytes){data, (size_t)got};
    }
    ctx->io->close(fd);
    return status;
}

enum vp_file_kind vp_io_kind(struct vp_ctx *ctx, const char *path) {
    enum vp_file_kind kind = VP_FILE_NONE;
    uint64_t size;
    if (ctx->io->stat(path, &kind, &size) == 0)
        return kind;
    if (!is_users_mistake(errno)) /* "there is none" must not hide that the disk failed */
        report_open(ctx, path, errno);
    return VP_FILE_NONE;
}

enum vp_status vp_io_list(struct vp_ctx *ctx, char ***names, size_t *count, const char *path) {
    if (ctx->io->list(ctx, path, names, count) == 0)
        return VP_OK;
    int error = errno;
    *names = NULL;
    *count = 0;
    return report_open(ctx, path, error);
}

const char *vp_io_join(struct vp_ctx *ctx, const char *dir, const char *name) {
    if (name[0] == '/' || !dir || !dir[0])
        return name;
    size_t n = strlen(dir);
    return vp_arena_printf(ctx->arena, "%s%s%s", dir, dir[n - 1] == '/' ? "" : "/", name);
}

const char *vp_io_dirname(struct vp_ctx *ctx, const char *path) {
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    while (n > 1 && path[n - 1] == '/')
        n--;
    return n ? vp_arena_text(ctx->arena, path, n) : ".";
}
