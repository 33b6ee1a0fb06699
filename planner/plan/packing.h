/* Several programs side by side on the GPUs of one node: plain values, filled by api/pack.c, shown
 * by reports/pack_report.c. Bytes are of one GPU unless the name says otherwise. */
#ifndef VP_PLAN_PACKING_H
#define VP_PLAN_PACKING_H

#include "planner/plan/changes.h"
#include "planner/plan/placing.h"

/* What a program leaves on its GPUs in phases in which it does not work. */
enum vp_pack_idle {
    VP_IDLE_NEVER,         /* it works in all of them */
    VP_IDLE_RESIDENT,      /* everything: nothing is given back */
    VP_IDLE_ASLEEP,        /* vLLM's sleep mode: weights and cache are given back */
    VP_IDLE_BETWEEN_STEPS, /* training: what lives from step to step, allocator emptied */
};

struct vp_pack_program {
    const char *input;            /* as on the command line */
    const char *name;             /* of the scenario in its file; else the input */
    const struct vp_result *plan; /* as proposed; as it is where nothing is proposed */
    uint32_t works;               /* bit p: in phase p */
    bool alone;                   /* it fits the node by itself */
    uint32_t width;               /* GPUs; 0: none proposed */
    uint64_t gpus;                /* bit g: GPU g */
    uint64_t takes_bytes;         /* working: of the card, its context and reserve included */
    uint64_t idle_bytes;          /* not working */
    enum vp_pack_idle idle;       /* why that is so */
    uint64_t others_bytes;        /* what others leave it without, at most, where it works */
    const char *share_field;      /* vLLM, SGLang: the share of the card to set; else NULL */
    const char *share_from, *share_to;
    struct vp_patch *patch;
    uint32_t patches;
    const char *command;
    uint64_t host_bytes; /* of host memory, sleeping weights included */
};

struct vp_pack {
    const char *gpu, *gpu_text; /* id, name */
    uint32_t count;
    uint64_t memory_bytes, reserved_bytes;  /* of a card; taken by none of the programs */
    uint64_t host_memory_bytes, host_bytes; /* of the node, 0: not known; needed of it */
    struct vp_pack_program *program;
    uint32_t programs;
    const char *phase[VP_PLACING_PHASES]; /* names; one without a name: all the time */
    uint32_t phases;
    struct vp_placing placing;
    enum vp_verdict verdict;
    uint64_t short_bytes; /* of the fullest GPU, or of the program that does not fit by itself */
    const char *short_text;
    uint64_t tried;
};

#endif
