/* A stage under each engine: what the accounting of each version leaves for the cache, what is
 * pinned, what comes on top. Figures are pinned to round ones where the arithmetic is the point:
 * a card of 80 GiB, 0.9 of it asked for = 72 GiB; weights 10, activations 5, non-torch 1, graphs
 * 2. */
#include "planner/memory/engine_stage.h"

#include <string.h>

#include "tests/unit/model_builder.h"

static struct builder b;
static struct vp_rules *rules;
static struct vp_measured *measured;

static void measure(enum vp_measure what, uint64_t value) {
    measured->known[what] = true;
    measured->value[what] = value;
}

static void pin_overheads(void) {
    measure(VP_M_WEIGHTS, GIB(10));
    measure(VP_M_ACTIVATION, GIB(5));
    measure(VP_M_NON_TORCH, GIB(1));
    measure(VP_M_GRAPHS, GIB(2));
}

static int begin(void **state) {
    (void)state;
    builder_begin(&b);
    b.model.hidden = 256;
    struct vp_block block = block_gqa(8, 8, 32); /* 1024 bytes per token and layer */
    block.mlp = (struct vp_mlp){.kind = VP_MLP_GATED, .intermediate = 512};
    builder_layer(&b, block, 4);
    builder_ends(&b, 1024, false);
    rules = &b.scenario.engine.rules;
    measured = &b.scenario.measured;
    return 0;
}

static int end(void **state) {
    (void)state;
    builder_end(&b);
    return 0;
}

static struct vp_engine_stage make(void) {
    struct vp_ledger ledger = builder_ledger(&b);
    struct vp_engine_stage stage = builder_stage(&b, &ledger, 0);
    assert_false(ledger.overflow);
    return stage;
}

static void expect(const struct vp_amount *amount, uint64_t low, uint64_t likely, uint64_t high) {
    assert_int_equal(amount->low, low);
    assert_int_equal(amount->likely, likely);
    assert_int_equal(amount->high, high);
}

/* ---- vLLM's accounting by version ---- */

static void regimes(void **state) {
    (void)state;
    static const struct {
        enum vp_vllm_budget budget;
        uint64_t available_gib, reserved_gib;
        bool graphs_in_budget;
    } WANT[] = {
        {VP_VLLM_TORCH_PEAK, 57, 74, false}, /* 72 - 10 - 5; graphs on top of the 72 */
        {VP_VLLM_V0, 56, 74, false},         /* and the non-torch part */
        {VP_VLLM_V1_USED, 53, 74, false},    /* and what others hold, 3 */
        {VP_VLLM_V1, 56, 74, false},         {VP_VLLM_V1_GRAPHS, 54, 72, true}, /* and the graphs */
    };
    pin_overheads();
    b.scenario.hardware.reserved_bytes = GIB(3);
    for (size_t i = 0; i < sizeof WANT / sizeof *WANT; i++) {
        rules->budget = WANT[i].budget;
        struct vp_engine_stage s = make();
        assert_int_equal(s.requested_bytes, GIB(72));
        expect(&s.available, GIB(WANT[i].available_gib), GIB(WANT[i].available_gib),
               GIB(WANT[i].available_gib));
        assert_int_equal(s.reserved_bytes, GIB(WANT[i].reserved_gib));
        assert_int_equal(s.usable_bytes, GIB(WANT[i].reserved_gib));
        assert_int_equal(s.graphs_in_budget, WANT[i].graphs_in_budget);
        assert_int_equal(s.units.likely, GIB(WANT[i].available_gib) / (16 * 4096));
        assert_false(s.available_negative);
        assert_false(s.pinned);
    }
    b.scenario.hardware.reserved_bytes = GIB(20); /* what there is limits what may be used */
    assert_int_equal(make().usable_bytes, GIB(60));
    b.scenario.hardware.reserved_bytes = GIB(90);
    assert_int_equal(make().usable_bytes, 0);
}

/* Which rule a version has, and the identity that its log lines obey: requested less the printed
 * parts is the printed cache. */
