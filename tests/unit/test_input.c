#include "tests/unit/fixture.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "planner/import/input.h"

#define CONFIG                                                                                     \
    "\"model_type\": \"llama\", \"hidden_size\": 64, \"intermediate_size\": 128,\n"                \
    "\"num_hidden_layers\": 2, \"num_attention_heads\": 8, \"num_key_value_heads\": 2,\n"          \
    "\"vocab_size\": 1000, \"max_position_embeddings\": 4096"

static const struct vp_setting GPU = {"hardware.gpu", "mi300x", "--gpu"};
static const char LIST[] = "vramplan: 1\n"
                           "defaults:\n"
                           "  model: config.json\n"
                           "  hardware: {gpu: mi300x, count: 4}\n"
                           "  serve: {context: 100, concurrency: 3}\n"
                           "scenarios:\n"
                           "  first: {}\n"
                           "  second: {serve: {context: 200}, parallel: {tensor: 2}}\n"
                           "  third:\n";

static struct fixture f;
static struct vp_scenarios out;

static int begin(void **state) {
    (void)state;
    fixture_begin(&f);
    f.ctx.profiles = "profiles";
    fixture_text_file(&f, "config.json", "{" CONFIG "}");
    return 0;
}

static int end(void **state) {
    (void)state;
    fixture_end(&f);
    return 0;
}

static const char *path_of(const char *name) {
    return vp_io_join(&f.ctx, fixture_folder(&f), name);
}

static enum vp_status read_on(const char *input) {
    fixture_clear(&f);
    return vp_input_read(&f.ctx, &out, input, &GPU, 1);
}

static enum vp_status read_input(const char *input) {
    fixture_clear(&f);
    return vp_input_read(&f.ctx, &out, input, NULL, 0);
}

static enum vp_status read_file(const char *name, const char *text) {
    return read_input(fixture_text_file(&f, name, text));
}

static const struct vp_diag *refused(const char *name, const char *text, enum vp_diag_id id,
                                     const char *words) {
    assert_int_equal(read_file(name, text), VP_ERR_INPUT);
    return fixture_expect(&f, id, words);
}

/* ---- scenarios ---- */

static void one_scenario(void **state) {
    (void)state;
    assert_int_equal(read_file("run.yaml", "vramplan: 1\nmodel: config.json\n"
                                           "hardware: {gpu: mi300x}\n"),
                     VP_OK);
    assert_int_equal(out.count, 1);
    assert_string_equal(out.items[0]->name, "run"); /* the file's */
    assert_int_equal(out.items[0]->source[VP_F_NAME].origin, VP_ORIGIN_DEFAULT);
    assert_true(out.items[0]->hardware.memory_bytes > 0); /* finished */
    assert_int_equal(read_file("run.json", "{\"vramplan\": 1, \"name\": \"a\", \"model\": {" CONFIG
                                           "}, \"hardware\": {\"gpu\": \"mi300x\"}}"),
                     VP_OK);
    assert_string_equal(out.items[0]->name, "a");
}

static void defaults_are_laid_under_each_scenario(void **state) {
    (void)state;
    assert_int_equal(read_file("list.yaml", LIST), VP_OK);
    assert_int_equal(out.count, 3);
    assert_string_equal(out.items[0]->name, "first");
    assert_string_equal(out.items[2]->name, "third");
    assert_true(out.items[0]->serve.context == 100 && out.items[2]->serve.context == 100);
    assert_true(out.items[1]->serve.context == 200 && out.items[1]->serve.concurrency == 3);
    assert_true(out.items[1]->parallel.tensor == 2 && out.items[0]->parallel.tensor == 1);
    assert_int_equal(out.items[1]->source[VP_F_CONTEXT].pos.line, 8);
    assert_int_equal(out.items[1]->source[VP_F_CONCURRENCY].pos.line, 5);
}

