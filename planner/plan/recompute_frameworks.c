#include "planner/plan/recompute_frameworks.h"

#include "planner/base/sum.h"
#include "planner/base/text.h"
#include "planner/plan/evaluate_parts.h"
#include "planner/plan/optimal.h"

#define ON(shape) (UINT32_C(1) << VP_SHAPE_##shape)
#define MEGATRON_SHAPES (ON(NONE) | ON(UNIFORM) | ON(BLOCK) | ON(SELECTIVE))

const struct vp_framework_info *vp_framework_info(enum vp_framework framework) {
    static const struct vp_framework_info INFO[VP_FRAMEWORK_COUNT] = {
#define X(name, text, title, shapes, pipelined, meaning) {text, title, meaning, shapes, pipelined},
#include "planner/plan/recompute_frameworks.def"
#undef X
    };
    return &INFO[framework];
}

enum vp_framework vp_framework_find(const char *name) {
    enum vp_framework f = 0;
    while (f < VP_FRAMEWORK_COUNT && !vp_text_eq(name, vp_framework_info(f)->name))
        f++;
    return f;
}

/* ---- the problem ---- */

static struct vp_recompute nothing(struct vp_arena *arena, const struct vp_model *model) {
    struct vp_recompute out = {.kind = VP_RECOMPUTE_PLAN};
    out.plan = VP_NEW_ARRAY(arena, model->layer_count, struct vp_recompute_layer);
    for (uint32_t i = 0; i < model->layer_count; i++)
        out.plan[i].segment = i;
    return out;
}

static const struct vp_scenario *
on_budget(struct vp_arena *arena, const struct vp_scenario *scenario, uint64_t budget_bytes) {
    struct vp_scenario *copy = VP_NEW(arena, struct vp_scenario);
    *copy = *scenario;
    copy->train.recompute = nothing(arena, scenario->model);
    if (budget_bytes > 0) {
        copy->hardware.memory_bytes = budget_bytes;
        copy->hardware.memory = vp_exactly(budget_bytes);
        copy->hardware.reserved_bytes = 0;
    }
    return copy;
}

static void make_stage(struct vp_arena *arena, struct vp_stage_chain *out,
                       const struct vp_scenario *scenario, uint32_t index) {
    struct vp_train_stage *plain = VP_NEW(arena, struct vp_train_stage);
    vp_train_stage_make(arena, plain, scenario, index);
    vp_train_chain_make(arena, &out->chain, scenario, plain);
    out->plain = plain;
    out->budget_bytes = vp_optimal_budget(scenario, plain);
}

const char *vp_recompute_problem_make(struct vp_arena *arena, struct vp_recompute_problem *out,
                                      const struct vp_scenario *scenario, uint64_t budget_bytes) {
    if (!scenario->training)
        return "there is nothing to train";
    uint32_t stages = (uint32_t)vp_max(scenario->parallel.pipeline, 1);
    const struct vp_hardware *hardware = &scenario->hardware;
    *out =
        (struct vp_recompute_problem){.scenario = on_budget(arena, scenario, budget_bytes),
                                      .stage = VP_NEW_ARRAY(arena, stages, struct vp_stage_chain),
                                      .stages = stages,
                                      .budget_bytes = budget_bytes,
                                      .basis = VP_BASIS_CALIBRATED};
    if (budget_bytes == 0)
        out->budget_bytes = vp_above(hardware->memory_bytes, hardware->reserved_bytes);
    for (uint32_t i = 0; i < stages; i++) {
        struct vp_stage_plan none;
        make_stage(arena, &out->stage[i], out->scenario, i);
        if (out->stage[i].plain->overflow || out->stage[i].chain.overflow)
            return "its sizes are too large";
        vp_setting_apply(arena, &none, out->scenario, &out->stage[i],
                         &(struct vp_recompute_setting){.shape = VP_SHAPE_NONE}, UINT64_MAX);
        out->base_ns = vp_max(out->base_ns, none.time);
        if (out->stage[i].chain.basis < out->basis)
            out->basis = out->stage[i].chain.basis;
    }
    return NULL;
}

/* ---- the best setting for given budgets ---- */

/* A setting and what it costs; compared in this order. */
struct choice {
    uint64_t excess; /* bytes over the budget, of the worst stage */
    uint64_t slowest, total, peak;
    struct vp_recompute_setting setting;
    bool any;
};

static bool is_better(const struct choice *a, const struct choice *b) {
    if (!b->any || a->excess != b->excess)
        return !b->any || a->excess < b->excess;
    if (a->slowest != b->slowest || a->total != b->total)
        return a->slowest != b->slowest ? a->slowest < b->slowest : a->total < b->total;
    return a->peak < b->peak;
}

struct chooser {
    const struct vp_recompute_problem *problem;
    const uint64_t *budget; /* by stage */
    struct choice best;
};

