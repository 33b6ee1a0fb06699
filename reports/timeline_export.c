/* Every instant of a training step: CSV, Chrome's trace format. */
#include <inttypes.h>

#include "reports/timeline_report.h"

/* ---- CSV ---- */

void vp_timeline_csv(struct vp_buf *out, const struct vp_timeline *timeline) {
    const struct vp_walk *walk = timeline->walk;
    enum vp_component shown[VP_COMPONENT_COUNT];
    uint32_t count = vp_timeline_components(timeline, shown);

    vp_buf_add(out, "event,events,step,phase,cause,layer,micro_batch,left_out");
    for (uint32_t c = 0; c < count; c++)
        vp_buf_printf(out, ",%s_bytes", vp_component_name(shown[c]));
    vp_buf_add(out, ",total_bytes,kept_bytes,reserved_bytes\n");
    for (size_t i = 0; i < walk->spans; i++) {
        const struct vp_walk_span *span = &walk->span[i];
        const struct vp_walk_instant *most = &span->most;
        vp_buf_printf(out, "%" PRIu64 ",%" PRIu64 ",%d,%s,\"%s\",", span->begin,
                      span->end - span->begin, span->second ? 2 : 1, vp_step_name(most->step),
                      span->left_out > 0 ? "micro batches that repeat those before"
                                         : vp_timeline_cause(out->arena, most));
        if (most->layer != VP_NO_LAYER)
            vp_buf_printf(out, "%" PRIu32, most->layer);
        vp_buf_printf(out, ",%" PRIu32 ",%" PRIu64, most->micro_batch, span->left_out);
        for (uint32_t c = 0; c < count; c++)
            vp_buf_printf(out, ",%" PRIu64, most->component[shown[c]]);
        vp_buf_printf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", most->bytes, most->kept,
                      most->reserved);
    }
}

/* ---- trace ---- */

enum row { ROW_STEP = 1, ROW_PHASE, ROW_WORK };

static void begin_event(struct vp_json *json, const struct vp_timeline *t, const char *kind,
                        const char *name, uint64_t at) {
    vp_json_map_inline(json);
    vp_json_key_text(json, "ph", kind);
    vp_json_key_text(json, "name", name);
    vp_json_key_u64(json, "pid", t->index);
    vp_json_key_u64(json, "ts", at);
}

static void name_event(struct vp_json *json, const struct vp_timeline *t, const char *what,
                       uint64_t row, const char *name) {
    begin_event(json, t, "M", what, 0);
    vp_json_key_u64(json, "tid", row);
    vp_json_key(json, "args");
    vp_json_map(json);
    vp_json_key_text(json, "name", name);
    vp_json_end(json, '}');
    vp_json_end(json, '}');
}

static void bar(struct vp_json *json, const struct vp_timeline *t, enum row row, const char *name,
                uint64_t begin, uint64_t end) {
    begin_event(json, t, "X", name, begin);
    vp_json_key_u64(json, "dur", end - begin);
    vp_json_key_u64(json, "tid", (uint64_t)row);
    vp_json_end(json, '}');
}

static void work_bar(struct vp_json *json, const struct vp_timeline *t,
                     const struct vp_walk_span *span) {
    begin_event(json, t, "X", vp_timeline_cause(json->out->arena, &span->most), span->begin);
    vp_json_key_u64(json, "dur", span->end - span->begin);
    vp_json_key_u64(json, "tid", ROW_WORK);
    vp_json_key(json, "args");
    vp_json_map(json);
    vp_json_key_u64(json, "micro_batch", span->most.micro_batch);
    vp_json_key_u64(json, "bytes", span->most.bytes);
    vp_json_end(json, '}');
    vp_json_end(json, '}');
}

static void counters(struct vp_json *json, const struct vp_timeline *t,
                     const struct vp_walk_span *span, const enum vp_component *shown,
                     uint32_t count) {
    begin_event(json, t, "C", "allocated", span->begin);
    vp_json_key(json, "args");
    vp_json_map(json);
    for (uint32_t c = 0; c < count; c++)
        vp_json_key_u64(json, vp_component_name(shown[c]), span->most.component[shown[c]]);
    vp_json_end(json, '}');
    vp_json_end(json, '}');
    begin_event(json, t, "C", "reserved", span->begin);
    vp_json_key(json, "args");
    vp_json_map(json);
    vp_json_key_u64(json, "reserved", span->most.reserved);
    vp_json_end(json, '}');
    vp_json_end(json, '}');
}

/* A bar over spans that follow each other in one phase, or in one step. */
static size_t run_of(const struct vp_walk *walk, size_t first, bool phase) {
    const struct vp_walk_span *span = walk->span;
    size_t end = first + 1;
    while (end < walk->spans && span[end].second == span[first].second &&
           (!phase || (span[end].most.step == span[first].most.step &&
                       (span[end].left_out > 0) == (span[first].left_out > 0))))
        end++;
    return end;
}

static void bars(struct vp_json *json, const struct vp_timeline *t) {
    const struct vp_walk *walk = t->walk;
    const struct vp_walk_span *span = walk->span;
    size_t end;

    for (size_t i = 0; i < walk->spans; i = end) {
        end = run_of(walk, i, false);
        bar(json, t, ROW_STEP, span[i].second ? "a later step" : "first step", span[i].begin,
            span[end - 1].end);
    }
    for (size_t i = 0; i < walk->spans; i = end) {
        end = run_of(walk, i, true);
        if (span[i].left_out > 0)
            bar(json, t, ROW_PHASE,
                vp_arena_printf(json->out->arena, "%" PRIu64 " micro batches left out",
                                span[i].left_out),
                span[i].begin, span[i].end);
        else
            bar(json, t, ROW_PHASE, vp_step_name(span[i].most.step), span[i].begin,
                span[end - 1].end);
    }
}

void vp_timeline_trace(struct vp_buf *out, const struct vp_timeline *timeline) {
    const struct vp_walk *walk = timeline->walk;
    enum vp_component shown[VP_COMPONENT_COUNT];
    uint32_t count = vp_timeline_components(timeline, shown);
    struct vp_json json = vp_json_begin(out);

    vp_json_map(&json);
    vp_json_key(&json, "otherData");
    vp_json_map(&json);
    vp_json_key_text(&json, "time",
                     "a microsecond stands for one event: a storage that comes or goes");
    vp_json_end(&json, '}');
    vp_json_key(&json, "traceEvents");
    vp_json_list(&json);
    name_event(&json, timeline, "process_name", 0,
               vp_arena_printf(out->arena, "stage %" PRIu32, timeline->index));
    name_event(&json, timeline, "thread_name", ROW_STEP, "step");
    name_event(&json, timeline, "thread_name", ROW_PHASE, "phase");
    name_event(&json, timeline, "thread_name", ROW_WORK, "at work");
    bars(&json, timeline);
    for (size_t i = 0; i < walk->spans; i++) {
        if (walk->span[i].left_out > 0)
            continue;
        work_bar(&json, timeline, &walk->span[i]);
        counters(&json, timeline, &walk->span[i], shown, count);
    }
    vp_json_end(&json, ']');
    vp_json_end(&json, '}');
    vp_buf_add(out, "\n");
}
