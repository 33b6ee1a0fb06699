/* Settings of llama.cpp and of ollama's runner, in llama-server's own terms. Filled by import/. */
#ifndef VP_MODEL_LLAMA_SETTINGS_H
#define VP_MODEL_LLAMA_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/model/dtype.h"

enum vp_flash { VP_FLASH_OFF, VP_FLASH_ON, VP_FLASH_AUTO };
enum vp_split { VP_SPLIT_LAYER, VP_SPLIT_NONE, VP_SPLIT_ROW, VP_SPLIT_TENSOR };

/* What llama.cpp's log names buffers after. */
enum vp_llama_buffer {
    VP_LLAMA_MODEL,
    VP_LLAMA_KV,
    VP_LLAMA_STATE,
    VP_LLAMA_COMPUTE,
    VP_LLAMA_OUTPUT,
    VP_LLAMA_BUFFERS
};

/* Where a tensor or a layer is: the index of a GPU, or one of these. */
enum { VP_LLAMA_HOST = -1, VP_LLAMA_BY_LAYER = -2 /* not said */ };

enum { VP_LLAMA_ALL_LAYERS = 999, VP_LLAMA_MAX_DEVICES = 16, VP_LLAMA_MAX_OVERRIDES = 64 };

/* --override-tensor PATTERN=BUFFER: tensors whose names match go there. */
struct vp_llama_override {
    const char *pattern;  /* a regular expression over tensor names, as written */
    const void *compiled; /* the same for override_matches */
    int32_t device;       /* index of the GPU; -1: the host */
};

struct vp_llama {
    uint64_t context;    /* ctx_size: tokens over all slots as asked for; 0: the model's own */
    uint64_t gpu_layers; /* n_gpu_layers; the output layer counts as one */
    bool fit_context;    /* not given: the engine's own fit lowers it to what there is room for */
    bool fit_layers;
    uint64_t fit_margin_mib;    /* --fit-target, of every device */
    uint64_t fit_context_least; /* --fit-ctx */
    uint64_t batch, ubatch;     /* logical and physical batch, tokens */
    uint64_t slots;             /* parallel */
    bool unified;               /* one cache for all slots */
    enum vp_flash flash;
    enum vp_dtype type_k, type_v;
    enum vp_split split;
    uint64_t main_gpu;                        /* the only one with split NONE */
    uint64_t share_ppb[VP_LLAMA_MAX_DEVICES]; /* tensor_split; shares: 0 */
    uint32_t shares;
    bool swa_full, no_kv_offload, no_op_offload, mmap, embeddings;
    uint64_t outputs_max;    /* n_outputs_max: tokens of a batch whose logits are wanted; 0: all */
    uint64_t rollback;       /* n_rs_seq: further copies of the recurrent state */
    bool cpu_moe;            /* experts of all layers stay on the host */
    uint64_t cpu_moe_layers; /* n_cpu_moe: those of the first layers */
    /* the engine's own fit: those of the first layers of each GPU */
    uint64_t gpu_host_experts[VP_LLAMA_MAX_DEVICES];
    struct vp_llama_override override[VP_LLAMA_MAX_OVERRIDES];
    uint32_t overrides;
    bool (*override_matches)(const void *compiled, const char *name);
    /* as the user wrote them; resolved into the members above */
    const char *flash_name, *split_name, *split_text, *override_text;
    const char *mmproj;    /* a second file: the encoder of images; NULL: none */
    uint64_t mmproj_bytes; /* of its tensors, each padded as a GPU does */
};

#endif
