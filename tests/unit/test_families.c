/* Model families: parameter totals of known models (family_cases.def), what each family caches,
 * and what is refused. */
#include <inttypes.h>
#include <string.h>

#include "planner/doc/json.h"
#include "planner/import/model_reader.h"
#include "planner/ops/ops.h"
#include "tests/unit/model_builder.h"

static const struct {
    const char *name;
    uint64_t total;
    const char *config;
} CASES[] = {
#define X(name, total, ...) {name, total, #__VA_ARGS__},
#include "tests/unit/family_cases.def"
#undef X
};

/* NULL when the description is refused. */
static struct vp_model *read_model(struct fixture *f, const char *json) {
    struct vp_node *node;
    struct vp_model *model = NULL;
    struct vp_bytes bytes = {json, strlen(json)};

    fixture_clear(f);
    assert_int_equal(vp_json_read(&f->ctx, &node, bytes, "config.json"), VP_OK);
    enum vp_status status = vp_model_read(&f->ctx, &model, node, ".");
    if (status != VP_OK)
        return NULL;
    return model;
}

static struct vp_model *must_read(struct fixture *f, const char *json) {
    struct vp_model *model = read_model(f, json);

    for (uint32_t i = 0; !model && i < f->diags.count; i++)
        print_message("%s\n", f->diags.items[i].message);
    assert_non_null(model);
    return model;
}

static const char *config_of(const char *name) {
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        if (strcmp(CASES[i].name, name) == 0)
            return CASES[i].config;
    fail_msg("no case %s", name);
    return NULL;
}

static void totals(void **state) {
    struct fixture f;
    int wrong = 0;

    (void)state;
    fixture_begin(&f);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const struct vp_model *model = must_read(&f, CASES[i].config);
        struct vp_params params = vp_ops_params(model);
        assert_false(params.overflow);
        assert_true(params.active <= params.total);
        if (params.total == CASES[i].total && f.diags.errors == 0)
            continue;
        print_message("%s: %" PRIu64 " parameters, should be %" PRIu64 "\n", CASES[i].name,
                      params.total, CASES[i].total);
        wrong++;
    }
    assert_int_equal(wrong, 0);
    fixture_end(&f);
}

/* ---- caches and states ---- */

static const struct vp_result *plan_case(struct fixture *f, const char *name, uint64_t context) {
    const char *yaml = vp_arena_printf(&f->arena,
                                       "model: %s\nhardware: {gpu: h200, memory: 4096 GiB}\n"
                                       "serve: {context: %" PRIu64 "}\n",
                                       config_of(name), context);
    fixture_clear(f);
    return plan_yaml(f, yaml);
}

static void encoders_keep_nothing(void **state) {
    static const char *const names[] = {"bert-base-uncased", "bge-reranker-v2-m3",
                                        "modernbert-base", "nomic-embed-text-v1.5"};
    struct fixture f;

    (void)state;
    fixture_begin(&f);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct vp_result *result = plan_case(&f, names[i], 512);
        assert_true(result->scenario->model->encoder_only);
        assert_false(result->kv.known);
        assert_int_equal(ledger_likely(&result->ledger, 0, VP_C_KV_CACHE), 0);
        assert_int_equal(result->verdict, VP_FITS);
        /* no pool: the engine takes what the model needs, not its share of the card */
        assert_int_equal(result->devices[0].reserved_bytes, result->devices[0].need.likely);
    }
    fixture_end(&f);
}

static const struct vp_kv_group *group_of(const struct vp_result *result, const char *kind) {
    for (uint32_t i = 0; i < result->kv.group_count; i++)
        if (strcmp(result->kv.group[i].kind, kind) == 0)
            return &result->kv.group[i];
    fail_msg("no %s layers", kind);
    return NULL;
}

/* The decoder's own keys and values grow; the encoder's are those of 1500 frames. */
static void cross_attention(void **state) {
    struct fixture f;
    const struct vp_result *result;

    (void)state;
    fixture_begin(&f);
    result = plan_case(&f, "whisper-large-v3", 448);
    assert_int_equal(result->kv.bytes_per_token, 32 * 2 * 1280 * 2);
    assert_int_equal(group_of(result, "full")->layers, 32);
    assert_int_equal(group_of(result, "cross")->layers, 32);
    assert_int_equal(group_of(result, "cross")->window, 1500);
    assert_int_equal(group_of(result, "cross")->pages_per_sequence, 94); /* 1500 / 16, rounded up */
    result = plan_case(&f, "llama-3.2-11b-vision", 4096);
    assert_int_equal(group_of(result, "full")->layers, 32);
    assert_int_equal(group_of(result, "cross")->window, 4 * (40 * 40 + 1));
    result = plan_case(&f, "t5-small", 512);
    assert_int_equal(group_of(result, "cross")->layers, 6);
    fixture_end(&f);
}

