#include "planner/recompute/policies.h"

#include "planner/base/sum.h"
#include "planner/recompute/judge.h"

struct finder {
    struct vp_arena *arena;
    struct vp_policies *out;
    const struct vp_chain *chain;
    uint64_t budget, inflight;
};

uint32_t vp_policy_sqrt(uint32_t n) {
    uint32_t k = 0;
    while ((uint64_t)k * k + k < n) /* (k + 1/2)^2 < n, in whole numbers */
        k++;
    return k;
}

static struct vp_policy *add(struct finder *f, enum vp_policy_kind kind) {
    static const struct {
        const char *meaning;
        enum vp_recompute_class class;
    } ROWS[] = {
#define X(name, class, meaning) {meaning, VP_PLACE_##class},
        VP_POLICIES
#undef X
    };
    struct vp_policy *row = &f->out->items[f->out->count++];
    *row =
        (struct vp_policy){.kind = kind, .meaning = ROWS[kind].meaning, .class = ROWS[kind].class};
    return row;
}

/* Takes a plan into a row when it is better than what stands there. */
static void offer(struct finder *f, struct vp_policy *row, const struct vp_recompute_plan *plan,
                  uint64_t number) {
    struct vp_chain_schedule schedule;
    struct vp_judgement j;
    vp_plan_schedule(f->arena, &schedule, f->chain, plan);
    vp_judge(f->arena, &j, f->chain, &schedule);
    uint64_t peak = j.peak_bytes + (f->inflight - 1) * vp_plan_stored(f->chain, plan);
    bool fits = peak <= f->budget, better = !row->known || (fits && !row->fits);
    if (row->known && fits == row->fits) {
        bool faster = j.time < row->time || (j.time == row->time && peak < row->peak_bytes);
        bool smaller = peak < row->peak_bytes || (peak == row->peak_bytes && j.time < row->time);
        better = fits ? faster : smaller;
    }
    if (!better)
        return;
    row->known = true;
    row->fits = fits;
    row->peak_bytes = peak;
    row->time = j.time;
    row->number = number;
}

/* All settings of one kind, from first to last. */
static void offer_all(struct finder *f, enum vp_policy_kind kind, uint32_t first, uint32_t last) {
    struct vp_policy *row = add(f, kind);
    for (uint32_t i = first; i <= last; i++) {
        struct vp_arena_mark mark = vp_arena_mark(f->arena);
        struct vp_recompute_plan plan;
        if (kind == VP_POLICY_BLOCK)
            vp_block_plan(f->arena, &plan, f->chain, i);
        else if (kind == VP_POLICY_SEQUENTIAL)
            vp_torch_sequential_plan(f->arena, &plan, f->chain, i);
        else if (kind == VP_POLICY_NONE || kind == VP_POLICY_ONE_OPTION)
            vp_one_option_plan(f->arena, &plan, f->chain, i);
        else
            vp_equal_plan(f->arena, &plan, f->chain, i, kind != VP_POLICY_SQRT);
        offer(f, row, &plan, i);
        vp_arena_rewind(f->arena, mark);
    }
}

static void solve(struct finder *f, enum vp_policy_kind kind) {
    struct vp_policy *row = add(f, kind);
    vp_recompute_solve(f->arena, &row->answer, f->chain, row->class, f->budget, f->inflight);
    row->known = row->fits = row->answer.feasible;
    row->peak_bytes = row->answer.peak_bytes;
    row->time = row->answer.time;
    if (!row->known) /* what the class needs at the least, 0 when it is not known */
        row->peak_bytes = row->answer.least_bytes;
    for (uint32_t i = 0; kind == VP_POLICY_EQUAL && row->known && i < row->answer.length_count; i++)
        if (row->answer.lengths[i].time == row->time &&
            row->answer.lengths[i].peak_bytes == row->peak_bytes && !row->number)
            row->number = row->answer.lengths[i].k;
}

static uint64_t tape_ratio(const struct vp_chain *c) {
    uint64_t tapes = 0, boundaries = 0;
    for (uint32_t i = c->body_first; i < c->body_end; i++) {
        tapes += c->options[i][0].t;
        boundaries += c->x[i];
    }
    return boundaries ? vp_mul_div(tapes + boundaries, 1000, boundaries) : 0;
}

void vp_policies_find(struct vp_arena *arena, struct vp_policies *out, const struct vp_chain *chain,
                      uint64_t budget_bytes, uint64_t inflight) {
    struct finder f = {arena, out, chain, budget_bytes, inflight};
    uint32_t n = chain->body_end - chain->body_first, options = 1;
    *out = (struct vp_policies){.tape_ratio = tape_ratio(chain)};
    for (uint32_t i = chain->body_first; i < chain->body_end; i++)
        options = chain->option_counts[i] > options ? chain->option_counts[i] : options;
    offer_all(&f, VP_POLICY_NONE, 0, 0);
    out->base_time = out->items[0].time;
    if (n > 0) {
        uint32_t k = vp_policy_sqrt(n);
        offer_all(&f, VP_POLICY_EVERY, 1, 1);
        offer_all(&f, VP_POLICY_SQRT, k, k);
        offer_all(&f, VP_POLICY_UNIFORM, 1, n);
        offer_all(&f, VP_POLICY_SEQUENTIAL, 1, n);
        offer_all(&f, VP_POLICY_BLOCK, 1, n);
    }
    if (options > 1)
        offer_all(&f, VP_POLICY_ONE_OPTION, 1, options - 1);
    if (inflight > 1) {
        solve(&f, VP_POLICY_PIPELINE);
        return;
    }
    for (enum vp_policy_kind kind = VP_POLICY_EQUAL; kind < VP_POLICY_PIPELINE; kind++)
        if (kind != VP_POLICY_EQUAL || n > 0)
            solve(&f, kind);
}
