/* What a scenario for llama.cpp or ollama means: defaults by version, neutral fields, arguments,
 * devices, measured buffers, what is refused. */
#include <string.h>

#include "planner/import/input.h"
#include "tests/unit/model_builder.h"

static struct fixture f;

static int begin(void **state) {
    (void)state;
    fixture_begin(&f);
    return 0;
}

static int end(void **state) {
    (void)state;
    fixture_end(&f);
    return 0;
}

#define MODEL                                                                                      \
    "model: {model_type: llama, hidden_size: 4096, num_hidden_layers: 32, num_attention_heads: "   \
    "32, "                                                                                         \
    "num_key_value_heads: 8, intermediate_size: 14336, vocab_size: 128256, "                       \
    "tie_word_embeddings: false, max_position_embeddings: 131072}\n"
#define CARD "hardware: {gpu: rx7900xtx}\n"

static const struct vp_llama *settings(const char *rest) {
    const char *yaml = vp_arena_printf(&f.arena, "%s%s", MODEL, rest);
    return &read_yaml(&f, yaml, NULL, NULL)->llama;
}

static const struct vp_result *plan(const char *rest) {
    return plan_yaml(&f, vp_arena_printf(&f.arena, "%s%s", MODEL, rest));
}

static void refused(const char *rest, enum vp_diag_id id, const char *words) {
    struct vp_scenarios scenarios;
    const char *text = vp_arena_printf(&f.arena, "vramplan: 1\n%s%s", MODEL, rest);
    fixture_clear(&f);
    f.ctx.profiles = "profiles";
    assert_int_not_equal(
        vp_input_read(&f.ctx, &scenarios, fixture_text_file(&f, "scenario.yaml", text), NULL, 0),
        VP_OK);
    fixture_expect(&f, id, words);
}

static uint64_t buffer(const struct vp_result *result, const char *place,
                       enum vp_llama_buffer buffer) {
    for (uint32_t i = 0; i < result->llama->places; i++)
        if (strcmp(result->llama->place[i].id, place) == 0)
            return result->llama->place[i].buffer[buffer].likely;
    fail_msg("no place %s", place);
    return 0;
}

/* ---- defaults ---- */

static void defaults_follow_the_version(void **state) {
    (void)state;
    const struct vp_llama *l = settings(CARD "engine: {name: llama.cpp, version: 2026-08-18}\n");
    assert_int_equal(l->slots, 4);
    assert_true(l->unified);
    assert_int_equal(l->context, 131072);
    assert_true(l->fit_context && l->fit_layers);
    assert_int_equal(l->fit_margin_mib, 1024);
    assert_int_equal(l->batch, 2048);
    assert_int_equal(l->ubatch, 512);
    assert_int_equal(l->flash, VP_FLASH_AUTO);
    assert_int_equal(l->gpu_layers, 999);
    assert_int_equal(l->type_k, VP_DTYPE_FP16);
    assert_true(l->mmap);
    l = settings(CARD "engine: {name: llama.cpp, version: b4701, args: {ngl: 99}}\n");
    assert_int_equal(l->slots, 1);
    assert_int_equal(l->flash, VP_FLASH_OFF);
    assert_false(l->fit_context || l->fit_layers);
    assert_int_equal(l->gpu_layers, 99);
    l = settings(CARD "engine: {name: llama.cpp, version: b4701}\n");
    assert_int_equal(l->gpu_layers, 0);
    l = settings(CARD "engine: {name: ollama, version: 0.12.3}\n");
    assert_int_equal(l->batch, 512);
    assert_true(l->embeddings);
    assert_false(l->fit_layers);
}

static void builds_are_as_old_as_they_are(void **state) {
    static const struct {
        const char *version;
        bool cast, scratch, index;
    } CASES[] = {{"b3246", true, false, false},      {"b6500", true, false, true},
                 {"b9106", true, false, true},       {"b9867", false, true, true},
                 {"2026-05-28", false, false, true}, {"2025-07", true, false, false}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const char *yaml = vp_arena_printf(
            &f.arena, MODEL CARD "engine: {name: llama.cpp, version: %s}\n", CASES[i].version);
        const struct vp_llama_rules *rules = &read_yaml(&f, yaml, NULL, NULL)->engine.rules.llama;
        assert_int_equal(rules->mask_cast, CASES[i].cast);
        assert_int_equal(rules->scratch_counted, CASES[i].scratch);
        assert_int_equal(rules->index_tensors, CASES[i].index);
    }
    refused(CARD "engine: {name: llama.cpp, version: 0.19}\n", VP_D_VERSION_UNKNOWN, "0.19");
}

