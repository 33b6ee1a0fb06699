/* Mixture-of-experts families whose layers differ by more than the experts' keys: leading dense
 * layers, shared experts, gates on attention, windows. */
#include "planner/import/hf_reader.h"

#include <string.h>

#include "planner/base/text.h"

/* Sizes of the experts, which families name differently. */
struct sparse {
    uint64_t experts, top_k, width;
    uint64_t shared; /* width of all shared experts together */
    bool score_bias;
};

static void set_experts(struct vp_block *layer, const struct sparse *sparse) {
    layer->mlp.kind = VP_MLP_NONE;
    layer->moe.kind = VP_MLP_GATED;
    layer->moe.experts = sparse->experts;
    layer->moe.top_k = sparse->top_k;
    layer->moe.intermediate = sparse->width;
    layer->moe.shared_intermediate = sparse->shared;
    layer->moe.score_bias = sparse->score_bias;
}

/* The keys that most of these families share. */
static struct sparse usual(struct vp_hf *hf, bool score_bias) {
    struct sparse s = {.score_bias = score_bias};

    s.experts = vp_hf_size(hf, "num_local_experts|num_experts|n_routed_experts");
    s.top_k = vp_hf_size(hf, "num_experts_per_tok|num_experts_per_token");
    s.width = vp_hf_size(hf, "moe_intermediate_size");
    s.shared = s.width * vp_hf_size_or(hf, "num_shared_experts|n_shared_experts", 0);
    return s;
}

/* mlp_layer_types says it per layer; else the first `dense` layers have no experts. */
static bool is_sparse(struct vp_hf *hf, uint32_t i, uint64_t dense) {
    const char *type = vp_hf_layer_text(hf, "mlp_layer_types", i);

    return type ? strcmp(type, "sparse") == 0 : i >= dense;
}

static void fill(struct vp_hf *hf, const struct sparse *sparse, uint64_t dense) {
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++)
        if (is_sparse(hf, i, dense))
            set_experts(&hf->layers[i], sparse);
}

/* How many layers have no experts: a size that must be there, unless the list says it. */
static uint64_t dense_layers(struct vp_hf *hf, const char *key) {
    if (vp_hf_find(hf, "mlp_layer_types"))
        return 0;
    if (!vp_hf_find(hf, key))
        vp_hf_fault(hf, NULL, "%s is missing in the description of a %s model", key,
                    hf->family->model_type);
    return vp_hf_size_or(hf, key, 0);
}

/* GLM-4.5 and later: biases on q, k and v, norms per head on request. */
void vp_family_glm4_moe(struct vp_hf *hf) {
    struct sparse sparse = usual(hf, true);
    bool norms = vp_hf_flag(hf, "use_qk_norm", false);

    for (uint32_t i = 0; i < hf->count; i++) {
        hf->layers[i].attention.out_bias = false;
        hf->layers[i].attention.qk_norm = norms ? VP_QK_NORM_HEAD : VP_QK_NORM_NONE;
    }
    fill(hf, &sparse, dense_layers(hf, "first_k_dense_replace"));
    if (hf->count > 0)
        vp_hf_mtp(hf, &hf->layers[hf->count - 1], 3);
}

void vp_family_dots1(struct vp_hf *hf) {
    struct sparse sparse = usual(hf, true);

    fill(hf, &sparse, dense_layers(hf, "first_k_dense_replace"));
}

void vp_family_solar_open(struct vp_hf *hf) {
    struct sparse sparse = usual(hf, true);

    fill(hf, &sparse, 0);
}

void vp_family_exaone_moe(struct vp_hf *hf) {
    struct sparse sparse = usual(hf, true);

    vp_family_exaone4(hf);
    fill(hf, &sparse, dense_layers(hf, "first_k_dense_replace"));
}

void vp_family_hy_v3(struct vp_hf *hf) {
    struct sparse sparse = usual(hf, true);

    fill(hf, &sparse, dense_layers(hf, "first_k_dense_replace"));
}

