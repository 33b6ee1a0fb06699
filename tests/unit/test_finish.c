#include "tests/unit/fixture.h"

#include <string.h>

#include "planner/doc/yaml.h"
#include "planner/import/finish.h"
#include "planner/import/scenario_reader.h"
#include "planner/model/requantise.h"

#define SIZES                                                                                      \
    "model_type: llama, hidden_size: 64, intermediate_size: 128, num_hidden_layers: 4,\n"          \
    "  num_attention_heads: 8, num_key_value_heads: 2, vocab_size: 1000,\n"                        \
    "  max_position_embeddings: 4096"
#define MODEL "model: {" SIZES ", torch_dtype: bfloat16}\n"
#define FP8_MODEL "model: {" SIZES ", quantization_config: {quant_method: fp8}}\n"
#define GPU "hardware: {gpu: mi300x}\n"
#define V19 "engine: {name: vllm, version: '0.19', args: {"

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

static enum vp_status finish_with(const char *text, const struct vp_setting *settings,
                                  size_t count) {
    struct vp_node *root;
    fixture_clear(&f);
    assert_int_equal(vp_yaml_read(&f.ctx, &root, (struct vp_bytes){text, strlen(text)}, "run.yaml"),
                     VP_OK);
    assert_int_equal(vp_scenario_read(&f.ctx, &s, root, NULL, settings, count), VP_OK);
    return vp_scenario_finish(&f.ctx, &s);
}

static enum vp_status finish(const char *text) { return finish_with(text, NULL, 0); }

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

/* ---- defaults ---- */

static void everything_left_out_has_a_reason(void **state) {
    (void)state;
    assert_int_equal(finish(MODEL GPU), VP_OK);
    for (int i = 0; i < VP_FIELD_COUNT; i++)
        if (s.source[i].origin > VP_ORIGIN_UNSET && s.source[i].origin < VP_ORIGIN_FILE)
            assert_non_null(s.source[i].why);
    expect(VP_F_ENGINE, "vllm", VP_ORIGIN_DEFAULT);
    assert_int_equal(s.source[VP_F_VERSION].origin, VP_ORIGIN_DEFAULT);
    assert_int_equal(s.engine.version.kind, VP_VERSION_RELEASE);
    expect(VP_F_COUNT, "1", VP_ORIGIN_DEFAULT);
    expect(VP_F_MEMORY, "196592 MiB", VP_ORIGIN_PROFILE);
    expect(VP_F_RESERVED, "0", VP_ORIGIN_DEFAULT);
    expect(VP_F_TENSOR, "1", VP_ORIGIN_DEFAULT);
    expect(VP_F_WEIGHTS, "checkpoint", VP_ORIGIN_DEFAULT);
    expect(VP_F_COMPUTE, "bf16", VP_ORIGIN_DERIVED);
    expect(VP_F_KV_DTYPE, "bf16", VP_ORIGIN_DERIVED);
    expect(VP_F_MAX_MODEL_LEN, "4096", VP_ORIGIN_DEFAULT);
    expect(VP_F_CONTEXT, "4096", VP_ORIGIN_DEFAULT);
    expect(VP_F_CONCURRENCY, "1", VP_ORIGIN_DEFAULT);
    assert_int_equal(s.source[VP_F_UTILIZATION].origin, VP_ORIGIN_DEFAULT);
    assert_true(s.engine.utilization_ppb == s.engine.rules.utilization_ppb);
    assert_true(s.engine.block_size > 0 && s.engine.max_num_seqs > 0);
}

static void counts_follow_the_layout(void **state) {
    (void)state;
    assert_int_equal(finish(MODEL GPU "parallel: {tensor: 2, pipeline: 2, data: 2}"), VP_OK);
    expect(VP_F_COUNT, "8", VP_ORIGIN_DERIVED);
    assert_int_equal(finish(MODEL "hardware: {gpu: mi300x, count: 8}"), VP_OK);
    expect(VP_F_COUNT, "8", VP_ORIGIN_FILE);
}

/* ---- hardware ---- */

