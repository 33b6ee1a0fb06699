#include "planner/import/hf_config.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/import/hf_reader.h"
#include "planner/import/quant.h"

static const struct vp_family families[] = {
#define X(model_type, traits, shape) {model_type, traits, shape},
#define VP_FAMILY_PLAIN(model_type, traits) {model_type, traits, NULL},
#define VP_FAMILY_REFUSED(model_type, why)
#include "planner/import/families.def"
#undef X
#undef VP_FAMILY_PLAIN
#undef VP_FAMILY_REFUSED
};

/* Known, and known not to fit into the model's structures. */
static const struct {
    const char *model_type, *why;
} refused[] = {
#define X(model_type, traits, shape)
#define VP_FAMILY_PLAIN(model_type, traits)
#define VP_FAMILY_REFUSED(model_type, why) {model_type, why},
#include "planner/import/families.def"
#undef X
#undef VP_FAMILY_PLAIN
#undef VP_FAMILY_REFUSED
};

enum { FAMILY_COUNT = sizeof families / sizeof families[0] };

/* A multimodal model_type and its text part's share one row ("gemma3" and "gemma3_text"). */
static const struct vp_family *find_family(struct vp_ctx *ctx, const char *type) {
    const char *text = vp_arena_printf(ctx->arena, "%s_text", type);

    for (int i = 0; i < FAMILY_COUNT; i++)
        if (strcmp(families[i].model_type, type) == 0 || strcmp(families[i].model_type, text) == 0)
            return &families[i];
    return NULL;
}

/* Names what is not known and shows the lines to write by hand, with the sizes the config has. */
static void refuse(struct vp_hf *hf, const char *type) {
    const char *names[FAMILY_COUNT];
    static const char *const keys[] = {"num_hidden_layers", "num_attention_heads",
                                       "num_key_value_heads", "head_dim", "intermediate_size"};
    const char *value[5];

    for (int i = 0; i < FAMILY_COUNT; i++)
        names[i] = families[i].model_type;
    for (int i = 0; i < 5; i++) {
        const struct vp_node *node = vp_hf_find(hf, keys[i]);
        value[i] = node && vp_node_text(node) ? vp_node_text(node) : "N";
    }
    const char *near = vp_text_nearest(type, names, FAMILY_COUNT), *why = NULL;
    const struct vp_node *where = vp_hf_find(hf, "model_type|architectures");
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        if (vp_text_eq(refused[i].model_type, type))
            why = refused[i].why;
    vp_diag_add(hf->ctx->diags, VP_D_FAMILY_UNKNOWN, where ? &where->pos : &hf->top->pos,
                why ? "model_type '%s' is refused: %s" : "model_type '%s' has no importer, and %s",
                type, why ? why : "nothing about it is guessed");
    if (why)
        near = NULL;
    vp_diag_hint(hf->ctx->diags,
                 "%s%s%sdescribe it by hand:\n"
                 "model:\n"
                 "  hidden_size: %s\n"
                 "  vocab_size: %s\n"
                 "  blocks:\n"
                 "    - repeat: %s\n"
                 "      attention: {kind: gqa, heads: %s, kv_heads: %s, head_dim: %s}\n"
                 "      mlp: {kind: gated, intermediate_size: %s}",
                 near ? "did you mean '" : "", near ? near : "", near ? "'? Otherwise " : "",
                 vp_hf_find(hf, "hidden_size") ? vp_node_text(vp_hf_find(hf, "hidden_size")) : "N",
                 vp_hf_find(hf, "vocab_size") ? vp_node_text(vp_hf_find(hf, "vocab_size")) : "N",
                 value[0], value[1], value[2], value[3], value[4]);
    hf->failed = true;
}

static enum vp_dtype config_dtype(struct vp_hf *hf) {
    const struct vp_node *node = vp_hf_find(hf, "torch_dtype|dtype");
    enum vp_dtype dtype;

