/* bench_read RUNS json|yaml FILE
 *
 * Reads a document into a node tree again and again, from memory. Prints "median-seconds
 * least-seconds", in time of one core. */
#include <string.h>

#include "bench/bench.h"
#include "planner/doc/json.h"
#include "planner/doc/yaml.h"

enum { MAX_BYTES = 64 * 1024 * 1024 };

static enum vp_status read_once(const struct vp_ctx *outer, struct vp_bytes text, const char *name,
                                bool yaml) {
    struct vp_arena arena = {0};
    struct vp_ctx ctx = *outer;
    struct vp_node *root;

    ctx.arena = &arena;
    enum vp_status status =
        yaml ? vp_yaml_read(&ctx, &root, text, name) : vp_json_read(&ctx, &root, text, name);
    vp_arena_free(&arena);
    return status;
}

int main(int argc, char **argv) {
    double seconds[BENCH_MAX_RUNS];
    struct vp_arena arena = {0};
    struct vp_diags diags = {.arena = &arena};
    struct vp_ctx ctx = {.arena = &arena, .diags = &diags, .io = &vp_io_posix};
    struct vp_bytes text;

    if (argc != 4 || (strcmp(argv[2], "json") != 0 && strcmp(argv[2], "yaml") != 0)) {
        fprintf(stderr, "usage: bench_read RUNS json|yaml FILE\n");
        return 2;
    }
    size_t runs = bench_runs(argv[1]);
    if (vp_io_read(&ctx, &text, argv[3], MAX_BYTES) != VP_OK) {
        fprintf(stderr, "bench: cannot read %s\n", argv[3]);
        return 1;
    }
    for (size_t i = 0; i < runs; i++) {
        double begin = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        if (read_once(&ctx, text, argv[3], strcmp(argv[2], "yaml") == 0) != VP_OK) {
            fprintf(stderr, "bench: %s is faulty\n", argv[3]);
            return 1;
        }
        seconds[i] = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin;
    }
    bench_print(seconds, runs);
    printf("\n");
    vp_arena_free(&arena);
    return 0;
}
