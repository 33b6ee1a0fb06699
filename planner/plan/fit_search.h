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
    uint64_t nearest_bytes;
    bool any_nearest;
};

/* One candidate, sized. */
struct vp_fit_trial {
    bool fits[2];            /* by enum vp_fit_sureness */
    uint64_t resident_bytes; /* weights, cache and states over all GPUs: these grow with layers */
    struct vp_fit_proposal figures;
};

struct vp_fit_trial vp_fit_try(struct vp_fit_search *s, const struct vp_fit_settings *set);

/* Each drives one member of *set as far as it goes; false, *set undefined: nothing fits. */
bool vp_fit_longest(struct vp_fit_search *s, struct vp_fit_settings *set, uint64_t least,
                    uint64_t most, enum vp_fit_sureness how);
bool vp_fit_most_slots(struct vp_fit_search *s, struct vp_fit_settings *set,
                       enum vp_fit_sureness how);
bool vp_fit_most_layers(struct vp_fit_search *s, struct vp_fit_settings *set, uint64_t most,
                        enum vp_fit_sureness how);
bool vp_fit_fewest_experts(struct vp_fit_search *s, struct vp_fit_settings *set,
                           enum vp_fit_sureness how);

#endif
