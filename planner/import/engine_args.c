#include "planner/import/engine_args.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/import/document.h"
#include "planner/import/serve_extras.h"
#include "planner/import/train_reader.h"
#include "planner/model/requantise.h"

enum action {
    SAME,
    DATA,
    ATTENTION,
    CHUNK,
    RUNNING,
    QUANTIZATION,
    INT8,
    NF4,
    CONFIG,
    LAYERS,
    SLOTS,
    CACHE,
    STATE,
    REFUSE,
    NOT_MODELLED
};

struct row {
    enum vp_engine_kind engine;
    const char *key;
    enum action action;
    enum vp_field field;
};

static const struct row ROWS[] = {
#define X(engine, key, action, field) {VP_ENGINE_##engine, key, action, VP_F_##field},
#include "planner/import/engine_args.def"
#undef X
};

static const struct {
    const char *method, *format;
} METHODS[] = {
#define X(method, format) {method, format},
#include "planner/import/engine_methods.def"
#undef X
};

enum { ROW_COUNT = sizeof ROWS / sizeof *ROWS, METHOD_COUNT = sizeof METHODS / sizeof *METHODS };

static const char PREFIX[] = "engine.args.";

/* "--max-model-len" and "max-model-len" are max_model_len. */
static const char *canonical(struct vp_ctx *ctx, const char *key) {
    while (*key == '-')
        key++;
    char *out = vp_arena_text(ctx->arena, key, strlen(key));
    for (char *p = out; *p; p++)
        if (*p == '-')
            *p = '_';
    return out;
}

static bool is_row_of(const struct row *row, enum vp_engine_kind engine, const char *key) {
    size_t n = strlen(row->key);
    if (row->engine != engine)
        return false;
    return row->key[n - 1] == '*' ? strncmp(row->key, key, n - 1) == 0 : strcmp(row->key, key) == 0;
}

static struct row look_up(struct vp_ctx *ctx, enum vp_engine_kind engine, const char *key) {
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (is_row_of(&ROWS[i], engine, key))
            return ROWS[i];
    const char *path = vp_arena_printf(ctx->arena, "%s%s", PREFIX, key);
    enum vp_field field = vp_field_find_for(engine, path);
    return (struct row){engine, key, field < VP_FIELD_COUNT ? SAME : NOT_MODELLED, field};
}

static struct vp_engine_arg *find(struct vp_engine_arg *args, uint32_t count, const char *key) {
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(args[i].key, key) == 0)
            return &args[i];
    return NULL;
}

/* The list keeps each argument once; what the command line gave stays. */
static struct vp_engine_arg *keep(struct vp_ctx *ctx, struct vp_engine_arg **args, uint32_t *count,
                                  const char *key, const struct vp_node *node) {
    struct vp_engine_arg *present = find(*args, *count, key);
    if (present)
        return present;
    struct vp_engine_arg *all = VP_NEW_ARRAY(ctx->arena, *count + 1, struct vp_engine_arg);
    if (*count)
        memcpy(all, *args, *count * sizeof *all);
    all[*count] = (struct vp_engine_arg){key, vp_document_show(ctx, node), node->pos, false};
    *args = all;
    return &all[(*count)++];
}

static const char *label_of(struct vp_reading *r, const char *as_written) {
    return vp_reading_label(r, vp_arena_printf(r->ctx->arena, "%s%s", PREFIX, as_written));
}

static void refuse(struct vp_reading *r, const struct row *row, const char *as_written,
                   const struct vp_node *node) {
    uint64_t v;
    const struct vp_field_info *info = vp_field_info(row->field);
    bool one = info->kind == VP_KIND_COUNT && vp_node_u64(&v, node) && v == 1;
    if (one || vp_value_is_harmless(node))
        return;
    vp_diag_add(r->ctx->diags, VP_D_UNMODELLED, &node->pos, "%s (%s) is not modelled yet",
                label_of(r, as_written), info->meaning);
    vp_diag_hint(r->ctx->diags, "no answer is given, because it would leave out its memory");
}

