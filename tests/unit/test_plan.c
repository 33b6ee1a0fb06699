/* A finished scenario to its answer: devices, verdict and reason, what more would cost, what would
 * help. The card and the pinned overheads are those of test_engine_stage.c: 80 GiB, 72 asked for,
 * 10 + 5 + 1 taken and 2 of graphs, so that 56 GiB = 917,504 blocks of 65,536 bytes are left. A
 * sequence of 4096 takes 256 blocks = 16 MiB. */
#include "planner/plan/plan.h"

#include <string.h>

#include "planner/import/input.h"
#include "tests/unit/model_builder.h"

static struct builder b;
static struct vp_scenario *s;

static void measure(enum vp_measure what, uint64_t value) {
    s->measured.known[what] = true;
    s->measured.value[what] = value;
}

static int begin(void **state) {
    (void)state;
    builder_begin(&b);
    s = &b.scenario;
    b.model.hidden = 256;
    struct vp_block block = block_gqa(8, 8, 32);
    block.mlp = (struct vp_mlp){.kind = VP_MLP_GATED, .intermediate = 512};
    builder_layer(&b, block, 4);
    builder_ends(&b, 1024, false);
    measure(VP_M_WEIGHTS, GIB(10));
    measure(VP_M_ACTIVATION, GIB(5));
    measure(VP_M_NON_TORCH, GIB(1));
    measure(VP_M_GRAPHS, GIB(2));
    return 0;
}

static int end(void **state) {
    (void)state;
    builder_end(&b);
    return 0;
}

static const struct vp_result *run(void) {
    struct vp_result *result = VP_NEW(&b.f.arena, struct vp_result);
    assert_int_equal(vp_plan_run(&b.f.ctx, result, s), VP_OK);
    return result;
}

static void expect(const struct vp_result *r, enum vp_verdict verdict, enum vp_reason reason) {
    assert_int_equal(r->verdict, verdict);
    assert_int_equal(r->reason, reason);
}

/* ---- the answer ---- */

static void it_fits(void **state) {
    (void)state;
    const struct vp_result *r = run();
    expect(r, VP_FITS, VP_REASON_NONE);
    assert_string_equal(r->reason_text, "");
    assert_string_equal(r->mode, "serve");
    assert_int_equal(r->device_count, 1);
    const struct vp_device *d = &r->devices[0];
    assert_string_equal(d->id, "gpu0");
    assert_int_equal(d->capacity_bytes, GIB(80));
    assert_int_equal(d->usable_bytes, GIB(74));
    assert_int_equal(d->reserved_bytes, GIB(74));
    assert_int_equal(d->need.likely, GIB(18) + MIB(16)); /* all of them, and one sequence */
    assert_int_equal(r->headroom_bytes, GIB(56) - MIB(16));
    assert_int_equal(d->component[VP_C_KV_CACHE].likely, MIB(16));
    assert_int_equal(d->confidence[VP_C_WEIGHTS], VP_MEASURED_VALUE);
    assert_int_equal(d->confidence[VP_C_KV_CACHE], VP_EXACT);
    assert_true(d->present[VP_C_GRAPHS] && !d->present[VP_C_VISION]);
    assert_int_equal(d->peak_step, VP_STEP_CAPTURE);
    assert_int_equal(r->kv.blocks, 917504);
    assert_int_equal(r->kv.tokens, 917504 * 16);
    assert_int_equal(r->kv.max_concurrency_milli, 3584000);
    assert_int_equal(r->report.block_size, 16);
    assert_int_equal(r->report.kv_cache_tokens.likely, 917504 * 16);
    assert_int_equal(r->report.requested_bytes, GIB(72));
    assert_int_equal(r->report.estimated_max_model_len.likely, 4096); /* no more is asked */
    assert_int_equal(r->suggestion_count, 0);
    /* 4 x (4 x 256 x 256 + 3 x 512 x 256 + 512) + 2 x 1024 x 256 + 256 */
    assert_int_equal(r->params_total, 3148032);
    assert_int_equal(r->params_active, 3148032);
    assert_string_equal(vp_verdict_name(r->verdict), "fits");
    assert_string_equal(vp_verdict_name(VP_AT_RISK), "at-risk");
    assert_string_equal(vp_verdict_name(VP_DOES_NOT_FIT), "does-not-fit");
}