static void regimes_by_version(void **state) {
    (void)state;
    static const struct {
        const char *gpu, *engine;
        enum vp_vllm_budget budget;
    } WANT[] = {
        {"h100-sxm", "{name: vllm, version: 0.2.5}", VP_VLLM_TORCH_PEAK},
        {"h100-sxm", "{name: vllm, version: 0.2.6}", VP_VLLM_V0},
        {"h100-sxm", "{name: vllm, version: 0.6.4}", VP_VLLM_V0},
        {"h100-sxm", "{name: vllm, version: 0.9.1}", VP_VLLM_V0},
        {"h100-sxm", "{name: vllm, version: 0.8.5, env: {VLLM_USE_V1: \"1\"}}", VP_VLLM_V1_USED},
        {"h100-sxm", "{name: vllm, version: \"0.10\"}", VP_VLLM_V1},
        {"h100-sxm", "{name: vllm, version: \"0.20\"}", VP_VLLM_V1},
        {"h100-sxm", "{name: vllm, version: \"0.21\"}", VP_VLLM_V1_GRAPHS},
        {"h100-sxm",
         "{name: vllm, version: \"0.21\", env: {VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS: \"0\"}}",
         VP_VLLM_V1},
        {"h100-sxm",
         "{name: vllm, version: \"0.19\", env: {VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS: \"1\"}}",
         VP_VLLM_V1_GRAPHS},
        {"mi300x", "{name: vllm, version: \"0.21\"}", VP_VLLM_V1}, /* skipped on ROCm at first */
        {"mi300x", "{name: vllm, version: \"0.26\"}", VP_VLLM_V1_GRAPHS},
    };
    for (size_t i = 0; i < sizeof WANT / sizeof *WANT; i++) {
        struct fixture f;
        fixture_begin(&f);
        const char *yaml = vp_arena_printf(
            &f.arena, "model: llama-3-8b\nserve: {context: 4096}\nhardware: {gpu: %s}\n",
            WANT[i].gpu);
        const struct vp_result *r = plan_yaml_with(&f, yaml, "engine", WANT[i].engine);
        const struct vp_engine_report *e = &r->report;
        assert_int_equal(r->scenario->engine.rules.budget, WANT[i].budget);
        uint64_t taken = e->weights.likely + e->activation_peak.likely;
        if (WANT[i].budget != VP_VLLM_TORCH_PEAK)
            taken += e->non_torch.likely;
        if (WANT[i].budget == VP_VLLM_V1_GRAPHS)
            taken += e->graph.likely;
        assert_int_equal(e->available_kv.likely, e->requested_bytes - taken);
        fixture_end(&f);
    }
}

/* Logs, in GiB as printed: total x utilization, weights, activation, non-torch, graphs -> cache. */
static void logged_budgets(void **state) {
    (void)state;
    static const struct {
        const char *yaml;
        uint64_t logged_mib;
    } LOGS[] = {
        /* V0: 7.28 - 2.89 - 2.02 - 0.01 = 2.36 */
        {"hardware: {gpu: t4, memory: 14.56 GiB}\n"
         "engine: {name: vllm, version: \"0.8\", args: {gpu_memory_utilization: 0.5,\n"
         "         dtype: float16}}\n"
         "measured: {weights_gib: 2.8884, activation_peak_gib: 2.02, non_torch_gib: 0.01}\n",
         2417},
        /* V1: 75.23 - 27.52 - 5.64 - 0.13 = 41.94 */
        {"hardware: {gpu: h100-sxm, memory: 79.19 GiB}\n"
         "engine: {name: vllm, version: \"0.15\", args: {gpu_memory_utilization: 0.95}}\n"
         "measured: {weights_gib: 27.52, activation_peak_gib: 5.64, non_torch_gib: 0.13}\n",
         42947},
    };
    for (size_t i = 0; i < sizeof LOGS / sizeof *LOGS; i++) {
        struct fixture f;
        fixture_begin(&f);
        const struct vp_result *r =
            plan_yaml(&f, vp_arena_printf(&f.arena, "model: qwen3-0.6b\nserve: {context: 4096}\n%s",
                                          LOGS[i].yaml));
        assert_near(r->report.available_kv.likely, MIB(LOGS[i].logged_mib), 1);
        fixture_end(&f);
    }
}

/* Low and high ends cross: the least memory less the most that is taken, and the reverse. */
static void interval(void **state) {
    (void)state;
    pin_overheads();
    measured->known[VP_M_NON_TORCH] = false;
    rules->non_torch = (struct vp_amount){GIB(1), GIB(2), GIB(5)};
    b.scenario.hardware.memory = (struct vp_amount){GIB(70), GIB(80), GIB(90)};
    struct vp_engine_stage s = make();
    expect(&s.non_torch, GIB(1), GIB(2), GIB(5));
    expect(&s.available, GIB(63) - GIB(20), GIB(72) - GIB(17), GIB(81) - GIB(16));
    assert_int_equal(s.units.low, s.available.low / 65536);
    assert_int_equal(s.units.high, s.available.high / 65536);
}

