#include "planner/import/quant.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/import/quant_rules.h"

/* ---- one format for all Linear modules ---- */

/* DeepSeek, Qwen and others (tiles of 128 x 128), vLLM (one scale per matrix). The type of the
 * scales is not in the description: fp32, which engines load them as. */
static void read_fp8(struct vp_quant_reader *reader) {
    struct vp_scheme scheme = {
        .data = VP_DTYPE_FP8, .scale = VP_SCALE_TENSOR, .scale_dtype = VP_DTYPE_FP32};
    uint32_t block[2];
    vp_quant_block(reader, reader->map, "weight_block_size", block);
    if (block[0]) {
        scheme.scale = VP_SCALE_BLOCK;
        scheme.block_out = block[0];
        scheme.block_in = block[1];
    }
    scheme.input_scale =
        vp_text_eq(vp_quant_word(reader, reader->map, "activation_scheme", NULL), "static");
    vp_quant_skip(reader, "ignored_layers");
    vp_quant_skip(reader, "modules_to_not_convert");
    /* A second quantiser's work on some layers; its own "ignore" list says what it left as fp8. */
    vp_quant_named_layers(reader);
    vp_quant_linear(reader, vp_quant_keep(reader, scheme), false);
}

static void read_fbgemm(struct vp_quant_reader *reader) {
    struct vp_scheme scheme = {
        .data = VP_DTYPE_FP8, .scale = VP_SCALE_CHANNEL, .scale_dtype = VP_DTYPE_FP32};
    vp_quant_skip(reader, "modules_to_not_convert");
    vp_quant_linear(reader, vp_quant_keep(reader, scheme), false);
}

static enum vp_dtype integer_of(uint32_t bits) {
    return bits == 8   ? VP_DTYPE_INT8
           : bits == 4 ? VP_DTYPE_INT4
           : bits == 3 ? VP_DTYPE_INT3
           : bits == 2 ? VP_DTYPE_INT2
                       : VP_DTYPE_UNSET;
}

struct gptq {
    uint32_t bits, group;
    bool act_order;
};

/* qweight, scales (fp16) and qzeros, which are stored for symmetric quantisation too; with act
 * order g_idx says for each input (int32) which group it belongs to. */
static struct vp_scheme gptq_scheme(struct vp_quant_reader *reader, const struct gptq *gptq) {
    struct vp_scheme scheme = {.data = integer_of(gptq->bits), .scale_dtype = VP_DTYPE_FP16};
    if (scheme.data == VP_DTYPE_UNSET) {
        vp_quant_refuse(reader, NULL, "%s with %u bits is not known", reader->method, gptq->bits);
        scheme.data = VP_DTYPE_INT8;
    }
    scheme.scale = gptq->group ? VP_SCALE_GROUP : VP_SCALE_CHANNEL;
    scheme.group = gptq->group;
    scheme.zero_dtype = scheme.data;
    scheme.extra_per_input = gptq->act_order ? 4 : 0;
    return scheme;
}

/* "dynamic": {"-:pattern": {}, "+:pattern": {"bits": 8, "group_size": 32}}: modules that are left
 * out or quantised otherwise; the first pattern that matches counts. */
static void read_gptq_dynamic(struct vp_quant_reader *reader, const struct gptq *base) {
    const struct vp_node *dynamic = vp_quant_get(reader, "dynamic");
    if (!dynamic || (dynamic->kind == VP_NODE_BOOL))
        return;
    if (dynamic->kind != VP_NODE_MAP) {
        vp_quant_fault(reader, dynamic, "dynamic", "a map is expected");
        return;
    }
    for (uint32_t i = 0; i < dynamic->count; i++) {
        const char *pattern = dynamic->keys[i], *why;
        const struct vp_node *with = dynamic->items[i];
        const struct vp_scheme *scheme = &reader->quant->plain;
        if (!vp_text_starts(pattern, "-:")) {
            struct gptq own = *base;
            own.bits = vp_quant_count(reader, with, "bits", base->bits);
            if (!vp_node_is_null(vp_node_get(with, "group_size")))
                own.group = vp_quant_group_size(reader, with, "group_size");
            own.act_order = vp_quant_flag(reader, with, "desc_act", base->act_order);
            scheme = vp_quant_keep(reader, gptq_scheme(reader, &own));
        }
        if (vp_text_starts(pattern, "-:") || vp_text_starts(pattern, "+:"))
            pattern += 2;
        struct vp_quant_rule *rule = vp_quant_rule_add(reader, scheme);
        if (!vp_name_set_add_regex(reader->ctx->arena, &rule->names, &why, pattern))
            vp_quant_refuse(reader, with, "the pattern \"%.120s\" cannot be used: %s", pattern,
                            why);
    }
}

