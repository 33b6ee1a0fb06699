#include "tests/unit/fixture.h"

#include <string.h>

#include "planner/model/scenario.h"

static void every_path_is_found_and_unique(void **state) {
    (void)state;
    for (int i = 0; i < VP_FIELD_COUNT; i++) {
        const struct vp_field_info *info = vp_field_info((enum vp_field)i);
        assert_int_equal(vp_field_find(info->path), i);
        assert_true(info->meaning[0] != '\0');
        assert_true(info->offset < sizeof(struct vp_scenario));
    }
    assert_int_equal(vp_field_find("serve.contexts"), VP_FIELD_COUNT);
    assert_int_equal(vp_field_find(""), VP_FIELD_COUNT);
    assert_int_equal(vp_field_find(NULL), VP_FIELD_COUNT);
}

static void names(void **state) {
    (void)state;
    assert_string_equal(vp_origin_name(VP_ORIGIN_UNSET), "unset");
    assert_string_equal(vp_origin_name(VP_ORIGIN_DEFAULT), "default");
    assert_string_equal(vp_origin_name(VP_ORIGIN_MEASURED), "measured");
    assert_string_equal(vp_measure_name(VP_ENGINE_VLLM, VP_M_WEIGHTS), "weights_gib");
    assert_string_equal(vp_measure_name(VP_ENGINE_VLLM, VP_M_AVAILABLE_KV),
                        "available_kv_cache_gib");
    assert_string_equal(vp_measure_name(VP_ENGINE_VLLM, VP_M_BLOCK_SIZE), "block_size");
    for (int i = 0; i < VP_MEASURE_COUNT; i++)
        assert_non_null(vp_measure_name(VP_ENGINE_VLLM, (enum vp_measure)i));
}

static void expect(struct fixture *f, const struct vp_scenario *s, enum vp_field field,
                   const char *value) {
    assert_string_equal(vp_field_value(&f->arena, s, field), value);
}

static void values_as_a_user_writes_them(void **state) {
    (void)state;
    struct fixture f;
    struct vp_scenario s;
    fixture_begin(&f);
    memset(&s, 0, sizeof s);
    s.name = "demo";
    s.hardware.memory_bytes = UINT64_C(192) << 30;
    s.hardware.host_link_gbs = 63.5;
    s.engine.utilization_ppb = 920000000;
    s.engine.enforce_eager = true;
    s.serve.context = 32768;
    s.precision.weights = "fp8";
    s.precision.compute = VP_DTYPE_BF16;
    expect(&f, &s, VP_F_NAME, "demo");
    expect(&f, &s, VP_F_GPU, "null");
    expect(&f, &s, VP_F_MEMORY, "192 GiB");
    expect(&f, &s, VP_F_HOST_LINK, "63.5");
    expect(&f, &s, VP_F_UTILIZATION, "0.92");
    expect(&f, &s, VP_F_EAGER, "true");
    expect(&f, &s, VP_F_PREFIX_CACHING, "false");
    expect(&f, &s, VP_F_CONTEXT, "32768");
    expect(&f, &s, VP_F_TENSOR, "0");
    expect(&f, &s, VP_F_WEIGHTS, "fp8");
    expect(&f, &s, VP_F_COMPUTE, "bf16");
    expect(&f, &s, VP_F_KV_DTYPE, "auto");
    expect(&f, &s, VP_F_TRACE, "null"); /* not modelled */
    fixture_end(&f);
}

static void sizes_and_shares_are_exact(void **state) {
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } SIZES[] = {
        {0, "0"},        {80000000000, "80 GB"}, {UINT64_C(17163091968), "16368 MiB"},
        {3072, "3 KiB"}, {12345, "12345"},
    };
    struct fixture f;
    struct vp_scenario s;
    fixture_begin(&f);
    memset(&s, 0, sizeof s);
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        s.hardware.memory_bytes = SIZES[i].bytes;
        expect(&f, &s, VP_F_MEMORY, SIZES[i].text);
    }
    s.engine.utilization_ppb = 1000000000;
    expect(&f, &s, VP_F_UTILIZATION, "1");
    s.engine.utilization_ppb = 50000001;
    expect(&f, &s, VP_F_UTILIZATION, "0.050000001");
    s.engine.utilization_ppb = 0;
    expect(&f, &s, VP_F_UTILIZATION, "0");
    fixture_end(&f);
}

