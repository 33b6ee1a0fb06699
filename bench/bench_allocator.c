/* bench_allocator RUNS training|mixed [SETTINGS]
 *
 * The caching allocator's model replaying EVENTS events: a training loop whose activations grow and
 * shrink layer by layer (few free blocks), or anything in any order with LIVE storages (thousands
 * of them). One trace of a tenth of the events leaves nothing behind and is replayed ten times.
 * Prints "median-seconds least-seconds reserved-bytes": one core, and the reserved peak, which is
 * the same in every run. */
#include <inttypes.h>
#include <string.h>

#include "bench/bench.h"
#include "planner/timeline/allocator.h"

enum { EVENTS = 10000000, ROUNDS = 10, PART = EVENTS / ROUNDS, LIVE = 4000, LAYERS = 126 };

static struct vp_event *trace;
static size_t count;

static uint32_t next_random(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void add(enum vp_event_kind kind, uint32_t id, uint64_t bytes) {
    trace[count++] = (struct vp_event){.kind = (uint8_t)kind, .id = id, .bytes = bytes};
}

/* Forward passes keep ten tensors of a layer, backward passes free them. */
static void make_training(void) {
    enum { KEPT = 10, STEP_EVENTS = LAYERS * (2 * KEPT + 4) };
    static const uint64_t bytes[KEPT] = {16384,   33554432,  50331648,  67108864, 4096,
                                         8388608, 117440512, 117440512, 33554432, 16777216};
    for (uint32_t step = 0; count + STEP_EVENTS <= PART; step++) {
        for (uint32_t layer = 0; layer < LAYERS; layer++) {
            add(VP_EVENT_TAKE, LAYERS * KEPT, 234881024 + (layer + step) % 3 * 65536);
            for (uint32_t i = 0; i < KEPT; i++)
                add(VP_EVENT_TAKE, layer * KEPT + i, bytes[i] + (step % 5) * 512);
            add(VP_EVENT_GIVE, LAYERS * KEPT, 0);
        }
        for (uint32_t layer = LAYERS; layer > 0; layer--) {
            add(VP_EVENT_TAKE, LAYERS * KEPT, 134217728);
            for (uint32_t i = KEPT; i > 0; i--)
                add(VP_EVENT_GIVE, (layer - 1) * KEPT + i - 1, 0);
            add(VP_EVENT_GIVE, LAYERS * KEPT, 0);
        }
    }
}

static void make_mixed(void) {
    static bool live[LIVE];
    uint32_t seed = 1;

    while (count + LIVE < PART) {
        uint32_t id = next_random(&seed) % LIVE, kind = next_random(&seed) % 3;
        uint64_t unit = kind == 0 ? 700 : kind == 1 ? 37 << 10 : 1 << 20;
        add(live[id] ? VP_EVENT_GIVE : VP_EVENT_TAKE, id, unit * (1 + next_random(&seed) % 64));
        live[id] = !live[id];
    }
    for (uint32_t id = 0; id < LIVE; id++)
        if (live[id])
            add(VP_EVENT_GIVE, id, 0);
}

/* Seconds for EVENTS events. */
static double replay(const struct vp_allocator_settings *settings, uint64_t *reserved) {
    struct vp_arena arena = {0};
    struct vp_allocator *allocator = vp_allocator_new(&arena, settings);
    double begin = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);

    for (int i = 0; i < ROUNDS; i++) {
        if (vp_allocator_replay(allocator, trace, count) != VP_REPLAY_OK) {
            fprintf(stderr, "bench: the trace does not replay\n");
            exit(1);
        }
    }
    double seconds = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin;
    *reserved = vp_allocator_stats(allocator).reserved.peak;
    vp_arena_free(&arena);
    return seconds * EVENTS / ((double)count * ROUNDS);
}

int main(int argc, char **argv) {
    static double seconds[BENCH_MAX_RUNS];
    struct vp_arena arena = {0};
    struct vp_allocator_settings settings = vp_allocator_defaults();
    struct vp_allocator_notes notes;
    uint64_t reserved = 0;

    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: bench_allocator RUNS training|mixed [SETTINGS]\n");
        return 2;
    }
    size_t runs = bench_runs(argv[1]);
    if (!vp_allocator_parse(&arena, &settings, &notes, argc == 4 ? argv[3] : "", true)) {
        fprintf(stderr, "bench: %s: %s\n", notes.item[0].key, notes.item[0].text);
        return 2;
    }
    trace = VP_NEW_ARRAY(&arena, PART, struct vp_event);
    if (strcmp(argv[2], "training") == 0)
        make_training();
    else
        make_mixed();
    for (size_t i = 0; i < runs; i++)
        seconds[i] = replay(&settings, &reserved);
    bench_print(seconds, runs);
    printf(" %" PRIu64 "\n", reserved);
    vp_arena_free(&arena);
    return 0;
}
