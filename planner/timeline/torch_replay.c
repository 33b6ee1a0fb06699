#include "planner/timeline/torch_replay.h"

#include <string.h>

struct watch {
    struct vp_torch_peaks *out;
    struct vp_allocator *allocator;
    const struct vp_allocator_settings *settings;
    uint64_t now, component[VP_COMPONENT_COUNT];
    bool second;
};

static void note(struct watch *w, const struct vp_event *event) {
    struct vp_torch_instant *worst = &w->out->phase[event->step - VP_STEP_FORWARD];

    if (!w->second) {
        w->out->first_step_peak = vp_max(w->out->first_step_peak, w->now);
        return;
    }
    if (w->now <= worst->bytes)
        return;
    worst->bytes = w->now;
    worst->layer = event->layer;
    memcpy(worst->component, w->component, sizeof worst->component);
}

static void event(void *user, const struct vp_event *event) {
    struct watch *w = user;
    uint64_t size = vp_allocator_round(w->settings, event->bytes);

    if (event->kind == VP_EVENT_MARK) {
        w->second = true;
    } else if (event->kind == VP_EVENT_TAKE) {
        w->now += size;
        w->component[event->component] += size;
        if (event->step >= VP_STEP_FORWARD && event->step < VP_STEP_COUNT)
            note(w, event);
    } else if (event->kind == VP_EVENT_GIVE) {
        w->now -= size;
        w->component[event->component] -= size;
    }
    if (vp_allocator_apply(w->allocator, event) == VP_REPLAY_OUT_OF_MEMORY)
        w->out->out_of_memory = true;
}

static bool replay(struct vp_arena *arena, struct vp_torch_peaks *out,
                   const struct vp_scenario *scenario, const struct vp_train_stage *stage,
                   const struct vp_allocator_settings *settings) {
    struct watch w = {
        .out = out, .allocator = vp_allocator_new(arena, settings), .settings = settings};
    struct vp_event_sink sink = {.event = event, .user = &w};

    memset(out, 0, sizeof *out);
    bool fine = vp_torch_step(arena, scenario, stage, &sink);
    for (int i = 0; i < VP_TRAIN_MOMENTS; i++)
        out->allocated_peak = vp_max(out->allocated_peak, out->phase[i].bytes);
    out->reserved_peak = vp_allocator_stats(w.allocator).reserved.peak;
    return fine;
}

/* Near the limit the cache goes back to the driver, which keeps the reserved peak below it. What
 * does not fit even so is replayed without a limit: how much it would take. */
bool vp_torch_replay(struct vp_arena *arena, struct vp_torch_peaks *out,
                     const struct vp_scenario *scenario, const struct vp_train_stage *stage,
                     const struct vp_allocator_settings *settings) {
    struct vp_allocator_settings free = *settings;

    if (!replay(arena, out, scenario, stage, settings))
        return false;
    if (!out->out_of_memory)
        return true;
    free.device_bytes = 0;
    bool fine = replay(arena, out, scenario, stage, &free);
    out->out_of_memory = true;
    return fine;
}
