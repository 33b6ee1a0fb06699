/* The checks of a gate on plans that are written down by hand: intervals, growth, waivers, records.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "planner/plan/gate.h"
#include "tests/unit/fixture.h"

#define GIB(n) (UINT64_C(n) << 30)
#define MIB(n) (UINT64_C(n) << 20)

static struct fixture f;
static struct vp_scenario scenario;
static struct vp_device head_devices[3], base_devices[3];
static struct vp_result head, base;
static struct vp_budget budget;
static struct vp_gate_question question;
static struct vp_check *checks;
static uint32_t count;

static void fill(struct vp_result *r, struct vp_device *devices) {
    *r = (struct vp_result){.scenario = &scenario,
                            .verdict = VP_FITS,
                            .devices = devices,
                            .device_count = 2,
                            .headroom_bytes = (int64_t)GIB(40),
                            .reason_text = ""};
    for (int i = 0; i < 2; i++) {
        devices[i] = (struct vp_device){.usable_bytes = GIB(140)};
        devices[i].component[VP_C_WEIGHTS] = vp_exactly(GIB(60));
        devices[i].component[VP_C_KV_CACHE] = vp_exactly(GIB(30) + GIB(5) * (uint64_t)i);
        devices[i].component[VP_C_ACTIVATIONS] = (struct vp_amount){GIB(2), GIB(5), GIB(9)};
        devices[i].need =
            (struct vp_amount){GIB(92) + GIB(5) * (uint64_t)i, GIB(95) + GIB(5) * (uint64_t)i,
                               GIB(99) + GIB(5) * (uint64_t)i};
    }
    r->kv.max_context = 32768;
    r->kv.max_concurrency_milli = 16500;
    r->report.estimated_max_model_len = (struct vp_amount){30000, 32768, 36000};
    r->report.num_gpu_blocks = (struct vp_amount){900, 1000, 1100};
}

static int setup(void **state) {
    fixture_begin(&f);
    scenario = (struct vp_scenario){.name = "s"};
    scenario.engine.name = "vllm";
    scenario.engine.version_text = "0.19";
    vp_version_parse(&scenario.engine.version, "0.19");
    scenario.parallel.data = 1;
    fill(&head, head_devices);
    fill(&base, base_devices);
    budget = (struct vp_budget){0};
    question = (struct vp_gate_question){.scenario = "s",
                                         .budget = &budget,
                                         .head = &head,
                                         .base = &base,
                                         .have_base = true,
                                         .in_base = true,
                                         .today = 20261130};
    (void)state;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    fixture_end(&f);
    return 0;
}

static void run(void) { vp_gate_check(&f.ctx, &checks, &count, &question); }

static const struct vp_check *find(const char *name) {
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(checks[i].name, name) == 0)
            return &checks[i];
    fail_msg("there is no check %s", name);
    return NULL;
}

static const struct vp_check *expect(const char *name, enum vp_check_state state,
                                     enum vp_diag_id id) {
    run();
    const struct vp_check *c = find(name);
    if (c->state != state)
        fail_msg("%s is %s, not %s: %s", name, vp_check_state_name(c->state),
                 vp_check_state_name(state), c->message);
    assert_int_equal(c->id, id);
    return c;
}

static void limit(struct vp_limit *out, uint64_t value) {
    *out = (struct vp_limit){.given = true, .value = value, .pos = {"b.yaml", 7, 3}};
}

/* ---- limits ---- */

static void limits_and_intervals(void **state) {
    (void)state;
    struct vp_limit *memory = &budget.bound[VP_BOUND_MEMORY];
    limit(memory, GIB(104)); /* the second device needs 97 to 104 */
    const struct vp_check *c = expect("memory", VP_CHECK_PASS, VP_DIAG_COUNT);
    assert_int_equal(c->pos.line, 7);
    assert_true(c->value.high == (int64_t)GIB(104));
    memory->value = GIB(104) - 1;
    c = expect("memory", VP_CHECK_INCONCLUSIVE, VP_D_GATE_AT_RISK);
    assert_non_null(strstr(c->message, "97.00 GiB to 104.00 GiB: the limit of"));
    memory->value = GIB(97) - 1;
    c = expect("memory", VP_CHECK_FAIL, VP_D_GATE_LIMIT);
    assert_non_null(strstr(c->message, "1 B above the limit of"));
    assert_int_equal(find("fits")->state, VP_CHECK_PASS);
}