/* Arcee AFM: a gate as wide as the queries, four norms, every n-th layer full. */
void vp_family_afmoe(struct vp_hf *hf) {
    struct sparse sparse = usual(hf, true);
    uint64_t every = vp_hf_size_or(hf, "global_attn_every_n_layers", 4);
    bool listed = vp_hf_find(hf, "layer_types") != NULL;
    uint64_t window = listed ? 0 : vp_hf_size(hf, "sliding_window");

    for (uint32_t i = 0; i < hf->count; i++) {
        struct vp_attention *a = &hf->layers[i].attention;
        a->output_gate = true;
        if (!listed)
            a->window = every > 0 && (i + 1) % every == 0 ? 0 : window;
    }
    fill(hf, &sparse, dense_layers(hf, "num_dense_layers"));
}

/* Laguna: heads by layer, one gate per head, a shared expert of its own width. */
void vp_family_laguna(struct vp_hf *hf) {
    const struct vp_node *heads = vp_hf_find(hf, "num_attention_heads_per_layer");
    struct sparse sparse = usual(hf, true);
    bool gate = vp_hf_flag(hf, "gating", true);

    sparse.shared = vp_hf_size(hf, "shared_expert_intermediate_size");
    if (heads && (heads->kind != VP_NODE_LIST || heads->count != hf->count))
        vp_hf_fault(hf, heads, "num_attention_heads_per_layer must list one number per layer");
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        struct vp_attention *a = &hf->layers[i].attention;
        a->head_gate = gate;
        if (heads && (!vp_node_u64(&a->heads, heads->items[i]) || a->heads > 65536))
            vp_hf_fault(hf, heads, "num_attention_heads_per_layer must list numbers");
    }
    fill(hf, &sparse, dense_layers(hf, "first_k_dense_replace"));
}

/* Ling: the first version as DeepSeek's first; the second with norms per head and a score bias. */
void vp_family_bailing_moe(struct vp_hf *hf) {
    struct sparse sparse = usual(hf, vp_hf_flag(hf, "moe_router_enable_expert_bias", false));
    bool norms = vp_hf_flag(hf, "use_qk_norm", false);
    bool all = vp_hf_flag(hf, "use_bias", false), qkv = vp_hf_flag(hf, "use_qkv_bias", false);

    for (uint32_t i = 0; i < hf->count; i++) {
        struct vp_attention *a = &hf->layers[i].attention;
        a->qk_norm = norms ? VP_QK_NORM_HEAD : VP_QK_NORM_NONE;
        a->qkv_bias = all || qkv;
        a->out_bias = hf->layers[i].mlp.bias = all;
    }
    fill(hf, &sparse, dense_layers(hf, "first_k_dense_replace"));
    if (hf->count > 0)
        vp_hf_mtp(hf, &hf->layers[hf->count - 1], 3);
}

/* The first DeepSeek MoE: ordinary attention. */
void vp_family_deepseek(struct vp_hf *hf) {
    struct sparse sparse = usual(hf, false);
    uint64_t every = vp_hf_size_or(hf, "moe_layer_freq", 1);
    uint64_t dense = dense_layers(hf, "first_k_dense_replace");

    for (uint32_t i = 0; i < hf->count && !hf->failed; i++)
        if (i >= dense && every > 0 && i % every == 0)
            set_experts(&hf->layers[i], &sparse);
}

/* ERNIE 4.5: experts in a range of layers, every moe_layer_interval-th of them. */
void vp_family_ernie4_5_moe(struct vp_hf *hf) {
    struct sparse sparse = {.score_bias = vp_hf_flag(hf, "moe_use_aux_free", true)};
    uint64_t interval = vp_hf_size(hf, "moe_layer_interval");
    uint64_t start = vp_hf_size_or(hf, "moe_layer_start_index", 0), end = hf->count;
    const struct vp_node *last = vp_hf_find(hf, "moe_layer_end_index");
    uint64_t shared = vp_hf_size_or(hf, "moe_num_shared_experts", 0);

    sparse.experts = vp_hf_size(hf, "moe_num_experts");
    sparse.top_k = vp_hf_size(hf, "moe_k");
    sparse.width = vp_hf_size(hf, "moe_intermediate_size");
    sparse.shared = sparse.width * shared;
    if (last && !vp_text_eq(vp_node_text(last), "-1"))
        end = vp_hf_size_or(hf, "moe_layer_end_index", 0) + 1;
    vp_family_ernie4_5(hf);
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++)
        if ((i + 1) % interval == 0 && i >= start && i < end)
            set_experts(&hf->layers[i], &sparse);
    if (hf->count > 0)
        vp_hf_mtp(hf, &hf->layers[hf->count - 1], 2);
}

