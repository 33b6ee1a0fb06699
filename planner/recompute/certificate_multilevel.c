/* The checker's part for multi-level classes: every list must hold something no worse than each way
 * to begin with a kept stage or a split, and parts that share a list must be the same problem. */
#include "planner/recompute/multilevel.h"

#include "planner/base/sum.h"

struct check {
    const struct vp_chain *c;
    const struct vp_multilevel *m;
    const uint64_t *held, *forward; /* sums over the stages before i */
    bool ok;
};

static const struct vp_steps *list_of(const struct check *k, uint32_t i, uint32_t l) {
    return &k->m->lists[vp_interval_id(&k->m->intervals, i, l)];
}

/* Candidates come with rising bytes; `low` is the least of the list's first `seen`, which need no
 * more. */
struct against {
    const struct vp_steps *list;
    uint32_t seen;
    uint64_t low;
};

static void compare(struct check *k, struct against *a, uint64_t bytes, uint64_t low) {
    for (; a->seen < a->list->count && a->list->items[a->seen].bytes <= bytes; a->seen++)
        a->low = vp_min(a->low, a->list->items[a->seen].low);
    k->ok &= bytes > k->m->most_bytes || low > k->m->most_time || a->low <= low;
}

static void check_keep(struct check *k, uint32_t i, uint32_t l, uint32_t j) {
    const struct vp_chain *c = k->c;
    const struct vp_tape_option *o = &c->options[i][j];
    uint64_t gradient = l + 1 == c->n ? 0 : c->g[l + 1], added = k->held[l + 1];
    uint64_t need = vp_max(gradient + o->t + c->x[i + 1] + o->wf,
                           o->t + c->g[i + 1] + c->g[i] + o->wb + added - k->held[i + 1]);
    struct against a = {list_of(k, i, l), 0, UINT64_MAX};
    need = vp_max(need, c->g[i] + added - k->held[i]);
    if (i == l)
        compare(k, &a, need, o->r);
    for (uint32_t s = 0; i < l && s < list_of(k, i + 1, l)->count; s++) {
        const struct vp_step *rest = &list_of(k, i + 1, l)->items[s];
        compare(k, &a, vp_max(need, rest->bytes + o->t + c->x[i + 1]), rest->low + o->r);
    }
}

/* Every pair of steps, one of each part, that is the last within some number of bytes. */
static void check_split(struct check *k, uint32_t i, uint32_t l, uint32_t at, uint64_t need) {
    const struct vp_steps *late = list_of(k, at, l), *early = list_of(k, i, at - 1);
    uint64_t held = k->held[l + 1] - k->held[at], forward = k->forward[at] - k->forward[i];
    struct against a = {list_of(k, i, l), 0, UINT64_MAX};
    for (uint32_t p = 0, q = 0; p < late->count && q < early->count;) {
        uint64_t first = late->items[p].bytes + k->c->x[at], second = early->items[q].bytes + held;
        compare(k, &a, vp_max(need, vp_max(first, second)),
                forward + late->items[p].low + early->items[q].low);
        bool more_p = p + 1 < late->count, more_q = q + 1 < early->count;
        uint64_t next_p = more_p ? late->items[p + 1].bytes + k->c->x[at] : UINT64_MAX;
        uint64_t next_q = more_q ? early->items[q + 1].bytes + held : UINT64_MAX;
        if (!more_p && !more_q)
            break;
        p += next_p <= next_q;
        q += next_q <= next_p;
    }
}

static void check_interval(struct check *k, uint32_t i, uint32_t l) {
    const struct vp_chain *c = k->c;
    uint64_t gradient = l + 1 == c->n ? 0 : c->g[l + 1], need = 0;
    const struct vp_steps *list = list_of(k, i, l);
    for (uint32_t s = 1; s < list->count; s++)
        k->ok &= list->items[s].bytes > list->items[s - 1].bytes &&
                 list->items[s].low <= list->items[s - 1].low;
    for (uint32_t j = 0; j < (k->m->options ? c->option_counts[i] : 1); j++)
        check_keep(k, i, l, j);
    for (uint32_t at = i + 1; at <= l && k->ok; at++) {
        uint64_t input = at - 1 > i ? c->x[at - 1] : 0;
        need = vp_max(need, gradient + input + c->x[at] + c->wn[at - 1]);
        check_split(k, i, l, at, need);
    }
}

static bool same_stage(const struct check *k, uint32_t a, uint32_t b) {
    const struct vp_chain *c = k->c;
    uint32_t count = k->m->options ? c->option_counts[a] : 1;
    bool same = c->x[a + 1] == c->x[b + 1] && c->g[a] == c->g[b] && c->g[a + 1] == c->g[b + 1] &&
                c->f[a] == c->f[b] && c->b[a] == c->b[b] && c->wn[a] == c->wn[b] &&
                (a == c->n - 1) == (b == c->n - 1) && (!c->held || c->held[a] == c->held[b]) &&
                (!k->m->options || count == c->option_counts[b]);
    for (uint32_t j = 0; j < count && same; j++) {
        const struct vp_tape_option *x = &c->options[a][j], *y = &c->options[b][j];
        same = x->t == y->t && x->r == y->r && x->wf == y->wf && x->wb == y->wb;
    }
    return same;
}

bool vp_multilevel_check(struct vp_arena *scratch, const struct vp_chain *c,
                         const struct vp_multilevel *m, uint64_t budget, uint64_t bound) {
    const struct vp_intervals *in = &m->intervals;
    uint64_t *held = VP_NEW_ARRAY(scratch, c->n + 1, uint64_t);
    uint64_t *forward = VP_NEW_ARRAY(scratch, c->n + 1, uint64_t);
    uint64_t most = (uint64_t)1 << 60; /* no sum of bytes is above */
    struct check k = {c, m, held, forward, vp_min(budget, most) <= m->most_bytes + c->x[0]};
    for (uint32_t i = 0; i < c->n; i++) {
        held[i + 1] = held[i] + (c->held ? c->held[i] : 0);
        forward[i + 1] = forward[i] + c->f[i];
        bound -= c->f[i] + c->b[i];
    }
    for (uint32_t i = 0; i < c->n && k.ok; i++)
        for (uint32_t l = i; l < c->n && k.ok; l++) {
            const struct vp_interval *first = &in->items[vp_interval_id(in, i, l)];
            k.ok = first->last - first->first == l - i && same_stage(&k, l, first->last) &&
                   (i == l || vp_interval_id(in, i, l - 1) ==
                                  vp_interval_id(in, first->first, first->last - 1));
            if (first->first == i)
                check_interval(&k, i, l);
        }
    const struct vp_steps *whole = list_of(&k, 0, c->n - 1);
    uint64_t low = vp_min(m->most_time, UINT64_MAX - 1) + 1;
    for (uint32_t s = 0; s < whole->count; s++)
        low = vp_min(low, whole->items[s].low);
    return k.ok && bound <= low;
}