static void missing_hardware(void **state) {
    (void)state;
    refused(MODEL, VP_D_MISSING_VALUE, "hardware.gpu is missing");
    refused(MODEL "hardware: {gpu: mi300x, count: 0}", VP_D_MISSING_VALUE, "hardware.gpu");
    assert_non_null(strstr(f.diags.items[0].hint, "processor alone is not modelled"));
    refused(MODEL "hardware: {gpu: mi300xx}", VP_D_GPU_UNKNOWN, "mi300xx");
    refused(MODEL "hardware: {gpu: strix-halo}", VP_D_MISSING_VALUE, "hardware.memory");
    assert_int_equal(finish(MODEL "hardware: {gpu: strix-halo, memory: 96 GiB}"), VP_OK);
    const struct vp_diag *d =
        refused(MODEL "hardware: {gpu: mi300x, memory: 80}", VP_D_BAD_VALUE, "80 bytes");
    assert_non_null(strstr(d->hint, "GiB"));
    refused(MODEL "hardware: {gpu: mi300x, reserved: 200 GiB}", VP_D_BAD_VALUE, "reserved");
}

static void memory_totals(void **state) {
    (void)state;
    const uint64_t mib = UINT64_C(1) << 20;
    assert_int_equal(finish(MODEL "hardware: {gpu: rtx4090}"), VP_OK);
    assert_true(s.hardware.memory.low == 24049 * mib && s.hardware.memory.high == 24253 * mib);
    assert_true(s.hardware.memory_bytes == 24210 * mib);
    assert_int_equal(finish(MODEL "hardware: {gpu: rtx4090, memory: 23.5 GiB}"), VP_OK);
    assert_true(s.hardware.memory.low == s.hardware.memory.high);
    assert_int_equal(f.diags.count, 0);
    /* the driver's total alone: AMD as it is, NVIDIA less what is usual for the size */
    assert_int_equal(finish(MODEL "hardware: {gpu: {id: a, arch: gfx90a, driver_mib: 65520}}"),
                     VP_OK);
    fixture_expect(&f, VP_D_MEMORY_ASSUMED, "65520 MiB");
    assert_true(s.hardware.memory.low == 65520 * mib && s.hardware.memory.high == 65520 * mib);
    static const uint64_t CASES[][3] = {
        {16380, 250, 490}, {81559, 480, 770}, {143771, 590, 930}, {100, 99, 99}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        uint64_t total = CASES[i][0], least = CASES[i][1], most = CASES[i][2];
        const char *text = vp_arena_printf(
            &f.arena, MODEL "hardware: {gpu: {id: n, arch: sm_89, driver_mib: %d}}", (int)total);
        assert_int_equal(finish(text), VP_OK);
        assert_true(s.hardware.memory.low == (total - most) * mib);
        assert_true(s.hardware.memory.high == (total - least) * mib);
        assert_true(s.hardware.memory_bytes == s.hardware.memory.likely);
        assert_true(s.hardware.memory.likely == (total - (least + most) / 2) * mib);
    }
}

static void a_package_is_planned_as_its_device(void **state) {
    (void)state;
    assert_int_equal(finish(MODEL "hardware: {gpu: MI250X}\nparallel: {tensor: 2}"), VP_OK);
    fixture_expect(&f, VP_D_PACKAGE_AS_DEVICE, "mi250x-gcd");
    assert_string_equal(s.hardware.gpu.id, "mi250x-gcd");
    expect(VP_F_GPU, "MI250X", VP_ORIGIN_FILE);
    expect(VP_F_COUNT, "2", VP_ORIGIN_DERIVED);
}

static void partitions_and_their_faults(void **state) {
    (void)state;
    assert_int_equal(finish(MODEL "hardware: {gpu: mi300x, partition: CPX}"), VP_OK);
    expect(VP_F_MEMORY, "24574 MiB", VP_ORIGIN_PROFILE);
    const struct vp_diag *d =
        refused(MODEL "hardware:\n  gpu: mi300x\n  memory_partition: NPS8", VP_D_BAD_VALUE, "NPS8");
    assert_int_equal(d->pos.line, 6);
}

/* ---- layout ---- */

