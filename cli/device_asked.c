#include "cli/device_asked.h"

#include "cli/probe_run.h"
#include "planner/base/sum.h"
#include "planner/base/units.h"
#include "planner/doc/json.h"
#include "planner/import/profile.h"

/* ---- reading ---- */

static uint64_t number(const struct vp_node *map, const char *key) {
    uint64_t value = 0;
    return vp_node_u64(&value, vp_node_get(map, key)) ? value : 0;
}

static const char *text(const struct vp_node *map, const char *key) {
    return vp_node_text(vp_node_get(map, key));
}

static void read_holders(struct vp_ctx *ctx, struct vp_fact_gpu *out, const struct vp_node *list) {
    if (!list || list->kind != VP_NODE_LIST)
        return;
    out->holders = VP_NEW_ARRAY(ctx->arena, list->count, struct vp_fact_holder);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct vp_node *map = list->items[i];
        struct vp_fact_holder *holder = &out->holders[out->holder_count++];
#define HOLDER_NUMBER(member) holder->member = number(map, #member);
#define HOLDER_TEXT(member) holder->member = text(map, #member);
#include "planner/model/device_facts.def"
    }
}

static void read_gpu(struct vp_ctx *ctx, struct vp_fact_gpu *out, const struct vp_node *map) {
#define GPU_NUMBER(member) out->member = number(map, #member);
#define GPU_TEXT(member) out->member = text(map, #member);
#include "planner/model/device_facts.def"
    read_holders(ctx, out, vp_node_get(map, "holders"));
}

static enum vp_status read_facts(struct vp_ctx *ctx, struct vp_device_facts *out,
                                 struct vp_bytes bytes) {
    struct vp_node *map = NULL;
    enum vp_status status = vp_json_read(ctx, &map, bytes, "vramplan-probe --facts");
    const struct vp_node *gpus = vp_node_get(map, "gpus");

    if (status == VP_OK && (!vp_text_eq(text(map, "schema"), "vramplan.facts/1") || !gpus ||
                            gpus->kind != VP_NODE_LIST)) {
        vp_diag_add(ctx->diags, VP_D_PROBE_FAILED, NULL,
                    "vramplan-probe does not print the facts of this version");
        vp_diag_hint(ctx->diags, "it is another version's: $VRAMPLAN_PROBE may name the right one");
    }
    if (ctx->diags->errors > 0 || status != VP_OK)
        return VP_ERR_ENV;
#define NUMBER(member) out->member = number(map, #member);
#define TEXT(member) out->member = text(map, #member);
#include "planner/model/device_facts.def"
    out->gpus = VP_NEW_ARRAY(ctx->arena, gpus->count, struct vp_fact_gpu);
    for (uint32_t i = 0; i < gpus->count; i++)
        read_gpu(ctx, &out->gpus[out->gpu_count++], gpus->items[i]);
    return VP_OK;
}

enum vp_status vp_device_facts(struct vp_ctx *ctx, struct vp_device_facts *out) {
    struct vp_probe_order order = {.facts = true};
    struct vp_probe_outcome outcome;
    enum vp_status status = vp_probe_run(ctx, &outcome, &order);

    *out = (struct vp_device_facts){.gpu_count = 0};
    if (status != VP_OK)
        return VP_ERR_ENV;
    return read_facts(ctx, out, (struct vp_bytes){vp_buf_text(&outcome.list), outcome.list.size});
}

/* ---- which profile ---- */

static uint64_t profile_mib(const struct vp_gpu *gpu) {
    return gpu->driver_mib ? gpu->driver_mib : gpu->runtime_mib;
}

/* A total as told and one of a profile: within 3 %, for what drivers of other versions hide. */
static bool near_total(uint64_t bytes, const struct vp_gpu *gpu) {
    uint64_t mib = bytes >> 20, want = profile_mib(gpu), most = vp_max(mib, want);
    return !want || !mib || (most - vp_min(mib, want)) * 100 <= most * 3;
}

/* What the host has besides the carve-out; firmware takes some hundred MiB more of the modules. */
static bool near_host(const struct vp_device_facts *facts, const struct vp_fact_gpu *card,
                      const struct vp_gpu *gpu) {
    uint32_t alike = 0; /* APUs that the host consists of */
    for (uint32_t i = 0; i < facts->gpu_count; i++)
        alike += vp_text_eq(facts->gpus[i].arch, card->arch);
    double gib =
        (double)((facts->host_total_bytes / vp_max(alike, 1) + card->vram_total_bytes) >> 20) /
        1024;
    return !facts->host_total_bytes || !(gpu->memory_gb > 0) ||
           (gib < gpu->memory_gb * 1.01 && gib > gpu->memory_gb * 0.9);
}

static bool may_be(const struct vp_gpu *gpu, const struct vp_device_facts *facts,
                   const struct vp_fact_gpu *card) {
    /* of the card; CUDA's total is less than the driver's, but the only one */
    uint64_t total = card->vram_total_bytes ? card->vram_total_bytes : card->runtime_bytes;

    if (!vp_text_eq(gpu->vendor, card->vendor) || !card->arch ||
        !vp_text_eq(gpu->arch, card->arch) || gpu->runtime_device)
        return false;
    if (card->compute_units && gpu->compute_units && card->compute_units != gpu->compute_units)
        return false;
    if (gpu->gtt_ppb)
        return near_host(facts, card, gpu);
    return near_total(total, gpu);
}

static void add(struct vp_card_profiles *out, const struct vp_gpu *gpu) {
    if (out->count < sizeof out->items / sizeof *out->items)
        out->items[out->count++] = gpu;
}

static const struct vp_gpu *of_id(const struct vp_gpus *all, const char *id) {
    for (size_t i = 0; i < all->count; i++)
        if (vp_text_eq(all->items[i].id, id))
            return &all->items[i];
    return NULL;
}

enum vp_status vp_card_profiles(struct vp_ctx *ctx, struct vp_card_profiles *out,
                                const struct vp_device_facts *facts,
                                const struct vp_fact_gpu *card) {
    struct vp_gpus all;
    struct vp_profile named = {.root = NULL};
    enum vp_status status = vp_gpu_list(ctx, &all);

    *out = (struct vp_card_profiles){.count = 0};
    if (status == VP_OK && card->name)
        status = vp_profile_find(ctx, &named, &VP_PROFILE_GPU, card->name);
    if (status != VP_OK)
        return status;
    const struct vp_gpu *gpu = named.root ? of_id(&all, named.id) : NULL;
    if (gpu && gpu->runtime_device) /* a package: one half of it is what was listed */
        gpu = of_id(&all, gpu->runtime_device);
    /* a name is shared by cards of several sizes; where the name is all there is, it has to do */
    if (gpu && (!card->arch || may_be(gpu, facts, card))) {
        add(out, gpu);
        out->exact = true;
        return VP_OK;
    }
    for (size_t i = 0; i < all.count; i++)
        if (may_be(&all.items[i], facts, card))
            add(out, &all.items[i]);
    return VP_OK;
}
