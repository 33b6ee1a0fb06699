/* What one process may take of one device: arithmetic on what the system says (device_facts.h) and
 * on the card's profile.
 *
 *   a card       total - used - page tables, rounded down to 2 MiB: the kernel keeps back
 *                max(total / 2^14, 8 MiB) for page tables and rounds every allocation up
 *                (linux, amdgpu_amdkfd_gpuvm.c); NVIDIA: what the driver says is free
 *   a partition  total of the card / partitions; what is used is known of the card only: of one
 *                partition likely its share, at most all, at least nothing
 *   an APU       the larger of the carve-out and what the driver may map of the host's memory,
 *                never their sum; the second is ttm.pages_limit x 4096, or less where GTT is
 *                smaller; of several APUs each has its share of the host; no more than the host
 *                has left
 *
 * The process's own context (a few hundred MiB with a GPU runtime) comes out of that. */
#ifndef VP_PLAN_DEVICE_BUDGET_H
#define VP_PLAN_DEVICE_BUDGET_H

#include <stdbool.h>

#include "planner/base/amount.h"
#include "planner/model/device_facts.h"
#include "planner/model/scenario.h"

enum { VP_PAGE_BYTES = 4096, VP_VRAM_STEP_BYTES = 2 << 20 };

enum vp_budget_pool { VP_POOL_VRAM, VP_POOL_GTT };

struct vp_device_budget {
    bool known;              /* false: no total is told */
    uint64_t devices;        /* that the runtime lists for the card */
    uint64_t total_bytes;    /* of one of them */
    const char *total_by;    /* who says so: "HIP", "sysfs", "sysfs, divided by 8", ... */
    uint64_t tables_bytes;   /* that the kernel keeps back */
    struct vp_amount usable; /* for one process now */

    /* APUs */
    bool apu;
    enum vp_budget_pool pool;
    uint64_t limit_bytes; /* of mapped host memory by ttm.pages_limit; 0: not known */
};

/* gpu: the card's profile, NULL where none is known: then it is taken for a card with memory of its
 * own. */
void vp_device_budget(struct vp_arena *arena, struct vp_device_budget *out,
                      const struct vp_device_facts *facts, const struct vp_fact_gpu *card,
                      const struct vp_gpu *gpu);

/* Memory that the kernel keeps back for page tables on a card of that size. */
uint64_t vp_page_table_bytes(uint64_t total_bytes);

#endif