static void try_setting(struct vp_arena *arena, struct chooser *c,
                        struct vp_recompute_setting setting) {
    struct vp_arena_mark mark = vp_arena_mark(arena);
    struct choice new = {.setting = setting, .any = true};
    bool possible = true;
    for (uint32_t i = 0; i < c->problem->stages && possible; i++) {
        struct vp_stage_plan plan;
        possible = vp_setting_apply(arena, &plan, c->problem->scenario, &c->problem->stage[i],
                                    &setting, c->budget[i]);
        new.excess = vp_max(new.excess, vp_above(plan.peak_bytes, c->budget[i]));
        new.slowest = vp_max(new.slowest, plan.time);
        new.total += plan.time;
        new.peak = vp_max(new.peak, plan.peak_bytes);
    }
    vp_arena_rewind(arena, mark);
    if (possible && is_better(&new, &c->best))
        c->best = new;
}

static void try_numbers(struct vp_arena *arena, struct chooser *c, enum vp_recompute_shape shape) {
    const struct vp_recompute_problem *p = c->problem;
    uint32_t last = vp_shape_last(shape, p->scenario, p->stage, p->stages);
    for (uint32_t i = 1; i <= last; i++) {
        struct vp_recompute_setting setting = {.shape = shape, .number = i};
        if (shape == VP_SHAPE_SELECTIVE)
            setting = (struct vp_recompute_setting){.shape = shape, .select = i};
        if ((setting.select & ~last) == 0)
            try_setting(arena, c, setting);
    }
}

/* The fastest setting of the shape within the budgets; where none is, the one that exceeds them
 * least. */
static void choose(struct vp_arena *arena, struct vp_framework_plan *out,
                   const struct vp_recompute_problem *problem, enum vp_recompute_shape shape,
                   const uint64_t *budget) {
    struct chooser c = {.problem = problem, .budget = budget};
    c.best.setting.shape = shape;
    try_numbers(arena, &c, shape);
    out->setting = c.best.setting;
    out->proven = true;
    out->slowest_ns = out->total_ns = 0;
    for (uint32_t i = 0; i < problem->stages; i++) {
        struct vp_stage_plan *plan = &out->stage[i];
        vp_setting_apply(arena, plan, problem->scenario, &problem->stage[i], &out->setting,
                         budget[i]);
        out->proven = out->proven && plan->feasible && plan->proven;
        out->slowest_ns = vp_max(out->slowest_ns, plan->time);
        out->total_ns += plan->time;
    }
}

/* ---- as a whole step ---- */

/* The search for one stage's budget: too much does not fit the device when the step is evaluated,
 * enough does. */
struct range {
    uint64_t enough, too_much, tried; /* bytes */
};

struct best {
    bool any;
    uint64_t *budget_bytes; /* by stage */
    enum vp_recompute_shape shape;
    enum vp_verdict verdict;
    uint64_t slowest_ns, total_ns, need;
};

struct search {
    const struct vp_recompute_problem *problem;
    struct vp_framework_plan *out;
    struct vp_scenario *scenario; /* the problem's with the plan as its setting */
    struct range *range;
    struct vp_amount *need; /* by stage, evaluated */
    uint64_t *usable;
    enum vp_recompute_shape shape;
    struct vp_arena_mark mark;
    struct best best;
    bool cautious; /* upper ends must fit, not the likely figures */
};

static void evaluate(struct vp_arena *arena, struct search *s) {
    struct vp_framework_plan *out = s->out;
    struct vp_recompute *how = &s->scenario->train.recompute;
    for (uint32_t i = 0; i < s->problem->stages; i++)
        vp_train_chain_apply(how, &out->stage[i].chain, &out->stage[i].plan);
    struct vp_arena_mark mark = vp_arena_mark(arena);
    struct vp_result *result = VP_NEW(arena, struct vp_result);
    bool known = vp_plan_evaluate(arena, result, s->scenario);
    uint64_t least = UINT64_MAX;
    out->verdict = VP_FITS;
    for (uint32_t i = 0; i < s->problem->stages; i++) {
        s->need[i] = known ? result->devices[i].need : vp_exactly(UINT64_MAX);
        s->usable[i] = known ? result->devices[i].usable_bytes : 0;
        int over = vp_need_over(s->need[i], s->usable[i]);
        enum vp_verdict verdict = over == 0 ? VP_FITS : over == 1 ? VP_AT_RISK : VP_DOES_NOT_FIT;
        uint64_t room = vp_above(s->usable[i], s->need[i].likely);
        out->verdict = verdict > out->verdict ? verdict : out->verdict;
        if (least == UINT64_MAX || room < least ||
            (room == 0 && s->need[i].likely > out->need.likely)) {
            out->tightest = i;
            out->need = s->need[i];
            least = room;
        }
    }
    vp_arena_rewind(arena, mark);
}

static void run(struct vp_arena *arena, struct search *s) {
    uint64_t *budget = s->out->budget_bytes;
    vp_arena_rewind(arena, s->mark); /* of the round before nothing but the ranges is needed */
    for (uint32_t i = 0; i < s->problem->stages; i++)
        budget[i] = s->range[i].tried;
    choose(arena, s->out, s->problem, s->shape, budget);
    evaluate(arena, s);
}