    if (!node)
        return VP_DTYPE_BF16;
    const char *text = vp_node_text(node);
    if (text && strcmp(text, "auto") == 0)
        return VP_DTYPE_BF16;
    dtype = text ? vp_dtype_parse(text) : VP_DTYPE_UNSET;
    if (dtype != VP_DTYPE_BF16 && dtype != VP_DTYPE_FP16 && dtype != VP_DTYPE_FP32) {
        vp_hf_fault(hf, node, "torch_dtype '%s' is not bfloat16, float16 or float32",
                    text ? text : "?");
        return VP_DTYPE_BF16;
    }
    return dtype;
}

/* ---- the shape that most families share ---- */

static uint64_t rotary_dim(struct vp_hf *hf) {
    const struct vp_node *rope = vp_hf_find(hf, "rope_parameters");
    const struct vp_node *partial = vp_node_get(rope, "partial_rotary_factor");
    double factor = vp_hf_real_or(hf, "partial_rotary_factor|rotary_pct", 1.0);

    if (hf->family->traits & VP_T_NO_ROTARY)
        return 0;
    if (partial)
        vp_node_real(&factor, partial);
    if (!(factor > 0.0 && factor <= 1.0)) {
        vp_hf_fault(hf, partial, "partial_rotary_factor must be in (0, 1]");
        return 0;
    }
    uint64_t dim = (uint64_t)((double)hf->head_dim * factor);
    return vp_hf_size_or(hf, "rotary_dim|attn_rotary_emb", dim);
}

/* Rows of the cos/sin table: linear scaling stretches it by its factor; the other kinds keep
 * max_position_embeddings rows, which already hold their factor (vLLM rotary_embedding). */
static uint64_t scaled_positions(struct vp_hf *hf) {
    const struct vp_node *scaling = vp_hf_find(hf, "rope_scaling|rope_parameters");
    const struct vp_node *type = vp_node_get(scaling, "rope_type");
    double factor = 1.0;

    if (!type)
        type = vp_node_get(scaling, "type");
    if (type && vp_text_eq(vp_node_text(type), "linear"))
        vp_node_real(&factor, vp_node_get(scaling, "factor"));
    if (!(factor >= 1.0 && factor <= 1024.0)) {
        vp_hf_fault(hf, scaling, "rope_scaling: a linear factor must be between 1 and 1024");
        factor = 1.0;
    }
    return (uint64_t)((double)hf->model->max_position * factor);
}

static void set_window(struct vp_hf *hf, uint32_t i, struct vp_attention *attention) {
    unsigned traits = hf->family->traits;
    uint64_t window = vp_hf_size_or(hf, "sliding_window", 0);
    const char *type = vp_hf_layer_type(hf, i);

    if (type) {
        if (strcmp(type, "sliding_attention") == 0)
            attention->window = window;
    } else if (traits & VP_T_WINDOW_ALL) {
        attention->window = window;
    } else if ((traits & VP_T_WINDOW_QWEN) && vp_hf_flag(hf, "use_sliding_window", false)) {
        if (i >= vp_hf_size_or(hf, "max_window_layers", 0))
            attention->window = window;
    }
}

static enum vp_norm_kind norm_kind(unsigned traits) {
    return traits & VP_T_LAYER_NORM   ? VP_NORM_LAYER
           : traits & VP_T_PLAIN_NORM ? VP_NORM_PLAIN
                                      : VP_NORM_RMS;
}

