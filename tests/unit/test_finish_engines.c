/* What sglang and transformers scenarios are completed to: defaults, derived values, layouts. */
#include "tests/unit/fixture.h"

#include <string.h>

#include "planner/doc/yaml.h"
#include "planner/import/finish.h"
#include "planner/import/scenario_reader.h"

#define SIZES                                                                                      \
    "model_type: llama, hidden_size: 64, intermediate_size: 128, num_hidden_layers: 4,\n"          \
    "  num_attention_heads: 8, num_key_value_heads: 2, vocab_size: 1000,\n"                        \
    "  max_position_embeddings: 4096"
#define MODEL "model: {" SIZES ", torch_dtype: bfloat16}\n"
#define MOE                                                                                        \
    "model: {model_type: qwen3_moe, hidden_size: 64, intermediate_size: 96, vocab_size: 1000,\n"   \
    "  moe_intermediate_size: 96, num_hidden_layers: 2, num_attention_heads: 8,\n"                 \
    "  num_key_value_heads: 2, head_dim: 8, num_experts: 8, num_experts_per_tok: 2,\n"             \
    "  max_position_embeddings: 4096}\n"
#define GPU "hardware: {gpu: mi300x}\n"
#define SGLANG "engine: {name: sglang, version: 0.5.7, args: {"
#define GENERATE "engine: {name: transformers, version: '5.0', args: {"

static struct fixture f;
static struct vp_scenario s;

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

static enum vp_status finish(const char *text) {
    struct vp_node *root;
    fixture_clear(&f);
    assert_int_equal(vp_yaml_read(&f.ctx, &root, (struct vp_bytes){text, strlen(text)}, "run.yaml"),
                     VP_OK);
    assert_int_equal(vp_scenario_read(&f.ctx, &s, root, NULL, NULL, 0), VP_OK);
    return vp_scenario_finish(&f.ctx, &s);
}

static void expect(enum vp_field field, const char *value, enum vp_origin origin) {
    assert_string_equal(vp_field_value(&f.arena, &s, field), value);
    assert_int_equal(s.source[field].origin, origin);
    if (origin < VP_ORIGIN_FILE)
        assert_non_null(s.source[field].why);
}

static const struct vp_diag *refused(const char *text, enum vp_diag_id id, const char *words) {
    assert_int_equal(finish(text), VP_ERR_INPUT);
    return fixture_expect(&f, id, words);
}

/* No reason or message of a scenario names another engine. */
static void says_only(const char *engine) {
    for (int i = 0; i < VP_FIELD_COUNT; i++) {
        const char *why = s.source[i].origin < VP_ORIGIN_FILE ? s.source[i].why : NULL;
        assert_false(why && strcmp(engine, "vllm") != 0 && strstr(why, "vllm"));
        if (s.source[i].origin != VP_ORIGIN_UNSET)
            assert_non_null(vp_field_label(s.engine.kind, (enum vp_field)i));
    }
    for (uint32_t i = 0; i < f.diags.count; i++)
        assert_null(strstr(f.diags.items[i].message, "vllm"));
}

/* ---- sglang ---- */

static void defaults_of_sglang(void **state) {
    (void)state;
    assert_int_equal(finish(MODEL GPU "engine: {name: sglang}"), VP_OK);
    assert_int_equal(s.source[VP_F_VERSION].origin, VP_ORIGIN_DEFAULT);
    expect(VP_F_MAX_MODEL_LEN, "4096", VP_ORIGIN_DEFAULT);
    expect(VP_F_BATCHED_TOKENS, "16384", VP_ORIGIN_DEFAULT);
    expect(VP_F_MAX_NUM_SEQS, "512", VP_ORIGIN_DEFAULT);
    expect(VP_F_BLOCK_SIZE, "1", VP_ORIGIN_DEFAULT);
    expect(VP_F_EAGER, "false", VP_ORIGIN_DEFAULT);
    expect(VP_F_PREFIX_CACHING, "false", VP_ORIGIN_DEFAULT); /* disable_radix_cache */
    assert_true(s.engine.prefix_caching && s.engine.chunked_prefill);
    /* settings that it does not have, or that say nothing of this model */
    assert_int_equal(s.source[VP_F_CHUNKED_PREFILL].origin, VP_ORIGIN_UNSET);
    assert_int_equal(s.source[VP_F_HYBRID_OFF].origin, VP_ORIGIN_UNSET);
    assert_int_equal(s.source[VP_F_WINDOW_SHARE].origin, VP_ORIGIN_UNSET);
    says_only("sglang");
}

