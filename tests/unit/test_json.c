#include "tests/unit/fixture.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/doc/json.h"

static int setup(void **state) {
    static struct fixture f;
    fixture_begin(&f);
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    fixture_end(*state);
    return 0;
}

static enum vp_status read_n(struct fixture *f, struct vp_node **out, const char *text, size_t n) {
    fixture_clear(f);
    return vp_json_read(&f->ctx, out, (struct vp_bytes){text, n}, "test.json");
}

static struct vp_node *good(struct fixture *f, const char *text) {
    struct vp_node *node;
    assert_int_equal(read_n(f, &node, text, strlen(text)), VP_OK);
    assert_int_equal(f->diags.count, 0);
    return node;
}

/* The only fault of the text, at line:column. */
static void bad(struct fixture *f, const char *text, enum vp_diag_id id, const char *words,
                uint32_t line, uint32_t column) {
    struct vp_node *node;
    assert_int_equal(read_n(f, &node, text, strlen(text)), VP_ERR_INPUT);
    assert_int_equal(f->diags.count, 1);
    const struct vp_diag *diag = fixture_expect(f, id, words);
    assert_string_equal(diag->pos.file, "test.json");
    assert_int_equal(diag->pos.line, line);
    assert_int_equal(diag->pos.column, column);
}

