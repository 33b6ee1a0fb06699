/* From a piece of work (gpu.h) to launches of the device kernels (kernels/): which entry, how many
 * blocks and lanes, which buffers and numbers. Pure; the same for every driver. What the kernels do
 * not do is refused with a reason. */
#ifndef VP_PROBE_GPU_LAUNCH_H
#define VP_PROBE_GPU_LAUNCH_H

#include "probe/gpu.h"

enum vp_kernel_entry {
#define X(name) VP_ENTRY_##name,
#include "probe/kernel_entries.def"
#undef X
    VP_KERNEL_ENTRIES
};
const char *vp_kernel_entry_name(enum vp_kernel_entry entry); /* "vp_copy" */

/* What vp_describe says of a module, and what the device has. */
struct vp_kernel_traits {
    uint32_t wave;       /* lanes of a wave */
    uint32_t side;       /* rows and columns of a block of a product */
    bool fp8_units;      /* matrix units take FP8; else it is decoded on the way */
    bool fp8_fnuz;       /* FP8 is E4M3 FNUZ */
    bool products;       /* there are kernels for products */
    uint32_t step_bytes; /* of a row of an operand that a step takes */
    uint64_t compute_units;
};
/* False: these eight numbers are not from our kernels. */
bool vp_kernel_traits_read(struct vp_kernel_traits *out, const uint32_t numbers[8]);

/* Kept in step with struct vp_numbers of kernels/kernel_prologue.h. */
struct vp_kernel_numbers {
    uint32_t m, n, k, heads, kv_heads, head_dim, option;
    float scale0, scale1;
};

enum { VP_KERNEL_BUFFERS = 5, VP_KERNEL_LAUNCHES = 3 };

struct vp_kernel_launch {
    enum vp_kernel_entry entry;
    uint32_t blocks, lanes;
    void *buffer[VP_KERNEL_BUFFERS];
    struct vp_kernel_numbers numbers;
};

struct vp_kernel_plan {
    struct vp_kernel_launch launch[VP_KERNEL_LAUNCHES];
    uint32_t launches;
};

/* Device memory that the launches need beside the buffers of the work. */
uint64_t vp_kernel_scratch_bytes(const struct vp_dev_work *work);

/* scratch: that much device memory. VP_DEV_UNSUPPORTED: the reason is in device->why. */
enum vp_dev_status vp_kernel_plan(struct vp_dev *device, struct vp_kernel_plan *out,
                                  const struct vp_dev_work *work,
                                  const struct vp_kernel_traits *traits, void *scratch);

#endif
