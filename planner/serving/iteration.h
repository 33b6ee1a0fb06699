/* What one iteration of an engine computes, and the clock that says how long it takes. The
 * simulation (simulator.h) composes iterations; whoever knows the times (step_time.h, a test)
 * fills in the clock.
 *
 * Times in microseconds, of one replica: all ranks of it, its pipeline's bubbles, collectives and
 * host work included. */
#ifndef VP_SERVING_ITERATION_H
#define VP_SERVING_ITERATION_H

#include <stdint.h>

struct vp_iteration {
    uint32_t decodes;      /* sequences that get their next token */
    double decode_context; /* their tokens in the cache before it, summed */
    uint32_t drafts;       /* tokens proposed and checked beside it, for each of them; 0: none */

    uint32_t prompts;     /* sequences of whose prompt a part is computed */
    uint32_t completed;   /* of these, prompts that end: they get their first token */
    double prompt_tokens; /* tokens computed of them, summed; padding included where the engine
                             pads */
    double prompt_past;   /* their tokens in the cache before it, summed */
    double prompt_pairs;  /* sum over prompts of n x (past + (n + 1) / 2) for n tokens computed:
                             what their attention looks at */
};

/* Decode iterations of the same sequences, one after the other: the i-th (from 0) takes first_us
 * + i x growth_us. */
struct vp_decode_run {
    double first_us, growth_us;
    uint64_t iterations; /* as far as this holds; at least 1 */
};

struct vp_clock {
    void *state;
    /* How long one iteration takes; > 0. */
    double (*iteration_us)(void *state, const struct vp_iteration *iteration);
    /* Iterations of these sequences (prompts == 0, drafts == 0), each of which grows the context
     * by `decodes`. Agrees with iteration_us within rounding. NULL: iterations are taken one by
     * one, which is slower and gives the same result. */
    void (*decode_run)(void *state, const struct vp_iteration *first, struct vp_decode_run *out);
    /* From a request's arrival to the scheduler: front end, tokeniser; `live` requests are under
     * way on the replica. NULL: nothing. */
    double (*front_us)(void *state, uint32_t prompt, uint32_t live);
};

#endif
