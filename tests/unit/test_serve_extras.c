/* Adapters, drafts, images and host memory as they are asked for: keys, engine arguments, which
 * wins, and what is refused. */
#include <string.h>

#include "planner/doc/yaml.h"
#include "planner/import/finish.h"
#include "planner/import/scenario_reader.h"
#include "tests/unit/fixture.h"

#define SIZES                                                                                      \
    "model_type: llama, hidden_size: 64, intermediate_size: 128, num_hidden_layers: 4,\n"          \
    "  num_attention_heads: 8, num_key_value_heads: 2, vocab_size: 1000,\n"                        \
    "  max_position_embeddings: 4096, torch_dtype: bfloat16"
#define RUN "model: {" SIZES "}\nhardware: {gpu: mi300x, count: 8}\n"
#define EXPERTS                                                                                    \
    "model: {model_type: qwen3_moe, hidden_size: 64, intermediate_size: 128, head_dim: 8,\n"       \
    "  num_hidden_layers: 4, num_attention_heads: 8, num_key_value_heads: 2, vocab_size: 1000,\n"  \
    "  max_position_embeddings: 4096, torch_dtype: bfloat16, num_experts: 8,\n"                    \
    "  num_experts_per_tok: 2, moe_intermediate_size: 32}\nhardware: {gpu: mi300x, count: 8}\n"
#define PREDICTS                                                                                   \
    "model: {model_type: deepseek_v3, hidden_size: 128, intermediate_size: 256,\n"                 \
    "  num_hidden_layers: 2, num_attention_heads: 8, kv_lora_rank: 64, q_lora_rank: 64,\n"         \
    "  qk_nope_head_dim: 16, qk_rope_head_dim: 16, v_head_dim: 16, vocab_size: 1000,\n"            \
    "  max_position_embeddings: 4096, torch_dtype: bfloat16, n_routed_experts: 8,\n"               \
    "  num_experts_per_tok: 2, moe_intermediate_size: 32, n_shared_experts: 1,\n"                  \
    "  first_k_dense_replace: 1, num_nextn_predict_layers: 1}\n"                                   \
    "hardware: {gpu: mi300x, count: 8}\n"
#define SEES                                                                                       \
    "model:\n  model_type: gemma3\n"                                                               \
    "  text_config: {model_type: gemma3_text, hidden_size: 64, intermediate_size: 128,\n"          \
    "    num_hidden_layers: 4, num_attention_heads: 8, num_key_value_heads: 2, head_dim: 8,\n"     \
    "    vocab_size: 1000, max_position_embeddings: 4096}\n"                                       \
    "  vision_config: {model_type: siglip_vision_model, hidden_size: 32, image_size: 64,\n"        \
    "    patch_size: 8, intermediate_size: 64, num_hidden_layers: 2, num_attention_heads: 2}\n"    \
    "  mm_tokens_per_image: 16\nhardware: {gpu: mi300x, count: 8}\n"
#define ARGS(args) "engine: {name: vllm, version: '0.19', args: {" args "}}\n"
#define SGLANG(args) "engine: {name: sglang, version: '0.5.6', args: {" args "}}\n"

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
    enum vp_status status = vp_scenario_read(&f.ctx, &s, root, NULL, settings, count);
    return status == VP_OK ? vp_scenario_finish(&f.ctx, &s) : status;
}

static void ok(const char *text) {
    enum vp_status status = finish_with(text, NULL, 0);
    for (uint32_t i = 0; status != VP_OK && i < f.diags.count; i++)
        print_message("%s\n", f.diags.items[i].message);
    assert_int_equal(status, VP_OK);
}

static void expect(enum vp_field field, const char *value, enum vp_origin origin) {
    assert_string_equal(vp_field_value(&f.arena, &s, field), value);
    assert_int_equal(s.source[field].origin, origin);
    if (origin < VP_ORIGIN_FILE)
        assert_non_null(s.source[field].why);
}

