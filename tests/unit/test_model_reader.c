#include "tests/unit/fixture.h"

#include <string.h>
#include <sys/stat.h>

#include "planner/doc/yaml.h"
#include "planner/import/model_reader.h"
#include "planner/model/requantise.h"

#define CONFIG                                                                                     \
    "\"model_type\": \"llama\", \"hidden_size\": 4, \"intermediate_size\": 8,\n"                   \
    "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"num_key_value_heads\": 1,\n"          \
    "\"vocab_size\": 10, \"max_position_embeddings\": 16"

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

static struct vp_node *node_of(const char *text) {
    struct vp_node *node;
    assert_int_equal(vp_yaml_read(&f.ctx, &node, (struct vp_bytes){text, strlen(text)}, "run.yaml"),
                     VP_OK);
    return node;
}

static enum vp_status read_model(const char *text) {
    fixture_clear(&f);
    return vp_model_read(&f.ctx, &model, node_of(text), base);
}

static const struct vp_diag *refused(const char *text, enum vp_diag_id id, const char *words) {
    assert_int_equal(read_model(text), VP_ERR_INPUT);
    assert_null(model);
    return fixture_expect(&f, id, words);
}

static void make_folder(const char *name) {
    assert_int_equal(mkdir(vp_io_join(&f.ctx, base, name), 0700), 0);
}

/* A safetensors file of one bf16 tensor; without the data when header_only. */
static void tensors_file(const char *name, const char *tensor, int rows, int columns,
                         bool header_only) {
    int bytes = 2 * rows * columns;
    const char *header = vp_arena_printf(
        &f.arena, "{\"%s\": {\"dtype\": \"BF16\", \"shape\": [%d, %d], \"data_offsets\": [0, %d]}}",
        tensor, rows, columns, bytes);
    size_t n = strlen(header), size = 8 + n + (header_only ? 0 : (size_t)bytes);
    char *data = vp_arena_alloc(&f.arena, size);
    for (int i = 0; i < 8; i++)
        data[i] = (char)(n >> (8 * i) & 0xff);
    memcpy(data + 8, header, n);
    fixture_file(&f, name, data, size);
}

/* ---- names ---- */

static void built_in_names(void **state) {
    (void)state;
    assert_int_equal(read_model("llama-3.1-8b"), VP_OK);
    assert_string_equal(model->name, "llama-3.1-8b");
    assert_int_equal(model->layer_count, 32);
    assert_int_equal(read_model("Llama 3.1 8B"), VP_OK);
    assert_string_equal(model->name, "llama-3.1-8b");
    assert_int_equal(read_model("meta-llama/Llama-3.1-8B-Instruct"), VP_OK);
    assert_string_equal(model->name, "llama-3.1-8b");
    assert_int_equal(f.diags.count, 0);
}

static void names_that_are_not_found(void **state) {
    (void)state;
    const struct vp_diag *d =
        refused("llama-3.1-8c", VP_D_MODEL_NOT_FOUND, "no model llama-3.1-8c");
    assert_non_null(strstr(d->hint, "llama-3.1-8b"));
    assert_int_equal(d->pos.line, 1);
    d = refused("someone/Some-Model", VP_D_MODEL_NOT_FOUND, "nor in the local cache");
    assert_non_null(strstr(d->hint, "hf download someone/Some-Model config.json"));
    refused("./none", VP_D_FILE_MISSING, "none");
    refused("none.json", VP_D_FILE_MISSING, "none.json");
    refused("a/b/c", VP_D_FILE_MISSING, "a/b/c");
    refused("''", VP_D_BAD_VALUE, "model must be");
    refused("[a]", VP_D_BAD_VALUE, "not a list");
    f.ctx.profiles = NULL;
    assert_int_equal(read_model("llama-3.1-8b"), VP_ERR_ENV);
    fixture_expect(&f, VP_D_NO_PROFILES, "model profiles");
}

static void a_users_profile(void **state) {
    (void)state;
    make_folder("models");
    fixture_text_file(&f, "models/mine.yaml",
                      "vramplan_model: 1\nid: mine\naliases: [org/Mine]\nconfig: {" CONFIG "}\n");
    fixture_text_file(&f, "models/empty.yaml", "vramplan_model: 1\nid: empty\n");
    f.ctx.user_profiles = base;
    assert_int_equal(read_model("org/mine"), VP_OK);
    assert_string_equal(model->name, "mine");
    refused("empty", VP_D_PROFILE_BROKEN, "no map `config`");
    char **names;
    size_t count;
    assert_int_equal(vp_model_profiles(&f.ctx, &names, &count), VP_OK);
    assert_true(count > 30);
    for (size_t i = 1; i < count; i++)
        assert_true(strcmp(names[i - 1], names[i]) < 0);
    /* a profile named by its path */
    assert_int_equal(read_model("models/mine.yaml"), VP_OK);
    assert_string_equal(model->name, "mine");
}

