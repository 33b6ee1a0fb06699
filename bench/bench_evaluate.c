/* bench_evaluate RUNS PROFILES MODEL [FIELD=VALUE...]
 *
 * vp_plan_evaluate on a built-in model, the call that sweeps and searches make. Context and
 * concurrency change from call to call, so that no call can reuse the one before; the arena is
 * rewound between calls. Prints "median-seconds least-seconds bytes": the time of one call on one
 * core, over runs of SLICE seconds, and the mean need of the first BATCH scenarios, which is the
 * same in every run of the same planner. */
#include <inttypes.h>
#include <string.h>

#include "bench/bench.h"
#include "planner/import/input.h"
#include "planner/plan/plan.h"

enum { MAX_SETTINGS = 16, BATCH = 1000 };
static const double SLICE = 0.1;

/* Splits FIELD=VALUE; the text is changed. */
static struct vp_setting setting_of(char *text) {
    char *equals = strchr(text, '=');

    if (!equals) {
        fprintf(stderr, "bench: \"%s\" is not FIELD=VALUE\n", text);
        exit(2);
    }
    *equals = '\0';
    return (struct vp_setting){.path = text, .value = equals + 1, .key = text};
}

static struct vp_scenario *read_scenario(struct vp_ctx *ctx, char **words, int count) {
    struct vp_setting settings[MAX_SETTINGS];
    struct vp_scenarios scenarios;
    size_t n = 0;

    for (int i = 1; i < count && n < MAX_SETTINGS; i++)
        settings[n++] = setting_of(words[i]);
    if (vp_input_read(ctx, &scenarios, words[0], settings, n) == VP_OK && scenarios.count == 1)
        return scenarios.items[0];
    for (uint32_t i = 0; i < ctx->diags->count; i++)
        fprintf(stderr, "bench: %s\n", ctx->diags->items[i].message);
    exit(1);
}

/* BATCH evaluations; the sum of what they need. */
static uint64_t evaluate_batch(struct vp_arena *arena, struct vp_scenario *scenario,
                               uint64_t *turn) {
    struct vp_arena_mark mark = vp_arena_mark(arena);
    struct vp_result result;
    uint64_t sum = 0, longest = scenario->engine.max_model_len;

    for (int i = 0; i < BATCH; i++) {
        uint64_t n = (*turn)++;
        scenario->serve.context = 1 + n * 7919 % longest;
        scenario->serve.concurrency = 1 + n % 64;
        if (!vp_plan_evaluate(arena, &result, scenario)) {
            fprintf(stderr, "bench: an evaluation overflowed\n");
            exit(1);
        }
        sum += result.devices[result.worst].need.likely;
        vp_arena_rewind(arena, mark);
    }
    return sum;
}

int main(int argc, char **argv) {
    double seconds[BENCH_MAX_RUNS];
    struct vp_arena arena = {0}, scratch = {0};
    struct vp_diags diags = {.arena = &arena};
    struct vp_ctx ctx = {.arena = &arena, .diags = &diags, .io = &vp_io_posix};
    uint64_t turn = 0, need;

    if (argc < 4) {
        fprintf(stderr, "usage: bench_evaluate RUNS PROFILES MODEL [FIELD=VALUE...]\n");
        return 2;
    }
    size_t runs = bench_runs(argv[1]);
    ctx.profiles = argv[2];
    struct vp_scenario *scenario = read_scenario(&ctx, argv + 3, argc - 3);
    vp_arena_alloc(&scratch, 1); /* a chunk to rewind to, kept between the calls */
    need = evaluate_batch(&scratch, scenario, &turn) / BATCH;
    for (size_t i = 0; i < runs; i++) {
        double begin = bench_seconds(CLOCK_PROCESS_CPUTIME_ID), now;
        uint64_t first = turn;
        do {
            evaluate_batch(&scratch, scenario, &turn);
            now = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        } while (now - begin < SLICE);
        seconds[i] = (now - begin) / (double)(turn - first);
    }
    bench_print(seconds, runs);
    printf(" %" PRIu64 "\n", need);
    vp_arena_free(&scratch);
    vp_arena_free(&arena);
    return 0;
}
