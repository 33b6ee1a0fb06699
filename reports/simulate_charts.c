/* A serving day over time, as pictures. */
#include "reports/simulate_report.h"

const char *vp_simulate_chart_name(enum vp_simulate_chart which) {
    static const char *const NAMES[VP_SIMULATE_CHARTS] = {"requests", "cache", "tokens"};
    return NAMES[which];
}

struct line {
    enum vp_chart_kind kind;
    const char *label;
    double (*value)(const struct vp_sim_bin *bin, double bin_s);
};

static double running(const struct vp_sim_bin *b, double s) {
    (void)s;
    return b->running;
}
static double waiting(const struct vp_sim_bin *b, double s) {
    (void)s;
    return b->waiting;
}
static double held(const struct vp_sim_bin *b, double s) {
    (void)s;
    return b->cache_share * 100;
}
static double busy(const struct vp_sim_bin *b, double s) {
    (void)s;
    return b->busy_share * 100;
}
static double prompts(const struct vp_sim_bin *b, double s) { return b->prompt_tokens / s; }
static double outputs(const struct vp_sim_bin *b, double s) { return b->output_tokens / s; }
static double again(const struct vp_sim_bin *b, double s) { return b->recomputed_tokens / s; }
static double hits(const struct vp_sim_bin *b, double s) { return b->hit_tokens / s; }

static const struct {
    const char *title, *axis, *unit;
    struct line line[4];
} CHARTS[VP_SIMULATE_CHARTS] = {
    {"Requests over time",
     "requests",
     NULL,
     {{VP_CHART_AREA, "running", running}, {VP_CHART_AREA, "waiting", waiting}}},
    {"Cache and time over time",
     "share",
     "%",
     {{VP_CHART_STAIRS, "KV cache held", held}, {VP_CHART_STAIRS, "busy", busy}}},
    {"Tokens over time",
     "tokens",
     "per second",
     {{VP_CHART_STAIRS, "prompt tokens computed", prompts},
      {VP_CHART_STAIRS, "output tokens", outputs},
      {VP_CHART_STAIRS, "computed again", again},
      {VP_CHART_STAIRS, "prefix hits", hits}}}};

/* Behind the last stretch of time its own values once more: stairs hold them until there. */
static void draw(struct vp_chart *chart, const struct vp_simulated *seen, const struct line *line) {
    struct vp_chart_series *series = vp_chart_add(chart, line->kind, line->label);

    for (uint32_t i = 0; i <= seen->bins; i++) {
        const struct vp_sim_bin *bin = &seen->bin[i < seen->bins ? i : seen->bins - 1];
        vp_chart_point(chart, series, i * seen->bin_s, line->value(bin, seen->bin_s));
    }
}

struct vp_chart *vp_simulate_chart(struct vp_arena *arena, const struct vp_simulated *seen,
                                   enum vp_simulate_chart which) {
    struct vp_chart *chart =
        vp_chart_new(arena, vp_simulate_chart_name(which), CHARTS[which].title,
                     vp_arena_printf(arena, "%s; %s", vp_simulate_setup(arena, seen),
                                     vp_simulate_traffic(arena, seen)));

    chart->x = (struct vp_chart_axis){.label = "time", .unit = "s", .from_zero = true};
    chart->y = (struct vp_chart_axis){.label = CHARTS[which].axis,
                                      .unit = CHARTS[which].unit,
                                      .from_zero = true,
                                      .at_least = which == VP_SIMULATE_CACHE ? 100 : 1};
    for (int i = 0; i < 4 && CHARTS[which].line[i].label && seen->bins > 0; i++)
        draw(chart, seen, &CHARTS[which].line[i]);
    return chart;
}
