#include "planner/recompute/moves.h"

#include "planner/base/sum.h"

/* Bytes that have come into being when the backward of all stages from i on is done. */
static uint64_t *held_sums(struct vp_arena *arena, const struct vp_chain *c) {
    uint64_t *sums = VP_NEW_ARRAY(arena, c->n + 1, uint64_t);
    for (uint32_t i = c->n; c->held && i-- > 0;)
        sums[i] = sums[i + 1] + c->held[i];
    return sums;
}

static struct vp_move keep(const struct vp_chain *c, const uint64_t *held, uint32_t p, uint32_t j) {
    const struct vp_tape_option *o = &c->options[p][j];
    uint64_t forward = o->t + c->x[p + 1] + o->wf;
    uint64_t backward = o->t + c->g[p + 1] + c->g[p] + o->wb + held[p + 1];
    uint64_t after = c->g[p] + held[p];
    return (struct vp_move){.stored = c->x[p] + o->t,
                            .need = c->x[p] + vp_max(vp_max(forward, backward), after),
                            .time = o->r,
                            .next = p + 1,
                            .option = j};
}

/* A segment that grows by one stage at a time. All bytes are beyond x[first]. */
struct segment {
    uint64_t first_forward; /* most of the forwards that save nothing */
    uint64_t saving;        /* most of the forwards run again, without the gradient at the end */
    uint64_t backward;      /* most of the backwards */
    uint64_t tapes;         /* tapes and boundaries of the stages so far */
    uint64_t time;
};

static void grow(struct segment *s, const struct vp_chain *c, const uint64_t *held, uint32_t p,
                 uint32_t k) {
    const struct vp_tape_option *o = &c->options[k][0];
    uint64_t input = k > p ? c->x[k] : 0;
    s->first_forward = vp_max(s->first_forward, input + c->x[k + 1] + c->wn[k]);
    s->saving = vp_max(s->saving, s->tapes + o->t + c->x[k + 1] + o->wf);
    uint64_t backward = s->tapes + o->t + c->g[k + 1] + c->g[k] + o->wb + held[k + 1];
    uint64_t after = s->tapes + c->g[k] + held[k];
    s->backward = vp_max(s->backward, vp_max(backward, after));
    s->tapes += o->t + c->x[k + 1];
    s->time += c->f[k];
}

struct adder {
    struct vp_moves *moves;
    size_t count, capacity;
    struct vp_arena *arena;
};

/* Left out: what does not fit even as the first move, and what another move to the same place is
 * never worse than; of those only the last few can be (the options of one stage). */
static void add(struct adder *a, struct vp_move move, uint32_t p) {
    struct vp_moves *m = a->moves;
    if (move.need + m->others * move.stored > m->budget)
        return;
    for (size_t i = m->first[p]; i < a->count; i++) {
        const struct vp_move *other = &m->items[i];
        if (other->next == move.next && other->stored <= move.stored && other->need <= move.need &&
            other->time <= move.time)
            return;
        if (other->next != move.next)
            break;
    }
    if (a->count == a->capacity) {
        struct vp_move *old = m->items;
        a->capacity = 2 * a->capacity + 256;
        m->items = VP_NEW_ARRAY(a->arena, a->capacity, struct vp_move);
        for (size_t i = 0; i < a->count; i++)
            m->items[i] = old[i];
    }
    m->items[a->count++] = move;
}

/* The last stage has the loss: its backward follows at once, so it is kept. */
static void add_segments(struct adder *a, const struct vp_chain *c, const uint64_t *held,
                         uint32_t p) {
    struct segment s = {0};
    for (uint32_t q = p; q + 1 < c->n; q++) {
        grow(&s, c, held, p, q);
        uint64_t growing = vp_max(s.first_forward, vp_max(s.saving, s.backward));
        if (c->x[p] + growing > a->moves->budget)
            break;
        uint64_t again = c->g[q + 1] + held[q + 1] + s.saving;
        add(a,
            (struct vp_move){.stored = c->x[p],
                             .need = c->x[p] + vp_max(growing, again),
                             .time = s.time,
                             .next = q + 1,
                             .option = VP_MOVE_SEGMENT},
            p);
    }
}

static void find_least(struct vp_moves *m) {
    for (uint32_t p = 1; p <= m->n; p++)
        m->least[p] = VP_MOVES_UNREACHED;
    for (uint32_t p = 0; p < m->n; p++) {
        if (m->least[p] == VP_MOVES_UNREACHED)
            continue;
        for (uint32_t i = m->first[p]; i < m->first[p + 1]; i++) {
            uint64_t *least = &m->least[m->items[i].next];
            *least = vp_min(*least, m->least[p] + m->items[i].stored);
        }
    }
}

void vp_moves_make(struct vp_arena *arena, struct vp_moves *out, const struct vp_chain *chain,
                   uint64_t budget, uint64_t inflight, bool segments, bool options) {
    uint64_t *held = held_sums(arena, chain);
    struct adder a = {.moves = out, .arena = arena};
    *out = (struct vp_moves){.n = chain->n,
                             .others = inflight - 1,
                             .budget = vp_min(budget, VP_MOVES_NO_BUDGET),
                             .first = VP_NEW_ARRAY(arena, chain->n + 1, uint32_t),
                             .least = VP_NEW_ARRAY(arena, chain->n + 1, uint64_t)};
    for (uint32_t p = 0; p < chain->n; p++) {
        out->first[p] = (uint32_t)a.count;
        out->base_time += chain->f[p] + chain->b[p];
        uint64_t most = segments ? chain->f[p] : 0;
        for (uint32_t j = 0; j < (options ? chain->option_counts[p] : 1); j++) {
            add(&a, keep(chain, held, p, j), p);
            most = vp_max(most, chain->options[p][j].r);
        }
        out->most_time += most;
        if (segments)
            add_segments(&a, chain, held, p);
    }
    out->first[chain->n] = (uint32_t)a.count;
    find_least(out);
}
