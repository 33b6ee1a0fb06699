/* Words of a shell, command lines of engines, Modelfiles, ollama's store of files. */
#include "tests/unit/fixture.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "planner/base/text.h"
#include "planner/import/command_line.h"
#include "planner/import/modelfile.h"
#include "planner/import/ollama_store.h"
#include "planner/import/shell_text.h"

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

/* ---- words ---- */

static struct vp_shell_text split(const char *text, bool quoted_words) {
    struct vp_shell_text out;
    vp_shell_split(&f.ctx, &out, text, strlen(text), "x", quoted_words);
    return out;
}

static void expect_words(const char *text, const char *const *words, uint32_t count) {
    struct vp_shell_text got = split(text, false);
    assert_int_equal(got.count, count);
    for (uint32_t i = 0; i < count; i++) {
        if (words[i])
            assert_string_equal(got.words[i].text, words[i]);
        else
            assert_null(got.words[i].text);
    }
}

static void test_words(void **state) {
    (void)state;
    expect_words("a 'b c'  \"d \\\" e\" f\\ g", (const char *[]){"a", "b c", "d \" e", "f g"}, 4);
    expect_words("a \\\n  b # rest\nc", (const char *[]){"a", "b", NULL, "c"}, 4);
    expect_words("a && b; c | d", (const char *[]){"a", NULL, "b", NULL, "c", NULL, "d"}, 7);
    expect_words("a '' b", (const char *[]){"a", "", "b"}, 3);
    expect_words("a 'not closed", (const char *[]){"a", "not closed"}, 2);
    expect_words("", NULL, 0);
}

static void test_variables(void **state) {
    (void)state;
    struct vp_shell_text t =
        split("A=1 export B='x y'\nrun $B \"$B\" ${C:-usual} $D -e E=5 F=6", false);
    assert_string_equal(vp_shell_variable(&t, "A"), "1");
    assert_string_equal(vp_shell_variable(&t, "E"), "5");
    assert_null(vp_shell_variable(&t, "F")); /* an argument of the command */
    const char *const words[] = {"export", NULL,    "run", "x",  "y",
                                 "x y",    "usual", "$D",  "-e", "F=6"};
    assert_int_equal(t.count, 10);
    for (uint32_t i = 0; i < 10; i++)
        if (words[i])
            assert_string_equal(t.words[i].text, words[i]);
}

static void test_positions(void **state) {
    (void)state;
    struct vp_shell_text t = split("one \\\n  two \"thr\nee\" four", false);
    assert_int_equal(t.words[1].pos.line, 2);
    assert_int_equal(t.words[1].pos.column, 3);
    assert_int_equal(t.words[3].pos.line, 3);
    assert_int_equal(t.words[3].pos.column, 5);
}

static void test_caps(void **state) {
    (void)state;
    struct vp_buf text = {.arena = f.ctx.arena};
    for (int i = 0; i < VP_SHELL_MAX_WORDS + 100; i++)
        vp_buf_add(&text, "w\nA=1\n");
    struct vp_shell_text t = split(vp_buf_text(&text), false);
    assert_int_equal(t.count, VP_SHELL_MAX_WORDS);
    assert_int_equal(t.variable_count, VP_SHELL_MAX_VARIABLES);
}

/* ---- command lines ---- */

static struct vp_node *read_command(const char *text) {
    struct vp_node *out;
    assert_int_equal(vp_command_line_read(&f.ctx, &out, text), VP_OK);
    return out;
}

static const char *arg(const struct vp_node *scenario, const char *key) {
    return vp_node_text(vp_node_get(vp_node_get(vp_node_get(scenario, "engine"), "args"), key));
}

static void test_vllm(void **state) {
    (void)state;
    struct vp_node *s =
        read_command("vllm serve org/model --enforce-eager -tp 2 --max-model-len 32k "
                     "--max-num-batched-tokens 2K --seed -1 --unknown a b "
                     "--speculative-config.num_speculative_tokens 3 --port=80");
    assert_string_equal(vp_node_text(vp_node_get(s, "model")), "org/model");
    assert_string_equal(arg(s, "enforce_eager"), "true");
    assert_string_equal(arg(s, "tp"), "2");
    assert_string_equal(arg(s, "max_model_len"), "32000");
    assert_string_equal(arg(s, "max_num_batched_tokens"), "2048");
    assert_string_equal(arg(s, "seed"), "-1");
    assert_string_equal(arg(s, "port"), "80");
    const struct vp_node *args = vp_node_get(vp_node_get(s, "engine"), "args");
    assert_int_equal(vp_node_get(args, "unknown")->count, 2);
    assert_string_equal(vp_node_text(vp_node_get(vp_node_get(args, "speculative_config"),
                                                 "num_speculative_tokens")),
                        "3");
}

