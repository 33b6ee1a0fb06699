/* GGUF metadata and tensor tables -> models, and the tables that are made up. */
#include "tests/unit/fixture.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/doc/gguf.h"
#include "planner/doc/yaml.h"
#include "planner/import/model_reader.h"
#include "planner/model/requantise.h"
#include "planner/ops/gguf_make.h"
#include "planner/ops/ops.h"
#include "tests/unit/gguf_builder.h"

static struct fixture f;
static struct vp_model *model;
static const char *base; /* folder of relative paths */

static int begin(void **state) {
    (void)state;
    fixture_begin(&f);
    f.ctx.profiles = "profiles";
    base = fixture_folder(&f);
    return 0;
}

static int end(void **state) {
    (void)state;
    fixture_end(&f);
    return 0;
}

static enum vp_status read_node(struct vp_node *node) {
    fixture_clear(&f);
    return vp_model_read(&f.ctx, &model, node, base);
}

static enum vp_status read_text(const char *text) {
    struct vp_node *node;
    assert_int_equal(vp_yaml_read(&f.ctx, &node, (struct vp_bytes){text, strlen(text)}, "run.yaml"),
                     VP_OK);
    return read_node(node);
}

static void accepted(const char *text) {
    enum vp_status status = read_text(text);
    for (uint32_t i = 0; i < f.diags.count; i++)
        print_message("%s\n", f.diags.items[i].message);
    assert_int_equal(status, VP_OK);
    assert_non_null(model);
}

static void refused(const char *text, enum vp_diag_id id, const char *words) {
    assert_int_equal(read_text(text), VP_ERR_INPUT);
    fixture_expect(&f, id, words);
}

static const struct vp_block *block_of(uint32_t layer) {
    assert_true(layer < model->layer_count);
    return &model->blocks[model->layers[layer]];
}

static const struct vp_gguf_tensor *find(const struct vp_gguf_table *table, const char *name) {
    for (uint32_t i = 0; i < table->count; i++)
        if (strcmp(table->tensor[i].name, name) == 0)
            return &table->tensor[i];
    return NULL;
}

static const struct vp_gguf_tensor *get(const struct vp_gguf_table *table, const char *name) {
    const struct vp_gguf_tensor *t = find(table, name);
    if (!t)
        fail_msg("no tensor %s", name);
    return t;
}

#define LLAMA                                                                                      \
    "general.architecture: llama, llama.block_count: 4, llama.embedding_length: 64, "              \
    "llama.feed_forward_length: 96, llama.attention.head_count: 4, llama.vocab_size: 100, "        \
    "llama.context_length: 2048"

/* ---- keys alone ---- */

static void llama_keys(void **state) {
    (void)state;
    accepted("{gguf: {" LLAMA ", llama.attention.head_count_kv: 2}}");
    assert_string_equal(model->model_type, "llama");
    assert_true(model->gguf_keys);
    assert_null(model->gguf);
    assert_null(model->cache_unknown);
    assert_int_equal(model->hidden, 64);
    assert_int_equal(model->vocab, 100);
    assert_int_equal(model->max_position, 2048);
    assert_int_equal(model->layer_count, 4);
    assert_int_equal(model->block_count, 1);
    assert_false(model->tied);
    const struct vp_block *block = block_of(0);
    assert_int_equal(block->attention.kind, VP_ATTENTION_GQA);
    assert_int_equal(block->attention.kv_heads, 2);
    assert_int_equal(block->attention.head_dim, 16);
    assert_int_equal(block->mlp.kind, VP_MLP_GATED);
    /* 2 x 100 x 64, and per layer 64 x (64 + 32 + 32 + 64) + 3 x 64 x 96 + 2 x 64, and 64 */
    assert_int_equal(vp_ops_params(model).total,
                     2 * 6400 + 4 * (64 * 192 + 3 * 64 * 96 + 128) + 64);
    accepted("{tie_word_embeddings: true, gguf: {" LLAMA "}}");
    assert_true(model->tied);
    assert_int_equal(block_of(0)->attention.kv_heads, 4);
}

static void lists_per_layer(void **state) {
    (void)state;
    accepted("{gguf: {" LLAMA ", llama.attention.head_count_kv: [2, 4, 2, 0]}}");
    assert_int_equal(model->block_count, 3);
    assert_int_equal(block_of(1)->attention.kv_heads, 4);
    assert_int_equal(block_of(3)->attention.kind, VP_ATTENTION_NONE);
    assert_ptr_equal(block_of(0), block_of(2));
    refused("{gguf: {" LLAMA ", llama.attention.head_count_kv: [2, 4, 2]}}", VP_D_MODEL_FIELD,
            "llama.attention.head_count_kv must list one number per layer: 3 for 4 layers");
}

