#include "cli/probe_report.h"

#include <inttypes.h>
#include <math.h>

#include "reports/report.h"

/* ---- two kernels of one shape, compared ---- */

/* The row of a kernel with the sizes of row `like`; -1: none. */
static int64_t row_like(const struct vp_csv *csv, const char *kernel, uint32_t like) {
    for (uint32_t i = 0; i < csv->rows; i++)
        if (vp_text_eq(vp_probe_text(csv, i, "kernel"), kernel) &&
            vp_text_eq(vp_probe_text(csv, i, "m"), vp_probe_text(csv, like, "m")) &&
            vp_text_eq(vp_probe_text(csv, i, "n"), vp_probe_text(csv, like, "n")))
            return i;
    return -1;
}

/* LayerNorm and GeLU as one kernel and as two. */
struct fusion {
    const char *rows, *columns;
    double bytes_fused, bytes_apart, us_fused, us_apart;
};
static bool fusion_of(struct fusion *out, const struct vp_csv *csv, uint32_t row) {
    if (!vp_text_eq(vp_probe_text(csv, row, "kernel"), "layernorm_gelu"))
        return false;
    int64_t apart = row_like(csv, "layernorm_then_gelu", row);
    if (apart < 0)
        return false;
    *out = (struct fusion){vp_probe_text(csv, row, "m"),
                           vp_probe_text(csv, row, "n"),
                           vp_probe_number(csv, row, "bytes"),
                           vp_probe_number(csv, (uint32_t)apart, "bytes"),
                           vp_probe_number(csv, row, "latency_us"),
                           vp_probe_number(csv, (uint32_t)apart, "latency_us")};
    return out->us_fused > 0 && out->us_apart > 0;
}

/* A tape that is computed again, and the same tape read back: the next row. */
struct tape {
    const char *rows, *columns, *from;
    double recompute_us, read_us;
};
static bool tape_of(struct tape *out, const struct vp_csv *csv, uint32_t row) {
    if (!vp_text_eq(vp_probe_text(csv, row, "kernel"), "recompute") || row + 1 >= csv->rows ||
        !vp_text_eq(vp_probe_text(csv, row + 1, "kernel"), "tape_read"))
        return false;
    *out = (struct tape){vp_probe_text(csv, row, "m"), vp_probe_text(csv, row, "n"),
                         vp_probe_text(csv, row, "k"), vp_probe_number(csv, row, "latency_us"),
                         vp_probe_number(csv, row + 1, "latency_us")};
    return true;
}

/* ---- text ---- */

static void device_lines(const struct vp_page *page, const struct vp_probe_result *result) {
    static const char *const SHOWN[] = {"arch", "driver", "library", "kernels"};
    struct vp_buf text = {.arena = page->out->arena};
    const struct vp_probe_outcome *o = result->outcome;

    for (size_t i = 0; i < sizeof SHOWN / sizeof *SHOWN; i++) {
        const char *value = vp_probe_property(result->folder, SHOWN[i]);
        if (*value)
            vp_buf_printf(&text, "%s%s", text.size ? ", " : "", value);
    }
    vp_page_title(page, vp_probe_property(result->folder, "name"));
    vp_page_wrap(page, 2, 2, vp_buf_text(&text));
    vp_page_printf(page, 2, 2,
                   "%" PRIu64 " figures, %" PRIu64 " of them noisy; %" PRIu64 " not measured",
                   o->figures, o->noisy, o->left_out + o->troubles);
}

static void rates(const struct vp_page *page, const struct vp_csv *csv, const char *column,
                  const char *unit) {
    for (uint32_t i = 0; csv && i < csv->rows; i++)
        vp_page_printf(page, 2, 4, "%s: %.4g %s", vp_probe_text(csv, i, "operation"),
                       vp_probe_number(csv, i, column), unit);
}