static void read_gptq(struct vp_quant_reader *reader) {
    const struct vp_node *map = reader->map;
    struct gptq gptq = {.bits = vp_quant_count(reader, map, "bits", 4),
                        .group = vp_quant_group_size(reader, map, "group_size"),
                        .act_order = vp_quant_flag(reader, map, "desc_act", false)};
    const struct vp_scheme *scheme = vp_quant_keep(reader, gptq_scheme(reader, &gptq));
    bool head = vp_quant_flag(reader, map, "lm_head", false);
    read_gptq_dynamic(reader, &gptq);
    vp_quant_skip(reader, "modules_to_not_convert");

    /* [["self_attn.q_proj", ...], ["mlp.up_proj"]]: only these, in every layer */
    const struct vp_node *only = vp_quant_get(reader, "modules_in_block_to_quantize");
    if (!only) {
        vp_quant_linear(reader, scheme, head);
        return;
    }
    if (only->kind != VP_NODE_LIST) {
        vp_quant_fault(reader, only, "modules_in_block_to_quantize", "a list is expected");
        return;
    }
    struct vp_quant_rule *rule = vp_quant_rule_add(reader, scheme);
    for (uint32_t i = 0; i < only->count; i++)
        vp_quant_rule_names(reader, rule, only->items[i]);
    if (head)
        reader->quant->by_class[VP_CLASS_LM_HEAD] = scheme;
}

static void read_awq(struct vp_quant_reader *reader) {
    const struct vp_node *map = reader->map;
    const char *group_key = vp_node_get(map, "group_size") ? "group_size" : "q_group_size";
    uint32_t bits = vp_quant_count(reader, map, "bits", vp_quant_count(reader, map, "w_bit", 4));
    struct vp_scheme scheme = {.data = integer_of(bits), .scale_dtype = VP_DTYPE_FP16};
    if (bits != 4 && bits != 8) {
        vp_quant_refuse(reader, vp_node_get(map, "bits"), "awq with %u bits is not known", bits);
        scheme.data = VP_DTYPE_INT8;
    }
    scheme.group = vp_quant_group_size(reader, map, group_key);
    scheme.scale = scheme.group ? VP_SCALE_GROUP : VP_SCALE_CHANNEL;
    if (vp_quant_flag(reader, map, "zero_point", true))
        scheme.zero_dtype = scheme.data;
    vp_quant_skip(reader, "modules_to_not_convert");
    vp_quant_linear(reader, vp_quant_keep(reader, scheme), false);
}

/* Both spellings occur: the plain one and the one of the class's private member. */
static bool bits_flag(struct vp_quant_reader *reader, const char *key) {
    const char *private_key = vp_arena_printf(reader->ctx->arena, "_%s", key);
    return vp_quant_flag(reader, reader->map, key, false) ||
           vp_quant_flag(reader, reader->map, private_key, false);
}

/* 4 bits: an fp32 constant per 64 values, or 8-bit constants with an fp32 per 256 of them. 8 bits:
 * an fp32 constant per output. */
static void read_bitsandbytes(struct vp_quant_reader *reader) {
    struct vp_scheme scheme = {
        .data = VP_DTYPE_INT8, .scale = VP_SCALE_CHANNEL, .scale_dtype = VP_DTYPE_FP32};
    if (bits_flag(reader, "load_in_4bit")) {
        const char *type = vp_quant_word(reader, reader->map, "bnb_4bit_quant_type", "fp4");
        bool twice = vp_quant_flag(reader, reader->map, "bnb_4bit_use_double_quant", false);
        scheme.data = vp_text_eq(type, "nf4") ? VP_DTYPE_NF4 : VP_DTYPE_FP4;
        scheme.scale = VP_SCALE_GROUP;
        scheme.group = 64;
        scheme.scale_dtype = twice ? VP_DTYPE_DOUBLE8 : VP_DTYPE_FP32;
        if (!vp_text_eq(type, "nf4") && !vp_text_eq(type, "fp4"))
            vp_quant_refuse(reader, NULL, "bitsandbytes type \"%.40s\" is not known", type);
    } else if (!bits_flag(reader, "load_in_8bit")) {
        vp_quant_fault(reader, NULL, "load_in_4bit", "neither this nor load_in_8bit is true");
    }
    vp_quant_skip(reader, "llm_int8_skip_modules");
    vp_quant_linear(reader, vp_quant_keep(reader, scheme), false);
}

