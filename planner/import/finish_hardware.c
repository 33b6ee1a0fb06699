#include "planner/import/finish_parts.h"

#include <inttypes.h>

#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/doc/node.h"
#include "planner/import/gpu_profile.h"

static const uint64_t MIB = UINT64_C(1) << 20;

static enum vp_status read_named(struct vp_ctx *ctx, struct vp_gpu *out, const char *name,
                                 struct vp_pos pos) {
    return vp_gpu_read(ctx, out, vp_node_scalar(ctx, VP_NODE_TEXT, name, pos));
}

static enum vp_status no_gpu(struct vp_ctx *ctx, const struct vp_scenario *s, enum vp_field field) {
    bool none = field == VP_F_COUNT;
    vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, &s->source[field].pos,
                none ? "hardware.count is 0: hardware.gpu and at least one device are needed"
                     : "hardware.gpu is missing");
    if (none)
        vp_diag_hint(ctx->diags, "planning for the processor alone is not modelled for %s",
                     s->engine.name);
    else
        vp_diag_hint(ctx->diags, "--gpu NAME, or hardware: {gpu: mi300x}; `vramplan list gpus` "
                                 "shows the names");
    return VP_ERR_INPUT;
}

/* The user's name -> the device that the runtime lists. */
static enum vp_status resolve_gpu(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_hardware *hw = &s->hardware;
    const struct vp_pos *pos = &s->source[VP_F_GPU].pos;
    if (vp_scenario_is_given(s, VP_F_COUNT) && hw->count == 0)
        return no_gpu(ctx, s, VP_F_COUNT);
    if (!vp_scenario_is_given(s, VP_F_GPU))
        return no_gpu(ctx, s, VP_F_GPU);
    if (!hw->gpu.id) {
        enum vp_status status = read_named(ctx, &hw->gpu, hw->gpu_name, *pos);
        if (status != VP_OK)
            return status;
    }
    if (!hw->gpu.runtime_device)
        return VP_OK;
    const char *device = hw->gpu.runtime_device, *package = hw->gpu.id;
    enum vp_status status = read_named(ctx, &hw->gpu, device, *pos);
    if (status != VP_OK)
        return status;
    hw->package = package;
    vp_diag_add(ctx->diags, VP_D_PACKAGE_AS_DEVICE, pos,
                "%s is a package that the runtime lists as two devices: planned for one of them, "
                "%s, and hardware.count counts these",
                package, hw->gpu.id);
    vp_diag_hint(ctx->diags, "write gpu: %s to say so; one has %s GiB, a package twice that",
                 hw->gpu.id, vp_format_gib(ctx->arena, hw->gpu.driver_mib * MIB, 2));
    return VP_OK;
}

/* On NVIDIA under Linux the runtime's total is below the driver's (profiles/gpus/README.md). */
static struct vp_amount below_driver(uint64_t driver_mib) {
    static const struct {
        uint64_t up_to_mib, least, most;
    } CLASSES[] = {{36 * 1024, 250, 490}, {88 * 1024, 480, 770}, {UINT64_MAX, 590, 930}};
    size_t i = 0;
    while (driver_mib > CLASSES[i].up_to_mib)
        i++;
    uint64_t least = vp_min(CLASSES[i].least, driver_mib - 1);
    uint64_t most = vp_min(CLASSES[i].most, driver_mib - 1);
    return (struct vp_amount){(driver_mib - most) * MIB, (driver_mib - (least + most) / 2) * MIB,
                              (driver_mib - least) * MIB};
}

static void assume_driver_total(struct vp_ctx *ctx, struct vp_scenario *s) {
    const struct vp_gpu *gpu = &s->hardware.gpu;
    bool nvidia = vp_text_eq(gpu->vendor, "nvidia");
    s->hardware.memory = nvidia ? below_driver(gpu->driver_mib) : vp_exactly(gpu->driver_mib * MIB);
    vp_diag_add(ctx->diags, VP_D_MEMORY_ASSUMED, &s->source[VP_F_GPU].pos,
                nvidia ? "no log shows the total that CUDA reports for %s: taken as the driver's "
                         "%" PRIu64 " MiB less what it is lower on such cards"
                       : "no log shows the total that HIP reports for %s: taken as the driver's "
                         "%" PRIu64 " MiB",
                gpu->id, gpu->driver_mib);
    vp_diag_hint(ctx->diags, "hardware.memory says it exactly");
}