static const struct vp_diag *refused(const char *text, enum vp_diag_id id, const char *words) {
    assert_int_equal(finish_with(text, NULL, 0), VP_ERR_INPUT);
    return fixture_expect(&f, id, words);
}

struct refusal {
    const char *text;
    enum vp_diag_id id;
    const char *words;
};

static void each_refused(const struct refusal *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        refused(list[i].text, list[i].id, list[i].words);
}

/* ---- adapters ---- */

static void slots(void **state) {
    (void)state;
    ok(RUN "serve: {lora: {slots: 4, rank: 64}}\n");
    assert_true(s.lora.enabled);
    expect(VP_F_LORA_SLOTS, "4", VP_ORIGIN_FILE);
    expect(VP_F_LORA_RANK, "64", VP_ORIGIN_FILE);
    expect(VP_F_ENABLE_LORA, "true", VP_ORIGIN_DERIVED);
    expect(VP_F_LORA_DTYPE, "bf16", VP_ORIGIN_DERIVED);
    ok(RUN ARGS("enable_lora: true"));
    expect(VP_F_LORA_SLOTS, "1", VP_ORIGIN_DEFAULT);
    expect(VP_F_LORA_RANK, "16", VP_ORIGIN_DEFAULT);
    ok(RUN ARGS("enable_lora: true, max_loras: 3, max_lora_rank: 32, lora_dtype: float16,\n"
                "  fully_sharded_loras: true"));
    expect(VP_F_LORA_SLOTS, "3", VP_ORIGIN_ARGS);
    expect(VP_F_LORA_RANK, "32", VP_ORIGIN_ARGS);
    expect(VP_F_LORA_DTYPE, "fp16", VP_ORIGIN_ARGS);
    assert_true(s.lora.sharded);
    ok(RUN "serve: {lora: ~}\n" ARGS("max_loras: 3"));
    assert_false(s.lora.enabled); /* vLLM wants to be told */
    ok(RUN SGLANG("lora_paths: [a, b], max_lora_rank: 16"));
    assert_true(s.lora.enabled);
    expect(VP_F_LORA_SLOTS, "8", VP_ORIGIN_DEFAULT);
    ok(RUN SGLANG("enable_lora: true, max_lora_rank: 24, max_loras_per_batch: 2"));
    expect(VP_F_LORA_SLOTS, "2", VP_ORIGIN_ARGS);
}

static void which_slots_win(void **state) {
    (void)state;
    const struct vp_setting flag = {"serve.lora", "{slots: 7}", "--set serve.lora"};
    ok(RUN "serve: {lora: {slots: 4, rank: 64}}\n" ARGS("enable_lora: true, max_loras: 4"));
    expect(VP_F_LORA_RANK, "64", VP_ORIGIN_FILE);
    refused(RUN "serve: {lora: {slots: 4}}\n" ARGS("enable_lora: true, max_loras: 3"),
            VP_D_CONTRADICTION, "max_loras (line 6) says 3, but serve.lora.slots (line 5) says 4");
    assert_int_equal(finish_with(RUN ARGS("enable_lora: true, max_loras: 3"), &flag, 1), VP_OK);
    expect(VP_F_LORA_SLOTS, "7", VP_ORIGIN_FLAG);
}

