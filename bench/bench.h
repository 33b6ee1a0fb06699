/* What the benchmarks share: clocks, and the middle and the best of several runs. */
#ifndef VP_BENCH_BENCH_H
#define VP_BENCH_BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BENCH_MAX_RUNS = 1000 };

/* CLOCK_MONOTONIC for whole processes; CLOCK_PROCESS_CPUTIME_ID for loops on one core, which other
 * work on the machine then disturbs less. Seconds. */
static inline double bench_seconds(clockid_t clock) {
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline int bench_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Prints the median and the smallest of n figures (which it sorts) without an end of line. */
static inline void bench_print(double *figures, size_t n) {
    qsort(figures, n, sizeof *figures, bench_compare);
    printf("%.9g %.9g", figures[n / 2], figures[0]);
}

/* A number of runs from the command line; exits when it is none. */
static inline size_t bench_runs(const char *text) {
    char *end;
    long n = strtol(text, &end, 10);

    if (*end || n < 1 || n > BENCH_MAX_RUNS) {
        fprintf(stderr, "bench: \"%s\" is not a number of runs (1 to %d)\n", text, BENCH_MAX_RUNS);
        exit(2);
    }
    return (size_t)n;
}

#endif
