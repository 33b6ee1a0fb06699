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

static uint64_t max(uint64_t a, uint64_t b) { return a > b ? a : b; }

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

static bool is_beaten(const struct checker *k, uint32_t p, const struct vp_label *label) {
    const struct vp_label_list *list = &k->labels->at[p];
    vp_wide bound = k->before[p] + ((vp_wide)label->low << k->dual->shift) +
                    (vp_wide)k->dual->price[p] * (vp_wide)label->need +
                    (vp_wide)k->dual->price[0] * (vp_wide)(k->others * label->stored);
    uint64_t bytes = label->need + k->least[p] + k->others * (label->stored + k->least[p]);
    if (bytes > k->budget || bound > k->limit)
        return true;
    for (uint32_t i = 0; i < list->count; i++)
        if (list->items[i].need <= label->need && list->items[i].low <= label->low &&
            (k->others == 0 || list->items[i].stored <= label->stored))
            return true;
    return false;
}

/* One move: on the way there it extends the shortest paths, on the way back it is put in front of
 * all labels that follow it. */
static void visit(struct checker *k, uint32_t p, uint32_t q, int option, bool back) {
    const struct vp_chain *c = k->c;
    struct vp_move e = {.stored = c->x[p] + (option < 0 ? 0 : c->options[p][option].t),
                        .need = need_of(k, p, q, option),
                        .time = option < 0 ? 0 : c->options[p][option].r,
                        .next = q + 1};
    const uint64_t *price = k->dual->price;
    for (uint32_t i = p; i <= q && option < 0; i++)
        e.time += c->f[i];
    vp_wide length =
        ((vp_wide)e.time << k->dual->shift) +
        ((vp_wide)price[q + 1] + (vp_wide)price[0] * (vp_wide)k->others) * (vp_wide)e.stored +
        (vp_wide)(price[p] - price[q + 1]) * (vp_wide)e.need;
    if (!back) {
        if (k->before[p] + length < k->before[q + 1])
            k->before[q + 1] = k->before[p] + length;
        if (k->least[p] + e.stored < k->least[q + 1])
            k->least[q + 1] = k->least[p] + e.stored;
        return;
    }
    for (uint32_t i = 0; i < k->labels->at[q + 1].count && k->ok; i++) {
        const struct vp_label *then = &k->labels->at[q + 1].items[i];
        struct vp_label label = {.need = max(e.need, e.stored + then->need),
                                 .stored = e.stored + then->stored,
                                 .low = e.time + then->low};
        k->ok = is_beaten(k, p, &label);
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

static bool check_bound(struct vp_arena *scratch, const struct vp_chain *c,
                        enum vp_recompute_class class, uint64_t budget, uint64_t inflight,
                        const struct vp_recompute_answer *a) {
    uint32_t n = c->n;
    struct checker k = {.c = c,
                        .dual = a->proof.dual,
                        .labels = a->proof.labels,
                        .budget = budget,
                        .held = VP_NEW_ARRAY(scratch, n + 1, uint64_t),
                        .least = VP_NEW_ARRAY(scratch, n + 1, uint64_t),
                        .before = VP_NEW_ARRAY(scratch, n + 1, vp_wide),
                        .others = inflight - 1,
                        .ok = true};
    uint64_t base = 0, low = a->proof.limit + 1;
    for (uint32_t i = n; i-- > 0; base += c->f[i] + c->b[i]) {
        k.held[i] = k.held[i + 1] + (c->held ? c->held[i] : 0);
        k.least[i + 1] = UINT64_MAX / 4 / inflight;
        k.before[i + 1] = (vp_wide)1 << 125;
        k.ok &= k.dual->price[i] >= k.dual->price[i + 1];
    }
    k.limit =
        ((vp_wide)a->proof.limit << k.dual->shift) + (vp_wide)k.dual->price[0] * (vp_wide)budget;
    const struct vp_label_list *end = &k.labels->at[n], *begin = &k.labels->at[0];
    k.ok &= k.dual->price[n] == 0 && end->count == 1 && end->items[0].need == 0 &&
            end->items[0].stored == 0 && end->items[0].low == 0;
    for (uint32_t p = 0; p < n; p++)
        visit_all(&k, p, class, false);
    for (uint32_t p = n; p-- > 0 && k.ok;)
        visit_all(&k, p, class, true);
    for (uint32_t i = 0; i < begin->count; i++)
        if (begin->items[i].low < low)
            low = begin->items[i].low;
    return k.ok && a->bound <= base + low;
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
    out->bound = a->proof.dual && check_bound(scratch, chain, class, budget, inflight, a);
    vp_arena_rewind(scratch, mark);
}
