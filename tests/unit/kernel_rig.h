/* Runs a device kernel on host memory, for tests: as the C that it also is, block after block, or
 * through OpenCL on the processor (PoCL) when such a library is installed. */
#ifndef VP_TESTS_KERNEL_RIG_H
#define VP_TESTS_KERNEL_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RIG_BUFFERS = 5 };

/* As struct vp_numbers of the kernels. */
struct rig_numbers {
    uint32_t m, n, k, heads, kv_heads, head_dim, option;
    float scale0, scale1;
};

struct rig_launch {
    const char *kernel;
    uint32_t blocks, lanes;
    void *buffer[RIG_BUFFERS]; /* read and written */
    size_t bytes[RIG_BUFFERS];
    struct rig_numbers numbers;
};

typedef bool (*rig_run)(const struct rig_launch *launch);

bool rig_run_host(const struct rig_launch *launch); /* false: no such kernel */

/* NULL and a reason when OpenCL is not there. */
rig_run rig_opencl(const char *source, const char **why);

#endif