static void bad_keys(void **state) {
    (void)state;
    refused("{gguf: 3}", VP_D_MODEL_FIELD, "must be a map");
    refused("{gguf: {llama.block_count: 1}}", VP_D_MODEL_FIELD, "general.architecture");
    refused("{gguf: {general.architecture: lama, lama.block_count: 1}}", VP_D_FAMILY_UNKNOWN,
            "no importer");
    assert_non_null(strstr(f.diags.items[0].hint, "llama"));
    refused("{gguf: {general.architecture: rwkv7, rwkv7.block_count: 1}}", VP_D_FAMILY_UNKNOWN,
            "do not tell its tensors");
    refused("{gguf: {general.architecture: llama, llama.block_count: 0}}", VP_D_MODEL_FIELD,
            "llama.block_count: 0");
    refused("{gguf: {general.architecture: llama, llama.block_count: 5000}}", VP_D_MODEL_FIELD,
            "5000 layers");
    refused("{gguf: {general.architecture: llama, llama.block_count: few}}", VP_D_MODEL_FIELD,
            "whole number");
    refused("{gguf: {general.architecture: llama, llama.block_count: 2, "
            "llama.embedding_length: 64, llama.vocab_size: 9}}",
            VP_D_MODEL_FIELD, "llama.attention.head_count is missing");
    refused("{gguf: {general.architecture: llama, llama.block_count: 2, "
            "llama.nextn_predict_layers: 2}}",
            VP_D_MODEL_FIELD, "nextn_predict_layers");
}

static void windows(void **state) {
    (void)state;
#define GEMMA(a, more)                                                                             \
    "{gguf: {general.architecture: " a ", " a ".block_count: 12, " a ".embedding_length: 64, " a   \
    ".feed_forward_length: 96, " a ".attention.head_count: 4, " a ".vocab_size: 100" more "}}"
    accepted(GEMMA("gemma2", ""));
    assert_true(model->tied);
    assert_int_equal(block_of(0)->attention.window, 4096);
    assert_int_equal(block_of(1)->attention.window, 0);
    assert_int_equal(block_of(0)->norms, 4);
    accepted(GEMMA("gemma3", ", gemma3.attention.sliding_window: 512"));
    for (uint32_t i = 0; i < 12; i++)
        assert_int_equal(block_of(i)->attention.window, i % 6 == 5 ? 0 : 512);
    accepted(GEMMA("gemma3", ""));
    assert_int_equal(model->block_count, 1);
    accepted(GEMMA("gemma3", ", gemma3.attention.sliding_window: 512, "
                             "gemma3.attention.sliding_window_pattern: 3"));
    assert_int_equal(block_of(2)->attention.window, 0);
    assert_int_equal(block_of(1)->attention.window, 512);
    accepted(GEMMA("gemma3", ", gemma3.attention.sliding_window: 512, "
                             "gemma3.attention.key_length_swa: 8, "
                             "gemma3.attention.sliding_window_pattern: "
                             "[true, false, false, false, false, false, true, true, true, true, "
                             "true, true]"));
    assert_int_equal(block_of(0)->attention.window, 512);
    assert_int_equal(block_of(0)->attention.head_dim, 8);
    assert_int_equal(block_of(1)->attention.window, 0);
    assert_int_equal(block_of(1)->attention.head_dim, 16);
    accepted(GEMMA("llama4", ", llama4.expert_count: 4, llama4.expert_used_count: 1, "
                             "llama4.expert_feed_forward_length: 32, "
                             "llama4.interleave_moe_layer_step: 2, llama4.expert_shared_count: 1"));
    assert_int_equal(block_of(0)->attention.chunk, 8192);
    assert_int_equal(block_of(3)->attention.chunk, 0);
    assert_int_equal(block_of(0)->moe.kind, VP_MLP_NONE);
    assert_int_equal(block_of(1)->moe.experts, 4);
    assert_int_equal(block_of(1)->moe.shared_intermediate, 32);
    assert_int_equal(block_of(1)->mlp.kind, VP_MLP_NONE);
}

/* ---- the table that is made up ---- */

