/* llama.cpp's buffers, device by device, as its log prints them: model, KV cache, recurrent state,
 * compute and output. Exact arithmetic of what ggml allocates: tensors are placed one by one, the
 * compute buffer is the largest of the phases of the prompt's graph.
 *
 * Places stand in the order GPU0, GPU1, ..., GPU_Host (pinned host memory), CPU (pageable, or
 * mapped from the file). Only those that hold something are listed.
 *
 * Constants and version ranges: profiles/engines/llama.cpp.yaml and ollama.yaml. Sources: llama.cpp
 * src/llama-model.cpp, llama-kv-cache*.cpp, llama-context.cpp, ggml-alloc.c; checked against
 * public logs and the library's own no_alloc figures. */
#ifndef VP_MEMORY_LLAMA_H
#define VP_MEMORY_LLAMA_H

#include "planner/memory/ledger.h"
#include "planner/model/scenario.h"

/* What a compute buffer was largest for, and so which setting makes it smaller. */
enum vp_llama_phase {
    VP_LLAMA_PHASE_NONE,
    VP_LLAMA_PHASE_LOGITS,       /* outputs x vocabulary: n_outputs_max, ubatch_size */
    VP_LLAMA_PHASE_FEED_FORWARD, /* ubatch_size */
    VP_LLAMA_PHASE_ATTENTION,    /* flash_attn, ubatch_size, ctx_size, cache types */
    VP_LLAMA_PHASE_MASK_CAST,    /* older versions: the mask becomes 16 bit */
    VP_LLAMA_PHASE_COPY          /* weights of the host copied over for a batch */
};

enum { VP_LLAMA_PLACES = VP_LLAMA_MAX_DEVICES + 2 };

struct vp_llama_place {
    char id[16]; /* "GPU0", "GPU_Host", "CPU" */
    int32_t gpu; /* index; -1: host memory */
    bool has[VP_LLAMA_BUFFERS];
    struct vp_amount buffer[VP_LLAMA_BUFFERS]; /* bytes */
    uint64_t mapped_bytes;     /* of the model's, mapped from the file and not allocated */
    uint64_t read_bytes;       /* of the model's, that a token reads: all but what is looked up, */
    uint64_t expert_bytes;     /* among them routed experts, of which it reads its own */
    enum vp_llama_phase phase; /* of the compute buffer */
    struct vp_amount encoder;  /* of images, in buffers of its own */
    struct vp_amount pool;     /* what the runtime takes beside the buffers: context, pools */
    uint64_t largest_bytes;    /* largest single allocation */
    uint64_t total_bytes, reserved_bytes; /* of the device; 0 for the host when not known */
    uint32_t layers;                      /* blocks placed here */
};

struct vp_llama_plan {
    struct vp_llama_place place[VP_LLAMA_PLACES];
    uint32_t places;
    uint32_t gpus;           /* the first so many are GPUs */
    uint64_t n_ctx;          /* tokens over all slots, after padding or fit */
    uint64_t cells, streams; /* of the cache of full-attention layers */
    uint64_t window_cells;   /* of sliding-window layers; 0: none */
    uint64_t paged_bytes;  /* of what is mapped, as much as host memory cannot hold beside all else;
                              0: none, or its size is not known. Set by the plan's evaluation */
    uint64_t token_bytes;  /* of all layers whose cache grows with the context */
    uint64_t state_bytes;  /* of all recurrent layers, one sequence, without rollback copies */
    uint64_t gpu_layers;   /* after fit; the output layer counts */
    uint64_t host_experts; /* fit: layers on GPUs whose experts stay on the host, */
    uint64_t gpu_host_experts[VP_LLAMA_MAX_DEVICES]; /* the first ones of each GPU */
    uint64_t layer_slots;                            /* blocks + 1 */
    bool fitted;                       /* context or layers were chosen by the engine's own fit */
    bool pipeline;                     /* copies of inputs for overlapping several GPUs */
    bool flash;                        /* flash attention, "auto" resolved */
    const struct vp_gguf_table *table; /* of the model: read, or made up */
    const char *refused; /* why llama.cpp would not start (quantised V without flash attention,
                            cache length not a multiple of its block); NULL: it does */
    bool overflow;
};

/* Fills the plan and adds the ledger's rows; device indices are those of the places, GPUs first.
 * A model without a tensor table gets one as llama.cpp's converters would write it. */
void vp_llama_make(struct vp_arena *arena, struct vp_llama_plan *out, struct vp_ledger *ledger,
                   const struct vp_scenario *scenario);
const char *vp_llama_phase_name(enum vp_llama_phase phase);
const char *vp_llama_buffer_key(enum vp_llama_buffer buffer); /* "model_mib" */

#endif