static void kinds_and_texts(void **state) {
    static const struct {
        const char *text;
        enum vp_node_kind kind;
        const char *value;
    } CASES[] = {
        {"null", VP_NODE_NULL, "null"},
        {" true ", VP_NODE_BOOL, "true"},
        {"\nfalse\n", VP_NODE_BOOL, "false"},
        {"0", VP_NODE_INT, "0"},
        {"-0", VP_NODE_INT, "-0"},
        {"9223372036854775807", VP_NODE_INT, "9223372036854775807"},
        {"-9223372036854775808", VP_NODE_INT, "-9223372036854775808"},
        {"1.50", VP_NODE_REAL, "1.50"},
        {"1E+05", VP_NODE_REAL, "1E+05"},
        {"-2e-3", VP_NODE_REAL, "-2e-3"},
        {"NaN", VP_NODE_REAL, "NaN"},
        {"Infinity", VP_NODE_REAL, "Infinity"},
        {"-Infinity", VP_NODE_REAL, "-Infinity"},
        {"\"\"", VP_NODE_TEXT, ""},
        {"\"NaN\"", VP_NODE_TEXT, "NaN"},
        {"\"7\"", VP_NODE_TEXT, "7"},
        {"\xEF\xBB\xBF\"bom\"", VP_NODE_TEXT, "bom"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", VP_NODE_TEXT, "\"\\/\b\f\n\r\t"},
        {"\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"", VP_NODE_TEXT,
         "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
        {"\"\xC3\xA9\\n\xF0\x9F\x98\x80\x7f\"", VP_NODE_TEXT, "\xC3\xA9\n\xF0\x9F\x98\x80\x7f"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct vp_node *node = good(*state, CASES[i].text);
        assert_int_equal(node->kind, CASES[i].kind);
        assert_string_equal(node->text, CASES[i].value);
    }
}

static void lists_and_maps(void **state) {
    struct vp_node *root = good(*state, "{\"b\": [1, [], {}, \"x\"], \"a\": {\"c\": null}}");
    assert_int_equal(root->kind, VP_NODE_MAP);
    assert_null(root->text);
    assert_int_equal(root->count, 2);
    assert_string_equal(root->keys[0], "b"); /* the order of the file */
    struct vp_node *list = vp_node_get(root, "b");
    assert_int_equal(list->count, 4);
    assert_null(list->keys);
    assert_int_equal(list->items[1]->kind, VP_NODE_LIST);
    assert_int_equal(list->items[1]->count, 0);
    assert_int_equal(list->items[2]->kind, VP_NODE_MAP);
    assert_string_equal(list->items[3]->text, "x");
    assert_int_equal(vp_node_get(vp_node_get(root, "a"), "c")->kind, VP_NODE_NULL);
    assert_int_equal(good(*state, "[]")->count, 0);
}

static void positions(void **state) {
    struct vp_node *root = good(*state, "\xEF\xBB\xBF{\n"
                                        "  \"\xC3\xA9\xC3\xA9\": [1,\n"
                                        "\t\"\xE2\x82\xAC\", -2.5],\r\n"
                                        "  \"k\" : {\"m\":true} }\n");
    assert_int_equal(root->pos.line, 1);
    assert_int_equal(root->pos.column, 1);
    assert_string_equal(root->pos.file, "test.json");
    assert_int_equal(root->key_pos[0].line, 2);
    assert_int_equal(root->key_pos[0].column, 3);
    struct vp_node *list = root->items[0];
    assert_int_equal(list->pos.column, 9); /* characters, not bytes */
    assert_int_equal(list->items[0]->pos.column, 10);
    assert_int_equal(list->items[1]->pos.line, 3);
    assert_int_equal(list->items[1]->pos.column, 2);
    assert_int_equal(list->items[2]->pos.column, 7);
    assert_int_equal(root->key_pos[1].line, 4);
    assert_int_equal(root->items[1]->pos.column, 9);
    assert_int_equal(root->items[1]->items[0]->pos.column, 14);
}

static void syntax_faults(void **state) {
    static const struct {
        const char *text, *words;
        uint32_t line, column;
    } CASES[] = {
        {"", "empty", 1, 1},
        {" \n ", "empty", 2, 2},
        {"\xEF\xBB\xBF", "empty", 1, 1},
        {"{", "end of file", 1, 2},
        {"[1,", "end of file", 1, 4},
        {"[1", "end of file", 1, 3},
        {"{\"a\"", "end of file", 1, 5},
        {"{\"a\":", "end of file", 1, 6},
        {"{\"a\":1", "end of file", 1, 7},
        {"\"abc", "end of file", 1, 1},
        {"\"ab\\", "end of file", 1, 1},
        {"-", "end of file", 1, 2},
        {"1.", "end of file", 1, 3},
        {"1e+", "end of file", 1, 4},
        {"{} x", "after the end", 1, 4},
        {"1 2", "after the end", 1, 3},
        {"[1}", "expected \",\" or \"]\" in a list, found \"}\"", 1, 3},
        {"{\"a\": 1]", "expected \",\" or \"}\" in a map", 1, 8},
        {"[1 2]", "expected \",\"", 1, 4},
        {"[,1]", "expected a value, found \",\"", 1, 2},
        {"[1,]", "a comma before the closing bracket", 1, 4},
        {"{\"a\":1,}", "a comma before the closing bracket", 1, 8},
        {"{a: 1}", "a key in double quotes", 1, 2},
        {"{'a': 1}", "a key in double quotes", 1, 2},
        {"{1: 1}", "a key in double quotes", 1, 2},
        {"{\"a\" 1}", "\":\" after a key", 1, 6},
        {"// x\n{}", "expected a value", 1, 1},
        {"tru", "expected a value", 1, 1},
        {"nulll", "expected a value", 1, 1},
        {"NaN5", "expected a value", 1, 1},
        {"-NaN", "a digit", 1, 2},
        {"-Inf", "expected a value", 1, 1},
        {"1Infinity", "after the end", 1, 2},
        {"+1", "expected a value", 1, 1},
        {".5", "expected a value", 1, 1},
        {"[01]", "leading zero", 1, 2},
        {"-01", "leading zero", 1, 1},
        {"0x10", "after the end", 1, 2},
        {"1.e5", "a digit after the decimal point", 1, 3},
        {"1ex", "a digit in the exponent", 1, 3},
        {"\"a\nb\"", "control character", 1, 3},
        {"\"a\tb\"", "control character", 1, 3},
        {"\"\\x\"", "escape", 1, 2},
        {"\"\\\xC3\xA9\"", "escape", 1, 2},
        {"\"\\u12\"", "\\u", 1, 2},
        {"\"\xC3\xA9\\u12g4\xC3\xA9\"", "\\u", 1, 3},
        {"\"\\u0000\"", "NUL", 1, 2},
        {"\"\\ud800\"", "surrogate", 1, 2},
        {"\"\\ud800\\u0041\"", "surrogate", 1, 2},
        {"\"\\ud800\\n\"", "surrogate", 1, 2},
        {"\"\\udc00\"", "surrogate", 1, 2},
        {"\"ab\xFF\"", "UTF-8", 1, 4},
        {"\"\xC3\xA9\xC3\"", "UTF-8", 1, 3},
        {"\xFF\xFE{", "UTF-8", 1, 1},
        {"\x01", "the byte 0x01", 1, 1},
        {"[1, \xC3\xA9]", "the byte 0xc3", 1, 5},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        bad(*state, CASES[i].text, VP_D_SYNTAX, CASES[i].words, CASES[i].line, CASES[i].column);
}

static void nul_bytes(void **state) {
    struct vp_node *node;
    assert_int_equal(read_n(*state, &node, "[1,\0 2]", 7), VP_ERR_INPUT);
    fixture_expect(*state, VP_D_SYNTAX, "the byte 0x00");
    assert_int_equal(read_n(*state, &node, "\"a\0b\"", 5), VP_ERR_INPUT);
    fixture_expect(*state, VP_D_SYNTAX, "control character");
    assert_int_equal(read_n(*state, &node, "1\0", 2), VP_ERR_INPUT);
    fixture_expect(*state, VP_D_SYNTAX, "after the end");
}

static void integers_out_of_range_name_their_key(void **state) {
    struct fixture *f = *state;
    struct vp_node *node;
    bad(f, "9223372036854775808", VP_D_SYNTAX, "integer out of range", 1, 1);
    bad(f, "-9223372036854775809", VP_D_SYNTAX, "integer out of range", 1, 1);
    const char *text = "{\"vocab_size\": 99999999999999999999,\n"
                       " \"x\": {\"shape\": [1, 99999999999999999999999999]}}";
    assert_int_equal(read_n(f, &node, text, strlen(text)), VP_ERR_INPUT);
    assert_int_equal(f->diags.count, 2); /* reading went on */
    assert_int_equal(fixture_expect(f, VP_D_SYNTAX, "vocab_size: integer out of range")->pos.column,
                     16);
    assert_int_equal(fixture_expect(f, VP_D_SYNTAX, "shape: integer out of range")->pos.line, 2);
}

static void duplicate_keys(void **state) {
    struct fixture *f = *state;
    bad(f, "{\"a\": 1,\n \"b\": 2, \"a\": 3}", VP_D_DUPLICATE_KEY, "\"a\", first given on line 1",
        2, 10);
    bad(f, "{\"a\": 1, \"\\u0061\": 3}", VP_D_DUPLICATE_KEY, "\"a\"", 1, 10);
    good(f, "{\"a\": {\"a\": 1}, \"b\": {\"a\": 1}}");
    struct vp_node *node;
    const char *text = "{\"k0\":0,\"k1\":0,\"k2\":0,\"k3\":0,\"k4\":0,\"k5\":0,\"k6\":0,\"k7\":0,"
                       "\"k8\":0,\"k9\":0,\n\"k5\":1,\"k5\":2,\"k0\":3}";
    assert_int_equal(read_n(f, &node, text, strlen(text)), VP_ERR_INPUT);
    assert_int_equal(f->diags.count, 3);
    assert_int_equal(fixture_expect(f, VP_D_DUPLICATE_KEY, "\"k0\"")->pos.column, 15);
}

static void many_keys(void **state) {
    struct fixture *f = *state;
    struct vp_node *node;
    struct vp_buf buf = {.arena = &f->arena};
    enum { N = 100000 };
    for (uint32_t i = 0; i < N; i++)
        vp_buf_printf(&buf, "%s\"key%u\":%u", i ? "," : "{", i * 2654435761u, i);
    vp_buf_add(&buf, "}");
    assert_int_equal(read_n(f, &node, buf.data, buf.size), VP_OK);
    assert_int_equal(node->count, N);
    buf.size--;
    vp_buf_add(&buf, ",\"key0\":1}");
    assert_int_equal(read_n(f, &node, buf.data, buf.size), VP_ERR_INPUT);
    fixture_expect(f, VP_D_DUPLICATE_KEY, "\"key0\"");
}

static const char *nested(struct fixture *f, int lists, int maps) {
    struct vp_buf buf = {.arena = &f->arena};
    for (int i = 0; i < lists; i++)
        vp_buf_add(&buf, "[");
    for (int i = 0; i < maps; i++)
        vp_buf_add(&buf, "{\"a\":");
    vp_buf_add(&buf, "0");
    for (int i = 0; i < maps; i++)
        vp_buf_add(&buf, "}");
    for (int i = 0; i < lists; i++)
        vp_buf_add(&buf, "]");
    return vp_buf_text(&buf);
}

static void caps(void **state) {
    struct fixture *f = *state;
    good(f, nested(f, VP_DOC_MAX_DEPTH, 0));
    good(f, nested(f, VP_DOC_MAX_DEPTH / 2, VP_DOC_MAX_DEPTH / 2));
    bad(f, nested(f, VP_DOC_MAX_DEPTH + 1, 0), VP_D_CAP, "nesting depth", 1, VP_DOC_MAX_DEPTH + 1);
    bad(f, nested(f, 0, VP_DOC_MAX_DEPTH + 1), VP_D_CAP, "nesting depth", 1,
        5 * VP_DOC_MAX_DEPTH + 1);

    struct vp_node *node;
    size_t n = 16 * 1024 * 1024 + 1;
    char *text = vp_arena_alloc(&f->arena, n + 3);
    memset(text, 'x', n + 2);
    text[0] = text[n + 1] = '"';
    assert_int_equal(read_n(f, &node, text, n + 2), VP_ERR_INPUT);
    fixture_expect(f, VP_D_CAP, "length");
    memset(text, '1', n);
    text[n] = '\0';
    assert_int_equal(read_n(f, &node, text, n), VP_ERR_INPUT);
    fixture_expect(f, VP_D_CAP, "length");
}

static void the_cap_on_values(void **state) {
    struct fixture *f = *state;
    struct vp_node *node;
    size_t n = 2 * (size_t)VP_DOC_MAX_NODES + 3;
    char *text = vp_arena_alloc(&f->arena, n + 1);
    for (size_t i = 0; i < n; i++)
        text[i] = i % 2 ? '1' : ',';
    text[0] = '[';
    text[n - 1] = ']';
    assert_int_equal(read_n(f, &node, text, n), VP_ERR_INPUT);
    fixture_expect(f, VP_D_CAP, "count");
}

static void real_configs_are_read_as_text(void **state) {
    struct vp_node *root = good(*state, "{\"rope_theta\": 500000.0, \"x_limit\": Infinity,"
                                        " \"x_low\": -Infinity, \"x_nan\": NaN}");
    uint64_t v;
    assert_true(vp_node_u64(&v, vp_node_get(root, "rope_theta")) && v == 500000);
    assert_string_equal(vp_node_get(root, "x_low")->text, "-Infinity");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kinds_and_texts, setup, teardown),
        cmocka_unit_test_setup_teardown(lists_and_maps, setup, teardown),
        cmocka_unit_test_setup_teardown(positions, setup, teardown),
        cmocka_unit_test_setup_teardown(syntax_faults, setup, teardown),
        cmocka_unit_test_setup_teardown(nul_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(integers_out_of_range_name_their_key, setup, teardown),
        cmocka_unit_test_setup_teardown(duplicate_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(many_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(caps, setup, teardown),
        cmocka_unit_test_setup_teardown(the_cap_on_values, setup, teardown),
        cmocka_unit_test_setup_teardown(real_configs_are_read_as_text, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