static void made_up(void **state) {
    (void)state;
    accepted("{gguf: {" LLAMA ", llama.attention.head_count_kv: 2}}");
    const struct vp_gguf_table *table = vp_gguf_make(&f.arena, model);
    assert_non_null(table);
    assert_true(table->made_up);
    assert_int_equal(table->count, 3 + 4 * 9);
    assert_int_equal(table->parameters, vp_ops_params(model).total);
    const struct vp_gguf_tensor *t = get(table, "token_embd.weight");
    assert_int_equal(t->place, VP_GGUF_INPUT);
    assert_int_equal(t->layer, -1);
    assert_int_equal(t->type, VP_DTYPE_FP16);
    assert_int_equal(t->bytes, 12800);
    t = get(table, "blk.2.attn_k.weight");
    assert_int_equal(t->place, VP_GGUF_BLOCK);
    assert_int_equal(t->layer, 2);
    assert_int_equal(t->ne[0], 64);
    assert_int_equal(t->ne[1], 32);
    assert_int_equal(t->kind, VP_GGUF_ATTENTION);
    t = get(table, "blk.3.ffn_norm.weight");
    assert_int_equal(t->type, VP_DTYPE_FP32);
    assert_int_equal(t->kind, VP_GGUF_VECTOR);
    t = get(table, "output.weight");
    assert_int_equal(t->place, VP_GGUF_OUTPUT);
    assert_int_equal(t->layer, 4);
    accepted("{tie_word_embeddings: true, gguf: {" LLAMA "}}");
    assert_null(find(vp_gguf_make(&f.arena, model), "output.weight"));
}

/* precision.weights as a scenario would apply it. */
static const struct vp_gguf_table *stored_as(const char *weights) {
    struct vp_scenario scenario = {.model = model, .precision = {.weights = weights}};
    scenario.engine.kind = VP_ENGINE_LLAMA_CPP;
    scenario.engine.name = "llama.cpp";
    scenario.precision.keep[VP_CLASS_EMBEDDING] = scenario.precision.keep[VP_CLASS_LM_HEAD] = true;
    scenario.precision.keep[VP_CLASS_NORM] = scenario.precision.keep[VP_CLASS_ROUTER] = true;
    fixture_clear(&f);
    if (vp_model_requantise(&f.ctx, &scenario) != VP_OK)
        return NULL;
    return vp_gguf_make(&f.arena, model);
}

static void quantised(void **state) {
    (void)state;
    static const struct {
        const char *weights, *tensor;
        enum vp_dtype type;
    } CASES[] = {
        {"q8_0", "token_embd.weight", VP_DTYPE_Q8_0},
        {"Q8_0", "output.weight", VP_DTYPE_Q8_0},
        {"q8_0", "blk.0.attn_norm.weight", VP_DTYPE_FP32},
        {"q4_k", "blk.0.attn_q.weight", VP_DTYPE_Q5_0}, /* rows of 64 are no blocks of 256 */
        {"q6_k", "blk.0.ffn_down.weight", VP_DTYPE_Q8_0},
        {"q5_k", "blk.0.ffn_down.weight", VP_DTYPE_Q5_1},
        {"q2_k", "blk.0.ffn_up.weight", VP_DTYPE_Q4_0},
        {"iq4_xs", "blk.0.ffn_up.weight", VP_DTYPE_IQ4_NL},
        {"q1_0", "blk.0.ffn_up.weight", VP_DTYPE_FP16},
        {"mxfp4", "blk.0.ffn_up.weight", VP_DTYPE_Q8_0}, /* no experts */
        {"bf16", "blk.0.ffn_up.weight", VP_DTYPE_BF16},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        accepted("{gguf: {" LLAMA "}}");
        const struct vp_gguf_table *table = stored_as(CASES[i].weights);
        assert_non_null(table);
        assert_string_equal(vp_dtype_name(get(table, CASES[i].tensor)->type),
                            vp_dtype_name(CASES[i].type));
    }
    accepted("{gguf: {" LLAMA "}}");
    assert_null(stored_as("q4_k_m"));
    fixture_expect(&f, VP_D_BAD_VALUE, "q4_k_m");
    assert_non_null(strstr(f.diags.items[0].hint, "mix"));
    accepted("{gguf: {" LLAMA ", llama.expert_count: 4, llama.expert_used_count: 2}}");
    const struct vp_gguf_table *table = stored_as("mxfp4");
    const struct vp_gguf_tensor *t = get(table, "blk.0.ffn_up_exps.weight");
    assert_int_equal(t->type, VP_DTYPE_MXFP4);
    assert_int_equal(t->ne[2], 4);
    assert_int_equal(t->kind, VP_GGUF_EXPERT);
    assert_int_equal(t->bytes, 4 * 96 * 2 * 17);
    assert_int_equal(get(table, "blk.0.ffn_gate_inp.weight")->type, VP_DTYPE_FP32);
    assert_int_equal(get(table, "blk.0.attn_q.weight")->type, VP_DTYPE_Q8_0);
}

