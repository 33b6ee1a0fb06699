/* Times of simulated iterations: the tables against the sums they are made of, monotony, runs of
 * iterations, several ranks and stages, drafts. */
#include "tests/unit/plan_rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/import/input.h"
#include "planner/memory/stage.h"
#include "planner/plan/plan.h"
#include "planner/plan/serve_latency.h"
#include "planner/serving/step_bound.h"
#include "planner/serving/step_curve.h"
#include "planner/serving/step_time.h"

static struct vp_step_time *made(struct plan_rig *r, const struct vp_scenario *s) {
    struct vp_step_time *t = VP_NEW(&r->f.arena, struct vp_step_time);

    assert_true(vp_step_time_make(&r->f.arena, t, s));
    return t;
}

/* A small generator, so that the compositions are the same everywhere. */
static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return *state >> 33;
}

/* A whole number between the two, evenly on a logarithmic scale. */
static double between(uint64_t *state, double least, double most) {
    double share = (double)next(state) / (double)(1U << 31);
    return floor(least * pow(most / least, share));
}

static struct vp_iteration composed(double decodes, double context, double prompts, double fresh,
                                    double past) {
    return (struct vp_iteration){.decodes = (uint32_t)decodes,
                                 .decode_context = decodes * context,
                                 .prompts = (uint32_t)prompts,
                                 .completed = (uint32_t)prompts,
                                 .prompt_tokens = prompts * fresh,
                                 .prompt_past = prompts * past,
                                 .prompt_pairs = prompts * fresh * (past + (fresh + 1) / 2)};
}

static const struct tested {
    const char *name, *model, *settings;
} TESTED[] = {
    {"dense", "llama-3.1-8b", "hardware.gpu=h100-sxm engine.name=vllm serve.context=32768"},
    {"dense, tp", "llama-3.1-70b",
     "hardware.gpu=h200 hardware.count=4 parallel.tensor=4 engine.name=vllm serve.context=32768"},
    {"experts", "qwen3-30b-a3b", "hardware.gpu=b200 engine.name=vllm serve.context=32768"},
    {"latent", "deepseek-r1",
     "hardware.gpu=b200 hardware.count=8 parallel.tensor=8 engine.name=sglang serve.context=32768"},
    {"window", "gpt-oss-120b",
     "hardware.gpu=h100-sxm hardware.count=2 parallel.tensor=2 engine.name=vllm "
     "serve.context=32768"},
    {"class", "llama-3.1-8b", "hardware.gpu=r9700 engine.name=vllm serve.context=16384"},
};
enum { TESTED_COUNT = sizeof TESTED / sizeof *TESTED };

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* ---- the grid ---- */

static void axes_hold_every_size_once(void **state) {
    (void)state;
    for (uint32_t bits = 1; bits < 5; bits++)
        for (int steps = 0; steps < 2; steps++) {
            struct vp_axis axis = vp_axis_to(bits, steps, 5000);
            double before = -1;
            for (uint32_t i = 0; i < axis.nodes; i++) {
                double at = vp_axis_at(&axis, i);
                struct vp_axis_place p = vp_axis_find(&axis, at);
                assert_true(at > before);
                assert_true((p.node == i && p.share < 1e-12) ||
                            (p.node + 1 == i && p.share > 1 - 1e-12));
                before = at;
            }
            assert_true(before >= 5000);
            assert_true(vp_axis_at(&axis, axis.nodes - 2) < 5000);
        }
}

static void sheets_are_straight_between(void **state) {
    struct fixture f;

    (void)state;
    fixture_begin(&f);
    struct vp_sheet sheet =
        vp_sheet_new(&f.arena, vp_axis_to(2, true, 300), vp_axis_to(2, false, 900));
    for (uint32_t x = 0; x < sheet.x.nodes; x++)
        for (uint32_t y = 0; y < sheet.y.nodes; y++)
            *vp_sheet_node(&sheet, x, y) =
                3 + 2 * vp_axis_at(&sheet.x, x) + vp_axis_at(&sheet.x, x) * vp_axis_at(&sheet.y, y);
    vp_sheet_raise(&sheet);
    for (double x = 0; x < 600; x += 7.25) /* and beyond the last nodes */
        for (double y = 0; y < 2000; y += 13.5) {
            struct vp_sheet_line line = vp_sheet_line_at(&sheet, x, y);
            assert_true(fabs(line.us - (3 + 2 * x + x * y)) < 1e-6);
            assert_true(fabs(line.slope - x) < 1e-9 * (x + 1));
            assert_true(line.until > y);
        }
    fixture_end(&f);
}

