#include "planner/import/checkpoint.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"

enum { MAX_NAME = 512 }; /* longer names are not recognised: whole on every rank */

/* What a tensor is to its module, by the end of its name. */
enum part {
    PART_MATRIX, /* out x in, packed or not */
    PART_SCALES, /* divided with the matrix, but for one per output of a row-parallel matrix */
    PART_INPUTS, /* one per input */
    PART_BIAS    /* one per output */
};

static const struct {
    const char *text;
    enum part part;
} SUFFIXES[] = {
    {".weight", PART_MATRIX},
    {".weight_packed", PART_MATRIX},
    {".qweight", PART_MATRIX},
    {"_blocks", PART_MATRIX},
    {".weight_scale", PART_SCALES},
    {".weight_scale_inv", PART_SCALES},
    {".weight_scale_2", PART_SCALES},
    {".weight_global_scale", PART_SCALES},
    {".weight_zero_point", PART_SCALES},
    {".weight_shape", PART_SCALES},
    {".weight.absmax", PART_SCALES},
    {".weight.nested_absmax", PART_SCALES},
    {".weight.quant_map", PART_SCALES},
    {".weight.nested_quant_map", PART_SCALES},
    {".SCB", PART_SCALES},
    {".scales", PART_SCALES},
    {".scale", PART_SCALES},
    {".qzeros", PART_SCALES},
    {"_scales", PART_SCALES},
    {".input_scale", PART_SCALES},
    {".input_global_scale", PART_SCALES},
    {".g_idx", PART_INPUTS},
    {".weight_g_idx", PART_INPUTS},
    {".pre_quant_scale", PART_INPUTS},
    {".bias", PART_BIAS},
    {"_bias", PART_BIAS},
};

/* Matrices that some families keep together. Their parts have different owners in the model, so
 * they stand here and not among the roles. */
static const struct {
    const char *name;
    enum vp_shard shard;
    bool by_inputs;
} FUSED[] = {
    {"qkv_proj", VP_SHARD_HEADS, false},
    {"query_key_value", VP_SHARD_HEADS, false},
    {"attn.c_attn", VP_SHARD_HEADS, false},
    {"W_pack", VP_SHARD_HEADS, false},
    {"Wqkv", VP_SHARD_HEADS, false},
    {"wqkv", VP_SHARD_HEADS, false},
    {"attn.c_proj", VP_SHARD_HEADS, true},
    {"attention.dense", VP_SHARD_HEADS, true},
    {"mlp.gate_up_proj", VP_SHARD_WIDTH, false},
};

static const char *const VISION_PARTS[] = {
    "visual",
    "vision_tower",
    "vision_model",
    "vision_encoder",
    "vision_backbone",
    "vision_embed",
    "embed_vision",
    "multi_modal_projector",
    "mm_projector",
    "vision_projection",
    "audio_tower",
    "embed_audio",
    "sound_encoder",
    "image_newline",
    "patch_merger",
    "vision_language_adapter",
    "pre_mm_projector_norm",
    "aligner",
    "mlp1",
};

/* ---- names ---- */

static bool part_is(const char *part, size_t n, const char *word) {
    return *part == *word && strlen(word) == n && memcmp(part, word, n) == 0;
}

static bool is_vision(const char *part, size_t n) {
    for (size_t i = 0; i < sizeof VISION_PARTS / sizeof *VISION_PARTS; i++)
        if (part_is(part, n, VISION_PARTS[i]))
            return true;
    return false;
}

/* Multi-token prediction layers, "mtp.layers.0." or "model.mtp_layers.0.". */
static bool is_mtp(const char *part, size_t n) {
    return part_is(part, n, "mtp") || (n > 4 && memcmp(part, "mtp_", 4) == 0);
}

/* A layer's number; UINT64_MAX, which no model has, when it is none or too large. */
static uint64_t layer_number(const char *part, size_t n) {
    char digits[24];
    uint64_t layer;
    if (n >= sizeof digits)
        return UINT64_MAX;
    memcpy(digits, part, n);
    digits[n] = '\0';
    return vp_parse_u64(&layer, digits) ? layer : UINT64_MAX;
}

