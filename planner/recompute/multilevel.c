/* Multi-level, memory-persistent schedules. C(i, l, m) is the least extra time for stages i..l when
 * m bytes are free, x[i] not counted and g[l+1] counted, as a list of steps (bytes, time):
 *
 *   keep i    needs m >= G + t + x[i+1] + wf and m >= t + g[i+1] + g[i] + wb, with G = g[l+1], or 0
 *             before the loss; then C(i+1, l, m - t - x[i+1])
 *   split s   needs m >= G + x[k] + x[k+1] + wn[k] for the stages i <= k < s (x[i] left out); takes
 *             their forward times; then C(s, l, m - x[s]) and C(i, s-1, m)
 *
 * Bytes that come into being with the backwards of s..l (held) are taken from the m of what
 * follows. The list of the whole chain is the frontier. */
#include "planner/base/sum.h"
#include "planner/recompute/multilevel.h"
#include "planner/recompute/recompute.h"

#include <string.h>

struct solver {
    const struct vp_chain *chain;
    struct vp_intervals intervals;
    bool options;
    struct vp_steps *lists;         /* by id */
    uint64_t *held, *forward;       /* n + 1: sums over the stages before i */
    uint64_t most_bytes, most_time; /* steps beyond are of no use */
    uint32_t cap;                   /* steps per list */
    bool exact;
    struct vp_step *list, *other; /* what was gathered, room to merge */
    uint32_t count, room;
    uint64_t made, pruned;
    struct vp_arena *arena;
};

static const struct vp_steps *steps_of(const struct solver *s, uint32_t i, uint32_t l) {
    return &s->lists[vp_interval_id(&s->intervals, i, l)];
}

static uint64_t gradient_after(const struct vp_chain *c, uint32_t l) {
    return l == c->n - 1 ? 0 : c->g[l + 1];
}

/* ---- gathering ---- */

static void make_room(struct solver *s, uint32_t more) {
    if (s->count + more <= s->room)
        return;
    struct vp_step *old = s->list;
    s->room = 2 * (s->count + more) + 64;
    s->list = VP_NEW_ARRAY(s->arena, s->room, struct vp_step);
    s->other = VP_NEW_ARRAY(s->arena, s->room, struct vp_step);
    if (s->count)
        memcpy(s->list, old, s->count * sizeof *old);
}

/* Appends a step whose bytes are at least those of all before. */
static void append(struct vp_step *list, uint32_t *count, const struct vp_step *step) {
    struct vp_step *last = &list[*count - 1];
    if (*count && last->time <= step->time) {
        last->low = vp_min(last->low, step->low);
    } else if (*count && last->bytes == step->bytes) {
        uint64_t low = vp_min(last->low, step->low);
        *last = *step;
        last->low = low;
    } else {
        list[(*count)++] = *step;
    }
}

