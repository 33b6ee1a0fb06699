/* A training step over time, for people and as JSON. */
#include "reports/timeline_report.h"

#include <inttypes.h>
#include <string.h>

#include "planner/base/units.h"
#include "reports/sections.h"
#include "reports/train_report.h"
#include "reports/words.h"

enum { INDENT = 2, CAUSE = 47, WORK = 28, BATCH = 8, GIB = 9, GAP = 2, ROWS = 16, CELLS_MAX = 128 };

uint32_t vp_timeline_components(const struct vp_timeline *timeline,
                                enum vp_component out[VP_COMPONENT_COUNT]) {
    bool there[VP_COMPONENT_COUNT] = {false};
    uint32_t count = 0;

    for (size_t i = 0; i < timeline->walk->spans; i++)
        for (int c = 0; c < VP_COMPONENT_COUNT; c++)
            there[c] |= timeline->walk->span[i].most.component[c] > 0;
    for (int c = 0; c < VP_COMPONENT_COUNT; c++)
        if (there[c])
            out[count++] = (enum vp_component)c;
    return count;
}

/* ---- bars ---- */

static int scaled(uint64_t bytes, uint64_t scale, int cells) {
    if (scale == 0)
        return 0;
    return (int)vp_min((vp_mul_div(bytes, (uint64_t)cells * 2, scale) + 1) / 2, (uint64_t)cells);
}

/* All components one after the other. */
static void stacked(char *out, const struct vp_walk_instant *instant, uint64_t scale, int cells) {
    uint64_t sum = 0;
    int at = 0;

    for (int c = 0; c < VP_COMPONENT_COUNT; c++) {
        sum += instant->component[c];
        for (int end = scaled(sum, scale, cells); at < end; at++)
            out[at] = vp_component_letter((enum vp_component)c);
    }
    out[at] = '\0';
}

static int bar_cells(const struct vp_page *page, int before) {
    return (int)vp_min((uint64_t)(page->width - before), CELLS_MAX - 1);
}

/* ---- sections ---- */

static void table_head(const struct vp_page *page, const char *what, int cells) {
    vp_page_left(page, what, INDENT + cells);
    vp_page_right(page, "batch", BATCH);
    vp_page_right(page, "GiB", GIB);
    vp_buf_add(page->out, "\n");
}

/* What is at work, for which micro batch, how much there is. */
static void instant_row(const struct vp_page *page, const struct vp_walk_instant *instant,
                        const char *cause, int cells) {
    struct vp_arena *arena = page->out->arena;
    bool pass = instant->step >= VP_STEP_FORWARD && instant->step < VP_STEP_OPTIMIZER;

    vp_page_left(page, cause, cells);
    vp_page_right(page, pass ? vp_arena_printf(arena, "%" PRIu32, instant->micro_batch) : "",
                  BATCH);
    vp_page_right(page, vp_format_gib(arena, instant->bytes, 2), GIB);
}

static void head(const struct vp_page *page, const struct vp_timeline *t) {
    struct vp_arena *arena = page->out->arena;
    const struct vp_train_stage *s = t->stage;

    vp_page_printf(page, 0, INDENT, "%s, %s", vp_words_model(t->result->scenario),
                   vp_train_setup(arena, t->result));
    vp_page_printf(page, 0, INDENT, "stage %" PRIu32 " of %" PRIu32 ": %s, %s, %s in flight",
                   t->index, s->count, vp_words_plural(arena, s->layers, "layer", "layers"),
                   vp_words_plural(arena, s->micro_batches, "micro batch", "micro batches"),
                   vp_format_u64(arena, s->in_flight));
    vp_buf_add(page->out, "\n");
}

static void phases(const struct vp_page *page, const struct vp_timeline *t) {
    struct vp_arena *arena = page->out->arena;
    const struct vp_walk_step *step = &t->walk->steady;

    table_head(page, "  largest instants, allocated", CAUSE);
    for (int i = 0; i < VP_TRAIN_MOMENTS; i++) {
        const struct vp_walk_instant *instant = &step->phase[i];
        bool peak = instant->step == step->peak.step;
        if (instant->bytes == 0)
            continue;
        vp_buf_add(page->out, peak ? "> " : "  ");
        instant_row(page, instant, vp_timeline_cause(arena, instant), CAUSE);
        vp_buf_add(page->out, peak ? "  the peak\n" : "\n");
    }
}