static struct vp_source source_of(struct vp_reading *r, const char *as_written,
                                  const struct vp_node *node) {
    struct vp_source source = {.origin = VP_ORIGIN_ARGS, .pos = node->pos, .key = as_written};
    if (r->from_flags) {
        source.origin = VP_ORIGIN_FLAG;
        source.key = label_of(r, as_written);
    }
    return source;
}

static void say(struct vp_reading *r, struct vp_said *said, const char *as_written,
                const struct vp_node *node) {
    if (vp_node_is_null(node) || said->text)
        return;
    if (!vp_node_is_scalar(node)) {
        vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &node->pos, "%s must be text, not %s",
                    label_of(r, as_written), vp_node_kind_name(node->kind));
        return;
    }
    *said = (struct vp_said){node->text, source_of(r, as_written, node)};
}

/* ---- what an argument says ---- */

/* A switch that says the opposite of its field: "no_enable_prefix_caching", disable_radix_cache. */
static void read_opposite(struct vp_reading *r, enum vp_field field, const char *as_written,
                          const struct vp_node *node) {
    bool flag;
    if (vp_node_bool(&flag, node))
        node = vp_node_new_bool(r->ctx, !flag, node->pos);
    vp_value_read(r, field, node, VP_ORIGIN_ARGS, as_written); /* reports what is wrong */
}

static bool read_negation(struct vp_reading *r, const char *key, const char *as_written,
                          const struct vp_node *node) {
    enum vp_engine_kind engine = r->out->engine.kind;
    if ((engine != VP_ENGINE_VLLM && !vp_engine_is_llama(engine)) || !vp_text_starts(key, "no_"))
        return false;
    struct row row = look_up(r->ctx, engine, key + 3);
    if (row.action != SAME || vp_field_info(row.field)->kind != VP_KIND_BOOL)
        return false;
    read_opposite(r, row.field, as_written, node);
    return true;
}

static void read_same(struct vp_reading *r, enum vp_field field, const char *as_written,
                      const struct vp_node *node) {
    if (vp_field_is_negated(r->out->engine.kind, field))
        read_opposite(r, field, as_written, node);
    else
        vp_value_read(r, field, node, VP_ORIGIN_ARGS, as_written);
}

/* "all", "auto" and negative numbers: all, unless the engine's own fit lowers it. */
static void read_layers(struct vp_reading *r, enum vp_field field, const char *as_written,
                        const struct vp_node *node) {
    bool negative = node->kind == VP_NODE_INT && node->text[0] == '-';
    const char *text = vp_node_is_scalar(node) ? node->text : "";
    if (vp_name_eq(text, "auto") || (negative && strcmp(text, "-1") == 0))
        return;
    if (vp_name_eq(text, "all") || negative)
        node = vp_node_scalar(r->ctx, VP_NODE_INT, "999", node->pos);
    vp_value_read(r, field, node, VP_ORIGIN_ARGS, as_written);
}

static void read_slots(struct vp_reading *r, enum vp_field field, const char *as_written,
                       const struct vp_node *node) {
    bool negative = node->kind == VP_NODE_INT && node->text[0] == '-';
    if (!negative && !(vp_node_is_scalar(node) && vp_name_eq(node->text, "auto")))
        vp_value_read(r, field, node, VP_ORIGIN_ARGS, as_written);
}

static void read_chunk(struct vp_reading *r, const char *as_written, const struct vp_node *node) {
    bool off = node->kind == VP_NODE_INT && node->text[0] == '-';
    if (off)
        node = vp_node_new_bool(r->ctx, false, node->pos);
    vp_value_read(r, off ? VP_F_CHUNKED_PREFILL : VP_F_BATCHED_TOKENS, node, VP_ORIGIN_ARGS,
                  as_written);
}

