#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/doc/yaml.h"
#include "planner/import/document.h"
#include "planner/import/engine_args.h"
#include "planner/import/profile.h"
#include "planner/import/wording_parts.h"

static const struct {
    const char *name;
    enum vp_engine_kind engine;
} TARGETS[VP_TARGETS] = {
    [VP_TARGET_VLLM] = {"vllm", VP_ENGINE_VLLM},
    [VP_TARGET_SGLANG] = {"sglang", VP_ENGINE_SGLANG},
    [VP_TARGET_LLAMA_CPP] = {"llama.cpp", VP_ENGINE_LLAMA_CPP},
    [VP_TARGET_OLLAMA] = {"ollama", VP_ENGINE_OLLAMA},
    [VP_TARGET_MEGATRON] = {"megatron", VP_ENGINE_MEGATRON},
    [VP_TARGET_HF] = {"hf", VP_ENGINE_TRANSFORMERS},
    [VP_TARGET_AXOLOTL] = {"axolotl", VP_ENGINE_TRANSFORMERS},
    [VP_TARGET_TORCHTUNE] = {"torchtune", VP_ENGINE_PYTORCH},
    [VP_TARGET_DEEPSPEED] = {"deepspeed", VP_ENGINE_DEEPSPEED},
};

const char *vp_target_name(enum vp_target target) { return TARGETS[target].name; }

enum vp_target vp_target_find(const char *name) {
    enum vp_target target = 0;
    while (target < VP_TARGETS && !vp_text_eq(TARGETS[target].name, name))
        target++;
    return target;
}

enum vp_engine_kind vp_target_engine(enum vp_target target) { return TARGETS[target].engine; }

/* ---- what is said ---- */

static bool is_inner(const char *path) {
    static const char *const MAPS[] = {
        "hardware",    "engine",        "parallel",      "precision",  "serve",       "serve.lora",
        "serve.draft", "serve.images",  "serve.offload", "train",      "train.dtype", "train.lora",
        "train.ops",   "train.offload", "engine.args",   "engine.env", "measured",    "budget"};
    for (size_t i = 0; i < sizeof MAPS / sizeof *MAPS; i++)
        if (vp_text_eq(MAPS[i], path))
            return true;
    return false;
}

static uint32_t leaves_in(const struct vp_node *node) {
    uint32_t count = 1;
    for (uint32_t i = 0; i < node->count; i++)
        count += leaves_in(node->items[i]);
    return count;
}

static void add_leaves(struct vp_writing *w, const char *prefix, const struct vp_node *map) {
    for (uint32_t i = 0; i < map->count; i++) {
        const struct vp_node *node = map->items[i];
        const char *path =
            *prefix ? vp_arena_printf(w->ctx->arena, "%s.%s", prefix, map->keys[i]) : map->keys[i];
        if (vp_text_eq(path, "vramplan") || vp_text_eq(path, "name") || vp_node_is_null(node))
            continue;
        if (node->kind == VP_NODE_MAP && is_inner(path))
            add_leaves(w, path, node);
        else
            w->leaves[w->count++] = (struct vp_said_leaf){
                path, vp_field_find_for(w->scenario->engine.kind, path), node, false};
    }
}

struct vp_said_leaf *vp_words_leaf(struct vp_writing *w, const char *path) {
    for (uint32_t i = 0; i < w->count; i++)
        if (vp_text_eq(w->leaves[i].path, path))
            return &w->leaves[i];
    return NULL;
}

static const char *as_number(struct vp_arena *arena, uint64_t v) { return vp_format_u64(arena, v); }

const char *vp_words_text(struct vp_writing *w, const struct vp_said_leaf *leaf) {
    const struct vp_node *node = leaf->node;
    uint64_t v;
    if (!vp_node_is_scalar(node))
        return NULL;
    if (leaf->field == VP_FIELD_COUNT)
        return node->text;
    switch (vp_field_info(leaf->field)->kind) {
    case VP_KIND_TOKENS:
        return vp_node_u64(&v, node) || vp_parse_tokens(&v, node->text)
                   ? as_number(w->ctx->arena, v)
                   : node->text;
    case VP_KIND_SIZE:
        return vp_parse_size(&v, node->text) ? as_number(w->ctx->arena, v) : node->text;
    default:
        return node->text;
    }
}

