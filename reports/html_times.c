/* How fast it is and how that is known, a training step, the placement of llama.cpp. */
#include <inttypes.h>

#include "planner/base/units.h"
#include "reports/html_page.h"
#include "reports/html_report.h"
#include "reports/latency_text.h"
#include "reports/train_report.h"
#include "reports/words.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- speed ---- */

static void parts(struct vp_buf *out, const struct vp_latency *latency) {
    static const char *const HEADS[] = {"part", "#ms", "#low..high, ms", "basis"};
    if (latency->parts == 0)
        return;
    vp_html_table_begin(out, "Where the time of a step goes", HEADS, COUNT(HEADS));
    for (uint32_t i = 0; i < latency->parts; i++) {
        const struct vp_time *time = &latency->part[i].time;
        vp_html_row_begin(out, NULL);
        vp_html_head_cell(out, latency->part[i].name, NULL);
        vp_html_number(out, vp_arena_printf(out->arena, "%.2f", time->likely / 1e3));
        vp_html_number(
            out, vp_arena_printf(out->arena, "%.2f..%.2f", time->low / 1e3, time->high / 1e3));
        vp_html_cell(out, vp_basis_name(time->basis));
        vp_html_row_end(out);
    }
    vp_html_table_end(out);
}

static void quality_row(struct vp_buf *out, const char *what, const struct vp_fit_quality *quality,
                        const struct vp_fit_source *source) {
    if (quality->rows == 0)
        return;
    vp_html_row_begin(out, NULL);
    vp_html_head_cell(out, what, NULL);
    vp_html_number(out, vp_format_u64(out->arena, quality->rows));
    vp_html_number(out, vp_arena_printf(out->arena, "%.1f", 100 * quality->median));
    vp_html_number(out, vp_arena_printf(out->arena, "%.1f", 100 * quality->p90));
    vp_html_cell(out, source->release && *source->release ? source->release : "not said");
    vp_html_row_end(out);
}

/* How well the calibration meets what it was not fitted to, by kind of kernel and engine. */
static void residuals(struct vp_buf *out, const struct vp_calibration *calibration) {
    static const char *const HEADS[] = {"what was measured", "#rows", "#median error, %",
                                        "#90 % are within, %", "release"};
    struct vp_arena *arena = out->arena;
    if (!calibration)
        return;
    vp_html_table_begin(out, "Predicted against measured, on rows that were held out of the fit",
                        HEADS, COUNT(HEADS));
    for (int r = 0; r < VP_RATES; r++)
        if (calibration->gemm[r].known)
            quality_row(
                out, vp_arena_printf(arena, "matrix products, %s", vp_rate_name((enum vp_rate)r)),
                &calibration->gemm[r].quality, &calibration->gemm[r].source);
    for (int w = 0; w < VP_KV_WIDTHS; w++) {
        const char *width = vp_kv_name((enum vp_kv_width)w);
        if (calibration->prefill[w].known)
            quality_row(out, vp_arena_printf(arena, "prefill attention, %s", width),
                        &calibration->prefill[w].quality, &calibration->prefill[w].source);
        if (calibration->decode[w].known)
            quality_row(out, vp_arena_printf(arena, "decode attention, %s", width),
                        &calibration->decode[w].quality, &calibration->decode[w].source);
    }
    for (uint32_t i = 0; i < calibration->serving_count; i++) {
        const struct vp_serving_fit *fit = &calibration->serving[i];
        quality_row(out, vp_arena_printf(arena, "time per output token, %s", fit->engine),
                    &fit->tpot, &fit->source);
        quality_row(out, vp_arena_printf(arena, "time to first token, %s", fit->engine), &fit->ttft,
                    &fit->source);
    }
    vp_html_table_end(out);
}

static void speed(struct vp_buf *out, const struct vp_html_plan *plan, const char *prefix) {
    static const char *const HEADS[] = {"figure", "#likely", "low to high"};
    const struct vp_result *result = plan->result;
    struct vp_latency_line line[VP_LATENCY_LINES];
    uint32_t count = vp_latency_lines(out->arena, line, result);
    const char *basis = vp_latency_basis(out->arena, result);
    if (count == 0 && !basis && !plan->chart[VP_PLAN_ROOFLINE])
        return;
    vp_html_section(out, plan, "Speed");
    if (basis)
        vp_html_paragraph(out, NULL, basis);
    if (count > 0) {
        vp_html_table_begin(out, "Estimates, with their intervals", HEADS, COUNT(HEADS));
        for (uint32_t i = 0; i < count; i++) {
            vp_html_row_begin(out, NULL);
            vp_html_head_cell(out, line[i].label, NULL);
            vp_html_number(out, line[i].likely);
            vp_html_cell(out, line[i].interval);
            vp_html_row_end(out);
        }
        vp_html_table_end(out);
        parts(out, &result->latency);
    }
    vp_html_plan_chart(out, plan, VP_PLAN_ROOFLINE, prefix);
    vp_html_plan_chart(out, plan, VP_PLAN_CALIBRATION, prefix);
    residuals(out, result->scenario->measured_gpu);
}

/* ---- training ---- */

