#include "cli/device_local.h"

#include <string.h>

#include "cli/device_asked.h"
#include "planner/base/sum.h"
#include "planner/base/units.h"
#include "planner/plan/device_budget.h"

enum { MOST_MORE = 4 };

static void add(struct vp_args *args, const char *path, const char *value) {
    if (value && !vp_args_setting(args, path))
        args->settings[args->setting_count++] = (struct vp_setting){path, value, "--gpu local"};
}

static const char *bytes(struct vp_ctx *ctx, uint64_t n) {
    return n ? vp_format_u64(ctx->arena, n) : NULL;
}

/* Of one device, by all others. */
static uint64_t reserved(const struct vp_fact_gpu *card, const struct vp_device_budget *b) {
    if (vp_text_eq(card->vendor, "nvidia")) /* 0: free is not told */
        return card->runtime_free_bytes ? vp_above(b->total_bytes, card->runtime_free_bytes) : 0;
    if (b->apu && b->pool == VP_POOL_GTT)
        return card->gtt_used_bytes;
    return vp_ceil_div(card->vram_used_bytes, b->devices);
}

static enum vp_status no_profile(struct vp_ctx *ctx, const struct vp_fact_gpu *card,
                                 const struct vp_card_profiles *profiles) {
    struct vp_buf names = {.arena = ctx->arena};
    for (uint32_t i = 0; i < profiles->count; i++)
        vp_buf_printf(&names, "%s%s", i ? ", " : "", profiles->items[i]->id);
    vp_diag_add(ctx->diags, VP_D_CARD_UNSURE, NULL, "--gpu local: %s is %s",
                card->name ? card->name : card->pci,
                profiles->count ? "one of several cards" : "no card that is known");
    if (profiles->count)
        vp_diag_hint(ctx->diags, "name it: --gpu with one of %s", vp_buf_text(&names));
    else
        vp_diag_hint(ctx->diags, "describe it: gpu: {id, vendor, arch, runtime_mib}; what the "
                                 "system says of it: vramplan device");
    return VP_ERR_INPUT;
}

static void use(struct vp_ctx *ctx, struct vp_args *args, const struct vp_device_facts *facts,
                const struct vp_gpu *gpu) {
    const struct vp_fact_gpu *card = &facts->gpus[0];
    struct vp_device_budget b;
    struct vp_setting *more =
        VP_NEW_ARRAY(ctx->arena, args->setting_count + MOST_MORE, struct vp_setting);

    vp_device_budget(ctx->arena, &b, facts, card, gpu);
    memcpy(more, args->settings, args->setting_count * sizeof *more);
    args->settings = more;
    more[vp_args_setting(args, "hardware.gpu") - more].value = gpu->id;
    if (b.devices > 1)
        add(args, "hardware.partition", card->partition);
    if (!vp_args_setting(args, "hardware.gtt") && !vp_args_setting(args, "hardware.carve_out"))
        add(args, "hardware.memory", bytes(ctx, b.total_bytes));
    add(args, "hardware.reserved", bytes(ctx, reserved(card, &b)));
    add(args, "hardware.host_memory", bytes(ctx, facts->host_total_bytes));
}

enum vp_status vp_device_local(struct vp_ctx *ctx, struct vp_args *args) {
    const struct vp_setting *set = vp_args_setting(args, "hardware.gpu");
    struct vp_device_facts facts;
    struct vp_card_profiles profiles;

    if (!set || !vp_text_eq(set->value, "local"))
        return VP_OK;
    enum vp_status status = vp_device_facts(ctx, &facts);
    if (status == VP_OK && !facts.gpu_count) {
        vp_diag_add(ctx->diags, VP_D_NO_DEVICE, NULL, "--gpu local: this system shows no GPU");
        vp_diag_hint(ctx->diags, "why: vramplan device; --gpu NAME plans for one that is not here");
        status = VP_ERR_ENV;
    }
    if (status == VP_OK)
        status = vp_card_profiles(ctx, &profiles, &facts, &facts.gpus[0]);
    if (status != VP_OK)
        return status;
    if (profiles.count != 1)
        return no_profile(ctx, &facts.gpus[0], &profiles);
    use(ctx, args, &facts, profiles.items[0]);
    return VP_OK;
}