static void test_llama(void **state) {
    (void)state;
    struct vp_node *s = read_command("HIP_VISIBLE_DEVICES=0,2 ./build/bin/llama-server -m a.gguf "
                                     "-ngl 99 --jinja -ot exps=CPU --no-mmap -fa");
    assert_string_equal(vp_node_text(vp_node_get(s, "model")), "a.gguf");
    assert_string_equal(arg(s, "ngl"), "99");
    assert_string_equal(arg(s, "ot"), "exps=CPU");
    assert_string_equal(arg(s, "no_mmap"), "true");
    assert_string_equal(arg(s, "fa"), "true");
    assert_string_equal(vp_node_text(vp_node_get(vp_node_get(s, "hardware"), "count")), "2");
}

static void test_what_is_a_command(void **state) {
    (void)state;
    assert_true(vp_command_line_is(&f.ctx, "$ anything"));
    assert_true(
        vp_command_line_is(&f.ctx, "sudo docker run img python3 -m sglang.launch_server --m x"));
    assert_true(vp_command_line_is(&f.ctx, "ollama run llama3"));
    assert_false(vp_command_line_is(&f.ctx, "vllm"));
    assert_false(vp_command_line_is(&f.ctx, "my model.yaml"));
    assert_false(vp_command_line_is(&f.ctx, "vllm bench x"));
}

/* ---- ollama ---- */

static void make_folders(const char *top, const char *const *names) {
    for (; *names; names++)
        assert_int_equal(mkdir(vp_arena_printf(f.ctx.arena, "%s/%s", top, *names), 0777), 0);
}

static void test_store(void **state) {
    static const char *const FOLDERS[] = {"manifests",
                                          "manifests/registry.ollama.ai",
                                          "manifests/registry.ollama.ai/library",
                                          "manifests/registry.ollama.ai/library/llama3.1",
                                          "manifests/registry.ollama.ai/me",
                                          "manifests/registry.ollama.ai/me/mine",
                                          "manifests/hf.co",
                                          "manifests/hf.co/org",
                                          "manifests/hf.co/org/repo",
                                          NULL};
    (void)state;
    const char *folder = fixture_folder(&f);
    make_folders(folder, FOLDERS);
    fixture_text_file(&f, "manifests/registry.ollama.ai/library/llama3.1/70b",
                      "{\"layers\": [{\"mediaType\": \"application/vnd.ollama.image.template\", "
                      "\"digest\": \"sha256:00\"}, {\"mediaType\": "
                      "\"application/vnd.ollama.image.model\", \"digest\": \"sha256:ab\"}]}");
    fixture_text_file(&f, "manifests/hf.co/org/repo/Q4_K_M",
                      "{\"layers\": [{\"mediaType\": \"application/vnd.ollama.image.model\", "
                      "\"digest\": \"sha256:../../x\"}]}");
    fixture_text_file(&f, "manifests/registry.ollama.ai/me/mine/latest", "broken {");
    assert_string_equal(vp_ollama_file(&f.ctx, "llama3.1:70b", folder),
                        vp_arena_printf(f.ctx.arena, "%s/blobs/sha256-ab", folder));
    assert_string_equal(vp_ollama_file(&f.ctx, "llama3.1:8b", folder), "llama3.1:8b");
    assert_string_equal(vp_ollama_file(&f.ctx, "hf.co/org/repo:Q4_K_M", folder),
                        "hf.co/org/repo:Q4_K_M");
    assert_string_equal(vp_ollama_file(&f.ctx, "me/mine", folder), "me/mine");
    assert_int_equal(f.diags.errors, 0);
}

static void test_modelfile(void **state) {
    (void)state;
    struct vp_node *s;
    assert_true(vp_modelfile_is("a/Modelfile"));
    assert_true(vp_modelfile_is("x.modelfile"));
    assert_false(vp_modelfile_is("Modelfiles.yaml"));
    const char *path =
        fixture_text_file(&f, "Modelfile",
                          "# mine\nFROM ./a.gguf\nSYSTEM \"\"\"\nPARAMETER num_ctx 1\n\"\"\"\n"
                          "parameter num_ctx 8192\nPARAMETER stop \"<|end|>\"\n");
    assert_int_equal(vp_modelfile_read(&f.ctx, &s, path), VP_OK);
    assert_string_equal(vp_node_text(vp_node_get(s, "model")), "./a.gguf");
    assert_string_equal(arg(s, "num_ctx"), "8192");
    assert_string_equal(arg(s, "stop"), "<|end|>");
    fixture_text_file(&f, "Modelfile", "PARAMETER num_ctx\nPARAMETER num_ctx 5\n");
    assert_int_equal(vp_modelfile_read(&f.ctx, &s, path), VP_ERR_INPUT);
    assert_int_equal(f.diags.errors, 2);
    assert_int_equal(f.diags.items[0].pos.line, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_words, begin, end),
        cmocka_unit_test_setup_teardown(test_variables, begin, end),
        cmocka_unit_test_setup_teardown(test_positions, begin, end),
        cmocka_unit_test_setup_teardown(test_caps, begin, end),
        cmocka_unit_test_setup_teardown(test_vllm, begin, end),
        cmocka_unit_test_setup_teardown(test_llama, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_a_command, begin, end),
        cmocka_unit_test_setup_teardown(test_store, begin, end),
        cmocka_unit_test_setup_teardown(test_modelfile, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