static void common_layer(struct vp_hf *hf, struct vp_block *layer) {
    unsigned traits = hf->family->traits;
    bool bias = (traits & VP_T_CONFIG_BIAS) && vp_hf_flag(hf, "attention_bias", false);
    struct vp_attention *a = &layer->attention;

    layer->norms = traits & VP_T_NORMS4 ? 4 : traits & VP_T_ONE_NORM ? 1 : 2;
    layer->norm = norm_kind(traits);
    if (!(traits & VP_T_NO_HEADS)) {
        a->kind = VP_ATTENTION_GQA;
        a->heads = hf->heads;
        a->kv_heads = hf->kv_heads;
        a->head_dim = a->v_head_dim = hf->head_dim;
        a->qkv_bias = bias || (traits & VP_T_QKV_BIAS);
        a->out_bias = bias || (traits & VP_T_OUT_BIAS);
        a->qk_norm = traits & VP_T_QK_NORM   ? VP_QK_NORM_HEAD
                     : traits & VP_T_QK_FULL ? VP_QK_NORM_FULL
                                             : VP_QK_NORM_NONE;
        a->rotary_dim = hf->rotary;
        a->bidirectional = (traits & VP_T_ENCODER) != 0;
    }
    if (hf->intermediate > 0 || !(traits & VP_T_NO_HEADS))
        layer->mlp.kind = traits & VP_T_PLAIN_MLP ? VP_MLP_PLAIN : VP_MLP_GATED;
    layer->mlp.intermediate = hf->intermediate;
    layer->mlp.bias = (traits & VP_T_MLP_BIAS) || vp_hf_flag(hf, "mlp_bias", false);
}

/* The keys that families use for the same sizes. */
static const char layer_keys[] = "num_hidden_layers|n_layer|num_layers|n_layers|encoder_layers";
static const char head_keys[] =
    "num_attention_heads|n_head|n_heads|num_heads|encoder_attention_heads";
static const char head_dim_keys[] = "head_dim|attention_head_dim|d_kv|kv_channels";
static const char width_keys[] =
    "intermediate_size|ffn_dim|n_inner|d_ff|hidden_dim|ffn_hidden_size";
static const char position_keys[] =
    "max_position_embeddings|n_positions|max_seq_len|seq_length|model_max_length|"
    "max_target_positions|max_sequence_length|n_ctx";

static uint64_t layer_count(struct vp_hf *hf) {
    const struct vp_node *list = vp_hf_find(hf, "layers_block_type");

    if (!vp_hf_find(hf, layer_keys) && list && list->kind == VP_NODE_LIST && list->count > 0)
        return list->count;
    return vp_hf_size(hf, layer_keys);
}

static void read_model(struct vp_hf *hf) {
    struct vp_model *model = hf->model;
    unsigned traits = hf->family->traits;

    model->hidden = vp_hf_size(hf, "hidden_size|n_embd|d_model|n_embed|dim");
    model->vocab = vp_hf_size(hf, "padded_vocab_size|vocab_size");
    model->max_position = vp_hf_size_or(hf, position_keys, 0);
    model->embedding = true;
    model->lm_head = !(traits & VP_T_ENCODER);
    model->encoder_only = (traits & VP_T_ENCODER) != 0;
    model->tied =
        model->lm_head && vp_hf_flag(hf, "tie_word_embeddings", (traits & VP_T_TIED) != 0);
    model->final_norm = true;
    model->final_norm_kind = norm_kind(traits);
    model->head_bias = (traits & VP_T_HEAD_BIAS) != 0;
    model->dtype = config_dtype(hf);
}

/* The sizes of the common attention; those of a layer may differ. */
static void read_heads(struct vp_hf *hf) {
    struct vp_model *model = hf->model;
    unsigned traits = hf->family->traits;

    hf->heads = vp_hf_size(hf, head_keys);
    hf->kv_heads =
        traits & VP_T_NO_KV_HEADS ? hf->heads : vp_hf_size_or(hf, "num_key_value_heads", hf->heads);
    if (hf->failed)
        return;
    bool uneven = model->hidden % hf->heads != 0;
    if (uneven && !vp_hf_find(hf, head_dim_keys) &&
        !(traits & VP_T_NO_KV_HEADS)) { /* latent attention has head sizes of its own */
        vp_hf_fault(hf, NULL,
                    "num_attention_heads (%llu) does not divide hidden_size (%llu) and "
                    "there is no head_dim",
                    (unsigned long long)hf->heads, (unsigned long long)model->hidden);
        return;
    }
    hf->head_dim = vp_hf_size_or(hf, head_dim_keys, model->hidden / hf->heads);
    hf->rotary = rotary_dim(hf);
    model->rotary_positions = hf->rotary > 0 ? scaled_positions(hf) : 0;
}