static void a_scenario_by_name(void **state) {
    (void)state;
    const char *path = fixture_text_file(&f, "list.yaml", LIST);
    assert_int_equal(read_input(vp_arena_printf(&f.arena, "%s#second", path)), VP_OK);
    assert_int_equal(out.count, 1);
    assert_string_equal(out.items[0]->name, "second");
    assert_int_equal(read_input(vp_arena_printf(&f.arena, "%s#secnod", path)), VP_ERR_INPUT);
    const struct vp_diag *d = fixture_expect(&f, VP_D_NO_SUCH_SCENARIO, "\"secnod\"");
    assert_string_equal(d->hint, "did you mean second? it has first, second, third");
    path = fixture_text_file(&f, "one.yaml",
                             "vramplan: 1\nname: x\nmodel: config.json\n"
                             "hardware: {gpu: mi300x}\n");
    assert_int_equal(read_input(vp_arena_printf(&f.arena, "%s#x", path)), VP_OK);
    assert_int_equal(read_input(vp_arena_printf(&f.arena, "%s#y", path)), VP_ERR_INPUT);
    assert_int_equal(read_input(vp_arena_printf(&f.arena, "%s#y", path_of("config.json"))),
                     VP_ERR_INPUT);
    fixture_expect(&f, VP_D_NO_SUCH_SCENARIO, "\"y\"");
    /* a file whose own name has the sign */
    assert_int_equal(
        read_file("a#b.yaml", "vramplan: 1\nmodel: config.json\nhardware: {gpu: mi300x}\n"), VP_OK);
    assert_string_equal(out.items[0]->name, "a#b");
}

static void the_command_line_holds_for_all(void **state) {
    (void)state;
    const struct vp_setting settings[] = {{"serve.context", "50", "--context"},
                                          {"name", "n", "--set"}};
    const char *path = fixture_text_file(&f, "list.yaml", LIST);
    fixture_clear(&f);
    assert_int_equal(vp_input_read(&f.ctx, &out, path, settings, 2), VP_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_true(out.items[i]->serve.context == 50);
        assert_string_equal(out.items[i]->name, "n");
    }
}

static void a_fault_of_the_defaults_is_told_once(void **state) {
    (void)state;
    assert_int_equal(read_file("list.yaml", "vramplan: 1\ndefaults:\n  model: config.json\n"
                                            "  hardware: {gpu: mi300x, cout: 1}\n"
                                            "scenarios:\n  a: {}\n  b: {serve: {context: x}}\n"
                                            "  c: {}\n"),
                     VP_ERR_INPUT);
    assert_int_equal(f.diags.errors, 2);
    assert_int_equal(f.diags.count, 2);
    fixture_expect(&f, VP_D_UNKNOWN_KEY, "cout");
    fixture_expect(&f, VP_D_BAD_VALUE, "serve.context");
}

static void faults_that_do_not_depend_on_each_other(void **state) {
    (void)state;
    assert_int_equal(read_file("run.yaml", "vramplan: 1\nmodel: lama-3.1-8b\n"
                                           "hardware: {gpu: mi300xx}\nengine: {version: x}\n"),
                     VP_ERR_INPUT);
    fixture_expect(&f, VP_D_MODEL_NOT_FOUND, "lama-3.1-8b");
    fixture_expect(&f, VP_D_GPU_UNKNOWN, "mi300xx");
    fixture_expect(&f, VP_D_VERSION_UNKNOWN, "\"x\"");
    assert_int_equal(f.diags.errors, 3);
    assert_int_equal(out.count, 0);
}

static void faults_of_the_frame(void **state) {
    (void)state;
    refused("a.yaml", "vramplan: 2\nmodel: config.json\n", VP_D_BAD_VALUE, "vramplan: 2");
    refused("a.yaml", "hardware: {gpu: a}\nmodel: b\n", VP_D_MISSING_VALUE, "vramplan: 1");
    refused("a.yaml", "vramplan: 1\nscenarios: {}\n", VP_D_MISSING_VALUE, "scenarios holds none");
    refused("a.yaml", "vramplan: 1\ndefaults: {}\n", VP_D_MISSING_VALUE, "scenarios holds none");
    refused("a.yaml", "vramplan: 1\nscenarios: [a]\n", VP_D_BAD_VALUE, "scenarios must be a map");
    refused("a.yaml", "vramplan: 1\nscenarios: {a: 3}\n", VP_D_BAD_VALUE, "a scenario must be");
    const struct vp_diag *d = refused("a.yaml", "vramplan: 1\nserve: {}\nscenarios: {a: {}}\n",
                                      VP_D_UNKNOWN_KEY, "\"serve\" beside scenarios");
    assert_non_null(strstr(d->hint, "defaults"));
    d = refused("a.yaml", "vramplan: 1\ndefualts: {}\nscenarios: {a: {}}\n", VP_D_UNKNOWN_KEY,
                "defualts");
    assert_string_equal(d->hint, "did you mean defaults?");
    refused("a.yaml", "", VP_D_BAD_VALUE, "not empty");
    refused("a.yaml", "- 1\n", VP_D_BAD_VALUE, "must be a map");
    refused("a.yaml", "colour: red\n", VP_D_BAD_VALUE, "neither a scenario nor a model");
    refused("a.yaml", "a: [", VP_D_SYNTAX, "");
    assert_int_equal(read_input(path_of("none.yaml")), VP_ERR_INPUT);
    fixture_expect(&f, VP_D_FILE_MISSING, "none.yaml");
}