/* A dip is raised, and a curve that ends flat goes on as steeply as before. */
static void curves_never_fall(void **state) {
    struct fixture f;

    (void)state;
    fixture_begin(&f);
    struct vp_curve curve = vp_curve_new(&f.arena, vp_axis_to(3, false, 1024));
    for (uint32_t i = 0; i < curve.x.nodes; i++) {
        double at = vp_axis_at(&curve.x, i);
        curve.us[i] = at < 900 ? at : 800; /* falls at its end */
    }
    vp_curve_raise(&curve);
    double before = 0;
    for (double x = 0; x < 5000; x += 3) {
        assert_true(vp_curve_us(&curve, x) >= before);
        before = vp_curve_us(&curve, x);
    }
    assert_true(before > 2500); /* by half at least: the last octave rose from 512 to 896 */
    fixture_end(&f);
}

/* ---- tables ---- */

/* A composition by its parts: sequences, their context; prompts, fresh and past tokens of each. */
static struct vp_pass_load drawn(uint64_t *seed, int k) {
    struct vp_pass_load load = {.data = 1};

    if (k % 3 != 1) {
        load.decoding = between(seed, 1, 256);
        load.past = between(seed, 16, 16000);
    }
    if (k % 3 != 0) {
        load.prompts = between(seed, 1, 4);
        load.chunk = between(seed, 16, 2048);
        load.done = k % 2 ? 0 : between(seed, 16, 8192);
    }
    return load;
}

static void tables_are_the_sums(void **state) {
    enum { CASES = 60 };
    struct plan_rig r;

    (void)state;
    plan_rig_begin(&r);
    for (int i = 0; i < TESTED_COUNT; i++) {
        const struct vp_scenario *s =
            plan_rig_plan(&r, TESTED[i].model, TESTED[i].settings)->scenario;
        const struct vp_step_time *t = made(&r, s);
        struct vp_layout layout = vp_stage_layout(s);
        struct vp_engine_constants constants;
        struct vp_stack stack;
        uint64_t seed = 1;
        double off[CASES];

        vp_engine_constants_of(&r.f.arena, &constants, s);
        vp_stack_of(&stack, s, &layout, 1);
        for (int k = 0; k < CASES; k++) {
            struct vp_pass_load load = drawn(&seed, k);
            struct vp_pass pass = vp_pass_of(&stack, &load);
            struct vp_iteration it =
                composed(load.decoding, load.past, load.prompts, load.chunk, load.done);
            off[k] = fabs(vp_step_us(t, &it) / vp_pass_us(&pass, constants.fit) - 1);
        }
        qsort(off, CASES, sizeof *off, by_size);
        if (off[CASES / 2] > 0.01 || off[CASES * 9 / 10] > 0.025 || off[CASES - 1] > 0.05)
            fail_msg("%s: median %.4f, p90 %.4f, most %.4f", TESTED[i].name, off[CASES / 2],
                     off[CASES * 9 / 10], off[CASES - 1]);
    }
    plan_rig_end(&r);
}

static void more_takes_longer(void **state) {
    struct plan_rig r;

    (void)state;
    plan_rig_begin(&r);
    for (int i = 0; i < TESTED_COUNT; i++) {
        const struct vp_step_time *t =
            made(&r, plan_rig_plan(&r, TESTED[i].model, TESTED[i].settings)->scenario);
        uint64_t seed = 2;
        for (int k = 0; k < 2000; k++) {
            struct vp_pass_load a = drawn(&seed, k), b = a;
            double *const part[] = {&b.decoding, &b.past, &b.prompts, &b.chunk, &b.done};
            int which = (int)(next(&seed) % 5);
            if (a.decoding + a.prompts <= 0)
                continue;
            *part[which] = floor(*part[which] * 1.07) + 1;
            struct vp_iteration less = composed(a.decoding, a.past, a.prompts, a.chunk, a.done);
            struct vp_iteration more = composed(b.decoding, b.past, b.prompts, b.chunk, b.done);
            double before = vp_step_us(t, &less), after = vp_step_us(t, &more);
            assert_true(before > 0);
            if (after < before * (1 - 1e-12))
                fail_msg("%s: part %d: %g after %g", TESTED[i].name, which, after, before);
        }
        struct vp_iteration nothing = {0};
        assert_true(vp_step_us(t, &nothing) <= 0);
        assert_true(vp_step_front_us(t, 100, 1) <= vp_step_front_us(t, 101, 1));
        assert_true(vp_step_front_us(t, 100, 1) <= vp_step_front_us(t, 100, 2));
    }
    plan_rig_end(&r);
}

