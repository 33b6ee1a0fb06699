/* What frameworks can be told about recomputation: rules against their definitions, choices against
 * brute force, plans against what each framework can express. */
#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/plan/recompute_report.h"
#include "planner/recompute/judge.h"
#include "tests/unit/model_builder.h"

enum { LAYERS = 6 };

static struct vp_block layer(uint64_t intermediate) {
    struct vp_block block = block_gqa(4, 4, 16);
    block.norm = VP_NORM_LAYER;
    block.mlp = (struct vp_mlp){.kind = VP_MLP_PLAIN, .intermediate = intermediate};
    return block;
}

/* Six layers of two kinds and a head, on a card whose rates are known. */
static void begin(struct builder *b, enum vp_engine_kind engine) {
    struct vp_block kinds[2] = {layer(256), layer(1024)};
    builder_begin(b);
    b->model.hidden = 64;
    builder_layers(b, kinds, (uint32_t[]){4, 2}, 2);
    builder_ends(b, 1024, false);
    b->scenario.engine.kind = engine;
    b->scenario.training = true;
    b->scenario.hardware.gpu.tflops_bf16 = 0.01; /* slow: times in ns tell layers apart */
    b->scenario.hardware.gpu.bandwidth_gbs = 1;
    b->scenario.train = (struct vp_train){.micro_batch = 2,
                                          .sequence = 64,
                                          .accumulation = 8,
                                          .optimizer = VP_OPTIMIZER_ADAMW,
                                          .loop = VP_LOOP_FUSED,
                                          .parameters = VP_DTYPE_BF16,
                                          .gradients = VP_DTYPE_BF16,
                                          .optimizer_states = VP_DTYPE_BF16,
                                          .input_grad = true};
    b->scenario.engine.rules.train = (struct vp_train_rules){.vocab_pad = 1,
                                                             .gathered_layers = 2,
                                                             .scattered_layers = 1,
                                                             .offloaded_layers = 2,
                                                             .block_8bit = 256,
                                                             .spread = {1000, 1000, 1000},
                                                             .compiled = {1000, 1000, 1000},
                                                             .replayed = {1000, 1000, 1000},
                                                             .reserved = {1000, 1000, 1000}};
}

static struct vp_recompute_problem problem_of(struct builder *b, uint64_t budget) {
    struct vp_recompute_problem p;
    assert_null(vp_recompute_problem_make(&b->f.arena, &p, &b->scenario, budget));
    assert_int_equal(p.basis, VP_BASIS_CLASS);
    return p;
}

/* ---- rules ---- */

/* The plan of a stage as text: "0-1 2-3 k4 k5" */
static const char *told(struct builder *b, const struct vp_recompute_problem *p, uint32_t stage,
                        enum vp_recompute_shape shape, uint32_t number) {
    struct vp_recompute_setting setting = {.shape = shape, .number = number};
    struct vp_buf out = {.arena = &b->f.arena};
    struct vp_stage_plan plan;
    if (!vp_setting_apply(&b->f.arena, &plan, p->scenario, &p->stage[stage], &setting, UINT64_MAX))
        return "refused";
    assert_true(plan.feasible);
    for (uint32_t i = 0; i < plan.plan.count; i++) {
        const struct vp_plan_item *item = &plan.plan.items[i];
        if (item->first >= p->stage[stage].chain.layers)
            continue;
        vp_buf_printf(&out, "%s%s%u", i ? " " : "", item->recompute ? "" : "k", item->first);
        if (item->last > item->first)
            vp_buf_printf(&out, "-%u", item->last);
    }
    return vp_buf_text(&out);
}

static void rules_are_those_of_frameworks(void **state) {
    (void)state;
    struct builder b;
    begin(&b, VP_ENGINE_PYTORCH);
    struct vp_recompute_problem p = problem_of(&b, 0);
    assert_string_equal(told(&b, &p, 0, VP_SHAPE_NONE, 0), "k0 k1 k2 k3 k4 k5");
    assert_string_equal(told(&b, &p, 0, VP_SHAPE_ALL, 0), "0 1 2 3 4 5");
    assert_string_equal(told(&b, &p, 0, VP_SHAPE_KTH, 2), "k0 1 k2 3 k4 5");
    assert_string_equal(told(&b, &p, 0, VP_SHAPE_KTH, 4), "k0 k1 k2 3 k4 k5");
    assert_string_equal(told(&b, &p, 0, VP_SHAPE_UNIFORM, 3), "0-2 3-5");
    assert_string_equal(told(&b, &p, 0, VP_SHAPE_UNIFORM, 4), "refused");
    assert_string_equal(told(&b, &p, 0, VP_SHAPE_INTERVAL, 4), "0-3 4-5");
    assert_string_equal(told(&b, &p, 0, VP_SHAPE_BLOCK, 2), "0 1 k2 k3 k4 k5");
    builder_end(&b);
}

