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

/* ---- fields ---- */

static void fields_by_kind(void **state) {
    (void)state;
    assert_int_equal(
        read("vramplan: 1\nname: demo\n" MODEL
             "hardware: {gpu: mi300x, count: 8, memory: 80 GB, host_link_gbs: 63.5, rocm: 6.2}\n"
             "engine: {name: vLLM, version: 0.10, args: {gpu_memory_utilization: 0.92}}\n"
             "parallel: {tensor: 4, context: 2}\n"
             "precision: {weights: fp8, kv_cache: float16, double_quant: true, group_size: 64}\n"
             "serve: {context: 32k, concurrency: 16, arrival: {poisson: 2.5}}\n"
             "calibration: mine.yaml\n"),
        VP_OK);
    expect(VP_F_NAME, "demo", VP_ORIGIN_FILE);
    expect(VP_F_GPU, "mi300x", VP_ORIGIN_FILE);
    expect(VP_F_COUNT, "8", VP_ORIGIN_FILE);
    expect(VP_F_MEMORY, "80 GB", VP_ORIGIN_FILE);
    expect(VP_F_HOST_LINK, "63.5", VP_ORIGIN_FILE);
    expect(VP_F_ROCM, "6.2", VP_ORIGIN_FILE);
    expect(VP_F_ENGINE, "vllm", VP_ORIGIN_FILE);
    expect(VP_F_VERSION, "0.10", VP_ORIGIN_FILE); /* the text, not the number */
    expect(VP_F_UTILIZATION, "0.92", VP_ORIGIN_ARGS);
    expect(VP_F_TENSOR, "4", VP_ORIGIN_FILE);
    expect(VP_F_CONTEXT_PARALLEL, "2", VP_ORIGIN_FILE);
    expect(VP_F_WEIGHTS, "fp8", VP_ORIGIN_FILE);
    expect(VP_F_KV_DTYPE, "fp16", VP_ORIGIN_FILE);
    expect(VP_F_DOUBLE_QUANT, "true", VP_ORIGIN_FILE);
    expect(VP_F_GROUP_SIZE, "64", VP_ORIGIN_FILE);
    expect(VP_F_CONTEXT, "32768", VP_ORIGIN_FILE);
    expect(VP_F_ARRIVAL, "{\"poisson\": 2.5}", VP_ORIGIN_FILE);
    expect(VP_F_CALIBRATION, "mine.yaml", VP_ORIGIN_FILE);
    assert_int_equal(s.source[VP_F_CONTEXT].pos.line, 10);
    assert_int_equal(s.source[VP_F_CONCURRENCY].origin, VP_ORIGIN_FILE);
    assert_int_equal(s.source[VP_F_PIPELINE].origin, VP_ORIGIN_UNSET);
    assert_non_null(s.model);
}

static void null_says_nothing(void **state) {
    (void)state;
    assert_int_equal(read(MODEL "hardware: {gpu: ~, count: }\nserve:\nengine: {args: }\n"), VP_OK);
    assert_int_equal(s.source[VP_F_GPU].origin, VP_ORIGIN_UNSET);
    assert_int_equal(s.source[VP_F_ENGINE].origin, VP_ORIGIN_DEFAULT);
    assert_string_equal(s.engine.name, "vllm");
}

static void expect_bad(const char *text, const char *words) {
    assert_int_equal(read_with(text, NULL, 0), VP_ERR_INPUT);
    fixture_expect(&f, VP_D_BAD_VALUE, words);
}