/* Every type of ggml's has a format of the same size. */
static void types_agree(void **state) {
    (void)state;
    int known = 0;
    for (uint32_t id = 0; id < 64; id++) {
        const struct vp_ggml_type *type = vp_ggml_type(id);
        if (!type)
            continue;
        enum vp_dtype dtype = vp_dtype_parse(type->name);
        assert_int_not_equal(dtype, VP_DTYPE_UNSET);
        assert_int_equal(vp_dtype_bytes(dtype, vp_sum(type->elements)).v, type->bytes);
        assert_int_equal(type->elements % vp_dtype_block(dtype), 0);
        known++;
    }
    assert_int_equal(known, 35);
}

/* ---- files ---- */

static void keys_of(struct gguf_builder *b, const char *arch, uint32_t layers) {
    static const char *const ENDS[] = {"embedding_length", "feed_forward_length",
                                       "attention.head_count", "context_length"};
    static const uint32_t VALUES[] = {64, 96, 4, 2048};
    gguf_key_text(b, "general.architecture", arch);
    gguf_key_u32(b, vp_arena_printf(&f.arena, "%s.block_count", arch), layers);
    for (int i = 0; i < 4; i++)
        gguf_key_u32(b, vp_arena_printf(&f.arena, "%s.%s", arch, ENDS[i]), VALUES[i]);
}

static void f32_tensor(struct gguf_builder *b, const char *name, uint64_t ne0, uint64_t ne1) {
    gguf_tensor(b, name, 0, 4 * ne0 * (ne1 ? ne1 : 1), ne0, ne1, 0);
}

static void llama_tensors(struct gguf_builder *b, uint32_t layers) {
    static const struct {
        const char *name;
        uint64_t ne0, ne1;
    } LAYER[] = {
        {"attn_norm.weight", 64, 0}, {"attn_q.weight", 64, 64},      {"attn_k.weight", 64, 64},
        {"attn_v.weight", 64, 64},   {"attn_q.bias", 64, 0},         {"attn_k.bias", 64, 0},
        {"attn_v.bias", 64, 0},      {"attn_output.weight", 64, 64}, {"ffn_norm.weight", 64, 0},
        {"ffn_gate.weight", 64, 96}, {"ffn_up.weight", 64, 96},      {"ffn_down.weight", 96, 64}};
    gguf_tensor(b, "token_embd.weight", 8, 100 * 2 * 34, 64, 100, 0);
    f32_tensor(b, "rope_freqs.weight", 8, 0);
    for (uint32_t layer = 0; layer < layers; layer++)
        for (size_t i = 0; i < sizeof LAYER / sizeof *LAYER; i++)
            f32_tensor(b, vp_arena_printf(&f.arena, "blk.%u.%s", layer, LAYER[i].name),
                       LAYER[i].ne0, LAYER[i].ne1);
    f32_tensor(b, "output_norm.weight", 64, 0);
}

static enum vp_status read_file(struct gguf_builder *b, bool data) {
    gguf_end(b, data);
    fixture_file(&f, "m.gguf", b->data, b->size);
    return read_text("m.gguf");
}