static bool parse_switch(struct vp_reading *r, bool *out, const char *as_written,
                         const struct vp_node *node) {
    struct vp_value value;
    bool ok = !vp_node_is_null(node) &&
              vp_value_parse(r, &value, VP_F_EAGER, node, label_of(r, as_written));
    *out = ok && value.flag;
    return ok;
}

/* The command line's comes first and stays. */
static void read_running(struct vp_reading *r, const char *as_written, const struct vp_node *node) {
    struct vp_value value;
    uint64_t *most = &r->out->engine.max_running;
    if (!vp_node_is_null(node) &&
        vp_value_parse(r, &value, VP_F_MAX_NUM_SEQS, node, label_of(r, as_written)) && *most == 0)
        *most = value.number;
}

static void read_format(struct vp_reading *r, const char *format, const char *as_written,
                        const struct vp_node *node) {
    struct vp_value value = {.text = format};
    bool on;
    if (!parse_switch(r, &on, as_written, node) || !on)
        return;
    struct vp_source source = source_of(r, as_written, node);
    vp_value_assign(r, VP_F_WEIGHTS, &value, &source);
}

/* Classes of the cache in transformers: some keep it elsewhere or in another format. */
static void read_cache(struct vp_reading *r, const char *as_written, const struct vp_node *node) {
    const char *text = vp_node_is_scalar(node) ? node->text : "";
    if (!strstr(text, "quantized") && !strstr(text, "offload"))
        return;
    vp_diag_add(r->ctx->diags, VP_D_UNMODELLED, &node->pos,
                "%s: a cache of class \"%.100s\" is not modelled yet", label_of(r, as_written),
                text);
    vp_diag_hint(r->ctx->diags, "modelled are static and dynamic");
}

static bool apply(struct vp_reading *r, const char *key, const char *as_written,
                  const struct vp_node *node);

/* quantization_config: {load_in_4bit: true}. What moves no bytes in it is not listed. */
static bool read_config(struct vp_reading *r, const char *as_written, const struct vp_node *node) {
    bool used = false;
    if (!vp_reading_is_map(r, node, label_of(r, as_written)))
        return true;
    for (uint32_t i = 0; i < node->count; i++) {
        const char *inner = vp_arena_printf(r->ctx->arena, "%s.%s", as_written, node->keys[i]);
        used |= apply(r, canonical(r->ctx, node->keys[i]), inner, node->items[i]);
    }
    return used;
}

static void check_state(struct vp_reading *r, const char *as_written, const struct vp_node *node) {
    struct vp_value value;
    if (!vp_node_is_null(node))
        vp_value_parse(r, &value, VP_F_COMPUTE, node, label_of(r, as_written));
}

static bool apply(struct vp_reading *r, const char *key, const char *as_written,
                  const struct vp_node *node) {
    bool used;
    if (vp_extra_arg(r, &used, key, as_written, node))
        return used;
    if (vp_train_arg(r, key, as_written, node))
        return true;
    struct row row = look_up(r->ctx, r->out->engine.kind, key);
    switch (row.action) {
    case SAME:
        read_same(r, row.field, as_written, node);
        return true;
    case DATA:
        read_same(r, r->attention_data ? VP_F_ATTENTION_DATA : VP_F_DATA, as_written, node);
        return true;
    case ATTENTION:
        return true; /* seen by vp_engine_args_scan */
    case CHUNK:
        read_chunk(r, as_written, node);
        return true;
    case RUNNING:
        read_running(r, as_written, node);
        return true;
    case QUANTIZATION:
        say(r, &r->quantization, as_written, node);
        return true;
    case INT8:
    case NF4:
        read_format(r, row.action == INT8 ? "int8" : "nf4", as_written, node);
        return true;
    case CONFIG:
        return read_config(r, as_written, node);
    case LAYERS:
        read_layers(r, row.field, as_written, node);
        return true;
    case SLOTS:
        read_slots(r, row.field, as_written, node);
        return true;
    case CACHE:
        read_cache(r, as_written, node);
        return true;
    case STATE:
        check_state(r, as_written, node);
        return true;
    case REFUSE:
        refuse(r, &row, as_written, node);
        return true;
    case NOT_MODELLED:
        break;
    }
    return read_negation(r, key, as_written, node);
}

