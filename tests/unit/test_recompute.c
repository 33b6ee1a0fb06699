/* Checkpoint placement against brute force: all plans of small random chains go through the judge,
 * and nothing of the solvers is used to find them. */
#include "planner/recompute/certificate.h"
#include "planner/recompute/judge.h"
#include "planner/recompute/policies.h"
#include "tests/unit/fixture.h"

enum { CHAINS = 1000, MOST_STAGES = 6, MOST_OPTIONS = 3 };

/* ---- random chains ---- */

static uint64_t random_state = 20260101;

static uint64_t below(uint64_t n) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % n;
}

static uint64_t *numbers(struct vp_arena *arena, uint32_t count, uint64_t most) {
    uint64_t *values = VP_NEW_ARRAY(arena, count, uint64_t);
    for (uint32_t i = 0; i < count; i++)
        values[i] = below(most + 1);
    return values;
}

static struct vp_chain random_chain(struct vp_arena *arena, uint32_t most_stages) {
    uint32_t n = 1 + (uint32_t)below(most_stages);
    const struct vp_tape_option **options = VP_NEW_ARRAY(arena, n, const struct vp_tape_option *);
    uint32_t *counts = VP_NEW_ARRAY(arena, n, uint32_t);
    for (uint32_t i = 0; i < n; i++) {
        struct vp_tape_option *list = VP_NEW_ARRAY(arena, MOST_OPTIONS, struct vp_tape_option);
        counts[i] = 1 + (uint32_t)below(MOST_OPTIONS);
        for (uint32_t j = 0; j < counts[i]; j++)
            list[j] = (struct vp_tape_option){below(60), j ? below(12) : 0, below(30), below(60)};
        options[i] = list;
    }
    struct vp_chain chain = {.n = n,
                             .x = numbers(arena, n + 1, 40),
                             .g = numbers(arena, n + 1, 40),
                             .f = numbers(arena, n, 20),
                             .b = numbers(arena, n, 40),
                             .wn = numbers(arena, n, 20),
                             .options = options,
                             .option_counts = counts,
                             .body_first = (uint32_t)below(n + 1),
                             .body_end = n};
    if (below(3) == 0)
        chain.held = numbers(arena, n, 30);
    return chain;
}

/* ---- all ways to make a sequence of choices ---- */

struct odometer {
    uint32_t digit[64], radix[64];
    uint32_t used, known;
};

/* One of n; the same in every run until the odometer turns it. */
static uint32_t choose(struct odometer *o, uint32_t n) {
    if (o->used == o->known)
        o->digit[o->known++] = 0;
    o->radix[o->used] = n;
    return o->digit[o->used++];
}

static bool turn(struct odometer *o) {
    o->known = o->used;
    while (o->known && o->digit[o->known - 1] + 1 == o->radix[o->known - 1])
        o->known--;
    if (o->known == 0)
        return false;
    o->digit[o->known - 1]++;
    o->used = 0;
    return true;
}

/* ---- all plans and schedules ---- */

struct trial {
    struct vp_arena *arena;
    const struct vp_chain *chain;
    enum vp_recompute_class class;
    uint64_t inflight;
    struct odometer odometer;
    struct vp_chain_op ops[1000];
    size_t count;
};

struct outcome {
    uint64_t peak, time;
};

static void op(struct trial *t, enum vp_chain_op_kind kind, uint32_t stage, uint32_t option) {
    assert_true(t->count < sizeof t->ops / sizeof *t->ops);
    t->ops[t->count++] = (struct vp_chain_op){kind, stage, option};
}

static void persistent(struct trial *t, uint32_t i, uint32_t l) {
    uint32_t options = t->class == VP_PLACE_MULTILEVEL ? 1 : t->chain->option_counts[i];
    uint32_t way = choose(&t->odometer, options + l - i);
    if (way < options) {
        op(t, VP_OP_SAVE, i, way);
        if (i < l)
            persistent(t, i + 1, l);
        if (i == t->chain->n - 1)
            op(t, VP_OP_LOSS, 0, 0);
        else
            op(t, VP_OP_DISCARD, i + 1, 0);
        op(t, VP_OP_BACKWARD, i, 0);
        return;
    }
    uint32_t at = i + 1 + way - options;
    for (uint32_t k = i; k < at; k++) {
        op(t, VP_OP_FORWARD, k, 0);
        if (k > i)
            op(t, VP_OP_DISCARD, k, 0);
    }
    persistent(t, at, l);
    op(t, VP_OP_DISCARD, at, 0);
    persistent(t, i, at - 1);
}