static void recurrent_states(void **state) {
    struct fixture f;
    const struct vp_result *result;

    (void)state;
    fixture_begin(&f);
    result = plan_case(&f, "mamba-130m", 1024); /* 1536 channels x (16 states + 3 columns) */
    assert_int_equal(result->kv.state_bytes_per_sequence, 24 * 1536 * (16 + 3) * 2);
    result = plan_case(&f, "mamba2-2.7b", 1024); /* 80 x 64 x 128, 5120 + 2 x 128 channels */
    assert_int_equal(result->kv.state_bytes_per_sequence,
                     64 * (80 * 64 * 128 + 3 * (5120 + 256)) * 2);
    result = plan_case(&f, "lfm2-1.2b", 1024); /* two columns of 2048 */
    assert_int_equal(result->kv.state_bytes_per_sequence, 10 * 2 * 2048 * 2);
    assert_int_equal(result->kv.bytes_per_token, 6 * 2 * 8 * 64 * 2);
    result = plan_case(&f, "jamba-v0.1", 1024);
    assert_int_equal(result->kv.state_bytes_per_sequence, 28 * 8192 * (16 + 3) * 2);
    result = plan_case(&f, "minimax-text-01, by its own keys", 1024);
    assert_int_equal(result->kv.state_bytes_per_sequence, 70 * 64 * 128 * 128 * 2);
    result = plan_case(&f, "falcon-h1-0.5b", 1024); /* both halves of every block */
    assert_int_equal(group_of(result, "full")->layers, 36);
    assert_int_equal(group_of(result, "state")->layers, 36);
    fixture_end(&f);
}

/* MiniCPM3 caches heads x (96 + 96), not the latent of 256 + 32. */
static void latents_may_be_expanded(void **state) {
    struct fixture f;

    (void)state;
    fixture_begin(&f);
    assert_int_equal(plan_case(&f, "minicpm3-4b", 1024)->kv.bytes_per_token,
                     62 * 40 * (96 + 96) * 2);
    fixture_end(&f);
}

static uint64_t windows(const struct vp_model *model) {
    uint64_t n = 0;

    for (uint32_t i = 0; i < model->layer_count; i++)
        n += model->blocks[model->layers[i]].attention.window > 0;
    return n;
}

static void window_patterns(void **state) {
    struct fixture f;

    (void)state;
    fixture_begin(&f);
    assert_int_equal(windows(must_read(&f, config_of("gpt-neo-125m"))), 6);
    assert_int_equal(windows(must_read(&f, config_of("command-r7b"))), 24);
    assert_int_equal(windows(must_read(&f, config_of("cohere2"))), 6);
    assert_int_equal(windows(must_read(&f, config_of("olmo3"))), 3);
    assert_int_equal(windows(must_read(&f, config_of("exaone4"))), 3);
    assert_int_equal(windows(must_read(&f, config_of("starcoder2-3b"))), 30);
    assert_int_equal(windows(must_read(&f, config_of("modernbert-base"))), 14); /* 0, 3, ... full */
    assert_int_equal(windows(must_read(&f, "{\"model_type\": \"exaone4\", \"hidden_size\": 64, "
                                           "\"intermediate_size\": 96, \"num_attention_heads\": 4, "
                                           "\"num_hidden_layers\": 9, \"num_key_value_heads\": 2, "
                                           "\"vocab_size\": 1000, \"sliding_window\": 32, "
                                           "\"sliding_window_pattern\": \"LLG\"}")),
                     6);
    fixture_end(&f);
}

static void heads_by_layer(void **state) {
    struct fixture f;

    (void)state;
    fixture_begin(&f);
    const struct vp_model *model = must_read(&f, config_of("laguna"));
    assert_int_equal(model->blocks[model->layers[0]].attention.heads, 4);
    assert_int_equal(model->blocks[model->layers[1]].attention.heads, 6);
    assert_true(model->blocks[model->layers[1]].attention.head_gate);
    assert_int_equal(model->blocks[model->layers[0]].moe.kind, VP_MLP_NONE); /* leading, dense */
    assert_int_equal(model->blocks[model->layers[1]].moe.experts, 8);
    fixture_end(&f);
}