static void nothing_left(void **state) {
    (void)state;
    pin_overheads();
    measure(VP_M_WEIGHTS, GIB(70));
    struct vp_engine_stage s = make();
    expect(&s.available, 0, 0, 0);
    assert_true(s.available_negative);
    expect(&s.units, 0, 0, 0);
    measure(VP_M_WEIGHTS, GIB(67)); /* 67 + 6 is above 72, but not at the high end of the card */
    b.scenario.hardware.memory.high = GIB(90);
    s = make();
    expect(&s.available, 0, 0, GIB(81) - GIB(73));
    assert_false(s.available_negative);
}

/* ---- overheads ---- */

static void overheads_by_layout(void **state) {
    (void)state;
    rules->non_torch = (struct vp_amount){MIB(100), MIB(200), MIB(300)};
    rules->non_torch_group = (struct vp_amount){MIB(400), MIB(500), MIB(600)};
    rules->graph_base = (struct vp_amount){MIB(10), MIB(20), MIB(40)};
    rules->graph_per_layer = (struct vp_amount){MIB(1), MIB(2), MIB(3)};
    struct vp_ledger ledger = builder_ledger(&b);
    struct vp_engine_stage s = builder_stage(&b, &ledger, 0);
    expect(&s.non_torch, MIB(100), MIB(200), MIB(300));
    expect(&s.graphs, MIB(14), MIB(28), MIB(52)); /* four layers */
    const struct vp_row *row = NULL;
    for (uint32_t i = 0; i < ledger.count; i++)
        if (ledger.rows[i].component == VP_C_GRAPHS)
            row = &ledger.rows[i];
    assert_non_null(row);
    assert_int_equal(row->from, VP_STEP_CAPTURE);
    assert_int_equal(row->confidence, VP_CLASS_AVERAGE);
    assert_int_equal(row_input(row, "layers"), 4);
    b.scenario.parallel.tensor = 2; /* communicators */
    s = make();
    expect(&s.non_torch, MIB(400), MIB(500), MIB(600));
    b.scenario.parallel.pipeline = 3; /* one, two and one layer */
    ledger = builder_ledger(&b);
    assert_int_equal(builder_stage(&b, &ledger, 0).graphs.likely, MIB(22));
    assert_int_equal(builder_stage(&b, &ledger, 1).graphs.likely, MIB(24));
    b.scenario.engine.enforce_eager = true;
    s = make();
    expect(&s.graphs, 0, 0, 0);
}

/* ROCm's load line counts more than the tensors. */
static void load_excess(void **state) {
    (void)state;
    uint64_t tensors = make().weights.likely;
    rules->load_excess = (struct vp_amount){MIB(50), MIB(330), MIB(700)};
    struct vp_ledger ledger = builder_ledger(&b);
    struct vp_engine_stage s = builder_stage(&b, &ledger, 0);
    expect(&s.weights, tensors + MIB(50), tensors + MIB(330), tensors + MIB(700));
    assert_int_equal(ledger_likely(&ledger, 0, VP_C_WEIGHTS), tensors); /* the parameters alone */
    assert_int_equal(ledger_likely(&ledger, 0, VP_C_RUNTIME), MIB(330));
    measure(VP_M_WEIGHTS, GIB(1)); /* a logged figure has it in it */
    ledger = builder_ledger(&b);
    s = builder_stage(&b, &ledger, 0);
    expect(&s.weights, GIB(1), GIB(1), GIB(1));
    assert_int_equal(ledger_likely(&ledger, 0, VP_C_RUNTIME), 0);
}

/* ---- pins ---- */

static void a_pin_replaces_its_rows(void **state) {
    (void)state;
    rules->non_torch = (struct vp_amount){MIB(100), MIB(200), MIB(300)};
    pin_overheads();
    struct vp_ledger ledger = builder_ledger(&b);
    struct vp_engine_stage s = builder_stage(&b, &ledger, 0);
    static const struct {
        enum vp_component component;
        uint64_t gib;
        enum vp_step from;
    } WANT[] = {{VP_C_WEIGHTS, 10, VP_STEP_LOAD},
                {VP_C_ACTIVATIONS, 5, VP_STEP_PROFILE},
                {VP_C_RUNTIME, 1, VP_STEP_LOAD},
                {VP_C_GRAPHS, 2, VP_STEP_CAPTURE}};
    expect(&s.weights, GIB(10), GIB(10), GIB(10));
    for (size_t i = 0; i < sizeof WANT / sizeof *WANT; i++) {
        const struct vp_row *row = &ledger.rows[i]; /* one row each, in this order */
        assert_int_equal(row->component, WANT[i].component);
        assert_int_equal(row->formula, VP_FORMULA_MEASURED);
        assert_int_equal(row->confidence, VP_MEASURED_VALUE);
        assert_int_equal(row->from, WANT[i].from);
        assert_int_equal(row->bytes.likely, GIB(WANT[i].gib));
        assert_string_equal(row->owner, "measured");
    }
    assert_int_equal(ledger.count, 5); /* and the cache that the workload needs */
    assert_int_equal(ledger.rows[4].component, VP_C_KV_CACHE);
}

