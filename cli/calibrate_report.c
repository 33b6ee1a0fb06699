#include "cli/calibrate_report.h"

#include <inttypes.h>
#include <string.h>

#include "planner/base/units.h"
#include "reports/report.h"

enum { KIND_CELLS = 30, COUNT_CELLS = 9, SHARE_CELLS = 9 };

static const char *kind_of(struct vp_arena *arena, const char *kind, const char *dtype) {
    return vp_arena_printf(arena, "%s %s", kind, dtype);
}

static const char *percent(struct vp_arena *arena, double share) {
    return vp_arena_printf(arena, "%.1f %%", share * 100);
}

static void end_line(const struct vp_page *page) { vp_buf_add(page->out, "\n"); }

/* "gemm.csv:12" */
static const char *place_of(struct vp_arena *arena, const struct vp_samples *samples,
                            const struct vp_sample_row *at) {
    return vp_arena_printf(arena, "%s:%" PRIu32, samples->files[at->file].path, at->line);
}

/* ---- what was fitted ---- */

static void fitted_row(const struct vp_page *page, const struct vp_calibrated *item) {
    struct vp_arena *arena = page->out->arena;
    const struct vp_form_fit *fit = item->fit;
    vp_page_left(page, kind_of(arena, vp_form_name(item->form), item->dtype), KIND_CELLS);
    vp_page_right(page, vp_format_u64(arena, fit->quality.rows), COUNT_CELLS);
    vp_page_right(page, percent(arena, fit->quality.median), SHARE_CELLS);
    vp_page_right(page, percent(arena, fit->quality.p90), SHARE_CELLS);
    vp_page_right(page, vp_format_u64(arena, fit->anchor_count), COUNT_CELLS);
    vp_page_right(page, vp_format_u64(arena, item->outliers.count), SHARE_CELLS);
    end_line(page);
}

static void fitted_table(const struct vp_page *page, const struct vp_calibrate_report *report) {
    static const char *const TITLES[] = {"rows", "median", "p90", "anchors", "dropped"};
    vp_page_left(page, "kernel", KIND_CELLS);
    for (size_t i = 0; i < sizeof TITLES / sizeof *TITLES; i++)
        vp_page_right(page, TITLES[i], i == 0 || i == 3 ? COUNT_CELLS : SHARE_CELLS);
    end_line(page);
    for (uint32_t i = 0; i < report->count; i++)
        fitted_row(page, &report->items[i]);
    vp_page_wrap(page, 0, 0,
                 "median and p90: error on rows as all other rows predict them; dropped: rows that "
                 "the others contradict, which correct nothing");
}

static void dropped_rows(const struct vp_page *page, const struct vp_calibrate_result *result,
                         bool verbose) {
    enum { SOME = 5 };
    struct vp_arena *arena = page->out->arena;
    for (uint32_t i = 0; i < result->kernels.count; i++) {
        const struct vp_calibrated *item = &result->kernels.items[i];
        uint32_t shown = verbose || item->outliers.count <= SOME ? item->outliers.count : SOME;
        for (uint32_t k = 0; k < shown; k++) {
            const struct vp_fit_outlier *row = &item->outliers.items[k];
            vp_page_printf(page, 0, 2, "dropped %s: %s %s, %.2f times what the others say",
                           place_of(arena, result->samples, &row->at), vp_form_name(item->form),
                           item->dtype, row->ratio);
        }
        if (shown < item->outliers.count)
            vp_page_printf(page, 0, 2, "dropped %" PRIu32 " more of %s %s; -v names them",
                           item->outliers.count - shown, vp_form_name(item->form), item->dtype);
    }
}