static void arguments_have_the_names_of_the_command_line(void **state) {
    (void)state;
    const struct vp_llama *l = settings(
        CARD "engine: {name: llama.cpp, args: {c: 8192, ngl: all, fa: true, ctk: q8_0, ctv: q4_0, "
             "np: 2, ub: 256, no-mmap: true, ts: '3,1', sm: none, mg: 0, ncmoe: 4, nkvo: true}}\n");
    assert_int_equal(l->context, 8192);
    assert_int_equal(l->gpu_layers, 999);
    assert_int_equal(l->flash, VP_FLASH_ON);
    assert_int_equal(l->type_k, VP_DTYPE_Q8_0);
    assert_int_equal(l->type_v, VP_DTYPE_Q4_0);
    assert_int_equal(l->slots, 2);
    assert_false(l->unified); /* slots were asked for */
    assert_int_equal(l->ubatch, 256);
    assert_false(l->mmap);
    assert_int_equal(l->shares, 2);
    assert_int_equal(l->share_ppb[0], 3000000000);
    assert_int_equal(l->split, VP_SPLIT_NONE);
    assert_int_equal(l->cpu_moe_layers, 4);
    assert_true(l->no_kv_offload);
    assert_false(l->fit_layers);
    l = settings(CARD "engine: {name: llama.cpp, args: {c: 8192, ngl: auto, np: -1}}\n");
    assert_true(l->fit_layers);
    assert_false(l->fit_context);
    assert_int_equal(l->slots, 4);
}

/* ---- neutral fields ---- */

static void context_and_concurrency_are_per_slot(void **state) {
    (void)state;
    const struct vp_llama *l =
        settings(CARD "serve: {context: 8192, concurrency: 3}\nengine: {name: llama.cpp}\n"
                      "precision: {kv_cache: q8_0}\n");
    assert_int_equal(l->slots, 3);
    assert_int_equal(l->context, 3 * 8192);
    assert_false(l->unified);
    assert_int_equal(l->type_k, VP_DTYPE_Q8_0);
    assert_int_equal(l->type_v, VP_DTYPE_Q8_0);
    const struct vp_result *result =
        plan(CARD "engine: {name: llama.cpp, args: {ctx_size: 8192, parallel: 4, ngl: 99}}\n");
    assert_int_equal(result->scenario->serve.context, 2048);
    assert_int_equal(result->scenario->serve.concurrency, 4);
    assert_int_equal(result->kv.max_concurrency_milli, 4000);
}

static void contradictions(void **state) {
    (void)state;
    refused(CARD "serve: {context: 8192}\n"
                 "engine: {name: llama.cpp, args: {ctx_size: 8192, parallel: 2}}\n",
            VP_D_CONTRADICTION, "leaves 4096 for each of 2 slots");
    refused(CARD "precision: {kv_cache: q4_0}\n"
                 "engine: {name: llama.cpp, args: {cache_type_k: q8_0}}\n",
            VP_D_CONTRADICTION, "precision.kv_cache is q4_0");
    refused(CARD "parallel: {tensor: 2}\nengine: {name: llama.cpp}\n", VP_D_CONTRADICTION,
            "no parallel.tensor");
}

static void what_is_not_modelled_is_refused(void **state) {
    (void)state;
    refused("hardware: {gpu: rx7900xtx, count: 2}\n"
            "engine: {name: llama.cpp, args: {split_mode: row}}\n",
            VP_D_UNMODELLED, "split_mode row");
    refused(CARD "engine: {name: llama.cpp, args: {model_draft: x.gguf}}\n", VP_D_UNMODELLED,
            "model_draft");
    refused(CARD "engine: {name: llama.cpp, args: {ctk: q4_k}}\n", VP_D_BAD_VALUE,
            "no cache of type q4_k");
    refused(CARD "engine: {name: llama.cpp, args: {fa: maybe}}\n", VP_D_BAD_VALUE,
            "on, off or auto");
    refused(CARD "engine: {name: llama.cpp, args: {ts: '3;1'}}\n", VP_D_BAD_VALUE,
            "numbers with commas");
    refused(CARD "engine: {name: llama.cpp, args: {ot: 'exps'}}\n", VP_D_BAD_VALUE,
            "PATTERN=BUFFER");
    refused(CARD "engine: {name: llama.cpp, args: {ot: '(=CPU'}}\n", VP_D_BAD_VALUE,
            "no regular expression");
    refused(CARD "engine: {name: llama.cpp, args: {ot: 'x=ROCm1'}}\n", VP_D_BAD_VALUE, "ROCm1");
}

/* ---- tensors ---- */

