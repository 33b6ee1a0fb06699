/* device: the GPUs of this system and what a process may take of them; a profile's GPU; an APU's
 * limits as they might be. */
#include <inttypes.h>
#include <string.h>

#include "cli/device_report.h"
#include "cli/output.h"
#include "planner/base/sum.h"
#include "planner/base/units.h"
#include "planner/import/profile.h"

struct work {
    struct vp_ctx *ctx;
    const struct vp_args *args;
    struct vp_device_facts facts;
    struct vp_device_view view;
};

static const char *named_gpu(const struct vp_args *args) {
    const struct vp_setting *gpu = vp_args_setting(args, "hardware.gpu");
    return !gpu || vp_text_eq(gpu->value, "local") ? NULL : gpu->value;
}

/* ---- cards ---- */

static enum vp_status read_profile(struct vp_ctx *ctx, struct vp_device_card *card) {
    struct vp_profile profile = {.root = NULL};
    enum vp_status status = VP_OK;
    if (card->profiles.count)
        status = vp_profile_find(ctx, &profile, &VP_PROFILE_GPU, card->profiles.items[0]->id);
    card->profile = profile.root;
    return status;
}

static enum vp_status here(struct work *w) {
    struct vp_device_facts *facts = &w->facts;
    struct vp_device_card *cards =
        VP_NEW_ARRAY(w->ctx->arena, facts->gpu_count, struct vp_device_card);
    enum vp_status status = VP_OK;

    for (uint32_t i = 0; status == VP_OK && i < facts->gpu_count; i++) {
        cards[i].fact = &facts->gpus[i];
        status = vp_card_profiles(w->ctx, &cards[i].profiles, facts, &facts->gpus[i]);
        if (status == VP_OK)
            status = read_profile(w->ctx, &cards[i]);
        vp_device_budget(w->ctx->arena, &cards[i].budget, facts, &facts->gpus[i],
                         cards[i].profiles.count ? cards[i].profiles.items[0] : NULL);
    }
    w->view.facts = facts;
    w->view.cards = cards;
    w->view.card_count = facts->gpu_count;
    return status;
}

static enum vp_status by_name(struct work *w, const char *name) {
    struct vp_device_card *card = VP_NEW(w->ctx->arena, struct vp_device_card);
    struct vp_gpu *gpu = VP_NEW(w->ctx->arena, struct vp_gpu);
    enum vp_status status = vp_gpu_named(w->ctx, gpu, name);

    if (status != VP_OK)
        return status;
    card->profiles = (struct vp_card_profiles){.items = {gpu}, .count = 1, .exact = true};
    w->view.cards = card;
    w->view.card_count = 1;
    return read_profile(w->ctx, card);
}

static enum vp_status no_gpu(struct work *w) {
    const struct vp_device_facts *f = &w->facts;
    struct vp_buf why = {.arena = w->ctx->arena};

    if (f->hip)
        vp_buf_printf(&why, "; HIP: %s", f->hip);
    if (f->cuda)
        vp_buf_printf(&why, "; CUDA: %s", f->cuda);
    vp_diag_add(w->ctx->diags, VP_D_NO_DEVICE, NULL, "this system shows no AMD or NVIDIA GPU%s%s",
                f->amdgpu_loaded ? ", though the amdgpu driver is loaded" : "", vp_buf_text(&why));
    vp_diag_hint(
        w->ctx->diags,
        "in a container, its devices may be left out (--device /dev/kfd --device /dev/dri, "
        "or --gpus all); --gpu NAME shows one that is not here");
    return VP_ERR_ENV;
}

/* ---- what-ifs ---- */

static bool bad_what_if(struct vp_ctx *ctx, const char *given) {
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL, "--what-if: \"%.60s\" cannot be counted with",
                given);
    vp_diag_hint(ctx->diags, "pages_limit=25165824, gtt=96GiB or gttsize=98304");
    return false;
}

