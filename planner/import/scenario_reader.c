#include "planner/import/scenario_reader.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/import/devices_reader.h"
#include "planner/import/document.h"
#include "planner/import/engine_args.h"
#include "planner/import/gpu_profile.h"
#include "planner/import/model_reader.h"
#include "planner/import/scenario_parts.h"
#include "planner/import/serve_extras.h"
#include "planner/import/settings.h"
#include "planner/import/traffic_reader.h"
#include "planner/import/train_reader.h"

/* ---- sections whose keys are fields ---- */

/* Names of a section's fields, and further ones that it takes. Returns how many. */
static size_t names_of(const char *out[VP_FIELD_COUNT + 8], const char *section,
                       const char *const *more, size_t more_count) {
    size_t n = 0, length = strlen(section);
    for (int i = 0; i < VP_FIELD_COUNT; i++) {
        const char *path = vp_field_info((enum vp_field)i)->path;
        bool inside = strncmp(path, section, length) == 0 && path[length] == '.';
        if (inside && !strchr(path + length + 1, '.'))
            out[n++] = path + length + 1;
    }
    for (size_t i = 0; i < more_count; i++)
        out[n++] = more[i];
    return n;
}

static void refuse_unmodelled(struct vp_reading *r, enum vp_field field,
                              const struct vp_node *node) {
    const struct vp_field_info *info = vp_field_info(field);
    uint64_t v;
    bool one = info->kind == VP_KIND_COUNT && vp_node_u64(&v, node) && v == 1;
    if (one || vp_value_is_harmless(node))
        return;
    vp_diag_add(r->ctx->diags, VP_D_UNMODELLED, &node->pos, "%s (%s) is not modelled yet",
                vp_reading_label(r, info->path), info->meaning);
    vp_diag_hint(r->ctx->diags, "no answer is given, because it would leave out its memory");
}

static void read_field(struct vp_reading *r, enum vp_field field, const struct vp_node *node,
                       const char *path) {
    if (!vp_field_info(field)->modelled)
        refuse_unmodelled(r, field, node);
    else
        vp_value_read(r, field, node, VP_ORIGIN_FILE, path);
}

/* Reads what the section has as fields. special: reads a key that needs more; true when it did. */
static void read_section(struct vp_reading *r, const struct vp_node *root, const char *section,
                         bool (*special)(struct vp_reading *r, const char *key,
                                         const struct vp_node *node),
                         const char *const *more, size_t more_count) {
    const struct vp_node *node = vp_node_get(root, section);
    const char *names[VP_FIELD_COUNT + 8];
    if (!vp_reading_is_map(r, node, section))
        return;
    for (uint32_t i = 0; i < node->count; i++) {
        const char *key = node->keys[i];
        const char *path = vp_arena_printf(r->ctx->arena, "%s.%s", section, key);
        enum vp_field field = vp_field_find(path);
        if (special && special(r, key, node->items[i]))
            continue;
        if (field < VP_FIELD_COUNT && !strchr(key, '.'))
            read_field(r, field, node->items[i], path);
        else
            vp_reading_unknown(r, section, key, &node->key_pos[i], names,
                               names_of(names, section, more, more_count));
    }
}

/* ---- keys that are more than a field ---- */

/* An inline GPU: its fields are read at once, its id stands for the name. */
static bool read_hardware_key(struct vp_reading *r, const char *key, const struct vp_node *node) {
    struct vp_source *source = &r->out->source[VP_F_GPU];
    if (strcmp(key, "devices") == 0) {
        if (!vp_value_is_harmless(node) && (source->origin != VP_ORIGIN_FLAG || r->from_flags))
            vp_devices_read(r, node);
        return true;
    }
    if (strcmp(key, "gpu") != 0 || node->kind != VP_NODE_MAP)
        return false;
    if (source->origin == VP_ORIGIN_FLAG && !r->from_flags)
        return true;
    if (vp_gpu_read(r->ctx, &r->out->hardware.gpu, node) != VP_OK)
        return true;
    *source = (struct vp_source){.origin = r->from_flags ? VP_ORIGIN_FLAG : VP_ORIGIN_FILE,
                                 .pos = node->pos,
                                 .key = vp_reading_label(r, "hardware.gpu")};
    r->out->hardware.gpu_name = r->out->hardware.gpu.id;
    return true;
}

static bool read_parallel_key(struct vp_reading *r, const char *key, const struct vp_node *node) {
    if (strcmp(key, "context") != 0)
        return false;
    vp_value_read(r, VP_F_CONTEXT_PARALLEL, node, VP_ORIGIN_FILE, "parallel.context");
    return true;
}