/* The best of each type. */
static void best_products(const struct vp_page *page, const struct vp_csv *csv) {
    for (uint32_t i = 0, best; csv && i < csv->rows; i++) {
        const char *dtype = vp_probe_text(csv, i, "dtype");
        double rate = 0;
        if (i > 0 && vp_text_eq(dtype, vp_probe_text(csv, i - 1, "dtype")))
            continue;
        best = i;
        for (uint32_t k = i; k < csv->rows; k++) {
            double us = vp_probe_number(csv, k, "latency_us");
            double flops = 2 * vp_probe_number(csv, k, "m") * vp_probe_number(csv, k, "n") *
                           vp_probe_number(csv, k, "k");
            if (vp_text_eq(vp_probe_text(csv, k, "dtype"), dtype) && us > 0 && flops / us > rate) {
                rate = flops / us;
                best = k;
            }
        }
        vp_page_printf(page, 2, 4, "products, %s: %.4g TFLOP/s at %s x %s x %s", dtype, rate / 1e6,
                       vp_probe_text(csv, best, "m"), vp_probe_text(csv, best, "n"),
                       vp_probe_text(csv, best, "k"));
    }
}

static void compared_kernels(const struct vp_page *page, const struct vp_csv *csv) {
    struct fusion f;
    struct tape t;
    for (uint32_t i = 0; csv && i < csv->rows; i++) {
        if (fusion_of(&f, csv, i))
            vp_page_printf(page, 2, 4,
                           "LayerNorm and GeLU of %s x %s in one kernel: %.0f %% of the bytes, "
                           "%.0f %% of the time",
                           f.rows, f.columns, 100 * f.bytes_fused / f.bytes_apart,
                           100 * f.us_fused / f.us_apart);
        if (tape_of(&t, csv, i))
            vp_page_printf(page, 2, 4,
                           "%s x %s activations: %.4g us to compute them again from %s, %.4g us "
                           "to read them back",
                           t.rows, t.columns, t.recompute_us, t.from, t.read_us);
    }
}

static void error_table(const struct vp_page *page, const struct vp_csv *csv) {
    enum { NAME = 38, FIGURE = 13 };
    struct vp_arena *arena = page->out->arena;
    if (!csv)
        return;
    vp_page_left(page, "errors of narrow formats", NAME);
    vp_page_right(page, "largest", FIGURE);
    vp_page_right(page, "rms/rms", FIGURE);
    vp_page_right(page, "below 0.01", FIGURE);
    vp_buf_add(page->out, "\n");
    for (uint32_t i = 0; i < csv->rows; i++) {
        vp_page_left(page,
                     vp_arena_printf(arena, "  %s, %s, %s", vp_probe_text(csv, i, "data"),
                                     vp_probe_text(csv, i, "format"),
                                     vp_probe_text(csv, i, "scale")),
                     NAME);
        vp_page_right(
            page, vp_arena_printf(arena, "%.3g", vp_probe_number(csv, i, "largest_error")), FIGURE);
        vp_page_right(
            page,
            vp_arena_printf(arena, "%.2f %%", 100 * vp_probe_number(csv, i, "rms_relative_error")),
            FIGURE);
        vp_page_right(
            page, vp_arena_printf(arena, "%.1f %%", 100 * vp_probe_number(csv, i, "below_0_01")),
            FIGURE);
        vp_buf_add(page->out, "\n");
    }
}

static void verification_table(const struct vp_page *page, const struct vp_probe_result *result) {
    enum { NAME = 36, FIGURE = 13 };
    static const char *const TITLES[] = {"predicted us", "measured us", "error"};
    const struct vp_verification *v = result->verification;
    struct vp_arena *arena = page->out->arena;

    vp_page_title(
        page, vp_arena_printf(arena, "%s against transformer blocks", result->verified_by->path));
    vp_page_left(page, "tokens, width, feed-forward", NAME);
    for (size_t i = 0; i < sizeof TITLES / sizeof *TITLES; i++)
        vp_page_right(page, TITLES[i], FIGURE);
    vp_buf_add(page->out, "\n");
    for (uint32_t i = 0; i < v->count; i++) {
        const struct vp_verified *r = &v->rows[i];
        vp_page_left(page,
                     vp_arena_printf(arena, "%" PRIu64 ", %" PRIu64 ", %" PRIu64 "%s", r->tokens,
                                     r->layer.hidden, r->layer.intermediate,
                                     r->noisy ? " (noisy)" : ""),
                     NAME);
        bool known = r->predicted.basis != VP_BASIS_NONE;
        vp_page_right(page,
                      known ? vp_arena_printf(arena, "%.4g", r->predicted.likely) : "not known",
                      FIGURE);
        vp_page_right(page, vp_arena_printf(arena, "%.4g", r->measured_us), FIGURE);
        vp_page_right(page,
                      known ? vp_arena_printf(arena, "%.1f %%",
                                              100 * fabs(r->predicted.likely / r->measured_us - 1))
                            : "",
                      FIGURE);
        vp_buf_add(page->out, "\n");
    }
    if (v->good)
        vp_page_printf(page, 0, 2, "median error %.1f %%; %.0f %% inside the predicted intervals",
                       100 * v->median, 100 * v->within);
    else
        vp_page_wrap(page, 0, 2,
                     "every block is noisy or beyond what was measured: nothing can be said");
}