static void adapters_refused(void **state) {
    (void)state;
    static const struct refusal LIST[] = {
        {RUN "serve: {lora: {slots: 4, rank: 64}}\n" ARGS("enable_lora: false"), VP_D_CONTRADICTION,
         "enable_lora is false, but serve.lora asks"},
        {RUN "serve: {lora: {slots: 0}}\n", VP_D_BAD_VALUE, "serve.lora.slots"},
        {RUN "serve: {lora: 4}\n", VP_D_BAD_VALUE, "serve.lora must be a map"},
        {RUN "serve: {lora: {slots: 1, rank: 1024}}\n", VP_D_BAD_VALUE, "or 512, not 1024"},
        {RUN "engine: {name: transformers}\nserve: {lora: {slots: 1}}\n", VP_D_UNMODELLED,
         "serve.lora is not modelled for transformers"},
        {RUN SGLANG("enable_lora: true"), VP_D_MISSING_VALUE, "the adapters' largest rank"},
        {PREDICTS SGLANG("enable_lora: true, max_lora_rank: 16"), VP_D_UNMODELLED,
         "other layers than attention with plain heads"},
        {EXPERTS
         "serve: {lora: {slots: 1}}\nparallel: {tensor: 2}\n" ARGS("enable_expert_parallel: true"),
         VP_D_UNMODELLED, "experts that are dealt over the ranks"},
        {"model: {name: m, layers: {count: 2, attention: {kind: linear, state_elements: 4096}},\n"
         "  hidden: 64, vocab: 100}\nhardware: {gpu: mi300x}\nserve: {lora: {slots: 1}}\n",
         VP_D_UNMODELLED, "hand-described recurrent layers"},
    };
    each_refused(LIST, sizeof LIST / sizeof *LIST - 1);
    const struct vp_diag *d =
        refused(RUN "serve: {lora: {slots: 1, rank: 20}}\n", VP_D_BAD_VALUE, "not 20");
    assert_string_equal(d->hint, "an adapter of rank 20 needs slots of 32");
    ok(EXPERTS "serve: {lora: {slots: 1}}\nparallel: {tensor: 2}\n");
}

static void unknown_keys(void **state) {
    (void)state;
    static const char *const TEXTS[] = {
        RUN "serve: {lora: {slot: 4}}\n", RUN "serve: {draft: {method: ngram, token: 4}}\n",
        SEES "serve: {images: {cuont: 4}}\n", RUN "serve: {offload: {weigths: 4 GB}}\n"};
    static const char *const HINTS[] = {"did you mean slots?", "did you mean tokens?",
                                        "did you mean count?", "did you mean weights?"};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        finish_with(TEXTS[i], NULL, 0);
        const struct vp_diag *d = fixture_expect(&f, VP_D_UNKNOWN_KEY, "");
        assert_string_equal(d->hint, HINTS[i]);
    }
}

/* ---- drafts ---- */

#define DRAFT_MAP "{" SIZES "}"

static void methods(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum vp_draft_method method;
    } LIST[] = {
        {RUN "serve: {draft: {model: " DRAFT_MAP ", tokens: 3}}\n", VP_DRAFT_MODEL},
        {RUN "serve: {draft: {model: qwen3-0.6b, tokens: 3}}\n", VP_DRAFT_MODEL},
        {RUN "serve: {draft: {method: eagle, model: " DRAFT_MAP ", tokens: 3}}\n", VP_DRAFT_EAGLE},
        {RUN "serve: {draft: {tokens: 3, model: {" SIZES ",\n"
             "  architectures: [EagleLlamaForCausalLM]}}}\n",
         VP_DRAFT_EAGLE},
        {RUN "serve: {draft: {tokens: 3, model: {" SIZES ",\n"
             "  architectures: [LlamaForCausalLMEagle3]}}}\n",
         VP_DRAFT_EAGLE3},
        {RUN "serve: {draft: {tokens: 3, model: {" SIZES ", draft_vocab_size: 500}}}\n",
         VP_DRAFT_EAGLE3},
        {RUN "serve: {draft: {method: ngram, tokens: 3}}\n", VP_DRAFT_NGRAM},
        {RUN "serve: {draft: {method: suffix, tokens: 3}}\n", VP_DRAFT_NGRAM},
        {PREDICTS "serve: {draft: {method: mtp}}\n", VP_DRAFT_MTP},
        {PREDICTS ARGS("speculative_config: {method: deepseek_mtp, num_speculative_tokens: 2}"),
         VP_DRAFT_MTP},
        {RUN ARGS("speculative_model: '[ngram]', num_speculative_tokens: 4"), VP_DRAFT_NGRAM},
        {RUN ARGS("speculative_config: {model: ngram, num_speculative_tokens: 4}"), VP_DRAFT_NGRAM},
        {RUN "serve: {draft: ~}\n", VP_DRAFT_NONE},
        {RUN ARGS("speculative_config: ~"), VP_DRAFT_NONE},
    };
    for (size_t i = 0; i < sizeof LIST / sizeof *LIST; i++) {
        ok(LIST[i].text);
        assert_int_equal(s.draft.method, LIST[i].method);
    }
}

