#include "cli/probe_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/places.h"
#include "planner/base/units.h"

enum { MOST_WORDS = 16, LINE_CELLS = 79, BAR_CELLS = 16, NOT_FOUND = 127, EXIT_INPUT = 2 };

static const char PROGRAM[] = "vramplan-probe";

struct run {
    struct vp_ctx *ctx;
    struct vp_probe_outcome *out;
    const struct vp_probe_order *order;
    bool bar; /* standard error is a terminal */
    bool failed;
};

/* ---- how far it is ---- */

static void clear_bar(const struct run *r) {
    if (r->bar)
        fprintf(stderr, "\r\033[K");
}

/* "[########........]  57/114  1:05 left  gemm bfloat16 16 x 2048 x 512" */
static void draw_bar(const struct run *r, uint64_t item, uint64_t count, double left_s,
                     const char *text) {
    char line[2 * LINE_CELLS] = "[", left[24] = "";
    uint64_t done = count ? item * BAR_CELLS / count : 0;

    if (!r->bar)
        return;
    for (uint64_t i = 0; i < BAR_CELLS; i++)
        strcat(line, i < done ? "#" : ".");
    if (left_s >= 0 && left_s < 1e6)
        snprintf(left, sizeof left, "%d:%02d left", (int)left_s / 60, (int)left_s % 60);
    size_t n = strlen(line);
    snprintf(line + n, sizeof line - n, "] %3" PRIu64 "/%" PRIu64 "  %-10s %s", item + 1, count,
             left, text);
    line[LINE_CELLS] = '\0';
    fprintf(stderr, "\r%s\033[K", line);
}

/* ---- what it says ---- */

/* "error no device: ..." */
static void take_error(struct run *r, const char *text) {
    clear_bar(r);
    r->failed = true;
    vp_diag_add(r->ctx->diags, VP_D_PROBE_FAILED, NULL, "%s", text);
    if (!r->order->backend || !vp_text_eq(r->order->backend, "cpu"))
        vp_diag_hint(r->ctx->diags,
                     "--backend cpu runs the same benchmarks on the processor; which GPUs the "
                     "system has, and why one may be missing: vramplan device");
}

static void take_begin(struct run *r, const char *text) {
    unsigned long item, count;
    double left;
    int used = 0;
    if (sscanf(text, "%lu %lu %lf %n", &item, &count, &left, &used) == 3)
        draw_bar(r, item, count, left, text + used);
}

static void take_line(struct run *r, const char *word, const char *text) {
    struct vp_probe_outcome *out = r->out;
    bool told = vp_text_eq(word, "device") || vp_text_eq(word, "sample");

    if (vp_text_eq(word, "begin"))
        take_begin(r, text);
    else if (told && r->order->loud) {
        clear_bar(r);
        fprintf(stderr, "%s\n", text);
    } else if (vp_text_eq(word, "noisy") || vp_text_eq(word, "left-out"))
        vp_diag_add(r->ctx->diags, VP_D_PROBE_NOTE, NULL, "%s%s",
                    vp_text_eq(word, "noisy") ? "" : "not measured: ", text);
    else if (vp_text_eq(word, "trouble"))
        vp_diag_add(r->ctx->diags, VP_D_PROBE_TROUBLE, NULL, "%s", text);
    else if (vp_text_eq(word, "error"))
        take_error(r, text);
    else if (vp_text_eq(word, "done"))
        sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &out->figures, &out->noisy,
               &out->left_out, &out->troubles);
}

static void listen_to(struct run *r, FILE *from) {
    char *line = NULL;
    size_t size = 0;

    while (getline(&line, &size, from) > 0) {
        if (!r->order->folder) {
            vp_buf_add(&r->out->list, line);
            if (strncmp(line, "error ", 6) != 0)
                continue;
        }
        line[strcspn(line, "\n")] = '\0';
        char *text = line + strcspn(line, " ");
        if (*text)
            *text++ = '\0';
        take_line(r, line, text);
    }
    free(line);
    clear_bar(r);
}

/* ---- the program ---- */

static const char *find_program(struct vp_ctx *ctx) {
    const char *given = getenv("VRAMPLAN_PROBE"), *own = vp_places_program(ctx);
    if (given && *given)
        return given;
    const char *beside = own ? vp_io_join(ctx, own, PROGRAM) : PROGRAM;
    return access(beside, X_OK) == 0 ? beside : PROGRAM; /* else by PATH */
}

static void add_word(struct vp_ctx *ctx, char **words, size_t *n, const char *option,
                     const char *value) {
    if (!value)
        return;
    words[(*n)++] = vp_arena_text(ctx->arena, option, strlen(option));
    if (*value)
        words[(*n)++] = vp_arena_text(ctx->arena, value, strlen(value));
}

static char **words_of(struct vp_ctx *ctx, const char *program,
                       const struct vp_probe_order *order) {
    char **words = VP_NEW_ARRAY(ctx->arena, MOST_WORDS, char *);
    size_t n = 0;
    add_word(ctx, words, &n, program, "--progress");
    add_word(ctx, words, &n, "--backend", order->backend);
    add_word(ctx, words, &n, "--gpu", order->device);
    add_word(ctx, words, &n, "--only", order->only);
    add_word(ctx, words, &n, "--csv", order->folder);
    add_word(ctx, words, &n, "--quick", order->quick ? "" : NULL);
    if (!order->folder)
        add_word(ctx, words, &n, order->facts ? "--facts" : "--list", "");
    return words;
}

static enum vp_status lost(struct vp_ctx *ctx, const char *program, const char *why) {
    vp_diag_add(ctx->diags, VP_D_PROBE_FAILED, NULL, "%s: %s", program, why);
    vp_diag_hint(ctx->diags, "it is installed beside vramplan; $VRAMPLAN_PROBE may name another "
                             "place");
    return VP_ERR_ENV;
}

static enum vp_status wait_for(struct run *r, pid_t child, const char *program) {
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return lost(r->ctx, program, "its end was not seen");
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code == NOT_FOUND)
        return lost(r->ctx, program, "the program cannot be started");
    if (code != 0 && !r->failed)
        return lost(r->ctx, program,
                    code < 0
                        ? vp_arena_printf(r->ctx->arena, "killed by signal %d", WTERMSIG(status))
                        : vp_arena_printf(r->ctx->arena, "it ended with %d", code));
    return code == EXIT_INPUT ? VP_ERR_INPUT : code ? VP_ERR_ENV : VP_OK;
}

enum vp_status vp_probe_run(struct vp_ctx *ctx, struct vp_probe_outcome *out,
                            const struct vp_probe_order *order) {
    struct run r = {ctx, out, order, isatty(STDERR_FILENO) && order->folder, false};
    const char *program = find_program(ctx);
    char **words = words_of(ctx, program, order);
    int ends[2];

    *out = (struct vp_probe_outcome){.list = {.arena = ctx->arena}};
    if (pipe(ends))
        return lost(ctx, program, strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execvp(program, words);
        _exit(NOT_FOUND);
    }
    int why = errno;
    close(ends[1]);
    FILE *from = child > 0 ? fdopen(ends[0], "r") : NULL;
    if (!from) {
        close(ends[0]);
        return lost(ctx, program, strerror(why));
    }
    listen_to(&r, from);
    fclose(from);
    return wait_for(&r, child, program);
}
