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

/* Every n-th layer is full, the others slide; used where the config lists no layer_types. */
static void pattern_windows(struct vp_hf *hf, uint64_t pattern) {
    uint64_t window = vp_hf_size_or(hf, "sliding_window", 0);

    for (uint32_t i = 0; i < hf->count && !vp_hf_find(hf, "layer_types"); i++)
        hf->layers[i].attention.window = pattern > 0 && (i + 1) % pattern == 0 ? 0 : window;
}

/* Biases on q, k, v and the output under a key of the family's own. */
static void bias_key(struct vp_hf *hf, const char *key, bool fallback, bool mlp) {
    bool bias = vp_hf_flag(hf, key, fallback);

    for (uint32_t i = 0; i < hf->count; i++) {
        hf->layers[i].attention.qkv_bias = hf->layers[i].attention.out_bias = bias;
        if (mlp)
            hf->layers[i].mlp.bias = bias;
    }
}

void vp_family_internlm2(struct vp_hf *hf) { bias_key(hf, "bias", false, false); }

void vp_family_ernie4_5(struct vp_hf *hf) { bias_key(hf, "use_bias", false, true); }

/* GLM-4 (not ChatGLM): attention_bias means q, k and v only. */
void vp_family_glm(struct vp_hf *hf) {
    bool bias = vp_hf_flag(hf, "attention_bias", false);

    for (uint32_t i = 0; i < hf->count; i++)
        hf->layers[i].attention.qkv_bias = bias;
}

void vp_family_seed_oss(struct vp_hf *hf) {
    bool out = vp_hf_flag(hf, "attention_out_bias", false);

    vp_family_glm(hf);
    for (uint32_t i = 0; i < hf->count; i++)
        hf->layers[i].attention.out_bias = out;
}

/* Command-R: halves side by side behind one norm, norms over all heads where asked for. */
void vp_family_cohere(struct vp_hf *hf) {
    bool norms = vp_hf_flag(hf, "use_qk_norm", false);

    for (uint32_t i = 0; i < hf->count; i++)
        hf->layers[i].attention.qk_norm = norms ? VP_QK_NORM_FULL : VP_QK_NORM_NONE;
}

/* Command-R7B and later: every sliding_window_pattern-th layer is full. */
void vp_family_cohere2(struct vp_hf *hf) {
    pattern_windows(hf, vp_hf_size_or(hf, "sliding_window_pattern|_sliding_window_pattern", 4));
}

void vp_family_olmo3(struct vp_hf *hf) { pattern_windows(hf, 4); }

/* EXAONE 4: sliding_window_pattern is a number, or a word of L (local) and G (global) repeated. */
void vp_family_exaone4(struct vp_hf *hf) {
    const struct vp_node *node = vp_hf_find(hf, "sliding_window_pattern");
    const char *word = node ? vp_node_text(node) : NULL;
    uint64_t window = vp_hf_size_or(hf, "sliding_window", 0), pattern;

    if (vp_hf_find(hf, "layer_types") || window == 0)
        return;
    if (!node) {
        vp_hf_fault(hf, NULL, "layer_types or sliding_window_pattern must say which layers slide");
    } else if (vp_node_u64(&pattern, node)) {
        pattern_windows(hf, pattern);
    } else if (!word || !*word || strspn(word, "LG") != strlen(word)) {
        vp_hf_fault(hf, node, "sliding_window_pattern must be a number or a word of L and G");
    } else {
        for (uint32_t i = 0; i < hf->count; i++)
            hf->layers[i].attention.window = word[i % strlen(word)] == 'L' ? window : 0;
    }
}

/* Apertus: xIELU has two learned numbers per layer. */
void vp_family_apertus(struct vp_hf *hf) {
    vp_hf_extra_plain(hf, "activation parameters", 2 * (uint64_t)hf->count, true);
}

/* EXAONE 3: Llama by other names. Whether the head is tied differs between its sizes. */
void vp_family_exaone(struct vp_hf *hf) {
    if (!vp_hf_find(hf, "tie_word_embeddings"))
        vp_hf_fault(hf, NULL,
                    "tie_word_embeddings is missing in the description of an exaone model");
}

/* Llama 3.2 Vision: some layers attend to the image instead of the text; their keys and values are
 * those of all its tiles. A gate on each half of such a layer; the embedding has 8 rows more than
 * the head. */
