/* bench_process RUNS PROGRAM ARGUMENT...
 *
 * Runs a program several times and prints "median-seconds least-seconds cpu-seconds peak-kib": wall
 * time from before fork to after wait; the median of the time on a core, which does not grow when
 * other work takes its turns; the largest resident set of any run. It is a program of its own
 * because a child's resident set counts from that of the process that forks: from a script it would
 * be the interpreter's. The program's output goes nowhere. Its statuses 0, 1 and 3 are verdicts;
 * any other one ends the runs. */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"

static int run(char **command) {
    int status;
    pid_t child = fork();

    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDOUT_FILENO);
        dup2(nowhere, STDERR_FILENO);
        execv(command[0], command);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* Time on a core of the children so far. */
static double cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

int main(int argc, char **argv) {
    double seconds[BENCH_MAX_RUNS], cpu[BENCH_MAX_RUNS];
    struct rusage usage;

    if (argc < 3) {
        fprintf(stderr, "usage: bench_process RUNS PROGRAM ARGUMENT...\n");
        return 2;
    }
    size_t runs = bench_runs(argv[1]);
    for (size_t i = 0; i < runs; i++) {
        double begin = bench_seconds(CLOCK_MONOTONIC), cpu_begin = cpu_seconds();
        int status = run(argv + 2);
        seconds[i] = bench_seconds(CLOCK_MONOTONIC) - begin;
        cpu[i] = cpu_seconds() - cpu_begin;
        if (status == 2 || status > 3) {
            fprintf(stderr, "bench: %s ended with status %d\n", argv[2], status);
            return 1;
        }
    }
    getrusage(RUSAGE_CHILDREN, &usage);
    qsort(seconds, runs, sizeof *seconds, bench_compare);
    qsort(cpu, runs, sizeof *cpu, bench_compare);
    printf("%.9g %.9g %.9g %ld\n", seconds[runs / 2], seconds[0], cpu[runs / 2], usage.ru_maxrss);
    return 0;
}
