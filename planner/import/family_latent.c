/* Families with latent attention (MLA): DeepSeek, Kimi, GLM. */
#include "planner/import/hf_reader.h"

#include <string.h>

#include "planner/base/text.h"

static void latent_attention(struct vp_hf *hf, struct vp_attention *a) {
    bool bias = vp_hf_flag(hf, "attention_bias", false);

    memset(a, 0, sizeof *a);
    a->kind = VP_ATTENTION_MLA;
    a->heads = a->kv_heads = hf->heads;
    a->q_lora_rank = vp_hf_size_or(hf, "q_lora_rank", 0);
    a->kv_lora_rank = vp_hf_size(hf, "kv_lora_rank");
    a->qk_nope_head_dim = vp_hf_size(hf, "qk_nope_head_dim");
    a->qk_rope_head_dim = vp_hf_size(hf, "qk_rope_head_dim");
    a->v_head_dim = vp_hf_size(hf, "v_head_dim");
    a->head_dim = a->qk_nope_head_dim + a->qk_rope_head_dim;
    a->qkv_bias = a->out_bias = bias;
    a->rotary_dim = a->qk_rope_head_dim;
}

/* first_k_dense_replace dense layers, then experts every moe_layer_freq layers. */
static void latent_experts(struct vp_hf *hf, uint32_t i, bool score_bias) {
    struct vp_block *layer = &hf->layers[i];
    uint64_t dense = vp_hf_size_or(hf, "first_k_dense_replace", 0);
    uint64_t every = vp_hf_size_or(hf, "moe_layer_freq", 1);
    uint64_t width;

    if (i < dense || every == 0 || i % every != 0 ||
        !vp_hf_find(hf, "n_routed_experts|num_experts"))
        return;
    width = vp_hf_size(hf, "moe_intermediate_size");
    vp_hf_experts(hf, layer, width);
    layer->moe.shared_intermediate =
        width * vp_hf_size_or(hf, "n_shared_experts|num_shared_experts", 0);
    layer->moe.score_bias = score_bias;
}

static void deepseek(struct vp_hf *hf, bool score_bias, bool indexer) {
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        struct vp_attention *a = &hf->layers[i].attention;
        latent_attention(hf, a);
        if (indexer) {
            a->index_heads = vp_hf_size(hf, "index_n_heads");
            a->index_head_dim = vp_hf_size(hf, "index_head_dim");
        }
        latent_experts(hf, i, score_bias);
    }
    if (hf->count > 0)
        vp_hf_mtp(hf, &hf->layers[hf->count - 1], 3);
}

void vp_family_deepseek_v2(struct vp_hf *hf) {
    const struct vp_node *method = vp_hf_find(hf, "topk_method");
    deepseek(hf, vp_text_eq(method ? vp_node_text(method) : NULL, "noaux_tc"), false);
}

void vp_family_deepseek_v3(struct vp_hf *hf) { deepseek(hf, true, false); }

void vp_family_deepseek_v32(struct vp_hf *hf) { deepseek(hf, true, true); }

void vp_family_kimi_k2(struct vp_hf *hf) { deepseek(hf, true, false); }

void vp_family_glm4_moe_lite(struct vp_hf *hf) { deepseek(hf, true, false); }

void vp_family_glm_moe_dsa(struct vp_hf *hf) { deepseek(hf, true, true); }

void vp_family_mistral4(struct vp_hf *hf) { deepseek(hf, false, false); }

void vp_family_youtu(struct vp_hf *hf) { deepseek(hf, false, false); }

/* MiniCPM3: engines keep its keys and values head by head; v_head_dim, when the config has none,
 * is that of ordinary attention. */