static void rules_count_in_stages_and_chunks(void **state) {
    (void)state;
    struct builder b;
    begin(&b, VP_ENGINE_MEGATRON);
    b.scenario.parallel.pipeline = 3;
    struct vp_recompute_problem p = problem_of(&b, 0);
    assert_string_equal(told(&b, &p, 1, VP_SHAPE_BLOCK, 1), "0 k1");
    assert_string_equal(told(&b, &p, 1, VP_SHAPE_KTH, 3), "0 k1"); /* layers 2, 3 */
    assert_string_equal(told(&b, &p, 2, VP_SHAPE_KTH, 3), "k0 1"); /* layers 4, 5 */
    b.scenario.parallel.virtual_pipeline = 2;                      /* one layer in each chunk */
    p = problem_of(&b, 0);
    assert_string_equal(told(&b, &p, 1, VP_SHAPE_BLOCK, 1), "0 1");
    assert_string_equal(told(&b, &p, 1, VP_SHAPE_INTERVAL, 2), "0 1");
    assert_string_equal(told(&b, &p, 1, VP_SHAPE_UNIFORM, 2), "refused");
    builder_end(&b);
}

/* ---- any layers by themselves ---- */

static void judge_set(struct builder *b, const struct vp_train_chain *chain, uint32_t set,
                      uint64_t *peak, uint64_t *time) {
    struct vp_plan_item items[LAYERS + 1];
    struct vp_recompute_plan plan = {items, chain->chain.n};
    struct vp_chain_schedule schedule;
    struct vp_judgement j;
    for (uint32_t i = 0; i < chain->chain.n; i++)
        items[i] = (struct vp_plan_item){.first = i, .last = i, .recompute = set >> i & 1};
    vp_plan_schedule(&b->f.arena, &schedule, &chain->chain, &plan);
    vp_judge(&b->f.arena, &j, &chain->chain, &schedule);
    assert_null(j.fault);
    *peak = j.peak_bytes + (chain->in_flight - 1) * vp_plan_stored(&chain->chain, &plan);
    *time = j.time;
}

static void check_layers(struct builder *b, const struct vp_recompute_problem *p, uint32_t stage) {
    const struct vp_recompute_setting any = {.shape = VP_SHAPE_LAYERS};
    const struct vp_train_chain *chain = &p->stage[stage].chain;
    uint64_t most, least, time;
    judge_set(b, chain, 0, &most, &time);
    judge_set(b, chain, (1U << chain->layers) - 1, &least, &time);
    for (uint64_t budget = least * 9 / 10; budget <= most; budget += (most - least) / 13 + 1) {
        uint64_t best = UINT64_MAX, peak;
        struct vp_stage_plan plan;
        for (uint32_t set = 0; set < 1U << chain->layers; set++) {
            judge_set(b, chain, set, &peak, &time);
            if (peak <= budget)
                best = vp_min(best, time);
        }
        assert_true(
            vp_setting_apply(&b->f.arena, &plan, p->scenario, &p->stage[stage], &any, budget));
        assert_int_equal(plan.feasible, best != UINT64_MAX);
        if (!plan.feasible)
            continue;
        assert_true(plan.proven);
        assert_int_equal(plan.time, best);
        assert_true(plan.peak_bytes <= budget);
    }
}

static void layers_are_the_best_set(void **state) {
    (void)state;
    struct builder b;
    begin(&b, VP_ENGINE_PYTORCH);
    struct vp_recompute_problem p = problem_of(&b, 0);
    check_layers(&b, &p, 0);
    b.scenario.parallel.pipeline = 2; /* up to two micro batches in flight */
    p = problem_of(&b, 0);
    assert_int_equal(p.stage[0].chain.in_flight, 2);
    check_layers(&b, &p, 0);
    check_layers(&b, &p, 1);
    builder_end(&b);
}

/* ---- whole plans ---- */

static bool is_piece_of(const struct vp_framework_plan *p, uint32_t i, uint32_t k, uint32_t begin) {
    return p->layer[i].recomputed && p->layer[i].segment == i - (i - begin) % k;
}