/* The last layers of Gemma 4's small models read the cache of earlier ones. */
static void shared_caches(void **state) {
    struct fixture f;
    const struct vp_result *result;

    (void)state;
    fixture_begin(&f);
    result = plan_case(&f, "gemma4, small", 128);
    assert_int_equal(group_of(result, "window")->layers, 2); /* of 4 */
    assert_int_equal(group_of(result, "full")->layers, 1);   /* of 2 */
    assert_int_equal(result->kv.bytes_per_token, 2 * 2 * 32 * 2);
    fixture_end(&f);
}

/* ---- prediction layers ---- */

static const char DEEPSEEK_V3[] =
    "{\"model_type\": \"deepseek_v3\", \"first_k_dense_replace\": 3, \"hidden_size\": 7168, "
    "\"intermediate_size\": 18432, \"kv_lora_rank\": 512, \"max_position_embeddings\": 163840, "
    "\"moe_intermediate_size\": 2048, \"moe_layer_freq\": 1, \"n_routed_experts\": 256, "
    "\"n_shared_experts\": 1, \"num_attention_heads\": 128, \"num_experts_per_tok\": 8, "
    "\"num_hidden_layers\": 61, \"num_nextn_predict_layers\": 1, \"q_lora_rank\": 1536, "
    "\"qk_nope_head_dim\": 128, \"qk_rope_head_dim\": 64, \"v_head_dim\": 128, "
    "\"vocab_size\": 129280}";

/* DeepSeek V3, one layer with experts: attention 187107328, norms 2 x 7168, router 256 x 7168 +
 * 256, experts 257 x 3 x 7168 x 2048; beside it 2 x 7168^2 and 3 x 7168. */
static void prediction_layers(void **state) {
    struct fixture f;

    (void)state;
    fixture_begin(&f);
    const struct vp_model *model = must_read(&f, DEEPSEEK_V3);
    assert_int_equal(vp_ops_params(model).total, 671026419200); /* without it */
    assert_int_equal(model->extra_count, 1);
    assert_string_equal(model->extras[0].name, "MTP layers");
    assert_false(model->extras[0].counted || model->extras[0].loaded);
    struct vp_sum n = vp_ops_extra_parameters(model, &model->extras[0]);
    assert_int_equal(n.v, 187107328 + 2 * 7168 + 256 * 7168 + 256 +
                              UINT64_C(257) * 3 * 7168 * 2048 + UINT64_C(2) * 7168 * 7168 +
                              3 * 7168);
    fixture_end(&f);
}

/* ---- refusals ---- */

#define JSON(...) #__VA_ARGS__