static enum vp_activation_kind read_activation(const struct vp_hf *hf) {
    static const struct {
        const char *name;
        enum vp_activation_kind activation;
    } NAMES[] = {{"silu", VP_ACTIVATION_SILU},
                 {"swish", VP_ACTIVATION_SILU},
                 {"swiglu", VP_ACTIVATION_SILU},
                 {"gelu", VP_ACTIVATION_GELU},
                 {"gelu_pytorch_tanh", VP_ACTIVATION_GELU_TANH},
                 {"gelu_new", VP_ACTIVATION_GELU_NEW},
                 {"gelu_fast", VP_ACTIVATION_GELU_NEW},
                 {"relu", VP_ACTIVATION_RELU},
                 {"relu2", VP_ACTIVATION_RELU2}};
    const struct vp_node *node =
        vp_hf_find(hf, "hidden_act|hidden_activation|activation_function|activation");
    const char *text = node ? vp_node_text(node) : NULL;

    for (size_t i = 0; text && i < sizeof NAMES / sizeof *NAMES; i++)
        if (strcmp(NAMES[i].name, text) == 0)
            return NAMES[i].activation;
    return VP_ACTIVATION_UNKNOWN;
}

static void read_common(struct vp_hf *hf) {
    unsigned traits = hf->family->traits;
    uint64_t layers = layer_count(hf);

    read_model(hf);
    hf->model->activation = read_activation(hf);
    hf->intermediate =
        vp_hf_size_or(hf, width_keys, traits & VP_T_WIDTH4 ? 4 * hf->model->hidden : 0);
    if (layers > VP_MAX_LAYERS) {
        vp_hf_fault(hf, vp_hf_find(hf, layer_keys), "num_hidden_layers: %llu layers; the cap is %d",
                    (unsigned long long)layers, VP_MAX_LAYERS);
        layers = 0;
    }
    hf->count = (uint32_t)layers;
    if (!(traits & VP_T_NO_HEADS))
        read_heads(hf);
    if (hf->failed)
        return;
    hf->layers = VP_NEW_ARRAY(hf->ctx->arena, hf->count, struct vp_block);
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++) {
        common_layer(hf, &hf->layers[i]);
        set_window(hf, i, &hf->layers[i].attention);
    }
}

/* ---- how the tensors are stored ---- */

static bool has_kind(const struct vp_block *block, enum vp_attention_kind kind) {
    return block->attention.kind == kind || block->second.kind == kind;
}

static bool role_used(const struct vp_block *block, enum vp_role role) {
    switch (vp_role_class(role)) {
    case VP_CLASS_ATTENTION:
        return has_kind(block, VP_ATTENTION_GQA) || has_kind(block, VP_ATTENTION_MLA) ||
               has_kind(block, VP_ATTENTION_COMPRESSED);
    case VP_CLASS_LINEAR:
    case VP_CLASS_CONV:
        return has_kind(block, VP_ATTENTION_LINEAR);
    case VP_CLASS_MLP:
        return block->mlp.kind != VP_MLP_NONE;
    case VP_CLASS_EXPERT:
    case VP_CLASS_ROUTER:
        return block->moe.kind != VP_MLP_NONE;
    case VP_CLASS_SHARED:
        return block->moe.shared_intermediate > 0 || block->moe.input > 0;
    default:
        return false;
    }
}

static bool index_scheme(struct vp_hf *hf, uint8_t *out, const struct vp_scheme *scheme) {
    uint32_t index = vp_model_scheme(hf->model, scheme);

    if (index >= VP_MAX_SCHEMES) {
        vp_hf_fault(hf, NULL, "the checkpoint stores its tensors in more than %d ways",
                    VP_MAX_SCHEMES);
        return false;
    }
    *out = (uint8_t)index;
    return true;
}