/* Biases, a tied head, scaled frequencies: the tensors say so, whatever is usual. */
static void tensors_decide(void **state) {
    (void)state;
    struct gguf_builder b = gguf_begin(&f.arena, 3, false);
    keys_of(&b, "llama", 2);
    llama_tensors(&b, 2);
    assert_int_equal(read_file(&b, true), VP_OK);
    assert_int_equal(f.diags.count, 0);
    assert_true(model->tied);
    assert_true(block_of(1)->attention.qkv_bias);
    assert_false(block_of(1)->attention.out_bias);
    assert_int_equal(model->vocab, 100);
    const struct vp_gguf_table *table = model->gguf;
    assert_ptr_equal(vp_gguf_make(&f.arena, model), table);
    assert_false(table->header_only);
    assert_string_equal(table->architecture, "llama");
    const struct vp_gguf_tensor *t = get(table, "rope_freqs.weight");
    assert_true(t->every);
    assert_int_equal(t->layer, 0);
    assert_int_equal(table->parameters, vp_ops_params(model).total);
    assert_int_equal(table->parameters, 6400 + 8 + 2 * (5 * 64 + 4 * 4096 + 3 * 6144) + 64);
    assert_int_equal(model->schemes[model->embedding_scheme].data, VP_DTYPE_Q8_0);
    assert_int_equal(model->schemes[block_of(0)->scheme[VP_ROLE_DOWN]].data, VP_DTYPE_FP32);
    /* stored otherwise */
    const struct vp_gguf_table *read = table;
    table = stored_as("q8_0"); /* of its own: others may share the file's */
    assert_ptr_not_equal(table, read);
    assert_int_equal(get(table, "blk.1.attn_q.weight")->type, VP_DTYPE_Q8_0);
    assert_int_equal(get(table, "blk.1.attn_q.weight")->bytes, 64 * 2 * 34);
    assert_int_equal(get(table, "blk.1.attn_q.bias")->type, VP_DTYPE_FP32);
    /* without its data */
    b = gguf_begin(&f.arena, 3, false);
    keys_of(&b, "llama", 2);
    llama_tensors(&b, 2);
    assert_int_equal(read_file(&b, false), VP_OK);
    fixture_expect(&f, VP_D_HEADER_ONLY, "ends after its header");
    assert_true(model->gguf->header_only);
}

static void prediction_layers(void **state) {
    (void)state;
    struct gguf_builder b = gguf_begin(&f.arena, 3, true);
    keys_of(&b, "qwen2", 3);
    gguf_key_u32(&b, "qwen2.nextn_predict_layers", 1);
    llama_tensors(&b, 3);
    f32_tensor(&b, "blk.2.nextn.eh_proj.weight", 128, 64);
    assert_int_equal(read_file(&b, true), VP_OK);
    assert_int_equal(model->layer_count, 2);
    assert_true(get(model->gguf, "blk.2.attn_q.weight")->nextn);
    assert_false(get(model->gguf, "blk.1.attn_q.weight")->nextn);
    assert_int_equal(model->gguf->parameters, 6400 + 8 + 2 * (5 * 64 + 4 * 4096 + 3 * 6144) + 64);
}

static void unknown_architecture(void **state) {
    (void)state;
    struct gguf_builder b = gguf_begin(&f.arena, 3, false);
    keys_of(&b, "novel", 2);
    llama_tensors(&b, 2);
    assert_int_equal(read_file(&b, true), VP_OK);
    assert_non_null(model->cache_unknown);
    assert_non_null(strstr(model->cache_unknown, "novel"));
    assert_int_equal(model->layer_count, 2);
    assert_int_equal(model->gguf->data_bytes,
                     100 * 2 * 34 + 4 * (8 + 2 * (5 * 64 + 4 * 4096 + 3 * 6144) + 64));
    assert_int_equal(vp_ops_params(model).total, model->gguf->parameters);
}

static void no_models(void **state) {
    (void)state;
    refused("{gguf: {general.architecture: clip, clip.block_count: 2}}", VP_D_MODEL_FIELD,
            "mmproj");
    refused("{gguf: {general.type: adapter, " LLAMA "}}", VP_D_MODEL_FIELD, "adapter");
    struct gguf_builder b = gguf_begin(&f.arena, 3, false);
    keys_of(&b, "llama", 3);
    llama_tensors(&b, 2);
    assert_int_equal(read_file(&b, true), VP_ERR_INPUT);
    fixture_expect(&f, VP_D_MODEL_FIELD, "no tensors of block 2");
}

/* A folder with one GGUF model, one in parts, or two. */
static void folders(void **state) {
    (void)state;
    struct gguf_builder b = gguf_begin(&f.arena, 3, false);
    keys_of(&b, "llama", 2);
    llama_tensors(&b, 2);
    gguf_end(&b, true);
    fixture_file(&f, "tiny.gguf", b.data, b.size);
    fixture_file(&f, "mmproj-tiny.gguf", "x", 1);
    accepted(".");
    assert_string_equal(model->name, "tiny");
    assert_int_equal(model->layer_count, 2);
    fixture_file(&f, "other.gguf", b.data, b.size);
    assert_int_equal(read_text("."), VP_ERR_INPUT);
    fixture_expect(&f, VP_D_FILE_MISSING, "several models");
    /* keys laid over a file's: its tensors are those of another model */
    assert_int_equal(read_text("{from: tiny.gguf, gguf: {llama.context_length: 4096}}"), VP_OK);
    assert_int_equal(model->max_position, 4096);
    assert_true(model->tied);
    assert_null(model->gguf);
}

