#include "cli/shape_rows.h"

#include <string.h>

#include "planner/doc/csv.h"
#include "planner/latency/choose_shapes.h"
#include "reports/report.h"

/* ---- rows of files ---- */

static const struct vp_csv *table_of(const struct vp_samples *samples, uint32_t file) {
    return samples->files[file].table;
}

static bool same_columns(const struct vp_csv *a, const struct vp_csv *b) {
    if (a->columns != b->columns)
        return false;
    for (uint32_t i = 0; i < a->columns; i++)
        if (strcmp(a->column[i], b->column[i]) != 0)
            return false;
    return true;
}

static enum vp_status check_files(struct vp_ctx *ctx, const struct vp_samples *samples) {
    for (uint32_t i = 1; i < samples->file_count; i++)
        if (!same_columns(table_of(samples, 0), table_of(samples, i))) {
            vp_diag_add(ctx->diags, VP_D_BAD_OPTION, NULL,
                        "%s and %s have other columns: choose from one after the other",
                        samples->files[0].path, samples->files[i].path);
            return VP_ERR_INPUT;
        }
    if (samples->kernel_count || samples->reduce_count)
        return VP_OK;
    vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, NULL, "the samples hold no shapes to choose from");
    return VP_ERR_INPUT;
}

/* A flag for every row of every file. */
static bool **make_marks(struct vp_ctx *ctx, const struct vp_samples *samples) {
    bool **marks = VP_NEW_ARRAY(ctx->arena, samples->file_count, bool *);
    for (uint32_t i = 0; i < samples->file_count; i++)
        marks[i] = VP_NEW_ARRAY(ctx->arena, table_of(samples, i)->rows + 1, bool);
    return marks;
}

static void mark_kind(struct vp_ctx *ctx, bool **marks, const struct vp_kernel_samples *kind,
                      uint32_t wanted) {
    uint32_t *chosen = VP_NEW_ARRAY(ctx->arena, kind->count + 1, uint32_t);
    uint32_t n = vp_choose_shapes(ctx->arena, chosen, kind, wanted);
    for (uint32_t i = 0; i < n; i++) {
        const struct vp_sample_row *at = &kind->items[chosen[i]].at;
        marks[at->file][at->row] = true;
    }
}

/* The sizes of each group are chosen like a kernel's shapes of one size. */
static void mark_reduces(struct vp_ctx *ctx, bool **marks, const struct vp_samples *samples,
                         uint32_t wanted) {
    uint32_t count = samples->reduce_count;
    bool *done = VP_NEW_ARRAY(ctx->arena, count + 1, bool);
    for (uint32_t first = 0; first < count; first++) {
        const struct vp_reduce_sample *group = &samples->reduces[first];
        struct vp_kernel_samples sizes = {
            .form = VP_FORM_GEMM,
            .items = VP_NEW_ARRAY(ctx->arena, count - first, struct vp_kernel_sample)};
        for (uint32_t i = first; i < count; i++) {
            const struct vp_reduce_sample *r = &samples->reduces[i];
            if (done[i] || r->gpus != group->gpus || r->graph != group->graph)
                continue;
            done[i] = true;
            sizes.items[sizes.count++] =
                (struct vp_kernel_sample){.shape = {{r->bytes, 1, 1}}, .at = r->at};
        }
        if (sizes.count)
            mark_kind(ctx, marks, &sizes, wanted);
    }
}

static void add_line(struct vp_buf *out, const char *const *cells, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        vp_buf_add(out, i ? "," : "");
        vp_report_csv_cell(out, cells[i]);
    }
    vp_buf_add(out, "\n");
}

enum vp_status vp_shape_rows_chosen(struct vp_ctx *ctx, struct vp_buf *out,
                                    const struct vp_samples *samples, uint32_t wanted) {
    enum vp_status status = check_files(ctx, samples);
    if (status != VP_OK)
        return status;
    bool **marks = make_marks(ctx, samples);
    for (uint32_t i = 0; i < samples->kernel_count; i++)
        mark_kind(ctx, marks, &samples->kernels[i], wanted);
    mark_reduces(ctx, marks, samples, wanted);
    add_line(out, table_of(samples, 0)->column, table_of(samples, 0)->columns);
    for (uint32_t f = 0; f < samples->file_count; f++) {
        const struct vp_csv *table = table_of(samples, f);
        for (uint32_t r = 0; r < table->rows; r++)
            if (marks[f][r])
                add_line(out, &table->cells[(size_t)r * table->columns], table->columns);
    }
    return VP_OK;
}

/* ---- the probe's set ---- */

static const double TOKENS[] = {
#define PROBE_TOKENS(m) m,
#include "planner/model/probe_shapes.def"
};
static const double MATRICES[][2] = {
#define PROBE_MATRIX(n, k) {n, k},
#include "planner/model/probe_shapes.def"
};
enum {
    TOKEN_COUNT = sizeof TOKENS / sizeof *TOKENS,
    MATRIX_COUNT = sizeof MATRICES / sizeof *MATRICES,
    FREE_COUNT = TOKEN_COUNT * MATRIX_COUNT
};

enum vp_status vp_shape_rows_free(struct vp_ctx *ctx, struct vp_buf *out, const struct vp_gpu *gpu,
                                  uint32_t wanted) {
    struct vp_kernel_sample items[FREE_COUNT] = {0};
    struct vp_kernel_samples all = {.form = VP_FORM_GEMM, .items = items};
    uint32_t chosen[FREE_COUNT];
    const char *const types[] = {"bfloat16", gpu && gpu->tflops_fp8 > 0 ? "fp8" : NULL};
    for (int t = 0; t < TOKEN_COUNT; t++)
        for (int m = 0; m < MATRIX_COUNT; m++)
            items[all.count++].shape =
                (struct vp_shape){{TOKENS[t], MATRICES[m][0], MATRICES[m][1]}};
    uint32_t n = vp_choose_shapes(ctx->arena, chosen, &all, wanted);
    vp_buf_add(out, "dtype,m,n,k\n");
    for (size_t i = 0; i < sizeof types / sizeof *types && types[i]; i++)
        for (uint32_t k = 0; k < n; k++) {
            const double *size = items[chosen[k]].shape.size;
            vp_buf_printf(out, "%s,%.0f,%.0f,%.0f\n", types[i], size[0], size[1], size[2]);
        }
    return VP_OK;
}