static void served_lines(const struct vp_page *page, const struct vp_calibrate_result *result) {
    const struct vp_calibration *c = result->calibration;
    for (uint32_t i = 0; i < c->serving_count; i++) {
        const struct vp_serving_fit *s = &c->serving[i];
        vp_page_printf(page, 0, 2,
                       "%s: time per token median %.1f %%, p90 %.1f %% over %" PRIu32
                       " rows; first token median %.1f %%, p90 %.1f %% over %" PRIu32,
                       s->engine, s->tpot.median * 100, s->tpot.p90 * 100, s->tpot.rows,
                       s->ttft.median * 100, s->ttft.p90 * 100, s->ttft.rows);
    }
    for (int i = 0; i < VP_SERVED_SKIPS; i++)
        if (result->serving.rows[i])
            vp_page_printf(page, 0, 2, "served rows: %" PRIu32 " %s", result->serving.rows[i],
                           vp_served_skip_name((enum vp_served_skip)i));
    if (result->serving.refused)
        vp_page_printf(page, 0, 2, "the first refused: %s", result->serving.refused);
}

void vp_calibrate_report_text(const struct vp_page *page, const struct vp_calibrate_result *result,
                              bool verbose) {
    const struct vp_calibration *c = result->calibration;
    vp_page_title(page, vp_arena_printf(page->out->arena, "%s: %s", result->written, c->gpu));
    if (result->kernels.count)
        fitted_table(page, &result->kernels);
    for (uint32_t i = 0; i < c->reduce_count; i++)
        vp_page_printf(page, 0, 2, "all-reduce over %" PRIu64 " GPUs, %s: %" PRIu32 " sizes",
                       c->reduces[i].gpus, c->reduces[i].graph ? "in a graph" : "launched",
                       c->reduces[i].count);
    if (c->copy_gbs > 0 || c->read_gbs > 0)
        vp_page_printf(page, 0, 2, "memory streams at %.0f GB/s",
                       c->copy_gbs > 0 ? c->copy_gbs : c->read_gbs);
    if (result->served)
        served_lines(page, result);
    if (result->samples->noisy)
        vp_page_printf(page, 0, 2, "%" PRIu32 " rows marked as noisy were left out",
                       result->samples->noisy);
    dropped_rows(page, result, verbose);
}

static void quality_keys(struct vp_json *json, const struct vp_fit_quality *q) {
    vp_json_key_u64(json, "rows", q->rows);
    vp_json_key_real(json, "median_abs_rel_error", q->median);
    vp_json_key_real(json, "p90_abs_rel_error", q->p90);
}

