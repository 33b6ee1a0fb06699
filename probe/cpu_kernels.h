/* The kernels of the cpu back end: plain C on vectors of eight floats, over all cores where OpenMP
 * is there when the program is built. AVX2 is used where the processor has it. FP8 (OCP E4M3) and
 * INT8 are emulated: codes become floats first.
 *
 * Good enough to be worth measuring (a few tenths of the processor's peak), not to be used. */
#ifndef VP_PROBE_CPU_KERNELS_H
#define VP_PROBE_CPU_KERNELS_H

#include "probe/gpu.h"

/* Memory of a run that grows as it is needed. Zeroed at first, freed by vp_cpu_free. */
struct vp_cpu {
    unsigned threads;
    bool avx2;
    float *shared; /* activations as floats */
    uint64_t shared_floats;
    float **own; /* one per thread */
    uint64_t own_floats;
};

void vp_cpu_init(struct vp_cpu *cpu);
void vp_cpu_free(struct vp_cpu *cpu);
enum vp_dev_status vp_cpu_launch(struct vp_dev *device, struct vp_cpu *cpu,
                                 const struct vp_dev_work *work);

#endif
