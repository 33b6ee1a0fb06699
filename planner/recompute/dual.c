#include "planner/recompute/dual.h"

#include <float.h>
#include <math.h>

#include "planner/base/sum.h"

/* ---- the search for prices, in floating point: nothing rests on its rounding ---- */

struct search {
    const struct vp_moves *moves;
    double *price, *step;   /* n + 1; price[p] = step[p] + step[p + 1] + ... */
    double *length;         /* n + 1: shortest path to the end */
    uint32_t *choice;       /* n: its first move from p */
    double *excess;         /* n: bytes above the budget at the move that covers p */
    double *best;           /* n + 1: the best prices so far */
    double bound, best_bound, target;
};

static void shortest(struct search *s) {
    const struct vp_moves *m = s->moves;
    double others = (double)m->others * s->price[0];
    s->length[m->n] = 0;
    for (uint32_t p = m->n; p-- > 0;) {
        double best = DBL_MAX;
        for (uint32_t i = m->first[p]; i < m->first[p + 1]; i++) {
            const struct vp_move *e = &m->items[i];
            double later = s->price[e->next];
            double length = (double)e->time + (later + others) * (double)e->stored +
                            (s->price[p] - later) * (double)e->need + s->length[e->next];
            if (length < best) {
                best = length;
                s->choice[p] = i;
            }
        }
        s->length[p] = best;
    }
    s->bound = s->length[0] - s->price[0] * (double)m->budget;
}

/* Walks the shortest path: its excess over the budget at each position, which is the direction in
 * which prices should go. A path that fits is a plan: its time is a target to climb to. */
static void find_excess(struct search *s) {
    const struct vp_moves *m = s->moves;
    double stored = 0, time = 0, worst = 0, total = 0;
    for (uint32_t p = 0; p < m->n; p = m->items[s->choice[p]].next)
        total += (double)m->items[s->choice[p]].stored;
    for (uint32_t p = 0; p < m->n;) {
        const struct vp_move *e = &m->items[s->choice[p]];
        double excess = stored + (double)e->need + (double)m->others * total - (double)m->budget;
        worst = fmax(worst, excess);
        time += (double)e->time;
        stored += (double)e->stored;
        for (; p < e->next; p++)
            s->excess[p] = excess;
    }
    if (worst <= 0 && time < s->target)
        s->target = time;
}

/* Polyak's rule: as far as the gap to the target asks for along the excess. */
static void climb(struct search *s, double pace) {
    uint32_t n = s->moves->n;
    double square = 0;
    for (uint32_t p = 0; p < n; p++)
        if (s->excess[p] > 0 || s->step[p] > 0)
            square += s->excess[p] * s->excess[p];
    if (square <= 0)
        return;
    double by = pace * fmax(s->target - s->bound, 1) / square;
    for (uint32_t p = n; p-- > 0;) {
        s->step[p] = fmax(0, s->step[p] + by * s->excess[p]);
        s->price[p] = s->price[p + 1] + s->step[p];
    }
}

static void search_prices(struct search *s) {
    enum { ROUNDS = 120, PATIENCE = 8 };
    uint32_t n = s->moves->n;
    double pace = 1;
    int idle = 0;
    for (int round = 0; round < ROUNDS; round++) {
        shortest(s);
        if (s->bound > s->best_bound) {
            idle = s->bound > s->best_bound + 1e-4 * (s->target - s->best_bound) ? 0 : idle + 1;
            s->best_bound = s->bound;
            for (uint32_t p = 0; p <= n; p++)
                s->best[p] = s->price[p];
        } else {
            idle++;
        }
        if (idle > PATIENCE) {
            pace /= 2;
            idle = 0;
        }
        find_excess(s);
        if (s->target - s->best_bound < 1)
            break;
        climb(s, pace);
    }
}

/* ---- the bound, in integers ---- */

#define FAR ((vp_wide)1 << 125)

void vp_dual_evaluate(struct vp_dual *dual, const struct vp_moves *m) {
    for (uint32_t p = 0; p <= m->n; p++)
        dual->before[p] = dual->after[p] = FAR;
    dual->before[0] = dual->after[m->n] = 0;
    for (uint32_t p = 0; p < m->n; p++)
        for (uint32_t i = m->first[p]; i < m->first[p + 1] && dual->before[p] < FAR; i++) {
            const struct vp_move *e = &m->items[i];
            vp_wide length = dual->before[p] + vp_dual_length(dual, m, p, e);
            if (length < dual->before[e->next])
                dual->before[e->next] = length;
        }
    for (uint32_t p = m->n; p-- > 0;)
        for (uint32_t i = m->first[p]; i < m->first[p + 1]; i++) {
            const struct vp_move *e = &m->items[i];
            if (dual->after[e->next] == FAR)
                continue;
            vp_wide length = dual->after[e->next] + vp_dual_length(dual, m, p, e);
            if (length < dual->after[p])
                dual->after[p] = length;
        }
    vp_wide bound = dual->after[0] - (vp_wide)dual->price[0] * (vp_wide)m->budget;
    vp_wide unit = (vp_wide)1 << dual->shift;
    dual->bound = bound <= 0 ? 0 : (uint64_t)((bound + unit - 1) / unit);
}

/* The largest price gets about 40 bits: prices below 2^60, times below 2^60 after scaling by 2^60 at
 * most, and with sums of bytes and times below 2^60 every product and sum is below 2^123. */
static unsigned shift_for(double largest) {
    int exponent;
    frexp(largest, &exponent);
    int shift = 40 - exponent;
    return (unsigned)(shift < 0 ? 0 : shift > 60 ? 60 : shift);
}

void vp_dual_make(struct vp_arena *arena, struct vp_dual *out, const struct vp_moves *moves) {
    uint32_t n = moves->n;
    struct search s = {.moves = moves,
                       .price = VP_NEW_ARRAY(arena, n + 1, double),
                       .step = VP_NEW_ARRAY(arena, n + 1, double),
                       .length = VP_NEW_ARRAY(arena, n + 1, double),
                       .choice = VP_NEW_ARRAY(arena, n, uint32_t),
                       .excess = VP_NEW_ARRAY(arena, n, double),
                       .best = VP_NEW_ARRAY(arena, n + 1, double),
                       .best_bound = -1};
    for (uint32_t p = 0; p < n; p++) {
        double most = 0;
        for (uint32_t i = moves->first[p]; i < moves->first[p + 1]; i++)
            if (moves->items[i].next == p + 1)
                most = fmax(most, (double)moves->items[i].time);
        s.target += most;
    }
    search_prices(&s);
    *out = (struct vp_dual){.price = VP_NEW_ARRAY(arena, n + 1, uint64_t),
                            .before = VP_NEW_ARRAY(arena, n + 1, vp_wide),
                            .after = VP_NEW_ARRAY(arena, n + 1, vp_wide),
                            .shift = shift_for(s.best[0])};
    for (uint32_t p = 0; p <= n; p++)
        out->price[p] = (uint64_t)fmin(ldexp(s.best[p], (int)out->shift), 0x1p60);
    vp_dual_evaluate(out, moves);
}