/* Steps of the gathered list whose bytes are at most that. */
static uint32_t steps_within(const struct vp_step *list, uint32_t count, uint64_t bytes) {
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (list[middle].bytes <= bytes)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whether what is gathered is nowhere worse than steps that begin at `bytes` and never get below
 * `low`. */
static bool is_beaten(const struct solver *s, uint64_t bytes, uint64_t low) {
    uint32_t within = steps_within(s->list, s->count, bytes);
    return within && s->list[within - 1].time <= low && s->list[within - 1].low <= low;
}

/* A merge of new steps, which come in order, into what is gathered. */
struct merge {
    const struct vp_step *old;
    struct vp_step *out;
    uint32_t old_count, from, count;
    uint64_t most_time, pruned;
};

static struct merge begin_merge(struct solver *s, uint64_t bytes, uint32_t more) {
    make_room(s, more);
    struct merge m = {.old = s->list,
                      .out = s->other,
                      .old_count = s->count,
                      .from = steps_within(s->list, s->count, bytes),
                      .most_time = s->most_time};
    memcpy(m.out, m.old, m.from * sizeof *m.old);
    m.count = m.from;
    return m;
}

static inline void merge_step(struct merge *m, uint64_t bytes, uint64_t time, uint64_t low,
                              uint32_t choice) {
    for (; m->from < m->old_count && m->old[m->from].bytes <= bytes; m->from++)
        append(m->out, &m->count, &m->old[m->from]);
    struct vp_step *last = &m->out[m->count - 1];
    if (m->count && last->time <= time) {
        last->low = vp_min(last->low, low);
    } else if (low > m->most_time) {
        m->pruned++;
    } else {
        struct vp_step step = {bytes, time, low, choice};
        append(m->out, &m->count, &step);
    }
}

static void end_merge(struct solver *s, struct merge *m) {
    while (m->from < m->old_count)
        append(m->out, &m->count, &m->old[m->from++]);
    s->other = s->list;
    s->list = m->out;
    s->count = m->count;
    s->pruned += m->pruned;
}

/* ---- the two moves ---- */

static uint64_t keep_floor(const struct solver *s, uint32_t i, uint32_t l,
                           const struct vp_tape_option *o) {
    const struct vp_chain *c = s->chain;
    uint64_t forward = gradient_after(c, l) + o->t + c->x[i + 1] + o->wf;
    uint64_t backward = o->t + c->g[i + 1] + c->g[i] + o->wb + s->held[l + 1] - s->held[i + 1];
    uint64_t after = c->g[i] + s->held[l + 1] - s->held[i];
    return vp_max(vp_max(forward, backward), after);
}

static void keep(struct solver *s, uint32_t i, uint32_t l, uint32_t j) {
    const struct vp_tape_option *o = &s->chain->options[i][j];
    uint64_t floor = keep_floor(s, i, l, o), shift = o->t + s->chain->x[i + 1];
    struct vp_step nothing = {0};
    struct vp_steps none = {.items = &nothing, .count = 1};
    const struct vp_steps *rest = i < l ? steps_of(s, i + 1, l) : &none;
    if (rest->count == 0)
        return;
    struct merge m = begin_merge(s, vp_max(floor, rest->items[0].bytes + shift), rest->count);
    for (uint32_t k = 0; k < rest->count; k++) {
        const struct vp_step *r = &rest->items[k];
        uint64_t bytes = i < l ? vp_max(floor, r->bytes + shift) : floor;
        if (bytes > s->most_bytes)
            break;
        merge_step(&m, bytes, r->time + o->r, r->low + o->r, j);
    }
    end_merge(s, &m);
}

/* Both parts as functions of m; the sum of two step functions has a step wherever one has. */
static void split(struct solver *s, uint32_t i, uint32_t l, uint32_t at, uint64_t floor) {
    const struct vp_steps *late = steps_of(s, at, l), *early = steps_of(s, i, at - 1);
    uint64_t up = s->chain->x[at], held = s->held[l + 1] - s->held[at];
    uint64_t forward = s->forward[at] - s->forward[i];
    if (late->count == 0 || early->count == 0)
        return;
    uint64_t bytes = vp_max(floor, vp_max(late->items[0].bytes + up, early->items[0].bytes + held));
    uint64_t least = forward + late->low + early->low;
    if (bytes > s->most_bytes || is_beaten(s, bytes, least))
        return;
    struct merge m = begin_merge(s, bytes, late->count + early->count);
    const struct vp_step *a = &late->items[steps_within(late->items, late->count, bytes - up) - 1];
    const struct vp_step *b =
        &early->items[steps_within(early->items, early->count, bytes - held) - 1];
    const struct vp_step *last_a = &late->items[late->count - 1];
    const struct vp_step *last_b = &early->items[early->count - 1];
    while (bytes <= s->most_bytes) {
        merge_step(&m, bytes, forward + a->time + b->time, forward + a->low + b->low,
                   VP_STEP_SPLIT + at - i);
        if (m.count && m.out[m.count - 1].time <= least && m.out[m.count - 1].low <= least)
            break; /* nothing that follows is better */
        uint64_t next_a = a < last_a ? a[1].bytes + up : UINT64_MAX;
        uint64_t next_b = b < last_b ? b[1].bytes + held : UINT64_MAX;
        bytes = vp_min(next_a, next_b);
        if (bytes == UINT64_MAX)
            break;
        a += next_a == bytes;
        b += next_b == bytes;
    }
    end_merge(s, &m);
}

/* ---- all parts ---- */

/* Of steps whose times are in one grain the one of the fewest bytes stays. */
static void thin(struct solver *s) {
    if (s->count <= s->cap)
        return;
    s->exact = false;
    uint64_t grain = (s->list[0].time - s->list[s->count - 1].time) / s->cap + 2;
    for (; s->count > s->cap; grain *= 2) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < s->count; i++) {
            struct vp_step *last = &s->list[kept - 1];
            if (kept && last->time / grain == s->list[i].time / grain)
                last->low = vp_min(last->low, s->list[i].low);
            else
                s->list[kept++] = s->list[i];
        }
        s->count = kept;
    }
}