static bool read_what_if(struct vp_ctx *ctx, struct vp_what_if *out, const char *given) {
    const char *value = strchr(given, '=');
    size_t key = value ? (size_t)(value - given) : 0;
    bool pages = key == 11 && strncmp(given, "pages_limit", key) == 0;
    bool size = key == 3 && strncmp(given, "gtt", key) == 0;
    bool mib = key == 7 && strncmp(given, "gttsize", key) == 0;
    uint64_t n;

    if (!(size ? vp_parse_size(&n, value + 1) : (pages || mib) && vp_parse_u64(&n, value + 1)))
        return bad_what_if(ctx, given);
    struct vp_sum bytes = mib ? vp_sum_mul(vp_sum(n), UINT64_C(1) << 20) : vp_sum(n);
    if (pages)
        bytes = vp_sum_mul(vp_sum(n), VP_PAGE_BYTES);
    bytes = vp_sum_round_up(bytes, VP_PAGE_BYTES);
    if (bytes.overflow || bytes.v == 0)
        return bad_what_if(ctx, given);
    *out = (struct vp_what_if){
        .given = given, .bytes = bytes.v, .pages = bytes.v / VP_PAGE_BYTES, .alone = mib};
    out->parameter = mib ? vp_arena_printf(ctx->arena, "amdgpu.gttsize=%" PRIu64, n)
                         : vp_arena_printf(ctx->arena, "ttm.pages_limit=%" PRIu64, out->pages);
    return true;
}

static enum vp_status what_ifs(struct work *w) {
    size_t count;
    const char **given = vp_args_all(w->ctx, w->args, VP_OPTION_WHAT_IF, &count);
    struct vp_what_if *all = VP_NEW_ARRAY(w->ctx->arena, count, struct vp_what_if);
    const struct vp_gpu *gpu = w->view.card_count ? w->view.cards[0].profiles.items[0] : NULL;
    bool good = true;

    for (size_t i = 0; i < count; i++)
        good &= read_what_if(w->ctx, &all[i], given[i]);
    if (good && gpu && !gpu->gtt_ppb) {
        vp_diag_add(w->ctx->diags, VP_D_BAD_OPTION, NULL,
                    "%s has memory of its own, which --what-if does not change", gpu->id);
        good = false;
    }
    w->view.what_ifs = all;
    w->view.what_if_count = (uint32_t)count;
    return good ? VP_OK : VP_ERR_INPUT;
}

/* ---- the command ---- */

static void render(struct work *w, struct vp_buf *out) {
    struct vp_page page = vp_output_page(w->args, out);
    if (w->args->format == VP_FORMAT_JSON)
        vp_device_json(out, &w->view, w->ctx->diags);
    else
        vp_device_text(&page, &w->view, w->args->value[VP_OPTION_VERBOSE]);
}

/* What-ifs are arithmetic: for them alone the system is not asked. */
static enum vp_status collect(struct work *w) {
    const char *name = named_gpu(w->args);
    bool what_if = w->args->value[VP_OPTION_WHAT_IF];
    enum vp_status status = VP_OK;

    if (w->args->format == VP_FORMAT_CSV || w->args->format == VP_FORMAT_MARKDOWN) {
        vp_diag_add(w->ctx->diags, VP_D_BAD_OPTION, NULL, "'device': --format is text or json");
        return VP_ERR_INPUT;
    }
    if (name)
        status = by_name(w, name);
    if (status == VP_OK && what_if)
        status = what_ifs(w);
    if (status != VP_OK || name || what_if)
        return status;
    status = vp_device_facts(w->ctx, &w->facts);
    if (status == VP_OK)
        status = w->facts.gpu_count ? here(w) : no_gpu(w);
    return status;
}

int vp_cmd_device(struct vp_ctx *ctx, const struct vp_args *args) {
    struct work w = {.ctx = ctx, .args = args};
    struct vp_buf out = {.arena = ctx->arena};
    enum vp_status status = collect(&w);

    if (status != VP_OK)
        return vp_output_failure(ctx, args, status);
    render(&w, &out);
    return (int)vp_exit_of_status(vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT]));
}