struct vp_node *vp_words_scalar(struct vp_writing *w, const char *text) {
    return vp_node_scalar(w->ctx, vp_yaml_scalar_kind(text), text, (struct vp_pos){0});
}

void vp_words_put(struct vp_writing *w, const char *key, struct vp_node *value) {
    struct vp_node *map = w->out->options;
    for (const char *dot; (dot = strchr(key, '.')); key = dot + 1) {
        const char *outer = vp_arena_text(w->ctx->arena, key, (size_t)(dot - key));
        struct vp_node *inner = vp_node_get(map, outer);
        if (!inner) {
            inner = vp_node_new(w->ctx, VP_NODE_MAP, value->pos);
            vp_node_set(w->ctx, map, outer, value->pos, inner);
        }
        map = inner;
    }
    vp_node_set(w->ctx, map, key, value->pos, value);
}

/* ---- the model ---- */

/* The hub id of a built-in model: the first of its other names that is one. */
static const char *hub_id(struct vp_ctx *ctx, const char *name) {
    struct vp_ctx quiet = *ctx;
    struct vp_profile profile;
    quiet.diags = VP_NEW(ctx->arena, struct vp_diags);
    quiet.diags->arena = ctx->arena;
    if (vp_profile_find(&quiet, &profile, &VP_PROFILE_MODEL, name) != VP_OK || !profile.root)
        return NULL;
    const struct vp_node *aliases = vp_node_get(profile.root, "aliases");
    for (uint32_t i = 0; aliases && aliases->kind == VP_NODE_LIST && i < aliases->count; i++) {
        const char *alias = vp_node_text(aliases->items[i]);
        if (alias && strchr(alias, '/'))
            return alias;
    }
    return NULL;
}

/* A checkpoint is a folder to those who load it, whichever file of it was named here. */
static const char *folder_of(struct vp_ctx *ctx, const char *path) {
    return vp_text_eq(vp_text_file_name(path), "config.json") ? vp_io_dirname(ctx, path) : path;
}

/* A hub id or a path as it is; of a built-in name its hub id. A description has no name. */
static void name_model(struct vp_writing *w) {
    struct vp_said_leaf *leaf = vp_words_leaf(w, "model");
    const char *given = leaf ? vp_node_text(leaf->node) : NULL;
    if (!given)
        return;
    const char *hub = strchr(given, '/') ? NULL : hub_id(w->ctx, given);
    w->out->model = hub ? hub : folder_of(w->ctx, given);
    leaf->written = true;
}

/* ---- servers ---- */

/* Where the same is said twice, what holds is the one that the finished scenario took. */
static bool is_outranked(const struct vp_writing *w, const struct vp_said_leaf *leaf) {
    bool arg = vp_text_starts(leaf->path, "engine.args.");
    const struct vp_source *source =
        leaf->field < VP_FIELD_COUNT ? &w->scenario->source[leaf->field] : NULL;
    return source && !arg && source->origin == VP_ORIGIN_ARGS;
}

static const char *torch_name(const char *text) {
    static const char *const NAMES[][2] = {
        {"bf16", "bfloat16"}, {"fp16", "float16"}, {"fp32", "float32"}};
    for (size_t i = 0; i < 3; i++)
        if (vp_name_eq(text, NAMES[i][0]))
            return NAMES[i][1];
    return text;
}

/* The value in the engine's words; NULL: it has none. */
static const char *server_value(struct vp_writing *w, const struct vp_said_leaf *leaf) {
    const struct vp_scenario *s = w->scenario;
    const char *text = vp_words_text(w, leaf);
    switch (leaf->field) {
    case VP_F_WEIGHTS:
        return vp_engine_quantization(s, text);
    case VP_F_KV_DTYPE:
        return s->precision.kv_cache == s->precision.compute ? "auto" : text;
    case VP_F_COMPUTE:
        return torch_name(text);
    case VP_F_OFFLOAD_WEIGHTS:
    case VP_F_OFFLOAD_KV: {
        uint64_t bytes =
            leaf->field == VP_F_OFFLOAD_KV ? s->offload.kv_bytes : s->offload.weights_bytes;
        const uint64_t gib = UINT64_C(1) << 30;
        return bytes % gib == 0 ? as_number(w->ctx->arena, bytes / gib) : NULL;
    }
    default:
        return text;
    }
}

