/* probe: measures a device by vramplan-probe, and makes a calibration of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "cli/probe_report.h"
#include "planner/import/calibration_reader.h"
#include "planner/import/samples_reader.h"
#include "reports/calibration_yaml.h"

struct work {
    struct vp_ctx *ctx;
    const struct vp_args *args;
    struct vp_probe_order order;
    struct vp_probe_outcome outcome;
    struct vp_probe_folder folder;
    bool keep; /* the samples */
    struct vp_samples samples;
    struct vp_gpu gpu;
    struct vp_calibration calibration; /* made, or verified */
    struct vp_calibrate_result fitted;
    struct vp_verification verification;
};

/* The profile goes to --output, so that a failure has to go elsewhere. */
static int failure(struct work *w, enum vp_status status) {
    struct vp_args args = *w->args;
    args.value[VP_OPTION_OUTPUT] = NULL;
    return vp_output_failure(w->ctx, &args, status);
}

static const char *device_option(const struct vp_args *args) {
    const struct vp_setting *gpu = vp_args_setting(args, "hardware.gpu");
    return gpu ? gpu->value : NULL;
}

static enum vp_status make_folder(struct work *w) {
    const char *given = w->args->value[VP_OPTION_SAMPLES], *tmp = getenv("TMPDIR");
    if (given) {
        w->keep = true;
        w->order.folder = given;
        return VP_OK;
    }
    char *path = vp_arena_printf(w->ctx->arena, "%s/vramplan-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    w->order.folder = mkdtemp(path);
    if (w->order.folder)
        return VP_OK;
    vp_diag_add(w->ctx->diags, VP_D_IO, NULL, "no folder for samples can be made: %s: %s", path,
                strerror(errno));
    vp_diag_hint(w->ctx->diags, "--samples FOLDER names another one");
    return VP_ERR_ENV;
}

/* ---- a profile ---- */

static const char *made_by(const struct work *w) {
    return vp_arena_printf(w->ctx->arena, "vramplan probe%s%s%s%s%s",
                           *vp_probe_property(&w->folder, "backend") ? " --backend " : "",
                           vp_probe_property(&w->folder, "backend"),
                           w->order.quick ? " --quick" : "", w->order.only ? " --only " : "",
                           w->order.only ? w->order.only : "");
}

static enum vp_status fit(struct work *w) {
    const char *library = vp_probe_property(&w->folder, "library");
    const struct vp_fit_source source = {
        .release = *library ? library : vp_probe_property(&w->folder, "kernels"),
        .origin =
            vp_arena_printf(w->ctx->arena, "probe of %s", vp_probe_property(&w->folder, "name"))};
    enum vp_status status =
        vp_samples_read(w->ctx, &w->samples, w->folder.fitted, w->folder.fitted_count);

    if (status == VP_OK && !w->samples.kernel_count && !w->samples.figure_count) {
        vp_diag_add(w->ctx->diags, VP_D_MISSING_VALUE, NULL,
                    "there is no figure that a profile can be made of");
        status = VP_ERR_ENV;
    }
    if (status != VP_OK)
        return status;
    status = vp_probe_card(w->ctx, &w->gpu, &w->folder, &w->samples);
    if (status != VP_OK) {
        w->keep = true;
        return status;
    }
    vp_calibrate(w->ctx->arena, &w->calibration, &w->fitted.kernels, &w->gpu, &w->samples, &source);
    w->calibration.made = made_by(w);
    w->fitted.calibration = &w->calibration;
    w->fitted.samples = &w->samples;
    w->fitted.written = w->args->value[VP_OPTION_OUTPUT];
    return VP_OK;
}

static enum vp_status write_profile(struct work *w) {
    struct vp_buf text = {.arena = w->ctx->arena};
    vp_calibration_yaml(&text, &w->calibration);
    return vp_output_write(w->ctx, &text, w->args->value[VP_OPTION_OUTPUT]);
}

/* ---- a verification ---- */

static enum vp_status verify(struct work *w) {
    enum vp_status status = VP_OK;

