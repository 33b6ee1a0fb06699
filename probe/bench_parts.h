/* What the files of the bench share: the device, its memory for operands, one item's launches. Not
 * for others. */
#ifndef VP_PROBE_BENCH_PARTS_H
#define VP_PROBE_BENCH_PARTS_H

#include "probe/bench.h"

/* Device memory for operands: what stays at one place, then what is gone through. */
struct vp_bench_pool {
    uint8_t *memory;
    uint64_t bytes;
    bool full; /* more could not be had */
};

struct vp_bench_session {
    struct vp_dev device;
    const struct vp_bench_run *run;
    struct vp_dev_info info;
    uint32_t devices;
    uint64_t context_bytes; /* 0: not known */
    struct vp_bench_pool pool;
    uint8_t *pattern[VP_DEV_TYPES]; /* what operands are filled with; NULL: not made yet */
};

enum { VP_TASK_LAUNCHES = 32 };

/* The launches that are one round. Buffers with rotates[] go through `copies` places. */
struct vp_bench_task {
    struct vp_bench_session *session;
    struct vp_dev_work work[VP_TASK_LAUNCHES];
    bool rotates[VP_TASK_LAUNCHES][VP_DEV_BUFFERS];
    bool vendor[VP_TASK_LAUNCHES];
    uint32_t launches;
    uint64_t stride, copies;
    bool wait; /* for the device after each round */
};

/* Bytes that operands are spread over, so that no cache holds them. */
uint64_t vp_bench_spread(const struct vp_bench_session *s);
/* Normally distributed numbers of that type, over and over; 8-bit codes are legal in all formats.
 */
enum vp_dev_status vp_bench_fill(struct vp_bench_session *s, void *memory, uint64_t bytes,
                                 enum vp_dev_type type);
/* Memory of at least that size, as large as the list needs at first. */
enum vp_dev_status vp_bench_pool_need(struct vp_bench_session *s, uint64_t bytes);
/* Measures, fills value, timing, clock. */
enum vp_dev_status vp_bench_time(struct vp_bench_session *s, struct vp_sample *out,
                                 struct vp_bench_task *task);

/* bench_memory.c: MEMORY items. bench_block.c: BLOCK items. */
enum vp_dev_status vp_bench_memory(struct vp_bench_session *s, struct vp_sample *out,
                                   const struct vp_bench_item *item);
enum vp_dev_status vp_bench_block(struct vp_bench_session *s, struct vp_sample *out,
                                  const struct vp_bench_item *item);

#endif