static void at_risk_policies(void **state) {
    (void)state;
    enum vp_at_risk strict = VP_AT_RISK_FAIL;
    limit(&budget.bound[VP_BOUND_MEMORY], GIB(100)); /* the likely figure */
    budget.at_risk = VP_AT_RISK_LIKELY;
    expect("memory", VP_CHECK_PASS, VP_D_GATE_AT_RISK);
    budget.bound[VP_BOUND_MEMORY].value--;
    expect("memory", VP_CHECK_FAIL, VP_D_GATE_AT_RISK);
    budget.at_risk = VP_AT_RISK_WARN;
    expect("memory", VP_CHECK_WARN, VP_D_GATE_AT_RISK);
    question.at_risk = &strict; /* the command line outranks the budget */
    expect("memory", VP_CHECK_FAIL, VP_D_GATE_AT_RISK);
}

static void lower_bounds(void **state) {
    (void)state;
    limit(&budget.bound[VP_BOUND_HEADROOM], GIB(36)); /* 140 less 104 */
    expect("headroom", VP_CHECK_PASS, VP_DIAG_COUNT);
    budget.bound[VP_BOUND_HEADROOM].value = GIB(44);
    const struct vp_check *c = expect("headroom", VP_CHECK_FAIL, VP_D_GATE_LIMIT);
    assert_non_null(strstr(c->message, "1.00 GiB below the limit of 44.00 GiB"));
    head_devices[1].usable_bytes = GIB(90); /* below the need: a headroom below zero */
    c = expect("headroom", VP_CHECK_FAIL, VP_D_GATE_LIMIT);
    assert_non_null(strstr(c->message, "headroom of one GPU -14.00 GiB to -7.00 GiB"));
    limit(&budget.bound[VP_BOUND_CONTEXT], 30000);
    expect("min_context", VP_CHECK_PASS, VP_DIAG_COUNT);
    budget.bound[VP_BOUND_CONTEXT].value = 36000;
    expect("min_context", VP_CHECK_INCONCLUSIVE, VP_D_GATE_AT_RISK);
    budget.bound[VP_BOUND_CONTEXT].value = 36001;
    c = expect("min_context", VP_CHECK_FAIL, VP_D_GATE_LIMIT);
    assert_non_null(strstr(c->message, "30,000 to 36,000 tokens, 1 token below"));
    limit(&budget.bound[VP_BOUND_CONCURRENCY], 14); /* 14.85 to 18.15 */
    expect("min_concurrency", VP_CHECK_PASS, VP_DIAG_COUNT);
    budget.bound[VP_BOUND_CONCURRENCY].value = 18;
    expect("min_concurrency", VP_CHECK_INCONCLUSIVE, VP_D_GATE_AT_RISK);
    budget.bound[VP_BOUND_CONCURRENCY].value = 19;
    expect("min_concurrency", VP_CHECK_FAIL, VP_D_GATE_LIMIT);
}

static void components_and_host(void **state) {
    (void)state;
    limit(&budget.component[VP_C_KV_CACHE], GIB(35)); /* of the GPU that has most of it */
    expect("components.kv_cache", VP_CHECK_PASS, VP_DIAG_COUNT);
    budget.component[VP_C_KV_CACHE].value--;
    expect("components.kv_cache", VP_CHECK_FAIL, VP_D_GATE_LIMIT);
    limit(&budget.bound[VP_BOUND_HOST], 0);
    expect("host_memory", VP_CHECK_PASS, VP_DIAG_COUNT);
    head.device_count = 3;
    head_devices[2] = (struct vp_device){.host = true, .need = vp_exactly(GIB(300))};
    head_devices[2].component[VP_C_KV_CACHE] = vp_exactly(GIB(300)); /* does not count on a GPU */
    budget.component[VP_C_KV_CACHE].value = GIB(35);
    expect("host_memory", VP_CHECK_FAIL, VP_D_GATE_LIMIT);
    expect("components.kv_cache", VP_CHECK_PASS, VP_DIAG_COUNT);
}

