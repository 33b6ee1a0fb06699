#include "reports/latency_text.h"

#include <math.h>

/* ---- figures ---- */

/* Three digits that count. */
static const char *digits(struct vp_arena *arena, double v) {
    double unit = v > 0 && isfinite(v) ? pow(10, floor(log10(v)) - 2) : 1;
    v = round(v / unit) * unit;
    return vp_arena_printf(arena, "%.*f", v >= 99.95 || v == 0 ? 0 : v >= 9.995 ? 1 : 2, v);
}

static const char *duration(struct vp_arena *arena, double ms) {
    enum { MS_MOST = 10000 }; /* then seconds */
    return ms < MS_MOST ? vp_arena_printf(arena, "%s ms", digits(arena, ms))
                        : vp_arena_printf(arena, "%s s", digits(arena, ms / 1e3));
}

static const char *rate(struct vp_arena *arena, double per_s) {
    return vp_arena_printf(arena, "%s/s", digits(arena, per_s));
}

struct line {
    const char *label;
    const struct vp_estimate *estimate;
    bool is_rate;
};

enum { LINES = VP_LATENCY_LINES };

/* Nothing interrupts the iterations. */
static bool is_same(const struct vp_estimate *step, const struct vp_estimate *tpot) {
    return step->basis == tpot->basis && fabs(step->low - tpot->low) <= 1e-3 * tpot->low &&
           fabs(step->likely - tpot->likely) <= 1e-3 * tpot->likely;
}

/* A server that does not start has no speed; one whose requests wait for each other has. */
static bool runs(const struct vp_result *result) {
    bool waits = result->reason == VP_REASON_CONCURRENCY || result->reason == VP_REASON_BUDGET ||
                 result->reason == VP_REASON_STATE_SLOTS;
    return result->verdict != VP_DOES_NOT_FIT || waits || result->scenario->training;
}

static uint32_t lines_of(struct line out[LINES], const struct vp_result *result) {
    const struct vp_latency *l = &result->latency;
    bool training = result->scenario->training;
    const struct line all[LINES] = {
        {"first token", &l->ttft_ms, false},
        {"each further token", &l->tpot_ms, false},
        {training ? "training step" : "decode iteration", &l->step_ms, false},
        {"prompt tokens", &l->prefill_tokens_per_s, true},
        {training ? "tokens" : "output tokens", &l->decode_tokens_per_s, true},
    };
    uint32_t count = 0;

    for (int i = 0; i < LINES && runs(result); i++) {
        bool told = all[i].estimate == &l->step_ms && is_same(&l->step_ms, &l->tpot_ms);
        if (all[i].estimate->basis != VP_BASIS_NONE && !told)
            out[count++] = all[i];
    }
    return count;
}

static const char *figure(struct vp_arena *arena, const struct line *line, double v) {
    return line->is_rate ? rate(arena, v) : duration(arena, v);
}

static const char *likely(struct vp_arena *arena, const struct line *line) {
    const struct vp_estimate *e = line->estimate;

    if (e->basis != VP_BASIS_BOUND)
        return figure(arena, line, e->likely);
    return vp_arena_printf(arena, "at %s %s", line->is_rate ? "most" : "least",
                           figure(arena, line, line->is_rate ? e->high : e->low));
}

/* Of bounds, what they take for granted. */
static const char *interval(struct vp_arena *arena, const struct vp_latency *latency,
                            const struct line *line) {
    const struct vp_estimate *e = line->estimate;

    if (e->basis == VP_BASIS_BOUND)
        return latency->taken ? latency->taken : "";
    return vp_arena_printf(arena, "%s to %s", figure(arena, line, e->low),
                           figure(arena, line, e->high));
}

/* ---- words ---- */

static enum vp_basis weakest(const struct line *lines, uint32_t count) {
    enum vp_basis basis = VP_BASIS_CALIBRATED;

    for (uint32_t i = 0; i < count; i++)
        if (lines[i].estimate->basis < basis)
            basis = lines[i].estimate->basis;
    return basis;
}

/* Where the figures come from, and the command that would make them better. */
static const char *basis_words(struct vp_arena *arena, const struct vp_result *result,
                               enum vp_basis basis) {
    const char *why = result->latency.why ? result->latency.why : "";
    const char *colon = *why ? ": " : "";
    const char *gpu = result->scenario->hardware.gpu.id;
    const char *better = "";

    if (basis == VP_BASIS_CALIBRATED)
        return vp_arena_printf(arena, "calibrated%s%s", colon, why);
    if (gpu && result->scenario->hardware.count > 0 && !result->latency.beyond_probe)
        better = vp_arena_printf(arena,
                                 "; 'vramplan probe' measures a card, 'vramplan calibrate' "
                                 "learns from measured rows for --gpu %s",
                                 gpu);
    return vp_arena_printf(arena, "%s%s%s%s",
                           basis == VP_BASIS_BOUND ? "not calibrated" : "by class of card", colon,
                           why, better);
}