/* ---- models ---- */

static void models_as_inputs(void **state) {
    (void)state;
    static const char *const NAMES[] = {"config.json", "", "plain.yaml"};
    fixture_text_file(&f, "plain.yaml",
                      "model_type: llama\nhidden_size: 64\nintermediate_size: 128\n"
                      "num_hidden_layers: 2\nnum_attention_heads: 8\nvocab_size: 1000\n"
                      "max_position_embeddings: 4096\n");
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        assert_int_equal(read_on(path_of(NAMES[i])), VP_OK);
        assert_int_equal(out.count, 1);
        assert_int_equal(out.items[0]->model->layer_count, 2);
        assert_string_equal(out.items[0]->name, out.items[0]->model->name);
    }
    assert_int_equal(read_on("qwen3-0.6b"), VP_OK);
    assert_string_equal(out.items[0]->name, "qwen3-0.6b");
    assert_int_equal(read_input("qwen3-0.6b"), VP_ERR_INPUT);
    fixture_expect(&f, VP_D_MISSING_VALUE, "hardware.gpu");
    assert_int_equal(read_on("qwen3-06b"), VP_ERR_INPUT);
    assert_non_null(
        strstr(fixture_expect(&f, VP_D_MODEL_NOT_FOUND, "qwen3-06b")->hint, "qwen3-0.6b"));
}

static void a_path_in_the_home_folder(void **state) {
    (void)state;
    f.ctx.home = fixture_folder(&f);
    assert_int_equal(read_on("~/config.json"), VP_OK);
    assert_int_equal(read_file("run.yaml", "vramplan: 1\nmodel: ~/config.json\n"
                                           "hardware: {gpu: mi300x}\n"),
                     VP_OK);
}

/* ---- standard input ---- */

static enum vp_status read_stdin(const char *text, const struct vp_setting *settings,
                                 size_t count) {
    const char *path = fixture_text_file(&f, "stdin", text);
    fixture_clear(&f);
    assert_non_null(freopen(path, "r", stdin));
    assert_int_equal(lseek(STDIN_FILENO, 0, SEEK_SET), 0);
    return vp_input_read(&f.ctx, &out, "-", settings, count);
}

static void standard_input(void **state) {
    (void)state;
    assert_int_equal(read_stdin("{\"vramplan\": 1, \"model\": {" CONFIG "},\n"
                                " \"hardware\": {\"gpu\": \"mi300x\"}}",
                                NULL, 0),
                     VP_OK);
    assert_string_equal(out.items[0]->name, "llama");
    /* relative paths start at the current folder: the root of the tree in a test */
    assert_int_equal(read_stdin("vramplan: 1\nmodel: profiles/models/qwen3-0.6b.yaml\n"
                                "hardware: {gpu: mi300x}\n",
                                NULL, 0),
                     VP_OK);
    assert_int_equal(read_stdin("{" CONFIG "}", &GPU, 1), VP_OK); /* a pasted config.json */
    assert_int_equal(read_stdin("{", NULL, 0), VP_ERR_INPUT);
    assert_string_equal(f.diags.items[0].pos.file, "<stdin>");
}

static void reading_may_fail(void **state) {
    (void)state;
    const char *path = fixture_text_file(&f, "list.yaml", LIST);
    for (int n = 1;; n++) {
        fixture_clear(&f);
        f.ctx.io = failing_io(n);
        enum vp_status status = vp_input_read(&f.ctx, &out, path, NULL, 0);
        if (failing_io_calls() < n) {
            assert_int_equal(status, VP_OK);
            break;
        }
        assert_int_equal(status == VP_OK, f.diags.errors == 0);
    }
    f.ctx.io = &vp_io_posix;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(one_scenario),
        TEST(defaults_are_laid_under_each_scenario),
        TEST(a_scenario_by_name),
        TEST(the_command_line_holds_for_all),
        TEST(a_fault_of_the_defaults_is_told_once),
        TEST(faults_that_do_not_depend_on_each_other),
        TEST(faults_of_the_frame),
        TEST(models_as_inputs),
        TEST(a_path_in_the_home_folder),
        TEST(standard_input),
        TEST(reading_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
