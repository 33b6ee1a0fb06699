/* An engine's accounting constants for one version and one card, as picked from
 * the engine profiles (profiles/engines). The formulas that use them are code (planner/memory/). */
#ifndef VP_MODEL_RULES_H
#define VP_MODEL_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/base/amount.h"
#include "planner/model/calibration.h"

/* How vLLM arrives at the bytes of its KV cache (F-VLLM-01 ... in planner/memory/vllm.h). */
enum vp_vllm_budget {
    VP_VLLM_TORCH_PEAK, /* 2023: requested - torch peak; communicators not counted */
    VP_VLLM_V0,         /* requested - weights - non-torch - activation peak */
    VP_VLLM_V1_USED,    /* requested - (torch peak + device used - torch current) */
    VP_VLLM_V1,         /* requested - weights - non-torch increase - activation peak increase */
    VP_VLLM_V1_GRAPHS   /* the same, minus the graph estimate of a trial capture */
};

/* Whether something is so in a version, where that is not known for each of them. */
enum vp_perhaps { VP_NEVER, VP_MAYBE, VP_ALWAYS };

/* llama.cpp and ollama: what a build of a certain age does (profiles/engines/llama.cpp.yaml). */
struct vp_llama_rules {
    /* defaults of the server */
    uint64_t default_slots, default_gpu_layers;
    bool default_unified; /* unless the number of slots is given */
    bool default_flash;   /* flash attention wherever it can be, else only when asked for */
    bool embeddings;      /* put out whether asked for or not (ollama's former runner) */
    bool fit;             /* chooses context and layers itself when neither is given */

    /* the cache */
    uint64_t cells_multiple, cells_multiple_flash; /* its length is rounded up to these */
    bool always_unified;                           /* slots never have caches of their own */
    bool window_cache;    /* sliding-window layers keep their window, else the whole context */
    uint64_t window_kept; /* tokens such a layer keeps; 0: the model's window */
    bool latent;          /* MLA keeps the latent, else keys and values of all heads */

    /* compute buffers */
    bool mask_cast;              /* the attention mask is 32 bit, and copied for flash attention */
    bool scratch_counted;        /* 16-bit copies of a quantised cache are part of the buffer */
    bool index_tensors;          /* rows are written to the cache by index */
    bool rotated;                /* a quantised cache is rotated by small matrices */
    enum vp_perhaps few_outputs; /* the server reserves logits for a token per slot only */
    uint64_t host_inputs;        /* hidden states of a batch in the host's buffer */
    uint64_t copies;             /* of inputs, when several GPUs overlap */
    struct vp_amount spread_logits; /* permille of a buffer that logits make, */
    struct vp_amount spread_layers; /* that layers make, */
    struct vp_amount spread_copies; /* and where weights of the host are copied over */

    /* what the runtime takes beside the buffers: base + permille of the compute buffer */
    struct vp_amount pool_base;
    struct vp_amount pool_permille;
};

/* Training frameworks (profiles/engines/pytorch.yaml, transformers.yaml, megatron.yaml, ...). Kinds
 * of rules as C types; a PERMILLE or AMOUNT rule is an interval, AMOUNT in bytes. */
struct vp_train_rules {
#define VP_RULE_TRUTH bool
#define VP_RULE_COUNT uint64_t
#define VP_RULE_AMOUNT struct vp_amount
#define VP_RULE_PERMILLE struct vp_amount
#define X(name, kind, meaning) VP_RULE_##kind name;
#include "planner/model/train_rules.def"
#undef X
#undef VP_RULE_TRUTH
#undef VP_RULE_COUNT
#undef VP_RULE_AMOUNT
#undef VP_RULE_PERMILLE
};

struct vp_rules {
    struct vp_llama_rules llama;
    struct vp_train_rules train;

    /* all engines: window layers keep their window only (vLLM: in groups of layer types) */
    bool window_groups;

