/* A variant must be what reading the input anew with the same settings gives: figures, texts and
 * diagnostics, byte by byte, whatever was made before it and is still remembered. */
#include "tests/unit/fixture.h"

#include <stdio.h>
#include <string.h>

#include "api/sweep.h"
#include "planner/plan/plan.h"
#include "reports/report.h"

enum { EACH = 12, MOST_CHANGES = 4 };

/* Values that fields of the examples may take: good ones, and such as some scenarios refuse. */
static const struct {
    const char *path, *values[6];
} CHANGES[] = {
    {"hardware.gpu", {"mi300x", "h200", "r9700", "rx7900xtx", "nosuch"}},
    {"hardware.count", {"1", "2", "8", "16"}},
    {"hardware.memory", {"100 GiB", "15 GiB"}},
    {"hardware.reserved", {"3 GiB"}},
    {"parallel.tensor", {"1", "2", "3", "8"}},
    {"parallel.pipeline", {"1", "2"}},
    {"parallel.data", {"1", "2"}},
    {"parallel.zero", {"0", "1", "3"}},
    {"parallel.fsdp", {"true", "false"}},
    {"precision.weights", {"bf16", "fp8", "int4", "q4_k", "mxfp4", "pf8"}},
    {"precision.kv_cache", {"auto", "fp8", "q8_0"}},
    {"precision.keep", {"[embedding]", "[norm, router]"}},
    {"serve.context", {"1k", "32k", "131072", "x"}},
    {"serve.concurrency", {"1", "7", "64"}},
    {"serve.prompt_tokens", {"100", "4k"}},
    {"engine.name", {"vllm", "sglang", "llama.cpp", "transformers"}},
    {"engine.version", {"0.11", "0.19", "b6500", "4.50"}},
    {"engine.args.gpu_memory_utilization", {"0.8", "0.95", "2"}},
    {"engine.args.max_num_batched_tokens", {"2048", "16384"}},
    {"engine.args.max_num_seqs", {"8", "512"}},
    {"engine.args.block_size", {"32"}},
    {"engine.args.enforce_eager", {"true"}},
    {"engine.args.kv_cache_dtype", {"fp8"}},
    {"engine.args.n_gpu_layers", {"10", "999"}},
    {"engine.env.VLLM_ROCM_USE_AITER", {"1", "0"}},
    {"engine.env.PYTORCH_ALLOC_CONF", {"expandable_segments:True"}},
    {"model", {"llama-3.1-8b", "qwen3-30b-a3b", "nosuch-model"}},
    {"model.num_hidden_layers", {"3", "0"}},
    {"train.micro_batch", {"1", "2"}},
    {"train.sequence_length", {"1024", "8k"}},
    {"train.recompute", {"none", "full"}},
    {"train.optimizer", {"adamw", "lion", "sgd"}},
    {"train.lora.rank", {"8"}},
    {"measured.weights_gib", {"20"}},
    {"budget.headroom", {"2 GiB"}},
    {"serve.contxt", {"1"}},
};
enum { CHANGE_COUNT = sizeof CHANGES / sizeof *CHANGES };

static uint32_t turn;

static uint32_t pick(uint32_t count) {
    turn = turn * 1664525 + 1013904223;
    return (turn >> 8) % count;
}

/* Distinct fields, as the command line has them. */
static size_t some_changes(struct vp_setting out[MOST_CHANGES]) {
    size_t n = 0, wanted = 1 + pick(MOST_CHANGES);
    while (n < wanted) {
        uint32_t at = pick(CHANGE_COUNT), values = 0;
        bool known = false;
        for (size_t i = 0; i < n; i++)
            known |= strcmp(out[i].path, CHANGES[at].path) == 0;
        while (values < 6 && CHANGES[at].values[values])
            values++;
        if (!known)
            out[n++] = (struct vp_setting){.path = CHANGES[at].path,
                                           .value = CHANGES[at].values[pick(values)]};
    }
    return n;
}

