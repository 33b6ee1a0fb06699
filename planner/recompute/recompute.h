/* Checkpoint placement: the fastest plan of a class whose peak stays within a budget, with what
 * proves that there is no faster one.
 *
 *   equal      segments of equal length inside the body; k and whether the last one is recomputed
 *   segments   each stage kept with its full tape, or in a segment that is recomputed once
 *   options    one tape option per stage, no segments
 *   joint      both
 *   multilevel full tapes, segments inside segments to any depth (memory-persistent schedules:
 *              what is checkpointed stays until its backward); Revolve and rotor are special cases
 *   multilevel_options  the same with tape options
 *   pipeline   joint, with further microbatches in flight
 *
 * Chains must pass vp_chain_overflow for the number of microbatches in flight. Everything comes
 * from the arena; nothing else is kept, so calls may run side by side. Of plans of equal time one
 * with the least peak is given. Sources: Chen et al. 2016 (segments), Griewank and Walther 2000
 * (Revolve), Beaumont et al. 2019 (rotor); the formulation with exact bytes is this program's own.
 */
#ifndef VP_RECOMPUTE_RECOMPUTE_H
#define VP_RECOMPUTE_RECOMPUTE_H

#include "planner/recompute/chain.h"

enum vp_recompute_class {
    VP_PLACE_EQUAL,
    VP_PLACE_SEGMENTS,
    VP_PLACE_OPTIONS,
    VP_PLACE_JOINT,
    VP_PLACE_MULTILEVEL,
    VP_PLACE_MULTILEVEL_OPTIONS,
    VP_PLACE_PIPELINE,
    VP_PLACE_CLASSES
};

struct vp_moves;
struct vp_dual;
struct vp_labels;
struct vp_multilevel;

/* What proves the bound of an answer; planner/recompute/certificate.h checks it. */
struct vp_recompute_proof {
    const struct vp_moves *moves; /* single-level classes */
    const struct vp_dual *dual;   /* NULL: no prices were needed */
    const struct vp_labels *labels;
    uint64_t limit;                         /* extra time up to which labels were kept */
    const struct vp_multilevel *multilevel; /* multi-level classes */
};

/* One length of equal segments. */
struct vp_equal_segments {
    uint32_t k;
    bool recompute_last;
    uint64_t peak_bytes, time;
};

struct vp_recompute_answer {
    bool feasible;
    bool optimal;         /* time == bound */
    uint64_t time;        /* forward, backward and all recomputation */
    uint64_t bound;       /* no plan of the class within the budget takes less */
    uint64_t gap_ppb;     /* (time - bound) / bound, rounded up */
    uint64_t peak_bytes;  /* with all microbatches in flight */
    uint64_t least_bytes; /* the smallest budget that any plan of the class keeps; 0: not known */
    uint64_t labels, pruned;           /* partial plans that were kept, that the bound struck out */
    struct vp_recompute_plan plan;     /* not of the multi-level classes */
    struct vp_chain_schedule schedule; /* the operations of one microbatch */
    struct vp_recompute_proof proof;
    const struct vp_equal_segments *lengths; /* equal segments: all of them, fitting or not */
    uint32_t length_count;
    const char *cap; /* NULL, or the cap that made the answer inexact or kept it from being found */
};

/* inflight: at least 1, and 1 for every class but the pipeline. */
void vp_recompute_solve(struct vp_arena *arena, struct vp_recompute_answer *out,
                        const struct vp_chain *chain, enum vp_recompute_class class,
                        uint64_t budget_bytes, uint64_t inflight);

/* Time against peak, for all budgets at once: rising peak, falling time. */
struct vp_frontier_point {
    uint64_t peak_bytes, time;
    uint64_t bound; /* no plan within peak_bytes takes less; time, when exact */
};

struct vp_frontier {
    const struct vp_frontier_point *points;
    uint32_t count;
    bool exact;
    const char *cap; /* as in the answer */
};

void vp_recompute_frontier(struct vp_arena *arena, struct vp_frontier *out,
                           const struct vp_chain *chain, enum vp_recompute_class class,
                           uint64_t inflight);

/* Sorts points, drops those that another one beats, and makes their bounds hold for every budget.
 */
void vp_frontier_close(struct vp_frontier *out, struct vp_frontier_point *points, uint32_t count);

/* "a", "b", "d", "e", "c0", "c", "pp" */
const char *vp_recompute_class_name(enum vp_recompute_class class);
const char *vp_recompute_class_meaning(enum vp_recompute_class class);

/* ---- the parts, one file each ---- */

/* equal.c */
void vp_recompute_equal(struct vp_arena *arena, struct vp_recompute_answer *out,
                        const struct vp_chain *chain, uint64_t budget_bytes);
void vp_recompute_equal_frontier(struct vp_arena *arena, struct vp_frontier *out,
                                 const struct vp_chain *chain);
/* Segments of k stages from the body's first stage on, the last one shorter when k does not divide;
 * it is recomputed like the others or kept. Stages outside of the body are kept. */
void vp_equal_plan(struct vp_arena *arena, struct vp_recompute_plan *out,
                   const struct vp_chain *chain, uint32_t k, bool recompute_last);
/* torch.utils.checkpoint.checkpoint_sequential: `segments` pieces of floor(N / segments) stages,
 * all but the last recomputed; the last takes the rest and is kept. */
void vp_torch_sequential_plan(struct vp_arena *arena, struct vp_recompute_plan *out,
                              const struct vp_chain *chain, uint32_t segments);
/* Megatron-LM --recompute-method block: the first m stages of the body recomputed one by one. Its
 * `uniform` with --recompute-num-layers k is vp_equal_plan(k, true). */
void vp_block_plan(struct vp_arena *arena, struct vp_recompute_plan *out,
                   const struct vp_chain *chain, uint32_t m);
/* Option j at every stage of the body that has it; full tapes elsewhere. */
void vp_one_option_plan(struct vp_arena *arena, struct vp_recompute_plan *out,
                        const struct vp_chain *chain, uint32_t j);

/* single.c: b, d, e, pp */
void vp_recompute_single(struct vp_arena *arena, struct vp_recompute_answer *out,
                         const struct vp_chain *chain, enum vp_recompute_class class,
                         uint64_t budget_bytes, uint64_t inflight);
void vp_recompute_single_frontier(struct vp_arena *arena, struct vp_frontier *out,
                                  const struct vp_chain *chain, enum vp_recompute_class class,
                                  uint64_t inflight);

/* multilevel.c: c0, c */
void vp_recompute_multilevel(struct vp_arena *arena, struct vp_recompute_answer *out,
                             const struct vp_chain *chain, bool options, uint64_t budget_bytes);
void vp_recompute_multilevel_frontier(struct vp_arena *arena, struct vp_frontier *out,
                                      const struct vp_chain *chain, bool options);

#endif