/* ---- keys, and the file that holds what they tell ---- */

#define KEYS(a, layers)                                                                            \
    "general.architecture: " a ", " a ".block_count: " layers ", " a ".embedding_length: 64, " a   \
    ".attention.head_count: 4, " a ".vocab_size: 96, " a ".context_length: 512"
#define FF(a) ", " a ".feed_forward_length: 96"
#define SSM(a, inner, state, rank, groups)                                                         \
    ", " a ".ssm.conv_kernel: 4, " a ".ssm.inner_size: " inner ", " a ".ssm.state_size: " state    \
    ", " a ".ssm.time_step_rank: " rank ", " a ".ssm.group_count: " groups
#define MOE(a)                                                                                     \
    ", " a ".expert_count: 4, " a ".expert_used_count: 2, " a ".expert_feed_forward_length: 32"
#define LATENT(a)                                                                                  \
    ", " a ".attention.kv_lora_rank: 16, " a ".attention.key_length_mla: 24, " a                   \
    ".attention.value_length_mla: 16, " a ".rope.dimension_count: 8"

static const char *const ARCHITECTURES[] = {
    KEYS("llama", "2") FF("llama"),
    KEYS("llama", "2") FF("llama") MOE("llama"),
    KEYS("qwen2", "2") FF("qwen2"),
    KEYS("qwen3", "2") FF("qwen3"),
    KEYS("qwen2moe", "2") FF("qwen2moe") MOE("qwen2moe"),
    KEYS("qwen3moe", "2") FF("qwen3moe") MOE("qwen3moe"),
    KEYS("gemma2", "4") FF("gemma2"),
    KEYS("gemma3", "7") FF("gemma3") ", gemma3.attention.sliding_window: 32",
    KEYS("phi2", "2") FF("phi2"),
    KEYS("gpt2", "2") FF("gpt2"),
    KEYS("bloom", "2") FF("bloom"),
    KEYS("gptneox", "2") FF("gptneox"),
    KEYS("falcon", "2") FF("falcon"),
    KEYS("starcoder2", "2") FF("starcoder2"),
    KEYS("command-r", "2") FF("command-r"),
    KEYS("olmo", "2") FF("olmo"),
    KEYS("olmo2", "2") FF("olmo2"),
    KEYS("olmoe", "2") FF("olmoe") MOE("olmoe"),
    KEYS("glm4", "2") FF("glm4"),
    KEYS("glm4moe", "3") FF("glm4moe") MOE("glm4moe") ", glm4moe.leading_dense_block_count: 1, "
                                                      "glm4moe.expert_shared_count: 1",
    KEYS("gpt-oss", "2") FF("gpt-oss") MOE("gpt-oss") ", gpt-oss.attention.sliding_window: 16",
    KEYS("llama4", "4") FF("llama4") MOE("llama4") ", llama4.interleave_moe_layer_step: 2, "
                                                   "llama4.expert_shared_count: 1",
    KEYS("deepseek2", "3") FF("deepseek2") MOE("deepseek2")
        LATENT("deepseek2") ", deepseek2.attention.q_lora_rank: 8, "
                            "deepseek2.leading_dense_block_count: 1, "
                            "deepseek2.expert_shared_count: 2, deepseek2.expert_gating_func: 2",
    KEYS("minicpm3", "2") FF("minicpm3") ", minicpm3.attention.kv_lora_rank: 16, "
                                         "minicpm3.attention.key_length: 24, "
                                         "minicpm3.attention.value_length: 16, "
                                         "minicpm3.attention.q_lora_rank: 8, "
                                         "minicpm3.rope.dimension_count: 8",
    KEYS("mamba", "2") SSM("mamba", "128", "8", "4", "0"),
    KEYS("mamba2", "2") SSM("mamba2", "128", "8", "4", "2"),
    KEYS("falcon-h1", "2") FF("falcon-h1") SSM("falcon-h1", "128", "8", "4", "2"),
    KEYS("granitehybrid", "2") FF("granitehybrid") SSM(
        "granitehybrid", "128", "8", "4", "1") ", granitehybrid.attention.head_count_kv: [0, 2]",
    KEYS("nemotron_h", "3")
        SSM("nemotron_h", "128", "8", "4", "2") ", nemotron_h.attention.head_count_kv: [0, 2, 0], "
                                                "nemotron_h.feed_forward_length: [0, 0, 96]",
    KEYS("qwen35", "4") FF("qwen35") SSM("qwen35", "64", "16", "4", "2"),
    KEYS("qwen3next", "4") FF("qwen3next") MOE("qwen3next") SSM("qwen3next", "64", "16", "4", "2"),
    KEYS("kimi-linear", "2") FF("kimi-linear")
        LATENT("kimi-linear") ", kimi-linear.kda.head_dim: 16, kimi-linear.ssm.conv_kernel: 4, "
                              "kimi-linear.attention.head_count_kv: [0, 4]",
    KEYS("lfm2", "2") FF("lfm2") ", lfm2.shortconv.l_cache: 3, "
                                 "lfm2.attention.head_count_kv: [0, 2]",
    KEYS("bert", "2") FF("bert") ", tokenizer.ggml.token_type_count: 2",
    KEYS("nomic-bert", "2") FF("nomic-bert"),
};