static void candidates(struct vp_buf *out, const struct vp_training_stage *stage) {
    static const char *const HEADS[] = {"instant", "#GiB allocated", ""};
    vp_html_table_begin(out, "When the fullest stage takes most", HEADS, COUNT(HEADS));
    for (size_t i = 0; i < COUNT(stage->candidate); i++) {
        const struct vp_instant *instant = &stage->candidate[i];
        if (!instant->cause)
            continue;
        vp_html_row_begin(out, NULL);
        vp_html_head_cell(out, instant->cause, NULL);
        vp_html_bytes(out, instant->bytes.likely);
        vp_html_cell(out, instant->step == stage->peak.step ? "the peak" : "");
        vp_html_row_end(out);
    }
    vp_html_table_end(out);
}

static void stages(struct vp_buf *out, const struct vp_training_report *report) {
    static const char *const HEADS[] = {
        "stage",           "#parameters",        "#gradients",       "#optimizer",
        "#master weights", "#kept for backward", "#allocated, peak", "#reserved, peak"};
    vp_html_table_begin(out, "Stages of the pipeline, GiB on one rank", HEADS, COUNT(HEADS));
    for (uint32_t i = 0; i < report->stages; i++) {
        const struct vp_training_stage *stage = &report->stage[i];
        const struct vp_train_stage *n = &stage->numbers;
        const uint64_t figures[] = {n->parameter_bytes,
                                    n->gradient_bytes,
                                    n->optimizer_bytes,
                                    n->master_bytes,
                                    n->saved_bytes,
                                    stage->allocated_peak.likely,
                                    stage->reserved_peak.likely};
        vp_html_row_begin(out, NULL);
        vp_html_head_cell(out,
                          vp_arena_printf(out->arena, "%" PRIu32 "%s", i,
                                          i == report->worst ? ", the fullest" : ""),
                          NULL);
        for (size_t k = 0; k < COUNT(figures); k++)
            vp_html_bytes(out, figures[k]);
        vp_html_row_end(out);
    }
    vp_html_table_end(out);
}

static void training(struct vp_buf *out, const struct vp_html_plan *plan, const char *prefix) {
    const struct vp_result *result = plan->result;
    const struct vp_training_report *report = &result->training;
    if (!report->stage)
        return;
    const struct vp_training_stage *worst = &report->stage[report->worst];
    vp_html_section(out, plan, "Training step");
    vp_html_paragraph(out, NULL, vp_train_peak(out->arena, result));
    vp_html_plan_chart(out, plan, VP_PLAN_TIMELINE, prefix);
    candidates(out, worst);
    stages(out, report);
    if (worst->first_step_peak_bytes > 0)
        vp_html_paragraph(
            out, "soft",
            vp_arena_printf(out->arena,
                            "The first step, which begins without optimizer states, peaks at %s "
                            "GiB.",
                            vp_format_gib(out->arena, worst->first_step_peak_bytes, 2)));
    vp_html_plan_chart(out, plan, VP_PLAN_FRONTIER, prefix);
}

/* ---- llama.cpp ---- */

static void buffers(struct vp_buf *out, const struct vp_llama_plan *plan) {
    static const char *const HEADS[] = {"place",    "#model",  "#KV cache", "#state",
                                        "#compute", "#output", "#layers",   "#total of the device"};
    vp_html_table_begin(out, "Buffers as the log names them, GiB", HEADS, COUNT(HEADS));
    for (uint32_t p = 0; p < plan->places; p++) {
        const struct vp_llama_place *place = &plan->place[p];
        vp_html_row_begin(out, NULL);
        vp_html_head_cell(out, place->id, NULL);
        for (int b = 0; b < VP_LLAMA_BUFFERS; b++)
            if (place->has[b])
                vp_html_bytes(out, place->buffer[b].likely);
            else
                vp_html_number(out, "");
        vp_html_number(out, place->layers ? vp_format_u64(out->arena, place->layers) : "");
        if (place->total_bytes)
            vp_html_bytes(out, place->total_bytes);
        else
            vp_html_number(out, "");
        vp_html_row_end(out);
    }
    vp_html_table_end(out);
}

static void placement(struct vp_buf *out, const struct vp_html_plan *of) {
    const struct vp_llama_plan *plan = of->result->llama;
    if (!plan)
        return;
    vp_html_section(out, of, "Placement by llama.cpp");
    vp_html_paragraph(
        out, NULL,
        vp_arena_printf(
            out->arena,
            "n_ctx %" PRIu64 "; %" PRIu64 " of %" PRIu64
            " layers on GPUs, the output layer counted%s; flash attention %s%s.",
            plan->n_ctx, plan->gpu_layers, plan->layer_slots,
            plan->host_experts > 0
                ? vp_arena_printf(out->arena, ", experts of %" PRIu64 " of them on the host",
                                  plan->host_experts)
                : "",
            plan->flash ? "on" : "off", plan->fitted ? "; chosen by the engine's own fit" : ""));
    buffers(out, plan);
}

void vp_html_times(struct vp_buf *out, const struct vp_html_plan *plan, const char *prefix) {
    training(out, plan, prefix);
    placement(out, plan);
    speed(out, plan, prefix);
}