static void a_measured_pool(void **state) {
    (void)state;
    pin_overheads();
    measure(VP_M_AVAILABLE_KV, GIB(20));
    b.scenario.engine.kv_cache_bytes = GIB(30); /* a log outranks what was asked for */
    struct vp_engine_stage s = make();
    expect(&s.available, GIB(20), GIB(20), GIB(20));
    assert_true(s.pinned);
    assert_false(s.available_negative);
    assert_int_equal(s.usable_bytes, GIB(38));
    assert_int_equal(s.units.likely, GIB(20) / 65536);
    measure(VP_M_AVAILABLE_KV, 0);
    assert_true(make().available_negative);
    measure(VP_M_BLOCKS, 1234); /* of the same log */
    s = make();
    expect(&s.units, 1234, 1234, 1234);
}

static void a_pool_in_bytes(void **state) {
    (void)state;
    pin_overheads();
    b.scenario.engine.kv_cache_bytes = GIB(30);
    struct vp_engine_stage s = make();
    expect(&s.available, GIB(30), GIB(30), GIB(30));
    assert_true(s.pinned);
    assert_int_equal(s.usable_bytes, GIB(48));
    b.scenario.engine.kv_cache_bytes = GIB(100); /* more than there is stays unusable */
    b.scenario.hardware.reserved_bytes = GIB(10);
    s = make();
    assert_int_equal(s.usable_bytes, GIB(70));
    assert_int_equal(s.units.likely, GIB(100) / 65536);
}

static void blocks_given(void **state) {
    (void)state;
    pin_overheads();
    b.scenario.engine.blocks_override = 777;
    struct vp_engine_stage s = make();
    expect(&s.units, 777, 777, 777);
    expect(&s.available, GIB(56), GIB(56), GIB(56)); /* what is printed before */
    measure(VP_M_BLOCKS, 555);
    s = make();
    expect(&s.units, 555, 555, 555);
}

/* ---- stages without a part of the cache ---- */

static void no_cache(void **state) {
    (void)state;
    struct vp_block kinds[] = {block_gqa(8, 8, 32), {.norms = 1}};
    builder_layers(&b, kinds, (uint32_t[]){2, 2}, 2);
    b.scenario.parallel.pipeline = 2;
    struct vp_ledger ledger = builder_ledger(&b);
    struct vp_engine_stage first = builder_stage(&b, &ledger, 0);
    struct vp_engine_stage last = builder_stage(&b, &ledger, 1);
    assert_true(first.units.likely > 0 && first.units.likely < UINT64_MAX);
    assert_int_equal(last.units.likely, UINT64_MAX); /* no layer of its own: no limit */
    const struct vp_result *r = builder_evaluate(&b);
    assert_int_equal(r->report.num_gpu_blocks.likely, first.units.likely);
    assert_int_equal(r->verdict, VP_FITS);

    b.scenario.parallel.pipeline = 1;
    builder_layer(&b, kinds[1], 2); /* nothing is cached anywhere */
    struct vp_engine_stage s = make();
    expect(&s.units, 0, 0, 0);
    r = builder_evaluate(&b);
    assert_false(r->kv.known);
    assert_int_equal(r->verdict, VP_FITS);
}

/* ---- SGLang ---- */

/* cache = free before loading x static share - weights. MI355X log: free 287.20 before and 230.20
 * after loading, 0.911: 204.64 GiB against 204.63. */