/* gpt-oss: only the experts; their biases are vectors and stay in 16 bit. */
static void read_mxfp4(struct vp_quant_reader *reader) {
    vp_quant_skip(reader, "modules_to_not_convert");
    reader->quant->by_class[VP_CLASS_EXPERT] =
        vp_quant_keep(reader, (struct vp_scheme){.data = VP_DTYPE_MXFP4});
}

/* ---- all methods ---- */

static const struct {
    const char *name;
    void (*read)(struct vp_quant_reader *reader);
} METHODS[] = {
    {"fp8", read_fp8},
    {"fbgemm_fp8", read_fbgemm},
    {"compressed-tensors", vp_quant_compressed},
    {"gptq", read_gptq},
    {"gptq_marlin", read_gptq},
    {"awq", read_awq},
    {"awq_marlin", read_awq},
    {"bitsandbytes", read_bitsandbytes},
    {"mxfp4", read_mxfp4},
    {"modelopt", vp_quant_modelopt},
    {"modelopt_fp4", vp_quant_modelopt},
    {"modelopt_mixed", vp_quant_modelopt},
    {"modelopt_mxfp8", vp_quant_modelopt},
    {"quark", vp_quant_quark},
};

static void read_method(struct vp_quant_reader *reader) {
    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++) {
        if (vp_name_eq(reader->method, METHODS[i].name)) {
            METHODS[i].read(reader);
            return;
        }
    }
    vp_quant_refuse(reader, vp_node_get(reader->map, "quant_method"),
                    "quantisation method \"%.60s\" is not known", reader->method);
}

static bool is_new(const struct vp_buf *buf, const char *name) {
    return !strstr(vp_buf_text(buf), name);
}

/* The schemes in use, those of the classes first: "fp8 block 128x128", "int4 group 128 (gptq)". */
static const char *make_name(struct vp_quant_reader *reader) {
    const struct vp_quant *quant = reader->quant;
    struct vp_buf buf = {.arena = reader->ctx->arena};
    for (int i = 0; i < VP_CLASS_COUNT; i++)
        if (quant->by_class[i] && quant->by_class[i] != &quant->plain &&
            is_new(&buf, quant->by_class[i]->name))
            vp_buf_printf(&buf, "%s%s", buf.size ? ", " : "", quant->by_class[i]->name);
    for (const struct vp_quant_rule *rule = quant->rules; rule; rule = rule->next)
        if (rule->scheme != &quant->plain && is_new(&buf, rule->scheme->name))
            vp_buf_printf(&buf, "%s%s", buf.size ? ", " : "", rule->scheme->name);
    if (buf.size && !vp_text_starts(vp_buf_text(&buf), reader->method))
        vp_buf_printf(&buf, " (%s)", reader->method);
    return vp_buf_text(&buf);
}

/* hf_quant_config.json and some config.json have the facts one level down. */
static const struct vp_node *unwrap(const struct vp_node *map) {
    const struct vp_node *inner = vp_node_get(map, "quantization");
    return inner && inner->kind == VP_NODE_MAP ? inner : map;
}

enum vp_status vp_quant_read(struct vp_ctx *ctx, struct vp_quant **out,
                             const struct vp_node *quantization, const struct vp_node *hf_quant,
                             const struct vp_scheme *plain) {
    *out = NULL;
    struct vp_quant_reader reader = {.ctx = ctx, .map = unwrap(quantization)};
    reader.more = unwrap(hf_quant);
    if (vp_node_is_null(reader.map)) {
        reader.map = reader.more;
        reader.more = NULL;
    }
    if (vp_node_is_null(reader.map))
        return VP_OK;
    if (reader.map->kind != VP_NODE_MAP) {
        vp_diag_add(ctx->diags, VP_D_MODEL_FIELD, &reader.map->pos,
                    "quantization_config: a map is expected, not %s",
                    vp_node_kind_name(reader.map->kind));
        return VP_ERR_INPUT;
    }
    reader.quant = VP_NEW(ctx->arena, struct vp_quant);
    reader.quant->plain = *plain;
    reader.end = &reader.quant->rules;
    /* modelopt's own file does not repeat the method's name */
    bool algo = vp_node_get(reader.map, "quant_algo") || vp_node_get(reader.map, "producer");
    reader.method = vp_quant_word(&reader, reader.map, "quant_method", algo ? "modelopt" : NULL);
    if (!reader.method && !reader.failed)
        vp_quant_fault(&reader, NULL, "quant_method", "is missing");
    if (!reader.failed)
        read_method(&reader);
    if (reader.failed)
        return VP_ERR_INPUT;
    for (struct vp_quant_rule *rule = reader.quant->rules; rule; rule = rule->next)
        vp_name_set_finish(&rule->names);
    reader.quant->name = make_name(&reader);
    if (*reader.quant
             ->name) /* else only the KV cache is quantised, which is not the weights' matter */
        *out = reader.quant;
    return VP_OK;
}