static void every_shipped_model_is_read(void **state) {
    (void)state;
    char **names;
    size_t count;
    assert_int_equal(vp_model_profiles(&f.ctx, &names, &count), VP_OK);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(read_model(names[i]), VP_OK);
        assert_string_equal(model->name, names[i]);
    }
}

/* ---- the local cache ---- */

static void the_hub_cache(void **state) {
    (void)state;
    make_folder("hub");
    make_folder("hub/models--org--Net-FP8");
    make_folder("hub/models--org--Net-FP8/snapshots");
    make_folder("hub/models--org--Net-FP8/snapshots/aaa");
    make_folder("hub/models--org--Net-FP8/snapshots/bbb");
    make_folder("hub/models--org--Net-FP8/snapshots/ccc");
    make_folder("hub/models--org--Net-FP8/refs");
    f.ctx.hub_cache = vp_io_join(&f.ctx, base, "hub");
    refused("org/Net-FP8", VP_D_MODEL_NOT_FOUND, "org/Net-FP8"); /* no config.json yet */
    fixture_text_file(&f, "hub/models--org--Net-FP8/snapshots/aaa/config.json", "{" CONFIG "}");
    fixture_text_file(&f, "hub/models--org--Net-FP8/snapshots/bbb/config.json",
                      "{" CONFIG ", \"head_dim\": 6}");
    assert_int_equal(read_model("org/Net-FP8"), VP_OK);
    assert_string_equal(model->name, "org/Net-FP8");
    assert_true(model->blocks[0].attention.head_dim == 6); /* the last one */
    const struct vp_diag *d = fixture_expect(&f, VP_D_NAME_SAYS_QUANT, "says fp8");
    assert_non_null(strstr(d->hint, "bf16"));
    fixture_text_file(&f, "hub/models--org--Net-FP8/refs/main", "aaa\n");
    assert_int_equal(read_model("org/Net-FP8"), VP_OK);
    assert_true(model->blocks[0].attention.head_dim == 2);
    /* an index whose parts were not downloaded is no fault here */
    fixture_text_file(&f, "hub/models--org--Net-FP8/snapshots/aaa/model.safetensors.index.json",
                      "{\"weight_map\": {\"a\": \"model-00001-of-00001.safetensors\"}}");
    assert_int_equal(read_model("org/Net-FP8"), VP_OK);
    assert_false(model->checkpoint.known);
}

/* ---- files and folders ---- */

static void config_files(void **state) {
    (void)state;
    make_folder("Net-7B");
    fixture_text_file(&f, "Net-7B/config.json", "{" CONFIG "}");
    assert_int_equal(read_model("Net-7B/config.json"), VP_OK);
    assert_string_equal(model->name, "Net-7B");
    assert_int_equal(read_model("Net-7B"), VP_OK);
    assert_string_equal(model->name, "Net-7B");
    assert_false(model->checkpoint.known);
    fixture_text_file(&f, "org--net.json", "{" CONFIG "}");
    assert_int_equal(read_model("org--net.json"), VP_OK);
    assert_string_equal(model->name, "org--net");
    fixture_text_file(&f, "named.json", "{\"_name_or_path\": \"org/x\", " CONFIG "}");
    assert_int_equal(read_model("named.json"), VP_OK);
    assert_string_equal(model->name, "org/x");
    fixture_text_file(&f, "list.json", "[1]");
    refused("list.json", VP_D_MODEL_FIELD, "holds a list");
    fixture_text_file(&f, "empty.yaml", "");
    refused("empty.yaml", VP_D_MODEL_FIELD, "holds nothing");
    fixture_text_file(&f, "run.yaml", "vramplan: 1\nmodel: x\n");
    refused("run.yaml", VP_D_BAD_VALUE, "is a scenario");
    fixture_text_file(&f, "net.gguf", "GGUF");
    refused("net.gguf", VP_D_GGUF, "truncated");
    make_folder("nothing");
    refused("nothing/", VP_D_FILE_MISSING, "config.json");
}

static void a_folder_called_like_a_built_in_model(void **state) {
    (void)state;
    make_folder("qwen3-8b");
    assert_int_equal(read_model("qwen3-8b"), VP_OK); /* holds no description */
    assert_int_equal(model->layer_count, 36);
    fixture_text_file(&f, "qwen3-8b/config.json", "{" CONFIG "}");
    assert_int_equal(read_model("qwen3-8b"), VP_OK);
    assert_int_equal(model->layer_count, 1);
}