    /* vLLM */
    enum vp_vllm_budget budget;
    bool tokens_by_concurrency; /* the token line is int(max_concurrency x max_model_len) */
    bool default_chunked;       /* chunked prefill unless told otherwise */
    bool default_prefix_caching;
    bool whole_prompts; /* a request is admitted when its whole prompt fits, not its first chunk */
    uint64_t state_pages_cached; /* state pages per request and group with prefix caching */
    uint64_t latent_head_dim;    /* MLA: every head's key and value are cached, this long; 0: the
                                    latent is */
    uint64_t utilization_ppb;
    uint64_t block_size;
    uint64_t max_num_seqs, max_batched_tokens; /* of the API server on this card */

    /* activation peak: the sampler's run, per sequence and vocabulary entry in 1/1000 bytes */
    uint64_t sampler_millibytes;
    bool sampler_adds_logits; /* and one copy of the logits in the compute type on top */
    uint64_t activation_fixed_bytes;
    uint64_t multimodal_bytes; /* outputs that the encoder's profile run keeps */
    bool workspace_held;       /* MoE workspace stays allocated during the sampler's run */
    uint64_t activation_low_permille, activation_high_permille; /* of the estimate */
    uint64_t activation_slack_bytes;                            /* at least so much both ways */

    struct vp_amount non_torch;       /* bytes, one tensor-parallel rank */
    struct vp_amount non_torch_group; /* bytes, several ranks: communicators included */
    struct vp_amount graph_base;      /* bytes, plus per layer: */
    struct vp_amount graph_per_layer;
    struct vp_amount load_excess; /* what "model loading took" shows beyond the tensors */

    /* SGLang: what mem_fraction_static leaves out by default, and how pools are shared */
    uint64_t static_base_bytes;  /* reserved in any case */
    uint64_t static_token_bytes; /* per token of a prefill chunk, at least 2048 of them */
    uint64_t static_graph_bytes; /* per sequence of the largest captured batch */
    uint64_t static_rank_bytes;  /* per rank of tensor x pipeline parallelism */
    uint64_t static_least_bytes; /* at least so much, on cards above static_least_above_bytes */
    uint64_t static_least_above_bytes;
    /* with data-parallel attention: at all, per rank and captured sequence, and as much again
     * for batches beyond 300 */
    uint64_t static_attention_bytes, static_attention_graph_bytes, static_attention_large_bytes;
    uint64_t prefill_graph_bytes; /* reserved for graphs of prefill batches */
    uint64_t vision_share_ppb;    /* the share is multiplied by this for multimodal models */
    uint64_t unchunked_tokens;    /* a prefill batch when prompts are not chunked */
    uint64_t window_share_ppb;    /* tokens of the window pool per token of the full pool */
    uint64_t state_share_ppb;     /* bytes of the state pool per byte of the token pool */

    /* transformers */
    bool loads_fp32; /* unquantised weights become fp32 unless torch_dtype says otherwise */

    /* LoRA slots: which matrices have them beside those of the layers */
    enum vp_perhaps lora_vocabulary;    /* embedding and head */
    enum vp_perhaps lora_experts;       /* routed experts */
    enum vp_perhaps lora_joint_experts; /* an expert's gate and up share one A matrix */
    bool lora_joint_layers;             /* so do q, k and v, and gate and up of a dense layer */
    uint64_t lora_extra_rows;           /* vocabulary rows reserved per slot */
    bool tower_skipped;                 /* without images the encoder is not even loaded */

    uint64_t expert_width_multiple, expert_hidden_multiple; /* MXFP4 kernels pad expert sizes */
    uint64_t state_align, latent_align; /* hybrid block sizes are multiples of these */
    /* what served requests of this kind of card take beside their kernels; engine NULL: not known
     */
    struct vp_serving_fit latency;
    const char *overhead_class; /* name of the row that was used */
    const char *overhead_source;
    bool calibrated;
};

#endif
