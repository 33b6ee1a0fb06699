#include "planner/plan/train_timeline.h"

#include <inttypes.h>

#include "planner/plan/train_peaks.h"

/* False: the events could not be written or make no sense. */
static bool walk_through(struct vp_arena *arena, struct vp_timeline *out,
                         const struct vp_allocator_settings *settings) {
    struct vp_walk *walk = vp_walk_begin(arena, settings, true);
    struct vp_event_sink sink = vp_walk_sink(walk);

    out->walk = walk;
    return vp_train_write(arena, out->result->scenario, out->stage, &sink) && vp_walk_end(walk);
}

bool vp_timeline_make(struct vp_arena *arena, struct vp_timeline *out,
                      const struct vp_result *result, uint32_t index) {
    struct vp_allocator_settings unlimited;

    *out = (struct vp_timeline){
        .result = result, .index = index, .stage = &result->training.stage[index].numbers};
    out->settings = vp_train_allocator(arena, result->scenario, out->stage);
    if (!walk_through(arena, out, &out->settings))
        return false;
    if (!out->walk->out_of_memory)
        return true;
    unlimited = out->settings;
    unlimited.device_bytes = unlimited.fraction_ppb = 0;
    return walk_through(arena, out, &unlimited);
}

const char *vp_timeline_cause(struct vp_arena *arena, const struct vp_walk_instant *instant) {
    const char *what = "";

    if (instant->step < VP_STEP_FORWARD)
        return "weights and states";
    if (instant->step == VP_STEP_OPTIMIZER)
        return "optimizer's step";
    if (instant->layer == VP_NO_LAYER) {
        switch (instant->cause) {
        case VP_CAUSE_LOSS:
            return "head and loss";
        case VP_CAUSE_HEAD:
            return "backward of the head";
        case VP_CAUSE_EMBEDDING:
            return "backward of the embedding";
        default:
            return instant->step == VP_STEP_FORWARD ? "forward" : "backward";
        }
    }
    if (instant->step == VP_STEP_FORWARD)
        return vp_arena_printf(arena, "forward of block %" PRIu32, instant->layer);
    if (instant->cause == VP_CAUSE_REBUILT)
        what = ", while its tape is rebuilt";
    else if (instant->cause == VP_CAUSE_GRADIENTS)
        what = ", with all gradients";
    return vp_arena_printf(arena, "backward of block %" PRIu32 "%s", instant->layer, what);
}