static void wrong_values(void **state) {
    (void)state;
    expect_bad(MODEL "hardware: {count: -1}", "hardware.count must be a whole number, not -1");
    expect_bad(MODEL "hardware: {memory: 80 GX}", "hardware.memory must be a size");
    expect_bad(MODEL "hardware: {host_link_gbs: .inf}", "hardware.host_link_gbs must be a number");
    expect_bad(MODEL "hardware: mi300x", "hardware must be a map, not text");
    expect_bad(MODEL "serve: {context: 0}", "serve.context must be a number of tokens");
    expect_bad(MODEL "serve: {concurrency: 2.5}", "serve.concurrency must be a whole number");
    expect_bad(MODEL "serve: {concurrency: [1]}", "not a list");
    expect_bad(MODEL "parallel: {tensor: 0}", "parallel.tensor must be a whole number, 1 or more");
    expect_bad(MODEL "precision: {compute: fp8}", "precision.compute must be auto, bf16");
    expect_bad(MODEL "precision: {kv_cache: q8_0}", "precision.kv_cache must be auto, bf16");
    expect_bad(MODEL "precision: {keep: [norm, lm_haed]}", "no tensor class is called lm_haed");
    assert_string_equal(f.diags.items[0].hint, "did you mean lm_head?");
    expect_bad(MODEL "precision: {keep: [[a]]}", "no tensor class is called a list");
    expect_bad(MODEL "engine: {args: {gpu_memory_utilization: 1.5}}",
               "engine.args.gpu_memory_utilization must be a number above 0, at most 1");
    expect_bad(MODEL "engine: {args: {enforce_eager: 7}}", "must be true or false");
    expect_bad(MODEL "engine: {args: [a]}", "engine.args must be a map, not a list");
    expect_bad("model: [a]", "model must be a name");
    expect_bad("[1]", "a scenario must be a map");
}

static void all_faults_in_one_run(void **state) {
    (void)state;
    assert_int_equal(read("vramplan: 1\nmodle: x\n" MODEL "hardware: {gpu: 4090, cuont: 2}\n"
                          "serve: {context: -3}\nbudget: {memory: much}\n"),
                     VP_ERR_INPUT);
    assert_int_equal(f.diags.errors, 4);
    const struct vp_diag *d = fixture_expect(&f, VP_D_UNKNOWN_KEY, "unknown key \"modle\"");
    assert_string_equal(d->pos.file, "run.yaml");
    assert_int_equal(d->pos.line, 2);
    assert_int_equal(d->pos.column, 1);
    assert_string_equal(d->hint, "did you mean model?");
    d = fixture_expect(&f, VP_D_UNKNOWN_KEY, "unknown key \"cuont\" in hardware");
    assert_int_equal(d->pos.line, 6);
    assert_int_equal(d->pos.column, 23);
    assert_string_equal(d->hint, "did you mean count?");
    fixture_expect(&f, VP_D_BAD_VALUE, "serve.context");
    fixture_expect(&f, VP_D_BAD_VALUE, "budget.memory");
}

static void unknown_keys_say_where_they_belong(void **state) {
    (void)state;
    assert_int_equal(read(MODEL "context: 8192\n"), VP_ERR_INPUT);
    assert_string_equal(f.diags.items[0].hint, "did you mean serve.context?");
    assert_int_equal(read(MODEL "serve: {max_model_len: 8192}\n"), VP_ERR_INPUT);
    assert_string_equal(f.diags.items[0].hint, "did you mean engine.args.max_model_len?");
    assert_int_equal(read(MODEL "engine: sglang\nserve: {context_length: 8192}\n"), VP_ERR_INPUT);
    assert_string_equal(f.diags.items[0].hint, "did you mean engine.args.context_length?");
    assert_int_equal(read(MODEL "engine: {flags: {}}\n"), VP_ERR_INPUT);
    assert_string_equal(f.diags.items[0].hint,
                        "known are name, version, args, env, versions, torch");
    assert_int_equal(read(MODEL "engine: {versions: {torhc: 2.9}}\n"), VP_ERR_INPUT);
    assert_string_equal(f.diags.items[0].hint, "did you mean torch?");
}

static void unmodelled_fields_are_refused_unless_they_say_nothing(void **state) {
    (void)state;
    assert_int_equal(read(MODEL "serve: {offload: {experts: 0.5}}\n"), VP_ERR_INPUT);
    assert_int_equal(f.diags.errors, 1);
    fixture_expect(&f, VP_D_UNMODELLED, "serve.offload.experts");
    assert_int_equal(read(MODEL "train: {}\nserve: {lora: ~, slo: {}}\nhardware: {devices: []}\n"
                                "parallel: {zero: 0, fsdp: false, microbatches: 1}\n"),
                     VP_OK);
    assert_int_equal(read(MODEL "precision: {kv_cache: int8}"), VP_ERR_INPUT);
    fixture_expect(&f, VP_D_UNMODELLED, "a KV cache of type int8");
}

