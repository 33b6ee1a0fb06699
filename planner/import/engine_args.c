#include "planner/import/engine_args.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/import/document.h"
#include "planner/model/requantise.h"

enum action { SAME, QUANTIZATION, STATE, REFUSE, NOT_MODELLED };

struct row {
    const char *key;
    enum action action;
    enum vp_field field;
};

static const struct row ROWS[] = {
#define X(key, action, field) {key, action, VP_F_##field},
#include "planner/import/vllm_args.def"
#undef X
};

static const struct {
    const char *method, *format;
} METHODS[] = {
#define X(method, format) {method, format},
#include "planner/import/vllm_methods.def"
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

static struct row look_up(struct vp_ctx *ctx, const char *key) {
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strcmp(ROWS[i].key, key) == 0)
            return ROWS[i];
    enum vp_field field = vp_field_find(vp_arena_printf(ctx->arena, "%s%s", PREFIX, key));
    return (struct row){key, field < VP_FIELD_COUNT ? SAME : NOT_MODELLED, field};
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

static void refuse(struct vp_reading *r, const struct row *row, const char *key,
                   const struct vp_node *node) {
    uint64_t v;
    bool one = row->field == VP_F_CONTEXT_PARALLEL && vp_node_u64(&v, node) && v == 1;
    if (one || vp_value_is_harmless(node))
        return;
    const char *path = vp_arena_printf(r->ctx->arena, "%s%s", PREFIX, key);
    vp_diag_add(r->ctx->diags, VP_D_UNMODELLED, &node->pos, "%s (%s) is not modelled yet",
                vp_reading_label(r, path), vp_field_info(row->field)->meaning);
    vp_diag_hint(r->ctx->diags, "no answer is given, because it would leave out its memory");
}

static void say(struct vp_reading *r, struct vp_said *said, const char *key,
                const struct vp_node *node) {
    const char *path = vp_arena_printf(r->ctx->arena, "%s%s", PREFIX, key);
    if (vp_node_is_null(node) || said->text)
        return;
    if (!vp_node_is_scalar(node)) {
        vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &node->pos, "%s must be text, not %s",
                    vp_reading_label(r, path), vp_node_kind_name(node->kind));
        return;
    }
    *said = (struct vp_said){node->text, {.origin = VP_ORIGIN_ARGS, .pos = node->pos, .key = key}};
    if (r->from_flags) {
        said->source.origin = VP_ORIGIN_FLAG;
        said->source.key = vp_reading_label(r, path);
    }
}

/* "no_enable_prefix_caching: true" is enable_prefix_caching: false. */
static bool read_negation(struct vp_reading *r, const char *key, const char *as_written,
                          const struct vp_node *node) {
    bool flag;
    if (!vp_text_starts(key, "no_"))
        return false;
    struct row row = look_up(r->ctx, key + 3);
    if (row.action != SAME || vp_field_info(row.field)->kind != VP_KIND_BOOL)
        return false;
    if (!vp_node_bool(&flag, node)) {
        vp_value_read(r, row.field, node, VP_ORIGIN_ARGS, as_written); /* reports what is wrong */
        return true;
    }
    struct vp_node *inverse =
        vp_node_scalar(r->ctx, VP_NODE_BOOL, flag ? "false" : "true", node->pos);
    vp_value_read(r, row.field, inverse, VP_ORIGIN_ARGS, as_written);
    return true;
}

static bool apply(struct vp_reading *r, const char *key, const char *as_written,
                  const struct vp_node *node) {
    struct row row = look_up(r->ctx, key);
    switch (row.action) {
    case SAME:
        vp_value_read(r, row.field, node, VP_ORIGIN_ARGS, as_written);
        return true;
    case QUANTIZATION:
        say(r, &r->quantization, as_written, node);
        return true;
    case STATE: {
        struct vp_value value;
        const char *path = vp_arena_printf(r->ctx->arena, "%s%s", PREFIX, as_written);
        return vp_node_is_null(node) ||
               vp_value_parse(r, &value, row.field, node, vp_reading_label(r, path));
    }
    case REFUSE:
        refuse(r, &row, as_written, node);
        return true;
    case NOT_MODELLED:
        break;
    }
    return read_negation(r, key, as_written, node);
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

void vp_engine_env_read(struct vp_reading *r, const struct vp_node *env) {
    struct vp_engine *engine = &r->out->engine;
    if (!vp_reading_is_map(r, env, "engine.env"))
        return;
    for (uint32_t i = 0; i < env->count; i++) {
        const char *name = env->keys[i];
        struct vp_engine_arg *arg =
            keep(r->ctx, &engine->env, &engine->env_count, name, env->items[i]);
        for (size_t k = 0; k < sizeof USED_ENV / sizeof *USED_ENV; k++)
            arg->used |= strcmp(name, USED_ENV[k]) == 0;
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
static const char *nearest_argument(const char *key) {
    const char *names[ROW_COUNT + VP_FIELD_COUNT];
    size_t count = 0;
    for (size_t i = 0; i < ROW_COUNT; i++)
        names[count++] = ROWS[i].key;
    for (int i = 0; i < VP_FIELD_COUNT; i++) {
        const char *path = vp_field_info((enum vp_field)i)->path;
        if (vp_text_starts(path, PREFIX))
            names[count++] = path + sizeof PREFIX - 1;
    }
    return strlen(key) > 3 ? vp_text_nearest(key, names, count) : NULL;
}

void vp_engine_args_report(struct vp_ctx *ctx, const struct vp_engine *engine) {
    for (uint32_t i = 0; i < engine->arg_count; i++) {
        const struct vp_engine_arg *arg = &engine->args[i];
        if (arg->used)
            continue;
        const char *nearest = nearest_argument(arg->key);
        vp_diag_add(ctx->diags, VP_D_ARG_IGNORED, &arg->pos,
                    "engine.args.%.100s is not computed with", arg->key);
        if (nearest)
            vp_diag_hint(ctx->diags, "did you mean %s?", nearest);
    }
    for (uint32_t i = 0; i < engine->env_count; i++)
        if (!engine->env[i].used)
            vp_diag_add(ctx->diags, VP_D_ARG_IGNORED, &engine->env[i].pos,
                        "engine.env.%.100s is not computed with", engine->env[i].key);
}
