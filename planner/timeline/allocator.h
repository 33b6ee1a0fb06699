/* PyTorch's caching allocator for CUDA and HIP, as rules replayed over events: how much is reserved
 * from the driver for what a step allocates, and where a device runs out of memory.
 *
 * Sizes are rounded to 512 bytes (or by roundup_power2_divisions); requests up to 1 MiB come from
 * the small pool, larger ones from the large pool, each per stream. The smallest free block that is
 * large enough is taken, the lower address first, and split when the rest is worth it; a miss gets
 * a segment from the driver (2 MiB; 20 MiB; or up to a multiple of 2 MiB). Freed blocks merge with
 * free neighbours. When the driver has nothing left, cached segments go back to it. With
 * expandable_segments one address range per pool and stream grows by pages of 2 or 20 MiB.
 *
 * Left out: private pools of captured graphs, callbacks, and that memory of the driver is itself
 * fragmented. Work of another stream is done at a VP_EVENT_SYNC or when memory runs out, not by a
 * clock. Addresses of new segments grow, in the order in which they were taken.
 *
 * Source: pytorch c10/cuda/CUDACachingAllocator.cpp. Speed: see bench/bench_allocator.c. */
#ifndef VP_TIMELINE_ALLOCATOR_H
#define VP_TIMELINE_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/base/arena.h"
#include "planner/timeline/allocator_settings.h"
#include "planner/timeline/event.h"

enum vp_replay {
    VP_REPLAY_OK,
    VP_REPLAY_OUT_OF_MEMORY, /* the storage was not made; giving it back is then allowed */
    VP_REPLAY_BAD_EVENT      /* no such kind, stream or storage, or a storage made twice */
};

/* One figure over time, in bytes or counts. */
struct vp_gauge {
    uint64_t now, peak;
};

struct vp_allocator_stats {
    struct vp_gauge allocated; /* rounded sizes of what is in use */
    struct vp_gauge requested; /* the same, as asked for */
    struct vp_gauge active;    /* allocated, and freed but still used by another stream */
    struct vp_gauge reserved;  /* taken from the driver */
    struct vp_gauge segments;  /* an expandable one counts while its address range exists */
    /* The most that was allocated while reserved stood at its peak: what is missing to the peak was
     * taken from the driver and not needed. */
    uint64_t allocated_at_reserved_peak;
    uint64_t free_blocks, largest_free;  /* now */
    uint64_t driver_takes, driver_gives; /* segments or mappings */
    uint64_t retries;                    /* requests that made the cache go back to the driver */
    uint64_t failures;                   /* out of memory */
    uint64_t failed_at;                  /* first failure: number of the event, from 0 */
    uint64_t failed_bytes;               /* and what it asked for */
};

struct vp_allocator;

/* Lives in the arena. */
struct vp_allocator *vp_allocator_new(struct vp_arena *arena,
                                      const struct vp_allocator_settings *settings);
enum vp_replay vp_allocator_apply(struct vp_allocator *allocator, const struct vp_event *event);
/* All events; going on after what did not fit. The first result that is not VP_REPLAY_OK; a bad
 * event ends the replay. */
enum vp_replay vp_allocator_replay(struct vp_allocator *allocator, const struct vp_event *events,
                                   size_t count);
/* free_blocks and largest_free are found by a walk, the rest is at hand. */
struct vp_allocator_stats vp_allocator_stats(const struct vp_allocator *allocator);
/* Reserved now: what a walk over a step asks at every event. */
uint64_t vp_allocator_reserved(const struct vp_allocator *allocator);
/* Segments and mappings taken or given back so far: while it stands, the cache serves all. */
uint64_t vp_allocator_driver_calls(const struct vp_allocator *allocator);
/* Reserved and not needed, at the reserved peak. */
uint64_t vp_allocator_fragmentation(const struct vp_allocator_stats *stats);
/* Where a storage lies; false: it has no memory. */
bool vp_allocator_find(const struct vp_allocator *allocator, uint32_t id, uint64_t *out_address,
                       uint64_t *out_size);
/* The size that a request takes. */
uint64_t vp_allocator_round(const struct vp_allocator_settings *settings, uint64_t bytes);

#endif