/* The answer as text: the result, or why there is none. */
static const char *answer(struct vp_ctx *ctx, enum vp_status status,
                          const struct vp_scenario *scenario) {
    struct vp_buf out = {.arena = ctx->arena};
    struct vp_json json = vp_json_begin(&out);
    struct vp_result *result = VP_NEW(ctx->arena, struct vp_result);
    vp_buf_printf(&out, "%d ", (int)status);
    if (status == VP_OK && vp_plan_run(ctx, result, scenario) == VP_OK) {
        result->diags = ctx->diags;
        vp_report_json(&json, result);
    } else {
        vp_report_diagnostics(&out, ctx->diags, false);
    }
    return vp_buf_text(&out);
}

static struct vp_ctx fresh(const struct vp_ctx *ctx) {
    struct vp_ctx own = *ctx;
    own.diags = VP_NEW(ctx->arena, struct vp_diags);
    own.diags->arena = ctx->arena;
    return own;
}

static void compare(const struct vp_variants *variants, struct vp_ctx *outer, const char *input,
                    const struct vp_setting *changes, size_t count) {
    struct vp_arena_mark mark = vp_arena_mark(outer->arena);
    const struct vp_scenario *made = NULL;
    struct vp_scenarios read = {0};
    struct vp_ctx a = fresh(outer), b = fresh(outer);
    enum vp_status status = vp_variants_make(variants, &a, &made, changes, count);
    const char *got = answer(&a, status, made);
    status = vp_input_read(&b, &read, input, changes, count);
    const char *want = answer(&b, status, status == VP_OK ? read.items[0] : NULL);
    if (strcmp(got, want) != 0)
        for (size_t i = 0; i < count; i++)
            print_error("%s: %s=%s\n", input, changes[i].path, changes[i].value);
    assert_string_equal(got, want);
    vp_arena_rewind(outer->arena, mark);
}

static void same_as_reading(const char *input) {
    struct fixture f;
    struct vp_variants *variants;
    struct vp_setting changes[MOST_CHANGES];
    fixture_begin(&f);
    f.ctx.profiles = "profiles";
    vp_variants_open(&f.ctx, &variants, input, NULL, 0); /* refused: some variants are not */
    assert_true(vp_variants_readable(variants));
    compare(variants, &f.ctx, input, NULL, 0);
    for (int i = 0; i < EACH; i++)
        compare(variants, &f.ctx, input, changes, some_changes(changes));
    vp_variants_close(variants);
    fixture_end(&f);
}

static void every_example(void **state) {
    static const char *const NAMES[] = {
        "mi210-30b-16k",           "mi250-8b-int8",          "mi300x-70b-fp8",
        "mi300x8-deepseek-v3",     "mi300x-gpt-oss-120b",    "mi300x8-deepseek-v3-sglang",
        "r9700-llama-8b-generate", "mi300x8-70b-train-full", "rx7900xtx-8b-qlora",
        "mi250x-70b-megatron",     "rx7900xtx-qwen3-30b-q4k"};
    (void)state;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        char input[100];
        snprintf(input, sizeof input, "examples.yaml#%s", NAMES[i]);
        same_as_reading(input);
    }
}

static void other_inputs(void **state) {
    (void)state;
    same_as_reading("tests/fixtures/tiny-llama");
    same_as_reading("tests/fixtures/one.yaml");
    same_as_reading("tests/fixtures/train-pipeline.yaml");
}

/* ---- what is opened ---- */

static void several_are_refused(void **state) {
    struct fixture f;
    struct vp_variants *variants;
    (void)state;
    fixture_begin(&f);
    f.ctx.profiles = "profiles";
    assert_int_equal(vp_variants_open(&f.ctx, &variants, "examples.yaml", NULL, 0), VP_ERR_INPUT);
    assert_false(vp_variants_readable(variants));
    fixture_expect(&f, VP_D_BAD_OPTION, "one scenario is wanted");
    vp_variants_close(variants);
    fixture_end(&f);
}

