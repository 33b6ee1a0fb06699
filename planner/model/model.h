/* The model as the planner knows it, whatever format described it. Layers are indices into a
 * short list of block kinds, not N copies. A model is filled by import/, checked by
 * vp_model_validate and not changed afterwards.
 *
 * All sizes are element counts of the unsharded model. 0 means "has none", never "unknown": what
 * is not known was refused by the importer. */
#ifndef VP_MODEL_MODEL_H
#define VP_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/base/ctx.h"
#include "planner/model/gguf_table.h"
#include "planner/model/scheme.h"

enum vp_role {
#define X(name, class_, shard, names) VP_ROLE_##name,
#include "planner/model/roles.def"
#undef X
    VP_ROLE_COUNT
};

enum vp_class {
#define X(name, text, quantised) VP_CLASS_##name,
#include "planner/model/classes.def"
#undef X
    VP_CLASS_COUNT
};

/* How tensor parallelism divides a tensor over the ranks of a stage. */
enum vp_shard {
    VP_SHARD_NONE,  /* whole on every rank */
    VP_SHARD_HEADS, /* by attention heads */
    VP_SHARD_KV,    /* by KV heads; replicated when there are more ranks than heads */
    VP_SHARD_WIDTH, /* by the feed-forward width */
    VP_SHARD_VOCAB, /* by vocabulary rows, padded */
    VP_SHARD_EXPERT /* by experts (expert parallel) or by their width (tensor parallel) */
};

enum vp_attention_kind {
    VP_ATTENTION_NONE,
    VP_ATTENTION_GQA,
    VP_ATTENTION_MLA,
    VP_ATTENTION_LINEAR,
    VP_ATTENTION_COMPRESSED /* DeepSeek V4: one head that is key and value, old tokens condensed */
};
enum vp_linear_kind {
    VP_LINEAR_GIVEN,       /* hand-described: parameters, state and convolution as numbers */
    VP_LINEAR_GATED_DELTA, /* Qwen3-Next, Qwen3.5 */
    VP_LINEAR_KDA,         /* Kimi Linear */
    VP_LINEAR_MAMBA2,      /* Mamba 2, Nemotron-H */
    VP_LINEAR_MAMBA1,      /* Mamba, Falcon-Mamba, Jamba */
    VP_LINEAR_SHORT_CONV,  /* LFM2: a gated convolution, no recurrence */
    VP_LINEAR_LIGHTNING    /* MiniMax-01: linear attention with a fixed decay */
};
/* The function between the matrices of a feed-forward, as a config's hidden_act names it. */
enum vp_activation_kind {
    VP_ACTIVATION_UNKNOWN, /* not said, or none of these */
    VP_ACTIVATION_SILU,
    VP_ACTIVATION_GELU,
    VP_ACTIVATION_GELU_TANH,
    VP_ACTIVATION_GELU_NEW, /* the tanh form written out in Python */
    VP_ACTIVATION_RELU,
    VP_ACTIVATION_RELU2
};
enum vp_mlp_kind {
    VP_MLP_NONE,
    VP_MLP_LINEAR,
    VP_MLP_PLAIN,
    VP_MLP_GATED
}; /* 0, 1, 2, 3 matrices */
/* weight (RMSNorm, LayerNorm without bias); weight and bias; neither */
enum vp_norm_kind { VP_NORM_RMS, VP_NORM_LAYER, VP_NORM_PLAIN };
enum vp_qk_norm { VP_QK_NORM_NONE, VP_QK_NORM_HEAD, VP_QK_NORM_FULL }; /* per head_dim; all heads */

struct vp_attention {
    enum vp_attention_kind kind;
    uint64_t heads, kv_heads;
    uint64_t head_dim, v_head_dim;
    uint64_t window;         /* sliding window in tokens, 0: full */
    uint64_t chunk;          /* chunked attention in tokens, 0: none */
    bool qkv_bias, out_bias; /* of a recurrent layer: on its input and output projections */
    bool no_key_bias;        /* qkv_bias leaves the key projection out */
    bool output_gate;        /* the query projection carries a gate of the same width */
    bool sinks;              /* one learned logit per head */
    bool key_is_value;  /* the value projection is the key projection (K and V are cached apart) */
    bool shares_cache;  /* reads another layer's KV cache, has none of its own */
    bool bidirectional; /* of an encoder: all tokens see each other, nothing is cached */
    bool head_gate;     /* a projection to one output gate per head */
    uint64_t source_tokens; /* cross attention: keys and values are those of an encoder's output of
                               at most this many tokens; 0: of the layer's own input */
    enum vp_qk_norm qk_norm;
    uint64_t rotary_dim; /* 0: no rotary embedding */

