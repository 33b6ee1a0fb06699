#include "cli/probe_samples.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/import/gpu_profile.h"
#include "planner/import/profile.h"

/* All files of a folder; `fitted`: calibrate reads them. */
static const struct {
    const char *name;
    bool fitted;
    size_t place; /* of the table in struct vp_probe_folder; 0: it is not looked at */
} FILES[] = {{"gemm.csv", true, offsetof(struct vp_probe_folder, gemm)},
             {"decode-attention.csv", true, 0},
             {"prefill-attention.csv", true, 0},
             {"allreduce.csv", true, 0},
             {"bandwidth.csv", true, offsetof(struct vp_probe_folder, bandwidth)},
             {"launch.csv", true, offsetof(struct vp_probe_folder, launch)},
             {"constants.csv", true, 0},
             {"kernels.csv", false, offsetof(struct vp_probe_folder, kernels)},
             {"errors.csv", false, offsetof(struct vp_probe_folder, errors)},
             {"blocks.csv", false, offsetof(struct vp_probe_folder, blocks)},
             {"device.csv", false, offsetof(struct vp_probe_folder, device)}};
enum { FILE_COUNT = sizeof FILES / sizeof *FILES };

enum vp_status vp_probe_folder_read(struct vp_ctx *ctx, struct vp_probe_folder *out,
                                    const char *path) {
    enum vp_status status = VP_OK;

    *out = (struct vp_probe_folder){.path = path,
                                    .fitted = VP_NEW_ARRAY(ctx->arena, FILE_COUNT, const char *)};
    for (size_t i = 0; i < FILE_COUNT; i++) {
        const char *file = vp_io_join(ctx, path, FILES[i].name);
        if (vp_io_kind(ctx, file) != VP_FILE_REGULAR)
            continue;
        if (FILES[i].fitted)
            out->fitted[out->fitted_count++] = file;
        if (!FILES[i].place)
            continue;
        struct vp_csv *csv = VP_NEW(ctx->arena, struct vp_csv);
        enum vp_status one = vp_csv_read(ctx, csv, file);
        status = one > status ? one : status;
        memcpy((char *)out + FILES[i].place, &(const struct vp_csv *){csv}, sizeof csv);
    }
    return status;
}

void vp_probe_folder_remove(struct vp_ctx *ctx, const char *path) {
    for (size_t i = 0; i < FILE_COUNT; i++)
        unlink(vp_io_join(ctx, path, FILES[i].name));
    rmdir(path);
}

const char *vp_probe_text(const struct vp_csv *csv, uint32_t row, const char *column) {
    int at = vp_csv_column(csv, column);
    return at < 0 ? "" : vp_csv_cell(csv, row, at);
}

double vp_probe_number(const struct vp_csv *csv, uint32_t row, const char *column) {
    double v;
    return vp_parse_real(&v, vp_probe_text(csv, row, column)) ? v : 0;
}

const char *vp_probe_property(const struct vp_probe_folder *folder, const char *name) {
    for (uint32_t i = 0; folder->device && i < folder->device->rows; i++)
        if (vp_text_eq(vp_probe_text(folder->device, i, "property"), name))
            return vp_probe_text(folder->device, i, "value");
    return "";
}

/* ---- the card ---- */

/* The best rate of a type's products, 10^12 FLOP/s; 0: none was measured. */
static double best_tflops(const struct vp_samples *samples, enum vp_rate rate) {
    double best = 0;
    for (uint32_t i = 0; i < samples->kernel_count; i++) {
        const struct vp_kernel_samples *k = &samples->kernels[i];
        for (uint32_t s = 0; k->form == VP_FORM_GEMM && k->variant == (int)rate && s < k->count;
             s++) {
            const double *size = k->items[s].shape.size;
            best = fmax(best, 2 * size[0] * size[1] * size[2] / k->items[s].us / 1e6);
        }
    }
    return best;
}

/* Fits begin at a data sheet's rates; where there is none, at the best that was measured. */
static void fill_rates(struct vp_gpu *gpu, const struct vp_samples *samples) {
    const struct {
        double *rate;
        enum vp_rate of;
    } RATES[] = {{&gpu->tflops_bf16, VP_RATE_BF16},
                 {&gpu->tflops_fp32, VP_RATE_FP32},
                 {&gpu->tflops_fp8, VP_RATE_FP8}};
    for (size_t i = 0; i < sizeof RATES / sizeof *RATES; i++)
        if (!(*RATES[i].rate > 0))
            *RATES[i].rate = best_tflops(samples, RATES[i].of);
    bool unknown = !(gpu->bandwidth_gbs > 0);
    for (uint32_t i = 0; unknown && i < samples->figure_count; i++) {
        const struct vp_figure_sample *f = &samples->figures[i];
        if (vp_text_eq(f->name, "read") || vp_text_eq(f->name, "copy"))
            gpu->bandwidth_gbs = fmax(gpu->bandwidth_gbs, f->value);
    }
}

static enum vp_status not_known(struct vp_ctx *ctx, const struct vp_probe_folder *folder,
                                const char *name) {
    vp_diag_add(ctx->diags, VP_D_GPU_UNKNOWN, NULL, "no GPU profile is called \"%.100s\"", name);
    vp_diag_hint(ctx->diags,
                 "the samples are kept in %s; under the name of a profile (vramplan list gpus): "
                 "vramplan calibrate %s/*.csv --gpu NAME -o PROFILE.yaml",
                 folder->path, folder->path);
    return VP_ERR_INPUT;
}

enum vp_status vp_probe_card(struct vp_ctx *ctx, struct vp_gpu *out,
                             const struct vp_probe_folder *folder,
                             const struct vp_samples *samples) {
    static const double MIB = 1048576;
    const char *name = vp_probe_property(folder, "name");
    struct vp_profile profile;
    double units, cache;

    if (vp_text_eq(vp_probe_property(folder, "backend"), "cpu"))
        *out = (struct vp_gpu){.id = "processor", .name = name, .vendor = "", .arch = ""};
    else {
        enum vp_status status = vp_profile_find(ctx, &profile, &VP_PROFILE_GPU, name);
        if (status == VP_OK && !profile.root)
            status = not_known(ctx, folder, name);
        if (status == VP_OK)
            status = vp_gpu_named(ctx, out, profile.id);
        if (status != VP_OK)
            return status;
    }
    if (vp_parse_real(&units, vp_probe_property(folder, "compute_units")) && units >= 1)
        out->compute_units = (uint64_t)units;
    if (!(out->cache_mib > 0) && vp_parse_real(&cache, vp_probe_property(folder, "cache_bytes")))
        out->cache_mib = cache / MIB;
    fill_rates(out, samples);
    return VP_OK;
}