static void patterns_place_tensors(void **state) {
    (void)state;
    const struct vp_result *all = plan(
        CARD "engine: {name: llama.cpp, args: {ngl: 99, c: 4096}}\nprecision: {weights: q8_0}\n");
    const struct vp_result *some =
        plan(CARD "engine: {name: llama.cpp, args: {ngl: 99, c: 4096, ot: "
                  "'blk\\.[0-3]\\.ffn_down=CPU,blk\\.4\\.ffn_(gate|up)=CUDA_Host'}}\n"
                  "precision: {weights: q8_0}\n");
    const uint64_t matrix = UINT64_C(4096) * 14336 / 32 * 34;
    assert_int_equal(buffer(all, "GPU0", VP_LLAMA_MODEL) - buffer(some, "GPU0", VP_LLAMA_MODEL),
                     6 * matrix);
    assert_int_equal(buffer(some, "CPU", VP_LLAMA_MODEL) - buffer(all, "CPU", VP_LLAMA_MODEL),
                     6 * matrix);
}

/* ---- devices ---- */

static void devices_may_differ(void **state) {
    (void)state;
    const struct vp_result *result =
        plan("hardware: {devices: [{gpu: rx7900xtx, reserved: 2 GiB}, {gpu: rx7600xt, count: 2}]}\n"
             "engine: {name: llama.cpp, args: {ngl: 99, c: 4096}}\nprecision: {weights: q8_0}\n");
    assert_int_equal(result->llama->gpus, 3);
    assert_int_equal(result->scenario->hardware.count, 3);
    assert_true(result->llama->place[0].total_bytes > result->llama->place[1].total_bytes);
    assert_int_equal(result->llama->place[0].reserved_bytes, GIB(2));
    assert_int_equal(result->llama->place[1].reserved_bytes, 0);
    assert_true(result->llama->place[0].layers > result->llama->place[1].layers);
    assert_int_equal(result->device_count, 4);
    refused("hardware: {devices: [{gpu: h100_sxm}, {gpu: a10}]}\n", VP_D_UNMODELLED,
            "unlike devices");
    refused("hardware: {count: 5, devices: [{gpu: a10}]}\nengine: {name: llama.cpp}\n",
            VP_D_CONTRADICTION, "5");
    refused("hardware: {devices: [{count: 1}]}\nengine: {name: llama.cpp}\n", VP_D_MISSING_VALUE,
            "without gpu");
    refused("hardware: {devices: [{gpu: a10, memroy: 3}]}\nengine: {name: llama.cpp}\n",
            VP_D_UNKNOWN_KEY, "memroy");
}

static void the_processor_alone(void **state) {
    (void)state;
    const struct vp_result *result =
        plan("hardware: {count: 0, host_memory: 64 GiB}\n"
             "engine: {name: llama.cpp, args: {c: 4096, np: 1}}\nprecision: {weights: q8_0}\n");
    assert_int_equal(result->device_count, 1);
    assert_true(result->devices[0].host);
    assert_int_equal(result->verdict, VP_FITS);
    assert_int_equal(buffer(result, "CPU", VP_LLAMA_KV), MIB(512));
    refused("hardware: {count: 0}\nengine: {name: llama.cpp}\n", VP_D_MISSING_VALUE, "host_memory");
}

static void an_apu_has_one_of_two_pools(void **state) {
    (void)state;
    const char *rest = "engine: {name: llama.cpp, args: {ngl: 99, c: 4096}}\n";
    const struct vp_result *result = plan(vp_arena_printf(
        &f.arena, "hardware: {gpu: strix-halo, carve_out: 4 GiB, gtt: 96 GiB}\n%s", rest));
    assert_int_equal(result->scenario->hardware.memory_bytes, GIB(96));
    result = plan(vp_arena_printf(
        &f.arena, "hardware: {gpu: strix-halo, carve_out: 64 GiB, gtt: 32 GiB}\n%s", rest));
    assert_int_equal(result->scenario->hardware.memory_bytes, GIB(64));
    fixture_expect(&f, VP_D_APU_POOL, "carve_out is the larger pool");
    result = plan(
        vp_arena_printf(&f.arena, "hardware: {gpu: strix-halo, host_memory: 128 GiB}\n%s", rest));
    assert_in_range(result->scenario->hardware.memory_bytes, GIB(60), GIB(64));
    assert_true(result->scenario->hardware.memory.low < result->scenario->hardware.memory.high);
    refused("hardware: {gpu: strix-halo}\nengine: {name: llama.cpp}\n", VP_D_MISSING_VALUE,
            "names no total");
    assert_non_null(strstr(f.diags.items[0].hint, "ttm.pages_limit"));
}

