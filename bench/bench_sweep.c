/* bench_sweep RUNS PROFILES THREADS INPUT [FIELD=VALUE...] -- VARY...
 *
 * A sweep as `vramplan sweep` runs it, lines written into memory: settings before "--" hold for all
 * combinations, texts after it are those of --vary. Prints
 * "median-seconds least-seconds cpu-seconds bytes": the wall time of one combination, over runs of
 * one pass through all of them, the median of the processor time that all threads together took for
 * one, and the bytes of the lines, which are the same in every run of the same planner. */
#include <inttypes.h>
#include <string.h>

#include "api/sweep.h"
#include "bench/bench.h"

enum { MAX_SETTINGS = 16 };

static void fail(const struct vp_ctx *ctx) {
    for (uint32_t i = 0; i < ctx->diags->count; i++)
        fprintf(stderr, "bench: %s\n", ctx->diags->items[i].message);
    exit(1);
}

/* Splits FIELD=VALUE; the text is changed. Returns the words used, with the "--". */
static int read_settings(struct vp_setting *out, size_t *count, char **words, int word_count) {
    int i = 0;
    for (; i < word_count && strcmp(words[i], "--") != 0; i++) {
        char *equals = strchr(words[i], '=');
        if (!equals || *count == MAX_SETTINGS) {
            fprintf(stderr, "bench: \"%s\" is not FIELD=VALUE\n", words[i]);
            exit(2);
        }
        *equals = '\0';
        out[(*count)++] =
            (struct vp_setting){.path = words[i], .value = equals + 1, .key = words[i]};
    }
    return i + 1;
}

/* One pass through all combinations; the bytes of the lines. */
static uint64_t pass(struct vp_sweeper *sweeper, struct vp_sweep_point *points, uint64_t total) {
    uint64_t bytes = 0;
    for (uint64_t first = 0; first < total; first += VP_SWEEP_CHUNK) {
        size_t n = total - first < VP_SWEEP_CHUNK ? (size_t)(total - first) : VP_SWEEP_CHUNK;
        if (vp_sweeper_run(sweeper, points, first, n) != VP_OK)
            exit(1);
        for (size_t i = 0; i < n; i++)
            bytes += points[i].size;
    }
    return bytes;
}

int main(int argc, char **argv) {
    double seconds[BENCH_MAX_RUNS], cpu[BENCH_MAX_RUNS];
    struct vp_setting settings[MAX_SETTINGS];
    size_t setting_count = 0;
    struct vp_arena arena = {0};
    struct vp_diags diags = {.arena = &arena};
    struct vp_ctx ctx = {.arena = &arena, .diags = &diags, .io = &vp_io_posix};
    struct vp_variants *variants = NULL;
    struct vp_grid grid;

    if (argc < 6) {
        fprintf(stderr, "usage: bench_sweep RUNS PROFILES THREADS INPUT [FIELD=VALUE...] -- "
                        "VARY...\n");
        return 2;
    }
    size_t runs = bench_runs(argv[1]), threads = bench_runs(argv[3]);
    ctx.profiles = argv[2];
    int used = 5 + read_settings(settings, &setting_count, argv + 5, argc - 5);
    if (used > argc ||
        vp_grid_read(&ctx, &grid, "--vary", (const char *const *)(argv + used),
                     (size_t)(argc - used)) != VP_OK ||
        vp_variants_open(&ctx, &variants, argv[4], settings, setting_count) != VP_OK)
        fail(&ctx);
    struct vp_sweep sweep = {
        .variants = variants,
        .grid = &grid,
        .form = {.fields = VP_NEW_ARRAY(&arena, grid.field_count, const char *),
                 .field_count = grid.field_count,
                 .sweep = "0"}};
    for (size_t i = 0; i < grid.field_count; i++)
        sweep.form.fields[i] = vp_grid_path(&grid, i);
    struct vp_sweeper *sweeper = vp_sweeper_new(&ctx, &sweep, (unsigned)threads);
    struct vp_sweep_point *points = VP_NEW_ARRAY(&arena, VP_SWEEP_CHUNK, struct vp_sweep_point);
    if (!sweeper)
        return 1;
    uint64_t bytes = pass(sweeper, points, grid.total); /* fills the memo */
    for (size_t i = 0; i < runs; i++) {
        double begin = bench_seconds(CLOCK_MONOTONIC);
        double worked = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        pass(sweeper, points, grid.total);
        seconds[i] = (bench_seconds(CLOCK_MONOTONIC) - begin) / (double)grid.total;
        cpu[i] = (bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - worked) / (double)grid.total;
    }
    bench_print(seconds, runs);
    qsort(cpu, runs, sizeof *cpu, bench_compare);
    printf(" %.9g %" PRIu64 "\n", cpu[runs / 2], bytes);
    vp_sweeper_free(sweeper);
    vp_variants_close(variants);
    vp_arena_free(&arena);
    return 0;
}
