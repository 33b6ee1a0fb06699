/* The problem that this layer solves: a chain of stages whose activations are kept for the backward
 * pass or computed again. Plain numbers only: bytes are integers, times integers in any one unit
 * (nanoseconds, say).
 *
 * Stage i (the last one is head and loss) reads the boundary tensor x[i] and makes x[i+1]; x[n] is
 * the loss. Its backward reads x[i], what was saved of it (its tape) and the gradient g[i+1], and
 * makes g[i]. What each operation needs at its worst moment: planner/recompute/judge.h.
 *
 * The backward of the last stage follows its forward at once, so it is never recomputed as part of
 * a segment. A pipeline rank without the loss ends with a stage of no bytes and no time.
 *
 * A budget is for the activations of one microbatch alone: the caller subtracts what stays on the
 * device all along. Offloading, overlap and the allocator's rounding are not modelled. */
#ifndef VP_RECOMPUTE_CHAIN_H
#define VP_RECOMPUTE_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/base/arena.h"

/* One way to run a stage: what is saved besides x[i] and x[i+1], and what that costs. */
struct vp_tape_option {
    uint64_t t;      /* bytes saved */
    uint64_t r;      /* extra time inside the backward */
    uint64_t wf, wb; /* transient bytes of the forward that saves, of the backward */
};

struct vp_chain {
    uint32_t n;                 /* stages */
    const uint64_t *x, *g;      /* n+1 boundaries and their gradients; g[0] may be 0 */
    const uint64_t *f, *b, *wn; /* n: forward and backward time, transient bytes of a forward that
                                 * saves nothing */
    const struct vp_tape_option *const *options; /* n lists; option 0 is the full tape, r = 0 */
    const uint32_t *option_counts;               /* n, each at least 1 */
    uint32_t body_first, body_end; /* stages that equal segments may group: [first, end) */
    const uint64_t *held; /* n, or NULL: bytes that exist from the end of stage i's backward on,
                           * such as weight gradients that are not allocated ahead */
};

enum { VP_CHAIN_MAX_STAGES = 1024, VP_CHAIN_MAX_OPTIONS = 64, VP_CHAIN_MAX_INFLIGHT = 65536 };

/* Whether all sums that the solvers form stay inside 64 bits. Must hold for every chain that is
 * handed to them; the counts must be within the caps above. NULL: it does; else what is too large.
 */
const char *vp_chain_overflow(const struct vp_chain *chain, uint64_t inflight);

/* The number of microbatches (or, interleaved, of chunk forwards) that a pipeline rank holds at its
 * worst moment. A chunk of an interleaved schedule is a chain of its own, and all chunks of a rank
 * follow one plan. Source: the warm-up lengths of the two schedules in Megatron-LM. */
enum vp_pipeline_schedule { VP_SCHEDULE_GPIPE, VP_SCHEDULE_1F1B, VP_SCHEDULE_INTERLEAVED };
uint64_t vp_pipeline_inflight(enum vp_pipeline_schedule schedule, uint64_t ranks, uint64_t rank,
                              uint64_t microbatches, uint64_t chunks);

/* ---- plans and schedules ---- */

/* Stages first..last in one piece: kept (first == last, with an option), or forwarded without
 * saving, x[first] checkpointed, and run again with full tapes before their backward. */
struct vp_plan_item {
    uint32_t first, last;
    uint32_t option;
    bool recompute;
};

struct vp_recompute_plan {
    const struct vp_plan_item *items; /* in the order of the chain, covering all of it */
    uint32_t count;
};

enum vp_chain_op_kind {
    VP_OP_FORWARD, /* Fn: saves nothing */
    VP_OP_SAVE,    /* Fs: forward that leaves the tape of an option */
    VP_OP_LOSS,    /* L: the loss turns into its gradient */
    VP_OP_BACKWARD,
    VP_OP_DISCARD /* D: a boundary tensor goes */
};

struct vp_chain_op {
    enum vp_chain_op_kind kind;
    uint32_t stage; /* DISCARD: the boundary; LOSS: 0 */
    uint32_t option;
};

struct vp_chain_schedule {
    struct vp_chain_op *ops;
    size_t count;
};

#endif