static void quantisation_beside_the_config(void **state) {
    (void)state;
    make_folder("Net-FP8");
    fixture_text_file(&f, "Net-FP8/config.json", "{" CONFIG "}");
    fixture_text_file(&f, "Net-FP8/hf_quant_config.json",
                      "{\"producer\": {\"name\": \"modelopt\"},"
                      " \"quantization\": {\"quant_algo\": \"FP8\", \"exclude_modules\": []}}");
    assert_int_equal(read_model("Net-FP8"), VP_OK);
    assert_true(vp_model_is_quantised(model));
    assert_int_equal(f.diags.count, 0);
    assert_int_equal(read_model("Net-FP8/config.json"), VP_OK);
    assert_true(vp_model_is_quantised(model));
    assert_int_equal(read_model("{from: Net-FP8, quantization_config: ~}"), VP_OK);
    assert_false(vp_model_is_quantised(model));
    fixture_expect(&f, VP_D_NAME_SAYS_QUANT, "Net-FP8 (changed)");
}

static void words_in_names(void **state) {
    (void)state;
    static const char *const QUANTISED[] = {"x-AWQ", "x.w4a16", "INT4", "m/x-GPTQ-Int8", "x_4bit"};
    static const char *const PLAIN[] = {"x-fp80", "awqward", "Model-8B", "gptqs"};
    for (size_t i = 0; i < sizeof QUANTISED / sizeof *QUANTISED; i++) {
        const char *text =
            vp_arena_printf(&f.arena, "{_name_or_path: \"%s\", " CONFIG "}", QUANTISED[i]);
        assert_int_equal(read_model(text), VP_OK);
        fixture_expect(&f, VP_D_NAME_SAYS_QUANT, QUANTISED[i]);
    }
    for (size_t i = 0; i < sizeof PLAIN / sizeof *PLAIN; i++) {
        const char *text =
            vp_arena_printf(&f.arena, "{_name_or_path: \"%s\", " CONFIG "}", PLAIN[i]);
        assert_int_equal(read_model(text), VP_OK);
        assert_int_equal(f.diags.count, 0);
    }
}

/* ---- tensors ---- */

static void tensors_of_a_folder(void **state) {
    (void)state;
    make_folder("one");
    fixture_text_file(&f, "one/config.json", "{" CONFIG "}");
    tensors_file("one/model.safetensors", "model.embed_tokens.weight", 10, 4, false);
    tensors_file("one/consolidated.safetensors", "tok_embeddings.weight", 10, 4, false);
    assert_int_equal(read_model("one"), VP_OK);
    assert_true(model->checkpoint.known);
    assert_true(model->checkpoint.total_bytes == 80);
    assert_int_equal(read_model("one/model.safetensors"), VP_OK);
    assert_true(model->checkpoint.total_bytes == 80);
    assert_string_equal(model->name, "one");
    /* described with changes, the stored tensors no longer count */
    assert_int_equal(read_model("{from: one, num_hidden_layers: 2}"), VP_OK);
    assert_false(model->checkpoint.known);
    assert_int_equal(model->layer_count, 2);
    assert_int_equal(read_model("{from: one}"), VP_OK);
    assert_true(model->checkpoint.known);
}

static void parts_without_an_index(void **state) {
    (void)state;
    make_folder("parts");
    fixture_text_file(&f, "parts/config.json", "{" CONFIG "}");
    tensors_file("parts/model-00001-of-00002.safetensors", "model.embed_tokens.weight", 10, 4,
                 false);
    tensors_file("parts/model-00002-of-00002.safetensors", "lm_head.weight", 10, 4, true);
    assert_int_equal(read_model("parts"), VP_OK);
    assert_true(model->checkpoint.total_bytes == 160);
    assert_int_equal(model->checkpoint.tensors, 2);
    fixture_expect(&f, VP_D_HEADER_ONLY, "headers only");
    assert_int_equal(read_model("parts/model-00001-of-00002.safetensors"), VP_OK);
    assert_true(model->checkpoint.total_bytes == 160); /* a part stands for all */
}

static void an_index(void **state) {
    (void)state;
    make_folder("index");
    fixture_text_file(&f, "index/config.json", "{" CONFIG "}");
    tensors_file("index/a.safetensors", "model.embed_tokens.weight", 10, 4, false);
    tensors_file("index/stray.safetensors", "other.weight", 10, 4, false);
    fixture_text_file(&f, "index/model.safetensors.index.json",
                      "{\"weight_map\": {\"model.embed_tokens.weight\": \"a.safetensors\"}}");
    assert_int_equal(read_model("index"), VP_OK);
    assert_true(model->checkpoint.total_bytes == 80);
    assert_int_equal(read_model("index/model.safetensors.index.json"), VP_OK);
    assert_true(model->checkpoint.total_bytes == 80);
    fixture_text_file(&f, "index/model.safetensors.index.json",
                      "{\"weight_map\": {\"model.embed_tokens.weight\": \"b.safetensors\"}}");
    assert_int_equal(read_model("index"), VP_ERR_INPUT);
}