static void keep_class(struct vp_reading *r, const struct vp_node *node) {
    const char *names[VP_CLASS_COUNT];
    struct vp_buf known = {.arena = r->ctx->arena};
    const char *text = vp_node_text(node);
    for (int i = 0; i < VP_CLASS_COUNT; i++) {
        names[i] = vp_class_name((enum vp_class)i);
        vp_buf_printf(&known, "%s%s", i ? ", " : "", names[i]);
        if (text && vp_name_eq(text, names[i])) {
            r->out->precision.keep[i] = true;
            return;
        }
    }
    const char *nearest = text ? vp_text_nearest(text, names, VP_CLASS_COUNT) : NULL;
    vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &node->pos,
                "precision.keep: no tensor class is called %.100s",
                text ? text : vp_node_kind_name(node->kind));
    if (nearest)
        vp_diag_hint(r->ctx->diags, "did you mean %s?", nearest);
    else
        vp_diag_hint(r->ctx->diags, "known are %s", vp_buf_text(&known));
}

static bool read_precision_key(struct vp_reading *r, const char *key, const struct vp_node *node) {
    if (strcmp(key, "keep") != 0)
        return false;
    if (r->keep_given || vp_node_is_null(node))
        return true;
    r->keep_given = true;
    if (node->kind != VP_NODE_LIST)
        keep_class(r, node);
    for (uint32_t i = 0; node->kind == VP_NODE_LIST && i < node->count; i++)
        keep_class(r, node->items[i]);
    return true;
}

/* The command line's comes first and stays. */
static void read_version(struct vp_reading *r, const char **out, const char *path,
                         const struct vp_node *node) {
    if (vp_node_is_null(node) || *out)
        return;
    *out = vp_node_is_scalar(node) && *node->text ? node->text : NULL;
    if (!*out)
        vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &node->pos, "%s must be a version, not %s",
                    vp_reading_label(r, path), vp_node_kind_name(node->kind));
}

/* Versions of libraries beside the engine: they matter for training only. */
static void read_versions(struct vp_reading *r, const struct vp_node *node) {
    static const char *const NAMES[] = {"torch", "transformers", "peft", "trl"};
    enum { COUNT = sizeof NAMES / sizeof *NAMES };
    struct vp_engine *engine = &r->out->engine;
    const char **const out[COUNT] = {&engine->torch_text, &engine->transformers_text,
                                     &engine->peft_text, &engine->trl_text};
    if (!vp_reading_is_map(r, node, "engine.versions"))
        return;
    for (uint32_t i = 0; i < node->count; i++) {
        size_t k = 0;
        while (k < COUNT && strcmp(NAMES[k], node->keys[i]) != 0)
            k++;
        if (k == COUNT)
            vp_reading_unknown(r, "engine.versions", node->keys[i], &node->key_pos[i], NAMES,
                               COUNT);
        else
            read_version(r, out[k], "engine.versions", node->items[i]);
    }
}

/* args and env wait until the engine is known. */
static bool read_engine_key(struct vp_reading *r, const char *key, const struct vp_node *node) {
    if (strcmp(key, "versions") == 0)
        read_versions(r, node);
    if (strcmp(key, "torch") == 0)
        read_version(r, &r->out->engine.torch_text, "engine.torch", node);
    return strcmp(key, "versions") == 0 || strcmp(key, "args") == 0 || strcmp(key, "env") == 0 ||
           strcmp(key, "torch") == 0;
}

/* "vllm@0.19" as the command line takes it, also as the whole of `engine:`. */
static const struct vp_node *engine_map(struct vp_reading *r, const struct vp_node *root) {
    struct vp_node *engine = vp_node_get(root, "engine");
    const char *text = engine && engine->kind == VP_NODE_TEXT ? engine->text : NULL;
    if (!text || !*text)
        return root;
    const char *at = strchr(text, '@');
    size_t n = at ? (size_t)(at - text) : strlen(text);
    struct vp_node *map = vp_node_new(r->ctx, VP_NODE_MAP, engine->pos);
    const char *name = vp_arena_text(r->ctx->arena, text, n);
    vp_node_set(r->ctx, map, "name", engine->pos,
                vp_node_scalar(r->ctx, VP_NODE_TEXT, name, engine->pos));
    if (at)
        vp_node_set(r->ctx, map, "version", engine->pos,
                    vp_node_scalar(r->ctx, VP_NODE_TEXT, at + 1, engine->pos));
    struct vp_node *copy = vp_node_merge(r->ctx, NULL, root);
    vp_node_set(r->ctx, copy, "engine", engine->pos, map);
    return copy;
}

/* ---- the whole ---- */

