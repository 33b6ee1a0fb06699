/* Serving latency: what must hold of any plan (order, monotony, sums), and the fit of an engine's
 * constants on rows that were made with known ones. */
#include "tests/unit/plan_rig.h"

#include <math.h>
#include <string.h>

#include "planner/import/input.h"
#include "planner/latency/engine_constants.h"
#include "planner/latency/serve_fit.h"
#include "planner/memory/stage.h"
#include "planner/plan/plan.h"
#include "planner/plan/serve_latency.h"

static const struct vp_latency *times(struct plan_rig *r, const char *model, const char *settings) {
    return &plan_rig_plan(r, model, settings)->latency;
}

static void in_order(const struct vp_estimate *e) {
    assert_true(e->low > 0);
    assert_true(e->low <= e->likely);
    assert_true(e->likely <= e->high);
}

/* ---- plans ---- */

#define LLAMA8 "serve.prompt_tokens=1024 serve.output_tokens=512 serve.context=4096 "

static void estimates_are_in_order(void **state) {
    static const char *const CASES[][2] = {
        {"llama-3.1-8b", "hardware.gpu=h100-sxm engine.name=vllm"},
        {"llama-3.1-8b", "hardware.gpu=mi300x engine.name=sglang"},
        {"qwen3-30b-a3b", "hardware.gpu=l40s hardware.count=4 engine.name=vllm parallel.tensor=4"},
        {"deepseek-r1",
         "hardware.gpu=mi355x hardware.count=8 engine.name=sglang parallel.tensor=8"},
        {"llama-3.1-70b", "hardware.gpu=b200 hardware.count=4 engine.name=vllm parallel.tensor=2 "
                          "parallel.pipeline=2 precision.weights=fp8"},
    };
    struct plan_rig r;

    (void)state;
    plan_rig_begin(&r);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const struct vp_latency *l =
            times(&r, CASES[i][0],
                  vp_arena_printf(&r.f.arena, LLAMA8 "serve.concurrency=8 %s", CASES[i][1]));
        in_order(&l->ttft_ms);
        in_order(&l->tpot_ms);
        in_order(&l->step_ms);
        in_order(&l->decode_tokens_per_s);
        in_order(&l->prefill_tokens_per_s);
        assert_true(l->step_ms.likely <= l->tpot_ms.likely);
        assert_true(l->tpot_ms.likely < l->ttft_ms.likely);
    }
    plan_rig_end(&r);
}

static void parts_sum_up(void **state) {
    struct plan_rig r;

    (void)state;
    plan_rig_begin(&r);
    const struct vp_latency *l = times(&r, "qwen3-30b-a3b",
                                       LLAMA8 "hardware.gpu=h200 hardware.count=2 engine.name=vllm "
                                              "parallel.tensor=2 serve.concurrency=32");
    double sum = 0;
    for (uint32_t i = 0; i < l->parts; i++)
        sum += l->part[i].time.likely / 1e3;
    assert_true(l->parts >= 5);
    assert_true(fabs(sum / l->step_ms.likely - 1) < 1e-9);
    plan_rig_end(&r);
}

static void more_load_takes_longer(void **state) {
    static const char *const ENGINES[] = {"vllm", "sglang"};
    struct plan_rig r;

    (void)state;
    plan_rig_begin(&r);
    for (int e = 0; e < 2; e++) {
        double tpot = 0, rate = 0;
        for (int n = 1; n <= 256; n *= 4) {
            const struct vp_latency *l = times(
                &r, "llama-3.1-8b",
                vp_arena_printf(&r.f.arena,
                                LLAMA8 "hardware.gpu=h100-sxm engine.name=%s serve.concurrency=%d",
                                ENGINES[e], n));
            assert_true(l->tpot_ms.likely > tpot);
            assert_true(l->decode_tokens_per_s.likely > rate);
            tpot = l->tpot_ms.likely;
            rate = l->decode_tokens_per_s.likely;
        }
        double ttft = 0;
        tpot = 0;
        for (int n = 1024; n <= 65536; n *= 4) {
            const struct vp_latency *l =
                times(&r, "llama-3.1-8b",
                      vp_arena_printf(&r.f.arena,
                                      "hardware.gpu=h100-sxm engine.name=%s serve.concurrency=4 "
                                      "serve.prompt_tokens=%d serve.output_tokens=512 "
                                      "serve.context=%d",
                                      ENGINES[e], n, n + 512));
            assert_true(l->ttft_ms.likely > ttft);
            assert_true(l->tpot_ms.likely > tpot);
            ttft = l->ttft_ms.likely;
            tpot = l->tpot_ms.likely;
        }
    }
    plan_rig_end(&r);
}

