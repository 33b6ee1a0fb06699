/* The kernels of the cpu back end: plain C on vectors of eight floats, over all cores where OpenMP
 * is there when the program is built. AVX2 is used where the processor has it. FP8 (OCP E4M3) and
 * INT8 are emulated: codes become floats first.
 *
 * Good enough to be worth measuring (a few tenths of the processor's peak), not to be used. */
#ifndef VP_PROBE_CPU_KERNELS_H
#define VP_PROBE_CPU_KERNELS_H

#include "probe/gpu.h"

/* A run: threads, scratch that grows as it is needed, and the time that work took.
 *
 * Times are those of the processors: what the slowest thread computed, plus what it takes to send
 * all threads off and to meet again. Waiting for a processor that another program holds does not
 * count, so that a machine that does other work beside still gives figures; on an idle one it is
 * the time on the wall. Made by vp_cpu_init, freed by vp_cpu_free. */
struct vp_cpu {
    unsigned threads;
    bool avx2;
    double busy_us;   /* of all work so far */
    double start_us;  /* to start all threads and to wait for them, when nobody disturbs */
    double *spent_us; /* of each thread, in the last launch */
    float *shared;    /* activations as floats */
    uint64_t shared_floats;
    float **own; /* one per thread */
    uint64_t own_floats;
};

enum { VP_CPU_THREADS_MOST = 256 };

void vp_cpu_init(struct vp_cpu *cpu);
void vp_cpu_free(struct vp_cpu *cpu);
enum vp_dev_status vp_cpu_launch(struct vp_dev *device, struct vp_cpu *cpu,
                                 const struct vp_dev_work *work);
/* On one thread, as a program copies. */
void vp_cpu_copy(struct vp_cpu *cpu, void *to, const void *from, uint64_t bytes);

#endif
