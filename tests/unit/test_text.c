#include "tests/unit/fixture.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/base/utf8.h"

static void a_buffer_grows(void **state) {
    (void)state;
    struct vp_arena arena = {0};
    struct vp_buf buf = {.arena = &arena};
    assert_string_equal(vp_buf_text(&buf), "");
    vp_buf_add(&buf, "");
    assert_string_equal(vp_buf_text(&buf), "");
    for (int i = 0; i < 1000; i++)
        vp_buf_printf(&buf, "%d,", i % 10);
    vp_buf_add_n(&buf, "end of it", 3);
    assert_int_equal(buf.size, 2003);
    assert_int_equal(strlen(buf.data), 2003);
    assert_string_equal(buf.data + 1994, "7,8,9,end");
    vp_arena_free(&arena);
}

static void comparing(void **state) {
    (void)state;
    assert_true(vp_text_eq("a", "a"));
    assert_false(vp_text_eq("a", "A"));
    assert_false(vp_text_eq("a", NULL));
    assert_true(vp_text_eq(NULL, NULL));
    assert_true(vp_text_starts("model.gguf", "model"));
    assert_false(vp_text_starts("mod", "model"));
    assert_true(vp_text_ends("model.gguf", ".gguf"));
    assert_false(vp_text_ends("gguf", ".gguf"));
}

static void names_without_case_and_separators(void **state) {
    (void)state;
    struct vp_arena arena = {0};
    assert_true(vp_name_eq("MI300X", "mi-300 x"));
    assert_true(vp_name_eq("rtx_4090", "RTX 4090 "));
    assert_false(vp_name_eq("mi300x", "mi300"));
    assert_false(vp_name_eq("mi300", "mi300x"));
    assert_true(vp_name_eq("", "- _"));
    assert_false(vp_name_eq(NULL, ""));
    assert_string_equal(vp_name_reduce(&arena, " RTX_4090-Ti "), "rtx4090ti");
    vp_arena_free(&arena);
}

static void did_you_mean(void **state) {
    (void)state;
    static const char *const KEYS[] = {"concurrency", "context", "tensor", "pipeline", "tp"};
    const size_t n = sizeof KEYS / sizeof KEYS[0];
    assert_string_equal(vp_text_nearest("concurency", KEYS, n), "concurrency");
    assert_string_equal(vp_text_nearest("contxet", KEYS, n), "context"); /* a swap counts one */
    assert_string_equal(vp_text_nearest("Tensor", KEYS, n), "tensor");
    assert_null(vp_text_nearest("optimizer", KEYS, n));
    assert_null(vp_text_nearest("pt", KEYS, n));
    assert_null(vp_text_nearest("", KEYS, n));
    assert_null(vp_text_nearest("context", KEYS, 0));
    char longest[200];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_null(vp_text_nearest(longest, KEYS, n));
    const char *one = longest;
    assert_null(vp_text_nearest("xxx", &one, 1));
}

static void globs(void **state) {
    (void)state;
    assert_true(vp_text_glob("*", ""));
    assert_true(vp_text_glob("model.*.weight", "model.layers.0.mlp.weight"));
    assert_false(vp_text_glob("model.*.weight", "model.layers.0.mlp.bias"));
    assert_true(vp_text_glob("re:?", "re:a"));
    assert_false(vp_text_glob("?", ""));
    assert_true(vp_text_glob("*ab*ab", "xxabyabzab"));
    assert_false(vp_text_glob("a*b", "a*c"));
    assert_true(vp_text_glob("lm_head", "lm_head"));
    assert_false(vp_text_glob("lm_head", "lm_head.weight"));
    assert_false(vp_text_glob("", "a"));
    assert_true(vp_text_glob("**", "a"));
}

static void well_formed_utf8(void **state) {
    (void)state;
    assert_int_equal(vp_utf8_length("a"), 1);
    assert_int_equal(vp_utf8_length("\xC3\xA9"), 2);
    assert_int_equal(vp_utf8_length("\xE2\x82\xAC"), 3);
    assert_int_equal(vp_utf8_length("\xF0\x9F\x98\x80"), 4);
    static const char *const BAD[] = {
        "\x80",
        "\xC0\x80",
        "\xC1\xBF",
        "\xC3",
        "\xC3(",
        "\xE0\x80\x80",
        "\xED\xA0\x80",
        "\xE2\x82",
        "\xE2\x82(",
        "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80",
        "\xF0\x9F\x98",
        "\xFF",
    };
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++)
        assert_int_equal(vp_utf8_length(BAD[i]), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buffer_grows),
        cmocka_unit_test(comparing),
        cmocka_unit_test(names_without_case_and_separators),
        cmocka_unit_test(did_you_mean),
        cmocka_unit_test(globs),
        cmocka_unit_test(well_formed_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
