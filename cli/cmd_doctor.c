/* doctor: what the messages about memory in a log, or in pasted text, really say. */
#include <inttypes.h>

#include "cli/args.h"
#include "cli/output.h"
#include "planner/import/gpu_profile.h"
#include "planner/import/log_measured.h"
#include "planner/import/log_reader.h"
#include "reports/doctor_report.h"
#include "reports/shell_words.h"

/* --gpu: which card it was; the only setting that the command takes. */
static enum vp_status find_gpu(struct vp_ctx *ctx, const struct vp_args *args,
                               const struct vp_gpu **out) {
    *out = NULL;
    if (args->setting_count == 0)
        return VP_OK;
    struct vp_gpu *gpu = VP_NEW(ctx->arena, struct vp_gpu);
    const char *name = args->settings[args->setting_count - 1].value;
    enum vp_status status = vp_gpu_named(ctx, gpu, name);
    *out = gpu;
    return status;
}

/* A card that the log itself names; it may be one that no profile knows. */
static const struct vp_gpu *gpu_of_log(struct vp_ctx *ctx, const struct vp_run_log *log) {
    struct vp_ctx own = *ctx;
    struct vp_gpu *gpu = VP_NEW(ctx->arena, struct vp_gpu);
    const char *name = log->start.gpu[0] ? log->start.gpu : log->last->gpu;
    own.diags = VP_NEW(ctx->arena, struct vp_diags);
    own.diags->arena = ctx->arena;
    if (!name[0] || vp_gpu_named(&own, gpu, name) != VP_OK)
        return NULL;
    return gpu;
}

/* What was run, as the input of other commands; a stand-in where the log does not say. */
static const char *subject_of(struct vp_ctx *ctx, const struct vp_run_log *log,
                              const struct vp_gpu *gpu) {
    const struct vp_log_start *start = log->last->known ? log->last : &log->start;
    const char *model = vp_log_argument(ctx->arena, start, "model");
    struct vp_buf buf = {.arena = ctx->arena};
    model = model ? model : vp_log_argument(ctx->arena, start, "model_path");
    if (!model)
        return "scenario.yaml";
    vp_buf_add(&buf, vp_shell_word(ctx->arena, vp_text_clean(ctx->arena, model, true)));
    if (gpu)
        vp_buf_printf(&buf, " --gpu %s", gpu->id);
    vp_buf_printf(&buf, " --engine %s", vp_engine_name(start->engine));
    if (start->version[0])
        vp_buf_printf(&buf, "@%s",
                      vp_shell_word(ctx->arena, vp_text_clean(ctx->arena, start->version, false)));
    const char *tensor = vp_log_argument(ctx->arena, start, "tensor_parallel_size");
    tensor = tensor ? tensor : vp_log_argument(ctx->arena, start, "tp_size");
    if (tensor && !vp_text_eq(tensor, "1"))
        vp_buf_printf(&buf, " --tp %s", vp_shell_word(ctx->arena, tensor));
    return vp_buf_text(&buf);
}

static void render(struct vp_ctx *ctx, const struct vp_args *args, struct vp_buf *out,
                   const struct vp_run_log *log, const struct vp_diagnosis *diagnosis) {
    struct vp_page page = vp_output_page(args, out);
    switch (args->format) {
    case VP_FORMAT_JSON:
        vp_doctor_report_json(out, log, diagnosis, ctx->diags);
        break;
    case VP_FORMAT_CSV:
        vp_doctor_report_csv(out, diagnosis);
        break;
    case VP_FORMAT_MARKDOWN:
        vp_doctor_report_markdown(out, log, diagnosis);
        break;
    case VP_FORMAT_TEXT:
        vp_doctor_report_text(&page, log, diagnosis);
        break;
    }
}

int vp_cmd_doctor(struct vp_ctx *ctx, const struct vp_args *args) {
    const char *path = args->operand_count ? args->operands[0] : "-";
    struct vp_buf out = {.arena = ctx->arena};
    struct vp_diagnosis *diagnosis = VP_NEW(ctx->arena, struct vp_diagnosis);
    struct vp_run_log *log;
    struct vp_doctor_case in = {.gpu = NULL};
    enum vp_status status = find_gpu(ctx, args, &in.gpu);
    if (status == VP_OK)
        status = vp_log_read(ctx, &log, path);
    if (status != VP_OK)
        return vp_output_failure(ctx, args, status);
    in.log = log;
    in.gpu = in.gpu ? in.gpu : gpu_of_log(ctx, log);
    in.subject = subject_of(ctx, log, in.gpu);
    vp_doctor_diagnose(ctx->arena, diagnosis, &in);
    if (diagnosis->findings == 0) {
        vp_diag_add(ctx->diags, VP_D_LOG_UNKNOWN, &(struct vp_pos){.file = path},
                    "none of its %" PRIu64 " lines is a message about memory that is known",
                    log->lines);
        vp_diag_hint(ctx->diags, "paste the whole message, with the lines around it");
    }
    render(ctx, args, &out, log, diagnosis);
    status = vp_output_write(ctx, &out, args->value[VP_OPTION_OUTPUT]);
    if (status != VP_OK)
        return vp_output_failure(ctx, args, status);
    return diagnosis->open ? VP_EXIT_INCONCLUSIVE : VP_EXIT_YES;
}
