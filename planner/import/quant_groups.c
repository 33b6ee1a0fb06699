/* Quantisation by groups of modules: compressed-tensors, modelopt, quark. */
#include <string.h>

#include "planner/base/text.h"
#include "planner/import/quant_rules.h"

static bool contains(const char *text, const char *part) { return text && strstr(text, part); }

/* ---- compressed-tensors ---- */

/* Activations whose scales were measured beforehand: one is stored beside each matrix. */
static bool static_input(const struct vp_node *activations) {
    const struct vp_node *dynamic = vp_node_get(activations, "dynamic");
    bool v;
    if (vp_node_is_null(activations))
        return false;
    return vp_node_is_null(dynamic) || (vp_node_bool(&v, dynamic) ? !v : true); /* "local" */
}

/* 4-bit floats exist in two forms, told by the group. */
static bool float4_scheme(struct vp_quant_reader *reader, struct vp_scheme *out,
                          const struct vp_node *weights, const char *format) {
    uint32_t group = vp_quant_group_size(reader, weights, "group_size");
    if (group == 32 || (group == 0 && contains(format, "mxfp4"))) {
        out->data = VP_DTYPE_MXFP4;
        out->scale = VP_SCALE_NONE;
        out->input_scale = false;
    } else if (group == 16 || group == 0) {
        out->data = VP_DTYPE_NVFP4; /* its fp8 scales included */
        out->scale = VP_SCALE_TENSOR;
        out->scale_dtype = VP_DTYPE_FP32;
    } else {
        vp_quant_refuse(reader, weights, "4-bit floats in groups of %u are not known", group);
        return false;
    }
    return true;
}

static bool scale_shape(struct vp_quant_reader *reader, struct vp_scheme *out,
                        const struct vp_node *weights) {
    uint32_t group = vp_quant_group_size(reader, weights, "group_size"), block[2];
    const char *strategy = vp_quant_word(reader, weights, "strategy", group ? "group" : "tensor");
    if (vp_text_eq(strategy, "tensor")) {
        out->scale = VP_SCALE_TENSOR;
    } else if (vp_text_eq(strategy, "channel") || (vp_text_eq(strategy, "group") && group == 0)) {
        out->scale = VP_SCALE_CHANNEL;
    } else if (vp_text_eq(strategy, "group") || vp_text_eq(strategy, "tensor_group")) {
        out->scale = VP_SCALE_GROUP;
        out->group = group ? group : 128;
    } else if (vp_text_eq(strategy, "block")) {
        vp_quant_block(reader, weights, "block_structure", block);
        out->scale = VP_SCALE_BLOCK;
        out->block_out = block[0] ? block[0] : 128;
        out->block_in = block[1] ? block[1] : 128;
    } else {
        vp_quant_refuse(reader, vp_node_get(weights, "strategy"),
                        "weight strategy \"%.40s\" is not known", strategy);
        return false;
    }
    return true;
}

/* A group's "weights" -> how they are stored. The two numbers of "weight_shape" that packed formats
 * keep beside each matrix (16 bytes) are left out. */