const char *vp_quant_name(const struct vp_quant *quant) { return quant ? quant->name : ""; }

/* Norms and convolutions are never quantised. Embeddings and routers are when a list names them,
 * but not when a pattern meant for Linear modules happens to match. */
static bool applies(enum vp_class class_, enum vp_name_match match) {
    if (class_ == VP_CLASS_NORM || class_ == VP_CLASS_CONV)
        return false;
    if (class_ == VP_CLASS_EMBEDDING || class_ == VP_CLASS_ROUTER)
        return match == VP_NAME_BY_NAME;
    return true;
}

/* What the rules say of a module under any of its names, else what they say of its class. */
static const struct vp_scheme *scheme_of(const struct vp_quant *quant,
                                         const struct vp_module_name *names, int count,
                                         enum vp_class class_) {
    for (const struct vp_quant_rule *rule = quant->rules; rule; rule = rule->next) {
        for (int i = 0; i < count; i++) {
            enum vp_name_match match = vp_name_set_match(&rule->names, &names[i]);
            if (match != VP_NAME_OTHER && (rule->scheme == &quant->plain || applies(class_, match)))
                return rule->scheme;
        }
    }
    return quant->by_class[class_] ? quant->by_class[class_] : &quant->plain;
}

const struct vp_scheme *vp_quant_scheme(const struct vp_quant *quant, const char *module,
                                        enum vp_class class_) {
    struct vp_module_name name;
    if (!quant)
        return NULL;
    return scheme_of(quant, &name, vp_module_name(&name, module), class_);
}

/* The indexer's weights, condensing projections and attention sinks stay as they are in every
 * checkpoint. */
static bool is_never_quantised(enum vp_role role) {
    return role == VP_ROLE_INDEX_WEIGHTS || role == VP_ROLE_SINKS || role == VP_ROLE_CONDENSE;
}

/* Where a layer has experts beside a dense feed-forward (Gemma 4), they are not inside "mlp". */
static const char *role_names(const struct vp_block *block, enum vp_role role) {
    if (block->mlp.kind == VP_MLP_NONE || block->moe.kind == VP_MLP_NONE)
        return vp_role_names(role);
    switch (role) {
    case VP_ROLE_EXPERT_GATE:
    case VP_ROLE_EXPERT_UP:
        return "experts.gate_up_proj";
    case VP_ROLE_EXPERT_DOWN:
        return "experts.down_proj";
    case VP_ROLE_ROUTER:
        return "router.proj";
    default:
        return vp_role_names(role);
    }
}

/* parent and then the n characters of a role's name, far shorter than a module's may be. */
static void put_name(char *to, const char *parent, const char *name, size_t n) {
    size_t m = strlen(parent);
    assert(m + n < VP_MODULE_NAME / 2);
    memcpy(to, parent, m);
    memcpy(to + m, name, n);
    to[m + n] = '\0';
}

const struct vp_scheme *vp_quant_role_scheme(const struct vp_quant *quant, uint32_t layer,
                                             const struct vp_block *block, enum vp_role role) {
    enum { MAX_NAMES = 32 };
    static const char ATTENTION[] = "self_attn.";
    struct vp_module_name names[MAX_NAMES];
    char module[VP_MODULE_NAME];
    int count = 0;
    if (!quant || is_never_quantised(role))
        return quant ? &quant->plain : NULL;
    if (!quant->rules) /* no names to look for */
        return scheme_of(quant, NULL, 0, vp_role_class(role));
    char *own = module + snprintf(module, sizeof module, "model.layers.%u.", layer);
    for (const char *name = role_names(block, role); *name && count < MAX_NAMES - 1;) {
        size_t n = strcspn(name, " "), skip = sizeof ATTENTION - 1;
        put_name(own, "", name, n);
        count += vp_module_name(&names[count], module);
        if (vp_text_starts(name, ATTENTION)) { /* Nemotron-H calls all of its layers "mixer" */
            put_name(own, "mixer.", name + skip, n - skip);
            count += vp_module_name(&names[count], module);
        }
        name += n;
        name += *name == ' ';
    }
    return scheme_of(quant, names, count, vp_role_class(role));
}