static enum vp_status no_total(struct vp_ctx *ctx, const struct vp_scenario *s) {
    bool apu = s->hardware.gpu.gtt_ppb > 0;
    vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, &s->source[VP_F_GPU].pos,
                "hardware.memory is missing: the profile of %s names no total", s->hardware.gpu.id);
    if (apu)
        vp_diag_hint(ctx->diags,
                     "an APU's total is a setting: hardware.gtt (ttm.pages_limit x 4096 bytes; "
                     "amdgpu.gttsize on older kernels) and hardware.carve_out (firmware), or "
                     "hardware.memory as HIP reports it; with hardware.host_memory the kernel's "
                     "default is taken. Windows, WSL and Vulkan have limits of their own");
    else
        vp_diag_hint(ctx->diags, "hardware.memory: the total that torch or hipMemGetInfo reports");
    return VP_ERR_INPUT;
}

/* HIP's total on an APU is one of two pools, never their sum: what the driver may map (GTT) where
 * that is the larger one, else what the firmware sets aside (profiles/gpus, strix-halo-note). */
static bool take_pools(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_hardware *hw = &s->hardware;
    bool given = vp_scenario_is_given(s, VP_F_CARVE_OUT) || vp_scenario_is_given(s, VP_F_GTT);
    if (hw->gpu.gtt_ppb == 0 || !given || vp_max(hw->carve_out_bytes, hw->gtt_bytes) == 0)
        return false;
    hw->memory_bytes = vp_max(hw->carve_out_bytes, hw->gtt_bytes);
    hw->memory = vp_exactly(hw->memory_bytes);
    vp_finish_note(s, VP_F_MEMORY, VP_ORIGIN_DERIVED,
                   "the larger of carve_out and gtt, as HIP uses it; Vulkan uses both");
    if (hw->gtt_bytes >= hw->carve_out_bytes)
        return true;
    vp_diag_add(ctx->diags, VP_D_APU_POOL, &s->source[VP_F_CARVE_OUT].pos,
                "hardware.carve_out is the larger pool: some ROCm versions allocate from the GTT "
                "of %s GiB all the same",
                vp_format_gib(ctx->arena, hw->gtt_bytes, 2));
    vp_diag_hint(ctx->diags,
                 "a small carve-out and ttm.pages_limit=%" PRIu64
                 " give %s GiB, which all of them use",
                 hw->carve_out_bytes / 4096, vp_format_gib(ctx->arena, hw->carve_out_bytes, 2));
    return true;
}

/* Without settings: the kernel maps a share of the host's memory, of which the firmware may have
 * taken a part before. */
static bool take_default_pool(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_hardware *hw = &s->hardware;
    enum { BILLION = 1000000000 };
    uint64_t all = hw->host_memory_bytes;
    if (hw->gpu.gtt_ppb == 0 || all == 0)
        return false;
    uint64_t most = vp_mul_div(all, hw->gpu.gtt_ppb, BILLION);
    hw->memory = (struct vp_amount){most - most / 8, most - most / 32, most};
    hw->memory_bytes = hw->memory.likely;
    vp_finish_note(s, VP_F_MEMORY, VP_ORIGIN_DERIVED,
                   "the kernel's default limit of GTT for this host memory");
    vp_diag_add(ctx->diags, VP_D_APU_POOL, &s->source[VP_F_GPU].pos,
                "neither hardware.memory nor hardware.gtt says what %s may map: the kernel's "
                "default, %s GiB of %s, is taken",
                hw->gpu.id, vp_format_gib(ctx->arena, hw->memory_bytes, 2),
                vp_format_gib(ctx->arena, all, 2));
    vp_diag_hint(ctx->diags,
                 "ttm.pages_limit=N (pages of 4096 bytes) raises it; 25165824 is 96 GiB");
    return true;
}

static enum vp_status given_memory(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_hardware *hw = &s->hardware;
    hw->memory = vp_exactly(hw->memory_bytes);
    if (hw->memory_bytes >= 16 * MIB)
        return VP_OK;
    vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &s->source[VP_F_MEMORY].pos,
                "hardware.memory of %" PRIu64 " bytes is less than any device has",
                hw->memory_bytes);
    vp_diag_hint(ctx->diags, "a number without a unit counts bytes: write 80 GiB");
    return VP_ERR_INPUT;
}