static void prices(void **state) {
    (void)state;
    b.model.max_position = 100000;
    s->serve.concurrency = 10;
    const struct vp_result *r = run();
    assert_int_equal(r->prices.per_1k_context, 10 * MIB(4)); /* 64 blocks for each */
    assert_int_equal(r->prices.per_sequence, MIB(16));
    assert_int_equal(r->prices.max_concurrency, 3584); /* 917,504 / 256 */
    assert_int_equal(r->prices.max_context, 100000);
    assert_true(r->prices.context_capped);
    s->serve.concurrency = 1000; /* 917 blocks each: 14,672 tokens */
    r = run();
    assert_int_equal(r->prices.max_context, 14672);
    assert_false(r->prices.context_capped);
    b.model.max_position = 0; /* not said: as far as the pool goes */
    s->serve.concurrency = 1;
    r = run();
    assert_int_equal(r->prices.max_context, 917504 * 16);
    assert_false(r->prices.context_capped);
}

static void first_order(void **state) {
    (void)state;
    s->parallel.tensor = 2;
    s->parallel.pipeline = 2;
    s->serve.concurrency = 8;
    const struct vp_result *r = run();
    /* whole model, tokens x width over four ranks */
    assert_int_equal(r->first_order.weights_bytes, 3148032 * 2 / 4);
    assert_int_equal(r->first_order.kv_bytes, 8 * UINT64_C(4096) * 512 * 2 * 4 / 4);
    assert_int_equal(r->first_order.activation_bytes, 8 * 4096 * 256 * 2 / 4);
    assert_int_equal(r->first_order.total_bytes, r->first_order.weights_bytes +
                                                     r->first_order.kv_bytes +
                                                     r->first_order.activation_bytes);
    assert_int_equal(r->first_order.misses_bytes, (int64_t)r->devices[r->worst].need.likely -
                                                      (int64_t)r->first_order.total_bytes);
}

/* States do not grow: a need there is, though tokens times width are beyond 64 bits. */
static void first_order_beyond_counting(void **state) {
    (void)state;
    builder_layer(&b, block_state(1000, VP_DTYPE_BF16), 4);
    s->serve.context = s->engine.max_model_len = UINT64_C(1) << 45;
    s->serve.concurrency = 1 << 10;
    const struct vp_result *r = run();
    expect(r, VP_FITS, VP_REASON_NONE);
    assert_int_equal(r->first_order.total_bytes, 0);
    s->serve.context = s->engine.max_model_len = UINT64_C(1) << 63; /* nor the tokens alone */
    assert_int_equal(run()->first_order.total_bytes, 0);
}

/* The fullest stage decides, and is named after its first rank. */
static void stages(void **state) {
    (void)state;
    memset(s->measured.known, 0, sizeof s->measured.known);
    s->parallel.tensor = 2;
    s->parallel.pipeline = 4;
    s->parallel.data = 2;
    s->hardware.count = 16;
    b.model.vocab = 500 * 1024; /* the ends weigh more than a layer */
    const struct vp_result *r = run();
    assert_int_equal(r->device_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(r->devices[i].ranks, 4);
        assert_int_equal(r->devices[i].first_rank, 4 * i);
        assert_int_equal(r->devices[i].stage, i);
    }
    assert_string_equal(r->devices[1].id, "gpu4");
    assert_int_equal(r->worst, 3); /* the head, and a norm more than the embedding's stage */
    assert_int_equal(r->report.weights.likely, r->devices[3].component[VP_C_WEIGHTS].likely);
    assert_true(r->devices[3].need.likely > r->devices[1].need.likely);
    /* the sampler runs on the last stage alone, yet is the figure that counts */
    assert_int_equal(r->report.activation_peak.likely,
                     r->devices[3].component[VP_C_ACTIVATIONS].likely);
}

/* ---- why not ---- */

