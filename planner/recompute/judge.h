/* The judge: runs a schedule operation by operation and says what it needs and how long it takes.
 * Every plan that is printed went through it; no solver shares code with it.
 *
 *   operation   needs                    bytes at its worst moment     afterwards
 *   Fn i        x[i]                     live + x[i+1] + wn[i]         x[i+1] exists
 *   Fs i j      x[i], no tape of i       live + t + x[i+1] + wf        tape (option j), x[i+1]
 * exist L           x[n]                     live - x[n] + g[n]            the loss is its gradient
 *   B i         x[i], tape, g[i+1]       live + g[i] + wb              tape, g[i+1] gone; g[i],
 * held[i] exist; takes b[i] + r D i         x[i], no tape of i       live x[i] gone
 *
 * A schedule starts with x[0] alone and runs every B once, from the last stage to the first. */
#ifndef VP_RECOMPUTE_JUDGE_H
#define VP_RECOMPUTE_JUDGE_H

#include "planner/recompute/chain.h"

struct vp_judgement {
    const char *fault;   /* NULL: the schedule is valid; else why not, and the rest is undefined */
    uint64_t peak_bytes; /* of one microbatch */
    uint64_t time;
    uint64_t forwards; /* forward executions */
    size_t peak_at;    /* the operation at whose end or during which the peak first occurs */
};

void vp_judge(struct vp_arena *scratch, struct vp_judgement *out, const struct vp_chain *chain,
              const struct vp_chain_schedule *schedule);

/* The operations of a plan, in the arena. */
void vp_plan_schedule(struct vp_arena *arena, struct vp_chain_schedule *out,
                      const struct vp_chain *chain, const struct vp_recompute_plan *plan);
/* Bytes that a plan leaves between the forward and the backward of a microbatch. */
uint64_t vp_plan_stored(const struct vp_chain *chain, const struct vp_recompute_plan *plan);

/* "Fs", "Fn", "L", "B", "D" */
const char *vp_chain_op_name(enum vp_chain_op_kind kind);

#endif
