#include "planner/import/input.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/import/command_line.h"
#include "planner/import/document.h"
#include "planner/import/finish.h"
#include "planner/import/modelfile.h"
#include "planner/import/scenario_reader.h"

struct reading {
    struct vp_ctx *ctx;
    const struct vp_found *input;
    struct vp_scenarios *out;
    const struct vp_setting *settings;
    size_t setting_count;
};

struct finding {
    struct vp_ctx *ctx;
    struct vp_found *out;
    const char *first_name; /* what a scenario without a name is called */
};

/* ---- one scenario ---- */

/* Faults that have nothing to do with those found so far: the GPU's name, the engine's version. */
static enum vp_status look_for_more(struct reading *r, struct vp_scenario *scenario) {
    bool given = vp_scenario_is_given(scenario, VP_F_GPU);
    const struct vp_engine *engine = &scenario->engine;
    if (!given || !vp_text_eq(engine->name, vp_engine_name(engine->kind)))
        return VP_ERR_INPUT;
    scenario->model = NULL;
    return vp_scenario_finish(r->ctx, scenario);
}

static void set_name(struct vp_scenario *scenario, const char *name) {
    const char *model = scenario->model ? scenario->model->name : NULL;
    if (scenario->source[VP_F_NAME].origin != VP_ORIGIN_UNSET)
        return;
    scenario->name = name ? name : model ? model : "scenario";
    scenario->source[VP_F_NAME] = (struct vp_source){
        .origin = VP_ORIGIN_DEFAULT, .why = name ? "where it stands" : "the model's name"};
}

/* Scenarios share `defaults:`: its faults belong to each of them, but are told once in all. */
static enum vp_status read_one(struct reading *r, const struct vp_node *root, const char *name) {
    struct vp_ctx *outer = r->ctx, own = *outer;
    struct vp_diags *found = VP_NEW(own.arena, struct vp_diags);
    struct vp_scenario *scenario = VP_NEW(own.arena, struct vp_scenario);
    struct vp_scenario_read_result *result = &r->out->each[r->out->each_count++];
    own.diags = found;
    found->arena = own.arena;
    r->ctx = &own;
    enum vp_status status =
        vp_scenario_read(&own, scenario, root, r->input->base, r->settings, r->setting_count);
    if (status == VP_OK)
        status = vp_scenario_finish(&own, scenario);
    else if (status == VP_ERR_INPUT)
        status = look_for_more(r, scenario);
    r->ctx = outer;
    set_name(scenario, name);
    *result = (struct vp_scenario_read_result){scenario->name, status == VP_OK ? scenario : NULL,
                                               VP_NEW(own.arena, struct vp_diags), status};
    result->diags->arena = own.arena;
    vp_diags_merge(result->diags, found);
    if (status == VP_OK)
        r->out->items[r->out->count++] = scenario;
    return status;
}

static enum vp_status worse(enum vp_status a, enum vp_status b) {
    return a > b ? a : b; /* the environment's faults outrank the input's */
}

/* ---- files with scenarios ---- */

/* Room for the scenarios of an input. */
static void expect(struct finding *f, size_t count) {
    f->out->items = VP_NEW_ARRAY(f->ctx->arena, count, struct vp_found_item);
}

static void add(struct finding *f, const struct vp_node *root, const char *name) {
    f->out->items[f->out->count++] = (struct vp_found_item){root, name};
}

static bool check_version(struct vp_ctx *ctx, const struct vp_node *root) {
    const struct vp_node *version = vp_node_get(root, "vramplan");
    uint64_t v;
    if (!version) {
        vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, &root->pos,
                    "vramplan: 1 is missing at the top of the scenario");
        return false;
    }
    if (vp_node_u64(&v, version) && v == 1)
        return true;
    vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &version->pos,
                "vramplan: %.50s is not a scenario version that this program reads",
                vp_node_is_scalar(version) ? version->text : vp_node_kind_name(version->kind));
    vp_diag_hint(ctx->diags, "it reads version 1");
    return false;
}