/* Without a GPU the scenario is refused, but not its variants. */
static void lacking_is_readable(void **state) {
    static const struct vp_setting GPU = {"hardware.gpu", "mi300x", NULL};
    const struct vp_scenario *made = NULL;
    struct fixture f;
    struct vp_variants *variants;
    (void)state;
    fixture_begin(&f);
    f.ctx.profiles = "profiles";
    assert_int_equal(vp_variants_open(&f.ctx, &variants, "llama-3.1-8b", NULL, 0), VP_ERR_INPUT);
    assert_true(vp_variants_readable(variants));
    assert_int_equal(vp_variants_make(variants, &f.ctx, &made, &GPU, 1), VP_OK);
    assert_string_equal(made->hardware.gpu.id, "mi300x");
    vp_variants_close(variants);
    fixture_end(&f);
}

/* What is wrong is still there to be told when the variants are closed. */
static void diagnostics_outlive(void **state) {
    static const struct vp_setting BAD = {"model.num_hidden_layers", "x", NULL};
    const struct vp_scenario *made = NULL;
    struct fixture f;
    struct vp_variants *variants;
    (void)state;
    fixture_begin(&f);
    f.ctx.profiles = "profiles";
    assert_int_equal(vp_variants_open(&f.ctx, &variants, "examples.yaml#mi300x-70b-fp8", NULL, 0),
                     VP_OK);
    for (int i = 0; i < 2; i++) {
        fixture_clear(&f);
        assert_int_equal(vp_variants_make(variants, &f.ctx, &made, &BAD, 1), VP_ERR_INPUT);
    }
    vp_variants_close(variants);
    fixture_expect(&f, VP_D_MODEL_FIELD, "num_hidden_layers");
    fixture_end(&f);
}

/* ---- threads ---- */

/* All lines of a sweep. */
static const char *lines_of(struct vp_ctx *ctx, const struct vp_sweep *sweep, unsigned threads) {
    static struct vp_sweep_point points[VP_SWEEP_CHUNK];
    struct vp_buf out = {.arena = ctx->arena};
    struct vp_sweeper *sweeper = vp_sweeper_new(ctx, sweep, threads);
    uint64_t total = sweep->grid->total;
    assert_non_null(sweeper);
    assert_true(total <= VP_SWEEP_CHUNK);
    assert_int_equal(vp_sweeper_run(sweeper, points, 0, (size_t)total), VP_OK);
    for (size_t i = 0; i < total; i++)
        vp_buf_add_n(&out, points[i].line, points[i].size);
    vp_sweeper_free(sweeper);
    return vp_buf_text(&out);
}

static void threads_agree(void **state) {
    static const char *const VARY[] = {"hardware.gpu=mi300x,h200,r9700", "parallel.tensor=1..8+1",
                                       "precision.weights=checkpoint,fp8,int4",
                                       "serve.context=1k..128k*2"};
    const char *fields[4];
    struct fixture f;
    struct vp_grid grid;
    struct vp_sweep sweep = {.grid = &grid, .form = {.latency = true, .fields = fields}};
    struct vp_variants *variants;
    (void)state;
    fixture_begin(&f);
    f.ctx.profiles = "profiles";
    assert_int_equal(vp_variants_open(&f.ctx, &variants, "examples.yaml#mi300x-70b-fp8", NULL, 0),
                     VP_OK);
    assert_int_equal(vp_grid_read(&f.ctx, &grid, "--vary", VARY, 4), VP_OK);
    sweep.variants = variants;
    sweep.form.field_count = grid.field_count;
    for (size_t i = 0; i < grid.field_count; i++)
        fields[i] = vp_grid_path(&grid, i);
    sweep.form.sweep = "0";
    const char *one = lines_of(&f.ctx, &sweep, 1);
    for (unsigned threads = 2; threads <= 8; threads *= 2)
        assert_string_equal(lines_of(&f.ctx, &sweep, threads), one);
    vp_variants_close(variants);
    fixture_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_example),       cmocka_unit_test(other_inputs),
        cmocka_unit_test(several_are_refused), cmocka_unit_test(lacking_is_readable),
        cmocka_unit_test(diagnostics_outlive), cmocka_unit_test(threads_agree)};
    return cmocka_run_group_tests_name("variants", tests, NULL, NULL);
}