static void the_plans_own_verdict(void **state) {
    (void)state;
    expect("fits", VP_CHECK_PASS, VP_DIAG_COUNT);
    head.verdict = VP_AT_RISK;
    head.reason_text = "graphs";
    const struct vp_check *c = expect("fits", VP_CHECK_INCONCLUSIVE, VP_D_GATE_AT_RISK);
    assert_string_equal(c->message, "at-risk: graphs");
    budget.at_risk = VP_AT_RISK_LIKELY;
    expect("fits", VP_CHECK_PASS, VP_D_GATE_AT_RISK);
    head.headroom_bytes = -1;
    expect("fits", VP_CHECK_FAIL, VP_D_GATE_AT_RISK);
    head.verdict = VP_DOES_NOT_FIT;
    expect("fits", VP_CHECK_FAIL, VP_D_GATE_NO_FIT);
}

/* ---- growth ---- */

static void grow(enum vp_component c, uint64_t bytes) {
    for (int i = 0; i < 2; i++) {
        struct vp_device *d = &head_devices[i];
        d->component[c] = vp_amount_add(d->component[c], vp_exactly(bytes));
        d->need = vp_amount_add(d->need, vp_exactly(bytes));
    }
}

static void growth_needs_both(void **state) {
    (void)state;
    budget.growth = (struct vp_growth_limit){.given = true,
                                             .percent_ppb = 10000000, /* 1 % of 100 GiB */
                                             .min_bytes = GIB(2)};
    grow(VP_C_KV_CACHE, GIB(2)); /* more than 1 %, not more than 2 GiB */
    const struct vp_check *c = expect("growth", VP_CHECK_PASS, VP_DIAG_COUNT);
    assert_true(c->value.likely == (int64_t)GIB(2) && c->limit == (int64_t)GIB(2));
    grow(VP_C_KV_CACHE, 1);
    c = expect("growth", VP_CHECK_FAIL, VP_D_GATE_GROWTH);
    assert_non_null(strstr(c->message, "100.00 GiB -> 102.00 GiB, +2.00 GiB (+2.00 %); allowed"));
    budget.growth.percent_ppb = 30000000; /* 3 GiB */
    expect("growth", VP_CHECK_PASS, VP_DIAG_COUNT);
    budget.growth = (struct vp_growth_limit){.given = true}; /* none at all */
    expect("growth", VP_CHECK_FAIL, VP_D_GATE_GROWTH);
    fill(&head, head_devices);
    expect("growth", VP_CHECK_PASS, VP_DIAG_COUNT);
    head_devices[0].need = head_devices[1].need = vp_exactly(GIB(50)); /* shrinking is no growth */
    c = expect("growth", VP_CHECK_PASS, VP_DIAG_COUNT);
    assert_true(c->value.likely == -(int64_t)GIB(50));
}

/* A component may grow while another one shrinks: the total does not show it. */
static void growth_of_components(void **state) {
    (void)state;
    budget.growth.given = budget.component_growth[VP_C_KV_CACHE].given = true;
    grow(VP_C_KV_CACHE, GIB(3));
    head_devices[0].need = base_devices[0].need;
    head_devices[1].need = base_devices[1].need;
    expect("growth", VP_CHECK_PASS, VP_DIAG_COUNT);
    expect("growth.kv_cache", VP_CHECK_FAIL, VP_D_GATE_GROWTH);
}

static void nothing_to_compare(void **state) {
    (void)state;
    budget.growth.given = true;
    question.base = NULL;
    expect("growth", VP_CHECK_INCONCLUSIVE, VP_D_GATE_BASE_FAULT);
    question.in_base = false;
    expect("growth", VP_CHECK_NEW, VP_DIAG_COUNT);
    expect("scenario", VP_CHECK_NEW, VP_D_GATE_NEW);
    question.have_base = false;
    expect("growth", VP_CHECK_INCONCLUSIVE, VP_D_GATE_NO_BASE);
    assert_int_equal(count, 2); /* with fits */
}

/* ---- waivers ---- */

static struct vp_waiver waivers[3];

static void waive(uint32_t i, const char *check, enum vp_waiver_kind kind, uint64_t amount,
                  uint32_t expires) {
    waivers[i] = (struct vp_waiver){.check = check,
                                    .kind = kind,
                                    .amount = amount,
                                    .reason = "ticket 1",
                                    .expires = expires,
                                    .expires_text = "2026-11-30"};
    budget.waivers = waivers;
    budget.waiver_count = i + 1;
}

