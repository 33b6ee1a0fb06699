#include "api/variants.h"

#include "planner/base/memo.h"

struct vp_variants {
    const char *name; /* of the input, for messages */
    struct vp_found input;
    const struct vp_setting *settings;
    size_t setting_count;
    const struct vp_scenario *base;
    struct vp_memo *memo;
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

void vp_variants_close(struct vp_variants *variants) {
    if (!variants)
        return;
    vp_memo_free(variants->memo);
    variants->memo = NULL;
}

enum vp_status vp_variants_make(const struct vp_variants *variants, struct vp_ctx *scratch,
                                const struct vp_scenario **out, const struct vp_setting *changes,
                                size_t change_count) {
    size_t count = variants->setting_count + change_count;
    struct vp_setting *all = VP_NEW_ARRAY(scratch->arena, count + 1, struct vp_setting);
    struct vp_scenarios scenarios = {0};
    struct vp_ctx ctx = *scratch;

    ctx.memo = variants->memo;
    for (size_t i = 0; i < variants->setting_count; i++)
        all[i] = variants->settings[i];
    for (size_t i = 0; i < change_count; i++)
        all[variants->setting_count + i] = changes[i];
    enum vp_status status = vp_input_finish(&ctx, &scenarios, &variants->input, all, count);
    if (status == VP_OK)
        *out = scenarios.items[0];
    return status;
}

const struct vp_scenario *vp_variants_base(const struct vp_variants *variants) {
    return variants->base;
}