/* V1 looks at free memory first: 72 GiB are asked for, 71 are free. */
static void others_hold_memory(void **state) {
    (void)state;
    s->hardware.reserved_bytes = GIB(8);
    expect(run(), VP_FITS, VP_REASON_NONE); /* 72 are free */
    s->hardware.reserved_bytes = GIB(9);
    const struct vp_result *r = run();
    expect(r, VP_DOES_NOT_FIT, VP_REASON_NO_FREE_MEMORY);
    assert_non_null(strstr(r->reason_text, "71.00 GiB are free"));
    assert_non_null(strstr(r->reason_text, "asks for 72.00 GiB; others hold 9.00 GiB"));
    s->hardware.reserved_bytes = GIB(200); /* more than the card has */
    r = run();
    expect(r, VP_DOES_NOT_FIT, VP_REASON_NO_FREE_MEMORY);
    assert_non_null(strstr(r->reason_text, "others hold 80.00 GiB"));
    s->hardware.reserved_bytes = GIB(9);
    s->engine.rules.budget = VP_VLLM_V1_USED;
    expect(run(), VP_DOES_NOT_FIT, VP_REASON_NO_FREE_MEMORY);
    /* V0 did not look, and ran out later: it takes 72 and 2, of which 5 are idle between batches */
    s->engine.rules.budget = VP_VLLM_V0;
    expect(run(), VP_AT_RISK, VP_REASON_NO_FREE_MEMORY);
    s->hardware.reserved_bytes = GIB(6);
    expect(run(), VP_FITS, VP_REASON_NONE);
    s->hardware.reserved_bytes = GIB(12);
    r = run();
    expect(r, VP_DOES_NOT_FIT, VP_REASON_NO_FREE_MEMORY);
    assert_non_null(strstr(r->reason_text, "does not look at free memory"));
    s->hardware.reserved_bytes = GIB(9);
    s->engine.rules.budget = VP_VLLM_V1;
    measure(VP_M_AVAILABLE_KV, GIB(20)); /* it did start */
    expect(run(), VP_FITS, VP_REASON_NONE);
}

static void weights_too_large(void **state) {
    (void)state;
    measure(VP_M_WEIGHTS, GIB(66));
    const struct vp_result *r = run();
    expect(r, VP_DOES_NOT_FIT, VP_REASON_WEIGHTS);
    assert_non_null(strstr(r->reason_text, "weights (66.00 GiB)"));
    assert_non_null(strstr(r->reason_text, "nothing of 72.00 GiB"));
    s->hardware.memory.high = GIB(85); /* a card of 80 to 85 GiB: perhaps */
    expect(run(), VP_AT_RISK, VP_REASON_WEIGHTS);
}

/* Without a cache it is the need that has to fit. */
static void weights_without_a_cache(void **state) {
    (void)state;
    builder_layer(&b, (struct vp_block){.norms = 1}, 3);
    expect(run(), VP_FITS, VP_REASON_NONE);
    measure(VP_M_WEIGHTS, GIB(70)); /* 70 + 5 + 1 + 2 of 74 */
    expect(run(), VP_DOES_NOT_FIT, VP_REASON_WEIGHTS);
    s->measured.known[VP_M_NON_TORCH] = false;
    s->engine.rules.non_torch = (struct vp_amount){MIB(10), GIB(1), GIB(2)};
    measure(VP_M_WEIGHTS, GIB(66) + MIB(500)); /* 73.5 to 75.5 */
    expect(run(), VP_AT_RISK, VP_REASON_WEIGHTS);
}

static void admission(void **state) {
    (void)state;
    s->engine.max_model_len = 20000000; /* 1,250,000 blocks; the pool has 917,504 */
    const struct vp_result *r = run();
    expect(r, VP_DOES_NOT_FIT, VP_REASON_ADMISSION);
    assert_non_null(strstr(r->reason_text, "20,000,000"));
    assert_non_null(strstr(r->reason_text, "14,680,064 tokens")); /* 917,504 x 16 */
    assert_int_equal(r->report.estimated_max_model_len.likely, 14680064);
    s->measured.known[VP_M_NON_TORCH] = false;
    s->engine.rules.non_torch = (struct vp_amount){0, GIB(1), GIB(2)};
    s->engine.max_model_len = s->serve.context = 14680064 + 16; /* one block more than likely */
    expect(run(), VP_AT_RISK, VP_REASON_ADMISSION);
}

static void concurrency(void **state) {
    (void)state;
    s->serve.concurrency = 3584; /* to the last block */
    expect(run(), VP_FITS, VP_REASON_NONE);
    s->serve.concurrency = 3585;
    const struct vp_result *r = run();
    expect(r, VP_DOES_NOT_FIT, VP_REASON_CONCURRENCY);
    assert_non_null(strstr(r->reason_text, "holds 3584.00 of 3,585 sequences of 4,096"));
    s->measured.known[VP_M_NON_TORCH] = false;
    s->engine.rules.non_torch = (struct vp_amount){MIB(900), GIB(1), GIB(2)};
    expect(run(), VP_AT_RISK, VP_REASON_CONCURRENCY);
}

