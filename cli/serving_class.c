#include "cli/serving_class.h"

#include <inttypes.h>
#include <string.h>

#include "api/fit_serving.h"
#include "planner/latency/engine_constants.h"

static enum vp_status bad(struct vp_ctx *ctx, const char *what) {
    vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                "--serving-class %s: not ENGINE, ENGINE@VERSION or ENGINE:VENDOR", what);
    vp_diag_hint(ctx->diags, "engines are vllm and sglang, vendors as in profiles/gpus: "
                             "--serving-class vllm@0.19:amd");
    return VP_ERR_INPUT;
}

static enum vp_status read_class(struct vp_ctx *ctx, struct vp_serving_class *out,
                                 const char *what) {
    size_t engine = strcspn(what, "@:"), version = 0;
    const char *rest = what + engine;
    struct vp_version release = {0};

    *out = (struct vp_serving_class){.engine = vp_arena_text(ctx->arena, what, engine)};
    if (!vp_text_eq(out->engine, "vllm") && !vp_text_eq(out->engine, "sglang"))
        return bad(ctx, what);
    if (*rest == '@') {
        version = strcspn(++rest, ":");
        if (!vp_version_parse(&release, vp_arena_text(ctx->arena, rest, version)))
            return bad(ctx, what);
        rest += version;
    }
    if (*rest == ':')
        out->vendor = rest + 1;
    if (out->vendor && !*out->vendor)
        return bad(ctx, what);
    out->generation = vp_serving_generation(out->engine, &release);
    return VP_OK;
}

static void write_row(struct vp_buf *out, const struct vp_serving_class *of,
                      const struct vp_serving_fit *fit) {
    const char *from, *until;

    vp_serving_generation_span(of->engine, of->generation, &from, &until);
    vp_buf_printf(out, "# %" PRIu32 " rows, releases up to %s: time between tokens median %.1f %%",
                  fit->tpot.rows, fit->source.release, 100 * fit->tpot.median);
    if (fit->ttft.rows)
        vp_buf_printf(out, ", to the first %.1f %%", 100 * fit->ttft.median);
    vp_buf_printf(out, "\n- {");
    if (from)
        vp_buf_printf(out, "from: \"%s\", ", from);
    if (until)
        vp_buf_printf(out, "until: \"%s\", ", until);
    if (of->vendor)
        vp_buf_printf(out, "vendor: %s, ", of->vendor);
    vp_buf_add(out, "source: served");
    int member_count = 0;
#define X(member, what)                                                                            \
    vp_buf_printf(out, "%s%s: %.4g", member_count++ % 4 ? ", " : ",\n   ", #member, fit->member);
#include "planner/model/serving_constants.def"
#undef X
    vp_buf_add(out, "}\n");
}

enum vp_status vp_serving_class_row(struct vp_ctx *ctx, struct vp_buf *out,
                                    const struct vp_samples *samples, const char *what) {
    const struct vp_csv **tables =
        VP_NEW_ARRAY(ctx->arena, samples->file_count + 1, const struct vp_csv *);
    struct vp_serving_report report;
    struct vp_serving_class of;
    struct vp_serving_fit fit;
    size_t count = 0;

    for (uint32_t i = 0; i < samples->file_count; i++)
        if (samples->files[i].serving)
            tables[count++] = samples->files[i].table;
    enum vp_status status = read_class(ctx, &of, what);
    if (status == VP_OK)
        status = vp_fit_serving_class(ctx, &fit, &report, &of, tables, count);
    if (status == VP_OK)
        write_row(out, &of, &fit);
    return status;
}
