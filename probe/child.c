#include "probe/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "planner/base/clock.h"

void vp_child_send(int fd, const struct vp_record *record) {
    const char *at = (const char *)record;
    size_t left = sizeof *record;

    while (left > 0) {
        ssize_t n = write(fd, at, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            _exit(1);
        at += n;
        left -= (size_t)n;
    }
}

/* What has been read of the child's two streams. */
struct inbox {
    struct vp_record record; /* being received */
    size_t filled;
    char line[VP_DEV_WHY]; /* of its standard error, being received */
    size_t length;
    char *last_words;
};

static void keep_line(struct inbox *in) {
    if (in->length) {
        memcpy(in->last_words, in->line, in->length);
        in->last_words[in->length] = '\0';
    }
    in->length = 0;
}

static void hear(struct inbox *in, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        bool plain = text[i] >= ' ' && text[i] <= '~';
        if (text[i] == '\n')
            keep_line(in);
        else if (in->length < sizeof in->line - 1)
            in->line[in->length++] = plain ? text[i] : '?';
    }
}

/* False: the stream has ended. */
static bool read_words(struct inbox *in, int fd) {
    char text[512];
    ssize_t n = read(fd, text, sizeof text);
    if (n > 0)
        hear(in, text, (size_t)n);
    return n > 0 || (n < 0 && errno == EINTR);
}

static bool read_record(struct inbox *in, int fd, vp_child_receive receive, void *context,
                        double *deadline, double limit_s) {
    ssize_t n = read(fd, (char *)&in->record + in->filled, sizeof in->record - in->filled);
    if (n <= 0)
        return n < 0 && errno == EINTR;
    in->filled += (size_t)n;
    if (in->filled == sizeof in->record) {
        in->filled = 0;
        receive(context, &in->record);
        *deadline = vp_clock_seconds() + limit_s;
    }
    return true;
}

/* Until both streams have ended (true) or nothing came for the limit (false). A grandchild of the
 * driver may keep the second one open, so that the first alone counts. */
static bool listen_to(struct inbox *in, const int fd[2], vp_child_receive receive, void *context,
                      double limit_s) {
    struct pollfd from[2] = {{.fd = fd[0], .events = POLLIN}, {.fd = fd[1], .events = POLLIN}};
    double deadline = vp_clock_seconds() + limit_s;

    while (from[0].fd >= 0) {
        double left = deadline - vp_clock_seconds();
        if (left <= 0)
            return false;
        if (poll(from, 2, (int)(left < 3600 ? left * 1e3 + 1 : 3600e3)) < 0 && errno != EINTR)
            return false;
        if (from[1].revents && !read_words(in, fd[1]))
            from[1].fd = -1;
        if (from[0].revents && !read_record(in, fd[0], receive, context, &deadline, limit_s))
            from[0].fd = -1;
        from[0].revents = from[1].revents = 0;
    }
    if (from[1].fd >= 0) /* what was said at the very end; the pipe may stay open */
        while (poll(&from[1], 1, 0) > 0 && read_words(in, fd[1]))
            ;
    keep_line(in);
    return true;
}

/* Its end, with a limit on waiting for it: a process may hang in its driver after the last record,
 * or inside the kernel, where even SIGKILL does not reach it; that one is left behind. */
static void reap(struct vp_child_report *out, pid_t child, bool hung, double limit_s) {
    static const double PATIENCE_S = 5;
    double deadline = vp_clock_seconds() + (hung ? 0 : limit_s < PATIENCE_S ? limit_s : PATIENCE_S);
    bool killed = false;
    int status = 0;
    pid_t got;

    while ((got = waitpid(child, &status, WNOHANG)) <= 0) {
        if (got < 0 && errno != EINTR) {
            *out = (struct vp_child_report){.end = VP_CHILD_LOST, .code = errno};
            return;
        }
        if (vp_clock_seconds() >= deadline) {
            if (killed)
                break;
            kill(child, SIGKILL);
            killed = true;
            deadline = vp_clock_seconds() + PATIENCE_S;
        }
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    if (killed)
        out->end = VP_CHILD_HUNG;
    else if (WIFSIGNALED(status)) {
        out->end = VP_CHILD_CRASHED;
        out->code = WTERMSIG(status);
    } else {
        out->end = VP_CHILD_DONE;
        out->code = WEXITSTATUS(status);
    }
}

static _Noreturn void be_child(vp_child_body body, void *context, const int records[2],
                               const int words[2]) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    close(records[0]);
    close(words[0]);
    dup2(words[1], STDERR_FILENO);
    dup2(words[1], STDOUT_FILENO); /* a library's chatter must not mix with our output */
    close(words[1]);
    _exit(body(context, records[1]));
}

void vp_child_run(struct vp_child_report *out, vp_child_body body, vp_child_receive receive,
                  void *context, double limit_s) {
    struct inbox in = {.last_words = out->last_words};
    int records[2], words[2];

    *out = (struct vp_child_report){.end = VP_CHILD_LOST};
    if (pipe(records)) {
        out->code = errno;
        return;
    }
    if (pipe(words)) {
        out->code = errno;
        close(records[0]);
        close(records[1]);
        return;
    }
    pid_t child = fork();
    if (child == 0)
        be_child(body, context, records, words);
    out->code = errno;
    close(records[1]);
    close(words[1]);
    if (child > 0) {
        out->code = 0;
        bool ended = listen_to(&in, (int[2]){records[0], words[0]}, receive, context, limit_s);
        reap(out, child, !ended, limit_s);
    }
    close(records[0]);
    close(words[0]);
}
