/* Families that mix attention with linear-attention or state-space layers. */
#include "planner/import/hf_reader.h"

#include <string.h>

#include "planner/base/text.h"

static void gated_delta(struct vp_hf *hf, struct vp_attention *a) {
    memset(a, 0, sizeof *a);
    a->kind = VP_ATTENTION_LINEAR;
    a->linear = VP_LINEAR_GATED_DELTA;
    a->key_heads = vp_hf_size(hf, "linear_num_key_heads");
    a->key_dim = vp_hf_size(hf, "linear_key_head_dim");
    a->value_heads = vp_hf_size(hf, "linear_num_value_heads");
    a->value_dim = vp_hf_size(hf, "linear_value_head_dim");
    a->conv_kernel = vp_hf_size(hf, "linear_conv_kernel_dim");
    a->conv_channels = 2 * a->key_heads * a->key_dim + a->value_heads * a->value_dim;
    a->state_elements =
        vp_hf_product(hf, "linear_num_value_heads", a->value_heads, a->key_dim, a->value_dim);
    a->state_dtype = vp_hf_state_dtype(hf);
}

static bool is_linear(struct vp_hf *hf, uint32_t i) {
    uint64_t interval = vp_hf_size_or(hf, "full_attention_interval", 4);
    const char *type = vp_hf_layer_type(hf, i);

    return type ? strcmp(type, "linear_attention") == 0 : interval == 0 || (i + 1) % interval != 0;
}

static void qwen_hybrid(struct vp_hf *hf, bool gate, bool sparse) {
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        struct vp_block *layer = &hf->layers[i];
        uint64_t step = vp_hf_size_or(hf, "decoder_sparse_step", 1);
        if (is_linear(hf, i))
            gated_delta(hf, &layer->attention);
        else
            layer->attention.output_gate = gate;
        if (!sparse || step == 0 || (i + 1) % step != 0 ||
            vp_hf_list_has(vp_hf_find(hf, "mlp_only_layers"), i))
            continue;
        vp_hf_experts(hf, layer, vp_hf_size(hf, "moe_intermediate_size"));
        layer->moe.shared_intermediate = vp_hf_size(hf, "shared_expert_intermediate_size");
        layer->moe.shared_switch = true;
    }
}

/* The prediction layer is one with full attention, which the last layer is. */
static void qwen_prediction(struct vp_hf *hf) {
    if (hf->count > 0 && !is_linear(hf, hf->count - 1))
        vp_hf_mtp(hf, &hf->layers[hf->count - 1], 3);
}

void vp_family_qwen3_next(struct vp_hf *hf) {
    qwen_hybrid(hf, true, true);
    qwen_prediction(hf);
}

void vp_family_qwen3_5(struct vp_hf *hf) {
    qwen_hybrid(hf, vp_hf_flag(hf, "attn_output_gate", true), false);
    qwen_prediction(hf);
}

void vp_family_qwen3_5_moe(struct vp_hf *hf) {
    qwen_hybrid(hf, vp_hf_flag(hf, "attn_output_gate", true), true);
    qwen_prediction(hf);
}

/* OLMo hybrid: norms over all heads' queries and keys, no gate. */
void vp_family_olmo_hybrid(struct vp_hf *hf) { qwen_hybrid(hf, false, false); }

/* ---- Nemotron-H: one mixer per layer, by a pattern ---- */

static void mamba2(struct vp_hf *hf, struct vp_attention *a) {
    memset(a, 0, sizeof *a);
    a->kind = VP_ATTENTION_LINEAR;
    a->linear = VP_LINEAR_MAMBA2;
    a->value_heads = vp_hf_size(hf, "mamba_num_heads");
    a->value_dim = vp_hf_size(hf, "mamba_head_dim");
    a->key_heads = vp_hf_size(hf, "n_groups");
    a->key_dim = vp_hf_size(hf, "ssm_state_size");
    a->conv_kernel = vp_hf_size(hf, "conv_kernel");
    a->conv_bias = vp_hf_flag(hf, "use_conv_bias", true);
    a->conv_channels = a->value_heads * a->value_dim + 2 * a->key_heads * a->key_dim;
    a->state_elements =
        vp_hf_product(hf, "mamba_num_heads", a->value_heads, a->value_dim, a->key_dim);
    a->state_dtype = vp_hf_state_dtype(hf);
}

/* 'M' Mamba 2, '*' attention, '-' MLP, 'E' experts; 0 when unknown */
static char nemotron_layer(struct vp_hf *hf, uint32_t i) {
    static const struct {
        const char *name;
        char code;
    } names[] = {{"mamba", 'M'}, {"attention", '*'}, {"mlp", '-'}, {"moe", 'E'}};
    const struct vp_node *pattern = vp_hf_find(hf, "hybrid_override_pattern");
    const struct vp_node *list = vp_hf_find(hf, "layers_block_type");
    const char *text = pattern ? vp_node_text(pattern) : NULL;

    if (list && list->kind == VP_NODE_LIST && list->count == hf->count) {
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
            if (vp_text_eq(vp_node_text(list->items[i]), names[k].name))
                return names[k].code;
        return 0;
    }
    if (!text || strlen(text) != hf->count || !strchr("M*-E", text[i]))
        return 0;
    return text[i];
}

void vp_family_nemotron_h(struct vp_hf *hf) {
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        struct vp_block *layer = &hf->layers[i];
        char code = nemotron_layer(hf, i);
        if (code != '*')
            layer->attention.kind = VP_ATTENTION_NONE;
        if (code != '-')
            layer->mlp.kind = VP_MLP_NONE;
        if (code == 'M') {
            mamba2(hf, &layer->attention);
        } else if (code == 'E') {
            vp_hf_experts(hf, layer, vp_hf_size(hf, "moe_intermediate_size"));
            layer->moe.kind = VP_MLP_PLAIN;
            layer->moe.input = vp_hf_size_or(hf, "moe_latent_size", 0);
            layer->moe.shared_intermediate =
                vp_hf_size_or(hf, "moe_shared_expert_intermediate_size", 0);
            layer->moe.score_bias = true;
        } else if (code == 0) {
            vp_hf_fault(hf, vp_hf_find(hf, "hybrid_override_pattern|layers_block_type"),
                        "hybrid_override_pattern (M, *, -, E) or layers_block_type must name every "
                        "one of %u layers; layer %u is not clear",
                        hf->count, i);
        }
    }
}
