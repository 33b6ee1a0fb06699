/* bench_process RUNS PROGRAM ARGUMENT...
 *
 * Runs a program several times and prints "median-seconds least-seconds peak-kib status": wall time
 * from before fork to after wait, and the largest resident set of any run. It is a program of its
 * own because a child's resident set counts from that of the process that forks: from a script it
 * would be the interpreter's. The program's output goes nowhere. Its statuses 0, 1 and 3 are
 * verdicts; any other one ends the runs. */
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

int main(int argc, char **argv) {
    double seconds[BENCH_MAX_RUNS];
    struct rusage usage;
    int status = 0;

    if (argc < 3) {
        fprintf(stderr, "usage: bench_process RUNS PROGRAM ARGUMENT...\n");
        return 2;
    }
    size_t runs = bench_runs(argv[1]);
    for (size_t i = 0; i < runs; i++) {
        double begin = bench_seconds(CLOCK_MONOTONIC);
        status = run(argv + 2);
        seconds[i] = bench_seconds(CLOCK_MONOTONIC) - begin;
        if (status == 2 || status > 3) {
            fprintf(stderr, "bench: %s ended with status %d\n", argv[2], status);
            return 1;
        }
    }
    getrusage(RUSAGE_CHILDREN, &usage);
    bench_print(seconds, runs);
    printf(" %ld %d\n", usage.ru_maxrss, status);
    return 0;
}