void vp_family_minicpm3(struct vp_hf *hf) {
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        struct vp_attention *a = &hf->layers[i].attention;
        bool bias = vp_hf_flag(hf, "attention_bias", false);
        memset(a, 0, sizeof *a);
        a->kind = VP_ATTENTION_MLA;
        a->expanded = true;
        a->heads = a->kv_heads = hf->heads;
        a->q_lora_rank = vp_hf_size(hf, "q_lora_rank");
        a->kv_lora_rank = vp_hf_size(hf, "kv_lora_rank");
        a->qk_nope_head_dim = vp_hf_size(hf, "qk_nope_head_dim");
        a->qk_rope_head_dim = a->rotary_dim = vp_hf_size(hf, "qk_rope_head_dim");
        a->v_head_dim = vp_hf_size_or(hf, "v_head_dim", hf->model->hidden / hf->heads);
        a->head_dim = a->qk_nope_head_dim + a->qk_rope_head_dim;
        a->qkv_bias = a->out_bias = bias;
    }
}

/* LongCat Flash: a layer of the config is two of ours, each with attention and a feed-forward; the
 * experts stand beside the first. Some of the router's choices have no weights. */
void vp_family_longcat(struct vp_hf *hf) {
    uint64_t layers = hf->count, width = vp_hf_size(hf, "ffn_hidden_size");
    uint64_t expert_width = vp_hf_size(hf, "expert_ffn_hidden_size");
    bool router_bias = vp_hf_flag(hf, "router_bias", false);

    if (!vp_hf_layers(hf, 2 * layers))
        return;
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        struct vp_block *layer = &hf->layers[i];
        layer->norms = 2;
        latent_attention(hf, &layer->attention);
        if (i % 2 == 0) {
            layer->moe.kind = VP_MLP_GATED;
            layer->moe.experts = vp_hf_size(hf, "n_routed_experts");
            layer->moe.zero_experts = vp_hf_size_or(hf, "zero_expert_num", 0);
            layer->moe.top_k = vp_hf_size(hf, "moe_topk");
            layer->moe.intermediate = expert_width;
            layer->moe.score_bias = true;
            layer->moe.router_bias = router_bias;
        }
        layer->mlp = (struct vp_mlp){.kind = VP_MLP_GATED, .intermediate = width};
    }
}

/* Kimi Linear: KDA layers by number (from 1) between MLA layers without rotary embedding. */
void vp_family_kimi_linear(struct vp_hf *hf) {
    const struct vp_node *config = vp_hf_find(hf, "linear_attn_config");
    const struct vp_node *full = vp_node_get(config, "full_attn_layers");
    const struct vp_node *linear = vp_node_get(config, "kda_layers");
    uint64_t heads = 0, dim = 0, kernel = 0;

    if (!full || !linear || !vp_node_u64(&heads, vp_node_get(config, "num_heads")) ||
        !vp_node_u64(&dim, vp_node_get(config, "head_dim")) ||
        !vp_node_u64(&kernel, vp_node_get(config, "short_conv_kernel_size")) || heads == 0 ||
        dim == 0 || kernel == 0 || heads > 4096 || dim > 65536 || kernel > 64) {
        vp_hf_fault(hf, config,
                    "linear_attn_config needs full_attn_layers, kda_layers, num_heads, "
                    "head_dim and short_conv_kernel_size");
        return;
    }
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        struct vp_attention *a = &hf->layers[i].attention;
        latent_experts(hf, i, true);
        if (vp_hf_list_has(full, i + 1)) {
            latent_attention(hf, a);
            continue;
        }
        if (!vp_hf_list_has(linear, i + 1)) {
            vp_hf_fault(hf, config, "linear_attn_config: layer %u is neither full nor KDA", i + 1);
            return;
        }
        memset(a, 0, sizeof *a);
        a->kind = VP_ATTENTION_LINEAR;
        a->linear = VP_LINEAR_KDA;
        a->key_heads = a->value_heads = heads;
        a->key_dim = a->value_dim = dim;
        a->conv_kernel = kernel;
        a->conv_channels = 3 * heads * dim;
        a->state_elements = heads * dim * dim;
        a->state_dtype = VP_DTYPE_FP32;
    }
    if (vp_hf_flag(hf, "mla_use_nope", false))
        hf->model->rotary_positions = 0;
}