/* Graphs on top of the budget: 79 asked for and 2 on top, less the 5 that the profile run has
 * given back; with 2 given back it is 81 - 2 of 80. */
static void graphs_on_top(void **state) {
    (void)state;
    s->engine.utilization_ppb = 987500000; /* 79 GiB */
    expect(run(), VP_FITS, VP_REASON_NONE);
    measure(VP_M_ACTIVATION, MIB(512));
    const struct vp_result *r = run();
    expect(r, VP_AT_RISK, VP_REASON_GRAPHS);
    assert_non_null(strstr(r->reason_text, "graphs (2.00 GiB) come on top of the 79.00 GiB"));
    s->engine.rules.budget = VP_VLLM_V1_GRAPHS; /* in the budget */
    expect(run(), VP_FITS, VP_REASON_NONE);
}

static void state_slots(void **state) {
    (void)state;
    struct vp_block kinds[] = {block_gqa(8, 8, 32), block_state(1 << 20, VP_DTYPE_FP32)};
    builder_layers(&b, kinds, (uint32_t[]){4, 12}, 2); /* pages of 4 MiB: 3584 blocks of 16 */
    s->engine.max_num_seqs = 3584;
    const struct vp_result *r = run();
    expect(r, VP_FITS, VP_REASON_NONE);
    s->engine.max_num_seqs = 3585;
    r = run();
    expect(r, VP_AT_RISK, VP_REASON_STATE_SLOTS);
    assert_non_null(strstr(r->reason_text, "max_num_seqs 3,585 exceeds the pool's 3,584"));
    s->engine.rules.budget = VP_VLLM_V0; /* V0 had no state pages */
    expect(run(), VP_FITS, VP_REASON_NONE);
}

/* A pool given in bytes or blocks is taken whatever is free: 10 + 1 + 2 and up to 5 beside it. */
static void pool_beyond_the_card(void **state) {
    (void)state;
    s->engine.kv_cache_bytes = GIB(62);
    expect(run(), VP_FITS, VP_REASON_NONE);
    s->engine.kv_cache_bytes = GIB(65); /* fits with the graphs, not with a whole forward pass */
    expect(run(), VP_AT_RISK, VP_REASON_NO_FREE_MEMORY);
    s->engine.kv_cache_bytes = GIB(68);
    const struct vp_result *r = run();
    expect(r, VP_DOES_NOT_FIT, VP_REASON_NO_FREE_MEMORY);
    assert_non_null(strstr(r->reason_text, "kv_cache_memory_bytes"));
    assert_non_null(strstr(r->reason_text, "80.00 GiB that are free"));
    s->hardware.reserved_bytes = GIB(10);
    s->engine.kv_cache_bytes = GIB(58);
    expect(run(), VP_DOES_NOT_FIT, VP_REASON_NO_FREE_MEMORY);
    s->hardware.reserved_bytes = 0;

    s->engine.kv_cache_bytes = 0;
    s->engine.blocks_override = 900000; /* 55 GiB */
    expect(run(), VP_FITS, VP_REASON_NONE);
    s->engine.blocks_override = 1200000; /* 73 GiB */
    r = run();
    expect(r, VP_DOES_NOT_FIT, VP_REASON_NO_FREE_MEMORY);
    assert_non_null(strstr(r->reason_text, "num_gpu_blocks_override"));
    s->engine.blocks_override = UINT64_C(1) << 60; /* beyond counting */
    expect(run(), VP_DOES_NOT_FIT, VP_REASON_NO_FREE_MEMORY);
    s->engine.blocks_override = 1200000;
    measure(VP_M_BLOCKS, 1200000); /* a run had them */
    expect(run(), VP_FITS, VP_REASON_NONE);
    s->measured.known[VP_M_BLOCKS] = false;
    measure(VP_M_AVAILABLE_KV, GIB(60));
    expect(run(), VP_FITS, VP_REASON_NONE);
}

