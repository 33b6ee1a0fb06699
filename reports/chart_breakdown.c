/* Where the bytes go: a bar for each device, or for each plan. */
#include "planner/base/units.h"
#include "reports/charts.h"
#include "reports/train_report.h"
#include "reports/words.h"

const char *vp_chart_assumptions(struct vp_arena *arena, const struct vp_result *result) {
    return vp_arena_printf(arena, "%s, %s; %s", vp_words_model(result->scenario),
                           result->training.stage ? vp_train_setup(arena, result)
                                                  : vp_words_setup(arena, result),
                           vp_words_devices(arena, result));
}

/* One bar: a device of a result. */
struct bar {
    const struct vp_result *result;
    uint32_t device;
    const char *name;
};

static uint64_t at_peak(const struct bar *bar, enum vp_component component) {
    const struct vp_device *device = &bar->result->devices[bar->device];
    return vp_ledger_component(&bar->result->ledger, bar->device, component, device->peak_step)
        .likely;
}

/* Pieces in the order of the components; one that no bar has is not in the legend. */
static void add_components(struct vp_chart *chart, const struct bar *bars, uint32_t count) {
    for (int c = 0; c < VP_COMPONENT_COUNT; c++) {
        enum vp_component component = (enum vp_component)c;
        struct vp_chart_series *series = NULL;
        for (uint32_t i = 0; i < count; i++) {
            uint64_t bytes = at_peak(&bars[i], component);
            if (bytes == 0)
                continue;
            if (!series) {
                series =
                    vp_chart_add(chart, VP_CHART_BARS, vp_words_component(chart->arena, component));
                series->letter = vp_component_letter(component);
                series->look = c < (int)VP_LOOKS ? c : (int)VP_LOOK_GREY;
            }
            vp_chart_point(chart, series, vp_chart_gib(bytes), i);
        }
    }
}

/* The whole card, and where the engine may not use all of it, the usable part. */
static void add_limits(struct vp_chart *chart, const struct bar *bars, uint32_t count) {
    struct vp_chart_series *card = NULL, *usable = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const struct vp_device *device = &bars[i].result->devices[bars[i].device];
        if (device->usable_bytes == 0 || device->usable_bytes == device->capacity_bytes)
            continue;
        if (!usable)
            usable = vp_chart_add(chart, VP_CHART_LIMIT, "usable");
        usable->letter = '|';
        vp_chart_point(chart, usable, vp_chart_gib(device->usable_bytes), i);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct vp_device *device = &bars[i].result->devices[bars[i].device];
        if (device->capacity_bytes == 0)
            continue;
        if (!card)
            card = vp_chart_add(chart, VP_CHART_LIMIT, "capacity");
        card->letter = ']';
        card->look = VP_LOOK_GREY;
        vp_chart_point(chart, card, vp_chart_gib(device->capacity_bytes), i);
    }
}

static struct vp_chart *make(struct vp_arena *arena, const char *title, const char *subtitle,
                             const struct bar *bars, uint32_t count) {
    const char **names = VP_NEW_ARRAY(arena, count, const char *);
    struct vp_chart *chart = vp_chart_new(arena, "breakdown", title, subtitle);
    for (uint32_t i = 0; i < count; i++)
        names[i] = bars[i].name;
    chart->x = (struct vp_chart_axis){.label = "memory", .unit = "GiB", .from_zero = true};
    chart->y = (struct vp_chart_axis){.names = names, .name_count = count};
    add_components(chart, bars, count);
    add_limits(chart, bars, count);
    return chart;
}

/* "gpu0", "gpu0 (4 ranks)" */
static const char *device_name(struct vp_arena *arena, const struct vp_device *device) {
    if (device->ranks < 2)
        return device->id;
    return vp_arena_printf(arena, "%s (%s)", device->id,
                           vp_words_plural(arena, device->ranks, "rank", "ranks"));
}

struct vp_chart *vp_chart_breakdown(struct vp_arena *arena, const struct vp_result *result) {
    struct bar *bars = VP_NEW_ARRAY(arena, result->device_count, struct bar);
    for (uint32_t i = 0; i < result->device_count; i++)
        bars[i] = (struct bar){result, i, device_name(arena, &result->devices[i])};
    struct vp_chart *chart = make(arena, "Memory by device, against its capacity",
                                  vp_chart_assumptions(arena, result), bars, result->device_count);
    chart->note = vp_arena_printf(arena, "%s: %s", vp_words_verdict(result->verdict),
                                  vp_words_need(arena, result));
    return chart;
}

struct vp_chart *vp_chart_breakdowns(struct vp_arena *arena, const struct vp_result *const *results,
                                     const char *const *names, uint32_t count) {
    struct bar *bars = VP_NEW_ARRAY(arena, count, struct bar);
    if (count == 0)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        bars[i] = (struct bar){results[i], results[i]->worst, names[i]};
    return make(arena, "Memory of the fullest device of each plan",
                "at its peak, against its capacity", bars, count);
}
