#include "api/variants.h"

struct vp_variants {
    const char *input;
    const struct vp_setting *settings;
    size_t setting_count;
    const struct vp_scenario *base;
};

enum vp_status vp_variants_open(struct vp_ctx *ctx, struct vp_variants **out, const char *input,
                                const struct vp_setting *settings, size_t setting_count) {
    struct vp_variants *variants = VP_NEW(ctx->arena, struct vp_variants);

    variants->input = input;
    variants->settings = settings;
    variants->setting_count = setting_count;
    *out = variants;
    return vp_variants_make(variants, ctx, &variants->base, NULL, 0);
}

enum vp_status vp_variants_make(const struct vp_variants *variants, struct vp_ctx *scratch,
                                const struct vp_scenario **out, const struct vp_setting *changes,
                                size_t change_count) {
    size_t count = variants->setting_count + change_count;
    struct vp_setting *all = VP_NEW_ARRAY(scratch->arena, count + 1, struct vp_setting);
    struct vp_scenarios scenarios = {0};

    for (size_t i = 0; i < variants->setting_count; i++)
        all[i] = variants->settings[i];
    for (size_t i = 0; i < change_count; i++)
        all[variants->setting_count + i] = changes[i];
    enum vp_status status = vp_input_read(scratch, &scenarios, variants->input, all, count);
    if (status != VP_OK)
        return status;
    if (scenarios.count != 1) {
        vp_diag_add(scratch->diags, VP_D_BAD_OPTION, NULL, "one scenario is wanted, '%s' has %zu",
                    variants->input, scenarios.count);
        vp_diag_hint(scratch->diags, "FILE#NAME chooses one");
        return VP_ERR_INPUT;
    }
    *out = scenarios.items[0];
    return VP_OK;
}

const struct vp_scenario *vp_variants_base(const struct vp_variants *variants) {
    return variants->base;
}
