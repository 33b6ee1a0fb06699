/* engine.args of each engine onto fields, and what becomes of those that say none. */
#include "tests/unit/fixture.h"

#include <string.h>

#include "planner/doc/yaml.h"
#include "planner/import/engine_args.h"
#include "planner/import/scenario_reader.h"

#define MODEL                                                                                      \
    "model: {model_type: llama, hidden_size: 64, intermediate_size: 128, num_hidden_layers: 2,\n"  \
    "  num_attention_heads: 8, num_key_value_heads: 2, vocab_size: 1000,\n"                        \
    "  max_position_embeddings: 4096, torch_dtype: bfloat16}\n"

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

static enum vp_status read_with(const char *text, const struct vp_setting *settings, size_t count) {
    struct vp_node *root;
    fixture_clear(&f);
    assert_int_equal(vp_yaml_read(&f.ctx, &root, (struct vp_bytes){text, strlen(text)}, "run.yaml"),
                     VP_OK);
    return vp_scenario_read(&f.ctx, &s, root, NULL, settings, count);
}

static enum vp_status read(const char *text) { return read_with(text, NULL, 0); }

static void expect(enum vp_field field, const char *value, enum vp_origin origin) {
    assert_string_equal(vp_field_value(&f.arena, &s, field), value);
    assert_int_equal(s.source[field].origin, origin);
}

static void expect_bad(const char *text, const char *words) {
    assert_int_equal(read_with(text, NULL, 0), VP_ERR_INPUT);
    fixture_expect(&f, VP_D_BAD_VALUE, words);
}

#define SGLANG MODEL "engine:\n  name: sglang\n  args:\n"
#define GENERATE MODEL "engine:\n  name: transformers\n  args:\n"

/* ---- vllm ---- */

static void arguments_say_neutral_fields(void **state) {
    (void)state;
    assert_int_equal(read(MODEL "engine:\n  args:\n    tensor-parallel-size: 4\n"
                                "    pipeline_parallel_size: '2'\n    dp: 3\n    dcp: 2\n"
                                "    kv_cache_dtype: fp8_e4m3\n    dtype: half\n"
                                "    --max-model-len: 32k\n    max_num_batched_tokens: 8k\n"
                                "    no_enable_prefix_caching: true\n    enforce_eager: 'True'\n"
                                "    kv_cache_memory: 4 GiB\n"),
                     VP_OK);
    expect(VP_F_TENSOR, "4", VP_ORIGIN_ARGS);
    expect(VP_F_PIPELINE, "2", VP_ORIGIN_ARGS);
    expect(VP_F_DATA, "3", VP_ORIGIN_ARGS);
    expect(VP_F_CONTEXT_PARALLEL, "2", VP_ORIGIN_ARGS);
    expect(VP_F_KV_DTYPE, "fp8", VP_ORIGIN_ARGS);
    expect(VP_F_COMPUTE, "fp16", VP_ORIGIN_ARGS);
    expect(VP_F_MAX_MODEL_LEN, "32768", VP_ORIGIN_ARGS);
    expect(VP_F_BATCHED_TOKENS, "8192", VP_ORIGIN_ARGS);
    expect(VP_F_PREFIX_CACHING, "false", VP_ORIGIN_ARGS);
    expect(VP_F_EAGER, "true", VP_ORIGIN_ARGS);
    expect(VP_F_KV_BYTES, "4 GiB", VP_ORIGIN_ARGS);
    assert_string_equal(s.source[VP_F_TENSOR].key, "tensor-parallel-size");
    assert_int_equal(s.engine.arg_count, 11);
    for (uint32_t i = 0; i < s.engine.arg_count; i++)
        assert_true(s.engine.args[i].used);
    assert_string_equal(vp_engine_arg(&s.engine, "tensor_parallel_size"), "4");
}

static void arguments_that_are_not_computed_with_are_kept(void **state) {
    (void)state;
    assert_int_equal(read(MODEL "engine:\n  args: {max_modle_len: 5, swap_space: 4,\n"
                                "    compilation_config: {level: 3, sizes: [1, 2]}}\n"
                                "  env: {VLLM_USE_TRITON: 1}\n"),
                     VP_OK);
    assert_int_equal(s.engine.arg_count, 3);
    assert_false(s.engine.args[0].used);
    assert_string_equal(s.engine.args[2].value, "{\"level\": 3, \"sizes\": [1, 2]}");
    assert_string_equal(vp_engine_env(&s.engine, "VLLM_USE_TRITON"), "1");
    vp_engine_args_report(&f.ctx, &s.engine);
    assert_int_equal(f.diags.count, 4);
    assert_string_equal(fixture_expect(&f, VP_D_ARG_IGNORED, "max_modle_len")->hint,
                        "did you mean max_model_len?");
    fixture_expect(&f, VP_D_ARG_IGNORED, "engine.env.VLLM_USE_TRITON");
    assert_int_equal(f.diags.errors, 0);
}

