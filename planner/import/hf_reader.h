/* Reading config.json keys for the family importers: sizes with their faults, one layer after the
 * other. A family is one function and one row of families.def. */
#ifndef VP_IMPORT_HF_READER_H
#define VP_IMPORT_HF_READER_H

#include "planner/doc/node.h"
#include "planner/model/model.h"

/* What distinguishes most families from Llama (RMSNorm, gated MLP, rotary, no bias, untied). */
enum vp_trait {
    VP_T_QKV_BIAS = 1 << 0,    /* bias on q, k, v */
    VP_T_OUT_BIAS = 1 << 1,    /* bias on the output projection */
    VP_T_CONFIG_BIAS = 1 << 2, /* `attention_bias` puts one on all four */
    VP_T_MLP_BIAS = 1 << 3,
    VP_T_QK_NORM = 1 << 4,    /* a norm of head_dim on queries and keys */
    VP_T_TIED = 1 << 5,       /* tie_word_embeddings defaults to true */
    VP_T_LAYER_NORM = 1 << 6, /* weight and bias */
    VP_T_PLAIN_MLP = 1 << 7,  /* two matrices */
    VP_T_NORMS4 = 1 << 8,     /* norms before and after both halves */
    VP_T_ONE_NORM = 1 << 9,   /* attention and MLP side by side behind one norm */
    VP_T_NO_ROTARY = 1 << 10,
    VP_T_HEAD_BIAS = 1 << 11,
    VP_T_WINDOW_ALL = 1 << 12,  /* sliding_window, when set, holds for every layer */
    VP_T_WINDOW_QWEN = 1 << 13, /* use_sliding_window and max_window_layers decide */
    VP_T_NO_KV_HEADS = 1 << 14, /* num_key_value_heads means nothing here */
    VP_T_NO_HEADS = 1 << 15,    /* no attention of the common shape: the family fills the mixers */
    VP_T_WIDTH4 = 1 << 16,      /* a feed-forward width that is not given is 4 x hidden */
    VP_T_QK_FULL = 1 << 17,     /* norms over all heads' queries and keys */
    VP_T_PLAIN_NORM = 1 << 18,  /* norms without weights */
    VP_T_ENCODER = 1 << 19,     /* bidirectional, nothing generated: no cache, no head */
    /* GPT-2's block: LayerNorm, two matrices, biases on everything */
    VP_T_GPT = VP_T_QKV_BIAS | VP_T_OUT_BIAS | VP_T_MLP_BIAS | VP_T_LAYER_NORM | VP_T_PLAIN_MLP
};

struct vp_hf;

struct vp_family {
    const char *model_type;
    unsigned traits;
    void (*shape)(struct vp_hf *hf); /* NULL: the traits say all */
};

struct vp_hf {
    struct vp_ctx *ctx;
    const struct vp_node *top;  /* the whole config.json */
    const struct vp_node *text; /* text_config where there is one, else top */
    const struct vp_family *family;
    struct vp_model *model;
    struct vp_block *layers; /* one per layer, filled with the common shape first */
    uint32_t count;
    uint64_t heads, kv_heads, head_dim, intermediate;
    uint64_t rotary;
    const struct vp_scheme *expert_scheme; /* of experts that the quantisation calls FP8; or NULL */
    bool failed;
};

/* keys: alternatives separated by '|'. The text config is searched first, then the top. */
const struct vp_node *vp_hf_find(const struct vp_hf *hf, const char *keys);
/* A size >= 1; missing, null or wrong: a fault that names the first key. Returns 0 then. */
uint64_t vp_hf_size(struct vp_hf *hf, const char *keys);
/* A size >= 0, `fallback` when missing or null. */
uint64_t vp_hf_size_or(struct vp_hf *hf, const char *keys, uint64_t fallback);
bool vp_hf_flag(struct vp_hf *hf, const char *keys, bool fallback);
/* A whole number inside a map of the config ("attn_config" -> "kv_n_heads"); at least 1 or a fault
 * that names both keys. */
uint64_t vp_hf_size_in(struct vp_hf *hf, const char *map, const char *key);
double vp_hf_real_or(struct vp_hf *hf, const char *keys, double fallback);
/* Element i of a list of text, NULL when there is no such list. A list of another length than the
 * number of layers is a fault. */
const char *vp_hf_layer_type(struct vp_hf *hf, uint32_t layer);
/* The same of another list ("mlp_layer_types"). */
const char *vp_hf_layer_text(struct vp_hf *hf, const char *key, uint32_t layer);
/* The first of `architectures` ends in this word. */
bool vp_hf_architecture(const struct vp_hf *hf, const char *word);
/* Replaces the layers by `count` ones that are empty; a fault above the cap. */
bool vp_hf_layers(struct vp_hf *hf, uint64_t count);
/* Does the list hold the number? False without a list. */
bool vp_hf_list_has(const struct vp_node *list, uint64_t value);
void vp_hf_fault(struct vp_hf *hf, const struct vp_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Type of a recurrent state: its own key, else UNSET for the compute type. */
enum vp_dtype vp_hf_state_dtype(struct vp_hf *hf);
/* Experts by the usual keys; the dense MLP of the layer is taken away. */
void vp_hf_experts(struct vp_hf *hf, struct vp_block *layer, uint64_t width);
/* Vision tower and projector named by vision_config -> model->extras. Unknown towers are left out
 * with a warning. */
void vp_hf_vision(struct vp_hf *hf);
/* Its sizes as a profile run and a prompt see them -> model->encoder, where they are known. */
void vp_hf_encoder(struct vp_hf *hf, const struct vp_node *config, const char *type);
/* a x b x c; a fault that names the first key when that exceeds 64 bits. */
uint64_t vp_hf_product(struct vp_hf *hf, const char *keys, uint64_t a, uint64_t b, uint64_t c);
/* A vision tower or projector: counted, loaded, on the first stage, `matrix` divided. */
void vp_hf_extra(struct vp_hf *hf, const char *name, uint64_t matrix, uint64_t other);
/* Any other tensors, whole on every rank of the first (or the last) stage. */
struct vp_extra *vp_hf_extra_plain(struct vp_hf *hf, const char *name, uint64_t elements,
                                   bool first_stage);
/* Multi-token prediction layers, where the config has some (num_nextn_predict_layers and the
 * like): each is a layer like `like`, a projection from 2 x hidden and `norms` norms. They are
 * neither counted nor loaded without speculation. NULL: the config has none. */
struct vp_extra *vp_hf_mtp(struct vp_hf *hf, const struct vp_block *like, uint32_t norms);

#define X(model_type, traits, shape) void shape(struct vp_hf *hf);
#define VP_FAMILY_PLAIN(model_type, traits)
#define VP_FAMILY_REFUSED(model_type, why)
#include "planner/import/families.def"
#undef X
#undef VP_FAMILY_PLAIN
#undef VP_FAMILY_REFUSED

#endif