static void a_head_shares(void **state) {
    (void)state;
    ok(RUN "serve: {draft: {tokens: 3, model: {" SIZES ", draft_vocab_size: 500,\n"
           "  target_hidden_size: 96, eagle_config: {eagle_aux_hidden_state_layer_ids: [1, 2]}}}}\n"
           "parallel: {tensor: 2}\n");
    const struct vp_draft *d = &s.draft;
    assert_int_equal(d->fused_inputs, 2 * 96);
    assert_int_equal(d->head_vocab, 500);
    assert_true(d->wide_first);
    assert_false(d->model->embedding || d->model->lm_head);
    assert_int_equal(d->model->rotary_positions, 0);
    expect(VP_F_DRAFT_TENSOR, "2", VP_ORIGIN_DERIVED);
    ok(RUN "serve: {draft: {tokens: 3, method: eagle, model: " DRAFT_MAP "}}\n"
           "parallel: {pipeline: 2}\n");
    assert_int_equal(d->fused_inputs, 128);
    assert_true(d->model->embedding); /* the target's is on another stage */
    assert_false(d->model->final_norm);
    assert_int_equal(d->model->block_count, 2);
    assert_int_equal(d->model->blocks[d->model->layers[0]].norms, 1);
    assert_int_equal(d->model->blocks[d->model->layers[1]].norms, 2);
    ok(PREDICTS "serve: {draft: {method: mtp}}\n");
    expect(VP_F_DRAFT_TOKENS, "1", VP_ORIGIN_DEFAULT);
}

static void ways_to_write_a_config(void **state) {
    (void)state;
    static const char *const TEXTS[] = {
        RUN ARGS("speculative_config: {model: " DRAFT_MAP ",\n"
                 "  num_speculative_tokens: 5, draft_tensor_parallel_size: 1}"),
        RUN ARGS("speculative_config: '{\"model\": \"qwen3-0.6b\", \"num_speculative_tokens\": 5,\n"
                 "  \"draft_tensor_parallel_size\": 1}'"),
        RUN ARGS("speculative_config.model: qwen3-0.6b,\n"
                 "  speculative_config.num_speculative_tokens: 5,\n"
                 "  speculative_config.draft_tensor_parallel_size: 1"),
        RUN ARGS("speculative_model: qwen3-0.6b, num_speculative_tokens: 5,\n"
                 "  speculative_draft_tensor_parallel_size: 1")};
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        ok(TEXTS[i]);
        assert_int_equal(s.draft.method, VP_DRAFT_MODEL);
        assert_non_null(s.draft.model);
        expect(VP_F_DRAFT_TOKENS, "5", VP_ORIGIN_ARGS);
        expect(VP_F_DRAFT_TENSOR, "1", VP_ORIGIN_ARGS);
    }
    refused(RUN "serve: {draft: {method: ngram, tokens: 2}}\n" ARGS(
                "speculative_config: {num_speculative_tokens: 5}"),
            VP_D_CONTRADICTION, "speculative_config.num_speculative_tokens (line 6) says 5");
    const struct vp_setting flag = {"serve.draft", "{method: ngram, tokens: 7}", "--set"};
    assert_int_equal(
        finish_with(RUN ARGS("speculative_config: {num_speculative_tokens: 5}"), &flag, 1), VP_OK);
    expect(VP_F_DRAFT_TOKENS, "7", VP_ORIGIN_FLAG);
}