void vp_probe_report_text(const struct vp_page *page, const struct vp_probe_result *result,
                          bool verbose) {
    const struct vp_probe_folder *folder = result->folder;

    device_lines(page, result);
    rates(page, folder->launch, "latency_us", "us");
    rates(page, folder->bandwidth, "gb_per_s", "GB/s");
    best_products(page, folder->gemm);
    compared_kernels(page, folder->kernels);
    error_table(page, folder->errors);
    if (result->verification)
        verification_table(page, result);
    if (result->fitted)
        vp_calibrate_report_text(page, result->fitted, verbose);
}

/* ---- JSON ---- */

static void device_json(struct vp_json *json, const struct vp_csv *device) {
    vp_json_key(json, "device");
    vp_json_map(json);
    for (uint32_t i = 0; device && i < device->rows; i++)
        vp_json_key_text(json, vp_probe_text(device, i, "property"),
                         vp_probe_text(device, i, "value"));
    vp_json_end(json, '}');
}

/* {data: {format: {scale: figures}}}; rows of one data set and format stand together. */
static void errors_json(struct vp_json *json, const struct vp_csv *csv) {
    const char *data = "", *format = "";

    vp_json_key(json, "errors");
    vp_json_map(json);
    for (uint32_t i = 0; csv && i < csv->rows; i++) {
        bool new_data = !vp_text_eq(vp_probe_text(csv, i, "data"), data);
        bool new_format = new_data || !vp_text_eq(vp_probe_text(csv, i, "format"), format);
        if (new_format && *format)
            vp_json_end(json, '}');
        if (new_data && *data)
            vp_json_end(json, '}');
        data = vp_probe_text(csv, i, "data");
        format = vp_probe_text(csv, i, "format");
        if (new_data) {
            vp_json_key(json, data);
            vp_json_map(json);
        }
        if (new_format) {
            vp_json_key(json, format);
            vp_json_map(json);
        }
        vp_json_key(json, vp_probe_text(csv, i, "scale"));
        vp_json_map_inline(json);
        vp_json_key_real(json, "largest", vp_probe_number(csv, i, "largest_error"));
        vp_json_key_real(json, "largest_relative",
                         vp_probe_number(csv, i, "largest_relative_error"));
        vp_json_key_real(json, "rms_relative", vp_probe_number(csv, i, "rms_relative_error"));
        vp_json_key_real(json, "below_0_01", vp_probe_number(csv, i, "below_0_01"));
        vp_json_end(json, '}');
    }
    for (int open = *format ? 2 : 0; open > 0; open--)
        vp_json_end(json, '}');
    vp_json_end(json, '}');
}