static void check_root_keys(struct vp_reading *r, const struct vp_node *root) {
    static const char *const NAMES[] = {"vramplan", "name",     "model",     "hardware",
                                        "engine",   "parallel", "precision", "serve",
                                        "train",    "measured", "budget",    "calibration"};
    enum { COUNT = sizeof NAMES / sizeof *NAMES };
    for (uint32_t i = 0; i < root->count; i++) {
        size_t k = 0;
        while (k < COUNT && strcmp(NAMES[k], root->keys[i]) != 0)
            k++;
        if (k == COUNT)
            vp_reading_unknown(r, "", root->keys[i], &root->key_pos[i], NAMES, COUNT);
    }
}

/* --batch counts what a step takes at once: sequences in flight, or those of a micro batch. */
static bool read_serve_key(struct vp_reading *r, const char *key, const struct vp_node *node) {
    if (r->out->training && r->from_flags && strcmp(key, "concurrency") == 0) {
        vp_value_read(r, VP_F_MICRO_BATCH, node, VP_ORIGIN_FILE, "serve.concurrency");
        return true;
    }
    return vp_serve_key(r, key, node) || vp_traffic_key(r, key, node);
}

static void read_fields(struct vp_reading *r, const struct vp_node *root) {
    static const char *const KEEP[] = {"keep"}, *const CONTEXT[] = {"context"};
    static const char *const ENGINE[] = {"args", "env", "versions", "torch"};
    static const char *const TRAIN[] = {"dtype", "ops", "offload", "frozen", "lora"};
    static const char *const DEVICES[] = {"devices"};
    static const enum vp_field TOP[] = {VP_F_NAME, VP_F_CALIBRATION};
    check_root_keys(r, root);
    for (size_t i = 0; i < sizeof TOP / sizeof *TOP; i++) {
        const char *path = vp_field_info(TOP[i])->path;
        const struct vp_node *node = vp_node_get(root, path);
        if (node)
            read_field(r, TOP[i], node, path);
    }
    read_section(r, root, "hardware", read_hardware_key, DEVICES, 1);
    read_section(r, root, "engine", read_engine_key, ENGINE, 4);
    read_section(r, root, "parallel", read_parallel_key, CONTEXT, 1);
    read_section(r, root, "precision", read_precision_key, KEEP, 1);
    read_section(r, root, "serve", read_serve_key, NULL, 0);
    read_section(r, root, "train", vp_train_key, TRAIN, 5);
    vp_scenario_read_budget(r, vp_node_get(root, "budget"));
}

/* A path in a file starts at the file. */
static void place_calibration(struct vp_reading *r, const char *base) {
    struct vp_scenario *s = r->out;
    bool flag = s->source[VP_F_CALIBRATION].origin == VP_ORIGIN_FLAG;
    if (!s->calibration)
        return;
    const char *path = vp_document_expand(r->ctx, s->calibration);
    s->calibration_path = flag ? path : vp_io_join(r->ctx, base, path);
}

/* What depends on which engine it is. */
static void read_engine_parts(struct vp_reading *r, const struct vp_node *const tree[2]) {
    for (int i = 0; i < 2; i++) {
        r->from_flags = i == 0;
        vp_engine_args_scan(r, vp_node_get(vp_node_get(tree[i], "engine"), "args"));
    }
    for (int i = 0; i < 2; i++) {
        const struct vp_node *engine = vp_node_get(tree[i], "engine");
        r->from_flags = i == 0;
        vp_engine_args_read(r, vp_node_get(engine, "args"));
        vp_engine_env_read(r, vp_node_get(engine, "env"));
        vp_scenario_read_measured(r, vp_node_get(tree[i], "measured"));
    }
}

/* A GGUF file, or the keys of one. */
static bool is_gguf(const struct vp_node *model) {
    const struct vp_node *from = vp_node_get(model, "from");
    const char *text = vp_node_text(from ? from : model);
    return vp_node_get(model, "gguf") || (text && vp_text_ends(text, ".gguf"));
}

/* Known before anything else is read, because it decides what settings are called. A name that is
 * none is found again, and told, by check_engine. */
static void set_engine_kind(struct vp_reading *r, const struct vp_node *const tree[2]) {
    const char *name = NULL;
    for (int i = 0; i < 2 && !name; i++)
        name = vp_node_text(vp_node_get(vp_node_get(tree[i], "engine"), "name"));
    if (!name && r->out->training)
        r->out->engine.kind = VP_ENGINE_PYTORCH;
    else if (!name && (is_gguf(vp_node_get(tree[0], "model")) ||
                       (!vp_node_get(tree[0], "model") && is_gguf(vp_node_get(tree[1], "model")))))
        r->out->engine.kind = VP_ENGINE_LLAMA_CPP;
    for (int i = 0; name && i < VP_ENGINE_KINDS; i++)
        if (vp_name_eq(name, vp_engine_name((enum vp_engine_kind)i)))
            r->out->engine.kind = (enum vp_engine_kind)i;
}