static void layouts_that_do_not_fit(void **state) {
    (void)state;
    refused(MODEL "hardware: {gpu: mi300x, count: 2}\nparallel: {tensor: 4}", VP_D_LAYOUT,
            "tensor 4 x pipeline 1 x data 1 = 4 devices, hardware.count is 2");
    const struct vp_diag *packages =
        refused(MODEL "hardware: {gpu: mi250x, count: 4}\nparallel: {tensor: 8}", VP_D_LAYOUT,
                "= 8 devices, hardware.count is 4");
    assert_string_equal(packages->hint, "4 mi250x packages are 8 devices: count 8");
    refused(MODEL "hardware: {gpu: mi300x, count: 3, nodes: 2}", VP_D_LAYOUT, "2 machines");
    refused(MODEL GPU "parallel: {pipeline: 5}", VP_D_LAYOUT, "5 pipeline stages for 4 layers");
    refused(MODEL GPU "parallel: {tensor: 2, context: 4}", VP_D_LAYOUT, "context parallelism");
    refused(MODEL GPU "parallel: {attention_data: 2, data: 4}", VP_D_LAYOUT, "attention_data");
    assert_int_equal(finish(MODEL GPU "parallel: {attention_data: 2}"), VP_OK);
    assert_int_equal(s.hardware.count, 2); /* data follows, and the devices with it */
    assert_int_equal(finish(MODEL GPU "parallel: {attention_data: 2, data: 2}"), VP_OK);
    const struct vp_diag *d = refused(MODEL GPU "parallel: {tensor: 3}", VP_D_LAYOUT,
                                      "attention heads of 8 over 3 ranks");
    assert_string_equal(d->hint, "tensor-parallel sizes that work: 1, 2, 4, 8");
    refused(MODEL GPU "parallel: {tensor: 1000000, data: 1000000}", VP_D_LAYOUT, "cap of");
    refused(MODEL GPU "parallel: {tensor: 18446744073709551615, data: 2}", VP_D_LAYOUT, "cap of");
    refused(MODEL "hardware: {gpu: mi300x, count: 18446744073709551615}", VP_D_LAYOUT, "cap of");
}

static void kv_heads_are_replicated(void **state) {
    (void)state;
    assert_int_equal(finish(MODEL GPU "parallel: {tensor: 2}"), VP_OK);
    assert_int_equal(finish(MODEL GPU "parallel: {tensor: 4}"), VP_OK);
    assert_int_equal(f.diags.count, 0); /* what the copies take is said by the plan */
    /* three KV heads on two ranks can neither be divided nor copied */
    refused("model: {model_type: llama, hidden_size: 48, intermediate_size: 96, vocab_size: 100,\n"
            "  num_hidden_layers: 1, num_attention_heads: 6, num_key_value_heads: 3,\n"
            "  max_position_embeddings: 128}\n" GPU "parallel: {tensor: 2}",
            VP_D_LAYOUT, "KV heads of 3 over 2 ranks");
}

#define MOE                                                                                        \
    "model: {model_type: mixtral, hidden_size: 64, intermediate_size: 96, vocab_size: 1000,\n"     \
    "  num_hidden_layers: 2, num_attention_heads: 64, num_key_value_heads: 64, head_dim: 2,\n"     \
    "  num_local_experts: 8, num_experts_per_tok: 2, max_position_embeddings: 4096}\n"

static void experts(void **state) {
    (void)state;
    refused(MOE GPU "parallel: {tensor: 64}", VP_D_LAYOUT, "expert width of 96 over 64 ranks");
    refused(MOE GPU "parallel: {tensor: 32, data: 2}", VP_D_LAYOUT, "expert width");
    assert_int_equal(finish(MOE GPU "parallel: {tensor: 64}\n"
                                    "engine: {args: {enable_expert_parallel: true}}"),
                     VP_OK);
    expect(VP_F_EXPERT, "64", VP_ORIGIN_DERIVED);
    assert_int_equal(finish(MOE GPU "parallel: {tensor: 2, data: 2, expert: 4}"), VP_OK);
    expect(VP_F_EXPERT_PARALLEL, "true", VP_ORIGIN_DERIVED);
    refused(MOE GPU "parallel: {tensor: 2, expert: 4}", VP_D_LAYOUT, "parallel.expert is 4");
    refused(MOE GPU "parallel: {tensor: 2, expert: 2}\n"
                    "engine: {args: {enable_expert_parallel: false}}",
            VP_D_CONTRADICTION, "enable_expert_parallel is false, but parallel.expert is 2");
}

/* ---- precision ---- */

static enum vp_dtype stored(enum vp_role role) {
    return s.model->schemes[s.model->blocks[0].scheme[role]].data;
}