static void arguments_that_move_unmodelled_bytes_are_refused(void **state) {
    (void)state;
    assert_int_equal(read(MODEL "engine: {args: {prefill_context_parallel_size: 2,\n"
                                "  speculative_config: {method: mtp, kv_cache_dtype: fp8}}}\n"),
                     VP_ERR_INPUT);
    assert_int_equal(f.diags.errors, 2);
    fixture_expect(&f, VP_D_UNMODELLED, "engine.args.prefill_context_parallel_size");
    fixture_expect(&f, VP_D_UNMODELLED, "engine.args.speculative_config.kv_cache_dtype");
    assert_int_equal(read(MODEL "engine: {args: {enable_lora: false, cpu_offload_gb: 0,\n"
                                "  speculative_config: ~, prefill_context_parallel_size: 1}}\n"),
                     VP_OK);
}

static void quantization_is_the_weights_or_the_checkpoint(void **state) {
    (void)state;
    static const char QUANTISED[] =
        "model: {model_type: llama, hidden_size: 64, intermediate_size: 128, vocab_size: 1000,\n"
        "  num_hidden_layers: 2, num_attention_heads: 8, max_position_embeddings: 4096,\n"
        "  quantization_config: {quant_method: fp8, activation_scheme: dynamic}}\n"
        "engine: {args: {quantization: fp8}}\n";
    assert_int_equal(read(MODEL "engine: {args: {quantization: fp8}}"), VP_OK);
    expect(VP_F_WEIGHTS, "fp8", VP_ORIGIN_ARGS);
    assert_int_equal(read(MODEL "engine: {args: {quantization: bitsandbytes}}"), VP_OK);
    expect(VP_F_WEIGHTS, "nf4", VP_ORIGIN_ARGS);
    assert_int_equal(read(MODEL "engine: {args: {quantization: ~}}"), VP_OK);
    assert_int_equal(s.source[VP_F_WEIGHTS].origin, VP_ORIGIN_UNSET);
    assert_int_equal(read(QUANTISED), VP_OK);
    assert_int_equal(s.source[VP_F_WEIGHTS].origin, VP_ORIGIN_UNSET);
    expect_bad(MODEL "engine: {args: {quantization: awq}}", "has no quantisation");
    expect_bad(MODEL "engine: {args: {quantization: gtpq}}", "no quantization method");
    assert_string_equal(f.diags.items[0].hint, "did you mean gptq?");
    assert_int_equal(read(MODEL "engine: {args: {quantization: fp8}}\nprecision: {weights: int4}"),
                     VP_ERR_INPUT);
    fixture_expect(&f, VP_D_CONTRADICTION, "engine.args.quantization (line 4) says fp8");
}

/* ---- sglang ---- */

/* The command line's engine decides what the file's arguments mean. */
static void the_engine_of_the_command_line_reads_the_arguments(void **state) {
    (void)state;
    const struct vp_setting flag = {"engine.name", "sglang", "--engine"};
    assert_int_equal(
        read_with(MODEL "engine: {name: vllm, args: {tp_size: 4, max_model_len: 9}}\n", &flag, 1),
        VP_OK);
    expect(VP_F_ENGINE, "sglang", VP_ORIGIN_FLAG);
    expect(VP_F_TENSOR, "4", VP_ORIGIN_ARGS);
    assert_int_equal(s.source[VP_F_MAX_MODEL_LEN].origin, VP_ORIGIN_UNSET);
    vp_engine_args_report(&f.ctx, &s.engine);
    assert_string_equal(fixture_expect(&f, VP_D_ARG_IGNORED, "engine.args.max_model_len")->hint,
                        "in sglang it is engine.args.context_length");
}