static void drafts_refused(void **state) {
    (void)state;
    static const struct refusal LIST[] = {
        {RUN "serve: {draft: {method: medusa, tokens: 3}}\n", VP_D_UNMODELLED, "\"medusa\""},
        {RUN "serve: {draft: {tokens: 3}}\n", VP_D_MISSING_VALUE, "the draft's model is missing"},
        {RUN "serve: {draft: {method: eagle, tokens: 3}}\n", VP_D_MISSING_VALUE, "draft's model"},
        {RUN "serve: {draft: {model: qwen3-0.6b}}\n", VP_D_MISSING_VALUE, "tokens per step"},
        {RUN "serve: {draft: {method: ngram}}\n", VP_D_MISSING_VALUE, "tokens per step"},
        {RUN "serve: {draft: {method: mtp, tokens: 1}}\n", VP_D_UNMODELLED,
         "names no layers for multi-token prediction"},
        {RUN "serve: {draft: {model: [a], tokens: 1}}\n", VP_D_BAD_VALUE, "must be a model"},
        {RUN "serve: {draft: {model: qwen3-0.6b, tokens: 3, tensor: 2}}\nparallel: {tensor: 4}\n",
         VP_D_LAYOUT, "must be 1 or the target's 4"},
        {RUN ARGS("speculative_config: 5"), VP_D_BAD_VALUE, "a map, or its text in JSON"},
        {RUN ARGS("speculative_config: {model: qwen3-0.6b, quantization: fp8,\n"
                  "  num_speculative_tokens: 3}"),
         VP_D_UNMODELLED, "speculative_config.quantization"},
        {RUN "engine: {name: sglang}\nserve: {draft: {model: qwen3-0.6b, tokens: 3}}\n",
         VP_D_UNMODELLED, "speculative decoding is not modelled for sglang"},
        {RUN "engine: {name: transformers}\nserve: {draft: {method: ngram, tokens: 3}}\n",
         VP_D_UNMODELLED, "speculative decoding is not modelled for transformers"},
        {RUN "engine: {name: vllm, version: '0.6.3'}\nserve: {draft: {method: ngram, tokens: 3}}\n",
         VP_D_UNMODELLED, "V0 engine"},
    };
    each_refused(LIST, sizeof LIST / sizeof *LIST);
}

/* A path is meant from the file that says it. */
static void a_draft_beside_the_file(void **state) {
    (void)state;
    struct vp_node *root;
    fixture_text_file(&f, "draft.json",
                      "{\"model_type\": \"llama\", \"hidden_size\": 64, \"intermediate_size\": 128,"
                      "\"num_hidden_layers\": 1, \"num_attention_heads\": 8, \"vocab_size\": 1000,"
                      "\"max_position_embeddings\": 4096}");
    static const char TEXT[] = RUN "serve: {draft: {model: ./draft.json, tokens: 3}}\n";
    assert_int_equal(vp_yaml_read(&f.ctx, &root, (struct vp_bytes){TEXT, strlen(TEXT)}, "run.yaml"),
                     VP_OK);
    assert_int_equal(vp_scenario_read(&f.ctx, &s, root, fixture_folder(&f), NULL, 0), VP_OK);
    assert_int_equal(s.draft.model->layer_count, 1);
}

/* ---- images ---- */