static bool weights_scheme(struct vp_quant_reader *reader, struct vp_scheme *out,
                           const struct vp_node *group, const char *format) {
    const struct vp_node *weights = vp_node_get(group, "weights");
    const struct vp_node *activations = vp_node_get(group, "input_activations");
    uint32_t bits = vp_quant_count(reader, weights, "num_bits", 8);
    const char *type = vp_quant_word(reader, weights, "type", "int");
    bool is_float = vp_text_eq(type, "float"), known = is_float || vp_text_eq(type, "int");
    *out = (struct vp_scheme){.input_scale = static_input(activations)};
    if (known && is_float && bits == 4)
        return float4_scheme(reader, out, weights, format);
    if (is_float && bits == 8)
        out->data = VP_DTYPE_FP8;
    else if (!is_float)
        out->data = bits == 8   ? VP_DTYPE_INT8
                    : bits == 4 ? VP_DTYPE_INT4
                    : bits == 2 ? VP_DTYPE_INT2
                                : VP_DTYPE_UNSET;
    if (!known || out->data == VP_DTYPE_UNSET) {
        vp_quant_refuse(reader, weights, "weights of %u bits and type \"%.40s\" are not known",
                        bits, type);
        return false;
    }
    if (!scale_shape(reader, out, weights))
        return false;
    /* Weight-only kernels keep the scales in the model's type, the others load them as fp32. */
    bool weight_only = vp_node_is_null(activations) && out->scale != VP_SCALE_BLOCK;
    out->scale_dtype = weight_only ? vp_quant_half(reader->quant) : VP_DTYPE_FP32;
    if (is_float && out->scale == VP_SCALE_GROUP && out->group == 32)
        out->scale_dtype = VP_DTYPE_E8M0; /* MXFP8 */
    if (!vp_quant_flag(reader, weights, "symmetric", true))
        out->zero_dtype = out->data;
    if (vp_text_eq(vp_node_text(vp_node_get(weights, "actorder")), "group"))
        out->extra_per_input = 4; /* weight_g_idx, int32 */
    return true;
}

/* A target is a module's name, a pattern, or the class of modules as PyTorch calls it. */
static void add_target(struct vp_quant_reader *reader, struct vp_quant_rule *rule,
                       const struct vp_node *target, const struct vp_scheme *scheme) {
    const struct vp_scheme **by_class = reader->quant->by_class;
    const char *text = vp_node_text(target);
    bool is_class = text && *text >= 'A' && *text <= 'Z' && !strchr(text, '.');
    if (!is_class) {
        vp_quant_rule_names(reader, rule, target);
    } else if (contains(text, "Linear")) {
        vp_quant_linear(reader, scheme, true);
    } else if (contains(text, "MoE") || contains(text, "Experts")) {
        if (!by_class[VP_CLASS_EXPERT])
            by_class[VP_CLASS_EXPERT] = scheme;
    } else if (contains(text, "Embedding")) {
        if (!by_class[VP_CLASS_EMBEDDING])
            by_class[VP_CLASS_EMBEDDING] = scheme;
    } else if (!contains(text, "Attention")) { /* that one is about the KV cache */
        vp_quant_refuse(reader, target, "quantisation of the module class \"%.60s\" is not known",
                        text);
    }
}

static void read_group(struct vp_quant_reader *reader, const struct vp_node *group,
                       const char *format) {
    const struct vp_node *targets = vp_node_get(group, "targets");
    const struct vp_scheme *scheme = &reader->quant->plain;
    struct vp_scheme own;
    format = vp_quant_word(reader, group, "format", format);
    if (contains(format, "marlin-24") || contains(format, "sparse")) {
        vp_quant_refuse(reader, group, "the weight format \"%.60s\" is not known", format);
        return;
    }
    bool stored = !vp_node_is_null(vp_node_get(group, "weights")) && !vp_text_eq(format, "dense");
    if (stored) {
        if (!weights_scheme(reader, &own, group, format))
            return;
        scheme = vp_quant_keep(reader, own);
    }
    if (!targets || targets->kind != VP_NODE_LIST) {
        vp_quant_fault(reader, group, "config_groups", "a group has no list of targets");
        return;
    }
    struct vp_quant_rule *rule = vp_quant_rule_add(reader, scheme);
    for (uint32_t i = 0; i < targets->count; i++)
        add_target(reader, rule, targets->items[i], scheme);
}

static void read_groups(struct vp_quant_reader *reader) {
    const struct vp_node *groups = vp_quant_get(reader, "config_groups");
    const char *format = vp_quant_word(reader, reader->map, "format", NULL);
    if (!groups || groups->kind != VP_NODE_MAP) {
        vp_quant_fault(reader, groups, "config_groups", "a map of groups is expected");
        return;
    }
    for (uint32_t i = 0; i < groups->count; i++)
        read_group(reader, groups->items[i], format);
}