    /* MLA: q_lora_rank 0 = a plain query projection */
    uint64_t q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim;
    uint64_t index_heads, index_head_dim; /* sparse-attention indexer, 0: none */

    bool expanded; /* keys and values are cached head by head, not as the latent (MiniCPM3) */

    /* compressed: q_lora_rank and head_dim as above, the output projection in two steps */
    uint64_t out_groups, out_lora_rank;
    uint64_t compress; /* tokens per condensed entry; 0: the layer has its window only */
    uint64_t overlap;  /* 2: consecutive entries overlap, their projections are twice as wide; 1 */

    /* linear attention and state space */
    enum vp_linear_kind linear;
    uint64_t key_heads, key_dim;     /* gated delta, KDA; Mamba 2: groups, state size; Mamba 1: 1,
                                        state size */
    uint64_t value_heads, value_dim; /* heads, head size; Mamba 1: 1, inner width */
    uint64_t step_rank;              /* Mamba 1: rank of the step-size projection */
    uint64_t conv_kernel;
    uint64_t conv_channels;  /* convolved channels, the width of the convolution state */
    uint64_t state_elements; /* recurrent state of one sequence */
    uint64_t parameters;     /* VP_LINEAR_GIVEN only */
    bool conv_bias;
    bool state_norms;          /* Mamba 1: norms on step size, B and C (Jamba) */
    bool no_norm;              /* Mamba 2: none before the output projection (Falcon-H1) */
    enum vp_dtype state_dtype; /* UNSET: the compute type */
};

struct vp_mlp {
    enum vp_mlp_kind kind;
    uint64_t intermediate;
    bool bias;
};

struct vp_moe {
    enum vp_mlp_kind kind; /* of one expert; NONE: no experts */
    uint64_t experts, top_k;
    uint64_t intermediate;        /* of one expert */
    uint64_t shared_intermediate; /* of all shared experts together, 0: none */
    uint64_t input;        /* width the experts see; 0: the hidden size (latent MoE differs) */
    uint64_t zero_experts; /* the router may also choose these, which have no weights */
    bool bias;             /* on the experts' matrices */
    bool router_bias;
    bool score_bias;    /* a correction bias per expert, fp32 */
    bool shared_switch; /* a learned gate before the shared expert */
};

struct vp_block {
    uint32_t count; /* layers of this kind */
    uint32_t norms; /* norms of hidden size */
    enum vp_norm_kind norm;
    struct vp_attention attention;
    struct vp_attention second; /* another mixer of the same block, mostly none: cross attention
                                   behind the first one, a state-space half beside it */
    struct vp_mlp mlp;
    struct vp_moe moe;
    uint8_t scheme[VP_ROLE_COUNT]; /* index into the model's schemes */
};

/* Tensors beside the decoder stack: vision tower, projector, per-layer embeddings, MTP layers. */
struct vp_extra {
    const char *name; /* "vision tower", "projector" */
    enum vp_class class_;
    uint64_t matrix_elements; /* divided by tensor parallelism when `sharded` */
    uint64_t other_elements;  /* whole on every rank */
    struct vp_block *layer;   /* decoder layers of this kind come on top; NULL: none */
    uint32_t layers;          /* how many */
    bool sharded;
    bool counted;     /* belongs to params.total */
    bool first_stage; /* lives on the first pipeline stage; else on the last */
    bool loaded;      /* in memory when serving (MTP layers are not, without speculation) */
    uint8_t scheme;
};

/* The encoder of images as a profile run and a prompt see it, beside its tensors (extras). */
struct vp_encoder {
    bool known;             /* the sizes below are */
    bool video;             /* takes videos too, whose largest item is no larger */
    uint64_t hidden, width; /* of its layers: residual, feed-forward */
    uint64_t item_patches;  /* patches of the largest image */
    uint64_t item_tokens;   /* tokens that the largest image becomes, with what frames it */
    uint64_t item_outputs;  /* vectors among them */
    uint64_t patch_elements;
    uint64_t output_width; /* elements of one output vector */
    uint64_t image_tokens; /* of any image; 0: depends on its size */
};