static void images_are_part_of_the_prompt(void **state) {
    (void)state;
    ok(SEES "serve: {context: 2048, images: 3}\n");
    expect(VP_F_IMAGES, "3", VP_ORIGIN_FILE);
    expect(VP_F_IMAGE_TOKENS, "20", VP_ORIGIN_DERIVED); /* 16 vectors and four marks */
    fixture_expect(&f, VP_D_IMAGE_TOKENS, "3 x 20 tokens of images are part of the context");
    ok(SEES "serve: {context: 2048, images: {count: 2, tokens: 100}}\n");
    fixture_expect(&f, VP_D_IMAGE_TOKENS, "2 x 100 tokens");
    ok(RUN "serve: {images: 0}\n");
    static const struct refusal LIST[] = {
        {SEES "serve: {context: 50, images: 3}\n", VP_D_CONTRADICTION,
         "3 images of 20 tokens do not fit a context of 50"},
        {RUN "serve: {images: 3}\n", VP_D_BAD_VALUE, "the model takes text only"},
        {SEES "serve: {images: 3}\n" ARGS("limit_mm_per_prompt: {image: 0}"), VP_D_BAD_VALUE,
         "the engine is told to take none"},
        {SEES "serve: {images: [1]}\n", VP_D_BAD_VALUE, "serve.images"},
    };
    each_refused(LIST, sizeof LIST / sizeof *LIST);
}

static void limits(void **state) {
    (void)state;
    static const struct {
        const char *args;
        bool off;
        uint64_t limit;
    } LIST[] = {{SEES ARGS(""), false, 0},
                {SEES ARGS("limit_mm_per_prompt: {image: 4}"), false, 4},
                {SEES ARGS("limit_mm_per_prompt: '{\"image\": 4, \"video\": 0}'"), false, 4},
                {SEES ARGS("limit_mm_per_prompt: 'image=3,video=1'"), false, 3},
                {SEES ARGS("limit_mm_per_prompt: {image: {count: 2, width: 512}}"), false, 2},
                {SEES ARGS("limit_mm_per_prompt: 'image='"), false, 0},
                {SEES ARGS("limit_mm_per_prompt: {image: 0}"), true, 0},
                {SEES ARGS("limit_mm_per_prompt: {video: 0}"), false, 0},
                {SEES ARGS("language_model_only: true"), true, 0}};
    for (size_t i = 0; i < sizeof LIST / sizeof *LIST; i++) {
        ok(LIST[i].args);
        assert_int_equal(s.images.off, LIST[i].off);
        assert_int_equal(s.images.limit, LIST[i].limit);
        assert_false(s.images.unprofiled);
    }
    ok(SEES ARGS("skip_mm_profiling: true"));
    assert_true(s.images.unprofiled);
    const struct vp_extra *tower = NULL;
    ok(SEES ARGS("mm_encoder_tp_mode: data"));
    for (uint32_t i = 0; i < s.model->extra_count; i++)
        if (s.model->extras[i].class_ == VP_CLASS_VISION)
            tower = &s.model->extras[i];
    assert_non_null(tower);
    assert_false(tower->sharded);
}

/* The largest image of each family, as vLLM's get_num_image_tokens counts it. */
static void largest_images(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t patches, outputs, tokens;
    } LIST[] = {
        {"model: gemma-3-4b\nhardware: {gpu: mi300x}\n", 4096, 256, 260},
        {"model: llama-4-scout\nhardware: {gpu: mi300x, count: 8}\nparallel: {tensor: 8}\n",
         17 * 576, 17 * 144, 17 * 144 + 40},
        {"model: mistral-small-3.1-24b\nhardware: {gpu: mi300x}\n", 110 * 110, 55 * 55,
         55 * 55 + 55},
        {"model: qwen2.5-vl-7b\nhardware: {gpu: mi300x}\n", 65536, 16384, 16384},
        {"model: qwen2.5-vl-7b\nhardware: {gpu: mi300x}\n" ARGS(
             "mm_processor_kwargs: {max_pixels: 1003520}"),
         5120, 1280, 1280},
    };
    for (size_t i = 0; i < sizeof LIST / sizeof *LIST; i++) {
        ok(LIST[i].text);
        assert_true(s.model->encoder.known);
        assert_int_equal(s.model->encoder.item_patches, LIST[i].patches);
        assert_int_equal(s.model->encoder.item_outputs, LIST[i].outputs);
        assert_int_equal(s.model->encoder.item_tokens, LIST[i].tokens);
    }
}

