/* Any bytes as a log: the reader keeps its caps, what it found is in order, and the rules of doctor
 * say something of every message. */
#include <stdlib.h>
#include <string.h>

#include "planner/import/log_measured.h"
#include "planner/import/log_reader.h"
#include "planner/plan/doctor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
    const uint8_t *data;
    size_t size, at;
} input;

/* In pieces, so that lines go over the ends of reads. */
static long read_input(int fd, void *buffer, size_t size) {
    size_t n = input.size - input.at, piece = 1 + input.at % 777;
    (void)fd;
    n = n < size ? n : size;
    n = n < piece ? n : piece;
    if (n > 0)
        memcpy(buffer, input.data + input.at, n);
    input.at += n;
    return (long)n;
}

static int close_input(int fd) {
    (void)fd;
    return 0;
}

static void demand(bool holds) {
    if (!holds)
        abort();
}

static void check_start(struct vp_ctx *ctx, const struct vp_log_start *start) {
    struct vp_log_figure *figures;
    struct vp_log_setting *settings;
    demand(start->facts <= VP_LOG_MAX_FACTS && strlen(start->args) < VP_LOG_MAX_ARGS);
    for (uint32_t i = 0; i < start->facts; i++) {
        const struct vp_log_fact *fact = &start->fact[i];
        demand(fact->seen > 0 && fact->least <= fact->most && fact->step > 0);
    }
    size_t count = vp_log_measured(ctx->arena, &figures, start, VP_ENGINE_VLLM);
    for (size_t i = 0; i < count; i++)
        demand(*vp_log_figure_text(ctx->arena, &figures[i]) != '\0');
    vp_log_settings(ctx, &settings, start, VP_ENGINE_VLLM);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct vp_arena arena = {0};
    struct vp_diags diags = {.arena = &arena};
    struct vp_io io = vp_io_posix;
    struct vp_ctx ctx = {.arena = &arena, .diags = &diags, .io = &io};
    struct vp_run_log *log;
    struct vp_gpu gpu = {
        .id = "x", .name = "X", .vendor = "amd", .arch = "gfx942", .driver_mib = 196592};
    io.read = read_input;
    io.close = close_input;
    input.data = data;
    input.size = size;
    input.at = 0;
    demand(vp_log_read(&ctx, &log, "-") == VP_OK);
    demand(log->messages <= VP_LOG_MAX_MESSAGES && log->devices <= VP_LOG_MAX_DEVICES);
    demand(log->bytes == size && log->matched <= log->lines);
    check_start(&ctx, &log->start);
    check_start(&ctx, log->last);
    for (int known = 0; known < 2; known++) {
        struct vp_doctor_case in = {log, known ? &gpu : NULL, "x.yaml"};
        struct vp_diagnosis out;
        vp_doctor_diagnose(&arena, &out, &in);
        demand(out.findings <= VP_FINDINGS && (log->messages == 0 || out.findings > 0));
        for (uint32_t i = 0; i < out.findings; i++)
            demand(out.finding[i].why && out.finding[i].lines <= VP_FINDING_LINES);
    }
    vp_arena_free(&arena);
    return 0;
}