static void more_ranks_are_faster(void **state) {
    struct plan_rig r;
    double before = INFINITY;

    (void)state;
    plan_rig_begin(&r);
    for (int n = 2; n <= 8; n *= 2) {
        const struct vp_latency *l =
            times(&r, "llama-3.1-70b",
                  vp_arena_printf(&r.f.arena,
                                  LLAMA8 "hardware.gpu=h200 hardware.count=%d engine.name=vllm "
                                         "parallel.tensor=%d serve.concurrency=16",
                                  n, n));
        assert_true(l->tpot_ms.likely < before);
        before = l->tpot_ms.likely;
    }
    plan_rig_end(&r);
}

/* Replicas serve as many requests more, each as fast. */
static void replicas_add_up(void **state) {
    struct plan_rig r;

    (void)state;
    plan_rig_begin(&r);
    const struct vp_latency *one =
        times(&r, "llama-3.1-8b", LLAMA8 "hardware.gpu=h200 engine.name=vllm serve.concurrency=16");
    const struct vp_latency *four =
        times(&r, "llama-3.1-8b",
              LLAMA8 "hardware.gpu=h200 hardware.count=4 engine.name=vllm "
                     "serve.replicas=4 serve.concurrency=16");
    assert_true(fabs(four->tpot_ms.likely / one->tpot_ms.likely - 1) < 0.02);
    assert_true(fabs(four->decode_tokens_per_s.likely / one->decode_tokens_per_s.likely - 4) < 0.1);
    plan_rig_end(&r);
}

/* Nobody measured what transformers adds: only what kernels take at least is said. */
static void bounds_have_no_likely_figure(void **state) {
    struct plan_rig r;

    (void)state;
    plan_rig_begin(&r);
    const struct vp_latency *l =
        times(&r, "llama-3.1-8b", LLAMA8 "hardware.gpu=h100-sxm engine.name=transformers");
    assert_int_equal(l->tpot_ms.basis, VP_BASIS_BOUND);
    assert_true(l->tpot_ms.low > 0 && l->tpot_ms.likely == 0);
    assert_true(l->decode_tokens_per_s.high > 0 && l->decode_tokens_per_s.likely == 0);
    l = times(&r, "bge-m3", "hardware.gpu=h100-sxm engine.name=vllm serve.context=512");
    assert_int_equal(l->tpot_ms.basis, VP_BASIS_NONE);
    assert_non_null(strstr(l->why, "generates nothing"));
    plan_rig_end(&r);
}

static void basis_is_that_of_the_card(void **state) {
    static const struct {
        const char *gpu, *version;
        enum vp_basis basis;
    } CASES[] = {{"h100-sxm", "0.19", VP_BASIS_CALIBRATED},
                 {"mi300x", "0.10", VP_BASIS_CALIBRATED},
                 {"mi325x", "0.19", VP_BASIS_CLASS},
                 {"rtx4090", "0.19", VP_BASIS_CLASS},
                 /* its rows are of 2023: they say nothing of today's releases */
                 {"a100-80-sxm", "0.19", VP_BASIS_CLASS},
                 {"a100-80-sxm", "0.2", VP_BASIS_CALIBRATED}};
    struct plan_rig r;

    (void)state;
    plan_rig_begin(&r);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const struct vp_latency *l = times(
            &r, "llama-3.1-8b",
            vp_arena_printf(&r.f.arena, LLAMA8 "hardware.gpu=%s engine.name=vllm engine.version=%s",
                            CASES[i].gpu, CASES[i].version));
        assert_int_equal(l->tpot_ms.basis, CASES[i].basis);
        in_order(&l->tpot_ms);
    }
    plan_rig_end(&r);
}

/* A batch that the cache does not hold is served in turns. */
static void no_room_means_waiting(void **state) {
    struct plan_rig r;

    (void)state;
    plan_rig_begin(&r);
    const struct vp_latency *few =
        times(&r, "llama-3.1-8b",
              "hardware.gpu=l40s engine.name=vllm serve.concurrency=8 "
              "serve.prompt_tokens=8000 serve.output_tokens=192 serve.context=8192");
    const struct vp_latency *many =
        times(&r, "llama-3.1-8b",
              "hardware.gpu=l40s engine.name=vllm serve.concurrency=200 "
              "serve.prompt_tokens=8000 serve.output_tokens=192 serve.context=8192");
    assert_true(many->ttft_ms.likely > 10 * few->ttft_ms.likely);
    assert_true(many->decode_tokens_per_s.likely < 6 * few->decode_tokens_per_s.likely);
    plan_rig_end(&r);
}

