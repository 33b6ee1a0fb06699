/* How long an iteration of a simulated engine takes, by what is in it (iteration.h): a table made
 * once from the sums of planner/latency/serve_time.h and the constants that the engine has on its
 * card (planner/latency/engine_constants.h), asked many millions of times. Microseconds.
 *
 *   an iteration  kernel_scale x (products and collectives at all its tokens + experts + attention
 *                 of the decoding sequences + attention of the prompts + head)
 *                 + layer_us x layers + expert_layer_us x layers with experts
 *                 + sequence_us x sequences + step_us
 *
 * Times are likely ones; `factor` scales them all: copy the struct (its tables are shared and never
 * change) and set it to 1 / spread or spread for a run at the fast or the slow end. With basis
 * BOUND there are kernels alone, at the least that any card of the class takes.
 *
 * Decoding sequences enter by their number and their mean context: kernels of decode read what is
 * cached, which is linear. Where layers look back at a window only, that is exact as long as all
 * contexts are longer than it, or none is. A time never falls when a sequence, a token or context
 * is added, the mean context of the others being as it was.
 *
 * Data ranks that pass the layers together (`ranks`): the iteration is that of all of them. The
 * fullest has ceil(1 / ranks) of sequences and prompts, and all wait for it; experts see the tokens
 * of all.
 *
 * Expert ranks: experts are taken as equally wanted, as in the rows that the constants were fitted
 * to, so that the usual imbalance is in them; serve.expert_imbalance is what comes on top.
 *
 * Pipeline stages: the iteration is one round, in which every sequence gets its token. Sequences go
 * in as many groups as there are stages (or as many as there are sequences: then stages stand
 * idle), one of which takes the prompts along; a round is the stage times of all groups, one after
 * the other. The next round begins before the prompts have left the last stage: what they still
 * have before them is added to the delay below.
 *
 * How host time enters events: a step's own (step_us, sequence_us) is part of its iteration. What a
 * request takes before its first token beside iterations (HTTP, tokenizer, hand-over;
 * first_us + first_token_us x prompt + request_us x requests in flight) is a delay between its
 * arrival and the moment the scheduler sees it; delays of several requests overlap. The other two
 * constants of a first token, wait_steps and queue_share, stand for queueing in the analytic
 * estimate; a simulation has real queues and uses neither.
 *
 * Left out: clocks that fall under load, two streams at once, images. */
#ifndef VP_SERVING_STEP_TIME_H
#define VP_SERVING_STEP_TIME_H

#include "planner/base/arena.h"
#include "planner/latency/engine_constants.h"
#include "planner/serving/iteration.h"

struct vp_step_tables;

struct vp_step_time {
    enum vp_basis basis;         /* calibrated, class or bound */
    const char *why;             /* of the basis: which calibration, or what is missing */
    double factor;               /* on every time: 1 */
    double spread, first_spread; /* nine in ten iterations, delays before a first token, lie within
                                    likely / spread and likely x spread; bound: 1 */
    uint64_t stages;             /* pipeline stages */
    uint64_t ranks;  /* data ranks that pass the layers together; sequences are dealt to them */
    uint64_t copies; /* data ranks that do not meet: engines of their own, iterations are one's */
    uint64_t draft_tokens; /* that the scenario proposes per sequence and iteration; 0: no draft */
    const struct vp_step_tables *tables;
};

/* Of a finished scenario. false: the card's rates are not known, or the model generates nothing;
 * out->why says it. Lives in the arena, some 100 kB. */
bool vp_step_time_make(struct vp_arena *arena, struct vp_step_time *out,
                       const struct vp_scenario *scenario);

/* The clock of a simulation; t must outlive it. */
void vp_step_clock(struct vp_clock *out, struct vp_step_time *t);

/* One iteration. An empty one takes 0. */
double vp_step_us(const struct vp_step_time *t, const struct vp_iteration *iteration);
/* Decode iterations in a row: as struct vp_clock says. */
void vp_step_run(const struct vp_step_time *t, const struct vp_iteration *first,
                 struct vp_decode_run *out);
/* `count` of them together, by as many runs as it takes. */
double vp_step_run_us(const struct vp_step_time *t, const struct vp_iteration *first,
                      uint64_t count);
/* Between a request's arrival and the scheduler seeing it. live: requests that the replica has,
 * this one among them. */
double vp_step_front_us(const struct vp_step_time *t, uint64_t prompt, uint64_t live);

/* ---- speculative decoding ---- */

/* Tokens that an iteration gives a sequence, on average, when each drafted token is accepted with
 * this probability behind accepted ones: (1 - a^(k+1)) / (1 - a). */
double vp_step_accepted(uint64_t draft_tokens, double acceptance);
/* The acceptance from which on drafting pays, for so many sequences of so many tokens each; above 1
 * (INFINITY): never, even if all are accepted. */
double vp_step_break_even(const struct vp_step_time *t, uint64_t sequences, double context);

#endif