/* Segments may end with the last stage, where that can only be of no use: not when further
 * microbatches would gain by it. */
static void single_level(struct trial *t, struct vp_recompute_plan *out) {
    uint32_t n = t->chain->n, count = 0;
    struct vp_plan_item *items = VP_NEW_ARRAY(t->arena, n, struct vp_plan_item);
    for (uint32_t p = 0; p < n;) {
        uint32_t options = t->class == VP_PLACE_SEGMENTS ? 1 : t->chain->option_counts[p];
        uint32_t ends = t->class == VP_PLACE_OPTIONS ? 0 : n - p - (t->inflight > 1);
        uint32_t way = choose(&t->odometer, options + ends);
        bool segment = way >= options;
        items[count] =
            (struct vp_plan_item){p, segment ? p + way - options : p, segment ? 0 : way, segment};
        p = items[count++].last + 1;
    }
    *out = (struct vp_recompute_plan){items, count};
}

static struct outcome run_trial(struct trial *t) {
    struct vp_judgement j;
    struct vp_recompute_plan plan;
    struct vp_chain_schedule schedule = {.ops = t->ops};
    uint64_t others = 0;
    t->count = 0;
    if (t->class == VP_PLACE_MULTILEVEL || t->class == VP_PLACE_MULTILEVEL_OPTIONS) {
        persistent(t, 0, t->chain->n - 1);
        schedule.count = t->count;
    } else {
        single_level(t, &plan);
        vp_plan_schedule(t->arena, &schedule, t->chain, &plan);
        others = (t->inflight - 1) * vp_plan_stored(t->chain, &plan);
    }
    vp_judge(t->arena, &j, t->chain, &schedule);
    assert_null(j.fault);
    return (struct outcome){j.peak_bytes + others, j.time};
}

/* The outcomes of all plans, of which only the best are kept. */
struct outcomes {
    struct outcome best[4096];
    uint32_t count;
};

static void take(struct outcomes *all, struct outcome o) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < all->count; i++)
        if (all->best[i].peak <= o.peak && all->best[i].time <= o.time)
            return;
    for (uint32_t i = 0; i < all->count; i++)
        if (all->best[i].peak < o.peak || all->best[i].time < o.time)
            all->best[kept++] = all->best[i];
    assert_true(kept < sizeof all->best / sizeof *all->best);
    all->best[kept++] = o;
    all->count = kept;
}

static void try_all(struct vp_arena *arena, struct outcomes *out, const struct vp_chain *chain,
                    enum vp_recompute_class class, uint64_t inflight) {
    struct trial *t = VP_NEW(arena, struct trial);
    *t = (struct trial){.arena = arena, .chain = chain, .class = class, .inflight = inflight};
    out->count = 0;
    do {
        struct vp_arena_mark mark = vp_arena_mark(arena);
        take(out, run_trial(t));
        vp_arena_rewind(arena, mark);
    } while (turn(&t->odometer));
}

/* ---- the comparison ---- */

static void expect_frontier(struct vp_arena *arena, const struct outcomes *all,
                            const struct vp_chain *chain, enum vp_recompute_class class,
                            uint64_t inflight) {
    struct vp_frontier frontier;
    vp_recompute_frontier(arena, &frontier, chain, class, inflight);
    assert_true(frontier.exact);
    assert_int_equal(frontier.count, all->count);
    for (uint32_t i = 0; i < frontier.count; i++) {
        const struct vp_frontier_point *p = &frontier.points[i];
        bool found = false;
        for (uint32_t k = 0; k < all->count; k++)
            found |= all->best[k].peak == p->peak_bytes && all->best[k].time == p->time;
        assert_true(found);
        assert_int_equal(p->bound, p->time);
        assert_true(i == 0 || (p[-1].peak_bytes < p->peak_bytes && p[-1].time > p->time));
    }
}

static void expect_answer(struct vp_arena *arena, const struct outcomes *all,
                          const struct vp_chain *chain, enum vp_recompute_class class,
                          uint64_t budget, uint64_t inflight) {
    struct vp_recompute_answer a;
    struct vp_certificate certificate;
    const struct outcome *best = NULL;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < all->count; i++) {
        least = all->best[i].peak < least ? all->best[i].peak : least;
        if (all->best[i].peak <= budget && (!best || all->best[i].time < best->time))
            best = &all->best[i];
    }
    vp_recompute_solve(arena, &a, chain, class, budget, inflight);
    assert_int_equal(a.feasible, best != NULL);
    if (a.least_bytes)
        assert_int_equal(a.least_bytes, least);
    if (!best)
        return;
    assert_int_equal(a.time, best->time);
    assert_int_equal(a.peak_bytes, best->peak);
    assert_true(a.optimal);
    vp_certificate_check(arena, &certificate, chain, class, budget, inflight, &a);
    assert_true(certificate.plan);
    assert_int_equal(certificate.bound, class != VP_PLACE_EQUAL);
}