static void generations_of_an_engine(void **state) {
    const char *from, *until;
    struct vp_version v;

    (void)state;
    assert_true(vp_version_parse(&v, "0.5.4"));
    assert_int_equal(vp_serving_generation("vllm", &v), 0);
    assert_true(vp_version_parse(&v, "0.6.0"));
    assert_int_equal(vp_serving_generation("vllm", &v), 1);
    assert_int_equal(vp_serving_generation("vllm", &(struct vp_version){0}), 1);
    vp_serving_generation_span("vllm", 0, &from, &until);
    assert_null(from);
    assert_string_equal(until, "0.6");
    vp_serving_generation_span("vllm", 1, &from, &until);
    assert_string_equal(from, "0.6");
    assert_null(until);
}

/* ---- operators ---- */

static void experts_that_are_wanted(void **state) {
    (void)state;
    assert_true(fabs(vp_experts_hit(128, 8, 1) - 8) < 1e-9);
    assert_true(fabs(vp_experts_hit(128, 8, 2) - (8 + 8 * 120.0 / 128)) < 1e-9);
    assert_true(vp_experts_hit(128, 8, 1e6) <= 128);
    assert_true(vp_experts_hit(128, 8, 1e4) > 127.9);
    assert_true(vp_experts_hit(8, 8, 1) == 8);
}

/* Layers of 16 bit on two cards take about half of what they take on one; joined products no longer
 * than each by itself. */
static void operators_are_divided_and_joined(void **state) {
    struct plan_rig r;

    (void)state;
    plan_rig_begin(&r);
    const struct vp_scenario *s =
        plan_rig_plan(&r, "llama-3.1-8b", LLAMA8 "hardware.gpu=h200 engine.name=vllm")->scenario;
    struct vp_kernels kernels = vp_kernels_of(s);
    struct vp_op_place place = {.kernels = &kernels,
                                .model = s->model,
                                .block = &s->model->blocks[0],
                                .layout = vp_stage_layout(s),
                                .fused = true};
    struct vp_op_load load = {.tokens = 16, .sequences = 16, .fresh = 1, .past = 1000};
    struct vp_ops ops;
    vp_ops_block(&ops, s->model, place.block);
    struct vp_ops_time one = vp_ops_time(&place, &ops, &load);
    place.layout.tensor = place.layout.attention = 2;
    struct vp_ops_time two = vp_ops_time(&place, &ops, &load);
    assert_true(two.linear.likely > 0.45 * one.linear.likely);
    assert_true(two.linear.likely < 0.75 * one.linear.likely);
    assert_true(two.attention.likely < one.attention.likely);
    assert_true(one.reduced == 2.0 * (double)s->model->hidden);
    place.fused = false;
    assert_true(vp_ops_time(&place, &ops, &load).linear.likely > two.linear.likely);
    plan_rig_end(&r);
}

/* ---- fits ---- */

static const struct vp_serving_fit TRUTH = {.kernel_scale = 1.1,
                                            .layer_us = 20,
                                            .expert_layer_us = 30,
                                            .sequence_us = 12,
                                            .step_us = 400,
                                            .first_us = 9000,
                                            .first_token_us = 7,
                                            .request_us = 300,
                                            .wait_steps = 2,
                                            .queue_share = 0.1};

enum { ROWS = 60, GROUPS = 5 };

static struct vp_time us(double v) { return (struct vp_time){v, v, v, VP_BASIS_CALIBRATED}; }

