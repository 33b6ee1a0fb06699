/* Advice about the card: its real total, its parts, its number formats, its kernels. */
#include <inttypes.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/memory/stage.h"
#include "planner/memory/weights.h"
#include "planner/model/requantise.h"
#include "planner/plan/advice_parts.h"

enum { MIB_SHIFT = 20 };

/* ---- sold sizes ---- */

static uint64_t runtime_bytes(const struct vp_gpu *gpu) {
    bool same = vp_text_eq(gpu->vendor, "amd"); /* driver and runtime agree in every log */
    uint64_t mib = gpu->runtime_mib ? gpu->runtime_mib : same ? gpu->driver_mib : 0;
    return mib << MIB_SHIFT;
}

/* Told when the size given is the number on the box, read as GB or as GiB, and half a percent or
 * more off what the runtime reports: 16 MiB of an MI300X are no matter. Source: totals in logs,
 * profiles/gpus/README.md; "GB and GiB mixed, 7.4 %" (sglang#36452 and many). */
void vp_advice_sold_size(const struct vp_advice *a) {
    const struct vp_gpu *gpu = &a->scenario->hardware.gpu;
    uint64_t given = a->scenario->hardware.memory_bytes, real = runtime_bytes(gpu);
    uint64_t milli = (uint64_t)(gpu->memory_gb * 1000 + 0.5);
    bool decimal = given == milli * 1000000;
    bool binary = given == vp_mul_div(milli, UINT64_C(1) << 30, 1000);
    uint64_t apart = given > real ? given - real : real - given;

    if (!vp_advice_is_given(a, VP_F_MEMORY) || real == 0 || milli == 0 || !(decimal || binary) ||
        apart < real / 200)
        return;
    vp_diag_add(a->ctx->diags, a->id, vp_advice_at(a, VP_F_MEMORY),
                "hardware.memory %s is the size that %s is sold as: %s GiB; the runtime reports %s "
                "GiB = %" PRIu64 ".%02" PRIu64 " GB",
                vp_field_value(a->ctx->arena, a->scenario, VP_F_MEMORY), gpu->id,
                vp_advice_gib(a, given), vp_advice_gib(a, real), real / 1000000000,
                real / 10000000 % 100);
    vp_diag_hint(a->ctx->diags,
                 "leave hardware.memory out or write %" PRIu64 " MiB: this plan counts with %s GiB "
                 "%s",
                 real >> MIB_SHIFT, vp_advice_gib(a, apart),
                 given > real ? "that are not there" : "less than there is");
}

/* ---- packages and partitions ---- */

/* Told when packages are named and more than one is counted: VP302 says what a count means, this
 * what it would be. Source: the runtime lists the two dies of an MI250 or MI250X as devices. */
void vp_advice_packages(const struct vp_advice *a) {
    const struct vp_hardware *hardware = &a->scenario->hardware;
    uint64_t count = hardware->count;

    if (!hardware->package || !vp_advice_is_given(a, VP_F_COUNT) || count < 2)
        return;
    vp_diag_add(a->ctx->diags, a->id, vp_advice_at(a, VP_F_COUNT),
                "hardware.count %" PRIu64 " of %s is planned as %" PRIu64 " devices, which are %s "
                "packages",
                count, hardware->package, count,
                count % 2 ? vp_arena_printf(a->ctx->arena, "%" PRIu64 ".5", count / 2)
                          : vp_advice_count(a, count / 2));
    vp_diag_hint(a->ctx->diags,
                 "if it counts packages: count %" PRIu64 ", %" PRIu64 " devices of %s GiB, and a "
                 "layout over all of them",
                 2 * count, 2 * count, vp_advice_gib(a, hardware->memory_bytes));
}

/* Told for every partition mode: what tools show is of another device. Source: legacy-rocm-build
 * #4750 (in CPX rocm-smi prints the whole total on all rows), amdsmi#97. */
void vp_advice_partition(const struct vp_advice *a) {
    const struct vp_hardware *hardware = &a->scenario->hardware;
    const struct vp_gpu *gpu = &hardware->gpu;

    if (gpu->parts < 2)
        return;
    vp_diag_add(a->ctx->diags, a->id, vp_advice_at(a, VP_F_PARTITION),
                "in this mode a device is 1/%" PRIu64 " of %s: %s GiB; rocm-smi shows the card's "
                "%s GiB on every one of them",
                gpu->parts, gpu->id, vp_advice_gib(a, gpu->driver_mib << MIB_SHIFT),
                vp_advice_gib(a, gpu->whole_mib << MIB_SHIFT));
    vp_diag_hint(a->ctx->diags, "hardware.count counts these devices: %" PRIu64 " are one card",
                 gpu->parts);
}