static void keep_has_a_default(void **state) {
    (void)state;
    assert_int_equal(read(MODEL), VP_OK);
    assert_true(s.precision.keep[VP_CLASS_LM_HEAD] && s.precision.keep[VP_CLASS_ROUTER]);
    assert_false(s.precision.keep[VP_CLASS_MLP]);
    assert_int_equal(read(MODEL "precision: {keep: [experts]}"), VP_OK);
    assert_true(s.precision.keep[VP_CLASS_EXPERT]);
    assert_false(s.precision.keep[VP_CLASS_LM_HEAD]);
    assert_int_equal(read(MODEL "precision: {keep: []}"), VP_OK);
    assert_false(s.precision.keep[VP_CLASS_LM_HEAD]);
}

static void a_missing_model(void **state) {
    (void)state;
    assert_int_equal(read("vramplan: 1"), VP_ERR_INPUT);
    fixture_expect(&f, VP_D_MISSING_VALUE, "model is missing");
}

/* ---- engines ---- */

static void engines(void **state) {
    (void)state;
    assert_int_equal(read(MODEL "engine: {name: vlm}\n"), VP_ERR_INPUT);
    assert_string_equal(fixture_expect(&f, VP_D_ENGINE_UNKNOWN, "no engine")->hint,
                        "did you mean vllm?");
    assert_int_equal(read(MODEL "engine: vllm@0.19\n"), VP_OK);
    expect(VP_F_ENGINE, "vllm", VP_ORIGIN_FILE);
    expect(VP_F_VERSION, "0.19", VP_ORIGIN_FILE);
    assert_int_equal(read(MODEL "engine: SGLang@0.5.7\n"), VP_OK);
    expect(VP_F_ENGINE, "sglang", VP_ORIGIN_FILE);
    assert_int_equal(s.engine.kind, VP_ENGINE_SGLANG);
    assert_int_equal(read(MODEL "engine: {name: transformers}\n"), VP_OK);
    assert_int_equal(s.engine.kind, VP_ENGINE_TRANSFORMERS);
    assert_int_equal(read(MODEL "engine: {name: Llama.cpp, args: {ctx_size: 4096}}\n"), VP_OK);
    expect(VP_F_ENGINE, "llama.cpp", VP_ORIGIN_FILE);
    expect(VP_F_CTX_SIZE, "4096", VP_ORIGIN_ARGS);
    assert_int_equal(read(MODEL "train: {micro_batch: 2}\n"), VP_OK);
    assert_int_equal(s.engine.kind, VP_ENGINE_PYTORCH);
    assert_true(s.training);
    assert_int_equal(read(MODEL "train: {}\n"), VP_OK);
    assert_false(s.training);
}

/* ---- precedence ---- */

static void the_same_fact_twice(void **state) {
    (void)state;
    assert_int_equal(read(MODEL "parallel: {tensor: 2}\nengine: {args: {tensor_parallel_size: 2}}"),
                     VP_OK);
    expect(VP_F_TENSOR, "2", VP_ORIGIN_ARGS);
    assert_int_equal(read(MODEL "parallel: {tensor: 2}\nengine: {args: {tensor_parallel_size: 4}}"),
                     VP_ERR_INPUT);
    const struct vp_diag *d = fixture_expect(
        &f, VP_D_CONTRADICTION,
        "engine.args.tensor_parallel_size (line 5) says 4, but parallel.tensor (line 4) says 2");
    assert_int_equal(d->pos.line, 5);
    assert_int_equal(read(MODEL "engine: {args: {enable_prefix_caching: true,\n"
                                "  no_enable_prefix_caching: true}}"),
                     VP_ERR_INPUT);
    fixture_expect(&f, VP_D_CONTRADICTION, "no_enable_prefix_caching (line 5) says false");
}

