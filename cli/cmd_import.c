/* import: a model as the skeleton of a scenario file. The model is read as a plan would read it, so
 * that what is wrong with it shows here; what is written is its description, key by key. */
#include <inttypes.h>

#include "cli/args.h"
#include "cli/import_recipe.h"
#include "cli/json_node.h"
#include "cli/output.h"
#include "api/yaml_writer.h"
#include "planner/base/units.h"
#include "planner/import/document.h"
#include "planner/import/engine_profile.h"
#include "planner/import/model_reader.h"
#include "planner/memory/kv_cache.h"
#include "planner/ops/ops.h"
#include "reports/layout.h"
#include "reports/report.h"

/* What is known of the model without hardware and engine. */
struct facts {
    const struct vp_model *model;
    const struct vp_node *description; /* a map */
    const char *source;
    struct vp_params params;
    enum vp_dtype kv_dtype;
    uint64_t kv_bytes_per_token, state_bytes_per_sequence; /* unsharded */
    bool kv_known;
};

/* ---- reading ---- */

static enum vp_status input_node(struct vp_ctx *ctx, struct vp_node **out, const char *input) {
    if (vp_text_eq(input, "-"))
        return vp_document_read(ctx, out, input);
    *out = vp_node_scalar(ctx, VP_NODE_TEXT, input, (struct vp_pos){0});
    return VP_OK;
}

/* The cache of one sequence on one device, in the model's own 16-bit type. */
static void find_kv_bytes(struct facts *facts) {
    struct vp_model model = *facts->model;
    enum vp_dtype dtype = model.dtype == VP_DTYPE_FP16 ? VP_DTYPE_FP16 : VP_DTYPE_BF16;
    struct vp_scenario scenario = {
        .model = &model,
        .parallel =
            {.tensor = 1, .pipeline = 1, .data = 1, .expert = 1, .context = 1, .attention_data = 1},
        .precision = {.kv_cache = dtype, .compute = dtype},
        .engine = {.block_size = 1, .rules = {.window_groups = true}},
    };
    struct vp_stage stage = vp_stage_split(model.layer_count, 1, 0);
    struct vp_kv_plan plan;
    vp_kv_plan_make(&plan, &scenario, &stage);
    facts->kv_dtype = dtype;
    facts->kv_known = !plan.overflow && !plan.too_many_types;
    facts->kv_bytes_per_token = plan.token_bytes;
    facts->state_bytes_per_sequence = plan.state_bytes;
}

static enum vp_status read_facts(struct vp_ctx *ctx, struct facts *out, const char *input) {
    struct vp_node *node, *description;
    struct vp_model *model;
    *out = (struct facts){0};
    enum vp_status status = input_node(ctx, &node, input);
    if (status == VP_OK && vp_node_get(node, "vramplan")) {
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &node->pos, "this is a scenario, not a model");
        return VP_ERR_INPUT;
    }
    if (status == VP_OK)
        status = vp_model_read(ctx, &model, node, "");
    if (status == VP_OK)
        status = vp_model_description(ctx, &description, &out->source, node, "");
    if (status != VP_OK)
        return status;
    out->model = model;
    out->description = description;
    out->params = vp_ops_params(model);
    find_kv_bytes(out);
    return VP_OK;
}

/* ---- YAML ---- */

/* The rest of a comment line, whatever stands in a name. */
static const char *clean(struct vp_buf *out, const char *text) {
    return vp_text_clean(out->arena, text, true);
}

