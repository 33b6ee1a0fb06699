/* A walk over the events of a step: how much there is at each instant, of what, and when it is
 * most. Bytes are those asked for, which add up; what the allocator makes of them is reserved.
 *
 * Events come as a sink gets them (step.h, torch_step.h); a VP_EVENT_MARK with id VP_MARK_STEP
 * stands between the first step and the second, which is as all later ones. Instants of one step,
 * cause, layer and micro batch that follow each other make a span, told by its largest instant. */
#ifndef VP_TIMELINE_WALK_H
#define VP_TIMELINE_WALK_H

#include "planner/memory/train_stage.h"
#include "planner/timeline/allocator.h"
#include "planner/timeline/event.h"

struct vp_walk_instant {
    uint64_t bytes;
    uint64_t component[VP_COMPONENT_COUNT];
    uint64_t kept;     /* of it, on tapes for the backward pass */
    uint64_t reserved; /* by the allocator, after the event */
    uint64_t at;       /* number of the event, from 0 */
    enum vp_step step;
    enum vp_train_cause cause;
    uint32_t layer;       /* in the model; VP_NO_LAYER: none */
    uint32_t micro_batch; /* from 0 */
};

struct vp_walk_span {
    uint64_t begin, end; /* events [begin, end) */
    struct vp_walk_instant most;
    uint64_t left_out; /* micro batches that repeat what was before and are not told; the span
                          itself has no events then */
    bool second;       /* of the second step */
};

struct vp_walk_step {
    struct vp_walk_instant peak;
    struct vp_walk_instant phase[VP_TRAIN_MOMENTS]; /* worst of each, VP_STEP_FORWARD first */
    uint64_t kept_peak;
};

struct vp_walk {
    struct vp_walk_step first, steady; /* steady: the second step */
    struct vp_allocator_stats memory;  /* of both, filled by vp_walk_end */
    bool out_of_memory; /* a request had no room: the walk ended there, its figures are void */
    bool broken;        /* so it did at an event that cannot be */
    struct vp_walk_span *span; /* when asked for */
    size_t spans;

    /* private */
    struct vp_arena *arena;
    struct vp_allocator *allocator;
    struct vp_walk_instant now;
    struct vp_walk_storage *storage;
    uint32_t storage_capacity;
    size_t span_capacity;
    bool tells, second;
};

/* The walk lives in the arena. settings: of the allocator. tells: spans are kept. */
struct vp_walk *vp_walk_begin(struct vp_arena *arena, const struct vp_allocator_settings *settings,
                              bool tells);
/* Where the events are to go. */
struct vp_event_sink vp_walk_sink(struct vp_walk *walk);
/* False: an event could not be: a storage given back that was not there. */
bool vp_walk_end(struct vp_walk *walk);

#endif
