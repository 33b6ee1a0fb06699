/* Candidates of fit_llama.c: one of them sized, and one quantity driven as far as it goes. Private
 * to that search. */
#ifndef VP_PLAN_FIT_SEARCH_H
#define VP_PLAN_FIT_SEARCH_H

#include "planner/plan/fit_llama.h"

/* How sure a candidate has to be. */
enum vp_fit_sureness { VP_FIT_LIKELY, VP_FIT_SURE };

struct vp_fit_search {
    struct vp_arena *arena;
    struct vp_scenario base; /* as given; the model with its table of tensors */
    struct vp_fit_fixed fixed;
    struct vp_fit_llama *out;
    uint64_t longest;    /* tokens of a sequence at most */
    uint64_t most_slots; /* sequences at most */
    bool dividing;       /* what does not fit by the engine's own rule is divided otherwise */
    uint64_t taken[VP_LLAMA_MAX_DEVICES]; /* layers of each GPU in the last division */
    uint64_t nearest_bytes;
    bool any_nearest;
};

/* One candidate, sized. */
struct vp_fit_trial {
    bool fits[2];            /* by enum vp_fit_sureness */
    uint64_t resident_bytes; /* weights, cache and states over all GPUs: these grow with layers */
    struct vp_fit_proposal figures;
};

/* As they are, shares included. */
struct vp_fit_trial vp_fit_try(struct vp_fit_search *s, const struct vp_fit_settings *set);
/* By the engine's own rule, else divided otherwise where that is asked for; fills the shares. */
bool vp_fit_holds(struct vp_fit_search *s, struct vp_fit_settings *set, enum vp_fit_sureness how);

/* Each drives one member of *set as far as it goes; false, *set undefined: nothing fits. */
bool vp_fit_longest(struct vp_fit_search *s, struct vp_fit_settings *set, uint64_t least,
                    uint64_t most, enum vp_fit_sureness how);
bool vp_fit_most_slots(struct vp_fit_search *s, struct vp_fit_settings *set,
                       enum vp_fit_sureness how);
bool vp_fit_most_layers(struct vp_fit_search *s, struct vp_fit_settings *set, uint64_t most,
                        enum vp_fit_sureness how);
bool vp_fit_fewest_experts(struct vp_fit_search *s, struct vp_fit_settings *set,
                           enum vp_fit_sureness how);

/* fit_divide.c: layers of each GPU, so that every one holds its part with so many bytes to spare;
 * false, shares undefined: there is no such division. */
bool vp_fit_divide(struct vp_fit_search *s, struct vp_fit_settings *set, enum vp_fit_sureness how,
                   uint64_t spare_bytes);
/* The same with as much to spare on the fullest one as there can be. */
void vp_fit_divide_evenly(struct vp_fit_search *s, struct vp_fit_settings *set,
                          enum vp_fit_sureness how);
/* What a GPU has to hold at the upper end: all of it, or its buffers and the margin. */
uint64_t vp_fit_wanted(const struct vp_fit_search *s, const struct vp_device *device,
                       const struct vp_llama_place *place);

#endif