/* Rows of five models at growing loads. */
static void make_rows(struct vp_served *rows) {
    for (int i = 0; i < ROWS; i++) {
        double model = i % GROUPS, load = 1 << (i / GROUPS % 7), prompt = i % 2 ? 900 : 7400;
        struct vp_served *r = &rows[i];
        struct vp_pass pass = {.linear = us(1500 + 2500 * model + 20 * load),
                               .attention = us(3 * load * prompt / 900),
                               .layers = 32 + 16 * model,
                               .expert_layers = i % 3 ? 0 : 32 + 16 * model,
                               .sequences = load,
                               .passes = 1};
        *r = (struct vp_served){.group = (uint32_t)model};
        r->load =
            (struct vp_serve_load){.data = 1, .running = load, .prompt = prompt, .output = 512};
        r->terms = (struct vp_serve_terms){.decode = pass, .prompt = pass, .first = pass};
        r->terms.prompt.linear = us(prompt * (2 + model));
        r->terms.prompt.layers = r->terms.prompt.passes = 0;
        r->terms.first.linear = us(prompt * (2 + model));
        r->terms.interruptions = (load - 1) / 512;
        r->terms.ahead = load - 1;
        r->tpot_us = vp_tpot_us(&r->terms, &TRUTH);
        r->ttft_us = vp_ttft_us(&r->terms, &r->load, &TRUTH);
    }
}

static void a_fit_finds_what_made_the_rows(void **state) {
    struct plan_rig r;
    struct vp_served rows[ROWS];
    struct vp_serving_fit fit = {.engine = "vllm"};

    (void)state;
    plan_rig_begin(&r);
    make_rows(rows);
    assert_true(
        vp_serve_fit(&r.f.arena, &fit, &(struct vp_serve_fit_rows){rows, ROWS, GROUPS}, NULL));
    assert_true(fabs(fit.kernel_scale - TRUTH.kernel_scale) < 0.02);
    assert_true(fabs(fit.layer_us - TRUTH.layer_us) < 2);
    assert_true(fabs(fit.expert_layer_us - TRUTH.expert_layer_us) < 2);
    assert_true(fit.tpot.median < 0.01 && fit.ttft.median < 0.02);
    assert_true(fit.tpot_spread >= 1.1); /* nobody claims less */
    plan_rig_end(&r);
}

static void a_fit_bears_wild_rows(void **state) {
    struct plan_rig r;
    struct vp_served rows[ROWS];
    struct vp_serving_fit fit = {.engine = "vllm"};

    (void)state;
    plan_rig_begin(&r);
    make_rows(rows);
    for (int i = 0; i < ROWS; i += 12)
        rows[i].tpot_us *= 4;
    assert_true(
        vp_serve_fit(&r.f.arena, &fit, &(struct vp_serve_fit_rows){rows, ROWS, GROUPS}, NULL));
    assert_true(fit.tpot.median < 0.08);
    assert_true(rows[0].outlier && !rows[1].outlier);
    plan_rig_end(&r);
}

static void few_rows_scale_the_class(void **state) {
    struct plan_rig r;
    struct vp_served rows[ROWS];
    struct vp_serving_fit fit = {.engine = "vllm"}, prior = TRUTH;

    (void)state;
    plan_rig_begin(&r);
    make_rows(rows);
    prior.tpot_spread = prior.ttft_spread = 1.5;
    for (int i = 0; i < ROWS; i++)
        rows[i].tpot_us *= 1.3;
    assert_false(
        vp_serve_fit(&r.f.arena, &fit, &(struct vp_serve_fit_rows){rows, 4, GROUPS}, NULL));
    assert_false(vp_serve_fit(&r.f.arena, &fit, &(struct vp_serve_fit_rows){rows, 2, 1}, &prior));
    assert_true(vp_serve_fit(&r.f.arena, &fit, &(struct vp_serve_fit_rows){rows, 4, 1}, &prior));
    assert_true(fabs(fit.layer_us / prior.layer_us - 1.3) < 1e-6);
    assert_true(fit.tpot_spread >= prior.tpot_spread);
    assert_string_equal(fit.engine, "vllm");
    plan_rig_end(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(estimates_are_in_order),
        cmocka_unit_test(parts_sum_up),
        cmocka_unit_test(more_load_takes_longer),
        cmocka_unit_test(more_ranks_are_faster),
        cmocka_unit_test(replicas_add_up),
        cmocka_unit_test(bounds_have_no_likely_figure),
        cmocka_unit_test(basis_is_that_of_the_card),
        cmocka_unit_test(no_room_means_waiting),
        cmocka_unit_test(generations_of_an_engine),
        cmocka_unit_test(experts_that_are_wanted),
        cmocka_unit_test(operators_are_divided_and_joined),
        cmocka_unit_test(a_fit_finds_what_made_the_rows),
        cmocka_unit_test(a_fit_bears_wild_rows),
        cmocka_unit_test(few_rows_scale_the_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