/* Slices of the second step, of equal numbers of events, each by its largest instant. */
static void over_time(const struct vp_page *page, const struct vp_timeline *t) {
    const struct vp_walk *walk = t->walk;
    struct vp_arena *arena = page->out->arena;
    int cells = bar_cells(page, INDENT + WORK + BATCH + GIB + GAP);
    uint64_t events = 0, done = 0;
    const struct vp_walk_span *most = NULL;
    char bar[CELLS_MAX];

    for (size_t i = 0; i < walk->spans; i++)
        if (walk->span[i].second)
            events += walk->span[i].end - walk->span[i].begin;
    vp_buf_add(page->out, "\n");
    table_head(page, "  the step, slice by slice", WORK);
    for (size_t i = 0; i < walk->spans; i++) {
        const struct vp_walk_span *span = &walk->span[i];
        if (!span->second || span->left_out > 0)
            continue;
        if (!most || span->most.bytes > most->most.bytes)
            most = span;
        uint64_t slice = done * ROWS / events;
        done += span->end - span->begin;
        if (done * ROWS / events == slice)
            continue;
        vp_page_spaces(page, INDENT);
        const char *cause = vp_timeline_cause(arena, &most->most);
        instant_row(page, &most->most, vp_arena_text(arena, cause, strcspn(cause, ",")), WORK);
        vp_page_spaces(page, GAP);
        stacked(bar, &most->most, walk->steady.peak.bytes, cells);
        vp_buf_add(page->out, bar);
        vp_buf_add(page->out, "\n");
        most = NULL;
    }
}

static void at_peak(const struct vp_page *page, const struct vp_timeline *t) {
    enum { NAME = 16, SHARE = 8 };
    struct vp_arena *arena = page->out->arena;
    const struct vp_walk_instant *peak = &t->walk->steady.peak;
    int cells = bar_cells(page, INDENT + NAME + GIB + SHARE + GAP);
    char bar[CELLS_MAX];

    vp_buf_add(page->out, "\n");
    vp_page_left(page, "  at the peak", INDENT + NAME);
    vp_page_right(page, "GiB", GIB);
    vp_page_right(page, "of it", SHARE);
    vp_buf_add(page->out, "\n");
    for (int c = 0; c < VP_COMPONENT_COUNT; c++) {
        if (peak->component[c] == 0)
            continue;
        int n = scaled(peak->component[c], peak->bytes, cells);
        memset(bar, vp_component_letter((enum vp_component)c), (size_t)(n > 0 ? n : 1));
        bar[n > 0 ? n : 1] = '\0';
        vp_page_spaces(page, INDENT);
        vp_page_left(page, vp_words_component(arena, (enum vp_component)c), NAME);
        vp_page_right(page, vp_format_gib(arena, peak->component[c], 2), GIB);
        vp_page_right(page, vp_words_share(arena, peak->component[c], peak->bytes), SHARE);
        vp_page_spaces(page, GAP);
        vp_buf_add(page->out, bar);
        vp_buf_add(page->out, "\n");
    }
}

static uint64_t left_out(const struct vp_walk *walk) {
    uint64_t n = 0;
    for (size_t i = 0; i < walk->spans; i++)
        if (walk->span[i].second)
            n += walk->span[i].left_out;
    return n;
}

static void figures(const struct vp_page *page, const struct vp_timeline *t) {
    struct vp_arena *arena = page->out->arena;
    const struct vp_walk *walk = t->walk;
    const struct vp_allocator_stats *memory = &walk->memory;

    vp_buf_add(page->out, "\n");
    vp_page_spaces(page, INDENT);
    vp_page_printf(page, INDENT, 2 * INDENT,
                   "reserved by the allocator at most %s GiB in %s, %s of it not needed",
                   vp_format_gib(arena, memory->reserved.peak, 2),
                   vp_words_plural(arena, memory->segments.peak, "segment", "segments"),
                   vp_format_gib(arena, vp_allocator_fragmentation(memory), 2));
    if (t->settings.device_bytes > 0) {
        uint64_t left = vp_above(t->settings.device_bytes, t->settings.other_bytes);
        vp_page_spaces(page, INDENT);
        vp_page_printf(page, INDENT, 2 * INDENT, "the device has %s GiB, %s of them for others%s",
                       vp_format_gib(arena, t->settings.device_bytes, 2),
                       vp_format_gib(arena, t->settings.other_bytes, 2),
                       memory->reserved.peak > left ? ": this is more, and told without a limit"
                                                    : "");
    }
    vp_page_spaces(page, INDENT);
    vp_page_printf(page, INDENT, 2 * INDENT,
                   "the first step, which begins without optimizer states, peaks at %s GiB",
                   vp_format_gib(arena, walk->first.peak.bytes, 2));
    if (walk->steady.kept_peak > 0) {
        vp_page_spaces(page, INDENT);
        vp_page_printf(page, INDENT, 2 * INDENT, "kept for the backward pass at most %s GiB",
                       vp_format_gib(arena, walk->steady.kept_peak, 2));
    }
    if (left_out(walk) == 0)
        return;
    vp_page_spaces(page, INDENT);
    vp_page_printf(page, INDENT, 2 * INDENT,
                   "%" PRIu64 " of %" PRIu64
                   " micro batches repeat those before them and are left out",
                   left_out(walk), t->stage->micro_batches);
}

