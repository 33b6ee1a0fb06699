/* The older dense families: LayerNorm, biases, plain feed-forwards, learned positions or ALiBi,
 * attention beside the feed-forward, multi-query attention. */
#include "planner/import/hf_reader.h"

#include "planner/base/text.h"

/* GPT-2: learned positions. */
void vp_family_gpt2(struct vp_hf *hf) {
    hf->model->learned_positions = vp_hf_size(hf, "n_positions|max_position_embeddings");
    if (vp_hf_flag(hf, "add_cross_attention", false))
        vp_hf_fault(hf, vp_hf_find(hf, "add_cross_attention"),
                    "add_cross_attention: an encoder beside GPT-2 is not modelled");
}

/* GPT-BigCode: GPT-2 with one KV head. */
void vp_family_gpt_bigcode(struct vp_hf *hf) {
    bool one = vp_hf_flag(hf, "multi_query", true);

    vp_family_gpt2(hf);
    for (uint32_t i = 0; i < hf->count && one; i++)
        hf->layers[i].attention.kv_heads = 1;
}

/* GPT-NeoX, Pythia: two norms whether or not the halves stand side by side. */
void vp_family_gpt_neox(struct vp_hf *hf) {
    bool bias = vp_hf_flag(hf, "attention_bias", true);

    for (uint32_t i = 0; i < hf->count; i++)
        hf->layers[i].attention.qkv_bias = hf->layers[i].attention.out_bias = bias;
}

/* GPT-Neo: attention_types [[["global", "local"], 12]] repeats its kinds. */
void vp_family_gpt_neo(struct vp_hf *hf) {
    const struct vp_node *types = vp_hf_find(hf, "attention_types");
    uint64_t window = vp_hf_size(hf, "window_size");
    uint32_t layer = 0;

    hf->model->learned_positions = vp_hf_size(hf, "max_position_embeddings");
    for (uint32_t i = 0; types && types->kind == VP_NODE_LIST && i < types->count; i++) {
        const struct vp_node *pair = types->items[i];
        uint64_t times = 0;
        if (pair->kind != VP_NODE_LIST || pair->count != 2 ||
            pair->items[0]->kind != VP_NODE_LIST || !vp_node_u64(&times, pair->items[1]))
            break;
        for (uint64_t t = 0; t < times && layer < hf->count; t++)
            for (uint32_t k = 0; k < pair->items[0]->count && layer < hf->count; k++)
                if (vp_text_eq(vp_node_text(pair->items[0]->items[k]), "local"))
                    hf->layers[layer++].attention.window = window;
                else
                    layer++;
    }
    if (layer != hf->count)
        vp_hf_fault(hf, types, "attention_types must name every one of %u layers", hf->count);
}

/* BLOOM: ALiBi, a norm behind the embedding. */
void vp_family_bloom(struct vp_hf *hf) {
    hf->model->embedding_norm = true;
    for (uint32_t i = 0; i < hf->count; i++)
        hf->layers[i].mlp.intermediate = 4 * hf->model->hidden;
}

/* MPT: ALiBi; attn_config says how many KV heads. Layouts with biases or learned positions exist in
 * name only, and are refused. */
void vp_family_mpt(struct vp_hf *hf) {
    const struct vp_node *config = vp_hf_find(hf, "attn_config");
    uint64_t ratio = vp_hf_size_or(hf, "expansion_ratio", 4);
    const struct vp_node *type = vp_node_get(config, "attn_type");
    bool alibi = false, norm = false;

    if (!vp_hf_flag(hf, "no_bias", true))
        vp_hf_fault(hf, vp_hf_find(hf, "no_bias"), "no_bias: an MPT with biases is not modelled");
    if (!vp_node_bool(&alibi, vp_node_get(config, "alibi")) || !alibi)
        vp_hf_fault(hf, config, "attn_config.alibi must be true: other positions are not modelled");
    vp_node_bool(&norm, vp_node_get(config, "qk_ln"));
    if (norm)
        vp_hf_fault(hf, config, "attn_config.qk_ln: query and key norms are not modelled");
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        struct vp_attention *a = &hf->layers[i].attention;
        if (type && vp_text_eq(vp_node_text(type), "multiquery_attention"))
            a->kv_heads = 1;
        else if (type && vp_text_eq(vp_node_text(type), "grouped_query_attention"))
            a->kv_heads = vp_hf_size_in(hf, "attn_config", "kv_n_heads");
        hf->layers[i].mlp.intermediate = ratio * hf->model->hidden;
    }
}