static void waivers_of_growth(void **state) {
    (void)state;
    budget.growth.given = true;
    grow(VP_C_KV_CACHE, GIB(2));
    waive(0, "growth", VP_WAIVER_GROWS_BY, GIB(2), 20261130);
    const struct vp_check *c = expect("growth", VP_CHECK_WAIVED, VP_D_GATE_WAIVED);
    assert_non_null(strstr(c->message, "waived until 2026-11-30: ticket 1"));
    assert_ptr_equal(c->waiver, &waivers[0]);
    question.today = 20261201;
    expect("growth", VP_CHECK_INCONCLUSIVE, VP_D_GATE_EXPIRED);
    waivers[0].amount--;
    c = expect("growth", VP_CHECK_FAIL, VP_D_GATE_GROWTH);
    assert_non_null(strstr(c->message, "; the waiver allows growth by"));
}

/* What a component is allowed is allowed to the sum, as far as that component uses it. */
static void waivers_of_components(void **state) {
    (void)state;
    budget.growth.given = true;
    grow(VP_C_KV_CACHE, GIB(2));
    waive(0, "growth.kv_cache", VP_WAIVER_GROWS_BY, GIB(4), 20261231);
    expect("growth", VP_CHECK_WAIVED, VP_D_GATE_WAIVED);
    grow(VP_C_WEIGHTS, GIB(1)); /* not that one's */
    expect("growth", VP_CHECK_FAIL, VP_D_GATE_GROWTH);
    waive(1, "growth.weights", VP_WAIVER_GROWS_BY, GIB(1), 20261231);
    expect("growth", VP_CHECK_WAIVED, VP_D_GATE_WAIVED);
    waivers[1].expires = 20200101;
    const struct vp_check *c = expect("growth", VP_CHECK_INCONCLUSIVE, VP_D_GATE_EXPIRED);
    assert_ptr_equal(c->waiver, &waivers[1]);
    assert_int_equal(f.diags.count, 0); /* none is unused */
}

static void waivers_of_limits(void **state) {
    (void)state;
    limit(&budget.bound[VP_BOUND_MEMORY], GIB(100));
    waive(0, "memory", VP_WAIVER_UP_TO, GIB(104), 20261231);
    expect("memory", VP_CHECK_WAIVED, VP_D_GATE_WAIVED);
    waivers[0].amount = GIB(103); /* inside of the interval: not decided */
    expect("memory", VP_CHECK_INCONCLUSIVE, VP_D_GATE_AT_RISK);
    limit(&budget.bound[VP_BOUND_CONTEXT], 40000);
    waive(1, "min_context", VP_WAIVER_DOWN_TO, 30000, 20261231);
    expect("min_context", VP_CHECK_WAIVED, VP_D_GATE_WAIVED);
    waivers[1].amount = 30001;
    expect("min_context", VP_CHECK_FAIL, VP_D_GATE_LIMIT);
}

static void unused_waivers(void **state) {
    (void)state;
    budget.growth.given = true;
    waive(0, "growth", VP_WAIVER_GROWS_BY, GIB(2), 20261231);
    waive(1, "growth.kv_cache", VP_WAIVER_GROWS_BY, GIB(2), 20200101);
    expect("growth", VP_CHECK_PASS, VP_DIAG_COUNT);
    assert_int_equal(f.diags.count, 2);
    assert_int_equal(f.diags.items[0].id, VP_D_GATE_UNUSED);
    assert_non_null(strstr(f.diags.items[1].message, "which expired on"));
}

static void warn_only(void **state) {
    static const char *names[] = {"growth", "components.kv_cache"};
    (void)state;
    budget.growth.given = budget.component_growth[VP_C_KV_CACHE].given = true;
    limit(&budget.component[VP_C_KV_CACHE], 1);
    limit(&budget.component[VP_C_WEIGHTS], 1);
    grow(VP_C_KV_CACHE, GIB(1));
    budget.warn_only = names;
    budget.warn_only_count = 2;
    expect("growth", VP_CHECK_WARN, VP_D_GATE_GROWTH);
    expect("growth.kv_cache", VP_CHECK_WARN, VP_D_GATE_GROWTH);
    expect("components.kv_cache", VP_CHECK_WARN, VP_D_GATE_LIMIT);
    expect("components.weights", VP_CHECK_FAIL, VP_D_GATE_LIMIT);
}

/* ---- measured records ---- */