static void auto_agrees_with_sixteen_bit(void **state) {
    (void)state;
    assert_int_equal(
        read(MODEL "precision: {kv_cache: bf16}\nengine: {args: {kv_cache_dtype: auto}}"), VP_OK);
    expect(VP_F_KV_DTYPE, "bf16", VP_ORIGIN_FILE);
    assert_int_equal(
        read(MODEL "precision: {kv_cache: auto}\nengine: {args: {kv_cache_dtype: fp8}}"),
        VP_ERR_INPUT);
    fixture_expect(&f, VP_D_CONTRADICTION, "says auto");
    assert_int_equal(
        read(MODEL "precision: {kv_cache: fp8}\nengine: {args: {kv_cache_dtype: auto}}"),
        VP_ERR_INPUT);
    assert_int_equal(read(MODEL "precision: {kv_cache: auto, compute: auto}"), VP_OK);
    assert_int_equal(s.precision.kv_cache, VP_DTYPE_UNSET);
}

static void the_command_line_wins(void **state) {
    (void)state;
    const struct vp_setting settings[] = {
        {"parallel.tensor", "8", "--tp"},
        {"serve.context", "16k", "--context"},
        {"serve.context", "32k", "--context"},
        {"engine.args.block_size", "32", "--set"},
        {"engine.args.tensor_parallel_size", "8", "--set"},
        {"engine.name", "vllm", "--engine"},
        {"engine.version", "0.19", "--engine"},
        {"precision.kv_cache", "fp8", "--kv-cache"},
        {"precision.keep", "[norm]", "--set"},
        {"measured.weights_gib", "2", "--set"},
        {"budget.headroom", "1 GiB", "--set"},
    };
    assert_int_equal(
        read_with(MODEL "parallel: {tensor: 2}\nserve: {context: 1k}\n"
                        "engine: {args: {tensor_parallel_size: 4, block_size: 16, \n"
                        "  kv_cache_dtype: auto}}\n"
                        "precision: {keep: [lm_head]}\nmeasured: {weights_gib: 1, graph_gib: 3}\n"
                        "budget: {headroom: 5%, memory: 2 GiB}\n",
                  settings, sizeof settings / sizeof *settings),
        VP_OK);
    expect(VP_F_TENSOR, "8", VP_ORIGIN_FLAG);
    expect(VP_F_CONTEXT, "32768", VP_ORIGIN_FLAG);
    expect(VP_F_BLOCK_SIZE, "32", VP_ORIGIN_FLAG);
    expect(VP_F_VERSION, "0.19", VP_ORIGIN_FLAG);
    expect(VP_F_KV_DTYPE, "fp8", VP_ORIGIN_FLAG);
    assert_string_equal(s.source[VP_F_CONTEXT].key, "--context");
    assert_string_equal(s.source[VP_F_BLOCK_SIZE].key, "engine.args.block_size");
    assert_true(s.precision.keep[VP_CLASS_NORM]);
    assert_false(s.precision.keep[VP_CLASS_LM_HEAD]);
    assert_true(s.measured.value[VP_M_WEIGHTS] == UINT64_C(2) << 30);
    assert_true(s.measured.value[VP_M_GRAPHS] == UINT64_C(3) << 30);
    assert_true(s.budget.bound[VP_BOUND_HEADROOM].value == UINT64_C(1) << 30);
    assert_true(s.budget.headroom_ppb == 0);
    assert_true(s.budget.bound[VP_BOUND_MEMORY].value == UINT64_C(2) << 30);
    /* the file's arguments stay in the list, but not the values that were replaced */
    assert_string_equal(vp_engine_arg(&s.engine, "block_size"), "32");
}