static void sglang(void **state) {
    (void)state;
    b.scenario.engine.kind = VP_ENGINE_SGLANG;
    b.scenario.engine.block_size = 1;
    b.scenario.engine.utilization_ppb = 911000000;
    pin_overheads();
    b.scenario.hardware.memory_bytes = 309454933196; /* 288.20 GiB, one of them the runtime's */
    b.scenario.hardware.memory = vp_exactly(309454933196);
    measure(VP_M_WEIGHTS, GIB(57));
    struct vp_engine_stage s = make();
    assert_near(s.available.likely, 219730478432, 1);  /* 204.64 GiB */
    assert_int_equal(s.requested_bytes, 280935265339); /* 308,381,191,372 x 0.911 */
    assert_int_equal(s.units.likely, s.available.likely / 4096);
    assert_int_equal(s.reserved_bytes, s.requested_bytes + GIB(3));
    assert_int_equal(s.usable_bytes, s.requested_bytes + GIB(8)); /* with the forward pass */
    b.scenario.hardware.reserved_bytes = GIB(20);
    s = make();
    assert_near(s.available.likely, 219730478432 - GIB(20) / 1000 * 911, 1);

    b.scenario.hardware.reserved_bytes = 0;
    b.scenario.engine.utilization_ppb = 999000000; /* never more than the card has */
    s = make();
    assert_int_equal(s.usable_bytes, 309454933196);
    measure(VP_M_WEIGHTS, GIB(300));
    s = make();
    expect(&s.available, 0, 0, 0);
    assert_true(s.available_negative);
}

/* A state pool takes share / (1 + share) of the bytes. */
static void sglang_states(void **state) {
    (void)state;
    struct vp_block kinds[] = {block_gqa(8, 8, 32), block_state(1000, VP_DTYPE_BF16)};
    builder_layers(&b, kinds, (uint32_t[]){4, 4}, 2);
    b.scenario.engine.kind = VP_ENGINE_SGLANG;
    b.scenario.engine.block_size = 1;
    rules->state_share_ppb = 900000000;
    pin_overheads();
    measure(VP_M_AVAILABLE_KV, GIB(19));
    assert_int_equal(make().units.likely, GIB(10) / 4096);
}

/* max_total_tokens lowers the pool and never raises it; the pool is whole pages. */
static void sglang_tokens(void **state) {
    (void)state;
    b.scenario.engine.kind = VP_ENGINE_SGLANG;
    b.scenario.engine.block_size = 1;
    pin_overheads();
    measure(VP_M_AVAILABLE_KV, GIB(1) + 4096 * 37);
    assert_int_equal(make().units.likely, 262144 + 37);
    b.scenario.engine.block_size = 64;
    assert_int_equal(make().units.likely, 262144);
    b.scenario.engine.blocks_override = 1000;
    assert_int_equal(make().units.likely, 960);
    b.scenario.engine.blocks_override = 1000000;
    assert_int_equal(make().units.likely, 262144);
}

static void sglang_interval(void **state) {
    (void)state;
    b.scenario.engine.kind = VP_ENGINE_SGLANG;
    b.scenario.engine.block_size = 1;
    pin_overheads();
    measured->known[VP_M_NON_TORCH] = false;
    rules->non_torch = (struct vp_amount){GIB(1), GIB(2), GIB(5)};
    struct vp_engine_stage s = make();
    /* 0.9 x (80 - 5), 0.9 x (80 - 2), 0.9 x (80 - 1), each less 10 */
    assert_int_equal(s.available.low, GIB(75) * 9 / 10 - GIB(10));
    assert_near(s.available.likely, GIB(78) * 9 / 10 - GIB(10), 1);
    assert_near(s.available.high, GIB(79) * 9 / 10 - GIB(10), 1);
    b.scenario.hardware.reserved_bytes = GIB(100);
    assert_int_equal(make().available.high, 0);
}

/* ---- transformers ---- */

static void transformers(void **state) {
    (void)state;
    b.scenario.engine.kind = VP_ENGINE_TRANSFORMERS;
    pin_overheads();
    b.scenario.hardware.reserved_bytes = GIB(4);
    struct vp_engine_stage s = make();
    assert_int_equal(s.requested_bytes, GIB(76));
    assert_int_equal(s.usable_bytes, GIB(76));
    assert_int_equal(s.reserved_bytes, 0); /* nothing ahead of need */
    assert_true(s.graphs_in_budget);
    expect(&s.available, GIB(58), GIB(58), GIB(58));
    expect(&s.units, GIB(58), GIB(58), GIB(58)); /* bytes */
    b.scenario.hardware.memory = (struct vp_amount){GIB(70), GIB(80), GIB(90)};
    s = make();
    expect(&s.available, GIB(48), GIB(58), GIB(68));
    measure(VP_M_WEIGHTS, GIB(90));
    s = make();
    expect(&s.available, 0, 0, 0);
    assert_true(s.available_negative);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        T(regimes),         T(regimes_by_version),  T(logged_budgets),  T(interval),
        T(nothing_left),    T(overheads_by_layout), T(load_excess),     T(a_pin_replaces_its_rows),
        T(a_measured_pool), T(a_pool_in_bytes),     T(blocks_given),    T(no_cache),
        T(sglang),          T(sglang_states),       T(sglang_interval), T(sglang_tokens),
        T(transformers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