/* A run is the sum of its iterations, over the bends of the table, at any factor. */
static void runs_are_their_iterations(void **state) {
    struct plan_rig r;

    (void)state;
    plan_rig_begin(&r);
    for (int i = 0; i < TESTED_COUNT; i++) {
        struct vp_step_time *t =
            made(&r, plan_rig_plan(&r, TESTED[i].model, TESTED[i].settings)->scenario);
        uint64_t seed = 3;
        for (int k = 0; k < 20; k++) {
            double n = between(&seed, 1, 256), count = between(&seed, 1, 3000);
            struct vp_iteration first = composed(n, between(&seed, 1, 30000), 0, 0, 0), it;
            struct vp_decode_run run;
            double sum = 0;

            t->factor = k % 2 ? 1 : 1.25;
            first.decode_context += floor(n / 3);
            vp_step_run(t, &first, &run);
            assert_true(run.iterations >= 1);
            assert_true(fabs(run.first_us / vp_step_us(t, &first) - 1) < 1e-9);
            it = first;
            for (uint64_t j = 0; j < (uint64_t)count; j++) {
                double us = vp_step_us(t, &it);
                if (j < run.iterations)
                    assert_true(fabs((run.first_us + (double)j * run.growth_us) / us - 1) < 1e-9);
                sum += us;
                it.decode_context += n;
            }
            assert_true(fabs(vp_step_run_us(t, &first, (uint64_t)count) / sum - 1) < 1e-9);
        }
    }
    plan_rig_end(&r);
}

/* The steady state of the analytic estimate is one of the iterations. */
static void the_estimate_is_an_iteration(void **state) {
    struct plan_rig r;

    (void)state;
    plan_rig_begin(&r);
    for (int i = 0; i < TESTED_COUNT; i++) {
        const struct vp_result *plan =
            plan_rig_plan(&r, TESTED[i].model,
                          vp_arena_printf(&r.f.arena,
                                          "%s serve.concurrency=48 serve.prompt_tokens=900 "
                                          "serve.output_tokens=300",
                                          TESTED[i].settings));
        const struct vp_step_time *t = made(&r, plan->scenario);
        struct vp_serve_load load;
        vp_serve_load_of(&load, plan);
        struct vp_iteration it =
            composed(floor(load.running), load.prompt + load.output / 2, 0, 0, 0);
        assert_true(fabs(vp_step_us(t, &it) / 1e3 / plan->latency.step_ms.likely - 1) < 0.02);
        assert_true(t->basis == plan->latency.step_ms.basis);
        assert_string_equal(t->why, plan->latency.why);
        assert_true(t->spread > 1 && t->first_spread > 1);
    }
    plan_rig_end(&r);
}

/* ---- what is not known ---- */

static void unknown_engines_are_bounds(void **state) {
    struct plan_rig r;

    (void)state;
    plan_rig_begin(&r);
    const struct vp_result *plan =
        plan_rig_plan(&r, "llama-3.1-8b",
                      "hardware.gpu=h100-sxm engine.name=transformers serve.concurrency=8 "
                      "serve.prompt_tokens=900 serve.output_tokens=300 serve.context=1200");
    const struct vp_step_time *t = made(&r, plan->scenario);
    struct vp_iteration it = composed(8, 1050, 0, 0, 0);
    assert_int_equal(t->basis, VP_BASIS_BOUND);
    assert_true(fabs(t->spread - 1) < 1e-12);
    assert_true(fabs(vp_step_us(t, &it) / 1e3 / plan->latency.step_ms.low - 1) < 0.02);
    plan_rig_end(&r);
}

/* ---- host memory ---- */