static bool is_false(const char *text) { return vp_text_eq(text, "false"); }

static void write_server_field(struct vp_writing *w, struct vp_said_leaf *leaf) {
    const char *word = vp_engine_arg_word(w->scenario->engine.kind, leaf->field);
    const char *value = word ? server_value(w, leaf) : NULL;
    bool vllm = w->target == VP_TARGET_VLLM;
    if (!value || (vp_field_info(leaf->field)->kind == VP_KIND_BOOL && is_false(value) && !vllm))
        return;
    leaf->written = true;
    vp_words_put(w, word, vp_words_scalar(w, value));
}

/* SGLang divides the ranks of its attention layers by two options. */
static void write_attention_data(struct vp_writing *w) {
    struct vp_said_leaf *leaf = vp_words_leaf(w, "parallel.attention_data");
    if (w->target != VP_TARGET_SGLANG || !leaf || leaf->written || is_outranked(w, leaf))
        return;
    vp_words_put(w, "dp_size", vp_words_scalar(w, vp_words_text(w, leaf)));
    vp_words_put(w, "enable_dp_attention", vp_words_scalar(w, "true"));
    leaf->written = true;
}

/* vLLM keeps speculative decoding in one map. */
static void write_draft(struct vp_writing *w) {
    static const char *const KEYS[][2] = {{"serve.draft.method", "method"},
                                          {"serve.draft.model", "model"},
                                          {"serve.draft.tokens", "num_speculative_tokens"},
                                          {"serve.draft.tensor", "draft_tensor_parallel_size"}};
    for (size_t i = 0; w->target == VP_TARGET_VLLM && i < sizeof KEYS / sizeof *KEYS; i++) {
        struct vp_said_leaf *leaf = vp_words_leaf(w, KEYS[i][0]);
        const char *text = leaf ? vp_words_text(w, leaf) : NULL;
        if (!text)
            continue;
        vp_words_put(w, vp_arena_printf(w->ctx->arena, "speculative_config.%s", KEYS[i][1]),
                     vp_words_scalar(w, text));
        leaf->written = true;
    }
}

/* What the scenario's own requests need at most is what the server is told to admit. */
static void write_length(struct vp_writing *w) {
    const struct vp_scenario *s = w->scenario;
    const char *word = vp_engine_arg_word(s->engine.kind, VP_F_MAX_MODEL_LEN);
    if (word && !vp_node_get(w->out->options, word) && vp_words_leaf(w, "serve.context"))
        vp_words_put(w, word,
                     vp_words_scalar(w, as_number(w->ctx->arena, s->engine.max_model_len)));
}

/* Copies of an argument map under the names that the user gave; an underscore and a dash are one.
 */
static void write_arguments(struct vp_writing *w) {
    size_t n = strlen("engine.args.");
    for (uint32_t i = 0; i < w->count; i++) {
        struct vp_said_leaf *leaf = &w->leaves[i];
        if (!vp_text_starts(leaf->path, "engine.args."))
            continue;
        enum vp_field field = vp_engine_arg_field(w->ctx, w->scenario->engine.kind, leaf->path + n);
        if (field < VP_FIELD_COUNT && w->scenario->source[field].origin == VP_ORIGIN_FLAG &&
            vp_words_leaf(w, vp_field_info(field)->path) != NULL &&
            !vp_text_starts(vp_field_info(field)->path, "engine.args.")) {
            leaf->written = true; /* the command line says something else */
            continue;
        }
        const char *key = leaf->path + n;
        bool brief = field < VP_FIELD_COUNT && strlen(key) <= 3; /* "tp", a short option */
        if (brief && vp_engine_arg_word(w->scenario->engine.kind, field))
            key = vp_engine_arg_word(w->scenario->engine.kind, field);
        vp_node_set(w->ctx, w->out->options, key, (struct vp_pos){0},
                    (struct vp_node *)(uintptr_t)leaf->node);
        leaf->written = true;
    }
}

