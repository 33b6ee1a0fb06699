/* What a system says about its GPUs, without measuring: plain values that vramplan-probe collects
 * (probe/sysfs.h, probe/facts.h) and `vramplan device` shows. Rows: device_facts.def. */
#ifndef VP_MODEL_DEVICE_FACTS_H
#define VP_MODEL_DEVICE_FACTS_H

#include <stdint.h>

#define VP_FACT_NUMBER(member) uint64_t member;
#define VP_FACT_TEXT(member) const char *member;

/* A process that holds memory of a GPU. */
struct vp_fact_holder {
#define HOLDER_NUMBER VP_FACT_NUMBER
#define HOLDER_TEXT VP_FACT_TEXT
#include "planner/model/device_facts.def"
};

/* One card, or one half of a package where the driver lists these apart. */
struct vp_fact_gpu {
#define GPU_NUMBER VP_FACT_NUMBER
#define GPU_TEXT VP_FACT_TEXT
#include "planner/model/device_facts.def"
    struct vp_fact_holder *holders; /* the largest first */
    uint32_t holder_count;
};

struct vp_device_facts {
#define NUMBER VP_FACT_NUMBER
#define TEXT VP_FACT_TEXT
#include "planner/model/device_facts.def"
    struct vp_fact_gpu *gpus; /* by PCI address */
    uint32_t gpu_count;
};

enum { VP_FACT_GPUS = 128, VP_FACT_HOLDERS = 64 /* of one GPU; the largest are kept */ };

#endif