static void solve_interval(struct solver *s, uint32_t id) {
    const struct vp_chain *c = s->chain;
    uint32_t i = s->intervals.items[id].first, l = s->intervals.items[id].last;
    uint64_t floor = 0, gradient = gradient_after(c, l);
    struct vp_steps *out = &s->lists[id];
    s->count = 0;
    for (uint32_t j = 0; j < (s->options ? c->option_counts[i] : 1); j++)
        keep(s, i, l, j);
    for (uint32_t at = i + 1; at <= l; at++) {
        uint64_t input = at - 1 > i ? c->x[at - 1] : 0;
        floor = vp_max(floor, gradient + input + c->x[at] + c->wn[at - 1]);
        split(s, i, l, at, floor);
        if (s->count > 2 * (uint64_t)s->cap)
            thin(s);
    }
    thin(s);
    out->items = VP_NEW_ARRAY(s->arena, s->count, struct vp_step);
    out->count = s->count;
    out->low = UINT64_MAX;
    for (uint32_t k = 0; k < s->count; k++) {
        out->items[k] = s->list[k];
        out->low = vp_min(out->low, s->list[k].low);
    }
    s->made += s->count;
}

/* Caps: all lists together stay below 400 MB, and the merges within about 10 seconds. Short parts
 * have short lists, so the long ones may take some times their share. */
enum { MOST_SPLITS = 2000000, MOST_STEPS = 12000000, LEAST_CAP = 32 };
static const uint64_t MOST_WORK = 1000000000;
static const char CAP_SPLITS[] = "different parts of the chain times their splits";
static const char CAP_STEPS[] = "steps per part of the chain";

/* False: too many parts. */
static bool solve(struct solver *s) {
    const struct vp_chain *c = s->chain;
    vp_intervals_make(s->arena, &s->intervals, c, s->options);
    if (s->intervals.splits > MOST_SPLITS)
        return false;
    uint64_t by_work = MOST_WORK / (s->intervals.splits + 1);
    uint64_t by_room = MOST_STEPS / s->intervals.count;
    s->cap = (uint32_t)vp_max(LEAST_CAP, vp_min(vp_min(by_work, by_room), MOST_STEPS));
    s->exact = true;
    s->lists = VP_NEW_ARRAY(s->arena, s->intervals.count, struct vp_steps);
    s->held = VP_NEW_ARRAY(s->arena, c->n + 1, uint64_t);
    s->forward = VP_NEW_ARRAY(s->arena, c->n + 1, uint64_t);
    for (uint32_t i = 0; i < c->n; i++) {
        s->held[i + 1] = s->held[i] + (c->held ? c->held[i] : 0);
        s->forward[i + 1] = s->forward[i] + c->f[i];
    }
    for (uint32_t id = 0; id < s->intervals.count; id++)
        solve_interval(s, id);
    return true;
}

/* ---- the schedule ---- */

struct writer {
    const struct solver *s;
    struct vp_chain_schedule *out;
    size_t room;
};

static void write_op(struct writer *w, enum vp_chain_op_kind kind, uint32_t stage,
                     uint32_t option) {
    struct vp_chain_schedule *out = w->out;
    if (out->count == w->room) {
        struct vp_chain_op *old = out->ops;
        w->room = 2 * w->room + 256;
        out->ops = VP_NEW_ARRAY(w->s->arena, w->room, struct vp_chain_op);
        if (out->count)
            memcpy(out->ops, old, out->count * sizeof *old);
    }
    out->ops[out->count++] = (struct vp_chain_op){kind, stage, option};
}

/* Stages i..l with so many bytes free. */
static void write_interval(struct writer *w, uint32_t i, uint32_t l, uint64_t bytes) {
    const struct solver *s = w->s;
    const struct vp_chain *c = s->chain;
    const struct vp_steps *steps = steps_of(s, i, l);
    const struct vp_step *step = &steps->items[steps_within(steps->items, steps->count, bytes) - 1];
    if (step->choice < VP_STEP_SPLIT) {
        uint64_t stored = c->options[i][step->choice].t + c->x[i + 1];
        write_op(w, VP_OP_SAVE, i, step->choice);
        if (i < l)
            write_interval(w, i + 1, l, step->bytes - stored);
        if (i == c->n - 1)
            write_op(w, VP_OP_LOSS, 0, 0);
        else
            write_op(w, VP_OP_DISCARD, i + 1, 0);
        write_op(w, VP_OP_BACKWARD, i, 0);
        return;
    }
    uint32_t at = i + step->choice - VP_STEP_SPLIT;
    for (uint32_t k = i; k < at; k++) {
        write_op(w, VP_OP_FORWARD, k, 0);
        if (k > i)
            write_op(w, VP_OP_DISCARD, k, 0);
    }
    write_interval(w, at, l, step->bytes - c->x[at]);
    write_op(w, VP_OP_DISCARD, at, 0);
    write_interval(w, i, at - 1, step->bytes - (s->held[l + 1] - s->held[at]));
}