/* A size that is a number or a list of one number for all layers (Hunyuan). */
static uint64_t same_for_all(struct vp_hf *hf, const char *key) {
    const struct vp_node *node = vp_hf_find(hf, key);
    uint64_t first = 0, other;

    if (!node || node->kind != VP_NODE_LIST)
        return vp_hf_size(hf, key);
    for (uint32_t i = 0; i < node->count; i++) {
        if (!vp_node_u64(&other, node->items[i]) || (i > 0 && other != first)) {
            vp_hf_fault(hf, node, "%s must be the same number for all layers", key);
            return 0;
        }
        first = other;
    }
    if (first == 0)
        vp_hf_fault(hf, node, "%s must be at least 1", key);
    return first;
}

/* Hunyuan-A13B: the shared expert is as wide as an expert, times num_shared_expert. Checkpoints
 * with a width for the experts alone (moe_intermediate_size) use it. */
void vp_family_hunyuan_moe(struct vp_hf *hf) {
    struct sparse sparse = {.score_bias = false};

    if (vp_hf_flag(hf, "use_cla", false)) {
        vp_hf_fault(hf, vp_hf_find(hf, "use_cla"),
                    "use_cla: layers that share keys and values in pairs are not modelled");
        return;
    }
    vp_family_hunyuan_dense(hf);
    sparse.experts = same_for_all(hf, "num_experts");
    sparse.top_k = same_for_all(hf, "moe_topk");
    sparse.width = vp_hf_find(hf, "moe_intermediate_size")
                       ? same_for_all(hf, "moe_intermediate_size")
                       : hf->intermediate;
    if (vp_hf_find(hf, "num_shared_expert"))
        sparse.shared = hf->intermediate * same_for_all(hf, "num_shared_expert");
    fill(hf, &sparse, 0);
}

/* DBRX: sizes in maps of their own. */
void vp_family_dbrx(struct vp_hf *hf) {
    uint64_t kv_heads = vp_hf_size_in(hf, "attn_config", "kv_n_heads");
    struct sparse sparse = {.experts = vp_hf_size_in(hf, "ffn_config", "moe_num_experts"),
                            .top_k = vp_hf_size_in(hf, "ffn_config", "moe_top_k"),
                            .width = vp_hf_size_in(hf, "ffn_config", "ffn_hidden_size")};

    for (uint32_t i = 0; i < hf->count; i++)
        hf->layers[i].attention.kv_heads = kv_heads;
    fill(hf, &sparse, 0);
}

/* MiMo-V2: window layers have KV heads and head sizes of their own, and sinks. */
void vp_family_mimo_v2(struct vp_hf *hf) {
    struct sparse sparse = usual(hf, true);
    const struct vp_node *pattern = vp_hf_find(hf, "hybrid_layer_pattern");
    const struct vp_node *freq = vp_hf_find(hf, "moe_layer_freq");
    bool swa_sinks = vp_hf_flag(hf, "add_swa_attention_sink_bias", true);
    bool full_sinks = vp_hf_flag(hf, "add_full_attention_sink_bias", false);
    uint64_t window = vp_hf_size(hf, "sliding_window|sliding_window_size");

    if (!pattern || !freq || pattern->kind != VP_NODE_LIST || freq->kind != VP_NODE_LIST ||
        pattern->count != hf->count || freq->count != hf->count) {
        vp_hf_fault(hf, pattern,
                    "hybrid_layer_pattern and moe_layer_freq must list one number per "
                    "layer");
        return;
    }
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        struct vp_attention *a = &hf->layers[i].attention;
        uint64_t slides = 0, experts = 0;
        vp_node_u64(&slides, pattern->items[i]);
        vp_node_u64(&experts, freq->items[i]);
        a->v_head_dim = vp_hf_size(hf, "v_head_dim");
        a->sinks = slides ? swa_sinks : full_sinks;
        a->window = slides ? window : 0;
        if (slides) {
            a->heads = vp_hf_size_or(hf, "swa_num_attention_heads", a->heads);
            a->kv_heads = vp_hf_size(hf, "swa_num_key_value_heads");
            a->head_dim = vp_hf_size(hf, "swa_head_dim");
            a->v_head_dim = vp_hf_size(hf, "swa_v_head_dim");
        }
        if (experts)
            set_experts(&hf->layers[i], &sparse);
    }
}