/* Told when the total given is more than a tenth above the mode's: it is another device's. */
void vp_advice_partition_memory(const struct vp_advice *a) {
    const struct vp_hardware *hardware = &a->scenario->hardware;
    uint64_t part = hardware->gpu.driver_mib << MIB_SHIFT;

    if (hardware->gpu.parts < 2 || !vp_advice_is_given(a, VP_F_MEMORY) ||
        hardware->memory_bytes <= part + part / 10)
        return;
    vp_diag_add(a->ctx->diags, a->id, vp_advice_at(a, VP_F_MEMORY),
                "hardware.memory of %s GiB is more than the %s GiB that a device has in this "
                "partition mode",
                vp_advice_gib(a, hardware->memory_bytes), vp_advice_gib(a, part));
    vp_diag_hint(a->ctx->diags, "leave hardware.memory out, or take hipMemGetInfo's total of one "
                                "device; rocm-smi shows the card's");
}

/* ---- FP8 ---- */

static uint64_t stored_bytes(const struct vp_model *model) {
    return model->checkpoint.known ? model->checkpoint.total_bytes : vp_weights_unsharded(model).v;
}

/* What the rank's weights would take at the compute type's width. */
static uint64_t wide_bytes(const struct vp_advice *a) {
    struct vp_sum wide =
        vp_dtype_bytes(a->scenario->precision.compute, vp_sum(a->result->params_total));
    uint64_t stored = stored_bytes(a->scenario->model);
    return stored && !wide.overflow ? vp_mul_div(a->result->report.weights.likely, wide.v, stored)
                                    : 0;
}

static const struct vp_pos *fp8_pos(const struct vp_advice *a) {
    return vp_advice_is_given(a, VP_F_WEIGHTS) ? vp_advice_at(a, VP_F_WEIGHTS)
                                               : vp_advice_at_model(a);
}

/* Always told: FP8 is mostly chosen for speed. None on gfx906 to gfx90a and gfx10 to gfx11, sm_80
 * and older. Source: the matrix instructions of each target (fp8_formats of profiles/gpus); torch
 * _scaled_mm asks for MI300 or later; a public MI210 project measured 0.07 to 0.73 of the 16-bit
 * speed with block-scaled weights, 15.71 against 27.52 GiB (Qwen3-14B). */
void vp_advice_fp8_units(const struct vp_advice *a) {
    const struct vp_gpu *gpu = &a->scenario->hardware.gpu;

    if (!gpu->id || gpu->fp8 || !vp_model_has_fp8(a->scenario->model))
        return;
    vp_diag_add(
        a->ctx->diags, a->id, fp8_pos(a),
        "%s has no FP8 units: FP8 weights save memory (%s GiB per device against about %s), "
        "but compute at the 16-bit rate at best",
        gpu->id, vp_advice_gib(a, a->result->report.weights.likely),
        vp_advice_gib(a, wide_bytes(a)));
    if (vp_text_eq(gpu->vendor, "amd"))
        vp_diag_hint(a->ctx->diags, "take FP8 here for the memory alone, and a block-scaled "
                                    "checkpoint: per-tensor and per-channel ones end in torch's "
                                    "_scaled_mm, which wants an MI300 or later");
    else
        vp_diag_hint(a->ctx->diags, "the kernel widens the weights as it reads them: decoding, "
                                    "which waits for memory, may still gain; prefill does not");
}

/* Told with FP8 weights on CDNA3, whose FP8 is not the one that checkpoints hold. Source: vLLM
 * platforms/rocm.py (FNUZ on gfx94 only; gfx95 and gfx12 use e4m3fn). */
void vp_advice_fp8_fnuz(const struct vp_advice *a) {
    const struct vp_gpu *gpu = &a->scenario->hardware.gpu;

    if (!gpu->fp8_formats || !strstr(gpu->fp8_formats, "e4m3fnuz") ||
        !vp_model_has_fp8(a->scenario->model))
        return;
    vp_diag_add(a->ctx->diags, a->id, fp8_pos(a),
                "FP8 of %s is e4m3fnuz: weights and scales stored for e4m3fn are converted while "
                "loading and take the same %s GiB",
                gpu->id, vp_advice_gib(a, a->result->report.weights.likely));
    vp_diag_hint(a->ctx->diags, "nothing to do in an engine; code of your own that reads e4m3fn "
                                "bytes as e4m3fnuz gets half of each value (largest 240, not 448)");
}

/* ---- SGLang on AITER ---- */

static const char *value_of(const struct vp_engine_arg *args, uint32_t count, const char *key,
                            const struct vp_pos **pos) {
    for (uint32_t i = 0; i < count; i++) {
        if (!vp_text_eq(args[i].key, key))
            continue;
        *pos = &args[i].pos;
        return args[i].value;
    }
    return NULL;
}