/* Of the card's class and the tensor-parallel ranks (server_args.py of those versions). */
static void batches_by_card_and_version(void **state) {
    (void)state;
    static const struct {
        const char *hardware, *version, *tensor, *chunk, *batch;
    } WANT[] = {
        {"rtx4090", "0.5.7", "1", "2048", "24"},       {"rtx4090", "0.5.7", "4", "2048", "80"},
        {"l40s", "0.5.7", "1", "4096", "32"},          {"l40s", "0.5.7", "4", "4096", "160"},
        {"h100-sxm", "0.5.7", "2", "8192", "256"},     {"h100-sxm", "0.5.7", "8", "8192", "512"},
        {"h200", "2026-05", "1", "8192", "256"},       {"mi300x", "0.5.7", "1", "16384", "512"},
        {"rtx4080", "0.5.7", "1", "2048", "8"},        {"h100-sxm", "0.4.9", "1", "8192", "160"},
        {"mi300x", "2025-07-30", "1", "16384", "256"}, {"rtx4090", "0.4.9", "1", "2048", "8"},
    };
    for (size_t i = 0; i < sizeof WANT / sizeof *WANT; i++) {
        const char *text = vp_arena_printf(&f.arena,
                                           MODEL "hardware: {gpu: %s}\nparallel: {tensor: %s}\n"
                                                 "engine: {name: sglang, version: '%s'}\n",
                                           WANT[i].hardware, WANT[i].tensor, WANT[i].version);
        assert_int_equal(finish(text), VP_OK);
        expect(VP_F_BATCHED_TOKENS, WANT[i].chunk, VP_ORIGIN_DEFAULT);
        expect(VP_F_MAX_NUM_SEQS, WANT[i].batch, VP_ORIGIN_DEFAULT);
    }
}

static void the_static_share(void **state) {
    (void)state;
    static const struct {
        const char *hardware, *rest, *share;
    } WANT[] = {
        /* 512 + 16384 x 1.5 + 512 x 2 + 128 MiB of 287.98 GiB: as logged */
        {"{gpu: mi355x}", SGLANG "}}", "0.911"},
        {"{gpu: mi355x}", "engine: {name: sglang, version: 2026-07}", "0.911"},
        {"{gpu: mi300x, memory: 287 GiB}", SGLANG "}}", "0.911"},
        /* logged on two H100 with prefill graphs (issue 29092) */
        {"{gpu: h100-sxm}", "parallel: {tensor: 2}\nengine: {name: sglang, version: 2026-06-23}",
         "0.828"},
        {"{gpu: h100-sxm}", "parallel: {tensor: 2}\n" SGLANG "}}", "0.834"},
        {"{gpu: h100-sxm}", SGLANG "chunked_prefill_size: 2k}}", "0.874"}, /* 10 GiB at least */
        {"{gpu: mi300x}", SGLANG "chunked_prefill_size: -1}}", "0.867"},
        {"{gpu: mi300x}", SGLANG "cuda_graph_max_bs: 16}}", "0.872"},
        {"{gpu: rtx4090}", SGLANG "}}", "0.847"},
        /* data-parallel attention: 512 x 4 x 4.5 MiB more */
        {"{gpu: mi300x}", "parallel: {tensor: 4, attention_data: 4}\n" SGLANG "}}", "0.818"},
        /* before 0.5.3: by parallel size only */
        {"{gpu: h100-sxm}", "engine: {name: sglang, version: 0.4.9}", "0.874"},
        {"{gpu: mi300x}", "engine: {name: sglang, version: 0.4.9}", "0.833"},
        {"{gpu: mi300x}",
         "parallel: {tensor: 2, attention_data: 2}\nengine: {name: sglang, version: 2025-08}",
         "0.812"},
    };
    for (size_t i = 0; i < sizeof WANT / sizeof *WANT; i++) {
        assert_int_equal(finish(vp_arena_printf(&f.arena, MODEL "hardware: %s\n%s\n",
                                                WANT[i].hardware, WANT[i].rest)),
                         VP_OK);
        expect(VP_F_UTILIZATION, WANT[i].share, VP_ORIGIN_DERIVED);
    }
    assert_int_equal(finish("model: gemma-3-12b\n" GPU SGLANG "}}"), VP_OK);
    expect(VP_F_UTILIZATION, "0.82365", VP_ORIGIN_DERIVED); /* 0.867 x 0.95 */
    assert_non_null(strstr(s.source[VP_F_UTILIZATION].why, "vision tower"));
    const struct vp_diag *d =
        refused(MODEL "hardware: {gpu: rtx4090}\n" SGLANG "chunked_prefill_size: 32k}}",
                VP_D_BAD_VALUE, "leaves nothing of the card");
    assert_int_equal(d->pos.line, 5);
    assert_int_equal(finish(MODEL GPU SGLANG "mem_fraction_static: 0.8}}"), VP_OK);
    expect(VP_F_UTILIZATION, "0.8", VP_ORIGIN_ARGS);
}

