/* One thing that happens to memory during a training step: what the step writes and the allocator
 * replays. The allocator reads kind, stream, id and bytes; the rest says what the bytes are for and
 * when, so that a peak can be told in words. */
#ifndef VP_TIMELINE_EVENT_H
#define VP_TIMELINE_EVENT_H

#include <stdint.h>

enum vp_event_kind {
    VP_EVENT_TAKE,  /* `id` comes into being on `stream`, with `bytes` */
    VP_EVENT_GIVE,  /* `id` is freed */
    VP_EVENT_USE,   /* work on `stream` uses `id`, which was made on another one */
    VP_EVENT_SYNC,  /* all work on `stream` is done */
    VP_EVENT_EMPTY, /* empty_cache() */
    VP_EVENT_MARK,  /* nothing: an instant to point at */
    VP_EVENT_KINDS
};

struct vp_event {
    uint8_t kind;      /* enum vp_event_kind */
    uint8_t stream;    /* below VP_STREAMS */
    uint8_t component; /* enum vp_component */
    uint8_t step;      /* enum vp_step */
    uint32_t id;       /* of the storage; dense, from 0 */
    uint64_t bytes;
    uint32_t layer;       /* index in the model, VP_NO_LAYER (train_stage.h): none */
    uint32_t micro_batch; /* from 0 */
    uint8_t cause;        /* enum vp_train_cause of train_stage.h */
    uint8_t kept;         /* on a tape, for the backward pass */
};

enum { VP_STREAMS = 64 };

/* Where events go as they are made. */
struct vp_event_sink {
    void (*event)(void *user, const struct vp_event *event);
    /* A number that changes with each call to the driver: while it stands, memory has settled.
     * NULL: nobody can say, then nothing is left out. */
    uint64_t (*driver_calls)(void *user);
    void *user;
};

#endif
