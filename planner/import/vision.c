/* Vision towers and projectors: parameter counts from vision_config. Sizes follow the reference
 * code in transformers (siglip, clip, pixtral, qwen*_vl, glm4v, gemma4, llama4, mllama, kimi); what
 * is unknown is left out, with a warning, never guessed. */

#include "planner/base/text.h"
#include "planner/import/hf_reader.h"

struct tower {
    struct vp_hf *hf;
    const struct vp_node *config;
    bool missing;
};

static uint64_t size(struct tower *t, const char *key) {
    uint64_t value = 0;

    if (!vp_node_u64(&value, vp_node_get(t->config, key)) || value == 0 || value > 1u << 24)
        t->missing = true;
    return value;
}

/* Encoder layers with biased q, k, v, output and two-matrix MLP and two LayerNorms. */
static void encoder(struct tower *t, uint64_t *matrix, uint64_t *other, uint64_t hidden,
                    uint64_t width, uint64_t layers) {
    (void)t;
    *matrix += layers * (4 * hidden * hidden + 2 * hidden * width);
    *other += layers * (4 * hidden + width + hidden + 4 * hidden);
}

static bool is_model(const struct tower *t, const char *type) {
    return vp_text_eq(vp_node_text(vp_node_get(t->hf->top, "model_type")), type);
}

static void unknown_projector(struct tower *t) {
    vp_diag_add(t->hf->ctx->diags, VP_D_EXTRA_UNMODELLED, &t->config->pos,
                "the projector behind the vision tower is left out: its layout is not known");
}

static void siglip(struct tower *t) {
    uint64_t hidden = size(t, "hidden_size"), width = size(t, "intermediate_size");
    uint64_t layers = size(t, "num_hidden_layers"), image = size(t, "image_size");
    uint64_t patch = size(t, "patch_size");
    uint64_t text = t->hf->model->hidden;
    uint64_t matrix = 0, other = 0;

    if (t->missing)
        return;
    uint64_t side = image / patch;
    encoder(t, &matrix, &other, hidden, width, layers);
    other += 3 * patch * patch * hidden + hidden; /* patch convolution */
    other += side * side * hidden;                /* positions */
    other += 2 * hidden;                          /* last norm */
    vp_hf_extra(t->hf, "vision tower", matrix, other);
    if (is_model(t, "paligemma"))
        vp_hf_extra(t->hf, "projector", 0, hidden * text + text);
    else if (is_model(t, "gemma3")) /* matrix and norm, not divided */
        vp_hf_extra(t->hf, "projector", 0, hidden * text + hidden);
    else
        unknown_projector(t);
}

/* LLaVA: two biased matrices between the tower and the model. */
static void llava_projector(struct tower *t, uint64_t hidden) {
    uint64_t text = t->hf->model->hidden;
    uint64_t newline = is_model(t, "llava_next") ? text : 0; /* a vector that ends an image row */

    if (!is_model(t, "llava") && !is_model(t, "llava_next"))
        unknown_projector(t);
    else
        vp_hf_extra(t->hf, "projector", hidden * text + text * text, 2 * text + newline);
}

static void clip(struct tower *t) {
    uint64_t hidden = size(t, "hidden_size"), width = size(t, "intermediate_size");
    uint64_t layers = size(t, "num_hidden_layers"), image = size(t, "image_size");
    uint64_t patch = size(t, "patch_size");
    uint64_t matrix = 0, other = 0;

    if (t->missing)
        return;
    uint64_t side = image / patch;
    encoder(t, &matrix, &other, hidden, width, layers);
    other += 3 * patch * patch * hidden;          /* patches */
    other += hidden + (side * side + 1) * hidden; /* class token, positions */
    other += 4 * hidden;                          /* norms before and after */
    vp_hf_extra(t->hf, "vision tower", matrix, other);
    llava_projector(t, hidden);
}