void vp_quant_compressed(struct vp_quant_reader *reader) {
    const struct vp_node *sparsity = vp_quant_get(reader, "sparsity_config");
    const char *sparse = vp_quant_word(reader, sparsity, "format", "dense");
    if (!vp_text_eq(sparse, "dense"))
        vp_quant_refuse(reader, sparsity, "the sparse format \"%.60s\" is not known", sparse);
    vp_quant_skip(reader, "ignore");
    if (vp_quant_get(reader, "config_groups") || !sparsity)
        read_groups(reader);
}

/* ---- modelopt ---- */

/* group: what the format's group_size must be, 0: any. */
static const struct {
    const char *name;
    uint32_t group;
    struct vp_scheme scheme;
} ALGOS[] = {
#define PER_TENSOR .scale = VP_SCALE_TENSOR, .scale_dtype = VP_DTYPE_FP32
#define PER_CHANNEL .scale = VP_SCALE_CHANNEL, .scale_dtype = VP_DTYPE_FP32
#define TILES                                                                                      \
    .scale = VP_SCALE_BLOCK, .scale_dtype = VP_DTYPE_FP32, .block_out = 128, .block_in = 128
#define GROUPS(n, type) .scale = VP_SCALE_GROUP, .scale_dtype = VP_DTYPE_##type, .group = n
/* AWQ's pre_quant_scale: 16 bit for each input */
#define SMOOTHED .extra_per_input = 2
    {"FP8", 0, {.data = VP_DTYPE_FP8, PER_TENSOR, .input_scale = true}},
    {"FP8_PER_CHANNEL_PER_TOKEN", 0, {.data = VP_DTYPE_FP8, PER_CHANNEL}},
    {"FP8_PB_WO", 0, {.data = VP_DTYPE_FP8, TILES}},
    {"FP8_PB_REAL", 0, {.data = VP_DTYPE_FP8, TILES}},
    {"FP8_BLOCK_SCALES", 0, {.data = VP_DTYPE_FP8, TILES}},
    {"MXFP8", 32, {.data = VP_DTYPE_FP8, GROUPS(32, E8M0)}},
    {"NVFP4", 16, {.data = VP_DTYPE_NVFP4, PER_TENSOR, .input_scale = true}},
    {"NVFP4_AWQ", 16, {.data = VP_DTYPE_NVFP4, PER_TENSOR, .input_scale = true, SMOOTHED}},
    {"W4A16_NVFP4", 16, {.data = VP_DTYPE_NVFP4, PER_TENSOR}},
    {"NVFP4_W4A16", 16, {.data = VP_DTYPE_NVFP4, PER_TENSOR}},
    {"W4A8_NVFP4_FP8", 0, {.data = VP_DTYPE_NVFP4, PER_TENSOR, .input_scale = true}},
    {"MXFP4", 32, {.data = VP_DTYPE_MXFP4}},
    {"W4A8_MXFP4_FP8", 32, {.data = VP_DTYPE_MXFP4, .input_scale = true}},
    {"W4A16_MXFP4", 32, {.data = VP_DTYPE_MXFP4}},
    {"W4A16_AWQ", 0, {.data = VP_DTYPE_INT4, GROUPS(128, BF16), SMOOTHED}},
    {"INT4_AWQ", 0, {.data = VP_DTYPE_INT4, GROUPS(128, BF16), SMOOTHED}},
    {"W4A8_AWQ", 0, {.data = VP_DTYPE_INT4, GROUPS(128, BF16), SMOOTHED, .input_scale = true}},
    {"W4A16_GPTQ", 0, {.data = VP_DTYPE_INT4, GROUPS(128, FP16)}},
    {"W4A16", 0, {.data = VP_DTYPE_INT4, PER_CHANNEL}},
    {"W8A16", 0, {.data = VP_DTYPE_INT8, PER_CHANNEL}},
    {"INT8_SQ", 0, {.data = VP_DTYPE_INT8, PER_CHANNEL, SMOOTHED}},
    {"W8A8_SQ_PER_CHANNEL", 0, {.data = VP_DTYPE_INT8, PER_CHANNEL, SMOOTHED}},
};