static void against_brute_force(enum vp_recompute_class class, uint32_t most_stages,
                                bool pipeline) {
    struct fixture f;
    fixture_begin(&f);
    struct outcomes *all = VP_NEW(&f.arena, struct outcomes);
    for (int i = 0; i < CHAINS; i++) {
        struct vp_arena_mark mark = vp_arena_mark(&f.arena);
        struct vp_chain chain = random_chain(&f.arena, most_stages);
        uint64_t inflight = pipeline ? 1 + below(8) : 1;
        assert_null(vp_chain_overflow(&chain, inflight));
        try_all(&f.arena, all, &chain, class, inflight);
        expect_frontier(&f.arena, all, &chain, class, inflight);
        for (uint32_t k = 0; k < all->count && k < 6; k++) {
            uint64_t peak = all->best[below(all->count)].peak;
            expect_answer(&f.arena, all, &chain, class, peak, inflight);
            expect_answer(&f.arena, all, &chain, class, peak ? peak - 1 : 0, inflight);
        }
        expect_answer(&f.arena, all, &chain, class, UINT64_MAX, inflight);
        vp_arena_rewind(&f.arena, mark);
    }
    fixture_end(&f);
}

static void segments(void **state) {
    (void)state;
    against_brute_force(VP_PLACE_SEGMENTS, MOST_STAGES, false);
}

static void tape_options(void **state) {
    (void)state;
    against_brute_force(VP_PLACE_OPTIONS, MOST_STAGES, false);
}

static void joint(void **state) {
    (void)state;
    against_brute_force(VP_PLACE_JOINT, MOST_STAGES - 1, false);
}

static void pipelined(void **state) {
    (void)state;
    against_brute_force(VP_PLACE_PIPELINE, MOST_STAGES - 1, true);
}

static void multilevel(void **state) {
    (void)state;
    against_brute_force(VP_PLACE_MULTILEVEL, MOST_STAGES - 1, false);
}

static void multilevel_options(void **state) {
    (void)state;
    against_brute_force(VP_PLACE_MULTILEVEL_OPTIONS, MOST_STAGES - 2, false);
}

/* Equal segments are built anew here: stage by stage, which item it belongs to. */
static void equal_segments(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    struct outcomes *all = VP_NEW(&f.arena, struct outcomes);
    for (int i = 0; i < CHAINS; i++) {
        struct vp_arena_mark mark = vp_arena_mark(&f.arena);
        struct vp_chain chain = random_chain(&f.arena, MOST_STAGES);
        all->count = 0;
        for (uint32_t k = 1; k <= chain.n - chain.body_first; k++)
            for (int last = 0; last < 2; last++) {
                struct vp_plan_item items[MOST_STAGES];
                uint32_t count = 0, rest = (chain.n - chain.body_first) % k;
                uint32_t tail = chain.n - (rest ? rest : k);
                for (uint32_t s = 0; s < chain.n; s++) {
                    bool kept = s < chain.body_first || (s >= tail && !last);
                    if (!kept && (s - chain.body_first) % k != 0)
                        items[count - 1].last = s;
                    else
                        items[count++] = (struct vp_plan_item){s, s, 0, !kept};
                }
                struct vp_recompute_plan plan = {items, count};
                struct vp_chain_schedule schedule;
                struct vp_judgement j;
                vp_plan_schedule(&f.arena, &schedule, &chain, &plan);
                vp_judge(&f.arena, &j, &chain, &schedule);
                assert_null(j.fault);
                take(all, (struct outcome){j.peak_bytes, j.time});
            }
        expect_frontier(&f.arena, all, &chain, VP_PLACE_EQUAL, 1);
        for (uint32_t k = 0; k < all->count; k++)
            expect_answer(&f.arena, all, &chain, VP_PLACE_EQUAL, all->best[k].peak, 1);
        expect_answer(&f.arena, all, &chain, VP_PLACE_EQUAL, 0, 1);
        vp_arena_rewind(&f.arena, mark);
    }
    fixture_end(&f);
}