void vp_timeline_text(struct vp_buf *out, const struct vp_timeline *timeline,
                      const struct vp_report_options *options) {
    struct vp_page page = vp_section_page(out, options);

    head(&page, timeline);
    phases(&page, timeline);
    over_time(&page, timeline);
    at_peak(&page, timeline);
    figures(&page, timeline);
}

/* ---- JSON ---- */

static void json_instant(struct vp_json *json, const struct vp_walk_instant *instant) {
    vp_json_map(json);
    vp_json_key_text(json, "phase", vp_step_name(instant->step));
    vp_json_key_text(json, "cause", vp_timeline_cause(json->out->arena, instant));
    vp_json_key(json, "layer");
    if (instant->layer == VP_NO_LAYER)
        vp_json_null(json);
    else
        vp_json_u64(json, instant->layer);
    vp_json_key_u64(json, "micro_batch", instant->micro_batch);
    vp_json_key_u64(json, "event", instant->at);
    vp_json_key_u64(json, "bytes", instant->bytes);
    vp_json_key_u64(json, "reserved_bytes", instant->reserved);
    vp_json_key(json, "components");
    vp_json_map_inline(json);
    for (int c = 0; c < VP_COMPONENT_COUNT; c++)
        if (instant->component[c] > 0)
            vp_json_key_u64(json, vp_component_name((enum vp_component)c), instant->component[c]);
    vp_json_end(json, '}');
    vp_json_end(json, '}');
}

static void json_step(struct vp_json *json, const char *key, const struct vp_walk_step *step) {
    vp_json_key(json, key);
    vp_json_map(json);
    vp_json_key(json, "peak");
    json_instant(json, &step->peak);
    vp_json_key(json, "phases");
    vp_json_list(json);
    for (int i = 0; i < VP_TRAIN_MOMENTS; i++)
        if (step->phase[i].bytes > 0)
            json_instant(json, &step->phase[i]);
    vp_json_end(json, ']');
    vp_json_key_u64(json, "kept_for_backward_peak_bytes", step->kept_peak);
    vp_json_end(json, '}');
}

void vp_timeline_json(struct vp_json *json, const struct vp_timeline *timeline) {
    const struct vp_allocator_stats *memory = &timeline->walk->memory;

    vp_json_map(json);
    vp_json_key_text(json, "schema", "vramplan.timeline/1");
    vp_json_key_text(json, "scenario", timeline->result->scenario->name);
    vp_json_key_u64(json, "stage", timeline->index);
    vp_json_key_u64(json, "stages", timeline->stage->count);
    vp_json_key_u64(json, "micro_batches", timeline->stage->micro_batches);
    vp_json_key_u64(json, "in_flight", timeline->stage->in_flight);
    vp_json_key_u64(json, "left_out_micro_batches", left_out(timeline->walk));
    json_step(json, "step", &timeline->walk->steady);
    json_step(json, "first_step", &timeline->walk->first);
    vp_json_key(json, "allocator");
    vp_json_map(json);
    vp_json_key_u64(json, "allocated_peak_bytes", memory->allocated.peak);
    vp_json_key_u64(json, "active_peak_bytes", memory->active.peak);
    vp_json_key_u64(json, "reserved_peak_bytes", memory->reserved.peak);
    vp_json_key_u64(json, "fragmentation_bytes", vp_allocator_fragmentation(memory));
    vp_json_key_u64(json, "segments_peak", memory->segments.peak);
    vp_json_key_u64(json, "retries", memory->retries);
    vp_json_end(json, '}');
    vp_json_end(json, '}');
}
