/* Settings of PyTorch's caching allocator, and the text in which users give them: the value of
 * PYTORCH_ALLOC_CONF (PYTORCH_CUDA_ALLOC_CONF and PYTORCH_HIP_ALLOC_CONF before torch 2.9), such as
 * "expandable_segments:True,roundup_power2_divisions:[256:1,512:2,>:4]".
 *
 * Sources: pytorch c10/core/AllocatorConfig.h and .cpp, c10/cuda/CUDAAllocatorConfig.h. */
#ifndef VP_TIMELINE_ALLOCATOR_SETTINGS_H
#define VP_TIMELINE_ALLOCATOR_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/base/arena.h"

enum { VP_ROUNDUP_INTERVALS = 16 }; /* 1 MiB, 2 MiB, ... 32 GiB and more */

#define VP_BILLION UINT64_C(1000000000)
#define VP_NO_SPLIT_LIMIT UINT64_MAX

struct vp_allocator_settings {
    uint64_t device_bytes;    /* device total; 0: no limit */
    uint64_t other_bytes;     /* of it, not this allocator's: context, libraries, other processes */
    uint64_t fraction_ppb;    /* the process may take this share of the total; 0: not set */
    uint64_t max_split_bytes; /* blocks from here on are not split */
    uint64_t max_rounding_bytes;  /* such a block serves requests that are less than this smaller */
    uint64_t large_segment_bytes; /* segment for requests between 1 and 10 MiB */
    uint64_t collect_ppb;         /* garbage collection from this share of the fraction; 0: never */
    uint32_t divisions[VP_ROUNDUP_INTERVALS]; /* steps between two powers of two; 0, 1: none */
    bool expandable;
};

enum vp_allocator_fault {
    VP_ALLOC_UNKNOWN,    /* no such key: PyTorch refuses to start */
    VP_ALLOC_BAD_VALUE,  /* PyTorch refuses the value */
    VP_ALLOC_UNMODELLED, /* another allocator, which this model does not describe */
    VP_ALLOC_NO_EFFECT   /* fine, but moves no bytes */
};

struct vp_allocator_note {
    enum vp_allocator_fault fault;
    const char *key;  /* as the user wrote it; in the arena */
    const char *text; /* static: what is expected, or why it has no effect */
};

enum { VP_ALLOCATOR_NOTES = 32 };

struct vp_allocator_notes {
    struct vp_allocator_note item[VP_ALLOCATOR_NOTES];
    uint32_t count; /* what exceeds the array is not noted, but fails all the same */
};

/* What holds when nothing is set; no limit. */
struct vp_allocator_settings vp_allocator_defaults(void);
/* Reads `text` over *out. expandable_works false: the build ignores expandable_segments (ROCm
 * before torch 2.11 or ROCm 7.0), which is noted. False when PyTorch would refuse the text or the
 * allocator asked for is not modelled; *notes says why, key by key. */
bool vp_allocator_parse(struct vp_arena *arena, struct vp_allocator_settings *out,
                        struct vp_allocator_notes *notes, const char *text, bool expandable_works);

#endif
