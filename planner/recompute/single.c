/* The single-level classes within one budget, and their frontiers. */
#include "planner/base/sum.h"
#include "planner/recompute/judge.h"
#include "planner/recompute/labels.h"
#include "planner/recompute/recompute.h"

static bool has_segments(enum vp_recompute_class class) { return class != VP_PLACE_OPTIONS; }

static bool has_options(enum vp_recompute_class class) { return class != VP_PLACE_SEGMENTS; }

/* Labels of one list. A label has 40 bytes: all lists together stay below 200 MB. */
static uint32_t list_cap(uint32_t n) {
    enum { ALL = 4000000, MOST = 1 << 17 };
    return (uint32_t)vp_min(ALL / (n + 1), MOST);
}

/* With several microbatches in flight lists are sorted, not merged, which long chains make slow; a
 * pipeline rank has some tens of stages. */
enum { MOST_STAGES_OF_SEVERAL = 256 };

static const char CAP[] = "labels per position";
static const char CAP_STAGES[] = "stages with several microbatches in flight (256)";

static uint64_t peak_of(const struct vp_moves *m, const struct vp_label *label) {
    return label->need + m->others * label->stored;
}

/* ---- the least peak ---- */

/* With one microbatch the least R from each position on can be found without regard to time. */
static uint64_t least_need(struct vp_arena *scratch, const struct vp_moves *m) {
    struct vp_arena_mark mark = vp_arena_mark(scratch);
    uint64_t *least = VP_NEW_ARRAY(scratch, m->n + 1, uint64_t);
    for (uint32_t p = m->n; p-- > 0;) {
        least[p] = UINT64_MAX;
        for (uint32_t i = m->first[p]; i < m->first[p + 1]; i++) {
            const struct vp_move *e = &m->items[i];
            if (least[e->next] != UINT64_MAX)
                least[p] = vp_min(least[p], vp_max(e->need, e->stored + least[e->next]));
        }
    }
    uint64_t answer = least[0];
    vp_arena_rewind(scratch, mark);
    return answer;
}

/* With several, the pairs (R, T) count: labels whose times are all 0. 0 when these are too many. */
static uint64_t least_peak_of_several(struct vp_arena *scratch, const struct vp_moves *moves) {
    enum { MOST_STAGES = 128 };
    struct vp_moves timeless = *moves;
    struct vp_labels labels;
    uint32_t count = moves->first[moves->n];
    uint64_t least = UINT64_MAX;
    if (moves->n > MOST_STAGES)
        return 0;
    timeless.items = VP_NEW_ARRAY(scratch, count, struct vp_move);
    for (uint32_t i = 0; i < count; i++) {
        timeless.items[i] = moves->items[i];
        timeless.items[i].time = 0;
    }
    vp_labels_make(scratch, &labels, &timeless, NULL, 0, UINT32_MAX / 4);
    for (uint32_t i = 0; i < labels.at[0].count; i++)
        least = vp_min(least, peak_of(moves, &labels.at[0].items[i]));
    return least;
}

/* The smallest budget that any plan of the class keeps, 0 when it is not known. */
static uint64_t least_peak(struct vp_arena *scratch, const struct vp_chain *chain,
                           enum vp_recompute_class class, uint64_t inflight) {
    struct vp_arena_mark mark = vp_arena_mark(scratch);
    struct vp_moves moves;
    vp_moves_make(scratch, &moves, chain, VP_MOVES_NO_BUDGET, inflight, has_segments(class),
                  has_options(class));
    uint64_t least =
        inflight > 1 ? least_peak_of_several(scratch, &moves) : least_need(scratch, &moves);
    vp_arena_rewind(scratch, mark);
    return least;
}

/* ---- one budget ---- */

/* The label of the fastest plan, and of those the one of the least peak. */
static uint32_t best_label(const struct vp_labels *labels, const struct vp_moves *moves) {
    const struct vp_label_list *list = &labels->at[0];
    uint32_t best = 0;
    for (uint32_t i = 1; i < list->count; i++) {
        const struct vp_label *a = &list->items[i], *b = &list->items[best];
        if (a->time < b->time || (a->time == b->time && peak_of(moves, a) < peak_of(moves, b)))
            best = i;
    }
    return best;
}

static uint64_t lowest(const struct vp_labels *labels) {
    uint64_t low = UINT64_MAX;
    for (uint32_t i = 0; i < labels->at[0].count; i++)
        low = vp_min(low, labels->at[0].items[i].low);
    return low;
}

