#include "api/variants.h"

#include "planner/base/memo.h"
#include "planner/import/document.h"
#include "planner/import/scenario_reader.h"
#include "planner/import/settings.h"

struct vp_variants {
    const char *name; /* of the input, for messages */
    struct vp_found input;
    const struct vp_setting *settings;
    size_t setting_count;
    const struct vp_scenario *base;
    struct vp_memo *memo;
    bool borrowed; /* the memo is another handle's */
};

static enum vp_status refuse_several(struct vp_ctx *ctx, const struct vp_variants *variants) {
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "one scenario is wanted, '%s' has %zu",
                variants->name, variants->input.count);
    vp_diag_hint(ctx->diags, "FILE#NAME chooses one");
    return VP_ERR_INPUT;
}

enum vp_status vp_variants_open(struct vp_ctx *ctx, struct vp_variants **out, const char *input,
                                const struct vp_setting *settings, size_t setting_count) {
    struct vp_variants *variants = VP_NEW(ctx->arena, struct vp_variants);

    *variants =
        (struct vp_variants){.name = input, .settings = settings, .setting_count = setting_count};
    *out = variants;
    variants->memo = vp_memo_new();
    enum vp_status status = vp_input_find(ctx, &variants->input, input);
    if (status == VP_OK && variants->input.count != 1)
        status = refuse_several(ctx, variants);
    else
        status = vp_variants_make(variants, ctx, &variants->base, NULL, 0);
    return status;
}

enum vp_status vp_variants_over(struct vp_ctx *ctx, struct vp_variants **out,
                                const struct vp_variants *variants,
                                const struct vp_setting *settings, size_t setting_count) {
    struct vp_variants *over = VP_NEW(ctx->arena, struct vp_variants);

    *over = *variants;
    over->settings = settings;
    over->setting_count = setting_count;
    over->base = NULL;
    over->borrowed = true;
    *out = over;
    return vp_variants_make(over, ctx, &over->base, NULL, 0);
}

bool vp_variants_readable(const struct vp_variants *variants) {
    return variants->input.status == VP_OK && variants->input.count == 1;
}

void vp_variants_close(struct vp_variants *variants) {
    if (!variants || variants->borrowed)
        return;
    vp_memo_free(variants->memo);
    variants->memo = NULL;
}

/* The changes after the settings of all variants, so that they win. */
static struct vp_setting *join(const struct vp_variants *variants, struct vp_arena *arena,
                               const struct vp_setting *changes, size_t change_count) {
    size_t before = variants->setting_count;
    struct vp_setting *all = VP_NEW_ARRAY(arena, before + change_count + 1, struct vp_setting);
    for (size_t i = 0; i < before; i++)
        all[i] = variants->settings[i];
    for (size_t i = 0; i < change_count; i++)
        all[before + i] = changes[i];
    return all;
}

enum vp_status vp_variants_make(const struct vp_variants *variants, struct vp_ctx *scratch,
                                const struct vp_scenario **out, const struct vp_setting *changes,
                                size_t change_count) {
    struct vp_setting *all = join(variants, scratch->arena, changes, change_count);
    struct vp_scenarios scenarios = {0};
    struct vp_ctx ctx = *scratch;
    ctx.memo = variants->memo;
    enum vp_status status = vp_input_finish(&ctx, &scenarios, &variants->input, all,
                                            variants->setting_count + change_count);
    if (status == VP_OK)
        *out = scenarios.items[0];
    return status;
}

enum vp_status vp_variants_check(const struct vp_variants *variants, struct vp_ctx *scratch,
                                 const struct vp_setting *changes, size_t change_count) {
    struct vp_scenario *scenario = VP_NEW(scratch->arena, struct vp_scenario);
    struct vp_ctx ctx = *scratch;
    ctx.memo = variants->memo;
    return vp_scenario_read(&ctx, scenario, variants->input.items[0].root, variants->input.base,
                            join(variants, scratch->arena, changes, change_count),
                            variants->setting_count + change_count);
}

const char *vp_variants_text(const struct vp_variants *variants, struct vp_ctx *scratch) {
    return vp_document_show(scratch, variants->input.items[0].root);
}

enum vp_status vp_variants_said(const struct vp_variants *variants, struct vp_ctx *scratch,
                                struct vp_node **out, const struct vp_setting *changes,
                                size_t change_count) {
    const struct vp_node *root = variants->input.items[0].root;
    struct vp_node *flags;
    enum vp_status status =
        vp_settings_tree(scratch, &flags, join(variants, scratch->arena, changes, change_count),
                         variants->setting_count + change_count);
    if (status != VP_OK)
        return status;
    struct vp_node *model =
        vp_settings_model(scratch, vp_node_get(root, "model"), vp_node_get(flags, "model"));
    *out = vp_node_merge(scratch, root, flags);
    if (model)
        vp_node_set(scratch, *out, "model", model->pos, model);
    return VP_OK;
}

const struct vp_scenario *vp_variants_base(const struct vp_variants *variants) {
    return variants->base;
}

const char *vp_variants_folder(const struct vp_variants *variants) { return variants->input.base; }