/* SGLang: the rest of the card, 80 - 1 - 71.1, has to hold the forward passes and the graphs. */
static void transients(void **state) {
    (void)state;
    s->engine.kind = VP_ENGINE_SGLANG;
    s->engine.block_size = 1;
    expect(run(), VP_FITS, VP_REASON_NONE);
    s->engine.blocks_override = UINT64_C(1) << 40; /* max_total_tokens lowers the pool, no more */
    expect(run(), VP_FITS, VP_REASON_NONE);
    s->engine.blocks_override = 0;
    measure(VP_M_ACTIVATION, GIB(6));
    const struct vp_result *r = run();
    expect(r, VP_AT_RISK, VP_REASON_TRANSIENTS);
    assert_non_null(strstr(r->reason_text, "forward passes (6.00 GiB) and graphs (2.00 GiB)"));
    s->engine.utilization_ppb = 2000000000; /* a share that no card has: told, and no wrap */
    expect(run(), VP_AT_RISK, VP_REASON_TRANSIENTS);
}

/* ---- the scenario's own budget ---- */

static void own_budget(void **state) {
    (void)state;
    s->budget.bound[VP_BOUND_MEMORY] = (struct vp_limit){.given = true, .value = GIB(19)};
    s->budget.bound[VP_BOUND_HEADROOM] = (struct vp_limit){.given = true, .value = GIB(50)};
    s->budget.bound[VP_BOUND_CONTEXT] = (struct vp_limit){.given = true, .value = 4096};
    expect(run(), VP_FITS, VP_REASON_NONE);
    s->budget.bound[VP_BOUND_MEMORY] =
        (struct vp_limit){.given = true, .value = GIB(18)}; /* 16 MiB too little */
    const struct vp_result *r = run();
    expect(r, VP_DOES_NOT_FIT, VP_REASON_BUDGET);
    assert_non_null(
        strstr(r->reason_text, "budget is exceeded: memory 18.02 GiB (at most 18.00 GiB)"));
    assert_int_equal(r->suggestion_count, 0); /* it is a wish, no limit of the card */
    s->measured.known[VP_M_NON_TORCH] = false;
    s->engine.rules.non_torch = (struct vp_amount){MIB(100), GIB(1), GIB(2)};
    expect(run(), VP_AT_RISK, VP_REASON_BUDGET); /* 17.1 to 19 */
    s->budget.bound[VP_BOUND_MEMORY].given = false;
    s->budget.bound[VP_BOUND_HEADROOM] = (struct vp_limit){.given = true, .value = GIB(56)};
    expect(run(), VP_AT_RISK, VP_REASON_BUDGET); /* 55 to 56.9 */
    s->budget.bound[VP_BOUND_HEADROOM].value = GIB(57);
    expect(run(), VP_DOES_NOT_FIT, VP_REASON_BUDGET);
    s->budget.bound[VP_BOUND_HEADROOM].given = false;
    s->budget.bound[VP_BOUND_CONTEXT] = (struct vp_limit){.given = true, .value = 4097};
    expect(run(), VP_DOES_NOT_FIT, VP_REASON_BUDGET);
    s->budget.bound[VP_BOUND_CONTEXT].given = false;
    s->budget.component[VP_C_KV_CACHE] = (struct vp_limit){.given = true, .value = GIB(16)};
    s->budget.bound[VP_BOUND_CONCURRENCY] = (struct vp_limit){.given = true, .value = 5000};
    r = run();
    expect(r, VP_DOES_NOT_FIT, VP_REASON_BUDGET);
    assert_null(strstr(r->reason_text, "kv_cache"));
    assert_non_null(strstr(r->reason_text, "min_concurrency"));
    s->budget.bound[VP_BOUND_CONCURRENCY].given = false;
    s->budget.component[VP_C_KV_CACHE].value = 1;
    r = run();
    expect(r, VP_DOES_NOT_FIT, VP_REASON_BUDGET);
    assert_non_null(strstr(r->reason_text, "(at most 1 B)"));
    s->budget.component[VP_C_KV_CACHE].given = false;
    /* the first reason is told */
    s->budget.bound[VP_BOUND_CONTEXT].given = false;
    s->serve.concurrency = 5000;
    s->budget.bound[VP_BOUND_HEADROOM] = (struct vp_limit){.given = true, .value = 1};
    expect(run(), VP_DOES_NOT_FIT, VP_REASON_CONCURRENCY);
    /* logs that contradict each other: blocks for 200 sequences in a pool of 1 GiB */
    s->serve.concurrency = 200;
    measure(VP_M_AVAILABLE_KV, GIB(1));
    measure(VP_M_BLOCKS, 917504);
    r = run();
    expect(r, VP_DOES_NOT_FIT, VP_REASON_BUDGET);
    assert_non_null(strstr(r->reason_text, "headroom -"));
    assert_non_null(strstr(r->reason_text, "(at least 1 B)"));
}

