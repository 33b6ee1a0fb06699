#include "planner/import/samples_reader.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/base/units.h"
#include "planner/doc/csv.h"

enum { MAX_BAD_ROWS = 20 }; /* of one file that are told one by one */

struct reading {
    struct vp_ctx *ctx;
    struct vp_samples *out;
    const struct vp_csv *csv;
    uint32_t file, row, bad;
};

static struct vp_sample_row place(const struct reading *r) {
    return (struct vp_sample_row){r->file, r->row, r->csv->lines[r->row]};
}

/* False always. hint may be NULL. */
static bool bad_row(struct reading *r, const char *hint, const char *column, const char *cell,
                    const char *want) {
    struct vp_pos pos = {r->csv->name, r->csv->lines[r->row], 0};
    if (++r->bad > MAX_BAD_ROWS)
        return false;
    vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &pos, "%s is %s%.60s%s, not %s", column,
                *cell ? "\"" : "", *cell ? cell : "empty", *cell ? "\"" : "", want);
    if (hint)
        vp_diag_hint(r->ctx->diags, "%s", hint);
    return false;
}

static const char *cell_of(const struct reading *r, const char *column) {
    return vp_csv_cell(r->csv, r->row, vp_csv_column(r->csv, column));
}

static bool number(struct reading *r, double *out, const char *column, double least) {
    static const double MOST = 1e15;
    const char *cell = cell_of(r, column);
    if (vp_parse_real(out, cell) && *out >= least && *out <= MOST)
        return true;
    return bad_row(r, NULL, column, cell,
                   least > 0 && least < 1
                       ? "a number above 0"
                       : vp_arena_printf(r->ctx->arena, "a number, %g or more", least));
}

/* A column that need not be there, nor filled in. */
static bool optional(struct reading *r, double *out, const char *column, double least,
                     double missing) {
    *out = missing;
    if (vp_csv_column(r->csv, column) < 0 || !*cell_of(r, column))
        return true;
    return number(r, out, column, least);
}

/* ---- kernels ---- */

static bool rate_of(int *out, const char *dtype) {
    static const struct {
        const char *name;
        enum vp_rate rate;
    } NAMES[] = {
        {"bfloat16", VP_RATE_BF16}, {"bf16", VP_RATE_BF16},           {"float16", VP_RATE_FP16},
        {"fp16", VP_RATE_FP16},     {"float32", VP_RATE_FP32},        {"fp32", VP_RATE_FP32},
        {"fp8", VP_RATE_FP8},       {"fp8_block", VP_RATE_FP8_BLOCK}, {"int8", VP_RATE_INT8},
        {"fp4", VP_RATE_FP4},       {"nvfp4", VP_RATE_FP4},           {"mxfp4", VP_RATE_FP4}};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (vp_text_eq(dtype, NAMES[i].name)) {
            *out = (int)NAMES[i].rate;
            return true;
        }
    return false;
}

static bool kv_of(int *out, const char *dtype) {
    int rate = 0;
    if (!rate_of(&rate, dtype) || rate == VP_RATE_FP32 || rate == VP_RATE_FP4 ||
        rate == VP_RATE_FP8_BLOCK)
        return false;
    *out = rate == VP_RATE_FP8 || rate == VP_RATE_INT8 ? VP_KV_8 : VP_KV_16;
    return true;
}

/* NULL: there are none of that kind. */
static struct vp_kernel_samples *find_rows(const struct vp_samples *samples, enum vp_form form,
                                           int variant) {
    for (uint32_t i = 0; i < samples->kernel_count; i++)
        if (samples->kernels[i].form == form && samples->kernels[i].variant == variant)
            return &samples->kernels[i];
    return NULL;
}

static void add_kernel(struct reading *r, enum vp_form form, int variant, const char *dtype,
                       const struct vp_kernel_sample *sample) {
    enum { MOST_KINDS = VP_RATES + 2 * VP_KV_WIDTHS };
    struct vp_samples *all = r->out;
    struct vp_kernel_samples *into = find_rows(all, form, variant);
    if (!into) {
        if (!all->kernels)
            all->kernels = VP_NEW_ARRAY(r->ctx->arena, MOST_KINDS, struct vp_kernel_samples);
        into = &all->kernels[all->kernel_count++];
        *into = (struct vp_kernel_samples){.form = form, .variant = variant, .dtype = dtype};
    }
    if (into->count == into->capacity) {
        uint32_t capacity = into->capacity ? 2 * into->capacity : 64;
        struct vp_kernel_sample *more =
            VP_NEW_ARRAY(r->ctx->arena, capacity, struct vp_kernel_sample);
        if (into->count)
            memcpy(more, into->items, into->count * sizeof *more);
        into->items = more;
        into->capacity = capacity;
    }
    into->items[into->count++] = *sample;
}

