#include "cli/git_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 16 * 1024 };

static enum vp_status failed(struct vp_ctx *ctx, const char *what) {
    vp_diag_add(ctx->diags, VP_D_GIT_FAILED, NULL, "git could not be run: %s: %s", what,
                strerror(errno));
    return VP_ERR_ENV;
}

/* Above the standard streams, and closed in every other child. */
static bool make_pipe(int ends[2]) {
    if (pipe(ends) != 0)
        return false;
    for (int i = 0; i < 2; i++)
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    return true;
}

/* In the child. A hook is given paths that start at its own folder, which -C would change. */
static void make_absolute(const char *variable) {
    enum { MOST = 4096 };
    char here[MOST], path[2 * MOST];
    const char *value = getenv(variable);
    if (!value || !*value || *value == '/' || !getcwd(here, sizeof here))
        return;
    int n = snprintf(path, sizeof path, "%s/%s", here, value);
    if (n > 0 && (size_t)n < sizeof path)
        setenv(variable, path, 1);
}

/* In the child. */
static _Noreturn void become_git(const int in, const int out, const int err, const char *folder,
                                 const char *const *words) {
    static char GIT[] = "git", NO_LOCKS[] = "--no-optional-locks", SET[] = "-c",
                NO_MONITOR[] = "core.fsmonitor=false", QUOTE[] = "core.quotepath=false",
                THERE[] = "-C";
    char *all[VP_GIT_MOST_WORDS + 16] = {GIT, NO_LOCKS, SET, NO_MONITOR, SET, QUOTE};
    size_t n = 6;
    if (folder) {
        all[n++] = THERE;
        memcpy(&all[n++], &folder, sizeof folder); /* execvp changes no word */
    }
    for (size_t i = 0; words[i]; i++)
        memcpy(&all[n++], &words[i], sizeof words[i]);
    all[n] = NULL;
    make_absolute("GIT_DIR");
    make_absolute("GIT_WORK_TREE");
    make_absolute("GIT_INDEX_FILE");
    setenv("LC_ALL", "C", 1);
    setenv("GIT_TERMINAL_PROMPT", "0", 1);
    setenv("GIT_NO_LAZY_FETCH", "1", 1); /* a partial clone must not fetch */
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
        _exit(VP_GIT_NOT_FOUND);
    execvp(GIT, all);
    _exit(VP_GIT_NOT_FOUND);
}

static int wait_for(pid_t child) {
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return VP_GIT_NOT_FOUND;
    return WIFEXITED(status) ? WEXITSTATUS(status) : VP_GIT_NOT_FOUND;
}

/* One read of what is ready; false: the end. */
static bool take(struct vp_buf *out, int fd) {
    char block[BLOCK];
    ssize_t n = read(fd, block, sizeof block);
    if (n > 0)
        vp_buf_add_n(out, block, (size_t)n);
    return n > 0 || (n < 0 && errno == EINTR);
}

/* Both streams to their ends: one that is not read would stop the child. */
static void collect(struct vp_buf *out, struct vp_buf *err, int from_out, int from_err) {
    struct pollfd ends[2] = {{.fd = from_out, .events = POLLIN},
                             {.fd = from_err, .events = POLLIN}};
    struct vp_buf *const to[2] = {out, err};
    int open = 2;
    while (open > 0) {
        if (poll(ends, 2, -1) < 0) {
            if (errno == EINTR)
                continue;
            return;
        }
        for (int i = 0; i < 2; i++)
            if (ends[i].fd >= 0 && ends[i].revents && !take(to[i], ends[i].fd)) {
                ends[i].fd = -1;
                open--;
            }
    }
}

static const char *first_line(struct vp_arena *arena, const struct vp_buf *text) {
    const char *line = vp_buf_text(text);
    if (vp_text_starts(line, "fatal: "))
        line += strlen("fatal: ");
    return vp_arena_text(arena, line, strcspn(line, "\n"));
}

static void close_all(const int *ends, size_t count) {
    for (size_t i = 0; i < count; i++)
        close(ends[i]);
}

enum vp_status vp_git_run(struct vp_ctx *ctx, struct vp_git_answer *out, const char *folder,
                          const char *const *words) {
    struct vp_buf err = {.arena = ctx->arena};
    int ends[5], *o = &ends[0], *e = &ends[2]; /* of standard output, of standard error */
    *out = (struct vp_git_answer){.out = {.arena = ctx->arena}, .error = ""};
    if (!make_pipe(o))
        return failed(ctx, "pipe");
    if (!make_pipe(e)) {
        close_all(o, 2);
        return failed(ctx, "pipe");
    }
    ends[4] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    pid_t child = fork();
    if (child == 0)
        become_git(ends[4], o[1], e[1], folder, words);
    close(o[1]);
    close(e[1]);
    close(ends[4]);
    if (child < 0) {
        close(o[0]);
        close(e[0]);
        return failed(ctx, "fork");
    }
    collect(&out->out, &err, o[0], e[0]);
    close(o[0]);
    close(e[0]);
    out->code = wait_for(child);
    out->error = first_line(ctx->arena, &err);
    return VP_OK;
}

enum vp_status vp_git_start(struct vp_ctx *ctx, struct vp_git_child *out, const char *folder,
                            const char *const *words) {
    int ends[4], *in = &ends[0], *o = &ends[2];
    *out = (struct vp_git_child){0};
    if (!make_pipe(in))
        return failed(ctx, "pipe");
    if (!make_pipe(o)) {
        close_all(in, 2);
        return failed(ctx, "pipe");
    }
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    pid_t child = fork();
    if (child == 0)
        become_git(in[0], o[1], nothing, folder, words);
    close(in[0]);
    close(o[1]);
    close(nothing);
    if (child < 0) {
        close(in[1]);
        close(o[0]);
        return failed(ctx, "fork");
    }
    *out = (struct vp_git_child){child, in[1], o[0]};
    return VP_OK;
}

void vp_git_end(struct vp_git_child *child) {
    if (child->pid == 0)
        return;
    close(child->to);
    close(child->from);
    wait_for(child->pid);
    child->pid = 0;
}