/* ---- what exceeds 64 bits ---- */

static void overflow_is_an_error(void **state) {
    (void)state;
    struct vp_result result;
    static const uint64_t SEQUENCES[] = {
        UINT64_C(1) << 45,       /* the cache's bytes exceed 64 bits */
        (UINT64_C(1) << 40) - 1, /* they fit just so, but not together with the weights */
        (UINT64_C(1) << 39) + 5, /* the sum fits, but headroom is a signed number */
    };
    for (size_t i = 0; i < sizeof SEQUENCES / sizeof *SEQUENCES; i++) {
        fixture_clear(&b.f);
        s->serve.concurrency = SEQUENCES[i];
        assert_false(vp_plan_evaluate(&b.f.arena, &result, s));
        assert_int_equal(vp_plan_run(&b.f.ctx, &result, s), VP_ERR_INPUT);
        fixture_expect(&b.f, VP_D_OVERFLOW, "exceeds 64 bits");
    }
    s->serve.concurrency = UINT64_C(1) << 38;
    assert_true(vp_plan_evaluate(&b.f.arena, &result, s));
    expect(&result, VP_DOES_NOT_FIT, VP_REASON_CONCURRENCY);
}

/* ---- checkpoints ---- */

static bool told(enum vp_diag_id id) {
    for (uint32_t i = 0; i < b.f.diags.count; i++)
        if (b.f.diags.items[i].id == id)
            return true;
    return false;
}

static void checkpoint_against_config(void **state) {
    (void)state;
    uint64_t table[6][VP_SHARD_EXPERT + 1] = {{0}};
    uint64_t stored = 3148032 * 2;
    table[1][VP_SHARD_NONE] = stored;
    b.model.checkpoint =
        (struct vp_checkpoint){.known = true, .bytes = table, .total_bytes = stored};
    run();
    assert_false(told(VP_D_WEIGHTS_DISAGREE));
    b.model.checkpoint.total_bytes += stored / 1000; /* just within a thousandth */
    run();
    assert_false(told(VP_D_WEIGHTS_DISAGREE));
    b.model.checkpoint.skipped_bytes = stored / 2; /* not loaded */
    run();
    fixture_expect(&b.f, VP_D_WEIGHTS_DISAGREE, "the checkpoint's tensors take");
}

/* ---- what would help ---- */

static const struct vp_suggestion *suggested(const struct vp_result *r, const char *field) {
    for (uint32_t i = 0; i < r->suggestion_count; i++)
        if (strcmp(r->suggestions[i].patch_field, field) == 0)
            return &r->suggestions[i];
    return NULL;
}

static void suggestions_by_hand(void **state) {
    (void)state;
    s->serve.concurrency = 3600; /* 3584 fit */
    const struct vp_result *r = run();
    const struct vp_suggestion *fewer = suggested(r, "serve.concurrency");
    assert_non_null(fewer);
    assert_string_equal(fewer->to, "3584");
    assert_string_equal(fewer->speed, "requests wait");
    assert_int_equal(fewer->headroom_bytes, 0);
    const struct vp_suggestion *shorter = suggested(r, "serve.context");
    assert_non_null(shorter);
    assert_string_equal(shorter->to, "3840"); /* 254 blocks each, to whole 256 tokens */
    const struct vp_suggestion *fp8 = suggested(r, "precision.kv_cache");
    assert_non_null(fp8);
    assert_string_equal(fp8->from, "bf16");
    assert_string_equal(fp8->to, "fp8");
    assert_null(suggested(r, "engine.args.max_num_seqs")); /* pinned: changes nothing */
    s->precision.kv_cache = VP_DTYPE_FP8;                  /* there already */
    s->serve.concurrency = 7200;
    assert_null(suggested(run(), "precision.kv_cache"));
}

