#include "planner/recompute/certificate.h"

#include "planner/base/sum.h"
#include "planner/recompute/judge.h"
#include "planner/recompute/labels.h"
#include "planner/recompute/multilevel.h"

struct checker {
    const struct vp_chain *c;
    const struct vp_dual *dual; /* price and shift; the rest is of the checker's own making */
    const struct vp_labels *labels;
    uint64_t *held, *least; /* held after the backward of i.., fewest stored before i */
    vp_wide *before, limit; /* shortest priced path to i */
    uint64_t budget, others;
    bool ok;
};

/* The peak of stages p..q beyond what is stored before p. option < 0: a segment; else p is kept. */
static uint64_t need_of(const struct checker *k, uint32_t p, uint32_t q, int option) {
    const struct vp_chain *c = k->c;
    uint64_t live = c->x[p], peak = live;
    for (uint32_t i = p; i <= q && option < 0; i++) {
        peak = vp_max(peak, live + c->x[i + 1] + c->wn[i]);
        live = c->x[p] + c->x[i + 1];
    }
    live = c->x[p] + (option < 0 ? c->g[q + 1] + k->held[q + 1] : 0);
    for (uint32_t i = p; i <= q; i++) {
        const struct vp_tape_option *o = &c->options[i][option < 0 ? 0 : option];
        peak = vp_max(peak, live + o->t + c->x[i + 1] + o->wf);
        live += o->t + c->x[i + 1];
    }
    live = live - c->x[q + 1] + (option < 0 ? 0 : c->g[q + 1] + k->held[q + 1]);
    for (uint32_t i = q + 1; i-- > p; live -= i > p ? c->x[i] : 0) {
        const struct vp_tape_option *o = &c->options[i][option < 0 ? 0 : option];
        peak = vp_max(peak, live + c->g[i] + o->wb);
        live += c->g[i] + (c->held ? c->held[i] : 0) - o->t - c->g[i + 1];
        peak = vp_max(peak, live);
    }
    return peak;
}

/* Whether a label is above the budget or the limit, or not better than a label of p. With one
 * microbatch labels come and stand by rising need: the first `seen` are not above, `low` of them.
 */
static bool is_beaten(const struct checker *k, uint32_t p, const struct vp_label *label,
                      uint32_t *seen, uint64_t *low) {
    const struct vp_label_list *list = &k->labels->at[p];
    vp_wide bytes = label->need + k->least[p], scaled = (vp_wide)label->low << k->dual->shift;
    bytes += (vp_wide)k->others * (vp_wide)(label->stored + k->least[p]);
    scaled += k->before[p] + (vp_wide)k->dual->price[p] * (vp_wide)label->need;
    scaled += (vp_wide)k->dual->price[0] * (vp_wide)(k->others * label->stored);
    for (; *seen < list->count && list->items[*seen].need <= label->need && !k->others; ++*seen)
        *low = vp_min(*low, list->items[*seen].low);
    if (bytes > (vp_wide)k->budget || scaled > k->limit || *low <= label->low)
        return true;
    bool found = false;
    for (uint32_t i = 0; i < list->count && k->others && !found; i++)
        found = list->items[i].need <= label->need && list->items[i].low <= label->low &&
                list->items[i].stored <= label->stored;
    return found;
}

/* One move: on the way there it extends paths, on the way back it goes in front of all labels. */
static void visit(struct checker *k, uint32_t p, uint32_t q, int option, bool back) {
    const struct vp_tape_option *o = &k->c->options[p][option < 0 ? 0 : option];
    uint64_t stored = k->c->x[p] + (option < 0 ? 0 : o->t), need = need_of(k, p, q, option);
    uint64_t time = option < 0 ? 0 : o->r, low = UINT64_MAX, last = 0;
    const uint64_t *price = k->dual->price;
    for (uint32_t i = p; i <= q && option < 0; i++)
        time += k->c->f[i];
    vp_wide length = (vp_wide)time << k->dual->shift;
    length += ((vp_wide)price[q + 1] + (vp_wide)price[0] * (vp_wide)k->others) * (vp_wide)stored;
    length += (vp_wide)(price[p] - price[q + 1]) * (vp_wide)need + k->before[p];
    if (need + k->others * stored > k->budget)
        return;
    if (!back) {
        k->least[q + 1] = vp_min(k->least[q + 1], k->least[p] + stored);
        k->before[q + 1] = length < k->before[q + 1] ? length : k->before[q + 1];
    }
    const struct vp_label_list *then = &k->labels->at[q + 1];
    for (uint32_t i = 0, seen = 0; back && i < then->count && k->ok; i++) {
        struct vp_label label = {.need = vp_max(need, stored + then->items[i].need),
                                 .stored = stored + then->items[i].stored,
                                 .low = time + then->items[i].low};
        k->ok = (k->others || label.need >= last) && is_beaten(k, p, &label, &seen, &low);
        last = label.need;
    }
}

