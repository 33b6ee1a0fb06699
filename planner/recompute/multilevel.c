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

/* Items that grow. */
struct room {
    struct vp_step *items;
    uint32_t count;
};

struct solver {
    const struct vp_chain *chain;
    struct vp_intervals intervals;
    bool options;
    struct vp_steps *lists;         /* by id */
    uint64_t *held, *forward;       /* n + 1: sums over the stages before i */
    uint64_t most_bytes, most_time; /* steps beyond are of no use */
    uint64_t limit;                 /* above most_time */
    uint32_t cap;                   /* steps per list */
    bool exact;
    struct room list, fresh, merged; /* what was gathered, what was not merged yet */
    uint32_t count, fresh_count;
    uint64_t made, pruned;
    struct vp_arena *arena;
};

/* Of an item after the last one. No sum of bytes is above 1 << 60. */
static const uint64_t END_BYTES = (uint64_t)1 << 62;

static const struct vp_steps *steps_of(const struct solver *s, uint32_t i, uint32_t l) {
    return &s->lists[vp_interval_id(&s->intervals, i, l)];
}

static uint64_t gradient_after(const struct vp_chain *c, uint32_t l) {
    return l == c->n - 1 ? 0 : c->g[l + 1];
}

/* ---- gathering ---- */

/* Appends a step whose bytes are at least those of all before. */
static void append(struct vp_step *list, uint32_t *count, struct vp_step step) {
    if (*count) {
        struct vp_step *last = &list[*count - 1];
        step.low = vp_min(last->low, step.low);
        if (last->time <= step.time) {
            last->low = step.low;
            return;
        }
        *count -= last->bytes == step.bytes;
    }
    list[(*count)++] = step;
}

/* Steps of a list whose bytes are at most that. */
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

/* Keeps the first `count` items. */
static void make_room(struct solver *s, struct room *room, uint32_t count, uint32_t wanted) {
    const struct vp_step *old = room->items;
    if (wanted <= room->count)
        return;
    room->count = 2 * wanted + 64;
    room->items = VP_NEW_ARRAY(s->arena, room->count, struct vp_step);
    if (count)
        memcpy(room->items, old, count * sizeof *old);
}

static void add_fresh(struct solver *s, uint64_t bytes, uint64_t time, uint64_t low,
                      uint32_t choice) {
    make_room(s, &s->fresh, s->fresh_count, s->fresh_count + 1);
    s->fresh.items[s->fresh_count++] = (struct vp_step){bytes, time, low, choice};
}

/* Merges the fresh steps, which come in order, into the list; only what lies between the first and
 * the last of them is rewritten. */
static void take_fresh(struct solver *s) {
    uint32_t fresh_count = s->fresh_count, count = 0;
    s->fresh_count = 0;
    if (!fresh_count)
        return;
    make_room(s, &s->list, s->count, s->count + fresh_count);
    make_room(s, &s->merged, 0, s->count + fresh_count);
    const struct vp_step *fresh = s->fresh.items;
    struct vp_step *list = s->list.items, *merged = s->merged.items;
    uint32_t begin = steps_within(list, s->count, fresh->bytes);
    begin -= begin > 0;
    uint32_t old = begin;
    for (uint32_t k = 0; k < fresh_count; k++) {
        for (; old < s->count && list[old].bytes <= fresh[k].bytes; old++)
            append(merged, &count, list[old]);
        append(merged, &count, fresh[k]);
    }
    const struct vp_step *last = &merged[count - 1];
    for (; old < s->count && list[old].time >= last->time; old++)
        append(merged, &count, list[old]);
    for (uint32_t k = old; k < s->count && list[k].low > last->low; k++)
        list[k].low = last->low;
    memmove(list + begin + count, list + old, (s->count - old) * sizeof *list);
    memcpy(list + begin, merged, count * sizeof *list);
    s->count += begin + count - old;
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
    for (uint32_t k = 0; k < rest->count; k++) {
        const struct vp_step *r = &rest->items[k];
        uint64_t bytes = i < l ? vp_max(floor, r->bytes + shift) : floor;
        if (bytes > s->most_bytes)
            break;
        if (r->low + o->r > s->most_time)
            s->pruned++;
        else
            add_fresh(s, bytes, r->time + o->r, r->low + o->r, j);
    }
    take_fresh(s);
}

/* The sum of two lists as functions of m, at some m. Times and lower bounds only fall. */
struct pair {
    const struct vp_step *late, *early, *last_late, *last_early; /* items after the last: END */
    uint64_t late_up, early_up;                                  /* added to their bytes */
    uint64_t forward, bytes;
};

/* What is known at some m: a step is of use when its time or its bound is below. */
struct known {
    uint64_t time, low, limit; /* and any bound has to be below the limit */
};