static void batches_that_are_given(void **state) {
    (void)state;
    assert_int_equal(finish(MODEL GPU SGLANG "max_running_requests: 64}}"), VP_OK);
    expect(VP_F_MAX_NUM_SEQS, "64", VP_ORIGIN_DERIVED);
    expect(VP_F_UTILIZATION, "0.867", VP_ORIGIN_DERIVED); /* goes by cuda_graph_max_bs */
    assert_int_equal(finish(MODEL GPU SGLANG "max_running_requests: 1000}}"), VP_OK);
    expect(VP_F_MAX_NUM_SEQS, "512", VP_ORIGIN_DEFAULT);
    assert_int_equal(finish(MODEL GPU SGLANG "max_running_requests: 64, cuda_graph_max_bs: 128}}"),
                     VP_OK);
    expect(VP_F_MAX_NUM_SEQS, "128", VP_ORIGIN_ARGS);
    assert_int_equal(finish("model: {" SIZES "0}\n" GPU SGLANG "chunked_prefill_size: -1}}"),
                     VP_OK);
    expect(VP_F_BATCHED_TOKENS, "40960", VP_ORIGIN_DERIVED);
    assert_false(s.engine.chunked_prefill);
    assert_int_equal(finish(MODEL GPU SGLANG "chunked_prefill_size: -1}}"), VP_OK);
    expect(VP_F_BATCHED_TOKENS, "16384", VP_ORIGIN_DERIVED);
}

static void versions_of_sglang(void **state) {
    (void)state;
    assert_int_equal(finish(MODEL GPU "engine: {name: sglang, version: 2026-05-12}"), VP_OK);
    assert_int_equal(s.engine.version.kind, VP_VERSION_DATE);
    refused(MODEL GPU "engine: {name: sglang, version: b6500}", VP_D_VERSION_UNKNOWN, "0.4 to");
    const struct vp_diag *d = refused(MODEL GPU "engine: {name: sglang, version: latest}",
                                      VP_D_VERSION_UNKNOWN, "latest");
    assert_non_null(strstr(d->hint, "0.5."));
}

