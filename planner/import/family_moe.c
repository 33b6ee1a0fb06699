/* Mixture-of-experts families with ordinary attention. */
#include "planner/import/hf_reader.h"

#include <string.h>

void vp_family_mixtral(struct vp_hf *hf) {
    for (uint32_t i = 0; i < hf->count; i++)
        vp_hf_experts(hf, &hf->layers[i], hf->intermediate);
}

/* Granite: experts on all layers; the later ones have a shared feed-forward beside them. */
void vp_family_granitemoe(struct vp_hf *hf) {
    uint64_t shared = vp_hf_size_or(hf, "shared_intermediate_size", 0);

    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        vp_hf_experts(hf, &hf->layers[i], hf->intermediate);
        hf->layers[i].moe.shared_intermediate = shared;
    }
}

/* Phi-3.5-MoE: LayerNorm, biases on attention and head by flags. */
void vp_family_phimoe(struct vp_hf *hf) {
    hf->model->head_bias = vp_hf_flag(hf, "lm_head_bias", false);
    vp_family_mixtral(hf);
}

/* Qwen: decoder_sparse_step and mlp_only_layers say which layers have experts. */
static bool qwen_sparse(struct vp_hf *hf, uint32_t i) {
    uint64_t step = vp_hf_size_or(hf, "decoder_sparse_step", 1);

    return step > 0 && (i + 1) % step == 0 && !vp_hf_list_has(vp_hf_find(hf, "mlp_only_layers"), i);
}

static void qwen_moe(struct vp_hf *hf, bool shared) {
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        struct vp_block *layer = &hf->layers[i];
        if (!qwen_sparse(hf, i))
            continue;
        vp_hf_experts(hf, layer, vp_hf_size(hf, "moe_intermediate_size"));
        if (!shared)
            continue;
        layer->moe.shared_intermediate = vp_hf_size(hf, "shared_expert_intermediate_size");
        layer->moe.shared_switch = true;
    }
}

void vp_family_qwen2_moe(struct vp_hf *hf) { qwen_moe(hf, true); }

void vp_family_qwen3_moe(struct vp_hf *hf) { qwen_moe(hf, false); }

void vp_family_qwen3_vl_moe(struct vp_hf *hf) { qwen_moe(hf, false); }

/* MiniMax M2: query and key norms over all heads, a routing bias. */
void vp_family_minimax_m2(struct vp_hf *hf) {
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        struct vp_block *layer = &hf->layers[i];
        vp_hf_experts(hf, layer, hf->intermediate);
        layer->moe.score_bias = vp_hf_flag(hf, "use_routing_bias", true);
        layer->moe.shared_intermediate = vp_hf_size_or(hf, "shared_intermediate_size", 0);
        if (vp_hf_flag(hf, "use_qk_norm", true))
            layer->attention.qk_norm = VP_QK_NORM_FULL;
    }
}

/* gpt-oss: biases everywhere, a sink per head, window and full layers alternate. */
void vp_family_gpt_oss(struct vp_hf *hf) {
    uint64_t window = vp_hf_size_or(hf, "sliding_window", 128);

    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        struct vp_block *layer = &hf->layers[i];
        vp_hf_experts(hf, layer, hf->intermediate);
        layer->moe.bias = layer->moe.router_bias = true;
        layer->attention.sinks = true;
        layer->attention.qkv_bias = layer->attention.out_bias =
            vp_hf_flag(hf, "attention_bias", true);
        if (!vp_hf_find(hf, "layer_types"))
            layer->attention.window = i % 2 == 0 ? window : 0;
    }
}

/* Llama 4: chunked attention with a full, rotary-free layer now and then; experts every
 * interleave_moe_layer_step layers, beside a shared expert of the same width. */
void vp_family_llama4(struct vp_hf *hf) {
    uint64_t step = vp_hf_size_or(hf, "interleave_moe_layer_step", 1);
    uint64_t nope = vp_hf_size_or(hf, "no_rope_layer_interval", 4);
    uint64_t chunk = vp_hf_size_or(hf, "attention_chunk_size", 0);
    const struct vp_node *moe_layers = vp_hf_find(hf, "moe_layers");
    const struct vp_node *rope_layers = vp_hf_find(hf, "no_rope_layers"); /* 1: has rotary */

    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        struct vp_block *layer = &hf->layers[i];
        const char *type = vp_hf_layer_type(hf, i);
        bool full = nope > 0 && (i + 1) % nope == 0;
        uint64_t has_rope;
        if (rope_layers && rope_layers->kind == VP_NODE_LIST && rope_layers->count == hf->count &&
            vp_node_u64(&has_rope, rope_layers->items[i]))
            full = has_rope == 0;
        if (type)
            full = strcmp(type, "full_attention") == 0;
        layer->attention.chunk = full ? 0 : chunk;
        bool sparse = step > 0 && (i + 1) % step == 0;
        if (moe_layers && moe_layers->count > 0)
            sparse = vp_hf_list_has(moe_layers, i);
        if (sparse) {
            vp_hf_experts(hf, layer, hf->intermediate);
            layer->moe.shared_intermediate = hf->intermediate;
        } else {
            layer->mlp.intermediate = vp_hf_size(hf, "intermediate_size_mlp");
        }
    }
}
