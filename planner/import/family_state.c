/* State-space families and their hybrids: Mamba 1 and 2, Jamba, Bamba, Granite 4, Falcon-H1; short
 * convolutions (LFM2); lightning attention (MiniMax-01, M1).
 *
 * States are those that vLLM keeps: per layer and sequence the recurrence, in the config's type or
 * the compute type, and the last kernel - 1 columns of the convolution. */
#include "planner/import/hf_reader.h"

#include <string.h>

#include "planner/base/text.h"

/* ---- Mamba 1 ---- */

struct mamba1_keys {
    const char *state, *kernel, *rank, *conv_bias, *bias;
};

static void mamba1(struct vp_hf *hf, struct vp_attention *a, const struct mamba1_keys *keys,
                   uint64_t inner) {
    const struct vp_node *rank = vp_hf_find(hf, keys->rank);

    memset(a, 0, sizeof *a);
    a->kind = VP_ATTENTION_LINEAR;
    a->linear = VP_LINEAR_MAMBA1;
    a->key_heads = a->value_heads = 1;
    a->key_dim = vp_hf_size(hf, keys->state);
    a->value_dim = a->conv_channels = inner;
    a->conv_kernel = vp_hf_size(hf, keys->kernel);
    a->step_rank = rank && vp_text_eq(vp_node_text(rank), "auto")
                       ? vp_ceil_div(hf->model->hidden, 16)
                       : vp_hf_size(hf, keys->rank);
    a->conv_bias = vp_hf_flag(hf, keys->conv_bias, true);
    a->qkv_bias = a->out_bias = vp_hf_flag(hf, keys->bias, false);
    a->state_elements = a->value_dim * a->key_dim;
    a->state_dtype = vp_hf_state_dtype(hf);
}

static const struct mamba1_keys plain_mamba1 = {"state_size", "conv_kernel", "time_step_rank",
                                                "use_conv_bias", "use_bias"};

/* One mixer behind one norm, no feed-forward. */
void vp_family_mamba(struct vp_hf *hf) {
    uint64_t inner =
        vp_hf_find(hf, "intermediate_size")
            ? vp_hf_size(hf, "intermediate_size")
            : vp_hf_product(hf, "expand", vp_hf_size(hf, "expand"), hf->model->hidden, 1);

    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        hf->layers[i].mlp.kind = VP_MLP_NONE;
        mamba1(hf, &hf->layers[i].attention, &plain_mamba1, inner);
    }
}

/* ---- RWKV-4 ---- */

/* Time mixing: three matrices in and one out, five vectors; channel mixing: the feed-forward, a
 * gate of hidden x hidden and two vectors. A sequence's state: numerator, denominator and largest
 * exponent in fp32, and the last input of both halves. */
void vp_family_rwkv(struct vp_hf *hf) {
    uint64_t hidden = hf->model->hidden;
    uint64_t inner = vp_hf_size_or(hf, "attention_hidden_size", hidden);
    uint64_t width = vp_hf_size_or(hf, "intermediate_size",
                                   vp_hf_product(hf, "intermediate_size", 4, hidden, 1));
    uint64_t matrices = vp_hf_product(hf, "attention_hidden_size", 4, hidden, inner);
    uint64_t gate = vp_hf_product(hf, "hidden_size", hidden, hidden, 1);

    hf->model->embedding_norm = true;
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        struct vp_attention *a = &hf->layers[i].attention;
        memset(a, 0, sizeof *a);
        a->kind = VP_ATTENTION_LINEAR;
        a->linear = VP_LINEAR_GIVEN;
        a->parameters = matrices + gate + 2 * inner + 5 * hidden;
        a->state_elements = 3 * inner;
        a->state_dtype = VP_DTYPE_FP32;
        a->conv_channels = 2 * hidden;
        a->conv_kernel = 2; /* one column */
        hf->layers[i].mlp.intermediate = width;
    }
}

/* Jamba: attention and experts each in every n-th layer from an offset; norms on the state's
 * inputs. */
void vp_family_jamba(struct vp_hf *hf) {
    static const struct mamba1_keys keys = {"mamba_d_state", "mamba_d_conv", "mamba_dt_rank",
                                            "mamba_conv_bias", "mamba_proj_bias"};
    uint64_t attention = vp_hf_size(hf, "attn_layer_period");
    uint64_t attention_from = vp_hf_size_or(hf, "attn_layer_offset", 4);
    uint64_t experts = vp_hf_size(hf, "expert_layer_period");
    uint64_t experts_from = vp_hf_size_or(hf, "expert_layer_offset", 1);
    uint64_t inner = vp_hf_size(hf, "mamba_expand") * hf->model->hidden;
    uint64_t count = vp_hf_size(hf, "num_experts");

    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        struct vp_block *layer = &hf->layers[i];
        if (i % attention != attention_from) {
            mamba1(hf, &layer->attention, &keys, inner);
            layer->attention.state_norms = true;
        }
        if (count > 1 && i % experts == experts_from)
            vp_hf_experts(hf, layer, hf->intermediate);
    }
    hf->model->rotary_positions = 0;
}