static void refuse_engine(struct vp_reading *r) {
    const char *names[VP_ENGINE_KINDS], *engine = r->out->engine.name;
    struct vp_buf known = {.arena = r->ctx->arena};
    for (int i = 0; i < VP_ENGINE_KINDS; i++) {
        names[i] = vp_engine_name((enum vp_engine_kind)i);
        vp_buf_printf(&known, "%s%s", i ? ", " : "", names[i]);
    }
    const char *nearest = vp_text_nearest(engine, names, VP_ENGINE_KINDS);
    vp_diag_add(r->ctx->diags, VP_D_ENGINE_UNKNOWN, &r->out->source[VP_F_ENGINE].pos,
                "no engine is called \"%.100s\"", engine);
    if (nearest)
        vp_diag_hint(r->ctx->diags, "did you mean %s?", nearest);
    else
        vp_diag_hint(r->ctx->diags, "known are %s", vp_buf_text(&known));
}

static bool check_engine(struct vp_reading *r) {
    struct vp_engine *engine = &r->out->engine;
    struct vp_source *source = &r->out->source[VP_F_ENGINE];
    if (source->origin == VP_ORIGIN_UNSET) {
        engine->name = vp_engine_name(engine->kind);
        *source = (struct vp_source){
            .origin = VP_ORIGIN_DEFAULT,
            .why = vp_engine_is_llama(engine->kind) ? "the model is a GGUF file"
                   : r->out->training               ? "an own loop, unless a framework is named"
                                      : "the engine that is meant unless another one is named"};
        return true;
    }
    if (vp_name_eq(engine->name, vp_engine_name(engine->kind))) {
        engine->name = vp_engine_name(engine->kind);
        return true;
    }
    refuse_engine(r);
    return false;
}

static enum vp_status read_model(struct vp_reading *r, const struct vp_node *file,
                                 const struct vp_node *flags, const char *base) {
    const struct vp_node *given = vp_node_get(flags, "model");
    struct vp_node *node = vp_settings_model(r->ctx, vp_node_get(file, "model"), given);
    bool from_flags = given && (given->kind != VP_NODE_MAP || vp_node_get(given, "from"));
    if (vp_node_is_null(node)) {
        vp_diag_add(r->ctx->diags, VP_D_MISSING_VALUE, &file->pos, "model is missing");
        vp_diag_hint(r->ctx->diags, "model: a built-in name (`vramplan list models`), a path to a "
                                    "config.json or its folder, or the keys of a config.json");
        return VP_ERR_INPUT;
    }
    return vp_model_read(r->ctx, &r->out->model, node, from_flags ? NULL : base);
}

static void keep_default(struct vp_reading *r) {
    static const enum vp_class KEPT[] = {VP_CLASS_EMBEDDING, VP_CLASS_LM_HEAD, VP_CLASS_NORM,
                                         VP_CLASS_ROUTER};
    for (size_t i = 0; !r->keep_given && i < sizeof KEPT / sizeof *KEPT; i++)
        r->out->precision.keep[KEPT[i]] = true;
}

enum vp_status vp_scenario_read(struct vp_ctx *ctx, struct vp_scenario *out,
                                const struct vp_node *root, const char *base,
                                const struct vp_setting *settings, size_t setting_count) {
    struct vp_reading r = {
        .ctx = ctx, .out = out, .settings = settings, .setting_count = setting_count, .base = base};
    const struct vp_node *tree[2]; /* the command line's, then the file's */
    struct vp_node *flags;
    uint32_t errors = ctx->diags->errors;
    *out = (struct vp_scenario){0};
    if (root->kind != VP_NODE_MAP) {
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &root->pos, "a scenario must be a map, not %s",
                    vp_node_kind_name(root->kind));
        return VP_ERR_INPUT;
    }
    enum vp_status status = vp_settings_tree(ctx, &flags, settings, setting_count);
    tree[0] = engine_map(&r, flags);
    tree[1] = engine_map(&r, root);
    vp_train_scan(&r, tree[0]);
    vp_train_scan(&r, tree[1]);
    set_engine_kind(&r, tree);
    for (int i = 0; i < 2; i++) {
        r.from_flags = i == 0;
        read_fields(&r, tree[i]);
    }
    place_calibration(&r, base);
    vp_traffic_settle(&r, base);
    if (check_engine(&r))
        read_engine_parts(&r, tree);
    keep_default(&r);
    enum vp_status model = read_model(&r, root, flags, base);
    vp_value_check_auto(&r);
    vp_engine_args_settle(&r);
    if (model == VP_OK && ctx->diags->errors == errors)
        model = vp_draft_read(&r, base);
    if (status == VP_ERR_ENV || model == VP_ERR_ENV)
        return VP_ERR_ENV;
    return ctx->diags->errors > errors ? VP_ERR_INPUT : VP_OK;
}