static void arguments_of_sglang(void **state) {
    (void)state;
    assert_int_equal(read(SGLANG "    tp-size: 4\n    pp_size: 2\n    ep: 4\n    dp_size: 2\n"
                                 "    mem_fraction_static: 0.85\n    chunked_prefill_size: 4k\n"
                                 "    cuda_graph_max_bs: 64\n    max_running_requests: 32\n"
                                 "    context_length: 32k\n    page_size: 64\n"
                                 "    disable_cuda_graph: true\n    disable_radix_cache: true\n"
                                 "    max_total_tokens: 100000\n    kv_cache_dtype: fp8_e5m2\n"
                                 "    dtype: half\n    quantization: w8a8_fp8\n"
                                 "    swa_full_tokens_ratio: 0.5\n"
                                 "    mamba_full_memory_ratio: 2.5\n    mamba_ssm_dtype: bfloat16\n"
                                 "    disable_hybrid_swa_memory: true\n"),
                     VP_OK);
    expect(VP_F_TENSOR, "4", VP_ORIGIN_ARGS);
    expect(VP_F_PIPELINE, "2", VP_ORIGIN_ARGS);
    expect(VP_F_EXPERT, "4", VP_ORIGIN_ARGS);
    expect(VP_F_DATA, "2", VP_ORIGIN_ARGS);
    assert_int_equal(s.source[VP_F_ATTENTION_DATA].origin, VP_ORIGIN_UNSET);
    expect(VP_F_UTILIZATION, "0.85", VP_ORIGIN_ARGS);
    expect(VP_F_BATCHED_TOKENS, "4096", VP_ORIGIN_ARGS);
    expect(VP_F_MAX_NUM_SEQS, "64", VP_ORIGIN_ARGS);
    assert_int_equal(s.engine.max_running, 32);
    expect(VP_F_MAX_MODEL_LEN, "32768", VP_ORIGIN_ARGS);
    expect(VP_F_BLOCK_SIZE, "64", VP_ORIGIN_ARGS);
    expect(VP_F_EAGER, "true", VP_ORIGIN_ARGS);
    expect(VP_F_PREFIX_CACHING, "true", VP_ORIGIN_ARGS); /* as the argument says it */
    assert_false(s.engine.prefix_caching);
    expect(VP_F_BLOCKS_OVERRIDE, "100000", VP_ORIGIN_ARGS);
    expect(VP_F_KV_DTYPE, "fp8", VP_ORIGIN_ARGS);
    expect(VP_F_COMPUTE, "fp16", VP_ORIGIN_ARGS);
    expect(VP_F_WEIGHTS, "fp8", VP_ORIGIN_ARGS);
    expect(VP_F_WINDOW_SHARE, "0.5", VP_ORIGIN_ARGS);
    expect(VP_F_STATE_SHARE, "2.5", VP_ORIGIN_ARGS);
    expect(VP_F_HYBRID_OFF, "true", VP_ORIGIN_ARGS);
    for (uint32_t i = 0; i < s.engine.arg_count; i++)
        assert_true(s.engine.args[i].used);
}

static void data_parallel_attention(void **state) {
    (void)state;
    /* whichever stands first */
    assert_int_equal(read(SGLANG "    dp_size: 4\n    tp: 4\n    enable_dp_attention: true\n"),
                     VP_OK);
    expect(VP_F_ATTENTION_DATA, "4", VP_ORIGIN_ARGS);
    assert_int_equal(s.source[VP_F_DATA].origin, VP_ORIGIN_UNSET);
    assert_int_equal(read(SGLANG "    enable_dp_attention: false\n    dp: 4\n"), VP_OK);
    expect(VP_F_DATA, "4", VP_ORIGIN_ARGS);
    const struct vp_setting off = {"engine.args.enable_dp_attention", "false", "--set"};
    assert_int_equal(read_with(SGLANG "    enable_dp_attention: true\n    dp: 4\n", &off, 1),
                     VP_OK);
    expect(VP_F_DATA, "4", VP_ORIGIN_ARGS);
    const struct vp_setting on = {"engine.args.enable_dp_attention", "true", "--set"};
    assert_int_equal(read_with(SGLANG "    dp: 4\n", &on, 1), VP_OK);
    expect(VP_F_ATTENTION_DATA, "4", VP_ORIGIN_ARGS);
    expect_bad(SGLANG "    enable_dp_attention: 7\n", "must be true or false, not 7");
    assert_int_equal(read(SGLANG "    dp: 4\n    dp_size: 2\n"), VP_ERR_INPUT);
    fixture_expect(&f, VP_D_CONTRADICTION, "engine.args.dp_size (line 8) says 2");
}