/* Each suggestion, applied as the user would, gives a plan that fits. */
static void suggestions_hold(void **state) {
    (void)state;
    static const char *const YAML[] = {
        "model: llama-3.1-70b\nhardware: {gpu: h100-sxm}\nserve: {context: 8192}\n",
        "model: llama-3-8b\nhardware: {gpu: rtx4090}\nserve: {context: 8192, concurrency: 64}\n",
        "model: llama-3-8b\nhardware: {gpu: t4}\nserve: {context: 8192, concurrency: 4}\n",
        "model: qwen3-30b-a3b\nhardware: {gpu: r9700}\nserve: {context: 16384, concurrency: 8}\n",
        "model: phi-3-medium\nhardware: {gpu: rtx4070ti-super}\nparallel: {tensor: 2}\n"
        "serve: {context: 4096, concurrency: 8}\n",
        "model: gemma-3-27b\nhardware: {gpu: mi210}\nserve: {context: 65536, concurrency: 16}\n",
        "model: qwen3.5-35b-a3b\nhardware: {gpu: mi210}\nserve: {context: 65536}\n",
        "model: deepseek-v3\nhardware: {gpu: mi300x}\nparallel: {tensor: 4}\n"
        "serve: {context: 16384, concurrency: 64}\n",
        "model: gpt-oss-120b\nhardware: {gpu: a100-80-sxm}\nserve: {context: 65536}\n"
        "engine: {name: vllm, args: {max_num_seqs: 1024}}\n",
        "model: llama-3-8b\nhardware: {gpu: rtx4090}\nengine: {name: sglang}\n"
        "serve: {context: 8192, concurrency: 16}\n",
        "model: llama-3.1-70b\nhardware: {gpu: mi300x}\nengine: {name: sglang}\n"
        "serve: {context: 32768, concurrency: 16}\n",
        "model: llama-3-8b\nhardware: {gpu: rtx4090}\nengine: {name: transformers}\n"
        "serve: {context: 8192, concurrency: 16}\n",
        "model: llama-3-8b\nhardware: {gpu: t4}\nengine: {name: transformers}\n"
        "serve: {context: 4096}\n",
    };
    uint32_t tried = 0;
    for (size_t i = 0; i < sizeof YAML / sizeof *YAML; i++) {
        struct fixture f;
        fixture_begin(&f);
        const struct vp_result *r = plan_yaml(&f, YAML[i]);
        if (r->verdict == VP_FITS)
            fail_msg("%sfits as it is", YAML[i]);
        assert_true(strlen(r->reason_text) > 0);
        for (uint32_t k = 0; k < r->suggestion_count; k++) {
            const struct vp_suggestion *x = &r->suggestions[k];
            const struct vp_result *then =
                plan_yaml_with(&f, YAML[i], x->patch_field, x->patch_value);
            if (then->verdict != VP_FITS)
                fail_msg("%s%s = %s does not help", YAML[i], x->patch_field, x->patch_value);
            assert_int_equal(then->devices[then->worst].need.likely, x->need_bytes);
            /* SGLang's default static share follows the number of ranks: up to 128 MiB each */
            bool follows = then->scenario->engine.kind == VP_ENGINE_SGLANG;
            int64_t apart = then->headroom_bytes - x->headroom_bytes;
            assert_in_range(apart < 0 ? -apart : apart, 0, follows ? MIB(256) : 0);
            assert_string_equal(x->to, x->patch_value);
            tried++;
        }
        fixture_end(&f);
    }
    assert_true(tried >= 10);
}

