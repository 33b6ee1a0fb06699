/* What the kernel tells about GPUs in plain text files: memory, partitions, who holds it, limits of
 * shared memory. Needs no library and no device that answers. AMD: /sys/class/drm and
 * /sys/class/kfd; NVIDIA: /proc/driver/nvidia, which names the cards but not their memory.
 *
 * VRAMPLAN_SYSFS=DIR is read in place of /sys, and then DIR/../proc, DIR/../opt and DIR/../dev in
 * place of those at the root. Any file may be missing, unreadable or nonsense: what is not told
 * stays unknown. Texts are reduced to plain characters of bounded length. */
#ifndef VP_PROBE_SYSFS_H
#define VP_PROBE_SYSFS_H

#include "planner/base/ctx.h"
#include "planner/model/device_facts.h"

/* Everything lives in the context's arena. No diagnostics are added. */
void vp_sysfs_read(struct vp_ctx *ctx, struct vp_device_facts *out);

/* 90010 -> "gfx90a": the compute driver's number, two digits for each part behind the first;
 * NULL for one that is none. */
const char *vp_sysfs_arch(struct vp_arena *arena, uint64_t version);

#endif