static void write_environment(struct vp_writing *w) {
    size_t n = strlen("engine.env.");
    for (uint32_t i = 0; i < w->count; i++) {
        struct vp_said_leaf *leaf = &w->leaves[i];
        if (!vp_text_starts(leaf->path, "engine.env."))
            continue;
        vp_node_set(w->ctx, w->out->environment, leaf->path + n, (struct vp_pos){0},
                    (struct vp_node *)(uintptr_t)leaf->node);
        leaf->written = true;
    }
}

static void write_server(struct vp_writing *w) {
    write_arguments(w);
    write_draft(w);
    for (uint32_t i = 0; i < w->count; i++) {
        struct vp_said_leaf *leaf = &w->leaves[i];
        if (leaf->field == VP_FIELD_COUNT || leaf->written)
            continue;
        if (is_outranked(w, leaf))
            leaf->written = true;
        else
            write_server_field(w, leaf);
    }
    write_attention_data(w);
    write_length(w);
}

/* llama_command.h writes the arguments that are fields; here are the others. */
static void write_llama(struct vp_writing *w) {
    size_t n = strlen("engine.args.");
    for (uint32_t i = 0; i < w->count; i++) {
        struct vp_said_leaf *leaf = &w->leaves[i];
        const char *path = leaf->path;
        bool arg = vp_text_starts(path, "engine.args.");
        enum vp_field field = leaf->field;
        if (arg && field == VP_FIELD_COUNT)
            field = vp_engine_arg_field(w->ctx, w->scenario->engine.kind, path + n);
        if (arg && field < VP_FIELD_COUNT && field != VP_F_N_OUTPUTS_MAX && field != VP_F_N_RS_SEQ)
            leaf->written = true;
        else if (arg && field == VP_FIELD_COUNT && w->target == VP_TARGET_LLAMA_CPP) {
            vp_node_set(w->ctx, w->out->options, path + n, (struct vp_pos){0},
                        (struct vp_node *)(uintptr_t)leaf->node);
            leaf->written = true;
        } else if (leaf->field == VP_F_KV_DTYPE)
            leaf->written = w->target == VP_TARGET_LLAMA_CPP;
    }
    struct vp_said_leaf *model = vp_words_leaf(w, "model");
    const struct vp_gguf_table *table = w->scenario->model->gguf;
    if (model)
        model->written = table && table->source; /* a file; else there is none to name yet */
}

/* ---- the whole ---- */

static void add_beside(struct vp_writing *w) {
    struct vp_words *out = w->out;
    out->beside = VP_NEW_ARRAY(w->ctx->arena, w->count, struct vp_setting);
    for (uint32_t i = 0; i < w->count; i++) {
        const struct vp_said_leaf *leaf = &w->leaves[i];
        if (leaf->written || vp_text_eq(leaf->path, "engine.name"))
            continue;
        out->beside[out->beside_count++] = (struct vp_setting){
            .path = leaf->path, .value = vp_document_show(w->ctx, leaf->node), .key = NULL};
    }
}

void vp_words_make(struct vp_ctx *ctx, struct vp_words *out, enum vp_target target,
                   const struct vp_node *said, const struct vp_scenario *scenario) {
    struct vp_writing w = {.ctx = ctx, .scenario = scenario, .target = target, .out = out};
    *out = (struct vp_words){.options = vp_node_new(ctx, VP_NODE_MAP, (struct vp_pos){0}),
                             .environment = vp_node_new(ctx, VP_NODE_MAP, (struct vp_pos){0})};
    w.leaves = VP_NEW_ARRAY(ctx->arena, leaves_in(said), struct vp_said_leaf);
    add_leaves(&w, "", said);
    name_model(&w);
    switch (target) {
    case VP_TARGET_VLLM:
    case VP_TARGET_SGLANG:
        write_environment(&w);
        write_server(&w);
        break;
    case VP_TARGET_LLAMA_CPP:
        write_environment(&w);
        write_llama(&w);
        break;
    case VP_TARGET_OLLAMA:
        write_llama(&w);
        break;
    case VP_TARGET_MEGATRON:
        write_environment(&w);
        vp_words_megatron(&w);
        break;
    default:
        vp_words_recipe(&w);
        break;
    }
    add_beside(&w);
}