static inline void learn(struct known *k, uint64_t time, uint64_t low) {
    k->time = vp_min(k->time, time);
    k->low = vp_min(k->low, low);
}

static inline bool is_of_use(const struct known *k, uint64_t time, uint64_t low) {
    return (low < k->low) | ((time < k->time) & (low < k->limit));
}

static inline bool pair_is_of_use(const struct pair *p, const struct vp_step *late,
                                  const struct vp_step *early, const struct known *k) {
    return is_of_use(k, p->forward + late->time + early->time, p->forward + late->low + early->low);
}

/* Moves on to the first m from here on where the pair is of use; false: none up to `most`. As long
 * as all is exact times are their bounds, so that those suffice. */
static inline bool seek(struct pair *p, const struct known *known, uint64_t most, bool exact) {
    const struct known k = *known;
    const struct vp_step *late = p->late, *early = p->early;
    uint64_t bytes = p->bytes, late_up = p->late_up, early_up = p->early_up, forward = p->forward;
    while (exact ? forward + late->low + early->low >= k.low
                 : !pair_is_of_use(p, late, early, &k)) {
        uint64_t next_late = late[1].bytes + late_up, next_early = early[1].bytes + early_up;
        bytes = vp_min(next_late, next_early);
        if (bytes > most)
            return false;
        late += next_late <= next_early;
        early += next_early <= next_late;
    }
    p->late = late;
    p->early = early;
    p->bytes = bytes;
    return true;
}

/* The two parts of a split, at the first m that both have; false: there is none. */
static bool begin_pair(const struct solver *s, struct pair *p, uint32_t i, uint32_t l, uint32_t at,
                       uint64_t floor) {
    const struct vp_steps *late = steps_of(s, at, l), *early = steps_of(s, i, at - 1);
    if (late->count == 0 || early->count == 0)
        return false;
    *p = (struct pair){.last_late = late->items + late->count - 1,
                       .last_early = early->items + early->count - 1,
                       .late_up = s->chain->x[at],
                       .early_up = s->held[l + 1] - s->held[at],
                       .forward = s->forward[at] - s->forward[i]};
    p->bytes =
        vp_max(floor, vp_max(late->items->bytes + p->late_up, early->items->bytes + p->early_up));
    p->late = late->items + steps_within(late->items, late->count, p->bytes - p->late_up) - 1;
    p->early = early->items + steps_within(early->items, early->count, p->bytes - p->early_up) - 1;
    return p->bytes <= s->most_bytes;
}

/* Steps passed at once where many are. */
enum { SKIP = 8 };

static void split(struct solver *s, uint32_t i, uint32_t l, uint32_t at, uint64_t floor) {
    const struct vp_step *list = s->list.items;
    struct known known = {UINT64_MAX, s->limit, s->limit};
    struct pair p;
    if (!begin_pair(s, &p, i, l, at, floor))
        return;
    uint32_t from = steps_within(list, s->count, p.bytes);
    if (from)
        learn(&known, list[from - 1].time, list[from - 1].low);
    while (pair_is_of_use(&p, p.last_late, p.last_early, &known) &&
           (s->exact ? seek(&p, &known, s->most_bytes, true)
                     : seek(&p, &known, s->most_bytes, false))) {
        while (from + SKIP <= s->count && list[from + SKIP - 1].bytes <= p.bytes)
            from += SKIP;
        while (from < s->count && list[from].bytes <= p.bytes)
            from++;
        if (from)
            learn(&known, list[from - 1].time, list[from - 1].low);
        if (!pair_is_of_use(&p, p.late, p.early, &known))
            continue;
        uint64_t time = p.forward + p.late->time + p.early->time;
        uint64_t low = p.forward + p.late->low + p.early->low;
        add_fresh(s, p.bytes, time, low, VP_STEP_SPLIT + at - i);
        learn(&known, time, low);
    }
    take_fresh(s);
}

/* ---- all parts ---- */

/* Of steps whose times are in one grain the one of the fewest bytes stays. */
static void thin(struct solver *s) {
    if (s->count <= s->cap)
        return;
    struct vp_step *list = s->list.items;
    s->exact = false;
    uint64_t grain = (list[0].time - list[s->count - 1].time) / s->cap + 2;
    for (; s->count > s->cap; grain *= 2) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < s->count; i++) {
            struct vp_step *last = &list[kept - 1];
            if (kept && last->time / grain == list[i].time / grain)
                last->low = vp_min(last->low, list[i].low);
            else
                list[kept++] = list[i];
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
    out->items = VP_NEW_ARRAY(s->arena, s->count + 1, struct vp_step);
    out->count = s->count;
    if (s->count)
        memcpy(out->items, s->list.items, s->count * sizeof *out->items);
    out->items[s->count].bytes = END_BYTES;
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
                         .limit = vp_min(most_time, UINT64_MAX - 1) + 1,
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
    out->bound = base + best->low;
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
