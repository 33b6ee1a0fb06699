/* Recomputation: extra time against the memory of the tightest stage. */
#include <inttypes.h>

#include "planner/base/units.h"
#include "reports/charts.h"
#include "reports/words.h"

enum { MOST_POINTS = 200 }; /* a frontier of a long chain has thousands */

/* Per cent of the step without recomputation, kept to a millionth of it. */
static double extra(const struct vp_recompute_report *report, uint64_t time) {
    uint64_t base = report->policies.base_time;
    if (base == 0 || time < base)
        return 0;
    return (double)vp_mul_div(time - base, 1000000, base) / 10000;
}

/* What people set by hand is drawn as points. */
static bool is_point(const struct vp_policy *row) {
    return row->known && row->class == VP_PLACE_CLASSES;
}

static double device_gib(const struct vp_recompute_report *report, uint64_t peak) {
    return vp_chart_gib(peak + report->beside_bytes);
}

struct vp_chart *vp_chart_frontier(struct vp_arena *arena, const struct vp_recompute_report *report,
                                   const struct vp_frontier *frontier) {
    const struct vp_scenario *scenario = report->problem.scenario;
    const struct vp_train *train = &scenario->train;
    const char *subtitle = vp_arena_printf(
        arena,
        "%s, %s, micro batch %" PRIu64 " x %" PRIu64 " tokens, %" PRIu64 " x %s; stage %" PRIu32
        ", the tightest",
        vp_words_model(scenario), vp_words_engine(scenario->engine.name), train->micro_batch,
        train->sequence, scenario->hardware.count, scenario->hardware.gpu.name, report->stage);
    struct vp_chart *chart =
        vp_chart_new(arena, "frontier", "Recomputation: extra time against memory", subtitle);
    if (frontier->count == 0)
        return NULL;
    chart->x = (struct vp_chart_axis){.label = "peak of the device", .unit = "GiB"};
    chart->y =
        (struct vp_chart_axis){.label = "extra time", .unit = "% of the step", .from_zero = true};
    struct vp_chart_series *best =
        vp_chart_add(chart, VP_CHART_STAIRS, frontier->exact ? "best plans" : "best plans found");
    best->letter = 'b';
    uint32_t every = (frontier->count + MOST_POINTS - 1) / MOST_POINTS, last = frontier->count - 1;
    for (uint32_t i = 0; i <= last; i += i == last || last - i > every ? every : last - i)
        vp_chart_point(chart, best, device_gib(report, frontier->points[i].peak_bytes),
                       extra(report, frontier->points[i].time));
    for (uint32_t i = 0; i < report->policies.count; i++) {
        const struct vp_policy *row = &report->policies.items[i];
        if (!is_point(row))
            continue;
        struct vp_chart_series *point = vp_chart_add(chart, VP_CHART_POINTS, row->meaning);
        point->letter = (char)('1' + (chart->series_count - 2) % 9);
        vp_chart_point(chart, point, device_gib(report, row->peak_bytes), extra(report, row->time));
    }
    vp_chart_limit(chart, false, vp_chart_gib(report->problem.budget_bytes),
                   vp_arena_printf(arena, "budget %s GiB",
                                   vp_format_gib(arena, report->problem.budget_bytes, 2)));
    return chart;
}