/* "of it linear layers 6.8, attention 5.3 ms"; NULL: not known. */
static const char *parts_words(struct vp_arena *arena, const struct vp_latency *latency) {
    struct vp_buf buf = {.arena = arena};

    for (uint32_t i = 0; i < latency->parts; i++) {
        const struct vp_time_part *part = &latency->part[i];
        vp_buf_printf(&buf, "%s%s %s", i ? ", " : "", part->name,
                      duration(arena, part->time.likely / 1e3));
    }
    return latency->parts ? vp_buf_text(&buf) : NULL;
}

static int widest(struct vp_arena *arena, const struct line *lines, uint32_t count,
                  const char *(*text)(struct vp_arena *, const struct line *)) {
    int width = 0;

    for (uint32_t i = 0; i < count; i++) {
        int cells = vp_text_cells(text(arena, &lines[i]));
        width = cells > width ? cells : width;
    }
    return width;
}

/* Why nothing is said of the speed of what runs. */
static void say_silence(const struct vp_page *page, const struct vp_result *result) {
    enum { INDENT = 2 };

    if (!result->latency.why || !runs(result))
        return;
    vp_buf_add(page->out, "\n");
    vp_page_spaces(page, INDENT);
    vp_page_printf(page, INDENT, 2 * INDENT, "no speed is given: %s", result->latency.why);
}

uint32_t vp_latency_lines(struct vp_arena *arena, struct vp_latency_line out[VP_LATENCY_LINES],
                          const struct vp_result *result) {
    struct line lines[LINES];
    uint32_t count = lines_of(lines, result);

    for (uint32_t i = 0; i < count; i++)
        out[i] = (struct vp_latency_line){lines[i].label, likely(arena, &lines[i]),
                                          interval(arena, &result->latency, &lines[i])};
    return count;
}

const char *vp_latency_basis(struct vp_arena *arena, const struct vp_result *result) {
    struct line lines[LINES];
    uint32_t count = lines_of(lines, result);

    if (count > 0)
        return basis_words(arena, result, weakest(lines, count));
    return runs(result) ? result->latency.why : NULL;
}

void vp_latency_section(const struct vp_page *page, const struct vp_result *result) {
    enum { INDENT = 2, LABEL = 20 };
    struct vp_arena *arena = page->out->arena;
    struct line lines[LINES];
    uint32_t count = lines_of(lines, result);
    int column = widest(arena, lines, count, likely);

    if (count == 0) {
        say_silence(page, result);
        return;
    }
    vp_buf_add(page->out, "\n");
    for (uint32_t i = 0; i < count; i++) {
        const char *range = interval(arena, &result->latency, &lines[i]);
        vp_page_spaces(page, INDENT);
        vp_page_left(page, lines[i].label, LABEL);
        vp_page_right(page, likely(arena, &lines[i]), column);
        if (*range)
            vp_page_spaces(page, INDENT);
        vp_page_wrap(page, INDENT + LABEL + column + INDENT, 2 * INDENT, range);
    }
    const char *parts = parts_words(arena, &result->latency);
    if (parts) {
        vp_page_spaces(page, INDENT);
        vp_page_printf(page, INDENT, 2 * INDENT, "of %s %s: %s",
                       result->scenario->training ? "a" : "an",
                       result->scenario->training ? "step" : "iteration", parts);
    }
    vp_page_spaces(page, INDENT);
    vp_page_wrap(page, INDENT, 2 * INDENT, basis_words(arena, result, weakest(lines, count)));
}

void vp_latency_markdown(struct vp_buf *out, const struct vp_result *result) {
    struct line lines[LINES];
    uint32_t count = lines_of(lines, result);

    if (count == 0 && result->latency.why && runs(result))
        vp_buf_printf(out, "\nSpeed: none is given: %s.\n",
                      vp_text_clean(out->arena, result->latency.why, true));
    if (count == 0)
        return;
    vp_buf_add(out, "\n| speed | likely | interval |\n|---|---:|---:|\n");
    for (uint32_t i = 0; i < count; i++)
        vp_buf_printf(out, "| %s | %s | %s |\n", lines[i].label, likely(out->arena, &lines[i]),
                      interval(out->arena, &result->latency, &lines[i]));
    vp_buf_printf(
        out, "\nSpeed: %s.\n",
        vp_text_clean(out->arena, basis_words(out->arena, result, weakest(lines, count)), true));
}