/* Whether what a plan does with layer i of a stage that begins at `begin` is its setting. */
static bool is_told(const struct vp_framework_plan *p, uint32_t i, uint32_t begin) {
    const struct vp_recompute_layer *l = &p->layer[i];
    bool alone = l->recomputed && l->segment == i, kept = !l->recomputed && !l->selective;
    uint32_t k = p->setting.number;
    switch (p->setting.shape) {
    case VP_SHAPE_NONE:
        return kept;
    case VP_SHAPE_ALL:
        return alone;
    case VP_SHAPE_KTH:
        return (i + 1) % k == 0 ? alone : kept;
    case VP_SHAPE_UNIFORM:
    case VP_SHAPE_INTERVAL:
        return is_piece_of(p, i, k, begin);
    case VP_SHAPE_BLOCK:
        return i - begin < k ? alone : kept;
    case VP_SHAPE_SELECTIVE:
        return !l->recomputed && l->selective == p->setting.select;
    case VP_SHAPE_LAYERS:
        return alone || kept;
    case VP_SHAPE_SEGMENTS:
        return l->recomputed || kept;
    default:
        return true;
    }
}

static void check_framework(const struct vp_recompute_report *r, enum vp_framework f) {
    const struct vp_framework_plan *p = &r->framework[f];
    const struct vp_framework_info *info = vp_framework_info(f);
    uint32_t shapes = r->problem.stages > 1 ? info->pipelined : info->shapes, layer = 0;
    assert_true(r->known[f]);
    assert_int_equal(p->refused != NULL, shapes == 0);
    if (p->refused)
        return;
    bool last_resort = p->setting.shape == VP_SHAPE_ALL;
    assert_true(last_resort || f == VP_FRAMEWORK_VRAMPLAN || (shapes >> p->setting.shape & 1));
    for (uint32_t s = 0; s < r->problem.stages; s++) {
        uint32_t begin = layer;
        for (; layer < begin + r->problem.stage[s].chain.layers; layer++)
            assert_true(is_told(p, layer, begin));
        if (p->stage[s].feasible)
            assert_true(p->stage[s].peak_bytes <= p->budget_bytes[s]);
    }
    assert_int_equal(layer, p->layers);
    if (p->verdict == VP_FITS)
        assert_true(p->need.high <= r->problem.budget_bytes);
    const struct vp_framework_plan *best = &r->framework[VP_FRAMEWORK_PYTORCH];
    assert_true(best->verdict <= p->verdict);
    if (best->verdict == p->verdict && best->verdict != VP_DOES_NOT_FIT)
        assert_true(best->slowest_ns <= p->slowest_ns);
}

static void check_budgets(struct builder *b) {
    struct vp_recompute_report r;
    assert_null(
        vp_recompute_of_scenario(&b->f.arena, &r, &b->scenario, GIB(1), VP_FRAMEWORK_PYTORCH));
    uint64_t most = r.framework[VP_FRAMEWORK_PYTORCH].need.high;
    assert_int_equal(r.framework[VP_FRAMEWORK_PYTORCH].slowest_ns, r.problem.base_ns);
    assert_false(r.known[VP_FRAMEWORK_HF]);
    for (uint64_t budget = most / 2; budget <= most + most / 10; budget += most / 12) {
        assert_null(
            vp_recompute_of_scenario(&b->f.arena, &r, &b->scenario, budget, VP_FRAMEWORK_COUNT));
        for (enum vp_framework f = 0; f < VP_FRAMEWORK_COUNT; f++)
            check_framework(&r, f);
        assert_true(r.policies.count > 0);
    }
    /* with all that is needed nothing is recomputed */
    assert_int_equal(r.framework[VP_FRAMEWORK_HF].refused
                         ? VP_SHAPE_NONE
                         : r.framework[VP_FRAMEWORK_HF].setting.shape,
                     VP_SHAPE_NONE);
}

static void plans_can_be_told(void **state) {
    (void)state;
    struct builder b;
    begin(&b, VP_ENGINE_MEGATRON);
    check_budgets(&b);
    b.scenario.parallel.pipeline = 2;
    check_budgets(&b);
    builder_end(&b);
}

static void what_cannot_be_placed_is_said(void **state) {
    (void)state;
    struct vp_recompute_report r;
    struct builder b;
    begin(&b, VP_ENGINE_MEGATRON);
    b.scenario.training = false;
    assert_string_equal(
        vp_recompute_of_scenario(&b.f.arena, &r, &b.scenario, 0, VP_FRAMEWORK_COUNT),
        "there is nothing to train");
    assert_int_equal(vp_framework_find("primus"), VP_FRAMEWORK_PRIMUS);
    assert_int_equal(vp_framework_find("none"), VP_FRAMEWORK_COUNT);
    builder_end(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rules_are_those_of_frameworks),
                                       cmocka_unit_test(rules_count_in_stages_and_chunks),
                                       cmocka_unit_test(layers_are_the_best_set),
                                       cmocka_unit_test(plans_can_be_told),
                                       cmocka_unit_test(what_cannot_be_placed_is_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
