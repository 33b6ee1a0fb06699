/* The changes that a scenario allows: which levers (levers.def) it has, and their values. A value
 * is a set of settings to lay over the scenario. Values that an engine refuses are here too;
 * finishing the variant refuses them. */
#ifndef VP_API_LEVERS_H
#define VP_API_LEVERS_H

#include "planner/import/gpu_profile.h"
#include "planner/import/input.h"
#include "planner/plan/changes.h"

enum vp_lever_id {
#define X(name, text, engines, field, how, values, quality, speed, money, what) VP_LEVER_##name,
#include "api/levers.def"
#undef X
    VP_LEVER_COUNT
};

enum vp_lever_how { VP_HOW_WORDS, VP_HOW_HALVES, VP_HOW_MADE };

struct vp_lever_value {
    struct vp_setting *set;
    uint32_t sets;
    const char *from, *to; /* of the lever's field, or in words */
    uint64_t number;       /* HALVES */
    /* Of two values with different grades the smaller is the milder change; where it fits the other
     * one is not wanted. Equal grades: neither replaces the other. */
    uint32_t grade;
    double size; /* how far it goes, for comparing; 0: no degrees */
    bool alone;  /* takes long to evaluate: tried by itself, not together with other changes */
};

struct vp_lever {
    enum vp_lever_id id;
    const char *name, *what, *quality, *speed, *money;
    const char *field; /* path, in the engine's own name */
    enum vp_lever_how how;
    uint64_t present, step; /* HALVES: the number now, and what refinements are multiples of */
    struct vp_lever_value *value;
    uint32_t values;
};

/* Levers with at least one value, in the order of the table; out has room for VP_LEVER_COUNT.
 * gpus: cards that may stand in for the scenario's; NULL: none. */
uint32_t vp_levers_of(struct vp_arena *arena, struct vp_lever *out, const struct vp_scenario *base,
                      const struct vp_gpus *gpus);
/* A value of a lever with numbers. */
struct vp_lever_value vp_lever_number(struct vp_arena *arena, const struct vp_lever *lever,
                                      const struct vp_scenario *base, uint64_t number);
/* A lever of any engine has that name; all names, with commas between. */
bool vp_lever_is(const char *name);
const char *vp_lever_names(struct vp_arena *arena);
/* Two levers that set the same things cannot be pulled together. */
bool vp_levers_exclude(enum vp_lever_id a, enum vp_lever_id b);

/* Layouts of `count` devices: settings for each way to divide them by tensor, pipeline, data and,
 * where the model has experts and the scenario does not say, expert parallelism; that of the
 * scenario itself only with `same`. */
struct vp_layouts {
    struct vp_lever_value *item;
    uint32_t count;
};
struct vp_layouts vp_layouts_of(struct vp_arena *arena, const struct vp_scenario *base,
                                uint64_t count, bool same);
/* The settings that give a workload of so much: serve.context, serve.concurrency or
 * train.micro_batch (global batch: as many passes as before), with what has to go along. */
struct vp_lever_value vp_lever_workload(struct vp_arena *arena, const struct vp_scenario *base,
                                        enum vp_field field, uint64_t number);

#endif