static void visit_all(struct checker *k, uint32_t p, enum vp_recompute_class class, bool back) {
    const struct vp_chain *c = k->c;
    uint64_t tapes = c->x[p]; /* at least what a segment needs */
    for (uint32_t j = 0; j < (class == VP_PLACE_SEGMENTS ? 1 : c->option_counts[p]); j++)
        visit(k, p, p, (int)j, back);
    for (uint32_t q = p; q + 1 < c->n && class != VP_PLACE_OPTIONS && tapes <= k->budget; q++) {
        visit(k, p, q, -1, back);
        tapes += c->options[q][0].t + c->x[q + 1];
    }
}

static bool check_bound(struct checker *k, enum vp_recompute_class class, uint64_t limit,
                        uint64_t bound) {
    uint32_t n = k->c->n;
    const struct vp_label_list *end = &k->labels->at[n], *begin = &k->labels->at[0];
    const struct vp_label *z = end->items; /* nothing follows the last stage */
    vp_wide unit = (vp_wide)1 << k->dual->shift, dear = k->dual->price[0] * (vp_wide)k->budget;
    k->limit = (vp_wide)limit * unit + dear;
    k->ok = k->dual->price[n] == 0 && end->count == 1 && z->need + z->stored + z->low == 0;
    for (uint32_t i = n; i-- > 0;) {
        k->held[i] = k->held[i + 1] + (k->c->held ? k->c->held[i] : 0);
        k->least[i + 1] = k->budget + 1;
        k->before[i + 1] = (vp_wide)1 << 125;
        k->ok &= k->dual->price[i] >= k->dual->price[i + 1];
    }
    for (uint32_t p = 0; p < n; p++)
        visit_all(k, p, class, false);
    for (uint32_t p = n; p-- > 0;)
        visit_all(k, p, class, true);
    uint64_t low = limit + 1;
    for (uint32_t i = 0; i < begin->count; i++)
        low = vp_min(low, begin->items[i].low);
    for (uint32_t i = 0; i < n; i++)
        bound -= k->c->f[i] + k->c->b[i];
    return k->ok && (bound <= low || ((vp_wide)bound - 1) * unit < k->before[n] - dear);
}

void vp_certificate_check(struct vp_arena *scratch, struct vp_certificate *out,
                          const struct vp_chain *chain, enum vp_recompute_class class,
                          uint64_t budget, uint64_t inflight, const struct vp_recompute_answer *a) {
    struct vp_arena_mark mark = vp_arena_mark(scratch);
    struct vp_judgement j;
    *out = (struct vp_certificate){0};
    vp_judge(scratch, &j, chain, &a->schedule);
    if (a->plan.count)
        j.peak_bytes += (inflight - 1) * vp_plan_stored(chain, &a->plan);
    out->plan = !j.fault && j.time == a->time && j.peak_bytes == a->peak_bytes &&
                a->peak_bytes <= budget && a->time >= a->bound;
    if (a->proof.multilevel) {
        out->bound = vp_multilevel_check(scratch, chain, a->proof.multilevel, budget, a->bound);
    } else if (a->proof.dual) {
        uint64_t n = chain->n + 1, most = VP_MOVES_NO_BUDGET;
        uint64_t *held = VP_NEW_ARRAY(scratch, n, uint64_t);
        uint64_t *least = VP_NEW_ARRAY(scratch, n, uint64_t);
        vp_wide *before = VP_NEW_ARRAY(scratch, n, vp_wide);
        struct checker k = {chain, a->proof.dual,        a->proof.labels, held, least, before,
                            0,     vp_min(budget, most), inflight - 1,    true};
        out->bound = check_bound(&k, class, a->proof.limit, a->bound);
    }
    vp_arena_rewind(scratch, mark);
}