static void faults_of_the_command_line(void **state) {
    (void)state;
    const struct vp_setting unknown = {"serve.contxt", "1", "--set"};
    assert_int_equal(read_with(MODEL, &unknown, 1), VP_ERR_INPUT);
    assert_string_equal(fixture_expect(&f, VP_D_UNKNOWN_KEY, "sets serve.contxt")->hint,
                        "did you mean context?");
    const struct vp_setting bad = {"serve.context", "x", "--context"};
    assert_int_equal(read_with(MODEL, &bad, 1), VP_ERR_INPUT);
    fixture_expect(&f, VP_D_BAD_VALUE, "--context must be a number of tokens");
    const struct vp_setting syntax = {"precision.keep", "[a", "--set"};
    assert_int_equal(read_with(MODEL, &syntax, 1), VP_ERR_INPUT);
    const struct vp_setting both[] = {{"parallel.tensor", "2", "--tp"},
                                      {"engine.args.tensor_parallel_size", "4", "--set"}};
    assert_int_equal(read_with(MODEL, both, 2), VP_ERR_INPUT);
    fixture_expect(&f, VP_D_CONTRADICTION, "--tp says 2");
}

static void the_command_line_changes_the_model(void **state) {
    (void)state;
    const struct vp_setting layers = {"model.num_hidden_layers", "5", "--set"};
    assert_int_equal(read_with(MODEL, &layers, 1), VP_OK);
    assert_int_equal(s.model->layer_count, 5);
    const struct vp_setting name = {"model", "qwen3-0.6b", "--model"};
    assert_int_equal(read_with(MODEL, &name, 1), VP_OK);
    assert_string_equal(s.model->name, "qwen3-0.6b");
    const struct vp_setting both[] = {name, layers};
    assert_int_equal(read_with("serve: {}", both, 2), VP_OK);
    assert_int_equal(s.model->layer_count, 5);
    assert_int_equal(read_with("model: qwen3-0.6b", &layers, 1), VP_OK);
    assert_int_equal(s.model->layer_count, 5);
}

/* ---- measured, budget, inline GPU ---- */

static void measured(void **state) {
    (void)state;
    assert_int_equal(read(MODEL "measured: {weights_gib: 14.99, num_gpu_blocks: 1000,\n"
                                "  graph_gib: ~, kv_cache_tokens: 3, max_concurrency: 2.5}"),
                     VP_OK);
    assert_true(s.measured.known[VP_M_WEIGHTS]);
    assert_true(s.measured.value[VP_M_WEIGHTS] == 16095389942);
    assert_true(s.measured.value[VP_M_BLOCKS] == 1000);
    assert_false(s.measured.known[VP_M_GRAPHS]);
    fixture_expect(&f, VP_D_MEASURED_UNUSED, "measured.kv_cache_tokens");
    fixture_expect(&f, VP_D_MEASURED_UNUSED, "measured.max_concurrency");
    assert_int_equal(read(MODEL "measured: {kv_gib: 1}"), VP_ERR_INPUT);
    const struct vp_diag *d = fixture_expect(&f, VP_D_UNKNOWN_KEY, "\"kv_gib\" in measured");
    assert_non_null(strstr(d->hint, "available_kv_cache_gib"));
    expect_bad(MODEL "measured: {weights_gib: -1}", "must be a number of GiB");
    expect_bad(MODEL "measured: {weights_gib: {a: 1}}", "not a map");
    expect_bad(MODEL "measured: {num_gpu_blocks: 0}", "measured.num_gpu_blocks must be");
}