/* Pixtral: a Llama block, rotary embeddings in two dimensions. Mistral 3 joins patches first. */
static void pixtral(struct tower *t) {
    uint64_t hidden = size(t, "hidden_size"), width = size(t, "intermediate_size");
    uint64_t layers = size(t, "num_hidden_layers"), patch = size(t, "patch_size");
    uint64_t text = t->hf->model->hidden, merge = 2;
    const struct vp_node *given = vp_node_get(t->hf->top, "spatial_merge_size");

    if (t->missing || (given && (!vp_node_u64(&merge, given) || merge > 64)))
        return;
    vp_hf_extra(t->hf, "vision tower", layers * (4 * hidden * hidden + 3 * hidden * width),
                layers * 2 * hidden + 3 * patch * patch * hidden + hidden);
    if (is_model(t, "mistral3"))
        vp_hf_extra(t->hf, "projector",
                    merge * merge * hidden * hidden + hidden * text + text * text, hidden);
    else
        llava_projector(t, hidden);
}

static void llama4(struct tower *t) {
    uint64_t hidden = size(t, "hidden_size"), width = size(t, "intermediate_size");
    uint64_t layers = size(t, "num_hidden_layers"), image = size(t, "image_size");
    uint64_t patch = size(t, "patch_size"), in = size(t, "projector_input_dim");
    uint64_t out = size(t, "projector_output_dim"), end = size(t, "vision_output_dim");
    double shuffle = 0.5;
    uint64_t matrix = 0, other = 0;

    vp_node_real(&shuffle, vp_node_get(t->config, "pixel_shuffle_ratio"));
    if (t->missing || !(shuffle > 0.01 && shuffle <= 1))
        return;
    uint64_t side = image / patch;
    uint64_t gathered = (uint64_t)((double)hidden / (shuffle * shuffle));
    encoder(t, &matrix, &other, hidden, width, layers);
    matrix += 3 * patch * patch * hidden;         /* patches */
    matrix += gathered * in + in * out;           /* adapter */
    other += hidden + (side * side + 1) * hidden; /* class token, positions */
    other += 4 * hidden;                          /* norms before and after */
    vp_hf_extra(t->hf, "vision tower", matrix, other);
    vp_hf_extra(t->hf, "projector", end * t->hf->model->hidden, 0);
}

/* Qwen-VL: a merger of 2 x 2 patches at the end, and one more per deepstack layer. */
static void qwen_vl(struct tower *t) {
    uint64_t hidden = size(t, "hidden_size"), width = size(t, "intermediate_size");
    uint64_t layers = size(t, "depth"), patch = size(t, "patch_size");
    uint64_t times = size(t, "temporal_patch_size"), merge = size(t, "spatial_merge_size");
    uint64_t out = size(t, "out_hidden_size"), positions = size(t, "num_position_embeddings");
    const struct vp_node *deep = vp_node_get(t->config, "deepstack_visual_indexes");
    uint64_t matrix = 0, other = 0;

    if (t->missing)
        return;
    uint64_t mergers = deep && deep->kind == VP_NODE_LIST ? deep->count : 0;
    uint64_t gathered = hidden * merge * merge;
    encoder(t, &matrix, &other, hidden, width, layers);
    other += 3 * times * patch * patch * hidden + hidden + positions * hidden;
    matrix += (mergers + 1) * (gathered * gathered + gathered * out);
    other += (mergers + 1) * (gathered + out);
    other += 2 * hidden + mergers * 2 * gathered; /* norms: before or after gathering */
    vp_hf_extra(t->hf, "vision tower", matrix, other);
}

/* Qwen2-VL: sizes under keys of its own. Its successor has RMSNorm, a gated feed-forward and no
 * embed_dim. One merger of 2 x 2 patches; temporal_patch_size is 2 in all of them. */
