#include "api/find.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/base/text.h"
#include "planner/plan/pareto.h"

/* ---- picks ---- */

static size_t append(struct vp_setting *out, size_t count, const struct vp_lever_value *v) {
    for (uint32_t i = 0; i < v->sets && count < VP_PATCHES_MOST; i++)
        out[count++] = v->set[i];
    return count;
}

size_t vp_pick_settings(struct vp_setting *out, const struct vp_pick *pick,
                        const struct vp_lever_value *more) {
    size_t count = 0;

    for (uint32_t i = 0; i < pick->count; i++)
        count = append(out, count, &pick->value[i]);
    return more ? append(out, count, more) : count;
}

static struct vp_change change_of(struct vp_search *search, const struct vp_lever *lever,
                                  const struct vp_lever_value *v) {
    struct vp_change c = {.lever = lever->name,
                          .what = lever->what,
                          .field = lever->field,
                          .from = v->from,
                          .to = v->to,
                          .speed = lever->speed,
                          .money = lever->money,
                          .quality = lever->quality,
                          .order = (uint32_t)lever->id,
                          .size = v->size};
    bool weights = lever->id == VP_LEVER_WEIGHTS || lever->id == VP_LEVER_WEIGHTS_HF ||
                   lever->id == VP_LEVER_BASE;

    if (weights || lever->id == VP_LEVER_KV_CACHE)
        c.risk = vp_quality_risk(search->ctx->arena, &search->quality,
                                 weights ? "weights" : "kv_cache", v->to);
    return c;
}

/* Tokens in flight that are left of those asked for; in training, of each sequence. */
static double kept(const struct vp_search *search, const struct vp_trial *t) {
    const struct vp_scenario *base = search->base;

    if (base->training)
        return (double)t->context / (double)vp_max(base->train.sequence, 1);
    return (double)t->context / (double)vp_max(base->serve.context, 1) * (double)t->sequences /
           (double)vp_max(base->serve.concurrency, 1);
}

/* Each field once, the last value, as later settings replace earlier ones; what the scenario says
 * already is left out. */
static void set_patch(struct vp_search *search, struct vp_proposal *p, const struct vp_setting *set,
                      size_t count) {
    p->patch = VP_NEW_ARRAY(search->ctx->arena, count + 1, struct vp_patch);
    for (size_t i = 0; i < count; i++) {
        bool later = false;
        for (size_t k = i + 1; k < count; k++)
            later |= vp_text_eq(set[k].path, set[i].path);
        if (!later && !vp_search_says(search, &set[i]))
            p->patch[p->patches++] = (struct vp_patch){set[i].path, set[i].value};
    }
}

struct vp_proposal vp_pick_proposal(struct vp_search *search, const struct vp_pick *pick,
                                    const struct vp_lever_value *more,
                                    const struct vp_trial *trial) {
    struct vp_proposal p = {.trial = *trial, .risk_known = true, .changes = pick->count};
    struct vp_setting set[VP_PATCHES_MOST];
    size_t count = vp_pick_settings(set, pick, more);

    for (uint32_t i = 0; i < pick->count; i++) {
        p.change[i] = change_of(search, pick->lever[i], &pick->value[i]);
        if (!p.change[i].risk.format)
            continue;
        p.risk_known &= p.change[i].risk.known;
        p.risk += p.change[i].risk.likely;
    }
    set_patch(search, &p, set, count);
    p.kept = kept(search, trial);
    p.command = vp_search_command(search, p.patch, p.patches);
    return p;
}

/* ---- levers ---- */

static bool is_in(const char *names, const char *name) {
    size_t length = strlen(name);

    for (const char *at = names; at;) {
        size_t n = strcspn(at, ",");
        if (n == length && memcmp(at, name, n) == 0)
            return true;
        at = at[n] ? at + n + 1 : NULL;
    }
    return false;
}

bool vp_search_keep(struct vp_search *search, const char *names) {
    struct vp_arena *arena = search->ctx->arena;
    bool ok = true;

    for (const char *at = names; at;) {
        size_t n = strcspn(at, ",");
        const char *name = vp_arena_text(arena, at, n);
        if (!vp_lever_is(name)) {
            vp_diag_add(search->ctx->diags, VP_D_BAD_OPTION, NULL,
                        "--keep, column %td: no change is called '%s'", at - names + 1, name);
            vp_diag_hint(search->ctx->diags, "%s", vp_lever_names(arena));
            ok = false;
        }
        at = at[n] ? at + n + 1 : NULL;
    }
    search->keep = names;
    return ok;
}

uint32_t vp_find_levers(struct vp_search *search, struct vp_lever *out,
                        const struct vp_gpus *gpus) {
    uint32_t all = vp_levers_of(search->ctx->arena, out, search->base, gpus), count = 0;

    for (uint32_t i = 0; i < all; i++)
        if (!is_in(search->keep, out[i].name))
            out[count++] = out[i];
    return count;
}

/* ---- answers ---- */

