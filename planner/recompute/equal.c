/* Equal segments and the settings of training frameworks, as plans. There are at most 2 N of them:
 * each goes to the judge. */
#include "planner/base/sum.h"
#include "planner/recompute/judge.h"
#include "planner/recompute/recompute.h"

/* ---- plans ---- */

struct maker {
    struct vp_plan_item *items;
    uint32_t count;
};

static struct maker begin(struct vp_arena *arena, const struct vp_chain *chain) {
    return (struct maker){.items = VP_NEW_ARRAY(arena, chain->n, struct vp_plan_item)};
}

/* Stages [first, end) kept with option j where they have it, else with their full tape. */
static void keep(struct maker *m, const struct vp_chain *chain, uint32_t first, uint32_t end,
                 uint32_t j) {
    for (uint32_t i = first; i < end; i++)
        m->items[m->count++] = (struct vp_plan_item){
            .first = i, .last = i, .option = j < chain->option_counts[i] ? j : 0};
}

static void recompute(struct maker *m, uint32_t first, uint32_t end) {
    m->items[m->count++] =
        (struct vp_plan_item){.first = first, .last = end - 1, .recompute = true};
}

static void end(struct maker *m, struct vp_recompute_plan *out, const struct vp_chain *chain) {
    keep(m, chain, chain->body_end, chain->n, 0);
    *out = (struct vp_recompute_plan){.items = m->items, .count = m->count};
}

void vp_equal_plan(struct vp_arena *arena, struct vp_recompute_plan *out,
                   const struct vp_chain *chain, uint32_t k, bool recompute_last) {
    struct maker m = begin(arena, chain);
    keep(&m, chain, 0, chain->body_first, 0);
    for (uint32_t p = chain->body_first; p < chain->body_end;) {
        uint32_t q = k < chain->body_end - p ? p + k : chain->body_end;
        if (q < chain->body_end || recompute_last)
            recompute(&m, p, q);
        else
            keep(&m, chain, p, q, 0);
        p = q;
    }
    end(&m, out, chain);
}

void vp_torch_sequential_plan(struct vp_arena *arena, struct vp_recompute_plan *out,
                              const struct vp_chain *chain, uint32_t segments) {
    struct maker m = begin(arena, chain);
    uint32_t k = (chain->body_end - chain->body_first) / segments, p = chain->body_first;
    keep(&m, chain, 0, chain->body_first, 0);
    for (uint32_t i = 1; i < segments; i++, p += k)
        recompute(&m, p, p + k);
    keep(&m, chain, p, chain->body_end, 0);
    end(&m, out, chain);
}

void vp_block_plan(struct vp_arena *arena, struct vp_recompute_plan *out,
                   const struct vp_chain *chain, uint32_t count) {
    struct maker m = begin(arena, chain);
    keep(&m, chain, 0, chain->body_first, 0);
    for (uint32_t p = chain->body_first; p < chain->body_first + count; p++)
        recompute(&m, p, p + 1);
    keep(&m, chain, chain->body_first + count, chain->body_end, 0);
    end(&m, out, chain);
}

void vp_one_option_plan(struct vp_arena *arena, struct vp_recompute_plan *out,
                        const struct vp_chain *chain, uint32_t j) {
    struct maker m = begin(arena, chain);
    keep(&m, chain, 0, chain->body_first, 0);
    keep(&m, chain, chain->body_first, chain->body_end, j);
    end(&m, out, chain);
}

/* ---- all lengths ---- */

/* Candidate i of 2 N: length i / 2 + 1, the last segment kept or recomputed. */
static struct vp_equal_segments judge(struct vp_arena *arena, const struct vp_chain *chain,
                                      uint32_t i) {
    struct vp_arena_mark mark = vp_arena_mark(arena);
    struct vp_equal_segments c = {.k = i / 2 + 1, .recompute_last = i % 2};
    struct vp_recompute_plan plan;
    struct vp_chain_schedule schedule;
    struct vp_judgement j;
    vp_equal_plan(arena, &plan, chain, c.k, c.recompute_last);
    vp_plan_schedule(arena, &schedule, chain, &plan);
    vp_judge(arena, &j, chain, &schedule);
    c.peak_bytes = j.peak_bytes;
    c.time = j.time;
    vp_arena_rewind(arena, mark);
    return c;
}

void vp_recompute_equal(struct vp_arena *arena, struct vp_recompute_answer *out,
                        const struct vp_chain *chain, uint64_t budget_bytes) {
    struct vp_equal_segments best = {.time = UINT64_MAX};
    uint32_t count = 2 * (chain->body_end - chain->body_first);
    struct vp_equal_segments *all = VP_NEW_ARRAY(arena, count, struct vp_equal_segments);
    *out = (struct vp_recompute_answer){.least_bytes = count ? UINT64_MAX : 0,
                                        .labels = count,
                                        .lengths = all,
                                        .length_count = count};
    for (uint32_t i = 0; i < count; i++) {
        all[i] = judge(arena, chain, i);
        out->least_bytes = vp_min(out->least_bytes, all[i].peak_bytes);
        if (all[i].peak_bytes > budget_bytes)
            continue;
        if (all[i].time < best.time ||
            (all[i].time == best.time && all[i].peak_bytes < best.peak_bytes))
            best = all[i];
        out->feasible = true;
    }
    if (!out->feasible)
        return;
    out->time = out->bound = best.time;
    vp_equal_plan(arena, &out->plan, chain, best.k, best.recompute_last);
}

void vp_recompute_equal_frontier(struct vp_arena *arena, struct vp_frontier *out,
                                 const struct vp_chain *chain) {
    uint32_t count = 2 * (chain->body_end - chain->body_first);
    struct vp_frontier_point *points = VP_NEW_ARRAY(arena, count, struct vp_frontier_point);
    for (uint32_t i = 0; i < count; i++) {
        struct vp_equal_segments c = judge(arena, chain, i);
        points[i] = (struct vp_frontier_point){c.peak_bytes, c.time, c.time};
    }
    *out = (struct vp_frontier){.exact = true};
    vp_frontier_close(out, points, count);
}