static void types(void **state) {
    (void)state;
    assert_int_equal(finish("model: {" SIZES ", torch_dtype: float32}\n" GPU), VP_OK);
    expect(VP_F_COMPUTE, "bf16", VP_ORIGIN_DERIVED); /* vllm loads fp32 in 16 bit */
    assert_int_equal(stored(VP_ROLE_Q), VP_DTYPE_BF16);
    assert_int_equal(finish(MODEL GPU "engine: {args: {dtype: float32}}"), VP_OK);
    expect(VP_F_COMPUTE, "fp32", VP_ORIGIN_ARGS);
    expect(VP_F_KV_DTYPE, "fp32", VP_ORIGIN_DERIVED);
    assert_int_equal(stored(VP_ROLE_Q), VP_DTYPE_FP32);
    assert_int_equal(s.model->schemes[s.model->embedding_scheme].data, VP_DTYPE_FP32);
    assert_int_equal(finish(MODEL GPU "precision: {weights: float32, kv_cache: fp8}"), VP_OK);
    expect(VP_F_COMPUTE, "fp32", VP_ORIGIN_DERIVED);
    expect(VP_F_KV_DTYPE, "fp8", VP_ORIGIN_FILE);
    refused(MODEL GPU "precision: {weights: fp32, compute: bf16}", VP_D_CONTRADICTION,
            "precision.weights is fp32");
    assert_int_equal(finish(MODEL GPU "precision: {weights: bf16, compute: fp16}"), VP_OK);
    assert_int_equal(stored(VP_ROLE_Q), VP_DTYPE_FP16);
}

static void weights_get_another_format(void **state) {
    (void)state;
    assert_int_equal(finish(MODEL GPU "precision: {weights: fp8}"), VP_OK);
    assert_int_equal(stored(VP_ROLE_Q), VP_DTYPE_FP8);
    assert_int_equal(stored(VP_ROLE_DOWN), VP_DTYPE_FP8);
    assert_int_equal(stored(VP_ROLE_NORM), VP_DTYPE_BF16);
    assert_int_equal(s.model->schemes[s.model->head_scheme].data, VP_DTYPE_BF16);
    assert_int_equal(
        finish(MODEL GPU "precision: {weights: int4, keep: [attention], group_size: 32}"), VP_OK);
    assert_int_equal(stored(VP_ROLE_Q), VP_DTYPE_BF16);
    assert_int_equal(stored(VP_ROLE_UP), VP_DTYPE_INT4);
    assert_int_equal(s.model->schemes[s.model->blocks[0].scheme[VP_ROLE_UP]].group, 32);
    assert_int_equal(s.model->schemes[s.model->head_scheme].data, VP_DTYPE_INT4);
    const struct vp_diag *d =
        refused(MODEL GPU "precision: {weights: q4_x}", VP_D_BAD_VALUE, "\"q4_x\"");
    assert_int_equal(d->pos.line, 5);
    refused(MODEL GPU "precision: {weights: fp8, group_size: 64}", VP_D_BAD_VALUE, "\"fp8\"");
}

static void a_quantised_checkpoint(void **state) {
    (void)state;
    assert_int_equal(finish(FP8_MODEL GPU), VP_OK);
    assert_true(vp_model_is_quantised(s.model));
    /* said again, it stays as stored, and so do the sums of its tensors */
    assert_int_equal(finish(FP8_MODEL GPU "precision: {weights: fp8, keep: []}"), VP_OK);
    assert_int_equal(s.model->schemes[s.model->head_scheme].data, VP_DTYPE_BF16);
    assert_int_equal(finish(FP8_MODEL GPU "precision: {weights: bf16}"), VP_OK);
    assert_int_equal(stored(VP_ROLE_Q), VP_DTYPE_BF16);
    assert_false(vp_model_is_quantised(s.model));
}

static void stored_sums_are_forgotten_when_they_no_longer_hold(void **state) {
    (void)state;
    assert_int_equal(finish(MODEL GPU), VP_OK);
    s.model->checkpoint.known = true;
    vp_model_load_plain_as(s.model, VP_DTYPE_FP16);
    assert_true(s.model->checkpoint.known); /* as wide as before */
    vp_model_load_plain_as(s.model, VP_DTYPE_FP32);
    assert_false(s.model->checkpoint.known);
    s.model->checkpoint.known = true;
    s.precision.weights = "fp8";
    assert_int_equal(vp_model_requantise(&f.ctx, &s), VP_OK);
    assert_false(s.model->checkpoint.known);
}

/* ---- lengths ---- */