static void fitted_json(struct vp_json *json, const struct vp_calibrate_result *result) {
    struct vp_arena *arena = json->out->arena;
    vp_json_key(json, "kernels");
    vp_json_list(json);
    for (uint32_t i = 0; i < result->kernels.count; i++) {
        const struct vp_calibrated *item = &result->kernels.items[i];
        vp_json_map(json);
        vp_json_key_text(json, "kind", vp_form_name(item->form));
        vp_json_key_text(json, "dtype", item->dtype);
        quality_keys(json, &item->fit->quality);
        vp_json_key_u64(json, "anchors", item->fit->anchor_count);
        vp_json_key(json, "dropped");
        vp_json_list(json);
        for (uint32_t k = 0; k < item->outliers.count; k++) {
            vp_json_map_inline(json);
            vp_json_key_text(json, "row",
                             place_of(arena, result->samples, &item->outliers.items[k].at));
            vp_json_key_real(json, "ratio", item->outliers.items[k].ratio);
            vp_json_end(json, '}');
        }
        vp_json_end(json, ']');
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

static void served_json(struct vp_json *json, const struct vp_calibrate_result *result) {
    const struct vp_calibration *c = result->calibration;
    vp_json_key(json, "serving");
    vp_json_list(json);
    for (uint32_t i = 0; result->served && i < c->serving_count; i++) {
        vp_json_map(json);
        vp_json_key_text(json, "engine", c->serving[i].engine);
        vp_json_key(json, "tpot");
        vp_json_map_inline(json);
        quality_keys(json, &c->serving[i].tpot);
        vp_json_end(json, '}');
        vp_json_key(json, "ttft");
        vp_json_map_inline(json);
        quality_keys(json, &c->serving[i].ttft);
        vp_json_end(json, '}');
        vp_json_end(json, '}');
    }
    vp_json_end(json, ']');
}

static struct vp_json begin(struct vp_buf *out, const struct vp_calibration *calibration) {
    struct vp_json json = vp_json_begin(out);
    vp_json_map(&json);
    vp_json_key_text(&json, "schema", "vramplan.calibrate/1");
    vp_json_key_text(&json, "gpu", calibration->gpu);
    return json;
}

static void finish(struct vp_json *json, const struct vp_diags *diags) {
    vp_json_key(json, "diagnostics");
    vp_report_json_diagnostics(json, diags);
    vp_json_end(json, '}');
    vp_buf_add(json->out, "\n");
}

void vp_calibrate_report_json(struct vp_buf *out, const struct vp_calibrate_result *result,
                              const struct vp_diags *diags) {
    struct vp_json json = begin(out, result->calibration);
    vp_json_key_text(&json, "profile", result->written);
    fitted_json(&json, result);
    vp_json_key_u64(&json, "allreduce_groups", result->calibration->reduce_count);
    served_json(&json, result);
    finish(&json, diags);
}

/* ---- against samples ---- */

static const char *check_kind(const struct vp_check *check) {
    return check->reduce ? "allreduce" : vp_form_name(check->form);
}

void vp_calibrate_check_text(const struct vp_page *page, const struct vp_calibration *calibration,
                             const struct vp_check *checks, uint32_t count) {
    enum { RANGE_CELLS = 12 };
    struct vp_arena *arena = page->out->arena;
    vp_page_title(page, vp_arena_printf(arena, "predictions for %s", calibration->gpu));
    vp_page_left(page, "kernel", KIND_CELLS);
    vp_page_left(page, "range", RANGE_CELLS);
    vp_page_right(page, "rows", COUNT_CELLS);
    vp_page_right(page, "median", SHARE_CELLS);
    vp_page_right(page, "p90", SHARE_CELLS);
    vp_page_right(page, "inside", SHARE_CELLS);
    end_line(page);
    for (uint32_t i = 0; i < count; i++) {
        const struct vp_check *check = &checks[i];
        for (uint32_t r = 0; check->known && r < check->ranges; r++) {
            const struct vp_check_range *range = &check->range[r];
            if (!range->rows)
                continue;
            vp_page_left(page, kind_of(arena, check_kind(check), check->dtype), KIND_CELLS);
            vp_page_left(page, range->name, RANGE_CELLS);
            vp_page_right(page, vp_format_u64(arena, range->rows), COUNT_CELLS);
            vp_page_right(page, percent(arena, range->median), SHARE_CELLS);
            vp_page_right(page, percent(arena, range->p90), SHARE_CELLS);
            vp_page_right(page, percent(arena, range->within), SHARE_CELLS);
            end_line(page);
        }
        if (!check->known)
            vp_page_printf(page, 0, 2, "%s %s: the profile says nothing of it", check_kind(check),
                           check->dtype);
    }
    vp_page_wrap(page, 0, 0, "inside: rows within the interval that a plan would state");
}

static void range_json(struct vp_json *json, const struct vp_check_range *range) {
    vp_json_key(json, range->name);
    vp_json_map_inline(json);
    vp_json_key_u64(json, "n", range->rows);
    vp_json_key_real(json, "median_abs_rel_error", range->median);
    vp_json_key_real(json, "p90_abs_rel_error", range->p90);
    vp_json_key_real(json, "inside_interval", range->within);
    vp_json_end(json, '}');
}

static void check_json(struct vp_json *json, const struct vp_check *check) {
    vp_json_key(json, check->dtype);
    vp_json_map(json);
    for (uint32_t r = 0; check->known && r < check->ranges; r++)
        if (check->range[r].rows)
            range_json(json, &check->range[r]);
    vp_json_end(json, '}');
}

void vp_calibrate_check_json(struct vp_buf *out, const struct vp_calibration *calibration,
                             const struct vp_check *checks, uint32_t count,
                             const struct vp_diags *diags) {
    struct vp_json json = begin(out, calibration);
    for (uint32_t i = 0; i < count;) { /* kinds stand together */
        const char *kind = check_kind(&checks[i]);
        vp_json_key(&json, kind);
        vp_json_map(&json);
        for (; i < count && strcmp(check_kind(&checks[i]), kind) == 0; i++)
            check_json(&json, &checks[i]);
        vp_json_end(&json, '}');
    }
    finish(&json, diags);
}