/* ---- Mamba 2 ---- */

struct mamba2_keys {
    const char *heads, *dim, *groups, *state, *kernel, *conv_bias, *bias;
};

static const struct mamba2_keys plain_mamba2 = {
    "num_heads", "head_dim", "n_groups", "state_size", "conv_kernel", "use_conv_bias", "use_bias"};
static const struct mamba2_keys hybrid_mamba2 = {
    "mamba_n_heads", "mamba_d_head",    "mamba_n_groups", "mamba_d_state",
    "mamba_d_conv",  "mamba_conv_bias", "mamba_proj_bias"};

/* inner: the width that heads x head size must have; 0: not given */
static void mamba2(struct vp_hf *hf, struct vp_attention *a, const struct mamba2_keys *keys,
                   uint64_t inner) {
    const struct vp_node *dim = vp_hf_find(hf, keys->dim);
    bool derived = dim && vp_text_eq(vp_node_text(dim), "auto");

    memset(a, 0, sizeof *a);
    a->kind = VP_ATTENTION_LINEAR;
    a->linear = VP_LINEAR_MAMBA2;
    a->value_heads = vp_hf_size(hf, keys->heads);
    if (hf->failed)
        return;
    a->value_dim = derived ? inner / a->value_heads : vp_hf_size(hf, keys->dim);
    a->key_heads = vp_hf_size(hf, keys->groups);
    a->key_dim = vp_hf_size(hf, keys->state);
    a->conv_kernel = vp_hf_size(hf, keys->kernel);
    a->conv_bias = vp_hf_flag(hf, keys->conv_bias, true);
    a->qkv_bias = a->out_bias = vp_hf_flag(hf, keys->bias, false);
    a->conv_channels = a->value_heads * a->value_dim + 2 * a->key_heads * a->key_dim;
    a->state_elements = vp_hf_product(hf, keys->heads, a->value_heads, a->value_dim, a->key_dim);
    a->state_dtype = vp_hf_state_dtype(hf);
    uint64_t width = a->value_heads * a->value_dim;
    if (!hf->failed && inner > 0 && width != inner)
        vp_hf_fault(hf, vp_hf_find(hf, keys->heads), "%s x %s is %llu, the inner width %llu",
                    keys->heads, keys->dim, (unsigned long long)width, (unsigned long long)inner);
}

void vp_family_mamba2(struct vp_hf *hf) {
    uint64_t inner = vp_hf_size_or(hf, "expand", 0) * hf->model->hidden;

    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        hf->layers[i].mlp.kind = VP_MLP_NONE;
        mamba2(hf, &hf->layers[i].attention, &plain_mamba2, inner);
    }
}

/* Bamba: attention in the layers that attn_layer_indices lists. */
void vp_family_bamba(struct vp_hf *hf) {
    const struct vp_node *list = vp_hf_find(hf, "attn_layer_indices");
    uint64_t inner = vp_hf_size(hf, "mamba_expand") * hf->model->hidden;

    if (!list && !vp_hf_find(hf, "layer_types")) {
        vp_hf_fault(hf, NULL, "attn_layer_indices is missing in the description of a bamba model");
        return;
    }
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        const char *type = vp_hf_layer_type(hf, i);
        bool full = type ? strstr(type, "attention") != NULL : vp_hf_list_has(list, i);
        if (!full)
            mamba2(hf, &hf->layers[i].attention, &hybrid_mamba2, inner);
    }
}

/* Granite 4: Mamba 2 and attention by layer_types; experts and a shared feed-forward, or that
 * alone. */
void vp_family_granitemoehybrid(struct vp_hf *hf) {
    uint64_t experts = vp_hf_size_or(hf, "num_local_experts", 0);
    uint64_t shared = vp_hf_size(hf, "shared_intermediate_size");
    const struct vp_node *positions = vp_hf_find(hf, "position_embedding_type");
    bool rotary = positions && vp_text_eq(vp_node_text(positions), "rope");

    if (!vp_hf_find(hf, "layer_types|layers_block_type"))
        vp_hf_fault(hf, NULL,
                    "layer_types is missing in the description of a granitemoehybrid "
                    "model");
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        struct vp_block *layer = &hf->layers[i];
        const char *key = vp_hf_find(hf, "layer_types") ? "layer_types" : "layers_block_type";
        const char *type = vp_hf_layer_text(hf, key, i);
        if (!type)
            return;
        if (strcmp(type, "mamba") == 0)
            mamba2(hf, &layer->attention, &hybrid_mamba2,
                   vp_hf_size(hf, "mamba_expand") * hf->model->hidden);
        else if (!rotary)
            layer->attention.rotary_dim = 0;
        layer->mlp.intermediate = shared;
        if (experts > 0) {
            vp_hf_experts(hf, layer, hf->intermediate);
            layer->moe.shared_intermediate = shared;
        }
    }
    if (!rotary)
        hf->model->rotary_positions = 0;
}

