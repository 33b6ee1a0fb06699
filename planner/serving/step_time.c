#include "planner/serving/step_time.h"

#include <math.h>

#include "planner/serving/step_tables.h"

/* A pass of the fullest data rank with its share of an iteration. */
struct share {
    double decodes, context; /* on that rank; mean per sequence */
    double drafts;
    double prompts, fresh, past; /* on that rank; mean per prompt */
    double expert_tokens;        /* of all ranks */
};

static struct share share_of(const struct vp_step_tables *t, const struct vp_iteration *it,
                             double groups) {
    struct share s = {.drafts = it->drafts};
    double decodes = (double)it->decodes / groups;

    s.decodes = t->ranks > 1 ? fmax(ceil(decodes / t->ranks), decodes / t->ranks) : decodes;
    s.context = it->decodes > 0 ? it->decode_context / it->decodes : 0;
    s.expert_tokens = decodes * (1 + s.drafts) + it->prompt_tokens;
    if (it->prompts > 0 && it->prompt_tokens > 0) {
        s.prompts = ceil(it->prompts / t->ranks);
        s.fresh = it->prompt_tokens / it->prompts;
        s.past = fmax(it->prompt_pairs / it->prompt_tokens - (s.fresh + 1) / 2, 0);
    }
    return s;
}

/* Attention of the decoding sequences and what is drafted for them: the part that grows with the
 * context, straight until one of the sheets bends. */
static struct vp_sheet_line decode_line(const struct vp_step_tables *t, const struct share *s) {
    struct vp_sheet_line line, more;

    line = vp_sheet_line_at(&t->decode, s->decodes, s->context);
    if (!(s->drafts > 0) || !(t->drafts > 0))
        return line;
    more = vp_sheet_line_at(&t->verify, s->decodes, s->context);
    double share = s->drafts / t->drafts; /* fewer than the scenario's: on the way to them */
    line.us += share * (more.us - line.us);
    line.slope += share * (more.slope - line.slope);
    line.until = fmin(line.until, more.until);
    if (t->draft.us) {
        more = vp_sheet_line_at(&t->draft, s->decodes, s->context);
        line.us += s->drafts * more.us;
        line.slope += s->drafts * more.slope;
    }
    return line;
}

/* A pass through all stages but for what decode_line gives. */
static double other_us(const struct vp_step_tables *t, const struct share *s) {
    double tokens = s->decodes * (1 + s->drafts) + s->prompts * s->fresh;
    double us = t->fixed_us + t->sequence_us * (s->decodes + s->prompts);

    us += vp_curve_us(&t->tokens, tokens) + vp_curve_us(&t->experts, s->expert_tokens);
    us += vp_curve_us(&t->head, s->decodes * (1 + s->drafts) + s->prompts);
    if (s->prompts > 0) {
        us += vp_sheet_us(&t->prompt, s->fresh, s->past);
        if (s->prompts > 1)
            us += (s->prompts - 1) * vp_sheet_us(&t->prompts, s->fresh, s->past);
    }
    return us;
}

static double groups_of(const struct vp_step_tables *t, uint32_t decodes) {
    return fmax(fmin(t->stages, (double)decodes), 1);
}

static double pass_us(const struct vp_step_tables *t, const struct share *s) {
    double us = other_us(t, s);

    return s->decodes > 0 ? us + decode_line(t, s).us : us;
}

double vp_step_us(const struct vp_step_time *time, const struct vp_iteration *it) {
    const struct vp_step_tables *t = time->tables;
    double groups = groups_of(t, it->decodes);
    struct share all = share_of(t, it, groups), decode = all;

    if (it->decodes == 0 && it->prompts == 0)
        return 0;
    double mixed = pass_us(t, &all);
    if (t->stages < 2)
        return time->factor * mixed;
    decode.prompts = 0;
    decode.expert_tokens -= it->prompt_tokens;
    double alone = it->decodes > 0 ? pass_us(t, &decode) : 0;
    return time->factor * fmax(alone, ((groups - 1) * alone + mixed) / t->stages);
}

