/* bench_timeline RUNS PROFILES FILE
 *
 * The step of every pipeline stage of a training scenario as events, through the allocator, with
 * all instants kept: what `vramplan timeline` does before it writes. Prints "median-seconds
 * least-seconds bytes": one core, all stages together, and the highest peak. */
#include <inttypes.h>

#include "bench/bench.h"
#include "planner/import/input.h"
#include "planner/plan/plan.h"
#include "planner/plan/train_timeline.h"

static double run(const struct vp_result *result, uint64_t *highest) {
    struct vp_arena arena = {0};
    double begin = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);

    for (uint32_t i = 0; i < result->training.stages; i++) {
        struct vp_timeline timeline;
        if (!vp_timeline_make(&arena, &timeline, result, i)) {
            fprintf(stderr, "bench: stage %" PRIu32 " cannot be walked\n", i);
            exit(1);
        }
        if (timeline.walk->steady.peak.bytes > *highest)
            *highest = timeline.walk->steady.peak.bytes;
    }
    double seconds = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin;
    vp_arena_free(&arena);
    return seconds;
}

int main(int argc, char **argv) {
    static struct vp_diags diags;
    static double seconds[BENCH_MAX_RUNS];
    struct vp_arena arena = {0};
    struct vp_ctx ctx = {.arena = &arena, .diags = &diags, .io = &vp_io_posix};
    struct vp_scenarios scenarios;
    struct vp_result result;
    uint64_t highest = 0;

    if (argc != 4) {
        fprintf(stderr, "usage: bench_timeline RUNS PROFILES FILE\n");
        return 2;
    }
    size_t runs = bench_runs(argv[1]);
    ctx.profiles = argv[2];
    diags.arena = &arena;
    if (vp_input_read(&ctx, &scenarios, argv[3], NULL, 0) != VP_OK || scenarios.count != 1 ||
        vp_plan_run(&ctx, &result, scenarios.items[0]) != VP_OK || !result.training.stage) {
        for (uint32_t i = 0; i < diags.count; i++)
            fprintf(stderr, "bench: %s\n", diags.items[i].message);
        return 1;
    }
    for (size_t i = 0; i < runs; i++)
        seconds[i] = run(&result, &highest);
    bench_print(seconds, runs);
    printf(" %" PRIu64 "\n", highest);
    vp_arena_free(&arena);
    return 0;
}