static enum vp_status resolve_memory(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_hardware *hw = &s->hardware;
    const struct vp_gpu *gpu = &hw->gpu;
    if (vp_scenario_is_given(s, VP_F_MEMORY))
        return given_memory(ctx, s);
    if (take_pools(ctx, s))
        return VP_OK;
    if (!gpu->runtime_mib && take_default_pool(ctx, s))
        return VP_OK;
    if (gpu->runtime_mib)
        hw->memory = (struct vp_amount){gpu->runtime_mib_low * MIB, gpu->runtime_mib * MIB,
                                        gpu->runtime_mib_high * MIB};
    else if (gpu->driver_mib)
        assume_driver_total(ctx, s);
    else
        return no_total(ctx, s);
    hw->memory_bytes = hw->memory.likely;
    vp_finish_note(s, VP_F_MEMORY, VP_ORIGIN_PROFILE,
                   vp_arena_printf(ctx->arena, "%s for %s",
                                   gpu->runtime_mib ? "the total that the runtime reports"
                                                    : "the total that the driver shows",
                                   gpu->id));
    return VP_OK;
}

/* count: 0, for engines that run on the processor alone. */
static enum vp_status take_processor(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_hardware *hw = &s->hardware;
    if (hw->host_memory_bytes == 0) {
        vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, &s->source[VP_F_COUNT].pos,
                    "hardware.host_memory is missing: without a GPU it is what has to hold "
                    "everything");
        vp_diag_hint(ctx->diags, "hardware: {count: 0, host_memory: 64 GiB}");
        return VP_ERR_INPUT;
    }
    hw->gpu = (struct vp_gpu){.id = "processor", .name = "processor", .vendor = "", .arch = ""};
    hw->gpu_name = hw->gpu.id;
    hw->memory_bytes = hw->host_memory_bytes;
    hw->memory = vp_exactly(hw->memory_bytes);
    hw->reserved_bytes = 0;
    return VP_OK;
}

/* Each group as if it stood alone. */
static enum vp_status resolve_groups(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_hardware *hw = &s->hardware;
    for (uint32_t i = 0; i < hw->group_count; i++) {
        struct vp_device_group *group = &hw->groups[i];
        struct vp_scenario one = *s;
        one.hardware.group_count = 0;
        one.hardware.gpu = group->gpu;
        one.hardware.count = group->count;
        one.hardware.reserved_bytes = group->reserved_bytes;
        one.source[VP_F_GPU].pos = one.source[VP_F_MEMORY].pos = group->pos;
        if (group->memory_bytes > 0) {
            one.hardware.memory_bytes = group->memory_bytes;
            one.source[VP_F_MEMORY].origin = VP_ORIGIN_FILE;
        }
        enum vp_status status = vp_finish_hardware(ctx, &one);
        if (status != VP_OK)
            return status;
        group->gpu = one.hardware.gpu;
        group->memory_bytes = one.hardware.memory_bytes;
        group->memory = one.hardware.memory;
        if (i == 0) {
            hw->gpu = group->gpu;
            hw->memory_bytes = group->memory_bytes;
            hw->memory = group->memory;
            hw->reserved_bytes = group->reserved_bytes;
            s->source[VP_F_MEMORY] = one.source[VP_F_MEMORY];
        }
    }
    /* the groups say it, each for itself */
    s->source[VP_F_RESERVED] = s->source[VP_F_GPU];
    if (hw->group_count > 1)
        s->source[VP_F_MEMORY] = s->source[VP_F_GPU];
    if (hw->group_count == 1 || vp_engine_is_llama(s->engine.kind))
        return VP_OK;
    vp_diag_add(ctx->diags, VP_D_UNMODELLED, &hw->groups[1].pos,
                "%s on unlike devices is not modelled: its ranks carry equal loads",
                s->engine.name);
    vp_diag_hint(ctx->diags, "plan for the smallest of them: hardware: {gpu, count}");
    return VP_ERR_INPUT;
}

enum vp_status vp_finish_hardware(struct vp_ctx *ctx, struct vp_scenario *s) {
    struct vp_hardware *hw = &s->hardware;
    if (hw->group_count > 0)
        return resolve_groups(ctx, s);
    if (vp_engine_is_llama(s->engine.kind) && vp_scenario_is_given(s, VP_F_COUNT) && hw->count == 0)
        return take_processor(ctx, s);
    enum vp_status status = resolve_gpu(ctx, s);
    if (status != VP_OK)
        return status;
    bool mode = vp_scenario_is_given(s, VP_F_PARTITION);
    status = vp_gpu_partition(ctx, &hw->gpu, hw->partition, hw->memory_partition,
                              &s->source[mode ? VP_F_PARTITION : VP_F_MEMORY_PARTITION].pos);
    if (status == VP_OK)
        status = resolve_memory(ctx, s);
    if (status != VP_OK)
        return status;
    if (hw->reserved_bytes > hw->memory_bytes) {
        vp_diag_add(ctx->diags, VP_D_BAD_VALUE, &s->source[VP_F_RESERVED].pos,
                    "hardware.reserved is more than the device has");
        return VP_ERR_INPUT;
    }
    return VP_OK;
}