/* map: where quant_algo and group_size stand. */
static const struct vp_scheme *algo_scheme(struct vp_quant_reader *reader,
                                           const struct vp_node *map, const char *algo) {
    uint32_t group = vp_quant_group_size(reader, map, "group_size");
    for (size_t i = 0; i < sizeof ALGOS / sizeof *ALGOS; i++) {
        struct vp_scheme scheme = ALGOS[i].scheme;
        if (!vp_name_eq(algo, ALGOS[i].name))
            continue;
        if (group && ALGOS[i].group && group != ALGOS[i].group) {
            vp_quant_refuse(reader, map, "%s in groups of %u is not known", ALGOS[i].name, group);
            return NULL;
        }
        if (group && scheme.scale == VP_SCALE_GROUP)
            scheme.group = group;
        return vp_quant_keep(reader, scheme);
    }
    vp_quant_refuse(reader, map, "quant_algo \"%.60s\" is not known", algo);
    return NULL;
}

/* The list can hold every expert's matrices: one rule for all layers of one format. */
static struct vp_quant_rule *rule_for(struct vp_quant_reader *reader, struct vp_quant_rule *first,
                                      const struct vp_scheme *scheme) {
    for (struct vp_quant_rule *rule = first; rule; rule = rule->next)
        if (vp_text_eq(rule->scheme->name, scheme->name))
            return rule;
    return vp_quant_rule_add(reader, scheme);
}

void vp_quant_named_layers(struct vp_quant_reader *reader) {
    const struct vp_node *layers = vp_quant_get(reader, "quantized_layers");
    struct vp_quant_rule **first = reader->end; /* the rules that are added here begin there */
    const char *why;
    if (!layers)
        return;
    if (layers->kind != VP_NODE_MAP) {
        vp_quant_fault(reader, layers, "quantized_layers", "a map is expected");
        return;
    }
    for (uint32_t i = 0; i < layers->count; i++) {
        const struct vp_node *layer = layers->items[i];
        const char *algo = vp_quant_word(reader, layer, "quant_algo", NULL);
        const struct vp_scheme *scheme = algo ? algo_scheme(reader, layer, algo) : NULL;
        if (!scheme) {
            if (!algo)
                vp_quant_fault(reader, layer, "quantized_layers", "a layer has no quant_algo");
            return; /* one is enough: the others would say the same */
        }
        struct vp_quant_rule *rule = rule_for(reader, *first, scheme);
        if (!vp_name_set_add(reader->ctx->arena, &rule->names, &why, layers->keys[i]))
            vp_quant_refuse(reader, layer, "the pattern \"%.120s\" cannot be used: %s",
                            layers->keys[i], why);
    }
}

/* config.json and hf_quant_config.json say the same in two dialects: "ignore" or
 * "exclude_modules", and one algorithm, a list of layers, or groups. */
void vp_quant_modelopt(struct vp_quant_reader *reader) {
    const struct vp_node *algo = vp_quant_get(reader, "quant_algo");
    const char *name = vp_node_text(algo);
    vp_quant_skip(reader, "exclude_modules");
    vp_quant_skip(reader, "ignore");
    vp_quant_named_layers(reader);
    if (name && !vp_name_eq(name, "MIXED_PRECISION")) {
        bool here = algo == vp_node_get(reader->map, "quant_algo");
        const struct vp_scheme *scheme =
            algo_scheme(reader, here ? reader->map : reader->more, name);
        if (scheme)
            vp_quant_linear(reader, scheme, false);
    } else if (vp_quant_get(reader, "config_groups") && !vp_quant_get(reader, "quantized_layers")) {
        read_groups(reader);
        reader->quant->by_class[VP_CLASS_LM_HEAD] = NULL; /* modelopt leaves the head alone */
    } else if (name && !vp_quant_get(reader, "quantized_layers")) {
        vp_quant_fault(reader, algo, "quantized_layers", "is missing, as the precision is mixed");
    }
}

