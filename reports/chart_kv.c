/* The KV cache against the context, a line for each format. */
#include <inttypes.h>

#include "planner/base/units.h"
#include "reports/charts.h"
#include "reports/words.h"

/* "bf16 up to 20,160 tokens, fp8 up to 40,384" */
static const char *reach(struct vp_arena *arena, const struct vp_kv_lines *lines) {
    struct vp_buf out = {.arena = arena};
    for (uint32_t i = 0; i < lines->count; i++)
        vp_buf_printf(&out, "%s%s %s",
                      i ? ", " : "Longest context that fits: ", lines->line[i].format,
                      lines->line[i].most ? vp_format_count(arena, lines->line[i].most) : "none");
    vp_buf_add(&out, " tokens.");
    return vp_buf_text(&out);
}

struct vp_chart *vp_chart_kv(struct vp_arena *arena, const struct vp_kv_lines *lines,
                             const struct vp_result *result) {
    uint64_t n = result->scenario->serve.concurrency;
    struct vp_chart *chart =
        vp_chart_new(arena, "kv",
                     vp_arena_printf(arena, "KV cache of %s against the context",
                                     vp_words_plural(arena, n, "sequence", "sequences")),
                     vp_chart_assumptions(arena, result));
    if (lines->count == 0)
        return NULL;
    chart->x = (struct vp_chart_axis){.label = "context", .unit = "tokens", .tokens = true};
    chart->y =
        (struct vp_chart_axis){.label = "KV cache per device", .unit = "GiB", .from_zero = true};
    for (uint32_t i = 0; i < lines->count; i++) {
        const struct vp_kv_line *line = &lines->line[i];
        struct vp_chart_series *series = vp_chart_add(
            chart, VP_CHART_LINE,
            vp_arena_printf(arena, "%s%s", line->format, line->now ? " (this plan)" : ""));
        series->letter = line->format[0];
        for (uint32_t k = 0; k < line->count; k++)
            vp_chart_point(chart, series, (double)line->context[k], vp_chart_gib(line->bytes[k]));
    }
    vp_chart_limit(chart, true, vp_chart_gib(lines->room_bytes),
                   vp_arena_printf(arena, "room beside all else, %s GiB",
                                   vp_format_gib(arena, lines->room_bytes, 2)));
    vp_chart_divide(chart, false, (double)result->scenario->serve.context, "context of this plan");
    chart->note = reach(arena, lines);
    return chart;
}
