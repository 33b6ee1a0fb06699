#include "planner/plan/device_budget.h"

#include <inttypes.h>

#include "planner/base/text.h"

uint64_t vp_page_table_bytes(uint64_t total_bytes) {
    enum { SHIFT = 14, LEAST_MIB = 8 };
    return vp_max(total_bytes >> SHIFT, (uint64_t)LEAST_MIB << 20);
}

static uint64_t whole_steps(uint64_t bytes) { return bytes - bytes % VP_VRAM_STEP_BYTES; }

/* The runtime's own word first. The compute driver's topology and SMI may show the whole card for
 * each partition, so that a share of the card is taken where it is less. */
static void take_total(struct vp_arena *arena, struct vp_device_budget *out,
                       const struct vp_fact_gpu *card) {
    uint64_t share = card->vram_total_bytes / out->devices;

    out->total_bytes = share;
    out->total_by = out->devices > 1
                        ? vp_arena_printf(arena, "sysfs, divided by %" PRIu64, out->devices)
                        : "sysfs";
    if (card->runtime_bytes) {
        out->total_bytes = card->runtime_bytes;
        out->total_by = vp_text_eq(card->vendor, "nvidia") ? "CUDA" : "HIP";
    } else if (card->node_bytes && (!share || card->node_bytes < share)) {
        out->total_bytes = card->node_bytes;
        out->total_by = "the compute driver's topology";
    }
}

static struct vp_amount usable_card(const struct vp_device_budget *b,
                                    const struct vp_fact_gpu *card) {
    uint64_t used = card->vram_used_bytes;
    if (!used && card->runtime_free_bytes)
        used = vp_above(b->total_bytes, card->runtime_free_bytes);
    uint64_t share = vp_ceil_div(used, b->devices);
    uint64_t most = vp_above(b->total_bytes, b->tables_bytes);

    return (struct vp_amount){whole_steps(vp_above(most, used)), whole_steps(vp_above(most, share)),
                              whole_steps(b->devices > 1 ? most : vp_above(most, used))};
}

/* NVIDIA's driver counts its own as used. */
static void budget_nvidia(struct vp_device_budget *out, const struct vp_fact_gpu *card) {
    out->usable = vp_exactly(whole_steps(vp_min(card->runtime_free_bytes, out->total_bytes)));
}

/* What the host has for each of the APUs that it consists of. */
static uint64_t host_share(const struct vp_device_facts *facts, const struct vp_fact_gpu *card) {
    uint64_t alike = 0;
    for (uint32_t i = 0; i < facts->gpu_count; i++)
        alike += vp_text_eq(facts->gpus[i].arch, card->arch);
    return facts->host_total_bytes / vp_max(alike, 1);
}

static void budget_apu(struct vp_device_budget *out, const struct vp_device_facts *facts,
                       const struct vp_fact_gpu *card) {
    uint64_t pool = card->gtt_total_bytes, share = host_share(facts, card), left;

    out->limit_bytes = facts->ttm_pages_limit <= UINT64_MAX / VP_PAGE_BYTES
                           ? facts->ttm_pages_limit * VP_PAGE_BYTES
                           : 0;
    if (out->limit_bytes)
        pool = pool ? vp_min(pool, out->limit_bytes) : out->limit_bytes;
    if (facts->gpu_count > 1 && share)
        pool = vp_min(pool, share); /* the limits are the system's, for all of them */
    out->pool = pool >= card->vram_total_bytes ? VP_POOL_GTT : VP_POOL_VRAM;
    if (out->pool == VP_POOL_VRAM) {
        if (!card->runtime_bytes)
            out->total_bytes = card->vram_total_bytes;
        out->usable = vp_exactly(whole_steps(vp_above(out->total_bytes, card->vram_used_bytes)));
        return;
    }
    if (!card->runtime_bytes) {
        out->total_bytes = pool / out->devices;
        out->total_by = out->limit_bytes == pool                ? "ttm.pages_limit"
                        : facts->gpu_count > 1 && pool == share ? "its share of the host"
                                                                : "the size of GTT";
    }
    left = vp_above(out->total_bytes, card->gtt_used_bytes);
    out->usable = vp_exactly(whole_steps(left));
    if (facts->host_available_bytes && facts->host_available_bytes < left)
        out->usable.low = out->usable.likely = whole_steps(facts->host_available_bytes);
}

void vp_device_budget(struct vp_arena *arena, struct vp_device_budget *out,
                      const struct vp_device_facts *facts, const struct vp_fact_gpu *card,
                      const struct vp_gpu *gpu) {
    *out = (struct vp_device_budget){.devices = vp_max(card->devices, 1),
                                     .apu = gpu && gpu->gtt_ppb > 0};
    take_total(arena, out, card);
    if (out->apu)
        budget_apu(out, facts, card);
    else if (vp_text_eq(card->vendor, "nvidia"))
        budget_nvidia(out, card);
    else {
        out->tables_bytes = vp_page_table_bytes(out->total_bytes);
        out->usable = usable_card(out, card);
    }
    out->known = out->total_bytes > 0;
}
