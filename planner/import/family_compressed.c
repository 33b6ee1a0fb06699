/* DeepSeek V4: attention over a window and condensed older tokens, four residual streams, experts
 * that the first layers choose by a table over the vocabulary.
 *
 * Shapes follow the reference code in transformers (deepseek_v4). compress_ratios says what a layer
 * condenses: 0 nothing, 4 overlapping entries with an index over them, 128 (any other number)
 * plain entries. */
#include "planner/import/hf_reader.h"

#include <string.h>

#include "planner/base/text.h"

enum { INDEXED_RATIO = 4 };

static void compressed_attention(struct vp_hf *hf, struct vp_attention *a, uint64_t ratio) {
    memset(a, 0, sizeof *a);
    a->kind = VP_ATTENTION_COMPRESSED;
    a->heads = hf->heads;
    a->kv_heads = 1;
    a->head_dim = a->v_head_dim = vp_hf_size(hf, "head_dim");
    a->rotary_dim = vp_hf_size(hf, "qk_rope_head_dim");
    a->window = vp_hf_size(hf, "sliding_window");
    a->q_lora_rank = vp_hf_size(hf, "q_lora_rank");
    a->out_groups = vp_hf_size(hf, "o_groups");
    a->out_lora_rank = vp_hf_size(hf, "o_lora_rank");
    a->sinks = true;
    a->compress = ratio;
    a->overlap = 1;
    if (ratio == INDEXED_RATIO) {
        a->overlap = 2;
        a->index_heads = vp_hf_size(hf, "index_n_heads");
        a->index_head_dim = vp_hf_size(hf, "index_head_dim");
    }
}

/* "expert_dtype": "fp4": the experts are MXFP4 where quantization_config says FP8 for all. */
static void expert_format(struct vp_hf *hf) {
    static const struct vp_scheme mxfp4 = {.name = "mxfp4", .data = VP_DTYPE_MXFP4};
    const struct vp_node *node = vp_hf_find(hf, "expert_dtype");
    const char *text = node ? vp_node_text(node) : NULL;

    if (vp_text_eq(text, "fp4"))
        hf->expert_scheme = &mxfp4;
    else if (node && !vp_text_eq(text, "fp8") && !vp_text_eq(text, "bf16"))
        vp_hf_fault(hf, node, "expert_dtype '%s' is not fp4, fp8 or bf16", text ? text : "?");
}

static bool compression(struct vp_hf *hf, const struct vp_node *ratios, uint32_t i, uint64_t *out) {
    if (ratios && ratios->kind == VP_NODE_LIST && ratios->count >= hf->count &&
        vp_node_u64(out, ratios->items[i]) && *out <= 65536)
        return true;
    vp_hf_fault(hf, ratios, "compress_ratios must list one number for each of %u layers",
                hf->count);
    return false;
}

/* A prediction layer sees its window only, and joins its streams at the end. */
static void prediction_layers(struct vp_hf *hf) {
    struct vp_block like = hf->layers[hf->count - 1];
    uint64_t streams = hf->model->hyper;

    compressed_attention(hf, &like.attention, 0);
    struct vp_extra *extra = vp_hf_mtp(hf, &like, 3);
    if (extra)
        extra->other_elements += extra->layers * (streams * (streams * hf->model->hidden + 1) + 1);
}

void vp_family_deepseek_v4(struct vp_hf *hf) {
    const struct vp_node *ratios = vp_hf_find(hf, "compress_ratios");
    uint64_t tabled = vp_hf_size_or(hf, "num_hash_layers", 0);
    uint64_t width = vp_hf_size(hf, "moe_intermediate_size"), ratio = 0;
    uint64_t shared = vp_hf_size_or(hf, "n_shared_experts", 0);

    hf->model->hyper = vp_hf_size(hf, "hc_mult");
    expert_format(hf);
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        struct vp_block *layer = &hf->layers[i];
        if (!compression(hf, ratios, i, &ratio))
            return;
        compressed_attention(hf, &layer->attention, ratio);
        vp_hf_experts(hf, layer, width);
        layer->moe.shared_intermediate = width * shared;
        layer->moe.score_bias = i >= tabled;
    }
    if (hf->failed)
        return;
    /* two rotary tables: plain for the window, stretched for condensed entries */
    hf->model->rotary_positions = 2 * hf->model->max_position;
    prediction_layers(hf);
    if (tabled > 0) { /* expert numbers per token: 64-bit integers, no parameters */
        uint64_t chosen = hf->layers[0].moe.top_k;
        uint64_t tables = vp_min(tabled, hf->count);
        struct vp_extra *extra = vp_hf_extra_plain(
            hf, "expert tables",
            vp_hf_product(hf, "vocab_size", 4 * tables, chosen, hf->model->vocab), true);
        extra->counted = false;
    }
}