void vp_step_run(const struct vp_step_time *time, const struct vp_iteration *first,
                 struct vp_decode_run *out) {
    const struct vp_step_tables *t = time->tables;
    struct vp_iteration it = {.decodes = first->decodes,
                              .decode_context = first->decode_context,
                              .drafts = first->drafts};
    struct share s = share_of(t, &it, groups_of(t, it.decodes));
    struct vp_sheet_line line = decode_line(t, &s);
    double left = floor(line.until - s.context) + 1;

    out->first_us = time->factor * (other_us(t, &s) + line.us);
    out->growth_us = time->factor * line.slope;
    out->iterations = left < 0x1p60 ? (uint64_t)fmax(left, 1) : UINT64_MAX;
}

double vp_step_run_us(const struct vp_step_time *t, const struct vp_iteration *first,
                      uint64_t count) {
    struct vp_iteration it = *first;
    double us = 0;

    while (count > 0) {
        struct vp_decode_run run;
        vp_step_run(t, &it, &run);
        uint64_t n = run.iterations < count ? run.iterations : count;
        us += (double)n * run.first_us + (double)n * ((double)n - 1) / 2 * run.growth_us;
        it.decode_context += (double)n * it.decodes;
        count -= n;
    }
    return us;
}

/* One decode iteration of so many sequences. */
static double steady_us(const struct vp_step_tables *t, double sequences, uint64_t prompt) {
    double context = t->typical_context > 0 ? t->typical_context : (double)prompt;
    struct vp_iteration it = {.decodes = (uint32_t)sequences,
                              .decode_context = sequences * context};
    struct share s = share_of(t, &it, groups_of(t, it.decodes));

    return pass_us(t, &s);
}

double vp_step_front_us(const struct vp_step_time *time, uint64_t prompt, uint64_t live) {
    const struct vp_step_tables *t = time->tables;
    double us = t->first_us + t->first_token_us * (double)prompt + t->request_us * (double)live;

    if (live > 1 && t->wait_steps > 0)
        us += t->wait_steps * steady_us(t, fmin((double)live - 1, t->most_running), prompt);
    if (t->stages > 1 && prompt > 0) { /* through the stages behind the first */
        double n = fmin((double)prompt, t->budget);
        struct vp_iteration chunk = {
            .prompts = 1, .prompt_tokens = n, .prompt_pairs = n * (n + 1) / 2};
        struct share s = share_of(t, &chunk, 1);
        us += pass_us(t, &s) * (t->stages - 1) / t->stages;
    }
    return time->factor * us;
}

/* ---- the clock ---- */

static double clock_us(void *state, const struct vp_iteration *it) { return vp_step_us(state, it); }

static void clock_run(void *state, const struct vp_iteration *it, struct vp_decode_run *out) {
    vp_step_run(state, it, out);
}

static double clock_front(void *state, uint32_t prompt, uint32_t live) {
    return vp_step_front_us(state, prompt, live);
}

void vp_step_clock(struct vp_clock *out, struct vp_step_time *t) {
    *out = (struct vp_clock){t, clock_us, clock_run, clock_front};
}

/* ---- speculative decoding ---- */

double vp_step_accepted(uint64_t draft_tokens, double acceptance) {
    double sum = 0, product = 1;

    for (uint64_t i = 0; i <= draft_tokens; i++, product *= acceptance)
        sum += product;
    return sum;
}

double vp_step_break_even(const struct vp_step_time *t, uint64_t sequences, double context) {
    struct vp_iteration it = {.decodes = (uint32_t)sequences,
                              .decode_context = context * (double)sequences};
    double plain = vp_step_us(t, &it), low = 0, high = 1;

    it.drafts = (uint32_t)t->draft_tokens;
    double tokens = vp_step_us(t, &it) / plain; /* that a step must yield */
    if (tokens > (double)t->draft_tokens + 1)
        return INFINITY;
    for (int i = 0; i < 50; i++) {
        double middle = (low + high) / 2;
        if (vp_step_accepted(t->draft_tokens, middle) < tokens)
            low = middle;
        else
            high = middle;
    }
    return high;
}