static void faults_of_config_and_tensors_together(void **state) {
    (void)state;
    make_folder("bad");
    fixture_text_file(&f, "bad/config.json", "{\"model_type\": \"llama\"}");
    fixture_text_file(&f, "bad/model.safetensors", "short");
    assert_int_equal(read_model("bad"), VP_ERR_INPUT);
    fixture_expect(&f, VP_D_MODEL_FIELD, "");
    fixture_expect(&f, VP_D_SAFETENSORS, "");
    tensors_file("alone.safetensors", "a", 1, 1, false);
    const struct vp_diag *d = refused("alone.safetensors", VP_D_FILE_MISSING, "config.json beside");
    assert_non_null(d->hint);
    assert_int_equal(f.diags.errors, 1);
    fixture_text_file(&f, "broken.safetensors", "short");
    refused("broken.safetensors", VP_D_FILE_MISSING, "config.json beside");
    fixture_expect(&f, VP_D_SAFETENSORS, "");
}

/* ---- maps ---- */

static void maps(void **state) {
    (void)state;
    assert_int_equal(read_model("{" CONFIG "}"), VP_OK);
    assert_string_equal(model->name, "llama");
    assert_int_equal(read_model("{from: llama-3.1-8b, num_hidden_layers: 3}"), VP_OK);
    assert_int_equal(model->layer_count, 3);
    assert_string_equal(model->name, "llama-3.1-8b (changed)");
    assert_true(model->hidden == 4096);
    assert_int_equal(read_model("{from: {from: qwen3-0.6b, vocab_size: 9}, head_dim: 64}"), VP_OK);
    assert_true(model->vocab == 9 && model->blocks[0].attention.head_dim == 64);
    assert_int_equal(
        read_model("{hidden_size: 64, vocab_size: 9, blocks: [{attention: {kind: gqa, heads: 2,\n"
                   " kv_heads: 2, head_dim: 8}, norms: 0, mlp: {kind: none}}]}"),
        VP_OK);
    refused("{gguf: {general.architecture: llama}}", VP_D_MODEL_FIELD, "llama.block_count");
    refused("{from: [a]}", VP_D_BAD_VALUE, "model.from");
    refused("{from: ~}", VP_D_BAD_VALUE, "model.from");
    fixture_text_file(&f, "loop.yaml", "from: loop.yaml\nhidden_size: 3\n");
    refused("loop.yaml", VP_D_CAP, "cap of 8");
}

static void the_description_alone(void **state) {
    (void)state;
    struct vp_node *out;
    const char *source;
    assert_int_equal(vp_model_description(&f.ctx, &out, &source,
                                          node_of("{from: qwen3-0.6b, hidden_size: 5}"), base),
                     VP_OK);
    assert_string_equal(vp_node_text(vp_node_get(out, "hidden_size")), "5");
    assert_null(vp_node_get(out, "from"));
    assert_non_null(strstr(source, "qwen3-0.6b.yaml"));
    assert_int_equal(vp_model_description(&f.ctx, &out, &source, node_of("{a: 1}"), base), VP_OK);
    assert_string_equal(source, "run.yaml");
}

static void reading_may_fail(void **state) {
    (void)state;
    make_folder("one");
    fixture_text_file(&f, "one/config.json", "{" CONFIG "}");
    tensors_file("one/model.safetensors", "model.embed_tokens.weight", 10, 4, false);
    struct vp_node *node = node_of("one");
    for (int n = 1;; n++) {
        fixture_clear(&f);
        f.ctx.io = failing_io(n);
        enum vp_status status = vp_model_read(&f.ctx, &model, node, base);
        if (failing_io_calls() < n) {
            assert_int_equal(status, VP_OK);
            break;
        }
        assert_int_equal(status == VP_OK, f.diags.errors == 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(built_in_names),
        TEST(names_that_are_not_found),
        TEST(a_users_profile),
        TEST(every_shipped_model_is_read),
        TEST(the_hub_cache),
        TEST(config_files),
        TEST(a_folder_called_like_a_built_in_model),
        TEST(quantisation_beside_the_config),
        TEST(words_in_names),
        TEST(tensors_of_a_folder),
        TEST(parts_without_an_index),
        TEST(an_index),
        TEST(faults_of_config_and_tensors_together),
        TEST(maps),
        TEST(the_description_alone),
        TEST(reading_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
