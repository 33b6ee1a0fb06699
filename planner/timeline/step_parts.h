/* What the files that write a step as events share. Private to step*.c. */
#ifndef VP_TIMELINE_STEP_PARTS_H
#define VP_TIMELINE_STEP_PARTS_H

#include "planner/model/scenario.h"
#include "planner/timeline/step.h"

/* Storages of a row: a layer, or what stands around the layers. Item 0 is its input. */
enum { VP_ROW_ITEMS = 64 };

struct vp_row_items {
    uint64_t bytes[VP_ROW_ITEMS]; /* from 1 */
    uint32_t count;               /* item 0 included */
};

struct vp_step_row {
    struct vp_row_items saved, rebuilt;
    uint64_t input_bytes, output_bytes;
    bool keeps_input; /* the input is on the tape, or is what recomputation begins with */
};

/* Rows: the layers, then the embedding and the head. */
struct vp_step_row *vp_step_rows(struct vp_arena *arena, const struct vp_scenario *scenario,
                                 const struct vp_train_stage *stage);

/* One pass of a chunk for a micro batch. */
struct vp_step_pass {
    uint32_t micro, chunk;
};

struct vp_step_schedule {
    struct vp_step_pass *forward, *backward; /* in order */
    uint64_t count;                          /* of each */
    uint64_t ahead;                          /* forward passes before the first backward pass */
    uint64_t slots;   /* micro batches that are apart at once, rounded up to a turn */
    uint64_t period;  /* passes after which the order repeats, with the same slots */
    uint64_t regular; /* passes of full turns */
};

struct vp_step_schedule vp_step_schedule_make(struct vp_arena *arena,
                                              const struct vp_train_stage *stage);

#endif
