/* One line per scenario for spreadsheets. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "planner/base/units.h"
#include "reports/report.h"
#include "reports/words.h"

void vp_report_csv_header(struct vp_buf *out) {
    vp_buf_add(out, "name,verdict,device,capacity_bytes,need_low_bytes,need_likely_bytes,"
                    "need_high_bytes,headroom_bytes");
    for (int c = 0; c < VP_COMPONENT_COUNT; c++)
        vp_buf_printf(out, ",%s_bytes", vp_component_name((enum vp_component)c));
    vp_buf_add(out, ",max_context,max_concurrency,ttft_ms,tpot_ms,step_ms,"
                    "decode_tokens_per_s,latency_basis\n");
}

/* RFC 4180: quotes where a comma, a quote or a line break asks for them; quotes are doubled. */
void vp_report_csv_cell(struct vp_buf *out, const char *text) {
    if (!text)
        return;
    if (!text[strcspn(text, ",\"\r\n")] && text[0] != ' ') {
        vp_buf_add(out, text);
        return;
    }
    vp_buf_add(out, "\"");
    for (; *text; text++)
        vp_buf_add_n(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    vp_buf_add(out, "\"");
}

void vp_report_csv_number(struct vp_buf *out, double v) {
    if (isfinite(v))
        vp_buf_add(out, vp_format_real(out->arena, round(v * 1e6) / 1e6));
}

/* Nothing where no likely figure is known. */
static void likely(struct vp_buf *out, const struct vp_estimate *e) {
    vp_buf_add(out, ",");
    if (e->basis == VP_BASIS_CLASS || e->basis == VP_BASIS_CALIBRATED)
        vp_buf_printf(out, "%.4g", e->likely);
}

void vp_report_csv_row(struct vp_buf *out, const struct vp_result *result) {
    const struct vp_device *worst = &result->devices[result->worst];
    vp_report_csv_cell(out, result->scenario->name);
    vp_buf_printf(out, ",%s,", vp_verdict_name(result->verdict));
    vp_report_csv_cell(out, worst->id);
    vp_buf_printf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRId64,
                  worst->capacity_bytes, worst->need.low, worst->need.likely, worst->need.high,
                  result->headroom_bytes);
    for (int c = 0; c < VP_COMPONENT_COUNT; c++) {
        vp_buf_add(out, ",");
        if (worst->present[c])
            vp_buf_printf(out, "%" PRIu64, worst->component[c].likely);
    }
    vp_buf_printf(out, ",%" PRIu64 ",%" PRIu64, result->prices.max_context,
                  result->prices.max_concurrency);
    const struct vp_latency *latency = &result->latency;
    likely(out, &latency->ttft_ms);
    likely(out, &latency->tpot_ms);
    likely(out, &latency->step_ms);
    likely(out, &latency->decode_tokens_per_s);
    bool known = latency->step_ms.basis != VP_BASIS_NONE;
    vp_buf_printf(out, ",%s\n", known ? vp_basis_name(latency->step_ms.basis) : "");
}