/* Weights that the host keeps come over the link once per pass, whatever is in it. */
static void offloaded_weights_are_read(void **state) {
    const double bytes = 4e9, gbs = 50;
    struct vp_iteration few = composed(1, 1000, 0, 0, 0), many = composed(64, 1000, 0, 0, 0);
    struct plan_rig r;

    (void)state;
    plan_rig_begin(&r);
    const struct vp_scenario *all =
        plan_rig_plan(&r, "llama-3.1-8b", "hardware.gpu=l40s engine.name=vllm")->scenario;
    const struct vp_scenario *some =
        plan_rig_plan(&r, "llama-3.1-8b",
                      "hardware.gpu=l40s engine.name=vllm serve.offload.weights=4000000000 "
                      "hardware.host_link_gbs=50")
            ->scenario;
    const struct vp_step_time *here = made(&r, all), *there = made(&r, some);
    struct vp_engine_constants constants;
    vp_engine_constants_of(&r.f.arena, &constants, some);
    double want = constants.fit->kernel_scale * bytes / (gbs * 1e3);
    assert_true(fabs((vp_step_us(there, &few) - vp_step_us(here, &few)) / want - 1) < 0.01);
    assert_true(fabs((vp_step_us(there, &many) - vp_step_us(here, &many)) / want - 1) < 0.01);
    plan_rig_end(&r);
}

/* ---- several GPUs ---- */

static const struct vp_step_time *of(struct plan_rig *r, const char *model, const char *settings) {
    return made(r, plan_rig_plan(r, model, settings)->scenario);
}

static void rounds_of_a_pipeline(void **state) {
    struct plan_rig r;

    (void)state;
    plan_rig_begin(&r);
    const struct vp_step_time *four =
        of(&r, "llama-3.1-70b",
           "hardware.gpu=h200 hardware.count=4 parallel.pipeline=4 engine.name=vllm");
    const struct vp_step_time *one =
        of(&r, "llama-3.1-70b", "hardware.gpu=h200 hardware.count=1 engine.name=vllm");
    struct vp_iteration few = composed(1, 1000, 0, 0, 0), two = composed(2, 1000, 0, 0, 0);
    struct vp_iteration all = composed(64, 1000, 0, 0, 0), group = composed(16, 1000, 0, 0, 0);
    struct vp_iteration prompt = composed(0, 0, 1, 2048, 0);
    struct vp_iteration mixed = composed(64, 1000, 1, 2048, 0);

    assert_int_equal(four->stages, 4);
    /* one sequence passes all layers as on one card, and hops; two run behind each other */
    double alone = vp_step_us(one, &few);
    assert_in_range((uint64_t)vp_step_us(four, &few), (uint64_t)alone, (uint64_t)(alone * 1.05));
    assert_true(fabs(vp_step_us(four, &two) / vp_step_us(four, &few) - 1) < 0.01);
    /* four groups of 16 fill it */
    double round = vp_step_us(one, &group);
    assert_in_range((uint64_t)vp_step_us(four, &all), (uint64_t)round, (uint64_t)(round * 1.05));
    /* a prompt keeps each stage busy for a quarter of its pass; its own tokens take all of it */
    double pass = vp_step_us(one, &prompt);
    assert_in_range((uint64_t)vp_step_us(four, &prompt), (uint64_t)(pass / 4),
                    (uint64_t)(pass / 4 * 1.05));
    assert_true(vp_step_us(four, &mixed) > vp_step_us(four, &all));
    assert_true(vp_step_us(four, &mixed) < vp_step_us(four, &all) + pass);
    double rest = vp_step_front_us(four, 2048, 1) - vp_step_front_us(one, 2048, 1);
    assert_in_range((uint64_t)rest, (uint64_t)(pass * 0.75), (uint64_t)(pass * 0.75 * 1.05));
    plan_rig_end(&r);
}

static void data_ranks_wait_for_each_other(void **state) {
    struct plan_rig r;

    (void)state;
    plan_rig_begin(&r);
    const struct vp_step_time *dp =
        of(&r, "deepseek-r1",
           "hardware.gpu=b200 hardware.count=8 parallel.tensor=8 parallel.attention_data=8 "
           "parallel.expert=8 engine.name=sglang");
    struct vp_iteration even = composed(64, 1000, 0, 0, 0), odd = composed(65, 1000, 0, 0, 0);
    struct vp_iteration nearly = composed(72, 1000, 0, 0, 0);
    assert_int_equal(dp->ranks, 8);
    assert_int_equal(dp->copies, 1);
    /* the 65th sequence makes one rank's batch nine, as the 72nd does */
    double step = vp_step_us(dp, &odd) - vp_step_us(dp, &even);
    assert_true(step > 0);
    assert_true((vp_step_us(dp, &nearly) - vp_step_us(dp, &odd)) / 7 < step);
    /* two prompts go to two ranks */
    struct vp_iteration one = composed(0, 0, 1, 4000, 0), both = composed(0, 0, 2, 4000, 0);
    assert_true(vp_step_us(dp, &both) < 1.5 * vp_step_us(dp, &one));

    /* vLLM: ranks meet at experts; without any they are engines of their own */
    const struct vp_step_time *experts = of(&r, "qwen3-30b-a3b",
                                            "hardware.gpu=h200 hardware.count=4 parallel.data=4 "
                                            "engine.name=vllm");
    const struct vp_step_time *dense = of(&r, "llama-3.1-8b",
                                          "hardware.gpu=h200 hardware.count=4 parallel.data=4 "
                                          "engine.name=vllm");
    assert_int_equal(experts->ranks, 4);
    assert_int_equal(experts->copies, 1);
    assert_int_equal(dense->ranks, 1);
    assert_int_equal(dense->copies, 4);
    plan_rig_end(&r);
}

