#include "planner/model/gguf_table.h"

#include <string.h>

#include "planner/base/text.h"

/* ---- names ---- */

static const struct {
    const char *stem;
    uint8_t length;
    enum vp_gguf_kind kind;
} NAMES[] = {
#define X(stem, kind, role) {stem, sizeof stem - 1, VP_GGUF_##kind},
#include "planner/model/gguf_names.def"
#undef X
};

/* Tensors without "blk.": prefix of the name, place, kind; places as in llama-arch.cpp, where the
 * norm behind the embedding counts to the first block. */
static const struct {
    const char *prefix;
    enum vp_gguf_place place;
    enum vp_gguf_kind kind;
} ENDS[] = {
    {"token_embd.", VP_GGUF_INPUT, VP_GGUF_EMBEDDING},
    {"position_embd.", VP_GGUF_INPUT, VP_GGUF_EMBEDDING},
    {"token_types.", VP_GGUF_INPUT, VP_GGUF_EMBEDDING},
    {"per_layer_token_embd.", VP_GGUF_INPUT, VP_GGUF_EMBEDDING},
    {"masked_embd_", VP_GGUF_INPUT, VP_GGUF_EMBEDDING},
    {"token_embd_norm.", VP_GGUF_BLOCK, VP_GGUF_VECTOR},
    {"per_layer_model_proj.", VP_GGUF_BLOCK, VP_GGUF_OTHER},
    {"per_layer_proj_norm.", VP_GGUF_BLOCK, VP_GGUF_VECTOR},
    {"rope_freqs.", VP_GGUF_BLOCK, VP_GGUF_VECTOR},
    {"rope_factors_", VP_GGUF_BLOCK, VP_GGUF_VECTOR},
    {"output_norm.", VP_GGUF_OUTPUT, VP_GGUF_VECTOR},
    {"output.", VP_GGUF_OUTPUT, VP_GGUF_HEAD},
    {"v.", VP_GGUF_EXTRA, VP_GGUF_OTHER},
    {"a.", VP_GGUF_EXTRA, VP_GGUF_OTHER},
    {"mm.", VP_GGUF_EXTRA, VP_GGUF_OTHER},
    {"resampler.", VP_GGUF_EXTRA, VP_GGUF_OTHER},
};

/* "blk.12." -> 12 and the rest of the name; "enc.blk." and "dec.blk." (T5) as well. */
static const char *block_number(int32_t *out, const char *name) {
    const char *p = name;
    int32_t n = 0;
    if (vp_text_starts(p, "enc.") || vp_text_starts(p, "dec."))
        p += 4;
    if (!vp_text_starts(p, "blk.") || p[4] < '0' || p[4] > '9')
        return NULL;
    for (p += 4; *p >= '0' && *p <= '9'; p++) {
        if (n > 100000)
            return NULL;
        n = n * 10 + (*p - '0');
    }
    *out = n;
    return *p == '.' ? p + 1 : NULL;
}

const char *vp_gguf_stem(size_t *length, const char *name) {
    int32_t layer;
    const char *stem = block_number(&layer, name);
    if (!stem)
        return NULL;
    size_t n = strlen(stem);
    if (vp_text_ends(stem, ".weight"))
        n -= 7;
    else if (vp_text_ends(stem, ".bias"))
        n -= 5;
    *length = n;
    return stem;
}

static enum vp_gguf_kind kind_of_block(const char *name, uint32_t dims) {
    size_t n;
    const char *stem = vp_gguf_stem(&n, name);
    if (dims <= 1 || vp_text_ends(name, ".bias"))
        return VP_GGUF_VECTOR;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (NAMES[i].length == n && memcmp(NAMES[i].stem, stem, n) == 0)
            return NAMES[i].kind;
    /* old files have one tensor per expert: "ffn_up.3" */
    if (n > 8 && vp_text_starts(stem, "ffn_") && memchr(stem, '.', n) && stem[n - 1] >= '0' &&
        stem[n - 1] <= '9')
        return VP_GGUF_EXPERT;
    if (vp_text_starts(stem, "time_mix_") || vp_text_starts(stem, "channel_mix_"))
        return VP_GGUF_RECURRENT;
    return vp_text_ends(name, "_norm.weight") ? VP_GGUF_VECTOR : VP_GGUF_OTHER;
}

void vp_gguf_classify(struct vp_gguf_tensor *t, uint32_t layers) {
    uint32_t dims = t->dims; /* a trailing dimension of one is none */
    while (dims > 1 && t->ne[dims - 1] == 1)
        dims--;
    t->nextn = t->every = false;
    if (block_number(&t->layer, t->name)) {
        t->place = VP_GGUF_BLOCK;
        t->nextn = (uint32_t)t->layer >= layers;
        t->kind = kind_of_block(t->name, dims);
        return;
    }
    t->place = VP_GGUF_OUTPUT; /* classifiers, second heads and the like */
    t->kind = dims > 1 ? VP_GGUF_OTHER : VP_GGUF_VECTOR;
    for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++) {
        if (!vp_text_starts(t->name, ENDS[i].prefix))
            continue;
        t->place = ENDS[i].place;
        t->kind = vp_text_ends(t->name, ".bias") ? VP_GGUF_VECTOR : ENDS[i].kind;
        break;
    }
    t->nextn = vp_text_starts(t->name, "nextn.");
    t->every = vp_text_starts(t->name, "rope_f");
    t->layer = t->place == VP_GGUF_BLOCK ? 0 : t->place == VP_GGUF_OUTPUT ? (int32_t)layers : -1;
}