static void write_keys(struct gguf_builder *b, const struct vp_node *map) {
    uint32_t items[16];
    for (uint32_t i = 0; i < map->count; i++) {
        const struct vp_node *node = map->items[i];
        uint64_t v = 0;
        if (node->kind == VP_NODE_TEXT) {
            gguf_key_text(b, map->keys[i], node->text);
        } else if (node->kind == VP_NODE_LIST) {
            for (uint32_t k = 0; k < node->count; k++) {
                assert_true(vp_node_u64(&v, node->items[k]) && k < 16);
                items[k] = (uint32_t)v;
            }
            gguf_key_list(b, map->keys[i], items, node->count);
        } else {
            assert_true(vp_node_u64(&v, node));
            gguf_key_u32(b, map->keys[i], (uint32_t)v);
        }
    }
}

static void same_mixer(const struct vp_attention *a, const struct vp_attention *b) {
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->heads, b->heads);
    assert_int_equal(a->kv_heads, b->kv_heads);
    assert_int_equal(a->head_dim, b->head_dim);
    assert_int_equal(a->v_head_dim, b->v_head_dim);
    assert_int_equal(a->window, b->window);
    assert_int_equal(a->chunk, b->chunk);
    assert_int_equal(a->qkv_bias, b->qkv_bias);
    assert_int_equal(a->out_bias, b->out_bias);
    assert_int_equal(a->output_gate, b->output_gate);
    assert_int_equal(a->sinks, b->sinks);
    assert_int_equal(a->key_is_value, b->key_is_value);
    assert_int_equal(a->qk_norm, b->qk_norm);
    assert_int_equal(a->kv_lora_rank, b->kv_lora_rank);
    assert_int_equal(a->expanded, b->expanded);
    assert_int_equal(a->linear, b->linear);
    assert_int_equal(a->state_elements, b->state_elements);
    assert_int_equal(a->conv_channels, b->conv_channels);
}

/* A file with the tensors that the keys tell is read as the same model. */
static void files_and_keys(void **state) {
    (void)state;
    for (size_t n = 0; n < sizeof ARCHITECTURES / sizeof *ARCHITECTURES; n++) {
        const char *text = vp_arena_printf(&f.arena, "{gguf: {%s}}", ARCHITECTURES[n]);
        accepted(text);
        struct vp_model *keys = model;
        const struct vp_gguf_table *table = vp_gguf_make(&f.arena, keys);
        struct vp_params params = vp_ops_params(keys);
        assert_int_equal(table->parameters, params.total);
        struct vp_node *root;
        assert_int_equal(
            vp_yaml_read(&f.ctx, &root, (struct vp_bytes){text, strlen(text)}, "run.yaml"), VP_OK);
        struct gguf_builder b = gguf_begin(&f.arena, 3, n % 2 == 1);
        write_keys(&b, vp_node_get(root, "gguf"));
        for (uint32_t i = 0; i < table->count; i++) {
            const struct vp_gguf_tensor *t = &table->tensor[i];
            gguf_tensor(&b, t->name, 0, 4 * t->elements, t->ne[0], t->dims > 1 ? t->ne[1] : 0,
                        t->dims > 2 ? t->ne[2] : 0);
        }
        if (read_file(&b, false) != VP_OK)
            fail_msg("%s", ARCHITECTURES[n]);
        if (vp_ops_params(model).active != params.active)
            fail_msg("%s: %llu active, not %llu", ARCHITECTURES[n],
                     (unsigned long long)vp_ops_params(model).active,
                     (unsigned long long)params.active);
        assert_int_equal(model->tied, keys->tied);
        assert_int_equal(model->layer_count, keys->layer_count);
        for (uint32_t i = 0; i < model->layer_count; i++) {
            const struct vp_block *want = &keys->blocks[keys->layers[i]];
            same_mixer(&block_of(i)->attention, &want->attention);
            same_mixer(&block_of(i)->second, &want->second);
            assert_int_equal(block_of(i)->norms, want->norms);
        }
    }
}

