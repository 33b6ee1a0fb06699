/* What a profile run and a prompt see of an image encoder: patches and tokens of the largest image,
 * from vision_config. Sizes follow vLLM's get_num_image_tokens of the families. Where the image
 * processor sets the limit and the config does not say it (Qwen-VL), the processor's default
 * stands. Families that are not here keep the flat figure of the engine's profile. */

#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/import/hf_reader.h"

enum { MAX_SIDE = 1 << 16 };

static uint64_t number(const struct vp_node *map, const char *key, uint64_t fallback) {
    uint64_t v = 0;

    return vp_node_u64(&v, vp_node_get(map, key)) && v > 0 && v < MAX_SIDE ? v : fallback;
}

/* A square image of patches, `merge` x `merge` of which become one vector. False: sizes missing. */
static bool square(struct vp_encoder *e, const struct vp_node *config, uint64_t merge) {
    uint64_t image = number(config, "image_size", 0), patch = number(config, "patch_size", 0);

    e->hidden = number(config, "hidden_size", 0);
    e->width = number(config, "intermediate_size", 0);
    if (image == 0 || patch == 0 || e->hidden == 0 || e->width == 0 || image / patch < merge)
        return false;
    uint64_t side = image / patch;
    e->item_patches = side * side;
    e->item_outputs = e->item_tokens = (side / merge) * (side / merge);
    e->patch_elements = 3 * patch * patch;
    return true;
}

/* Gemma 3 pools any image into the same number of vectors, between two line breaks and marks. */
static bool gemma3(struct vp_encoder *e, const struct vp_hf *hf, const struct vp_node *config) {
    enum { TOKENS = 256, FRAME = 4 };

    if (!square(e, config, 1))
        return false;
    e->item_outputs = number(hf->top, "mm_tokens_per_image", TOKENS);
    e->item_tokens = e->item_outputs + FRAME;
    e->image_tokens = e->item_tokens;
    return true;
}

/* One vector per patch, whatever the image's size. */
static bool fixed(struct vp_encoder *e, const struct vp_hf *hf, const struct vp_node *config) {
    (void)hf;
    bool ok = square(e, config, 1);
    e->image_tokens = e->item_tokens;
    return ok;
}

/* The image keeps its shape up to image_size on a side; each row of vectors ends with a break. */
static bool pixtral(struct vp_encoder *e, const struct vp_hf *hf, const struct vp_node *config) {
    uint64_t merge = number(hf->top, "spatial_merge_size", 1);
    uint64_t patch = number(config, "patch_size", 1);

    if (!square(e, config, merge))
        return false;
    e->item_tokens += number(config, "image_size", 0) / patch / merge;
    return true;
}

/* Up to 16 tiles and the whole image once more, 2 x 2 vectors of a tile shuffled into one. */
static bool llama4(struct vp_encoder *e, const struct vp_hf *hf, const struct vp_node *config) {
    enum { TILES = 17, FRAME = 40 };
    double ratio = 0.5;

    (void)hf;
    vp_node_real(&ratio, vp_node_get(config, "pixel_shuffle_ratio"));
    if (!square(e, config, 1) || !(ratio > 0.01 && ratio <= 1))
        return false;
    e->item_outputs = TILES * (uint64_t)((double)e->item_patches * ratio * ratio + 0.5);
    e->item_tokens = e->item_outputs + FRAME;
    e->item_patches *= TILES;
    return true;
}

/* Qwen-VL: as many patches as the image has, up to the processor's limit of 16384 tokens of
 * 2 x 2 patches; two frames of a video per patch, images twice the same. */
static bool qwen(struct vp_encoder *e, const struct vp_hf *hf, const struct vp_node *config) {
    enum { TOKENS = 16384 };
    const struct vp_node *deep = vp_node_get(config, "deepstack_visual_indexes");
    uint64_t levels = deep && deep->kind == VP_NODE_LIST ? deep->count : 0;
    uint64_t patch = number(config, "patch_size", 0),
             times = number(config, "temporal_patch_size", 2);
    uint64_t merge = number(config, "spatial_merge_size", 2);
    double ratio = 4;

    vp_node_real(&ratio, vp_node_get(config, "mlp_ratio"));
    e->hidden = number(config, "embed_dim", number(config, "hidden_size", 0));
    e->width = number(config, "intermediate_size", 0);
    if (e->width == 0 && ratio > 0 && ratio < 64)
        e->width = (uint64_t)((double)e->hidden * ratio);
    if (patch == 0 || e->hidden == 0 || e->width == 0 || merge > 64)
        return false;
    e->video = true;
    e->item_outputs = e->item_tokens = TOKENS;
    e->item_patches = TOKENS * merge * merge;
    e->patch_elements = 3 * times * patch * patch;
    e->output_width = number(config, "out_hidden_size", hf->model->hidden) * (1 + levels);
    return true;
}

void vp_hf_encoder(struct vp_hf *hf, const struct vp_node *config, const char *type) {
    static const struct {
        const char *type, *model; /* model NULL: of any */
        bool (*sizes)(struct vp_encoder *, const struct vp_hf *, const struct vp_node *);
    } KNOWN[] = {{"siglip_vision_model", "gemma3", gemma3},
                 {"siglip_vision_model", "paligemma", fixed},
                 {"clip_vision_model", "llava", fixed},
                 {"pixtral", NULL, pixtral},
                 {"llama4_vision_model", NULL, llama4},
                 {"qwen2_vl", NULL, qwen},
                 {"qwen2_5_vl", NULL, qwen},
                 {"qwen3_vl", NULL, qwen},
                 {"qwen3_vl_moe", NULL, qwen},
                 {"qwen3_5", NULL, qwen},
                 {"qwen3_5_moe", NULL, qwen},
                 {"qwen3_5_moe_vision", NULL, qwen}};
    const char *model = vp_node_text(vp_node_get(hf->top, "model_type"));
    struct vp_encoder e = {.output_width = hf->model->hidden};

    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (vp_text_eq(type, KNOWN[i].type) &&
            (!KNOWN[i].model || vp_text_eq(model, KNOWN[i].model))) {
            e.known = KNOWN[i].sizes(&e, hf, config);
            break;
        }
    if (e.known)
        hf->model->encoder = e;
}