/* ---- closed forms ---- */

static uint64_t choose_of(uint64_t n, uint64_t k) {
    uint64_t value = 1;
    for (uint64_t i = 1; i <= k; i++)
        value = value * (n - k + i) / i;
    return value;
}

static struct vp_chain uniform_chain(struct vp_arena *arena, uint32_t n, uint64_t x, uint64_t t) {
    struct vp_tape_option *tape = VP_NEW(arena, struct vp_tape_option);
    const struct vp_tape_option **options = VP_NEW_ARRAY(arena, n, const struct vp_tape_option *);
    uint32_t *counts = VP_NEW_ARRAY(arena, n, uint32_t);
    uint64_t *xs = VP_NEW_ARRAY(arena, n + 1, uint64_t), *f = VP_NEW_ARRAY(arena, n, uint64_t);
    tape->t = t;
    for (uint32_t i = 0; i < n; i++) {
        options[i] = tape;
        counts[i] = 1;
        xs[i] = x;
        f[i] = 1;
    }
    xs[n] = x;
    return (struct vp_chain){.n = n,
                             .x = xs,
                             .g = VP_NEW_ARRAY(arena, n + 1, uint64_t),
                             .f = f,
                             .b = VP_NEW_ARRAY(arena, n, uint64_t),
                             .wn = VP_NEW_ARRAY(arena, n, uint64_t),
                             .options = options,
                             .option_counts = counts,
                             .body_end = n};
}

/* Revolve: with s checkpoints, the first of them x[0], and r the least with N <= C(s + r, s), a
 * chain of N steps takes r N - C(s + r, r - 1) forwards besides the N that save a tape. A tape as
 * large as 1000 boundaries cannot be kept beside another one. */
static void revolve(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    for (uint32_t n = 2; n <= 40; n++) {
        struct vp_chain chain = uniform_chain(&f.arena, n, 1, 1000);
        for (uint64_t s = 1; s < n && s < 20; s++) {
            struct vp_recompute_answer a;
            uint64_t r = 1;
            while (choose_of(s + r, s) < n)
                r++;
            vp_recompute_solve(&f.arena, &a, &chain, VP_PLACE_MULTILEVEL, 1000 + 2 + s, 1);
            assert_true(a.feasible && a.optimal);
            assert_int_equal(a.time, n + r * n - choose_of(s + r, r - 1));
        }
    }
    fixture_end(&f);
}

/* The longest uniform chain that segments of any length run within P boundaries, with a = tape
 * and boundary: the j-th segment finds j boundaries taken and has floor((P - j) / a) stages. */
