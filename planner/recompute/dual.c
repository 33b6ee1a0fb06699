#include "planner/recompute/dual.h"

#include <float.h>
#include <math.h>

#include "planner/base/sum.h"

/* ---- the search for prices, in floating point: nothing rests on its rounding ---- */

/* A move in floating point: conversions would take half of the time. */
struct leap {
    double stored, need, time;
    uint32_t next;
};

struct search {
    const struct vp_moves *moves;
    struct leap *leaps;   /* by move */
    double *price, *step; /* n + 1; price[p] = step[p] + step[p + 1] + ... */
    double *length;       /* n + 1: shortest path to the end */
    uint32_t *choice;     /* n: its first move from p */
    double *excess;       /* n: bytes above the budget at the move that covers p */
    double *way;          /* n: the last step's direction */
    double *best;         /* n + 1: the best prices so far */
    double bound, best_bound, target;
};

static void shortest(struct search *s) {
    const struct vp_moves *m = s->moves;
    const double *price = s->price;
    double *length = s->length, others = (double)m->others * price[0];
    length[m->n] = 0;
    for (uint32_t p = m->n; p-- > 0;) {
        double best = DBL_MAX, here = price[p];
        uint32_t choice = 0;
        for (uint32_t i = m->first[p]; i < m->first[p + 1]; i++) {
            const struct leap *e = &s->leaps[i];
            double later = price[e->next];
            double total =
                e->time + (later + others) * e->stored + (here - later) * e->need + length[e->next];
            if (total < best) {
                best = total;
                choice = i;
            }
        }
        length[p] = best;
        s->choice[p] = choice;
    }
    s->bound = length[0] - price[0] * (double)m->budget;
}

/* Walks the shortest path: its excess over the budget at each position, which is the direction in
 * which prices should go. A path that fits is a plan: its time is a target to climb to. */
static void find_excess(struct search *s) {
    const struct vp_moves *m = s->moves;
    double stored = 0, time = 0, worst = 0, total = 0;
    for (uint32_t p = 0; p < m->n; p = s->leaps[s->choice[p]].next)
        total += s->leaps[s->choice[p]].stored;
    for (uint32_t p = 0; p < m->n;) {
        const struct leap *e = &s->leaps[s->choice[p]];
        double excess = stored + e->need + (double)m->others * total - (double)m->budget;
        worst = fmax(worst, excess);
        time += e->time;
        stored += e->stored;
        for (; p < e->next; p++)
            s->excess[p] = excess;
    }
    if (worst <= 0 && time < s->target)
        s->target = time;
}

/* A step towards a level that the bound is hoped to reach (Polyak's rule), along the excess, which
 * is turned away from the last way where the two point apart (Camerini, Fratta and Maffioli 1975).
 */
static void climb(struct search *s, double level) {
    uint32_t n = s->moves->n;
    double square = 0, dot = 0, old = 0;
    for (uint32_t p = 0; p < n; p++) {
        dot += s->excess[p] * s->way[p];
        old += s->way[p] * s->way[p];
    }
    double keep = dot < 0 ? -dot / old / 2 : 0;
    for (uint32_t p = 0; p < n; p++) {
        s->way[p] = s->excess[p] + keep * s->way[p];
        if (s->step[p] <= 0 && s->way[p] < 0)
            s->way[p] = 0;
        square += s->way[p] * s->way[p];
    }
    if (square <= 0)
        return;
    double by = (level - s->bound) / square;
    for (uint32_t p = n; p-- > 0;) {
        s->step[p] = fmax(0, s->step[p] + by * s->way[p]);
        s->price[p] = s->price[p + 1] + s->step[p];
    }
}

/* The level is lowered when the bound does not come nearer. The numbers of rounds are those that
 * brought the best times of whole solutions on chains of 100 and 1000 stages. */
static void search_prices(struct search *s) {
    uint32_t n = s->moves->n, rounds = 80 + n / 2, patience = 5 + n / 50, idle = 0;
    double hope = s->target, last = 0;
    for (uint32_t round = 0; round < rounds && s->target - s->best_bound >= 1; round++) {
        if (round % (4 * patience) == 4 * patience - 1) {
            if (round > 60 && s->best_bound - last < s->best_bound / 20000)
                break;
            last = s->best_bound;
        }
        shortest(s);
        idle = s->bound > s->best_bound + hope / 10 ? 0 : idle + 1;
        if (s->bound > s->best_bound) {
            s->best_bound = s->bound;
            for (uint32_t p = 0; p <= n; p++)
                s->best[p] = s->price[p];
        }
        if (idle > patience) {
            hope /= 2;
            idle = 0;
        }
        find_excess(s);
        climb(s, fmin(s->target, s->best_bound + hope));
    }
}

