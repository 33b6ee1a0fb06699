/* Answers for sglang and transformers: what more costs, what is told, what would help. */
#include "tests/unit/fixture.h"

#include <string.h>

#include "planner/doc/yaml.h"
#include "planner/import/finish.h"
#include "planner/import/scenario_reader.h"
#include "planner/plan/generate.h"
#include "planner/plan/plan.h"

#define LLAMA "model: llama-3.1-8b\nhardware: {gpu: rtx4090}\n"
#define NEW "engine: {name: transformers, version: '5.0'}\n"
#define OLD "engine: {name: transformers, version: '4.50'}\n"

static struct fixture f;
static struct vp_scenario s;
static struct vp_result r;

static int begin(void **state) {
    (void)state;
    fixture_begin(&f);
    f.ctx.profiles = "profiles";
    return 0;
}

static int end(void **state) {
    (void)state;
    fixture_end(&f);
    return 0;
}

static void plan(const char *text) {
    struct vp_node *root;
    fixture_clear(&f);
    assert_int_equal(vp_yaml_read(&f.ctx, &root, (struct vp_bytes){text, strlen(text)}, "run.yaml"),
                     VP_OK);
    assert_int_equal(vp_scenario_read(&f.ctx, &s, root, NULL, NULL, 0), VP_OK);
    assert_int_equal(vp_scenario_finish(&f.ctx, &s), VP_OK);
    assert_int_equal(vp_plan_run(&f.ctx, &r, &s), VP_OK);
}

static const struct vp_suggestion *suggested(const char *field) {
    for (uint32_t i = 0; i < r.suggestion_count; i++)
        if (strcmp(r.suggestions[i].patch_field, field) == 0)
            return &r.suggestions[i];
    return NULL;
}

static bool assumes(const char *field) {
    for (uint32_t i = 0; i < r.assumption_count; i++)
        if (strcmp(r.assumptions[i].field, field) == 0)
            return true;
    return false;
}

static int64_t headroom_of(uint64_t context, uint64_t sequences) {
    struct vp_scenario variant = vp_generate_variant(&s, context, sequences);
    struct vp_result other;
    assert_true(vp_plan_evaluate(&f.arena, &other, &variant));
    return other.headroom_bytes;
}

/* ---- transformers ---- */

/* Activations grow with the batch too: the maxima are those of whole plans. */
static void maxima_of_generate(void **state) {
    (void)state;
    plan(LLAMA NEW "serve: {context: 4096, concurrency: 2}");
    const struct vp_prices *p = &r.prices;
    assert_true(p->max_concurrency > 2 && p->max_context > 4096);
    assert_true(headroom_of(4096, p->max_concurrency) >= 0);
    assert_true(headroom_of(4096, p->max_concurrency + 1) < 0);
    assert_true(headroom_of(p->max_context, 2) >= 0);
    assert_true(headroom_of(p->max_context + 1, 2) < 0);
    assert_false(p->context_capped);
    /* a sequence costs its cache and its part of the forward pass */
    assert_true(p->per_sequence > UINT64_C(4096) * 131072);
    assert_int_equal(p->per_sequence, headroom_of(4096, 2) - headroom_of(4096, 3));
    assert_int_equal(p->per_1k_context, headroom_of(4096, 2) - headroom_of(5120, 2));
    assert_int_equal(r.kv.max_concurrency_milli, 1000 * p->max_concurrency);
    assert_true(headroom_of(r.kv.max_context, 1) >= 0);
    plan("model: qwen3-0.6b\nhardware: {gpu: mi300x}\n" NEW "serve: {context: 1024}");
    assert_true(r.prices.context_capped);
    assert_int_equal(r.prices.max_context, 40960);
}

static void nothing_fits_beside_the_weights(void **state) {
    (void)state;
    plan("model: llama-3.1-70b\nhardware: {gpu: rtx4090}\n" NEW "serve: {context: 4096}");
    assert_int_equal(r.verdict, VP_DOES_NOT_FIT);
    assert_int_equal(r.reason, VP_REASON_WEIGHTS);
    assert_int_equal(r.prices.max_concurrency, 0);
    assert_int_equal(r.prices.max_context, 0);
}

static void generate_runs_out(void **state) {
    (void)state;
    plan(LLAMA NEW "serve: {context: 8192, concurrency: 64}");
    assert_int_equal(r.verdict, VP_DOES_NOT_FIT);
    assert_int_equal(r.reason, VP_REASON_WEIGHTS); /* the forward pass alone leaves nothing */
    plan(LLAMA NEW "serve: {context: 8192, prompt_tokens: 512, concurrency: 12}");
    assert_int_equal(r.verdict, VP_DOES_NOT_FIT);
    assert_int_equal(r.reason, VP_REASON_CONCURRENCY);
    assert_non_null(strstr(r.reason_text, "generate would run out of memory: there is room for "));
    plan(LLAMA NEW "serve: {context: 8192, concurrency: 4}");
    assert_int_equal(r.verdict, VP_AT_RISK);
    assert_non_null(strstr(r.reason_text, "generate may run out of memory"));
    assert_true(assumes("tokens per batch"));
    assert_true(assumes("engine.args.max_length"));
    assert_false(assumes("engine.args.max_model_len"));
    assert_null(suggested("precision.kv_cache")); /* it has no 8-bit cache */
    assert_null(suggested("engine.args.max_num_seqs"));
    assert_string_equal(suggested("serve.concurrency")->to, "2");
}