static void measured_of_the_other_engines(void **state) {
    (void)state;
    assert_int_equal(read(MODEL "engine: sglang\nmeasured: {weights_gib: 14.99, kv_gib: 16.46,\n"
                                "  max_total_num_tokens: 367404, mem_fraction_static: 0.93}"),
                     VP_OK);
    assert_true(s.measured.value[VP_M_AVAILABLE_KV] == 17673790423);
    assert_true(s.measured.value[VP_M_BLOCKS] == 367404);
    expect(VP_F_UTILIZATION, "0.93", VP_ORIGIN_MEASURED);
    assert_int_equal(read(MODEL "engine: {name: sglang, args: {mem_fraction_static: 0.9}}\n"
                                "measured: {mem_fraction_static: 0.93}"),
                     VP_ERR_INPUT);
    fixture_expect(&f, VP_D_CONTRADICTION,
                   "measured.mem_fraction_static (line 5) says 0.93, but "
                   "engine.args.mem_fraction_static (line 4) says 0.9");
    expect_bad(MODEL "engine: sglang\nmeasured: {mem_fraction_static: 2}",
               "measured.mem_fraction_static must be");
    assert_int_equal(read(MODEL "engine: sglang\nmeasured: {available_kv_cache_gib: 1}"),
                     VP_ERR_INPUT);
    assert_non_null(strstr(f.diags.items[0].hint, "kv_gib"));
    assert_int_equal(read(MODEL "engine: sglang\nmeasured: {kv_cache_tokens: 1}"), VP_ERR_INPUT);
    assert_int_equal(read(MODEL "engine: transformers\nmeasured: {non_torch_gib: 0.5}"), VP_OK);
    assert_int_equal(read(MODEL "engine: transformers\nmeasured: {kv_gib: 0.5}"), VP_ERR_INPUT);
}

static void budget(void **state) {
    (void)state;
    assert_int_equal(read(MODEL "budget: {memory: 160 GiB, headroom: 5 %, min_context: 32k,\n"
                                "  components: {kv_cache: 1 GiB}, growth: {percent: 2},\n"
                                "  waivers: [], measured: []}"),
                     VP_OK);
    assert_true(s.budget.bound[VP_BOUND_MEMORY].value == UINT64_C(160) << 30);
    assert_true(s.budget.headroom_ppb == 50000000);
    assert_true(s.budget.bound[VP_BOUND_CONTEXT].value == 32768);
    assert_int_equal(read(MODEL "budget: {headroom: 2.5%}"), VP_OK);
    assert_true(s.budget.headroom_ppb == 25000000);
    expect_bad(MODEL "budget: {headroom: 101%}", "budget.headroom must be");
    expect_bad(MODEL "budget: {headroom: '%'}", "budget.headroom must be");
    expect_bad(MODEL "budget: {min_context: a}", "budget.min_context must be");
    assert_int_equal(read(MODEL "budget: {headrom: 1}"), VP_ERR_INPUT);
    assert_string_equal(f.diags.items[0].hint, "did you mean headroom?");
}

static void an_inline_gpu(void **state) {
    (void)state;
    assert_int_equal(read(MODEL "hardware: {gpu: {id: mine, vendor: amd, runtime_mib: 24560}}"),
                     VP_OK);
    assert_string_equal(s.hardware.gpu_name, "mine");
    assert_true(s.hardware.gpu.runtime_mib == 24560);
    assert_int_equal(s.source[VP_F_GPU].origin, VP_ORIGIN_FILE);
    const struct vp_setting flag = {"hardware.gpu", "mi300x", "--gpu"};
    assert_int_equal(read_with(MODEL "hardware: {gpu: {id: mine, vendor: amd}}", &flag, 1), VP_OK);
    assert_string_equal(s.hardware.gpu_name, "mi300x");
    assert_null(s.hardware.gpu.id);
    assert_int_equal(read(MODEL "hardware: {gpu: {id: mine, vender: amd}}"), VP_ERR_INPUT);
    fixture_expect(&f, VP_D_UNKNOWN_KEY, "vender");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(fields_by_kind),
        TEST(null_says_nothing),
        TEST(wrong_values),
        TEST(all_faults_in_one_run),
        TEST(unknown_keys_say_where_they_belong),
        TEST(unmodelled_fields_are_refused_unless_they_say_nothing),
        TEST(keep_has_a_default),
        TEST(a_missing_model),
        TEST(engines),
        TEST(the_same_fact_twice),
        TEST(auto_agrees_with_sixteen_bit),
        TEST(the_command_line_wins),
        TEST(faults_of_the_command_line),
        TEST(the_command_line_changes_the_model),
        TEST(measured),
        TEST(measured_of_the_other_engines),
        TEST(budget),
        TEST(an_inline_gpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