static void layouts_of_sglang(void **state) {
    (void)state;
    assert_int_equal(finish(MOE GPU SGLANG "tp: 4, dp: 4, ep: 4, enable_dp_attention: true}}"),
                     VP_OK);
    expect(VP_F_COUNT, "4", VP_ORIGIN_DERIVED);
    expect(VP_F_ATTENTION_DATA, "4", VP_ORIGIN_ARGS);
    assert_int_equal(f.diags.count, 0); /* heads are not divided, so KV heads are not replicated */
    assert_int_equal(finish(MODEL GPU SGLANG "tp: 2, dp: 3}}"), VP_OK);
    expect(VP_F_COUNT, "6", VP_ORIGIN_DERIVED); /* three copies of two devices */
    expect(VP_F_DATA, "3", VP_ORIGIN_ARGS);
    /* 16 ranks share 8 heads only when two of them do not have to */
    refused(MOE GPU SGLANG "tp: 16}}", VP_D_LAYOUT,
            "sglang cannot divide the model's attention heads");
    assert_int_equal(finish(MOE GPU SGLANG "tp: 16, dp: 2, ep: 16, enable_dp_attention: true}}"),
                     VP_OK);
    refused(MODEL GPU SGLANG "tp: 4, dp: 3, enable_dp_attention: true}}", VP_D_LAYOUT,
            "data-parallel attention on 3 ranks must divide the 4");
    refused(MODEL GPU "parallel: {tensor: 2, data: 2, attention_data: 2}\n" SGLANG "}}",
            VP_D_LAYOUT, "either ranks of the attention or whole copies");
    refused(MODEL GPU "parallel: {tensor: 2, context: 2}\n" SGLANG "}}", VP_D_UNMODELLED,
            "context_parallel is 2: not modelled for sglang");
}

static void experts_of_sglang(void **state) {
    (void)state;
    assert_int_equal(finish(MOE GPU SGLANG "tp: 4, enable_ep_moe: true}}"), VP_OK);
    expect(VP_F_EXPERT, "4", VP_ORIGIN_DERIVED);
    assert_int_equal(finish(MOE GPU SGLANG "tp: 4, ep: 2}}"), VP_OK); /* pairs share a width */
    assert_true(s.engine.expert_parallel);
    assert_int_equal(s.source[VP_F_EXPERT_PARALLEL].origin, VP_ORIGIN_UNSET);
    refused(MOE GPU SGLANG "tp: 4, ep: 3}}", VP_D_LAYOUT,
            "must divide the tensor-parallel ranks, 4");
    refused(MOE GPU SGLANG "tp: 4, ep: 4, enable_ep_moe: false}}", VP_D_CONTRADICTION,
            "engine.args.enable_ep_moe is false, but parallel.expert is 4");
    /* copies do not share experts */
    assert_int_equal(finish(MOE GPU SGLANG "tp: 8, dp: 5}}"), VP_OK);
    refused(MOE GPU "parallel: {tensor: 8, data: 5}\n", VP_D_LAYOUT, "expert width of 96 over 40");
}

static void pools_of_sglang(void **state) {
    (void)state;
    assert_int_equal(finish("model: mistral-7b\n" GPU SGLANG "}}"), VP_OK);
    assert_int_equal(finish("model: gpt-oss-20b\n" GPU "engine: {name: sglang, version: 2026-05}"),
                     VP_OK);
    expect(VP_F_HYBRID_OFF, "false", VP_ORIGIN_DEFAULT);
    expect(VP_F_WINDOW_SHARE, "0.8", VP_ORIGIN_DEFAULT);
    assert_int_equal(finish("model: gpt-oss-20b\n" GPU "engine: {name: sglang, version: 0.5.4}"),
                     VP_OK);
    expect(VP_F_HYBRID_OFF, "true", VP_ORIGIN_DEFAULT);
    assert_int_equal(s.source[VP_F_WINDOW_SHARE].origin, VP_ORIGIN_UNSET);
    assert_int_equal(finish("model: gemma-3-12b\n" GPU SGLANG "}}"), VP_OK);
    expect(VP_F_HYBRID_OFF, "true", VP_ORIGIN_DEFAULT);
    assert_int_equal(finish("model: qwen3.5-27b\n" GPU SGLANG "mamba_full_memory_ratio: 2,\n"
                            "  mamba_ssm_dtype: bfloat16}}"),
                     VP_OK);
    expect(VP_F_STATE_SHARE, "2", VP_ORIGIN_ARGS);
    assert_true(s.engine.rules.state_share_ppb == 2000000000);
    for (uint32_t i = 0; i < s.model->block_count; i++)
        if (s.model->blocks[i].attention.kind == VP_ATTENTION_LINEAR)
            assert_int_equal(s.model->blocks[i].attention.state_dtype, VP_DTYPE_BF16);
    assert_int_equal(finish("model: gpt-oss-20b\n" GPU "engine: {name: sglang, version: 2026-05,\n"
                            "  args: {swa_full_tokens_ratio: 0.25}}"),
                     VP_OK);
    assert_true(s.engine.rules.window_share_ppb == 250000000);
    says_only("sglang");
}

