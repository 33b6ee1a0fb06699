#include "tests/unit/fixture.h"

#include <string.h>

#include "planner/base/text.h"
#include "planner/doc/yaml.h"

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
    return vp_yaml_read(&f->ctx, out, (struct vp_bytes){text, n}, "test.yaml");
}

static struct vp_node *good(struct fixture *f, const char *text) {
    struct vp_node *node;
    assert_int_equal(read_n(f, &node, text, strlen(text)), VP_OK);
    assert_int_equal(f->diags.count, 0);
    return node;
}

static void bad(struct fixture *f, const char *text, enum vp_diag_id id, const char *words,
                uint32_t line, uint32_t column) {
    struct vp_node *node;
    assert_int_equal(read_n(f, &node, text, strlen(text)), VP_ERR_INPUT);
    assert_int_equal(f->diags.count, 1);
    const struct vp_diag *diag = fixture_expect(f, id, words);
    assert_string_equal(diag->pos.file, "test.yaml");
    assert_int_equal(diag->pos.line, line);
    assert_int_equal(diag->pos.column, column);
}

static void kinds_of_the_core_schema(void **state) {
    (void)state;
    static const struct {
        enum vp_node_kind kind;
        const char *texts[24];
    } CASES[] = {
        {VP_NODE_NULL, {"", "~", "null", "Null", "NULL"}},
        {VP_NODE_BOOL, {"true", "True", "TRUE", "false", "False", "FALSE"}},
        {VP_NODE_INT, {"0", "-1", "+12", "007", "0x1F", "0o17", "99999999999999999999"}},
        {VP_NODE_REAL,
         {"1.5", "-.5", "5.", "1e6", "1E-6", "+1.0e+3", ".inf", "-.Inf", "+.INF", ".nan", ".NaN",
          ".NAN", "NaN", "Infinity", "-Infinity", "0.19"}},
        {VP_NODE_TEXT, {"yes",   "no",      "on",    "off",  "y", "nULL",  "tRUE", "1_000",
                        "0x",    "0xG",     "0o8",   "-0x1", ".", "e5",    "1e",   "1.2.3",
                        "b6500", "2025-10", "-.nan", "inf",  "+", "1 GiB", "12:30"}},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        for (size_t k = 0; k < 24 && CASES[i].texts[k]; k++)
            assert_int_equal(vp_yaml_scalar_kind(CASES[i].texts[k]), CASES[i].kind);
}

static void scalars_keep_their_text(void **state) {
    static const struct {
        const char *text;
        enum vp_node_kind kind;
        const char *value;
    } CASES[] = {
        {"", VP_NODE_NULL, ""},
        {"# only a comment\n", VP_NODE_NULL, ""},
        {"---\n", VP_NODE_NULL, ""},
        {"0.190", VP_NODE_REAL, "0.190"},
        {"'7'", VP_NODE_TEXT, "7"},
        {"\"true\"", VP_NODE_TEXT, "true"},
        {"!!str 7", VP_NODE_TEXT, "7"},
        {"! 7", VP_NODE_TEXT, "7"},
        {"!!str", VP_NODE_TEXT, ""},
        {"!!int 7", VP_NODE_INT, "7"},
        {"!!float 'x'", VP_NODE_TEXT, "x"},
        {"!own 7", VP_NODE_INT, "7"},
        {"|\n  a\n  b\n", VP_NODE_TEXT, "a\nb\n"},
        {">\n  1\n", VP_NODE_TEXT, "1\n"},
        {"\"\\u00e9\"", VP_NODE_TEXT, "\xC3\xA9"},
        {"\xEF\xBB\xBF"
         "7",
         VP_NODE_INT, "7"},
        {"%YAML 1.1\n---\n7\n...\n", VP_NODE_INT, "7"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct vp_node *node = good(*state, CASES[i].text);
        assert_int_equal(node->kind, CASES[i].kind);
        assert_string_equal(node->text, CASES[i].value);
    }
}

static void lists_maps_and_positions(void **state) {
    struct vp_node *root = good(*state, "vramplan: 1\n"
                                        "hardware: {gpu: mi300x, 1: [a, {}]}\n"
                                        "list:\n"
                                        "  - \xC3\xA9: x\n"
                                        "  -\n");
    assert_int_equal(root->count, 3);
    assert_string_equal(root->keys[2], "list");
    assert_int_equal(root->pos.line, 1);
    assert_int_equal(root->key_pos[1].line, 2);
    assert_int_equal(root->items[1]->pos.column, 11);
    assert_string_equal(root->items[1]->keys[1], "1");
    assert_int_equal(root->items[1]->key_pos[1].column, 25);
    assert_int_equal(root->items[1]->items[1]->items[0]->pos.column, 29);
    struct vp_node *list = vp_node_get(root, "list");
    assert_int_equal(list->items[0]->items[0]->pos.line, 4);
    assert_int_equal(list->items[0]->items[0]->pos.column, 8);
    assert_int_equal(list->items[1]->kind, VP_NODE_NULL);
}

static void json_is_yaml(void **state) {
    struct vp_node *root = good(*state, "{\"a\": [1, 2.5, null, true, NaN], \"b\": \"1\"}");
    assert_int_equal(root->items[0]->items[4]->kind, VP_NODE_REAL);
    assert_int_equal(root->items[1]->kind, VP_NODE_TEXT);
}

static void faults(void **state) {
    static const struct {
        const char *text, *words;
        uint32_t line, column;
    } CASES[] = {
        {"a: [1", "flow sequence", 2, 1},
        {"a: b: c\n", "mapping values", 1, 5},
        {"a: \"x\n", "unexpected end of stream", 2, 1},
        {"a: 1\n b: 2\n", "mapping values", 2, 3},
        {"a: 1\n---\nb: 1\n", "several documents", 2, 1},
        {"[a]: 1\n", "a key must be text", 1, 1},
        {"{a: 1}: 1\n", "a key must be text", 1, 1},
        {"x: &x 1\n*x : 2\n", "a key must be text", 2, 1},
        {"&k a: 1\n", "an anchor on a key", 1, 1},
        {"a: *x\n", "without an anchor", 1, 4},
        {"a: &a [*a]\n", "inside the value", 1, 8},
        {"a: &a {<<: *a}\n", "inside the value", 1, 12},
        {"<<: {b: 1}\n", "merge key", 1, 1},
        {"a: &a [1]\n<<: *a\n", "merge key", 2, 1},
        {"a: \"\\0\"\n", "NUL", 1, 4},
        {"\"\\0\": 1\n", "NUL", 1, 1},
        {"a: \xFF\n", "UTF-8", 1, 4},
        {"a: 1\nb: \xC3\xA9\xC3\x28\n", "UTF-8", 2, 6},
        {"a: \x01\n", "control characters", 1, 4},
        {"\xFF\xFE", "UTF-8", 1, 1},
        {"%YAML 2.0\n---\na\n", "incompatible", 1, 1},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        bad(*state, CASES[i].text, VP_D_SYNTAX, CASES[i].words, CASES[i].line, CASES[i].column);
}

static void a_tab_gets_a_hint(void **state) {
    struct fixture *f = *state;
    bad(f, "a:\n\tb: 1\n", VP_D_SYNTAX, "cannot start any token", 2, 1);
    assert_non_null(strstr(f->diags.items[0].hint, "tabs"));
}

static void nul_bytes(void **state) {
    struct vp_node *node;
    assert_int_equal(read_n(*state, &node, "a: 1\nb\0: 2", 10), VP_ERR_INPUT);
    const struct vp_diag *diag = fixture_expect(*state, VP_D_SYNTAX, "NUL byte");
    assert_int_equal(diag->pos.line, 2);
    assert_int_equal(diag->pos.column, 2);
}

static void duplicate_keys(void **state) {
    struct fixture *f = *state;
    struct vp_node *node;
    bad(f, "a: 1\nb: 2\na: 3\n", VP_D_DUPLICATE_KEY, "\"a\", first given on line 1", 3, 1);
    bad(f, "a: 1\n'a': 3\n", VP_D_DUPLICATE_KEY, "\"a\"", 2, 1);
    bad(f, "x: &x {}\na: {<<: *x, <<: *x}\n", VP_D_DUPLICATE_KEY, "\"<<\"", 2, 13);
    const char *text = "a: 1\na: 2\nb: {c: 1, c: 2}\n"; /* all of them in one run */
    assert_int_equal(read_n(f, &node, text, strlen(text)), VP_ERR_INPUT);
    assert_int_equal(f->diags.count, 2);
}

static void many_keys(void **state) {
    struct fixture *f = *state;
    struct vp_node *node;
    struct vp_buf buf = {.arena = &f->arena};
    for (uint32_t i = 0; i < 100000; i++)
        vp_buf_printf(&buf, "key%u: %u\n", i * 2654435761u, i);
    assert_int_equal(read_n(f, &node, buf.data, buf.size), VP_OK);
    assert_int_equal(node->count, 100000);
    vp_buf_add(&buf, "key0: 1\n");
    assert_int_equal(read_n(f, &node, buf.data, buf.size), VP_ERR_INPUT);
    assert_int_equal(fixture_expect(f, VP_D_DUPLICATE_KEY, "\"key0\"")->pos.line, 100001);
}

static void aliases_are_copies(void **state) {
    struct fixture *f = *state;
    struct vp_node *root = good(f, "a: &x {k: [1, 2], e: []}\nb: *x\nc: &x 5\nd: *x\n");
    struct vp_node *a = vp_node_get(root, "a"), *b = vp_node_get(root, "b");
    assert_int_equal(b->count, 2);
    assert_string_equal(b->items[0]->items[1]->text, "2");
    assert_int_equal(b->pos.line, 1); /* where the value is written */
    vp_node_set(&f->ctx, b, "k", b->pos, vp_node_new(&f->ctx, VP_NODE_NULL, b->pos));
    assert_int_equal(vp_node_get(a, "k")->kind, VP_NODE_LIST);
    assert_string_equal(vp_node_get(root, "d")->text, "5"); /* the anchor before it */
}

static void merge_keys(void **state) {
    struct vp_node *root = good(*state, "base: &b {x: 1, y: 2, z: 3}\n"
                                        "over: {y: 5, <<: *b, w: 6}\n"
                                        "'<<': 1\n");
    struct vp_node *over = vp_node_get(root, "over");
    assert_int_equal(over->count, 4);
    assert_string_equal(vp_node_get(over, "y")->text, "5");
    assert_string_equal(vp_node_get(over, "x")->text, "1");
    assert_string_equal(over->keys[3], "z");
    assert_string_equal(vp_node_get(root, "<<")->text, "1"); /* quoted: a key as any other */

    root = good(*state, "b: &b {a0: 1, a1: 1, a2: 1, a3: 1, a4: 1, a5: 1}\n"
                        "o: {a1: 2, a9: 2, a5: 2, a8: 2, <<: *b}\n");
    over = vp_node_get(root, "o");
    assert_int_equal(over->count, 8);
    assert_string_equal(vp_node_get(over, "a1")->text, "2");
    assert_string_equal(vp_node_get(over, "a4")->text, "1");
}

static void depth(void **state) {
    struct fixture *f = *state;
    struct vp_buf flow = {.arena = &f->arena}, block = {.arena = &f->arena};
    for (int i = 0; i < VP_DOC_MAX_DEPTH; i++) {
        vp_buf_add(&flow, "[");
        vp_buf_printf(&block, "%*sa:\n", i, "");
    }
    vp_buf_printf(&flow, "%.*s", VP_DOC_MAX_DEPTH,
                  "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
    good(f, vp_buf_text(&flow));
    good(f, vp_buf_text(&block));
    vp_buf_printf(&block, "%*sa:\n", VP_DOC_MAX_DEPTH, "");
    bad(f, vp_buf_text(&block), VP_D_CAP, "nesting depth", VP_DOC_MAX_DEPTH + 1,
        VP_DOC_MAX_DEPTH + 1);
    size_t n = 10 * 1024 * 1024;
    char *brackets = vp_arena_alloc(&f->arena, n + 1);
    memset(brackets, '[', n);
    bad(f, brackets, VP_D_CAP, "nesting depth", 1, VP_DOC_MAX_DEPTH + 1);
}

static void alias_caps(void **state) {
    struct fixture *f = *state;
    struct vp_buf buf = {.arena = &f->arena};
    vp_buf_add(&buf, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 9; i++) {
        vp_buf_printf(&buf, "a%d: &a%d [", i, i);
        for (int k = 0; k < 10; k++)
            vp_buf_printf(&buf, "%s*a%d", k ? ", " : "", i - 1);
        vp_buf_add(&buf, "]\n");
    }
    bad(f, vp_buf_text(&buf), VP_D_CAP, "aliases", 5, 45);

    buf = (struct vp_buf){.arena = &f->arena};
    for (int i = 0; i < 70; i++)
        vp_buf_printf(&buf, i ? "a%d: &a%d [*a%d]\n" : "a%d: &a%d [x]\n", i, i, i - 1);
    bad(f, vp_buf_text(&buf), VP_D_CAP, "nesting depth", 64, 12);

    buf = (struct vp_buf){.arena = &f->arena};
    for (int i = 0; i < 1001; i++)
        vp_buf_printf(&buf, "- &a%d x\n", i);
    bad(f, vp_buf_text(&buf), VP_D_CAP, "anchors", 1001, 3);
}

static void other_caps(void **state) {
    struct fixture *f = *state;
    struct vp_buf buf = {.arena = &f->arena};
    for (int i = 0; i < 101; i++)
        vp_buf_printf(&buf, "%%TAG !t%d! tag:x\n", i);
    vp_buf_add(&buf, "---\na: 1\n");
    bad(f, vp_buf_text(&buf), VP_D_CAP, "lines that begin with %", 1, 1);

    size_t n = 16 * 1024 * 1024 + 1;
    char *text = vp_arena_alloc(&f->arena, n + 1);
    memset(text, 'x', n);
    bad(f, text, VP_D_CAP, "length", 1, 1);
}

/* Whatever allocation fails, libyaml's memory is freed (the sanitizer would tell). */
static void without_memory(void **state) {
    struct fixture *f = *state;
    struct vp_buf buf = {.arena = &f->arena};
    for (int i = 0; i < 5000; i++)
        vp_buf_printf(&buf, "- {a: [1, 'text'], b: \"%d\"}\n", i);
    struct vp_bytes text = {buf.data, buf.size};
    for (volatile int n = 1, done = 0; !done; n++) {
        jmp_buf oom;
        struct vp_node *node;
        struct vp_arena arena = {.take = failing_take(n), .oom = &oom};
        struct vp_ctx ctx = f->ctx;
        ctx.arena = &arena;
        if (setjmp(oom) == 0) {
            assert_int_equal(vp_yaml_read(&ctx, &node, text, "test.yaml"), VP_OK);
            assert_true(n > 4);
            done = 1;
        }
        assert_ptr_equal(arena.oom, &oom);
        vp_arena_free(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_of_the_core_schema),
        cmocka_unit_test_setup_teardown(scalars_keep_their_text, setup, teardown),
        cmocka_unit_test_setup_teardown(lists_maps_and_positions, setup, teardown),
        cmocka_unit_test_setup_teardown(json_is_yaml, setup, teardown),
        cmocka_unit_test_setup_teardown(faults, setup, teardown),
        cmocka_unit_test_setup_teardown(a_tab_gets_a_hint, setup, teardown),
        cmocka_unit_test_setup_teardown(nul_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(duplicate_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(many_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(aliases_are_copies, setup, teardown),
        cmocka_unit_test_setup_teardown(merge_keys, setup, teardown),
        cmocka_unit_test_setup_teardown(depth, setup, teardown),
        cmocka_unit_test_setup_teardown(alias_caps, setup, teardown),
        cmocka_unit_test_setup_teardown(other_caps, setup, teardown),
        cmocka_unit_test_setup_teardown(without_memory, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