/* Bytes of a checkpoint's tensors by where they live and how they are divided. */
struct vp_checkpoint {
    bool known;
    const char *source;
    uint64_t tensors;
    uint64_t total_bytes;
    /* [layer_count + 2][VP_SHARD_EXPERT + 1]: row 0 before the layers, row layer_count + 1 after */
    uint64_t (*bytes)[VP_SHARD_EXPERT + 1];
    uint64_t extra_bytes;   /* vision tower and projector */
    uint64_t skipped_bytes; /* tensors that an engine does not load (MTP layers) */
};

struct vp_model {
    const char *name;
    const char *model_type; /* as the description says; "blocks" when hand-written */
    struct vp_pos pos;      /* of the description */
    uint64_t hidden, vocab;
    uint64_t max_position;      /* trained context, 0: not said */
    uint64_t learned_positions; /* learned position vectors, 0: none */
    uint64_t token_types;       /* learned segment vectors (BERT), 0: none */
    bool embedding_norm;        /* a norm behind the embedding, of the final norm's kind */
    bool embedding, lm_head, tied;
    bool final_norm;
    enum vp_norm_kind final_norm_kind;
    enum vp_activation_kind activation;
    bool head_bias;
    enum vp_dtype dtype;         /* of the description (torch_dtype), bf16 when it says nothing */
    uint64_t rotary_positions;   /* rows of all cos/sin tables that an engine keeps; 0: none */
    bool multimodal;             /* an encoder's outputs enter the stack */
    bool encoder_only;           /* every layer is bidirectional: nothing is generated or cached */
    bool stored_quantised;       /* as its checkpoint has it, before precision.weights */
    bool gradient_checkpointing; /* the description asks for it, a setting of training */
    uint64_t hyper; /* residual streams mixed around each half of a block (DeepSeek V4's
                       hyper-connections); 0: one plain residual */

    struct vp_scheme schemes[VP_MAX_SCHEMES];
    uint32_t scheme_count;
    uint8_t head_scheme, embedding_scheme;

    struct vp_block *blocks;
    uint32_t block_count;
    uint16_t *layers; /* block index of each layer */
    uint32_t layer_count;

    struct vp_extra *extras;
    uint32_t extra_count;

    struct vp_encoder encoder;

    struct vp_checkpoint checkpoint;
    struct vp_gguf_table *gguf; /* tensors of the GGUF file it was read from; NULL: of none */
    bool gguf_keys;             /* described by GGUF metadata, with or without a tensor table */
    const char *cache_unknown;  /* why the sizes of its cache and states are not known, so that no
                                   answer about them may be given; NULL: they are known */
};

enum { VP_MAX_LAYERS = 4096, VP_MAX_BLOCKS = 512 };

const char *vp_role_names(enum vp_role role); /* the "names" column */
enum vp_class vp_role_class(enum vp_role role);
enum vp_shard vp_role_shard(enum vp_role role);
const char *vp_class_name(enum vp_class class_);
bool vp_class_quantised(enum vp_class class_);

/* Index of an equal scheme in the model's list, added when it is new; VP_MAX_SCHEMES when full. */
uint32_t vp_model_scheme(struct vp_model *model, const struct vp_scheme *scheme);
/* Finishes a model of `count` layers described one by one: folds equal ones into block kinds. */
void vp_model_fold(struct vp_ctx *ctx, struct vp_model *model, const struct vp_block *layers,
                   uint32_t count);
/* A copy whose blocks, extras and layers can be changed; the tensor tables are shared. */
struct vp_model *vp_model_copy(struct vp_arena *arena, const struct vp_model *model);
/* The model's own layers for the tokens after next; NULL: it has none. */
const struct vp_extra *vp_model_mtp(const struct vp_model *model);
/* Everything that must hold between the sizes; faults are VP_D_MODEL_FIELD diagnostics. */
bool vp_model_has_experts(const struct vp_model *model);
enum vp_status vp_model_validate(struct vp_ctx *ctx, const struct vp_model *model);

#endif