static void take_label(struct vp_arena *arena, struct vp_recompute_answer *out,
                       const struct vp_recompute_proof *proof, uint32_t best) {
    const struct vp_label *label = &proof->labels->at[0].items[best];
    uint64_t low = vp_min(lowest(proof->labels), vp_min(label->time, proof->limit + 1));
    uint64_t bound = vp_max(proof->dual->bound, low);
    out->feasible = true;
    out->time = proof->moves->base_time + label->time;
    out->bound = proof->moves->base_time + bound;
    out->cap = proof->labels->exact ? NULL : CAP;
    out->proof = *proof;
    vp_labels_plan(arena, &out->plan, proof->labels, proof->moves, best);
}

/* Labels whose bound is above a limit are left out. The limit begins just above the bound of all
 * plans and grows until there is a plan below it: then that is the best, and where there is none
 * the limit is a bound. A plan not far above the limit makes a limit that the next round ends with.
 */
static void find_best(struct vp_arena *arena, struct vp_recompute_answer *out,
                      const struct vp_moves *moves) {
    struct vp_dual *dual = VP_NEW(arena, struct vp_dual);
    struct vp_labels *labels = VP_NEW(arena, struct vp_labels);
    vp_dual_make(arena, dual, moves);
    uint64_t window = 1 + moves->base_time / 1000000 + dual->bound / 2048;
    while (dual->bound <= moves->most_time) {
        struct vp_arena_mark mark = vp_arena_mark(arena);
        struct vp_recompute_proof proof = {moves, dual, labels, dual->bound + window, NULL};
        vp_labels_make(arena, labels, moves, dual, proof.limit, list_cap(moves->n));
        out->pruned += labels->pruned;
        out->labels += labels->made;
        bool any = labels->at[0].count > 0;
        uint32_t best = any ? best_label(labels, moves) : 0;
        uint64_t over = any ? labels->at[0].items[best].time - dual->bound : UINT64_MAX;
        /* Thinned lists do not get better with a wider window. */
        if (over <= window || (any && !labels->exact)) {
            take_label(arena, out, &proof, best);
            return;
        }
        if (proof.limit >= moves->most_time)
            return; /* there is none */
        window = over / 32 <= window ? over : 3 * window;
        vp_arena_rewind(arena, mark);
    }
}

void vp_recompute_single(struct vp_arena *arena, struct vp_recompute_answer *out,
                         const struct vp_chain *chain, enum vp_recompute_class class,
                         uint64_t budget_bytes, uint64_t inflight) {
    struct vp_moves *moves = VP_NEW(arena, struct vp_moves);
    *out = (struct vp_recompute_answer){0};
    if (inflight > 1 && chain->n > MOST_STAGES_OF_SEVERAL) {
        out->cap = CAP_STAGES;
        return;
    }
    vp_moves_make(arena, moves, chain, budget_bytes, inflight, has_segments(class),
                  has_options(class));
    if (inflight == 1)
        out->least_bytes = least_need(arena, moves);
    if (moves->least[moves->n] != VP_MOVES_UNREACHED && out->least_bytes <= budget_bytes)
        find_best(arena, out, moves);
    if (!out->feasible)
        out->least_bytes = least_peak(arena, chain, class, inflight);
}

/* ---- all budgets ---- */

void vp_recompute_single_frontier(struct vp_arena *arena, struct vp_frontier *out,
                                  const struct vp_chain *chain, enum vp_recompute_class class,
                                  uint64_t inflight) {
    struct vp_moves moves;
    struct vp_labels labels;
    if (inflight > 1 && chain->n > MOST_STAGES_OF_SEVERAL) {
        *out = (struct vp_frontier){.cap = CAP_STAGES};
        return;
    }
    vp_moves_make(arena, &moves, chain, VP_MOVES_NO_BUDGET, inflight, has_segments(class),
                  has_options(class));
    vp_labels_make(arena, &labels, &moves, NULL, 0, list_cap(chain->n));
    const struct vp_label_list *list = &labels.at[0];
    struct vp_frontier_point *points = VP_NEW_ARRAY(arena, list->count, struct vp_frontier_point);
    for (uint32_t i = 0; i < list->count; i++)
        points[i] = (struct vp_frontier_point){.peak_bytes = peak_of(&moves, &list->items[i]),
                                               .time = moves.base_time + list->items[i].time,
                                               .bound = moves.base_time + list->items[i].low};
    *out = (struct vp_frontier){.exact = labels.exact, .cap = labels.exact ? NULL : CAP};
    vp_frontier_close(out, points, list->count);
}
