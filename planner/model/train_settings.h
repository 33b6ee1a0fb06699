/* The `train:` block of a scenario: what is trained, in which types, with which optimizer, what is
 * recomputed, and which implementation of each operator keeps what. Filled by import/. */
#ifndef VP_MODEL_TRAIN_SETTINGS_H
#define VP_MODEL_TRAIN_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/model/model.h"

/* X(NAME, "name", states, ...) rows in optimizers.def: what an optimizer keeps per parameter. */
enum vp_optimizer {
#define X(name, text, states, meaning) VP_OPTIMIZER_##name,
#include "planner/model/optimizers.def"
#undef X
    VP_OPTIMIZER_COUNT
};
enum vp_step_loop { VP_LOOP_FOREACH, VP_LOOP_FOR, VP_LOOP_FUSED };

enum vp_attention_impl { VP_IMPL_EAGER, VP_IMPL_SDPA, VP_IMPL_FLASH };
enum vp_gelu { VP_GELU_ERF, VP_GELU_TANH, VP_GELU_NEW };
enum vp_loss_impl { VP_LOSS_UNFUSED, VP_LOSS_CHUNKED, VP_LOSS_FUSED_LINEAR, VP_LOSS_FUSED };

/* Implementations, as far as they decide what is kept for the backward pass. */
struct vp_train_ops {
    enum vp_attention_impl attention;
    bool fused_norm, fused_mlp;
    enum vp_gelu gelu;
    uint64_t dropout_ppb; /* 0: none; its size does not matter beyond that */
    enum vp_loss_impl loss;
    bool logits_upcast;       /* logits become fp32 before the loss */
    bool logits_referenced;   /* the caller holds them until the step is over */
    bool repeat_kv;           /* keys and values are written out to all query heads */
    uint64_t expert_load_ppb; /* tokens of the fullest rank's experts against an even deal, or the
                                 capacity factor; 0: even */
};

enum vp_recompute_kind {
    VP_RECOMPUTE_NONE,
    VP_RECOMPUTE_FULL, /* each layer by itself */
    VP_RECOMPUTE_SELECTIVE,
    VP_RECOMPUTE_SQRT,
    VP_RECOMPUTE_OPTIMAL,
    VP_RECOMPUTE_EVERY,    /* segments of k layers */
    VP_RECOMPUTE_SEGMENTS, /* segments of given lengths from layer 0; the rest runs plain */
    VP_RECOMPUTE_FIRST,    /* the first m layers, each by itself */
    VP_RECOMPUTE_LAYERS,   /* the named layers, each by itself */
    VP_RECOMPUTE_PLAN      /* layer by layer, as the placement optimizer says */
};

/* What `selective` recomputes, a set: names as Megatron's recompute_modules. */
enum vp_selective {
    VP_SELECT_CORE_ATTENTION = 1,
    VP_SELECT_MLP = 2,
    VP_SELECT_MOE = 4,
    VP_SELECT_MOE_ACTIVATION = 8,
    VP_SELECT_NORM = 16,
    VP_SELECT_MLA_UP = 32,
    VP_SELECT_SHARED_EXPERTS = 64
};

/* What a plan does with one layer of the model. */
struct vp_recompute_layer {
    uint32_t segment;   /* first layer of those recomputed together with it */
    uint32_t selective; /* set of enum vp_selective that is recomputed, when it is kept */
    bool recomputed;
};

struct vp_recompute {
    enum vp_recompute_kind kind;
    struct vp_recompute_layer *plan; /* by layer of the model; NULL: none */
    uint64_t every, first;
    uint64_t *list; /* segment lengths or layer indices */
    uint32_t list_count;
    uint32_t selective;   /* set of enum vp_selective */
    bool per_stage_first; /* Megatron's block method: `first` counts in every pipeline stage */
};

/* Adapters that are trained; the base is frozen. */
struct vp_train_lora {
    bool enabled;
    uint64_t rank, slots;
    bool roles[VP_ROLE_COUNT]; /* matrices that have one */
    uint64_t dropout_ppb;
    enum vp_dtype dtype;
    bool dora;
};

struct vp_train {
    uint64_t micro_batch, global_batch, sequence, accumulation;
    bool packing, no_sync;
    enum vp_optimizer optimizer;
    enum vp_step_loop loop;
    enum vp_dtype parameters, gradients, master, optimizer_states; /* master UNSET: none */
    enum vp_dtype autocast;                                        /* UNSET: none */
    struct vp_train_lora lora;
    bool frozen; /* all of the base; frozen_roles: parts of it */
    bool frozen_roles[VP_ROLE_COUNT];
    bool input_grad; /* the first layer's input needs a gradient */
    struct vp_recompute recompute;
    struct vp_train_ops ops;
    bool offload_activations, offload_optimizer, offload_parameters;
    bool compile;
    uint64_t memory_fraction_ppb; /* torch's per-process fraction; 0: not set */
    /* as the user wrote them; resolved into the members above */
    const char *optimizer_name, *loop_name, *recompute_name, *attention_name, *norm_name;
    const char *mlp_name, *gelu_name, *loss_name;
};

#endif
