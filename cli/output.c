#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reports/report.h"

bool vp_output_prepare(void) {
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    /* In the wrong direction, so that using the stream fails as if it were still closed. */
    static const int FLAGS[] = {
        [STDIN_FILENO] = O_WRONLY, [STDOUT_FILENO] = O_RDONLY, [STDERR_FILENO] = O_RDONLY};
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", FLAGS[fd]) != fd)
            return false;
    return sigaction(SIGPIPE, &ignore, NULL) == 0;
}

int vp_output_put(int fd, const char *data, size_t n) {
    while (n > 0) {
        ssize_t done = write(fd, data, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        data += done;
        n -= (size_t)done;
    }
    return 0;
}

/* Closing may be the moment when a full disk shows. */
static int write_and_close(int fd, const struct vp_buf *text) {
    int error = vp_output_put(fd, vp_buf_text(text), text->size);
    if (close(fd) != 0 && !error)
        error = errno;
    return error;
}

static int write_in_place(const char *path, const struct vp_buf *text) {
    int fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? errno : write_and_close(fd, text);
}

/* mkstemp makes files that nobody else may read. */
static int set_mode(int fd, const struct stat *old) {
    mode_t mask = umask(0);
    umask(mask);
    return fchmod(fd, old ? old->st_mode & 0777 : 0666 & ~mask) == 0 ? 0 : errno;
}

/* old: what stands at path now, NULL for nothing. */
static int replace(struct vp_ctx *ctx, const char *path, const struct stat *old,
                   const struct vp_buf *text) {
    char *temporary = vp_arena_printf(ctx->arena, "%s.XXXXXX", path);
    int fd = mkstemp(temporary);
    if (fd < 0)
        return errno;
    int error = set_mode(fd, old);
    int write_error = write_and_close(fd, text);
    if (!error)
        error = write_error;
    if (!error && rename(temporary, path) != 0)
        error = errno;
    if (error)
        unlink(temporary);
    return error;
}

const char *vp_output_follow(struct vp_ctx *ctx, const char *path) {
    enum { MOST_LINKS = 40, SIZE = 4096 };
    for (int i = 0; i < MOST_LINKS; i++) {
        struct stat st;
        if (lstat(path, &st) != 0)
            return NULL;
        if (!S_ISLNK(st.st_mode))
            return path;
        char *target = vp_arena_alloc(ctx->arena, SIZE);
        ssize_t n = readlink(path, target, SIZE - 1);
        if (n < 0)
            return NULL;
        path = vp_io_join(ctx, vp_io_dirname(ctx, path), target);
    }
    errno = ELOOP;
    return NULL;
}

static int write_file(struct vp_ctx *ctx, const char *path, const struct vp_buf *text) {
    struct stat st;
    if (stat(path, &st) != 0)
        return errno == ENOENT ? replace(ctx, path, NULL, text) : errno;
    if (S_ISDIR(st.st_mode))
        return EISDIR;
    if (!S_ISREG(st.st_mode))
        return write_in_place(path, text);
    const char *real = vp_output_follow(ctx, path);
    return real ? replace(ctx, real, &st, text) : errno;
}

enum vp_status vp_output_write(struct vp_ctx *ctx, const struct vp_buf *text, const char *path) {
    bool to_stdout = !path || vp_text_eq(path, "-");
    /* A descriptor of its own, so that a failing close shows here and the stream stays open. */
    int fd = to_stdout ? dup(STDOUT_FILENO) : -1;
    int error = !to_stdout ? write_file(ctx, path, text)
                : fd < 0   ? errno
                           : write_and_close(fd, text);
    if (!error)
        return VP_OK;
    struct vp_pos pos = {.file = to_stdout ? NULL : path};
    vp_diag_add(ctx->diags, VP_D_IO, &pos, "writing %s failed: %s",
                to_stdout ? "standard output" : path, strerror(error));
    return VP_ERR_ENV;
}

/* ---- terminals ---- */

static bool is_coloured(enum vp_colour colour, bool terminal) {
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
    if (colour != VP_COLOUR_AUTO)
        return colour == VP_COLOUR_ALWAYS;
    return terminal && !(no_colour && *no_colour) && !(term && strcmp(term, "dumb") == 0);
}

static bool to_terminal(const struct vp_args *args) {
    return (!args->value[VP_OPTION_OUTPUT] || vp_text_eq(args->value[VP_OPTION_OUTPUT], "-")) &&
           isatty(STDOUT_FILENO);
}

bool vp_output_colour(const struct vp_args *args) {
    return is_coloured(args->colour, to_terminal(args));
}

/* By the variables that setlocale() would read; it is not called. */
bool vp_output_utf8(const struct vp_args *args) {
    static const char *const NAMES[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    if (!to_terminal(args))
        return true;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        const char *value = getenv(NAMES[i]);
        if (value && *value) {
            const char *charset = strchr(value, '.');
            return charset && vp_name_eq(charset + 1, "utf8");
        }
    }
    return false;
}

int vp_output_width(const struct vp_args *args) {
    struct winsize size;
    if (!to_terminal(args) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col;
}

struct vp_page vp_output_page(const struct vp_args *args, struct vp_buf *out) {
    int width = vp_output_width(args);
    return (struct vp_page){.out = out,
                            .width = width ? width : VP_PAGE_WIDTH,
                            .colour = vp_output_colour(args),
                            .utf8 = vp_output_utf8(args)};
}

struct vp_report_options vp_output_options(const struct vp_args *args) {
    return (struct vp_report_options){.width = vp_output_width(args),
                                      .colour = vp_output_colour(args),
                                      .utf8 = vp_output_utf8(args),
                                      .verbose = args->value[VP_OPTION_VERBOSE]};
}

void vp_output_diagnostics(struct vp_ctx *ctx, const struct vp_diags *diags, enum vp_severity least,
                           const struct vp_args *args) {
    struct vp_diags *shown = VP_NEW(ctx->arena, struct vp_diags);
    struct vp_buf text = {.arena = ctx->arena};
    *shown = *diags;
    shown->count = 0;
    for (uint32_t i = 0; i < diags->count; i++)
        if (vp_diag_severity(diags->items[i].id) >= least)
            shown->items[shown->count++] = diags->items[i];
    if (shown->count == 0)
        return;
    vp_report_diagnostics(&text, shown, is_coloured(args->colour, isatty(STDERR_FILENO)));
    (void)vp_output_put(STDERR_FILENO, vp_buf_text(&text), text.size);
}

void vp_output_own_diagnostics(struct vp_ctx *ctx, enum vp_severity least,
                               const struct vp_args *args) {
    vp_output_diagnostics(ctx, ctx->diags, least, args);
    ctx->diags->count = 0;
}

int vp_output_failure(struct vp_ctx *ctx, const struct vp_args *args, enum vp_status status) {
    enum vp_exit code = vp_exit_of_status(status);
    bool plans = args->command == VP_COMMAND_PLAN || args->command == VP_COMMAND_EXPLAIN;
    if (args->format != VP_FORMAT_JSON)
        return (int)code;
    struct vp_buf out = {.arena = ctx->arena};
    struct vp_json json = vp_json_begin(&out);
    const char *what = plans ? "result" : vp_commands[args->command].name;
    vp_answers_json_error(&json, vp_arena_printf(ctx->arena, "vramplan.%s/1", what), NULL, NULL,
                          ctx->diags);
    vp_buf_add(&out, "\n");
    enum vp_status written = vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT]);
    return (int)vp_exit_of_both(code, vp_exit_of_status(written));
}