/* The next budget to try after the last one was evaluated; false: the search is over. */
static bool narrow(struct search *s, uint32_t i) {
    const uint64_t fine = UINT64_C(1) << 26; /* 64 MiB: allocators round more than that */
    struct range *r = &s->range[i];
    uint64_t need = s->cautious ? s->need[i].high : s->need[i].likely;
    if (need <= s->usable[i])
        r->enough = vp_max(r->enough, r->tried);
    else
        r->too_much = vp_min(r->too_much, r->tried);
    if (r->too_much <= r->enough || r->too_much - r->enough <= fine) {
        r->tried = r->enough;
        return false;
    }
    r->tried = r->enough + (r->too_much - r->enough) / 2;
    return true;
}

/* Keeps the budgets of the best plan that was evaluated. The bisection alone does not end with it:
 * the budgets that were enough may come from different plans, and fragments do not grow steadily.
 */
static void keep_best(struct search *s) {
    const struct vp_framework_plan *p = s->out;
    struct best *b = &s->best;
    bool better = !b->any;
    if (!better && p->verdict != b->verdict)
        better = p->verdict < b->verdict;
    else if (!better && p->verdict == VP_DOES_NOT_FIT)
        better = p->need.likely < b->need;
    else if (!better)
        better = p->slowest_ns != b->slowest_ns ? p->slowest_ns < b->slowest_ns
                                                : p->total_ns < b->total_ns;
    if (!better)
        return;
    b->verdict = p->verdict;
    b->slowest_ns = p->slowest_ns;
    b->total_ns = p->total_ns;
    b->need = p->need.likely;
    b->shape = s->shape;
    for (uint32_t i = 0; i < s->problem->stages; i++)
        b->budget_bytes[i] = p->budget_bytes[i];
    b->any = true;
}

static void fit_shape(struct vp_arena *arena, struct search *s) {
    enum { ROUNDS = 12 };
    bool again = true;
    for (uint32_t i = 0; i < s->problem->stages; i++) {
        uint64_t budget = s->problem->stage[i].budget_bytes;
        s->range[i] = (struct range){.too_much = budget, .tried = budget};
    }
    for (int round = 0; round < ROUNDS && again; round++) {
        again = false;
        run(arena, s);
        keep_best(s);
        for (uint32_t i = 0; i < s->problem->stages; i++)
            again |= narrow(s, i);
    }
    for (uint32_t i = 0; i < s->problem->stages; i++)
        s->range[i].tried = s->range[i].enough;
    run(arena, s);
    keep_best(s);
}

/* Every shape by itself, and every layer by itself, which all frameworks can be told: what a chain
 * takes for less may need more as a step. */
static void fit(struct vp_arena *arena, struct search *s, uint32_t shapes) {
    for (enum vp_recompute_shape shape = 0; shape < VP_SHAPE_COUNT; shape++) {
        s->shape = shape;
        if ((shapes | ON(ALL)) & UINT32_C(1) << shape)
            fit_shape(arena, s);
    }
}

void vp_framework_plan(struct vp_arena *arena, struct vp_framework_plan *out,
                       const struct vp_recompute_problem *problem, enum vp_framework framework) {
    const struct vp_framework_info *info = vp_framework_info(framework);
    uint32_t stages = problem->stages;
    *out = (struct vp_framework_plan){
        .framework = framework, .layers = problem->scenario->model->layer_count, .stages = stages};
    if (stages > 1 && info->pipelined == 0) {
        out->refused = "it has no pipeline stages";
        return;
    }
    struct vp_scenario *copy = VP_NEW(arena, struct vp_scenario);
    *copy = *problem->scenario;
    copy->train.recompute = nothing(arena, copy->model);
    out->layer = copy->train.recompute.plan;
    out->stage = VP_NEW_ARRAY(arena, stages, struct vp_stage_plan);
    out->budget_bytes = VP_NEW_ARRAY(arena, stages, uint64_t);
    struct search search = {.problem = problem,
                            .out = out,
                            .scenario = copy,
                            .range = VP_NEW_ARRAY(arena, stages, struct range),
                            .need = VP_NEW_ARRAY(arena, stages, struct vp_amount),
                            .usable = VP_NEW_ARRAY(arena, stages, uint64_t),
                            .cautious = true};
    uint32_t shapes = stages > 1 ? info->pipelined : info->shapes;
    search.best.budget_bytes = VP_NEW_ARRAY(arena, stages, uint64_t);
    search.mark = vp_arena_mark(arena);
    fit(arena, &search, shapes);
    search.cautious = false;
    if (search.best.verdict != VP_FITS)
        fit(arena, &search, shapes);
    search.shape = search.best.shape;
    for (uint32_t i = 0; i < stages; i++)
        search.range[i].tried = search.best.budget_bytes[i];
    run(arena, &search);
}
