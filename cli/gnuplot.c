#include "cli/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "planner/base/text.h"

enum { NOT_FOUND = 127 };

/* In the child. A script's name that begins with '-' would be taken for an option. */
static _Noreturn void run(char *script) {
    char program[] = "gnuplot";
    char *words[] = {program, script, NULL};
    int nothing = open("/dev/null", O_RDONLY);

    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        _exit(NOT_FOUND - 1);
    execvp(program, words);
    _exit(NOT_FOUND);
}

static enum vp_status failed(struct vp_ctx *ctx, const char *script, const char *why) {
    vp_diag_add(ctx->diags, VP_D_NO_GNUPLOT, NULL, "%s; its script and data are written: %s", why,
                script);
    vp_diag_hint(ctx->diags, "Debian: apt-get install gnuplot-nox; then: gnuplot %s", script);
    return VP_ERR_ENV;
}

enum vp_status vp_gnuplot_run(struct vp_ctx *ctx, const char *script, bool spare, bool *missing) {
    char *path = vp_arena_printf(ctx->arena, "%s%s", script[0] == '-' ? "./" : "", script);
    int status;
    *missing = false;
    pid_t child = fork();

    if (child < 0)
        return failed(ctx, script, "gnuplot could not be started");
    if (child == 0)
        run(path);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return failed(ctx, script, "gnuplot's end was not seen");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return VP_OK;
    *missing = WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND;
    if (*missing && spare) {
        vp_diag_add(ctx->diags, VP_D_GNUPLOT_SPARED, NULL,
                    "gnuplot was not found: the drawing is the program's own; for another: %s",
                    script);
        return VP_OK;
    }
    if (*missing)
        return failed(ctx, script, "gnuplot was not found");
    return failed(ctx, script, "gnuplot failed");
}