/* ---- the header-only files ---- */

/* The description without the file, as `import` writes it, gives the tensors of the file, fused or
 * apart, but for rope_freqs. */
static void same_tensors(const char *path) {
    assert_int_equal(read_text(path), VP_OK);
    const struct vp_gguf_table *table = model->gguf;
    uint64_t total = table->parameters, layer_elements = 0, made_elements = 0;
    const struct vp_gguf_tensor *rope = find(table, "rope_freqs.weight");
    struct vp_node *description;
    const char *source;
    struct vp_node *name = vp_node_scalar(&f.ctx, VP_NODE_TEXT, path, (struct vp_pos){0});
    assert_int_equal(vp_model_description(&f.ctx, &description, &source, name, NULL), VP_OK);
    assert_int_equal(read_node(description), VP_OK);
    const struct vp_gguf_table *made = vp_gguf_make(&f.arena, model);
    assert_non_null(made);
    assert_int_equal(made->parameters, total - (rope ? rope->elements : 0));
    for (uint32_t i = 0; i < table->count; i++)
        layer_elements += table->tensor[i].layer == 0 && &table->tensor[i] != rope
                              ? table->tensor[i].elements
                              : 0;
    for (uint32_t i = 0; i < made->count; i++)
        made_elements += made->tensor[i].layer == 0 ? made->tensor[i].elements : 0;
    assert_int_equal(made_elements, layer_elements);
    static const char *const ENDS[] = {"token_embd.weight", "output_norm.weight",
                                       "blk.0.attn_norm.weight"};
    for (int i = 0; i < 3; i++) {
        assert_memory_equal(get(made, ENDS[i])->ne, get(table, ENDS[i])->ne,
                            sizeof made->tensor->ne);
        assert_int_equal(get(made, ENDS[i])->place, get(table, ENDS[i])->place);
    }
    for (uint32_t i = 0; i < made->count; i++) { /* every one there is, by its name, is the same */
        const struct vp_gguf_tensor *t = find(table, made->tensor[i].name);
        if (t)
            assert_int_equal(t->elements, made->tensor[i].elements);
    }
}

static void header_only_files(void **state) {
    (void)state;
    static const char folder[] = "../shared/data/gguf";
    char **names;
    size_t count, tried = 0;
    if (vp_io_kind(&f.ctx, folder) != VP_FILE_DIRECTORY)
        skip();
    assert_int_equal(vp_io_list(&f.ctx, &names, &count, folder), VP_OK);
    base = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!vp_text_ends(names[i], ".gguf"))
            continue;
        same_tensors(vp_io_join(&f.ctx, folder, names[i]));
        tried++;
    }
    assert_true(tried >= 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(llama_keys, begin, end),
        cmocka_unit_test_setup_teardown(lists_per_layer, begin, end),
        cmocka_unit_test_setup_teardown(bad_keys, begin, end),
        cmocka_unit_test_setup_teardown(windows, begin, end),
        cmocka_unit_test_setup_teardown(made_up, begin, end),
        cmocka_unit_test_setup_teardown(quantised, begin, end),
        cmocka_unit_test_setup_teardown(types_agree, begin, end),
        cmocka_unit_test_setup_teardown(tensors_decide, begin, end),
        cmocka_unit_test_setup_teardown(prediction_layers, begin, end),
        cmocka_unit_test_setup_teardown(unknown_architecture, begin, end),
        cmocka_unit_test_setup_teardown(no_models, begin, end),
        cmocka_unit_test_setup_teardown(folders, begin, end),
        cmocka_unit_test_setup_teardown(files_and_keys, begin, end),
        cmocka_unit_test_setup_teardown(header_only_files, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