static enum vp_status no_such_scenario(struct vp_ctx *ctx, const struct vp_node *root,
                                       const char *wanted, const char *const *names, size_t count) {
    struct vp_buf buf = {.arena = ctx->arena};
    const char *nearest = vp_text_nearest(wanted, names, count);
    for (size_t i = 0; i < count; i++)
        vp_buf_printf(&buf, "%s%s", i ? ", " : "", names[i]);
    vp_diag_add(ctx->diags, VP_D_NO_SUCH_SCENARIO, &root->pos,
                "there is no scenario \"%.100s\" in this file", wanted);
    if (nearest)
        vp_diag_hint(ctx->diags, "did you mean %s? it has %s", nearest, vp_buf_text(&buf));
    else
        vp_diag_hint(ctx->diags, count ? "it has %s" : "it has none%s", vp_buf_text(&buf));
    return VP_ERR_INPUT;
}

/* `scenarios:` beside anything but `defaults:` would be silently left out of all of them. */
static void check_list_keys(struct vp_ctx *ctx, const struct vp_node *root) {
    static const char *const NAMES[] = {"vramplan", "defaults", "scenarios"};
    enum { COUNT = sizeof NAMES / sizeof *NAMES };
    for (uint32_t i = 0; i < root->count; i++) {
        size_t k = 0;
        while (k < COUNT && strcmp(NAMES[k], root->keys[i]) != 0)
            k++;
        if (k < COUNT)
            continue;
        const char *nearest = vp_text_nearest(root->keys[i], NAMES, COUNT);
        vp_diag_add(ctx->diags, VP_D_UNKNOWN_KEY, &root->key_pos[i],
                    "unknown key \"%.100s\" beside scenarios", root->keys[i]);
        if (nearest)
            vp_diag_hint(ctx->diags, "did you mean %s?", nearest);
        else
            vp_diag_hint(ctx->diags, "what all scenarios share stands under defaults");
    }
}

static bool is_map_or_null(struct vp_ctx *ctx, const struct vp_node *node, const char *what) {
    if (vp_node_is_null(node) || node->kind == VP_NODE_MAP)
        return true;
    vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &node->pos, "%s must be a map, not %s", what,
                vp_node_kind_name(node->kind));
    return false;
}

static enum vp_status find_list(struct finding *f, const struct vp_node *root, const char *wanted) {
    struct vp_ctx *ctx = f->ctx;
    const struct vp_node *defaults = vp_node_get(root, "defaults");
    const struct vp_node *list = vp_node_get(root, "scenarios");
    uint32_t errors = ctx->diags->errors;
    bool found = false;
    check_list_keys(ctx, root);
    if (!is_map_or_null(ctx, defaults, "defaults") || !is_map_or_null(ctx, list, "scenarios"))
        return VP_ERR_INPUT;
    if (vp_node_is_null(list) || list->count == 0) {
        vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, list ? &list->pos : &root->pos,
                    "scenarios holds none");
        return VP_ERR_INPUT;
    }
    struct vp_node *empty = vp_node_new(ctx, VP_NODE_MAP, list->pos);
    expect(f, list->count);
    for (uint32_t i = 0; i < list->count; i++) {
        if (wanted && strcmp(list->keys[i], wanted) != 0)
            continue;
        found = true;
        if (!is_map_or_null(ctx, list->items[i], "a scenario"))
            continue;
        const struct vp_node *own = vp_node_is_null(list->items[i]) ? empty : list->items[i];
        const struct vp_node *base = vp_node_is_null(defaults) ? empty : defaults;
        add(f, vp_node_merge(ctx, base, own), list->keys[i]);
    }
    if (!found)
        return no_such_scenario(ctx, root, wanted, list->keys, list->count);
    return ctx->diags->errors > errors ? VP_ERR_INPUT : VP_OK;
}