static bool asks_for_aiter(const struct vp_engine *engine, const struct vp_pos **pos) {
    const char *backend = value_of(engine->args, engine->arg_count, "attention_backend", pos);
    if (backend) /* outranks the variable */
        return vp_name_eq(backend, "aiter");
    const char *on = value_of(engine->env, engine->env_count, "SGLANG_USE_AITER", pos);
    return on && (vp_name_eq(on, "1") || vp_name_eq(on, "true"));
}

/* fp32 partial results of the paged decode kernel, one per 256 tokens of context:
 *   requests x heads per rank x ceil(context / 256) x (head_dim x 4 + 8)
 * Requests: max_running_requests, else clamp(tokens / context x 512, 2048, 4096). Models of latents
 * or windows take other kernels: 0. Source: sglang aiter_backend.py; reproduces the 16.25 GiB of
 * sglang#20888, the 4.06 GiB of #36563 and, at 3261 requests, the 51.75 GiB of #18262. */
static uint64_t aiter_bytes(const struct vp_advice *a, uint64_t *requests) {
    const struct vp_model *model = a->scenario->model;
    const struct vp_engine *engine = &a->scenario->engine;
    uint64_t ranks = vp_max(vp_stage_layout(a->scenario).attention, 1);
    uint64_t length = engine->max_model_len, said;
    struct vp_sum most = vp_sum(0);
    const struct vp_pos *pos;
    const char *given;

    if (length == 0)
        return 0;
    *requests = vp_mul_div(a->result->report.kv_cache_tokens.likely, 512, length);
    *requests = vp_min(vp_max(*requests, 2048), 4096);
    given = value_of(engine->args, engine->arg_count, "max_running_requests", &pos);
    if (given && vp_parse_u64(&said, given) && said > 0)
        *requests = said;
    for (uint32_t i = 0; i < model->block_count; i++) {
        const struct vp_attention *at = &model->blocks[i].attention;
        if (at->kind == VP_ATTENTION_MLA || at->window > 0)
            return 0;
        if (at->kind != VP_ATTENTION_GQA)
            continue;
        struct vp_sum bytes = vp_sum_add(vp_sum_mul(vp_sum(at->head_dim), 4), 8);
        bytes = vp_sum_mul(vp_sum_mul(bytes, vp_ceil_div(at->heads, ranks)), *requests);
        bytes = vp_sum_mul(bytes, vp_ceil_div(length, 256));
        most.v = bytes.overflow ? 0 : vp_max(most.v, bytes.v);
    }
    return most.v;
}

/* What the static share leaves beside forward passes and graphs, at their largest. */
static uint64_t aiter_room(const struct vp_advice *a) {
    const struct vp_engine_report *r = &a->result->report;
    const struct vp_hardware *hardware = &a->scenario->hardware;
    uint64_t taken = hardware->reserved_bytes + r->requested_bytes + r->non_torch.high +
                     r->activation_peak.high + r->graph.high;
    return hardware->memory_bytes > taken ? hardware->memory_bytes - taken : 0;
}

/* Told when AITER's attention is asked for and takes more than half of what is left for it; the
 * sizes of both are estimates. */
void vp_advice_aiter(const struct vp_advice *a) {
    const struct vp_engine *engine = &a->scenario->engine;
    const char *arch = a->scenario->hardware.gpu.arch;
    const struct vp_pos *pos = NULL;
    uint64_t requests = 0;

    if (engine->kind != VP_ENGINE_SGLANG ||
        !(vp_text_eq(arch, "gfx942") || vp_text_eq(arch, "gfx950")) ||
        !asks_for_aiter(engine, &pos))
        return;
    uint64_t bytes = aiter_bytes(a, &requests), room = aiter_room(a);
    uint64_t fewer = requests > 256 ? 256 : requests / 2;
    if (bytes <= room / 2)
        return;
    vp_diag_add(a->ctx->diags, a->id, pos,
                "AITER's decode workspace is outside mem_fraction_static and not in this plan: "
                "about %s GiB at %" PRIu64 " requests of %s tokens, %s GiB are left for it; take "
                "the verdict for at risk",
                vp_advice_gib(a, bytes), requests, vp_advice_count(a, engine->max_model_len),
                vp_advice_gib(a, room));
    vp_diag_hint(a->ctx->diags,
                 "max_running_requests %" PRIu64
                 " makes it %s GiB; a shorter context_length lowers "
                 "it in proportion; attention_backend triton takes none",
                 fewer, vp_advice_gib(a, bytes / requests * fewer));
}