static void measured_records(void **state) {
    struct vp_record_value values[] = {{.key = "weights_gib", .value = GIB(60), .step = MIB(10)},
                                       {.key = "non_torch_gib", .value = GIB(3)}};
    struct vp_tolerance tolerances[] = {{.key = "weights_gib"}, {.ppb = 500000000}};
    struct vp_record record = {.values = values, .value_count = 2};
    (void)state;
    budget.records = &record;
    budget.record_count = 1;
    head.report.weights = vp_exactly(GIB(60) + MIB(10)); /* as printed */
    head.report.non_torch = (struct vp_amount){GIB(1), GIB(2), GIB(3)};
    expect("measured.weights_gib", VP_CHECK_PASS, VP_DIAG_COUNT);
    expect("measured.non_torch_gib", VP_CHECK_PASS, VP_DIAG_COUNT); /* inside of the interval */
    record.tolerances = tolerances;
    record.tolerance_count = 2;
    expect("measured.weights_gib", VP_CHECK_PASS, VP_DIAG_COUNT);
    head.report.weights.likely++;
    const struct vp_check *c = expect("measured.weights_gib", VP_CHECK_FAIL, VP_D_GATE_MEASURED);
    assert_non_null(strstr(c->message, "further apart than the tolerance of 0.00 %"));
    expect("measured.non_torch_gib", VP_CHECK_PASS, VP_DIAG_COUNT);
    record.engine = "vllm";
    record.engine_version = "0.19.0"; /* the same release, written otherwise */
    run();
    assert_int_equal(find("measured.weights_gib")->state, VP_CHECK_FAIL);
    record.engine_version = "0.10";
    c = expect("measured", VP_CHECK_INCONCLUSIVE, VP_D_GATE_RECORD);
    assert_string_equal(c->message, "the record is of vllm 0.10, the plan of 0.19");
    record.engine_version = NULL;
    tolerances[0].key = "weight_gib";
    c = expect("measured.weight_gib", VP_CHECK_INCONCLUSIVE, VP_D_GATE_RECORD);
    assert_string_equal(c->hint, "did you mean weights_gib?");
    record = (struct vp_record){.values = values, .value_count = 1};
    values[0].key = "weight_gib";
    c = expect("measured.weight_gib", VP_CHECK_INCONCLUSIVE, VP_D_GATE_RECORD);
    assert_string_equal(c->hint, "did you mean weights_gib?");
}

/* ---- days, sums ---- */

static void days(void **state) {
    static const char *const GOOD[] = {"2026-11-30", "2024-02-29", "2000-02-29"};
    static const char *const BAD[] = {"2026-11-31",
                                      "2026-02-29",
                                      "1900-02-29",
                                      "2026-13-01",
                                      "2026-00-01",
                                      "2026-01-00",
                                      "2026-1-1",
                                      "20261130",
                                      "2026/11/30",
                                      "2026-11-3x",
                                      ""};
    uint32_t day;
    (void)state;
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++)
        assert_true(vp_parse_day(&day, GOOD[i]));
    assert_int_equal(day, 20000229);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        assert_false(vp_parse_day(&day, BAD[i]));
}

static void sums(void **state) {
    struct vp_check two[] = {{.state = VP_CHECK_WAIVED}, {.state = VP_CHECK_FAIL}};
    struct vp_gate_scenario all[] = {{.checks = two, .check_count = 2},
                                     {.checks = two, .check_count = 1}};
    struct vp_gate gate = {.scenarios = all, .scenario_count = 2};
    (void)state;
    vp_gate_sum(&gate);
    assert_int_equal(gate.worst, VP_CHECK_FAIL);
    assert_int_equal(gate.checks[VP_CHECK_WAIVED], 2);
    assert_int_equal(gate.scenarios_of[VP_CHECK_WAIVED], 1);
    assert_int_equal(all[1].worst, VP_CHECK_WAIVED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(limits_and_intervals),
        TEST(at_risk_policies),
        TEST(lower_bounds),
        TEST(components_and_host),
        TEST(the_plans_own_verdict),
        TEST(growth_needs_both),
        TEST(growth_of_components),
        TEST(nothing_to_compare),
        TEST(waivers_of_growth),
        TEST(waivers_of_components),
        TEST(waivers_of_limits),
        TEST(unused_waivers),
        TEST(warn_only),
        TEST(measured_records),
        TEST(days),
        TEST(sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
