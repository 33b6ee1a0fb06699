/* Questions about a scenario that take a search: what makes it fit, how far a quantity goes, on how
 * few GPUs it runs. Every proposal was evaluated in full, with figures and a patch.
 *
 * Changes (vp_find_changes): all single changes; when none of them fits, all pairs, then all
 * triples of levers with all their values. Numbers are walked in halves and then refined by
 * bisection, over quantities whose need never falls when they grow (tests/unit/test_find.c proves
 * that over a grid). Of one set of levers the mildest values stay, and of all that fit those that
 * no other beats in GPUs, price, headroom, time, quality, workload and size of the change together.
 *
 * Results live in the context's arena of the search. */
#ifndef VP_API_FIND_H
#define VP_API_FIND_H

#include "api/levers.h"
#include "api/search.h"

/* base: the plan of the scenario as it is. gpus: cards that may stand in for the scenario's. */
void vp_find_changes(struct vp_search *search, struct vp_outcome *out, const struct vp_result *base,
                     const struct vp_gpus *gpus);
/* field: VP_F_CONTEXT, VP_F_CONCURRENCY, VP_F_MICRO_BATCH or VP_F_SEQUENCE_LENGTH. As it is, and
 * with each single change that takes it further. */
void vp_find_most(struct vp_search *search, struct vp_outcome *out, const struct vp_result *base,
                  enum vp_field field);
/* names: the cards to try, by name; NULL: the scenario's own. cost: ranked by price instead of by
 * count. Up to eight cards one by one, then whole nodes of eight up to VP_MOST_GPUS. */
enum { VP_MOST_GPUS = 64 };
void vp_find_fewest(struct vp_search *search, struct vp_outcome *out, const struct vp_result *base,
                    const char *const *names, size_t count, bool cost);

/* ---- shared by them ---- */

/* A choice of values, one per lever. */
struct vp_pick {
    const struct vp_lever *lever[VP_CHANGES_MOST];
    struct vp_lever_value value[VP_CHANGES_MOST];
    uint32_t count;
};
/* Their settings one behind the other, then `more`; room for VP_PATCHES_MOST. */
size_t vp_pick_settings(struct vp_setting *out, const struct vp_pick *pick,
                        const struct vp_lever_value *more);
/* The proposal of a pick that was tried. */
struct vp_proposal vp_pick_proposal(struct vp_search *search, const struct vp_pick *pick,
                                    const struct vp_lever_value *more,
                                    const struct vp_trial *trial);
/* Levers that are to stay as they are: names with commas between. False: there is no lever of a
 * name, with a diagnostic that lists them. */
bool vp_search_keep(struct vp_search *search, const char *names);
/* The levers that the scenario has and that may be pulled; out as for vp_levers_of. */
uint32_t vp_find_levers(struct vp_search *search, struct vp_lever *out, const struct vp_gpus *gpus);
/* Begins an answer: the question, the scenario as it is, what was promised. */
void vp_outcome_begin(struct vp_search *search, struct vp_outcome *out, enum vp_question question,
                      const char *goal, const struct vp_result *base);
/* Verdict and state of the promise from the best proposal; what is short when there is none. */
void vp_outcome_end(struct vp_search *search, struct vp_outcome *out);
/* Leaves those that no other beats, the best first; how far a quantity goes as it is always
 * stays. */
void vp_proposals_rank(struct vp_search *search, struct vp_outcome *out);

/* How far a quantity goes on top of a pick: `sure` and `likely` are 0 where it does not fit at all.
 */
struct vp_reach {
    uint64_t sure, likely;
    bool capped;  /* the cap itself fits for sure */
    bool by_time; /* one more would fit, but not keep a promise about latency */
};
struct vp_reach vp_find_reach(struct vp_search *search, const struct vp_pick *pick,
                              enum vp_field field);

#endif