static void read_gemm(struct reading *r) {
    /* As in the public tables; what the probe measures says its own number. */
    static const double COPIES = 6;
    struct vp_kernel_sample sample = {.at = place(r)};
    const char *dtype = cell_of(r, "dtype");
    int rate = 0;
    bool ok = rate_of(&rate, dtype);
    if (!ok)
        bad_row(r, "bfloat16, float16, fp8, fp8_block, int8, fp4", "dtype", dtype,
                "a type of matrix products");
    ok &= number(r, &sample.shape.size[0], "m", 1);
    ok &= number(r, &sample.shape.size[1], "n", 1);
    ok &= number(r, &sample.shape.size[2], "k", 1);
    ok &= number(r, &sample.us, "latency_us", 1e-6);
    ok &= optional(r, &sample.copies, "copies", 0, COPIES);
    if (ok)
        add_kernel(r, VP_FORM_GEMM, rate, dtype, &sample);
}

static void read_attention(struct reading *r) {
    struct vp_kernel_sample sample = {.at = place(r)};
    const char *dtype = cell_of(r, "kv_dtype");
    double fresh = 0, past = 0, *size = sample.shape.size;
    int width = 0;
    bool ok = kv_of(&width, dtype);
    if (!ok)
        bad_row(r, "bfloat16, float16, fp8, int8", "kv_dtype", dtype, "a type of KV caches");
    ok &= number(r, &size[0], "batch", 1);
    ok &= number(r, &fresh, "new_tokens", 1);
    ok &= number(r, &past, "past_tokens", 0);
    ok &= number(r, &size[2], "heads", 1);
    ok &= number(r, &size[3], "kv_heads", 1);
    ok &= number(r, &size[4], "head_dim", 1);
    ok &= number(r, &sample.us, "latency_us", 1e-6);
    ok &= optional(r, &sample.copies, "copies", 0, 1);
    if (ok && size[3] > size[2])
        ok = bad_row(r, NULL, "kv_heads", cell_of(r, "kv_heads"), "at most heads");
    if (ok && fresh > 1 && past > 0)
        ok = bad_row(r, "a prefill has past_tokens 0, a decode new_tokens 1", "past_tokens",
                     cell_of(r, "past_tokens"), "0 while new_tokens is above 1");
    if (!ok)
        return;
    bool decode = past > 0;
    size[1] = decode ? past : fresh;
    add_kernel(r, decode ? VP_FORM_DECODE : VP_FORM_PREFILL, width, dtype, &sample);
}

/* ---- figures ---- */

static void read_reduce(struct reading *r) {
    struct vp_samples *all = r->out;
    struct vp_reduce_sample sample = {.at = place(r)};
    static const struct {
        const char *name;
        double bytes;
    } TYPES[] = {{"bfloat16", 2}, {"float16", 2}, {"float32", 4},
                 {"uint8", 1},    {"int8", 1},    {"fp8", 1}};
    const char *dtype = cell_of(r, "dtype"), *backend = cell_of(r, "backend");
    double gpus = 0, elements = 0, width = 0;
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++)
        if (vp_text_eq(dtype, TYPES[i].name))
            width = TYPES[i].bytes;
    bool ok = width > 0;
    if (!ok)
        bad_row(r, "bfloat16, float16, float32, uint8", "dtype", dtype, "a type of elements");
    ok &= number(r, &gpus, "gpus", 2);
    ok &= number(r, &elements, "elements", 1);
    ok &= number(r, &sample.us, "latency_us", 1e-6);
    if (!ok)
        return;
    sample.gpus = (uint64_t)gpus;
    sample.graph = vp_text_ends(backend, "graph");
    sample.bytes = elements * width;
    all->reduces[all->reduce_count++] = sample;
}

static void read_figure(struct reading *r) {
    static const char *const BANDWIDTHS[] = {
        "read", "copy", "mul", "add", "triad", "dot", "write", "host_to_device", "device_to_host"};
    struct vp_samples *all = r->out;
    struct vp_figure_sample sample = {.name = cell_of(r, "operation"), .at = place(r)};
    bool known = vp_text_eq(sample.name, "launch");
    bool rate = vp_csv_column(r->csv, "latency_us") < 0;
    for (size_t i = 0; rate && i < sizeof BANDWIDTHS / sizeof *BANDWIDTHS; i++)
        known |= vp_text_eq(sample.name, BANDWIDTHS[i]);
    if (!known || rate == vp_text_eq(sample.name, "launch"))
        return; /* other operations are nothing that a plan asks for */
    bool tera = vp_csv_column(r->csv, "tb_per_s") >= 0;
    if (!number(r, &sample.value, rate ? tera ? "tb_per_s" : "gb_per_s" : "latency_us", 1e-6))
        return;
    sample.value *= tera && rate ? 1000 : 1;
    all->figures[all->figure_count++] = sample;
}

static void read_constant(struct reading *r) {
    struct vp_samples *all = r->out;
    struct vp_figure_sample sample = {.name = cell_of(r, "constant"), .at = place(r)};
    if (number(r, &sample.value, "bytes", 0))
        all->figures[all->figure_count++] = sample;
}

static void read_nothing(struct reading *r) { (void)r; }

/* ---- files ---- */