void vp_family_mllama(struct vp_hf *hf) {
    const struct vp_node *list = vp_hf_find(hf, "cross_attention_layers");
    const struct vp_node *vision = vp_node_get(hf->top, "vision_config");
    uint64_t tiles = 0, image = 0, patch = 0, crossing = 0;

    if (!list || !vp_node_u64(&tiles, vp_node_get(vision, "max_num_tiles")) ||
        !vp_node_u64(&image, vp_node_get(vision, "image_size")) ||
        !vp_node_u64(&patch, vp_node_get(vision, "patch_size")) || tiles == 0 || tiles > 64 ||
        patch == 0 || image < patch || image > 65536) {
        vp_hf_fault(hf, list ? vision : NULL,
                    "cross_attention_layers and vision_config.max_num_tiles, image_size and "
                    "patch_size must be given");
        return;
    }
    uint64_t tokens = tiles * ((image / patch) * (image / patch) + 1);
    for (uint32_t i = 0; i < hf->count; i++) {
        struct vp_attention *a = &hf->layers[i].attention;
        if (!vp_hf_list_has(list, i))
            continue;
        crossing++;
        a->source_tokens = tokens;
        a->qk_norm = VP_QK_NORM_HEAD;
        a->rotary_dim = 0;
    }
    vp_hf_extra_plain(hf, "image tokens and gates", 8 * hf->model->hidden + 2 * crossing, true);
}

/* MiMo: Qwen2 with prediction layers of the same kind. */
void vp_family_mimo(struct vp_hf *hf) {
    if (hf->count > 0)
        vp_hf_mtp(hf, &hf->layers[hf->count - 1], 3);
}

void vp_family_phi(struct vp_hf *hf) {
    if (vp_hf_flag(hf, "qk_layernorm", false))
        vp_hf_fault(hf, vp_hf_find(hf, "qk_layernorm"), "qk_layernorm: true is not modelled");
}

void vp_family_hunyuan_dense(struct vp_hf *hf) {
    bool norms = vp_hf_flag(hf, "use_qk_norm", true);

    for (uint32_t i = 0; i < hf->count; i++)
        hf->layers[i].attention.qk_norm = norms ? VP_QK_NORM_HEAD : VP_QK_NORM_NONE;
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
    pattern_windows(hf, vp_hf_size_or(hf, "sliding_window_pattern|_sliding_window_pattern", 6));
    if (vp_hf_size_or(hf, "sliding_window", 0) > 0) /* the local table is not scaled */
        hf->model->rotary_positions += hf->model->max_position;
}

/* Gemma 4's small models: a vector per layer and token, from a table and from the embedding. */
static void per_layer_inputs(struct vp_hf *hf) {
    uint64_t width = vp_hf_size_or(hf, "hidden_size_per_layer_input", 0);
    uint64_t hidden = hf->model->hidden;

    if (width == 0 || hf->failed)
        return;
    uint64_t vocab = vp_hf_size(hf, "vocab_size_per_layer_input");
    struct vp_extra *table = vp_hf_extra_plain(hf, "per-layer embeddings", 0, true);
    table->matrix_elements =
        vp_hf_product(hf, "vocab_size_per_layer_input", vocab, width, hf->count);
    table->sharded = true;
    vp_hf_extra_plain(
        hf, "per-layer projections",
        vp_hf_product(hf, "hidden_size_per_layer_input", 3 * width, hidden, hf->count) + width +
            hidden * hf->count,
        true);
}

static void gemma4_layer(struct vp_hf *hf, uint32_t i) {
    struct vp_block *layer = &hf->layers[i];
    struct vp_attention *a = &layer->attention;
    uint64_t shared = vp_hf_size_or(hf, "num_kv_shared_layers", 0);
    bool same = vp_hf_flag(hf, "attention_k_eq_v", false);

    if (a->window == 0) {
        if (same)
            a->kv_heads = vp_hf_size_or(hf, "num_global_key_value_heads", hf->kv_heads);
        a->head_dim = a->v_head_dim = vp_hf_size_or(hf, "global_head_dim", hf->head_dim);
        a->key_is_value = same;
    }
    a->shares_cache = shared > 0 && i + shared >= hf->count;
    if (a->shares_cache && vp_hf_flag(hf, "use_double_wide_mlp", false))
        layer->mlp.intermediate *= 2;
}

/* Gemma 4: full layers have head sizes of their own, and KV heads where keys serve as values; the
 * last layers may read the cache of earlier ones; experts stand beside the dense MLP, with three
 * norms more, a scale per input of the router and one per expert. Every layer has a scale. */
void vp_family_gemma4(struct vp_hf *hf) {
    bool moe = vp_hf_flag(hf, "enable_moe_block", false);
    uint64_t scales = hf->count;

    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        struct vp_block *layer = &hf->layers[i];
        gemma4_layer(hf, i);
        if (moe) {
            struct vp_mlp dense = layer->mlp;
            vp_hf_experts(hf, layer,
                          vp_hf_size(hf, "moe_intermediate_size|expert_intermediate_size"));
            layer->mlp = dense;
            layer->norms = 7;
            scales += hf->model->hidden + layer->moe.experts;
        }
    }
    vp_hf_extra_plain(hf, "layer and router scales", scales, true);
    per_layer_inputs(hf);
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