static void sixteen_bit_is_suggested(void **state) {
    (void)state;
    plan(LLAMA OLD "serve: {context: 1024}");
    assert_int_equal(r.verdict, VP_DOES_NOT_FIT);
    const struct vp_suggestion *half = suggested("precision.compute");
    assert_non_null(half);
    assert_string_equal(half->from, "fp32");
    assert_string_equal(half->to, "bf16");
    uint64_t need = half->need_bytes;
    plan(LLAMA OLD "serve: {context: 1024}\nprecision: {compute: bf16}"); /* is what it says */
    assert_int_equal(r.devices[0].need.likely, need);
    assert_null(suggested("precision.compute"));
}

/* ---- sglang ---- */

static void pool_of_sglang(void **state) {
    (void)state;
    plan("model: llama-3.1-8b\nhardware: {gpu: mi300x}\nengine: sglang@0.5.7\n"
         "serve: {context: 32k, concurrency: 64}");
    assert_int_equal(r.reason, VP_REASON_CONCURRENCY);
    assert_non_null(strstr(r.reason_text, "the engine starts, but its cache holds "));
    assert_true(assumes("engine.args.context_length"));
    assert_true(assumes("engine.args.disable_radix_cache"));
    assert_null(suggested("engine.args.cuda_graph_max_bs")); /* the share would follow it */
    assert_non_null(suggested("precision.kv_cache"));
    plan("model: llama-3.1-8b\nhardware: {gpu: rtx4090}\nserve: {context: 128k}\n"
         "engine: {name: sglang, version: 0.5.7, args: {mem_fraction_static: 0.85}}\n");
    assert_int_equal(r.reason, VP_REASON_ADMISSION);
    assert_non_null(strstr(r.reason_text, "one sequence of context_length 131,072 needs"));
}

static void forward_passes_beside_the_share(void **state) {
    (void)state;
    plan("model: llama-3.1-8b\nhardware: {gpu: rtx4090}\nserve: {context: 4096}\n"
         "engine: {name: sglang, version: 0.5.7, args: {mem_fraction_static: 0.97}}\n");
    assert_int_equal(r.verdict, VP_AT_RISK);
    assert_int_equal(r.reason, VP_REASON_TRANSIENTS);
    const struct vp_suggestion *share = suggested("engine.args.mem_fraction_static");
    assert_non_null(share);
    assert_string_equal(share->from, "0.97");
    plan(
        vp_arena_printf(&f.arena,
                        "model: llama-3.1-8b\nhardware: {gpu: rtx4090}\nserve: {context: 4096}\n"
                        "engine: {name: sglang, version: 0.5.7, args: {mem_fraction_static: %s}}\n",
                        share->to));
    assert_int_equal(r.verdict, VP_FITS);
}

static void copies_and_attention_ranks(void **state) {
    (void)state;
    plan("model: qwen3-30b-a3b\nhardware: {gpu: h200}\nserve: {context: 4096}\n"
         "engine: {name: sglang, version: 2026-05, args: {tp: 2, dp: 2}}\n");
    assert_int_equal(r.devices[0].ranks, 4);
    uint64_t copy = r.report.weights.likely;
    plan("model: qwen3-30b-a3b\nhardware: {gpu: h200}\nserve: {context: 4096}\n"
         "engine: {name: sglang, version: 2026-05, args: {tp: 2}}\n");
    assert_int_equal(r.report.weights.likely, copy);
    plan("model: qwen3-30b-a3b\nhardware: {gpu: h200}\nserve: {context: 4096}\n"
         "engine: {name: sglang, version: 2026-05, args: {tp: 2, dp: 2, enable_dp_attention: "
         "true}}\n");
    assert_int_equal(r.devices[0].ranks, 2);
    assert_true(r.report.weights.likely > copy); /* attention whole on each */
}

/* Every copy, and every rank of data-parallel attention, has sequences of its own. */
static void ranks_share_the_sequences(void **state) {
    (void)state;
    static const char *const ARGS[] = {"tp: 4", "tp: 4, dp: 2",
                                       "tp: 4, dp: 4, enable_dp_attention: true"};
    static const uint64_t SEQUENCES[] = {64, 32, 16}, RANKS[] = {1, 2, 4};
    for (int i = 0; i < 3; i++) {
        plan(vp_arena_printf(&f.arena,
                             "model: qwen3-30b-a3b\nhardware: {gpu: h200}\n"
                             "serve: {context: 4096, concurrency: 64}\n"
                             "engine: {name: sglang, version: 2026-05, args: {%s}}\n",
                             ARGS[i]));
        assert_int_equal(r.devices[0].component[VP_C_KV_CACHE].likely,
                         SEQUENCES[i] * 4096 * r.kv.bytes_per_token);
        assert_int_equal(r.prices.max_concurrency, RANKS[i] * (r.kv.max_concurrency_milli / 1000));
    }
    plan("model: llama-3.1-8b\nhardware: {gpu: rtx4090}\nserve: {context: 8192, concurrency: 16}\n"
         "engine: {name: sglang, version: 0.5.7, args: {dp: 2, mem_fraction_static: 0.9}}\n");
    assert_int_equal(r.reason, VP_REASON_CONCURRENCY);
    assert_non_null(strstr(r.reason_text, "its caches hold "));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(maxima_of_generate),
        TEST(nothing_fits_beside_the_weights),
        TEST(generate_runs_out),
        TEST(sixteen_bit_is_suggested),
        TEST(pool_of_sglang),
        TEST(forward_passes_beside_the_share),
        TEST(copies_and_attention_ranks),
        TEST(ranks_share_the_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