static void qwen2_vl(struct tower *t) {
    bool first = vp_node_get(t->config, "embed_dim") != NULL;
    uint64_t hidden = size(t, first ? "embed_dim" : "hidden_size");
    uint64_t layers = size(t, "depth"), patch = size(t, "patch_size");
    uint64_t merge = size(t, "spatial_merge_size");
    uint64_t out = size(t, first ? "hidden_size" : "out_hidden_size");
    uint64_t width = size(t, first ? "mlp_ratio" : "intermediate_size");
    uint64_t gathered = hidden * merge * merge, matrix = 0, other = 0;

    if (t->missing)
        return;
    if (first) {
        encoder(t, &matrix, &other, hidden, width * hidden, layers);
    } else {
        matrix = layers * (4 * hidden * hidden + 3 * hidden * width);
        other = layers * (4 * hidden + 2 * width + hidden + 2 * hidden);
    }
    other += 3 * 2 * patch * patch * hidden;
    matrix += gathered * gathered + gathered * out;
    other += gathered + out + (first ? 2 : 1) * hidden;
    vp_hf_extra(t->hf, "vision tower", matrix, other);
}

/* Llama 3.2 Vision: positions by tile and aspect ratio, a second stack with a gate on each half. */
static void mllama(struct tower *t) {
    uint64_t hidden = size(t, "hidden_size"), width = size(t, "intermediate_size");
    uint64_t local = size(t, "num_hidden_layers"), global = size(t, "num_global_layers");
    uint64_t image = size(t, "image_size"), patch = size(t, "patch_size");
    uint64_t tiles = size(t, "max_num_tiles"), out = size(t, "vision_output_dim");
    uint64_t text = t->hf->model->hidden;
    const struct vp_node *list = vp_node_get(t->config, "supported_aspect_ratios");

    if (t->missing)
        return;
    uint64_t layers = local + global, patches = (image / patch) * (image / patch) + 1;
    uint64_t ratios = 9; /* the class default: what up to four tiles can form, and none */
    if (list && list->kind == VP_NODE_LIST)
        ratios = list->count + 1;
    uint64_t matrix = layers * (4 * hidden * hidden + 2 * hidden * width);
    uint64_t other = layers * (width + hidden + 4 * hidden) + 2 * global;
    other += hidden + 3 * patch * patch * hidden + 4 * hidden; /* token, patches, norms */
    other += patches * hidden * (1 + ratios * tiles) + 1;      /* positions */
    other += 2 * (ratios * tiles * hidden + 1);                /* tile positions */
    vp_hf_extra(t->hf, "vision tower", matrix, other);
    vp_hf_extra(t->hf, "projector", out * text, text);
}

/* GLM-4.1V and later: a block whose feed-forward is as wide as the output, a convolution that joins
 * patches, and a gated merger of intermediate_size. */
static void glm4v(struct tower *t) {
    uint64_t hidden = size(t, "hidden_size"), width = size(t, "intermediate_size");
    uint64_t layers = size(t, "depth"), image = size(t, "image_size");
    uint64_t patch = size(t, "patch_size"), merge = size(t, "spatial_merge_size");
    uint64_t out = size(t, "out_hidden_size"), times = size(t, "temporal_patch_size");
    bool bias = false;

    vp_node_bool(&bias, vp_node_get(t->config, "attention_bias"));
    if (t->missing || bias)
        return;
    uint64_t side = image / patch;
    uint64_t matrix = layers * (4 * hidden * hidden + 3 * hidden * out);
    uint64_t other = layers * 2 * hidden + side * side * hidden;
    other += 3 * times * patch * patch * hidden + 3 * hidden; /* patches, norms around the stack */
    other += merge * merge * hidden * out + out;              /* joining */
    vp_hf_extra(t->hf, "vision tower", matrix, other);
    vp_hf_extra(t->hf, "projector", out * out + 3 * out * width, 2 * out);
}

/* Gemma 4: a Gemma block with norms on both sides of each half and on queries and keys, positions
 * for rows and columns, one matrix into the model. */
