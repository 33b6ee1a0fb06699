/* Dense families that differ from Llama in more than traits. */
#include "planner/import/hf_reader.h"

#include <string.h>

#include "planner/base/text.h"

/* OPT: learned positions with two rows more than the context, LayerNorm, ReLU. */
void vp_family_opt(struct vp_hf *hf) {
    uint64_t embedding = vp_hf_size_or(hf, "word_embed_proj_dim", hf->model->hidden);

    if (embedding != hf->model->hidden)
        vp_hf_fault(hf, vp_hf_find(hf, "word_embed_proj_dim"),
                    "word_embed_proj_dim differs from hidden_size: projected embeddings are not "
                    "modelled");
    hf->model->learned_positions = hf->model->max_position + 2;
    hf->model->final_norm = vp_hf_flag(hf, "do_layer_norm_before", true);
}

/* Gemma 2: sliding and full layers alternate, the first slides. */
void vp_family_gemma2(struct vp_hf *hf) {
    uint64_t window = vp_hf_size_or(hf, "sliding_window", 0);

    for (uint32_t i = 0; i < hf->count && !vp_hf_find(hf, "layer_types"); i++)
        hf->layers[i].attention.window = i % 2 == 0 ? window : 0;
}

/* Gemma 3: every n-th layer (sliding_window_pattern) is full; local and global layers have rotary
 * tables of their own. */
void vp_family_gemma3(struct vp_hf *hf) {
    uint64_t window = vp_hf_size_or(hf, "sliding_window", 0);
    uint64_t pattern = vp_hf_size_or(hf, "sliding_window_pattern|_sliding_window_pattern", 6);

    for (uint32_t i = 0; i < hf->count && !vp_hf_find(hf, "layer_types"); i++)
        hf->layers[i].attention.window = pattern > 0 && (i + 1) % pattern == 0 ? 0 : window;
    if (window > 0) /* the local table is not scaled */
        hf->model->rotary_positions += hf->model->max_position;
}

/* Gemma 4: full layers have head sizes and KV heads of their own and may use keys as values;
 * experts stand beside the dense MLP, with three norms more. */
void vp_family_gemma4(struct vp_hf *hf) {
    uint64_t kv = vp_hf_size_or(hf, "num_global_key_value_heads", hf->kv_heads);
    uint64_t dim = vp_hf_size_or(hf, "global_head_dim", hf->head_dim);
    bool moe = vp_hf_flag(hf, "enable_moe_block", false);
    bool same = vp_hf_flag(hf, "attention_k_eq_v", false);
    uint64_t shared = vp_hf_size_or(hf, "num_kv_shared_layers", 0);

    if (vp_hf_size_or(hf, "hidden_size_per_layer_input", 0) > 0) {
        vp_hf_fault(hf, vp_hf_find(hf, "hidden_size_per_layer_input"),
                    "hidden_size_per_layer_input: per-layer embeddings are not modelled");
        return;
    }
    for (uint32_t i = 0; i < hf->count; i++) {
        struct vp_block *layer = &hf->layers[i];
        struct vp_attention *a = &layer->attention;
        if (a->window == 0) {
            a->kv_heads = kv;
            a->head_dim = a->v_head_dim = dim;
            a->key_is_value = same;
        }
        a->shares_cache = shared > 0 && i + shared >= hf->count;
        if (moe) {
            struct vp_mlp dense = layer->mlp;
            vp_hf_experts(hf, layer,
                          vp_hf_size(hf, "moe_intermediate_size|expert_intermediate_size"));
            layer->mlp = dense;
            layer->norms = 7;
        }
    }
    hf->model->rotary_positions += hf->model->max_position;
}

/* Nemotron-NAS: every layer has its own number of KV heads and MLP width, or none. */
static void nas_attention(struct vp_hf *hf, struct vp_attention *a, const struct vp_node *config) {
    bool absent = false, linear = false;
    uint64_t group = 0;

    vp_node_bool(&absent, vp_node_get(config, "no_op"));
    vp_node_bool(&linear, vp_node_get(config, "replace_with_linear"));
    vp_node_u64(&group, vp_node_get(config, "n_heads_in_group"));
    if (absent) {
        memset(a, 0, sizeof *a);
    } else if (linear) {
        memset(a, 0, sizeof *a);
        a->kind = VP_ATTENTION_LINEAR;
        a->linear = VP_LINEAR_GIVEN;
        a->parameters = hf->model->hidden * hf->model->hidden;
    } else if (group == 0 || hf->heads % group != 0) {
        vp_hf_fault(hf, config, "block_configs: n_heads_in_group must divide num_attention_heads");
    } else {
        a->kv_heads = hf->heads / group;
    }
}

static void nas_mlp(struct vp_hf *hf, struct vp_mlp *mlp, const struct vp_node *config) {
    bool absent = false, linear = false;
    double multiple = 0;

    vp_node_bool(&absent, vp_node_get(config, "no_op"));
    vp_node_bool(&linear, vp_node_get(config, "replace_with_linear"));
    if (absent || linear) {
        mlp->kind = linear ? VP_MLP_LINEAR : VP_MLP_NONE;
        mlp->intermediate = linear ? hf->model->hidden : 0;
        return;
    }
    if (!vp_node_real(&multiple, vp_node_get(config, "ffn_mult")) || !(multiple > 0) ||
        multiple > 1000) {
        vp_hf_fault(hf, config, "block_configs: ffn_mult must be a positive number");
        return;
    }
    uint64_t width = (uint64_t)(2 * multiple * (double)hf->model->hidden / 3);
    mlp->intermediate = vp_ceil_div(width, 256) * 256;
}

void vp_family_nemotron_nas(struct vp_hf *hf) {
    const struct vp_node *list = vp_hf_find(hf, "block_configs");

    if (!list || list->kind != VP_NODE_LIST || list->count != hf->count) {
        vp_hf_fault(hf, list, "block_configs must describe every one of num_hidden_layers layers");
        return;
    }
    for (uint32_t i = 0; i < hf->count; i++) {
        struct vp_block *layer = &hf->layers[i];
        nas_attention(hf, &layer->attention, vp_node_get(list->items[i], "attention"));
        nas_mlp(hf, &layer->mlp, vp_node_get(list->items[i], "ffn"));
        layer->norms = (layer->attention.kind != VP_ATTENTION_NONE ? 1u : 0u) +
                       (layer->mlp.kind != VP_MLP_NONE ? 1u : 0u);
    }
}