void vp_engine_args_scan(struct vp_reading *r, const struct vp_node *args) {
    if (!args || args->kind != VP_NODE_MAP)
        return;
    for (uint32_t i = 0; i < args->count && !r->attention_said; i++) {
        const char *key = canonical(r->ctx, args->keys[i]);
        if (look_up(r->ctx, r->out->engine.kind, key).action == ATTENTION)
            r->attention_said = parse_switch(r, &r->attention_data, args->keys[i], args->items[i]);
    }
}

void vp_engine_args_read(struct vp_reading *r, const struct vp_node *args) {
    struct vp_engine *engine = &r->out->engine;
    if (!vp_reading_is_map(r, args, "engine.args"))
        return;
    for (uint32_t i = 0; i < args->count; i++) {
        const char *key = canonical(r->ctx, args->keys[i]);
        bool used = apply(r, key, args->keys[i], args->items[i]);
        struct vp_engine_arg *arg =
            keep(r->ctx, &engine->args, &engine->arg_count, key, args->items[i]);
        arg->used |= used;
    }
}

/* Variables that choose among the rules of profiles/engines/vllm.yaml. */
static const char *const USED_ENV[] = {"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", "VLLM_USE_V1"};

/* ollama's server is set by variables: X("variable", field). */
static const struct {
    const char *name;
    enum vp_field field;
} OLLAMA_ENV[] = {{"OLLAMA_CONTEXT_LENGTH", VP_F_CONTEXT},
                  {"OLLAMA_NUM_PARALLEL", VP_F_LLAMA_SLOTS},
                  {"OLLAMA_KV_CACHE_TYPE", VP_F_CACHE_TYPE_K},
                  {"OLLAMA_KV_CACHE_TYPE", VP_F_CACHE_TYPE_V},
                  {"OLLAMA_FLASH_ATTENTION", VP_F_FLASH_ATTN}};

/* What the scenario says of the field itself holds. */
static bool read_ollama_env(struct vp_reading *r, const char *name, struct vp_node *node) {
    bool used = false, flag;
    for (size_t i = 0; i < sizeof OLLAMA_ENV / sizeof *OLLAMA_ENV; i++) {
        enum vp_field field = OLLAMA_ENV[i].field;
        const struct vp_node *value = node;
        if (strcmp(name, OLLAMA_ENV[i].name) != 0)
            continue;
        used = true;
        if (vp_scenario_is_given(r->out, field))
            continue;
        if (field == VP_F_FLASH_ATTN) {
            bool on = (vp_node_bool(&flag, node) && flag) || vp_text_eq(vp_node_text(node), "1");
            value = vp_node_scalar(r->ctx, VP_NODE_TEXT, on ? "on" : "off", node->pos);
        }
        vp_value_read(r, field, value, VP_ORIGIN_ARGS, name);
    }
    return used;
}

void vp_engine_env_read(struct vp_reading *r, const struct vp_node *env) {
    struct vp_engine *engine = &r->out->engine;
    if (!vp_reading_is_map(r, env, "engine.env"))
        return;
    for (uint32_t i = 0; i < env->count; i++) {
        const char *name = env->keys[i];
        struct vp_engine_arg *arg =
            keep(r->ctx, &engine->env, &engine->env_count, name, env->items[i]);
        for (size_t k = 0; k < sizeof USED_ENV / sizeof *USED_ENV; k++)
            arg->used |= engine->kind == VP_ENGINE_VLLM && strcmp(name, USED_ENV[k]) == 0;
        arg->used |= r->out->training && vp_text_ends(name, "_ALLOC_CONF");
        if (engine->kind == VP_ENGINE_OLLAMA)
            arg->used |= read_ollama_env(r, name, env->items[i]);
    }
}