static void longest_chain(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    struct {
        uint32_t n;
        uint64_t tape, peak;
    } cases[] = {{80, 16, 61}, {100, 0, 15}, {16, 16, 33}, {126, 16, 74}, {9, 0, 5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct vp_chain chain = uniform_chain(&f.arena, cases[i].n, 1, cases[i].tape);
        struct vp_recompute_answer a;
        uint64_t longest = 0, shorter = 0;
        for (uint64_t j = 1; j < cases[i].peak; j++) {
            longest += (cases[i].peak - j) / (cases[i].tape + 1);
            shorter += (cases[i].peak - 1 - j) / (cases[i].tape + 1);
        }
        assert_true(longest >= cases[i].n && shorter < cases[i].n);
        vp_recompute_solve(&f.arena, &a, &chain, VP_PLACE_SEGMENTS, 0, 1);
        assert_false(a.feasible);
        assert_int_equal(a.least_bytes, cases[i].peak);
    }
    fixture_end(&f);
}

/* ---- certificates that lie ---- */

static void false_certificates(void **state) {
    (void)state;
    struct fixture f;
    struct vp_recompute_answer a, lie;
    struct vp_certificate c;
    fixture_begin(&f);
    struct vp_chain chain = uniform_chain(&f.arena, 30, 1, 16);
    vp_recompute_solve(&f.arena, &a, &chain, VP_PLACE_SEGMENTS, 120, 1);
    vp_certificate_check(&f.arena, &c, &chain, VP_PLACE_SEGMENTS, 120, 1, &a);
    assert_true(a.optimal && c.plan && c.bound);
    lie = a;
    lie.bound++;
    lie.time++;
    vp_certificate_check(&f.arena, &c, &chain, VP_PLACE_SEGMENTS, 120, 1, &lie);
    assert_false(c.plan || c.bound);
    lie = a;
    lie.peak_bytes--;
    vp_certificate_check(&f.arena, &c, &chain, VP_PLACE_SEGMENTS, 120, 1, &lie);
    assert_false(c.plan);
    /* A label that is too good proves nothing: a better one cannot come of it. */
    struct vp_certificate wider;
    vp_certificate_check(&f.arena, &wider, &chain, VP_PLACE_SEGMENTS, 400, 1, &a);
    assert_false(wider.bound);
    vp_recompute_solve(&f.arena, &a, &chain, VP_PLACE_MULTILEVEL, 60, 1);
    vp_certificate_check(&f.arena, &c, &chain, VP_PLACE_MULTILEVEL, 60, 1, &a);
    assert_true(a.optimal && c.plan && c.bound);
    lie = a;
    lie.bound++;
    vp_certificate_check(&f.arena, &c, &chain, VP_PLACE_MULTILEVEL, 60, 1, &lie);
    assert_false(c.bound);
    vp_certificate_check(&f.arena, &c, &chain, VP_PLACE_MULTILEVEL, 90, 1, &a);
    assert_false(c.bound);
    fixture_end(&f);
}

/* ---- the rest ---- */

static void in_flight(void **state) {
    (void)state;
    assert_int_equal(vp_pipeline_inflight(VP_SCHEDULE_1F1B, 8, 0, 64, 1), 8);
    assert_int_equal(vp_pipeline_inflight(VP_SCHEDULE_1F1B, 8, 7, 64, 1), 1);
    assert_int_equal(vp_pipeline_inflight(VP_SCHEDULE_1F1B, 8, 0, 4, 1), 4);
    assert_int_equal(vp_pipeline_inflight(VP_SCHEDULE_GPIPE, 8, 3, 64, 1), 64);
    assert_int_equal(vp_pipeline_inflight(VP_SCHEDULE_INTERLEAVED, 4, 0, 64, 2), 11);
    assert_int_equal(vp_pipeline_inflight(VP_SCHEDULE_INTERLEAVED, 4, 3, 64, 2), 5);
}

static void square_roots(void **state) {
    (void)state;
    uint32_t want[][2] = {{1, 1}, {2, 1}, {3, 2}, {4, 2}, {32, 6}, {80, 9}, {96, 10}, {126, 11}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        assert_int_equal(vp_policy_sqrt(want[i][0]), want[i][1]);
}

/* torch: 9 stages in 5 segments are four of one stage, and the last five kept. */
static void framework_plans(void **state) {
    (void)state;
    struct fixture f;
    struct vp_recompute_plan plan;
    fixture_begin(&f);
    struct vp_chain chain = uniform_chain(&f.arena, 9, 1, 4);
    vp_torch_sequential_plan(&f.arena, &plan, &chain, 5);
    assert_int_equal(plan.count, 9);
    for (uint32_t i = 0; i < 9; i++)
        assert_int_equal(plan.items[i].recompute, i < 4);
    vp_block_plan(&f.arena, &plan, &chain, 3);
    for (uint32_t i = 0; i < 9; i++)
        assert_int_equal(plan.items[i].recompute, i < 3);
    vp_equal_plan(&f.arena, &plan, &chain, 4, true);
    assert_int_equal(plan.count, 3);
    assert_int_equal(plan.items[2].first, 8);
    assert_true(plan.items[2].recompute);
    fixture_end(&f);
}

static void overflow(void **state) {
    (void)state;
    struct fixture f;
    fixture_begin(&f);
    struct vp_chain chain = uniform_chain(&f.arena, 10, (uint64_t)1 << 50, 16);
    assert_null(vp_chain_overflow(&chain, 1));
    assert_string_equal(vp_chain_overflow(&chain, 1000), "bytes");
    uint64_t *times = VP_NEW_ARRAY(&f.arena, 10, uint64_t);
    times[3] = (uint64_t)1 << 59;
    chain.b = times;
    assert_string_equal(vp_chain_overflow(&chain, 1), "times");
    fixture_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_segments),     cmocka_unit_test(segments),
        cmocka_unit_test(tape_options),       cmocka_unit_test(joint),
        cmocka_unit_test(pipelined),          cmocka_unit_test(multilevel),
        cmocka_unit_test(multilevel_options), cmocka_unit_test(revolve),
        cmocka_unit_test(longest_chain),      cmocka_unit_test(false_certificates),
        cmocka_unit_test(in_flight),          cmocka_unit_test(square_roots),
        cmocka_unit_test(framework_plans),    cmocka_unit_test(overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
