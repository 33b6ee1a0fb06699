#include "cli/sweep_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/sweep_lines.h"

static enum vp_status failed(struct vp_ctx *ctx, const char *what, const char *path, int error) {
    vp_diag_add(ctx->diags, VP_D_IO, NULL, "%s %s failed: %s", what, path, strerror(error));
    return VP_ERR_ENV;
}

/* ---- rows of a run before ---- */

static bool is_ours(const struct vp_sweep_mark *mark, const struct vp_sweep_rows *rows) {
    const char *end = mark->line + mark->size - 1;
    size_t n = strlen(rows->id);
    end -= end > mark->line && end[-1] == '}' ? 2 : 0; /* JSON: before `"}` */
    return (size_t)(end - mark->id) == n && memcmp(mark->id, rows->id, n) == 0 &&
           mark->row >= rows->first && mark->row < rows->last;
}

static enum vp_status refuse(struct vp_ctx *ctx, const char *part) {
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                "%s holds rows of another sweep, or of another state of its files", part);
    vp_diag_hint(ctx->diags, "--restart throws them away; another -o keeps them");
    return VP_ERR_INPUT;
}

/* Finds where the whole rows end. VP_OK with *bytes 0: there are none. */
static enum vp_status look(struct vp_ctx *ctx, struct vp_sweep_file *out,
                           const struct vp_sweep_rows *rows, off_t *bytes) {
    struct vp_diags *diags = VP_NEW(ctx->arena, struct vp_diags);
    struct vp_ctx own = *ctx;
    struct vp_sweep_lines lines;
    struct vp_sweep_mark mark;
    diags->arena = ctx->arena;
    own.diags = diags;
    *bytes = 0;
    if (vp_sweep_lines_open(&own, &lines, out->part) != VP_OK)
        return refuse(ctx, out->part);
    bool good = lines.header ? strcmp(lines.header, rows->header) == 0
                             : lines.json == !*rows->header || !lines.end;
    while (good && vp_sweep_lines_next(&lines, &mark)) {
        good = is_ours(&mark, rows) && (!out->kept || mark.row >= out->next);
        out->next = mark.row + 1;
        out->kept = true;
    }
    good &= !lines.failed;
    *bytes = out->kept ? (off_t)lines.bytes : 0;
    vp_sweep_lines_close(&lines);
    return good ? VP_OK : refuse(ctx, out->part);
}

/* ---- opening ---- */

static enum vp_status begin_part(struct vp_ctx *ctx, struct vp_sweep_file *out,
                                 const struct vp_sweep_rows *rows, bool anew) {
    off_t bytes = 0;
    struct stat st;
    if (!anew && !rows->text && lstat(out->part, &st) == 0 && st.st_size > 0) {
        enum vp_status status = look(ctx, out, rows, &bytes);
        if (status != VP_OK)
            return status;
    }
    out->fd = open(out->part, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (out->fd < 0)
        return failed(ctx, "opening", out->part, errno);
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(out->fd, F_SETLK, &whole) != 0 && (errno == EACCES || errno == EAGAIN)) {
        vp_diag_add(ctx->diags, VP_D_IO, NULL, "another sweep is writing %s", out->part);
        return VP_ERR_ENV;
    }
    if (ftruncate(out->fd, bytes) != 0 || lseek(out->fd, bytes, SEEK_SET) != bytes)
        return failed(ctx, "cutting", out->part, errno);
    return VP_OK;
}

enum vp_status vp_sweep_file_open(struct vp_ctx *ctx, struct vp_sweep_file *out, const char *path,
                                  const struct vp_sweep_rows *rows, bool anew) {
    enum vp_status status = VP_OK;
    struct stat st;
    *out = (struct vp_sweep_file){.fd = STDOUT_FILENO, .path = path, .next = rows->first};
    if (!path || strcmp(path, "-") == 0) {
        out->path = "standard output";
    } else if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        out->fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
        if (out->fd < 0)
            status = failed(ctx, "opening", path, errno);
    } else {
        const char *real = vp_output_follow(ctx, path);
        out->path = real ? real : path;
        out->part = vp_arena_printf(ctx->arena, "%s.part", out->path);
        status = begin_part(ctx, out, rows, anew);
    }
    if (status == VP_OK && !out->kept)
        status = vp_sweep_file_put(ctx, out, rows->header, strlen(rows->header));
    if (status != VP_OK)
        vp_sweep_file_leave(out);
    return status;
}

enum vp_status vp_sweep_file_put(struct vp_ctx *ctx, struct vp_sweep_file *file, const char *data,
                                 size_t n) {
    int error = vp_output_put(file->fd, data, n);
    return error ? failed(ctx, "writing", file->part ? file->part : file->path, error) : VP_OK;
}

static int close_it(struct vp_sweep_file *file) {
    int fd = file->fd;
    file->fd = -1;
    return fd < 0 || fd == STDOUT_FILENO || close(fd) == 0 ? 0 : errno;
}

enum vp_status vp_sweep_file_finish(struct vp_ctx *ctx, struct vp_sweep_file *file) {
    int error = close_it(file);
    if (error)
        return failed(ctx, "writing", file->path, error);
    if (file->part && rename(file->part, file->path) != 0)
        return failed(ctx, "replacing", file->path, errno);
    return VP_OK;
}

void vp_sweep_file_leave(struct vp_sweep_file *file) { (void)close_it(file); }
