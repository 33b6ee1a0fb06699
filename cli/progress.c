#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/output.h"
#include "planner/base/clock.h"
#include "planner/base/units.h"

static const double EVERY_SECONDS = 0.2;
enum { CELLS = 20 };

void vp_progress_begin(struct vp_progress *p, bool wanted, uint64_t first, uint64_t total) {
    *p = (struct vp_progress){.shown = wanted && total > 0 && isatty(STDERR_FILENO),
                              .first = first,
                              .total = total,
                              .began = vp_clock_seconds()};
    p->last = p->began;
}

/* "0:07", "12:30", "3:00:00" */
static const char *show_time(struct vp_arena *arena, double seconds) {
    uint64_t s = seconds < 1e9 ? (uint64_t)(seconds + 0.5) : UINT64_C(1000000000);
    if (s < 3600)
        return vp_arena_printf(arena, "%" PRIu64 ":%02" PRIu64, s / 60, s % 60);
    return vp_arena_printf(arena, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, s / 3600, s / 60 % 60,
                           s % 60);
}

/* The bar as text, at most 79 cells: seconds since it began. */
static const char *bar_text(struct vp_arena *arena, const struct vp_progress *p, uint64_t done,
                            double seconds) {
    char bar[CELLS + 1];
    uint64_t made = done - p->first;
    double rate = seconds > 0 ? (double)made / seconds : 0;
    size_t full = (size_t)((double)done / (double)p->total * CELLS);
    memset(bar, '.', CELLS);
    memset(bar, '#', full < CELLS ? full : CELLS);
    bar[CELLS] = '\0';
    return vp_arena_printf(arena, "[%s] %3.0f%%  %s of %s  %s/s  %s left", bar,
                           100 * (double)done / (double)p->total, vp_format_count(arena, done),
                           vp_format_count(arena, p->total), vp_format_count(arena, (uint64_t)rate),
                           rate > 0 ? show_time(arena, (double)(p->total - done) / rate) : "?");
}

void vp_progress_step(struct vp_progress *p, uint64_t done) {
    double t = vp_clock_seconds();
    if (!p->shown || t - p->last < EVERY_SECONDS)
        return;
    p->last = t;
    struct vp_arena arena = {0};
    const char *text =
        vp_arena_printf(&arena, "\r%-79.79s", bar_text(&arena, p, done, t - p->began));
    (void)vp_output_put(STDERR_FILENO, text, strlen(text));
    vp_arena_free(&arena);
}

void vp_progress_end(struct vp_progress *p) {
    char blank[82];
    if (!p->shown || p->last == p->began)
        return;
    snprintf(blank, sizeof blank, "\r%79s\r", "");
    (void)vp_output_put(STDERR_FILENO, blank, strlen(blank));
}
