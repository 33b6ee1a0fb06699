#include "tests/unit/fixture.h"

#include <math.h>

#include "planner/base/json_writer.h"

static void maps_and_lists_are_indented(void **state) {
    (void)state;
    struct vp_arena arena = {0};
    struct vp_buf buf = {.arena = &arena};
    struct vp_json json = vp_json_begin(&buf);
    vp_json_map(&json);
    vp_json_key(&json, "a");
    vp_json_u64(&json, UINT64_MAX);
    vp_json_key(&json, "b");
    vp_json_list(&json);
    vp_json_i64(&json, INT64_MIN);
    vp_json_map(&json);
    vp_json_end(&json, '}');
    vp_json_list(&json);
    vp_json_end(&json, ']');
    vp_json_end(&json, ']');
    vp_json_key(&json, "c");
    vp_json_null(&json);
    vp_json_end(&json, '}');
    assert_string_equal(vp_buf_text(&buf), "{\n"
                                           "  \"a\": 18446744073709551615,\n"
                                           "  \"b\": [\n"
                                           "    -9223372036854775808,\n"
                                           "    {},\n"
                                           "    []\n"
                                           "  ],\n"
                                           "  \"c\": null\n"
                                           "}");
    vp_arena_free(&arena);
}

static void inline_values_stand_on_one_line(void **state) {
    (void)state;
    struct vp_arena arena = {0};
    struct vp_buf buf = {.arena = &arena};
    struct vp_json json = vp_json_begin(&buf);
    vp_json_list(&json);
    vp_json_map_inline(&json);
    vp_json_key(&json, "low");
    vp_json_u64(&json, 1);
    vp_json_key(&json, "more");
    vp_json_list_inline(&json);
    vp_json_bool(&json, true);
    vp_json_list(&json);
    vp_json_end(&json, ']');
    vp_json_end(&json, ']');
    vp_json_end(&json, '}');
    vp_json_bool(&json, false);
    vp_json_end(&json, ']');
    assert_string_equal(vp_buf_text(&buf), "[\n"
                                           "  {\"low\": 1, \"more\": [true, []]},\n"
                                           "  false\n"
                                           "]");
    vp_arena_free(&arena);
}

static void a_compact_writer_never_breaks_lines(void **state) {
    (void)state;
    struct vp_arena arena = {0};
    struct vp_buf buf = {.arena = &arena};
    struct vp_json json = vp_json_begin(&buf);
    json.compact = true;
    vp_json_map(&json);
    vp_json_key(&json, "a");
    vp_json_map_inline(&json);
    vp_json_key(&json, "b");
    vp_json_real(&json, 0.5);
    vp_json_end(&json, '}');
    vp_json_key(&json, "c");
    vp_json_list(&json);
    vp_json_u64(&json, 1);
    vp_json_u64(&json, 2);
    vp_json_end(&json, ']');
    vp_json_end(&json, '}');
    assert_string_equal(vp_buf_text(&buf), "{\"a\": {\"b\": 0.5}, \"c\": [1, 2]}");
    vp_arena_free(&arena);
}

static const char *text_as_json(struct vp_arena *arena, const char *text) {
    struct vp_buf buf = {.arena = arena};
    struct vp_json json = vp_json_begin(&buf);
    vp_json_text(&json, text);
    return vp_buf_text(&buf);
}

static void text_is_escaped_and_valid_utf8(void **state) {
    (void)state;
    struct vp_arena arena = {0};
    assert_string_equal(text_as_json(&arena, "plain"), "\"plain\"");
    assert_string_equal(text_as_json(&arena, ""), "\"\"");
    assert_string_equal(text_as_json(&arena, NULL), "null");
    assert_string_equal(text_as_json(&arena, "a\"b\\c/\b\f\n\r\t\x01\x1f\x7f"),
                        "\"a\\\"b\\\\c/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
    assert_string_equal(text_as_json(&arena, "\xC3\xA9\xF0\x9F\x98\x80"),
                        "\"\xC3\xA9\xF0\x9F\x98\x80\"");
    assert_string_equal(text_as_json(&arena, "x\xFF\xC3"), "\"x\\ufffd\\ufffd\"");
    vp_arena_free(&arena);
}

static void reals(void **state) {
    (void)state;
    struct vp_arena arena = {0};
    struct vp_buf buf = {.arena = &arena};
    struct vp_json json = vp_json_begin(&buf);
    vp_json_list_inline(&json);
    vp_json_real(&json, 0.1);
    vp_json_real(&json, (double)NAN);
    vp_json_real(&json, -(double)INFINITY);
    vp_json_real(&json, 1e300);
    vp_json_end(&json, ']');
    assert_string_equal(vp_buf_text(&buf), "[0.1, null, null, 1e300]");
    vp_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_and_lists_are_indented),
        cmocka_unit_test(inline_values_stand_on_one_line),
        cmocka_unit_test(a_compact_writer_never_breaks_lines),
        cmocka_unit_test(text_is_escaped_and_valid_utf8),
        cmocka_unit_test(reals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