static void gemma4(struct tower *t) {
    uint64_t hidden = size(t, "hidden_size"), width = size(t, "intermediate_size");
    uint64_t layers = size(t, "num_hidden_layers"), patch = size(t, "patch_size");
    uint64_t heads = size(t, "num_attention_heads"), dim = size(t, "head_dim");
    uint64_t kv = size(t, "num_key_value_heads"), places = size(t, "position_embedding_size");
    bool scaled = false, clipped = false;

    vp_node_bool(&scaled, vp_node_get(t->config, "standardize"));
    vp_node_bool(&clipped, vp_node_get(t->config, "use_clipped_linears"));
    if (t->missing || clipped)
        return;
    uint64_t matrix = layers * (2 * hidden * dim * (heads + kv) + 3 * hidden * width);
    uint64_t other = layers * (2 * dim + 4 * hidden) + 2 * places * hidden;
    other += 3 * patch * patch * hidden + (scaled ? 2 * hidden : 0);
    vp_hf_extra(t->hf, "vision tower", matrix, other);
    vp_hf_extra(t->hf, "projector", hidden * t->hf->model->hidden, 0);
}

/* Kimi K2.5 (MoonViT): learned 2-D positions, patch merger projector. */
static void kimi(struct tower *t) {
    uint64_t hidden = size(t, "vt_hidden_size"), width = size(t, "vt_intermediate_size");
    uint64_t layers = size(t, "vt_num_hidden_layers"), patch = size(t, "patch_size");
    uint64_t high = size(t, "init_pos_emb_height"), wide = size(t, "init_pos_emb_width");
    uint64_t text = size(t, "text_hidden_size");
    uint64_t matrix = 0, other = 0;

    if (t->missing)
        return;
    encoder(t, &matrix, &other, hidden, width, layers);
    other += 3 * patch * patch * hidden + hidden + high * wide * hidden + 2 * hidden;
    vp_hf_extra(t->hf, "vision tower", matrix, other);
    uint64_t gathered = 4 * hidden;
    vp_hf_extra(t->hf, "projector", gathered * gathered + gathered * text,
                gathered + text + 2 * hidden);
}

void vp_hf_vision(struct vp_hf *hf) {
    static const struct {
        const char *type;
        void (*count)(struct tower *);
    } towers[] = {{"siglip_vision_model", siglip},
                  {"clip_vision_model", clip},
                  {"pixtral", pixtral},
                  {"mllama_vision_model", mllama},
                  {"qwen2_vl", qwen2_vl},
                  {"qwen2_5_vl", qwen2_vl},
                  {"gemma4_vision", gemma4},
                  {"glm4v", glm4v},
                  {"glm4v_vision", glm4v},
                  {"glm4v_moe", glm4v},
                  {"glm4v_moe_vision", glm4v},
                  {"llama4_vision_model", llama4},
                  {"qwen3_vl", qwen_vl},
                  {"qwen3_vl_moe", qwen_vl},
                  {"qwen3_5", qwen_vl},
                  {"qwen3_5_moe", qwen_vl},
                  {"kimi_k25", kimi}};
    struct tower t = {hf, vp_node_get(hf->top, "vision_config"), false};
    const struct vp_node *type = vp_node_get(t.config, "model_type");
    const char *name = type ? vp_node_text(type) : NULL;
    uint32_t before = hf->model->extra_count;

    const struct vp_node *audio = vp_node_get(hf->top, "audio_config");
    if (audio && audio->kind == VP_NODE_MAP)
        vp_diag_add(hf->ctx->diags, VP_D_EXTRA_UNMODELLED, &audio->pos,
                    "the audio tower is left out: its layout is not known");
    if (vp_node_is_null(t.config) || t.config->kind != VP_NODE_MAP)
        return;
    if (!name) /* some configs name only the whole model */
        name = vp_node_text(vp_node_get(hf->top, "model_type"));
    hf->model->multimodal = true;
    vp_hf_encoder(hf, t.config, name);
    for (size_t i = 0; i < sizeof towers / sizeof towers[0]; i++)
        if (vp_text_eq(name, towers[i].type))
            towers[i].count(&t);
    if (hf->model->extra_count == before) {
        vp_diag_add(hf->ctx->diags, VP_D_EXTRA_UNMODELLED, &t.config->pos,
                    "the vision tower '%s' is left out: its %s", name ? name : "(no model_type)",
                    t.missing ? "sizes are not all given" : "layout is not known");
        vp_diag_hint(hf->ctx->diags, "plan with the checkpoint's folder to have its exact weights");
    }
}