/* ---- quantization ---- */

static const char *format_of(const char *method) {
    for (size_t i = 0; i < METHOD_COUNT; i++)
        if (vp_name_eq(METHODS[i].method, method))
            return METHODS[i].format;
    return NULL;
}

static void unknown_method(struct vp_reading *r, const struct vp_said *said) {
    const char *names[METHOD_COUNT];
    for (size_t i = 0; i < METHOD_COUNT; i++)
        names[i] = METHODS[i].method;
    const char *nearest = vp_text_nearest(said->text, names, METHOD_COUNT);
    vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &said->source.pos,
                "%s: no quantization method is called \"%.100s\"",
                vp_source_show(r->ctx, &said->source), said->text);
    if (nearest)
        vp_diag_hint(r->ctx->diags, "did you mean %s?", nearest);
}

void vp_engine_args_settle(struct vp_reading *r) {
    const struct vp_said *said = &r->quantization;
    if (!said->text || vp_name_eq(said->text, "none"))
        return;
    const char *format = format_of(said->text);
    if (!format) {
        unknown_method(r, said);
        return;
    }
    if (!r->out->model || vp_model_is_quantised(r->out->model))
        return; /* names how the checkpoint is stored: nothing changes */
    if (!*format) {
        vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &said->source.pos,
                    "%s says %s, but the model's description has no quantisation",
                    vp_source_show(r->ctx, &said->source), said->text);
        vp_diag_hint(r->ctx->diags, "name the quantised checkpoint as `model`, or say what the "
                                    "weights become with precision.weights");
        return;
    }
    struct vp_value value = {.text = format};
    vp_value_assign(r, VP_F_WEIGHTS, &value, &said->source);
}

/* ---- on a command line ---- */

static enum vp_arg_takes takes(const struct row *row) {
    switch (row->action) {
    case ATTENTION:
    case INT8:
    case NF4:
        return VP_ARG_SWITCH;
    case SAME:
        return vp_field_info(row->field)->kind == VP_KIND_BOOL ? VP_ARG_SWITCH : VP_ARG_VALUE;
    case NOT_MODELLED:
        return VP_ARG_UNKNOWN;
    default:
        return VP_ARG_VALUE;
    }
}

enum vp_arg_takes vp_engine_arg_takes(struct vp_ctx *ctx, enum vp_engine_kind engine,
                                      const char *as_written) {
    const char *key = canonical(ctx, as_written), *names[VP_EXTRA_ARGS];
    struct row row = look_up(ctx, engine, key);
    if (row.action != NOT_MODELLED)
        return takes(&row);
    size_t count = vp_extra_arg_names(names, engine);
    for (size_t i = 0; i < count; i++)
        if (vp_text_eq(names[i], key))
            return VP_ARG_VALUE;
    if (!vp_text_starts(key, "no_"))
        return VP_ARG_UNKNOWN;
    row = look_up(ctx, engine, key + 3);
    return takes(&row) == VP_ARG_SWITCH ? VP_ARG_SWITCH : VP_ARG_UNKNOWN;
}

/* ---- the other way round ---- */

const char *vp_engine_arg_word(enum vp_engine_kind engine, enum vp_field field) {
    const char *path = vp_field_path_for(engine, field);
    if (path && vp_text_starts(path, PREFIX))
        return path + strlen(PREFIX);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        enum action action = ROWS[i].action;
        bool says = action == SAME || action == DATA || action == QUANTIZATION;
        if (ROWS[i].engine == engine && ROWS[i].field == field && says)
            return ROWS[i].key;
    }
    return vp_extra_arg_word(engine, field);
}