/* ---- transformers ---- */

static void defaults_of_transformers(void **state) {
    (void)state;
    assert_int_equal(finish(MODEL GPU GENERATE "}}\nserve: {context: 2k, concurrency: 3}"), VP_OK);
    expect(VP_F_MAX_MODEL_LEN, "2048", VP_ORIGIN_DERIVED);
    expect(VP_F_MAX_NUM_SEQS, "3", VP_ORIGIN_DERIVED);
    expect(VP_F_BATCHED_TOKENS, "6144", VP_ORIGIN_DERIVED);
    assert_true(s.engine.utilization_ppb == 1000000000 && s.engine.enforce_eager);
    assert_int_equal(s.engine.block_size, 1);
    for (int i = 0; i < VP_FIELD_COUNT; i++) /* nothing is noted that it has no word for */
        if (s.source[i].origin != VP_ORIGIN_UNSET)
            assert_true(vp_field_path_for(s.engine.kind, (enum vp_field)i) ||
                        i == VP_F_MAX_NUM_SEQS || i == VP_F_BATCHED_TOKENS);
    says_only("transformers");
}

static void lengths_of_transformers(void **state) {
    (void)state;
    assert_int_equal(finish(MODEL GPU GENERATE "}}"), VP_OK);
    expect(VP_F_CONTEXT, "4096", VP_ORIGIN_DEFAULT);
    assert_int_equal(finish("model: {" SIZES "0}\n" GPU GENERATE "}}"), VP_OK);
    expect(VP_F_CONTEXT, "8192", VP_ORIGIN_DEFAULT);
    expect(VP_F_MAX_MODEL_LEN, "8192", VP_ORIGIN_DERIVED);
    assert_int_equal(finish(MODEL GPU GENERATE "max_length: 1k}}"), VP_OK);
    expect(VP_F_CONTEXT, "1024", VP_ORIGIN_DERIVED);
    assert_string_equal(s.source[VP_F_CONTEXT].why, "engine.args.max_length");
    assert_int_equal(finish(MODEL GPU GENERATE "max_new_tokens: 200}}\n"
                                               "serve: {prompt_tokens: 1000, concurrency: 2}"),
                     VP_OK);
    expect(VP_F_CONTEXT, "1200", VP_ORIGIN_DERIVED);
    expect(VP_F_BATCHED_TOKENS, "2000", VP_ORIGIN_DERIVED);
    const struct vp_diag *d = refused(MODEL GPU GENERATE "max_length: 1k}}\nserve: {context: 2k}",
                                      VP_D_CONTRADICTION, "engine.args.max_length (line 5) admits");
    assert_string_equal(d->hint, "raise max_length or lower the context");
    assert_int_equal(finish(MODEL GPU GENERATE "}}\nserve: {context: 8k}"), VP_OK);
    assert_non_null(strstr(fixture_expect(&f, VP_D_CONTEXT_BEYOND, "8192")->hint, "transformers"));
}

static enum vp_dtype stored(void) {
    return s.model->schemes[s.model->blocks[0].scheme[VP_ROLE_Q]].data;
}