/* Falcon-H1: attention and Mamba 2 side by side in every block. */
void vp_family_falcon_h1(struct vp_hf *hf) {
    uint64_t inner = vp_hf_find(hf, "mamba_d_ssm")
                         ? vp_hf_size(hf, "mamba_d_ssm")
                         : vp_hf_size(hf, "mamba_expand") * hf->model->hidden;
    bool norm = vp_hf_flag(hf, "mamba_rms_norm", false);

    if (vp_hf_flag(hf, "projectors_bias", false))
        vp_hf_fault(hf, vp_hf_find(hf, "projectors_bias"), "projectors_bias is not modelled");
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        mamba2(hf, &hf->layers[i].second, &hybrid_mamba2, inner);
        hf->layers[i].second.no_norm = !norm;
    }
}

/* ---- short convolutions ---- */

static void short_conv(struct vp_hf *hf, struct vp_attention *a) {
    memset(a, 0, sizeof *a);
    a->kind = VP_ATTENTION_LINEAR;
    a->linear = VP_LINEAR_SHORT_CONV;
    a->value_heads = 1;
    a->value_dim = a->conv_channels = hf->model->hidden;
    a->conv_kernel = vp_hf_size(hf, "conv_L_cache");
    a->conv_bias = a->qkv_bias = a->out_bias = vp_hf_flag(hf, "conv_bias", false);
}

/* layer_types, or full_attn_idxs with the numbers of the attention layers. */
static void lfm2_mixers(struct vp_hf *hf) {
    const struct vp_node *list = vp_hf_find(hf, "full_attn_idxs");

    if (!list && !vp_hf_find(hf, "layer_types"))
        vp_hf_fault(hf, NULL, "layer_types is missing in the description of an lfm2 model");
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        const char *type = vp_hf_layer_type(hf, i);
        bool full = type ? strcmp(type, "full_attention") == 0 : vp_hf_list_has(list, i);
        if (!full)
            short_conv(hf, &hf->layers[i].attention);
    }
}

/* LFM2: the feed-forward's width is two thirds of the given one, scaled and rounded up, where the
 * config asks for that. */
void vp_family_lfm2(struct vp_hf *hf) {
    uint64_t width = vp_hf_size(hf, "block_ff_dim|intermediate_size");
    uint64_t multiple = vp_hf_size(hf, "block_multiple_of");
    double factor = vp_hf_real_or(hf, "block_ffn_dim_multiplier", 1.0);

    if (!(factor > 0.0 && factor <= 64.0))
        vp_hf_fault(hf, vp_hf_find(hf, "block_ffn_dim_multiplier"),
                    "block_ffn_dim_multiplier must be between 0 and 64");
    if (hf->failed)
        return;
    if (vp_hf_flag(hf, "block_auto_adjust_ff_dim", true)) {
        uint64_t whole = 2 * width / 3; /* rounded down, like the reference code */
        width = (uint64_t)(factor * (double)whole);
        width = vp_ceil_div(width, multiple) * multiple;
    }
    for (uint32_t i = 0; i < hf->count; i++)
        hf->layers[i].mlp.intermediate = width;
    lfm2_mixers(hf);
}

void vp_family_lfm2_moe(struct vp_hf *hf) {
    uint64_t dense = vp_hf_size_or(hf, "num_dense_layers", 0);
    bool bias = vp_hf_flag(hf, "use_expert_bias", true);

    lfm2_mixers(hf);
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        if (i < dense)
            continue;
        vp_hf_experts(hf, &hf->layers[i], vp_hf_size(hf, "moe_intermediate_size"));
        hf->layers[i].moe.score_bias = bias;
    }
}

/* ---- lightning attention ---- */

/* MiniMax-01 and M1: layer_types, or attn_type_list with 0 for lightning and 1 for attention. */
void vp_family_minimax(struct vp_hf *hf) {
    const struct vp_node *list = vp_hf_find(hf, "attn_type_list");
    uint64_t shared = vp_hf_size_or(hf, "shared_intermediate_size", 0);

    if (!vp_hf_find(hf, "layer_types") &&
        (!list || list->kind != VP_NODE_LIST || list->count != hf->count)) {
        vp_hf_fault(hf, list, "attn_type_list must list one number per layer");
        return;
    }
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        struct vp_attention *a = &hf->layers[i].attention;
        const char *type = vp_hf_layer_type(hf, i);
        uint64_t full = 0;
        if (type)
            full = strcmp(type, "full_attention") == 0;
        else if (list)
            vp_node_u64(&full, list->items[i]);
        vp_hf_experts(hf, &hf->layers[i], hf->intermediate);
        hf->layers[i].moe.shared_intermediate = shared;
        if (full)
            continue;
        memset(a, 0, sizeof *a);
        a->kind = VP_ATTENTION_LINEAR;
        a->linear = VP_LINEAR_LIGHTNING;
        a->key_heads = a->value_heads = hf->heads;
        a->key_dim = a->value_dim = hf->head_dim;
        a->state_elements = vp_hf_product(hf, "head_dim", hf->heads, hf->head_dim, hf->head_dim);
        a->state_dtype = vp_hf_state_dtype(hf);
    }
}