void vp_outcome_begin(struct vp_search *search, struct vp_outcome *out, enum vp_question question,
                      const char *goal, const struct vp_result *base) {
    *out = (struct vp_outcome){.question = question, .goal = goal, .base = base};
    vp_search_try(search, &out->now, NULL, 0);
    out->slos = search->slo.count;
    out->slo = VP_NEW_ARRAY(search->ctx->arena, out->slos + 1, struct vp_patch);
    for (uint32_t i = 0; i < out->slos; i++)
        out->slo[i] = (struct vp_patch){search->slo.limit[i].name, search->slo.limit[i].text};
}

void vp_outcome_end(struct vp_search *search, struct vp_outcome *out) {
    const struct vp_device *worst = &out->base->devices[out->base->worst];
    const struct vp_trial *best = out->count > 0 ? &out->item[0].trial : &out->now;

    if (out->count == 0 && !(out->question == VP_ASK_CHANGES && vp_trial_may_fit(&out->now)))
        out->verdict = VP_DOES_NOT_FIT;
    else
        out->verdict = vp_trial_fits(best) ? VP_FITS : VP_AT_RISK;
    out->slo_state = best->slo;
    out->short_bytes = vp_above(worst->need.high, worst->usable_bytes);
    out->short_text = out->now.slo >= VP_SLO_UNLIKELY && out->now.verdict != VP_DOES_NOT_FIT
                          ? vp_slo_text(search->ctx->arena, &search->slo, &out->now)
                          : out->base->reason_text;
    out->tried = search->tried;
}

/* ---- which are better ---- */

enum { OBJECTIVES = 8 };

static double size_of(const struct vp_proposal *p) {
    double size = 0;

    for (uint32_t i = 0; i < p->changes; i++)
        size += p->change[i].size;
    return size;
}

static void objectives(double out[OBJECTIVES], const struct vp_proposal *p) {
    const struct vp_trial *t = &p->trial;

    out[0] = (double)t->gpus;
    /* money: the price, else the memory that is paid for */
    out[1] =
        t->price_per_hour > 0 ? t->price_per_hour : (double)t->gpus * (double)t->capacity_bytes;
    out[2] = -(double)t->headroom_bytes;
    out[3] = t->time_ms > 0 ? t->time_ms : NAN;
    out[4] = p->risk_known ? p->risk : NAN;
    out[5] = -p->kept;
    out[6] = p->most > 0 ? 0 : size_of(p);
    out[7] = -(double)p->most;
}

static uint32_t hardest(const struct vp_proposal *p) {
    uint32_t order = 0;

    for (uint32_t i = 0; i < p->changes; i++)
        order = p->change[i].order > order ? p->change[i].order : order;
    return order;
}

static uint32_t orders(const struct vp_proposal *p) {
    uint32_t sum = 0;

    for (uint32_t i = 0; i < p->changes; i++)
        sum += p->change[i].order;
    return sum;
}

#define BY(a, b)                                                                                   \
    if ((a) != (b))                                                                                \
    return (a) < (b) ? -1 : 1

/* For sure before at risk, few changes before many, what is easy to bear first. */
static int by_rank(const void *x, const void *y) {
    const struct vp_proposal *a = x, *b = y;
    uint32_t last = a->changes < b->changes ? a->changes : b->changes;

    BY(!vp_trial_fits(&a->trial), !vp_trial_fits(&b->trial));
    BY(a->trial.verdict, b->trial.verdict);
    BY(a->trial.slo, b->trial.slo);
    if (a->most > 0) {
        BY(a->changes > 0, b->changes > 0); /* as it is, first */
        BY(b->most, a->most);
    }
    BY(a->changes, b->changes);
    BY(hardest(a), hardest(b));
    BY(orders(a), orders(b));
    BY(a->trial.gpus, b->trial.gpus);
    BY(b->kept, a->kept);
    BY(size_of(a), size_of(b));
    BY(a->risk, b->risk);
    BY(a->trial.time_ms, b->trial.time_ms);
    BY(b->trial.headroom_bytes, a->trial.headroom_bytes);
    for (uint32_t i = 0; i < last; i++) {
        int order = strcmp(a->change[i].to, b->change[i].to);
        if (order)
            return order;
    }
    return 0;
}

void vp_proposals_rank(struct vp_search *search, struct vp_outcome *out) {
    struct vp_arena *arena = search->ctx->arena;
    double(*values)[OBJECTIVES] = vp_arena_array(arena, out->count + 1, sizeof *values);
    bool *keep = VP_NEW_ARRAY(arena, out->count + 1, bool);
    uint32_t left = 0;

    for (uint32_t i = 0; i < out->count; i++)
        objectives(values[i], &out->item[i]);
    vp_pareto_front(arena, keep, values[0], out->count, OBJECTIVES);
    for (uint32_t i = 0; i < out->count; i++)
        if (keep[i] || (out->item[i].most > 0 && out->item[i].changes == 0)) /* as it is */
            out->item[left++] = out->item[i];
    out->beaten += out->count - left;
    out->count = left;
    qsort(out->item, out->count, sizeof *out->item, by_rank);
}