    if (!w->folder.blocks) {
        vp_diag_add(w->ctx->diags, VP_D_PROBE_FAILED, NULL, "no block could be measured");
        return VP_ERR_ENV;
    }
    w->samples = (struct vp_samples){0};
    status = vp_probe_card(w->ctx, &w->gpu, &w->folder, &w->samples);
    if (status == VP_OK && !vp_text_eq(w->gpu.id, w->calibration.gpu)) {
        vp_diag_add(w->ctx->diags, VP_D_CONTRADICTION, NULL, "%s is of %s, measured was %s",
                    w->calibration.path, w->calibration.gpu, w->gpu.id);
        status = VP_ERR_INPUT;
    }
    if (status == VP_OK)
        vp_probe_verify(w->ctx->arena, &w->verification, &w->gpu, &w->calibration,
                        w->folder.blocks);
    return status;
}

/* ---- all ---- */

/* A third of all figures: the machine does other work beside, or its clocks are not stable. */
static void judge(struct work *w) {
    const struct vp_probe_outcome *o = &w->outcome;
    if (o->noisy * 3 <= o->figures)
        return;
    vp_diag_add(w->ctx->diags, VP_D_PROBE_NOISY, NULL,
                "%llu of %llu figures are noisy and were left out of the profile",
                (unsigned long long)o->noisy, (unsigned long long)o->figures);
    vp_diag_hint(w->ctx->diags, "measure again when nothing else runs; -v names them");
}

static void report(struct work *w, struct vp_buf *out, bool fitted, bool verified) {
    const struct vp_probe_result result = {.folder = &w->folder,
                                           .outcome = &w->outcome,
                                           .fitted = fitted ? &w->fitted : NULL,
                                           .verification = verified ? &w->verification : NULL,
                                           .verified_by = &w->calibration};
    struct vp_page page = vp_output_page(w->args, out);

    if (w->args->format == VP_FORMAT_JSON)
        vp_probe_report_json(out, &result, w->ctx->diags);
    else
        vp_probe_report_text(&page, &result, w->args->value[VP_OPTION_VERBOSE]);
}

static enum vp_status use_samples(struct work *w, struct vp_buf *out) {
    bool wanted = w->args->value[VP_OPTION_OUTPUT], verifies = w->args->value[VP_OPTION_VERIFY];
    enum vp_status status = vp_probe_folder_read(w->ctx, &w->folder, w->order.folder);

    judge(w);
    if (status == VP_OK && verifies)
        status = verify(w);
    else if (status == VP_OK && wanted)
        status = fit(w);
    if (status == VP_OK && wanted)
        status = write_profile(w);
    if (status == VP_OK)
        report(w, out, wanted, verifies);
    return status;
}

static int measure(struct work *w) {
    struct vp_buf out = {.arena = w->ctx->arena};
    enum vp_status status = make_folder(w);

    if (status != VP_OK)
        return failure(w, status);
    status = vp_probe_run(w->ctx, &w->outcome, &w->order);
    if (status == VP_OK)
        status = use_samples(w, &out);
    if (!w->keep)
        vp_probe_folder_remove(w->ctx, w->order.folder);
    if (status != VP_OK)
        return failure(w, status);
    return (int)vp_exit_of_status(vp_output_write(w->ctx, &out, NULL));
}

static int list(struct work *w) {
    enum vp_status status = vp_probe_run(w->ctx, &w->outcome, &w->order);
    if (status != VP_OK)
        return failure(w, status);
    status = vp_output_write(w->ctx, &w->outcome.list, w->args->value[VP_OPTION_OUTPUT]);
    return (int)vp_exit_of_status(status);
}

int vp_cmd_probe(struct vp_ctx *ctx, const struct vp_args *args) {
    const char *verified = args->value[VP_OPTION_VERIFY];
    struct work w = {.ctx = ctx,
                     .args = args,
                     .order = {.backend = args->value[VP_OPTION_BACKEND],
                               .device = device_option(args),
                               .only = verified ? "block" : args->value[VP_OPTION_ONLY],
                               .quick = args->value[VP_OPTION_QUICK],
                               .loud = args->value[VP_OPTION_VERBOSE]}};

    if (args->value[VP_OPTION_PROBE_LIST])
        return list(&w);
    if (verified && (args->value[VP_OPTION_OUTPUT] || args->value[VP_OPTION_ONLY])) {
        vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                    "--verify measures blocks and makes no profile: it goes neither with --output "
                    "nor with --only");
        return failure(&w, VP_ERR_INPUT);
    }
    enum vp_status status = verified ? vp_calibration_read(ctx, &w.calibration, verified) : VP_OK;
    return status == VP_OK ? measure(&w) : failure(&w, status);
}