/* Falcon: three layouts. 7B: one KV head, halves side by side behind one norm. 40B and later
 * (new_decoder_architecture): KV groups and one norm for each half, unless it says one for both.
 * RW: one after the other, biases, ALiBi. */
void vp_family_falcon(struct vp_hf *hf) {
    bool grouped = vp_hf_flag(hf, "new_decoder_architecture", false);
    bool one = vp_hf_flag(hf, "multi_query", true);
    bool parallel = vp_hf_flag(hf, "parallel_attn", true);
    bool bias = vp_hf_flag(hf, "bias", false);
    uint64_t norms = grouped ? vp_hf_size_or(hf, "num_ln_in_parallel_attn", 2) : parallel ? 1 : 2;
    bool alibi = vp_hf_flag(hf, "alibi", false);
    uint64_t groups = 1;

    if (grouped)
        groups = vp_hf_size(hf, "num_kv_heads|n_head_kv");
    else if (!one)
        groups = hf->heads;
    if (alibi)
        hf->model->rotary_positions = 0;
    for (uint32_t i = 0; i < hf->count; i++) {
        struct vp_block *layer = &hf->layers[i];
        layer->attention.kv_heads = groups;
        layer->attention.qkv_bias = layer->attention.out_bias = layer->mlp.bias = bias;
        if (alibi)
            layer->attention.rotary_dim = 0;
        layer->norms = norms == 1 ? 1 : 2;
    }
}

/* StableLM: LayerNorm around a Llama block; norms per head and halves side by side by flags. */
void vp_family_stablelm(struct vp_hf *hf) {
    bool bias = vp_hf_flag(hf, "use_qkv_bias", false);
    bool parallel = vp_hf_flag(hf, "use_parallel_residual", false);
    bool norms = vp_hf_flag(hf, "qk_layernorm", false);

    for (uint32_t i = 0; i < hf->count; i++) {
        hf->layers[i].attention.qkv_bias = bias;
        hf->layers[i].attention.qk_norm = norms ? VP_QK_NORM_FULL : VP_QK_NORM_NONE;
        hf->layers[i].norms = parallel ? 1 : 2;
    }
}

/* StarCoder2: biases on everything or nothing. */
void vp_family_starcoder2(struct vp_hf *hf) {
    bool bias = vp_hf_flag(hf, "use_bias", true);

    for (uint32_t i = 0; i < hf->count; i++) {
        struct vp_block *layer = &hf->layers[i];
        layer->attention.qkv_bias = layer->attention.out_bias = layer->mlp.bias = bias;
    }
}

/* Baichuan: the 13B models (hidden size 5120) use ALiBi, the 7B ones rotary embeddings; that is
 * how engines tell them apart, too. */
void vp_family_baichuan(struct vp_hf *hf) {
    if (hf->model->hidden == 4096)
        return;
    hf->model->rotary_positions = 0;
    for (uint32_t i = 0; i < hf->count; i++)
        hf->layers[i].attention.rotary_dim = 0;
}

/* ChatGLM 2 and 3, GLM-4-9B: groups of KV heads, rotary on half of each head. */
void vp_family_chatglm(struct vp_hf *hf) {
    bool grouped = vp_hf_flag(hf, "multi_query_attention", false);
    uint64_t groups = grouped ? vp_hf_size(hf, "multi_query_group_num") : hf->heads;
    bool all = vp_hf_flag(hf, "add_bias_linear", false);
    bool qkv = all || vp_hf_flag(hf, "add_qkv_bias", false);

    if (!vp_hf_flag(hf, "rmsnorm", true))
        vp_hf_fault(hf, vp_hf_find(hf, "rmsnorm"), "rmsnorm: false is not modelled");
    if (!vp_hf_find(hf, "multi_query_attention"))
        vp_hf_fault(hf, NULL,
                    "multi_query_attention is missing: the first ChatGLM-6B is another "
                    "architecture and not modelled");
    vp_hf_size(hf, "ffn_hidden_size");
    vp_hf_size(hf, "kv_channels");
    for (uint32_t i = 0; i < hf->count; i++) {
        struct vp_block *layer = &hf->layers[i];
        layer->attention.kv_heads = groups;
        layer->attention.qkv_bias = qkv;
        layer->attention.out_bias = layer->mlp.bias = all;
        layer->attention.rotary_dim /= 2;
    }
}