static bool has_all(const struct vp_csv *csv, const char *const *columns, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (vp_csv_column(csv, columns[i]) < 0)
            return false;
    return true;
}

static const struct kind {
    const char *columns[10];
    size_t count;
    void (*read)(struct reading *r); /* NULL: of served requests */
} KINDS[] = {
    {{"kernel", "dtype", "bytes", "latency_us"}, 4, read_nothing}, /* has a product's columns too */
    {{"dtype", "m", "n", "k", "latency_us"}, 5, read_gemm},
    {{"kv_dtype", "batch", "new_tokens", "past_tokens", "heads", "kv_heads", "head_dim",
      "latency_us"},
     8,
     read_attention},
    {{"backend", "dtype", "gpus", "elements", "latency_us"}, 5, read_reduce},
    {{"operation", "tb_per_s"}, 2, read_figure},
    {{"operation", "gb_per_s"}, 2, read_figure},
    {{"operation", "latency_us"}, 2, read_figure},
    {{"constant", "bytes"}, 2, read_constant},
    {{"model", "gpu", "engine", "ttft_ms", "tpot_ms"}, 5, NULL},
    /* as that one, what the probe writes beside the others: nothing is fitted to it */
    {{"data", "format", "scale", "largest_error"}, 4, read_nothing},
    {{"tokens", "hidden_size", "intermediate_size", "latency_us"}, 4, read_nothing},
    {{"property", "value"}, 2, read_nothing},
};

static const struct kind *kind_of(struct vp_ctx *ctx, const struct vp_csv *csv) {
    struct vp_pos pos = {csv->name, 1, 0};
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (has_all(csv, KINDS[i].columns, KINDS[i].count))
            return &KINDS[i];
    vp_diag_add(ctx->diags, VP_D_MISSING_VALUE, &pos,
                "the columns are those of no kind of samples that is known");
    vp_diag_hint(ctx->diags, "a table of matrix products, for example, begins with the line "
                             "dtype,m,n,k,latency_us; docs/CALIBRATION.md lists all kinds");
    return NULL;
}

/* Room for rows of tables that grow by whole files. */
static void *more_room(struct vp_ctx *ctx, const void *items, size_t count, size_t more,
                       size_t size) {
    void *room = vp_arena_array(ctx->arena, count + more + 1, size);
    if (count)
        memcpy(room, items, count * size);
    return room;
}

static void make_room(struct reading *r) {
    struct vp_samples *all = r->out;
    all->reduces =
        more_room(r->ctx, all->reduces, all->reduce_count, r->csv->rows, sizeof *all->reduces);
    all->figures =
        more_room(r->ctx, all->figures, all->figure_count, r->csv->rows, sizeof *all->figures);
}

static void read_rows(struct reading *r, const struct kind *kind) {
    bool marked = vp_csv_column(r->csv, "noisy") >= 0;
    make_room(r);
    for (r->row = 0; r->row < r->csv->rows; r->row++) {
        if (marked && vp_text_eq(cell_of(r, "noisy"), "1"))
            r->out->noisy++;
        else
            kind->read(r);
    }
    if (r->bad > MAX_BAD_ROWS) {
        struct vp_pos pos = {r->csv->name, 0, 0};
        vp_diag_add(r->ctx->diags, VP_D_BAD_VALUE, &pos, "%" PRIu32 " more rows with faults",
                    r->bad - MAX_BAD_ROWS);
    }
}

static enum vp_status read_file(struct vp_ctx *ctx, struct vp_samples *out, const char *path) {
    uint32_t errors = ctx->diags->errors;
    struct vp_csv *csv = VP_NEW(ctx->arena, struct vp_csv);
    enum vp_status status = vp_csv_read(ctx, csv, path);
    if (status == VP_ERR_ENV || csv->columns == 0)
        return status == VP_OK ? VP_ERR_INPUT : status;
    const struct kind *kind = kind_of(ctx, csv);
    if (!kind)
        return VP_ERR_INPUT;
    struct reading r = {.ctx = ctx, .out = out, .csv = csv, .file = out->file_count};
    out->files[out->file_count++] =
        (struct vp_sample_file){.path = path, .table = csv, .serving = !kind->read};
    if (kind->read && kind->read != read_nothing)
        read_rows(&r, kind);
    return ctx->diags->errors > errors ? VP_ERR_INPUT : status;
}

enum vp_status vp_samples_read(struct vp_ctx *ctx, struct vp_samples *out, const char *const *paths,
                               size_t count) {
    enum vp_status status = VP_OK;
    *out = (struct vp_samples){0};
    if (count > VP_SAMPLES_MAX_FILES) {
        vp_diag_add(ctx->diags, VP_D_CAP, NULL, "more than %d files of samples, the cap",
                    (int)VP_SAMPLES_MAX_FILES);
        return VP_ERR_INPUT;
    }
    out->files = VP_NEW_ARRAY(ctx->arena, count, struct vp_sample_file);
    for (size_t i = 0; i < count; i++) {
        enum vp_status one = read_file(ctx, out, paths[i]);
        status = one > status ? one : status;
    }
    return status;
}
