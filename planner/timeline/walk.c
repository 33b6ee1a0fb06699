#include "planner/timeline/walk.h"

#include <string.h>

#include "planner/timeline/step.h"

struct vp_walk_storage {
    uint64_t bytes;
    uint8_t component, kept;
};

enum { FIRST_STORAGES = 1024, FIRST_SPANS = 256 };

static struct vp_walk_storage *storage_of(struct vp_walk *w, uint32_t id) {
    if (id >= w->storage_capacity) {
        size_t capacity = w->storage_capacity ? w->storage_capacity : FIRST_STORAGES;
        while (capacity <= id)
            capacity *= 2;
        struct vp_walk_storage *more = VP_NEW_ARRAY(w->arena, capacity, struct vp_walk_storage);
        if (w->storage_capacity)
            memcpy(more, w->storage, w->storage_capacity * sizeof *more);
        w->storage = more;
        w->storage_capacity = (uint32_t)capacity;
    }
    return &w->storage[id];
}

/* ---- spans ---- */

static bool same_work(const struct vp_walk_instant *a, const struct vp_walk_instant *b) {
    return a->step == b->step && a->cause == b->cause && a->layer == b->layer &&
           a->micro_batch == b->micro_batch;
}

static struct vp_walk_span *new_span(struct vp_walk *w) {
    if (w->spans == w->span_capacity) {
        size_t capacity = w->span_capacity ? 2 * w->span_capacity : FIRST_SPANS;
        struct vp_walk_span *more = VP_NEW_ARRAY(w->arena, capacity, struct vp_walk_span);
        if (w->spans)
            memcpy(more, w->span, w->spans * sizeof *more);
        w->span = more;
        w->span_capacity = capacity;
    }
    w->span[w->spans] = (struct vp_walk_span){
        .begin = w->now.at, .end = w->now.at, .most = w->now, .second = w->second};
    return &w->span[w->spans++];
}

static void tell(struct vp_walk *w) {
    struct vp_walk_span *span = w->spans ? &w->span[w->spans - 1] : NULL;

    if (!span || span->left_out > 0 || span->second != w->second ||
        !same_work(&span->most, &w->now))
        span = new_span(w);
    span->end = w->now.at + 1;
    if (w->now.bytes > span->most.bytes)
        span->most = w->now;
}

/* ---- events ---- */

static void keep_larger(struct vp_walk_instant *most, const struct vp_walk_instant *now) {
    if (now->bytes > most->bytes)
        *most = *now;
}

static void note(struct vp_walk *w) {
    struct vp_walk_step *step = w->second ? &w->steady : &w->first;

    step->kept_peak = vp_max(step->kept_peak, w->now.kept);
    keep_larger(&step->peak, &w->now);
    if (w->now.step >= VP_STEP_FORWARD)
        keep_larger(&step->phase[w->now.step - VP_STEP_FORWARD], &w->now);
}

static bool change(struct vp_walk *w, const struct vp_event *event) {
    if (event->component >= VP_COMPONENT_COUNT || event->step >= VP_STEP_COUNT)
        return false;
    struct vp_walk_storage *storage = storage_of(w, event->id);
    struct vp_walk_instant *now = &w->now;
    if (event->kind == VP_EVENT_TAKE) {
        *storage = (struct vp_walk_storage){event->bytes, event->component, event->kept};
        if (__builtin_add_overflow(now->bytes, event->bytes, &now->bytes))
            return false;
        now->component[storage->component] += storage->bytes;
        now->kept += storage->kept ? storage->bytes : 0;
    } else {
        now->bytes -= storage->bytes;
        now->component[storage->component] -= storage->bytes;
        now->kept -= storage->kept ? storage->bytes : 0;
        storage->bytes = 0;
    }
    return true;
}

static void mark(struct vp_walk *w, const struct vp_event *event) {
    if (event->id == VP_MARK_STEP) {
        w->second = true;
        note(w); /* what stays is there from the beginning */
    } else if (w->tells) {
        new_span(w)->left_out = event->bytes;
    }
}

static void on_event(void *user, const struct vp_event *event) {
    struct vp_walk *w = user;

    if (w->broken || w->out_of_memory)
        return;
    w->now.step = (enum vp_step)event->step;
    w->now.cause = (enum vp_train_cause)event->cause;
    w->now.layer = event->layer;
    w->now.micro_batch = event->micro_batch;
    /* the allocator knows which storages there are */
    enum vp_replay result = vp_allocator_apply(w->allocator, event);
    bool changes = event->kind == VP_EVENT_TAKE || event->kind == VP_EVENT_GIVE;
    if (result == VP_REPLAY_BAD_EVENT || (changes && !change(w, event))) {
        w->broken = true;
        return;
    }
    w->out_of_memory = result == VP_REPLAY_OUT_OF_MEMORY;
    w->now.reserved = vp_allocator_reserved(w->allocator);
    if (event->kind == VP_EVENT_MARK)
        mark(w, event);
    else if (event->kind == VP_EVENT_TAKE)
        note(w);
    if (w->tells && changes)
        tell(w);
    w->now.at++;
}

static uint64_t driver_calls(void *user) {
    struct vp_walk *w = user;
    return vp_allocator_driver_calls(w->allocator);
}

struct vp_walk *vp_walk_begin(struct vp_arena *arena, const struct vp_allocator_settings *settings,
                              bool tells) {
    struct vp_walk *w = VP_NEW(arena, struct vp_walk);
    w->arena = arena;
    w->tells = tells;
    w->allocator = vp_allocator_new(arena, settings);
    return w;
}

struct vp_event_sink vp_walk_sink(struct vp_walk *walk) {
    return (struct vp_event_sink){.event = on_event, .driver_calls = driver_calls, .user = walk};
}

bool vp_walk_end(struct vp_walk *walk) {
    walk->memory = vp_allocator_stats(walk->allocator);
    return !walk->broken;
}