/* What single parts of a tensor's name say, the parts being what stands between dots. */
struct clues {
    bool in_layer; /* a number stands behind "layers", "h" or "blocks" */
    uint64_t layer;
    bool vision, mtp, experts;
};

/* One walk over the name: a checkpoint has up to a hundred thousand of them. */
static struct clues read_clues(const char *name) {
    struct clues clues = {.in_layer = false};
    bool after_layers = false;
    for (const char *part = name; part;) {
        const char *dot = strchr(part, '.');
        size_t n = dot ? (size_t)(dot - part) : strlen(part);
        if (after_layers && !clues.in_layer && *part >= '0' && *part <= '9') {
            clues.in_layer = true;
            clues.layer = layer_number(part, n);
        }
        after_layers =
            part_is(part, n, "layers") || part_is(part, n, "h") || part_is(part, n, "blocks");
        clues.vision |= is_vision(part, n);
        clues.mtp |= is_mtp(part, n);
        clues.experts |= part_is(part, n, "experts");
        part = dot ? dot + 1 : NULL;
    }
    return clues;
}

/* Whether the module's dotted path ends in these parts. */
static bool ends_in(const char *module, size_t n, const char *tail, size_t tail_n) {
    return n >= tail_n && memcmp(module + n - tail_n, tail, tail_n) == 0 &&
           (n == tail_n || module[n - tail_n - 1] == '.');
}

/* Roles of the ends of the stack have no layer number, all others have one. */
static bool role_of_ends(enum vp_role role) {
    return role == VP_ROLE_EMBEDDING || role == VP_ROLE_POSITION || role == VP_ROLE_LM_HEAD ||
           role == VP_ROLE_FINAL_NORM;
}

/* The role whose name is the longest end of the module's path; VP_ROLE_COUNT for none. */
static enum vp_role role_of(const char *module, size_t n, bool in_layer) {
    enum vp_role best = VP_ROLE_COUNT;
    size_t best_length = 0;
    for (int role = 0; role < VP_ROLE_COUNT; role++) {
        if (role_of_ends((enum vp_role)role) == in_layer)
            continue;
        for (const char *name = vp_role_names((enum vp_role)role); *name;) {
            size_t length = strcspn(name, " ");
            if (length > best_length && ends_in(module, n, name, length)) {
                best = (enum vp_role)role;
                best_length = length;
            }
            name += length;
            name += *name == ' ';
        }
    }
    return best;
}

/* ---- one tensor ---- */

/* Matrices that tensor parallelism divides along their inputs: what there is per output is whole
 * on every rank, what there is per input is divided. */
static bool by_inputs(enum vp_role role) {
    return role == VP_ROLE_O || role == VP_ROLE_DOWN || role == VP_ROLE_SHARED_DOWN ||
           role == VP_ROLE_LINEAR_OUT;
}

static enum vp_shard part_shard(enum vp_shard shard, bool inputs, enum part part,
                                const struct vp_tensor *tensor) {
    bool per_output = part == PART_BIAS || (part == PART_SCALES && tensor->dims < 2) ||
                      (part == PART_SCALES && tensor->dims == 2 && tensor->shape[1] == 1);
    bool whole =
        tensor->elements == 1 || (part == PART_INPUTS && !inputs) || (per_output && inputs);
    return whole ? VP_SHARD_NONE : shard;
}

struct place {
    enum vp_role role;
    enum vp_shard shard;
};

/* The longest suffix that the name ends in, so that ".weight_scale" is not taken for "_scale". */
static size_t strip_suffix(enum part *out, const char *name, size_t n) {
    size_t best = 0;
    *out = PART_MATRIX;
    for (size_t i = 0; i < sizeof SUFFIXES / sizeof *SUFFIXES; i++) {
        size_t length = strlen(SUFFIXES[i].text);
        if (length > best && length < n &&
            memcmp(name + n - length, SUFFIXES[i].text, length) == 0) {
            best = length;
            *out = SUFFIXES[i].part;
        }
    }
    return n - best;
}