/* Not the path of the installation for what came with it. */
static const char *source_name(struct vp_ctx *ctx, const char *source) {
    const char *folders[] = {ctx->user_profiles, ctx->profiles};
    static const char *const NAMES[] = {"your profile", "the built-in profile"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (folders[i] && vp_text_starts(source, folders[i]))
            return vp_arena_printf(ctx->arena, "%s %s", NAMES[i], vp_document_stem(ctx, source));
    return source;
}

static void add_facts(struct vp_ctx *ctx, struct vp_buf *out, const struct facts *facts) {
    const struct vp_model *model = facts->model;
    struct vp_arena *arena = out->arena;
    vp_buf_printf(out, "# %s: %" PRIu32 " layers", clean(out, model->name), model->layer_count);
    if (!facts->params.overflow)
        vp_buf_printf(out, ", %s parameters", vp_format_count(arena, facts->params.total));
    if (!facts->params.overflow && facts->params.active != facts->params.total)
        vp_buf_printf(out, " (%s for one token)", vp_format_count(arena, facts->params.active));
    vp_buf_add(out, "\n");
    if (facts->kv_known)
        vp_buf_printf(out, "# KV cache: %s bytes per token in %s, on one device\n",
                      vp_format_count(arena, facts->kv_bytes_per_token),
                      vp_dtype_name(facts->kv_dtype));
    if (facts->kv_known && facts->state_bytes_per_sequence)
        vp_buf_printf(out, "# recurrent states: %s bytes per sequence\n",
                      vp_format_count(arena, facts->state_bytes_per_sequence));
    if (facts->source)
        vp_buf_printf(out, "# described by %s\n", clean(out, source_name(ctx, facts->source)));
    if (model->checkpoint.known || model->gguf)
        vp_buf_printf(
            out,
            "# its %s tensors hold %s; a plan from this file computes the weights from "
            "the description\n",
            vp_format_count(arena, model->gguf ? model->gguf->count : model->checkpoint.tensors),
            vp_format_bytes(arena,
                            model->gguf ? model->gguf->data_bytes : model->checkpoint.total_bytes));
}

/* The newest version that there are rules for, NULL when there is none to suggest. */
static const char *newest_version(const struct vp_ctx *outer, const char *engine) {
    struct vp_ctx ctx = *outer;
    struct vp_engine_profile profile = {.root = NULL};
    const char *version = NULL;
    ctx.diags = VP_NEW(ctx.arena, struct vp_diags);
    ctx.diags->arena = ctx.arena; /* a suggestion is no reason to complain */
    return vp_engine_newest(&ctx, &version, &profile, engine) == VP_OK ? version : NULL;
}

static void add_what_to_fill_in(struct vp_ctx *ctx, struct vp_buf *out, const struct facts *facts) {
    enum { CONTEXT = 32768 };
    uint64_t context = facts->model->max_position;
    const char *version = newest_version(ctx, "vllm");
    if (context == 0 || context > CONTEXT)
        context = CONTEXT;
    vp_buf_add(out, "\n# What it is to run on, and what for: take the \"#\" away and fill in.\n"
                    "# hardware: {gpu: mi300x, count: 1}\n");
    if (version)
        vp_buf_printf(out, "# engine: {name: vllm, version: \"%s\", args: {}}\n",
                      clean(out, version));
    else
        vp_buf_add(out, "# engine: {name: vllm, args: {}}\n");
    vp_buf_printf(out,
                  "# parallel: {tensor: 1, pipeline: 1}\n"
                  "# precision: {weights: checkpoint, kv_cache: auto}\n"
                  "# serve: {context: %" PRIu64 ", concurrency: 16}\n",
                  context);
}

static void render_yaml(struct vp_ctx *ctx, struct vp_buf *out, const struct facts *facts) {
    add_facts(ctx, out, facts);
    vp_buf_add(out, "\nvramplan: 1\nname: ");
    vp_yaml_write_text(out, facts->model->name);
    vp_buf_add(out, "\nmodel:\n");
    vp_yaml_write_map(out, facts->description, 2);
    add_what_to_fill_in(ctx, out, facts);
}

/* ---- JSON ---- */

enum { MAX_JSON_DEPTH = VP_JSON_DEPTH - 8 };

static int depth_of(const struct vp_node *node) {
    int deepest = 0;
    for (uint32_t i = 0; i < node->count; i++) {
        int depth = depth_of(node->items[i]);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + 1;
}

static void json_figure(struct vp_json *json, const char *key, bool known, uint64_t value) {
    vp_json_key(json, key);
    if (known)
        vp_json_u64(json, value);
    else
        vp_json_null(json);
}

static enum vp_status render_json(struct vp_ctx *ctx, struct vp_buf *out,
                                  const struct facts *facts) {
    if (depth_of(facts->description) > MAX_JSON_DEPTH) {
        vp_diag_add(ctx->diags, VP_D_CAP, &facts->description->pos,
                    "the description is nested deeper than %d, the cap of JSON output",
                    (int)MAX_JSON_DEPTH);
        return VP_ERR_INPUT;
    }
    struct vp_json json = vp_json_begin(out);
    vp_json_map(&json);
    vp_json_key_text(&json, "schema", "vramplan.import/1");
    json_figure(&json, "layers", true, facts->model->layer_count);
    json_figure(&json, "params_total", !facts->params.overflow, facts->params.total);
    json_figure(&json, "params_active", !facts->params.overflow, facts->params.active);
    json_figure(&json, "kv_bytes_per_token", facts->kv_known, facts->kv_bytes_per_token);
    json_figure(&json, "state_bytes_per_sequence", facts->kv_known,
                facts->state_bytes_per_sequence);
    if (facts->model->gguf)
        json_figure(&json, "tensor_bytes", true, facts->model->gguf->data_bytes);
    vp_json_key(&json, "scenario");
    vp_json_map(&json);
    vp_json_key_u64(&json, "vramplan", 1);
    vp_json_key_text(&json, "name", facts->model->name);
    vp_json_key(&json, "model");
    vp_json_node(&json, facts->description);
    vp_json_end(&json, '}');
    vp_json_key(&json, "diagnostics");
    vp_report_json_diagnostics(&json, ctx->diags);
    vp_json_end(&json, '}');
    vp_buf_add(out, "\n");
    return VP_OK;
}

static void recipe_json(struct vp_ctx *ctx, struct vp_buf *out, const struct vp_recipe *recipe) {
    struct vp_json json = vp_json_begin(out);
    vp_json_map(&json);
    vp_json_key_text(&json, "schema", "vramplan.import/1");
    vp_json_key_text(&json, "recipe", recipe->kind);
    vp_json_key(&json, "scenario");
    vp_json_map(&json);
    vp_json_key_u64(&json, "vramplan", 1);
    for (uint32_t i = 0; i < recipe->scenario->count; i++) {
        vp_json_key(&json, recipe->scenario->keys[i]);
        vp_json_node(&json, recipe->scenario->items[i]);
    }
    vp_json_end(&json, '}');
    vp_json_key(&json, "ignored");
    vp_json_list(&json);
    for (uint32_t i = 0; i < recipe->ignored_count; i++)
        vp_json_text(&json, recipe->ignored[i]);
    vp_json_end(&json, ']');
    vp_json_key(&json, "diagnostics");
    vp_report_json_diagnostics(&json, ctx->diags);
    vp_json_end(&json, '}');
    vp_buf_add(out, "\n");
}

/* ---- the command ---- */

int vp_cmd_import(struct vp_ctx *ctx, const struct vp_args *args) {
    struct vp_buf out = {.arena = ctx->arena};
    struct facts facts;
    struct vp_recipe recipe;
    enum vp_status status;
    if (vp_recipe_open(ctx, &recipe, &status, args->operands[0])) {
        if (status == VP_OK && args->format == VP_FORMAT_JSON)
            recipe_json(ctx, &out, &recipe);
        else if (status == VP_OK)
            vp_recipe_yaml(&out, &recipe);
        if (status != VP_OK)
            return vp_output_failure(ctx, args, status);
        return (int)vp_exit_of_status(vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT]));
    }
    status = read_facts(ctx, &facts, args->operands[0]);
    if (status == VP_OK && args->format == VP_FORMAT_JSON)
        status = render_json(ctx, &out, &facts);
    else if (status == VP_OK)
        render_yaml(ctx, &out, &facts);
    if (status != VP_OK)
        return vp_output_failure(ctx, args, status);
    return (int)vp_exit_of_status(vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT]));
}
