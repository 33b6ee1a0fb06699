/* A training step over time: what is allocated, of what, and what is reserved for it. */
#include <inttypes.h>

#include "planner/base/units.h"
#include "reports/charts.h"
#include "reports/timeline_report.h"
#include "reports/train_report.h"
#include "reports/words.h"

enum { MOST_INSTANTS = 240 }; /* a picture has hardly more columns */

struct instant {
    uint64_t begin;
    const struct vp_walk_instant *most;
};

/* The largest instant of every `per` events; of few, all. Returns how many. */
static size_t choose(struct instant *out, const struct vp_walk *walk, uint64_t per) {
    size_t n = 0;
    for (size_t i = 0; i < walk->spans; i++) {
        const struct vp_walk_span *span = &walk->span[i];
        if (span->left_out > 0)
            continue;
        if (n > 0 && span->begin / per == out[n - 1].begin / per) {
            if (span->most.bytes > out[n - 1].most->bytes)
                out[n - 1].most = &span->most;
            continue;
        }
        out[n++] = (struct instant){span->begin, &span->most};
    }
    return n;
}

static void divisions(struct vp_chart *chart, const struct vp_walk *walk) {
    for (size_t i = 0; i < walk->spans; i++) {
        const struct vp_walk_span *span = &walk->span[i];
        if (span->left_out > 0)
            vp_chart_divide(chart, false, (double)span->begin,
                            vp_arena_printf(chart->arena, "%" PRIu64 " micro batches left out",
                                            span->left_out));
        else if (span->second && i > 0 && !walk->span[i - 1].second)
            vp_chart_divide(chart, false, (double)span->begin, "a later step");
    }
}

static void areas(struct vp_chart *chart, const struct vp_timeline *timeline,
                  const struct instant *instants, size_t n, uint64_t end) {
    enum vp_component shown[VP_COMPONENT_COUNT];
    uint32_t count = vp_timeline_components(timeline, shown);
    for (uint32_t c = 0; c < count; c++) {
        struct vp_chart_series *area =
            vp_chart_add(chart, VP_CHART_AREA, vp_words_component(chart->arena, shown[c]));
        area->letter = vp_component_letter(shown[c]);
        area->look = (int)shown[c] < (int)VP_LOOKS ? (int)shown[c] : (int)VP_LOOK_GREY;
        for (size_t i = 0; i <= n; i++) /* the last one is held to the end */
            vp_chart_point(chart, area, (double)(i < n ? instants[i].begin : end),
                           vp_chart_gib(instants[i < n ? i : n - 1].most->component[shown[c]]));
    }
}

struct vp_chart *vp_chart_timeline(struct vp_arena *arena, const struct vp_timeline *timeline) {
    const struct vp_walk *walk = timeline->walk;
    const struct vp_walk_instant *peak = &walk->steady.peak;
    if (walk->spans == 0)
        return NULL;
    uint64_t end = walk->span[walk->spans - 1].end;
    struct instant *instants = VP_NEW_ARRAY(arena, walk->spans, struct instant);
    size_t n = choose(instants, walk, vp_max(vp_ceil_div(end, MOST_INSTANTS), 1));
    struct vp_chart *chart = vp_chart_new(
        arena, "timeline",
        vp_arena_printf(arena, "Memory of stage %" PRIu32 ": the first step, then a later one",
                        timeline->index),
        vp_chart_assumptions(arena, timeline->result));
    if (n == 0)
        return NULL;
    chart->x = (struct vp_chart_axis){.label = "storages taken and given back"};
    chart->y = (struct vp_chart_axis){.label = "allocated", .unit = "GiB", .from_zero = true};
    areas(chart, timeline, instants, n, end);
    struct vp_chart_series *reserved = vp_chart_add(chart, VP_CHART_STAIRS, "reserved");
    reserved->look = VP_LOOK_INK;
    reserved->letter = '^';
    for (size_t i = 0; i <= n; i++)
        vp_chart_point(chart, reserved, (double)(i < n ? instants[i].begin : end),
                       vp_chart_gib(instants[i < n ? i : n - 1].most->reserved));
    struct vp_chart_series *top = vp_chart_add(chart, VP_CHART_POINTS, "peak of a later step");
    top->look = VP_LOOK_INK;
    top->letter = '*';
    vp_chart_point(chart, top, (double)peak->at, vp_chart_gib(peak->bytes))->word = vp_arena_printf(
        arena, "%s GiB: %s", vp_format_gib(arena, peak->bytes, 2), vp_timeline_cause(arena, peak));
    divisions(chart, walk);
    if (timeline->settings.device_bytes > 0)
        vp_chart_limit(chart, true, vp_chart_gib(timeline->settings.device_bytes),
                       vp_arena_printf(arena, "capacity %s GiB",
                                       vp_format_gib(arena, timeline->settings.device_bytes, 2)));
    return chart;
}