/* ---- the bound, in integers ---- */

/* Longer than any path; three of them still fit. */
#define FAR ((vp_wide)1 << 125)

/* `through` holds the lengths of the moves alone at first. */
void vp_dual_evaluate(struct vp_dual *dual, const struct vp_moves *m) {
    for (uint32_t p = 0; p <= m->n; p++)
        dual->before[p] = dual->after[p] = FAR;
    dual->before[0] = dual->after[m->n] = 0;
    for (uint32_t p = 0; p < m->n; p++)
        for (uint32_t i = m->first[p]; i < m->first[p + 1]; i++) {
            const struct vp_move *e = &m->items[i];
            dual->through[i] = vp_dual_length(dual, m, p, e);
            vp_wide length = dual->before[p] + dual->through[i];
            if (length < dual->before[e->next])
                dual->before[e->next] = length;
        }
    for (uint32_t p = m->n; p-- > 0;)
        for (uint32_t i = m->first[p]; i < m->first[p + 1]; i++) {
            vp_wide length = dual->through[i] + dual->after[m->items[i].next];
            if (length < dual->after[p])
                dual->after[p] = length;
            dual->through[i] = dual->before[p] + length;
        }
    vp_wide bound = dual->after[0] - (vp_wide)dual->price[0] * (vp_wide)m->budget;
    vp_wide unit = (vp_wide)1 << dual->shift;
    dual->bound = bound <= 0 ? 0 : (uint64_t)((bound + unit - 1) / unit);
}

/* The largest price gets about 40 bits: prices below 2^60, times below 2^60 after scaling by 2^60
 * at most, and with sums of bytes and times below 2^60 every product and sum is below 2^123. */
static unsigned shift_for(double largest) {
    int exponent;
    frexp(largest, &exponent);
    int shift = 40 - exponent;
    return (unsigned)(shift < 0 ? 0 : shift > 60 ? 60 : shift);
}

void vp_dual_make(struct vp_arena *arena, struct vp_dual *out, const struct vp_moves *moves) {
    uint32_t n = moves->n;
    struct search s = {.moves = moves,
                       .leaps = VP_NEW_ARRAY(arena, moves->first[n], struct leap),
                       .price = VP_NEW_ARRAY(arena, n + 1, double),
                       .step = VP_NEW_ARRAY(arena, n + 1, double),
                       .length = VP_NEW_ARRAY(arena, n + 1, double),
                       .choice = VP_NEW_ARRAY(arena, n, uint32_t),
                       .excess = VP_NEW_ARRAY(arena, n, double),
                       .way = VP_NEW_ARRAY(arena, n, double),
                       .best = VP_NEW_ARRAY(arena, n + 1, double),
                       .best_bound = -1};
    for (uint32_t p = 0; p < n; p++) {
        double most = 0;
        for (uint32_t i = moves->first[p]; i < moves->first[p + 1]; i++) {
            const struct vp_move *e = &moves->items[i];
            s.leaps[i] =
                (struct leap){(double)e->stored, (double)e->need, (double)e->time, e->next};
            if (e->next == p + 1)
                most = fmax(most, s.leaps[i].time);
        }
        s.target += most;
    }
    search_prices(&s);
    *out = (struct vp_dual){.price = VP_NEW_ARRAY(arena, n + 1, uint64_t),
                            .before = VP_NEW_ARRAY(arena, n + 1, vp_wide),
                            .after = VP_NEW_ARRAY(arena, n + 1, vp_wide),
                            .through = VP_NEW_ARRAY(arena, moves->first[n], vp_wide),
                            .shift = shift_for(s.best[0])};
    for (uint32_t p = 0; p <= n; p++)
        out->price[p] = (uint64_t)fmin(ldexp(s.best[p], (int)out->shift), 0x1p60);
    vp_dual_evaluate(out, moves);
}