/* ---- answers ---- */

static uint64_t base_time(const struct vp_chain *c) {
    uint64_t time = 0;
    for (uint32_t i = 0; i < c->n; i++)
        time += c->f[i] + c->b[i];
    return time;
}

static struct solver *new_solver(struct vp_arena *arena, const struct vp_chain *chain, bool options,
                                 uint64_t most_bytes, uint64_t most_time) {
    struct solver *s = VP_NEW(arena, struct solver);
    *s = (struct solver){.chain = chain,
                         .options = options,
                         .most_bytes = most_bytes,
                         .most_time = most_time,
                         .arena = arena};
    return s;
}

static const struct vp_steps *whole(const struct solver *s) {
    return steps_of(s, 0, s->chain->n - 1);
}

static const struct vp_multilevel *proof_of(const struct solver *s, struct vp_arena *arena) {
    struct vp_multilevel *proof = VP_NEW(arena, struct vp_multilevel);
    *proof =
        (struct vp_multilevel){s->intervals, s->lists, s->most_bytes, s->most_time, s->options};
    return proof;
}

/* The least peak, when no budget is given; UINT64_MAX when it is not known. */
static uint64_t least_peak(struct vp_arena *arena, const struct vp_chain *chain, bool options) {
    struct vp_arena_mark mark = vp_arena_mark(arena);
    struct solver *s = new_solver(arena, chain, options, (uint64_t)1 << 60, UINT64_MAX);
    uint64_t least = solve(s) ? whole(s)->items[0].bytes + chain->x[0] : 0;
    vp_arena_rewind(arena, mark);
    return least;
}

void vp_recompute_multilevel(struct vp_arena *arena, struct vp_recompute_answer *out,
                             const struct vp_chain *chain, bool options, uint64_t budget_bytes) {
    uint64_t base = base_time(chain), most_time = UINT64_MAX;
    struct vp_recompute_answer single;
    *out = (struct vp_recompute_answer){0};
    /* Whatever a single level reaches in time is a bound for several. */
    vp_recompute_single(arena, &single, chain, options ? VP_PLACE_JOINT : VP_PLACE_SEGMENTS,
                        budget_bytes, 1);
    if (single.feasible)
        most_time = single.time - base;
    struct solver *s =
        new_solver(arena, chain, options,
                   vp_min(vp_above(budget_bytes, chain->x[0]), (uint64_t)1 << 60), most_time);
    if (!solve(s)) {
        out->cap = CAP_SPLITS;
        return;
    }
    const struct vp_steps *steps = whole(s);
    out->cap = s->exact ? NULL : CAP_STEPS;
    out->labels = s->made;
    out->pruned = s->pruned;
    if (steps->count == 0 || budget_bytes < chain->x[0]) {
        out->least_bytes = least_peak(arena, chain, options);
        return;
    }
    struct writer writer = {.s = s, .out = &out->schedule};
    const struct vp_step *best = &steps->items[steps->count - 1];
    out->feasible = true;
    out->least_bytes = 0;
    out->time = base + best->time;
    out->bound = base + vp_min(steps->low, best->time);
    out->proof.multilevel = proof_of(s, arena);
    write_interval(&writer, 0, chain->n - 1, best->bytes);
}

void vp_recompute_multilevel_frontier(struct vp_arena *arena, struct vp_frontier *out,
                                      const struct vp_chain *chain, bool options) {
    struct solver *s = new_solver(arena, chain, options, (uint64_t)1 << 60, UINT64_MAX);
    uint64_t base = base_time(chain);
    *out = (struct vp_frontier){0};
    if (!solve(s)) {
        out->cap = CAP_SPLITS;
        return;
    }
    const struct vp_steps *steps = whole(s);
    struct vp_frontier_point *points = VP_NEW_ARRAY(arena, steps->count, struct vp_frontier_point);
    for (uint32_t i = 0; i < steps->count; i++)
        points[i] = (struct vp_frontier_point){.peak_bytes = steps->items[i].bytes + chain->x[0],
                                               .time = base + steps->items[i].time,
                                               .bound = base + steps->items[i].low};
    out->exact = s->exact;
    out->cap = s->exact ? NULL : CAP_STEPS;
    vp_frontier_close(out, points, steps->count);
}