static void uneven_experts_take_longer(void **state) {
    static const char *const SHARES[] = {"1", "1.5", "2", "4"};
    struct vp_iteration prompt = composed(0, 0, 1, 8192, 0);
    double before = 0;
    struct plan_rig r;

    (void)state;
    plan_rig_begin(&r);
    for (int i = 0; i < 4; i++) {
        const struct vp_step_time *t =
            of(&r, "deepseek-r1",
               vp_arena_printf(&r.f.arena,
                               "hardware.gpu=b200 hardware.count=8 parallel.tensor=8 "
                               "parallel.expert=8 engine.name=sglang serve.expert_imbalance=%s",
                               SHARES[i]));
        assert_true(vp_step_us(t, &prompt) > before);
        before = vp_step_us(t, &prompt);
    }
    plan_rig_end(&r);
}

static void the_busiest_rank_has_the_mean_at_least(void **state) {
    const struct vp_setting set[] = {{"hardware.gpu", "b200", "--gpu"},
                                     {"engine.name", "vllm", "--engine"},
                                     {"serve.expert_imbalance", "0.5", "--set"}};
    struct vp_scenarios found = {0};
    struct plan_rig r;

    (void)state;
    plan_rig_begin(&r);
    assert_int_not_equal(vp_input_read(&r.f.ctx, &found, "qwen3-30b-a3b", set, 3), VP_OK);
    plan_rig_end(&r);
}

/* ---- drafts ---- */

static void drafts_pay_at_small_batches(void **state) {
    struct plan_rig r;
    double before = 0;

    (void)state;
    assert_true(fabs(vp_step_accepted(3, 0) - 1) < 1e-12);
    assert_true(fabs(vp_step_accepted(3, 1) - 4) < 1e-12);
    assert_true(fabs(vp_step_accepted(3, 0.5) - 1.875) < 1e-12);
    plan_rig_begin(&r);
    const struct vp_step_time *mtp =
        of(&r, "deepseek-r1",
           "hardware.gpu=h200 hardware.count=8 parallel.tensor=8 engine.name=vllm "
           "serve.draft.method=mtp serve.draft.tokens=2");
    assert_int_equal(mtp->draft_tokens, 2);
    for (uint64_t n = 1; n <= 256; n *= 4) {
        struct vp_iteration plain = composed((double)n, 1000, 0, 0, 0), drafted = plain;
        drafted.drafts = 2;
        assert_true(vp_step_us(mtp, &drafted) > vp_step_us(mtp, &plain));
        double even = vp_step_break_even(mtp, n, 1000);
        assert_true(even > 0);
        if (n == 1)
            assert_true(even < 0.5);
        if (isfinite(even)) { /* at it, both give tokens equally fast */
            double with = vp_step_us(mtp, &drafted) / vp_step_accepted(2, even);
            assert_true(fabs(with / vp_step_us(mtp, &plain) - 1) < 1e-6);
        }
        before = even;
    }
    assert_true(before > 0.2);
    /* a look-up in the text proposes for nothing */
    const struct vp_step_time *ngram =
        of(&r, "deepseek-r1",
           "hardware.gpu=h200 hardware.count=8 parallel.tensor=8 engine.name=vllm "
           "serve.draft.method=ngram serve.draft.tokens=2");
    assert_true(vp_step_break_even(ngram, 1, 1000) < vp_step_break_even(mtp, 1, 1000));
    /* a small model of its own costs its passes */
    const struct vp_step_time *small =
        of(&r, "llama-3.1-70b",
           "hardware.gpu=h200 hardware.count=4 parallel.tensor=4 engine.name=vllm "
           "serve.draft.model=llama-3.1-8b serve.draft.tokens=4");
    struct vp_iteration plain = composed(1, 1000, 0, 0, 0), drafted = plain;
    drafted.drafts = 4;
    assert_true(vp_step_us(small, &drafted) > 1.5 * vp_step_us(small, &plain));
    plan_rig_end(&r);
}