static void lengths(void **state) {
    (void)state;
    assert_int_equal(finish(MODEL GPU "serve: {context: 1000}"), VP_OK);
    expect(VP_F_MAX_MODEL_LEN, "1000", VP_ORIGIN_DERIVED);
    assert_non_null(strstr(s.source[VP_F_MAX_MODEL_LEN].why, "the model's 4096"));
    assert_int_equal(finish(MODEL GPU V19 "max_model_len: 2k}}"), VP_OK);
    expect(VP_F_CONTEXT, "2048", VP_ORIGIN_DERIVED);
    assert_int_equal(finish(MODEL GPU V19 "max_model_len: 2k}}\nserve: {context: 512}"), VP_OK);
    const struct vp_diag *d = refused(MODEL GPU V19 "max_model_len: 2k}}\nserve: {context: 3000}",
                                      VP_D_CONTRADICTION, "serve.context (line 6) is 3000");
    assert_non_null(strstr(d->message, "engine.args.max_model_len (line 5) admits 2048"));
    assert_int_equal(finish(MODEL GPU "serve: {context: 10000}"), VP_OK);
    d = fixture_expect(&f, VP_D_CONTEXT_BEYOND, "serve.context (line 5) is 10000");
    assert_non_null(strstr(d->hint, "factor: 2.5, original_max_position_embeddings: 4096"));
    assert_int_equal(finish("model: {" SIZES "0}\n" GPU), VP_OK); /* 40960 */
    expect(VP_F_CONTEXT, "8192", VP_ORIGIN_DEFAULT);
    expect(VP_F_MAX_MODEL_LEN, "40960", VP_ORIGIN_DEFAULT);
}

static void a_model_without_a_limit(void **state) {
    (void)state;
    static const char BLOCKS[] =
        "model: {hidden_size: 64, vocab_size: 100, embedding: true, lm_head: true,\n"
        "  final_norm: true, blocks: [{repeat: 2, norms: 2, attention: {kind: gqa, heads: 8,\n"
        "  kv_heads: 8, head_dim: 8}, mlp: {kind: gated, intermediate_size: 128}}]}\n" GPU;
    refused(BLOCKS, VP_D_MISSING_VALUE, "serve.context is missing");
    assert_int_equal(finish(vp_arena_printf(&f.arena, "%sserve: {context: 100}", BLOCKS)), VP_OK);
    expect(VP_F_MAX_MODEL_LEN, "100", VP_ORIGIN_DERIVED);
}

/* ---- engine ---- */

static void versions(void **state) {
    (void)state;
    const struct vp_diag *d =
        refused(MODEL GPU "engine: {version: latest}", VP_D_VERSION_UNKNOWN, "\"latest\"");
    assert_int_equal(d->pos.line, 5);
    refused(MODEL GPU "engine: {version: b6500}", VP_D_VERSION_UNKNOWN, "");
}

static void the_graph_estimate_can_be_switched_off(void **state) {
    (void)state;
    assert_int_equal(finish(MODEL "hardware: {gpu: h100}\nengine: {version: '0.24'}"), VP_OK);
    assert_int_equal(s.engine.rules.budget, VP_VLLM_V1_GRAPHS);
    assert_int_equal(finish(MODEL
                            "hardware: {gpu: h100}\nengine: {version: '0.24',\n"
                            "  env: {VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS: 0, OTHER: 1}}"),
                     VP_OK);
    assert_int_equal(s.engine.rules.budget, VP_VLLM_V1);
    fixture_expect(&f, VP_D_ARG_IGNORED, "engine.env.OTHER");
}

static void batches(void **state) {
    (void)state;
    assert_int_equal(finish(MODEL GPU V19 "max_num_batched_tokens: 64}}"), VP_OK);
    expect(VP_F_MAX_NUM_SEQS, "64", VP_ORIGIN_DERIVED);
    refused(MODEL GPU V19 "max_num_batched_tokens: 64, max_num_seqs: 65}}", VP_D_BAD_VALUE,
            "less than max_num_seqs 65");
    assert_int_equal(finish("model: {" SIZES "0}\n" GPU V19 "enable_chunked_prefill: false}}"),
                     VP_OK);
    expect(VP_F_BATCHED_TOKENS, "40960", VP_ORIGIN_DEFAULT);
    refused(MODEL GPU V19 "enable_chunked_prefill: false, max_num_batched_tokens: 2048}}",
            VP_D_BAD_VALUE, "without chunked prefill");
}

static void early_versions_chunk_long_prompts_only(void **state) {
    (void)state;
    assert_int_equal(finish(MODEL GPU "engine: {version: '0.6.4'}"), VP_OK);
    expect(VP_F_CHUNKED_PREFILL, "false", VP_ORIGIN_DEFAULT);
    assert_true(s.engine.max_batched_tokens >= s.engine.max_model_len);
    assert_int_equal(finish("model: {" SIZES "0}\n" GPU "engine: {version: '0.6.4'}"), VP_OK);
    expect(VP_F_CHUNKED_PREFILL, "true", VP_ORIGIN_DEFAULT);
    assert_int_equal(finish("model: {" SIZES "0}\n" GPU "engine: {version: '0.6.4'}\n"
                            "serve: {context: 32768}"),
                     VP_OK);
    expect(VP_F_CHUNKED_PREFILL, "false", VP_ORIGIN_DEFAULT);
    expect(VP_F_BATCHED_TOKENS, "32768", VP_ORIGIN_DEFAULT);
}

