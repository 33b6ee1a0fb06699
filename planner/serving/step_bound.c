#include "planner/serving/step_bound.h"

#include <math.h>

#include "planner/serving/step_tables.h"

double vp_step_least_token_us(const struct vp_step_time *time, double context, uint64_t drafts) {
    const struct vp_iteration it = {.decodes = 1, .decode_context = context};

    return vp_step_us(time, &it) / ((double)drafts + 1);
}

/* ---- the least of g(n) / n ---- */

/* What is asked about: n tokens of prompts, or n sequences that get a token. */
struct asked {
    const struct vp_step_tables *tables;
    bool prompts;
    double context; /* of one sequence; else no attention */
};

/* g; of a pipeline one stage's share of it. */
static double least_us(const struct asked *a, double n) {
    const struct vp_step_tables *t = a->tables;
    double on_rank = n / t->ranks; /* the fullest has no less */
    double us = t->fixed_us + vp_curve_us(&t->tokens, on_rank) + vp_curve_us(&t->experts, n);

    if (a->prompts)
        us += vp_curve_us(&t->head, 1 / t->ranks) + t->sequence_us / t->ranks;
    else
        us += vp_curve_us(&t->head, on_rank) + t->sequence_us * on_rank +
              vp_sheet_us(&t->decode, on_rank, a->context);
    return us / t->stages;
}

static double over_nodes(double least, const struct asked *a, const struct vp_axis *axis,
                         double times, double most) {
    for (uint32_t i = 1; i < axis->nodes; i++) {
        double n = vp_axis_at(axis, i) * times;
        if (n >= 1 && n <= most)
            least = fmin(least, least_us(a, n) / n);
    }
    return least;
}

static double least_share(const struct asked *a, double most) {
    const struct vp_step_tables *t = a->tables;
    double least = fmin(least_us(a, 1), least_us(a, most) / most);

    least = over_nodes(least, a, &t->tokens.x, t->ranks, most);
    least = over_nodes(least, a, &t->experts.x, 1, most);
    least = over_nodes(least, a, &t->head.x, t->ranks, most);
    if (!a->prompts)
        least = over_nodes(least, a, &t->decode.x, t->ranks, most);
    return least;
}

double vp_step_least_prompt_us(const struct vp_step_time *time, uint64_t most) {
    const struct asked a = {.tables = time->tables, .prompts = true};

    return time->factor * least_share(&a, fmax((double)most, 1));
}

/* With drafts each sequence has more tokens in an iteration, none of them cheaper than nothing. */
double vp_step_least_output_us(const struct vp_step_time *time, double context, uint64_t most,
                               uint64_t drafts) {
    const struct asked a = {.tables = time->tables, .context = context};

    double group = fmax((double)most / a.tables->stages, 1);

    return time->factor * least_share(&a, group) / ((double)drafts + 1);
}

double vp_step_least_first_us(const struct vp_step_time *time, uint64_t prompt, uint64_t most) {
    const struct vp_iteration last = {.prompts = 1, .prompt_tokens = 1, .prompt_pairs = 1};
    double work = (double)prompt * vp_step_least_prompt_us(time, most);

    return vp_step_front_us(time, prompt, 1) + fmax(vp_step_us(time, &last), work);
}