static void kernels_json(struct vp_json *json, const struct vp_csv *csv) {
    struct fusion f;
    struct tape t;

    vp_json_key(json, "fusion");
    vp_json_list(json);
    for (uint32_t i = 0; csv && i < csv->rows; i++)
        if (fusion_of(&f, csv, i)) {
            vp_json_map_inline(json);
            vp_json_key_text(json, "m", f.rows);
            vp_json_key_text(json, "n", f.columns);
            vp_json_key_real(json, "bytes_share", f.bytes_fused / f.bytes_apart);
            vp_json_key_real(json, "time_share", f.us_fused / f.us_apart);
            vp_json_end(json, '}');
        }
    vp_json_end(json, ']');
    vp_json_key(json, "tapes");
    vp_json_list(json);
    for (uint32_t i = 0; csv && i < csv->rows; i++)
        if (tape_of(&t, csv, i)) {
            vp_json_map_inline(json);
            vp_json_key_text(json, "m", t.rows);
            vp_json_key_text(json, "n", t.columns);
            vp_json_key_text(json, "k", t.from);
            vp_json_key_real(json, "recompute_us", t.recompute_us);
            vp_json_key_real(json, "read_us", t.read_us);
            vp_json_end(json, '}');
        }
    vp_json_end(json, ']');
}

static void fitted_json(struct vp_json *json, const struct vp_calibrate_result *fitted) {
    vp_json_key_text(json, "profile", fitted ? fitted->written : NULL);
    vp_json_key_text(json, "gpu", fitted ? fitted->calibration->gpu : NULL);
    vp_json_key(json, "kernels");
    vp_json_list(json);
    for (uint32_t i = 0; fitted && i < fitted->kernels.count; i++) {
        const struct vp_calibrated *k = &fitted->kernels.items[i];
        vp_json_map_inline(json);
        vp_json_key_text(json, "kind", vp_form_name(k->form));
        vp_json_key_text(json, "dtype", k->dtype);
        vp_json_key_u64(json, "rows", k->fit->quality.rows);
        vp_json_key_real(json, "median_abs_rel_error", k->fit->quality.median);
        vp_json_key_real(json, "p90_abs_rel_error", k->fit->quality.p90);
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

static void verification_json(struct vp_json *json, const struct vp_verification *v) {
    vp_json_key(json, "verification");
    if (!v) {
        vp_json_null(json);
        return;
    }
    vp_json_map(json);
    vp_json_key_u64(json, "blocks", v->count);
    vp_json_key_u64(json, "good", v->good);
    vp_json_key(json, "median_abs_rel_error");
    v->good ? vp_json_real(json, v->median) : vp_json_null(json);
    vp_json_key(json, "within_interval");
    v->good ? vp_json_real(json, v->within) : vp_json_null(json);
    vp_json_key(json, "rows");
    vp_json_list(json);
    for (uint32_t i = 0; i < v->count; i++) {
        const struct vp_verified *r = &v->rows[i];
        vp_json_map_inline(json);
        vp_json_key_u64(json, "tokens", r->tokens);
        vp_json_key_u64(json, "hidden_size", r->layer.hidden);
        vp_json_key_real(json, "measured_us", r->measured_us);
        bool known = r->predicted.basis != VP_BASIS_NONE;
        vp_json_key_real(json, "low_us", known ? r->predicted.low : NAN);
        vp_json_key_real(json, "likely_us", known ? r->predicted.likely : NAN);
        vp_json_key_real(json, "high_us", known ? r->predicted.high : NAN);
        vp_json_key_bool(json, "noisy", r->noisy);
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
    vp_json_end(json, '}');
}

void vp_probe_report_json(struct vp_buf *out, const struct vp_probe_result *result,
                          const struct vp_diags *diags) {
    struct vp_json json = vp_json_begin(out);
    const struct vp_probe_outcome *o = result->outcome;

    vp_json_map(&json);
    vp_json_key_text(&json, "schema", "vramplan.probe/1");
    device_json(&json, result->folder->device);
    vp_json_key_u64(&json, "figures", o->figures);
    vp_json_key_u64(&json, "noisy", o->noisy);
    vp_json_key_u64(&json, "left_out", o->left_out);
    vp_json_key_u64(&json, "troubles", o->troubles);
    fitted_json(&json, result->fitted);
    kernels_json(&json, result->folder->kernels);
    errors_json(&json, result->folder->errors);
    verification_json(&json, result->verification);
    vp_json_key(&json, "diagnostics");
    vp_report_json_diagnostics(&json, diags);
    vp_json_end(&json, '}');
    vp_buf_add(out, "\n");
}