static void layer_schemes(struct vp_hf *hf, const struct vp_quant *quant, uint32_t i,
                          struct vp_block *layer) {
    for (int role = 0; role < VP_ROLE_COUNT; role++) {
        if (!role_used(layer, (enum vp_role)role))
            continue;
        const struct vp_scheme *scheme = vp_quant_role_scheme(quant, i, layer, (enum vp_role)role);
        if (hf->expert_scheme && vp_role_class((enum vp_role)role) == VP_CLASS_EXPERT &&
            scheme->data == VP_DTYPE_FP8)
            scheme = hf->expert_scheme;
        if (!index_scheme(hf, &layer->scheme[role], scheme))
            return;
    }
}

static void set_schemes(struct vp_hf *hf, const struct vp_quant *quant,
                        const struct vp_scheme *plain) {
    struct vp_model *model = hf->model;
    uint32_t next = hf->count; /* MTP layers are numbered behind the others */

    vp_model_scheme(model, plain); /* index 0: what is not quantised */
    if (!quant)
        return;
    index_scheme(hf, &model->head_scheme, vp_quant_scheme(quant, "lm_head", VP_CLASS_LM_HEAD));
    index_scheme(hf, &model->embedding_scheme,
                 vp_quant_scheme(quant, "model.embed_tokens", VP_CLASS_EMBEDDING));
    if (model->tied)
        model->head_scheme = model->embedding_scheme;
    for (uint32_t i = 0; i < hf->count && !hf->failed; i++)
        layer_schemes(hf, quant, i, &hf->layers[i]);
    for (uint32_t i = 0; i < model->extra_count && !hf->failed; i++) {
        if (!model->extras[i].layer)
            continue;
        layer_schemes(hf, quant, next, model->extras[i].layer);
        next += model->extras[i].layers;
    }
}

static const char *family_name(const struct vp_hf *hf) {
    const struct vp_node *type = vp_node_get(hf->text, "model_type");
    const struct vp_node *list;

    if (!type)
        type = vp_node_get(hf->top, "model_type");
    if (type && vp_node_text(type))
        return vp_node_text(type);
    list = vp_node_get(hf->top, "architectures");
    if (list && list->kind == VP_NODE_LIST && list->count > 0 && vp_node_text(list->items[0]))
        return vp_node_text(list->items[0]);
    return "(none)";
}

enum vp_status vp_hf_read(struct vp_ctx *ctx, struct vp_model *out, const struct vp_node *config,
                          const struct vp_node *hf_quant) {
    struct vp_hf hf = {.ctx = ctx, .top = config, .text = config, .model = out};
    const struct vp_node *text = vp_node_get(config, "text_config");
    struct vp_quant *quant = NULL;

    if (config->kind != VP_NODE_MAP) {
        vp_diag_add(ctx->diags, VP_D_MODEL_FIELD, &config->pos,
                    "a model description must be a map (JSON object), not %s",
                    vp_node_kind_name(config->kind));
        return VP_ERR_INPUT;
    }
    if (text && text->kind == VP_NODE_MAP)
        hf.text = text;
    out->pos = config->pos;
    out->model_type = family_name(&hf);
    hf.family = find_family(ctx, out->model_type);
    if (!hf.family && hf.text != config && vp_node_text(vp_node_get(config, "model_type")))
        hf.family = find_family(ctx, vp_node_text(vp_node_get(config, "model_type")));
    if (!hf.family) {
        refuse(&hf, out->model_type);
        return VP_ERR_INPUT;
    }
    read_common(&hf);
    if (!hf.failed && hf.family->shape)
        hf.family->shape(&hf);
    if (!hf.failed && vp_node_get(config, "vision_config"))
        vp_hf_vision(&hf);
    if (hf.failed)
        return VP_ERR_INPUT;

    struct vp_scheme plain = {.data = out->dtype};
    strncpy(plain.name, vp_dtype_name(out->dtype), sizeof plain.name - 1);
    enum vp_status status =
        vp_quant_read(ctx, &quant, vp_hf_find(&hf, "quantization_config"), hf_quant, &plain);
    if (status != VP_OK)
        return status;
    set_schemes(&hf, quant, &plain);
    if (hf.failed)
        return VP_ERR_INPUT;
    vp_model_fold(ctx, out, hf.layers, hf.count);
    return VP_OK;
}