static struct place place_of(const struct vp_tensor *tensor, const struct clues *clues) {
    struct place place = {.role = VP_ROLE_COUNT, .shard = VP_SHARD_NONE};
    size_t n = strlen(tensor->name);
    enum part part;
    if (n > MAX_NAME)
        return place;
    if (clues->experts) { /* whatever there is of an expert goes with it */
        place.shard = VP_SHARD_EXPERT;
        return place;
    }
    size_t stem = strip_suffix(&part, tensor->name, n);
    place.role = role_of(tensor->name, n, clues->in_layer); /* "A_log", "sinks": no suffix */
    if (place.role != VP_ROLE_COUNT) {
        place.shard = vp_role_shard(place.role);
        return place;
    }
    place.role = role_of(tensor->name, stem, clues->in_layer);
    if (place.role != VP_ROLE_COUNT) {
        place.shard = part_shard(vp_role_shard(place.role), by_inputs(place.role), part, tensor);
        return place;
    }
    for (size_t i = 0; i < sizeof FUSED / sizeof *FUSED; i++)
        if (ends_in(tensor->name, stem, FUSED[i].name, strlen(FUSED[i].name)))
            place.shard = part_shard(FUSED[i].shard, FUSED[i].by_inputs, part, tensor);
    return place;
}

/* Buffers that engines compute themselves, and GPT-2's attention masks. */
static bool is_buffer(const struct vp_tensor *tensor) {
    return vp_text_ends(tensor->name, ".inv_freq") ||
           vp_text_ends(tensor->name, ".attn.masked_bias") ||
           (tensor->dims == 4 && vp_text_ends(tensor->name, ".attn.bias"));
}

static void add_tensor(struct vp_model *model, const struct vp_tensor *tensor) {
    struct vp_checkpoint *checkpoint = &model->checkpoint;
    struct clues clues = read_clues(tensor->name);
    if (clues.vision) {
        checkpoint->extra_bytes += tensor->bytes;
        return;
    }
    if (clues.mtp || is_buffer(tensor) || (clues.in_layer && clues.layer >= model->layer_count)) {
        checkpoint->skipped_bytes += tensor->bytes;
        return;
    }
    struct place place = place_of(tensor, &clues);
    bool last = place.role == VP_ROLE_LM_HEAD || place.role == VP_ROLE_FINAL_NORM;
    if (place.role == VP_ROLE_LM_HEAD && model->tied) { /* a copy of the embedding */
        checkpoint->skipped_bytes += tensor->bytes;
        return;
    }
    uint64_t row = clues.in_layer ? clues.layer + 1 : last ? (uint64_t)model->layer_count + 1 : 0;
    checkpoint->bytes[row][place.shard] += tensor->bytes;
}

/* More than a thousandth apart. */
static bool disagree(uint64_t a, uint64_t b) {
    uint64_t apart = a > b ? a - b : b - a;
    return apart > b / 1000;
}

enum vp_status vp_checkpoint_attach(struct vp_ctx *ctx, struct vp_model *model,
                                    const struct vp_tensors *tensors, uint64_t computed_bytes) {
    struct vp_pos pos = {.file = tensors->source};
    struct vp_sum total = vp_sum(0);
    for (size_t i = 0; i < tensors->count; i++)
        total = vp_sum_add(total, tensors->items[i].bytes);
    if (total.overflow) {
        vp_diag_add(ctx->diags, VP_D_OVERFLOW, &pos, "the checkpoint's tensors exceed 64 bits");
        return VP_ERR_INPUT;
    }
    /* No partial sum is above the total, so the additions below cannot overflow. */
    struct vp_checkpoint *checkpoint = &model->checkpoint;
    *checkpoint = (struct vp_checkpoint){.known = true,
                                         .source = tensors->source,
                                         .tensors = tensors->count,
                                         .total_bytes = total.v};
    checkpoint->bytes =
        vp_arena_array(ctx->arena, (size_t)model->layer_count + 2, sizeof *checkpoint->bytes);
    for (size_t i = 0; i < tensors->count; i++)
        add_tensor(model, &tensors->items[i]);

    uint64_t loaded = total.v - checkpoint->skipped_bytes;
    if (computed_bytes && disagree(loaded, computed_bytes)) {
        vp_diag_add(ctx->diags, VP_D_WEIGHTS_DISAGREE, &pos,
                    "the checkpoint's tensors are %s GiB, its config.json describes %s GiB",
                    vp_format_gib(ctx->arena, loaded, 3),
                    vp_format_gib(ctx->arena, computed_bytes, 3));
    }
    return VP_OK;
}