static enum vp_status find_in_file(struct finding *f, const struct vp_node *root,
                                   const char *wanted) {
    if (!check_version(f->ctx, root))
        return VP_ERR_INPUT;
    if (vp_node_get(root, "scenarios") || vp_node_get(root, "defaults"))
        return find_list(f, root, wanted);
    const char *name = vp_node_text(vp_node_get(root, "name"));
    if (wanted && !vp_text_eq(name, wanted))
        return no_such_scenario(f->ctx, root, wanted, &name, name != NULL);
    expect(f, 1);
    add(f, root, f->first_name);
    return VP_OK;
}

/* ---- inputs that name a model ---- */

/* model: the text as the user typed it, or a description from standard input. */
static enum vp_status find_model(struct finding *f, struct vp_node *model) {
    struct vp_node *root = vp_node_new(f->ctx, VP_NODE_MAP, model->pos);
    vp_node_set(f->ctx, root, "model", model->pos, model);
    f->out->base = NULL;
    expect(f, 1);
    add(f, root, NULL);
    return VP_OK;
}

static enum vp_status find_model_text(struct finding *f, const char *text) {
    return find_model(f, vp_node_scalar(f->ctx, VP_NODE_TEXT, text, (struct vp_pos){0}));
}

static bool has_any(const struct vp_node *map, const char *const *keys, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (vp_node_get(map, keys[i]))
            return true;
    return false;
}

static bool is_model(const struct vp_node *root) {
    static const char *const KEYS[] = {"model_type",  "architectures", "hidden_size",
                                       "text_config", "blocks",        "from",
                                       "gguf",        "weight_map",    "vramplan_model"};
    return has_any(root, KEYS, sizeof KEYS / sizeof *KEYS);
}

/* Without a version too, so that the message can say that it is missing. */
static bool is_scenario(const struct vp_node *root) {
    static const char *const SURE[] = {"vramplan", "scenarios"};
    static const char *const LIKELY[] = {"hardware",  "engine", "serve",   "parallel",
                                         "precision", "model",  "defaults"};
    return has_any(root, SURE, sizeof SURE / sizeof *SURE) ||
           (!is_model(root) && has_any(root, LIKELY, sizeof LIKELY / sizeof *LIKELY));
}

static enum vp_status find_in_document(struct finding *f, struct vp_node *root, const char *path,
                                       const char *wanted) {
    /* a pipe cannot be read again */
    bool once = strcmp(path, "-") == 0 || vp_io_kind(f->ctx, path) != VP_FILE_REGULAR;
    if (root->kind == VP_NODE_MAP && is_scenario(root))
        return find_in_file(f, root, wanted);
    if (root->kind == VP_NODE_MAP && is_model(root)) {
        if (wanted)
            return no_such_scenario(f->ctx, root, wanted, NULL, 0);
        return once ? find_model(f, root) : find_model_text(f, path);
    }
    struct vp_pos pos = root->pos.file ? root->pos : (struct vp_pos){.file = path};
    if (root->kind == VP_NODE_MAP)
        vp_diag_add(f->ctx->diags, VP_D_BAD_VALUE, &pos,
                    "this is neither a scenario nor a model description");
    else
        vp_diag_add(f->ctx->diags, VP_D_BAD_VALUE, &pos,
                    "a scenario or a model description must be a map (a JSON object), not %s",
                    root->kind == VP_NODE_NULL ? "empty" : vp_node_kind_name(root->kind));
    vp_diag_hint(f->ctx->diags, "a scenario begins with `vramplan: 1`; a model description has "
                                "the keys of a config.json");
    return VP_ERR_INPUT;
}

/* ---- what the input names ---- */

const char *vp_input_split(struct vp_ctx *ctx, const char **name, const char *input) {
    const char *hash = strrchr(input, '#');
    *name = NULL;
    if (!hash || hash == input || vp_io_kind(ctx, vp_document_expand(ctx, input)) != VP_FILE_NONE)
        return input;
    *name = hash + 1;
    return vp_arena_text(ctx->arena, input, (size_t)(hash - input));
}