/* ---- quark ---- */

static bool quark_scheme(struct vp_quant_reader *reader, struct vp_scheme *out,
                         const struct vp_node *config) {
    const struct vp_node *weight = vp_node_get(config, "weight");
    const struct vp_node *input = vp_node_get(config, "input_tensors");
    if (!weight || weight->kind != VP_NODE_MAP) {
        vp_quant_refuse(reader, config, "quark weights in several steps are not known");
        return false;
    }
    const char *dtype = vp_quant_word(reader, weight, "dtype", "");
    const char *shape = vp_quant_word(reader, weight, "qscheme", "per_tensor");
    uint32_t group = vp_quant_group_size(reader, weight, "group_size");
    bool e8m0 = vp_text_eq(vp_quant_word(reader, weight, "scale_format", NULL), "e8m0");
    *out = (struct vp_scheme){.data = vp_dtype_parse(dtype), .scale_dtype = VP_DTYPE_FP32};
    out->input_scale = !vp_node_is_null(input) && !vp_quant_flag(reader, input, "is_dynamic", true);
    if (vp_text_eq(dtype, "fp4") && group == 32 && e8m0) {
        out->data = VP_DTYPE_MXFP4;
        return true;
    }
    bool known =
        out->data == VP_DTYPE_FP8 || out->data == VP_DTYPE_INT8 || out->data == VP_DTYPE_INT4;
    if (vp_text_eq(shape, "per_tensor")) {
        out->scale = VP_SCALE_TENSOR;
    } else if (vp_text_eq(shape, "per_channel")) {
        out->scale = VP_SCALE_CHANNEL;
    } else if (vp_text_eq(shape, "per_group") && group) {
        out->scale = VP_SCALE_GROUP;
        out->group = group;
        out->scale_dtype = e8m0 ? VP_DTYPE_E8M0 : vp_quant_half(reader->quant);
    } else {
        known = false;
    }
    if (!known) {
        vp_quant_refuse(reader, weight, "quark weights of type \"%.30s\", %.30s are not known",
                        dtype, shape);
        return false;
    }
    if (out->data != VP_DTYPE_FP8 && !vp_quant_flag(reader, weight, "symmetric", true))
        out->zero_dtype = out->data;
    return true;
}

void vp_quant_quark(struct vp_quant_reader *reader) {
    const struct vp_node *layers = vp_quant_get(reader, "layer_quant_config");
    const struct vp_node *all = vp_quant_get(reader, "global_quant_config");
    struct vp_scheme scheme;
    const char *why;
    vp_quant_skip(reader, "exclude");
    for (uint32_t i = 0; layers && layers->kind == VP_NODE_MAP && i < layers->count; i++) {
        if (!quark_scheme(reader, &scheme, layers->items[i]))
            return;
        struct vp_quant_rule *rule = vp_quant_rule_add(reader, vp_quant_keep(reader, scheme));
        if (!vp_name_set_add(reader->ctx->arena, &rule->names, &why, layers->keys[i]))
            vp_quant_refuse(reader, layers, "the pattern \"%.120s\" cannot be used: %s",
                            layers->keys[i], why);
    }
    if (!all)
        vp_quant_fault(reader, NULL, "global_quant_config", "is missing");
    else if (!vp_node_is_null(vp_node_get(all, "weight")) && quark_scheme(reader, &scheme, all))
        vp_quant_linear(reader, vp_quant_keep(reader, scheme), true);
}
