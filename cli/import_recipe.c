#include "cli/import_recipe.h"

#include "api/yaml_writer.h"
#include "planner/base/text.h"
#include "planner/import/document.h"
#include "reports/layout.h"

/* Recipes are small; what is larger is a model. */
enum { MAX_RECIPE_BYTES = 1 << 20 };

bool vp_recipe_open(struct vp_ctx *ctx, struct vp_recipe *out, enum vp_status *status,
                    const char *input) {
    uint64_t size;
    struct vp_bytes text;
    struct vp_node *document;
    struct vp_ctx quiet = *ctx; /* what is no recipe is somebody else's to complain about */
    quiet.diags = VP_NEW(ctx->arena, struct vp_diags);
    quiet.diags->arena = ctx->arena;
    *out = (struct vp_recipe){.kind = "what an engine is started with"};
    if (vp_input_in_words(ctx, &out->scenario, status, input))
        return true;
    if (vp_io_kind(&quiet, input) != VP_FILE_REGULAR ||
        vp_io_read_head(&quiet, &text, &size, input, MAX_RECIPE_BYTES) != VP_OK ||
        size > MAX_RECIPE_BYTES)
        return false;
    if (vp_document_parse(&quiet, &document, text, input) == VP_OK &&
        vp_recipe_is_document(document)) {
        *status = vp_recipe_from_document(ctx, out, document);
        return true;
    }
    if (!vp_recipe_is_script(&text))
        return false;
    *status = vp_recipe_from_script(ctx, out, &text, input);
    return true;
}

static bool says(const struct vp_recipe *recipe, const char *section, const char *key) {
    return vp_node_get(vp_node_get(recipe->scenario, section), key) != NULL;
}

static bool trains(const struct vp_recipe *recipe) {
    static const enum vp_engine_kind SERVERS[] = {VP_ENGINE_VLLM, VP_ENGINE_SGLANG,
                                                  VP_ENGINE_LLAMA_CPP, VP_ENGINE_OLLAMA};
    const char *name = vp_node_text(vp_node_get(vp_node_get(recipe->scenario, "engine"), "name"));
    for (size_t i = 0; i < sizeof SERVERS / sizeof *SERVERS; i++)
        if (vp_text_eq(name, vp_engine_name(SERVERS[i])))
            return false;
    return true;
}

/* What a plan needs and the recipe does not say. */
static void add_missing(struct vp_buf *out, const struct vp_recipe *recipe) {
    vp_buf_add(out, "\n# What is still to be said: take the \"#\" away and fill in.\n");
    if (!vp_node_get(recipe->scenario, "model"))
        vp_buf_add(out, "# model: NAME            (`vramplan list models`, or a config.json)\n");
    if (!says(recipe, "hardware", "gpu"))
        vp_buf_add(out, "# hardware: {gpu: mi300x}\n");
    if (!trains(recipe)) {
        vp_buf_add(out, "# serve: {context: 8192, concurrency: 16}\n");
        return;
    }
    if (!says(recipe, "train", "micro_batch"))
        vp_buf_add(out, "# train: {micro_batch: 1}\n");
    if (!says(recipe, "train", "sequence_length"))
        vp_buf_add(out, "# train: {sequence_length: 4096}\n");
}

void vp_recipe_yaml(struct vp_buf *out, const struct vp_recipe *recipe) {
    vp_buf_printf(out, "# from: %s\n", recipe->kind);
    for (uint32_t i = 0; i < recipe->ignored_count; i++)
        vp_buf_printf(out, "# not understood, left out: %s\n",
                      vp_text_clean(out->arena, recipe->ignored[i], true));
    vp_buf_add(out, "\nvramplan: 1\n");
    vp_yaml_write_map(out, recipe->scenario, 0);
    add_missing(out, recipe);
}
