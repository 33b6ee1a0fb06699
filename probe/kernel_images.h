/* The device kernels that come with the program: code objects for some AMD GPUs, compiled ahead of
 * time, and the text of all, for compilers at run time. Both are generated (`make kernels`) from
 * probe/kernels and kept in probe/kernels/generated. */
#ifndef VP_PROBE_KERNEL_IMAGES_H
#define VP_PROBE_KERNEL_IMAGES_H

#include <stddef.h>
#include <stdint.h>

#include "planner/base/arena.h"

/* An ELF file, in 64-bit words as a little-endian machine has them (drivers for these GPUs exist on
 * no other). */
struct vp_kernel_image {
    const char *arch; /* "gfx942" */
    const uint64_t *words;
    size_t bytes;
};

/* NULL when there is none for that GPU. */
const struct vp_kernel_image *vp_kernel_image_find(const char *arch);

/* The whole text, one string. */
const char *vp_kernel_text(struct vp_arena *arena);

extern const char *const vp_kernel_lines[]; /* ends with NULL */
extern const struct vp_kernel_image vp_kernel_image_gfx90a, vp_kernel_image_gfx942,
    vp_kernel_image_gfx950, vp_kernel_image_gfx1100, vp_kernel_image_gfx1201;

#endif