/* ---- host memory ---- */

static void offload(void **state) {
    (void)state;
    ok(RUN "serve: {offload: {weights: 4 GiB, kv: 8 GiB}}\n");
    expect(VP_F_OFFLOAD_WEIGHTS, "4 GiB", VP_ORIGIN_FILE);
    expect(VP_F_OFFLOAD_KV, "8 GiB", VP_ORIGIN_FILE);
    ok(RUN "serve: {offload: {weights: 0.4}}\n");
    expect(VP_F_OFFLOAD_SHARE, "0.4", VP_ORIGIN_FILE);
    ok(RUN "serve: {offload: {weights: 0, kv: false, experts: 0}}\n");
    assert_int_equal(s.offload.weights_bytes + s.offload.weights_ppb + s.offload.kv_bytes, 0);
    ok(RUN ARGS("cpu_offload_gb: 2.5, kv_offloading_size: 16"));
    expect(VP_F_OFFLOAD_WEIGHTS, "2560 MiB", VP_ORIGIN_ARGS);
    expect(VP_F_OFFLOAD_KV, "16 GiB", VP_ORIGIN_ARGS);
    ok(RUN "serve: {offload: {weights: 4 GiB}}\n" ARGS("cpu_offload_gb: 0"));
    expect(VP_F_OFFLOAD_WEIGHTS, "4 GiB", VP_ORIGIN_FILE); /* 0 says nothing */
    for (uint32_t i = 0; i < f.diags.count; i++)
        assert_int_not_equal(f.diags.items[i].id, VP_D_OFFLOAD_UNSURE);
    ok(RUN "engine: {name: vllm, version: '0.25', args: {cpu_offload_gb: 3}}\n");
    fixture_expect(&f, VP_D_OFFLOAD_UNSURE, "second model runner");
    ok(RUN SGLANG("cpu_offload_gb: 3"));
    expect(VP_F_OFFLOAD_WEIGHTS, "3 GiB", VP_ORIGIN_ARGS);
}

static void offload_refused(void **state) {
    (void)state;
    static const struct refusal LIST[] = {
        {RUN "serve: {offload: {weights: 0.5}}\n" ARGS("cpu_offload_gb: 3"), VP_D_CONTRADICTION,
         "given as a share and as a size"},
        {RUN "serve: {offload: {weights: 4 GiB}}\n" ARGS("cpu_offload_gb: 3"), VP_D_CONTRADICTION,
         "cpu_offload_gb (line 6) says 3 GiB, but serve.offload.weights (line 5) says 4 GiB"},
        {RUN ARGS("cpu_offload_gb: many"), VP_D_BAD_VALUE, "a number of GiB, not many"},
        {RUN ARGS("cpu_offload_gb: -1"), VP_D_BAD_VALUE, "a number of GiB, not -1"},
        {RUN "serve: {offload: 4 GiB}\n", VP_D_BAD_VALUE, "serve.offload must be a map"},
        {RUN "serve: {offload: {experts: 4}}\n", VP_D_UNMODELLED, "serve.offload.experts"},
        {RUN "engine: {name: transformers}\nserve: {offload: {weights: 4 GiB}}\n", VP_D_UNMODELLED,
         "serve.offload.weights is not modelled for transformers"},
        {RUN "engine: {name: sglang}\nserve: {offload: {kv: 4 GiB}}\n", VP_D_UNMODELLED,
         "serve.offload.kv is not modelled for sglang"},
    };
    each_refused(LIST, sizeof LIST / sizeof *LIST);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        T(slots),
        T(which_slots_win),
        T(adapters_refused),
        T(unknown_keys),
        T(methods),
        T(a_head_shares),
        T(ways_to_write_a_config),
        T(drafts_refused),
        T(a_draft_beside_the_file),
        T(images_are_part_of_the_prompt),
        T(limits),
        T(largest_images),
        T(offload),
        T(offload_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