/* Four ranks cannot share ten KV heads: not suggested, though forty heads would divide. */
static void ranks_that_divide(void **state) {
    (void)state;
    static const char YAML[] = "model: phi-3-medium\nhardware: {gpu: rtx4070ti-super}\n"
                               "serve: {context: 4096, concurrency: 8}\n";
    const struct vp_result *r = plan_yaml_with(&b.f, YAML, "parallel.tensor", "2");
    assert_int_equal(r->verdict, VP_DOES_NOT_FIT);
    assert_null(suggested(r, "parallel.tensor"));

    memset(s->measured.known, 0, sizeof s->measured.known);
    builder_ends(&b, 1 << 20, false); /* an embedding of 512 MiB, as much of a head */
    b.model.hidden = 16384;
    s->hardware.memory_bytes = GIB(80);
    s->hardware.count = 1;
    struct vp_block block = block_gqa(8, 2, 32);
    builder_layer(&b, block, 20);
    measure(VP_M_ACTIVATION, 0);
    s->hardware.memory_bytes = s->hardware.memory.low = s->hardware.memory.likely =
        s->hardware.memory.high = GIB(70);
    r = run(); /* 64 GiB of ends do not fit into 63 */
    expect(r, VP_DOES_NOT_FIT, VP_REASON_WEIGHTS);
    const struct vp_suggestion *ranks = suggested(r, "parallel.tensor");
    assert_non_null(ranks);
    assert_string_equal(ranks->to, "2");
    assert_string_equal(ranks->money, "twice the GPUs");
    s->hardware.count = 2; /* already there */
    ranks = suggested(run(), "parallel.tensor");
    assert_non_null(ranks);
    assert_string_equal(ranks->money, "none");
    static const struct {
        struct vp_attention attention;
        struct vp_mlp mlp;
        struct vp_moe moe;
    } ODD[] = {
        {.attention = {.kind = VP_ATTENTION_GQA,
                       .heads = 3,
                       .kv_heads = 3,
                       .head_dim = 32,
                       .v_head_dim = 32}},
        {.attention = {.kind = VP_ATTENTION_GQA,
                       .heads = 6,
                       .kv_heads = 3,
                       .head_dim = 32,
                       .v_head_dim = 32}},
        {.attention = {.kind = VP_ATTENTION_LINEAR,
                       .linear = VP_LINEAR_MAMBA2,
                       .value_heads = 3,
                       .value_dim = 8,
                       .key_heads = 1,
                       .key_dim = 8,
                       .conv_kernel = 4,
                       .conv_channels = 40,
                       .state_elements = 192}},
        {.attention = {.kind = VP_ATTENTION_LINEAR,
                       .linear = VP_LINEAR_GATED_DELTA,
                       .value_heads = 6,
                       .value_dim = 8,
                       .key_heads = 3,
                       .key_dim = 8,
                       .conv_kernel = 4,
                       .conv_channels = 96,
                       .state_elements = 384}},
        {.mlp = {.kind = VP_MLP_GATED, .intermediate = 129}},
        {.moe = {.kind = VP_MLP_GATED, .experts = 4, .top_k = 1, .intermediate = 65}},
        {.moe = {.kind = VP_MLP_GATED,
                 .experts = 4,
                 .top_k = 1,
                 .intermediate = 64,
                 .shared_intermediate = 65}},
    };
    for (size_t i = 0; i < sizeof ODD / sizeof *ODD; i++) {
        block =
            (struct vp_block){.attention = ODD[i].attention, .mlp = ODD[i].mlp, .moe = ODD[i].moe};
        builder_layer(&b, block, 2);
        assert_null(suggested(run(), "parallel.tensor"));
    }
    /* whole experts may have any width */
    block = (struct vp_block){.moe = ODD[5].moe};
    builder_layer(&b, block, 2);
    s->engine.expert_parallel = true;
    assert_non_null(suggested(run(), "parallel.tensor"));
    block = block_state(1000, VP_DTYPE_BF16); /* and a state given in numbers says nothing */
    builder_layer(&b, block, 2);
    assert_non_null(suggested(run(), "parallel.tensor"));
}

/* ---- what was not said ---- */

static void assumptions(void **state) {
    (void)state;
    const struct vp_result *r =
        plan_yaml(&b.f, "model: llama-3-8b\nhardware: {gpu: mi300x}\nserve: {context: 4096}\n");
    bool memory = false, length = false, overheads = false;
    for (uint32_t i = 0; i < r->assumption_count; i++) {
        const struct vp_assumption *a = &r->assumptions[i];
        assert_true(strlen(a->value) > 0 && a->why != NULL);
        assert_string_not_equal(a->field, "serve.context"); /* it was said */
        memory |= strcmp(a->field, "hardware.memory") == 0 && a->origin == VP_ORIGIN_PROFILE;
        length |= strcmp(a->field, "engine.args.max_model_len") == 0 &&
                  a->origin == VP_ORIGIN_DERIVED && strcmp(a->value, "4096") == 0;
        overheads |= strcmp(a->field, "engine overheads") == 0;
    }
    assert_true(memory && length && overheads);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        T(it_fits),
        T(prices),
        T(first_order),
        T(first_order_beyond_counting),
        T(stages),
        T(others_hold_memory),
        T(weights_too_large),
        T(weights_without_a_cache),
        T(admission),
        T(concurrency),
        T(graphs_on_top),
        T(state_slots),
        T(pool_beyond_the_card),
        T(transients),
        T(own_budget),
        T(overflow_is_an_error),
        T(checkpoint_against_config),
        T(suggestions_by_hand),
        T(suggestions_hold),
        T(ranks_that_divide),
        T(assumptions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