enum vp_field vp_engine_arg_field(struct vp_ctx *ctx, enum vp_engine_kind engine,
                                  const char *as_written) {
    const char *key = canonical(ctx, as_written);
    struct row row = look_up(ctx, engine, key);
    if (row.action == SAME || row.action == DATA || row.action == LAYERS || row.action == SLOTS ||
        row.action == QUANTIZATION)
        return row.field;
    if (row.action != NOT_MODELLED)
        return VP_FIELD_COUNT;
    if (vp_text_starts(key, "no_"))
        return vp_engine_arg_field(ctx, engine, key + 3);
    return vp_extra_arg_field(engine, key);
}

const char *vp_engine_quantization(const struct vp_scenario *scenario, const char *format) {
    bool plain = scenario->model && !scenario->model->stored_quantised;
    for (size_t i = 0; i < METHOD_COUNT && format; i++)
        if (*METHODS[i].format && vp_name_eq(METHODS[i].format, format) &&
            scenario->precision.group_size == 0 && !scenario->precision.double_quant && plain)
            return METHODS[i].method;
    return NULL;
}

/* ---- afterwards ---- */

static const char *value_of(const struct vp_engine_arg *args, uint32_t count, const char *key) {
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(args[i].key, key) == 0)
            return args[i].value;
    return NULL;
}

const char *vp_engine_arg(const struct vp_engine *engine, const char *key) {
    return value_of(engine->args, engine->arg_count, key);
}

const char *vp_engine_env(const struct vp_engine *engine, const char *name) {
    return value_of(engine->env, engine->env_count, name);
}

/* A mistyped argument is no error, but its user should see it. */
static const char *nearest_argument(const struct vp_engine *engine, const char *key) {
    const char *names[ROW_COUNT + VP_FIELD_COUNT + VP_EXTRA_ARGS];
    size_t count = vp_extra_arg_names(names, engine->kind);
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (ROWS[i].engine == engine->kind)
            names[count++] = ROWS[i].key;
    for (int i = 0; i < VP_FIELD_COUNT; i++) {
        const char *path = vp_field_path_for(engine->kind, (enum vp_field)i);
        if (path && vp_text_starts(path, PREFIX))
            names[count++] = path + sizeof PREFIX - 1;
    }
    return strlen(key) > 3 ? vp_text_nearest(key, names, count) : NULL;
}

/* What this engine calls a setting of another one; NULL: nothing. */
static const char *own_name(struct vp_ctx *ctx, const struct vp_engine *engine, const char *key) {
    for (int kind = 0; kind < VP_ENGINE_KINDS; kind++) {
        struct row row = look_up(ctx, (enum vp_engine_kind)kind, key);
        const char *path = row.action == SAME ? vp_field_path_for(engine->kind, row.field) : NULL;
        if (path && !vp_field_is_negated(engine->kind, row.field))
            return path;
    }
    return NULL;
}

static void report_ignored(struct vp_ctx *ctx, const struct vp_engine *engine,
                           const struct vp_engine_arg *arg) {
    const char *own = own_name(ctx, engine, arg->key);
    const char *nearest = own ? NULL : nearest_argument(engine, arg->key);
    vp_diag_add(ctx->diags, VP_D_ARG_IGNORED, &arg->pos, "engine.args.%.100s is not computed with",
                arg->key);
    if (own)
        vp_diag_hint(ctx->diags, "in %s it is %s", engine->name, own);
    else if (nearest)
        vp_diag_hint(ctx->diags, "did you mean %s?", nearest);
}

void vp_engine_args_report(struct vp_ctx *ctx, const struct vp_engine *engine) {
    for (uint32_t i = 0; i < engine->arg_count; i++)
        if (!engine->args[i].used)
            report_ignored(ctx, engine, &engine->args[i]);
    for (uint32_t i = 0; i < engine->env_count; i++)
        if (!engine->env[i].used)
            vp_diag_add(ctx->diags, VP_D_ARG_IGNORED, &engine->env[i].pos,
                        "engine.env.%.100s is not computed with", engine->env[i].key);
}
