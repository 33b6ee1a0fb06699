/* Why one plan takes more than another: the settings that differ, applied one at a time in a fixed
 * order, and the bytes that each of them moved. Plain values, filled by api/diff, shown by
 * reports/; the folds that turn two plans into one step are here.
 *
 * Bytes are those of the worst device at its peak, by the likely figures: what a budget is held
 * against. Every step is the difference of two whole plans, and the last plan is the new scenario
 * itself, so the steps add up to the whole difference: nothing is left unexplained. What a change
 * is said to move depends on the order where changes act on each other; the order is fixed
 * (vp_cause_group), not the only one possible. */
#ifndef VP_PLAN_DIFFERENCE_H
#define VP_PLAN_DIFFERENCE_H

#include "planner/plan/result.h"

/* The order in which changes are applied; within a group, by key path. */
enum vp_cause_group {
    VP_CAUSE_MODEL,    /* the model's shape, and models beside it */
    VP_CAUSE_DTYPE,    /* formats of weights, cache and computation */
    VP_CAUSE_CONTEXT,  /* tokens per sequence */
    VP_CAUSE_REQUESTS, /* sequences at once, adapters */
    VP_CAUSE_PARALLEL, /* layout, and the number of devices */
    VP_CAUSE_ENGINE,   /* engine and versions */
    VP_CAUSE_SETTINGS, /* its arguments and environment, how training is done */
    VP_CAUSE_DEVICE,   /* the device */
    VP_CAUSE_REST,     /* everything else */
    VP_CAUSE_GROUPS
};

/* One setting that differs. */
struct vp_cause {
    const char *path;      /* "serve.context", "model.num_hidden_layers" */
    const char *from, *to; /* as written, on one line; NULL: it is not said there */
    struct vp_pos pos;     /* of the new one, of the old one when it was taken away; file NULL: it
                              stands in no file (command line) */
    enum vp_cause_group group;
};

/* What a component's rows of one owner take, on the worst device at its peak. */
struct vp_owner_bytes {
    enum vp_component component;
    const char *owner;
    uint64_t bytes;
};

/* The bytes of one plan that a step compares. */
struct vp_worst_bytes {
    enum vp_verdict verdict;
    struct vp_amount need;
    uint64_t usable_bytes;
    int64_t headroom_bytes;
    uint64_t component[VP_COMPONENT_COUNT];
    struct vp_owner_bytes *owner; /* by component, then by owner's name */
    uint32_t owners;
};

struct vp_moved {
    enum vp_component component;
    const char *owner;
    int64_t bytes; /* never 0 */
};

/* One step from a plan to the next. Several causes: a change by itself was refused (a layout that
 * its devices do not hold), or a model was replaced as a whole. */
struct vp_difference_step {
    const struct vp_cause *cause;
    uint32_t causes;
    bool whole_model; /* the first cause is the model, the others say what is different in it */
    int64_t need_bytes;
    int64_t usable_bytes; /* what the engine may take grew by */
    int64_t component[VP_COMPONENT_COUNT];
    struct vp_moved *moved;
    uint32_t moved_count;
    enum vp_verdict verdict; /* after it */
};

struct vp_difference {
    const struct vp_cause *cause; /* all, in the order of application */
    uint32_t causes;
    /* none when either plan does not exist, or nothing differs */
    struct vp_difference_step *step;
    uint32_t steps;
    bool planned;                        /* both plans are there */
    struct vp_worst_bytes before, after; /* zero where there is no plan */
};

/* Two scenarios of one name, of which one may be missing or without a plan. */
struct vp_compared {
    const char *name;                       /* the new one's where there are both */
    bool in_before, in_after;               /* there is a scenario */
    const struct vp_result *before, *after; /* NULL: none, or it has no plan */
    const struct vp_difference *difference; /* NULL: only one of them is there */
};

/* A plan's bytes; the result may go away afterwards, owners' names are copied. */
void vp_worst_bytes_of(struct vp_arena *arena, struct vp_worst_bytes *out,
                       const struct vp_result *result);
/* The differences; cause and causes are the caller's. */
void vp_difference_step_of(struct vp_arena *arena, struct vp_difference_step *out,
                           const struct vp_worst_bytes *before, const struct vp_worst_bytes *after);
/* A step moved something: bytes, or what the engine may take. */
bool vp_difference_moves(const struct vp_difference_step *step);
/* The step that moved most of a component towards where it ended (VP_COMPONENT_COUNT: of the need
 * as a whole); NULL: none did. */
const struct vp_difference_step *vp_difference_main(const struct vp_difference *difference,
                                                    int component);
const char *vp_cause_group_name(enum vp_cause_group group); /* "model", "dtype", ... */

#endif