static void faults_in_arguments_of_sglang(void **state) {
    (void)state;
    assert_int_equal(read(SGLANG "    chunked_prefill_size: -1\n"), VP_OK);
    assert_int_equal(s.source[VP_F_CHUNKED_PREFILL].origin, VP_ORIGIN_ARGS);
    assert_int_equal(s.source[VP_F_BATCHED_TOKENS].origin, VP_ORIGIN_UNSET);
    expect_bad(SGLANG "    chunked_prefill_size: a lot\n", "chunked_prefill_size must be");
    expect_bad(SGLANG "    mem_fraction_static: 1.5\n", "at most 1, not 1.5");
    expect_bad(SGLANG "    swa_full_tokens_ratio: 0\n", "above 0, at most 1000, not 0");
    expect_bad(SGLANG "    disable_radix_cache: 3\n", "disable_radix_cache must be true or false");
    expect_bad(SGLANG "    max_running_requests: x\n", "max_running_requests must be");
    expect_bad(SGLANG "    quantization: fpp8\n", "no quantization method");
    assert_int_equal(read(SGLANG "    enable_lora: true\n    lora_paths: [a=b]\n"
                                 "    speculative_algorithm: EAGLE\n"
                                 "    speculative_num_steps: 3\n    cpu_offload_gb: 2\n"),
                     VP_ERR_INPUT);
    assert_int_equal(f.diags.errors, 2);
    fixture_expect(&f, VP_D_UNMODELLED, "speculative_algorithm (draft model)");
    assert_int_equal(read(SGLANG "    gpu_memory_utilization: 0.8\n    enable_metrics: true\n"
                                 "    no_enable_prefix_caching: true\n    tpsize: 2\n"),
                     VP_OK);
    vp_engine_args_report(&f.ctx, &s.engine);
    assert_int_equal(f.diags.count, 4);
    assert_string_equal(fixture_expect(&f, VP_D_ARG_IGNORED, "gpu_memory_utilization")->hint,
                        "in sglang it is engine.args.mem_fraction_static");
    assert_null(fixture_expect(&f, VP_D_ARG_IGNORED, "enable_metrics")->hint);
    assert_string_equal(fixture_expect(&f, VP_D_ARG_IGNORED, "engine.args.tpsize")->hint,
                        "did you mean tp_size?");
}

/* ---- transformers ---- */

static void arguments_of_transformers(void **state) {
    (void)state;
    assert_int_equal(read(GENERATE "    torch_dtype: torch.float16\n    max_length: 4096\n"
                                   "    max_new_tokens: 256\n    tp_size: 2\n"
                                   "    load_in_8bit: true\n    load_in_4bit: false\n"
                                   "    cache_implementation: static\n    num_beams: 1\n"),
                     VP_OK);
    expect(VP_F_COMPUTE, "fp16", VP_ORIGIN_ARGS);
    expect(VP_F_MAX_MODEL_LEN, "4096", VP_ORIGIN_ARGS);
    expect(VP_F_OUTPUT_TOKENS, "256", VP_ORIGIN_ARGS);
    expect(VP_F_TENSOR, "2", VP_ORIGIN_ARGS);
    expect(VP_F_WEIGHTS, "int8", VP_ORIGIN_ARGS);
    for (uint32_t i = 0; i < s.engine.arg_count; i++)
        assert_true(s.engine.args[i].used);
    assert_int_equal(read(GENERATE "    quantization_config: {load_in_4bit: true,\n"
                                   "      bnb_4bit_use_double_quant: true, llm_int8_threshold: 6}\n"
                                   "    attn_implementation: sdpa\n    device_map: auto\n"),
                     VP_OK);
    expect(VP_F_WEIGHTS, "nf4", VP_ORIGIN_ARGS);
    expect(VP_F_DOUBLE_QUANT, "true", VP_ORIGIN_ARGS);
    assert_string_equal(s.source[VP_F_WEIGHTS].key, "quantization_config.load_in_4bit");
    vp_engine_args_report(&f.ctx, &s.engine);
    assert_int_equal(f.diags.count, 2); /* attn_implementation, device_map */
    assert_int_equal(read(GENERATE "    cache_implementation: offloaded_static\n"), VP_ERR_INPUT);
    fixture_expect(&f, VP_D_UNMODELLED, "a cache of class \"offloaded_static\"");
    assert_int_equal(read(GENERATE "    num_beams: 4\n    assistant_model: a\n"), VP_ERR_INPUT);
    assert_int_equal(f.diags.errors, 2);
    expect_bad(GENERATE "    load_in_4bit: 3\n", "load_in_4bit must be true or false");
    expect_bad(GENERATE "    quantization_config: nf4\n", "quantization_config must be a map");
    assert_int_equal(read(GENERATE "    load_in_4bit: true\n    load_in_8bit: true\n"),
                     VP_ERR_INPUT);
    fixture_expect(&f, VP_D_CONTRADICTION, "load_in_8bit (line 8) says int8");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(arguments_say_neutral_fields),
        TEST(arguments_that_are_not_computed_with_are_kept),
        TEST(arguments_that_move_unmodelled_bytes_are_refused),
        TEST(quantization_is_the_weights_or_the_checkpoint),
        TEST(the_engine_of_the_command_line_reads_the_arguments),
        TEST(arguments_of_sglang),
        TEST(data_parallel_attention),
        TEST(faults_in_arguments_of_sglang),
        TEST(arguments_of_transformers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