static void recurrent_models(void **state) {
    (void)state;
    assert_int_equal(finish("model: qwen3.5-27b\n" GPU V19 "mamba_ssm_cache_dtype: bfloat16}}\n"),
                     VP_OK);
    expect(VP_F_PREFIX_CACHING, "false", VP_ORIGIN_DEFAULT);
    for (uint32_t i = 0; i < s.model->block_count; i++)
        if (s.model->blocks[i].attention.kind == VP_ATTENTION_LINEAR)
            assert_int_equal(s.model->blocks[i].attention.state_dtype, VP_DTYPE_BF16);
    assert_int_equal(finish("model: qwen3.5-27b\n" GPU V19 "enable_prefix_caching: true}}\n"),
                     VP_OK);
    expect(VP_F_PREFIX_CACHING, "true", VP_ORIGIN_ARGS);
    const struct vp_diag *d =
        refused("model: qwen3.5-27b\n" GPU "parallel: {tensor: 32}", VP_D_LAYOUT, "heads of");
    assert_non_null(d->hint);
}

static void a_percentage_of_headroom(void **state) {
    (void)state;
    assert_int_equal(finish(MODEL "hardware: {gpu: mi300x, memory: 100 GiB}\n" V19
                                  "gpu_memory_utilization: 0.5}}\nbudget: {headroom: 10 %}"),
                     VP_OK);
    assert_true(s.budget.bound[VP_BOUND_HEADROOM].value == UINT64_C(5) << 30);
}

static void faults_of_several_kinds_in_one_run(void **state) {
    (void)state;
    assert_int_equal(finish(MODEL "hardware: {gpu: mi300x, memory: 5}\nengine: {version: x}\n"
                                  "precision: {weights: q8_x}"),
                     VP_ERR_INPUT);
    fixture_expect(&f, VP_D_BAD_VALUE, "hardware.memory");
    fixture_expect(&f, VP_D_VERSION_UNKNOWN, "\"x\"");
    fixture_expect(&f, VP_D_BAD_VALUE, "q8_x");
    assert_int_equal(f.diags.errors, 3);
}

/* vLLM before 0.7.1 cached what MLA makes of the latent: every head, padded from 192 to 256. */
static void latents_by_version(void **state) {
    (void)state;
    static const struct {
        const char *version;
        bool expanded;
        uint64_t head_dim;
    } WANT[] = {
        {"0.6.6", true, 256}, {"0.7.0", true, 256}, {"0.7.1", false, 192}, {"0.19", false, 192}};
    for (size_t i = 0; i < sizeof WANT / sizeof *WANT; i++) {
        const char *text = vp_arena_printf(&f.arena,
                                           "model: deepseek-v3\nhardware: {gpu: h20, count: 8}\n"
                                           "parallel: {tensor: 8}\nengine: vllm@%s",
                                           WANT[i].version);
        assert_int_equal(finish(text), VP_OK);
        for (uint32_t b = 0; b < s.model->block_count; b++) {
            assert_int_equal(s.model->blocks[b].attention.expanded, WANT[i].expanded);
            assert_int_equal(s.model->blocks[b].attention.head_dim, WANT[i].head_dim);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(everything_left_out_has_a_reason),
        TEST(counts_follow_the_layout),
        TEST(missing_hardware),
        TEST(memory_totals),
        TEST(a_package_is_planned_as_its_device),
        TEST(partitions_and_their_faults),
        TEST(layouts_that_do_not_fit),
        TEST(kv_heads_are_replicated),
        TEST(experts),
        TEST(types),
        TEST(weights_get_another_format),
        TEST(a_quantised_checkpoint),
        TEST(stored_sums_are_forgotten_when_they_no_longer_hold),
        TEST(lengths),
        TEST(a_model_without_a_limit),
        TEST(versions),
        TEST(the_graph_estimate_can_be_switched_off),
        TEST(batches),
        TEST(early_versions_chunk_long_prompts_only),
        TEST(recurrent_models),
        TEST(a_percentage_of_headroom),
        TEST(faults_of_several_kinds_in_one_run),
        TEST(latents_by_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
