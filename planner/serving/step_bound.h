/* What no iteration of an engine can be faster than: bounds from below for searches over
 * deployments, so that one that cannot keep a promise need not be simulated. Microseconds, at the
 * factor of the times asked (step_time.h).
 *
 * Why they hold. A time is a sum of curves over tokens, experts' tokens, tokens that need logits,
 * and of attention, none of which falls when something is added (step_time.h). So
 *
 *   - an iteration that gives a sequence its token takes at least what it takes for one sequence
 *     with the least context that any has: vp_step_least_token_us;
 *   - an iteration that computes n tokens of prompts takes at least g(n), its sum without attention
 *     and with one token at the head. Over a day the iterations take at least the sum of g(n_i),
 *     which is at least the sum of the n_i times the least g(n) / n. Between two neighbouring nodes
 *     of all curves g is a straight line, g(n) / n = a / n + b does not turn there, and the least
 * lies at a node, or at the most tokens that an iteration may have: vp_step_least_prompt_us;
 *   - the same of n sequences that get their token, with attention to n of the least context:
 *     vp_step_least_output_us. Beside prompts an iteration takes no less.
 *
 * With pipeline stages a round takes a stage's share of its groups' passes (step_time.h): n is then
 * of one group, and what it takes is divided by the stages.
 *
 * One iteration pays for prompt and output tokens at once: the two sums bound the day each by
 * itself, they may not be added. */
#ifndef VP_SERVING_STEP_BOUND_H
#define VP_SERVING_STEP_BOUND_H

#include "planner/serving/step_time.h"

/* Between two tokens of a sequence, where no sequence has less context; drafts all accepted. */
double vp_step_least_token_us(const struct vp_step_time *t, double context, uint64_t drafts);
/* Of the engine's time, per prompt token; most: of an iteration (all data ranks). */
double vp_step_least_prompt_us(const struct vp_step_time *t, uint64_t most);
/* Of the engine's time, per output token; most: sequences at once (all data ranks). */
double vp_step_least_output_us(const struct vp_step_time *t, double context, uint64_t most,
                               uint64_t drafts);
/* From a request's arrival to its first token, `prompt` tokens of it not being cached. */
double vp_step_least_first_us(const struct vp_step_time *t, uint64_t prompt, uint64_t most);

#endif