static bool is_document(struct vp_ctx *ctx, const char *path) {
    static const char *const BINARY[] = {".safetensors", ".gguf"};
    enum vp_file_kind kind = vp_io_kind(ctx, path);
    for (size_t i = 0; i < sizeof BINARY / sizeof *BINARY; i++)
        if (vp_text_ends(path, BINARY[i]))
            return false;
    return kind == VP_FILE_REGULAR || kind == VP_FILE_OTHER; /* a pipe: <(...) */
}

bool vp_input_in_words(struct vp_ctx *ctx, struct vp_node **out, enum vp_status *status,
                       const char *input) {
    if (vp_command_line_is(ctx, input) && vp_io_kind(ctx, input) == VP_FILE_NONE)
        *status = vp_command_line_read(ctx, out, input);
    else if (vp_modelfile_is(input))
        *status = vp_modelfile_read(ctx, out, input);
    else
        return false;
    return true;
}

static enum vp_status find_any(struct finding *f, const char *input) {
    struct vp_ctx *ctx = f->ctx;
    const char *wanted;
    struct vp_node *root;
    enum vp_status status;
    if (vp_input_in_words(ctx, &root, &status, input)) {
        if (status != VP_OK)
            return status;
        f->out->base = vp_modelfile_is(input) ? vp_io_dirname(ctx, input) : NULL;
        expect(f, 1);
        add(f, root, NULL);
        return VP_OK;
    }
    const char *path = vp_document_expand(ctx, vp_input_split(ctx, &wanted, input));
    bool from_stdin = strcmp(path, "-") == 0;
    if (!from_stdin && !is_document(ctx, path)) {
        bool file = vp_text_ends(path, ".yaml") || vp_text_ends(path, ".yml");
        if (!wanted && !file)
            return find_model_text(f, path); /* says what it is not when there is none */
    }
    status = vp_document_read(ctx, &root, path);
    if (status != VP_OK)
        return status;
    if (!from_stdin) {
        f->out->base = vp_io_dirname(ctx, path);
        f->first_name = vp_document_stem(ctx, path);
    }
    return find_in_document(f, root, path, wanted);
}

enum vp_status vp_input_find(struct vp_ctx *ctx, struct vp_found *out, const char *input) {
    struct vp_ctx own = *ctx;
    struct finding f = {.ctx = &own, .out = out};
    *out = (struct vp_found){.diags = VP_NEW(ctx->arena, struct vp_diags)};
    out->diags->arena = ctx->arena;
    own.diags = out->diags;
    out->status = find_any(&f, input);
    if (out->status == VP_OK && out->diags->errors > 0)
        out->status = VP_ERR_ENV; /* a path whose kind could not be told was passed over */
    return out->status;
}

enum vp_status vp_input_finish(struct vp_ctx *ctx, struct vp_scenarios *out,
                               const struct vp_found *input, const struct vp_setting *settings,
                               size_t setting_count) {
    struct vp_ctx own = *ctx;
    struct reading r = {&own, input, out, settings, setting_count};
    enum vp_status status = input->status;
    *out = (struct vp_scenarios){.shared = input->diags};
    out->items = VP_NEW_ARRAY(ctx->arena, input->count, struct vp_scenario *);
    out->each = VP_NEW_ARRAY(ctx->arena, input->count, struct vp_scenario_read_result);
    for (size_t i = 0; i < input->count; i++)
        status = worse(status, read_one(&r, input->items[i].root, input->items[i].name));
    vp_diags_merge(ctx->diags, out->shared);
    for (size_t i = 0; i < out->each_count; i++)
        vp_diags_merge(ctx->diags, out->each[i].diags);
    return status;
}

enum vp_status vp_input_read(struct vp_ctx *ctx, struct vp_scenarios *out, const char *input,
                             const struct vp_setting *settings, size_t setting_count) {
    struct vp_found found;
    vp_input_find(ctx, &found, input);
    return vp_input_finish(ctx, out, &found, settings, setting_count);
}