/* ---- sizes ---- */

bool vp_gguf_measure(struct vp_gguf_tensor *t) {
    struct vp_sum rows = vp_sum(t->ne[1]);
    rows = vp_sum_mul(vp_sum_mul(rows, t->ne[2]), t->ne[3]);
    struct vp_sum elements = vp_sum_mul(rows, t->ne[0]);
    struct vp_sum bytes = vp_sum_mul(vp_dtype_bytes(t->type, vp_sum(t->ne[0])), rows.v);
    t->elements = elements.v;
    t->bytes = bytes.v;
    return !rows.overflow && !elements.overflow && !bytes.overflow;
}

bool vp_gguf_total(struct vp_gguf_table *table) {
    struct vp_sum bytes = vp_sum(0), parameters = vp_sum(0);
    for (uint32_t i = 0; i < table->count; i++) {
        const struct vp_gguf_tensor *t = &table->tensor[i];
        bytes = vp_sum_add(bytes, t->bytes);
        if (!t->nextn && t->place != VP_GGUF_EXTRA)
            parameters = vp_sum_add(parameters, t->elements);
    }
    table->data_bytes = bytes.v;
    table->parameters = parameters.v;
    return !bytes.overflow && !parameters.overflow;
}

/* ---- what the quantizer does ---- */

static enum vp_dtype fallback(enum vp_dtype type) {
    switch (type) {
    case VP_DTYPE_IQ1_S:
    case VP_DTYPE_IQ1_M:
    case VP_DTYPE_IQ2_XXS:
    case VP_DTYPE_IQ2_XS:
    case VP_DTYPE_IQ2_S:
    case VP_DTYPE_IQ3_XXS:
    case VP_DTYPE_IQ3_S:
    case VP_DTYPE_IQ4_XS:
        return VP_DTYPE_IQ4_NL;
    case VP_DTYPE_Q2_0:
    case VP_DTYPE_Q2_K:
    case VP_DTYPE_Q3_K:
    case VP_DTYPE_TQ1_0:
    case VP_DTYPE_TQ2_0:
        return VP_DTYPE_Q4_0;
    case VP_DTYPE_Q4_K:
        return VP_DTYPE_Q5_0;
    case VP_DTYPE_Q5_K:
        return VP_DTYPE_Q5_1;
    case VP_DTYPE_Q6_K:
        return VP_DTYPE_Q8_0;
    default:
        return VP_DTYPE_FP16; /* the quantizer defines none and gives up */
    }
}

/* Rows must be whole blocks as ggml stores them. */
static bool fits(enum vp_dtype type, uint64_t row) {
    enum { NVFP4_BLOCK = 64 }; /* four of ours */
    return row % (type == VP_DTYPE_NVFP4 ? NVFP4_BLOCK : vp_dtype_block(type)) == 0;
}

/* Small or sensitive matrices that every quantizer leaves alone. */
static bool is_left_alone(const struct vp_gguf_tensor *t) {
    static const char *const PARTS[] = {
        "altup",
        "laurel",
        "per_layer_model_proj",
        "ssm_conv1d",
        "shortconv.conv.",
        "indexer.k_proj",
        "indexer.q_proj",
        "time_mix_first",
        "time_mix_w0",
        "time_mix_w1",
        "time_mix_w2",
        "time_mix_v0",
        "time_mix_v1",
        "time_mix_v2",
        "time_mix_a0",
        "time_mix_a1",
        "time_mix_a2",
        "time_mix_g1",
        "time_mix_g2",
        "time_mix_decay_w",
        "attn_rel_b",
        "time_mix_lerp_",
        "position_embd",
        "token_types",
        "ffn_gate_tid2eid",
    };
    for (size_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++)
        if (strstr(t->name, PARTS[i]))
            return true;
    return false;
}

enum vp_dtype vp_gguf_stored_type(const struct vp_gguf_tensor *t, enum vp_dtype type) {
    bool expert_gate = t->kind == VP_GGUF_ROUTER && strstr(t->name, "ffn_gate_inp.");
    if (t->kind == VP_GGUF_VECTOR || expert_gate || is_left_alone(t))
        return VP_DTYPE_FP32;
    if (type == VP_DTYPE_MXFP4 && t->kind != VP_GGUF_EXPERT)
        type = VP_DTYPE_Q8_0;
    if (fits(type, t->ne[0]))
        return type;
    type = fallback(type);
    return fits(type, t->ne[0]) ? type : VP_DTYPE_FP16;
}