/* Every setting of an engine has one name there, and the name leads back to it. */
static void settings_have_the_engines_names(void **state) {
    (void)state;
    for (int e = 0; e < VP_ENGINE_KINDS; e++) {
        enum vp_engine_kind engine = (enum vp_engine_kind)e;
        for (int i = 0; i < VP_FIELD_COUNT; i++) {
            const char *path = vp_field_path_for(engine, (enum vp_field)i);
            if (path)
                assert_int_equal(vp_field_find_for(engine, path), i);
            assert_non_null(vp_field_label(engine, (enum vp_field)i));
        }
        assert_int_equal(vp_field_find_for(engine, NULL), VP_FIELD_COUNT);
        assert_string_equal(vp_field_path_for(engine, VP_F_TENSOR), "parallel.tensor");
    }
    assert_string_equal(vp_field_path_for(VP_ENGINE_VLLM, VP_F_MAX_MODEL_LEN),
                        "engine.args.max_model_len");
    assert_string_equal(vp_field_path_for(VP_ENGINE_SGLANG, VP_F_MAX_MODEL_LEN),
                        "engine.args.context_length");
    assert_string_equal(vp_field_path_for(VP_ENGINE_TRANSFORMERS, VP_F_MAX_MODEL_LEN),
                        "engine.args.max_length");
    assert_null(vp_field_path_for(VP_ENGINE_VLLM, VP_F_WINDOW_SHARE));
    assert_null(vp_field_path_for(VP_ENGINE_TRANSFORMERS, VP_F_UTILIZATION));
    assert_string_equal(vp_field_label(VP_ENGINE_TRANSFORMERS, VP_F_BATCHED_TOKENS),
                        "tokens per batch");
    assert_int_equal(vp_field_find_for(VP_ENGINE_SGLANG, "engine.args.max_model_len"),
                     VP_FIELD_COUNT);
    assert_string_equal(vp_engine_name(VP_ENGINE_SGLANG), "sglang");
    assert_string_equal(vp_measure_name(VP_ENGINE_SGLANG, VP_M_AVAILABLE_KV), "kv_gib");
    assert_string_equal(vp_measure_name(VP_ENGINE_SGLANG, VP_M_BLOCKS), "max_total_num_tokens");
    assert_null(vp_measure_name(VP_ENGINE_TRANSFORMERS, VP_M_AVAILABLE_KV));
}

static void an_opposite_is_shown_as_its_argument(void **state) {
    (void)state;
    struct fixture f;
    struct vp_scenario s;
    fixture_begin(&f);
    memset(&s, 0, sizeof s);
    s.engine.kind = VP_ENGINE_SGLANG;
    assert_true(vp_field_is_negated(VP_ENGINE_SGLANG, VP_F_PREFIX_CACHING));
    assert_false(vp_field_is_negated(VP_ENGINE_VLLM, VP_F_PREFIX_CACHING));
    expect(&f, &s, VP_F_PREFIX_CACHING, "true"); /* disable_radix_cache */
    s.engine.prefix_caching = true;
    expect(&f, &s, VP_F_PREFIX_CACHING, "false");
    s.engine.window_share_ppb = 2500000000;
    expect(&f, &s, VP_F_WINDOW_SHARE, "2.5");
    fixture_end(&f);
}

static void what_follows_from_layout_and_workload(void **state) {
    (void)state;
    struct vp_scenario s;
    memset(&s, 0, sizeof s);
    s.parallel.tensor = 4;
    s.parallel.data = 2;
    assert_int_equal(vp_expert_ranks(&s), 8);
    s.serve.concurrency = 9;
    assert_int_equal(vp_sequence_ranks(&s), 2);
    assert_int_equal(vp_rank_sequences(&s), 5);
    s.parallel.attention_data = 2; /* vLLM's are those of parallel.data */
    assert_int_equal(vp_sequence_ranks(&s), 2);
    s.engine.kind = VP_ENGINE_SGLANG; /* copies */
    assert_int_equal(vp_sequence_ranks(&s), 4);
    assert_int_equal(vp_rank_sequences(&s), 3);
    assert_int_equal(vp_expert_ranks(&s), 4);
    s.parallel.data = s.parallel.attention_data = 0; /* not said */
    assert_int_equal(vp_rank_sequences(&s), 9);
    s.parallel.data = 2;
    s.engine.kind = VP_ENGINE_VLLM;
    s.parallel.tensor = UINT64_MAX;
    assert_true(vp_expert_ranks(&s) == UINT64_MAX);
    s.serve = (struct vp_serve){.context = 8192, .concurrency = 4};
    assert_int_equal(vp_generate_tokens(&s), 4 * 8192);
    s.serve.prompt_tokens = 1000;
    assert_int_equal(vp_generate_tokens(&s), 4 * 1000);
    s.serve.prompt_tokens = 9000; /* no longer than the sequence */
    assert_int_equal(vp_generate_tokens(&s), 4 * 8192);
    s.serve.concurrency = UINT64_MAX;
    assert_true(vp_generate_tokens(&s) == UINT64_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_have_the_engines_names),
        cmocka_unit_test(an_opposite_is_shown_as_its_argument),
        cmocka_unit_test(what_follows_from_layout_and_workload),
        cmocka_unit_test(every_path_is_found_and_unique),
        cmocka_unit_test(names),
        cmocka_unit_test(values_as_a_user_writes_them),
        cmocka_unit_test(sizes_and_shares_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