/* ---- bounds ---- */

/* Iterations of any kind, up to a budget: none is cheaper than the bounds say, and some iteration
 * comes near them. */
static void nothing_is_below_the_bounds(void **state) {
    static const struct tested MORE[] = {
        {"stages", "llama-3.1-70b",
         "hardware.gpu=h200 hardware.count=4 parallel.pipeline=4 engine.name=vllm"},
        {"ranks", "deepseek-r1",
         "hardware.gpu=b200 hardware.count=8 parallel.tensor=8 parallel.attention_data=8 "
         "parallel.expert=8 engine.name=sglang"},
    };
    enum { CONTEXT = 100, SEQUENCES = 256, BUDGET = 4096 };
    struct plan_rig r;

    (void)state;
    plan_rig_begin(&r);
    for (int i = 0; i < TESTED_COUNT + 2; i++) {
        const struct tested *one = i < TESTED_COUNT ? &TESTED[i] : &MORE[i - TESTED_COUNT];
        const struct vp_step_time *t = of(&r, one->model, one->settings);
        double token = vp_step_least_token_us(t, CONTEXT, 0);
        double prompt = vp_step_least_prompt_us(t, BUDGET);
        double output = vp_step_least_output_us(t, CONTEXT, SEQUENCES, 0);
        double nearest_prompt = INFINITY, nearest_output = INFINITY;
        uint64_t seed = 4;

        for (int k = 0; k < 3000; k++) {
            double n = k % 2 ? between(&seed, 1, SEQUENCES + 1) : 0;
            double m = k % 4 != 1 ? between(&seed, 1, 9) : 0;
            double fresh = between(&seed, 1, BUDGET / 8);
            struct vp_iteration it = composed(n, between(&seed, CONTEXT, 4000), m, fresh,
                                              k % 3 ? 0 : between(&seed, 1, 2000));
            double us = vp_step_us(t, &it);
            if (n > 0 && us < token * (1 - 1e-9))
                fail_msg("%s: %g us for a token, bound %g", one->name, us, token);
            if (n > 0 && us / n < output * (1 - 1e-9))
                fail_msg("%s: %g us per output token, bound %g", one->name, us / n, output);
            if (m > 0 && us / it.prompt_tokens < prompt * (1 - 1e-9))
                fail_msg("%s: %g us per prompt token, bound %g", one->name, us / it.prompt_tokens,
                         prompt);
            nearest_output = n > 0 ? fmin(nearest_output, us / n) : nearest_output;
            nearest_prompt = m > 0 ? fmin(nearest_prompt, us / it.prompt_tokens) : nearest_prompt;
        }
        assert_true(nearest_prompt < 1.5 * prompt);
        struct vp_iteration full = composed(SEQUENCES, CONTEXT, 0, 0, 0);
        nearest_output = fmin(nearest_output, vp_step_us(t, &full) / SEQUENCES);
        assert_true(nearest_output < 1.2 * output);
        assert_true(vp_step_least_first_us(t, 5000, BUDGET) > 5000 * prompt);
    }
    plan_rig_end(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(axes_hold_every_size_once),
        cmocka_unit_test(sheets_are_straight_between),
        cmocka_unit_test(curves_never_fall),
        cmocka_unit_test(tables_are_the_sums),
        cmocka_unit_test(more_takes_longer),
        cmocka_unit_test(runs_are_their_iterations),
        cmocka_unit_test(the_estimate_is_an_iteration),
        cmocka_unit_test(unknown_engines_are_bounds),
        cmocka_unit_test(offloaded_weights_are_read),
        cmocka_unit_test(rounds_of_a_pipeline),
        cmocka_unit_test(data_ranks_wait_for_each_other),
        cmocka_unit_test(uneven_experts_take_longer),
        cmocka_unit_test(the_busiest_rank_has_the_mean_at_least),
        cmocka_unit_test(drafts_pay_at_small_batches),
        cmocka_unit_test(nothing_is_below_the_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