static void types_of_transformers(void **state) {
    (void)state;
    static const char OLD[] = "engine: {name: transformers, version: 4.50.1, args: {";
    assert_int_equal(finish(MODEL GPU GENERATE "}}"), VP_OK);
    expect(VP_F_COMPUTE, "bf16", VP_ORIGIN_DERIVED);
    assert_int_equal(finish(vp_arena_printf(&f.arena, MODEL GPU "%s}}", OLD)), VP_OK);
    expect(VP_F_COMPUTE, "fp32", VP_ORIGIN_DERIVED);
    expect(VP_F_KV_DTYPE, "fp32", VP_ORIGIN_DERIVED);
    assert_int_equal(stored(), VP_DTYPE_FP32);
    static const char *const SAID[] = {"torch_dtype: auto", "dtype: bfloat16"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(finish(vp_arena_printf(&f.arena, MODEL GPU "%s%s}}", OLD, SAID[i])),
                         VP_OK);
        assert_int_equal(s.precision.compute, VP_DTYPE_BF16);
    }
    assert_int_equal(finish(vp_arena_printf(&f.arena, MODEL GPU "%sload_in_8bit: true}}", OLD)),
                     VP_OK);
    assert_int_equal(s.precision.compute, VP_DTYPE_BF16);
    assert_int_equal(stored(), VP_DTYPE_INT8);
    /* an fp32 model stays one */
    assert_int_equal(finish("model: {" SIZES ", torch_dtype: float32}\n" GPU GENERATE "}}"), VP_OK);
    expect(VP_F_COMPUTE, "fp32", VP_ORIGIN_DERIVED);
    assert_int_equal(finish("model: {" SIZES ", torch_dtype: float32}\n" GPU SGLANG "}}"), VP_OK);
    expect(VP_F_COMPUTE, "bf16", VP_ORIGIN_DERIVED);
    assert_non_null(strstr(s.source[VP_F_COMPUTE].why, "sglang loads fp32 models in 16 bit"));
}

static void windows_of_transformers(void **state) {
    (void)state;
    static const struct {
        const char *model, *version;
        bool windows;
    } WANT[] = {{"mistral-7b", "4.55", false},
                {"mistral-7b", "4.56", true},
                {"gemma-3-12b", "4.50", true},
                {"gpt-oss-20b", "5.0", true}};
    for (size_t i = 0; i < sizeof WANT / sizeof *WANT; i++) {
        const char *text = vp_arena_printf(&f.arena, "model: %s\n" GPU "engine: transformers@%s",
                                           WANT[i].model, WANT[i].version);
        assert_int_equal(finish(text), VP_OK);
        assert_int_equal(s.engine.rules.window_groups, WANT[i].windows);
    }
}

static void layouts_of_transformers(void **state) {
    (void)state;
    const struct vp_diag *d = refused(MODEL "hardware: {gpu: mi300x, count: 2}\n" GENERATE "}}",
                                      VP_D_UNMODELLED, "hardware.count is 2");
    assert_non_null(strstr(d->message, "device_map"));
    refused(MODEL GPU "parallel: {pipeline: 2}\n" GENERATE "}}", VP_D_UNMODELLED,
            "parallel.pipeline is 2");
    refused(MODEL GPU "parallel: {tensor: 2, data: 2}\n" GENERATE "}}", VP_D_UNMODELLED,
            "parallel.data is 2");
    refused(MODEL GPU "parallel: {tensor: 2, attention_data: 2}\n" GENERATE "}}", VP_D_LAYOUT,
            "no data-parallel attention");
    refused(MOE GPU "parallel: {tensor: 2, expert: 2}\n" GENERATE "}}", VP_D_UNMODELLED,
            "expert parallelism of transformers");
    assert_int_equal(finish(MODEL "hardware: {gpu: mi300x, count: 8}\n" GENERATE "tp_size: 2}}"),
                     VP_OK);
    refused(MODEL GPU "engine: transformers@4.20", VP_D_VERSION_UNKNOWN, "4.40 to 5.2");
    refused(MODEL GPU "precision: {weights: q4_x}\n" GENERATE "}}", VP_D_BAD_VALUE,
            "no weight format of transformers");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(defaults_of_sglang),       TEST(batches_by_card_and_version),
        TEST(the_static_share),         TEST(batches_that_are_given),
        TEST(versions_of_sglang),       TEST(layouts_of_sglang),
        TEST(experts_of_sglang),        TEST(pools_of_sglang),
        TEST(defaults_of_transformers), TEST(lengths_of_transformers),
        TEST(types_of_transformers),    TEST(windows_of_transformers),
        TEST(layouts_of_transformers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
