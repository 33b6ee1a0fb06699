#include "planner/recompute/certificate.h"

#include "planner/recompute/judge.h"
#include "planner/recompute/labels.h"

/* All of this is of the checker's own making but the prices and the labels. */
struct checker {
    const struct vp_chain *c;
    const struct vp_dual *dual; /* price and shift alone are used */
    const struct vp_labels *labels;
    uint64_t *held, *least; /* bytes held after the backward of i.., fewest stored before i */
    vp_wide *before;        /* shortest priced path to i */
    uint64_t budget, others;
    vp_wide limit;
    bool ok;
};

/* All sums of bytes are below (vp_chain_overflow). */
static const uint64_t MOST_BUDGET = (uint64_t)1 << 60;

static uint64_t max(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t min(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* What stages p..q need beyond what is stored before p: live bytes through forward, second forward
 * and backward. option < 0: a segment; else p == q is kept. */
static uint64_t need_of(const struct checker *k, uint32_t p, uint32_t q, int option) {
    const struct vp_chain *c = k->c;
    uint64_t live = c->x[p], peak = live;
    for (uint32_t i = p; i <= q && option < 0; i++) {
        peak = max(peak, live + c->x[i + 1] + c->wn[i]);
        live = c->x[p] + c->x[i + 1];
    }
    live = c->x[p] + (option < 0 ? c->g[q + 1] + k->held[q + 1] : 0);
    for (uint32_t i = p; i <= q; i++) {
        const struct vp_tape_option *o = &c->options[i][option < 0 ? 0 : option];
        peak = max(peak, live + o->t + c->x[i + 1] + o->wf);
        live += o->t + c->x[i + 1];
    }
    live = live - c->x[q + 1] + (option < 0 ? 0 : c->g[q + 1] + k->held[q + 1]);
    for (uint32_t i = q + 1; i-- > p; live -= i > p ? c->x[i] : 0) {
        const struct vp_tape_option *o = &c->options[i][option < 0 ? 0 : option];
        peak = max(peak, live + c->g[i] + o->wb);
        live += c->g[i] + (c->held ? c->held[i] : 0) - o->t - c->g[i + 1];
        peak = max(peak, live);
    }
    return peak;
}

/* Whether no plan that ends in the label counts: above the budget, or the limit, or not better than
 * a label of p. With one microbatch labels come and stand by rising need, and `seen` of the list
 * are not above, the least of which is `low`. */
static bool is_beaten(const struct checker *k, uint32_t p, const struct vp_label *label,
                      uint32_t *seen, uint64_t *low) {
    const struct vp_label_list *list = &k->labels->at[p];
    vp_wide bytes = label->need + k->least[p], scaled = (vp_wide)label->low << k->dual->shift;
    bytes += (vp_wide)k->others * (vp_wide)(label->stored + k->least[p]);
    scaled += k->before[p] + (vp_wide)k->dual->price[p] * (vp_wide)label->need;
    scaled += (vp_wide)k->dual->price[0] * (vp_wide)(k->others * label->stored);
    for (; *seen < list->count && list->items[*seen].need <= label->need && !k->others; ++*seen)
        *low = list->items[*seen].low < *low ? list->items[*seen].low : *low;
    if (bytes > (vp_wide)k->budget || scaled > k->limit || *low <= label->low)
        return true;
    for (uint32_t i = 0; i < list->count && k->others; i++)
        if (list->items[i].need <= label->need && list->items[i].low <= label->low &&
            list->items[i].stored <= label->stored)
            return true;
    return false;
}

/* One move: on the way there it extends the shortest paths, on the way back it is put in front of
 * all labels that follow it. */
static void visit(struct checker *k, uint32_t p, uint32_t q, int option, bool back) {
    const struct vp_tape_option *o = &k->c->options[p][option < 0 ? 0 : option];
    uint64_t stored = k->c->x[p] + (option < 0 ? 0 : o->t), need = need_of(k, p, q, option);
    uint64_t time = option < 0 ? 0 : o->r, low = UINT64_MAX;
    const uint64_t *price = k->dual->price;
    for (uint32_t i = p; i <= q && option < 0; i++)
        time += k->c->f[i];
    vp_wide length = (vp_wide)time << k->dual->shift;
    length += ((vp_wide)price[q + 1] + (vp_wide)price[0] * (vp_wide)k->others) * (vp_wide)stored;
    length += (vp_wide)(price[p] - price[q + 1]) * (vp_wide)need + k->before[p];
    if (need > k->budget || need + k->others * stored > k->budget)
        return;
    if (!back && length < k->before[q + 1])
        k->before[q + 1] = length;
    if (!back)
        k->least[q + 1] = min(k->least[q + 1], k->least[p] + stored);
    const struct vp_label_list *then = &k->labels->at[q + 1];
    uint64_t last = 0;
    for (uint32_t i = 0, seen = 0; back && i < then->count && k->ok; i++) {
        struct vp_label label = {.need = max(need, stored + then->items[i].need),
                                 .stored = stored + then->items[i].stored,
                                 .low = time + then->items[i].low};
        k->ok = (k->others || label.need >= last) && is_beaten(k, p, &label, &seen, &low);
        last = label.need;
    }
}

static void visit_all(struct checker *k, uint32_t p, enum vp_recompute_class class, bool back) {
    uint64_t tapes = k->c->x[p];
    uint32_t options = class == VP_PLACE_SEGMENTS ? 1 : k->c->option_counts[p];
    for (uint32_t j = 0; j < options; j++)
        visit(k, p, p, (int)j, back);
    for (uint32_t q = p; q + 1 < k->c->n && class != VP_PLACE_OPTIONS; q++) {
        tapes +=
            k->c->options[q][0].t + k->c->x[q + 1]; /* alive together when the segment runs again */
        if (tapes - k->c->x[q + 1] > k->budget)
            break;
        visit(k, p, q, -1, back);
    }
}

static bool check_bound(struct checker *k, enum vp_recompute_class class, uint64_t limit,
                        uint64_t bound) {
    const struct vp_label_list *end = &k->labels->at[k->c->n], *begin = &k->labels->at[0];
    uint32_t n = k->c->n;
    vp_wide dear = (vp_wide)k->dual->price[0] * (vp_wide)k->budget,
            unit = (vp_wide)1 << k->dual->shift;
    k->limit = (vp_wide)limit * unit + dear;
    k->ok = k->dual->price[n] == 0 && end->count == 1 && end->items[0].need == 0 &&
            end->items[0].stored == 0 && end->items[0].low == 0;
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
    vp_wide low = (vp_wide)limit + 1;
    for (uint32_t i = 0; i < begin->count; i++)
        low = begin->items[i].low < low ? (vp_wide)begin->items[i].low : low;
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
    if (a->proof.dual) {
        struct checker k = {.c = chain,
                            .dual = a->proof.dual,
                            .labels = a->proof.labels,
                            .budget = min(budget, MOST_BUDGET),
                            .held = VP_NEW_ARRAY(scratch, chain->n + 1, uint64_t),
                            .least = VP_NEW_ARRAY(scratch, chain->n + 1, uint64_t),
                            .before = VP_NEW_ARRAY(scratch, chain->n + 1, vp_wide),
                            .others = inflight - 1};
        out->bound = check_bound(&k, class, a->proof.limit, a->bound);
    }
    vp_arena_rewind(scratch, mark);
}