static const struct {
    enum vp_diag_id id;
    const char *words, *config;
} REFUSED[] = {
    /* a key that must be there is named */
    {VP_D_MODEL_FIELD, "state_size is missing", JSON({
         "model_type" : "mamba",
         "hidden_size" : 64,
         "num_hidden_layers" : 2,
         "vocab_size" : 1000,
         "intermediate_size" : 128,
         "conv_kernel" : 4,
         "time_step_rank" : 4
     })},
    {VP_D_MODEL_FIELD, "num_kv_heads is missing", JSON({
         "model_type" : "falcon",
         "hidden_size" : 64,
         "num_hidden_layers" : 2,
         "num_attention_heads" : 4,
         "vocab_size" : 1000,
         "new_decoder_architecture" : true
     })},
    {VP_D_MODEL_FIELD, "attn_config.kv_n_heads is missing", JSON({
         "model_type" : "dbrx",
         "d_model" : 64,
         "n_layers" : 2,
         "n_heads" : 4,
         "vocab_size" : 1000,
         "attn_config" : {},
         "ffn_config" : {}
     })},
    {VP_D_MODEL_FIELD, "n_positions is missing", JSON({
         "model_type" : "t5",
         "d_model" : 64,
         "d_kv" : 16,
         "d_ff" : 96,
         "num_layers" : 2,
         "num_heads" : 4,
         "relative_attention_num_buckets" : 32,
         "vocab_size" : 1000
     })},
    {VP_D_MODEL_FIELD, "first_k_dense_replace is missing", JSON({
         "model_type" : "dots1",
         "hidden_size" : 64,
         "num_hidden_layers" : 2,
         "num_attention_heads" : 4,
         "vocab_size" : 1000,
         "n_routed_experts" : 8,
         "num_experts_per_tok" : 2,
         "moe_intermediate_size" : 24,
         "intermediate_size" : 96
     })},
    {VP_D_MODEL_FIELD, "attn_type_list must list one number per layer", JSON({
         "model_type" : "minimax_m1",
         "hidden_size" : 64,
         "num_hidden_layers" : 2,
         "num_attention_heads" : 4,
         "vocab_size" : 1000,
         "intermediate_size" : 96,
         "num_local_experts" : 8,
         "num_experts_per_tok" : 2
     })},
    {VP_D_MODEL_FIELD, "tie_word_embeddings is missing", JSON({
         "model_type" : "exaone",
         "hidden_size" : 64,
         "num_layers" : 2,
         "num_attention_heads" : 4,
         "vocab_size" : 1000,
         "intermediate_size" : 96
     })},
    /* sizes that do not agree, layouts that are not modelled */
    {VP_D_MODEL_FIELD, "num_heads x head_dim is 96, the inner width 128", JSON({
         "model_type" : "mamba2",
         "hidden_size" : 64,
         "num_hidden_layers" : 2,
         "vocab_size" : 1000,
         "num_heads" : 6,
         "head_dim" : 16,
         "expand" : 2,
         "n_groups" : 1,
         "state_size" : 32,
         "conv_kernel" : 4
     })},
    {VP_D_MODEL_FIELD, "mlp_layer_types must list one type per layer: 1 for 2 layers", JSON({
         "model_type" : "hy_v3",
         "hidden_size" : 64,
         "num_hidden_layers" : 2,
         "num_attention_heads" : 4,
         "vocab_size" : 1000,
         "num_experts" : 8,
         "num_experts_per_tok" : 2,
         "moe_intermediate_size" : 24,
         "intermediate_size" : 96,
         "mlp_layer_types" : ["sparse"]
     })},
    {VP_D_MODEL_FIELD, "position_embedding_type 'relative_key' is not modelled", JSON({
         "model_type" : "bert",
         "hidden_size" : 64,
         "num_hidden_layers" : 2,
         "num_attention_heads" : 4,
         "vocab_size" : 1000,
         "intermediate_size" : 96,
         "max_position_embeddings" : 128,
         "type_vocab_size" : 2,
         "position_embedding_type" : "relative_key"
     })},
    {VP_D_MODEL_FIELD, "encoder_attention_heads (5)", JSON({
         "model_type" : "whisper",
         "d_model" : 64,
         "encoder_layers" : 2,
         "decoder_layers" : 2,
         "encoder_attention_heads" : 5,
         "decoder_attention_heads" : 4,
         "encoder_ffn_dim" : 96,
         "decoder_ffn_dim" : 96,
         "num_mel_bins" : 20,
         "max_source_positions" : 50,
         "max_target_positions" : 40,
         "vocab_size" : 1000
     })},
    {VP_D_FAMILY_UNKNOWN, "'zamba2' is refused: its layers take turns",
     JSON({"model_type" : "zamba2"})},
    {VP_D_FAMILY_UNKNOWN, "'no_such_model' has no importer",
     JSON({"model_type" : "no_such_model"})},
};

static void refusals(void **state) {
    struct fixture f;

    (void)state;
    fixture_begin(&f);
    for (size_t i = 0; i < sizeof REFUSED / sizeof REFUSED[0]; i++) {
        assert_null(read_model(&f, REFUSED[i].config));
        fixture_expect(&f, REFUSED[i].id, REFUSED[i].words);
    }
    fixture_end(&f);
}

/* Sizes far out of range must end as faults or as overflow, not in a crash or a wrong number. */
static void huge_sizes(void **state) {
    static const char *const keys[] = {"hidden_size",       "num_attention_heads", "vocab_size",
                                       "intermediate_size", "num_key_value_heads", "head_dim"};
    struct fixture f;

    (void)state;
    fixture_begin(&f);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
            struct vp_node *node;
            struct vp_model *model;
            struct vp_pos pos = {.file = "test"};
            struct vp_bytes bytes = {CASES[i].config, strlen(CASES[i].config)};
            assert_int_equal(vp_json_read(&f.ctx, &node, bytes, "config.json"), VP_OK);
            vp_node_set(&f.ctx, node, keys[k], pos,
                        vp_node_scalar(&f.ctx, VP_NODE_INT, "2147483648", pos)); /* 2^31 */
            fixture_clear(&f);
            if (vp_model_read(&f.ctx, &model, node, ".") == VP_OK)
                vp_ops_params(model);
            else
                assert_true(f.diags.errors > 0);
        }
    fixture_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals),
        cmocka_unit_test(encoders_keep_nothing),
        cmocka_unit_test(cross_attention),
        cmocka_unit_test(recurrent_states),
        cmocka_unit_test(latents_may_be_expanded),
        cmocka_unit_test(window_patterns),
        cmocka_unit_test(heads_by_layer),
        cmocka_unit_test(shared_caches),
        cmocka_unit_test(prediction_layers),
        cmocka_unit_test(refusals),
        cmocka_unit_test(huge_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