/* ---- measured ---- */

static void measured_buffers_are_maps(void **state) {
    (void)state;
    const struct vp_result *result =
        plan(CARD "engine: {name: llama.cpp, args: {ngl: 99, c: 4096}}\n"
                  "precision: {weights: q8_0}\n"
                  "measured: {model_mib: {GPU0: 4096.5}, compute_mib: {GPU_Host: 10}}\n");
    assert_int_equal(buffer(result, "GPU0", VP_LLAMA_MODEL), MIB(4096) + MIB(1) / 2);
    assert_int_equal(buffer(result, "GPU_Host", VP_LLAMA_COMPUTE), MIB(10));
    assert_int_equal(ledger_row(&result->ledger, 0, "model_mib")->formula, VP_FORMULA_MEASURED);
    refused(CARD "engine: {name: llama.cpp}\nmeasured: {model_mib: {CUDA0: 1}}\n", VP_D_BAD_VALUE,
            "model_mib.CUDA0");
    refused(CARD "engine: {name: llama.cpp}\nmeasured: {weights_gib: 1}\n", VP_D_UNKNOWN_KEY,
            "weights_gib");
}

/* ---- answers ---- */

static void what_does_not_fit_is_explained(void **state) {
    (void)state;
    const struct vp_result *result =
        plan("hardware: {gpu: rx7600xt, host_memory: 64 GiB}\nprecision: {weights: fp16}\n"
             "engine: {name: llama.cpp, version: 2026-08-18, args: {ngl: 99, c: 32768, np: 1}}\n");
    assert_int_equal(result->verdict, VP_DOES_NOT_FIT);
    assert_int_equal(result->reason, VP_REASON_BUFFERS);
    assert_non_null(strstr(result->reason_text, "GPU0 does not hold its buffers"));
    assert_true(result->suggestion_count > 0);
    assert_string_equal(result->suggestions[0].change, "weights in q8_0");
    assert_int_equal(result->prices.per_1k_context, MIB(128)); /* logits hide the mask */
    result = plan("hardware: {gpu: rx7600xt}\nprecision: {weights: q4_k}\n"
                  "engine: {name: llama.cpp, version: 2026-08-18, args: {ngl: 99, c: 8192, np: 1, "
                  "fa: off, ctv: q8_0}}\n");
    assert_int_equal(result->reason, VP_REASON_REFUSED);
    assert_int_equal(result->verdict, VP_DOES_NOT_FIT);
}

static void the_fit_makes_it_fit(void **state) {
    (void)state;
    const struct vp_result *result = plan("hardware: {gpu: rx7600xt, memory: 12 GiB, host_memory: "
                                          "64 GiB}\nprecision: {weights: fp16}\n"
                                          "engine: {name: llama.cpp, version: 2026-08-18}\n");
    assert_true(result->llama->fitted);
    assert_int_equal(result->llama->n_ctx, 4096);
    assert_in_range(result->llama->gpu_layers, 20, 32);
    assert_int_not_equal(result->verdict, VP_DOES_NOT_FIT);
}

static void more_fits_up_to_what_is_said(void **state) {
    (void)state;
    const char *yaml = CARD "precision: {weights: q8_0}\n"
                            "engine: {name: llama.cpp, args: {ngl: 99, c: 8192, np: 1}}\n";
    const struct vp_result *result = plan(yaml);
    uint64_t longest = result->prices.max_context;
    assert_in_range(longest, 50000, 131072);
    result = plan_yaml_with(&f, vp_arena_printf(&f.arena, "%s%s", MODEL, yaml), "engine.args.c",
                            vp_arena_printf(&f.arena, "%llu", (unsigned long long)longest));
    assert_true(result->headroom_bytes >= 0);
    result = plan_yaml_with(&f, vp_arena_printf(&f.arena, "%s%s", MODEL, yaml), "engine.args.c",
                            vp_arena_printf(&f.arena, "%llu", (unsigned long long)longest + 1024));
    assert_true(result->headroom_bytes < 0 || longest + 1024 > 131072);
}

#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(defaults_follow_the_version),
        T(builds_are_as_old_as_they_are),
        T(arguments_have_the_names_of_the_command_line),
        T(context_and_concurrency_are_per_slot),
        T(contradictions),
        T(what_is_not_modelled_is_refused),
        T(patterns_place_tensors),
        T(devices_may_differ),
        T(the_processor_alone),
        T(an_apu_has_one_of_two_pools),
        T(measured_buffers_are_maps),
        T(what_does_not_fit_is_explained),
        T(the_fit_makes_it_fit),
        T(more_fits_up_to_what_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
