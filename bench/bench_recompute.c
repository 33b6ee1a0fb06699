/* bench_recompute RUNS CLASS STAGES KINDS PERCENT
 *
 * Places recomputation on a made chain: transformer-like stages of KINDS kinds in turn (0: every
 * stage different in all sizes and times), four tape options each, then a head. The budget stands
 * PERCENT of the way from the least peak of the class to that of keeping everything; "all" instead
 * of a number is the whole frontier. Prints "median-seconds least-seconds gap count": time of one
 * core, the certified gap as a share of the time, the labels or the points of the frontier. */
#include <inttypes.h>
#include <string.h>

#include "bench/bench.h"
#include "planner/recompute/judge.h"
#include "planner/recompute/recompute.h"

enum { OPTIONS = 4 };

/* Numbers that are the same in every run (xorshift). */
static uint64_t next_number(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* base, less or more by up to a third. */
static uint64_t vary(uint64_t *state, uint64_t base) {
    return base - base / 3 + next_number(state) % (2 * (base / 3) + 1);
}

struct arrays {
    uint64_t *x, *g, *f, *b, *wn;
    struct vp_tape_option (*options)[OPTIONS];
    const struct vp_tape_option **lists;
    uint32_t *counts;
};

/* A block as of a 70 B model with 8 K tokens on 8 devices: full tape, without the attention core,
 * without the MLP's products, nothing but the input. Bytes and nanoseconds. */
static void make_stage(struct arrays *a, uint32_t i, uint64_t *state) {
    uint64_t mib = 1 << 20, tape = vary(state, 270 * mib), forward = vary(state, 5400000);
    uint64_t work = vary(state, 30 * mib);
    uint64_t kept[OPTIONS] = {tape, tape - tape / 3, tape / 4, 0};
    uint64_t again[OPTIONS] = {0, forward / 90, forward / 3, forward};
    a->f[i] = forward;
    a->b[i] = 2 * forward;
    a->wn[i] = work;
    for (int j = 0; j < OPTIONS; j++)
        a->options[i][j] =
            (struct vp_tape_option){kept[j], again[j], work, 2 * work + tape - kept[j]};
    a->counts[i] = OPTIONS;
}

static void copy_stage(struct arrays *a, uint32_t i, uint32_t from) {
    a->f[i] = a->f[from];
    a->b[i] = a->b[from];
    a->wn[i] = a->wn[from];
    memcpy(a->options[i], a->options[from], sizeof a->options[i]);
    a->counts[i] = a->counts[from];
}

static struct vp_chain make_chain(struct vp_arena *arena, uint32_t n, uint32_t kinds) {
    struct arrays a = {.x = VP_NEW_ARRAY(arena, n + 1, uint64_t),
                       .g = VP_NEW_ARRAY(arena, n + 1, uint64_t),
                       .f = VP_NEW_ARRAY(arena, n, uint64_t),
                       .b = VP_NEW_ARRAY(arena, n, uint64_t),
                       .wn = VP_NEW_ARRAY(arena, n, uint64_t),
                       .options = vp_arena_array(arena, n, sizeof *a.options),
                       .lists = VP_NEW_ARRAY(arena, n, const struct vp_tape_option *),
                       .counts = VP_NEW_ARRAY(arena, n, uint32_t)};
    uint64_t state = 88172645463325252;
    for (uint32_t i = 0; i < n; i++) {
        a.lists[i] = a.options[i];
        a.x[i] = a.g[i] = kinds ? 16777216 : vary(&state, 16777216);
        if (kinds && i >= kinds && i + 1 < n)
            copy_stage(&a, i, i - kinds);
        else
            make_stage(&a, i, &state);
    }
    a.x[n] = a.g[n] = 4;
    a.g[0] = 0;
    a.counts[n - 1] = 1; /* the head: logits and their gradient */
    a.options[n - 1][0] = (struct vp_tape_option){16777216, 0, 262668288, 262668288};
    return (struct vp_chain){.n = n,
                             .x = a.x,
                             .g = a.g,
                             .f = a.f,
                             .b = a.b,
                             .wn = a.wn,
                             .options = a.lists,
                             .option_counts = a.counts,
                             .body_end = n - 1};
}

static uint64_t peak_of_all_kept(struct vp_arena *arena, const struct vp_chain *chain) {
    struct vp_recompute_plan plan;
    struct vp_chain_schedule schedule;
    struct vp_judgement j;
    vp_one_option_plan(arena, &plan, chain, 0);
    vp_plan_schedule(arena, &schedule, chain, &plan);
    vp_judge(arena, &j, chain, &schedule);
    return j.peak_bytes;
}

static uint64_t budget_at(struct vp_arena *arena, const struct vp_chain *chain,
                          enum vp_recompute_class class, uint64_t percent) {
    struct vp_recompute_answer answer;
    uint64_t most = peak_of_all_kept(arena, chain);
    vp_recompute_solve(arena, &answer, chain, class, 0, 1);
    return answer.least_bytes + (most - answer.least_bytes) / 100 * percent;
}

static enum vp_recompute_class class_named(const char *name) {
    for (enum vp_recompute_class class = 0; class < VP_PLACE_CLASSES; class ++)
        if (strcmp(name, vp_recompute_class_name(class)) == 0)
            return class;
    fprintf(stderr, "bench: no class \"%s\"\n", name);
    exit(2);
}

int main(int argc, char **argv) {
    double seconds[BENCH_MAX_RUNS], gap = 0;
    struct vp_arena arena = {0};
    uint64_t count = 0;

    if (argc != 6) {
        fprintf(stderr, "usage: bench_recompute RUNS CLASS STAGES KINDS PERCENT|all\n");
        return 2;
    }
    size_t runs = bench_runs(argv[1]);
    enum vp_recompute_class class = class_named(argv[2]);
    struct vp_chain chain =
        make_chain(&arena, (uint32_t)bench_runs(argv[3]), (uint32_t)atoi(argv[4]));
    bool all = strcmp(argv[5], "all") == 0;
    uint64_t budget = all ? 0 : budget_at(&arena, &chain, class, (uint64_t)atoi(argv[5]));
    for (size_t i = 0; i < runs; i++) {
        struct vp_arena_mark mark = vp_arena_mark(&arena);
        struct vp_recompute_answer answer = {0};
        struct vp_frontier frontier = {0};
        double begin = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        if (all)
            vp_recompute_frontier(&arena, &frontier, &chain, class, 1);
        else
            vp_recompute_solve(&arena, &answer, &chain, class, budget, 1);
        seconds[i] = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin;
        if (all ? frontier.count == 0 : !answer.feasible) {
            fprintf(stderr, "bench: no plan\n");
            return 1;
        }
        gap = (double)answer.gap_ppb * 1e-9;
        count = all ? frontier.count : answer.labels;
        vp_arena_rewind(&arena, mark);
    }
    bench_print(seconds, runs);
    printf(" %.3g %" PRIu64 "\n", gap, count);
    vp_arena_free(&arena);
    return 0;
}
